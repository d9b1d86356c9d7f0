"""OpenClaw: at the window less a reserve, looked at when a turn has ended and again before the next one.

Measured by running 2026.9.6 with windows of 64,000 and 200,000 tokens. The reserve is the larger of `reserveTokens` and
`reserveTokensFloor`, at most a quarter of the window. Before a turn the user's message counts, too: ceil(characters /
4); at the end of a turn the last answer's total alone has to be above the threshold. Neither looks within a turn, where
an estimate of the next request may compact (2026.4.22, run with 64,000 tokens: at 38,633 to 40,292), which is not known
here. The window of a database is the one that OpenClaw computes with; older files of lines name none.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from guard_core.costs import HAS_RESULT, MODEL
from guard_core.ledger import Ints, Ledger
from guard_core.policies.openclaw import RESERVE_FLOOR, reserve_of
from guard_core.policies.pi import RESERVE, message_tokens
from guard_core.recordings.formats.pi.openclaw import NAME
from guard_core.rules.base import Agent, Hypothesis, Keeps, KeptShape, Moment, OwnRule, Stretch
from guard_core.rules.counters import TOTAL_PENDING, UNKNOWN, Checks, RuleCounter, counts_at
from guard_core.rules.pi import KEEP_RECENT
from guard_core.rules.settings import AUTO, SWITCH_WORDS, WINDOW, Typed, chosen, stated, whole, window_setting
from guard_core.rules.thresholds import RESERVES, windows_of
from guard_core.sessions import Session

RESERVED, FLOOR = "reserve_tokens", "reserve_tokens_floor"
COUNTER = RuleCounter(
    TOTAL_PENDING,
    "prompt and output tokens of the last answer, and ceil(characters / 4) of the user's message that follows",
    message_tokens,
)
KEEPS = Keeps("the summary and the newest messages", KeptShape.TAIL)


def rule(stretch: Stretch, typed: Typed) -> OwnRule:
    """The window less the larger of reserve and floor."""
    window = stretch.window
    reserve = chosen(RESERVED, whole(typed, RESERVED, 0), RESERVE, "tokens", "default of reserveTokens")
    floor = chosen(FLOOR, whole(typed, FLOOR, 0), RESERVE_FLOOR, "tokens", "default of reserveTokensFloor")
    size = max(int(reserve.value or 0), int(floor.value or 0))
    recent = stated(typed, KEEP_RECENT, "tokens", None)
    return OwnRule(
        policy="openclaw",
        settings=(window_setting(window), reserve, floor, *((recent,) if recent else ())),
        counter=TOTAL_PENDING,
        threshold=window.value - reserve_of(window.value, size) if window else None,
        formula=_formula(window.value, size) if window else f"window − {size:,} (reserve), or − 25 % of a small one",
        checks=Moment.TURN_END,
    )


def _formula(window: int, size: int) -> str:
    return f"{window:,} − {reserve_of(window, size):,} (reserve)"


def variants(stretch: Stretch, typed: Typed) -> Iterable[Hypothesis]:
    """Other windows and reserves."""
    stated = ((whole(typed, name, 0), usual) for name, usual in ((RESERVED, RESERVE), (FLOOR, RESERVE_FLOOR)))
    own = max(usual if size is None else size for size, usual in stated)
    for window, other in windows_of(stretch):
        for size in dict.fromkeys((own, RESERVE_FLOOR, *RESERVES)):
            yield Hypothesis(_formula(window, size), window - reserve_of(window, size), other + (size != own))


def counts(session: Session, ledger: Ledger, checks: Checks, _: Stretch) -> Ints:
    """The count of each check. A compaction before a turn stands before the user's message, which counted. Behind the
    results of tools it was an estimate that compacted, also where the message is sent once more after it."""
    totals, flags = counts_at(session, ledger, checks, COUNTER), np.append(ledger.events["flags"], 0)
    tokens = np.append(message_tokens(ledger), 0)
    compacted = checks.place >= 0
    following = np.where(compacted & ((flags[checks.stop] & MODEL) == 0), tokens[checks.stop], 0)
    is_estimated = compacted & ((flags[checks.stop - 1] & HAS_RESULT) > 0)
    return np.asarray(np.where((totals == UNKNOWN) | is_estimated, UNKNOWN, totals + following))


AGENT = Agent(
    format="pi",
    label=NAME,
    rule=rule,
    plays={"openclaw": {}},
    variants=variants,
    counter=lambda _: COUNTER,
    series=counts,
    uncounted="its estimate of the next request, by which it compacts within a turn, is not in the file",
    uses_stated_window=True,
    within_turns="by an estimate of the next request, after a refused one, or because a person asked for it",
    failing="one that failed would not be in the file",  # 2026.9.6, run in its mode "safeguard"
    keeps=lambda _, __: KEEPS,
    names={
        RESERVED: "agents.defaults.compaction.reserveTokens, in tokens",
        FLOOR: "agents.defaults.compaction.reserveTokensFloor, in tokens",
        KEEP_RECENT: "agents.defaults.compaction.keepRecentTokens, in tokens: what stays of the newest messages",
        AUTO: SWITCH_WORDS,
    },
    aliases={"reserveTokens": RESERVED, "reserveTokensFloor": FLOOR, "contextTokens": WINDOW, "contextWindow": WINDOW},
    wrote=lambda session: session.agent == NAME,
)
