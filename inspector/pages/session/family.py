"""Sessions that belong together: the one that started a session, those that it started, and the agent's own recording
of what was captured, as far as they are here."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from guard_core.recordings.formats.capture.format import FORMAT as CAPTURE
from inspector.models import Session

MOST = 500  # rows looked at: of a session that was imported again and again, the newest


@dataclass(frozen=True)
class SessionFamily:
    """The sessions around one; `parent_name` is what the recording calls the parent, "" where it names none. `twins`
    are other recordings of the same calls: of captured requests what the agent itself wrote, and vice versa."""

    parent: Session | None
    parent_name: str
    children: tuple[Session, ...]
    twins: tuple[Session, ...] = ()


def family_of(row: Session) -> SessionFamily:
    """Parent, children and twins of a session by the names that its agent gave them; a copy of the same file goes
    first."""
    stored = Session.objects.of(row.project_id).filter(deleted=None).exclude(pk=row.pk).order_by("-created", "ordinal")
    if row.format == CAPTURE.name:
        own = stored.exclude(format=CAPTURE.name).filter(source_id=row.parent_source)[:1] if row.parent_source else ()
        return SessionFamily(None, "", (), tuple(own))
    here = stored.filter(format=row.format)
    parents = here.filter(source_id=row.parent_source)[:MOST] if row.parent_source else ()
    children = here.filter(parent_source=row.source_id)[:MOST] if row.source_id else ()
    captured = stored.filter(format=CAPTURE.name, parent_source=row.source_id)[:MOST] if row.source_id else ()
    return SessionFamily(
        parent=next(iter(_one_of_each(parents, row)), None),
        parent_name=row.parent_source,
        children=tuple(sorted(_one_of_each(children, row), key=lambda child: (child.ordinal, child.title, child.pk))),
        twins=tuple(captured),
    )


def _one_of_each(rows: Iterable[Session], beside: Session) -> list[Session]:
    """One row for each name: from the same file if there is one, else the newest."""
    chosen: dict[str, Session] = {}
    for row in rows:
        known = chosen.get(row.source_id)
        if known is None or (row.recording_id == beside.recording_id != known.recording_id):
            chosen[row.source_id] = row
    return list(chosen.values())
