"""One window of a session, whoever asks: verdict, findings and the agent's own rule take the same."""

import pytest
from msgspec.structs import replace

from guard_core.checker import check
from guard_core.findings import Facts, conclusions
from guard_core.rules import explain
from guard_core.sessions import Provenance, Sourced
from guard_core.windows.agent_windows import taken_by_agent
from guard_core.windows.window_evidence import Status, judge_session, other_windows
from tests.builders import transcript

TABLE = Sourced(1_000_000, Provenance.MODEL_TABLE, "of its maker")


@pytest.mark.parametrize(
    ("model", "window", "largest", "expected", "source"),
    [
        ("claude-opus-4-6", TABLE, 150_000, 200_000, Provenance.ASSUMED),
        ("claude-opus-4-6", TABLE, 250_000, 1_000_000, Provenance.PROMPTS),
        ("claude-opus-4-6[1m]", TABLE, 150_000, 1_000_000, Provenance.MODEL_TABLE),
        ("homemade[1m]", Sourced(128_000, Provenance.ASSUMED), 0, 1_000_000, Provenance.MODEL_TABLE),
        ("homemade", Sourced(128_000, Provenance.ASSUMED), 0, 200_000, Provenance.ASSUMED),
        ("claude-opus-4-5", Sourced(200_000, Provenance.MODEL_TABLE), 150_000, 200_000, Provenance.MODEL_TABLE),
        ("claude-opus-4-6", Sourced(1_000_000, Provenance.RECORDER), 150_000, 1_000_000, Provenance.RECORDER),
        ("claude-opus-4-6", Sourced(500_000, Provenance.USER), 900_000, 500_000, Provenance.USER),
    ],
)
def test_claude_code_takes_200000_unless_its_name_or_a_larger_prompt_says_a_million(
    model, window, largest, expected, source
):
    taken = taken_by_agent("claude-code", model, window, largest)
    assert (taken.value, taken.source) == (expected, source)
    assert taken_by_agent("claude-code", model, taken, largest) == taken
    assert taken_by_agent("pi", model, window, largest) == window


@pytest.mark.parametrize(
    ("window", "largest", "expected", "source"),
    [
        (Sourced(128_000, Provenance.ASSUMED), 150_000, 200_000, Provenance.ASSUMED),
        (Sourced(128_000, Provenance.ASSUMED), 250_000, 1_000_000, Provenance.PROMPTS),
        (TABLE, 150_000, 1_000_000, Provenance.MODEL_TABLE),
        (Sourced(500_000, Provenance.USER), 150_000, 500_000, Provenance.USER),
    ],
)
def test_managed_agents_have_a_window_of_claudes_models(window, largest, expected, source):
    taken = taken_by_agent("managed-agents", "", window, largest)
    assert (taken.value, taken.source) == (expected, source)
    assert taken_by_agent("managed-agents", "", taken, largest) == taken


@pytest.mark.parametrize(
    ("model", "largest", "expected"),
    [
        ("claude-opus-4.8", 150_000, 264_000),
        ("claude-opus-4.8", 300_000, 1_000_000),  # more than GitHub Copilot's window holds was answered
        ("homemade", 150_000, 1_000_000),
    ],
)
def test_copilot_cli_takes_github_copilots_window_where_it_holds_all_that_was_answered(model, largest, expected):
    assert taken_by_agent("copilot-cli", model, TABLE, largest).value == expected
    stated = Sourced(500_000, Provenance.RECORDER)
    assert taken_by_agent("copilot-cli", model, stated, largest) == stated


def test_a_claim_about_copilot_cli_is_checked_by_github_copilots_window():
    session = transcript("copilot-cli", "1.0.74", prompts=(150_000, 180_000, 250_000, 60_000))
    calls = [replace(call, model="claude-opus-4.8") for call in session.calls]
    session = replace(session, model="", calls=(*calls[:3], replace(calls[3], model="gpt-5.4")))
    findings, verdict = conclusions(facts := Facts.of(session))
    assert (facts.window.value, other_windows(session)) == (264_000, [0, 0, 0, 400_000])
    assert "peak 94.7 % of the window at step 3" in verdict.sentence
    assert not check(session, findings, facts.window, verdict)


def test_a_looked_up_window_that_copilot_clis_compaction_contradicts_is_said_to_be_assumed():
    session = transcript("copilot-cli", "1.0.74", prompts=(90_000, 120_000, 150_000, 60_000), tokens_before=160_540)
    session = replace(session, calls=tuple(replace(call, model="claude-opus-4.8") for call in session.calls))
    findings, verdict = conclusions(facts := Facts.of(replace(session, model="")))
    words = next(finding.sentence for finding in findings if finding.kind == "other_threshold")
    assert words.startswith("The window of Copilot CLI is not known: ")
    assert words.endswith("the assumed 264,000 would give 211,200.")
    assert not check(facts.session, findings, facts.window, verdict)


@pytest.mark.parametrize(
    ("version", "model", "expected"),
    [
        ("0.8.2", "homemade", 131_072),
        ("0.8.2", "qwen/qwen3-coder-plus-2025-09-23", 1_048_576),
        ("0.8.2", "Qwen3-Coder-30B-A3B-Instruct", 262_144),
        ("0.8.2", "qwen3-max-preview", 262_144),
        ("0.8.2", "gpt-4o", 131_072),
        ("0.8.2", "kimi-k2-0711", 131_072),
        ("0.15.10", "qwen3-coder-plus", 131_072),
        ("0.18.0", "homemade", 1_000_000),
        ("0.21.10", "homemade", 200_000),
        ("0.24.4", "homemade", 200_000),
        ("", "homemade", 1_000_000),
    ],
)
def test_qwen_code_has_limits_of_its_own_where_its_files_state_none(version, model, expected):
    assert taken_by_agent("qwen-code", model, TABLE, 90_000, version).value == expected
    stated = Sourced(200_000, Provenance.RECORDER)
    assert taken_by_agent("qwen-code", model, stated, 90_000, version) == stated


def test_a_larger_answered_prompt_contradicts_the_limit_of_qwen_code():
    assert taken_by_agent("qwen-code", "homemade", TABLE, 131_073, "0.8.2") == TABLE


@pytest.mark.parametrize("version", ["", "0.18.0"])
def test_a_version_of_qwen_code_whose_limit_is_not_known_has_no_window_of_nothing(version):
    assert taken_by_agent("qwen-code", "homemade", TABLE, 0, version) == TABLE


def test_qwen_code_0_8_compacts_by_its_own_limit_of_an_unknown_model():
    built = transcript("qwen-code", "0.8.2")
    built = replace(
        built,
        model="homemade",
        calls=tuple(replace(call, model="homemade", prompt_tokens=9_000) for call in built.calls),
    )
    own_rule = explain(built).rule
    assert (own_rule.threshold, own_rule.assumed_window) == (91_751, 131_072)
    assert judge_session(built).value == 131_072


def of_model(model, format_="claude-code"):
    """A transcript of one compaction whose calls all name this model."""
    built = transcript(format_, "2.1.62")
    return replace(built, model=model, calls=tuple(replace(call, model=model) for call in built.calls))


@pytest.mark.parametrize("format_", ["claude-code", "gemini-cli"])
@pytest.mark.parametrize("model", ["claude-opus-4-6", "claude-sonnet-4-5", "homemade", "gemini-2.5-pro"])
def test_the_verdict_and_the_rule_take_the_same_window(format_, model):
    built = of_model(model, format_)
    facts = Facts.of(built)
    (used,) = {item.value for item in explain(built).rule.settings if item.name == "window"}
    assert used == facts.window.value == judge_session(built).value


def test_a_default_of_the_agent_says_what_the_model_table_has():
    judged = judge_session(of_model("claude-opus-4-6"))
    assert (judged.value, judged.status) == (200_000, Status.ASSUMED)
    assert judged.note == "Claude Code's default; no recorded prompt was larger, though the model table has 1,000,000"


def test_another_model_of_claude_code_has_its_window_and_not_the_tables():
    built = of_model("claude-opus-4-5")
    calls = (*built.calls[:-1], replace(built.calls[-1], model="claude-opus-4-6"))
    assert other_windows(replace(built, calls=calls)) == [0] * len(calls)
    assert other_windows(replace(built, calls=calls, format="pi"))[-1] == 1_000_000
