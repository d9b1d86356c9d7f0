"""The way from a step of a simulated session to the page of the simulator that explains it."""

from __future__ import annotations

from urllib.parse import urlencode

from guard_core.policies import DEFAULT_POLICY
from guard_core.simulator.scenarios import SCENARIOS
from inspector.pages.shared.numbers import step_number


def step_query(title: str, policy: str, profile: str, at: int) -> str:
    """The query that explains a step of a simulated session; none where it is not a scenario of the gallery."""
    name, _, part = title.partition(", part ")
    if name not in SCENARIOS:
        return ""
    guard = f"{policy or DEFAULT_POLICY}{f'/{profile}' if profile else ''}"
    pairs = {"scenario": name, "guard": guard, "part": part if part.isdigit() else "", "at": str(step_number(at))}
    return "?" + urlencode({key: value for key, value in pairs.items() if value})
