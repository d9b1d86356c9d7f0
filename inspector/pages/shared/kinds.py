"""Kinds of findings as people call them, in the order of the menu."""

from __future__ import annotations

KINDS = {
    "window_contradicted": "window contradicted",
    "window_doubted": "window doubtful",
    "overflow": "overflow",
    "refused": "request too long",
    "refused_again": "as large as a refused request",
    "late": "compacted too late",
    "counted_over": "over the window when compacted",
    "no_fit": "nothing fits the window",
    "near_miss": "near miss",
    "request_lost": "request lost",
    "part_lost": "part of a request lost",
    "rule_lost": "rule lost",
    "earlier_rule_lost": "earlier rule lost",
    "todo_lost": "open todo lost",
    "tail_lost": "kept messages lost",
    "loop": "loop",
    "sliding_window": "sliding window",
    "thrash": "compacts often",
    "summary_not_kept": "compaction did not last",
    "grown": "larger after a compaction",
    "still_over": "still over the threshold",
    "setting_never_acts": "setting never acts",
    "own_early": "early by its own rule",
    "own_missed": "late by its own rule",
    "other_threshold": "another threshold than its rule's",
    "needless": "needless compaction",
    "never_paid": "compaction never paid",
    "needed": "needed compaction",
    "avoided_overflows": "avoids overflows",
    "timing_gap": "caught only by the estimate",
    "correction_limited": "correction hit its limit",
    "inline_data": "inline data",
    "stacked_continuations": "stacked continuations",
    "empty_summary": "empty summary",
    "fallback_summary": "fallback summary",
    "sealed_summary": "summary not readable",
    "silent_truncation": "silent truncation",
    "results_cleared": "tool results cleared",
    "repeated_call": "repeated calls",
    "asked_again": "tool results got again",
    "left_branches": "branches left",
    "usage_in_characters": "counts of characters",
    "usage_repeated": "repeated counts",
    "cached_above": "more cached than sent",
    "no_usage": "no usage",
}


def kind_name(kind: str) -> str:
    """The name of a kind of findings on pages."""
    return KINDS.get(kind, kind.replace("_", " "))
