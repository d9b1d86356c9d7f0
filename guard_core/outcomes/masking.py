"""What masking old observations saves, predicted from the turn counts of runs without it.

The published runs of the Complexity Trap (arXiv 2508.21433) give the cost, the turns and the mean tokens of every
instance, and no transcript. A run without masking grows by about the same number of tokens each turn; most of that are
observations, and masking takes all of them away but the newest. So the saving follows from the turns alone, if the
agent had made the same turns: where it does not, the difference shows how far that assumption carries.
"""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from guard_core.errors import GuardError

Floats = NDArray[np.float64]
RAW, MASKED = "Raw Agent", "Observation Masking"  # values of the column `strategy`
COLUMNS = (
    "experiment",
    "strategy",
    "instance_id",
    "cost",
    "turn_count",
    "mean_completion_tokens",
    "mean_prompt_tokens",
)
OBSERVATION_SHARE = 0.839  # of what a turn adds: specification of the evidence, section 2
PLACEHOLDER_TOKENS = 12  # ours: about the line that takes the place of a masked observation
LEAST_INSTANCES = 3  # two numbers are fitted
_KEPT = re.compile(r"baseline_N_1_M_(\d+)(?:\.0)?")


class ExperimentRuns(NamedTuple):
    """The instances of one experiment, an entry each: US dollars, turns, mean tokens of a call."""

    name: str
    strategy: str
    cost: Floats
    turns: Floats
    prompt: Floats
    completion: Floats

    @property
    def prompt_total(self) -> float:
        """Prompt tokens of all calls."""
        return float((self.prompt * self.turns).sum())


class TokenPrices(msgspec.Struct, frozen=True):
    """US dollars for a million tokens that explain the costs of an experiment best, and how well (R squared: 1 is
    exactly)."""

    experiment: str
    prompt: float
    completion: float
    fit: float


class Saving(msgspec.Struct, frozen=True):
    """What masking saves of all prompt tokens (shares of 1), predicted and published, and what the prediction rests on.

    `fixed` and `growth` are tokens of the first request and of each turn, as the runs without masking have them;
    `turns` and `masked_turns` are means without and with it; `cost` is the saving of the published costs.
    """

    experiment: str
    instances: int
    kept: int  # observations that stay
    fixed: float
    growth: float
    turns: float
    masked_turns: float
    predicted: float
    published: float
    cost: float

    @property
    def error(self) -> float:
        """Predicted less published, in shares of 1."""
        return self.predicted - self.published


def read_runs(path: str) -> list[ExperimentRuns]:
    """The experiments of a file such as `experiment_instance_costs_sweagent.csv`. Raises GuardError and OSError."""
    with open(path, newline="", encoding="utf-8", errors="strict") as file:
        try:
            return runs_of(csv.DictReader(file))
        except (UnicodeDecodeError, csv.Error) as error:
            raise GuardError(f"{path} is not a table of instance costs: {error}") from error


def runs_of(rows: Iterable[dict[str, str]]) -> list[ExperimentRuns]:
    """The experiments of the rows of such a table, in its order. Raises GuardError for one that cannot be read."""
    values_by_run: dict[tuple[str, str], list[tuple[float, ...]]] = defaultdict(list)
    for number, row in enumerate(rows, start=2):
        missing = [name for name in COLUMNS if row.get(name) is None]
        if missing:
            raise GuardError(f"line {number} has no column {missing[0]}; the table needs {', '.join(COLUMNS)}")
        numbers = [row[name] for name in ("cost", "turn_count", "mean_prompt_tokens", "mean_completion_tokens")]
        try:
            values = tuple(float(text) for text in numbers)
        except ValueError as error:
            raise GuardError(f"line {number}: {error}") from error
        if not all(0 <= value < 1e12 for value in values):
            raise GuardError(f"line {number}: a cost or count is negative or no number: {', '.join(numbers)[:80]}")
        values_by_run[row["experiment"], row["strategy"]].append(values)
    if not values_by_run:
        raise GuardError("the table has no rows")
    return [
        ExperimentRuns(name, strategy, *np.array(values, dtype=np.float64).T)
        for (name, strategy), values in values_by_run.items()
    ]


def prices_of(runs: ExperimentRuns) -> TokenPrices | None:
    """The prices that explain an experiment's costs; None where it has too few instances."""
    if len(runs.cost) < LEAST_INSTANCES:
        return None
    tokens = np.stack([runs.prompt * runs.turns, runs.completion * runs.turns], axis=1)
    prices, *_ = np.linalg.lstsq(tokens, runs.cost, rcond=None)
    spread = float(((runs.cost - runs.cost.mean()) ** 2).sum())
    missed = float(((tokens @ prices - runs.cost) ** 2).sum())
    fit = 1 - missed / spread if spread > 0 else 0.0
    prompt, completion = (round(float(price) * 1e6, 4) for price in prices)
    return TokenPrices(runs.name, prompt, completion, round(fit, 6))


def savings(experiments: Sequence[ExperimentRuns]) -> list[Saving]:
    """The saving of every experiment with masking that has one without it by the same name."""
    raw = {runs.name: runs for runs in experiments if runs.strategy == RAW}
    results = []
    for masked in experiments:
        window = _KEPT.search(masked.name)
        if masked.strategy != MASKED or window is None:
            continue
        pairs = (raw.get(_KEPT.sub(text, masked.name)) for text in ("baseline_raw.0", "baseline_raw"))
        without = next((runs for runs in pairs if runs is not None), None)
        if without is not None and len(without.cost) >= LEAST_INSTANCES and without.prompt_total > 0:
            results.append(_saving(without, masked, int(window[1])))
    return results


def _saving(raw: ExperimentRuns, masked: ExperimentRuns, kept: int) -> Saving:
    fixed, growth = growth_of(raw)
    sent = requests(raw.turns, fixed, growth)
    removed = observations_removed(raw.turns, kept) * max(0.0, OBSERVATION_SHARE * growth - PLACEHOLDER_TOKENS)
    return Saving(
        experiment=raw.name,
        instances=len(raw.turns),
        kept=kept,
        fixed=round(fixed, 1),
        growth=round(growth, 1),
        turns=round(float(raw.turns.mean()), 2),
        masked_turns=round(float(masked.turns.mean()), 2),
        predicted=round(float(removed.sum() / sent.sum()), 4),
        published=round(1 - masked.prompt_total / raw.prompt_total, 4),
        cost=round(1 - float(masked.cost.mean() / raw.cost.mean()), 4),
    )


def growth_of(runs: ExperimentRuns) -> tuple[float, float]:
    """Tokens of the first request and of what each turn adds: the line through the instances' mean requests.

    A run of T turns that grows evenly has a mean request of `fixed` + `growth` (T - 1) / 2.
    """
    line = np.stack([np.ones_like(runs.turns), (runs.turns - 1) / 2], axis=1)
    (fixed, growth), *_ = np.linalg.lstsq(line, runs.prompt, rcond=None)
    return float(fixed), float(growth)


def requests(turns: Floats, fixed: float, growth: float) -> Floats:
    """Prompt tokens of runs of so many turns that grow evenly."""
    return turns * fixed + growth * turns * (turns - 1) / 2


def observations_removed(turns: Floats, kept: int) -> Floats:
    """How many observations the requests of runs lack, added up, where only the newest `kept` stay: the request of turn
    i, counted from 0, follows i observations."""
    over: Floats = np.maximum(0.0, turns - 1 - kept)
    return over * (over + 1) / 2
