"""Findings: what went wrong in a session, or nearly did, each with its numbers, the step it happened at and a sentence.

They are read off the columns of a trace and its compaction records, for a replay, or off the ledger, for what was
recorded (`recorded=True`, with the shadow trace of the policy whose arithmetic is shown beside it).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guard_core.attribution import Attribution, attribute, attributed_steps
from guard_core.findings.claims import ERROR, INFO, WARNING, Finding, gravest_first
from guard_core.ledger import Base, Ints, Ledger
from guard_core.trace import (
    CORRECTION_SOURCES,
    FLOOR_OVER_THRESHOLD,
    FLOOR_OVER_WINDOW,
    STILL_OVER,
    CompactionRecord,
    Trace,
)
from guard_core.views import Span, Synthetic, View

# Ours: no source defines these words, so the numbers are chosen and named here.
NEAR_MISS_SHARE = 0.90  # of the window: a request this large leaves no room for a long answer
LOOP_LENGTH = 3  # compactions at consecutive steps
THRASH_LENGTH, THRASH_STEPS = 3, 6  # so many compactions in a row, each fewer than so many steps after the one before
LATE_STEPS = 3  # an overflow at most so many steps before a compaction makes it late
# Every compaction follows a count below the threshold; it is told when the request grew by this share of the threshold.
GAP_SHARE = 0.05
# A request has its history back when it is larger than the one after the compaction, 1.5 times what was added since
# (estimates of what was added may be a third too low) and 2 % of the window together.
RETURN_GROWTH, RETURN_WINDOW = 1.5, 0.02
SINGLE = 3  # a kind found more often than this is told once, with its count


@dataclass(frozen=True)
class Compaction:
    """A compaction of either sort, as findings see it: tokens are the provider's, recorded or modelled."""

    step: int
    before: int
    after: int
    record: CompactionRecord | None = None
    base: Base | None = None


@dataclass(frozen=True)
class Case:
    """Everything a check looks at."""

    ledger: Ledger
    trace: Trace
    attribution: Attribution
    recorded: bool

    def column(self, name: str) -> NDArray[Any]:
        """A column of the trace."""
        return self.trace.columns[name]

    @property
    def window(self) -> int:
        """Tokens."""
        return self.trace.window

    @cached_property
    def tokens(self) -> Ints:
        """Prompt tokens of the request sent at every step; 0 where nothing is known."""
        if not self.recorded:
            modelled: Ints = np.maximum(self.column("modelled_prompt_tokens"), 0).astype(np.int64)
            return modelled
        attributed = attributed_steps(self.ledger, self.attribution.overhead, self.attribution.prices)
        reported = self.ledger.steps["prompt_tokens"]
        return np.where(reported > 0, reported, attributed)

    @cached_property
    def growth(self) -> Ints:
        """Prefix sums of what the log's events cost in prompt tokens, taken at every step."""
        if self.ledger.usage_ratio is None:
            return self.attribution.prefix_at(self.ledger.steps["at"])
        costs = sum(self.ledger.prefix(name) for name in ("text_tokens", "inline_tokens", "metadata_tokens"))
        sums: Ints = (np.asarray(costs)[self.ledger.steps["at"]] * self.ledger.usage_ratio).astype(np.int64)
        return sums

    @cached_property
    def compactions(self) -> tuple[Compaction, ...]:
        """Those that were recorded, or those the replay made."""
        return tuple(self._recorded()) if self.recorded else tuple(self._replayed())

    @cached_property
    def unused(self) -> int:
        """Recorded compactions with no call after them, before the next one or the end."""
        recorded = sum(not base.is_edit for base in self.ledger.bases) if self.recorded else 0
        return max(0, recorded - len(self.compactions))

    def _recorded(self) -> Iterable[Compaction]:
        epochs, firsts = np.unique(self.ledger.steps["epoch"], return_index=True)
        for epoch, step in zip(epochs, firsts, strict=True):
            if epoch >= 0 and not self.ledger.bases[epoch].is_edit:
                base = self.ledger.bases[epoch]
                before = base.tokens_before if base.tokens_before > 0 else self.grown_to(int(step))
                after = base.tokens_after if base.tokens_after > 0 else int(self.tokens[step])
                yield Compaction(int(step), before, after, base=base)

    def _replayed(self) -> Iterable[Compaction]:
        ratio = self.ledger.usage_ratio
        for record in self.trace.compactions:
            priced = self.attribution.price(record.before) if ratio is None else int(record.tokens_before * ratio)
            yield Compaction(record.step, priced, int(self.tokens[record.step]), record=record)

    def grown_to(self, step: int) -> int:
        """The request at a step, had nothing been compacted there: the one before and what came since."""
        if step == 0:
            return self.attribution.overhead + int(self.growth[0])
        return int(self.tokens[step - 1] + self.growth[step] - self.growth[step - 1])


def findings(
    ledger: Ledger, trace: Trace, attribution: Attribution | None = None, *, recorded: bool = False
) -> tuple[Finding, ...]:
    """All findings, the gravest first, then by step."""
    if not ledger.step_count:
        return ()
    case = Case(ledger, trace, attribution or attribute(ledger), recorded)
    found = [finding for check in CHECKS for finding in check(case)]
    return gravest_first(found)


def verdict(ledger: Ledger, trace: Trace, attribution: Attribution | None = None, *, recorded: bool = False) -> str:
    """One sentence on the whole session."""
    if not ledger.step_count:
        return "No model call."
    case = Case(ledger, trace, attribution or attribute(ledger), recorded)
    found = {check: tuple(check(case)) for check in (late, overflows, needless, loops, not_kept, timing_gaps, unfit)}
    clauses = [
        *_told(found[late], "{n} too late (step {step} overflowed by {over})"),
        *_told(found[needless], "{n} needless (peak without would have been {peak})"),
        *_told(found[not_kept], "{n} not kept (the history was back at the next call)"),
    ]
    clauses += _told(found[timing_gaps], "{n} that a stale count would have missed ({seen:,} seen, {now:,} there)")
    if not found[late]:
        clauses += _told(found[overflows], "{n} {requests} overflowed (step {step} by {over})")
    if not found[not_kept]:
        clauses += _told(found[loops], "a loop of {length} from step {step}")
    clauses += ["no policy can fit this window"] if found[unfit] else []
    clauses += [f"{case.unused:,} with no call after {'it' if case.unused == 1 else 'them'}"] if case.unused else []
    made = len(case.compactions) + case.unused
    head = "No compaction" if not made else f"{made:,} compaction{'s' if made > 1 else ''}"
    peak = int(np.argmax(case.tokens))
    return f"{head}; {', '.join(clauses) or f'peak {_share(case, case.tokens[peak])} of the window at step {peak}'}."


def _told(found: tuple[Finding, ...], words: str) -> list[str]:
    if not found:
        return []
    count, first = sum(finding.count for finding in found), found[0]
    values = {"requests": "request" if count == 1 else "requests", "step": first.step, **first.numbers}
    return [words.format(n=f"{count:,}", **values)]


# The checks. Each gives its findings in the order of steps.


def overflows(case: Case) -> list[Finding]:
    """Requests larger than the window."""
    reported = case.ledger.steps["prompt_tokens"] > 0
    over = (case.tokens > case.window) & ~(case.recorded & reported)
    return [_overflow(case, start, stop) for start, stop in _runs(over)]


def _overflow(case: Case, start: int, stop: int) -> Finding:
    worst = start + int(np.argmax(case.tokens[start:stop]))
    tokens, over = int(case.tokens[worst]), _percent(case.tokens[worst] / case.window - 1)
    many = "" if stop - start == 1 else f" The {stop - start:,} requests of steps {start} to {stop - 1} all do."
    how = "the provider reported no count, modelled " if case.recorded else ""
    sentence = f"Step {worst} overflows: {how}{tokens:,} tokens are {over} over the window of {case.window:,}.{many}"
    numbers = {"tokens": tokens, "window": case.window, "over": over, "first": start, "last": stop - 1}
    return Finding("overflow", ERROR, worst, sentence, numbers, count=stop - start)


def near_misses(case: Case) -> list[Finding]:
    """Requests that nearly filled the window, one finding per approach."""
    near = (case.tokens >= NEAR_MISS_SHARE * case.window) & (case.tokens <= case.window)
    made = []
    for start, stop in _runs(near):
        worst = start + int(np.argmax(case.tokens[start:stop]))
        tokens = int(case.tokens[worst])
        sentence = f"Step {worst} comes near: {tokens:,} tokens are {_share(case, tokens)} of the window."
        made.append(Finding("near_miss", WARNING, worst, sentence, {"tokens": tokens, "window": case.window}))
    return _grouped(made, lambda first, n: f"{n:,} approaches to the window. {first.sentence}", worst="tokens")


def mismatches(case: Case) -> list[Finding]:
    """Recorded counts above the window: then the window is not what it is said to be."""
    recorded = case.ledger.steps["prompt_tokens"]
    steps = np.flatnonzero(recorded > case.window)
    if not case.recorded or not len(steps):
        return []
    worst = int(steps[np.argmax(recorded[steps])])
    sentence = (
        f"The provider counted {int(recorded[worst]):,} prompt tokens at step {worst} and answered: "
        f"the window of {case.window:,} is not the one this model had."
    )
    numbers = {"tokens": int(recorded[worst]), "window": case.window}
    return [Finding("window_mismatch", ERROR, worst, sentence, numbers, count=len(steps))]


def late(case: Case) -> list[Finding]:
    """Compactions that came only after a request had overflowed."""
    over = np.flatnonzero(case.tokens > case.window)
    made, after = [], -1
    for item in case.compactions:
        recent = over[(over < item.step) & (over >= item.step - LATE_STEPS) & (over > after)]
        if len(recent):
            step = int(recent[0])
            share = _percent(case.tokens[step] / case.window - 1)
            sentence = f"The compaction at step {item.step} came too late: step {step} overflowed by {share}."
            numbers = {"over": share, "tokens": int(case.tokens[step]), "compaction": item.step}
            made.append(Finding("late", ERROR, step, sentence, numbers))
        after = item.step
    return _grouped(made, lambda first, n: f"{n:,} compactions came too late. {first.sentence}")


def timing_gaps(case: Case) -> list[Finding]:
    """Compactions that the count of the step before would have missed."""
    real, decided, limit = (case.column(name) for name in ("real_loaded", "decision_tokens", "threshold"))
    made = []
    for item in case.compactions:
        seen, now, line = (int(column[item.step]) for column in (real, decided, limit))
        if 0 < seen < line <= now and now - seen >= GAP_SHARE * line:
            sentence = (
                f"Step {item.step}: the last count, {seen:,} tokens, was below the threshold of {line:,}; the estimate "
                f"of {now:,} saw what had been added since. A stale count would have missed this compaction."
            )
            made.append(Finding("timing_gap", INFO, item.step, sentence, {"seen": seen, "now": now, "threshold": line}))
    return _grouped(made, lambda first, n: f"{n:,} compactions that a stale count would have missed. {first.sentence}")


def needless(case: Case) -> list[Finding]:
    """Compactions without which the session would have stayed below threshold and near miss up to the next one."""
    made = []
    ends = [*(item.step for item in case.compactions[1:]), case.ledger.step_count]
    kept = {finding.step for finding in _returns(case)}
    for item, end in zip(case.compactions, ends, strict=False):
        before = item.before if case.recorded else case.grown_to(item.step)
        peak = before + int((case.growth[item.step : end] - case.growth[item.step]).max(initial=0))
        limit = int(case.column("threshold")[item.step])
        if peak < min(limit if limit > 0 else case.window, NEAR_MISS_SHARE * case.window) and item.step not in kept:
            share = _share(case, peak)
            sentence = (
                f"The compaction at step {item.step} was needless: without it the requests up to step {end - 1} would "
                f"have peaked at {peak:,} tokens, {share} of the window of {case.window:,} (modelled)."
            )
            made.append(
                Finding("needless", WARNING, item.step, sentence, {"peak": share, "tokens": peak, "until": end})
            )
    return _grouped(made, lambda first, n: f"{n:,} needless compactions. {first.sentence}", worst="tokens")


def loops(case: Case) -> list[Finding]:
    """Compactions at every step, without progress."""
    made = []
    for group in _rows(case.compactions, 1):
        if len(group) >= LOOP_LENGTH:
            first, last = group[0], group[-1]
            sentence = (
                f"A loop: {len(group):,} compactions at every step from {first.step} to {last.step}, "
                f"{first.before:,} → {first.after:,} → {group[1].before:,} tokens and so on."
            )
            numbers = {"length": len(group), "first": first.step, "last": last.step}
            made.append(Finding("loop", ERROR, first.step, sentence, numbers))
    return made


def thrashing(case: Case) -> list[Finding]:
    """Compactions in quick succession."""
    made = []
    for group in _rows(case.compactions, THRASH_STEPS - 1):
        gaps = [after.step - before.step for before, after in pairwise(group)]
        if len(group) >= THRASH_LENGTH and max(gaps) > 1:
            first, last = group[0].step, group[-1].step
            sentence = (
                f"Compaction thrashes: {len(group):,} compactions between steps {first} and {last}, "
                f"{sum(gaps) / len(gaps):.1f} steps apart."
            )
            made.append(
                Finding("thrash", WARNING, first, sentence, {"length": len(group), "first": first, "last": last})
            )
    return made


def not_kept(case: Case) -> list[Finding]:
    """Compactions whose effect was gone at the next one: the whole history came back."""
    return _grouped(_returns(case), lambda first, n: f"{n:,} compactions were not kept. {first.sentence}")


def _returns(case: Case) -> list[Finding]:
    return _recorded_returns(case) if case.recorded else _replayed_returns(case)


def _recorded_returns(case: Case) -> list[Finding]:
    made = []
    for item, following in pairwise(case.compactions):
        grown = max(0, int(case.growth[following.step] - case.growth[item.step]))
        if following.before > item.after + RETURN_GROWTH * grown + RETURN_WINDOW * case.window:
            made.append(_return(item.step, following.step, (item.before, item.after, following.before, grown)))
    return made


def _replayed_returns(case: Case) -> list[Finding]:
    """As the policy's own estimate saw it: the next decision was made on the whole history again."""
    built, decided, sent = (case.column(f"heuristic_{name}") for name in ("built", "decided", "sent"))
    made = []
    for item in case.compactions:
        step, following = item.step, item.step + 1
        if following < case.ledger.step_count:
            grown = max(0, int(built[following] - built[step]))
            if decided[following] > sent[step] + RETURN_GROWTH * grown + RETURN_WINDOW * case.window:
                figures = (int(decided[step]), int(sent[step]), int(decided[following]), grown)
                made.append(_return(step, following, figures, "heuristic "))
    return made


def _return(step: int, following: int, figures: tuple[int, int, int, int], measure: str = "") -> Finding:
    before, after, again, added = figures
    sentence = (
        f"The compaction of step {step} was not kept: {before:,} → {after:,} {measure}tokens, and at step {following} "
        f"{again:,} again, though only about {added:,} were added."
    )
    numbers = {"before": before, "after": after, "again": again, "added": added}
    return Finding("summary_not_kept", ERROR, step, sentence, numbers)


def unfit(case: Case) -> list[Finding]:
    """What no compaction can shrink is over the threshold already."""
    held = case.trace.columns.get("held", np.zeros(case.ledger.step_count, dtype=np.int64))
    steps = np.flatnonzero((held == FLOOR_OVER_THRESHOLD) | (held == FLOOR_OVER_WINDOW))
    limit = int(case.column("threshold").max())
    floor = case.attribution.overhead
    if not len(steps) and not 0 < limit <= floor:
        return []
    step = int(steps[0]) if len(steps) else 0
    line = f"the window of {case.window:,}" if floor > case.window else f"the threshold of {limit:,}"
    what = f"about {floor:,} tokens" if 0 < limit <= floor else "what a compaction leaves"
    sentence = f"No policy can fit: the system prompt and tools, {what}, cannot be shrunk and are over {line}."
    if not 0 < limit <= floor:
        sentence = f"No policy can fit: at step {step} what a compaction cannot shrink is over {line} already."
    return [Finding("unfit", ERROR, step, sentence, {"floor": floor, "threshold": limit}, count=max(1, len(steps)))]


def still_over(case: Case) -> list[Finding]:
    """Compactions after which the request was still over the threshold."""
    held, sent, limit = (case.column(name) for name in ("held", "heuristic_sent", "threshold"))
    made = []
    for step in np.flatnonzero(held == STILL_OVER):
        sentence = (
            f"Step {step}: after the last pass the request was still over the threshold of {int(limit[step]):,} "
            f"(heuristic {int(sent[step]):,} tokens)."
        )
        made.append(Finding("still_over", WARNING, int(step), sentence, {"heuristic": int(sent[step])}))
    return _grouped(made, lambda first, n: f"{n:,} compactions did not get below the threshold. {first.sentence}")


def bad_summaries(case: Case) -> list[Finding]:
    """Mechanical, empty and sealed summaries."""
    fallback, empty, sealed = [], [], []
    for item in case.compactions:
        step, passes = item.step, item.record.passes if item.record else ()
        kind, costs = (item.base.kind, item.base.costs) if item.base else ("", {})
        if kind == "fallback" or any(one.fallback for one in passes):
            words = f"Step {step}: the summariser failed or said nothing; a mechanical summary took its place."
            fallback.append(Finding("fallback_summary", WARNING, step, words))
        if kind == "opaque" or any(costs.get("opaque_bytes", ())):
            words = f"Step {step}: the summary is sealed or missing in the recording; what it kept cannot be measured."
            sealed.append(Finding("unreadable_summary", INFO, step, words))
        elif passes and not passes[-1].summary_bytes:
            words = f"Step {step}: the summary is empty. The next call has the whole history again."
            empty.append(Finding("empty_summary", ERROR, step, words))
    return [
        *_grouped(fallback, lambda first, n: f"{n:,} mechanical summaries. {first.sentence}"),
        *_grouped(empty, lambda first, n: f"{n:,} empty summaries. {first.sentence}"),
        *_grouped(sealed, lambda first, n: f"{n:,} sealed summaries. {first.sentence}"),
    ]


def unreported(case: Case) -> list[Finding]:
    """Calls whose token usage the provider did not report."""
    missing = np.flatnonzero((case.ledger.steps["prompt_tokens"] <= 0) & (case.ledger.steps["response"] >= 0))
    if not len(missing):
        return []
    total, step = case.ledger.step_count, int(missing[0])
    words = "Every figure is an estimate." if len(missing) == total else f"The first is step {step}."
    sentence = f"{len(missing):,} of {total:,} calls have no recorded token usage. {words}"
    severity = WARNING if len(missing) == total else INFO
    numbers = {"missing": len(missing), "calls": total}
    return [Finding("no_usage", severity, step, sentence, numbers, count=len(missing))]


def clamped(case: Case) -> list[Finding]:
    """Correction factors that had to be cut to their cap or lifted to their floor."""
    raw, applied = case.column("correction_raw"), case.column("correction")
    ratio = case.column("correction_source") == CORRECTION_SOURCES.index("ratio")
    made = []
    for kind, severity, bound, steps in (
        ("factor_capped", WARNING, "cap", np.flatnonzero(ratio & (raw > applied))),
        ("factor_floored", INFO, "floor", np.flatnonzero(ratio & (raw < applied))),
    ):
        if len(steps):
            far = int(steps[np.argmax(np.abs(raw[steps] - applied[steps]))])
            effect = "estimates are too low" if bound == "cap" else "estimates are too high"
            sentence = (
                f"The correction factor met its {bound} at {len(steps):,} step{'s' if len(steps) > 1 else ''}: "
                f"{raw[far]:.2f} became {applied[far]:.2f} at step {far}, so {effect} there."
            )
            numbers = {"raw": round(float(raw[far]), 4), "applied": float(applied[far])}
            made.append(Finding(kind, severity, far, sentence, numbers, count=len(steps)))
    return made


def stacked(case: Case) -> list[Finding]:
    """Compactions that left more than one continuation in the request."""
    made = []
    for item in case.compactions:
        view = item.record.after if item.record else ()
        count = sum(isinstance(segment, Synthetic) and segment.kind == "continuation" for segment in view)
        if count > 1:
            sentence = f"Step {item.step}: {count} continuation messages are stacked in one request, one per pass."
            made.append(Finding("stacked_continuations", WARNING, item.step, sentence, {"continuations": count}))
    return _grouped(made, lambda first, n: f"{n:,} compactions stack continuations. {first.sentence}")


def lost_tails(case: Case) -> list[Finding]:
    """Recent messages that a compaction kept and the next request no longer has."""
    made = []
    for item in case.compactions:
        lost = _lost(item.record) if item.record else []
        if lost and item.step + 1 < case.ledger.step_count:
            sentence = (
                f"Step {item.step}: messages {lost[0][0]} to {lost[-1][1] - 1} were kept verbatim and are gone at the "
                f"next call: no summary holds them, but the watermark covers them."
            )
            numbers = {"messages": sum(stop - start for start, stop in lost)}
            made.append(Finding("tail_lost", ERROR, item.step, sentence, numbers))
    return _grouped(made, lambda first, n: f"{n:,} compactions lose their recent messages. {first.sentence}")


def _lost(record: CompactionRecord) -> list[tuple[int, int]]:
    """Events in the request of the compaction that the policy does not carry on, as ranges."""
    later = sorted((segment.start, segment.stop) for segment in record.carried if isinstance(segment, Span))
    made = []
    for segment in record.after:
        if isinstance(segment, Span):
            start, stop = segment.start, min(segment.stop, record.kept_from)
            for low, high in later:
                if start < min(low, stop):
                    made.append((start, min(low, stop)))
                start = max(start, high)
            if start < stop:
                made.append((start, stop))
    return made


def lost_requests(case: Case) -> list[Finding]:
    """Turns in which later calls no longer hold what the user asked."""
    made = []
    users, turns, count = case.ledger.steps["user_event"], case.ledger.steps["turn"], case.ledger.step_count
    words = "the inserted messages say" if case.recorded else "the summary says"
    for item in case.compactions:
        following, request = item.step + 1, int(users[item.step])
        if request < 0 or following >= count or turns[following] != turns[item.step]:
            continue
        if not _holds(item, request):
            sentence = (
                f"After the compaction at step {item.step} no later call of the turn holds the user's request (message "
                f"{request}) itself, only what {words} of it."
            )
            severity = INFO if case.recorded else WARNING
            made.append(Finding("request_lost", severity, item.step, sentence, {"message": request}))
    return _grouped(made, lambda first, n: f"{n:,} compactions lose the user's request. {first.sentence}")


def _holds(item: Compaction, event: int) -> bool:
    """Does the request after the compacting one still have this event."""
    if item.record:
        repeated = bool(item.record.in_turn)  # a profile that repeats the request for the rest of the turn
        return repeated or _has(item.record.carried, event) or event >= item.record.kept_from
    return item.base is None or _has(item.base.view, event) or event >= item.base.at


def _has(view: View, event: int) -> bool:
    return any(isinstance(segment, Span) and segment.start <= event < segment.stop for segment in view)


CHECKS: tuple[Callable[[Case], list[Finding]], ...] = (
    overflows,
    late,
    mismatches,
    unfit,
    still_over,
    loops,
    not_kept,
    thrashing,
    near_misses,
    timing_gaps,
    needless,
    bad_summaries,
    lost_tails,
    lost_requests,
    stacked,
    clamped,
    unreported,
)


def _runs(flags: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Start and stop of every run of true values."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]]).astype(np.int8)))
    return [(int(start), int(stop)) for start, stop in edges.reshape(-1, 2)]


def _rows(compactions: tuple[Compaction, ...], apart: int) -> list[list[Compaction]]:
    """Compactions grouped into rows whose neighbours are at most so many steps apart."""
    rows: list[list[Compaction]] = []
    for item in compactions:
        if rows and item.step - rows[-1][-1].step <= apart:
            rows[-1].append(item)
        else:
            rows.append([item])
    return rows


def _grouped(found: list[Finding], words: Callable[[Finding, int], str], worst: str = "") -> list[Finding]:
    """The findings as they are, or one for all of them where there are many."""
    if len(found) <= SINGLE:
        return found
    told = max(found, key=lambda finding: finding.numbers[worst]) if worst else found[0]
    count = sum(finding.count for finding in found)
    numbers = {**told.numbers, "steps": [finding.step for finding in found[:20]]}
    return [Finding(told.kind, told.severity, told.step, words(told, count), numbers, count=count)]


def _share(case: Case, tokens: int) -> str:
    return _percent(tokens / case.window) if case.window else "?"


def _percent(share: float) -> str:
    return f"{share * 100:.1f} %"
