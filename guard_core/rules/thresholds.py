"""Thresholds that the rules of agents may have: windows, reserves and shares that users and versions set."""

from __future__ import annotations

from functools import lru_cache

from guard_core.rules.base import Stretch

# For hypotheses: windows of models and what is kept free of them, in tokens.
WINDOWS = (200_000, 400_000, 1_000_000, 128_000)
RESERVES = (8_192, 10_000, 16_384, 20_000, 32_000, 64_000)
FRACTIONS = (0.5, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)
LARGEST_LIMIT = 1_000_000  # tokens, of limits typed by hand


def windows_of(stretch: Stretch, more: tuple[int, ...] = ()) -> tuple[tuple[int, int], ...]:
    """The windows that hypotheses are made of, each with the settings that differ: 0 for the stretch's own, which comes
    first. `more`: of the agent's models. Where the own one is not known, round numbers are tried, too."""
    return _windows(None if stretch.window is None else stretch.window.value, more)


@lru_cache(maxsize=32)  # asked for each model of a session
def _windows(own: int | None, more: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    known = tuple(dict.fromkeys((*WINDOWS, *more)))
    if own is not None:
        return ((own, 0), *((value, 1) for value in known if value != own))
    return (*((value, 1) for value in known), *((value, 2) for value in round_limits(LARGEST_LIMIT)))


def share_of(share: float, window: int) -> tuple[str, int]:
    """A share of a window, rounded down as most agents do: as a formula and in tokens."""
    return f"{share * 100:g} % of {window:,}", int(share * window)


@lru_cache(maxsize=32)
def round_limits(most: int) -> tuple[int, ...]:
    """Round numbers of tokens that a person may have typed, the roundest first."""
    units = (50_000, 10_000, 5_000, 1_000)
    return tuple(dict.fromkeys(limit for unit in units for limit in range(unit, min(most, LARGEST_LIMIT) + 1, unit)))
