"""A trace: what a replay found at every step, in columns, and one record per compaction."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from guard_core.views import Span, View

# Every column has one entry per step (model call). Ints are -1 where there is no value.
TRACE_COLUMNS: dict[str, str] = {
    "contents_built": "messages in the request as built from the log",
    "contents_decided": "messages after an existing summary was injected",
    "contents_sent": "messages in the request that was sent",
    "heuristic_built": "heuristic tokens of the request as built",
    "heuristic_decided": "heuristic tokens the decision was made on",
    "heuristic_sent": "heuristic tokens of the request that was sent",
    "real_loaded": "prompt tokens the policy remembered from the step before, 0: none",
    "last_heuristic_loaded": "heuristic tokens the policy remembered from the step before, 0: none",
    "recorded_prompt_tokens": "provider's count in the recording at this call, whatever was replayed",
    "modelled_prompt_tokens": "what the provider would count for the request this replay sent",
    "prompt_tokens_source": "index into PROMPT_SOURCES",
    "correction_raw": "prompt tokens / last heuristic before clamping (float, nan: none)",
    "correction": "factor that was applied (float)",
    "correction_source": "index into CORRECTION_SOURCES",
    "calibrated": "heuristic x correction, truncated",
    "decision_tokens": "the number compared with the threshold",
    "threshold": "tokens at which the policy fires",
    "fired": "1: a compaction was made at this step",
    "watermark": "events of the log that the summary stands for, after the step",
    "summary_bytes": "UTF-8 bytes of the stored summary, after the step",
    "overflow": "1: the request sent was larger than the window",
    "real_as_of": "step at which real_loaded was measured, -1: none",
    "held": "index into HELD_REASONS: why a policy that wanted to compact did not, or did in vain",
}
FLOAT_COLUMNS = frozenset({"correction_raw", "correction"})
CORRECTION_SOURCES = ("none", "ratio", "default", "default_with_real")
PROMPT_SOURCES = ("none", "provider", "modelled", "assumed")
HELD_REASONS = (
    "",
    "nothing to compact",
    "the summariser failed",
    "the request is still over the threshold after the last pass",
    "a compaction cannot get below the threshold: what it cannot shrink is over it already",
    "nothing can fit the window: what a compaction cannot shrink is over it already",
)
NOTHING_TO_COMPACT, SUMMARISER_FAILED, STILL_OVER, FLOOR_OVER_THRESHOLD, FLOOR_OVER_WINDOW = range(1, 6)


class Term(msgspec.Struct, frozen=True, omit_defaults=True):
    """One number of a decision's arithmetic, as the decision card shows it, in the order the policy computes it.

    `source` is the value of a `guard_core.sessions.Provenance`; `as_of` the step at which it was measured.
    """

    name: str  # "heuristic estimate"
    value: float
    unit: str = "tokens"
    source: str = ""
    as_of: int | None = None
    expression: str = ""  # "clamp(140,000 / 70,000, 1, 5)"


class Pass(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One pass of a compaction: what went in, what the summariser got, what came out (tokens: heuristic)."""

    contents_in: int
    tokens_in: int
    summariser_contents: int
    summariser_tokens: int
    summary_bytes: int
    contents_after: int
    tokens_after: int
    failed: bool = False
    fallback: bool = False
    empty: bool = False
    dropped_before_summariser: int = 0
    summariser_view: View = ()


class CompactionRecord(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One replayed compaction: the evidence of what was done."""

    step: int
    reason: str
    passes: tuple[Pass, ...]
    before: View
    after: View
    tokens_before: int
    tokens_after: int
    previous_summary_bytes: int = 0
    carried: View = ()  # later steps send this,
    kept_from: int = 0  # then the events from here on
    in_turn: View = ()  # up to step `turn_end` they send this in place of `carried`
    turn_end: int = -1
    cut: tuple[int, int, int] | None = None  # event index raw, aligned, anchored
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Trace:
    """The result of one replay. Equal inputs give equal bytes, and so an equal digest."""

    policy: str
    settings: dict[str, Any]
    engine_version: str
    window: int
    columns: dict[str, NDArray[Any]]
    compactions: tuple[CompactionRecord, ...] = ()
    notes: tuple[str, ...] = ()
    state: Any = field(default=None, compare=False)

    def __len__(self) -> int:
        return len(self.columns["fired"])

    def view(self, step: int, at: int) -> View:
        """What was sent at a step whose request was built over `at` log events."""
        past = [record for record in self.compactions if record.step <= step]
        if not past or self._unchanged(step):
            return (Span(0, at),) if at else ()
        if past[-1].step == step:
            return past[-1].after
        kept: View = (Span(past[-1].kept_from, at),) if past[-1].kept_from < at else ()
        return (*(past[-1].in_turn if step < past[-1].turn_end else past[-1].carried), *kept)

    def _unchanged(self, step: int) -> bool:
        """Did the policy give up and send the whole log, without its summary (a failed sliding compaction)."""
        names = ("held", "fired", "contents_built", "contents_sent", "heuristic_built", "heuristic_sent")
        held, fired, built, sent, tokens, tokens_sent = (int(self.columns[name][step]) for name in names)
        gave_up = held in (NOTHING_TO_COMPACT, SUMMARISER_FAILED) and not fired
        return gave_up and built == sent and tokens == tokens_sent

    def digest(self) -> str:
        """SHA-256 over policy, settings, engine version, window, columns and compaction records."""
        digest = hashlib.sha256()
        head = (self.policy, self.settings, self.engine_version, self.window, self.compactions)
        digest.update(msgspec.json.encode(head, order="deterministic"))
        for name in TRACE_COLUMNS:
            column = self.columns[name]
            digest.update(name.encode())
            digest.update(np.ascontiguousarray(column, dtype="<f8" if name in FLOAT_COLUMNS else "<i8").tobytes())
        return digest.hexdigest()
