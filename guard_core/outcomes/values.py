"""The outcome of a policy as plain values, for JSON."""

from __future__ import annotations

from typing import Any

from msgspec.structs import asdict

from guard_core.outcomes.outcome import CallCosts, PolicyOutcome
from guard_core.windows.prices import UNIT

MONEY = "millionths of a US dollar"  # the unit of money in JSON


def outcome_values(outcome: PolicyOutcome) -> dict[str, Any]:
    """Its fields by name; money is in millionths of a US dollar, null where a price is not known."""
    values = asdict(outcome)
    priced = outcome.costs.total is not None
    money = {name: round(values[name] / UNIT) if priced else None for name in ("paid", "saved")}
    unpaid = outcome.unpaid if priced else None
    costs = {name: _costs(values[name]) for name in ("costs", "reported")}
    return {**values, **costs, **money, "unpaid": unpaid}


def _costs(costs: CallCosts | None) -> dict[str, Any] | None:
    if costs is None:
        return None
    values = {**asdict(costs), "uncached": costs.uncached}
    known = costs.total is not None
    return {**values, **{name: round(values[name] / UNIT) if known else None for name in ("total", "summaries")}}
