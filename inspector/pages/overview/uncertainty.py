"""How far the modelled part of a replay may be off: this session's forecast errors, by calls since the divergence."""

from __future__ import annotations

import numpy as np

from guard_core.estimation.forecast import COMPACTION, HORIZONS, Forecast
from inspector.figures.timeline import Floats, Replayed

LEAST_CALLS = 3  # of fewer forecasts a quantile says nothing


def share_off(replayed: Replayed, forecast: Forecast) -> Floats | None:
    """The share of each modelled count that 95 % of the forecasts stay within; None where nothing was measured.

    It grows from call to call as the forecast's does, and never falls below that of a first call after a compaction
    once the replay has compacted. NaN where the replay sends what was recorded, and after its first compaction where
    too few recorded ones could be forecast to say anything.
    """
    measured = ((horizon, forecast.get(str(horizon))) for horizon in HORIZONS)
    known = [(horizon, errors.p95) for horizon, errors in measured if errors and errors.calls >= LEAST_CALLS]
    if replayed.divergence is None or not known:
        return None
    steps = np.arange(len(replayed.prompt_tokens))
    calls, shares = [horizon for horizon, _ in known], [p95 for _, p95 in known]
    off = np.interp(steps - replayed.divergence + 1, calls, shares)
    if len(replayed.compactions):
        after = forecast.get(COMPACTION)
        least = after.p95 if after is not None and after.calls >= LEAST_CALLS else np.nan
        off = np.where(steps >= replayed.compactions[0], np.maximum(off, least), off)
    return np.where(steps >= replayed.divergence, off, np.nan)
