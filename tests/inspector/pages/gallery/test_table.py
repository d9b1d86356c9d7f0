"""Scenarios under guards: the figures are those of the engine's own judge, the words are honest."""

import pytest

from guard_core.errors import UnknownName
from guard_core.policies import POLICIES
from guard_core.simulator.running import run_scenario
from guard_core.simulator.scenarios import SCENARIOS
from inspector.pages.gallery.presenter import group_of, need_cell
from inspector.pages.gallery.table import PolicyChoice, all_profiles, guards, make_policy, profiles_of, rows_for

CURRENT = PolicyChoice("contextguard", "current")


def row(name, guard=CURRENT):
    return rows_for(SCENARIOS[name], [guard])[0]


@pytest.mark.parametrize(
    "guard", [CURRENT, PolicyChoice("contextguard", "early"), PolicyChoice("contextguard-sliding", "current")]
)
@pytest.mark.parametrize(
    "name",
    ["Stress_200k_ToolHeavy", "Stress_8k_HeavyToolDefinitions", "Stress_200k_LateUsageMetadata", "Kube_10Rounds"],
)
def test_a_row_has_the_figures_of_the_engines_own_run(name, guard):
    table_row, played = row(name, guard), run_scenario(SCENARIOS[name], make_policy(guard))
    assert (table_row.steps, table_row.compactions, table_row.peak) == (played.steps, played.compactions, played.peak)
    assert (table_row.overflow_steps, table_row.loop_steps) == (played.overflow_steps, played.loop_steps)


def test_compactions_really_made_are_apart_from_summaries_put_in_again():
    table_row = row("Stress_200k_ToolHeavy")
    assert (table_row.compactions, table_row.injections) == (1, 18)
    assert table_row.compaction_steps == (21,)


def test_a_compaction_at_every_step_is_a_loop_though_its_test_is_content():
    table_row = row("Stress_8k_HeavyToolDefinitions")
    assert (table_row.compactions, table_row.loops, table_row.loop_steps) == (40, 1, 40)
    assert (table_row.fails, table_row.unmet) == (True, False)


def test_the_required_absence_of_loops_is_judged_by_what_happens():
    need = row("Brutal_8k_SystemPromptLargerThanWindow").needs[0]
    assert need_cell(need) == {"text": "✕ not met: no loop, 10 in a row", "class": "is-unmet"}


def test_a_scenario_newer_than_the_profile_is_not_judged():
    needs = row("Stress_200k_InlineImages", PolicyChoice("contextguard", "early")).needs
    assert all(need.met is None for need in needs)


def test_the_timing_gap_is_caught_at_the_step_that_holds_it():
    assert row("TimingGap_CalibratedHeuristicPreventsOverflow").compaction_steps == (1,)


def test_the_parts_of_the_gallery_are_as_large_as_their_sources():
    groups = [group_of(scenario) for scenario in SCENARIOS.values()]
    assert (groups.count("document-001"), groups.count("later")) == (47, 44)


def test_a_choice_is_every_policy_under_every_profile_it_knows():
    assert guards(["contextguard"], ["fixed", "early"]) == (
        PolicyChoice("contextguard", "early"),
        PolicyChoice("contextguard", "fixed"),
    )
    assert guards(["none"], ["early"]) == (PolicyChoice("none", ""),)
    assert guards(["contextguard"], []) == (CURRENT,)


@pytest.mark.parametrize("chosen", [(["hermit"], []), (["none"], ["late"])])
def test_an_unknown_name_is_refused_with_the_known_ones(chosen):
    with pytest.raises(UnknownName, match="known are"):
        guards(*chosen)


def test_every_policy_plays_under_each_of_its_profiles():
    for policy in POLICIES:
        for profile in profiles_of(policy) or ("",):
            assert rows_for(SCENARIOS["Stress_8k_ToolBurst"], [PolicyChoice(policy, profile)])[0].steps == 5, policy
        assert set(profiles_of(policy)) <= set(all_profiles())
