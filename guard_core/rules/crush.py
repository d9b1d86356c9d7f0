"""Crush: a remainder of 20,000 tokens in windows above 200,000, of a fifth in smaller ones.

Source: agent.go of Crush, revision 37f36e93, as specified; not measured by running. Databases name no version: sessions
that ended before 27 October 2025 are of one that took 80 % of any window (specification of policies, section 5). The
OpenCode in Go, from which Crush comes and whose databases are alike, compacts from 95 % on when an answer has ended,
and did not before 9 May 2025 (internal/tui/tui.go of opencode-ai/opencode, revision 90084ce).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import msgspec

from guard_core.policies.crush import SHARE_OF_WINDOW, USED_SHARE, buffer_of
from guard_core.recordings.formats.crush import SUMMED_UNTIL
from guard_core.rules.base import Agent, Hypothesis, Keeps, KeptShape, Moment, OwnRule, Stretch
from guard_core.rules.counters import LAST_TOTAL, TOTAL
from guard_core.rules.settings import AUTO, SWITCH_WORDS, WINDOW, Typed, window_setting
from guard_core.rules.thresholds import share_of, windows_of
from guard_core.sessions import Session

BUFFER_FROM = 1_761_523_200  # seconds: 27 October 2025
GO_SHARE = 0.95  # of the window


def rule(stretch: Stretch, _: Typed) -> OwnRule:
    """The window less the policy's buffer for it."""
    window = stretch.window
    return OwnRule(
        policy="crush",
        settings=(window_setting(window),),
        counter=TOTAL,
        threshold=window.value - buffer_of(window.value) if window else None,
        formula=_formula(window.value) if window else "window − 20,000, or − 20 % of one up to 200,000",
    )


def _formula(window: int) -> str:
    return f"{window:,} − {buffer_of(window):,} (buffer)"


def variants(stretch: Stretch, _: Typed) -> Iterable[Hypothesis]:
    """Other windows."""
    for window, other in windows_of(stretch):
        yield Hypothesis(_formula(window), window - buffer_of(window), other)


def share_rule(stretch: Stretch, _: Typed) -> OwnRule:
    """80 % of the window: of a session that ended before Crush kept a buffer."""
    own = OwnRule(policy="crush", profile=SHARE_OF_WINDOW, settings=(), counter=TOTAL, threshold=None, formula="")
    own = msgspec.structs.replace(own, agent=AGENT.label)
    return _with_share(own, stretch, USED_SHARE, relation=">")


def go_rule(stretch: Stretch, _: Typed) -> OwnRule:
    """95 % of the window: of the OpenCode in Go."""
    own = OwnRule(policy="none", settings=(), counter=TOTAL, threshold=None, formula="", checks=Moment.TURN_END)
    return _with_share(own, stretch, GO_SHARE)


def early_go_rule(stretch: Stretch, _: Typed) -> OwnRule:
    """None: of a session that ended before the OpenCode in Go compacted by itself."""
    return OwnRule(
        policy="none",
        settings=(window_setting(stretch.window),),
        counter=TOTAL,
        threshold=None,
        formula="",
        checks=Moment.NEVER,
        reason="no version of that time did",
    )


def _shares(share: float) -> Callable[[Stretch, Typed], Iterable[Hypothesis]]:
    """The same share of other windows."""
    return lambda stretch, _: (Hypothesis(*share_of(share, window), other) for window, other in windows_of(stretch))


def _with_share(own: OwnRule, stretch: Stretch, share: float, relation: str = ">=") -> OwnRule:
    window = stretch.window
    formula, threshold = share_of(share, window.value) if window else (f"{share * 100:g} % of the window", None)
    about = {"settings": (window_setting(window),), "formula": formula, "threshold": threshold}
    return msgspec.structs.replace(own, relation=relation, **about)


def _ended_before(session: Session, time: float) -> bool:
    ended = next((call.timestamp for call in reversed(session.calls) if call.timestamp), None)
    return ended is not None and ended < time


KEEPS = Keeps("the summary alone", KeptShape.NOTHING)  # Source: agent.go of Crush, as above

AGENT = Agent(
    format="crush",
    label="Crush",
    rule=rule,
    plays={"crush": {}},
    variants=variants,
    counter=lambda _: LAST_TOTAL,
    names={AUTO: SWITCH_WORDS},
    aliases={"disable_auto_summarize": f"!{AUTO}", "context_window": WINDOW},
    keeps=lambda _, __: KEEPS,
)
SHARE_AGENT = replace(
    AGENT,
    label="Crush (before 27 October 2025)",
    rule=share_rule,
    variants=_shares(USED_SHARE),
    wrote=lambda session: session.agent == "Crush" and _ended_before(session, BUFFER_FROM),
)
GO_AGENT = replace(
    AGENT,
    label="OpenCode (in Go)",
    rule=go_rule,
    variants=_shares(GO_SHARE),
    aliases={"autoCompact": AUTO, "context_window": WINDOW},
    wrote=lambda session: session.agent == "OpenCode",
)
EARLY_GO_AGENT = replace(
    GO_AGENT,
    label="OpenCode (in Go, before 9 May 2025)",
    rule=early_go_rule,
    variants=lambda _, __: (),
    wrote=lambda session: session.agent == "OpenCode" and _ended_before(session, SUMMED_UNTIL),
)
