"""The compactions of the OpenAI Agents SDK: of a stored session after a turn, or by the server within a request.

Source of the rules: openai-agents 0.24.0, `memory/openai_responses_compaction_session.py` with scripted runs of it
(profile `session`) and `sandbox/capabilities/compaction.py` by reading (`sandbox`); specification of new policies
section 2. A session counts the items since its last compaction that are not the user's: an answer's text, its
reasoning, each tool call and each result. What a compaction leaves is encrypted, so that only its size is modelled.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from guard_core.costs import CALL, HAS_CALL, MODEL, REASONING, RESULT, TEXT
from guard_core.estimation.usage import CountedRun
from guard_core.events import Role
from guard_core.ledger import Ints, Ledger
from guard_core.policies.base import Point
from guard_core.policies.pieces.compared import ITEMS, TOKENS
from guard_core.policies.pieces.lists import ListMemory, ListOutcome, ListRequest, Sizes
from guard_core.policies.pieces.message_columns import of_the_user
from guard_core.policies.pieces.messages import MessageCosts
from guard_core.policies.pieces.shared_settings import summary_budget
from guard_core.policies.pieces.stages import Act, ScanRequest, StagedPolicy
from guard_core.policies.providers.compaction import OPAQUE, replaced
from guard_core.policies.providers.requests import COUNT_SOURCE, ProviderPolicy
from guard_core.policies.settings import COUNT, SHARE, KnownProblem, PolicyKind, Profile, Setting
from guard_core.summaries.base import Summary
from guard_core.trace import NOTHING_TO_COMPACT, Head
from guard_core.views import Synthetic, View, followed, shared

SESSION, SANDBOX = "session", "sandbox"
_SOURCE = "openai-agents 0.24.0"


def _items(ledger: Ledger, parts: dict[str, Ints]) -> Ints:
    """The items of each event that may be compacted: calls, results, reasoning, and the texts of an answer as one."""
    kind, of_model = parts["kind"], (ledger.events["flags"][parts["event"]] & MODEL) > 0
    texts = ledger.by_event(((kind == TEXT) & of_model).astype(np.int64)) > 0
    return np.asarray(ledger.by_event(np.isin(kind, (CALL, RESULT, REASONING)).astype(np.int64)) + texts)


CANDIDATES = MessageCosts("openai-agents items", _items, lambda message: 0)


class OpenAiAgentsSettings(msgspec.Struct, frozen=True):
    """`compact_threshold` is 0 where a share of the window is the threshold."""

    profile: str = SESSION
    threshold_items: int = 10
    threshold: float = 0.9
    compact_threshold: int = 0
    summary_budget: int = 4_000


class OpenAiAgents(ProviderPolicy, StagedPolicy):
    """The policy; see the module."""

    name: ClassVar[str] = "openai-agents"
    points: ClassVar[tuple[Point, ...]] = (Point.END_OF_TURN, Point.BEFORE_CALL)
    settings: OpenAiAgentsSettings

    @property
    def acts_in_runs(self) -> bool:  # type: ignore[override]
        return self.is_session

    @property
    def is_session(self) -> bool:
        return self.settings.profile == SESSION

    @property
    def relation(self) -> str:  # type: ignore[override]
        return ">=" if self.is_session else ">"

    @property
    def compares(self) -> str:
        return ITEMS if self.is_session else TOKENS

    def limit(self, window: int) -> int:
        if self.is_session:
            return self.settings.threshold_items
        return self.settings.compact_threshold or int(window * self.settings.threshold)

    def counted(self, sizes: Sizes) -> Ints:
        return _candidates(sizes) if self.is_session else super().counted(sizes)

    def acts(self, sizes: Sizes, counted: Ints, limit: int) -> NDArray[np.bool_]:
        return self.over(counted, limit) & (not self.is_session)

    def acts_after_turn(self, sizes: Sizes) -> NDArray[np.bool_]:
        """A session is compacted once the turn has its final answer."""
        if not self.is_session or not sizes.ledger.event_count:
            return super().acts_after_turn(sizes)
        answered = _is_answered(sizes.ledger)[sizes.at]
        return np.asarray(self.over(_candidates(sizes), self.limit(sizes.window)) & answered)

    def compact(self, request: ListRequest, state: ListMemory) -> ListOutcome:
        users = of_the_user(request.ledger, request.view) if self.is_session else ()

        def leaves(summary: Summary) -> View:
            return _behind(users, summary)

        return replaced(request, state, request.view, request.check.at, self.settings.summary_budget, leaves)

    # Sessions: what is compacted follows from their items alone

    def searched(self, window: int) -> tuple[MessageCosts, int]:
        return CANDIDATES, self.settings.threshold_items - 1

    def walks(self, ledger: Ledger, state: ListMemory) -> bool:
        return self.is_session and ledger.event_count > 0

    def act(self, asked: ScanRequest, row: int, head: Head, state: ListMemory) -> Act | int | None:
        ledger, end = asked.ledger, asked.looks.item(row)
        if not _is_answered(ledger).item(end):
            return NOTHING_TO_COMPACT
        view, budget = head.at(ledger, end), self.settings.summary_budget
        users = of_the_user(ledger, view)
        summary, after, given = asked.summarised(row, view, self.estimator(ledger), state, budget)
        if not summary.bytes:
            return None
        after = msgspec.structs.replace(after, watermark=end, summary_bytes=summary.bytes)
        return Act(self._head(shared(view, _behind(users, summary)), end), after, (given,))

    def noted_of_counts(self, counted: CountedRun) -> dict[str, Ints]:
        return {COUNT_SOURCE.name: np.where(counted.tokens >= 0, counted.source, 0)}


def _candidates(sizes: Sizes) -> Ints:
    """Items since the last compaction that may be compacted."""
    prefix, head = CANDIDATES.prefix(sizes.ledger), sizes.head
    return np.asarray(CANDIDATES.view(sizes.ledger, head.view) + prefix[sizes.at] - prefix[head.kept_from])


def _is_answered(ledger: Ledger) -> NDArray[np.bool_]:
    """Does a log of so many events end with an answer that calls nothing."""
    if "openai-agents answered" not in ledger.derived:
        flags = ledger.events["flags"]
        ledger.derived["openai-agents answered"] = np.append(False, ((flags & MODEL) > 0) & ((flags & HAS_CALL) == 0))
    answered: NDArray[np.bool_] = ledger.derived["openai-agents answered"]
    return answered


def _behind(users: View, summary: Summary) -> View:
    """The item that takes the place of all others, behind the messages of the user."""
    return followed(users, len(users), (Synthetic(OPAQUE, summary.bytes, None, Role.MODEL),))


KIND = PolicyKind(
    OpenAiAgents.name,
    "OpenAI Agents SDK",
    (
        "Compacts a stored session after a turn once it has ten items, or lets the server compact at a share "
        "of the window."
    ),
    lambda **values: OpenAiAgents(OpenAiAgentsSettings(**values)),
    (
        Setting(
            "threshold_items",
            "Items",
            COUNT,
            10,
            "compacts after a turn once the session has this many items, not counting the user's",
            f"{_SOURCE}, DEFAULT_COMPACTION_THRESHOLD",
            unit="items",
            least=1,
            most=10_000_000,
            not_in=(SANDBOX,),
            main=True,
            sweep=(10, 40, 100),
        ),
        Setting(
            "threshold",
            "Share of the window",
            SHARE,
            0.9,
            "the server compacts above this share",
            f"{_SOURCE}, DynamicCompactionPolicy",
            not_in=(SESSION,),
            main=True,
        ),
        Setting(
            "compact_threshold",
            "Token threshold",
            COUNT,
            0,
            "a fixed threshold instead (240,000 for models the SDK does not know); 0: the share",
            f"{_SOURCE}, StaticCompactionPolicy",
            unit="tokens",
            not_in=(SESSION,),
        ),
        summary_budget(label="Size of an item"),
    ),
    (
        Profile(SESSION, "OpenAIResponsesCompactionSession: after a turn, by number of items"),
        Profile(SANDBOX, "the sandbox agent: the server compacts within a request, by tokens"),
    ),
    known_problems=(
        KnownProblem(
            "Items are counted, not tokens",
            (
                "Ten short items are compacted, while a single result larger than the window is not, neither "
                "within a turn nor after it."
            ),
            f"{_SOURCE}, by reading",
        ),
    ),
)
