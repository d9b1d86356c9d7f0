"""Runs of steps in which a library acts again and again, decided at once.

What a library leaves of its list often follows from its messages alone, not from what the provider counts. The step at
which it acts next is then found by search in prefix sums, and a run of steps is a row of stages: how the list begins
from one act to the next. What is sent, counted and written down in between is computed in columns.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, NamedTuple

import msgspec
import numpy as np

from guard_core.errors import SummaryFailed
from guard_core.estimation.estimators import Heuristic
from guard_core.estimation.usage import CountedRun, counts_of
from guard_core.ledger import Ints, Ledger
from guard_core.policies.base import Acted, Quiet, Run
from guard_core.policies.pieces.lists import ListPolicy, summarised
from guard_core.summaries.base import Summary
from guard_core.trace import CompactionRecord, Head, Pass
from guard_core.view_columns import sent_views
from guard_core.view_sums import messages_in
from guard_core.views import View


class Given(NamedTuple):
    """What a summariser was given at an act, in messages (`contents`) and by the heuristic estimate (`tokens`), and the
    bytes of its summary."""

    view: View = ()
    contents: int = 0
    tokens: int = 0
    summary_bytes: int = 0


NOTHING_GIVEN = Given()


class Act(NamedTuple):
    """What a library does at a step: how its list begins from there on, what is remembered (without the list and the
    provider's count), and what a summariser was given."""

    head: Head
    state: Any
    given: Given = NOTHING_GIVEN


class Stages(NamedTuple):
    """How the list begins: `heads[0]` before the run, then one more after each act, which is at the row of the run that
    `rows` names. Of every head `messages` and `estimates` are what the list has more than the whole log, in messages
    and by the heuristic estimate; `summary_bytes` is the size of the stored summary. `given` is of each act, () where
    no summariser is asked."""

    heads: Sequence[Head]
    rows: Ints
    messages: Ints
    estimates: Ints
    summary_bytes: Ints
    given: Sequence[Given] = ()


class Walked(NamedTuple):
    """What a policy does in a run of steps: its stages; of each step the number that was `compared` with its limit, its
    own columns (`noted`) and why it does nothing although it is over the limit (`held`); the `state` afterwards, with
    another list and count. The run has as many steps as `held` has entries: the next one is decided by itself where
    they are fewer than were asked for. `counts` gives the provider's counts from the heuristic estimates, None where
    they are those of views of a few segments."""

    stages: Stages
    held: Ints
    compared: Ints
    noted: dict[str, Ints]
    state: Any
    counts: Callable[[Ints], CountedRun | None] | None = None

    @property
    def before(self) -> Ints:
        """The stage of each step before the policy looks at it."""
        return np.searchsorted(self.stages.rows, np.arange(len(self.held)))

    @property
    def after(self) -> Ints:
        """The stage in which the request of each step is sent."""
        return np.searchsorted(self.stages.rows, np.arange(len(self.held)), side="right")


class Asked(NamedTuple):
    """What is asked of a policy: the steps from `start` on, over `at` events each, before which `state` is
    remembered."""

    run: Run
    start: int
    at: Ints
    state: Any

    @property
    def ledger(self) -> Ledger:
        return self.run.ledger

    def summarised(
        self, row: int, given: View, costs: Heuristic, state: Any, budget: int
    ) -> tuple[Summary, Any, Given]:
        """A summary of some messages, asked for at a row of the run, the state afterwards, and what was given. Raises
        SummaryFailed."""
        tokens = costs.contents(given)
        summary, state = summarised(self.run, self.start + row, given, tokens, state, budget)
        return summary, state, Given(given, messages_in(self.ledger, given), tokens, summary.bytes)


class StagedPolicy(ListPolicy):
    """The base of policies that say what they do in a run of steps. What they compare is the sum of their costs and
    does not depend on the provider's counts, they look before calls alone, and send their list as it is."""

    acts_in_runs: ClassVar[bool] = True

    def walks(self, ledger: Ledger, state: Any) -> bool:
        """Can it say what it does from a list on (`act`)."""
        return False

    def act(self, asked: Asked, row: int, head: Head, state: Any) -> Act | int | None:
        """What it does at a row of a run where its list, which begins with a head, is over the limit. An index into
        HELD_REASONS where it can do nothing; None: the step is decided by itself. May raise SummaryFailed: the same."""
        raise NotImplementedError

    def noted_of(self, asked: Asked, heads: Sequence[Head], states: Sequence[Any], before: Ints) -> dict[str, Ints]:
        """Its own columns (`noted`) at steps whose list begins with one of some heads each, by their place in it."""
        return {}

    def walked(self, asked: Asked) -> Walked | None:
        """What it does from a step on; None where it has to be looked at step by step."""
        ledger, state = asked.ledger, asked.state
        if not self.walks(ledger, state):
            return None
        costs, own, limit = self.estimator(ledger), self.costs(), self.limit(asked.run.window)
        prefix = own.prefix(ledger)
        sums = prefix[asked.at].tolist()
        heads, states, rows, given = [Head(state.head, state.kept_from)], [state], list[int](), list[Given]()
        more = [own.view(ledger, state.head) - prefix.item(state.kept_from)]
        held, row = np.zeros(len(sums), dtype=np.int64), 0
        while (row := bisect_right(sums, limit - more[-1] - (self.relation == ">="), row)) < len(sums):
            try:
                act = self.act(asked, row, heads[-1], states[-1])
            except SummaryFailed:
                act = None
            if act is None:
                held = held[:row]
                break
            if isinstance(act, int):
                held[row] = act
            else:
                heads.append(act.head)
                states.append(act.state)
                given.append(act.given)
                rows.append(row)
                more.append(own.view(ledger, act.head.view) - prefix.item(act.head.kept_from))
            row += 1
        stages = Stages(
            heads,
            np.array(rows, dtype=np.int64),
            np.array([messages_in(ledger, head.view) - head.kept_from for head in heads]),
            np.array([costs.contents(head.view) - costs.prefix.item(head.kept_from) for head in heads]),
            np.array([state.summary_bytes for state in states]),
            given,
        )
        walked = Walked(stages, held, held, {}, states[-1])
        before = walked.before
        compared = np.array(more)[before] + prefix[asked.at[: len(held)]]
        return walked._replace(compared=compared, noted=self.noted_of(asked, heads, states, before))

    def scan(self, run: Run, start: int, stop: int, state: Any) -> Quiet | Acted | None:
        at = run.ledger.steps["at"][start:stop]
        if (np.diff(at) < 0).any() or at[0] < state.kept_from:
            return None
        asked = Asked(run, start, at, state)
        walked = self.walked(asked)
        if walked is None or not (len(walked.stages.rows) or walked.held.any()):
            return super().scan(run, start, stop, state)
        return self._run_of(asked, walked)

    def _run_of(self, asked: Asked, walked: Walked) -> Acted | None:
        """The run with what it writes down; None where the provider's counts cannot be had at once."""
        run, start, at, state = asked.run, asked.start, asked.at[: len(walked.held)], asked.state
        stages, before, after, size = walked.stages, walked.before, walked.after, len(at)
        costs = self.estimator(run.ledger)
        sent = costs.fixed + stages.estimates[after] + costs.prefix[at]
        counted = self._counts(asked, walked, after, sent) if walked.counts is None else walked.counts(sent)
        if counted is None:
            return None
        acts = before != after
        forgets = acts & self.forgets
        known = counted.reported & (counted.tokens > 0)
        place = np.maximum.accumulate(np.where(known | forgets, np.arange(size), -1))
        last = np.where(place < 0, state.tokens, np.where(known[place], counted.tokens[place], 0))
        as_of = np.where(place < 0, state.as_of, np.where(known[place], place + start, -1))
        columns = {
            "contents_built": at,
            "contents_decided": stages.messages[before] + at,
            "contents_sent": stages.messages[after] + at,
            "heuristic_built": costs.prefix[at] + costs.fixed,
            "heuristic_decided": costs.fixed + stages.estimates[before] + costs.prefix[at],
            "heuristic_sent": sent,
            **walked.noted,
            **self._compared(walked.compared, np.full(size, self.limit(run.window))),
            "watermark": np.full(size, state.watermark),
            "summary_bytes": stages.summary_bytes[after],
            "last_prompt": np.where(forgets, 0, np.maximum(np.append(state.tokens, last[:-1]), 0)),
            "last_step": np.where(forgets, -1, np.append(state.as_of, as_of[:-1])),
            "fired": acts.astype(np.int64),
            "held": walked.held,
        }
        records = self._records(asked, walked, columns, np.flatnonzero(acts))
        end = stages.heads[int(after[-1])]
        remembered: dict[str, Any] = {"head": end.view, "kept_from": end.kept_from, "sent": (), "sent_from": 0}
        state = msgspec.structs.replace(walked.state, tokens=int(last[-1]), as_of=int(as_of[-1]), **remembered)
        heads = [stages.heads[stage] for stage in after.tolist()]
        return Acted(size, columns, counted, state, heads, tuple(records), size < len(asked.at))

    def _counts(self, asked: Asked, walked: Walked, after: Ints, sent: Ints) -> CountedRun | None:
        """The provider's counts of requests of a few segments."""
        size = len(after)
        views = sent_views(asked.ledger, walked.stages.heads, after, asked.at[:size])
        rows = np.arange(asked.start, asked.start + size)
        return None if views is None else counts_of(asked.run.usage, rows, views, sent)

    def _records(self, asked: Asked, walked: Walked, columns: dict[str, Any], acts: Ints) -> Iterator[CompactionRecord]:
        """The records of the compactions of a run."""
        stages, ledger = walked.stages, asked.ledger
        fixed, limit = self.estimator(ledger).fixed, self.limit(asked.run.window)
        names = ("contents_decided", "heuristic_decided", "contents_sent", "heuristic_sent", self.compared_names[0])
        rows = [acts + asked.start, asked.at[acts], stages.summary_bytes[: len(acts)]]
        rows += [columns[name][acts] for name in names]
        numbers = zip(*(row.tolist() for row in rows), strict=True)
        given = stages.given or [NOTHING_GIVEN] * len(acts)
        for place, (step, at, summary_bytes, contents_in, decided, contents, sent, compared) in enumerate(numbers):
            old, new, own = stages.heads[place], stages.heads[place + 1], given[place]
            yield CompactionRecord(
                step=step,
                reason=self.reason_of(compared, limit),
                passes=(
                    Pass(
                        contents_in,
                        decided - fixed,
                        own.contents,
                        own.tokens,
                        own.summary_bytes,
                        contents,
                        sent,
                        summariser_view=own.view,
                    ),
                ),
                before=old.at(ledger, at),
                after=new.at(ledger, at),
                tokens_before=decided,
                tokens_after=sent,
                previous_summary_bytes=summary_bytes,
                carried=new.view,
                kept_from=new.kept_from,
            )
