"""How the figures of a report read: shared by its renderers."""

from __future__ import annotations

from guard_core.estimation.usage import PROVIDER
from guard_core.outcomes.words import dollars
from guard_core.report.document import (
    ForecastError,
    Hidden,
    Report,
    ReportCompaction,
    ReportDecision,
    ReportWindow,
    Side,
)
from guard_core.rules.words import NOTHING
from guard_core.trace import PROMPT_SOURCES
from guard_core.windows.prices import UNIT

COUNTED = PROMPT_SOURCES[PROVIDER]
AHEAD = {"1": "1 call ahead", "10": "10 calls ahead", "50": "50 calls ahead", "compaction": "across a compaction"}


def money(amount: int | None) -> str:
    """Millionths of a US dollar in words."""
    return "price unknown" if amount is None else dollars(amount * UNIT)


def grouped(value: float) -> str:
    """A number with comma groups, and with the minus sign of the formulas beside it."""
    text = f"{abs(value):,g}" if isinstance(value, float) else f"{abs(value):,}"
    return f"−{text}" if value < 0 else text


def side_title(side: Side) -> str:
    """What a side is called."""
    if side.name == "recorded":
        return "Recording"
    return f"Replay under {side.policy}{f', {side.profile}' if side.profile else ''}"


def main_side(report: Report) -> Side:
    """The side that the report leads with: the recording, where there is one."""
    return report.sides[0]


def step_words(step: int) -> str:
    """A step as people count it."""
    return "–" if step < 0 else f"{step + 1:,}"


def title_of(report: Report) -> str:
    """What a report is called."""
    return report.title or report.session.title or "Compaction report"


def window_words(window: ReportWindow) -> str:
    """The context window that a report assumes, where it is from, and whether that is doubted."""
    note = f": {window.note}" if window.note else ""
    doubt = "" if window.status in ("known", "table", window.source) else f", {window.status}"
    return f"Context window {window.value:,} tokens ({window.source}{doubt}{note})."


def decision_sentences(decision: ReportDecision) -> list[str]:
    """What a decision was, and the comparison, where there was something to compare."""
    compared = [decision.inequality] if decision.terms and decision.inequality != NOTHING else []
    return [decision.sentence, *compared]


def figures(report: Report, side: Side) -> list[tuple[str, str, str]]:
    """Label, value and source of the figures of a side."""
    outcome = side.outcome
    costs = outcome.costs
    least = "at least " if outcome.is_least else ""
    is_counted = side.name == "recorded" and report.session.reported_calls == report.session.calls
    rows = [
        ("compactions", f"{outcome.compactions:,}", ""),
        ("peak", f"{outcome.peak:,} tokens at step {step_words(outcome.peak_step)}", outcome.peak_source),
        ("requests over the window, or refused as too long", f"{outcome.overflows:,}", ""),
        ("near misses", f"{outcome.near_misses:,}", ""),
        ("total prompt tokens", f"{costs.prompt:,}", "recorded" if is_counted else "modelled"),
        ("of these from the cache", f"{costs.cached:,}", costs.source),
        ("cost", money(costs.total), "" if costs.total is None else "modelled, at list prices"),
        ("users' requests no longer held", f"{least}{outcome.requests_dropped:,} of {outcome.requests:,}", ""),
    ]
    if outcome.reported is not None:
        reported = outcome.reported
        words = f"{reported.prompt:,} prompt tokens, {reported.cached:,} from the cache"
        words += "" if reported.total is None else f"; {money(reported.total)} at list prices"
        rows.append(("as reported by the provider", words, "recorded"))
    return rows


def compaction_row(item: ReportCompaction) -> tuple[str, ...]:
    """Number, step, trigger, before, after, share remaining, agreement, instructions lost. What no provider counted has
    its source behind it: of the request before, also what was added since the last count."""
    share = f"{100 * item.after / item.before:.0f} %" if item.before > 0 else "–"
    share += f" ({item.after_source})" if item.before > 0 and item.after_source != COUNTED else ""
    before = f"{item.before:,}" if item.before > 0 else "–"
    before += f" ({item.before_source})" if item.before > 0 and item.before_source not in ("", COUNTED) else ""
    count = "" if item.count is None else f"{item.count:,}"
    threshold = "" if item.threshold is None else f"{item.threshold:,}"
    return (
        f"{item.index + 1:,}",
        step_words(item.step),
        item.trigger,
        before,
        f"{item.after:,}",
        share,
        count,
        threshold,
        item.agreement or item.evidence,
        f"{item.instructions_lost:,}" if item.before > 0 or item.instructions_lost else "–",
    )


COMPACTION_HEADS = ("", "step", "trigger", "before", "after", "remaining", "count", "threshold", "by the rule", "lost")


def forecast_row(error: ForecastError) -> tuple[str, str, str, str]:
    """How far ahead, how many predictions, mean and 95th percentile of the error."""
    return (
        AHEAD.get(error.ahead, error.ahead),
        f"{error.calls:,}",
        f"{100 * error.mean:.1f} %",
        f"{100 * error.p95:.1f} %",
    )


def provenance(report: Report) -> list[str]:
    """What the report can be recomputed from."""
    return [
        f"Engine {report.engine_version}.",
        f"Session SHA-256 {report.session.digest}.",
        *(f"{side_title(side)}: trace SHA-256 {side.digest}." for side in report.sides if side.digest),
        f"Report SHA-256 {report.digest}." if report.digest else "",
    ]


def hidden_words(report: Report) -> str:
    """What was redacted, in a sentence."""
    return redaction_words(report.hidden, report.level)


def redaction_words(hidden: tuple[Hidden, ...] | None, level: str) -> str:
    """What was redacted of a document, in a sentence."""
    if hidden is None:
        return "" if level == "numbers" else "Not searched for secrets."
    if not hidden:
        return "Searched for secrets: nothing was found to redact."
    return f"Redacted: {', '.join(f'{item.count:,} × {item.kind}' for item in hidden)}."
