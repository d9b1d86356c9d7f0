"""What an agent counted at every check of a session, by each counter, and at which checks it could not compact."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from guard_core.compaction_bases import EDIT
from guard_core.counts import counted_compactions
from guard_core.estimation.baselines import falls_at_other_models, unexplained_falls
from guard_core.ledger import Ints, Ledger
from guard_core.rules.base import Agent, Stretch
from guard_core.rules.counters import (
    LAST_PROMPT,
    UNKNOWN,
    RuleCounter,
    checks_of,
    counts_at,
    pending_at,
    why_uncounted,
)
from guard_core.rules.settings import Typed
from guard_core.sessions import Evidence, RecordedCompaction, Session
from guard_core.sliding import recorded_rows
from guard_core.triggers import RESUME

RESUMED = "the session was resumed, and the agent has no count before the next answer"


class CheckCounts:
    """The counts of a session's checks, each kind computed once. `agent`: None where its rule is not known; `typed`:
    settings of that rule, by their names here."""

    def __init__(self, session: Session, ledger: Ledger, agent: Agent | None, typed: Typed) -> None:
        self.session, self.ledger, self.agent, self.typed = session, ledger, agent, typed
        self.checks = checks_of(session, ledger)
        self._known: dict[str, Ints] = {}

    def by(self, counter: RuleCounter) -> Ints:
        """The counts of a counter in tokens, UNKNOWN where a number of it is not recorded."""
        return self._once(
            counter.words,
            lambda: np.asarray(
                np.where(self._forgotten, UNKNOWN, counts_at(self.session, self.ledger, self.checks, counter))
            ),
        )

    @cached_property
    def _forgotten(self) -> NDArray[np.bool_]:
        """The checks before which something came since the last answer that makes its count another one."""
        if self.agent is None or not (self.agent.forgets_on_resume or self.agent.clears_apart):
            return np.zeros(len(self.checks.step), dtype=np.bool_)
        forgets = _is_resumed if self.agent.forgets_on_resume else _is_cleared
        resumes = np.array([item.at for item in self.session.compactions if forgets(item)], dtype=np.int64)
        called = np.append(self.ledger.steps["at"], 0)[self.checks.last]
        before = np.searchsorted(resumes, called, side="right")
        return np.asarray(np.searchsorted(resumes, self.checks.stop, side="right") > before)

    def why_uncounted(self, row: int, counter: RuleCounter) -> str:
        """Why the count at a check is not known."""
        if self.checks.last[row] >= 0 and self._forgotten[row] and self.agent is not None:
            return RESUMED if self.agent.forgets_on_resume else self.agent.clears_apart
        return why_uncounted(self.checks, row, self.ledger, counter)

    def of(self, stretch: Stretch) -> Ints:
        """The counts that the rule of a stretch compares; of an unknown rule the prompts."""
        if self.agent is None:
            return self.by(LAST_PROMPT)
        if (series := self.agent.series) is None:
            return self.by(self.agent.compared(stretch, self.typed))
        window = stretch.window.value if stretch.window else 0
        return self._once(f"window {window}", lambda: series(self.session, self.ledger, self.checks, stretch))

    def pending(self, stretch: Stretch) -> Ints:
        """What is estimated of these counts, in tokens."""
        return self.pending_by(LAST_PROMPT if self.agent is None else self.agent.compared(stretch, self.typed))

    def pending_by(self, counter: RuleCounter) -> Ints:
        """The same of a counter."""
        session, ledger = self.session, self.ledger
        return self._once(f"pending {counter.words}", lambda: pending_at(session, ledger, self.checks, counter))

    @cached_property
    def held(self) -> NDArray[np.bool_]:
        """The checks at which the agent cannot compact."""
        return self._marks > 0

    def why_held(self, row: int) -> str:
        """Why the agent cannot compact at a check."""
        return "" if self.agent is None else self.agent.why_held(int(self._marks[row]))

    @cached_property
    def _marks(self) -> Ints:
        if self.agent is None:
            return np.zeros(len(self.checks.step), dtype=np.int64)
        return self.agent.held(self.session, self.ledger, self.checks, self.typed)

    @cached_property
    def cut(self) -> Ints:
        """The steps at which the history may have been cut without a record: those whose recorded prompt fell far
        though the log grew, and the calls without a count before them, which may have been cut already."""
        deep = [fall.step for fall in unexplained_falls(self.ledger) if fall.is_deep]
        counted = np.flatnonzero(self.ledger.steps["prompt_tokens"] > 0)
        steps: set[int] = set()
        for step in (*deep, *falls_at_other_models(self.ledger).tolist()):
            before = int(counted[np.searchsorted(counted, step) - 1])
            steps.update(range(before + 1, step + 1))
        return np.array(sorted(steps), dtype=np.int64)

    @cached_property
    def fallen(self) -> Ints:
        """The steps whose recorded prompt fell at all though the log grew, and no compaction is recorded."""
        return np.array([fall.step for fall in unexplained_falls(self.ledger)], dtype=np.int64)

    @cached_property
    def sliding(self) -> frozenset[int]:
        """The compactions, by place, that are moves of a sliding window of an agent without a known rule: that of
        another one says itself when it trims."""
        if self.agent is not None:
            return frozenset()
        known = counted_compactions(self.session, self.ledger.steps["at"]).compactions
        counted = [item for item in known if item.step >= 0]
        return frozenset(item.place for row in recorded_rows(self.session, self.ledger, counted) for item in row)

    @cached_property
    def refused(self) -> NDArray[np.bool_]:
        """The checks before which the provider refused a request as too long, with no answer or compaction since."""
        at, response = (np.append(self.ledger.steps[name], -1) for name in ("at", "response"))
        last, stop = self.checks.step - 1, self.checks.stop
        answered = np.maximum(at[last], response[last] + 1)
        stops = np.concatenate([[0], stop[self.compacted]])
        start = np.maximum(
            np.where(last >= 0, answered, 0), stops[np.searchsorted(self.compacted, np.arange(len(stop)))]
        )
        refused = self.session.refused_places
        places = np.array([at for at, _ in refused], dtype=np.int64)
        first, behind = np.searchsorted(places, start, side="left"), np.searchsorted(places, stop, side="right")
        is_refused = np.asarray(first < behind)
        earlier = -1
        for row in self.compacted.tolist():
            place = int(self.checks.place[row])
            is_refused[row] = any(earlier < before <= place for _, before in refused[first[row] : behind[row]])
            earlier = place
        return is_refused

    @cached_property
    def compacted(self) -> Ints:
        """The rows of the checks at which a compaction was made, in order."""
        return np.flatnonzero(self.checks.place >= 0)

    def _once(self, key: str, compute: Callable[[], Ints]) -> Ints:
        if key not in self._known:
            self._known[key] = compute()
        return self._known[key]


def _is_resumed(item: RecordedCompaction) -> bool:
    """Did the agent begin anew here, so that it no longer knows its last count."""
    return item.trigger == RESUME


def _is_cleared(item: RecordedCompaction) -> bool:
    """Were old results cleared in place, as the file says."""
    return item.kind == EDIT and item.evidence is Evidence.DECLARED
