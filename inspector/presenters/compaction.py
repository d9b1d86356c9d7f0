"""A compaction as a table of three columns: before, sent to the summariser, after; one row per message."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guard_core.events import Event, TextPart
from guard_core.ledger import Ledger
from guard_core.sessions import RecordedCompaction
from guard_core.trace import CompactionRecord
from guard_core.views import Inserted, Rewritten, Segment, Span, Synthetic, View, kept_events
from inspector.presenters.numbers import counted, message_number, percent, tokens
from inspector.presenters.parts import role_of, summary_line
from inspector.presenters.requests import DROPPED, INSERTED, KEPT, REWRITTEN, SUMMARISED

PAGE = 60  # rows of one window
BEFORE, SENT, AFTER = 1, 2, 4


@dataclass(frozen=True)
class Compaction:
    """One compaction, recorded or replayed, in the same shape. `sent` is None where the recording does not hold it."""

    side: str  # recorded, replayed
    index: int  # among the compactions of its side
    step: int
    at: int
    before: View
    sent: View | None
    after: View
    tokens_before: int | None
    tokens_after: int | None
    source: str  # of the figure before
    source_after: str
    kind: str
    trigger: str
    evidence: str
    inserted: tuple[Event, ...] = ()
    inserted_before: tuple[Event, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def recorded(self) -> bool:
        return self.side == "recorded"


def recorded_compaction(
    compactions: Sequence[RecordedCompaction], index: int, step: int, answered: int | None
) -> Compaction:
    """A compaction as the recording tells it; `answered` is the provider's count of the call after it.

    What the summariser was sent is not in any recording format.
    """
    item = compactions[index]
    earlier = compactions[index - 1] if index else None
    before: View = (Span(0, item.at),) if earlier is None else (*earlier.base, Span(earlier.at, item.at))
    return Compaction(
        side="recorded",
        index=index,
        step=step,
        at=item.at,
        before=before,
        sent=None,
        after=item.base,
        tokens_before=item.tokens_before,
        tokens_after=answered if item.tokens_after is None else item.tokens_after,
        source="recorder",
        source_after="recorder" if item.tokens_after is not None else "provider, at the next call",
        kind=item.kind,
        trigger=item.trigger,
        evidence=item.evidence.value,
        inserted=item.messages,
        inserted_before=() if earlier is None else earlier.messages,
        notes=(item.note,) if item.note else (),
    )


def replayed_compaction(records: Sequence[CompactionRecord], index: int, at: int) -> Compaction:
    """A compaction of a replay: all of it is known, none of it ever happened."""
    item = records[index]
    return Compaction(
        side="replayed",
        index=index,
        step=item.step,
        at=at,
        before=item.before,
        sent=item.passes[0].summariser_view if item.passes else (),
        after=item.after,
        tokens_before=item.tokens_before,
        tokens_after=item.tokens_after,
        source="recomputed",
        source_after="modelled",
        kind="fallback" if any(one.fallback for one in item.passes) else "summary",
        trigger=item.reason,
        evidence="replayed",
        notes=item.notes,
    )


def columns_of(item: Compaction) -> NDArray[np.int8]:
    """Per event of the log before the compaction: the bits BEFORE, SENT, AFTER."""
    bits = np.zeros(item.at, dtype=np.int8)
    views = ((item.before, BEFORE), (item.sent or (), SENT), (item.after, AFTER))
    for view, bit in views:
        for span in kept_events(view):
            bits[span.start : min(span.stop, item.at)] |= bit
    for segment in item.after:
        if isinstance(segment, Rewritten) and segment.event < item.at:
            bits[segment.event] |= AFTER
    return bits


def states_of(item: Compaction, bits: NDArray[np.int8]) -> NDArray[Any]:
    """The fate of each event that the request held before: kept, rewritten, summarised, dropped; "" for the others."""
    states = np.full(len(bits), "", dtype="U12")
    held = (bits & BEFORE) > 0
    kept = (bits & AFTER) > 0
    seen = held if item.sent is None else (bits & SENT) > 0
    gone = DROPPED if item.kind in {"trim", "edit"} else SUMMARISED
    states[held & ~kept & seen] = gone
    states[held & ~kept & ~seen] = DROPPED
    states[held & kept] = KEPT
    for segment in item.after:
        if isinstance(segment, Rewritten) and segment.event < len(states):
            states[segment.event] = REWRITTEN
    return states


def counts(states: NDArray[Any], ledger: Ledger) -> list[dict[str, Any]]:
    """How many messages and heuristic tokens met each fate."""
    cost = (ledger.events["text_tokens"] + ledger.events["inline_tokens"])[: len(states)]
    rows = []
    for name in (KEPT, REWRITTEN, SUMMARISED, DROPPED):
        chosen = states == name
        if chosen.any():
            rows.append({"name": name, "messages": int(chosen.sum()), "tokens": int(cost[chosen].sum())})
    return rows


def inserted_texts(view: View, inserted: Sequence[Event]) -> list[dict[str, Any]]:
    """The messages that a view holds and the log does not: summaries, continuations, notes."""
    return [found for segment in view if (found := _inserted(segment, inserted)) is not None]


def _inserted(segment: Segment, inserted: Sequence[Event]) -> dict[str, Any] | None:
    match segment:
        case Inserted(index) if index < len(inserted):
            parts = inserted[index].parts
            text = "\n".join(part.text for part in parts if isinstance(part, TextPart))
            return {
                "kind": "summary" if text else "not readable",
                "text": text,
                "bytes": len(text.encode("utf-8", "replace")),
            }
        case Synthetic(kind=kind, bytes=size, text=text):
            return {"kind": kind, "text": text or "", "bytes": size}
    return None


def header(item: Compaction) -> dict[str, Any]:
    """Before, after, their ratio and the badges of the head."""
    before, after = item.tokens_before, item.tokens_after
    return {
        "before": tokens(before),
        "after": tokens(after),
        "ratio": percent(after, before, 1),
        "source": item.source if before is not None else "",
        "source_after": item.source_after if after is not None else "",
        "badges": [text for text in (item.kind, item.trigger if item.recorded else "", item.evidence) if text],
        "sentence": _sentence(item),
    }


def _sentence(item: Compaction) -> str:
    if not item.recorded:
        return f"Replayed, not recorded: {item.trigger or 'the estimate reached the threshold'}."
    evidence = {
        "declared": "The recording has a record of its own for this compaction.",
        "inferred": "Inferred: the history shrank or was replaced; the recording does not say so itself.",
        "matched": "Matched: a message has the wording that this agent's compactions use.",
    }
    return evidence.get(item.evidence, "")


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
                for word, on in (("failed", one.failed), ("mechanical summary", one.fallback), ("empty", one.empty))
                if on
            ),
        }
        for number, one in enumerate(record.passes, start=1)
    ]


def row(index: int, event: Event | None, state: str, bits: int, ledger: Ledger, exact: bool) -> dict[str, Any]:
    """One message in the three columns. `exact`: is the summariser's input known."""
    size = int(ledger.events["text_tokens"][index] + ledger.events["inline_tokens"][index])
    prompt = int(ledger.events["transcript_bytes"][index]) // 4
    return {
        "number": message_number(index),
        "role": role_of(event) if event else "",
        "line": summary_line(event, 120) if event else "",
        "state": state,
        "before": tokens(size) if bits & BEFORE else "",
        "sent": ("" if not bits & SENT else _sent_words(size, prompt)) if exact else "?",
        "after": tokens(size) if bits & AFTER and state != REWRITTEN else ("rewritten" if state == REWRITTEN else ""),
    }


def _sent_words(size: int, prompt: int) -> str:
    """What the summariser's prompt shows of a message: all of it, or its name only."""
    if prompt == 0:
        return "nothing of it"
    return f"{prompt:,} of {size:,}" if prompt < size * 0.9 else tokens(size)


BADGES = {
    KEPT: "",
    REWRITTEN: "badge-tool",
    SUMMARISED: "badge-compaction",
    DROPPED: "badge-overflow",
    INSERTED: "badge-compaction",
}
