"""A sweep recommends a setting and shows why; its figures are those of single replays."""

import pytest

from guard_core.__main__ import main
from guard_core.errors import SettingError, UnknownName
from guard_core.estimation.usage import usage_for
from guard_core.findings.facts import Facts
from guard_core.ledger import Ledger
from guard_core.policies import POLICIES, get_policy
from guard_core.replay import replay
from guard_core.simulator.flow import play
from guard_core.simulator.scenarios import SCENARIOS
from guard_core.summaries.sizes import FixedSummaries, NoSummaries, ShareSummaries
from guard_core.sweep import figures_of, parse_axis, sweep
from guard_core.sweep.judging import WITHIN
from guard_core.windows.request_limits import RequestLimits
from tests.guard_core.checker.cases import replays
from tests.guard_core.estimation.test_usage import hidden_growth

AXES = {"buffer": ("auto", 10_000, "30%", 60_000), "cap": (1.0, 2.0, 5.0), "default_factor": (1.0, 2.5)}


def check_equal_to_replays(log, axes, window, summarizer):
    """Every cell has the figures of a replay of its own."""
    ledger = Ledger.of(log)
    usage = usage_for(ledger, None)
    result = sweep(ledger, axes, window=window, usage=usage, summarizer=summarizer)
    for cell in result.cells:
        settings = {name: value for name, value in cell.values.items() if name not in ("policy", "window")}
        policy = get_policy(cell.values.get("policy", "contextguard"), **settings)
        trace = replay(ledger, policy, window=cell.window, usage=usage, summarizer=summarizer)
        assert cell.figures == (figures_of(trace),), cell.values
    return result


@pytest.mark.parametrize("summarizer", [FixedSummaries(2_000), ShareSummaries("high"), NoSummaries()])
@pytest.mark.parametrize("window", [8_000, 40_000, 200_000])
def test_it_equals_single_replays_of_a_recording(tool_heavy, window, summarizer):
    check_equal_to_replays(tool_heavy, AXES, window, summarizer)


@pytest.mark.parametrize("name", ["Stress_200k_KubeAgent", "Stress_8k_HeavyToolDefinitions", "Brutal_8k_150Turns"])
def test_it_equals_single_replays_of_a_simulation(name):
    simulation = SCENARIOS[name].simulations[0]
    axes = {"window": (8_000, 30_000, 200_000), "max_passes": (1, 3), **AXES}
    check_equal_to_replays(play(simulation).session, axes, simulation.window, FixedSummaries(120))


def test_policies_and_profiles_can_be_axes(tool_heavy):
    axes = {"policy": ("contextguard", "contextguard-sliding"), "profile": ("tail", "early", "current", "fixed")}
    result = check_equal_to_replays(tool_heavy, axes, 30_000, FixedSummaries(500))
    assert len({cell.figures for cell in result.cells}) > 4


def test_the_threshold_policy_runs_in_lanes_and_mends_do_not(short_chat):
    def in_lanes(profile, summarizer):
        kind, ledger = POLICIES["contextguard"], Ledger.of(short_chat)
        limits = [RequestLimits(30_000)]
        return kind.lanes(ledger, [kind.make(profile)], [30_000], usage_for(ledger, None), summarizer, limits) != [None]

    assert in_lanes("early", FixedSummaries(1))
    assert not in_lanes("fixed", FixedSummaries(1))
    assert not in_lanes("current", NoSummaries())
    assert POLICIES["contextguard-sliding"].lanes is None


def test_it_recommends_what_does_not_overflow_and_names_what_does(tool_heavy):
    ledger = Ledger.of(tool_heavy)
    axes = {"buffer": (0, 6_000, 25_000)}
    result = sweep(ledger, axes, window=30_000, usage=usage_for(ledger, None), summarizer=FixedSummaries(500))
    chosen = result.cells[result.recommended]
    assert chosen.overflow_steps == 0
    assert chosen.compactions == min(cell.compactions for cell in result.cells if not cell.overflow_steps)
    assert result.evidence.startswith(f"buffer={chosen.values['buffer']}: 0 overflows in 40 steps")


def test_it_says_which_axis_makes_no_difference(tool_heavy):
    ledger = Ledger.of(tool_heavy)
    axes = {"limit": (10_000, 20_000), "summary_budget": (500, 5_000)}
    same = sweep(ledger, axes, window=30_000, policy="codex", summarizer=FixedSummaries(500))  # as recorded sizes are
    assert same.evidence.count("summary_budget makes no difference") == 1
    assert "limit makes no difference" not in same.evidence
    other = sweep(ledger, axes, window=30_000, policy="codex", summarizer=ShareSummaries("high"))
    assert "makes no difference" not in other.evidence


@pytest.mark.parametrize(
    ("text", "axis"),
    [
        ("buffer=10000:30000:10000", ("buffer", (10_000, 20_000, 30_000))),
        ("cap=2,3,5", ("cap", ("2", "3", "5"))),
        ("cap=1:2:0.5", ("cap", (1, 1.5, 2))),
        ("window=8k,1M", ("window", (8_000, 1_000_000))),
        ("default-factor=2", ("default_factor", ("2",))),
    ],
)
def test_axes_are_read_from_text(text, axis):
    assert parse_axis(text) == axis


@pytest.mark.parametrize(
    "text", ["", "buffer", "buffer=", "cap=3:1:1", "cap=1:2:0", "cap=1:2", "window=big", "cap=0:1e9:1"]
)
def test_a_wrong_axis_is_refused(text):
    with pytest.raises(SettingError):
        parse_axis(text)


def test_a_grid_too_large_or_unknown_is_refused(tool_heavy):
    ledger = Ledger.of(tool_heavy)
    with pytest.raises(SettingError, match="100,000 are allowed"):
        sweep(ledger, {"buffer": range(1_000), "cap": range(1, 1_000)}, window=8_000)
    with pytest.raises(SettingError, match="no setting 'colour'"):
        sweep(ledger, {"colour": ("red",)}, window=8_000)
    with pytest.raises(UnknownName):
        sweep(ledger, {"policy": ("none", "all")}, window=8_000)


def test_the_command_fails_a_build_where_the_best_setting_overflows(tmp_path, capsys):
    log = tmp_path / "messages.json"
    log.write_text('[{"role":"user","content":"' + "x" * 4_000 + '"},{"role":"assistant","content":"ok"}]')
    arguments = ["sweep", str(log), "--axis", "buffer=10%,20%", "--summary", "fixed:100", "--fail-on", "overflow"]
    assert main([*arguments, "--window", "200k"]) == 0
    assert "recommended: buffer=10%" in capsys.readouterr().out


@pytest.mark.parametrize("fall", [0, 30_000])
def test_lanes_price_anchors_and_what_is_not_in_the_file_as_replays_do(fall):
    log = hidden_growth("claude-code", fall=fall)
    axes = {"buffer": ("5%", "20%", "40%"), "window": (30_000, 45_000, 60_000)}
    result = check_equal_to_replays(log, axes, 60_000, FixedSummaries(900))
    assert any(cell.compactions > 1 for cell in result.cells)


def test_requests_as_large_as_a_refused_one_overflow_in_lanes_and_in_replays():
    facts = Facts.of(next(claims.session for name, claims in replays() if name == "as large as a refused request"))
    axes = {"window": (100_000, 200_000)}
    for policy in ("contextguard", "none"):
        result = sweep(facts.ledger, axes, window=100_000, policy=policy, usage=facts.usage, limits=facts.limits)
        own, larger = result.cells
        trace = replay(facts.ledger, get_policy(policy), window=100_000, usage=facts.usage)
        assert own.overflow_steps == facts.replay(trace).overflows > 0
        assert own.peak < 100_000
        assert larger.overflow_steps == 0
        assert result.evidence.endswith(WITHIN)
