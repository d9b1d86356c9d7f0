"""ADK: `EventsCompactionConfig`, whose `token_threshold` is compared with the prompt tokens of the last answer.

From google-adk 2.13.0, and checked on a session that it wrote: before each model call and after an invocation. The
other pair of that configuration compacts after every `compaction_interval` invocations: `interval`. Neither has a
default, and no session holds them.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from guard_core.errors import SettingError
from guard_core.ledger import Ints, Ledger
from guard_core.recordings.formats.adk.events import WITHIN_INVOCATIONS
from guard_core.rules.base import Agent, Hypothesis, Moment, OwnRule, Stretch
from guard_core.rules.counters import INVOCATIONS, LAST_PROMPT, PROMPT, UNKNOWN, Checks, RuleCounter
from guard_core.rules.settings import RuleNumber, Typed, whole
from guard_core.rules.thresholds import LARGEST_LIMIT, round_limits
from guard_core.sessions import Provenance, Session
from guard_core.views import Span

INTERVALS = range(1, 51)
NOT_IN_FILE = "EventsCompactionConfig is not in the file: set {}"
INVOCATION_COUNTER = RuleCounter(INVOCATIONS, "invocations since the last compaction")


def _rule(stretch: Stretch, name: str, value: int | None, counter: str, checks: Moment, typed: Typed) -> OwnRule:
    for other in KEPT_NAMES:
        whole(typed, other, 0)
    unit = "invocations" if counter == INVOCATIONS else "tokens"
    source = Provenance.ASSUMED if value is None else Provenance.USER
    note = "not in the file" if value is None else "typed in"
    return OwnRule(
        agent="ADK",
        policy="adk-events",
        profile="2.13",
        settings=(RuleNumber(name, value, unit, source, note),),
        counter=counter,
        threshold=value,
        formula=name if value is None else f"{name} {value:,}",
        checks=checks,
        reason=NOT_IN_FILE.format(name) if value is None else "",
    )


def rule(stretch: Stretch, typed: Typed) -> OwnRule:
    """`token_threshold` as it was typed: ADK has no default, and no session holds it."""
    return _rule(stretch, "token_threshold", whole(typed, "token_threshold"), PROMPT, Moment.BEFORE_CALL, typed)


def variants(stretch: Stretch, typed: Typed) -> Iterable[Hypothesis]:
    """Thresholds typed by hand."""
    for limit in round_limits(LARGEST_LIMIT):
        yield Hypothesis(f"token_threshold {limit:,}", limit, 1)


def interval_rule(stretch: Stretch, typed: Typed) -> OwnRule:
    """`compaction_interval` as it was typed, in invocations."""
    value = None
    if "compaction_interval" in typed:
        text = typed["compaction_interval"]
        number = text.strip()
        if not (number.isascii() and number.isdigit() and 0 < len(number) <= 6 and int(number)):
            raise SettingError(f"compaction_interval is a number of invocations from 1 to 999999, not {text[:20]!r}")
        value = int(number)
    return _rule(stretch, "compaction_interval", value, INVOCATIONS, Moment.TURN_END, typed)


def interval_variants(stretch: Stretch, typed: Typed) -> Iterable[Hypothesis]:
    """Small numbers of invocations."""
    for count in INTERVALS:
        yield Hypothesis(f"compaction_interval {count}", count, 1)


def invocations(session: Session, ledger: Ledger, checks: Checks, stretch: Stretch) -> Ints:
    """Invocations that have ended since the last compaction, at each check."""
    turns = np.append(ledger.steps["turn"], -1)
    before = turns[np.maximum(checks.step - 1, 0)]  # of the last call
    compacted = np.where(checks.place >= 0, before, -1)
    earlier = np.maximum.accumulate(np.append(-1, compacted))[:-1]  # that of the last call before the last compaction
    return np.asarray(np.where(checks.step > 0, before - earlier, UNKNOWN))


def _by_interval(session: Session) -> bool:
    """Did a compaction leave nothing but summaries, after an invocation: what a threshold retains is left behind its
    summary, and it is compared before each call."""
    bases = [item.base for item in session.compactions]
    if WITHIN_INVOCATIONS in session.settings:
        return False
    return bool(bases) and not any(isinstance(segment, Span) for base in bases for segment in base)


KEPT_NAMES = {
    "overlap_size": "of EventsCompactionConfig, in invocations: what is kept, not when",
    "event_retention_size": "of EventsCompactionConfig, in events: what is kept, not when",
}
INTERVAL_AGENT = Agent(
    format="adk",
    label="ADK (interval)",
    rule=interval_rule,
    variants=interval_variants,
    counter=lambda _: INVOCATION_COUNTER,
    names={"compaction_interval": "of EventsCompactionConfig, in invocations", **KEPT_NAMES},
    wrote=_by_interval,
    series=invocations,
)
AGENT = Agent(
    format="adk",
    label="ADK",
    rule=rule,
    variants=variants,
    counter=lambda _: LAST_PROMPT,
    fitted=lambda _, limit: f"token_threshold {limit:,}",
    names={"token_threshold": "of EventsCompactionConfig, in tokens", **KEPT_NAMES},
)
