"""Forecast: recorded calls predicted from the past only, by the pricing that a replay uses.

At an origin all later counts are masked: nothing that the provider said after it is known, only what the log then held.
The session is attributed again, and the calls 1, 10 and 50 after it are priced as a replay prices requests that extend
the origin's. The first call after each recorded compaction is predicted from the call before it. Calls that another
model answered are left out: it counts otherwise, and nothing before says how.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import msgspec
import numpy as np

from guard_core.estimation.attribution import attribute
from guard_core.estimation.measurement import Errors, errors
from guard_core.estimation.usage import AttributedUsage
from guard_core.ledger import Ints, Ledger

HORIZONS = (1, 10, 50)  # calls ahead
COMPACTION = "compaction"
MOST_ORIGINS = 40  # evenly spaced over longer sessions
MOST_COMPACTIONS = 20
MOST_EVENTS = (
    1_200_000  # read for all origins together, which takes about three seconds; fewer origins where it is more
)
LEAST_ORIGINS = 5
FIRST_ORIGIN = 2  # reported calls that must be known
_COUNTS = ("prompt_tokens", "cached_tokens", "cache_write_tokens", "output_tokens")

Forecast = dict[str, Errors | None]  # by horizon ("1", "10", "50", "compaction"); None: no call is so far ahead


def forecast(ledger: Ledger, each: Callable[[], object] = lambda: None) -> Forecast:
    """The errors of predictions by how far ahead they were made; relative to the recorded prompt tokens.

    `each` is called between the parts of the work, and may raise to break it off.
    """
    pairs: dict[str, list[tuple[int, int]]] = {name: [] for name in (*map(str, HORIZONS), COMPACTION)}
    for origin, target, name in predictions(ledger):
        pairs[name].append((origin, target))
    usage: dict[int, AttributedUsage] = {}
    forecasts: Forecast = {}
    for origin in sorted({origin for targets in pairs.values() for origin, _ in targets}):
        each()
        usage[origin] = known_at(ledger, origin)
    for name, origins in pairs.items():
        targets = np.array([target for _, target in origins], dtype=np.int64)
        predicted = np.array([predict(ledger, usage[origin], target) for origin, target in origins], dtype=np.int64)
        measured = errors(ledger.steps["prompt_tokens"][targets], predicted, np.arange(len(targets)))
        forecasts[name] = (
            None
            if measured is None
            else msgspec.structs.replace(measured, worst_step=int(targets[measured.worst_step]))
        )
    return forecasts


def predictions(ledger: Ledger) -> Iterator[tuple[int, int, str]]:
    """What is predicted: the step of the origin, the step ahead, the name of the horizon."""
    epoch = ledger.steps["epoch"]
    reported = np.flatnonzero(ledger.steps["prompt_tokens"] > 0)
    model = ledger.steps["model"][reported]

    def same(place: int, other: int) -> bool:
        return bool(model[place] == model[other])

    most = max(LEAST_ORIGINS, MOST_EVENTS // max(1, ledger.event_count))
    places = np.arange(FIRST_ORIGIN - 1, len(reported) - 1)
    for place in _spread(places, min(most, MOST_ORIGINS)):
        for horizon in HORIZONS:
            ahead = place + horizon
            if ahead < len(reported) and epoch[reported[place]] == epoch[reported[ahead]] and same(place, ahead):
                yield int(reported[place]), int(reported[ahead]), str(horizon)
    after = np.flatnonzero(epoch[reported[1:]] > epoch[reported[:-1]]) + 1
    real = np.array([place for place in after if not ledger.bases[epoch[reported[place]]].is_edit], dtype=np.int64)
    for place in _spread(real[real >= FIRST_ORIGIN], min(most, MOST_COMPACTIONS)):
        if same(place - 1, place):
            yield int(reported[place - 1]), int(reported[place]), COMPACTION


def known_at(ledger: Ledger, origin: int) -> AttributedUsage:
    """The provider as it can be known after the call at `origin` was reported."""
    later = np.arange(ledger.step_count) > origin
    steps = {name: np.where(later, -1, column) if name in _COUNTS else column for name, column in ledger.steps.items()}
    past = replace(ledger, steps=steps)
    return AttributedUsage(past, attribute(past))


def predict(ledger: Ledger, usage: AttributedUsage, step: int) -> int:
    """Prompt tokens of the request that was sent at a later step."""
    view, epoch = ledger.recorded_view(step)
    return usage.one(step, view, 0, epoch).tokens


def _spread(places: Ints, most: int) -> Ints:
    if len(places) <= most:
        return places
    return places[np.arange(most) * (len(places) - 1) // (most - 1)]
