"""A scenario of one's own: what is typed becomes a simulation, or a sentence that names what is allowed."""

import pytest

from guard_core.simulator.flow import Turn
from guard_core.simulator.scenarios import SCENARIOS
from inspector.pages.gallery.form import MAX_STEPS, START, ScenarioForm, from_scenario, parse_plan, written_plan

PLAN = "3x user=50 reply=120 results=10k,logs:20k\nuser=1.5k inline=100k # a picture\n\nresults=1,2 sequential"


def form(**changes):
    return ScenarioForm({**START, **changes})


def errors(**changes):
    filled = form(**changes)
    assert not filled.is_valid()
    return " ".join(text for messages in filled.errors.values() for text in messages)


def simulation(**changes):
    filled = form(**changes)
    assert filled.is_valid(), filled.errors
    return filled.simulation


def test_starting_from_a_scenario_gives_that_very_simulation():
    for name, scenario in SCENARIOS.items():
        form = ScenarioForm(from_scenario(scenario))
        assert form.is_valid(), (name, form.errors)
        assert form.simulation == scenario.simulations[-1], name


def test_fields_make_turns_that_are_alike():
    simulated = simulation(window="8k", turns="4", user="300", reply="40", results="2k, logs:500", every="2")
    full = Turn(300, 40, (("tool_0", 2_000), ("logs", 500)))
    assert simulated.window == 8_000
    assert simulated.turns == (full, Turn(300, 40), full, Turn(300, 40))


def test_a_plan_goes_before_the_fields():
    simulated = simulation(plan=PLAN)
    assert len(simulated.turns) == 5
    assert simulated.turns[0].tools == (("tool_0", 10_000), ("logs", 20_000))
    assert simulated.turns[3] == Turn(1_500, 120, inline=(("image/png", 100_000),))
    assert simulated.turns[4].sequential


def test_a_written_plan_reads_as_the_same_turns():
    assert parse_plan(written_plan(parse_plan(PLAN))) == parse_plan(PLAN)


@pytest.mark.parametrize(("usage", "first"), [("yes", 0), ("no", None), ("from", 6)])
def test_usage_is_reported_always_never_or_from_a_turn_on_counted_from_1(usage, first):
    assert simulation(usage=usage, usage_turn="7").reported_from == first


def test_turns_times_tools_is_bounded_and_the_message_says_so():
    text = errors(turns="1000", results=",".join(["10"] * 10), sequential="on")
    assert f"11,000 model calls; at most {MAX_STEPS:,} are allowed" in text


def test_all_text_together_is_bounded():
    assert "at most 20 MB" in errors(turns="100", results="1M")


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("window", "0", "Context window is a whole number from 256 to"),
        ("window", "", "Context window is a whole number from 256 to"),
        ("ratio", "nan", "Ratio is a number from 0.1 to 20"),
        ("ratio", "99", "Ratio is a number from 0.1 to 20"),
        ("turns", "1.2.3", "Turns is a whole number from 1"),
        ("turns", "9" * 18, "Turns is a whole number from 1"),
        ("results", "10k; 5k", "sizes with commas between them"),
        ("results", ",".join("1" * 201), "at most 200 in one turn, not 201"),
        ("usage", "maybe", "valid choice"),
        ("guard", "contextguard/late", "valid choice"),
        ("plan", "user=5\nloud=3", "Line 2: 'loud' is unknown; allowed are 20x, user=, reply=, results="),
        ("plan", "2000x user=5", "Line 1: The number of turns is a whole number from 1 to 1,000"),
        ("plan", "900x user=5\n900x user=6", "Line 2: more than 1,000 turns"),
    ],
)
def test_what_is_not_allowed_is_named(field, value, said):
    assert said in errors(**{field: value})


def test_a_scenario_without_a_name_is_named_by_its_figures():
    filled = form(title="  ")
    assert filled.is_valid()
    assert filled.name == "Scenario: window 200,000, 20 turns, ratio 2"
