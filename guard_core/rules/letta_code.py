"""Letta Code, on its own machine: above the window less a reserve of 16,384 tokens, or a fifth of a smaller window.

Measured by running 0.32.18 and 0.34.12. The count is the last answer's total with ceil(characters / 4) of each message
since, the user's included, and it is compared before every call, the total alone also when an answer has come. The
window is the agent's own limit of the context (`context_window_limit`), whatever the model accepts; a compaction names
it.
0.25.9 compares the last answer's total with the window itself. Its files keep the last compaction alone, so that checks
before that one say nothing: others may have been made there.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from guard_core.ledger import Ints, Ledger
from guard_core.policies.letta_code import RESERVE, reserve_of
from guard_core.policies.pi import message_tokens
from guard_core.recordings.formats.pi.letta import KEEPS_LAST_ALONE, NAME
from guard_core.rules.base import Agent, Hypothesis, Keeps, KeptShape, OwnRule, Stretch
from guard_core.rules.counters import LAST_TOTAL, TOTAL, TOTAL_PENDING, Checks, RuleCounter
from guard_core.rules.settings import WINDOW, Typed, window_setting
from guard_core.rules.thresholds import windows_of
from guard_core.sessions import Session

COUNTER = RuleCounter(
    TOTAL_PENDING,
    "prompt and output tokens of the last answer, and ceil(characters / 4) of each message since",
    message_tokens,
)
KEEPS = Keeps("the summary and, in its mode sliding_window, the newest messages from an answer on", KeptShape.TAIL)


def is_earlier(stretch: Stretch) -> bool:
    """Is the stretch of a version before the files of entries."""
    return stretch.setting(KEEPS_LAST_ALONE.name) is not None


def counter(stretch: Stretch) -> RuleCounter:
    """What the version compares."""
    return LAST_TOTAL if is_earlier(stretch) else COUNTER


def rule(stretch: Stretch, _: Typed) -> OwnRule:
    """The window less a reserve; in earlier versions, whose rule is Letta's, all of it."""
    window, earlier = stretch.window, is_earlier(stretch)
    formula, threshold = f"window − {RESERVE:,} (reserve), or − 20 % of a smaller one", None
    if earlier:
        formula = "the window"
    if window is not None:
        formula, threshold = _limit(window.value, earlier=earlier)
    return OwnRule(
        policy="letta" if earlier else "letta-code",
        profile="standard" if earlier else "0.34",
        settings=(window_setting(window),),
        counter=TOTAL if earlier else TOTAL_PENDING,
        relation=">",
        threshold=threshold,
        formula=formula,
    )


def _limit(window: int, *, earlier: bool) -> tuple[str, int]:
    if earlier:
        return f"{window:,} (window)", window
    return f"{window:,} − {reserve_of(window):,} (reserve)", window - reserve_of(window)


def variants(stretch: Stretch, _: Typed) -> Iterable[Hypothesis]:
    """Other windows."""
    for window, other in windows_of(stretch):
        yield Hypothesis(*_limit(window, earlier=is_earlier(stretch)), other)


def held(session: Session, ledger: Ledger, checks: Checks, _: Typed) -> Ints:
    """Checks before the compaction of a file that keeps the last one alone."""
    alone = any(item.name == KEEPS_LAST_ALONE.name for item in session.settings)
    last = max((item.at for item in session.compactions), default=-1) if alone else -1
    return np.asarray((checks.place < 0) & (checks.stop <= last), dtype=np.int64)


AGENT = Agent(
    format="pi",
    label=NAME,
    rule=rule,
    plays={"letta-code": {}},
    variants=variants,
    counter=counter,
    held=held,
    held_reason="compactions before the last one are not in the file",
    uses_stated_window=True,
    keeps=lambda _, __: KEEPS,
    names={},
    aliases={"context_window_limit": WINDOW},
    wrote=lambda session: session.agent == NAME,
)
