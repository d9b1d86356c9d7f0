"""Letta: above the window, the oldest messages become a summary, a tenth more of them until little enough is left.

Source of the rules: specification of new policies, section 2, and letta 0.16.8, services/summarizer (compact.py,
summarizer_sliding_window.py, thresholds.py), compared with runs of these functions. What stays is counted as the
messages and the system prompt in JSON, a quarter of the characters times a margin; Letta asks the provider for that
count where the model is Anthropic's or Google's. If the messages and the tools are still too many after that, all that
stayed becomes a summary, too, and the first summary is thrown away: here it is not asked for. Not here: a summary that
is clipped at 50,000 characters, approvals, the modes other than `sliding_window`, the error that ends a run whose
system prompt fills the window.
"""

from __future__ import annotations

import json
from math import ceil

import msgspec
import numpy as np

from guard_core.costs import CALL, RESULT, TEXT
from guard_core.ledger import Ints, Ledger
from guard_core.policies.base import Point
from guard_core.policies.pieces.counted import CountedPolicy
from guard_core.policies.pieces.counters import UsageCounter
from guard_core.policies.pieces.messages import SYSTEM_ROLE, TOOL, USER, MessageCosts, roles_of
from guard_core.policies.pieces.plans import Ask, CompactableHistory, Plan, SummaryMessage
from guard_core.policies.pieces.shared_settings import sliding_share, summary_budget
from guard_core.policies.settings import NUMBER, SHARE, KnownProblem, PolicyKind, Profile, Setting
from guard_core.trace import NOTHING_TO_COMPACT
from guard_core.views import View

STANDARD, GPT_5, CURRENT = "standard", "gpt-5", "0.16.7"
SLIDING_SHARE = 0.3  # sliding_window_percentage
STEP = 0.10  # more messages go in each round; it is added before the first one, too
REFUSALS = 3  # compactions of a turn after refusals; ours
MARGIN = 1.3  # APPROX_TOKEN_SAFETY_MARGIN
BYTES_PER_TOKEN = 4  # ApproxTokenCounter
_SOURCE = "specification of new policies section 2"
_CODE = "letta 0.16.8, services/summarizer"


def _frame(message: object) -> int:
    """Characters of a JSON value and of the comma and blank behind it in a list."""
    return len(json.dumps(message)) + len(", ")


# Characters of a message besides its text: of USER, ASSISTANT, TOOL, SYSTEM_ROLE, each with a text that is empty.
FRAMES = tuple(_frame({"content": "", "role": role}) for role in ("user", "assistant", "tool", "system"))
CALLS = len(json.dumps({"": 0, "tool_calls": []})) - len(json.dumps({"": 0}))  # of an answer that calls
CALL_FRAME = _frame({"id": "", "function": {"arguments": "", "name": ""}, "type": "function"})
RESULT_FRAME = len(json.dumps({"": 0, "tool_call_id": ""})) - len(json.dumps({"": 0}))
NO_TEXT = len("null") - len('""')  # of an answer that only calls


def _json(ledger: Ledger, parts: dict[str, Ints]) -> Ints:
    """Characters of each event as OpenAI's messages in JSON, in ASCII alone. Arguments are JSON within JSON."""
    kind, astral = parts["kind"], parts["utf16"] - parts["chars"]
    is_call, is_result = kind == CALL, kind == RESULT
    text = parts["json_chars"] - len('""') + 5 * parts["non_ascii"] + 6 * astral
    arguments = text + parts["non_ascii"] + astral + parts["separators"]
    results = text + parts["id_chars"] + FRAMES[TOOL] + RESULT_FRAME
    sizes = np.where(is_call, arguments + parts["id_chars"] + parts["name_chars"] + CALL_FRAME, 0)
    sizes = np.where(is_result, results, np.where(kind == TEXT, text, sizes))
    calls, texts, answered = (ledger.by_event((kind == of).astype(np.int64)) for of in (CALL, TEXT, RESULT))
    frames = np.array(FRAMES)[roles_of(ledger)] + np.where(calls > 0, CALLS - len(", ") + NO_TEXT * (texts == 0), 0)
    return np.asarray(ledger.by_event(sizes) + np.where(answered > 0, 0, frames))


COSTS = MessageCosts("letta messages", _json, lambda message: message.bytes + FRAMES[USER])


class LettaSettings(msgspec.Struct, frozen=True):
    """Shares of the window and of the messages; a factor; tokens."""

    profile: str
    threshold: float
    sliding_window_percentage: float
    safety_margin: float
    summary_budget: int


class Letta(CountedPolicy):
    """The policy; see the module."""

    settings: LettaSettings
    name = "letta"
    relation = ">"

    @property
    def looks(self) -> tuple[Point, ...]:
        return (Point.AFTER_RESULTS, Point.END_OF_TURN)

    @property
    def counter(self) -> UsageCounter:
        return UsageCounter()

    @property
    def most_refusals(self) -> int:
        return REFUSALS

    def threshold(self, window: int) -> int:
        return int(window * self.settings.threshold)

    def rule(self, window: int) -> str:
        return f"{self.settings.threshold * 100:g} % of {window:,}"

    def plan(self, history: CompactableHistory) -> Plan | int:
        """A summary of the oldest messages, and the others from an answer on; of all where no round leaves little
        enough. A system message at the beginning stays."""
        messages = history.messages
        system = int(len(messages) > 0 and bool(messages.is_system[0]))
        if len(messages) <= system:
            return NOTHING_TO_COMPACT
        cut = self._cut(history, 1 - system)
        given, cut, lost = messages.between(system, cut), cut, 0
        if cut < len(messages) and self._is_too_much(history, system, cut):
            given, cut, lost = messages.between(cut, len(messages)), len(messages), cut - system
        summary = SummaryMessage((Ask(given, self.settings.summary_budget),))
        tail = messages.between(cut, len(messages))
        event = messages.event_at(cut, history.stop)
        return Plan((*messages.between(0, system), summary, *tail), cut=(event,) * 3, dropped=lost)

    def _is_too_much(self, history: CompactableHistory, system: int, cut: int) -> bool:
        """Do a system message and the messages from `cut` on reach the threshold, with the tools."""
        messages = history.messages
        remaining = (*messages.between(0, system), *messages.between(cut, len(messages)))
        tools = int(history.ledger.tools_tokens * self.settings.safety_margin)
        return self._tokens(history.ledger, remaining, 1 - system) + tools >= self.threshold(history.check.window)

    def _tokens(self, ledger: Ledger, view: View, unlisted: int) -> int:
        """Tokens of some messages, with a system prompt that is `unlisted` among them."""
        size = COSTS.view(ledger, view) + unlisted * (FRAMES[SYSTEM_ROLE] + ledger.system_chars)
        return int(ceil(size / BYTES_PER_TOKEN) * self.settings.safety_margin)

    def _cut(self, history: CompactableHistory, unlisted: int) -> int:
        """The answer from which on messages stay; their number where there is none that leaves little enough.
        `unlisted` is 1 where the system message, which Letta counts among its messages, is not one of the list."""
        messages, ledger = history.messages, history.ledger
        listed = len(messages)
        count, answers = listed + unlisted, np.flatnonzero(messages.is_model) + unlisted
        goal = (1 - self.settings.sliding_window_percentage) * history.check.window
        share, left, cut = self.settings.sliding_window_percentage, history.check.window, 0
        while left >= goal and share < 1.0:
            share += STEP
            before = answers[(answers >= 1) & (answers <= round(share * count))]
            if len(before):
                cut = int(before[-1])
                remaining = (*messages.between(0, 1 - unlisted), *messages.between(cut - unlisted, listed))
                left = self._tokens(ledger, remaining, unlisted)
        return cut - unlisted if 0 < cut < count - 1 and share < 1.0 else listed


KIND = PolicyKind(
    "letta",
    "Letta",
    (
        "Above the window, summarises the oldest 40 % of the messages, and another tenth at a time until at "
        "most 70 % of the window is used."
    ),
    lambda **values: Letta(LettaSettings(**values)),
    (
        Setting(
            "threshold",
            "Share of the window",
            SHARE,
            1.0,
            "compacts once the last request and its answer have more tokens than this share of the window",
            f"{_SOURCE}; thresholds.py",
            profiles={GPT_5: 0.9, CURRENT: 0.9},
            main=True,
            sweep=(1.0, 0.9, 0.7),
        ),
        sliding_share(SLIDING_SHARE, f"{_SOURCE}; summarizer_sliding_window.py"),
        Setting(
            "safety_margin",
            "Margin of the estimate",
            NUMBER,
            MARGIN,
            "factor on the estimate of what stays; 1 where Anthropic or Google count it",
            f"{_CODE}, summarizer_sliding_window.py",
            least=1,
            most=10,
        ),
        summary_budget(),
    ),
    (
        Profile(STANDARD, "most models before 0.16.7: the whole window"),
        Profile(GPT_5, "models of the GPT-5 family: 90 % of it"),
        Profile(CURRENT, "0.16.7 and 0.16.8: 90 % of it for every model"),
    ),
    known_problems=(
        KnownProblem(
            "Summarises more than documented",
            (
                "The documentation says that 30 % of the messages are summarised; the first round takes 40 %, "
                "because a tenth is added first."
            ),
            _SOURCE,
        ),
        KnownProblem(
            "A summary is thrown away",
            (
                "If what stays is still above the threshold with the tools, it becomes a summary as well; the first "
                "summary is not in it, so that all that was before is lost."
            ),
            f"{_CODE}, compact.py",
        ),
    ),
)
