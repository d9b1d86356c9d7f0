"""How long, and how much, a project keeps: what is beyond it is deleted once a day, as a person would delete it."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import accumulate
from typing import NamedTuple

from django.db.models import Q, QuerySet
from django.utils import timezone

from inspector.models import AuditRecord, Project, Recording, Session
from inspector.storage import deleting

SLICE = 500  # keys in one query


class Rules(NamedTuple):
    """What a project keeps: sessions imported in the last `days`, and the newest recordings up to `size` bytes. None:
    without limit."""

    days: int | None
    size: int | None

    def describe(self) -> str:
        """In words."""
        age = "of any age" if self.days is None else f"of {self.days:,} days"
        return f"sessions {age}, {'of any size' if self.size is None else f'of {self.size:,} bytes'}"


def due(project: Project, rules: Rules, now: datetime) -> QuerySet[Session]:
    """The sessions of a project that are beyond its rules at this moment."""
    sessions = Session.objects.of(project).filter(deleted=None)
    beyond = Q(pk__in=[])
    if rules.days is not None:
        beyond |= Q(created__lt=now - timedelta(days=rules.days))
    if rules.size is not None:
        rows = Recording.objects.of(project).filter(sessions__deleted=None, sessions__isnull=False).distinct()
        newest_first = list(rows.order_by("-created", "-pk").values_list("pk", "size"))
        totals = accumulate(bytes_ for _, bytes_ in newest_first)
        too_much = [key for (key, _), total in zip(newest_first, totals, strict=True) if total > rules.size]
        beyond |= Q(recording__in=too_much)
    return sessions.filter(beyond)


def apply_all() -> None:
    """Delete what is beyond the rules of each project."""
    for project in Project.objects.exclude(keep_days=None, keep_bytes=None):
        rules = Rules(project.keep_days, project.keep_bytes)
        keys = list(due(project, rules, timezone.now()).values_list("pk", flat=True))
        for first in range(0, len(keys), SLICE):
            deleting.delete(project, Session.objects.of(project).filter(pk__in=keys[first : first + SLICE]))
        if count := len(keys):
            AuditRecord.objects.create(project=project, actor="retention", what="sessions deleted", about=f"{count:,}")
