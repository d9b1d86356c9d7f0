"""The messages of one request, as they were sent or are gone, with system prompt and tools."""

from __future__ import annotations

from typing import Any

from django.urls import reverse

from guard_core.estimation.sharing import ATTRIBUTION_SOURCES
from guard_core.events import Event, Part, ToolCallPart, ToolResultPart, utf8_bytes, value_text
from guard_core.events import part_text as text_of
from guard_core.trace import given_to_summarisers
from guard_core.views import Inserted, View, content_count, held_events
from inspector.pages.session.frame import Frame, number
from inspector.pages.shared import comments, parts, requests
from inspector.pages.shared.comments import CommentPlace
from inspector.pages.shared.numbers import counted, message_index, message_number, part_number, step_number, tokens
from inspector.pages.shared.requests import PAGE, MessageRow
from inspector.pages.steps.addresses import marked
from inspector.pages.steps.reading import RAW
from inspector.storage import loading
from inspector.storage.estimates import load_counts

SHOWN_TOOLS = 40


def messages(page: Frame, at: int) -> dict[str, Any]:
    """What the templates show of the messages of a step, sent or gone: a window of them, and the links around it."""
    view, inserted, repeated = sent_view(page, at)
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
    events = loading.load_some_events(page.row, sorted({row.event for row in rows if row.event is not None}))
    counts = load_counts(page.row)
    return {
        "messages": [_message(page, row, events, at, counts) for row in rows],
        "window": _edges(page, at, show, start, stop, total),
        "message_tabs": _message_tabs(page, at, show, sent, missing),
        "contents_note": "oldest first; the newest are shown" if stop == total and start else "oldest first",
    }


def sent_view(page: Frame, at: int) -> tuple[View, tuple[Event, ...], frozenset[int]]:
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
            place = CommentPlace(comments.PART, row.event, part["index"])
            url = page.paths["comments"] + page.choice.query(**place.fields)
            part["comments"] = {"count": page.comment_counts[place], "url": url, "words": place.words}
    known = counts is not None and row.event is not None and row.message is None
    shown["tokenizer_text"] = tokens(int(counts["o200k"][row.event])) if known else ""
    texts = {"heuristic_text": tokens(heuristic) if heuristic else "", "attributed_text": tokens(attributed)}
    return {**shown, **texts, "attributed_text": tokens(attributed) if attributed is not None else ""}


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
    around = {"side": page.shown_side, "show": show, **marked(page)}
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
            "url": path + page.choice.query(at=step_number(at), side=page.shown_side, show=value, **marked(page)),
            "current": name == show,
        }
        for name, label, value in tabs
    ]


def fixed_parts(page: Frame) -> list[dict[str, Any]]:
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
