"""The calibrated estimate: a heuristic scaled by how far it was off at the step before.

Source of the rules: specification of ContextGuard, section 5. The scalar and the vectorised form multiply and
truncate the same IEEE doubles in the same order.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from guard_core import defaults
from guard_core.ledger import Ints

CORRECTION_SOURCES = ("none", "ratio", "default", "default_with_real")
NONE, RATIO, DEFAULT, DEFAULT_WITH_REAL = range(4)  # indexes into it
Floats = NDArray[np.float64]


class Factors(NamedTuple):
    """The constants of the correction."""

    default: float = defaults.DEFAULT_FACTOR
    floor: float = defaults.FACTOR_FLOOR
    cap: float = defaults.FACTOR_CAP


class CalibratedEstimate(NamedTuple):
    """A calibrated estimate and its parts; `raw` is nan where the default factor was used."""

    raw: float
    factor: float
    source: int
    calibrated: int
    tokens: int


class CalibratedEstimates(NamedTuple):
    """The same for a run of steps."""

    raw: Floats
    factor: Floats
    source: Ints
    calibrated: Ints
    tokens: Ints


def estimate(heuristic: int, real: int, last: int, factors: Factors) -> CalibratedEstimate:
    """The count a decision is made on. `real`: provider's count of the step before (0: none), `last`: its heuristic."""
    if real > 0 and last > 0:
        raw = real / last
        factor, source = min(max(raw, factors.floor), factors.cap), RATIO
    else:
        raw, factor = math.nan, factors.default
        source = DEFAULT_WITH_REAL if real > 0 else DEFAULT
    calibrated = int(heuristic * factor)
    return CalibratedEstimate(raw, factor, source, calibrated, max(real, calibrated) if real > 0 else calibrated)


def estimate_run(heuristic: Ints, real: Ints, last: Ints, factors: Factors) -> CalibratedEstimates:
    """`estimate` for arrays."""
    known = real > 0
    ratio = known & (last > 0)
    # As in nearly every run, of which a replay asks for thousands: in a third of the time.
    if np.count_nonzero(ratio) == len(ratio):
        raw = real / last
        factor = np.minimum(np.maximum(raw, factors.floor), factors.cap)
        source = np.full(len(heuristic), RATIO)
    else:
        raw = np.full(len(heuristic), np.nan)
        np.divide(real, last, out=raw, where=ratio)
        factor = np.where(ratio, np.minimum(np.maximum(raw, factors.floor), factors.cap), factors.default)
        source = np.where(ratio, RATIO, np.where(known, DEFAULT_WITH_REAL, DEFAULT))
    calibrated = (heuristic * factor).astype(np.int64)
    return CalibratedEstimates(raw, factor, source, calibrated, np.maximum(calibrated, real))
