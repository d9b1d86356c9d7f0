"""What a policy is: before every model call it looks at a check and its state, and decides on the view to send.

The same policy runs in a replay, where its views are priced by prefix sums, and in a live guard, where they are
materialised.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from guard_core.errors import GuardError
from guard_core.estimation.agents_view import largest_answered
from guard_core.estimation.estimators import Estimator
from guard_core.estimation.usage import CountedRun, Usage
from guard_core.ledger import Ledger
from guard_core.sessions import Session
from guard_core.summaries.base import Summarizer, Todo
from guard_core.summaries.sizes import NoSummaries
from guard_core.trace import WHOLE_LOG, Column, CompactionRecord, Head, Term, Trace
from guard_core.views import View, plain_values

State = Any  # a policy's own frozen value: what it remembers from step to step


class Point(StrEnum):
    """When a policy may look: its trigger points. A replay asks at those that the policy names, in this order."""

    AFTER_CALL = "after a call"  # the model has answered, the results of its tool calls are not in the log yet
    AFTER_RESULTS = "after tool results"  # the results of the last call are in the log, and the turn continues
    END_OF_TURN = "at the end of a turn"  # the last call of a turn was answered, and another turn follows
    BEFORE_TURN = "before a turn"  # the user's message is about to enter the log
    BEFORE_CALL = "before every call"
    ON_OVERFLOW = "on an overflow"  # the provider refused the request of this step: it is too large for the window


# Record-time caps need no point: they are the form of a policy's spans. Timers and the age of a cache are read from
# the times of events (`time_ms` of the ledger's events), where the recording has them.


class Check(NamedTuple):
    """What a policy may look at at one of its points before a model call.

    `at` events are in the log. `request_bytes` and `request` are the user's words of this turn (0: none, None: text not
    known). `session` is there where texts are: a live guard, a page that shows messages. `usage` is the provider,
    `attempt` counts how often it refused this step's request. `known` are the entries of this step that `scan` has
    computed from the same state (`Quiet.ahead`), None where it has not.
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
    usage: Usage | None = None
    point: Point = Point.BEFORE_CALL
    attempt: int = 0
    known: Mapping[str, int] | None = None


class Decision(NamedTuple):
    """The view to send, the new state, the entries of this step in the trace's columns by name (those that are left
    out keep their start value); `compaction` where one was made."""

    view: View
    state: State
    evidence: Mapping[str, float]
    compaction: CompactionRecord | None = None


@dataclass(frozen=True)
class ReplayRun:
    """What stays the same during a replay. `request_bytes` is per step: the user's words of its turn. `session` is
    there where texts are. `summarizer` writes what a run of steps in which a policy acts asks for."""

    ledger: Ledger
    window: int
    usage: Usage
    request_bytes: NDArray[np.int64]
    session: Session | None = None
    summarizer: Summarizer = field(default_factory=NoSummaries)
    todos: tuple[Todo, ...] = ()

    @cached_property
    def largest_answered(self) -> int:
        """The largest request in tokens that the provider answers; a larger one it refuses."""
        return largest_answered(self.usage, self.window)


class Quiet(NamedTuple):
    """A run of steps in which a policy did nothing: `columns` and `counted` have `size` entries; a number in place of a
    column is its value at every step.

    All of them send `head`. `ended`: the next step must be decided, it is not just the end of what was asked for.
    `ahead`: what the run knows of that step's entries, which `decide` then need not compute.
    """

    size: int
    columns: Mapping[str, NDArray[Any] | float]
    counted: CountedRun
    state: State
    ended: bool
    head: Head = WHOLE_LOG
    ahead: Mapping[str, int] | None = None


class Acted(NamedTuple):
    """A run of steps decided at once, at any of which a policy may have acted: as `Quiet`, with the head of every
    step's request and the compactions in their order."""

    size: int
    columns: Mapping[str, NDArray[Any]]
    counted: CountedRun
    state: State
    heads: Sequence[Head]
    compactions: tuple[CompactionRecord, ...]
    ended: bool = False


class Policy(Protocol):
    """What every policy does. Each policy's module has one such class; `guard_core.policies.POLICIES` lists them."""

    @property
    def name(self) -> str: ...

    @property
    def settings(self) -> Any:
        """A frozen value of all settings, by name."""
        ...

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns that a trace of this policy has beside the common ones."""
        ...

    @property
    def points(self) -> tuple[Point, ...]:
        """Its trigger points; BEFORE_CALL is always among them, for the view is decided there."""
        ...

    @property
    def moments(self) -> tuple[Point, ...]:
        """The moments at which it checks whether to compact; none where it never compacts. A replay may ask at more
        points (`points`), or hand it an earlier moment before the next call."""
        ...

    @property
    def state_type(self) -> type:
        """What its states are: a msgspec Struct, so that they can be stored as JSON (`dump_state`, `load_state`)."""
        ...

    def estimator(self, ledger: Ledger) -> Estimator:
        """Its own estimate of requests."""
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

    def scan(self, run: ReplayRun, start: int, stop: int, state: State) -> Quiet | Acted | None:
        """The steps from `start` (before `stop`) in which the policy does nothing, at once; or, of a policy whose
        requests follow from the log alone, all that it does in them.

        Must equal `decide` and `observe` step by step; a policy with ON_OVERFLOW ends the run at a
        request that the provider refuses (`ReplayRun.largest_answered`). None where a policy cannot look ahead.
        """
        ...

    def shadow(self, run: ReplayRun, trace: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        """The policy's arithmetic over requests that were really sent; see guard_core.replay.observe_recorded."""
        ...

    def explain(self, trace: Trace, step: int) -> tuple[Term, ...]:
        """The decision of one step as arithmetic: every number with its source and the step it was measured at."""
        ...


def dump_state(state: State) -> bytes:
    """A policy's state as JSON."""
    return msgspec.json.encode(state, enc_hook=plain_values, order="deterministic")


def load_state(policy: Policy, data: bytes) -> State:
    """The state again. Raises GuardError where the bytes are not one of this policy."""
    try:
        return msgspec.json.decode(data, type=policy.state_type)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise GuardError(f"this is not a state of the policy {policy.name}: {error}") from error
