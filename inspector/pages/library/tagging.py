"""Names and tags of sessions."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet

from inspector.models import Project, Session, Tag

MAX_TITLE = 200  # characters
MAX_TAG = 40
MAX_TAGS_AT_ONCE = 20
BATCH = 500


def rename(session: Session, title: str) -> bool:
    """Give a session another title; False, and nothing done, where none is left after cleaning."""
    clean = " ".join(title.replace("\x00", "").encode("utf-8", "replace").decode().split())[:MAX_TITLE]
    return bool(clean) and Session.objects.row(session).update(title=clean) > 0


def tag_names(text: str) -> list[str]:
    """The tags in a line of text: separated by commas, in lower case, each once."""
    plain = text.replace("\x00", "").encode("utf-8", "replace").decode().lower()
    names = (" ".join(part.lstrip(" #").split())[:MAX_TAG].strip() for part in plain.split(","))
    return list(dict.fromkeys(name for name in names if name))[:MAX_TAGS_AT_ONCE]


def tag(project: Project, sessions: QuerySet[Session], names: Iterable[str]) -> None:
    """Put tags on sessions of a project; those that carry one already keep it."""
    with transaction.atomic():
        batches = _batches(sessions)
        for name in names:
            tag, _ = Tag.objects.of(project).get_or_create(name=name)
            for keys in batches:
                tag.sessions.add(*keys)  # type: ignore[arg-type]  # the stubs know whole numbers as keys, ours are UUIDs


def untag(project: Project, sessions: QuerySet[Session], names: Iterable[str]) -> None:
    """Take tags off sessions of a project; a tag without sessions is deleted."""
    with transaction.atomic():
        batches = _batches(sessions)
        for tag in Tag.objects.of(project).filter(name__in=list(names)):
            for keys in batches:
                tag.sessions.remove(*keys)  # type: ignore[arg-type]  # as above
        Tag.objects.of(project).filter(sessions=None).delete()


def _batches(sessions: QuerySet[Session]) -> list[list[UUID]]:
    """The keys, few enough at a time for any database."""
    keys = list(sessions.order_by().values_list("pk", flat=True))
    return [keys[start : start + BATCH] for start in range(0, len(keys), BATCH)]
