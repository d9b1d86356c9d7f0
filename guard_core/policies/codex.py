"""Codex: fires at 90 % of the window on the last count and what was added since, and keeps the user's own messages.

Source of the rules: specification of policies, section 4, and recorded runs of Codex 0.169.0 with known settings.
Tool outputs are capped when they enter the log. A compaction leaves the initial context, the newest user messages
within a budget, and a summary as the last message; every answer, call and output goes.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from guard_core.costs import HAS_RESULT, MODEL, RESULT
from guard_core.ledger import Ints, Ledger
from guard_core.policies.base import Point
from guard_core.policies.pieces.counted import CountedPolicy
from guard_core.policies.pieces.counters import UsageCounter
from guard_core.policies.pieces.estimates import HEURISTIC, TokenEstimate, part_chars, rounded_up
from guard_core.policies.pieces.plans import Ask, CompactableHistory, Plan, SummaryMessage, fitting
from guard_core.policies.pieces.requests import newest_requests
from guard_core.policies.pieces.shared_settings import summary_budget
from guard_core.policies.settings import COUNT, NUMBER, SHARE, SIZE, SWITCH, KnownProblem, PolicyKind, Profile, Setting
from guard_core.sessions import Provenance, Session
from guard_core.views import Span
from guard_core.windows.window_evidence import CODEX_USABLE

BYTES_PER_TOKEN = 4  # section 4.1: ceil(bytes / 4)
USUAL_ID = 29  # characters of an id that OpenAI gives a call, where a recording has none
PREFIX_BYTES = 320  # of the fixed text before a summary: recorded runs of 0.169.0
NO_SUMMARY_BYTES = len("(no summary available)")  # section 4.1
_SPEC = "specification of policies, section"


def default_limit(raw_window: int) -> int:
    """90 % of the model's window, in tokens: the limit, and the most that one set by hand can be (section 4.1)."""
    return raw_window * 9 // 10


class CodexSettings(msgspec.Struct, frozen=True):
    """Sizes in tokens unless the name says bytes. `limit` is "auto", tokens or a share of the window."""

    profile: str
    limit: str
    usable_share: float
    count_pending: bool
    output_cap: int
    cap_factor: float
    user_budget: int
    summary_budget: int

    def threshold(self, window: int) -> int:
        """Tokens at which it fires: the limit set by hand, at most 90 % of the raw window."""
        raw = round(window / self.usable_share)
        most = default_limit(raw)
        if self.limit == "auto":
            return most
        share = self.limit.endswith("%")
        return min(most, int(raw * float(self.limit[:-1]) / 100) if share else int(self.limit))

    @property
    def form(self) -> str:
        """The form in which every event enters the log; 0 tokens means that nothing is capped."""
        return f"capped:{int(self.output_cap * BYTES_PER_TOKEN * self.cap_factor)}" if self.output_cap else ""


class Codex(CountedPolicy):
    """The policy; see the module."""

    settings: CodexSettings
    name = "codex"
    agent = "codex"

    @property
    def looks(self) -> tuple[Point, ...]:
        return (Point.AFTER_RESULTS, Point.BEFORE_TURN)

    @property
    def counter(self) -> UsageCounter:
        if not self.settings.count_pending:
            return UsageCounter(pending_words="this version does not count it")
        return UsageCounter(
            pending=output_tokens, pending_words="ceil((bytes + characters of its call's id) / 4) of each tool output"
        )

    @property
    def uncounted(self) -> TokenEstimate:
        return HEURISTIC

    @property
    def form(self) -> str:
        return self.settings.form

    def threshold(self, window: int) -> int:
        return self.settings.threshold(window)

    def rule(self, window: int) -> str:
        raw, limit = round(window / self.settings.usable_share), self.settings.limit
        most = f"{raw:,} x 9 // 10"
        return most if limit == "auto" else f"min({limit}, {most})"

    def plan(self, history: CompactableHistory) -> Plan:
        """Initial context, user messages, summary: in the middle of a turn the context goes before the last user
        message, before a turn it follows the summary."""
        given, dropped = fitting(history, history.view)
        asks = (Ask(given, self.settings.summary_budget),)
        summary = SummaryMessage(asks, frame=PREFIX_BYTES, if_none=NO_SUMMARY_BYTES)
        context = _initial_context(history.ledger, history.stop)
        users = newest_requests(history.ledger, history.stop, self.settings.user_budget)
        if history.within_turn:
            return Plan((*users[:-1], *context, *users[-1:], summary), cut=(history.stop,) * 3, dropped=dropped)
        notes = ("before a turn: the initial context follows the summary",)
        return Plan((*users, summary, *context), (history.stop,) * 3, notes, dropped)


def output_tokens(ledger: Ledger, form: str = "") -> Ints:
    """The estimate of each event's tool outputs as they are recorded: of each ceil((UTF-8 bytes + characters of the
    call's id) / 4). By runs of 0.171.0 with ids of 10 to 47 characters, 180 checks within 8 tokens of the threshold;
    with ids of 25, 785 checks of 0.96.0 to 0.169.0."""
    ids = ledger.parts["id_chars"]
    tokens = rounded_up(part_chars(ledger, form, "bytes") + np.where(ids > 0, ids, USUAL_ID))
    return ledger.by_event(np.where(ledger.parts["kind"] == RESULT, tokens, 0))


def _initial_context(ledger: Ledger, stop: int) -> tuple[Span, ...]:
    """What is in the log before the first message of the user: environment, instructions."""
    turns = ledger.turn_starts[:1]
    first = int(turns[0]) if len(turns) and turns[0] < stop else 0
    own = np.flatnonzero(ledger.events["flags"][:first] & (MODEL | HAS_RESULT))
    first = int(own[0]) if len(own) else first
    return (Span(0, first),) if first else ()


def _of_session(session: Session) -> dict[str, Any]:
    """What a recording of Codex settles: its window is the usable part of the model's."""
    return (
        {"usable_share": CODEX_USABLE}
        if session.format == "codex" and session.window is not None and session.window.source is Provenance.RECORDER
        else {}
    )


KIND = PolicyKind(
    "codex",
    "Codex",
    "Compacts at 90 % of the window, counting what was added since the last call; keeps user messages and a summary.",
    lambda **values: Codex(CodexSettings(**values)),
    (
        Setting(
            "limit",
            "Limit",
            SIZE,
            "auto",
            "auto (90 % of the window), tokens, or a share such as 80%",
            f"{_SPEC} 4.1",
            unit="tokens",
            main=True,
            sweep=("auto", "80%", "70%", "60%", "50%"),
        ),
        Setting(
            "user_budget",
            "User messages",
            COUNT,
            20_000,
            "budget for the newest user messages, which are kept",
            f"{_SPEC} 4.1",
            unit="tokens",
            main=True,
        ),
        Setting(
            "output_cap",
            "Output cap",
            COUNT,
            10_000,
            "maximum size of each tool output when it is recorded (0: no limit)",
            f"{_SPEC} 4.1",
            unit="tokens",
            main=True,
        ),
        Setting(
            "cap_factor",
            "Cap factor",
            NUMBER,
            1.2,
            "multiplies the output cap",
            f"{_SPEC} 4.1",
            most=10,
            profiles={"seed": 1.0},
            needs="output_cap",
        ),
        Setting(
            "count_pending",
            "Count pending",
            SWITCH,
            True,
            "also counts the tool outputs added since the last call",
            f"{_SPEC} 4.1",
            profiles={"seed": False},
        ),
        Setting(
            "usable_share",
            "Usable share",
            SHARE,
            1.0,
            "the given window as a share of the model's raw window (0.95 in Codex recordings)",
            "recorded runs of 0.169.0",
            least=0.01,
        ),
        summary_budget("Codex"),
    ),
    (
        Profile("current", "mid-2026: also counts what was added since the last call"),
        Profile("seed", "November 2025: counts only the last call"),
    ),
    of_session=_of_session,
    known_problems=(
        KnownProblem(
            "The summary request does not fit the window",
            "If the history does not fit the window, its oldest items are dropped without being summarised.",
            "openai/codex issues 24014, 29319, 11071, 23589",
        ),
        KnownProblem(
            "Nearly full after the compaction",
            "The initial context and user messages up to their budget stay, so the next request may still be large.",
            "openai/codex issue 40856",
        ),
        KnownProblem(
            "The task is lost",
            "Answers, calls and outputs are all removed; unless the summary mentions what they contained, it is lost.",
            "openai/codex issues 18720, 11054, 9505",
        ),
    ),
)
