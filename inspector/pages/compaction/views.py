"""One compaction, recorded or replayed: what went in, what the summariser saw, what came out."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import numpy as np
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_GET

from guard_core.bridge import Bridge, recorded_bridge, replayed_bridge
from guard_core.estimation.cached_prefix import cached_prefix
from guard_core.events import Event, utf8_bytes
from guard_core.forms import get_form
from guard_core.rules import KeptVerdict
from guard_core.rules.words import reason_words
from guard_core.views import View, content_count, held_events
from inspector.pages.compaction import bridge as bridges
from inspector.pages.compaction import facts, presenter
from inspector.pages.compaction import price as prices
from inspector.pages.compaction.bridge import ATTRIBUTED
from inspector.pages.compaction.presenter import PageCompaction
from inspector.pages.compaction.price import MODELLED
from inspector.pages.errors.views import plain
from inspector.pages.session.frame import Frame, frame, number
from inspector.pages.shared import comments, requests
from inspector.pages.shared.comments import CommentPlace
from inspector.pages.shared.htmx import render_part, wants_part
from inspector.pages.shared.numbers import (
    compaction_index,
    compaction_number,
    counted,
    message_index,
    message_number,
    part_number,
    step_number,
    tokens,
)
from inspector.pages.shared.parts import piece
from inspector.storage import loading

SHOWN_TEXT = 6_000  # characters of a summary or a prompt; the rest on request
WHOLE_TEXT = 400_000  # characters that one page ever shows
PROMPT_EVENTS = 4_000  # messages whose text is read to write the summariser's prompt
FATES = (requests.KEPT, requests.REWRITTEN, requests.SUMMARISED, requests.DROPPED)


@require_GET
def compaction(request: HttpRequest, session_id: UUID, number: int) -> HttpResponse:
    """A compaction of the recording, or with ?side=replayed of the replay; the number counts from 1."""
    page = frame(request, session_id)
    side = request.GET.get("side", "") or page.side
    count = count_of(page, side)
    if not 1 <= number <= count:
        sentence = no_such(side, count)
        return plain(request, 404, "There is no such compaction", sentence, page.paths["overview"])
    item = item_of(page, side, compaction_index(number))
    context = {**page.context(item.side, item.step), "item": item, **_rows(page, item)}
    if not wants_part(request, "rows"):
        context |= _head(page, item)
    part, whole = "inspector/compaction/_rows.html", "inspector/compaction/detail.html"
    return render_part(request, "rows", part, whole, context)


@require_GET
def old_address(request: HttpRequest, session_id: UUID, letter: str, index: str) -> HttpResponse:
    """Where a compaction of an address of earlier versions is now: r0 was the first recorded one, p0 the replay's."""
    query = request.GET.copy()
    if letter == "p":
        query["side"] = "replayed"
    path = reverse("compaction", args=[session_id, compaction_number(int(index))])
    return redirect(f"{path}?{query.urlencode()}" if query else path, permanent=True)


def count_of(page: Frame, side: str) -> int:
    """How many compactions a side has."""
    return len(page.analysis.replayed.compactions) if side == "replayed" else page.compactions.total


def no_such(side: str, count: int) -> str:
    """Says that an address names a compaction that is not there."""
    which = "The replay makes" if side == "replayed" else "The recording has"
    return f"{which} {counted(count, 'compaction')}, numbered from 1." if count else f"{which} no compaction."


def item_of(page: Frame, side: str, index: int) -> PageCompaction:
    """The compaction of a side with this index."""
    analysis = page.analysis
    if side == "replayed":
        records = analysis.replayed.compactions
        return presenter.replayed_compaction(records, index, int(analysis.ledger.steps["at"][records[index].step]))
    counted = page.compactions.compactions[index]
    earlier = np.flatnonzero(analysis.ledger.steps["epoch"] < counted.place)
    before = int(earlier[-1]) if len(earlier) else 0
    step = counted.step if counted.step >= 0 else before
    return presenter.recorded_compaction(analysis.head.compactions, counted.place, index, step)


def _head(page: Frame, item: PageCompaction) -> dict[str, Any]:
    analysis, index, total = page.analysis, item.index, count_of(page, item.side)
    side = "" if item.recorded else "replayed"
    states = presenter.states_of(item, presenter.columns_of(item), analysis.ledger)
    sentences = [presenter.sentence(item), *map(presenter.note_sentence, item.notes)]
    if not item.recorded:  # a policy decides by another count than that of the table
        sentences.append(presenter.decision(analysis.replayed, item.step, item.trigger))
    place = CommentPlace(comments.COMPACTION, index)
    return {
        "name": f"{'Compaction' if item.recorded else 'Replayed compaction'} {compaction_number(index):,} of {total:,}",
        "badges": presenter.badges(item),
        "sentences": sentences,
        "own": _own(page, item),
        **_bridge(page, item),
        "previous": page.compaction_url(index - 1, item.side) if index else "",
        "next": page.compaction_url(index + 1, item.side) if index + 1 < total else "",
        "share_url": _share_url(page, item),
        "together_url": reverse("compactions_together", args=[page.row.pk, compaction_number(index)])
        + page.choice.query(side=side),
        "step_url": page.paths["steps"] + page.choice.query(at=step_number(item.step), side=side),
        "step": _step_words(page, item),
        "fates": _fates(presenter.counts(states, analysis.attribution)),
        "texts": texts_of(page, item),
        "prompt": _prompt(page, item),
        "unseen": _unseen(page, item, states),
        "facts": facts.facts_of(page, item),
        "price": prices.price_of(analysis, item, step_url=page.step_url),
        # A compaction of a replay exists only under its settings, so that it has no comments.
        "comments": comments.panel(page.request, page.row, place, page.choice) if item.recorded else {},
        "passes": [] if item.recorded else presenter.pass_rows(analysis.replayed.compactions[index]),
    }


def _step_words(page: Frame, item: PageCompaction) -> str:
    """The step that the page of a compaction leads to; of one that no call followed that is the last one before it."""
    if not page.count:
        return ""
    number = f"tep {step_number(item.step):,}"
    is_behind = item.recorded and page.compactions.compactions[item.index].at_the_end
    return f"After s{number}, the last" if is_behind else f"S{number}"


def _share_url(page: Frame, item: PageCompaction) -> str:
    """The form that shares this compaction alone, or the report with it in full; a replayed one with its replay."""
    number = compaction_number(item.index)
    if item.recorded:
        return f"{page.paths['share']}?scope=compaction&compaction={number}"
    query = page.choice.query(policy=page.choice.kind.name, scope="compaction", compaction=number)
    return page.paths["share"] + query


def _own(page: Frame, item: PageCompaction) -> dict[str, str]:
    """What the rule of the recording's agent says of a recorded compaction; empty where it is not known."""
    explanation = page.analysis.facts.explanation
    explained = next((each for each in explanation.compactions if each.place == item.place), None)
    if not item.recorded or explained is None or explanation.rule is None or page.analysis.facts.is_contextguards:
        return {}
    words = f"By the rule of {explanation.rule.agent}: {reason_words(explained)}."
    messages = next((each for each in explanation.kept if each.place == item.place), None)
    if messages is not None and messages.verdict is not KeptVerdict.NOT_MODELLED:
        words += f" What was kept: {messages.verdict}{f' ({messages.reason})' if messages.reason else ''}."
    at = step_number(min(explained.step, page.count - 1)) if page.count else ""
    return {"words": words, "url": page.paths["rule"] + page.choice.query(at=at)}


def bridge_of(page: Frame, item: PageCompaction) -> Bridge:
    """From the last request before it to the first one after it, in prompt tokens."""
    analysis = page.analysis
    if item.recorded:
        return recorded_bridge(analysis.ledger, analysis.attribution, analysis.observed, item.place)
    return replayed_bridge(analysis.ledger, analysis.attribution, analysis.facts.usage, analysis.replayed, item.index)


def _bridge(page: Frame, item: PageCompaction) -> dict[str, Any]:
    """The same in words, as a table and as a picture."""
    analysis, bridge = page.analysis, bridge_of(page, item)
    # Another compaction came before any call was made with this one.
    is_replaced = item.recorded and bool((analysis.ledger.steps["epoch"] > item.place).any())
    return {
        "figures": bridges.header(bridge, item.agent_before),
        "bridge": bridges.table(bridge, analysis.attribution, recorded=item.recorded),
        "bars": bridges.bars(bridge),
        "bridge_notes": bridges.notes(
            bridge,
            item.recorded,
            item.agent_before,
            item.agent_after,
            is_replaced=is_replaced,
            cached=cached_prefix(analysis.ledger, item.place) if item.recorded else 0,
        ),
    }


def _fates(counts: list[dict[str, Any]]) -> list[dict[str, str]]:
    """The parts of the bar: as wide as their share of tokens, but never too narrow to read."""
    whole = max(1, sum(fate["tokens"] for fate in counts))
    return [
        {
            "name": fate["name"],
            "messages": counted(fate["messages"], "message"),
            "tokens": tokens(fate["tokens"]),
            "grow": str(max(1, round(100 * fate["tokens"] / whole))),
        }
        for fate in counts
    ]


def texts_of(page: Frame, item: PageCompaction) -> list[dict[str, Any]]:
    """The messages that replace what is gone, each cut unless the address asks for all of it."""
    length = WHOLE_TEXT if page.request.GET.get("text") == "all" else SHOWN_TEXT
    shown = []
    for inserted in presenter.inserted_texts(item, page.analysis.attribution.prices, _repeated(page, item)):
        part = piece(inserted["text"], 0, length)
        more = page.compaction_url(item.index, item.side, text="all") if part["next"] and length == SHOWN_TEXT else ""
        note = "The recording has no text here: the summary is encrypted or was not recorded."
        if not item.recorded:
            modelled = f"Only the size of this {inserted['kind']} is modelled: {inserted['bytes']:,} bytes."
            note = f"{modelled} A replay calls no model."
        source = ATTRIBUTED if item.recorded else MODELLED
        size = f"{inserted['bytes']:,} bytes, {inserted['tokens']:,} prompt tokens ({source})"
        if inserted["kind"] == presenter.NOT_READABLE:
            size = "size unknown"
        shown.append({"kind": inserted["kind"], "text": part["text"], "size": size, "more": more, "note": note})
    return shown


def _prompt(page: Frame, item: PageCompaction) -> dict[str, Any]:
    """What the summariser was sent: written out for a replay, named as a gap for a recording."""
    if item.sent is None:
        return {"note": "Not recorded: this format does not store what was sent to the summariser."}
    if content_count(item.sent) > PROMPT_EVENTS:
        return {"note": f"{counted(content_count(item.sent), 'message')}: too many to show on one page."}
    write, policy = page.choice.kind.prompt, page.analysis.policy
    if write is None:
        return {"note": "The wording of this agent's summariser prompt is unknown."}
    prompt = write(policy, page.analysis.window.value, _messages(page, item.sent))
    text = prompt.user
    length = WHOLE_TEXT if page.request.GET.get("text") == "all" else SHOWN_TEXT
    part = piece(text, 0, length)
    return {
        "system": prompt.system,
        "text": part["text"],
        "size": f"{utf8_bytes(text):,} bytes",
        "more": page.compaction_url(item.index, item.side, text="all") if part["next"] and length == SHOWN_TEXT else "",
    }


def _messages(page: Frame, view: View) -> list[Event]:
    """The messages of a view, with the texts of just its own events."""
    rows = requests.rows_of(view, 0, content_count(view))
    wanted = sorted({row.event for row in rows if row.event is not None and row.message is None})
    events = loading.load_some_events(page.row, wanted)
    picked = [row.message or events.get(row.event if row.event is not None else -1) for row in rows]
    return [event for event in picked if event is not None]


def _unseen(page: Frame, item: PageCompaction, states: Any) -> str:
    """What the summariser was not shown, in words; "" where none was asked."""
    if item.sent is None:
        return "Unknown: the recording does not say what the summariser was not shown."
    if not item.sent:
        return ""
    sentences = []
    dropped = np.flatnonzero(states == requests.DROPPED)
    if len(dropped):
        first, last = message_number(int(dropped[0])), message_number(int(dropped[-1]))
        why = ", dropped to fit its own window" if item.dropped else ""
        sentences.append(f"{counted(len(dropped), 'message')} (#{first} to #{last}){why}.")
    if page.choice.kind.prompt is not None:
        sentences.append(
            "Arguments of tool calls and the content of tool results: the summariser's prompt only names them."
        )
    cut = dict.fromkeys(get_form(span.form).words for span in held_events(item.sent) if span.form)
    return " ".join([*sentences, *(f"Parts of messages: {words}." for words in cut)])


def _rows(page: Frame, item: PageCompaction) -> dict[str, Any]:
    """A window of the three columns, of one fate or of all."""
    bits = presenter.columns_of(item)
    states = presenter.states_of(item, bits, page.analysis.ledger)
    show = page.request.GET.get("show", "")
    show = show if show in FATES else ""
    chosen = np.flatnonzero(states == show if show else states != "")
    start = message_index(number(page.request, "from", 1, 1, max(1, len(chosen))))
    shown = chosen[start : start + presenter.PAGE]
    events = loading.load_some_events(page.row, [int(seq) for seq in shown])
    rows = [_row(page, item, int(seq), events, str(states[seq]), int(bits[seq])) for seq in shown]
    return {
        "rows": rows if start or show else [*_inserted_rows(page, item), *rows],
        "tabs": _tabs(page, item, states, show),
        "window": _window(page, item, show, start, len(shown), len(chosen)),
        "sent_note": "The recording does not say what the summariser was sent."
        if item.sent is None
        else "“420 of 3,100” means that the summariser's prompt shows only that much of a message.",
    }


def _row(
    page: Frame, item: PageCompaction, seq: int, events: dict[int, Event], state: str, bits: int
) -> dict[str, Any]:
    analysis = page.analysis
    shown = None if item.sent is None else _shown(page, item.sent, seq)
    row = presenter.row(seq, events.get(seq), state, bits, analysis.ledger, analysis.attribution, shown)
    event = events.get(seq)
    parts = event is not None and bool(event.parts)
    url = reverse("message_part", args=[page.row.pk, message_number(seq), part_number(0)]) + "?as=raw" if parts else ""
    return {**row, "badge": presenter.BADGES[state], "url": url}


def _shown(page: Frame, sent: View, seq: int) -> int:
    """The bytes of a message that the summariser is shown, as far as its prompt is known."""
    ledger = page.analysis.ledger
    if page.choice.kind.prompt is not None:
        return int(ledger.events["transcript_bytes"][seq])
    forms = [span.form for span in held_events(sent) if span.start <= seq < span.stop]
    prefix = ledger.prefix("bytes", forms[0] if forms else "")
    return int(prefix[seq + 1] - prefix[seq])


def _inserted_rows(page: Frame, item: PageCompaction) -> list[dict[str, Any]]:
    """The messages that are not in the log come first: they are what is new."""
    return [
        {
            "number": None,
            "url": "#summary-title",
            "role": text["kind"],
            "line": " ".join(text["text"].split())[:120],
            "state": (state := requests.REPEATED if text["kind"] == requests.REPEATED else requests.INSERTED),
            "badge": presenter.BADGES[state],
            "before": "",
            "sent": "",
            "after": "?" if text["kind"] == presenter.NOT_READABLE else tokens(text["tokens"]),
        }
        for text in presenter.inserted_texts(item, page.analysis.attribution.prices, _repeated(page, item))
    ]


def _repeated(page: Frame, item: PageCompaction) -> frozenset[int]:
    """Which of a recorded compaction's inserted messages repeat the log."""
    return page.analysis.ledger.repeated[item.place] if item.recorded else frozenset()


def _tabs(page: Frame, item: PageCompaction, states: Any, show: str) -> list[dict[str, Any]]:
    whole = int(np.count_nonzero(states != ""))
    tabs = [{"label": f"all {whole:,}", "url": page.compaction_url(item.index, item.side), "current": not show}]
    for fate in FATES:
        count = int(np.count_nonzero(states == fate))
        if count:
            url = page.compaction_url(item.index, item.side, show=fate)
            tabs.append({"label": f"{fate} {count:,}", "url": url, "current": fate == show})
    following = next((number + 1 for number, tab in enumerate(tabs) if tab["current"]), 0)
    tabs[following % len(tabs)]["key"] = "f"
    return tabs


def _window(page: Frame, item: PageCompaction, show: str, start: int, shown: int, whole: int) -> dict[str, str]:
    def url(first: int) -> str:
        return page.compaction_url(item.index, item.side, show=show, **{"from": message_number(first) if first else ""})

    return {
        "earlier": url(max(0, start - presenter.PAGE)) if start else "",
        "later": url(start + shown) if start + shown < whole else "",
        "words": f"{message_number(start):,} to {start + shown:,} of {whole:,}" if whole else "",
    }
