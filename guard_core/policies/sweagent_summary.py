"""The summaries of the Complexity Trap: after every n turns a checkpoint of them takes their place.

Source of the rules: specification of new policies, section 2 (arXiv 2508.21433, `SummarizeEveryNTurns` of its fork of
SWE-agent). A turn is an answer with the observation that follows it. The task stays, and the newest turns. Profile
`hybrid` masks old observations in every request, too; the order of the two is ours: checkpoints are made of whole
observations.
"""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from guard_core.errors import SummaryFailed
from guard_core.estimation.usage import normal
from guard_core.events import Role
from guard_core.ledger import Ints, Ledger
from guard_core.policies.base import Acted, Check, Decision, Quiet, ReplayRun
from guard_core.policies.pieces.compared import TURNS
from guard_core.policies.pieces.lists import ListMemory, ListOutcome, ListPolicy, ListRequest, Sizes
from guard_core.policies.pieces.messages import (
    ASSISTANT,
    TOOL,
    USER,
    MessageCosts,
    messages_of,
    role_of,
    roles_of,
    view_of,
)
from guard_core.policies.pieces.shared_settings import summary_budget
from guard_core.policies.settings import COUNT, SWITCH, KnownProblem, PolicyKind, Profile, Setting
from guard_core.policies.sweagent import LineCount
from guard_core.trace import SUMMARISER_FAILED
from guard_core.views import Span, Synthetic, View

_SOURCE = "specification of new policies section 2; arXiv 2508.21433"
ONE = MessageCosts("events", lambda ledger, parts: np.ones(ledger.event_count, dtype=np.int64), lambda message: 1)


class SummaryMemory(ListMemory, frozen=True, omit_defaults=True):
    """All `checkpoints`, the number of turns `summarised`, and whether the last request had only the newest of them."""

    checkpoints: tuple[Synthetic, ...] = ()
    summarised: int = 0
    shortened: bool = False


SUMMARY, HYBRID = "summary", "hybrid"
# Messages of the user and tool results. No checkpoint is one.
OBSERVATIONS = MessageCosts(
    "unmasked observations",
    lambda ledger, parts: np.isin(roles_of(ledger), (USER, TOOL)).astype(np.int64),
    lambda message: 0,
)


class SweAgentSummarySettings(msgspec.Struct, frozen=True):
    """Numbers of turns; tokens. `keep_observations` is 0 where none is masked."""

    profile: str
    n: int
    keep_last_m_turns: int
    enable_static_checkpointing: bool
    keep_observations: int
    summary_budget: int


class SummarizeEveryNTurns(ListPolicy):
    """The policy; see the module. It compares the number of turns that are in no checkpoint."""

    name: ClassVar[str] = "sweagent-summary"
    relation: ClassVar[str] = ">="
    state_type: ClassVar[type] = SummaryMemory
    settings: SweAgentSummarySettings

    @property
    def compares(self) -> str:
        return TURNS

    def costs(self) -> MessageCosts:
        return ONE

    def limit(self, window: int) -> int:
        return self.settings.n + self.settings.keep_last_m_turns

    def counted(self, sizes: Sizes) -> Ints:
        return np.asarray(_turns_before(sizes.ledger, sizes.at) - sizes.state.summarised)

    def acts(self, sizes: Sizes, counted: Ints, limit: int) -> NDArray[np.bool_]:
        prefix = OBSERVATIONS.prefix(sizes.ledger)
        observations = np.asarray(
            OBSERVATIONS.view(sizes.ledger, sizes.head.view) + prefix[sizes.at] - prefix[sizes.head.kept_from]
        )
        masks = self._masked(observations) > 1
        return np.asarray(self.over(counted, limit) | masks)

    def _masked(self, observations: Any) -> Any:
        """How many of the oldest observations are masked, the first one counted, which stays."""
        return (observations - self.settings.keep_observations) * (self.settings.keep_observations > 0)

    def compact(self, request: ListRequest, state: SummaryMemory) -> ListOutcome:
        due = self.is_over(request.counted, request.limit)
        outcome = self._with_checkpoint(request, state) if due else ListOutcome(request.view, state)
        return self._with_masks(request, outcome)

    def _with_masks(self, request: ListRequest, outcome: ListOutcome) -> ListOutcome:
        """The outcome with the old observations masked in the request."""
        ledger, messages = request.ledger, messages_of(outcome.view)
        places = [place for place, message in enumerate(messages) if role_of(ledger, message) in (USER, TOOL)]
        masked = set(places[1 : max(int(self._masked(len(places))), 1)])
        if not masked:
            return outcome
        form = LineCount().name
        sent = (item.joined(form) if place in masked else item for place, item in enumerate(messages))
        words = "" if outcome.passes else f"{len(masked):,} observations but the first and the newest are masked"
        return outcome._replace(sent=view_of(ledger, sent), reason=words, held=0)

    def _with_checkpoint(self, request: ListRequest, state: SummaryMemory) -> ListOutcome:
        """The list with a checkpoint of its oldest turns."""
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
            return ListOutcome(request.view, failed, held=SUMMARISER_FAILED)
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
        return ListOutcome(after, remembered, (request.passed(given, after, summary_bytes=summary.bytes),))

    def decide(self, check: Check, state: SummaryMemory) -> Decision:
        return super().decide(check, _with_all_checkpoints(state))

    def scan(self, run: ReplayRun, start: int, stop: int, state: SummaryMemory) -> Quiet | Acted | None:
        return super().scan(run, start, stop, _with_all_checkpoints(state))

    def counted_over_log(self, ledger: Ledger) -> Ints:
        return _turns_before(ledger, ledger.steps["at"])


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
    (
        "Whenever enough turns have accumulated, replaces the oldest with a checkpoint; keeps the task and "
        "the newest turns."
    ),
    lambda **values: SummarizeEveryNTurns(SweAgentSummarySettings(**values)),
    (
        Setting(
            "n",
            "Turns summarised",
            COUNT,
            21,
            "turns that become a checkpoint once there are that many besides those kept",
            _SOURCE,
            unit="turns",
            least=1,
            profiles={HYBRID: 43},
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
            "the request sent when a checkpoint is made contains only that one; later requests contain all of them",
            _SOURCE,
        ),
        Setting(
            "keep_observations",
            "Observations kept",
            COUNT,
            0,
            "newest observations that are not masked in a request, in addition to the first one; 0: masks none",
            _SOURCE,
            unit="observations",
            profiles={HYBRID: 10},
        ),
        summary_budget(),
    ),
    (
        Profile(SUMMARY, "the paper's LLM-Summary: checkpoints of 21 turns, 10 turns stay"),
        Profile(HYBRID, "the paper's hybrid: masks old observations, and makes checkpoints of 43 turns"),
    ),
    known_problems=(
        KnownProblem(
            "Earlier checkpoints come back",
            (
                "With static checkpointing, one request lacks the earlier checkpoints and those after it "
                "contain them again."
            ),
            _SOURCE,
        ),
    ),
)
