"""The heat map of a sweep: a grid with a cell for each setting, and the colours of its figures."""

from __future__ import annotations

from dataclasses import dataclass

from plotly.colors import sample_colorscale, unlabel_rgb

COLORS = "Cividis"  # legible with every kind of colour vision, and in grey
EVEN = 0.179  # luminance on which black and white text have the same contrast, by the formula of WCAG 2.2


@dataclass(frozen=True)
class Heat:
    """A grid as the page shows it: rows by columns, None where a value is not known. `over` says which cells overflow,
    `links` where a cell leads, `recommended` is (row, column)."""

    columns: tuple[str, ...]
    rows: tuple[str, ...]
    values: tuple[tuple[int | None, ...], ...]
    texts: tuple[tuple[str, ...], ...]
    over: tuple[tuple[bool, ...], ...]
    links: tuple[tuple[str, ...], ...]
    recommended: tuple[int, int]
    column_title: str
    row_title: str

    @property
    def shares(self) -> tuple[tuple[float | None, ...], ...]:
        """Each value's place between the least (0) and the largest (1)."""
        known = [value for row in self.values for value in row if value is not None]
        low, span = min(known, default=0), max(known, default=0) - min(known, default=0)
        return tuple(
            tuple(None if value is None else (value - low) / span if span else 0.0 for value in row)
            for row in self.values
        )


def colour(share: float) -> tuple[str, bool]:
    """The colour of a place on the scale, and whether text on it is black: by the larger contrast."""
    shade = sample_colorscale(COLORS, [share])[0]
    channels = [value / 255 for value in unlabel_rgb(shade)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return shade, 0.2126 * red + 0.7152 * green + 0.0722 * blue >= EVEN
