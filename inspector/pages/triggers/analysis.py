"""What an address asks for, and the rows and change points of the sessions that it leaves."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, fields, replace
from datetime import date, timedelta
from functools import cached_property
from typing import Any
from urllib.parse import urlencode

from django.db.models import QuerySet
from django.http import QueryDict

from guard_core.corpus import RowKey, SessionStretch, ThresholdChanges, TriggerRow, changes_of, rows_of
from inspector.models import Project, Session
from inspector.pages.shared import parameters
from inspector.storage import corpus
from inspector.storage.corpus import Corpus

ID_CHARS = 12  # of the name of a row in an address


@dataclass(frozen=True)
class TriggersFilter:
    """What is asked for; empty and None ask for everything. `row` is the name of one row."""

    agent: str = ""
    model: str = ""
    tag: str = ""
    since: date | None = None
    until: date | None = None
    row: str = ""

    @classmethod
    def parse(cls, given: QueryDict) -> TriggersFilter:
        """Read an address. What makes no sense is left out; `parameters.unread` says so of days."""
        texts = {name: parameters.text(given.get(name, "")) for name in ("agent", "model", "tag", "row")}
        since, until = (parameters.day(given.get(name, "")) for name in ("since", "until"))
        return cls(**texts, since=since, until=until)

    @property
    def filtered(self) -> bool:
        """Does it leave anything out."""
        return self != TriggersFilter()

    def query(self, **changes: Any) -> str:
        """The query string, with changes; starts with "?". `first` is the number of the page's first row, from 1."""
        first = changes.pop("first", 0)
        wanted = replace(self, **changes)
        pairs = [*((item.name, getattr(wanted, item.name)) for item in fields(wanted)), ("from", first)]
        return "?" + urlencode([(name, value) for name, value in pairs if value])

    def sessions(self, project: Project) -> QuerySet[Session]:
        """The sessions of a project that the database can choose: by tag, and by the day on which they began. Those
        without a time are left out where a day is asked for."""
        limits = {
            "tags__name": self.tag or None,
            "started_at__gte": parameters.midnight(self.since),
            "started_at__lt": parameters.midnight(self.until + timedelta(days=1)) if self.until else None,
        }
        matching = Session.objects.of(project).filter(deleted=None)
        return matching.filter(**{name: value for name, value in limits.items() if value is not None})


def row_id(key: RowKey) -> str:
    """A short name of a row, the same on every day."""
    return hashlib.sha256(repr(key).encode()).hexdigest()[:ID_CHARS]


@dataclass(frozen=True)
class TriggersAnalysis:
    """The sessions asked for, and what they prove together."""

    wanted: TriggersFilter
    corpus: Corpus
    stretches: list[SessionStretch] = field(default_factory=list)

    @classmethod
    def of(cls, project: Project, wanted: TriggersFilter) -> TriggersAnalysis:
        """Read the sessions of a project."""
        known = corpus.load(wanted.sessions(project))
        stretches = [item for item in known.stretches if _fits(item, wanted)]
        return cls(wanted, known, stretches)

    @cached_property
    def rows(self) -> list[TriggerRow]:
        return rows_of(self.stretches)

    @cached_property
    def changes(self) -> ThresholdChanges:
        return changes_of(self.stretches)

    @cached_property
    def titles(self) -> dict[str, str]:
        return {item.session: item.title for item in self.stretches}

    def values(self, name: str) -> list[str]:
        """The agents or models that the sessions have, whatever agent or model is asked for."""
        values = {getattr(item.key, name) for item in self.corpus.stretches}
        return sorted(values - {""}, key=str.casefold)


def _fits(item: SessionStretch, wanted: TriggersFilter) -> bool:
    if not (wanted.agent or wanted.model or wanted.row):
        return True
    key = item.key
    return (
        wanted.agent in ("", key.agent)
        and wanted.model in ("", key.model)
        and (not wanted.row or row_id(key) == wanted.row)
    )
