"""The gallery holds the source's scenarios, and the engine does in them what the original did."""

import json
from pathlib import Path

import pytest

from guard_core.errors import UnknownName
from guard_core.ledger import Ledger
from guard_core.policies import get_policy
from guard_core.simulator.flow import play
from guard_core.simulator.running import run_scenario
from guard_core.simulator.scenarios import SCENARIOS, get_scenario

VECTORS = Path(__file__).parents[1] / "vectors" / "contextguard"
TRACES = [path for path in sorted(VECTORS.glob("*.json")) if path.stem in SCENARIOS]
TOOL_TOKENS = {
    "Stress_200k_HeavyToolDefinitions": 11_340,
    "Stress_8k_HeavyToolDefinitions": 3_040,
    "Brutal_200k_ToolDefinitionsDominateWindow": 56_420,
    "Brutal_8k_ToolDefinitionsNoUsageMetadata": 1_920,
    "Brutal_200k_ToolDefinitionsHighRatio": 25_920,
    "Brutal_200k_ToolDefsAndInlineImages": 6_525,
    "Brutal_200k_ToolDefsAndInlineNoUsageMetadata": 3_690,
    "Brutal_8k_ToolDefsAndInlineCombined": 1_040,
    "Brutal_200k_MagecProductionScenario": 17_475,
}


def test_it_has_the_scenarios_of_the_document_and_the_later_ones():
    stress = [scenario for scenario in SCENARIOS.values() if scenario.group != "Case"]
    assert sum(scenario.since == "early" for scenario in stress) == 47
    assert len(stress) == 91
    assert sum(len(scenario.simulations) for scenario in stress) == 92


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.stem)
def test_its_scenarios_are_the_recorded_ones(path):
    recorded = json.loads(path.read_text())
    for simulation, given, result in zip(
        SCENARIOS[path.stem].simulations, recorded["simulations"], recorded["runs"][-1]["simulations"], strict=True
    ):
        sizes = [(turn.user_bytes, turn.model_bytes, [list(tool) for tool in turn.tools]) for turn in simulation.turns]
        assert sizes == [(turn["user_bytes"], turn["model_bytes"], turn.get("tools") or []) for turn in given["turns"]]
        run = run_scenario(SCENARIOS[path.stem], get_policy("contextguard"))
        assert run.peak == result["result"]["max_real_tokens"]
        assert run.injections == result["result"]["sim_compactions"]
        assert run.compactions == result["llm_compactions"]


@pytest.mark.parametrize(("name", "tokens"), TOOL_TOKENS.items())
def test_its_tool_definitions_weigh_what_the_source_measured(name, tokens):
    assert Ledger.of(play(SCENARIOS[name].simulations[0]).session).tools_tokens == tokens


@pytest.mark.parametrize("profile", ["early", "current"])
def test_every_assertion_of_the_source_holds(profile):
    results = [run_scenario(scenario, get_policy("contextguard", profile=profile)) for scenario in SCENARIOS.values()]
    assert [result.name for result in results if result.met is False] == []


def test_heavy_tool_definitions_make_a_real_loop():
    scenario = SCENARIOS["Stress_8k_HeavyToolDefinitions"]
    exact = run_scenario(scenario, get_policy("contextguard"))
    mended = run_scenario(scenario, get_policy("contextguard", profile="fixed"))
    assert (exact.compactions, exact.longest_loop) == (40, 40)
    assert mended.longest_loop == 0
    assert mended.compactions < 20


def test_a_list_that_is_trimmed_anew_for_each_request_is_no_loop():
    result = run_scenario(SCENARIOS["Stress_8k_RepeatedCompactions"], get_policy("litellm-trim-messages"))
    assert result.compactions == 60
    assert result.longest_loop == 0


def test_the_timing_gap_is_seen_and_closed():
    run = run_scenario(SCENARIOS["TimingGap_CalibratedHeuristicPreventsOverflow"], get_policy("contextguard"))
    assert (run.compactions, run.peak, run.overflow_steps) == (1, 140_000, 0)


def test_an_unknown_name_is_told_with_near_ones():
    with pytest.raises(UnknownName, match="did you mean Stress_200k_KubeAgent"):
        get_scenario("kubeagent")
