"""Findings: what went wrong in a session, or nearly did, each a claim with its numbers, its step and a sentence."""

from guard_core.findings.checks import LOOP_LENGTH, NEAR_MISS_SHARE, Case, findings, verdict
from guard_core.findings.claims import Finding, Verdict
from guard_core.findings.counts import (
    CompactionCounts,
    CountedCompaction,
    Peak,
    Requests,
    counted_compactions,
    requests_of,
)

__all__ = [
    "LOOP_LENGTH",
    "NEAR_MISS_SHARE",
    "Case",
    "CompactionCounts",
    "CountedCompaction",
    "Finding",
    "Peak",
    "Requests",
    "Verdict",
    "counted_compactions",
    "findings",
    "requests_of",
    "verdict",
]
