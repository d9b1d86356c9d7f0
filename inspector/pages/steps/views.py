"""The stepper: one model call at a time, with what the model saw and the decision before it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any
from uuid import UUID

import numpy as np
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from guard_core.events import Event, Part
from guard_core.tokens import tokenizer
from inspector.models import Session
from inspector.pages.session.following import COMMENTS, SharedHtml, followed, rendered
from inspector.pages.session.frame import Frame, frame, number, step_of
from inspector.pages.shared import comments, parts, requests
from inspector.pages.shared.comments import CommentPlace
from inspector.pages.shared.htmx import render_part, wants_part
from inspector.pages.shared.numbers import counted, message_index, part_index, part_number, step_index, step_number
from inspector.pages.shared.project import project_of
from inspector.pages.steps.addresses import marked
from inspector.pages.steps.listing import filter_links, rows_around
from inspector.pages.steps.messages import messages, sent_view
from inspector.pages.steps.reading import reader
from inspector.pages.steps.step import one_step
from inspector.storage import loading

SELECTION_ENCODING = "o200k_base"  # as the tokenizer counts beside the messages
LONGEST_SELECTION = 200_000  # characters that are counted within the request


@require_GET
def session_steps(request: HttpRequest, session_id: UUID) -> HttpResponse:
    """The stepper at a step; a key or a click swaps the two panes of the step alone, a new step the list as well."""
    if (answer := followed(request, session_id, _grown)) is not None:
        return answer
    page = frame(request, session_id)
    # ?started=ID asks for the first step whose request holds the call that started that session.
    started = request.GET.get("started", "")
    place = next((one.at for one in page.analysis.head.sub_agents if started and one.session == started), None)
    step = 0 if place is None else int(np.searchsorted(page.analysis.ledger.steps["at"], place, side="right"))
    at = step_of(request, "at", page.count, step)
    context = _context(page, at, whole=not wants_part(request, "step"))
    if page.count:
        context["comments"] = _comments(page, at)(request)
    return render_part(request, "step", "inspector/steps/_swap.html", "inspector/steps/index.html", context)


def _grown(request: HttpRequest, session_id: UUID) -> SharedHtml:
    page = frame(request, session_id)
    at = step_of(request, "at", page.count)
    html = rendered("inspector/steps/_grown.html", {**_context(page, at, whole=True), "place": COMMENTS}, request)
    asked = _comments(page, at)

    def panel(viewer: HttpRequest) -> str:
        return render_to_string("inspector/comments/_panel.html", {"comments": asked(viewer)}, viewer)

    return SharedHtml(html, {COMMENTS: panel})


def _comments(page: Frame, at: int) -> Callable[[HttpRequest], dict[str, Any]]:
    """The comments of a step, as whoever asks sees them."""
    place = CommentPlace(comments.STEP, at)
    return partial(comments.panel, session=page.row, place=place, choice=page.choice, side=page.shown_side)


def _context(page: Frame, at: int, whole: bool) -> dict[str, Any]:
    """What the templates of a step show, but for its comments; `whole`: with the list and the frame of the page."""
    links = {**page.links, "steps": page.paths["steps"] + page.choice.query(**marked(page))}
    context: dict[str, Any] = {"at": step_number(at), "session": page.session(), "urls": links}
    if page.count:
        context |= one_step(page, at)
    if whole:
        context |= {**page.context("steps", at if page.count else None), "urls": links}
        if page.count:
            context |= {"list": rows_around(page, around=at), "filters": filter_links(page, at)}
    return context


@require_GET
def step_list(request: HttpRequest, session_id: UUID) -> HttpResponse:
    """Another window of the step list."""
    page = frame(request, session_id)
    if not page.count:
        raise Http404("This session has no model calls.")
    at, around = step_of(request, "at", page.count), step_of(request, "around", page.count)
    start = step_of(request, "from", page.count)
    listed = rows_around(page, around) if "around" in request.GET else rows_around(page, start=start)
    return render(request, "inspector/steps/_list.html", {"list": listed, "at": step_number(at)})


@require_GET
def step_messages(request: HttpRequest, session_id: UUID) -> HttpResponse:
    """More messages of a step, before or after those shown."""
    page = frame(request, session_id)
    at = step_of(request, "at", page.count)
    if not page.count:
        raise Http404("This session has no model calls.")
    context = messages(page, at)
    direction = request.GET.get("only")
    context["window"] = {key: value for key, value in context["window"].items() if key.startswith(direction or "")}
    return render(request, "inspector/steps/_window.html", context)


@require_GET
def message_part(request: HttpRequest, session_id: UUID, message: int, part: int) -> HttpResponse:
    """A part of a message, both counted from 1: in the reader, or the next piece of a long one."""
    page, seq, index = frame(request, session_id), message_index(message), part_index(part)
    known = 0 <= seq < page.row.events  # a larger number may be one that no database takes
    event = loading.load_some_events(page.row, [seq]).get(seq) if known else None
    if event is None or not 0 <= index < len(event.parts):
        raise Http404("There is no such part.")
    path = reverse("message_part", args=[page.row.pk, message, part])
    return _piece(page, event.parts[index], path, f"Message {message:,}, part {part:,}", event, index)


@require_GET
def request_part(request: HttpRequest, session_id: UUID, step: int, position: int, part: int) -> HttpResponse:
    """A part of a request's message, which may be in no log: a summary, an edited result."""
    page, index = frame(request, session_id), part_index(part)
    if not 1 <= step <= page.count:
        raise Http404("There is no such step.")
    view, inserted, repeated = sent_view(page, step_index(step))
    rows = requests.rows_of(view, message_index(position), position, inserted, repeated)
    message = rows[0].message if rows and position else None
    if message is None or not 0 <= index < len(message.parts):
        raise Http404("There is no such part.")
    path = reverse("request_part", args=[page.row.pk, step, position, part])
    return _piece(page, message.parts[index], path, f"Step {step:,}, message {position:,} of its request")


@require_GET
def system_part(request: HttpRequest, session_id: UUID, part: int) -> HttpResponse:
    """A part of the system prompt."""
    page, index = frame(request, session_id), part_index(part)
    parts = page.analysis.head.system or ()
    if not 0 <= index < len(parts):
        raise Http404("There is no such part.")
    return _piece(page, parts[index], reverse("system_part", args=[page.row.pk, part]), "System prompt")


@require_GET
def old_part(request: HttpRequest, session_id: UUID, place: str, index: str) -> HttpResponse:
    """Where a part is now whose address of earlier versions counted it from 0."""
    row = get_object_or_404(Session.objects.of(project_of(request)), pk=session_id, deleted=None)
    path = f"{row.get_absolute_url()}{place}/parts/{part_number(int(index))}"
    return redirect(f"{path}?{request.GET.urlencode()}" if request.GET else path, permanent=True)


@require_POST
def selection_tokens(request: HttpRequest, session_id: UUID) -> HttpResponse:
    """The tokenizer count of a text that was selected on a page of the session."""
    get_object_or_404(Session.objects.of(project_of(request)), pk=session_id, deleted=None)
    text = request.POST.get("text", "")
    if len(text) > LONGEST_SELECTION:
        return HttpResponse(f"more than {LONGEST_SELECTION:,} characters are not counted", content_type="text/plain")
    count = tokenizer.count([text], SELECTION_ENCODING)[0]
    words = f"{counted(len(text), 'character')}: {counted(count, 'token')} ({SELECTION_ENCODING})"
    return HttpResponse(words, content_type="text/plain")


def _piece(page: Frame, part: Part, path: str, title: str, event: Event | None = None, index: int = 0) -> HttpResponse:
    """The reader of a part; with `?from=` alone the next piece of a folded one, in its message."""
    if "as" in page.request.GET or "from" not in page.request.GET:
        return reader(page, part, path, title, event, index)
    text = parts.display_text(part)
    start = number(page.request, "from", 0, 0, len(text))
    piece = parts.piece(text, start, parts.PIECE_CHARS)
    shown = {
        **piece,
        "more": path + page.choice.query(side=page.shown_side, **{"from": piece["next"]}) if piece["next"] else "",
        "more_chars": f"{piece['left']:,}",
    }
    return render(page.request, "inspector/steps/_more.html", {"piece": shown})
