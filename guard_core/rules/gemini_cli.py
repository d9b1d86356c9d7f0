"""Gemini CLI: half of 1,048,576 prompt tokens of the last answer, where there is a user's text to cut at.

Measured by running 0.61.0. Within the first turn no such text is behind the first answer, so it is not compacted. A
resumed session begins with an estimate of its own instead of the last count: a recording of 0.61.0 passes 34,755 tokens
there with a threshold below 33,000. Versions to 0.42 write no compression down, so that no check of theirs says that
the agent did not compact.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from guard_core.ledger import Ints, Ledger
from guard_core.rules.base import Agent, Hypothesis, OwnRule, Stretch
from guard_core.rules.counters import LAST_PROMPT, PROMPT, Checks
from guard_core.rules.settings import Typed, chosen, percentage, window_setting
from guard_core.rules.thresholds import FRACTIONS, windows_of
from guard_core.sessions import Provenance, Session, Sourced
from guard_core.windows.agent_windows import GEMINI_CLI_LIMIT, taken_by_agent

SHARE = 50  # per cent: compressionThreshold; 70 in versions of 2025
PERCENTAGES = tuple(percent / 100 for percent in range(1, 100))


def rule(stretch: Stretch, typed: Typed) -> OwnRule:
    """A share of the window, the smallest count that is not below it."""
    window = _window(stretch)
    share = chosen("compression_threshold", percentage(typed, "compression_threshold"), SHARE, "%", "default")
    value = share.value or SHARE
    return OwnRule(
        policy="gemini-cli",
        settings=(window_setting(window), share),
        counter=PROMPT,
        threshold=_threshold(value / 100, window.value),
        formula=f"{value:g} % of {window.value:,}",
    )


def _threshold(share: float, window: int) -> int:
    """The smallest count that is not below the share of the window, which Gemini CLI does not round."""
    return math.ceil(share * window)


def _window(stretch: Stretch) -> Sourced:
    """The window of a stretch; Gemini CLI's limit where none is known."""
    window = stretch.window or Sourced(GEMINI_CLI_LIMIT, Provenance.ASSUMED, "Gemini CLI's limit for its models")
    return taken_by_agent(AGENT.format, stretch.model, window, stretch.largest)


def variants(stretch: Stretch, typed: Typed) -> Iterable[Hypothesis]:
    """Other shares of the limit, and other windows."""
    for window, other in windows_of(stretch._replace(window=_window(stretch))):
        for share in dict.fromkeys((SHARE / 100, *FRACTIONS, *PERCENTAGES)):
            text, changes = f"{share * 100:g} % of {window:,}", other + (share != SHARE / 100)
            yield Hypothesis(text, _threshold(share, window), changes)


def held(_: Session, ledger: Ledger, checks: Checks, __: Typed) -> Ints:
    """Checks within the first turn, before any compaction: nothing can be cut off there."""
    turns = np.append(ledger.steps["turn"], -1)[checks.step]
    first = ledger.steps["turn"][0] if ledger.step_count else -1
    compacted = np.cumsum(checks.place >= 0) - (checks.place >= 0) > 0
    return np.asarray((turns == first) & ~compacted, dtype=np.int64)


AGENT = Agent(
    format="gemini-cli",
    label="Gemini CLI",
    rule=rule,
    plays={"gemini-cli": {}},
    variants=variants,
    counter=lambda _: LAST_PROMPT,
    names={"compression_threshold": "model.compressionThreshold: in per cent of the limit, or a fraction below 1"},
    aliases={"chatCompression.contextPercentageThreshold": "compression_threshold"},
    forgets_on_resume=True,
    held=held,
    held_reason="in the first turn there is no user's text to cut at",
)


def silent(agent: Agent, versions: str) -> Agent:
    """An agent in versions that do not write down that they compacted: no check of theirs is evidence."""
    return replace(
        agent,
        label=f"{agent.label} (compactions not recorded)",
        wrote=lambda session: any(item.name == "writes_compressions" and not item.value for item in session.settings),
        held=lambda _, __, checks, ___: np.ones(len(checks.step), dtype=np.int64),
        held_reason=f"versions {versions} do not write down that they compacted",
    )


SILENT_AGENT = silent(AGENT, "to 0.42")
