"""A trace: what a replay found at every step, in columns, and one record per compaction."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from guard_core.views import LONG, Span, View, common_length, followed

if TYPE_CHECKING:
    from guard_core.ledger import Ledger


class Column(msgspec.Struct, frozen=True, omit_defaults=True):
    """A column of a trace: one entry per step. Whole numbers unless `real`; `none` is the entry where there is no value
    (nan in a real column). `words` names the values of a column that is an index into them."""

    name: str
    meaning: str
    unit: str = "tokens"
    none: int | None = None
    real: bool = False
    words: tuple[str, ...] = ()
    label: str = ""  # a short head for tables, "" where the column is not shown there

    @property
    def start(self) -> float:
        """The entry before anything is known."""
        return math.nan if self.real else self.none or 0

    def empty(self, size: int) -> NDArray[Any]:
        """The column before anything is known."""
        kind = np.float64 if self.real else np.int64
        return np.full(size, self.start, dtype=kind) if self.start else np.zeros(size, dtype=kind)  # untouched memory


PROMPT_SOURCES = ("none", "provider", "modelled", "assumed")
HELD_REASONS = (
    "",
    "nothing to compact",
    "the summariser failed",
    "the request is still over the threshold after the last pass",
    "a compaction cannot get below the threshold: what it cannot shrink is over it already",
    "nothing can fit the window: what a compaction cannot shrink is over it already",
    "the library raises an error here, and the run would end",
    "the last compaction of this turn left almost as much as there was before",
    "less can be cleared than the minimum that is set",
    "a summary is made in the background",
    "the summary would make the request larger",
)
NOTHING_TO_COMPACT, SUMMARISER_FAILED, STILL_OVER, FLOOR_OVER_THRESHOLD, FLOOR_OVER_WINDOW = range(1, 6)
RAISED, STALLED, TOO_LITTLE, UNDER_WAY, INFLATED = range(6, 11)
SWITCH, INDEX = "switch", "index"  # units of columns that are not quantities
AT_ONCE = 64  # records that a digest encodes at once; ours: all together may be large

# What every trace has; a policy declares the columns that are its own.
COMMON_COLUMNS: tuple[Column, ...] = (
    Column("contents_built", "messages in the log when the request was built", "messages"),
    Column("contents_decided", "messages of the request that the decision was made on", "messages"),
    Column("contents_sent", "messages in the request that was sent", "messages", label="messages"),
    Column("heuristic_built", "the policy's estimate of a request with the whole log"),
    Column("heuristic_decided", "the policy's estimate of the request that the decision was made on", label="estimate"),
    Column("heuristic_sent", "the policy's estimate of the request that was sent"),
    Column(
        "recorded_prompt_tokens",
        "provider's count in the recording at this call, whatever was replayed",
        none=-1,
        label="recorded",
    ),
    Column(
        "modelled_prompt_tokens", "what the provider counts for the request this replay sent", none=-1, label="modelled"
    ),
    Column("prompt_tokens_source", "where the modelled count comes from", INDEX, words=PROMPT_SOURCES),
    Column("decision_tokens", "the number compared with the threshold", none=-1, label="decided on"),
    Column("threshold", "tokens at which the policy fires", none=-1, label="threshold"),
    Column("fired", "a compaction was made at this step", SWITCH, label="compacts"),
    Column(
        "held", "why a policy that wanted to compact did not, or did in vain", INDEX, words=HELD_REASONS, label="remark"
    ),
    Column("overflow", "a request that was sent at this step was larger than the window", SWITCH, label="overflow"),
    Column("watermark", "events of the log that the summary replaces, after the step", "events"),
    Column("summary_bytes", "UTF-8 bytes of the stored summary, after the step", "bytes"),
    Column("head", "which view was sent: an index into the trace's heads", INDEX),
)


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
    """One replayed compaction: the evidence of what was done.

    Steps and events count from 0; tokens are the policy's own estimates.
    """

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
    point: str = ""  # the trigger point, where it is not the one before every call
    cut: tuple[int, int, int] | None = None  # event index raw, aligned, anchored
    notes: tuple[str, ...] = ()


def given_to_summarisers(passes: tuple[Pass, ...]) -> View:
    """What the summariser was given in the first pass of a compaction, in all of its calls: calls of one pass have the
    same before and after."""
    ends = [(one.tokens_in, one.tokens_after) for one in passes]
    calls = [one for one, end in zip(passes, ends, strict=True) if end == ends[0]]
    return tuple(segment for one in calls for segment in one.summariser_view)


class Head(NamedTuple):
    """How a request is made at some steps: `view`, then the log's events from `kept_from` on, in `form` where one is
    named."""

    view: View
    kept_from: int
    form: str = ""

    def at(self, ledger: Ledger | None, at: int) -> View:
        """The view over a log of `at` events. Without a ledger a form is named although it may change nothing."""
        view, kept_from, form = self
        if kept_from >= at:
            return view
        tail = ledger.span(kept_from, at, form) if ledger and form else Span(kept_from, at, form)
        return (*view, tail) if len(view) < LONG else followed(view, len(view), (tail,))


WHOLE_LOG = Head((), 0)


def head_of(view: View, at: int) -> Head:
    """The head of one request that was built over `at` events."""
    last = view[-1] if view else None
    if isinstance(last, Span) and last.stop == at:
        return Head(view[:-1], last.start, last.form)
    return Head(view, at)


@dataclass(frozen=True)
class Trace:
    """The result of one replay. Equal inputs give equal bytes, and so an equal digest.

    `columns` has those of COMMON_COLUMNS and those that the policy declared.
    """

    policy: str
    settings: dict[str, Any]
    engine_version: str
    window: int
    columns: dict[str, NDArray[Any]]
    compactions: tuple[CompactionRecord, ...] = ()
    notes: tuple[str, ...] = ()
    state: Any = field(default=None, compare=False)
    declared: tuple[Column, ...] = ()
    heads: tuple[Head, ...] = (WHOLE_LOG,)

    def __len__(self) -> int:
        return len(self.columns["fired"])

    @property
    def all_columns(self) -> tuple[Column, ...]:
        """The common columns, then those of the policy."""
        return (*COMMON_COLUMNS, *self.declared)

    def column(self, name: str) -> NDArray[Any]:
        """A column by its name; one that the policy does not have is empty: -1 everywhere."""
        return self.columns[name] if name in self.columns else np.full(len(self), -1, dtype=np.int64)

    def view(self, step: int, at: int, ledger: Ledger | None = None) -> View:
        """What was sent at a step whose request was built over `at` log events. Without the ledger a form may be named
        although it changes nothing there."""
        head: int = self.columns["head"].item(step)
        return self.heads[head].at(ledger, at)

    def digest(self) -> str:
        """SHA-256 over policy, settings, engine version, window, columns and compaction records.

        Of a view of more than LONG segments a record counts how many it begins with of the long view before it in the
        records, and the others. Heads are left out: two may name the same request, with a form or without one where it
        changes nothing.
        """
        digest = hashlib.sha256()
        head = (self.policy, self.settings, self.engine_version, self.window)
        digest.update(msgspec.json.encode(head, order="deterministic")[:-1] + b",[")
        written = _WrittenViews()
        for place in range(0, len(self.compactions), AT_ONCE):
            records = [written.record(record) for record in self.compactions[place : place + AT_ONCE]]
            data = msgspec.json.encode(records, order="deterministic")
            digest.update((b"," if place else b"") + data[1:-1])
        digest.update(b"]]")
        for column in self.all_columns:
            if column.name == "head":
                continue
            digest.update(column.name.encode())
            values = self.columns[column.name]
            digest.update(np.ascontiguousarray(values, dtype="<f8" if column.real else "<i8").tobytes())
        return digest.hexdigest()


class _WrittenViews:
    """Records as a digest has them: with what is new in each long view."""

    def __init__(self) -> None:
        self._last: View = ()

    def record(self, record: CompactionRecord) -> CompactionRecord:
        """The record, with other views where it has long ones."""
        given = [one.summariser_view for one in record.passes]
        own = (record.before, record.after, record.carried, record.in_turn)
        if max(map(len, (*own, *given))) <= LONG:
            return record
        passes = tuple(
            msgspec.structs.replace(one, summariser_view=self._view(view))
            for one, view in zip(record.passes, given, strict=True)
        )
        changed = {name: self._view(view) for name, view in zip(RECORD_VIEWS, own, strict=True)}
        return msgspec.structs.replace(record, passes=passes, **changed)

    def _view(self, view: View) -> Any:
        if len(view) <= LONG:
            return tuple(view)
        same = common_length(self._last, view)
        self._last = view
        return same, tuple(view[same:])


RECORD_VIEWS = ("before", "after", "carried", "in_turn")  # of a CompactionRecord
