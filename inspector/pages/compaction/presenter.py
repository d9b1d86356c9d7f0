"""A compaction as a table of three columns: before, sent to the summariser, after; one row per message."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guard_core.estimation.attribution import Attribution, PriceList
from guard_core.events import Event, Role, ToolCallPart, ToolResultPart, part_text
from guard_core.ledger import Ledger
from guard_core.sessions import RecordedCompaction
from guard_core.trace import CompactionRecord, Trace, given_to_summarisers
from guard_core.triggers import UNKNOWN, trigger_of
from guard_core.views import Inserted, Rewritten, Segment, Span, Synthetic, View, held_events
from inspector.pages.shared.numbers import counted, message_number, tokens
from inspector.pages.shared.parts import role_of, summary_line
from inspector.pages.shared.requests import DROPPED, INSERTED, KEPT, REPEATED, REWRITTEN, SUMMARISED

PAGE = 60  # rows of one window
BEFORE, SENT, AFTER = 1, 2, 4
NOT_READABLE = "not readable"  # the kind of an inserted message without a text in the file: its size is unknown


@dataclass(frozen=True)
class PageCompaction:
    """One compaction, recorded or replayed, in the same shape. `sent` is None where the recording does not hold it."""

    side: str  # recorded, replayed
    index: int  # among the compactions that count of its side
    place: int  # among all recorded ones, quiet edits of the history included; of a replay the same as the index
    step: int  # the first call after it; where none came, the last one before
    at: int
    before: View
    sent: View | None
    after: View
    kind: str
    trigger: str
    evidence: str
    inserted: tuple[Event, ...] = ()
    notes: tuple[str, ...] = ()
    agent_before: int | None = None  # the agent's own figures, in tokens
    agent_after: int | None = None
    dropped: int = 0  # messages that were dropped before the summariser

    @property
    def recorded(self) -> bool:
        return self.side == "recorded"


def recorded_compaction(compactions: Sequence[RecordedCompaction], place: int, index: int, step: int) -> PageCompaction:
    """A compaction as the recording has it. What the summariser was sent is not in any recording format."""
    item = compactions[place]
    earlier = compactions[place - 1] if place else None
    return PageCompaction(
        side="recorded",
        index=index,
        place=place,
        step=step,
        at=item.at,
        before=(Span(0, item.at),) if earlier is None else (*earlier.base, Span(earlier.at, item.at)),
        sent=None,
        after=item.base,
        kind=item.kind,
        trigger=item.trigger,
        evidence=item.evidence.value,
        inserted=item.messages,
        notes=(item.note,) if item.note else (),
        agent_before=item.tokens_before,
        agent_after=item.tokens_after,
    )


def replayed_compaction(records: Sequence[CompactionRecord], index: int, at: int) -> PageCompaction:
    """A compaction of a replay: all of it is known, none of it ever happened."""
    item = records[index]
    return PageCompaction(
        side="replayed",
        index=index,
        place=index,
        step=item.step,
        at=at,
        before=item.before,
        sent=(sent := given_to_summarisers(item.passes)),
        after=item.after,
        kind="fallback" if any(one.fallback for one in item.passes) else "summary" if sent else "edit",
        trigger=item.reason,
        evidence="replayed",
        notes=item.notes,
        dropped=sum(one.dropped_before_summariser for one in item.passes),
    )


def columns_of(item: PageCompaction) -> NDArray[np.int8]:
    """Per event of the log before the compaction: the bits BEFORE, SENT, AFTER."""
    bits = np.zeros(item.at, dtype=np.int8)
    views = ((item.before, BEFORE), (item.sent or (), SENT), (item.after, AFTER))
    for view, bit in views:
        for span in held_events(view):
            bits[span.start : min(span.stop, item.at)] |= bit
    for segment in item.after:
        if isinstance(segment, Rewritten) and segment.event < item.at:
            bits[segment.event] |= AFTER
    return bits


def states_of(item: PageCompaction, bits: NDArray[np.int8], ledger: Ledger) -> NDArray[Any]:
    """The fate of each event that the request held before: kept, rewritten, summarised, dropped; "" for the others."""
    states = np.full(len(bits), "", dtype="U12")
    held = (bits & BEFORE) > 0
    stays = (bits & AFTER) > 0
    seen = held if item.sent is None else (bits & SENT) > 0
    fate = DROPPED if item.kind in {"trim", "edit"} else SUMMARISED
    states[held & ~stays & seen] = fate
    states[held & ~stays & ~seen] = DROPPED
    states[held & stays] = KEPT
    states[held & stays & (_changed(item.after, ledger, item.at) & ~_changed(item.before, ledger, item.at))] = REWRITTEN
    for segment in item.after:
        if isinstance(segment, Rewritten) and segment.event < len(states):
            states[segment.event] = REWRITTEN
    return states


def _changed(view: View, ledger: Ledger, at: int) -> NDArray[np.bool_]:
    """Which events before `at` a view holds in a form that changes them."""
    changed = np.zeros(at, dtype=np.bool_)
    for span in held_events(view):
        if span.form:
            place = slice(span.start, min(span.stop, at))
            changed[place] = ledger.changed_by(span.form)[place]
    return changed


def counts(states: NDArray[Any], attribution: Attribution) -> list[dict[str, Any]]:
    """How many messages met each fate, and their prompt tokens as attributed."""
    rows = []
    for name in (KEPT, REWRITTEN, SUMMARISED, DROPPED):
        chosen = np.flatnonzero(states == name)
        if len(chosen):
            cost = int(attribution.tokens[chosen].sum())
            rows.append({"name": name, "messages": len(chosen), "tokens": cost})
    return rows


def inserted_texts(
    item: PageCompaction, prices: PriceList, repeated: frozenset[int] = frozenset()
) -> list[dict[str, Any]]:
    """The messages after the compaction that the log does not hold: summaries, continuations, notes, and what a
    resumed history repeats (`repeated`)."""
    epoch = item.place if item.recorded else -1
    return [
        {**text, "tokens": prices.segment(segment, epoch)}
        for segment in item.after
        if (text := _inserted(segment, item.inserted, repeated)) is not None
    ]


def _inserted(segment: Segment, inserted: Sequence[Event], repeated: frozenset[int]) -> dict[str, Any] | None:
    match segment:
        case Inserted(index) if index < len(inserted):
            text = "\n".join(words for part in inserted[index].parts if (words := part_text(part)))
            return {
                "kind": REPEATED if index in repeated else _kind_of(index, inserted[index], text),
                "text": text,
                "bytes": len(text.encode("utf-8", "replace")),
            }
        case Synthetic(kind=kind, bytes=size, text=text):
            return {"kind": kind, "text": text or "", "bytes": size}
    return None


def _kind_of(index: int, message: Event, text: str) -> str:
    """What an inserted message is: a tool's result, or an answer after the summary, is not a summary."""
    if not text:
        return NOT_READABLE
    if any(isinstance(part, ToolCallPart | ToolResultPart) for part in message.parts):
        return "tool call" if message.role is Role.MODEL else "tool result"
    return "model message" if index and message.role is Role.MODEL else "summary"


def badges(item: PageCompaction) -> list[str]:
    """Its kind, who asked for it, and how sure it is that it happened."""
    kind = {"opaque": "summary not readable", "empty": "empty summary"}.get(item.kind, item.kind)
    trigger = _trigger(item) if item.recorded else ""
    return [text for text in (kind, trigger, item.evidence) if text]


def _trigger(item: PageCompaction) -> str:
    """Who asked for it, as counts have it, with the recorder's own word where that says more."""
    who = trigger_of(item.trigger)
    if who == UNKNOWN:
        return f"unknown trigger ({item.trigger})" if item.trigger else "unknown trigger"
    return who if item.trigger.lower() in (who, "auto") else f"{who} ({item.trigger})"


def sentence(item: PageCompaction) -> str:
    """How the compaction is known."""
    if not item.recorded:
        return "Replayed, not recorded."
    evidence = {
        "declared": "Recorded by the agent.",
        "inferred": "Inferred: the history shrank or was replaced; the file has no record of a compaction.",
        "matched": "Matched: a message has the wording that this agent uses after a compaction.",
    }
    return evidence.get(item.evidence, "")


def note_sentence(note: str) -> str:
    """A note of a reader or of a replay as a sentence."""
    return f"{note[:1].upper()}{note[1:]}{'' if note.endswith(('.', '!', '?')) else '.'}"


def decision(trace: Trace, step: int, reason: str) -> str:
    """What the policy compared, in its own estimate; its own words where it compares no estimate with a factor."""
    names = ("decision_tokens", "threshold", "heuristic_decided")
    decided, threshold, heuristic = (int(trace.columns[name][step]) for name in names)
    if decided < 0 or threshold < 0 or "correction" not in trace.columns:
        return f"The policy compacts: {reason}." if reason else ""
    compared = f"{decided:,} {'≥' if decided >= threshold else '<'} {threshold:,}"
    factor = float(trace.columns["correction"][step])
    how = f"UTF-8 bytes // 4 = {heuristic:,}" + ("" if np.isnan(factor) else f", factor {factor:.3f}")
    return f"The policy decides by its own estimate: {compared} ({how})."


def pass_rows(record: CompactionRecord) -> list[dict[str, str]]:
    """The passes of a replayed compaction: what went in, what the summariser got, what came out."""
    return [
        {
            "number": str(number),
            "in": f"{counted(one.contents_in, 'message')}, {tokens(one.tokens_in)}",
            "summariser": f"{counted(one.summariser_contents, 'message')}, {tokens(one.summariser_tokens)}",
            "unseen": counted(one.dropped_before_summariser, "message") if one.dropped_before_summariser else "none",
            "summary": f"{one.summary_bytes:,} bytes",
            "after": f"{counted(one.contents_after, 'message')}, {tokens(one.tokens_after)}",
            "note": ", ".join(
                word
                for word, on in (
                    ("failed", one.failed),
                    ("mechanical summary", one.fallback),
                    ("empty", one.empty),
                    ("no summary asked for", not one.summariser_contents),
                )
                if on
            ),
        }
        for number, one in enumerate(record.passes, start=1)
    ]


def row(
    index: int, event: Event | None, state: str, bits: int, ledger: Ledger, attribution: Attribution, shown: int | None
) -> dict[str, Any]:
    """One message in the three columns, in attributed prompt tokens. `shown` are the bytes of it that the summariser's
    prompt has; None: what the summariser was given is not known."""
    size, whole = int(attribution.tokens[index]), int(ledger.events["bytes"][index])
    return {
        "number": message_number(index),
        "role": role_of(event) if event else "",
        "line": summary_line(event, 120) if event else "",
        "state": state,
        "before": tokens(size) if bits & BEFORE else "",
        "sent": ("" if not bits & SENT else _sent_words(size, min(shown, whole), whole)) if shown is not None else "?",
        "after": tokens(size) if bits & AFTER and state != REWRITTEN else ("rewritten" if state == REWRITTEN else ""),
    }


def _sent_words(size: int, shown: int, whole: int) -> str:
    """What the summariser's prompt shows of a message: all of it, or its name only. `shown` and `whole` in bytes."""
    if shown == 0 < whole:
        return "nothing of it"
    return f"{round(size * shown / whole):,} of {size:,}" if shown < whole * 0.9 else tokens(size)


BADGES = {
    KEPT: "",
    REWRITTEN: "badge-tool",
    SUMMARISED: "badge-compaction",
    DROPPED: "badge-overflow",
    INSERTED: "badge-compaction",
    REPEATED: "",
}
