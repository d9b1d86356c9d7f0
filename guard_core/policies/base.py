"""What a policy is: before every model call it looks at a check and its state, and decides on the view to send.

The same policy runs in a replay, where its views are priced by prefix sums, and in a live guard, where they are
materialised.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from guard_core.ledger import Ledger
from guard_core.sessions import Session
from guard_core.summaries.base import Summarizer, Todo
from guard_core.trace import CompactionRecord, Term, Trace
from guard_core.usage import CountedRun, Usage
from guard_core.views import View

State = Any  # a policy's own frozen value: what it remembers from step to step


@dataclass(frozen=True, slots=True)
class Check:
    """What a policy may look at before one model call.

    `at` events are in the log. `request_bytes` and `request` are the user's words of this turn (0: none, None: text not
    known). `session` is there where texts are: a live guard, a page that shows messages.
    """

    ledger: Ledger
    step: int
    at: int
    window: int
    summarizer: Summarizer
    user_event: int = -1
    request_bytes: int = 0
    request: str | None = None
    session: Session | None = None
    todos: tuple[Todo, ...] = ()


class CheckEvidence(NamedTuple):
    """What a policy found at one check; the fields are columns of a trace (see guard_core.trace.TRACE_COLUMNS)."""

    contents_built: int
    contents_decided: int
    contents_sent: int
    heuristic_built: int
    heuristic_decided: int
    heuristic_sent: int
    real_loaded: int = 0
    last_heuristic_loaded: int = 0
    real_as_of: int = -1
    correction_raw: float = math.nan
    correction: float = math.nan
    correction_source: int = 0
    calibrated: int = -1
    decision_tokens: int = -1
    threshold: int = -1
    fired: int = 0
    held: int = 0
    watermark: int = 0
    summary_bytes: int = 0


class Decision(NamedTuple):
    """The view to send, the new state, the evidence; `compaction` where one was made."""

    view: View
    state: State
    evidence: CheckEvidence
    compaction: CompactionRecord | None = None


@dataclass(frozen=True)
class Run:
    """What stays the same during a replay. `request_bytes` is per step: the user's words of its turn."""

    ledger: Ledger
    window: int
    usage: Usage
    request_bytes: NDArray[np.int64]


class Quiet(NamedTuple):
    """A run of steps in which a policy did nothing: `columns` and `counted` have `size` entries.

    `ended`: the next step must be decided, it is not just the end of what was asked for.
    """

    size: int
    columns: Mapping[str, NDArray[Any]]
    counted: CountedRun
    state: State
    ended: bool


class Policy(Protocol):
    """One module per policy holds one of these; `guard_core.policies.POLICIES` lists them."""

    @property
    def name(self) -> str: ...

    @property
    def settings(self) -> Any:
        """A frozen value of all settings, by name."""
        ...

    def start(self) -> State:
        """The state before the first step."""
        ...

    def decide(self, check: Check, state: State) -> Decision:
        """What to send at a step."""
        ...

    def observe(self, state: State, prompt_tokens: int | None, step: int) -> State:
        """The state after the model answered; `prompt_tokens` is None where the provider reported nothing."""
        ...

    def scan(self, run: Run, start: int, stop: int, state: State) -> Quiet | None:
        """The steps from `start` (before `stop`) in which the policy does nothing, at once.

        Must equal `decide` and `observe` step by step. None where a policy cannot look ahead.
        """
        ...

    def shadow(self, run: Run, trace: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        """The policy's arithmetic over requests that were really sent; see guard_core.replay.observe_recorded."""
        ...

    def explain(self, trace: Trace, step: int) -> tuple[Term, ...]:
        """The decision of one step as arithmetic: every number with its source and the step it was measured at."""
        ...
