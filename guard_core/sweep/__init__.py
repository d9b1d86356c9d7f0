"""A sweep: sessions under a grid of settings, with a recommended one and its evidence.

`axes` is the grid, `cells` what happened at each of its points, `judging` what follows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from guard_core.estimation.usage import Usage
from guard_core.ledger import Ledger
from guard_core.policies import DEFAULT_POLICY
from guard_core.summaries.sizes import SizeModel
from guard_core.sweep.axes import axis_of, default_axes, grid, parse_axis, words
from guard_core.sweep.cells import (
    LOSSES,
    Figures,
    GridCell,
    Priced,
    figure_values,
    figures_of,
    money,
    policy_at,
    session_cells,
)
from guard_core.sweep.judging import (
    MEASURES,
    Fold,
    Measure,
    SweepResult,
    conclusion_values,
    failed,
    fold_words,
    get_measure,
    halves,
    judged,
    trade_offs,
)
from guard_core.windows.request_limits import RequestLimits

__all__ = [
    "LOSSES",
    "MEASURES",
    "Figures",
    "Fold",
    "GridCell",
    "Measure",
    "Priced",
    "SweepResult",
    "axis_of",
    "conclusion_values",
    "default_axes",
    "failed",
    "figure_values",
    "figures_of",
    "fold_words",
    "get_measure",
    "grid",
    "halves",
    "judged",
    "money",
    "parse_axis",
    "policy_at",
    "session_cells",
    "sweep",
    "trade_offs",
    "words",
]


def sweep(
    ledger: Ledger,
    axes: Mapping[str, Sequence[Any]],
    *,
    window: int,
    policy: str = DEFAULT_POLICY,
    settings: Mapping[str, Any] | None = None,
    usage: Usage | None = None,
    summarizer: SizeModel | None = None,
    limits: Callable[[int], RequestLimits] = RequestLimits,
) -> SweepResult:
    """Replay a session under every combination of the axes' values.

    An axis is a setting of the policy, `window` (tokens), `profile` or `policy`. Raises SettingError or UnknownName
    where a value is not allowed, and SettingError for a grid that is too large. `limits` as in `session_cells`.
    """
    cells = session_cells(
        ledger,
        grid(axes),
        window=window,
        policy=policy,
        settings=settings,
        usage=usage,
        summarizer=summarizer,
        limits=limits,
    )
    return judged(axes, [cells], [ledger.step_count])
