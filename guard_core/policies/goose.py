"""Goose: above 80 % of the window, before a turn or after a refusal, everything becomes a summary.

Source of the rules: specification of policies, section 7 (revision 0036b819), and the specification of new policies,
section 1. The person's newest message stays, behind a summary and a text that asks to continue. In newer versions old
tool calls with their results become lines of their own, ten at a time: at every call those of earlier turns are
counted, and where there are enough of them the lines are written meanwhile and sent from the next call on. The calls of
the model that write them are not counted. Not modelled: results that are dropped, 10 to 100 % of them, where the
request for the summary overflows.
"""

from __future__ import annotations

import math

import msgspec
import numpy as np

from guard_core.costs import CALL
from guard_core.events import Role
from guard_core.ledger import Ints, Ledger
from guard_core.policies.base import Point
from guard_core.policies.pieces.counted import CountedMemory, CountedPolicy
from guard_core.policies.pieces.message_columns import Bools
from guard_core.policies.pieces.plans import Ask, CompactableHistory, Plan, SummaryMessage
from guard_core.policies.pieces.requests import requests_before
from guard_core.policies.pieces.shared_settings import summary_budget
from guard_core.policies.settings import COUNT, SHARE, SWITCH, KnownProblem, PolicyKind, Setting
from guard_core.views import Segment, Span, Synthetic, View

THRESHOLD = 0.8  # of the window; off where it is not between 0 and 1
PAIRS = 10  # calls with their results that become lines at a time
CALLS_PER_TOKENS = 3, 20_000  # calls that stay: so many for each 20,000 tokens of the threshold,
LEAST_CALLS, MOST_CALLS = 10, 500  # within these (specification of new policies, section 1)
LINE, CONTINUE = 120, 200  # bytes of a line, and of the text behind the summary; ours: the wording is not known
REFUSALS = 3  # of a turn; ours
_SPEC = "specification of policies section 7"
_NEW = "specification of new policies section 1"


class GooseSettings(msgspec.Struct, frozen=True):
    """`threshold` is a share of the window, `keep_calls` a number of calls."""

    threshold: float
    tool_pairs: bool
    keep_calls: int
    summary_budget: int


class GooseMemory(CountedMemory, frozen=True):
    """`calls_gone`: tool calls of the log that are in a summary or in a line."""

    calls_gone: int = 0


class Goose(CountedPolicy):
    """The policy; see the module."""

    settings: GooseSettings
    name = "goose"
    agent = "goose"
    relation = ">"
    state_type = GooseMemory

    @property
    def looks(self) -> tuple[Point, ...]:
        return (Point.BEFORE_TURN,)

    @property
    def most_refusals(self) -> int:
        return REFUSALS

    def threshold(self, window: int) -> int | None:
        share = self.settings.threshold
        return math.floor(share * window) if 0 < share < 1 else None

    def rule(self, window: int) -> str:
        return f"{self.settings.threshold * 100:g} % of {window:,}"

    def plan(self, history: CompactableHistory) -> Plan:
        requests = requests_before(history.ledger, history.stop)
        newest: View = (Span(requests[-1], requests[-1] + 1),) if requests and history.within_turn else ()
        summary = SummaryMessage((Ask(history.view, self.settings.summary_budget),))
        text = Synthetic("request to continue", CONTINUE, None, Role.MODEL)
        calls_before = int(_calls(history.ledger)[history.stop])
        return Plan((summary, text, *newest), cut=(history.stop,) * 3, remembers={"calls_gone": calls_before})

    # ---- calls and results that become lines

    def kept_calls(self, window: int) -> int:
        """The newest calls that stay as they are."""
        if self.settings.keep_calls:
            return self.settings.keep_calls
        calls, tokens = CALLS_PER_TOKENS
        return min(max(calls * int(window * self.settings.threshold) // tokens, LEAST_CALLS), MOST_CALLS)

    def clears(self, ledger: Ledger, rows: Ints, stop: Ints, state: GooseMemory, window: int) -> Bools:
        if not self.settings.tool_pairs:
            return super().clears(ledger, rows, stop, state, window)
        turn_start = np.maximum(ledger.steps["user_event"][np.maximum(rows - 1, 0)], 0)  # of the call before
        of_earlier_turns = _calls(ledger)[turn_start] - state.calls_gone
        return np.asarray((rows > 0) & (of_earlier_turns > self.kept_calls(window) + PAIRS))

    def clear(self, history: CompactableHistory) -> Plan:
        """The oldest calls with the results that follow them, each as a line."""
        messages, calls, cleared = history.messages, _calls(history.ledger), history.state.calls_gone
        items: list[Segment] = []
        index, left = 0, PAIRS
        while index < len(messages):
            own = messages.has_calls[index] and int(messages.event[index]) >= 0
            event = int(messages.event[index])
            count = int(calls[event + 1] - calls[event]) if own else 0
            if count and left > 0:
                cleared, left = cleared + count, left - count
                stop = index + 1
                while stop < len(messages) and messages.has_results[stop]:
                    stop += 1
                items.append(Synthetic("tool call in a line", LINE * count))
                index = stop
            else:
                items += messages.between(index, index + 1)
                index += 1
        return Plan(tuple(items), remembers={"calls_gone": cleared})


def _calls(ledger: Ledger) -> Ints:
    """Tool calls among the first 0, 1, 2 ... events."""
    return ledger.prefix_by("calls", lambda ledger: ledger.by_event((ledger.parts["kind"] == CALL).astype(np.int64)))


KIND = PolicyKind(
    "goose",
    "Goose",
    "Compacts above 80 % of the window before a turn; keeps a summary and the user's newest message.",
    lambda **values: Goose(GooseSettings(**values)),
    (
        Setting(
            "threshold",
            "Share of the window",
            SHARE,
            THRESHOLD,
            "GOOSE_AUTO_COMPACT_THRESHOLD; 0 and 1 turn it off",
            _SPEC,
            main=True,
            sweep=(0.8, 0.6, 0.4),
        ),
        Setting(
            "tool_pairs",
            "Calls as lines",
            SWITCH,
            False,
            "turns old tool calls with their results into one line each, ten at a time (on in newer versions)",
            _NEW,
            main=True,
        ),
        Setting(
            "keep_calls",
            "Calls kept",
            COUNT,
            0,
            (
                "how many of the newest tool calls stay unchanged; 0: depends on the window: 15 for 128,000, "
                "24 for 200,000, 120 for 1,000,000"
            ),
            _NEW,
            unit="calls",
            most=1_000_000,
            needs="tool_pairs",
        ),
        summary_budget(),
    ),
    known_problems=(
        KnownProblem(
            "Compaction silently does nothing",
            "Within a long turn nothing is checked until the provider refuses a request.",
            "goose issue 5162, " + _SPEC,
        ),
    ),
)
