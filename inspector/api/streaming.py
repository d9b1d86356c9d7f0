"""What a batch of a stream is answered with, by HTTP and by socket alike."""

from __future__ import annotations

from typing import Any, NamedTuple

from django.db import Error

from guard_core.errors import LimitExceeded
from inspector.accounts.limits import TooMany
from inspector.ingest import live
from inspector.models import Project
from inspector.project.trouble import FULL, trouble_of
from inspector.streams.machine import BatchRefused, LineConflict, Misfit
from inspector.streams.messages import BadMessage, StreamMessage

OK, BAD, CONFLICT, GONE, TOO_MANY = 200, 400, 409, 410, 429  # HTTP status


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
        return failed(error)
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


def failed(error: Exception) -> Reply:
    """What keeps the server from storing anything now, in words. Raises any other error again."""
    trouble = trouble_of(error)
    if trouble is None:
        raise error
    return Reply(trouble.status, {"error": trouble.words})


def bad(error: BadMessage) -> Reply:
    """400: a message that makes no sense, with the place of the line where it is one."""
    body: dict[str, Any] = {"error": f"{str(error)[:1].upper()}{str(error)[1:]}."}
    if error.index is not None:
        body["index"] = error.index
    return Reply(BAD, body)


def later(refused: TooMany) -> Reply:
    """429, to a frame of a socket: the same may be sent after `retry_after` seconds."""
    sentence = f"{refused.reason} Try again in {refused.wait:,} seconds."
    return Reply(TOO_MANY, {"error": sentence, "retry_after": refused.wait})
