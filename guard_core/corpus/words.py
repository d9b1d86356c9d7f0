"""What is said of rows and change points, in one sentence each. `name` gives the session and the step of a check."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from guard_core.corpus.bounds import CheckPlace
from guard_core.corpus.changes import ThresholdChange
from guard_core.corpus.rows import Cluster, RuleTally, TriggerRow, interval_of
from guard_core.plural import counted
from guard_core.rules.base import Moment, equation

Namer = Callable[[CheckPlace], str]


def evidence_words(row: TriggerRow, name: Namer) -> str:
    """What the sessions prove of the threshold."""
    if row.contradiction and row.above and row.at_most:
        return (
            f"no threshold explains all sessions: none at {row.above.tokens:,} in {name(row.above)}, "
            f"a compaction at {row.at_most.tokens:,} in {name(row.at_most)}"
        )
    if row.above is None and row.at_most is None:
        return "no count of a check is known"
    return row.interval.sentence


def formula_words(row: TriggerRow | Cluster) -> str:
    """The formula that explains most compactions, and how many; "" where no compaction has a count."""
    if not row.fired:
        return ""
    if row.formula is None:
        return "no known formula explains it" if None not in (row.above, row.at_most) else ""
    words = f"{equation(row.formula.threshold, row.formula.formula)} explains {row.explained:,} of {row.fired:,}"
    do = "does" if row.others == 1 else "do"
    return f"{words} (as {do} {counted(row.others, 'other threshold')})" if row.others else words


def cluster_words(row: TriggerRow, cluster: Cluster) -> str:
    """Sessions that one threshold explains, its interval and its formula."""
    interval = interval_of(row.key, cluster.above, cluster.at_most)
    words = f"{counted(len(cluster.sessions), 'session')} {interval.words}"
    return ": ".join(filter(None, (words, formula_words(cluster))))


def tally_words(tally: RuleTally) -> str:
    """A rule, its stated settings and how many sessions obey it."""
    stated = ", ".join(f"{item.name} {item.value:,g} {item.unit}" for item in tally.stated)
    refused = {item.place.session for item in tally.contradicts}
    untested = tally.sessions - len(refused.union(tally.obeys))
    counts = ((len(tally.obeys), "obeying it"), (len(refused), "not obeying it"), (untested, "without a test of it"))
    split = ", ".join(f"{count:,} {words}" for count, words in counts if count)
    source = f"with {stated} as stated" if stated else "as known, nothing stated"
    return f"{rule_words(tally)} ({source}): {split}"


def rule_words(tally: RuleTally) -> str:
    """The threshold of a rule as a sum."""
    if tally.checks is Moment.REFUSAL:
        return f"compacts {tally.checks}"
    if tally.threshold is None:
        return f"threshold not known ({tally.reason})"
    return equation(tally.threshold, tally.formula)


def change_words(change: ThresholdChange, name: Namer) -> str:
    """From when the threshold is another one, and by which two checks that is known."""
    old, new = change.version, change.key.version
    version = f"version {new}" if old == new else f"version {new or 'not recorded'}, before it {old or 'not recorded'}"
    before, after = name(change.before), name(change.after)
    if change.fell:
        checks = (
            f"it compacted at {change.after.tokens:,} in {after}, and not yet at {change.before.tokens:,} in {before}"
        )
    else:
        checks = (
            f"it did not compact at {change.after.tokens:,} in {after}, and had at {change.before.tokens:,} in {before}"
        )
    direction = "lower" if change.fell else "higher"
    start = f"from {day(change.time)} ({version}) the threshold is {direction}" if old or new else ""
    start = start or f"from {day(change.time)} the threshold is {direction}"
    return f"{start}: {checks}; {_rule_words(change)}"


def _rule_words(change: ThresholdChange) -> str:
    before, after = (
        "none" if threshold is None else f"{threshold:,}" for threshold in (change.rule_before, change.rule_after)
    )
    if before == after:
        return "the agent's rule is the same before and after" if before != "none" else "no rule is known for either"
    return f"by the agent's rule it was {before} before and is {after} from there on"


def day(seconds: float) -> str:
    """The day of a moment, UTC; "an unknown day" where it lies outside the years 1 to 9999."""
    try:
        return datetime.fromtimestamp(seconds, UTC).date().isoformat()
    except (OverflowError, OSError, ValueError):
        return "an unknown day"
