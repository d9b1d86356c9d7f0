"""Policies that edit each request anew: their list is always the whole log, and what they send follows from it alone.

A policy of this kind says what it sends at many steps at once (`edited`), in columns; one step is a run of one. A run
of steps is then decided together, whether it acts in them or not, and its views are priced by prefix sums.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from guard_core.estimation.estimators import Heuristic
from guard_core.estimation.usage import CountedRun, Usage, counts_of
from guard_core.ledger import Ints, Ledger
from guard_core.policies.base import Acted, Quiet, ReplayRun
from guard_core.policies.pieces.counters import ProviderCounts, counts_before
from guard_core.policies.pieces.lists import (
    ListMemory,
    ListOutcome,
    ListPolicy,
    ListRequest,
    Sizes,
    or_estimated,
)
from guard_core.policies.pieces.request_numbers import sent_columns
from guard_core.trace import WHOLE_LOG, CompactionRecord, Head, Pass, head_of
from guard_core.view_columns import ViewColumns
from guard_core.views import Span, View


class ActingSteps(NamedTuple):
    """Steps `rows` at which a library acts: over `at` events, on a number `counted` that it compared with its `limit`
    (an entry each)."""

    ledger: Ledger
    rows: Ints
    at: Ints
    counted: Ints
    limit: int
    usage: Usage | None
    costs: Heuristic


class Edited(NamedTuple):
    """What is sent at some steps, and why nothing is done at a step (an index into HELD_REASONS; 0: it is)."""

    views: ViewColumns
    held: Ints | None = None


class EditingPolicy(ListPolicy):
    """The base of such policies. What they compare (`counted`, `acts`) does not depend on the provider's last count,
    and they neither leave out events (`left_out`) nor send others in a form (`sent_form`)."""

    keeps: ClassVar[bool] = False
    most_steps: ClassVar[int] = 8_192  # at once; ours: a policy with forms of single events looks at fewer

    @abstractmethod
    def edited(self, steps: ActingSteps) -> Edited | None:
        """What is sent at some steps; None where views are too long for columns, or have to be made with the texts. A
        policy that may give None says in `compact` what it does at one step."""

    def compact(self, request: ListRequest, state: Any) -> ListOutcome:
        check = request.check
        row, at, counted = (np.array([value]) for value in (check.step, check.at, request.counted))
        edited = self.edited(ActingSteps(check.ledger, row, at, counted, request.limit, check.usage, request.costs))
        assert edited is not None, "what has no columns is said by `compact`"
        held = 0 if edited.held is None else int(edited.held[0])
        return ListOutcome(request.view if held else edited.views.normal().views()[0], state, held=held)

    def scan(self, run: ReplayRun, start: int, stop: int, state: ListMemory) -> Quiet | Acted | None:
        ledger, costs = run.ledger, self.estimator(run.ledger)
        stop = min(stop, start + self.most_steps)
        at, rows = ledger.steps["at"][start:stop], np.arange(start, stop)
        if (np.diff(at) < 0).any():
            return None
        columns = sent_columns(costs, WHOLE_LOG, at)
        whole = run.usage.run(start, stop, (), 0, columns["heuristic_sent"])
        nothing = np.full(len(rows), -1)
        sizes = self.sizes(ledger, WHOLE_LOG, rows, at, ProviderCounts(nothing, nothing), state, run.window)
        if self.counts_request:
            sizes = sizes._replace(request=or_estimated(whole, columns["heuristic_sent"]))
        counted, limit = self.counted(sizes), self.limit(run.window)
        acts = np.flatnonzero(self.acts(sizes, counted, limit))
        if not len(acts):
            return super().scan(run, start, stop, state)
        edited = self.edited(ActingSteps(ledger, rows[acts], at[acts], counted[acts], limit, run.usage, costs))
        if edited is None:
            return super().scan(run, start, stop, state)
        return self._run(run, _Asked(start, at, costs, columns, whole, sizes, counted, limit), acts, edited, state)

    def _run(self, run: ReplayRun, asked: _Asked, acts: Ints, edited: Edited, state: ListMemory) -> Acted:
        """The run of steps, at some of which it acts."""
        at, costs, columns = asked.at, asked.costs, asked.columns
        held = np.zeros(len(at), dtype=np.int64)
        if edited.held is not None:
            held[acts] = edited.held
        done = held[acts] == 0
        views, acts = edited.views.at(done).normal(), acts[done]
        sent, contents = columns["heuristic_sent"].copy(), columns["contents_sent"].copy()
        sent[acts] = costs.fixed + views.total(costs.log, costs.segment, costs.segments)
        contents[acts] = views.contents
        counts = CountedRun(asked.whole.tokens.copy(), asked.whole.reported.copy(), asked.whole.source.copy())
        counts.tokens[acts], counts.reported[acts], counts.source[acts] = counts_of(
            run.usage, acts + asked.start, views, sent[acts]
        )
        last = counts_before(counts, asked.start, state.tokens, state.as_of)
        is_whole = views.equal(ViewColumns.spans((0, at[acts])))
        is_new = ~is_whole & _differs_from_last(run.ledger, views, at[acts], Head(state.head, state.kept_from))
        fired, edits = np.zeros((2, len(at)), dtype=np.int64)
        fired[acts], edits[acts] = is_new, ~is_whole
        columns = columns | self.noted(asked.sizes) | self._compared(asked.counted, np.full(len(at), asked.limit))
        columns |= {name: np.full(len(at), value) for name, value in self._remembered(state).items()}
        columns |= {"last_prompt": np.maximum(last.tokens[:-1], 0), "last_step": last.as_of[:-1]}
        columns |= {"contents_sent": contents, "heuristic_sent": sent, "fired": fired, "edited": edits, "held": held}
        all_views = views.views()
        heads = [head_of(view, end) for view, end in zip(all_views, at[acts].tolist(), strict=True)]
        of_steps = [WHOLE_LOG] * len(at)
        for step, head in zip(acts.tolist(), heads, strict=True):
            of_steps[step] = head
        records = self._records(asked, columns, acts[is_new], [all_views[place] for place in np.flatnonzero(is_new)])
        remembered: dict[str, Any] = {"tokens": int(last.tokens[-1]), "as_of": int(last.as_of[-1])}
        if heads:
            head = self._head(all_views[-1], int(at[acts[-1]]))
            remembered |= {"head": head.view, "kept_from": head.kept_from, "sent": (), "sent_from": 0}
        after = msgspec.structs.replace(state, **remembered)
        return Acted(len(at), columns, counts, after, of_steps, tuple(records))

    def _records(
        self, asked: _Asked, columns: dict[str, Any], steps: Ints, views: list[View]
    ) -> list[CompactionRecord]:
        """The records of the compactions at some steps of a run."""
        names = ("contents_decided", "heuristic_decided", "contents_sent", "heuristic_sent")
        rows = [columns[name][steps].tolist() for name in names]
        places = (steps + asked.start).tolist(), asked.at[steps].tolist(), asked.counted[steps].tolist()
        previous, fixed = int(columns["summary_bytes"][0]), asked.costs.fixed
        return [
            CompactionRecord(
                step=step,
                reason=self.reason_of(counted, asked.limit),
                passes=(Pass(contents_in, decided - fixed, 0, 0, 0, contents, sent),),
                before=(Span(0, at),) if at else (),
                after=view,
                tokens_before=decided,
                tokens_after=sent,
                previous_summary_bytes=previous,
            )
            for step, at, counted, contents_in, decided, contents, sent, view in zip(*places, *rows, views, strict=True)
        ]


class _Asked(NamedTuple):
    """A run of steps from `start` on as the policy finds it: its columns and counts with the list as it is, and what is
    compared."""

    start: int
    at: Ints
    costs: Heuristic
    columns: dict[str, Ints]
    whole: CountedRun
    sizes: Sizes
    counted: Ints
    limit: int


def _differs_from_last(ledger: Ledger, views: ViewColumns, at: Ints, before: Head) -> NDArray[np.bool_]:
    """Which requests over `at` events do not just extend the one before among them; the first is compared with what was
    sent last, which began with `before`."""
    if not len(at):
        return np.zeros(0, dtype=np.bool_)
    places = np.arange(len(at))
    filled = (views.is_span | views.is_message).sum(axis=0)  # in normal form: the first rows
    tail = np.maximum(filled - 1, 0)
    grown = views.behind(np.zeros_like(at), np.zeros_like(at))
    is_open = (filled > 0) & (grown.stops[tail, places] == at) & (grown.forms[tail, places] == 0)
    is_open &= grown.starts[tail, places] >= 0
    starts, stops, forms = (row[:, :-1].copy() for row in grown[:3])
    opened, closed = is_open[:-1], ~is_open[:-1] & (at[:-1] < at[1:])
    stops[tail[:-1][opened], places[:-1][opened]] = at[1:][opened]
    place = filled[:-1][closed]
    starts[place, places[:-1][closed]], stops[place, places[:-1][closed]] = at[:-1][closed], at[1:][closed]
    extended = views._replace(starts=starts, stops=stops, forms=forms)
    differs = ~views.at(slice(1, None)).equal(extended)
    first = views.at(slice(0, 1)).views()[0] != before.at(ledger, int(at[0]))
    return np.append(first, differs)
