"""VS Code Copilot: a summary is begun in the background near the limit, and used at the next call.

Source of the rules: specification of new policies, section 2 (agentIntent.ts, revision 31acd00a); not measured by
running. The budget is 85 % of the model's prompt limit less its tools. When a request has reached 75 % of it, the
summary of what it held is made while the agent works, and the next request has it in the place of that; what came
meanwhile stays. Not modelled: that it waits for the summary where a request reaches 95 % at once, compaction by the
provider with the Responses API, and edits by Anthropic's API.
"""

from __future__ import annotations

import math

import msgspec

from guard_core.policies.pieces.counted import CountedPolicy
from guard_core.policies.pieces.counters import UsageCounter
from guard_core.policies.pieces.plans import Ask, CompactableHistory, Plan, SummaryMessage
from guard_core.policies.pieces.shared_settings import summary_budget
from guard_core.policies.settings import COUNT, SHARE, PolicyKind, Setting
from guard_core.trace import NOTHING_TO_COMPACT

BUDGET_SHARE, BEGIN_SHARE = 0.85, 0.75
_SOURCE = "specification of new policies section 2"


class CopilotSettings(msgspec.Struct, frozen=True):
    """Shares of the window and of the budget; tokens."""

    budget_share: float
    begin: float
    tools: int
    summary_budget: int

    def budget(self, window: int) -> int:
        """Most tokens of the messages of a request."""
        return math.floor(max(window - self.tools, 0) * self.budget_share)


class VsCodeCopilot(CountedPolicy):
    """The policy; see the module."""

    settings: CopilotSettings
    name = "vscode-copilot"

    @property
    def counter(self) -> UsageCounter:
        return UsageCounter(output=False)

    def threshold(self, window: int) -> int:
        return math.ceil(self.settings.begin * self.settings.budget(window))

    def rule(self, window: int) -> str:
        item = self.settings
        return f"{item.begin * 100:g} % of {item.budget_share * 100:g} % of ({window:,} − {item.tools:,} of tools)"

    def plan(self, history: CompactableHistory) -> Plan | int:
        """A summary of what the last counted request held, then what came since."""
        messages, state = history.messages, history.state
        counted = int(history.ledger.steps["at"][state.as_of]) if state.as_of >= 0 else history.stop
        since = sum(1 for event in messages.event.tolist() if event >= counted)
        cut = len(messages) - since
        while cut and cut < len(messages) and messages.has_results[cut]:
            cut -= 1  # a result stays with its call
        if not cut:
            return NOTHING_TO_COMPACT
        summary = SummaryMessage((Ask(messages.between(0, cut), self.settings.summary_budget),))
        event = messages.event_at(cut, history.stop)
        return Plan((summary, *messages.between(cut, len(messages))), cut=(event,) * 3)


KIND = PolicyKind(
    "vscode-copilot",
    "VS Code Copilot",
    "Starts a summary in the background when a request reaches 75 % of its budget, and uses it at the next call.",
    lambda **values: VsCodeCopilot(CopilotSettings(**values)),
    (
        Setting(
            "begin",
            "Begins at",
            SHARE,
            BEGIN_SHARE,
            "share of the budget at which it starts the summary",
            _SOURCE,
            main=True,
            sweep=(0.75, 0.6, 0.9),
        ),
        Setting(
            "budget_share",
            "Budget",
            SHARE,
            BUDGET_SHARE,
            "share of the prompt limit, after subtracting the tools",
            _SOURCE,
            main=True,
        ),
        Setting("tools", "Tools", COUNT, 0, "tokens of tool definitions, subtracted first", _SOURCE, unit="tokens"),
        summary_budget(),
    ),
)
