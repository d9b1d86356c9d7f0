"""The ledger: what every event of a session costs, in columns with prefix sums, so that a view is priced and not built.

All columns are int64 where they are read. Counted once per session; the text is not needed again for a replay, a sweep
or a chart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from guard_core.columns import Packed, pack_columns, replaced, unpack_columns
from guard_core.compaction_bases import CompactionBase, base_of
from guard_core.costs import (
    EVENT_COLUMNS,
    HAS_RESULT,
    IN_PAIR,
    PART_COLUMNS,
    STARTS_TURN,
    CounterState,
    EventCounter,
    event_columns,
    inside_pairs,
)
from guard_core.estimation.model_families import encoding_of
from guard_core.events import part_text
from guard_core.forms import Form, get_form
from guard_core.packing import decode_version, encode
from guard_core.sessions import Session
from guard_core.step_columns import STEP_COLUMNS, call_columns, step_columns
from guard_core.tokens.heuristic import parts_costs, tool_definition_tokens
from guard_core.views import Inserted, Rewritten, Span, Synthetic, View

Ints = NDArray[np.int64]

MOST_FORMS = 16  # ours: forms with columns of their own; a log has about ten columns of each
MOST_FORMED = 4  # ours: forms whose columns of parts, from which the others are made, are remembered
MOST_ALONE = 1_024  # ours: ledgers of single events that are remembered, some kilobytes each
FEW_EVENTS = 8  # ours: the columns of a form over a log of 10,000 parts cost about as much as so many single events
EACH = "each in its own"  # what a ledger of events that each have a form of their own calls these
MOST_REWRITES = 65_536  # ours: single events in forms whose numbers are remembered, about 400 bytes each
LEDGER_VERSION = 15  # of the stored bytes; raise it when a column is added or changes its meaning


class Fixed(msgspec.Struct, frozen=True):
    """What a ledger has besides its columns, as `Ledger` describes it."""

    system_tokens: int = 0
    system_chars: int = 0
    system_metadata_tokens: int = 0
    tools_tokens: int = 0
    system_recorded: bool = False
    tools_recorded: bool = False
    usage_ratio: float | None = None
    usage_reported_from: int = 0
    agent: str = ""
    prompt_tokens_total: int | None = None
    total_calls: int | None = None
    encoding: str = ""


def fixed_of(session: Session) -> Fixed:
    """What a session's ledger has besides its columns."""
    system_text, system_inline, system_metadata = parts_costs(session.system or ())
    return Fixed(
        system_tokens=system_text + system_inline,
        system_chars=sum(len(part_text(part)) for part in session.system or ()),
        system_metadata_tokens=system_metadata,
        tools_tokens=sum(tool_definition_tokens(tool) for tool in session.tools or ()),
        system_recorded=session.system is not None,
        tools_recorded=session.tools is not None,
        usage_ratio=session.usage_ratio,
        usage_reported_from=session.usage_reported_from,
        agent=session.format,
        prompt_tokens_total=session.prompt_tokens_total,
        total_calls=session.total_calls,
        encoding=encoding_of(call.model for call in session.calls),
    )


def counter_for(session: Session) -> EventCounter:
    """A counter for the events of a session from the first on, which knows the tokenizer of its model."""
    return EventCounter(CounterState(encoding=encoding_of(call.model for call in session.calls)))


_SCALARS = Fixed.__struct_fields__


class _StoredLedger(msgspec.Struct, frozen=True):
    version: int
    events: Packed
    parts: Packed
    steps: Packed
    bases: tuple[CompactionBase, ...]
    system_tokens: int
    system_chars: int  # code points of its text
    system_metadata_tokens: int
    tools_tokens: int
    system_recorded: bool
    tools_recorded: bool
    usage_ratio: float | None
    usage_reported_from: int
    agent: str
    prompt_tokens_total: int | None
    total_calls: int | None
    encoding: str
    models: tuple[str, ...] = ()


class _Rows(dict[str, Ints]):
    """Some rows of columns, each cut out when it is first read."""

    def __init__(self, columns: dict[str, Ints], rows: slice | Ints) -> None:
        super().__init__()
        self._columns, self._place = columns, rows

    def __missing__(self, name: str) -> Ints:
        rows = self[name] = self._columns[name][self._place]
        return rows


@dataclass(frozen=True)
class Ledger:
    """Columns of one session: per event, per part of an event, per model call; and the fixed costs."""

    events: dict[str, Ints]
    steps: dict[str, Ints]
    parts: dict[str, Ints] = field(default_factory=lambda: EventCounter().parts())
    bases: tuple[CompactionBase, ...] = ()
    system_tokens: int = 0
    system_chars: int = 0
    system_metadata_tokens: int = 0
    tools_tokens: int = 0
    system_recorded: bool = False
    tools_recorded: bool = False
    usage_ratio: float | None = None
    usage_reported_from: int = 0
    agent: str = ""  # the format of the recording, which is its agent's
    prompt_tokens_total: int | None = None  # over `total_calls`, where no call has a count, as Session has it
    total_calls: int | None = None
    encoding: str = ""  # the tokenizer of the column `tokenizer_tokens`; "": not counted
    models: tuple[str, ...] = ()  # names by their numbers in `steps`; none in ledgers stored before they were kept
    # What a counter needs to count on behind the last event; None where a ledger was not counted but derived or read.
    counter: CounterState | None = field(default=None, compare=False, repr=False)
    _prefixes: dict[str, Ints] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def event_count(self) -> int:
        return len(self.events["flags"])

    @cached_property
    def step_count(self) -> int:
        return len(self.steps["at"])

    @property
    def main_model(self) -> str:
        """The model that answered most of the calls with a count; "" where none is known."""
        numbers = self.steps["model"][self.steps["prompt_tokens"] > 0]
        numbers = numbers[(numbers >= 0) & (numbers < len(self.models))]
        return self.models[int(np.argmax(np.bincount(numbers)))] if len(numbers) else ""

    def prefix(self, name: str, form: str = "") -> Ints:
        """Prefix sums of a column: `prefix[j] - prefix[i]` is the cost of events i to j - 1, in a form if named."""
        if form:
            return self.prefix_by(f"{name}/{form}", lambda ledger: ledger.in_form(name, form))
        return self.prefix_by(name, lambda ledger: ledger.events[name])

    def prefix_of(self, names: tuple[str, ...], form: str = "") -> Ints:
        """Prefix sums of the sum of some columns."""
        if len(names) == 1:
            return self.prefix(names[0], form)
        key = "+".join(names) + (f"/{form}" if form else "")
        if key not in self._prefixes:
            self._prefixes[key] = np.sum([self.prefix(name, form) for name in names], axis=0)
        return self._prefixes[key]

    def prefix_by(self, key: str, column: Callable[[Ledger], Ints]) -> Ints:
        """Prefix sums of a column that an estimator makes of the ledger, made once and found again by its key."""
        if key not in self._prefixes:
            self._prefixes[key] = prefix_sums(column(self))
        return self._prefixes[key]

    def of_events(self, key: str, values: Callable[[], Ints]) -> Ints:
        """What follows from the columns of events and parts alone, made once for this ledger and those that `replace`
        its steps; it cannot be changed."""
        if key not in self._prefixes:
            self._prefixes[key] = values()
            self._prefixes[key].setflags(write=False)
        return self._prefixes[key]

    def known_prefix(self, key: str) -> Ints | None:
        """Prefix sums that `prefix_by` has made."""
        return self._prefixes.get(key)

    def parts_in(self, form: str = "") -> dict[str, Ints]:
        """The columns of the parts in a form (guard_core.forms)."""
        if not form:
            return self.parts
        known = self._formed.pop(form, None)
        columns = self.form(form).parts(self, self.parts) if known is None else known
        self._formed[form] = columns  # behind the others: it was asked for last
        for oldest in list(self._formed)[:-MOST_FORMED]:
            self._formed.pop(oldest, None)  # another thread may have been faster
        return columns

    def in_form(self, name: str, form: str) -> Ints:
        """A column of the events in a form."""
        return np.asarray(self.events[name] + self.form(form).changes(self, name, self.parts_in(form)))

    @cached_property
    def derived(self) -> dict[Any, Any]:
        """What policies derive from the columns and look up at many steps, by a key of their own."""
        return {}

    @cached_property
    def _formed(self) -> dict[str, dict[str, Ints]]:
        return {}

    @cached_property
    def part_starts(self) -> Ints:
        """The row of the first part of each event, and one more entry: the number of rows."""
        return np.searchsorted(self.parts["event"], np.arange(self.event_count + 1))

    @cached_property
    def turn_starts(self) -> Ints:
        """The events that begin a turn of the user."""
        return np.flatnonzero(self.events["flags"] & STARTS_TURN)

    def by_event(self, values: Ints) -> Ints:
        """Sums per event of values that are given per part."""
        if self.event_count == 1:  # as `alone` gives thousands
            return np.asarray(values.sum(keepdims=True))
        sums = prefix_sums(values)
        return sums[self.part_starts[1:]] - sums[self.part_starts[:-1]]

    def first_changed(self, start: int, form: str) -> int:
        """The first event from `start` on that a form changes; the number of events where there is none."""
        key = f"first/{form}"
        if key not in self._prefixes:
            changed = self.changed_by(form)
            places = np.where(changed, np.arange(self.event_count), self.event_count)
            self._prefixes[key] = np.minimum.accumulate(np.append(places, self.event_count)[::-1])[::-1]
        return int(self._prefixes[key][start])

    def changed_between(self, start: int, stop: int, form: str) -> tuple[int, int]:
        """The first of some events that a form changes, and the end of the last one; twice `stop` where it changes
        none."""
        alone = self.changes_one(start, stop, form)
        if alone is not None:
            return (start, stop) if alone else (stop, stop)
        key = f"changed places/{form}"
        if key not in self.derived:
            self.derived[key] = np.flatnonzero(self.changed_by(form))
        places: Ints = self.derived[key]
        low, high = places.searchsorted((start, stop)).tolist()
        return (places.item(low), places.item(high - 1) + 1) if low < high else (stop, stop)

    def changed_by(self, form: str) -> NDArray[np.bool_]:
        """Which events a form changes."""
        key = f"changed/{form}"
        if key not in self.derived:
            differs = self.form(form).differs(self, self.parts, self.parts_in(form))
            self.derived[key] = self.by_event(differs.astype(np.int64)) > 0
        changed: NDArray[np.bool_] = self.derived[key]
        return changed

    def alone(self, start: int, stop: int, form: str) -> Ledger | None:
        """The ledger of one event in a form that is not worth columns over the whole log: it was asked for few events,
        or many forms have columns already, and what it makes of an event depends on nothing else. None for any other
        events and forms."""
        if stop - start != 1 or form in self._with_columns:
            return None
        asked, last_event = self._events_asked.get(form, (0, -1))
        asked += start != last_event
        if (asked > FEW_EVENTS and len(self._with_columns) < MOST_FORMS) or not get_form(form).is_local:
            self._with_columns.add(form)
            return None
        if len(self._events_asked) >= MOST_REWRITES:
            self._events_asked.clear()
        self._events_asked[form] = asked, start
        if len(self._alone) > MOST_ALONE:
            self._alone.clear()
        ledger = self._alone.get(start)
        if ledger is None:
            first, last = self.part_starts[start : stop + 1].tolist()
            parts = {name: column[first:last] for name, column in self.parts.items()}
            parts |= {"event": parts["event"] - start, "answers": np.full(last - first, -1, dtype=np.int64)}
            ledger = Ledger(_Rows(self.events, slice(start, stop)), _Rows(self.steps, slice(0)), parts)
            self._alone[start] = ledger
        return ledger

    def of_one(
        self, start: int, stop: int, form: str, key: object, column: Callable[[Ledger, str], NDArray[Any]]
    ) -> int | None:
        """A number of one event in a form, from a `column` of its ledger as `alone` gives it, and found again by its
        key; None as there."""
        if stop - start != 1 or form in self._with_columns:
            return None
        numbers = self._numbers.get((start, form), {})
        known = numbers.get(key)
        if known is None:
            ledger = self.alone(start, stop, form)
            if ledger is None:
                return None
            if len(self._numbers) >= MOST_REWRITES:
                self._numbers.clear()
            known = int(column(ledger, form).item())
            self._numbers[start, form] = {**numbers, key: known}
        return known

    def look_up(self, spans: Iterable[Span], key: object, column: Callable[[Ledger, str], NDArray[Any]]) -> None:
        """Find the numbers that `of_one` gives for many events in forms of their own at once, as far as these can be
        joined (`Form.of_each`); the others it makes one by one."""
        by_kind: dict[type[Form], dict[tuple[int, str], Form]] = {}
        for start, stop, form in ((span.start, span.stop, span.form) for span in spans):
            is_alone = form and stop - start == 1 and form not in self._with_columns
            if is_alone and key not in self._numbers.get((start, form), {}):
                parsed = get_form(form)
                by_kind.setdefault(type(parsed), {})[start, form] = parsed
        for kind, forms in by_kind.items():
            ledger = self._together(kind, [event for event, _ in forms], list(forms.values()))
            if ledger is not None:
                if len(self._numbers) >= MOST_REWRITES:
                    self._numbers.clear()
                for place, number in zip(forms, column(ledger, EACH).tolist(), strict=True):
                    self._numbers[place] = {**self._numbers.get(place, {}), key: number}

    def _together(self, kind: type[Form], events: list[int], forms: list[Form]) -> Ledger | None:
        """A ledger of some events, each in a form of its own, which it names EACH; None where such forms cannot be
        joined."""
        rows = np.array(events, dtype=np.int64)
        firsts, sizes = self.part_starts[rows], self.part_starts[rows + 1] - self.part_starts[rows]
        each = kind.of_each([form for form, size in zip(forms, sizes.tolist(), strict=True) for _ in range(size)])
        if each is None:
            return None
        owner = np.repeat(np.arange(len(rows)), sizes)
        places = np.arange(len(owner)) - (np.cumsum(sizes) - sizes)[owner] + firsts[owner]
        parts = {name: column[places] for name, column in self.parts.items()}
        parts |= {"event": owner, "answers": np.full(len(owner), -1, dtype=np.int64)}
        ledger = Ledger(_Rows(self.events, rows), _Rows(self.steps, slice(0)), parts)
        ledger._forms[EACH] = each
        return ledger

    def form(self, name: str) -> Form:
        """The form of a name: one of this ledger's own, else one that is registered. Raises GuardError."""
        return self._forms.get(name) or get_form(name)

    @cached_property
    def _forms(self) -> dict[str, Form]:
        """Forms that only this ledger has."""
        return {}

    def forget_forms(self) -> None:
        """Drop the columns of forms that single events were asked in, so that other forms get some; not while another
        thread reads this ledger."""
        ends = tuple(f"/{form}" for form in self._with_columns)
        for known in (self._prefixes, self.derived):
            for key in [key for key in known if isinstance(key, str) and key.endswith(ends)]:
                del known[key]
        for form in self._with_columns:
            self._formed.pop(form, None)
        for asked in (self._with_columns, self._events_asked, self._numbers):
            asked.clear()

    def forget(self) -> None:
        """Drop everything that policies and forms derived from the columns; it is computed again when it is needed. Not
        while another thread reads this ledger."""
        self.forget_forms()
        for known in (self._prefixes, self._formed, self.derived, self._alone):
            known.clear()

    @cached_property
    def _numbers(self) -> dict[tuple[int, str], dict[object, int]]:
        return {}

    @cached_property
    def _alone(self) -> dict[int, Ledger]:
        return {}

    @cached_property
    def _events_asked(self) -> dict[str, tuple[int, int]]:
        """For forms without columns: of how many events `alone` was asked, about, and the last one."""
        return {}

    @cached_property
    def _with_columns(self) -> set[str]:
        return set()

    def changed_in(self, start: int, stop: int, form: str) -> NDArray[np.bool_]:
        """Which of some events a form changes."""
        alone = self.changes_one(start, stop, form)
        return self.changed_by(form)[start:stop] if alone is None else np.array([alone])

    def changes_event(self, event: int, *forms: str) -> bool:
        """Does one of some forms ("" for none) change an event."""
        for form in filter(None, forms):
            alone = self.changes_one(event, event + 1, form)
            if self.changed_by(form).item(event) if alone is None else alone:
                return True
        return False

    def changes_one(self, start: int, stop: int, form: str) -> bool | None:
        """Does a form change one event, None as for `alone`."""
        alone = self.of_one(start, stop, form, "changed", Ledger.changed_by)
        return None if alone is None else alone > 0

    def look_up_changes(self, spans: Iterable[Span]) -> None:
        """Find whether many events are changed by forms of their own at once, as `look_up`."""
        self.look_up(spans, "changed", Ledger.changed_by)

    def know_changed(self, spans: Iterable[Span]) -> None:
        """Take it as known that each of some events is changed by its form (`changes_one`): who made the form of what
        the event holds need not ask."""
        for span in spans:
            if span.form not in self._with_columns:
                place = span.start, span.form
                self._numbers[place] = {**self._numbers.get(place, {}), "changed": 1}
        if len(self._numbers) > MOST_REWRITES:
            self._numbers.clear()

    def span(self, start: int, stop: int, form: str = "") -> Span:
        """Events in a form, which is named only where it changes one of them: equal requests are equal views."""
        if form and (alone := self.changes_one(start, stop, form)) is not None:
            return Span(start, stop, form if alone else "")
        return Span(start, stop, form if form and self.first_changed(start, form) < stop else "")

    def cut(self, index: int) -> int:
        """The largest index up to this one at which the log can be cut without separating a tool call from its
        result."""
        if "cut" not in self._prefixes:
            allowed = np.where(self.events["flags"] & IN_PAIR, 0, np.arange(self.event_count))
            self._prefixes["cut"] = np.append(np.maximum.accumulate(allowed), self.event_count).astype(np.int64)
        return int(self._prefixes["cut"][index])

    def price(self, view: View, name: str, *, epoch: int = -1) -> int:
        """The cost of a view in one additive column. `epoch` says whose inserted messages the view means."""
        return sum(self._segment_cost(segment, name, epoch) for segment in view)

    def _segment_cost(self, segment: Span | Inserted | Rewritten | Synthetic, name: str, epoch: int) -> int:
        match segment:
            case Span(start, stop, form):
                prefix = self.prefix(name, form)
                return int(prefix[stop] - prefix[start])
            case Inserted(index):
                return self.bases[epoch].costs[name][index]
            case Rewritten(message=message):
                return event_columns(message)[name]
            case Synthetic(bytes=size):
                return synthetic_columns(size).get(name, 0)

    def recorded_view(self, step: int) -> tuple[View, int]:
        """The view that was really sent at a step, as far as the recording shows it, and the epoch it belongs to."""
        epoch = int(self.steps["epoch"][step])
        at = int(self.steps["at"][step])
        if epoch < 0:
            return (Span(0, at),), epoch
        base = self.bases[epoch]
        return (*base.view, Span(base.at, at)), epoch

    def replaced_results(self, epoch: int) -> dict[int, int]:
        """The results of the log that stand changed in a recorded base, by the number of the message inserted for each.

        Inserted results are matched from the end of the gap that they fill; none where the log has no result there.
        """
        inserted = self.bases[epoch].costs.get("flags", ()) if epoch >= 0 else ()
        if not any(flags & HAS_RESULT for flags in inserted):
            return {}
        replaced: dict[int, int] = {}
        reach = self.bases[epoch].at  # the event before which the next message to match was
        for segment in reversed(self.bases[epoch].view):
            if isinstance(segment, Inserted) and inserted[segment.index] & HAS_RESULT:
                reach -= 1
                if reach >= 0 and self.events["flags"].item(reach) & HAS_RESULT:
                    replaced[segment.index] = reach
            else:
                reach = segment.start if isinstance(segment, Span) else getattr(segment, "event", -1)
        return replaced

    @cached_property
    def whole_resumes(self) -> tuple[bool, ...]:
        """Of every base: is it a resumed history that still has all of the log, whatever it repeats besides.

        A request on top of it is the session uncompacted. Messages of reasoning alone may be missing: agents leave it
        out of the requests of later turns.
        """
        return tuple(base.is_resume and self._has_all_words(base) for base in self.bases)

    @cached_property
    def last_resumes(self) -> Ints:
        """For every base, the last of `whole_resumes` up to it, -1: none."""
        places = np.where(self.whole_resumes, np.arange(len(self.bases)), -1) if self.bases else np.zeros(0)
        return np.maximum.accumulate(places.astype(np.int64))

    def sends_whole_log(self, step: int, view: View) -> bool:
        """Is a view all of the log at a step that was built on a resumed history with all of it."""
        epoch, at = int(self.steps["epoch"][step]), int(self.steps["at"][step])
        return epoch >= 0 and self.whole_resumes[epoch] and view == (Span(0, at),)

    @cached_property
    def repeated(self) -> tuple[frozenset[int], ...]:
        """Of every base, which inserted messages a resumed history repeats, and no compaction wrote. A message is known
        again by the checksum of its parts."""
        is_repeat: dict[int, bool] = {}
        repeats = []
        for base in self.bases if any(base.is_resume for base in self.bases) else ():
            for digest in base.digests:
                is_repeat.setdefault(digest, base.is_resume)
            repeats.append(frozenset(index for index, digest in enumerate(base.digests) if is_repeat[digest]))
        return tuple(repeats) or (frozenset(),) * len(self.bases)

    def _has_all_words(self, base: CompactionBase) -> bool:
        held = np.zeros(base.at, dtype=np.bool_)
        for segment in base.view:
            match segment:
                case Span(start, stop):
                    held[start:stop] = True
                case Rewritten(event=event) if event < base.at:
                    held[event] = True
        names = ("bytes", "media_bytes", "reasoning_bytes")
        text, media, reasoning = (self.events[name][: base.at] for name in names)
        return bool((held | (text + media <= reasoning)).all())

    @cached_property
    def turns(self) -> int:
        """Number of user turns that have at least one model call."""
        return len(np.unique(self.steps["turn"]))

    @classmethod
    def of(cls, session: Session) -> Ledger:
        """Count a session once."""
        counter = counter_for(session)
        for event in session.events:
            counter.add(event)
        return cls.counted(session, counter)

    @classmethod
    def counted(cls, session: Session, counter: EventCounter) -> Ledger:
        """The ledger of a session whose events were counted one by one; they are not looked at again."""
        bases = tuple(base_of(item) for item in session.compactions)
        models: dict[str, int] = {}
        calls = call_columns(session.calls, models)
        columns = (counter.columns(), counter.parts(), calls)
        fixed = msgspec.structs.replace(fixed_of(session), encoding=counter.encoding)
        return cls.joined(*columns, bases, fixed, tuple(models), counter.state)

    @classmethod
    def joined(
        cls,
        events: dict[str, Ints],
        parts: dict[str, Ints],
        calls: dict[str, Ints],
        bases: tuple[CompactionBase, ...],
        fixed: Fixed,
        models: tuple[str, ...],
        counter: CounterState | None = None,
    ) -> Ledger:
        """The ledger of columns that were counted: EVENT_COLUMNS without IN_PAIR, PART_COLUMNS, CALL_COLUMNS."""
        inside = np.where(inside_pairs(parts, len(events["flags"])), IN_PAIR, 0)
        events = replaced(events, flags=events["flags"] | inside)
        steps = step_columns(calls, events, bases)
        return cls(events, steps, parts, bases, **msgspec.structs.asdict(fixed), models=models, counter=counter)

    @property
    def fixed(self) -> Fixed:
        """What it has besides its columns."""
        return Fixed(**{name: getattr(self, name) for name in _SCALARS})

    def to_bytes(self) -> bytes:
        """The ledger as bytes: equal ledgers give equal bytes on any machine."""
        scalars = {name: getattr(self, name) for name in _SCALARS}
        events = pack_columns(self.events, EVENT_COLUMNS)
        parts, steps = pack_columns(self.parts, PART_COLUMNS), pack_columns(self.steps, STEP_COLUMNS)
        return encode(_StoredLedger(LEDGER_VERSION, events, parts, steps, self.bases, **scalars, models=self.models))

    @classmethod
    def from_bytes(cls, data: bytes) -> Ledger:
        """The ledger again, exactly; GuardError for bytes of another version or of something else."""
        stored = decode_version(data, _StoredLedger, LEDGER_VERSION, "ledger")
        scalars = {name: getattr(stored, name) for name in _SCALARS}
        events, steps, parts = (unpack_columns(packed) for packed in (stored.events, stored.steps, stored.parts))
        return cls(events, steps, parts, stored.bases, **scalars, models=stored.models)


def prefix_sums(column: Ints) -> Ints:
    """Prefix sums with a leading zero, one longer than the column."""
    sums = np.zeros(len(column) + 1, dtype=np.int64)
    np.cumsum(column, out=sums[1:])
    return sums


def synthetic_columns(size: int) -> dict[str, int]:
    """The cost of a synthetic message of one text part of `size` UTF-8 bytes; characters are taken as bytes."""
    return {"text_tokens": size // 4, "chars": size, "bytes": size}
