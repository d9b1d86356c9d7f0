"""What a batch of a stream is answered with, by HTTP and by socket alike."""

from __future__ import annotations

from typing import Any, NamedTuple

from django.db import Error

from guard_core.errors import LimitExceeded
from inspector.ingest import live
from inspector.models import Project
from inspector.project.trouble import FULL, trouble_of
from inspector.streams.machine import BatchRefused, LineConflict, Misfit
from inspector.streams.messages import BadMessage, StreamMessage

OK, BAD, CONFLICT, GONE = 200, 400, 409, 410  # HTTP status


class Reply(NamedTuple):
    """Its HTTP status, and the same in words and numbers."""

    status: int
    body: dict[str, Any]


def reply_to(project: Project, name: str, message: StreamMessage) -> Reply:
    """Store a batch, and say what became of it."""
    try:
        taken = live.take(project, name, message)
    except BatchRefused as error:
        return refusal(error)
    except live.StreamDeleted as error:
        return Reply(GONE, {"error": f"{str(error)[:1].upper()}{str(error)[1:]}."})
    except LimitExceeded as error:  # until sessions are deleted, or the quota is raised
        return Reply(FULL, {"error": f"{str(error)[:1].upper()}{str(error)[1:]}."})
    except (Error, OSError) as error:
        trouble = trouble_of(error)
        if trouble is None:
            raise
        return Reply(trouble.status, {"error": trouble.words})
    answer, row = taken
    body: dict[str, Any] = {
        "acknowledged": answer.acknowledged,
        "stored": answer.stored,
        "repeated": answer.repeated,
    }
    if row is not None:
        body |= {"session": str(row.pk), "url": row.get_absolute_url(), "steps": row.calls}
    return Reply(OK, body)


def refusal(error: BatchRefused) -> Reply:
    """409: other content under a known number or a line that does not fit those before it, at `index`, or a gap."""
    body: dict[str, Any] = {"error": f"{str(error)[:1].upper()}{str(error)[1:]}.", "expected": error.expected}
    if isinstance(error, LineConflict | Misfit):
        body["index"] = error.number
    return Reply(CONFLICT, body)


def bad(error: BadMessage) -> Reply:
    """400: a message that makes no sense, with the place of the line where it is one."""
    body: dict[str, Any] = {"error": f"{str(error)[:1].upper()}{str(error)[1:]}."}
    if error.index is not None:
        body["index"] = error.index
    return Reply(BAD, body)
