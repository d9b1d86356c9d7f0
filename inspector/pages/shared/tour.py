"""The tour: five places of the bundled loop sample, each an address of that session, with two sentences."""

from __future__ import annotations

from typing import Any, NamedTuple
from urllib.parse import urlencode

from django.urls import reverse

from inspector.models import Project, Session

SAMPLE = "unpersisted-loop"
PARAMETER = "tour"


class TourStop(NamedTuple):
    """One place: the name of its address, its query, what to look at."""

    title: str
    page: str
    query: dict[str, str]
    words: str


STOPS = (
    TourStop(
        "The verdict",
        "session_overview",
        {},
        "The first sentence says what went wrong, and the chart shows where: "
        "each triangle is a compaction. Here they follow one another, because the summary is not kept.",
    ),
    TourStop(
        "The decision",
        "session_steps",
        {},
        "A step is one model call. The card on the right is the arithmetic that "
        "made it compact or not, each number with its source. Press j and k for the next and the previous step.",
    ),
    TourStop(
        "What fills the context",
        "session_context",
        {},
        "The request of a step by class, message and tool, and what changed since the call before.",
    ),
    TourStop(
        "What the requests still hold",
        "session_facts",
        {},
        "Instructions, and any words that you type, followed through every request: where they were sent as "
        "written, only in a summary, or not at all.",
    ),
    TourStop(
        "What would have avoided it",
        "session_avoid",
        {},
        "For each finding the nearest setting under which a replay lacks it. Each link opens that replay.",
    ),
)


def sample_session(project: Project) -> Session | None:
    """The loop sample of a project, where it has been opened."""
    sessions = Session.objects.of(project).filter(recording__name=f"{SAMPLE}.jsonl", deleted=None)
    return sessions.order_by("-created").first()


def stop_url(session_id: Any, number: int) -> str:
    """The address of a stop, which counts from 1."""
    stop = STOPS[number - 1]
    return reverse(stop.page, args=[session_id]) + "?" + urlencode({**stop.query, PARAMETER: number})


def bar(session_id: Any, typed: str) -> dict[str, Any]:
    """What a page of a session says on the tour; nothing where its address names no stop."""
    if not (typed.isascii() and typed.isdigit() and len(typed) < 3 and 1 <= int(typed) <= len(STOPS)):
        return {}
    number = int(typed)
    return {
        "stop": STOPS[number - 1],
        "number": number,
        "count": len(STOPS),
        "previous": stop_url(session_id, number - 1) if number > 1 else "",
        "next": stop_url(session_id, number + 1) if number < len(STOPS) else "",
    }
