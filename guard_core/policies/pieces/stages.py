"""Runs of steps in which a library acts again and again, decided at once.

What a library leaves of its list often follows from its messages alone, not from what the provider counts. The step at
which it acts next is then found by search in prefix sums, and a run of steps is a row of stages: how the list begins
from one act to the next. What is sent, counted and written down in between is computed in columns. A library that acts
at the end of a turn does so before the first call of the next one.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import msgspec
import numpy as np

from guard_core.errors import SummaryFailed
from guard_core.estimation.estimators import Heuristic
from guard_core.estimation.usage import CountedRun, counts_of, staged_counts
from guard_core.ledger import Ints, Ledger
from guard_core.policies.base import Acted, Point, Quiet, ReplayRun
from guard_core.policies.pieces.counters import ProviderCounts
from guard_core.policies.pieces.lists import ListPolicy, summarised
from guard_core.policies.pieces.looks import ends_before
from guard_core.policies.pieces.messages import MessageCosts
from guard_core.summaries.base import Summary
from guard_core.trace import CompactionRecord, Head, Pass
from guard_core.view_columns import sent_views
from guard_core.view_sums import messages_in
from guard_core.views import Span, View


class SummarizerInput(NamedTuple):
    """What a summariser was given in a call at an act, in messages (`contents`) and by the heuristic estimate
    (`tokens`), and the bytes of its summary: it may have `failed`, or given an empty one."""

    view: View = ()
    contents: int = 0
    tokens: int = 0
    summary_bytes: int = 0
    failed: bool = False
    empty: bool = False


NO_CALL = (SummarizerInput(),)


class Act(NamedTuple):
    """What a library does at a step: how its list begins from there on, what is remembered (without the list and the
    provider's count), and what a summariser was given in each of its calls, or the passes of which some had one."""

    head: Head
    state: Any
    given: Sequence[SummarizerInput | Pass] = NO_CALL


class Stages(NamedTuple):
    """How the list begins: `heads[0]` before the run, then one more after each act, which is at the row of the run that
    `rows` names. Of every head `messages` and `estimates` are what the list has more than the whole log, in messages
    and by the heuristic estimate; `summary_bytes` is the size of the stored summary, `watermarks` what it replaces
    (None: the same all along). `given` is of each act what it was in its calls, () where no summariser is asked."""

    heads: Sequence[Head]
    rows: Ints
    messages: Ints
    estimates: Ints
    summary_bytes: Ints
    given: Sequence[Sequence[SummarizerInput | Pass]] = ()
    watermarks: Ints | None = None


class Walked(NamedTuple):
    """What a policy does in a run of steps: its stages; of each step the number that was `compared` with its limit
    (None: it is not what the search is by, see `searched`), its own columns (`noted`) and why it does nothing although
    it is over the limit (`held`); the `state` afterwards, with another list and count. The run has as many steps as
    `held` has entries: the next one is decided by itself where they are fewer than were asked for. `counts` gives the
    provider's counts from the heuristic estimates, None where they are those of the views. `compared_at_acts` are the
    numbers on which it acts, None where those of the steps are."""

    stages: Stages
    held: Ints
    compared: Ints | None
    noted: dict[str, Ints]
    state: Any
    counts: Callable[[Ints], CountedRun | None] | None = None
    compared_at_acts: Ints | None = None

    @property
    def before(self) -> Ints:
        """The stage of each step before the policy looks at it."""
        return np.searchsorted(self.stages.rows, np.arange(len(self.held)))

    @property
    def after(self) -> Ints:
        """The stage in which the request of each step is sent."""
        return np.searchsorted(self.stages.rows, np.arange(len(self.held)), side="right")


class ScanRequest(NamedTuple):
    """What is asked of a policy: the steps from `start` on, over `at` events each, before which `state` is remembered.
    It looks at its list over `looks` events: those of the step, or of the end of the turn before it; -1: not at all."""

    run: ReplayRun
    start: int
    at: Ints
    state: Any
    looks: Ints

    @property
    def ledger(self) -> Ledger:
        return self.run.ledger

    def summarised(
        self, row: int, given: View, costs: Heuristic, state: Any, budget: int
    ) -> tuple[Summary, Any, SummarizerInput]:
        """A summary of some messages, asked for at a row of the run, the state afterwards, and what was given. Raises
        SummaryFailed."""
        tokens = costs.contents(given)
        summary, state = summarised(self.run, self.start + row, given, tokens, state, budget)
        return summary, state, SummarizerInput(given, messages_in(self.ledger, given), tokens, summary.bytes)


class StagedPolicy(ListPolicy):
    """The base of policies that say what they do in a run of steps. Whether they act follows from the sum of some costs
    and not from the provider's counts, or is supposed and then compared with them (`first_other`); they act before
    calls alone or at the end of turns alone, and send their list as it is."""

    acts_in_runs: ClassVar[bool] = True
    compares_searched: ClassVar[bool] = True  # what it compares is what the steps at which it acts are searched by

    def searched(self, window: int) -> tuple[MessageCosts, int]:
        """The costs of which the list has more than a number at the steps at which it acts."""
        return self.costs(), self.limit(window) - (self.relation == ">=")

    def walks(self, ledger: Ledger, state: Any) -> bool:
        """Can it say what it does from a list on (`act`)."""
        return False

    def more_than_log(self, ledger: Ledger, head: Head, state: Any, window: int) -> int:
        """What a list that begins with a head has more than the whole log, in the costs that are searched."""
        own, _ = self.searched(window)
        return own.view(ledger, head.view) - own.prefix(ledger).item(head.kept_from)

    def act(self, asked: ScanRequest, row: int, head: Head, state: Any) -> Act | int | None:
        """What it does at a row of a run where its list, which begins with a head, is over the limit. An index into
        HELD_REASONS where it can do nothing; None: the step is decided by itself. May raise SummaryFailed: the same."""
        raise NotImplementedError

    def noted_of(
        self, asked: ScanRequest, heads: Sequence[Head], states: Sequence[Any], before: Ints
    ) -> dict[str, Ints]:
        """Its own columns (`noted`) at steps whose list begins with one of some heads each, by their place in it."""
        return {}

    def noted_of_counts(self, counted: CountedRun) -> dict[str, Ints]:
        """Those of its own columns that say something of the provider's counts of the requests."""
        return {}

    def walked(self, asked: ScanRequest) -> Walked | None:
        """What it does from a step on; None where it has to be looked at step by step."""
        ledger, state = asked.ledger, asked.state
        if not self.walks(ledger, state):
            return None
        own, most = self.searched(asked.run.window)
        prefix = own.prefix(ledger)
        places = np.flatnonzero(asked.looks >= 0)
        sums, looked = prefix[asked.looks[places]].tolist(), places.tolist()
        heads, states, rows, given = [self._list(state)], [state], list[int](), list[Sequence[SummarizerInput | Pass]]()
        more = [self.more_than_log(ledger, heads[0], state, asked.run.window)]
        held, place = np.zeros(len(asked.at), dtype=np.int64), 0
        while (place := bisect_right(sums, most - more[-1], place)) < len(sums):
            row = looked[place]
            try:
                act = self.act(asked, row, heads[-1], states[-1])
            except SummaryFailed:
                act = None
            if act is None:
                held = held[:row]
                break
            if isinstance(act, int):
                held[row] = 0 if self._is_after_turns else act
            else:
                heads.append(act.head)
                states.append(act.state)
                given.append(act.given)
                rows.append(row)
                more.append(self.more_than_log(ledger, act.head, act.state, asked.run.window))
            place += 1
        stages = self.stages_of(ledger, heads, rows, states, given)
        walked = Walked(stages, held, None, {}, states[-1])
        if self.compares_searched:
            walked = walked._replace(
                compared=np.array(more)[self._decided(walked)] + prefix[asked.at[: len(held)]],
                compared_at_acts=np.array(more[:-1], dtype=np.int64) + prefix[asked.looks[stages.rows]],
            )
        return walked._replace(noted=self.noted_of(asked, heads, states, walked.before))

    def stages_of(
        self,
        ledger: Ledger,
        heads: Sequence[Head],
        rows: Sequence[int],
        states: Sequence[Any],
        given: Sequence[Sequence[SummarizerInput | Pass]] = (),
    ) -> Stages:
        """The stages of a run: how the list begins before it and after each act, with the state there; `rows` and
        `given` are those of the acts."""
        costs = self.estimator(ledger)
        self._look_up(ledger, heads[-1].view)
        return Stages(
            heads,
            np.array(rows, dtype=np.int64),
            np.array([messages_in(ledger, head.view) - head.kept_from for head in heads]),
            np.array([costs.contents(head.view) - costs.prefix.item(head.kept_from) for head in heads]),
            np.array([state.summary_bytes for state in states]),
            given,
            np.array([state.watermark for state in states]),
        )

    def first_other(self, asked: ScanRequest, walked: Walked, compared: Ints, last: ProviderCounts) -> int:
        """The first row of a run at which it does not do what was supposed: `compared` are the numbers at every step,
        `last` the provider's last counts before it."""
        return len(walked.held)

    def _look_up(self, ledger: Ledger, view: View) -> None:
        """Find at once what events cost that a view has in forms of their own: most are in the views before it, too."""
        spans = [item for item in view if isinstance(item, Span) and item.form and item.stop - item.start == 1]
        if spans:
            self.costs().look_up(ledger, spans)
            self.estimator(ledger).segments(spans)

    @property
    def _is_after_turns(self) -> bool:
        """Does it act at the end of turns, and not before calls."""
        return Point.END_OF_TURN in self.points

    def _decided(self, walked: Walked) -> Ints:
        """The stage of each step before a call, when the policy looks at it."""
        return walked.after if self._is_after_turns else walked.before

    def scan(self, run: ReplayRun, start: int, stop: int, state: Any) -> Quiet | Acted | None:
        ledger = run.ledger
        at = ledger.steps["at"][start:stop]
        looks = ends_before(ledger, np.arange(start, stop), at) if self._is_after_turns else at
        ends = np.append(state.kept_from, looks[looks >= 0])
        if (np.diff(at) < 0).any() or at[0] < state.kept_from or (np.diff(ends) < 0).any():
            return None
        asked = ScanRequest(run, start, at, state, looks)
        # A provider decides refusals by another count than it reports.
        is_other = getattr(run.usage, "refuses", True) and getattr(run.usage, "refused", None) is not None
        walked = None if Point.ON_OVERFLOW in self.points and is_other else self.walked(asked)
        if walked is None or not (len(walked.stages.rows) or walked.held.any()):
            return super().scan(run, start, stop, state)
        return self._run_of(asked, walked)

    def _run_of(self, asked: ScanRequest, walked: Walked) -> Acted | None:
        """The run with what it writes down; None where the provider's counts cannot be had at once."""
        run, start, at, state = asked.run, asked.start, asked.at[: len(walked.held)], asked.state
        stages, before, after, size = walked.stages, walked.before, walked.after, len(at)
        decided, costs = self._decided(walked), self.estimator(run.ledger)
        sent = costs.fixed + stages.estimates[after] + costs.prefix[at]
        counted = self._counts(asked, walked, after, sent) if walked.counts is None else walked.counts(sent)
        if counted is None:
            return None
        over = np.flatnonzero(counted.tokens > run.largest_answered) if Point.ON_OVERFLOW in self.points else at[:0]
        if len(over):
            return self._run_until(asked, int(over[0]))
        acts = before != after
        forgets = acts & self.forgets
        known = counted.reported & (counted.tokens > 0)
        place = np.maximum.accumulate(np.where(known | forgets, np.arange(size), -1))
        last = np.where(place < 0, state.tokens, np.where(known[place], counted.tokens[place], 0))
        as_of = np.where(place < 0, state.as_of, np.where(known[place], place + start, -1))
        last_before = ProviderCounts(np.append(state.tokens, last[:-1]), np.append(state.as_of, as_of[:-1]))
        compared, compared_at_acts = self._compared_numbers(asked, walked, last_before)
        if (other := self.first_other(asked, walked, compared, last_before)) < size:
            return self._run_until(asked, other)
        columns = {
            "contents_built": at,
            "contents_decided": stages.messages[decided] + at,
            "contents_sent": stages.messages[after] + at,
            "heuristic_built": costs.prefix[at] + costs.fixed,
            "heuristic_decided": costs.fixed + stages.estimates[decided] + costs.prefix[at],
            "heuristic_sent": sent,
            **walked.noted,
            **self.noted_of_counts(counted),
            **self._compared(compared, np.full(size, self.limit(run.window))),
            "watermark": np.full(size, state.watermark) if stages.watermarks is None else stages.watermarks[after],
            "summary_bytes": stages.summary_bytes[after],
            "last_prompt": np.where(forgets, 0, np.maximum(last_before.tokens, 0)),
            "last_step": np.where(forgets, -1, last_before.as_of),
            "fired": acts.astype(np.int64),
            "held": walked.held,
        }
        records = self._records(asked, walked, compared_at_acts)
        end = stages.heads[int(after[-1])]
        remembered: dict[str, Any] = {"head": end.view, "kept_from": end.kept_from, "sent": (), "sent_from": 0}
        state = msgspec.structs.replace(walked.state, tokens=int(last[-1]), as_of=int(as_of[-1]), **remembered)
        heads = [stages.heads[stage] for stage in after.tolist()]
        return Acted(size, columns, counted, state, heads, tuple(records), size < len(asked.at))

    def _run_until(self, asked: ScanRequest, size: int) -> Acted | None:
        """The run up to a request that is decided by itself: one that is larger than the window, for example."""
        shorter = asked._replace(at=asked.at[:size], looks=asked.looks[:size])
        walked = self.walked(shorter) if size else None
        run = None if walked is None else self._run_of(shorter, walked)
        return None if run is None else run._replace(ended=True)

    def _compared_numbers(self, asked: ScanRequest, walked: Walked, last: ProviderCounts) -> tuple[Ints, Ints]:
        """The number that is compared with the limit, at every step before the call, and where it acts when it does;
        `last` are the provider's last counts before each step."""
        stages, at = walked.stages, asked.at[: len(walked.held)]
        if walked.compared is not None:
            at_acts = walked.compared_at_acts
            return walked.compared, walked.compared[stages.rows] if at_acts is None else at_acts
        starts: Any = np.array([_start_of(head) for head in stages.heads])  # as a head of many requests

        def compared(rows: Ints, at: Ints, stages: Ints) -> Ints:
            head, counts = Head((), starts[stages]), ProviderCounts(last.tokens[rows], last.as_of[rows])
            steps = rows + asked.start
            return self.counted(self.sizes(asked.ledger, head, steps, at, counts, asked.state, asked.run.window))

        decided = compared(np.arange(len(at)), at, self._decided(walked))
        return decided, compared(stages.rows, asked.looks[stages.rows], np.arange(len(stages.rows)))

    def _counts(self, asked: ScanRequest, walked: Walked, after: Ints, sent: Ints) -> CountedRun:
        """The provider's counts of the requests: of a few segments in columns, of longer ones stage by stage."""
        size, heads = len(after), walked.stages.heads
        views = sent_views(asked.ledger, heads, after, asked.at[:size])
        if views is not None:
            return counts_of(asked.run.usage, np.arange(asked.start, asked.start + size), views, sent)
        counted = staged_counts(asked.run.usage, asked.start, heads, after, sent)
        if counted is not None:
            return counted
        runs = []
        for first, last in pairwise([0, *(np.flatnonzero(np.diff(after)) + 1).tolist(), size]):
            head, place = heads[int(after[first])], slice(asked.start + first, asked.start + last)
            heuristics = sent[first:last]
            runs.append(asked.run.usage.run(place.start, place.stop, head.view, head.kept_from, heuristics, head.form))
        return CountedRun(*map(np.concatenate, zip(*runs, strict=True)))

    def _records(self, asked: ScanRequest, walked: Walked, compared: Ints) -> Iterator[CompactionRecord]:
        """The records of the compactions of a run, each on a number that was `compared`."""
        stages, ledger, costs = walked.stages, asked.ledger, self.estimator(asked.ledger)
        fixed, limit, count = costs.fixed, self.limit(asked.run.window), len(stages.rows)
        at = asked.looks[stages.rows]
        messages, estimates = stages.messages[: count + 1], stages.estimates[: count + 1] + fixed
        rows = [stages.rows + asked.start, at, stages.summary_bytes[:count], messages[:-1] + at]
        rows += [estimates[:-1] + costs.prefix[at], messages[1:] + at, estimates[1:] + costs.prefix[at], compared]
        numbers = zip(*(row.tolist() for row in rows), strict=True)
        given = stages.given or [NO_CALL] * count
        point = Point.END_OF_TURN.value if self._is_after_turns else ""
        for place, (step, at, summary_bytes, contents_in, decided, contents, sent, counted) in enumerate(numbers):
            old, new = stages.heads[place], stages.heads[place + 1]
            yield CompactionRecord(
                step=step,
                reason=self.reason_of(counted, limit),
                passes=tuple(
                    own
                    if isinstance(own, Pass)
                    else Pass(
                        contents_in,
                        decided - fixed,
                        own.contents,
                        own.tokens,
                        own.summary_bytes,
                        contents,
                        sent,
                        failed=own.failed,
                        empty=own.empty,
                        summariser_view=own.view,
                    )
                    for own in given[place]
                ),
                before=old.at(ledger, at),
                after=new.at(ledger, at),
                tokens_before=decided,
                tokens_after=sent,
                previous_summary_bytes=summary_bytes,
                carried=new.view,
                kept_from=new.kept_from,
                point=point,
            )


def _start_of(head: Head) -> int:
    """The first event of a list that is a row of events of the log."""
    first = head.view[0] if head.view else None
    return first.start if isinstance(first, Span) else head.kept_from
