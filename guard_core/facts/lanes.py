"""Lanes: what each request of a session still holds of a snippet, from the first request that had it to the last.

The texts of the log are searched once: a message holds a snippet or it does not. What a request holds follows from its
view: ranges of such messages, the few texts that a compaction inserted, and the forms in which old results are sent.
Requests that only grow are one run, whose view is looked at once; no request is built.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from guard_core.costs import HAS_RESULT
from guard_core.events import Event
from guard_core.facts.instructions import REQUEST, RULE, says_something
from guard_core.facts.searchable import text_of
from guard_core.facts.texts import conveys, has_unspaced, may_translate, paraphrases, quotation, quotes
from guard_core.findings.facts import Fired
from guard_core.findings.presence import may_be_summarised
from guard_core.forms import get_form
from guard_core.ledger import Ints
from guard_core.outcomes.sent import SentRequests
from guard_core.quoting import Runs, asserts, letters_of, may_say, normalised, other_reading, readings, runs_of
from guard_core.trace import Head
from guard_core.views import Inserted, Rewritten, Segment, Span, View, common_length

Bits = NDArray[np.uint8]
IN_MESSAGE, IN_SUMMARY, IN_OTHER_WORDS, IN_OTHER_LANGUAGE, IN_DARK = 1, 2, 4, 8, 16  # what a segment holds of a snippet


class SnippetState(IntEnum):
    """What a request holds of a snippet; the best of what its messages do."""

    NOT_YET = 0  # no request so far can have had it; nothing is a paraphrase of what was not said yet
    VERBATIM = 1  # a message of the log has its words
    QUOTED = 2  # only what a compaction inserted has its words
    PARAPHRASED = 3  # only what a compaction inserted says it, in other words (`Snippet.is_in_other_words`)
    TRANSLATED = 4  # only a summary in another language can hold it, with whose words its own cannot be compared
    UNKNOWN = 5  # only a summary whose text is not known can hold it
    GONE = 6


HELD = (SnippetState.VERBATIM, SnippetState.QUOTED, SnippetState.PARAPHRASED)
UNSURE = (SnippetState.TRANSLATED, SnippetState.UNKNOWN)
# In words, for people and in JSON.
STATE_WORDS = {
    SnippetState.NOT_YET: "not yet said",
    SnippetState.VERBATIM: "verbatim",
    SnippetState.QUOTED: "quoted in the summary",
    SnippetState.PARAPHRASED: "paraphrased in the summary",
    SnippetState.TRANSLATED: "perhaps translated: summary in another language",
    SnippetState.UNKNOWN: "unknown: summary not readable",
    SnippetState.GONE: "gone",
}
WITHDRAWN = "withdrawn"
NOT_KNOWN = "not known"


class Snippet(msgspec.Struct, frozen=True):
    """A text to follow. `event` is the message it was taken from; -1: the system prompt, a summary, or typed.
    `withdrawn_by` is the message of the user that took a rule back, -1: none that is known to."""

    kind: str
    text: str
    event: int = -1
    withdrawn_by: int = -1

    def is_in_other_words(self, summary: str) -> bool:
        """Does a summary say it in other words; of an instruction too short for a paraphrase to be known, each word."""
        says = conveys if self.kind in (RULE, REQUEST) else paraphrases
        return says(summary, self.text)

    def is_denied(self, summary: str) -> bool:
        """Has a summary the words of an instruction only behind a negation: "do not migrate it" of "migrate it"."""
        return self.kind in (RULE, REQUEST) and not asserts(readings(summary), quotation(self.text))

    def may_be_translated(self, summary: str) -> bool:
        """May a summary say it in another language; a single name stays as it is."""
        is_name = " " not in self.text and not has_unspaced(self.text)
        return not is_name and says_something(self.text) and may_translate(summary, self.text)


class SnippetChange(msgspec.Struct, frozen=True):
    """Where the state of a snippet changes: at `step`, from `before` to `after`. `compaction` is the one that this is
    the first request after, counted from 0 among those of the side; -1: none (of several see `Search._compaction`).
    `event` is the message that brought the words into the request; -1: no new message did."""

    step: int
    before: SnippetState
    after: SnippetState
    compaction: int
    event: int = -1


class Lane(msgspec.Struct, frozen=True):
    """A snippet over all steps of a side: `changes` in their order, the first from NOT_YET. `messages` are those of the
    log that have its words. `read_again` are the results of tools, by their events, that brought the words back after
    no request had them in a message, and `read_again_tokens` their prompt tokens as attributed. `unseen_from` is the
    first step whose request may lack words that the file has there: the recorded prompt fell without a compaction, or
    the file does not have what the compaction `unseen_by`, counted from 0, removed; -1: none.
    `withdrawn_at` is the first step whose request was sent after the user had taken a rule back, -1: none was; what has
    become of the words from then on is no loss.
    """

    snippet: Snippet
    steps: int
    changes: tuple[SnippetChange, ...]
    messages: int
    read_again: tuple[int, ...] = ()
    read_again_tokens: int = 0
    unseen_from: int = -1
    unseen_by: int = -1
    withdrawn_at: int = -1

    def runs(self) -> Iterator[tuple[int, int, SnippetState]]:
        """Steps from (inclusive) and to (exclusive) with one state, in order, without gaps."""
        start, state = 0, SnippetState.NOT_YET
        for change in self.changes:
            if change.step > start:
                yield start, change.step, state
            start, state = change.step, change.after
        if start < self.steps:
            yield start, self.steps, state

    @property
    def last_state(self) -> SnippetState:
        """The state in the last request."""
        return self.changes[-1].after if self.changes else SnippetState.NOT_YET

    @property
    def is_unseen(self) -> bool:
        """Is it not known whether the last request still has the words that the file has there?"""
        return self.unseen_from >= 0

    @property
    def last_step(self) -> int:
        """The last request that has it, in its words or in others; -1: none has."""
        return max((stop - 1 for _, stop, state in self.runs() if state in HELD), default=-1)

    @property
    def last_verbatim(self) -> int:
        """The last request that has it in a message of the log; -1: none has."""
        return max((stop - 1 for _, stop, state in self.runs() if state is SnippetState.VERBATIM), default=-1)

    @property
    def lost(self) -> SnippetChange | None:
        """The last of the losses; None where the last request has it, or it was withdrawn since."""
        is_lost = self.losses and self.last_state not in HELD and self.withdrawn_at < 0
        return self.losses[-1] if is_lost else None

    @property
    def state_words(self) -> str:
        """The state in the last request, in words; "withdrawn" of what the user took back, whoever has the words."""
        if self.withdrawn_at >= 0:
            return WITHDRAWN
        return NOT_KNOWN if self.is_unseen else STATE_WORDS[self.last_state]

    @property
    def losses(self) -> tuple[SnippetChange, ...]:
        """Every change after which the next request is not known to have it. Where only a summary that cannot be read
        or compared may have had it for a while, the loss is where no request can have it any more."""
        losses: list[SnippetChange] = []
        for change in self.changes:
            if 0 <= self.withdrawn_at <= change.step:
                break
            if change.after is SnippetState.GONE and losses and losses[-1].after in UNSURE:
                losses[-1] = change
            elif change.after is SnippetState.GONE or (change.before in HELD and change.after not in HELD):
                losses.append(change)
        return tuple(losses)


def worst_first(lanes: Iterable[Lane]) -> tuple[Lane, ...]:
    """Lanes in the order in which people look at them: lost, unknown, in a summary only, lost for a while, held,
    withdrawn."""
    worst = (
        SnippetState.GONE,
        SnippetState.UNKNOWN,
        SnippetState.TRANSLATED,
        SnippetState.PARAPHRASED,
        SnippetState.QUOTED,
    )
    rank = {**{state: place for place, state in enumerate(worst)}, SnippetState.VERBATIM: 6}

    def place(lane: Lane) -> int:
        if lane.withdrawn_at >= 0:
            return 8
        if lane.is_unseen:
            return rank[SnippetState.UNKNOWN]
        return 5 if lane.losses and not lane.lost else rank.get(lane.last_state, 7)

    return tuple(sorted(lanes, key=place))


class _HeadSteps(NamedTuple):
    """Steps whose requests begin with the same head."""

    start: int
    stop: int
    head: Head
    epoch: int


class _Wanted(NamedTuple):
    """What is looked for of some snippets (`quotation`), and the runs of letters in each, without which no text has
    it."""

    quotations: tuple[str, ...]
    runs: tuple[Runs, ...]

    @classmethod
    def of(cls, snippets: Iterable[Snippet]) -> _Wanted:
        quotations = tuple(quotation(snippet.text) for snippet in snippets)
        return cls(quotations, tuple(map(runs_of, quotations)))

    def in_text(self, text: str) -> list[bool]:
        """Which of the snippets a text has. Its readings, which take longest, are made only where it may have one, the
        second where the first has it not."""
        letters = letters_of(text)
        likely = [row for row, runs in enumerate(self.runs) if may_say(letters, runs)]
        reading = normalised(text) if likely else ""
        held = {row for row in likely if quotes(reading, self.quotations[row])}
        if len(held) < len(likely):
            other = other_reading(text, reading)
            held.update(row for row in likely if quotes(other, self.quotations[row]))
        return [row in held for row in range(len(self.runs))]


def places_of(snippets: Sequence[Snippet], events: Iterable[tuple[int, Event]]) -> tuple[Ints, ...]:
    """Which of these messages hold each snippet, in their order. Their texts are read once, one after the other."""
    wanted = _Wanted.of(snippets)
    places: list[list[int]] = [[] for _ in snippets]
    for index, event in events:
        for into, is_held in zip(places, wanted.in_text(text_of(event.parts)), strict=True):
            if is_held:
                into.append(index)
    return tuple(np.array(into, dtype=np.int64) for into in places)


def _states(held: Bits) -> NDArray[np.int8]:
    """The best that the bits of each snippet say."""
    bits = (IN_MESSAGE, IN_SUMMARY, IN_OTHER_WORDS, IN_OTHER_LANGUAGE, IN_DARK)
    best = (
        SnippetState.VERBATIM,
        SnippetState.QUOTED,
        SnippetState.PARAPHRASED,
        SnippetState.TRANSLATED,
        SnippetState.UNKNOWN,
    )
    return np.select([(held & bit) > 0 for bit in bits], best, SnippetState.GONE).astype(np.int8)


@dataclass
class Search:
    """Snippets in the requests of one side. `places` are the events that hold each of them (`places_of`), `message`
    gives the text of one of those; it is asked for where a request holds such an event in a form."""

    sent: SentRequests
    snippets: tuple[Snippet, ...]
    places: tuple[Ints, ...]
    message: Callable[[int], Event]
    _texts: dict[object, tuple[object, Bits]] = field(default_factory=dict)
    _formed: dict[tuple[int, str], list[bool]] = field(default_factory=dict)
    _last: tuple[View, int, list[Bits]] = field(default=((), -1, []))

    def lanes(self) -> tuple[Lane, ...]:
        """A lane for every snippet, in their order."""
        states = self.states()
        return tuple(self._lane(row, states[row]) for row in range(len(self.snippets)))

    def states_in(self, view: View, epoch: int) -> list[SnippetState]:
        """The state of every snippet in one request; `epoch` says whose inserted messages it means (-1: none)."""
        values = _states(self._held(view, epoch)).tolist()
        system = set(self._in_system)
        return [SnippetState.VERBATIM if row in system else SnippetState(value) for row, value in enumerate(values)]

    def states(self) -> NDArray[np.int8]:
        """The state of every snippet at every step: a row each."""
        at = self.sent.ledger.steps["at"]
        states = np.full((len(self.snippets), len(at)), SnippetState.GONE, dtype=np.int8)
        runs = list(self._runs())
        best = _states(np.array([self._held(run.head.view, run.epoch) for run in runs], dtype=np.uint8))
        for run, states_before in zip(runs, best, strict=True):
            first = np.array([self._first(row, run.head) for row in range(len(self.snippets))], dtype=np.int64)
            steps = slice(run.start, run.stop)
            behind = at[steps][None, :] > first[:, None]
            states[:, steps] = np.where(behind, np.int8(SnippetState.VERBATIM), states_before[:, None])
        is_in_log = at[None, :] > np.array([snippet.event for snippet in self.snippets], dtype=np.int64)[:, None]
        logged = np.array([events[0] if len(events) else self.sent.ledger.event_count for events in self.places])
        may_know = np.isin(states, UNSURE) & (at[None, :] > logged[:, None])  # no summary has what was not said yet
        known = may_know | np.isin(states, HELD) & (is_in_log | (states != SnippetState.PARAPHRASED))
        states[~np.logical_or.accumulate(known, axis=1)] = SnippetState.NOT_YET
        states[self._in_system, :] = SnippetState.VERBATIM
        return states

    @cached_property
    def _wanted(self) -> _Wanted:
        return _Wanted.of(self.snippets)

    @cached_property
    def _in_system(self) -> list[int]:
        """The snippets that the system prompt has, which is a part of every request."""
        return np.flatnonzero(self._wanted.in_text(text_of(self.sent.facts.session.system or ()))).tolist()

    def _runs(self) -> Iterator[_HeadSteps]:
        ledger, trace = self.sent.ledger, self.sent.trace
        heads = ledger.steps["epoch"] if trace is None else trace.columns["head"]
        edges = [0, *(np.flatnonzero(np.diff(heads)) + 1).tolist(), len(heads)] if len(heads) else []
        for start, stop in pairwise(edges):
            number = int(heads[start])
            if trace is not None:
                yield _HeadSteps(start, stop, trace.heads[number], -1)
            elif number < 0:
                yield _HeadSteps(start, stop, Head((), 0), -1)
            else:
                base = ledger.bases[number]
                yield _HeadSteps(start, stop, Head(base.view, base.at), number)

    def _held(self, view: View, epoch: int) -> Bits:
        """What a view holds of every snippet."""
        held = self._readable(view, epoch)
        return held if epoch < 0 else held | self._may_hold[:, epoch]

    def _readable(self, view: View, epoch: int) -> Bits:
        """The same without what is not readable in a recording. A view that begins as the last one did is looked at
        where they differ."""
        before, old, sums = self._last
        same = common_length(before, view) if old == epoch else 0
        sums = sums[:same]
        held = sums[-1] if sums else np.zeros(len(self.snippets), dtype=np.uint8)
        for segment in view[same:]:
            held = held | self._segment(segment, epoch)
            sums.append(held)
        self._last = view, epoch, sums
        return held

    @cached_property
    def _may_hold(self) -> NDArray[np.uint8]:
        """IN_DARK where the summary of a recorded compaction may hold a snippet (a row each) but is not readable,
        IN_OTHER_LANGUAGE where it is in another language."""
        bases = self.sent.ledger.bases
        left = np.zeros((len(self.snippets), len(bases)), dtype=np.bool_)
        sealed = np.array([base.is_sealed for base in bases], dtype=np.bool_)
        foreign = self._in_other_language
        if sealed.any() or foreign.any():
            for place, base in enumerate(bases):
                left[:, place] = self._readable(base.view, place) > 0
        may = may_be_summarised(bases, sealed | foreign, left, self.places)
        return (np.where(foreign, IN_OTHER_LANGUAGE, IN_DARK) * may).astype(np.uint8)

    @property
    def _in_other_language(self) -> NDArray[np.bool_]:
        """Which snippets, a row each, the summary of a recorded compaction may say in another language."""
        compactions = self.sent.facts.session.compactions
        foreign = np.zeros((len(self.snippets), len(compactions)), dtype=np.bool_)
        for place, item in enumerate(compactions):
            if item.kind.startswith("summary"):
                text = "\n".join(text_of(message.parts) for message in item.messages)
                foreign[:, place] = [snippet.may_be_translated(text) for snippet in self.snippets]
        return foreign

    def _segment(self, segment: Segment, epoch: int) -> Bits:
        match segment:
            case Span(start, stop, form):
                return self._span(start, stop, form)
            case Inserted(index):
                return self._inserted(epoch, index)
            case Rewritten(message=message):
                return self._message(("rewritten", id(message)), message, IN_MESSAGE)
        if segment.text is None:
            return np.full(len(self.snippets), IN_DARK if segment.bytes else 0, dtype=np.uint8)
        return self._text(("synthetic", segment.text), segment, segment.text, IN_SUMMARY)

    def _span(self, start: int, stop: int, form: str) -> Bits:
        held = np.zeros(len(self.snippets), dtype=np.uint8)
        for row, events in enumerate(self.places):
            first, last = np.searchsorted(events, (start, stop)).tolist()
            if not form:
                held[row] = IN_MESSAGE if first < last else 0
            elif any(self._survives(row, event, form) for event in events[first:last].tolist()):
                held[row] = IN_MESSAGE
        return held

    def _inserted(self, epoch: int, index: int) -> Bits:
        """A message that a recorded compaction inserted. One that repeats the log is a message like any other."""
        message = self.sent.facts.session.compactions[epoch].messages[index]
        is_repeat = index in self.sent.ledger.repeated[epoch]
        return self._message((epoch, index), message, IN_MESSAGE if is_repeat else IN_SUMMARY)

    def _message(self, key: object, message: Event, bit: int) -> Bits:
        return self._text(key, message, text_of(message.parts), bit)

    def _text(self, key: object, owner: object, text: str, bit: int) -> Bits:
        """What a text holds, remembered by a key that is true as long as its owner lives."""
        if key not in self._texts:
            held = [bit * is_held for is_held in self._wanted.in_text(text)]
            if bit == IN_SUMMARY:
                held = [
                    one * (not (one and snippet.is_denied(text))) | IN_OTHER_WORDS * snippet.is_in_other_words(text)
                    for one, snippet in zip(held, self.snippets, strict=True)
                ]
            self._texts[key] = owner, np.array(held, dtype=np.uint8)
        return self._texts[key][1]

    def _survives(self, row: int, event: int, form: str) -> bool:
        """Does a message that holds a snippet still hold it in a form."""
        key = event, form
        if key not in self._formed:
            message = self.message(event)
            changed = get_form(form).message(message)
            self._formed[key] = (
                [True] * len(self.snippets) if changed is message else self._wanted.in_text(text_of(changed.parts))
            )
        return self._formed[key][row]

    def _first(self, row: int, head: Head) -> int:
        """The first event behind a head that holds a snippet as it is sent there; one too large where none does."""
        events = self.places[row]
        behind = events[np.searchsorted(events, head.kept_from) :].tolist()
        none = self.sent.ledger.event_count
        if not head.form:
            return behind[0] if behind else none
        return next((event for event in behind if self._survives(row, event, head.form)), none)

    def _lane(self, row: int, states: NDArray[np.int8]) -> Lane:
        at, tokens = self.sent.ledger.steps["at"], self.sent.facts.attribution.tokens
        flags = self.sent.ledger.events["flags"]
        before = np.concatenate([[SnippetState.NOT_YET], states[:-1]]) if len(states) else states
        changes, again = [], []
        for step in np.flatnonzero(states != before).tolist():
            old, new = SnippetState(int(before[step])), SnippetState(int(states[step]))
            event = -1
            if new is SnippetState.VERBATIM:
                since = int(at[step - 1]) if step else 0
                event = next((item for item in self.places[row].tolist() if since <= item < int(at[step])), -1)
            if event >= 0 and old is not SnippetState.NOT_YET and flags[event] & HAS_RESULT:
                again.append(event)
            changes.append(SnippetChange(step, old, new, self._compaction(row, step, new), event))
        # The first step after the message that took a rule back; -1: none.
        by, starts = self.snippets[row].withdrawn_by, self.sent.ledger.steps["at"]
        first = int(np.searchsorted(starts, by, side="right"))
        withdrawn_at = first if by >= 0 and first < len(starts) else -1
        may_be_gone = len(states) and int(states[-1]) in HELD and self.sent.trace is None and row not in self._in_system
        unseen_from, unseen_by = self._unseen(row) if may_be_gone else (-1, -1)
        return Lane(
            self.snippets[row],
            len(states),
            tuple(changes),
            len(self.places[row]),
            tuple(again),
            int(tokens[again].sum()) if again else 0,
            unseen_from,
            unseen_by,
            withdrawn_at,
        )

    def _fell_at(self, row: int) -> int:
        """The last silent fall of a recording's prompt since the history was last rewritten, if no message brought the
        words after it; -1: none."""
        if not self.sent.facts.lasting_falls:
            return -1
        steps = self.sent.ledger.steps
        step = self.sent.facts.lasting_falls[-1].step
        returned = self.places[row] >= steps["at"][step - 1]
        is_open = (
            steps["epoch"][step] == steps["epoch"][-1] and not (returned & (self.places[row] < steps["at"][-1])).any()
        )
        return step if is_open else -1

    def _unseen(self, row: int) -> tuple[int, int]:
        """The step since which a recording's requests may lack the words though the file has them there, and the
        compaction before it, -1 where there was none: the last one of which the file does not have what it removed, if
        neither what it inserted nor a message since has the words, and no history was written down after it."""
        if (fell_at := self._fell_at(row)) >= 0:
            return fell_at, -1
        if not self.sent.fired:
            return -1, -1
        item, steps = self.sent.fired[-1], self.sent.ledger.steps
        bases = self.sent.ledger.bases[: int(steps["epoch"][-1]) + 1]
        if item.counted is None or not all(one.removes_nothing for one in bases[item.counted.place :]):
            return -1, -1
        base = bases[item.counted.place]
        returned = (self.places[row] >= base.at) & (self.places[row] < steps["at"][-1])
        inserted = tuple(part for part in base.view if not isinstance(part, Span))
        is_held = returned.any() or self.states_in(inserted, item.counted.place)[row] in HELD
        return (-1, -1) if is_held else (item.step, item.index)

    def _compaction(self, row: int, step: int, state: SnippetState) -> int:
        """The compaction, counted from 0, that a step is the first after; -1: none. Of several before one call it is,
        for a snippet that is gone, the one since which no history that can be read has it."""
        item = self._fired.get(step)
        if item is None or item.counted is None or state is not SnippetState.GONE:
            return -1 if item is None else item.index
        lost, bases = item.index, self.sent.ledger.bases
        until = bases[item.counted.place].at
        for index, replaced in reversed(self.sent.facts.replaced_by(item.counted)):
            base = bases[replaced.place]
            left = self.states_in((*base.view, Span(base.at, until)), replaced.place)[row]
            if left in HELD:
                break
            lost, until = index if left is SnippetState.GONE else lost, base.at
        return lost

    @cached_property
    def _fired(self) -> dict[int, Fired]:
        """By their steps, as every lane with a change asks for the one before it."""
        return {item.step: item for item in self.sent.fired}
