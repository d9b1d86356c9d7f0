"""What fills the context, for the template: the chart of classes, the treemap of a step, changes and tools."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from guard_core.context.changes import CacheBreak, ChangeSum, changes_at, difference
from guard_core.context.classes import MISSING, RESULTS, ContextClass
from guard_core.context.filling import ClassMessage
from guard_core.context.growth import LargestGrowth
from guard_core.context.repeats import Repeats, held_results, needed_events, repeats_at
from guard_core.context.report import count_source, unused_tools
from guard_core.defaults import CACHE_LEAST
from guard_core.findings.facts import Case
from guard_core.findings.sizes import if_window_at
from guard_core.sessions import Provenance
from guard_core.windows.prices import UNIT
from inspector.figures.paths import Box
from inspector.figures.treemap import Rect, squarified
from inspector.pages.context.prepared import Prepared
from inspector.pages.session.frame import Frame
from inspector.pages.shared.numbers import (
    compaction_number,
    counted,
    message_number,
    percent,
    short,
    signed,
    step_number,
    tokens,
)
from inspector.pages.shared.parts import visible
from inspector.storage import loading

WIDTH, HEIGHT = 1000, 240  # units of the chart, which is stretched to the page
TICK = 8  # units: the length of a compaction's mark where there are many
MAP_WIDTH, MAP_HEIGHT = 1000.0, 440.0  # units of the treemap; its height is pixels, too
HEAD = 18.0  # pixels of a class's name above its messages
MOST_TILES = 90  # messages with a tile of their own
SMALLEST_TILE = 0.004  # of the request: a smaller message is one of several in a tile
SHOWN_DIFFERENCES = 100
SHOWN_CHANGES, SHOWN_TOOLS, SHOWN_UNUSED = 20, 40, 40
SHOWN_REPEATS = 15  # of each kind
PATH_CHARS = 160  # of the end of a path: two lines of the table
TABLE_ROWS = 24  # steps of the table beside the chart
LARGEST_CLASSES = 3  # that a sentence names
LEAST_PRICE = 0.01  # US dollars; ours: less is not worth a sentence
SAID = 0.05  # of a request; ours: by how much its parts may exceed its count before the sentence says so
MILLION = 1_000_000
IN_NO_MESSAGE, REST = "in no message", "system prompt, tools, what the file lacks or does not explain"


# ---- which step


def sides(page: Frame, at: int) -> list[dict[str, Any]]:
    """The switch between the recorded and the replayed request; none where they never differ."""
    if not page.analysis.diverges:
        return []
    words = ("without a policy", "under the policy") if page.analysis.simulated else ("as recorded", "as replayed")
    return [
        {"label": label, "url": _url(page, at, side), "current": side == page.side}
        for side, label in zip(("recorded", "replayed"), words, strict=True)
    ]


def navigation(page: Frame, at: int) -> list[dict[str, str]]:
    """Links to the steps around this one and to the compactions before and after it."""
    marks = page.analysis.data.side(page.side).compactions
    earlier, later = marks[marks < at], marks[marks > at]
    places = (
        ("k ArrowUp", "‹", "previous step", at - 1 if at else None),
        ("j ArrowDown", "›", "next step", at + 1 if at < page.count - 1 else None),
        ("[", "‹ ▼", "previous compaction", int(earlier[-1]) if len(earlier) else None),
        ("]", "▼ ›", "next compaction", int(later[0]) if len(later) else None),
    )
    return [
        {"key": key, "sign": sign, "title": title, "url": "" if step is None else _url(page, step, page.shown_side)}
        for key, sign, title, step in places
    ]


def hidden(page: Frame) -> list[tuple[str, str]]:
    """The settings of the address, for the form that must keep them."""
    return [(name, value) for name, value in {**page.choice.pairs(), "side": page.shown_side}.items() if value]


def _url(page: Frame, step: int, side: str) -> str:
    return page.paths["context"] + page.choice.query(at=step_number(step), side=side)


# ---- the chart


def areas(page: Frame, value: Prepared, at: int) -> dict[str, Any]:
    """The requests of all steps by class, as a picture, a sentence and two tables."""
    now = value.filling.areas(np.array([at]))[0]
    counts = value.filling.sent.tokens
    used = [place for place in range(len(value.labels)) if value.areas[:, place].any() or now[place]]
    limit = int(value.filling.sent.case.window_at(at))
    top = float(max(1, counts.max(), value.areas.clip(0).sum(axis=1).max()))
    top = float(limit) if limit > top > 0.4 * limit else top  # the window, unless most of the picture would be empty
    box = Box(WIDTH, HEIGHT, page.count, 1.05 * top)
    heights = np.cumsum(value.areas.clip(0), axis=1)
    paths = [
        {"d": box.area(value.steps, _sparse(page, value, heights[:, place])), "kind": _kind(value, place)}
        for place in reversed(used)
    ]
    peak = int(np.argmax(counts))
    return {
        "paths": paths,
        "line": box.line(value.steps, _sparse(page, value, counts[value.steps].astype(np.float64))),
        "window": box.level(float(limit)),
        "window_text": short(limit),
        "top": short(top),
        "compactions": box.ticks(page.analysis.data.side(page.side).compactions, TICK if value.peaks else HEIGHT),
        "cursor": f"{100 * (at + 0.5) / page.count:.3f}",
        "url": page.paths["context"] + page.choice.query(side=page.shown_side),
        "sentence": _sentence(value, at, now),
        "caption": f"Prompt tokens of {counted(page.count, 'request')} by class. The largest has "
        f"{tokens(counts[peak])} at step {step_number(peak):,}; {_window_words(value, at, peak)}."
        + (f" Of each {counted(page.count // len(value.steps), 'step')} it shows the largest." if value.peaks else ""),
        "rows": [_class_row(value, place, now, peak) for place in used],
        "count": tokens(int(counts[at])),
        "source": count_source(value.filling, at),
        "peak": step_number(peak),
        "peak_count": tokens(int(counts[peak])),
        "by_step": _by_step(page, value, used),
        "names": [value.labels[place] for place in used],
        "residual": _residual(value, at, int(now[-1])),
    }


def _sparse(page: Frame, value: Prepared, row: Any) -> Any:
    values = np.full(page.count, np.nan)
    values[value.steps] = row
    return values


def _kind(value: Prepared, place: int) -> str:
    """The name of a class in the style sheet."""
    item: ContextClass = value.filling.classes[place]
    if item.name == RESULTS:
        return f"tool-{value.filling.costs.tools.index(item.tool) + 1}"
    return item.name.replace(" ", "-")


def _window_words(value: Prepared, at: int, peak: int) -> str:
    """The window that is drawn: that of the shown step's model, which the largest request need not have had."""
    case = value.filling.sent.case
    limit = case.window_at(at)
    is_same = case.window_at(peak) == limit
    return f"the window is {tokens(limit)}" if is_same else f"the window of step {step_number(at):,} is {tokens(limit)}"


def _sentence(value: Prepared, at: int, now: Any) -> str:
    """The size of a request and its largest classes; `now` are the tokens of each class."""
    count, explained = int(value.filling.sent.tokens[at]), int(now.clip(0).sum())
    order = [int(place) for place in np.argsort(-now) if now[place] > 0][:LARGEST_CLASSES]
    named = ", ".join(f"{value.labels[place]} {percent(int(now[place]), explained)}" for place in order)
    how = "counted by the provider" if count_source(value.filling, at) == Provenance.PROVIDER else "modelled"
    size = f"The request of step {step_number(at):,} has {tokens(count)} prompt tokens ({how})"
    fewer = explained - count
    return (
        f"{size}, {tokens(fewer)} fewer than its parts add up to: {named}."
        if fewer > SAID * count
        else f"{size}: {named}."
    )


def _residual(value: Prepared, at: int, rest: int) -> str:
    """In words the `rest` tokens of a request, below 0 where it has fewer than its parts explain."""
    if not rest:
        return ""
    who = (
        "the provider counted" if count_source(value.filling, at) == Provenance.PROVIDER else "the modelled request has"
    )
    more = "more" if rest > 0 else "fewer"
    return f"Unexplained: {who} {tokens(abs(rest))} {more} tokens than the messages and the fixed part explain."


def _class_row(value: Prepared, place: int, now: Any, peak: int) -> dict[str, Any]:
    largest = value.filling.areas(np.array([peak]))[0]
    at_peak, size = int(largest[place]), int(now[place])
    return {
        "name": value.labels[place],
        "kind": _kind(value, place),
        "tokens": f"{size:,}".replace("-", "−"),
        "share": percent(size, int(now.clip(0).sum())) if size >= 0 else "",
        "peak": f"{at_peak:,}".replace("-", "−"),
        "peak_share": percent(at_peak, int(largest.clip(0).sum())) if at_peak >= 0 else "",
    }


def _by_step(page: Frame, value: Prepared, used: list[int]) -> list[dict[str, Any]]:
    places = np.unique(np.linspace(0, len(value.steps) - 1, TABLE_ROWS).astype(np.int64))
    return [
        {
            "step": step_number(int(value.steps[row])),
            "url": _url(page, int(value.steps[row]), page.shown_side),
            "cells": [f"{int(value.areas[row, place]):,}".replace("-", "−") for place in used],
            "total": tokens(int(value.areas[row].sum())),
        }
        for row in places.tolist()
    ]


# ---- the treemap


def treemap(page: Frame, value: Prepared, at: int) -> dict[str, Any]:
    """The request of a step as rectangles: a group for each class, in it a tile for each message."""
    now = value.filling.areas(np.array([at]))[0]
    items = value.filling.items(at, MOST_TILES)
    total = int(now.clip(0).sum())
    groups: dict[int, list[ClassMessage]] = {}
    for item in items:
        if item.tokens > 0:
            groups.setdefault(item.place, []).append(item)
    order = sorted((place for place in range(len(now)) if now[place] > 0), key=lambda place: -int(now[place]))
    boxes = squarified([float(now[place]) for place in order], Rect(0, 0, MAP_WIDTH, MAP_HEIGHT))
    return {
        "groups": [
            _group(page, value, at, (place, int(now[place])), groups.get(place, []), box, total)
            for place, box in zip(order, boxes, strict=True)
        ],
        "largest": [_largest(page, value, at, item) for item in items if item.count == 1][:12],
        "label": f"The request of step {step_number(at):,} by class and message, in prompt tokens",
    }


def _group(
    page: Frame, value: Prepared, at: int, own: tuple[int, int], items: list[ClassMessage], box: Rect, total: int
) -> dict[str, Any]:
    place, size = own
    name = value.labels[place]
    shown = _merged(items, total)
    head = HEAD if len(shown) > 1 and box.height > 3 * HEAD else 0.0
    inner = Rect(box.x, box.y + head, box.width, box.height - head)
    rects = squarified([float(item.tokens) for item in shown], inner)
    tiles = [_tile(page, value, at, item, rect, name) for item, rect in zip(shown, rects, strict=True)]
    return {
        "kind": _kind(value, place),
        **_place(box),
        "title": f"{name}: {tokens(size)} tokens, {percent(size, total)}",
        "name": f"{name} {short(size)}",
        "has_head": bool(head) or not tiles,
        "tiles": tiles,
    }


def _merged(items: list[ClassMessage], total: int) -> list[ClassMessage]:
    """The items of a class, the largest first; those too small for a tile as one."""
    large = [item for item in items if item.count == 1 and item.tokens >= SMALLEST_TILE * total]
    small = [item for item in items if item not in large]
    if small:
        first = min(small, key=lambda item: item.position)
        count = sum(item.count for item in small)
        large.append(ClassMessage(first.place, sum(item.tokens for item in small), first.event, first.position, count))
    return sorted(large, key=lambda item: -item.tokens)


def _tile(page: Frame, value: Prepared, at: int, item: ClassMessage, rect: Rect, name: str) -> dict[str, Any]:
    what = _message(item) if item.count == 1 else f"{item.count:,} smaller messages"
    return {
        **_place(rect),
        "url": _message_url(page, at, item),
        "label": f"{name}: {what}, {tokens(item.tokens)} tokens",
        "text": _tile_name(item),
        "size": short(item.tokens),
    }


def _tile_name(item: ClassMessage) -> str:
    """A message in the few letters that a tile has room for."""
    if item.count > 1:
        return f"{item.count:,} more"
    if item.event is None:
        return f"no. {message_number(item.position):,}"
    return f"#{message_number(item.event):,}"


def _place(rect: Rect) -> dict[str, str]:
    return {
        "x": f"{100 * rect.x / MAP_WIDTH:.2f}",
        "y": f"{100 * rect.y / MAP_HEIGHT:.2f}",
        "width": f"{100 * rect.width / MAP_WIDTH:.2f}",
        "height": f"{100 * rect.height / MAP_HEIGHT:.2f}",
    }


def _message(item: ClassMessage) -> str:
    if item.event is None:
        return f"message {message_number(item.position):,} of the request"
    return f"message #{message_number(item.event):,}"


def _message_url(page: Frame, at: int, item: ClassMessage) -> str:
    """The message on the steps page, which counts the messages of the request from 1."""
    anchor = "" if item.event is None else f"#m{message_number(item.event)}"
    return page.step_url(at, **{"from": message_number(item.position)}) + anchor


def _largest(page: Frame, value: Prepared, at: int, item: ClassMessage) -> dict[str, Any]:
    return {
        "name": value.labels[item.place],
        "kind": _kind(value, item.place),
        "message": _message(item),
        "url": _message_url(page, at, item),
        "tokens": tokens(item.tokens),
    }


# ---- four figures


def figures(page: Frame, value: Prepared, at: int) -> list[dict[str, str]]:
    """The request, the largest growth, the room for one, and what no message of the file explains."""
    sent = value.filling.sent
    now = value.filling.areas(np.array([at]))[0]
    count = int(sent.tokens[at])
    source = str(count_source(value.filling, at))
    missing = int(now[value.filling.costs.place(MISSING)])
    return [
        _figure("this request", tokens(count), source, _filled(sent.case, at)),
        *_growth(page, value.growth),
        _figure("not in this file", tokens(missing), Provenance.MODELLED.value, "system prompt, tools and reminders"),
    ]


def _filled(case: Case, at: int) -> str:
    """What share of its window a request fills, and whether that window is an assumption."""
    window = int(case.windows[at])
    if not window:
        return f"a prompt above the window of {tokens(case.window.value)} was answered"
    share = percent(int(case.tokens[at]), window, 1)
    condition = if_window_at(case, at)
    return f"{share} of the window{condition}" if condition else f"{share} of the window of {tokens(window)}"


def _growth(page: Frame, growth: LargestGrowth | None) -> list[dict[str, str]]:
    if growth is None:
        return []
    source = Provenance.PROVIDER if growth.is_counted else Provenance.MODELLED
    note = f"before step {step_number(growth.step):,}, by {counted(growth.messages, 'message')}"
    url = _url(page, growth.step, page.shown_side)
    shown = [{**_figure("largest single growth", tokens(growth.tokens), str(source), note), "url": url}]
    if growth.reserve is None:
        return [*shown, _figure("survivable burst", "–", "", growth.why_unknown)]
    fits = "the largest growth fits" if growth.fits else "smaller than the largest growth: a check can come too late"
    note = f"window {tokens(growth.window)} − threshold {tokens(growth.threshold)}; {fits}{growth.condition}"
    return [*shown, _figure("survivable burst", tokens(growth.reserve), "", note)]


def _figure(name: str, value: str, source: str, note: str) -> dict[str, str]:
    return {"name": name, "value": value, "source": source, "note": note, "url": ""}


# ---- since the call before


def changes(page: Frame, value: Prepared, at: int) -> dict[str, Any] | None:
    """What changed since the request before; None at the first step."""
    result = changes_at(value.filling, at, page.analysis.prices, SHOWN_CHANGES)
    if result is None:
        return None
    return {
        "before": step_number(at - 1),
        "sums": _sums(value, result.sums, at - 1, at),
        "rows": [_change(page, value, at - 1, at, item) for item in result.changes],
        "more": f"{result.more:,}" if result.more else "",
        "cache": _cache(result.cache),
        "compaction": _compaction(page, at),
        "is_broken": result.cache.message is not None or result.cache.lost >= CACHE_LEAST,
    }


def two_requests(page: Frame, value: Prepared, first: int, second: int) -> dict[str, Any]:
    """The difference of the requests of two steps."""
    result = difference(value.filling, first, second, SHOWN_DIFFERENCES)
    sides = [(name, step, int(value.filling.sent.tokens[step])) for name, step in (("A", first), ("B", second))]
    return {
        "sides": [
            {
                "name": name,
                "step": step_number(step),
                "url": page.step_url(step),
                "tokens": f"{count:,}",
                "source": count_source(value.filling, step),
            }
            for name, step, count in sides
        ],
        "growth": signed(sides[1][2] - sides[0][2]),
        "sums": _sums(value, result.sums, first, second),
        "rows": [_change(page, value, first, second, item) for item in result.changes],
        "more": f"{result.more:,}" if result.more else "",
    }


def _sums(value: Prepared, sums: Sequence[ChangeSum], first: int, second: int) -> list[dict[str, str]]:
    """The changes of each kind, and what of the two requests is in no message, so that the columns add up."""
    before, after = (int(count) for count in value.filling.sent.tokens[[first, second]])
    rest = before - sum(item.before for item in sums), after - sum(item.after for item in sums)
    rows = [(item.kind, "all", f"{item.messages:,}", item.before, item.after) for item in sums]
    rows += [(IN_NO_MESSAGE, REST, "", *rest)] if any(rest) else []
    rows.append(("the request", "", "", before, after))
    names = ("kind", "class", "messages")
    return [
        dict(zip(names, row[:3], strict=True)) | {"before": _signed(row[3]), "after": _signed(row[4])} for row in rows
    ]


def _signed(count: int) -> str:
    return f"{'−' if count < 0 else ''}{abs(count):,}"


def _change(page: Frame, value: Prepared, before: int, at: int, item: Any) -> dict[str, Any]:
    url = ""
    if item.position is not None:
        url = _message_url(page, at, ClassMessage(item.place, item.after, item.event, item.position))
    elif item.event is not None and before < at:
        url = page.step_url(at, show="gone")
    return {
        "kind": item.kind,
        "name": value.labels[item.place],
        "class": _kind(value, item.place),
        "message": f"#{message_number(item.event):,}" if item.event is not None else "not in the log",
        "url": url,
        "before": f"{item.before:,}",
        "after": f"{item.after:,}",
    }


def _cache(cache: CacheBreak) -> str:
    """Where the cached beginning ended and what that cost."""
    source = "recorded" if cache.read is not None else "modelled"
    part = "all" if cache.given == cache.previous else f"{tokens(cache.given)} of the"
    given = f"{part} {tokens(cache.previous)} tokens of the call before"
    if cache.message is None and cache.lost < CACHE_LEAST:
        return f"The cached prefix held: the cache gave {given} ({source})."
    where = (
        f"The cached prefix broke at message {message_number(cache.message):,}"
        if cache.message is not None
        else "The request extends the one before, yet the cache did not give all of it"
    )
    why = f" {cache.why[0].upper()}{cache.why[1:]}." if cache.why else ""
    return f"{where}: the cache gave {given} ({source}), {tokens(cache.lost)} were sent anew.{_price(cache)}{why}"


def _price(cache: CacheBreak) -> str:
    dollars = None if cache.cost is None else cache.cost / UNIT / MILLION
    if dollars is None:
        return " No price of this model is known."
    if dollars < LEAST_PRICE:
        return f" That cost less than ${LEAST_PRICE} more than reading them from the cache."
    return f" That cost ${dollars:,.2f} more than reading them from the cache."


def _compaction(page: Frame, at: int) -> dict[str, str]:
    """The compaction before this step, if there is one."""
    if page.side == "replayed":
        steps = [item.step for item in page.analysis.replayed.compactions]
    else:
        steps = [item.step for item in page.compactions.compactions]
    if at not in steps:
        return {}
    index = steps.index(at)
    return {"url": page.compaction_url(index, page.side), "text": f"compaction {compaction_number(index):,}"}


# ---- held twice, or out of date


def repeats(page: Frame, value: Prepared, at: int) -> dict[str, Any]:
    """The results that the request holds twice, and reads of files that were edited since."""
    held = held_results(value.filling, at)
    events = loading.load_some_events(page.row, needed_events(value.filling, held))
    result = repeats_at(value.filling, held, events)
    doubles = sorted(result.repeats, key=lambda item: -item.tokens)[:SHOWN_REPEATS]
    stale = sorted(result.stale, key=lambda item: -item.tokens)[:SHOWN_REPEATS]
    return {
        "sentence": _repeats_sentence(result),
        "repeats": [
            {
                "tool": value.names[item.tool],
                "kind": item.kind,
                "event": message_number(item.event),
                "first": message_number(item.first),
                "url": _result_url(page, at, item.event, item.position),
                "tokens": tokens(item.tokens),
            }
            for item in doubles
        ],
        "stale": [
            {
                "path": visible(item.path if len(item.path) <= PATH_CHARS else f"…{item.path[-PATH_CHARS:]}"),
                "event": message_number(item.event),
                "edit": message_number(item.edit),
                "again": "" if item.again is None else message_number(item.again),
                "url": _result_url(page, at, item.event, item.position),
                "tokens": tokens(item.tokens),
            }
            for item in stale
        ],
        "more": len(result.repeats) + len(result.stale) - len(doubles) - len(stale),
        "left_out": result.left_out,
    }


def _repeats_sentence(result: Repeats) -> str:
    if not result.repeats and not result.stale:
        return "No result is in the request twice, and no file in it was edited after it was read."
    doubles = f"{counted(result.held_twice, 'result repeats', 'results repeat')} an earlier one"
    doubles += f" ({tokens(result.repeated_tokens)} tokens)"
    if result.called_again:
        doubles += f", {counted(result.called_again, 'answers', 'answer')} an earlier call again with other content"
    stale = f"{counted(len(result.stale), 'copy of a file is', 'copies of files are')} older than an edit of it"
    return f"{doubles}; {stale} ({tokens(result.stale_tokens)} tokens)."


def _result_url(page: Frame, at: int, event: int, position: int) -> str:
    return page.step_url(at, **{"from": message_number(position)}) + f"#m{message_number(event)}"


# ---- tools


def tools(page: Frame, value: Prepared) -> dict[str, Any]:
    """The tools by what their results took of all requests together."""
    total = sum(use.token_steps for use in value.uses)
    rows = []
    for use in value.uses[:SHOWN_TOOLS]:
        rows.append(
            {
                "name": value.names[use.tool],
                "calls": f"{use.calls:,}",
                "tokens": tokens(use.tokens),
                "token_steps": short(use.token_steps),
                "token_steps_title": f"{use.token_steps:,}",
                "share": percent(use.token_steps, total) if total else "",
                "median": tokens(use.median) if use.largest is not None else "",
                "p95": tokens(use.p95) if use.largest is not None else "",
                "largest": tokens(use.maximum) if use.largest is not None else "",
                "url": _event_url(page, value, use.largest) if use.largest is not None else "",
            }
        )
    return {"rows": rows, "more": max(0, len(value.uses) - SHOWN_TOOLS)}


def _event_url(page: Frame, value: Prepared, event: int) -> str:
    """The first step whose request has an event of the log, if one has it."""
    at = value.filling.ledger.steps["at"]
    step = int(np.searchsorted(at, event, side="right"))
    return page.step_url(step) + f"#m{message_number(event)}" if step < page.count else ""


def unused(page: Frame, value: Prepared) -> dict[str, Any] | None:
    """The tools that are defined and never called; None where the file has no definitions."""
    names = unused_tools(page.analysis.head, {use.tool for use in value.uses})
    if names is None:
        return None
    shown = [visible(name[:60]) for name in names[:SHOWN_UNUSED]]
    return {"names": shown, "count": len(names), "more": len(names) - len(shown)}
