"""The stress gallery: the scenarios of ContextGuard's own tests, and a few agents at work."""

from __future__ import annotations

from guard_core.errors import UnknownName
from guard_core.simulator.flow import Simulation
from guard_core.simulator.scenario import Scenario
from guard_core.simulator.sized_turns import every_turn, sized_simulation
from guard_core.simulator.stress import STRESS_SCENARIOS


def _case(name: str, simulation: Simulation, note: str) -> Scenario:
    return Scenario(name, "Case", (simulation,), note=note)


_KUBE = (every_turn(9_400, 2_800, 19_250),)
_CASES = (
    *(
        _case(f"Kube_{rounds}Rounds", sized_simulation(128, rounds, 2, 0, 60, _KUBE, reply=267, sequential=True), note)
        for rounds, note in (
            (3, "a cluster is described and its logs read"),
            (10, "compacts at 128k since the estimate is calibrated"),
            (30, "a long incident"),
            (50, "a day of incidents"),
        )
    ),
    _case(
        "MixedDebug",
        sized_simulation(
            32,
            8,
            2,
            0,
            60,
            (every_turn(12_000, 13_000, every=4), every_turn(600, 13_400, every=2), every_turn(100)),
            reply=200,
        ),
        "chat, small and large results in turn",
    ),
    _case(
        "ToolStorm_20x2k",
        sized_simulation(8, 1, 2, 0, 60, (every_turn(*[2_000] * 20),), sequential=True),
        "twenty calls in a chain",
    ),
    _case(
        "ToolStorm_50x5k",
        sized_simulation(32, 1, 2, 0, 60, (every_turn(*[5_000] * 50),), sequential=True),
        "fifty calls in a chain",
    ),
    _case(
        "ToolStorm_100x10k",
        sized_simulation(128, 1, 2, 0, 60, (every_turn(*[10_000] * 100),), sequential=True),
        "a hundred calls",
    ),
    _case(
        "TimingGap_CalibratedHeuristicPreventsOverflow",
        sized_simulation(200, 1, 2, 0, 280_000, (every_turn(80_000),), names=("big_tool",)),
        "caught only by the estimate: last count 140,000 tokens, estimate 180,018",
    ),
    _case(
        "TimingGap_MassiveToolResponse",
        sized_simulation(200, 1, 2, 0, 200_000, (every_turn(400_000),), names=("massive_query",)),
        "a result of 400,000 bytes after a last count of 100,000 tokens",
    ),
)

SCENARIOS: dict[str, Scenario] = {scenario.name: scenario for scenario in (*STRESS_SCENARIOS, *_CASES)}


def get_scenario(name: str) -> Scenario:
    """The scenario of a name. Raises UnknownName."""
    if name not in SCENARIOS:
        near = [known for known in SCENARIOS if name.lower() in known.lower()]
        hint = f"; did you mean {', '.join(near[:5])}" if near and name else ""
        raise UnknownName(f"there is no scenario {name[:60]!r}{hint} ({len(SCENARIOS)} are known)")
    return SCENARIOS[name]
