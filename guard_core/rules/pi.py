"""pi: above the window less `reserveTokens`, looked at when a turn has ended, in later versions before every call, too.

Measured by running 0.73.1, 0.74.2, 0.79.0 and 0.84.2, which look at the end of turns alone, and 0.85.1 and 1.6.0, which
look before every call, count what was appended since as well, and do nothing while all messages are within what they
keep, as does 0.79.10. Recordings name no version: the later ones show by their system prompt (from 0.86 on), or by a
compaction within a turn that no refused request forced. The count is written into the recording (`tokensBefore`).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from guard_core.costs import HAS_RESULT
from guard_core.ledger import Ints, Ledger, prefix_sums
from guard_core.policies.pi import CURRENT, RESERVE, message_tokens
from guard_core.policies.pi import WITHIN_TURNS as LATER
from guard_core.recordings.formats.pi.letta import NAME as LETTA_CODE
from guard_core.recordings.formats.pi.oh_my_pi import NAME as OH_MY_PI
from guard_core.recordings.formats.pi.openclaw import NAME as OPENCLAW
from guard_core.rules.base import Agent, Hypothesis, Keeps, KeptShape, Moment, OwnRule, Stretch
from guard_core.rules.counters import LAST_TOTAL, TOTAL_PENDING, Checks, RuleCounter
from guard_core.rules.settings import AUTO, SWITCH_WORDS, WINDOW, RuleNumber, Typed, chosen, whole, window_setting
from guard_core.rules.thresholds import RESERVES, WINDOWS, round_limits, windows_of
from guard_core.sessions import Provenance, Session
from guard_core.views import Span
from guard_core.windows.subscriptions import subscription_windows

WITHIN_TURNS = "looks_within_turns"  # a setting that the reader takes from the file
KEEP_RECENT = "keep_recent_tokens"
WAITING = RuleCounter(
    TOTAL_PENDING,
    "prompt and output tokens of the last answer, and ceil(characters / 4) of each message since",
    message_tokens,
    before_user=True,
)


def counter(stretch: Stretch) -> RuleCounter:
    """What this version compares."""
    return LAST_TOTAL if stretch.setting(WITHIN_TURNS) is None else WAITING


def rule(stretch: Stretch, typed: Typed) -> OwnRule:
    """The window less `reserve_tokens`, looked at before every call where the file shows a version that does."""
    window = stretch.window
    reserve = chosen("reserve_tokens", whole(typed, "reserve_tokens", 0), RESERVE, "tokens", "default of reserveTokens")
    size = int(reserve.value or 0)
    settings = [window_setting(window), reserve]
    if (recent := whole(typed, KEEP_RECENT, 0)) is not None:
        settings.append(RuleNumber(KEEP_RECENT, recent, "tokens", Provenance.USER, "typed in"))
    is_later = stretch.setting(WITHIN_TURNS) is not None
    return OwnRule(
        policy="pi",
        profile=LATER if is_later else CURRENT,
        settings=tuple(settings),
        counter=counter(stretch).name,
        relation=">",
        threshold=window.value - size if window else None,
        formula=f"{window.value:,} − {size:,} (reserve)" if window else f"window − {size:,} (reserve)",
        checks=Moment.BEFORE_CALL if is_later else Moment.TURN_END,
    )


def variants(stretch: Stretch, typed: Typed) -> Iterable[Hypothesis]:
    """Other windows and reserves."""
    typed_reserve = whole(typed, "reserve_tokens", 0)
    reserve = RESERVE if typed_reserve is None else typed_reserve
    for window, other in windows_of(stretch, subscription_windows(stretch.model)):
        round_sizes = round_limits(window // 2) if other < 2 else ()
        for size in dict.fromkeys((reserve, RESERVE, *RESERVES, *round_sizes)):
            yield Hypothesis(f"{window:,} − {size:,} (reserve)", window - size, other + (size != reserve))


def fitted(stretch: Stretch, threshold: int) -> str:
    """A reserve that gives a threshold."""
    window = WINDOWS[0] if stretch.window is None else stretch.window.value
    return f"{window:,} − {window - threshold:,} (reserve)"


RECENT_TOKENS = 20_000  # by pi's own estimate, characters / 4: its default of keepRecentTokens


def keeps(_: Stretch, rule: OwnRule) -> Keeps:
    """Whole messages, back from the newest."""
    recent = next((int(item.value or 0) for item in rule.settings if item.name == KEEP_RECENT), RECENT_TOKENS)
    words = f"the summary and the newest messages, back to where they reach {recent:,} tokens"
    return Keeps(words, KeptShape.TAIL)


ALL_KEPT, UNANSWERED = 1, 2  # marks of `held`


def held(session: Session, ledger: Ledger, checks: Checks, typed: Typed) -> Ints:
    """Checks at which all messages would be kept: by what was typed or the default, or by the smallest history that was
    compacted, which is more than what is kept. 0.74.2, which looks at the end of turns, compacts such a history, too,
    and 0.79.10 does not (run): where a file does not tell, only sessions whose every compaction was of more are taken
    for ones of the latter. And those at the end of a turn that was aborted or whose last calls failed: pi goes by the
    last message, which has no usage then (0.73.1, `_checkCompaction`), and does not look where it was aborted."""
    recent = whole(typed, KEEP_RECENT, 0)
    within_turns = any(item.name == WITHIN_TURNS for item in session.settings)
    results = prefix_sums(((ledger.events["flags"] & HAS_RESULT) > 0).astype(np.int64))
    waits = results[checks.stop] > results[np.minimum(checks.start, checks.stop)]
    is_unanswered = waits & (checks.between > 0) & (checks.place < 0) & (not within_turns)
    unanswered = np.where(is_unanswered, UNANSWERED, 0)
    at = np.array([item.at for item in session.compactions], dtype=np.int64)
    starts = [
        next((part.start for part in item.base if isinstance(part, Span)), item.at) for item in session.compactions
    ]
    first = np.append(0, np.array(starts, dtype=np.int64))
    epoch = np.where(checks.place >= 0, checks.place, np.searchsorted(at, checks.stop, side="right"))
    tokens = ledger.prefix_by("messages of pi", message_tokens)
    sizes = tokens[checks.stop] - tokens[np.minimum(first[epoch], checks.stop)]
    recent_tokens = RECENT_TOKENS if recent is None else recent
    compacted = sizes[checks.place >= 0].tolist()
    if recent is None and not within_turns and min(compacted, default=0) < recent_tokens:
        return unanswered
    return np.where(sizes < min([recent_tokens, *compacted]), ALL_KEPT, 0) + unanswered


# Where the context was edited since the last answer, 1.6.0 compares characters / 4 of all messages and system prompt
# (dist/core/compaction, `estimateProjectedContextTokens`).
EDITED = "messages were taken out or changed since the last answer was counted, and pi estimates the rest instead"

AGENT = Agent(
    format="pi",
    label="pi",
    rule=rule,
    plays={"pi": {}},
    variants=variants,
    counter=counter,
    held=held,
    clears_apart=EDITED,
    held_reason={
        ALL_KEPT: "all messages are within what is kept",
        UNANSWERED: "the turn ended without an answer: it was aborted, or its last calls failed",
    },
    records_count=True,
    failing="one that failed would not be in the file",  # 1.6.0, run
    wrote=lambda session: session.agent not in (LETTA_CODE, OH_MY_PI, OPENCLAW),
    keeps=keeps,
    names={
        "reserve_tokens": "compaction.reserveTokens, in tokens",
        KEEP_RECENT: "compaction.keepRecentTokens, in tokens: a smaller history is not compacted",
        AUTO: SWITCH_WORDS,
    },
    fitted=fitted,
    aliases={"compaction.enabled": AUTO, "contextWindow": WINDOW},
)
