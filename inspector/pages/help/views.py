"""Help: what the terms mean, which keys there are, a tour of a sample, and going anywhere by name."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from guard_core.policies import POLICIES
from inspector.accounts.access import allows
from inspector.models import Session
from inspector.pages.shared import parameters, tour
from inspector.pages.shared.glossary import PARTS
from inspector.pages.shared.htmx import render_part
from inspector.pages.shared.parts import visible
from inspector.pages.shared.project import project_of
from inspector.replays.choice import policy_title
from inspector.watching.offered import is_offered

PAGES = (
    ("All sessions", "home"),
    ("Search all sessions", "search"),
    ("Running agents", "running"),
    ("Connect an agent", "connect"),
    ("Webhooks", "webhooks"),
    ("Compare", "compare"),
    ("Triggers", "triggers"),
    ("Sweeps", "sweeps"),
    ("Shares", "shares"),
    ("Policies", "policies"),
    ("Gallery", "gallery"),
    ("Help", "help"),
    ("Tour", "tour"),
)
WATCHING = (("Watched folders", "watching"),)  # where the server may watch its machine
TEAM_PAGES = (("Account and projects", "account"), ("Members, invitations, keys", "team"), ("Audit log", "team_audit"))
SESSION_PAGES = (
    ("Overview", "session_overview"),
    ("Steps", "session_steps"),
    ("Context", "session_context"),
    ("Rule", "session_rule"),
    ("Compare with policies", "session_policies"),
    ("Facts", "session_facts"),
    ("Estimator", "session_estimator"),
    ("What would have avoided it", "session_avoid"),
    ("Search this session", "session_search"),
    ("Comments", "session_comments"),
    ("Share", "session_share"),
)
PICTURES = (  # of the bundled long coding session
    ("overview", "Overview: the verdict, the recording as a chart with a replay beside it, and the form of the replay"),
    ("step", "Steps: the messages of one request in the middle, and the decision on the right"),
    ("compaction", "Compactions: from the request before to the request after, part by part"),
    ("context", "Context: what fills the requests of all steps, by class"),
    ("facts", "Facts: which requests still hold an instruction, and where it was lost"),
    ("policies", "Policies: the recording and the replays of every policy"),
)
EACH = 8  # places shown of a kind
LONGEST_STEP = 9  # digits


@require_safe
def help_page(request: HttpRequest) -> HttpResponse:
    """The glossary, the keys and short explanations."""
    return render(request, "inspector/help/index.html", {"glossary": PARTS, "pictures": PICTURES})


@require_safe
def tour_page(request: HttpRequest) -> HttpResponse:
    """The stops of the tour; links where the sample is in the project, else the button that opens it."""
    session = tour.sample_session(project_of(request))
    stops = [
        {"title": stop.title, "words": stop.words, "url": tour.stop_url(session.pk, number) if session else ""}
        for number, stop in enumerate(tour.STOPS, 1)
    ]
    context = {"stops": stops, "sample": tour.SAMPLE, "is_open": session is not None}
    return render(request, "inspector/help/tour.html", context)


@require_safe
def go(request: HttpRequest) -> HttpResponse:
    """Places whose name holds the words of `?q=`: pages, sessions, policies; "#12" and "step 12" are a step of the
    session `?s=`."""
    words = parameters.text(request.GET.get("q", ""))
    session = _session(request)
    pages = PAGES + (WATCHING if is_offered() else ()) + (TEAM_PAGES if settings.TEAM else ())
    allowed = tuple(page for page in pages if allows(request, page[1], "GET"))
    titled = Session.objects.of(project_of(request)).filter(deleted=None, title__icontains=words).order_by("-created")
    groups = [
        ("This session", _steps(session, words) + _named(SESSION_PAGES, words, session) if session else []),
        ("Pages", _named(allowed, words)),
        ("Sessions", [(visible(row.title) or "untitled", row.get_absolute_url()) for row in titled[:EACH]]),
        ("Policies", _policies(words)),
    ]
    context: dict[str, Any] = {
        "groups": [(name, places[:EACH]) for name, places in groups if places],
        "words": words,
        "session_id": session.pk if session else "",
    }
    return render_part(request, "places", "inspector/help/_places.html", "inspector/help/go.html", context)


def _session(request: HttpRequest) -> Session | None:
    """The session `?s=`; None where the page that asks is not of one."""
    try:
        pk = UUID(request.GET.get("s", ""))
    except ValueError:
        return None
    return Session.objects.of(project_of(request)).filter(pk=pk, deleted=None).first()


def _steps(session: Session, words: str) -> list[tuple[str, str]]:
    number = words.lower().removeprefix("step").strip().removeprefix("#").replace(",", "")
    if not (number.isascii() and number.isdigit() and len(number) <= LONGEST_STEP):
        return []
    if not 1 <= int(number) <= session.calls:
        return []
    return [(f"Step {int(number):,}", reverse("session_steps", args=[session.pk]) + f"?at={int(number)}")]


def _named(pages: tuple[tuple[str, str], ...], words: str, session: Session | None = None) -> list[tuple[str, str]]:
    place = [session.pk] if session else []
    return [(label, reverse(name, args=place)) for label, name in pages if words.lower() in label.lower()]


def _policies(words: str) -> list[tuple[str, str]]:
    named = ((policy_title(name), name) for name in POLICIES)
    return [
        (title, reverse("policy", args=[name]))
        for title, name in named
        if words and (words.lower() in title.lower() or words.lower() in name)
    ]
