"""oh-my-pi: above the window less a reserve of at least 15 %, looked at after the results of each answer and at the end
of a turn.

Measured by running 18.2.3. The count is the last answer's total, or its own estimate of the messages where that is
more. A compaction holds the total alone (`tokensBefore`; compaction.ts): right behind results of tools, which are only
in the estimate, one that it does not explain may have been made by that (run with 40,000: at totals of 38,890 and
39,297), or after a refused request, which leaves no trace. Of the checks that passed only the total is known, too. The
file names neither version nor window.

Where the model writes the summary (the methods `handoff`, `soft` and `remote`), it is asked for while the conversation
continues, and until it is there calls pass above the threshold, up to an eighth of it above (speculation-lead.ts of
18.2.3, and runs of it in windows of 60,000 and 200,000). The file does not say when a summary was asked for: of the
checks between two compactions, those count that lie below any threshold which the largest of them leaves possible.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from guard_core.costs import HAS_RESULT
from guard_core.ledger import Ints, Ledger
from guard_core.policies.oh_my_pi import percent_of, reserve_of
from guard_core.policies.pi import RESERVE
from guard_core.recordings.formats.pi.oh_my_pi import BESIDE, NAME
from guard_core.rules.base import Agent, Hypothesis, Keeps, KeptShape, OwnRule, Stretch
from guard_core.rules.counters import LAST_TOTAL, TOTAL, Checks, RuleCounter, counts_at
from guard_core.rules.pi import KEEP_RECENT
from guard_core.rules.settings import (
    AUTO,
    SWITCH_WORDS,
    WINDOW,
    RuleNumber,
    Typed,
    chosen,
    percentage,
    stated,
    switched,
    whole,
    window_setting,
)
from guard_core.rules.thresholds import FRACTIONS, RESERVES, share_of, windows_of
from guard_core.sessions import Provenance, Session

RESERVED, LIMIT, PERCENT = "reserve_tokens", "threshold_tokens", "threshold_percent"
ASYNC = "async_enabled"
LEAST_LEAD, MOST_LEAD, SHARE_OF_LEAD = 8_192, 32_000, 8  # tokens, tokens, the part of the threshold (as above)
COUNTER = RuleCounter(
    TOTAL, "tokensBefore of a compaction; at checks that passed prompt and output tokens of the last answer, at least"
)
KEEPS = Keeps("the summary and the newest messages", KeptShape.TAIL)


def rule(stretch: Stretch, typed: Typed) -> OwnRule:
    """The window less a reserve of at least 15 %, unless a share or a number of tokens was typed."""
    window = stretch.window
    reserve = chosen(RESERVED, whole(typed, RESERVED, 0), RESERVE, "tokens", "default; at least 15 % of the window")
    settings, size = [window_setting(window), reserve], int(reserve.value or 0)
    formula, threshold = f"window − {size:,} (reserve), or − 15 % if that is more", None
    if window is not None:
        formula, threshold = _less_reserve(window.value, size)
        if (share := percentage(typed, PERCENT, is_fraction=False)) is not None:
            settings.append(RuleNumber(PERCENT, share, "%", Provenance.USER, "typed in"))
            formula, threshold = percent_of(window.value, share)
    if (limit := whole(typed, LIMIT)) is not None:
        settings.append(RuleNumber(LIMIT, limit, "tokens", Provenance.USER, "typed in"))
        threshold = limit if window is None else min(limit, window.value - 1)
        formula = f"{threshold:,} (thresholdTokens)"
    if (recent := stated(typed, KEEP_RECENT, "tokens", None)) is not None:
        settings.append(recent)
    return OwnRule(
        policy="oh-my-pi",
        settings=tuple(settings),
        counter=TOTAL,
        relation=">",
        threshold=threshold,
        formula=formula,
    )


def _less_reserve(window: int, size: int) -> tuple[str, int]:
    reserve = reserve_of(window, size)
    return f"{window:,} − {reserve:,} (reserve)", window - reserve


def variants(stretch: Stretch, typed: Typed) -> Iterable[Hypothesis]:
    """Other windows, reserves and shares."""
    typed_reserve = whole(typed, RESERVED, 0)
    own = RESERVE if typed_reserve is None else typed_reserve
    for window, other in windows_of(stretch):
        for size in dict.fromkeys((own, *RESERVES)):
            yield Hypothesis(*_less_reserve(window, size), other + (size != own))
        for share in FRACTIONS:
            yield Hypothesis(*share_of(share, window), other + 1)


BEING_MADE, ESTIMATED = 1, 2  # marks of checks


def held(session: Session, ledger: Ledger, checks: Checks, typed: Typed) -> Ints:
    """Marks of checks that may have passed above the threshold because a summary was being written, and of compactions
    right behind results, which its estimate may have caused."""
    results = (ledger.events["flags"] & HAS_RESULT) > 0
    estimated = ((checks.place >= 0) & np.append(False, results)[checks.stop]) * ESTIMATED
    if BESIDE not in session.settings or (ASYNC in typed and not switched(typed, ASYNC)):
        return np.asarray(estimated)
    counts = counts_at(session, ledger, checks, LAST_TOTAL)
    passed = checks.place < 0
    epoch = np.cumsum(~passed)
    largest = np.zeros(int(epoch[-1]) + 1 if len(epoch) else 1, dtype=np.int64)
    np.maximum.at(largest, epoch[passed], counts[passed])
    waited = passed & (counts > least_thresholds(largest)[epoch])
    return np.asarray(estimated + waited * BEING_MADE)


def least_thresholds(passed: Ints) -> Ints:
    """The least thresholds above which calls with these counts may pass."""
    above = passed + 1
    by_share = np.minimum(above - LEAST_LEAD, -(-above * SHARE_OF_LEAD // (SHARE_OF_LEAD + 1)))
    return np.asarray(np.maximum(above - MOST_LEAD, by_share))


AGENT = Agent(
    format="pi",
    label=NAME,
    rule=rule,
    plays={"oh-my-pi": {}},
    variants=variants,
    counter=lambda _: COUNTER,
    records_count=True,
    keeps=lambda _, __: KEEPS,
    held=held,
    held_reason={
        BEING_MADE: "a summary may have been in the making, and calls pass above the threshold until it is there",
        ESTIMATED: "its own estimate, which counts the results that had just come, is not in the file, "
        "and neither is a refused request",
    },
    names={
        RESERVED: "compaction.reserveTokens, in tokens",
        PERCENT: "compaction.thresholdPercent, from 1 to 99",
        LIMIT: "compaction.thresholdTokens, in tokens: it takes the place of all others",
        KEEP_RECENT: "compaction.keepRecentTokens, in tokens: what stays of the newest messages",
        ASYNC: "compaction.asyncEnabled: on (the default) or off; off: no call passes above the threshold",
        AUTO: SWITCH_WORDS,
    },
    aliases={
        "compaction.enabled": AUTO,
        "contextWindow": WINDOW,
        "reserveTokens": RESERVED,
        "thresholdPercent": PERCENT,
        "thresholdTokens": LIMIT,
    },
    wrote=lambda session: session.agent == NAME,
)
