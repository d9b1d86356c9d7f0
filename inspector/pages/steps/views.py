"""The stepper: one model call at a time, with what the model saw and the decision before it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

import numpy as np
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from guard_core.estimation.sharing import ATTRIBUTION_SOURCES
from guard_core.estimation.usage import PROVIDER
from guard_core.events import Event, Part, ToolCallPart, ToolResultPart, utf8_bytes, value_text
from guard_core.events import part_text as text_of
from guard_core.findings.gaps import clearing_words
from guard_core.tokens import tokenizer
from guard_core.trace import given_to_summarisers
from guard_core.views import Inserted, View, content_count, held_events
from inspector.figures.timeline import NO_STEPS, Ints
from inspector.models import Session
from inspector.pages.session.following import COMMENTS, SharedHtml, followed, rendered
from inspector.pages.session.frame import Frame, frame, number, other_step_note, step_of
from inspector.pages.shared import card as cards
from inspector.pages.shared import comments, parts, requests
from inspector.pages.shared.comments import CommentPlace
from inspector.pages.shared.htmx import render_part, wants_part
from inspector.pages.shared.numbers import (
    counted,
    message_index,
    message_number,
    moment,
    part_index,
    part_number,
    percent,
    step_index,
    step_number,
    tokens,
    turn_number,
)
from inspector.pages.shared.own_card import own_card
from inspector.pages.shared.project import project_of
from inspector.pages.shared.requests import PAGE, MessageRow
from inspector.pages.shared.simulator import step_query
from inspector.pages.steps import presenter
from inspector.pages.steps.reading import RAW, reader
from inspector.replays.choice import policy_title
from inspector.storage import convert
from inspector.storage.estimates import load_counts

NAV = (
    (("Home", "⇤", "first step"), ("k", "‹", "previous step"), ("j", "›", "next step"), ("End", "⇥", "last step")),
    (("K", "‹ turn", "previous user turn"), ("J", "turn ›", "next user turn")),
    (("[", "‹ ▼", "previous compaction"), ("]", "▼ ›", "next compaction")),
    (("{", "‹ !", "previous finding"), ("}", "! ›", "next finding")),
)
SEARCH_NAV = (("N", "‹ ⌕", "previous step with a match"), ("n", "⌕ ›", "next step with a match"))
KEYS = {"j": "j ArrowDown", "k": "k ArrowUp"}
SHOWN_TOOLS = 40
SELECTION_ENCODING = "o200k_base"  # as the tokenizer counts beside the messages
LONGEST_FILTER = 20  # characters of the name of a filter
LONGEST_SELECTION = 200_000  # characters that are counted within the request


@require_GET
def session_steps(request: HttpRequest, session_id: UUID) -> HttpResponse:
    """The stepper at a step; a key or a click swaps the two panes of the step alone, a new step the list as well."""
    if (answer := followed(request, session_id, _grown)) is not None:
        return answer
    page = frame(request, session_id)
    at = step_of(request, "at", page.count, _step_that_started(page))
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
    links = {**page.links, "steps": page.paths["steps"] + page.choice.query(**_marked(page))}
    context: dict[str, Any] = {"at": step_number(at), "session": page.session(), "urls": links}
    if page.count:
        context |= _step(page, at)
    if whole:
        context |= {**page.context("steps", at if page.count else None), "urls": links}
        if page.count:
            context |= {"list": _list(page, around=at), "filters": _filters(page, at)}
    return context


def _step_that_started(page: Frame) -> int:
    """The step that ?started=ID asks for: the first one whose request holds the call that started that session."""
    name = page.request.GET.get("started", "")
    place = next((agent.at for agent in page.analysis.head.sub_agents if name and agent.session == name), None)
    return 0 if place is None else int(np.searchsorted(page.analysis.ledger.steps["at"], place, side="right"))


@require_GET
def step_list(request: HttpRequest, session_id: UUID) -> HttpResponse:
    """Another window of the step list."""
    page = frame(request, session_id)
    if not page.count:
        raise Http404("This session has no model calls.")
    at, around = step_of(request, "at", page.count), step_of(request, "around", page.count)
    listed = _list(page, around) if "around" in request.GET else _list(page, start=step_of(request, "from", page.count))
    return render(request, "inspector/steps/_list.html", {"list": listed, "at": step_number(at)})


@require_GET
def step_messages(request: HttpRequest, session_id: UUID) -> HttpResponse:
    """More messages of a step, before or after those shown."""
    page = frame(request, session_id)
    at = step_of(request, "at", page.count)
    if not page.count:
        raise Http404("This session has no model calls.")
    context = _messages(page, at)
    direction = request.GET.get("only")
    context["window"] = {key: value for key, value in context["window"].items() if key.startswith(direction or "")}
    return render(request, "inspector/steps/_window.html", context)


@require_GET
def message_part(request: HttpRequest, session_id: UUID, message: int, part: int) -> HttpResponse:
    """A part of a message, both counted from 1: in the reader, or the next piece of a long one."""
    page, seq, index = frame(request, session_id), message_index(message), part_index(part)
    known = 0 <= seq < page.row.events  # a larger number may be one that no database takes
    event = convert.load_some_events(page.row, [seq]).get(seq) if known else None
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
    view, inserted, repeated = _view(page, step_index(step))
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


# ---- the step list


def _list(page: Frame, around: int | None = None, start: int = 0) -> dict[str, Any]:
    """The rows around a step, or from a row on, of those that the filter of the address leaves."""
    analysis, (name, steps) = page.analysis, _filtered(page)
    window = presenter.window_from(start, steps) if around is None else presenter.window_around(around, steps)
    names = _names(page, window.shown)
    place = (page.paths["steps"], page.choice, page.shown_side)
    listed = presenter.step_list(analysis.data, analysis.ledger, names, window, *place, _marked(page))
    for row in listed["rows"]:
        row["comments"] = page.commented_steps[step_index(row["step"])]
    return {**listed, "filter": name}


def _filter_steps(page: Frame) -> dict[str, Ints]:
    """The steps that each filter of the list leaves."""
    analysis = page.analysis
    others = {
        "findings": np.unique(np.array([step for step in _finding_steps(page) if step < page.count], dtype=np.int64)),
        "comments": np.array(sorted(page.commented_steps), dtype=np.int64),
        "matches": page.matched_steps,
    }
    return presenter.filters(analysis.data, analysis.ledger, page.side, others)


def _filtered(page: Frame) -> tuple[str, Ints]:
    """The filter of the address and its steps; "" and all steps where there is none, or it leaves none."""
    name = page.request.GET.get("list", "")
    steps = _filter_steps(page).get(name) if name else None
    return ("", np.arange(page.count)) if steps is None else (name, steps)


def _filters(page: Frame, at: int) -> list[dict[str, Any]]:
    """The filters of the list as links; the one that follows the current one has the key."""
    chosen, _ = _filtered(page)
    counts = {"": page.count, **{name: len(steps) for name, steps in _filter_steps(page).items()}}
    path, parameters = page.paths["steps"], {"at": step_number(at), "side": page.shown_side, **_marked(page)}
    tabs = [
        {
            "label": f"{name or 'all'} {count:,}",
            "url": path + page.choice.query(**{**parameters, "list": name}),
            "current": name == chosen,
            "key": "",
        }
        for name, count in counts.items()
    ]
    following = list(counts).index(chosen) + 1
    tabs[following % len(tabs)]["key"] = "f"
    return tabs


def _finding_steps(page: Frame) -> list[int]:
    """The steps of the findings, in no order."""
    analysis = page.analysis
    return [finding.step for finding in (*analysis.recorded_findings, *analysis.shown_replayed_findings)]


def _names(page: Frame, steps: Ints) -> dict[int, str]:
    """What each step answered, in a few words; a step that begins a user turn is named by the user's words."""
    columns = page.analysis.ledger.steps
    begins = np.diff(columns["turn"], prepend=-2) > 0
    chosen = np.where(begins & (columns["user_event"] >= 0), columns["user_event"], columns["response"])[steps]
    events = convert.load_some_events(page.row, sorted({int(seq) for seq in chosen if seq >= 0}))
    named = {step: events.get(int(seq)) for step, seq in zip(steps.tolist(), chosen, strict=True)}
    return {step: parts.summary_line(event) if event else "no answer recorded" for step, event in named.items()}


# ---- one step


def _step(page: Frame, at: int) -> dict[str, Any]:
    analysis = page.analysis
    marks, side = _finding_steps(page), page.shown_side
    near = presenter.neighbours(analysis.data, analysis.ledger, marks, at, side, page.matched_steps)
    nav = (*NAV, SEARCH_NAV) if page.search else NAV
    turn = int(analysis.ledger.steps["turn"][at])
    return {
        "count": page.count,
        "note": other_step_note(page.request, at, page.count),
        "turn_label": f"user turn {turn_number(turn):,} of {page.row.turns:,}" if turn >= 0 else "",
        "nav": [[_nav(page, near, item) for item in group] for group in nav],
        "search": _search(page, at),
        "bar": [_nav(page, near, item) for item in (NAV[2][0], NAV[0][1], NAV[0][2], NAV[2][1])],
        "ab": _marks(page, at),
        "hidden": [(name, value) for name, value in _kept(page).items() if value],
        "marks": _badges(page, at),
        "facts_line": _facts_line(page, at),
        "sides": _sides(page, at),
        "cards": _cards(page, at),
        "settings_used": _settings_used(page),
        "share_url": _share_url(page, at),
        "what_if_url": page.links["overview_path"] + page.choice.query(**page.zoom_around(at)) + "#what-if",
        "fixed": _fixed(page),
        **_messages(page, at),
    }


def _nav(page: Frame, near: dict[str, int | None], item: tuple[str, str, str]) -> dict[str, str]:
    key, sign, title = item
    step = near[key]
    url = "" if step is None else page.step_url(step, **_marked(page))
    return {"key": KEYS.get(key, key), "sign": sign, "title": f"{title} ({key})", "url": url}


def _kept(page: Frame) -> dict[str, str]:
    """The settings of the address, for forms that must keep them."""
    return {**page.choice.pairs(), "side": page.shown_side, **_marked(page)}


def _marked(page: Frame) -> dict[str, str]:
    """What the address asks to mark: a step as A, and the matches of a search; and the filter of the list."""
    return {"a": _mark(page), "search": page.search.text, "list": page.request.GET.get("list", "")[:LONGEST_FILTER]}


def _mark(page: Frame) -> str:
    """The step that is marked as A, as the address carries it; "" for none."""
    typed = number(page.request, "a", 0, 0, page.count)
    return str(typed) if typed else ""


def _marks(page: Frame, at: int) -> dict[str, str]:
    """The links that mark this step as A, forget the mark, and compare A with this step."""
    here, mark = str(step_number(at)), _mark(page)
    links = {"mark": "" if mark == here else page.step_url(at, **{**_marked(page), "a": here}), "a": mark}
    if mark:
        path = reverse("session_difference", args=[page.row.pk])
        links["unmark"] = page.step_url(at, **{**_marked(page), "a": ""})
        links["difference"] = path + page.choice.query(side=page.shown_side, a=mark, b=here) if mark != here else ""
    return links


def _search(page: Frame, at: int) -> dict[str, str]:
    """The search whose matches are marked: how many steps have some, its page, and the address without the marks."""
    if not page.search:
        return {}
    count = len(page.matched_steps)
    indexed = "" if page.row.indexed >= page.row.events else "; the session is still being indexed"
    return {
        "text": parts.visible(page.search.text),
        "count": (f"{counted(count, 'step')} with matches, marked on the strip" if count else "no matches") + indexed,
        "url": reverse("session_search", args=[page.row.pk]) + "?" + urlencode({"q": page.search.text}),
        "end": page.step_url(at, **{**_marked(page), "search": ""}),
    }


def _badges(page: Frame, at: int) -> list[dict[str, str]]:
    """What happened at a step on the side that is shown, and after it, marked as such, on the other one."""
    data = page.analysis.data
    sides = {"recorded": (data.compactions, data.overflows, data.near_misses)}
    if data.replayed is not None and page.analysis.diverges:
        sides["replayed"] = (data.replayed.compactions, data.replayed.overflows, NO_STEPS)
    kinds = (("badge-compaction", "▼ compaction"), ("badge-overflow", "✕ overflow"), ("badge-overflow", "○ near miss"))
    return [
        {"badge": badge, "text": text}
        if side == page.side
        else {"badge": f"{badge} badge-outline", "text": f"{text}, {side}"}
        for side in sorted(sides, key=lambda name: name != page.side)
        for steps_marked, (badge, text) in zip(sides[side], kinds, strict=True)
        if at in steps_marked
    ]


def _facts_line(page: Frame, at: int) -> list[str]:
    call, columns = page.analysis.head.calls[at], page.analysis.ledger.steps
    recorded, cached = int(columns["prompt_tokens"][at]), int(columns["cached_tokens"][at])
    facts = [f"{recorded:,} prompt tokens (provider)" if recorded >= 0 else "no provider count"]
    trace = page.analysis.replayed.columns
    if page.side == "replayed" and int(trace["prompt_tokens_source"][at]) != PROVIDER:
        modelled = int(trace["modelled_prompt_tokens"][at])
        facts = [f"{modelled:,} prompt tokens (modelled)", f"recorded: {facts[0]}"]
    if cached > 0 and recorded > 0:
        facts[-1] += f", {percent(cached, recorded)} from cache"
    if call.output_tokens is not None:
        facts.append(f"{call.output_tokens:,} output tokens{', recorded' if page.side == 'replayed' else ''}")
    facts += [parts.visible(call.model[:60])] if call.model else []
    facts += [moment(call.timestamp)] if call.timestamp is not None else []
    facts += [f"line {call.line:,}"] if call.line is not None else []
    cleared = page.analysis.facts.clearings.get(at)
    facts += [clearing_words(cleared)] if cleared and page.side == "recorded" else []
    return facts


def _sides(page: Frame, at: int) -> list[dict[str, Any]]:
    """The switch between the recorded and the replayed request; none where they never differ."""
    if not page.analysis.diverges:
        return []
    words = ("without a policy", "under the policy") if page.analysis.simulated else ("as recorded", "as replayed")
    labels = tuple(zip(("recorded", "replayed"), words, strict=True))
    path, parameters = page.paths["steps"], {"at": step_number(at), **_marked(page)}
    return [
        {"label": label, "url": path + page.choice.query(side=side, **parameters), "current": side == page.side}
        for side, label in labels
    ]


def _settings_used(page: Frame) -> dict[str, Any] | None:
    """The settings of the policy whose arithmetic is shown; None where that is the agent's own alone."""
    analysis = page.analysis
    if not analysis.data.shows_policy and page.side == "recorded":
        return None
    return cards.settings_used(analysis.trace(page.side), analysis.window, page.choice.engine_names())


def _cards(page: Frame, at: int) -> list[dict[str, Any]]:
    """The decision of the recording by its own rule, and a policy's where one is looked at."""
    analysis = page.analysis
    if analysis.facts.is_contextguards or page.side == "replayed":
        return [_card(page, at)]
    explained = page.paths["rule"] + page.choice.query(at=step_number(at))
    own = own_card(analysis.own_checks.at(at), analysis.facts.window.value)
    own |= {**_compaction_link(page, at), "explained": explained}
    if not analysis.data.shows_policy:
        return [own]
    policy = f"{policy_title(analysis.policy.name)} on the same request"
    return [own, {**_card(page, at), "title": policy, "link": ""}]


def _card(page: Frame, at: int) -> dict[str, Any]:
    analysis = page.analysis
    trace = analysis.trace(page.side)
    compacted = at in analysis.data.compactions
    places = [item.place for item in page.compactions.compactions if item.step == at]
    own = analysis.head.compactions[places[0]].tokens_before if compacted and places else None
    terms = cards.with_sources(analysis.policy.explain(trace, at), analysis.window, page.choice.engine_names())
    shown = cards.card(trace, at, terms, side=page.side, compacted=compacted, own=own)
    title = "The replay's decision" if page.side == "replayed" else "The decision"
    return {**shown, "title": title, **_compaction_link(page, at), "explained": _explained(page, at)}


def _share_url(page: Frame, at: int) -> str:
    """The form that shares the decision of this step: of the recording, or of the replay where that is looked at."""
    number = step_number(at)
    if page.side != "replayed":
        return f"{page.paths['share']}?scope=decision&step={number}"
    return page.paths["share"] + page.choice.query(policy=page.choice.kind.name, scope="decision", step=number)


def _explained(page: Frame, at: int) -> str:
    """For a simulated session, the page that explains this step of the simulator to a newcomer."""
    if page.analysis.ledger.usage_ratio is None:
        return ""
    return reverse("gallery_step") + step_query(page.row.title, page.choice.policy, page.choice.profile, at)


def _compaction_link(page: Frame, at: int) -> dict[str, str]:
    analysis = page.analysis
    if page.side == "replayed":
        steps = [item.step for item in analysis.replayed.compactions]
        index = steps.index(at) if at in steps else None
    else:
        places = [item.step for item in page.compactions.compactions]
        index = places.index(at) if at in places else None
    if index is None:
        return {}
    return {"link": page.compaction_url(index, page.side), "link_label": "What this compaction did"}


# ---- the messages of a step


def _view(page: Frame, at: int) -> tuple[View, tuple[Event, ...], frozenset[int]]:
    """What was sent at a step on this side, the messages that its recorded compaction or resumed history brought, and
    which of them repeat the log. A replay that compacts nothing sends a resumed history as it was recorded."""
    analysis = page.analysis
    if page.side == "replayed":
        replayed = analysis.replayed.view(at, int(analysis.ledger.steps["at"][at]))
        if not analysis.ledger.sends_whole_log(at, replayed):
            return replayed, (), frozenset()
    view, epoch = analysis.ledger.recorded_view(at)
    if epoch < 0:
        return view, (), frozenset()
    return view, analysis.head.compactions[epoch].messages, analysis.ledger.repeated[epoch]


def _messages(page: Frame, at: int) -> dict[str, Any]:
    view, inserted, repeated = _view(page, at)
    sent = content_count(view)
    removed = requests.gone_ranges(view, int(page.analysis.ledger.steps["at"][at]))
    missing = sum(len(part) for part in removed)
    show = "gone" if page.request.GET.get("show") == "gone" and missing else "sent"
    total = missing if show == "gone" else sent
    start, stop = _window(page, total)
    if show == "gone":
        rows = requests.gone_rows(removed, start, stop, _seen(page, view, at))
    else:
        rows = requests.rows_of(view, start, stop, inserted, repeated)
    return {
        "messages": _presented(page, rows, at),
        "window": _edges(page, at, show, start, stop, total),
        "message_tabs": _message_tabs(page, at, show, sent, missing),
        "contents_note": "oldest first; the newest are shown" if stop == total and start else "oldest first",
    }


def _window(page: Frame, total: int) -> tuple[int, int]:
    """The messages of the request to show, as indices; addresses count them from 1, with the last one included."""
    newest = message_number(max(0, total - PAGE))
    start = message_index(number(page.request, "from", newest, 1, max(1, total)))
    stop = number(page.request, "to", start + PAGE, start, start + PAGE)
    return start, min(stop, total)


def _seen(page: Frame, view: View, at: int) -> list[range]:
    """The events that summaries were made of up to this step: all that are gone, where a recording inserted one."""
    if page.side != "replayed":
        epoch = int(page.analysis.ledger.steps["epoch"][at])
        repeated = page.analysis.ledger.repeated[epoch] if epoch >= 0 else frozenset()
        has_summary = any(isinstance(segment, Inserted) and segment.index not in repeated for segment in view)
        return [range(page.analysis.ledger.event_count)] if has_summary else []
    views = [given_to_summarisers(item.passes) for item in page.analysis.replayed.compactions if item.step <= at]
    return [range(span.start, span.stop) for view in views for span in held_events(view)]


def _presented(page: Frame, rows: list[MessageRow], at: int) -> list[dict[str, Any]]:
    events = convert.load_some_events(page.row, sorted({row.event for row in rows if row.event is not None}))
    counts = load_counts(page.row)
    return [_message(page, row, events, at, counts) for row in rows]


def _message(page: Frame, row: MessageRow, events: dict[int, Event], at: int, counts: Any) -> dict[str, Any]:
    event = events.get(row.event) if row.event is not None else None
    heuristic, attributed, source = _costs(page, row)
    shown = requests.present(row, event, heuristic, attributed, source)
    for part in shown["parts"]:
        _fold(page, row, part, at)
    message = row.message or event
    for part, message_part in zip(shown["parts"], message.parts if message else (), strict=False):
        part["started"] = _started(page, message_part)
    if row.event is not None:
        for part in shown["parts"]:
            part["comments"] = _commented(page, row.event, part["index"])
    known = counts is not None and row.event is not None and row.message is None
    shown["tokenizer_text"] = tokens(int(counts["o200k"][row.event])) if known else ""
    texts = {"heuristic_text": tokens(heuristic) if heuristic else "", "attributed_text": tokens(attributed)}
    return {**shown, **texts, "attributed_text": tokens(attributed) if attributed is not None else ""}


def _commented(page: Frame, event: int, part: int) -> dict[str, Any]:
    """The comments of a part of the log: their number, and where they are read and written."""
    place = CommentPlace(comments.PART, event, part)
    url = page.paths["comments"] + page.choice.query(**place.fields)
    return {"count": page.comment_counts[place], "url": url, "words": place.words}


def _started(page: Frame, part: Part) -> dict[str, str]:
    """The session that a tool call started, at the call and at its result."""
    match part:
        case ToolCallPart(id=call) | ToolResultPart(call_id=call) if call:
            return page.started_by_call.get(call, {})
    return {}


def _fold(page: Frame, row: MessageRow, part: dict[str, Any], at: int) -> None:
    """Where a part is read, and the rest of a long one comes from: the log, or the request for what is not in it."""
    number_of_part = part_number(part["index"])
    if row.event is not None and row.message is None:
        path = reverse("message_part", args=[page.row.pk, message_number(row.event), number_of_part])
        part["where"] = f"message {message_number(row.event):,}, part {number_of_part:,}"
    else:
        place = (step_number(at), message_number(row.position or 0), number_of_part)
        part["where"] = f"message {place[1]:,} of the request, part {number_of_part:,}"
        path = reverse("request_part", args=[page.row.pk, *place])
    part["read"] = path + page.choice.query(side=page.shown_side, **{"as": RAW})
    if part["next"] is None:
        part["more"] = ""
        return
    part["more"] = path + page.choice.query(side=page.shown_side, **{"from": part["next"]})
    part["more_chars"] = f"{part['left']:,}"


def _costs(page: Frame, row: MessageRow) -> tuple[int | None, int | None, str]:
    """Heuristic tokens, attributed tokens, and where the latter come from."""
    if row.size is not None:
        return row.size // 4, None, ""
    if row.event is None or row.message is not None:
        size = sum(utf8_bytes(text_of(part)) for part in row.message.parts) if row.message else 0
        return size // 4, None, ""
    ledger, attribution = page.analysis.ledger, page.analysis.attribution
    heuristic = sum(int(ledger.events[name][row.event]) for name in ("text_tokens", "inline_tokens", "metadata_tokens"))
    source = ATTRIBUTION_SOURCES[int(attribution.source[row.event])]
    return heuristic, int(attribution.tokens[row.event]), source


def _edges(page: Frame, at: int, show: str, start: int, stop: int, total: int) -> dict[str, Any]:
    """Links to the messages before and after those shown, as a page and as a part of one."""
    shown = "" if show == "sent" else show
    edges: dict[str, Any] = {"empty": "Nothing: the request held no messages of the log."}
    if start:
        first = max(0, start - PAGE)
        edges |= _edge(page, at, shown, "earlier", first, start, start)
    if stop < total:
        edges |= _edge(page, at, shown, "later", stop, min(total, stop + PAGE), total - stop)
    return edges


def _edge(page: Frame, at: int, show: str, name: str, start: int, stop: int, left: int) -> dict[str, Any]:
    part = reverse("step_messages", args=[page.row.pk])
    around = {"side": page.shown_side, "show": show, **_marked(page)}
    where = {"at": step_number(at), "from": message_number(start), **around}
    return {
        name: page.paths["steps"] + page.choice.query(**where),
        f"{name}_part": part + page.choice.query(**where, to=stop, only=name),
        f"{name}_count": stop - start,
        f"{name}_left": f"{left:,}",
    }


def _message_tabs(page: Frame, at: int, show: str, sent: int, missing: int) -> list[dict[str, Any]]:
    tabs = [("sent", f"in this request {sent:,}", "")]
    if missing:
        tabs.append(("gone", f"removed {missing:,}", "gone"))
    path = page.paths["steps"]
    return [
        {
            "label": label,
            "url": path + page.choice.query(at=step_number(at), side=page.shown_side, show=value, **_marked(page)),
            "current": name == show,
        }
        for name, label, value in tabs
    ]


def _fixed(page: Frame) -> list[dict[str, Any]]:
    """System prompt and tools, which every request of the session carried; a gap is named."""
    head, ledger = page.analysis.head, page.analysis.ledger
    rows: list[dict[str, Any]] = []
    if head.system is None:
        rows.append({"name": "System prompt", "note": "not in this file"})
    else:
        shown = [parts.shown(part, index) for index, part in enumerate(head.system)]
        for part in shown:
            path = reverse("system_part", args=[page.row.pk, part_number(part["index"])])
            part["read"] = f"{path}?as={RAW}"
            part["where"] = f"system prompt, part {part_number(part['index']):,}"
            if part["next"] is not None:
                part["more"], part["more_chars"] = f"{path}?from={part['next']}", f"{part['left']:,}"
        size = ledger.system_tokens + ledger.system_metadata_tokens
        rows.append({"name": "System prompt", "note": f"{size:,} tokens est.", "parts": shown})
    if head.tools is None:
        rows.append({"name": "Tool definitions", "note": "not in this file"})
    else:
        note = f"{counted(len(head.tools), 'tool')}, {ledger.tools_tokens:,} tokens est."
        tools = [
            {
                "name": parts.visible(tool.name[:120]),
                "text": parts.visible(tool.description[:300]),
                "schema": f"{len(value_text(tool.schema)):,} characters of schema",
            }
            for tool in head.tools[:SHOWN_TOOLS]
        ]
        rows.append({"name": "Tool definitions", "note": note, "tools": tools, "left": len(head.tools) - len(tools)})
    return rows
