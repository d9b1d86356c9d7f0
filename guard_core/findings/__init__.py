"""Findings: what went wrong in a session, or nearly did, each a claim with its numbers, its step and a sentence.

`claims` are the values, `facts` what they are found in; one module for each family of findings, and `verdict`.
"""

from collections.abc import Callable

from guard_core.counts import (
    CompactionCounts,
    CountedCompaction,
    Peak,
    RequestTokens,
    counted_compactions,
    requests_of,
)
from guard_core.findings import (
    gaps,
    own_rule,
    prices,
    repeated_results,
    repetition,
    requests,
    rules,
    sizes,
    sliding,
    summaries,
    todos,
    without,
)
from guard_core.findings.claims import Finding, Verdict, gravest_first
from guard_core.findings.facts import Case, Facts, Fired
from guard_core.findings.presence import RequestWords, request_words
from guard_core.findings.sizes import NEAR_MISS_SHARE
from guard_core.findings.verdict import recorded_verdict, replayed_verdict
from guard_core.trace import Trace

__all__ = [
    "NEAR_MISS_SHARE",
    "Case",
    "CompactionCounts",
    "CountedCompaction",
    "Facts",
    "Finding",
    "Fired",
    "Peak",
    "RequestTokens",
    "RequestWords",
    "Verdict",
    "conclusions",
    "counted_compactions",
    "recorded_findings",
    "recorded_verdict",
    "replayed_findings",
    "replayed_verdict",
    "request_words",
    "requests_of",
]

Check = Callable[[Case], list[Finding]]

_OF_BOTH: tuple[Check, ...] = (
    sizes.overflows,
    sizes.late,
    sizes.near_misses,
    without.needless_or_needed,
    requests.lost_requests,
    repetition.loops,
    sliding.sliding_windows,
    repetition.not_kept,
    repetition.thrashing,
    summaries.bad_summaries,
    rules.timing_gaps,
    rules.no_fit,
    rules.still_over,
    rules.limited_corrections,
    gaps.counted_in_characters,
)
_OF_RECORDINGS: tuple[Check, ...] = (
    requests.lost_parts,
    requests.lost_rules,
    requests.lost_earlier_rules,
    todos.lost_todos,
    sizes.contradicted_window,
    sizes.doubted_window,
    sizes.counted_over,
    sizes.refused,
    repetition.grown,
    own_rule.own_rule_gaps,
    prices.never_paid,
    gaps.silent_truncation,
    gaps.repeated_usage,
    gaps.cached_above_prompt,
    gaps.unreported,
    gaps.cleared_results,
    repeated_results.asked_again,
    repeated_results.repeated_call,
    gaps.left_branches,
)
_OF_REPLAYS: tuple[Check, ...] = (
    without.avoided_overflows,
    sizes.refused_again,
    rules.inline_data,
    rules.lost_tails,
    rules.stacked_continuations,
)


def recorded_findings(facts: Facts) -> tuple[Finding, ...]:
    """All findings about a recording, the gravest first, then by step; none where it has no model call."""
    return _findings(facts.recording, (*_OF_RECORDINGS, *_OF_BOTH)) if facts.ledger.step_count else ()


def replayed_findings(facts: Facts, trace: Trace) -> tuple[Finding, ...]:
    """All findings about a replay of that recording under any policy, in the same order. `trace` is what `replay` gave
    for `facts.ledger`."""
    return _findings(facts.replay(trace), (*_OF_BOTH, *_OF_REPLAYS)) if facts.ledger.step_count else ()


def conclusions(facts: Facts) -> tuple[tuple[Finding, ...], Verdict]:
    """Findings and verdict of a recording; of the replay under ContextGuard, where nothing was ever sent."""
    if facts.ledger.usage_ratio is None or not facts.ledger.step_count:
        findings = recorded_findings(facts)
        return findings, recorded_verdict(facts, findings)
    findings = replayed_findings(facts, facts.simulation)
    return findings, replayed_verdict(facts, facts.simulation, findings)


def _findings(case: Case, checks: tuple[Check, ...]) -> tuple[Finding, ...]:
    return gravest_first([finding for check in checks for finding in check(case)])
