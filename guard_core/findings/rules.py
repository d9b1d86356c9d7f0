"""What follows from a policy's own arithmetic: said of its replays, and of recordings whose own rule it is."""

from __future__ import annotations

from bisect import bisect_right
from operator import itemgetter
from typing import Any

import numpy as np

from guard_core.findings.claims import ERROR, INFO, LISTED, WARNING, Finding
from guard_core.findings.facts import Case, Fired
from guard_core.findings.repetition import MOST_PER_HEURISTIC
from guard_core.findings.words import at_step, compactions_words, counted, if_window, percent, window_assumptions
from guard_core.ledger import Ints
from guard_core.tokens.calibration import CORRECTION_SOURCES
from guard_core.trace import (
    FLOOR_OVER_THRESHOLD,
    FLOOR_OVER_WINDOW,
    STILL_OVER,
    CompactionRecord,
    Trace,
)
from guard_core.view_sums import ViewSums
from guard_core.views import Span, Synthetic, difference

# Every compaction follows a count below the threshold; it is worth saying when the request grew by this share of the
# threshold.
GAP_SHARE = 0.05
LARGEST_GAP = 0.5  # of a recorded prompt: what is not in the file; a ratio of the rest says nothing beyond it
# Inline data make the estimate fire early: at least this share of it, and a real request of at most that share of it.
INLINE_SHARE, INLINE_REAL = 0.25, 0.6

_AGAINST_WINDOW = ("timing_gap", "no_fit", "still_over", "inline_data")  # whose threshold follows from it


def rule_of(case: Case) -> Trace | None:
    """The trace that has the arithmetic: the replay's own, or that of a recording whose rule is known."""
    return case.trace if case.trace is not None else case.facts.own_rule


def timing_gaps(case: Case) -> list[Finding]:
    """Compactions that the count of the step before would have missed."""
    trace = rule_of(case)
    if trace is None or "real_loaded" not in trace.columns or not case.window_counts:
        return []
    real, decided, limit = (trace.columns[name] for name in ("real_loaded", "decision_tokens", "threshold"))
    caught = [
        item
        for item in case.fired
        if 0 < real[item.step] < limit[item.step] <= decided[item.step]
        and decided[item.step] - real[item.step] >= GAP_SHARE * limit[item.step]
    ]
    if not caught:
        return []
    first = caught[0]
    seen, now, line = (int(column[first.step]) for column in (real, decided, limit))
    subject = f"Compaction {first.index + 1:,} ({at_step(first.step)}) was caught only by the estimate"
    more = "" if len(caught) == 1 else f" The same holds for {counted(len(caught) - 1, 'more compaction')}."
    sentence = f"{subject}: last count {seen:,}, estimate {now:,}, threshold {line:,}{if_window(case.window)}.{more}"
    counts = {"seen": seen, "now": now, "threshold": line, "window": case.window.value}
    numbers = {**counts, "compactions": [item.index for item in caught]}
    return [_finding("timing_gap", INFO, case, sentence, numbers, [item.step for item in caught])]


def no_fit(case: Case) -> list[Finding]:
    """What no compaction can shrink is over the threshold already."""
    trace = rule_of(case)
    if trace is None or not case.window_counts:
        return []
    held = trace.columns["held"]
    steps = np.flatnonzero((held == FLOOR_OVER_THRESHOLD) | (held == FLOOR_OVER_WINDOW))
    limit, floor = int(trace.columns["threshold"].max()), case.facts.attribution.overhead
    fixed = 0 < limit <= floor
    if not len(steps) and not fixed:
        return []
    window, step = case.window.value, int(steps[0]) if len(steps) else 0
    line = f"the window of {window:,}" if floor > window else f"the threshold of {limit:,}"
    what = f"the system prompt and tools, about {floor:,} tokens," if fixed else "what a compaction leaves"
    sentence = (
        f"No compaction can fit the request of {at_step(step)}: {what} cannot be shrunk and {'are' if fixed else 'is'} "
        f"over {line}{if_window(case.window)}."
    )
    numbers = {"floor": floor, "threshold": limit, "window": window}
    return [_finding("no_fit", ERROR, case, sentence, numbers, steps.tolist() or [step])]


def still_over(case: Case) -> list[Finding]:
    """Compactions after which the request was still over the threshold: by its tokens, else by an estimate."""
    trace = rule_of(case)
    if trace is None or not case.window_counts:
        return []
    steps = np.flatnonzero((trace.columns["held"] == STILL_OVER) & (trace.columns["threshold"] > 0))
    if not len(steps):
        return []
    step = int(steps[0])
    limit, estimate = (int(trace.columns[name][step]) for name in ("threshold", "heuristic_sent"))
    numbers = {"heuristic": estimate, "threshold": limit}
    if "correction" in trace.columns or int(case.tokens[step]) < limit:
        size = f"was still over the threshold of {limit:,} tokens (estimated {estimate:,} before correction)"
    else:
        numbers["tokens"] = int(case.tokens[step])
        modelled = " (modelled)" if case.modelled[step] else ""
        size = f"still had {numbers['tokens']:,} tokens{modelled}, not below the threshold of {limit:,}"
    more = "" if len(steps) == 1 else f" The same holds at {counted(len(steps) - 1, 'more step')}."
    sentence = f"After the last pass at {at_step(step)} the request {size}{if_window(case.window)}.{more}"
    return [_finding("still_over", WARNING, case, sentence, numbers, steps.tolist())]


def limited_corrections(case: Case) -> list[Finding]:
    """Correction factors beyond their limits, unless that is only what the file lacks.

    A factor is not judged at all where most of the request is not in the file.
    """
    trace = rule_of(case)
    if trace is None or "correction" not in trace.columns:
        return []
    raw, applied = trace.columns["correction_raw"], trace.columns["correction"]
    ratio = trace.columns["correction_source"] == CORRECTION_SOURCES.index("ratio")
    # How much of the count that the policy remembered is of nothing that the file holds: system prompt and tools, what
    # came before the file until a compaction cuts it off, and what no message explains.
    facts, as_of, measured = case.facts, trace.columns["real_as_of"], trace.columns["real_loaded"]
    cut = case.fired[0].step if case.fired else len(as_of)
    begun = np.where(as_of < cut, facts.attribution.prologue, 0)
    missing: Ints = facts.fixed_not_in_file + begun + np.maximum(facts.attribution.residual, 0)[as_of]
    explained = (measured - missing) / np.maximum(trace.columns["last_heuristic_loaded"], 1)
    judged = ratio & (missing <= LARGEST_GAP * measured)
    if case.facts.ledger.usage_ratio is None:
        judged &= raw <= MOST_PER_HEURISTIC  # more is not the text's, but of what the file lacks
    findings = []
    for limit, severity, effect, steps in (
        ("cap", WARNING, "too low", np.flatnonzero(judged & (raw > applied) & (explained > applied))),
        ("floor", INFO, "too high", np.flatnonzero(judged & (raw < applied))),
    ):
        if len(steps):
            far = int(steps[np.argmax(np.abs(raw[steps] - applied[steps]))])
            sentence = (
                f"The correction hit its limit at {counted(len(steps), 'step')}: at {at_step(far)}, {raw[far]:,.2f} "
                f"was needed and {applied[far]:.2f} used, so the estimate is {effect} there."
            )
            numbers = {"limit": limit, "raw": float(raw[far]), "applied": float(applied[far])}
            findings.append(_finding("correction_limited", severity, case, sentence, numbers, steps.tolist(), far))
    return findings


def inline_data(case: Case) -> list[Finding]:
    """Compactions that fired on inline data counted by their bytes, at a much smaller real request."""
    if case.trace is None or not case.window_counts:
        return []
    early = [numbers for item in case.fired if item.record and (numbers := _inline(case, item, item.record))]
    if not early:
        return []
    worst = min(early, key=lambda numbers: numbers["real"] / numbers["estimate"])
    more = "" if len(early) == 1 else f" {counted(len(early) - 1, 'more compaction')} like it."
    sentence = (
        f"The compaction at {at_step(worst['step'])} was triggered by an estimate of {worst['estimate']:,} tokens, "
        f"while the request had about {worst['real']:,} (modelled): {percent(worst['inline_share'])} of the estimate "
        f"is inline data, counted by its bytes{if_window(case.window)}.{more}"
    )
    steps = [numbers["step"] for numbers in early]
    numbers = {**worst, "window": case.window.value}
    return [_finding("inline_data", WARNING, case, sentence, numbers, steps, worst["step"])]


def _inline(case: Case, item: Fired, record: CompactionRecord) -> dict[str, Any] | None:
    estimate, limit = (int(case.column(name)[item.step]) for name in ("decision_tokens", "threshold"))
    if item.before > INLINE_REAL * estimate:  # looked at first: a long request is not priced for nothing
        return None
    inline = case.facts.ledger.price(record.before, "inline_tokens")
    share = inline / max(1, record.tokens_before)
    without = estimate * (1 - share)
    if share < INLINE_SHARE or without >= limit > estimate:
        return None
    return {"step": item.step, "estimate": estimate, "real": item.before, "inline_share": share}


def stacked_continuations(case: Case) -> list[Finding]:
    """Compactions that left more than one continuation in the request."""
    continuations = ViewSums(lambda segment: isinstance(segment, Synthetic) and segment.kind == "continuation")
    left = [(item, continuations.total(item.record.after)) for item in case.fired if item.record]
    stacked = [(item, count) for item, count in left if count > 1]
    if not stacked:
        return []
    most, count = max(stacked, key=lambda pair: pair[1])
    indices = [item.index for item, _ in stacked]
    sentence = (
        f"{compactions_words(indices).capitalize()}: continuation messages are stacked in one request, "
        f"{count} at {at_step(most.step)}, one per pass."
    )
    numbers = {"continuations": count, "compactions": indices}
    steps = [item.step for item, _ in stacked]
    return [_finding("stacked_continuations", WARNING, case, sentence, numbers, steps, most.step)]


def lost_tails(case: Case) -> list[Finding]:
    """Recent messages that a compaction kept and the next request no longer has."""
    losing = [
        (item, lost)
        for item in case.fired
        if item.record and item.step + 1 < len(case.tokens) and (lost := _lost(item.record))
    ]
    if not losing:
        return []
    first, ranges = losing[0]
    low, high, count = ranges[0][0], ranges[-1][1] - 1, sum(stop - start for start, stop in ranges)
    more = "" if len(losing) == 1 else f" The same holds for {counted(len(losing) - 1, 'more compaction')}."
    sentence = (
        f"Compaction {first.index + 1:,} ({at_step(first.step)}) kept messages {low + 1:,} to {high + 1:,} verbatim, "
        f"but the next request has neither them nor a summary of them.{more}"
    )
    numbers = {"messages": count, "first": low, "last": high, "compactions": [item.index for item, _ in losing]}
    return [_finding("tail_lost", ERROR, case, sentence, numbers, [item.step for item, _ in losing])]


def _lost(record: CompactionRecord) -> list[tuple[int, int]]:
    """Events in the request of the compaction that the policy does not carry on, as ranges."""
    missing = [
        (segment.start, min(segment.stop, record.kept_from))
        for segment in difference(record.after, record.carried).removed
        if isinstance(segment, Span) and segment.start < record.kept_from
    ]
    if not missing:  # nearly always, and a request of a long session may have thousands of spans
        return []
    later: list[tuple[int, int]] = []  # apart from each other, in order
    for start, stop in sorted((segment.start, segment.stop) for segment in record.carried if isinstance(segment, Span)):
        if later and start <= later[-1][1]:
            later[-1] = (later[-1][0], max(stop, later[-1][1]))
        else:
            later.append((start, stop))
    lost = []
    for start, stop in missing:
        place = bisect_right(later, start, key=itemgetter(1))
        while place < len(later) and later[place][0] < stop:
            low, high = later[place]
            if start < low:
                lost.append((start, low))
            start, place = high, place + 1
        if start < stop:
            lost.append((start, stop))
    return lost


def _finding(
    kind: str, severity: str, case: Case, sentence: str, numbers: dict[str, Any], steps: list[int], step: int = -1
) -> Finding:
    at, listed = steps[0] if step < 0 else step, tuple(steps[:LISTED])
    assumptions = window_assumptions(case.window) if kind in _AGAINST_WINDOW else ()
    return Finding(kind, severity, at, sentence, numbers, assumptions, listed, len(steps))
