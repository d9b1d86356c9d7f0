"""The summaries of the Complexity Trap: after every n turns a checkpoint of them takes their place.

Source of the rules: specification of new policies, section 2 (arXiv 2508.21433, `SummarizeEveryNTurns` of its fork of
SWE-agent). A turn is an answer with the observation that follows it. The task stays, and the newest turns. Not here:
the hybrid, which masks old observations besides.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from guard_core.errors import SummaryFailed
from guard_core.events import Role
from guard_core.ledger import Ints, Ledger
from guard_core.policies.base import Check, Decision, Quiet, Run
from guard_core.policies.pieces.lists import TURNS, ListMemory, ListPolicy, Outcome, Request, Sizes
from guard_core.policies.pieces.messages import ASSISTANT, Costs, roles_of
from guard_core.policies.settings import COUNT, SWITCH, KnownProblem, PolicyKind, Setting
from guard_core.trace import SUMMARISER_FAILED
from guard_core.usage import normal
from guard_core.views import Span, Synthetic, View

_SOURCE = "specification of new policies section 2; arXiv 2508.21433"
ONE = Costs("events", lambda ledger, parts: np.ones(ledger.event_count, dtype=np.int64), lambda message: 1)


class SummaryMemory(ListMemory, frozen=True, omit_defaults=True):
    """All `checkpoints`, the number of turns `summarised`, and whether the last request had only the newest of them."""

    checkpoints: tuple[Synthetic, ...] = ()
    summarised: int = 0
    shortened: bool = False


class SummarySettings(msgspec.Struct, frozen=True):
    """Numbers of turns; tokens."""

    n: int
    keep_last_m_turns: int
    enable_static_checkpointing: bool
    summary_budget: int


class SummarizeEveryNTurns(ListPolicy):
    """The policy; see the module. It compares the number of turns that are in no checkpoint."""

    name: ClassVar[str] = "sweagent-summary"
    relation: ClassVar[str] = ">="
    state_type: ClassVar[type] = SummaryMemory
    settings: SummarySettings

    @property
    def compares(self) -> str:
        return TURNS

    def costs(self) -> Costs:
        return ONE

    def limit(self, window: int) -> int:
        return self.settings.n + self.settings.keep_last_m_turns

    def counted(self, sizes: Sizes) -> Ints:
        return np.asarray(_turns_before(sizes.ledger, sizes.at) - sizes.state.summarised)

    def compact(self, request: Request, state: SummaryMemory) -> Outcome:
        ledger, at = request.ledger, request.check.at
        starts = _turns(ledger)
        summarised = state.summarised + self.settings.n
        first, stop = int(starts[state.summarised]), at
        if summarised < int(_turns_before(ledger, np.array([at]))[0]):
            stop = int(starts[summarised])
        task: View = (Span(0, int(starts[0])),) if starts[0] else ()
        given = (*(state.checkpoints[-1:] or task), Span(first, stop))
        try:
            summary, asked = request.summarise(state, given, self.settings.summary_budget)
        except SummaryFailed:
            failed = msgspec.structs.replace(state, calls=state.calls + 1)
            return Outcome(request.view, failed, held=SUMMARISER_FAILED)
        frame = f"Checkpoint for the last {self.settings.n} turns:\n"
        text = None if summary.text is None else frame + summary.text
        checkpoints = (*state.checkpoints, Synthetic("checkpoint", len(frame) + summary.bytes, text, Role.MODEL))
        static = self.settings.enable_static_checkpointing
        after = normal((*task, *(checkpoints[-1:] if static else checkpoints), Span(stop, at)))
        remembered = msgspec.structs.replace(
            asked,
            checkpoints=checkpoints,
            summarised=summarised,
            shortened=static and len(checkpoints) > 1,
            watermark=stop,
            summary_bytes=summary.bytes,
        )
        return Outcome(after, remembered, (request.passed(given, after, summary_bytes=summary.bytes),))

    def decide(self, check: Check, state: SummaryMemory) -> Decision:
        return super().decide(check, _with_all_checkpoints(state))

    def scan(self, run: Run, start: int, stop: int, state: SummaryMemory) -> Quiet | None:
        return super().scan(run, start, stop, _with_all_checkpoints(state))

    def shadow(self, run: Run, trace: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        counted, limit = _turns_before(run.ledger, run.ledger.steps["at"]), self.limit(run.window)
        fired = np.asarray(self.over(counted, limit), dtype=np.int64)
        return {**super().shadow(run, trace), **self._compared(counted, np.full(len(counted), limit)), "fired": fired}


def _with_all_checkpoints(state: SummaryMemory) -> SummaryMemory:
    """The list with all its checkpoints, where the last request had only the newest of them."""
    if not state.shortened:
        return state
    return msgspec.structs.replace(state, head=(*state.head[:-1], *state.checkpoints), shortened=False)


def _turns(ledger: Ledger) -> Ints:
    """The events at which turns begin: answers that something other than an answer follows."""
    if "answered turns" not in ledger.derived:
        answers = roles_of(ledger) == ASSISTANT
        ledger.derived["answered turns"] = np.flatnonzero(answers[:-1] & ~answers[1:])
    turns: Ints = ledger.derived["answered turns"]
    return turns


def _turns_before(ledger: Ledger, at: Ints) -> Ints:
    """How many turns are complete in the first `at` events."""
    return np.searchsorted(_turns(ledger) + 1, at)


KIND = PolicyKind(
    SummarizeEveryNTurns.name,
    "SWE-agent (summary every n turns)",
    "Replaces the oldest turns by a checkpoint each time there are enough; keeps the task and the newest turns.",
    lambda **values: SummarizeEveryNTurns(SummarySettings(**values)),
    (
        Setting(
            "n",
            "Turns summarised",
            COUNT,
            21,
            "turns that become a checkpoint, as soon as there are as many beside those kept (the paper's hybrid: 43)",
            _SOURCE,
            unit="turns",
            least=1,
            main=True,
            sweep=(10, 21, 43),
        ),
        Setting(
            "keep_last_m_turns",
            "Turns kept",
            COUNT,
            10,
            "newest turns that stay",
            _SOURCE,
            unit="turns",
            main=True,
            sweep=(5, 10, 20),
        ),
        Setting(
            "enable_static_checkpointing",
            "Newest checkpoint only",
            SWITCH,
            True,
            "the request at which a checkpoint is made has no earlier one; those after it have all",
            _SOURCE,
        ),
        Setting(
            "summary_budget",
            "Summary budget",
            COUNT,
            4_000,
            "the size that a share of the summary budget refers to",
            "ours",
            unit="tokens",
            least=1,
        ),
    ),
    known_problems=(
        KnownProblem(
            "Earlier checkpoints come back",
            "With the newest checkpoint only, one request is without the earlier ones; those after it have them.",
            _SOURCE,
        ),
    ),
)
