"""The chart of a report, as SVG without script: its values are the titles of columns that a pointer enters, and its
compactions link to what the report says of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from guard_core.plural import counted
from guard_core.report.document import Report, ReportCompaction, Side
from guard_core.report.markup import Markup, joined, tag
from guard_core.report.words import side_title
from guard_core.shares import per_cent

WIDTH, HEIGHT = 1000, 260
LEFT, RIGHT, TOP, BOTTOM = 64, 12, 12, 28
MOST_MARKS = 400  # compactions that are drawn
MOST_COLUMNS = 240  # with values of their own: of four units, as narrow as a pointer hits


def chart(report: Report, side: Side) -> Markup | None:
    """Prompt tokens of every request, the window, the thresholds and the compactions; None where there was no call."""
    series = side.series
    if not series.steps:
        return None
    scale = Scale(report.session.calls, max(report.window.value, *series.tokens, *series.threshold))
    is_counted = [not value for value in series.modelled]
    label = (
        f"{side_title(side)}: prompt tokens of {counted(report.session.calls, 'call')}, at most "
        f"{max(series.tokens):,}, in a window of {report.window.value:,}; "
        f"{counted(side.outcome.compactions, 'compaction')}."
    )
    marks = [item for item in side.compactions if item.step >= 0][:MOST_MARKS]
    return tag(
        "svg",
        tag("title", label),
        *axis(scale),
        tag("path", class_="window", d=f"M{LEFT} {scale.y(report.window.value)}H{WIDTH - RIGHT}"),
        tag(
            "path",
            class_="threshold",
            d=path_of(scale, series.steps, series.threshold, [v >= 0 for v in series.threshold]),
        ),
        tag("path", class_="modelled", d=path_of(scale, series.steps, series.tokens, [True] * len(is_counted))),
        tag("path", class_="recorded", d=path_of(scale, series.steps, series.tokens, is_counted)),
        joined(columns(report, side, scale)),
        joined(_mark(scale, side, item) for item in marks),
        viewBox=scale.box,
        role="img",
        class_="chart",
    )


def anchor(side: Side, item: ReportCompaction) -> str:
    """The name of a compaction's part of the report."""
    return f"compaction-{side.name}-{item.index + 1}"


def _mark(scale: Scale, side: Side, item: ReportCompaction) -> Markup:
    """The line of a compaction, a link where the report shows it in full."""
    line = tag("path", class_="mark", d=scale.upright(item.step))
    name = tag("title", f"Compaction {item.index + 1:,}, before step {item.step + 1:,}")
    return tag("a", name, line, href=f"#{anchor(side, item)}") if item.bridge is not None else tag("g", name, line)


def columns(report: Report, side: Side, scale: Scale) -> Iterator[Markup]:
    """Columns from the left to the right, each with the value of its request, or the largest of its requests."""
    series, window = side.series, report.window.value
    size = -(-len(series.steps) // MOST_COLUMNS)
    left = float(LEFT)
    for first in range(0, len(series.steps), size):
        places = range(first, min(first + size, len(series.steps)))
        place = max(places, key=lambda item: series.tokens[item])
        step, count = series.steps[place], series.tokens[place]
        after = series.steps[places[-1] + 1] if places[-1] + 1 < len(series.steps) else series.steps[places[-1]]
        right = (float(scale.x(series.steps[places[-1]])) + float(scale.x(after))) / 2
        source = "modelled" if series.modelled[place] else "recorded"
        words = f"step {step + 1:,}: {count:,} tokens, {source}, {per_cent(count / window, 1)} % of the window"
        if len(places) > 1:
            last = series.steps[places[-1]]
            words = f"the largest drawn from step {series.steps[first] + 1:,} to {last + 1:,} is {words}"
        if series.threshold[place] >= 0:
            words += f"; threshold {series.threshold[place]:,}"
        width = max(1.0, right - left)
        yield tag(
            "rect",
            tag("title", words),
            class_="column",
            x=f"{left:.1f}",
            y=TOP,
            width=f"{width:.1f}",
            height=HEIGHT - TOP - BOTTOM,
        )
        left = right


class Scale:
    """Where a step and a number of tokens are drawn: `calls` steps, and up to `most` tokens."""

    def __init__(self, calls: int, most: int) -> None:
        self.calls = max(1, calls - 1)
        self.top = max(1, round(1.05 * most))

    @property
    def box(self) -> str:
        """The size of the picture, as an SVG has it."""
        return f"0 0 {WIDTH} {HEIGHT}"

    def upright(self, step: int) -> str:
        """A line over all heights at a step."""
        return f"M{self.x(step)} {TOP}V{HEIGHT - BOTTOM}"

    def x(self, step: int) -> str:
        return f"{LEFT + (WIDTH - LEFT - RIGHT) * step / self.calls:.1f}".removesuffix(".0")

    def y(self, tokens: int) -> str:
        return f"{HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * tokens / self.top:.1f}".removesuffix(".0")


def path_of(scale: Scale, steps: Sequence[int], values: Sequence[int], drawn: Sequence[bool]) -> str:
    """A line through the drawn points, broken where one is not."""
    parts, pen = [], "M"
    for step, value, is_drawn in zip(steps, values, drawn, strict=True):
        if is_drawn:
            parts.append(f"{pen}{scale.x(step)} {scale.y(value)}")
        pen = "L" if is_drawn else "M"
    return "".join(parts)


def axis(scale: Scale) -> list[Markup]:
    """Four heights in tokens, and the first and last step."""
    unit = 10 ** (len(str(scale.top)) - 1)
    step = next(size for size in (unit // 5, unit // 2, unit, 2 * unit, 5 * unit) if size and scale.top // size <= 5)
    ticks = [
        joined(
            (
                tag("path", class_="grid", d=f"M{LEFT} {scale.y(value)}H{WIDTH - RIGHT}"),
                tag("text", value, x=LEFT - 6, y=scale.y(value), text_anchor="end", dominant_baseline="middle"),
            )
        )
        for value in range(0, scale.top + 1, max(1, step))
    ]
    ends = [
        tag("text", "step 1", x=LEFT, y=HEIGHT - 8),
        tag("text", f"step {scale.calls + 1:,}", x=WIDTH - RIGHT, y=HEIGHT - 8, text_anchor="end"),
    ]
    return [*ticks, *ends]
