"""The rule of each agent by version, window and what was typed."""

from collections.abc import Sequence

import msgspec
import pytest

from guard_core.checker.own_rule import worked_out
from guard_core.commands import explain as explain_command
from guard_core.errors import SettingError
from guard_core.events import Event, MediaPart, ReasoningPart, Role, TextPart, ToolCallPart, ToolResultPart
from guard_core.ledger import Ledger
from guard_core.policies import get_policy, policy_kind
from guard_core.recordings.formats.codex.origin import CONTINUES
from guard_core.recordings.formats.codex.rollout import ONE_TURN
from guard_core.rules import AGENTS, Agreement, Moment, agent_of, explain
from guard_core.rules.aider import SETTING
from guard_core.rules.base import Stretch
from guard_core.rules.claude_code import FAILING
from guard_core.rules.counters import TOTAL, TOTAL_PENDING, UNKNOWN
from guard_core.rules.decisions import OwnChecks
from guard_core.rules.evidence import Cause
from guard_core.rules.inference import CheckEvidence, interval_of
from guard_core.rules.words import headline
from guard_core.sessions import (
    AgentSetting,
    Evidence,
    GuardState,
    ModelCall,
    Provenance,
    RecordedCompaction,
    Refusal,
    Session,
    Sourced,
    ToolDefinition,
)
from guard_core.simulator.samples import SAMPLES
from guard_core.views import Inserted, Span
from guard_core.windows.window_evidence import Status, judge_session
from tests.builders import model, session, tool_call, tool_result, transcript, user

BY_FORMAT = {agent.format: agent for agent in AGENTS}
OPUS = "claude-opus-4-5-20251101"
COUNT = " (last prompt, its answer and what was added since)"  # what a number in a headline is


def rule(format_, version="", window=200_000, source=Provenance.MODEL_TABLE, largest=0, **typed):
    stretch = Stretch(0, 1, version, OPUS, Sourced(window, source) if window else None, largest)
    return BY_FORMAT[format_].ruled(stretch, typed)


@pytest.mark.parametrize(
    ("version", "typed", "threshold"),
    [
        ("2.1.14", {}, 155_000),
        ("2.1.20", {}, 155_000),
        ("2.1.21", {}, 167_000),
        ("2.1.152", {}, 167_000),
        ("2.1.14", {"max_output_tokens": "8192"}, 178_808),
        ("2.1.21", {"max_output_tokens": "8192"}, 178_808),
        ("2.1.14", {"autocompact_pct": "50"}, 84_000),
        ("2.1.330", {"auto_compact_window": "200000"}, 167_000),
        ("2.1.330", {"auto_compact_window": "100000"}, 67_000),
        ("2.1.332", {"auto_compact_window": "50000"}, 67_000),
        ("2.1.332", {"settings_window": "120000"}, 87_000),
        ("2.1.332", {"settings_window": "50000"}, None),
        ("2.1.154", {"auto_compact_window": "150000"}, 117_000),
        ("2.1.330", {"auto_compact_window": "200k", "autocompact_pct": "50"}, 90_000),
        ("2.1.14", {"auto_compact_window": "100000"}, 155_000),
        ("2.1.153", {}, None),
        ("2.1.74", {"auto_compact_window": "100000"}, 167_000),
        ("2.1.81", {"auto_compact_window": "100000"}, 67_000),
        ("2.1.152", {"auto_compact_window": "150000", "autocompact_pct": "60"}, 78_000),
        ("2.1.330", {"autocompact_pct": "50"}, None),
        ("2.1.17", {}, 155_000),
        ("2.1.62", {}, 167_000),
        ("2.1.25", {"autocompact_pct": "50"}, 90_000),
        ("2.1.152", {"max_output_tokens": "8192"}, 178_808),
        ("2.1.250", {}, None),
        ("2.1.300", {}, None),
        ("2.1.250", {"auto_compact_window": "200000"}, 167_000),
        ("2.1.330", {"auto_compact_window": "200000", "max_output_tokens": "8192"}, 178_808),
    ],
)
def test_claude_code_has_the_threshold_that_was_measured_of_its_version(version, typed, threshold):
    assert rule("claude-code", version, **typed).threshold == threshold


@pytest.mark.parametrize(
    ("version", "typed", "threshold"),
    [
        ("2.1.14", {}, 955_000),
        ("2.1.62", {}, 967_000),
        ("2.1.330", {}, None),
        ("2.1.330", {"auto_compact_window": "1000000"}, 967_000),
    ],
)
def test_claude_code_with_a_model_of_a_million_tokens_has_the_threshold_that_was_measured(version, typed, threshold):
    stretch = Stretch(0, 1, version, f"{OPUS}[1m]", Sourced(1_000_000, Provenance.MODEL_TABLE))
    assert BY_FORMAT["claude-code"].ruled(stretch, typed).threshold == threshold


def test_a_window_that_was_set_is_among_the_hypotheses_of_versions_that_take_it():
    prompts = (20_000, 64_000, 66_500, 30_000)
    for version, is_among in (("2.1.74", False), ("2.1.81", True), ("2.1.152", True), ("2.1.330", True)):
        explanation = explain(transcript(version=version, prompts=prompts))
        formulas = [item.formula for item in explanation.inference[0].hypotheses]
        assert ("100,000 − 20,000 (max output) − 13,000" in formulas) == is_among


def test_the_limit_of_answers_in_the_file_is_the_one_of_its_hypotheses():
    """2.1.332 writes down what its requests may be answered with, as CLAUDE_CODE_MAX_OUTPUT_TOKENS sets it."""
    session = transcript(version="2.1.332", prompts=(20_000, 118_000, 120_200, 30_000))
    stated = msgspec.structs.replace(session, settings=(AgentSetting("max_output_tokens", 16_000),))
    formulas = [item.formula for item in explain(stated).inference[0].hypotheses]
    assert formulas[0] == "150,000 − 16,000 (max output) − 13,000"


@pytest.mark.parametrize(
    ("version", "typed", "threshold"),
    [
        ("0.2.126", {}, 165_600),
        ("1.0.10", {"max_output_tokens": "8192"}, 165_600),
        ("1.0.30", {}, 154_560),
        ("1.0.70", {"max_output_tokens": "8192"}, 176_464),
        ("1.0.71", {}, 155_000),
        ("1.0.128", {"max_output_tokens": "12000", "autocompact_pct": "80"}, 175_000),
        ("2.0.0", {"max_output_tokens": "64000"}, 155_000),
        ("2.0.30", {"autocompact_pct": "80"}, 134_400),
    ],
)
def test_earlier_versions_of_claude_code_have_their_own_share_and_know_no_percentage(version, typed, threshold):
    """1.0.30, 1.0.80 and 1.0.128 run to the token; the others as their programs say."""
    assert rule("claude-code", version, **typed).threshold == threshold


def test_a_percentage_explains_no_compaction_of_a_version_that_does_not_know_it():
    stretch = Stretch(0, 1, "1.0.128", OPUS, Sourced(200_000, Provenance.MODEL_TABLE))
    formulas = [item.formula for item in BY_FORMAT["claude-code"].hypotheses(stretch, {})]
    assert formulas
    assert not any("%" in formula for formula in formulas)


@pytest.mark.parametrize(
    ("version", "name", "threshold"),
    [
        ("1.0.128", "claude-3-5-haiku-20241022", 155_000),
        ("2.0.76", "claude-3-5-haiku-20241022", 178_808),
        ("2.0.76", "claude-haiku-4-5", 155_000),
        ("2.1.100", "claude-3-5-haiku-20241022", 178_808),
    ],
)
def test_claude_code_reserves_what_its_version_lets_a_small_model_answer(version, name, threshold):
    stretch = Stretch(0, 1, version, name, Sourced(200_000, Provenance.MODEL_TABLE))
    assert BY_FORMAT["claude-code"].ruled(stretch, {}).threshold == threshold


def test_claude_code_that_was_told_not_to_compact_has_no_threshold():
    for name, value in (("DISABLE_AUTO_COMPACT", "1"), ("DISABLE_COMPACT", "true"), ("autoCompactEnabled", "false")):
        assert explain(transcript(), typed={name: value}).rule.checks is Moment.NEVER


def test_claude_code_without_a_window_set_waits_for_the_providers_refusal():
    own_rule = rule("claude-code", "2.1.330")
    assert (own_rule.checks, own_rule.formula) == (Moment.REFUSAL, "the provider's refusal")


def test_claude_code_takes_a_million_tokens_where_a_larger_prompt_was_answered():
    assert rule("claude-code", "2.1.14", largest=300_000).threshold == 955_000
    assert rule("claude-code", "2.1.330", 1_000_000, largest=300_000, auto_compact_window="1M").threshold == 967_000


def test_claude_code_takes_its_default_window_where_only_the_model_table_has_a_larger_one():
    own_rule = rule("claude-code", "2.1.62", 1_000_000)
    assert (own_rule.threshold, own_rule.settings[0].source) == (167_000, Provenance.ASSUMED)
    assert rule("claude-code", "2.1.62", 1_000_000, Provenance.RECORDER).threshold == 967_000


@pytest.mark.parametrize(
    ("format_", "window", "source", "typed", "threshold"),
    [
        ("codex", 258_400, Provenance.RECORDER, {}, 244_800),
        ("codex", 121_600, Provenance.RECORDER, {}, 115_200),
        ("codex", 258_400, Provenance.RECORDER, {"model_auto_compact_token_limit": "100000"}, 100_000),
        ("codex", 258_400, Provenance.RECORDER, {"model_auto_compact_token_limit": "300000"}, 244_800),
        ("pi", 200_000, Provenance.USER, {}, 183_616),
        ("opencode", 200_000, Provenance.USER, {}, 168_000),
        ("opencode", 128_000, Provenance.USER, {"max_output_tokens": "16384"}, 111_616),
        ("opencode", 400_000, Provenance.USER, {"input_limit": "272000"}, 252_000),
        ("opencode", 128_000, Provenance.USER, {"max_output_tokens": "16384", "reserved": "10000"}, 111_616),
        ("opencode", 400_000, Provenance.USER, {"input_limit": "272000", "reserved": "10000"}, 262_000),
        ("pi", 200_000, Provenance.USER, {"reserve_tokens": "32000"}, 168_000),
        ("pi", 200_000, Provenance.USER, {"reserve_tokens": "0"}, 200_000),
        ("adk", 0, Provenance.USER, {"token_threshold": "40000"}, 40_000),
        ("inspect", 200_000, Provenance.USER, {}, 180_000),
        ("inspect", 200_000, Provenance.USER, {"threshold_pct": "50"}, 100_000),
        ("inspect", 0, Provenance.USER, {"threshold": "20000"}, 20_000),
        ("langchain", 0, Provenance.USER, {"trigger_tokens": "4000"}, 4_000),
        ("langchain", 200_000, Provenance.USER, {"trigger_fraction": "85"}, 170_000),
        ("mistral-vibe", 0, Provenance.USER, {}, 200_000),
        ("gemini-cli", 0, Provenance.USER, {}, 524_288),
        ("gemini-cli", 0, Provenance.USER, {"compression_threshold": "20"}, 209_716),
        ("hermes", 200_000, Provenance.USER, {}, 150_000),
        ("hermes", 128_000, Provenance.USER, {}, 96_000),
        ("hermes", 32_000, Provenance.USER, {}, 27_200),
        ("hermes", 64_000, Provenance.USER, {}, 54_400),
        ("hermes", 100_000, Provenance.USER, {}, 75_000),
        ("hermes", 400_000, Provenance.USER, {}, 300_000),
        ("hermes", 512_000, Provenance.USER, {}, 256_000),
        ("hermes", 1_000_000, Provenance.USER, {}, 500_000),
        ("crush", 200_000, Provenance.USER, {}, 160_000),
        ("crush", 200_001, Provenance.USER, {}, 180_001),
        ("gptme", 128_000, Provenance.USER, {}, 115_200),
        ("gptme", 64_000, Provenance.USER, {}, 54_808),
        ("gptme", 8_000, Provenance.USER, {}, 1_000),
        ("gptme", 1_000_000, Provenance.USER, {}, 256_000),
        ("gptme", 128_000, Provenance.USER, {"max_output_tokens": "64000"}, 63_000),
        ("gptme", 128_000, Provenance.USER, {"context_budget": "20000"}, 20_000),
        ("gptme", 128_000, Provenance.USER, {"context_budget": "0.5"}, 64_000),
        ("gptme", 128_000, Provenance.USER, {"context_budget": "1"}, 118_808),
        ("gptme", 1_000_000, Provenance.USER, {"context_budget": "0.9"}, 900_000),
        ("cline", 128_000, Provenance.USER, {}, 98_000),
        ("cline", 1_000_000, Provenance.USER, {}, 960_000),
    ],
)
def test_each_agent_has_its_threshold(format_, window, source, typed, threshold):
    assert rule(format_, "", window, source, **typed).threshold == threshold


def test_early_versions_of_codex_have_limits_of_their_models_which_their_files_lack():
    early = rule("codex", "0.44.0", 272_000, Provenance.RECORDER)
    assert (early.threshold, early.settings[0].value, early.counter) == (None, 272_000, TOTAL)
    assert early.reason.endswith(": set model_auto_compact_token_limit")
    typed = {"model_auto_compact_token_limit": "260000"}
    assert rule("codex", "0.44.0", 272_000, Provenance.RECORDER, **typed).threshold == 260_000
    assert rule("codex", "0.53.0", 258_400, Provenance.RECORDER).threshold == 244_800


@pytest.mark.parametrize(
    ("agent", "ended", "label", "threshold", "relation", "checks"),
    [
        ("Crush", 1_761_523_199, "Crush", 320_000, ">", Moment.BEFORE_CALL),
        ("Crush", 1_761_523_200, "Crush", 380_000, ">=", Moment.BEFORE_CALL),
        ("OpenCode", 1_746_748_799, "OpenCode (in Go, before 9 May 2025)", None, ">=", Moment.NEVER),
        ("OpenCode", 1_746_748_800, "OpenCode (in Go)", 380_000, ">=", Moment.TURN_END),
    ],
)
def test_databases_of_crush_without_a_version_are_judged_by_the_rule_of_their_time(
    agent, ended, label, threshold, relation, checks
):
    built = transcript("crush", "")
    last = msgspec.structs.replace(built.calls[-1], timestamp=float(ended))
    built = msgspec.structs.replace(built, agent=agent, calls=(*built.calls[:-1], last))
    own = agent_of(built).ruled(Stretch(0, 1, "", "m", Sourced(400_000, Provenance.USER)), {})
    assert (own.agent, own.threshold, own.relation, own.checks) == (label, threshold, relation, checks)
    assert own.agent in headline(explain(built))


def test_a_build_of_codex_from_source_is_of_no_early_version():
    built, unknown = (rule("codex", version, 258_400, Provenance.RECORDER) for version in ("0.0.0", ""))
    assert (built.threshold, built.counter) == (unknown.threshold, unknown.counter) == (244_800, TOTAL_PENDING)


@pytest.mark.parametrize(
    ("version", "window", "typed", "threshold", "formula"),
    [
        ("before 0.18", 140_000, {}, 70_000, "50 % of 140,000"),
        ("before 0.18", 64_000, {}, 64_000, "64,000 (the least)"),
        ("0.16.0", 600_000, {}, 300_000, "50 % of 600,000"),
        ("0.18", 140_000, {}, 70_000, "50 % of 140,000"),
        ("0.18", 64_000, {}, 54_400, "85 % of 64,000"),
        ("0.18", 200_000, {"max_output_tokens": "60000"}, 70_000, "50 % of (200,000 − 60,000)"),
        ("0.19.0", 200_000, {"max_output_tokens": "60000"}, 105_000, "75 % of (200,000 − 60,000)"),
        ("0.16.0", 200_000, {"max_output_tokens": "60000"}, 100_000, "50 % of 200,000"),
    ],
)
def test_hermes_has_the_threshold_of_its_version(version, window, typed, threshold, formula):
    own = rule("hermes", version, window, Provenance.USER, **typed)
    assert (own.threshold, own.formula) == (threshold, formula)


def test_the_count_of_a_session_of_hermes_that_ended_after_one_call_is_compared():
    built = transcript("hermes", "before 0.18", "", [0, 0, 0, 0], tokens_before=73_942)
    (compaction,) = explain(built, window=Sourced(140_000, Provenance.USER)).compactions
    assert (compaction.verdict, compaction.decision_tokens) == (Agreement.AGREES, 73_942)


@pytest.mark.parametrize("format_", ["gemini-cli", "qwen-code"])
def test_of_versions_that_write_no_compression_down_no_check_is_evidence(format_):
    """0.30.0 of Gemini CLI compacted at 23,098 of 20,972 tokens, and its file does not say so."""
    built = msgspec.structs.replace(
        transcript(format_, "", "", [9_000, 23_098, 20_103, 29_418, 20_538]), compactions=()
    )
    window = Sourced(30_000, Provenance.USER)
    if format_ == "qwen-code":  # Gemini CLI does not compact within the first turn
        assert explain(built, window=window).inference[0].above is not None
    silent = msgspec.structs.replace(built, settings=(AgentSetting("writes_compressions", 0),))
    explanation = explain(silent, window=window)
    assert (explanation.missed, explanation.inference) == ((), ())


@pytest.mark.parametrize(
    ("window", "typed", "threshold"),
    [(0, {}, 115_200), (200_000, {}, 162_000), (200_000, {"maxInputTokens": "150000"}, 135_000)],
)
def test_the_sdk_of_cline_compacts_at_a_share_of_what_its_model_takes(window, typed, threshold):
    built = transcript("cline", "3.0.65", "")
    built = msgspec.structs.replace(built, settings=(AgentSetting("is_of_sdk", 1),), model="m")
    built = msgspec.structs.replace(built, calls=tuple(msgspec.structs.replace(c, model="m") for c in built.calls))
    assert explain(built, window=Sourced(window, Provenance.USER) if window else None, typed=typed).rule.threshold == (
        threshold
    )


def of_cline_sdk(prompts=(20_000, 60_000, 150_000, 30_000), asked=60_000, **compaction):
    """A session of the SDK, compacted before the call after 150,000 tokens; the user's words have `asked` characters, a
    third of which are the tokens that it keeps."""
    built = transcript("cline", "3.0.65", "", prompts=prompts, **compaction)
    events = (user("g" * asked), *built.events[1:])
    return msgspec.structs.replace(built, events=events, settings=(AgentSetting("is_of_sdk", 1),))


@pytest.mark.parametrize(
    ("limit", "before", "verdict"),
    [
        ("150000", 0, Agreement.AGREES),  # 135,000: the last prompt has more
        ("200000", 0, Agreement.NOT_MODELLED),  # 180,000: its own estimate is not in the file
        ("200000", 170_000, Agreement.NOT_MODELLED),  # system prompt and tools may have added 10,000
        ("400000", 170_000, Agreement.EARLY),  # 360,000: not so much, where the first prompt had 20,000
        ("70000", 0, Agreement.AGREES),  # 63,000: 60,000 passed
        ("60000", 0, Agreement.LATE),  # 54,000
    ],
)
def test_a_compaction_of_the_sdk_of_cline_is_compared_with_a_typed_limit(limit, before, verdict):
    window = Sourced(1_000_000, Provenance.USER)
    explanation = explain(of_cline_sdk(tokens_before=before or None), window=window, typed={"maxInputTokens": limit})
    assert explanation.compactions[0].verdict is verdict


def test_a_prompt_of_the_sdk_of_cline_above_its_threshold_that_passed_contradicts_the_rule():
    silent = msgspec.structs.replace(of_cline_sdk((20_000, 60_000, 150_000, 160_000)), compactions=())
    explanation = explain(silent, window=Sourced(100_000, Provenance.USER))
    assert [(item.step, item.count) for item in explanation.missed] == [(3, 150_000)]
    assert explain(silent, typed={"compaction.enabled": "false"}).missed == ()


@pytest.mark.parametrize(
    ("asked", "prompts", "missed"),
    [
        (40_000, (60_000, 150_000, 160_000, 170_000), 0),
        (60_000, (60_000, 150_000, 160_000, 170_000), 2),
        (60_000, (60_000, 150_000, 140_000, 145_000), 0),
    ],
)
def test_the_sdk_of_cline_does_not_compact_messages_within_what_it_keeps(asked, prompts, missed):
    """3.0.65, run: 20,000 tokens by its own estimate; a prompt that fell shows a compaction that the file lacks."""
    silent = msgspec.structs.replace(of_cline_sdk(prompts, asked), compactions=())
    explanation = explain(silent, window=Sourced(100_000, Provenance.USER))
    assert len(explanation.missed) == missed


def test_checks_of_the_sdk_of_cline_prove_nothing_where_its_scale_may_end_or_a_run_begins():
    """Four times its estimate may be less than the tokens of a text whose characters have three bytes; and before the
    first answer of a run it knows no count of the provider."""
    silent = msgspec.structs.replace(of_cline_sdk((20_000, 60_000, 150_000, 160_000)), compactions=())
    wide = tuple(
        tool_result("漢" * 40_000, id=str(n)) if n in (2, 4, 6) else event for n, event in enumerate(silent.events)
    )
    asked = (*silent.events[:7], user("and now?"), *silent.events[7:])
    late = msgspec.structs.replace(silent.calls[3], at=8, response=8)
    for events, calls in ((wide, silent.calls), (asked, (*silent.calls[:3], late))):
        explanation = explain(
            msgspec.structs.replace(silent, events=events, calls=calls), typed={"maxInputTokens": "100000"}
        )
        assert explanation.missed == ()


@pytest.mark.parametrize("format_", ["pi", "opencode", "codex", "hermes", "crush", "cline", "kimi-code", "inspect"])
def test_a_rule_whose_window_is_not_known_has_no_threshold_and_says_so(format_):
    own_rule = rule(format_, window=0)
    assert (own_rule.threshold, own_rule.reason) == (None, "the context window is not known: set it")


def test_the_budget_of_deepagents_with_claude_is_among_the_hypotheses_of_langchain():
    """deepagents 0.7.32: 190,000 of a window of 200,000, less 64,000 for the answer; what is above that."""
    stretch = Stretch(0, 1, "", "claude-sonnet-4-5", Sourced(200_000, Provenance.USER))
    formulas = {item.threshold: item.formula for item in BY_FORMAT["langchain"].hypotheses(stretch, {})}
    assert formulas[126_001] == "above 95 % of 200,000 − 64,000 (deepagents, answer)"


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.label)
def test_the_default_is_among_the_hypotheses_of_each_rule(agent):
    stretch = Stretch(0, 1, "2.1.14", OPUS, Sourced(200_000, Provenance.USER))
    thresholds = {item.threshold for item in agent.hypotheses(stretch, {}) if item.changes == 0}
    default = agent.ruled(stretch, {}).threshold
    assert default in thresholds or (default is None and not thresholds)


@pytest.mark.parametrize(
    ("format_", "words"),
    [
        ("adk", "EventsCompactionConfig is not in the file: set token_threshold"),
        ("langchain", "the middleware's trigger is not in the file: set trigger_tokens or trigger_fraction"),
    ],
)
def test_a_rule_without_a_default_says_what_to_set(format_, words):
    assert (rule(format_).threshold, rule(format_).reason) == (None, words)


# -- sessions


def test_adk_compacts_after_a_number_of_invocations():
    """Two calls in each of six turns, and a compaction after every second one that leaves nothing but its summary."""
    events, calls, compactions = [], [], []
    for turn in range(6):
        events.append(user("go"))
        for _ in range(2):
            calls.append(ModelCall(len(events), len(events), 1_000, output_tokens=10, model="m"))
            events.append(model("done"))
        if turn % 2:
            at = len(events)
            compactions.append(RecordedCompaction(at, Evidence.DECLARED, "summary", (Inserted(0),), (user("sum"),)))
    session = Session(tuple(events), tuple(calls), tuple(compactions), format="adk")
    assert agent_of(session).label == "ADK (interval)"
    explanation = explain(session, typed={"compaction_interval": "2"})
    assert [item.decision_tokens for item in explanation.compactions] == [2, 2, 2]
    assert (explanation.auto, explanation.agrees, explanation.missed) == (3, 3, ())
    (interval,) = explain(session).inference
    assert (interval.above, interval.at_most) == (1, 2)
    assert "compaction_interval 2" in [item.formula for item in interval.hypotheses]
    checks = OwnChecks(session, Ledger.of(session), explanation)
    assert set(checks.thresholds.tolist()) == set(checks.counts.tolist()) == {UNKNOWN}
    assert checks.at(4).reason == "its rule counts invocations, not tokens"
    with pytest.raises(SettingError, match="a number of invocations from 1 to 999999, not '0'"):
        explain(session, typed={"compaction_interval": "0"})


def test_the_plan_of_an_evaluation_names_the_threshold_of_inspect():
    session = msgspec.structs.replace(
        transcript("inspect", "0.3.285", tokens_before=21_000),
        settings=(AgentSetting("threshold", 20_000, "in the plan"),),
    )
    explanation = explain(session)
    assert (explanation.rule.threshold, explanation.rule.relation, explanation.compactions[0].decision_tokens) == (
        20_000,
        ">",
        21_000,
    )
    share = msgspec.structs.replace(session, settings=(AgentSetting("threshold", 0.5, ""),))
    assert explain(share, window=Sourced(40_000, Provenance.USER)).rule.threshold == 20_000


def test_a_compaction_at_its_threshold_agrees():
    (item,) = explain(transcript()).compactions
    assert (item.verdict, item.decision_tokens, item.step) == (Agreement.AGREES, 155_010, 3)


def test_the_count_that_was_recorded_is_the_one_compared():
    (item,) = explain(transcript(tokens_before=155_200)).compactions
    assert (item.decision_tokens, item.recorded, item.computed) == (155_200, 155_200, 155_010)


def test_a_figure_that_no_request_can_have_had_is_compared_with_nothing():
    """Written in characters, say: neither it nor the calls before are believed."""
    explanation = explain(transcript(tokens_before=620_000))
    (item,) = explanation.compactions
    assert (item.verdict, explanation.inference[0].at_most) == (Agreement.NOT_MODELLED, None)
    assert item.reason.startswith("the file says 620,000, but no request so soon after one of 15")


@pytest.mark.parametrize(
    ("version", "pending"),
    [
        ("2.1.34", 25 + 1_334 + 50),
        ("2.1.44", 25 + 2_000 + 50),
        ("2.1.62", 25 + 2_000 + 50),
        ("2.1.74", 5 + 25 + 2_000 + 50),
        ("2.1.330", 5 + 25 + 2_000 + 50),
    ],
)
def test_claude_code_counts_all_that_was_added_as_its_version_does(version, pending):
    events = (
        user("go"),
        Event(Role.MODEL, (TextPart("reading"), ToolCallPart("Read", {"path": "abc"}, "c"))),  # 18 characters of a call
        Event(Role.USER, (ToolResultPart("Read", "x" * 100, "c"), MediaPart("image/png", size=9_000))),
        user("y" * 200),
    )
    call = ModelCall(1, 1, 190_000, output_tokens=10, model=OPUS)
    base = RecordedCompaction(4, Evidence.DECLARED, "summary", (Inserted(0),), (user("sum"),), "auto")
    session = Session(
        events, (call,), (base,), format="claude-code", model=OPUS, versions=((0, version),), agent="Claude Code"
    )
    (item,) = explain(session).compactions
    assert item.computed == 190_010 + pending


def reasoned(*turns: Sequence[int], prompt: int = 230_000, name: str = "gpt-5.5", at: int | None = None) -> Session:
    """A session of Codex whose turns are answers with so many bytes of encrypted reasoning, each with a call and its
    output of 72 bytes, 19 tokens with its id; it compacts behind the last output, and only the last prompt is large.
    `at`: before which event it did another time."""
    events: list[Event] = []
    calls: list[ModelCall] = []
    for number, turn in enumerate(turns):
        events.append(user(f"Turn {number}"))
        for opaque in turn:
            calls.append(ModelCall(len(events), len(events), prompt // 2, output_tokens=10, model=name))
            events.append(Event(Role.MODEL, (ReasoningPart("", opaque), ToolCallPart("shell", {}, str(len(events))))))
            events.append(tool_result("x" * 72, id=str(len(events) - 1)))
    calls[-1] = msgspec.structs.replace(calls[-1], prompt_tokens=prompt)
    calls.append(ModelCall(len(events), prompt_tokens=20_000, output_tokens=10, model=name))
    bases = [
        RecordedCompaction(place, Evidence.DECLARED, "opaque", (), trigger="auto")
        for place in ([at, len(events)] if at is not None else [len(events)])
    ]
    window = Sourced(258_400, Provenance.RECORDER)
    return Session(
        tuple(events), tuple(calls), tuple(bases), format="codex", model=name, window=window, versions=((0, "0.160.0"),)
    )


def test_codex_counts_the_encrypted_reasoning_of_earlier_turns_too():
    explanation = explain(reasoned([20_650, 40_650], [60_650, 80_650]))
    (item,) = explanation.compactions
    assert (item.computed, item.verdict) == (230_010 + 19 + 5_000 + 10_000, "agrees")


def test_codex_does_not_count_the_reasoning_before_its_last_compaction():
    explanation = explain(reasoned([20_650], [60_650], [80_650], at=3))
    assert explanation.compactions[-1].computed == 230_010 + 19 + 15_000


def test_codex_counts_no_more_than_the_bytes_of_an_item_are_above_650():
    assert explain(reasoned([600], [100])).compactions[0].computed == 230_010 + 19


def test_without_the_encrypted_reasoning_in_the_file_what_codex_counted_is_not_known():
    session = reasoned([0, 0], [0, 0])
    explanation = explain(session)
    (item,) = explanation.compactions
    assert (item.computed, item.verdict) == (None, "not modelled")
    assert item.reason == "the file does not hold the encrypted reasoning of earlier turns, which Codex counts"
    assert explanation.inference[0].above == 115_029
    first_turn = explain(reasoned([0, 0])).compactions[0]
    assert (first_turn.computed, first_turn.verdict) == (230_029, "other threshold")
    assert explain(reasoned([0, 0], [0, 0], name="qwen3-coder")).compactions[0].computed == 230_029


def test_a_compaction_that_a_person_asked_for_is_no_evidence():
    explanation = explain(transcript(trigger="manual"))
    assert (explanation.auto, explanation.inference[0].at_most) == (0, None)
    assert explanation.compactions[0].reason == "a person asked for it"


def test_a_compaction_below_the_rule_names_the_interval_of_another_threshold():
    explanation = explain(transcript(version="2.1.21"))
    (item,) = explanation.compactions
    assert (item.verdict, explanation.inference[0].above, explanation.inference[0].at_most) == (
        "other threshold",
        151_010,
        155_010,
    )
    assert "above 151,010 and at most 155,010" in item.reason


def test_a_compaction_after_the_last_call_is_before_no_step():
    built = transcript(version="2.1.21")
    calls = tuple(call for call in built.calls if call.at < built.compactions[0].at)
    explanation = explain(msgspec.structs.replace(built, calls=calls))
    assert [item.step for item in explanation.compactions] == [len(calls)]
    (row,) = explain_command._table(explanation).splitlines()[1:]
    assert row.strip().startswith("after the last step  automatic")
    uncounted = tuple(msgspec.structs.replace(call, prompt_tokens=None) for call in calls)
    assert "; after the last step: " in headline(explain(msgspec.structs.replace(built, calls=uncounted)))


@pytest.mark.parametrize(
    ("prompts", "has_failed"), [((20_000, 160_000, 163_000, 30_000), True), ((20_000, 150_000, 154_000, 30_000), False)]
)
def test_a_compaction_above_the_threshold_may_follow_ones_that_failed(prompts, has_failed):
    """2.1.332, run with a provider that fails to summarise twice."""
    typed = {} if has_failed else {"max_output_tokens": "8192"}
    (item,) = explain(transcript(prompts=prompts), typed=typed).compactions
    assert item.verdict is Agreement.OTHER_THRESHOLD
    assert item.reason.endswith(f"({FAILING})") is has_failed


def test_a_limit_that_can_be_set_comes_before_a_share_that_cannot():
    """0.171.0, run with a window of 90,000 and a limit of 70,000."""
    built = transcript("codex", "0.171.0", prompts=(20_000, 62_669, 69_990, 30_000), tokens_before=None)
    (interval,) = explain(built, window=Sourced(90_000, Provenance.USER)).inference
    assert interval.hypotheses[0].formula == "model_auto_compact_token_limit 70,000"


GROWTH = {"model_auto_compact_token_limit_scope": "body_after_prefix"}


def in_codex(prompts: tuple[int, ...], usable: int = 190_000) -> Session:
    built = transcript("codex", "0.171.0", prompts=prompts, tokens_before=None)
    return msgspec.structs.replace(built, window=Sourced(usable, Provenance.RECORDER))


@pytest.mark.parametrize("model_name", ["gpt-5.1-codex", OPUS])
def test_a_first_count_of_codex_is_not_known_where_the_file_continues_another(model_name):
    """A turn that is sent anew begins a file in 0.171.0 (run): the encrypted reasoning before it counts, too."""
    events, calls, compactions = [], [], []
    for prompt in (40_000, 49_000, 30_000, 49_500, 20_000):
        if prompt in (30_000, 20_000):
            cut = (Inserted(0),), (user("sum"),), "auto"
            compactions.append(RecordedCompaction(len(events), Evidence.DECLARED, "summary", *cut))
        else:
            events.append(user("go"))
        calls.append(ModelCall(len(events), len(events), prompt, None, None, 10, model_name))
        events += [model("reading"), tool_result("x" * 4_000, id=str(prompt))]
    session = Session(tuple(events), tuple(calls), tuple(compactions), format="codex", settings=(CONTINUES,))
    session = msgspec.structs.replace(session, window=Sourced(258_400, Provenance.RECORDER))
    explanation = explain(session, typed={"model_auto_compact_token_limit": "50000"})
    first, second = explanation.compactions
    is_unknown = model_name != OPUS
    assert (first.decision_tokens is None, first.verdict is Agreement.NOT_MODELLED) == (is_unknown, is_unknown)
    assert (second.decision_tokens, second.verdict) == (50_512, Agreement.AGREES)


def test_codex_may_count_what_was_added_to_the_first_prompt_alone():
    session = in_codex((20_000, 70_000, 81_000, 30_000, 80_000, 85_000))
    limit = {"model_auto_compact_token_limit": "60000"}
    explanation = explain(session, typed={**limit, **GROWTH})
    (item,) = explanation.compactions
    assert (item.verdict, item.decision_tokens, item.threshold) == (Agreement.AGREES, 62_011, 60_000)
    assert explanation.missed == ()
    assert (explanation.rule.counter, explanation.inference[0].above) == ("growth", 51_011)
    decision = OwnChecks(session, Ledger.of(session), explanation).at(3)
    (count,) = [term for term in decision.terms if term.name == "count"]
    assert (count.value, count.expression) == (62_011, "81,000 + 10 + 1,001 − 20,000")
    (total,) = explain(session, typed={**limit, "model_auto_compact_token_limit_scope": "total"}).compactions
    assert (total.verdict, total.decision_tokens) == (Agreement.OTHER_THRESHOLD, 82_011)
    with pytest.raises(SettingError, match="is total or body_after_prefix, not 'body'"):
        explain(session, typed={"model_auto_compact_token_limit_scope": "body"})


def test_what_is_added_compacts_codex_at_the_latest_where_its_window_is_full():
    """0.171.0, run with a window of 120,000, of which 114,000 can be used, and limits of 90,000 and 500,000."""
    for limit, first, second, count in (("90000", 50_000, 100_000, 91_011), ("500000", 9_000, 112_000, 115_011)):
        session = in_codex((first, second, 114_000, 30_000), 114_000)
        explanation = explain(session, typed={"model_auto_compact_token_limit": limit, **GROWTH})
        (item,) = explanation.compactions
        assert (item.verdict, item.decision_tokens, explanation.missed) == (Agreement.AGREES, count, ())
        assert explanation.rule.threshold == min(int(limit), 114_000)


def test_the_first_prompt_of_codex_exec_is_that_of_the_turn():
    """Each turn of `codex exec` is a process, which knows no prompt before its first answer (0.171.0, run)."""
    events, calls = [], []
    for prompts in ((20_000, 50_000), (80_000, 85_000, 130_000)):
        events.append(user("go"))
        for prompt in prompts:
            calls.append(ModelCall(len(events), len(events), prompt, None, None, 10, OPUS))
            events += [model("reading"), tool_result("x" * 4_000, id=str(prompt))]
    session = Session(tuple(events), tuple(calls), format="codex", window=Sourced(190_000, Provenance.RECORDER))
    typed = {"model_auto_compact_token_limit": "45000", **GROWTH}
    assert [check.step for check in explain(session, typed=typed).missed] == [3, 4]
    session = msgspec.structs.replace(session, settings=(ONE_TURN,))
    assert [(check.step, check.count) for check in explain(session, typed=typed).missed] == [(2, 51_012)]


def test_a_late_compaction_counts_the_checks_at_which_the_rule_fired():
    prompts = (20_000, 160_000, 158_000, 158_500, 30_000)
    explanation = explain(transcript(prompts=prompts, place=4))
    (item,) = explanation.compactions
    assert (item.verdict, item.calls, item.tokens) == (Agreement.LATE, 2, 4_510)
    assert [(check.step, check.count) for check in explanation.missed] == [(2, 161_010), (3, 159_010)]
    assert "before step 3 it did not compact at 161,010 tokens" in explanation.inference[0].contradiction


def test_a_contradiction_names_no_step_behind_the_last_call():
    built = transcript(prompts=(20_000, 160_000, 151_000, 30_000))
    calls = tuple(call for call in built.calls if call.at < built.compactions[0].at)
    (interval,) = {item.contradiction for item in explain(msgspec.structs.replace(built, calls=calls)).inference}
    assert interval == (
        "no threshold explains both: before step 3 it did not compact at 161,010 tokens, after the last step it did at "
        "152,010"
    )


def test_an_early_compaction_says_how_far_it_is_from_the_threshold():
    prompts = (20_000, 140_000, 120_000, 30_000)
    (item,) = explain(transcript(prompts=prompts)).compactions
    assert (item.verdict, item.tokens) == (Agreement.EARLY, 155_000 - 121_010)


def test_a_compaction_of_unknown_trigger_below_a_count_that_passed_may_have_been_asked_for():
    explanation = explain(transcript(trigger="", prompts=(20_000, 140_000, 120_000, 30_000)))
    (item,) = explanation.compactions
    assert (item.verdict, explanation.inference[0].left_out) == (Agreement.NOT_MODELLED, (3,))
    assert "the file does not say: elsewhere it did not compact at 141,010" in item.reason


def test_a_compaction_of_unknown_trigger_at_which_the_rule_fires_agrees_though_the_automatic_ones_were_later():
    built = transcript(prompts=(20_000, 158_000, 30_000, 155_100, 30_000), place=2)
    (automatic,) = built.compactions
    unstated = msgspec.structs.replace(automatic, trigger="", at=built.calls[4].at)
    session = msgspec.structs.replace(built, compactions=(automatic, unstated))
    explanation = explain(session)
    assert explanation.inference[0].left_out == (4,)
    assert [item.verdict for item in explanation.compactions] == [Agreement.AGREES, Agreement.AGREES]
    (_, other) = explain(session, typed={"max_output_tokens": "20000"}).compactions
    assert other.verdict is Agreement.NOT_MODELLED


def test_after_a_compaction_no_count_is_known_until_an_answer():
    session = transcript()
    again = msgspec.structs.replace(session, compactions=session.compactions * 2)
    assert [item.verdict for item in explain(again).compactions] == [Agreement.AGREES, Agreement.NOT_MODELLED]


def test_a_refused_request_explains_a_compaction_without_a_threshold():
    explanation = explain(transcript(version="2.1.330", prompts=(20_000, 190_000, 199_500, 30_000)))
    (item,) = explanation.compactions
    assert (item.verdict, explanation.inference[0].at_most) == (Agreement.AGREES, None)
    assert item.reason == "200,510 exceeds the window of 200,000: the provider refused the request"


@pytest.mark.parametrize("version", ["2.1.62", "2.1.330", ""])
def test_a_compaction_after_a_refused_request_bounds_no_threshold(version):
    session = transcript(version=version)
    (item,) = explain(session).compactions
    assert item.verdict is not Agreement.AGREES
    explanation = explain(msgspec.structs.replace(session, refused=(session.compactions[0].at,)))
    (item,) = explanation.compactions
    assert (item.verdict, item.reason) == (
        Agreement.AGREES,
        "the provider had refused the request, whatever the threshold",
    )
    assert (explanation.inference[0].at_most, explanation.evidence[0].compactions[0].cause) == (None, Cause.REFUSED)
    assert headline(explanation).endswith(f"Recorded after a refused request at 155,010{COUNT}.")


@pytest.mark.parametrize(("size", "missed"), [(1_000_000, 0), (80_000, 1)])
def test_a_result_that_the_next_request_cannot_have_held_is_no_missed_check(size, missed):
    """The file has a result of 250,000 tokens by the agent's estimate; the next prompt had 175,000."""
    events = (user("go"), model("reading"), tool_result("x" * size, id="1"), model("done"))
    calls = (ModelCall(1, 1, 160_000, None, None, 10, OPUS), ModelCall(3, 3, 175_000, None, None, 10, OPUS))
    session = Session(events, calls, format="claude-code", model=OPUS, versions=((0, "2.1.50"),))
    assert len(explain(session).missed) == missed


@pytest.mark.parametrize(("version", "rounds", "agrees"), [("2.1.250", 2, 1), ("2.1.250", 1, 0), ("2.1.120", 2, 0)])
def test_more_than_one_round_that_was_kept_shows_a_refusal_where_no_window_is_set(version, rounds, agrees):
    """At a threshold Claude Code keeps one round, after a refused request as many as have room."""
    session = transcript(version=version, prompts=(20_000, 150_000, 160_000, 40_000))
    at = session.compactions[0].at
    base = (Inserted(0), Span(at - 2 * rounds, at))
    kept = msgspec.structs.replace(session.compactions[0], base=base, kind="summary+tail")
    explanation = explain(msgspec.structs.replace(session, compactions=(kept,)))
    assert (explanation.auto, explanation.agrees) == (1, agrees)
    if agrees:
        assert explanation.compactions[0].reason == (
            "2 rounds of tool calls were kept, as it does only after a refused request"
        )
        assert headline(explanation).endswith(f"Recorded after a refused request at 161,010{COUNT}.")


def test_rounds_that_were_kept_show_no_refusal_where_a_larger_prompt_was_answered():
    """The request for the summary was refused (2.1.250, run)."""
    session = transcript(version="2.1.250", prompts=(20_000, 60_000, 68_000, 75_000))
    at = session.compactions[0].at
    kept = msgspec.structs.replace(session.compactions[0], base=(Inserted(0), Span(at - 4, at)), kind="summary+tail")
    explanation = explain(msgspec.structs.replace(session, compactions=(kept,)))
    assert explanation.inference[0].at_most == 69_010
    assert explanation.compactions[0].verdict is Agreement.OTHER_THRESHOLD


def test_rounds_that_were_kept_show_no_refusal_where_the_file_has_the_requests():
    """The request for the summary was refused (2.1.332, run); the file lists the requests of the conversation alone."""
    session = transcript(version="2.1.332", prompts=(20_000, 60_000, 68_000, 40_000))
    at = session.compactions[0].at
    kept = msgspec.structs.replace(session.compactions[0], base=(Inserted(0), Span(at - 4, at)), kind="summary+tail")
    limit = AgentSetting("max_output_tokens", 32_000, "max_tokens of its requests")
    explanation = explain(msgspec.structs.replace(session, compactions=(kept,), settings=(limit,)))
    (interval,) = explanation.inference
    assert (interval.above, interval.at_most) == (61_010, 69_010)
    assert 67_000 in {item.threshold for item in interval.hypotheses}
    assert explanation.compactions[0].verdict is Agreement.OTHER_THRESHOLD


def test_a_refused_request_before_an_answer_or_another_compaction_forces_none():
    session = transcript(version="2.1.62")
    at = session.compactions[0].at
    for earlier in (session.calls[2].response, session.calls[0].at):
        explanation = explain(msgspec.structs.replace(session, refused=(earlier,)))
        assert explanation.inference[0].at_most == 155_010
    later = explain(msgspec.structs.replace(session, refused=(at + 1,)))
    assert later.inference[0].at_most == 155_010


def test_a_refused_request_behind_a_compaction_did_not_force_it():
    session = transcript(version="2.1.62")
    (cut,) = session.compactions
    behind = msgspec.structs.replace(cut, refused_behind=1)
    explanation = explain(msgspec.structs.replace(session, compactions=(behind,), refused=(cut.at,)))
    assert (explanation.inference[0].at_most, explanation.compactions[0].after_refusal) == (155_010, False)
    twice = explain(msgspec.structs.replace(session, compactions=(behind, cut), refused=(cut.at,)))
    assert [item.after_refusal for item in twice.compactions] == [False, True]


def test_a_person_who_asks_after_a_refused_request_is_named():
    session = transcript(trigger="manual")
    explanation = explain(msgspec.structs.replace(session, refused=(session.compactions[0].at,)))
    assert explanation.compactions[0].reason == "a person asked for it"


def test_checks_before_a_fall_that_calls_without_a_count_come_before_bound_no_threshold():
    """The history may have been cut at any of them."""
    session = transcript(prompts=(20_000, 160_000, 161_000, 162_000, 30_000), place=0)
    calls = [
        msgspec.structs.replace(call, prompt_tokens=None) if 2 <= n <= 3 else call
        for n, call in enumerate(session.calls)
    ]
    explanation = explain(msgspec.structs.replace(session, compactions=(), calls=tuple(calls)))
    assert (explanation.inference[0].above, explanation.missed) == (21_010, ())


def test_a_threshold_in_a_version_without_one_names_the_window_that_would_explain_it():
    explanation = explain(transcript(version="2.1.330", prompts=(20_000, 165_500, 166_500, 30_000)))
    assert explanation.compactions[0].verdict == Agreement.OTHER_THRESHOLD
    assert explanation.inference[0].hypotheses[0].threshold == 167_000


def test_a_version_of_pi_that_names_the_usage_of_its_summaries_is_asked_before_every_call():
    log = [
        user("go"),
        model("reading"),
        tool_result("x" * 90_000, id="1"),
        model("reading"),
        tool_result("y" * 401, id="2"),
    ]
    calls = (
        ModelCall(1, 1, 60_000, None, None, 7),
        ModelCall(3, 3, 150_000, None, None, 7),
        ModelCall(5, 5, 9_000, None, None, 7),
    )
    cut = RecordedCompaction(5, Evidence.DECLARED, "summary", (Inserted(0), Span(4, 5)), (user("sum"),), "")
    setting = AgentSetting("looks_within_turns", 1)
    log.append(model("done"))
    session = Session(tuple(log), calls, (cut,), format="pi", settings=(setting,))
    explanation = explain(session, typed={"contextWindow": "166384"})
    assert (explanation.rule.threshold, explanation.rule.checks, explanation.missed) == (
        150_000,
        Moment.BEFORE_CALL,
        (),
    )
    assert explanation.rule.profile == "0.85"
    (item,) = explanation.compactions
    assert (item.decision_tokens, item.verdict) == (150_000 + 7 + 101, Agreement.AGREES)


def test_a_history_that_pi_compacted_shows_that_it_keeps_less_than_its_default():
    """1.6.0 with keepRecentTokens 4,000 compacted histories below 20,000 tokens: larger ones were checked, too."""
    session = transcript("pi", "", "", prompts=(15_000, 9_000, 13_000, 14_500), place=1, tokens_before=16_010)
    session = msgspec.structs.replace(session, settings=(AgentSetting("looks_within_turns", 1),))
    explanation = explain(session, typed={"contextWindow": "20000", "reserveTokens": "4000"})
    (interval,) = explanation.inference
    assert (interval.above, interval.at_most, explanation.agrees) == (14_010, 16_010, 1)


@pytest.mark.parametrize(("recent", "missed"), [(None, 0), ("4000", 1), ("30000", 0)])
def test_pi_does_not_compact_a_history_within_what_it_was_told_to_keep(recent, missed):
    """A check of 16,010 tokens whose texts are some 11,000 by pi's own estimate."""
    log = [
        user("go"),
        model("reading"),
        tool_result("x" * 44_000, id="1"),
        model("reading"),
        user("go on"),
        model("ok"),
    ]
    calls = tuple(ModelCall(at, at, 16_000 + at, None, None, 9) for at in (1, 3, 5))
    session = Session(tuple(log), calls, format="pi", settings=(AgentSetting("looks_within_turns", 1),))
    typed = {"contextWindow": "20000", "reserveTokens": "4000"}
    if recent is not None:
        typed["compaction.keepRecentTokens"] = recent
    ledger = Ledger.of(session)
    explanation = explain(session, ledger, typed=typed)
    assert len(explanation.missed) == 2 * missed
    assert OwnChecks(session, ledger, explanation).at(2).reason.startswith("all messages" if not missed else "")


@pytest.mark.parametrize(("chars", "missed"), [(90_000, 0), (9_000, 1)])
def test_a_history_that_pi_keeps_as_a_whole_is_no_missed_check_where_only_larger_ones_were_compacted(chars, missed):
    """0.79.10 looks at the end of turns and leaves small histories alone; versions before compact them, too."""
    log = [
        user("go"),
        model("ok"),
        user("go on"),
        model("reading"),
        tool_result("x" * chars, id="1"),
        model("done"),
        user("and now"),
        model("ok"),
    ]
    calls = tuple(ModelCall(at, at, size, None, None, 7) for at, size in ((1, 160_000), (3, 161_000), (5, 162_000)))
    cut = RecordedCompaction(6, Evidence.DECLARED, "summary", (Inserted(0), Span(4, 6)), (user("sum"),), "")
    session = Session(tuple(log), (*calls, ModelCall(7, 7, 9_000, None, None, 7)), (cut,), format="pi")
    explanation = explain(session, typed={"contextWindow": "166384"})
    assert (explanation.agrees, len(explanation.missed)) == (1 - missed, missed)


@pytest.mark.parametrize("failed", [True, False])
def test_a_check_at_which_opencode_asked_for_a_summary_in_vain_is_no_missed_one(failed):
    session = transcript("opencode", "1.18.33", prompts=(20_000, 170_000, 169_000, 167_000))
    session = msgspec.structs.replace(session, compactions=())
    side = (ModelCall(session.calls[2].at - 1),) if failed else ()
    session = msgspec.structs.replace(session, side_calls=side)
    ledger = Ledger.of(session)
    explanation = explain(session, ledger, window=Sourced(200_000, Provenance.USER))
    assert [item.count for item in explanation.missed] == ([169_010] if failed else [170_010, 169_010])
    reason = OwnChecks(session, ledger, explanation).at(2).reason
    assert reason == ("a compaction was begun here and failed" if failed else "")


def test_pi_is_not_asked_within_a_turn():
    explanation = explain(transcript("pi", ""), window=Sourced(160_000, Provenance.USER))
    assert explanation.compactions[0].reason.startswith("within a turn, where the rule is not checked")


def test_gemini_cli_has_nothing_to_cut_in_the_first_turn():
    explanation = explain(transcript("gemini-cli", "", prompts=(20_000, 600_000, 400_000, 30_000), place=3))
    assert (explanation.missed, explanation.inference) == ((), ())
    assert explanation.compactions[0].reason == "in the first turn there is no user's text to cut at"


def test_a_version_of_gemini_cli_that_compacts_in_the_first_turn_is_explained_by_its_count():
    explanation = explain(transcript("gemini-cli", "", prompts=(20_000, 400_000, 600_000, 30_000), place=3))
    assert (explanation.auto, explanation.agrees, explanation.missed) == (1, 1, ())
    assert explanation.inference[0].at_most == 600_000


def test_a_change_of_version_begins_another_stretch():
    session = msgspec.structs.replace(transcript(), versions=((0, "2.1.14"), (5, "2.1.21")))
    explanation = explain(session)
    assert [(item.version, item.start, item.stop) for item in explanation.stretches] == [
        ("2.1.14", 0, 2),
        ("2.1.21", 2, 4),
    ]
    assert [item.threshold for item in explanation.rules] == [155_000, 167_000]


def test_the_rule_in_force_at_the_last_call_is_that_of_the_last_stretch():
    built = transcript(version="2.1.21")
    explanation = explain(msgspec.structs.replace(built, versions=((0, "2.1.21"), (built.calls[-1].at, "2.1.14"))))
    assert explanation.has_changed
    assert (explanation.rule.threshold, explanation.latest.threshold) == (167_000, 155_000)
    assert explanation.latest_refuting is None
    assert explanation.latest_bound.start == 3
    assert not explain(built).has_changed


def test_without_a_rule_the_prompt_and_the_total_still_bound_the_threshold():
    explanation = explain(transcript("homemade"))
    assert explanation.rule is None
    assert [(item.counter, item.above, item.at_most) for item in explanation.inference] == [
        ("prompt", 150_000, 154_000),
        ("total", 150_010, 154_010),
    ]
    assert headline(explanation).startswith(
        "The rule by which the program that wrote this recording compacts is not known here."
    )


def test_an_agent_that_streams_itself_is_called_by_its_name_alone():
    built = msgspec.structs.replace(transcript("homemade"), agent="my agent", format="")
    assert headline(explain(built)).startswith("The rule by which my agent compacts is not known here.")


def test_of_a_simulated_session_no_agent_is_said_to_have_a_rule():
    session = SAMPLES["healthy"].build()
    assert headline(explain(session)) == (
        "This session is simulated: no agent wrote it, so no agent's rule applies. No compaction is recorded."
    )


def test_an_open_bound_is_that_of_the_relation():
    stretch = Stretch(0, 9, "", "m", None)
    strict = interval_of(stretch, "total", ">", [CheckEvidence(1, 100)], [CheckEvidence(2, 103)], calls=9)
    assert [value for value in range(95, 110) if strict.contains(value)] == [100, 101, 102]
    assert strict.words == "at least 100 and below 103"
    equal = interval_of(stretch, "total", ">=", [CheckEvidence(1, 100)], [CheckEvidence(2, 103)], calls=9)
    assert [value for value in range(95, 110) if equal.contains(value)] == [101, 102, 103]


def test_kilo_has_the_rule_of_opencode_by_its_own_name_and_versions():
    """7.7.9, run with a window of 60,000 and an output of 8,000: passed 47,884 and compacted at 52,356."""
    session = transcript("opencode", "1.0.1", prompts=(20_000, 47_884, 52_000, 30_000))
    kilo = msgspec.structs.replace(session, agent="Kilo Code")
    typed = {"window": "60000", "limit.output": "8000"}
    explanation = explain(kilo, typed=typed)
    (own,) = explanation.rules
    assert (own.agent, own.policy, own.threshold, own.relation) == ("Kilo Code", "kilo", 52_000, ">=")
    assert policy_kind("kilo").default_profile == own.profile
    assert explain(session, typed=typed).rules[0].relation == ">"
    assert explain(kilo, typed={**typed, "compaction.threshold_percent": "50"}).rules[0].threshold == 52_000


def test_what_kilo_compacted_by_an_estimate_of_system_prompt_and_tools_is_no_evidence():
    session = transcript("opencode", "7.7.9", prompts=(20_000, 26_343, 27_754, 30_000))
    (item,) = session.compactions
    early = msgspec.structs.replace(item, trigger="preflight")
    kilo = msgspec.structs.replace(session, agent="Kilo Code", compactions=(early,))
    explanation = explain(kilo, typed={"window": "60000", "limit.output": "8000"})
    assert "system prompt and tools" in explanation.compactions[0].reason
    assert explanation.inference[0].at_most is None


def test_the_input_limit_of_a_model_is_among_the_hypotheses_of_opencode():
    explanation = explain(transcript("opencode", "1.18.33", prompts=(20_000, 251_000, 252_500, 30_000)))
    assert "272,000 (input limit) − 20,000" in [item.formula for item in explanation.inference[0].hypotheses]


def test_a_setting_that_the_rule_does_not_have_is_named_with_those_it_has():
    with pytest.raises(SettingError, match="Claude Code has no setting 'reserve'; it has: max_output_tokens"):
        explain(transcript(), typed={"reserve": "1"})
    with pytest.raises(SettingError, match="autocompact_pct is a percentage from 1 to 100, not '0'"):
        explain(transcript(), typed={"autocompact_pct": "0"})


@pytest.mark.parametrize(
    ("format_", "version", "window", "typed", "threshold"),
    [
        ("claude-code", "2.1.14", 0, {"CLAUDE_CODE_MAX_OUTPUT_TOKENS": "8192"}, 178_808),
        ("claude-code", "2.1.14", 0, {"CLAUDE_AUTOCOMPACT_PCT_OVERRIDE": "50"}, 84_000),
        ("claude-code", "2.1.330", 0, {"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "100_000"}, 67_000),
        ("claude-code", "2.1.330", 0, {"autoCompactWindow": "150000", "autoCompactEnabled": "true"}, 117_000),
        ("claude-code", "2.1.21", 0, {"autoCompactEnabled": "false"}, None),
        ("codex", "", 0, {"model_context_window": "128000"}, 115_200),
        ("codex", "", 272_000, {"model-auto-compact-token-limit": "60000"}, 60_000),
        ("pi", "", 0, {"compaction.reserveTokens": "32000", "contextWindow": "200000"}, 168_000),
        ("pi", "", 200_000, {"keepRecentTokens": "5000"}, 183_616),
        ("pi", "", 200_000, {"compaction.enabled": "false"}, None),
        ("opencode", "1.18.33", 0, {"limit.context": "128000", "limit.output": "16384"}, 111_616),
        ("opencode", "1.18.33", 0, {"limit.input": "272000", "compaction.reserved": "10000"}, 262_000),
        ("opencode", "1.18.33", 200_000, {"compaction.auto": "off", "compaction.prune": "true"}, None),
        ("gemini-cli", "", 0, {"model.compressionThreshold": "0.2"}, 209_716),
        ("gemini-cli", "", 0, {"chatCompression.contextPercentageThreshold": "20%"}, 209_716),
        ("hermes", "", 0, {"model.context_length": "128000", "compression.threshold": "0.5"}, 96_000),
        ("hermes", "", 1_000_000, {"compression.threshold_tokens": "80000"}, 80_000),
        ("kimi-cli", "", 0, {"max_context_size": "262144", "loop_control.reserved_context_size": "50000"}, 212_144),
        ("kimi-cli", "", 262_144, {"loop_control.compaction_trigger_ratio": "0.5"}, 131_072),
        ("kimi-code", "", 128_000, {"compaction_trigger_ratio": "0.85"}, 78_000),
        ("kimi-code", "", 262_144, {"reserved_context_size": "10000"}, 222_823),
        ("mistral-vibe", "", 0, {"auto_compact_threshold": "50000"}, 50_000),
        ("mistral-vibe", "", 0, {"max_context_length": "262144"}, 209_715),
        ("qwen-code", "0.24.4", 0, {"contextWindowSize": "131072"}, 98_072),
        ("qwen-code", "0.24.4", 1_000_000, {"context.autoCompactThreshold": "0.5"}, 500_000),
        ("inspect", "", 200_000, {"threshold": "0.9"}, 180_000),
        ("adk", "", 0, {"token_threshold": "40000", "overlap_size": "2"}, 40_000),
        ("crush", "", 200_000, {"options.disable_auto_summarize": "true"}, None),
        ("cline", "", 0, {"contextWindow": "128000"}, 98_000),
    ],
)
def test_a_setting_may_be_given_as_the_agents_configuration_calls_it(format_, version, window, typed, threshold):
    stated = Sourced(window, Provenance.USER) if window else None
    assert explain(transcript(format_, version), window=stated, typed=typed).rule.threshold == threshold


def test_an_agent_that_was_told_not_to_compact_has_no_threshold_and_its_compactions_name_another():
    explained = explain(transcript(), typed={"autoCompactEnabled": "false"})
    assert (explained.rule.checks, explained.rule.reason) == (Moment.NEVER, "automatic compaction is switched off")
    assert explained.compactions[0].verdict is Agreement.OTHER_THRESHOLD
    assert headline(explained).startswith("Claude Code 2.1.14 does not compact by itself")


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ({"autoCompactEnabled": "perhaps"}, "auto is on or off"),
        ({"auto_compact_window": "1k", "CLAUDE_CODE_AUTO_COMPACT_WINDOW": "2k"}, "is set twice, to '1k' and '2k'"),
        ({"window": "wide"}, "window is a whole number from 1 to 100,000,000 tokens, such as 500, 20k or 1.5M"),
        ({"reserve": "1"}, "CLAUDE_CODE_MAX_OUTPUT_TOKENS"),
    ],
)
def test_a_setting_that_cannot_be_read_says_what_is_allowed(typed, words):
    with pytest.raises(SettingError, match=words):
        explain(transcript(), typed=typed)


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.label)
def test_every_alias_is_of_a_setting_that_the_rule_has(agent):
    names = {name.removeprefix("!") for name in agent.aliases.values()}
    assert names <= {*agent.names, "window"}


def test_two_models_that_take_turns_have_one_interval_each():
    prompts = (20_000, 151_000, 152_000, 153_000, 154_000, 30_000)
    session = transcript(prompts=prompts, place=5)
    calls = tuple(
        msgspec.structs.replace(call, model=("claude-opus-4-5", "claude-sonnet-4-5")[number % 2])
        for number, call in enumerate(session.calls)
    )
    explained = explain(msgspec.structs.replace(session, calls=calls))
    assert [(item.model, item.above, item.at_most) for item in explained.inference] == [
        ("claude-opus-4-5", 154_010, None),
        ("claude-sonnet-4-5", 153_010, 155_010),
    ]
    assert (len(explained.stretches), len(explained.rules), len(explained.evidence)) == (6, 6, 2)


def test_a_compaction_after_a_change_of_model_is_held_against_the_threshold_of_the_new_one():
    """A million tokens, then 200,000: what was sent to the first model says nothing of the second one's threshold."""
    session = transcript(prompts=(150_000, 180_000, 230_000, 230_000, 240_000, 30_000, 60_000), place=5)
    names = ["claude-sonnet-4-5[1m]"] * 5 + ["claude-haiku-4-5"] * 2
    calls = tuple(msgspec.structs.replace(call, model=name) for call, name in zip(session.calls, names, strict=True))
    session = msgspec.structs.replace(session, calls=calls, model=names[-1])
    explained = explain(session)
    (item,) = explained.compactions
    assert (item.verdict, item.threshold, explained.missed) == (Agreement.AGREES, 155_000, ())
    assert "With claude-haiku-4-5 2.1.14, from step 6 on, at 155,000:" in headline(explained)
    assert judge_session(session).status is Status.TABLE


def two_models(names, prompts, place, **compaction):
    """Calls of these models, and a compaction before the call at `place`."""
    session = transcript(prompts=prompts, place=place, **compaction)
    calls = tuple(msgspec.structs.replace(call, model=name) for call, name in zip(session.calls, names, strict=True))
    return msgspec.structs.replace(session, calls=calls, model=names[0])


LARGE, SMALL = "claude-sonnet-4-5[1m]", "claude-haiku-4-5"


def test_a_compaction_before_a_change_of_model_is_held_against_the_threshold_of_the_former_one():
    """200,000 tokens, then a million: the first model's threshold was reached, that of the second one is far away."""
    session = two_models([SMALL] * 4 + [LARGE] * 2, (20_000, 150_000, 151_000, 154_000, 30_000, 40_000), 4)
    explained = explain(session)
    (item,) = explained.compactions
    assert (item.verdict, item.threshold, item.before_change) == (Agreement.AGREES, 155_000, True)
    assert [(one.model, one.at_most) for one in explained.inference] == [(SMALL, 155_010), (LARGE, None)]
    longer = two_models([SMALL] * 4 + [LARGE] * 5, (20_000, 150_000, 151_000, 154_000, *[30_000] * 5), 4)
    assert "With claude-haiku-4-5 2.1.14, from step 1 on, at 155,000:" in headline(explain(longer))
    decision = OwnChecks(session, Ledger.of(session), explained).at(4)
    assert (decision.rule.threshold, decision.fires) == (155_000, True)


def written_after(built):
    """A session in which the user wrote between its compaction and the next call."""
    at = built.compactions[0].at
    events = (*built.events[:at], user("now the tests"), *built.events[at:])
    calls = tuple(
        call if call.at < at else msgspec.structs.replace(call, at=call.at + 1, response=call.response + 1)
        for call in built.calls
    )
    return msgspec.structs.replace(built, events=events, calls=calls)


def test_what_the_user_writes_after_a_compaction_says_that_the_former_model_was_to_go_on():
    """Both thresholds were reached, and the user asks for the other model behind the compaction."""
    built = two_models([LARGE] * 4 + [SMALL] * 2, (20_000, 900_000, 953_000, 954_000, 30_000, 40_000), 4)
    (item,) = explain(written_after(built)).compactions
    assert (item.threshold, item.verdict, item.before_change) == (955_000, Agreement.AGREES, True)
    both = explain(built)
    assert [(one.threshold, one.before_change) for one in both.compactions] == [(155_000, False)]
    assert all(one.at_most is None for one in both.inference)  # it bounds the threshold of neither model


def test_a_compaction_that_only_the_model_of_the_next_prompt_explains_is_held_against_its_threshold():
    """pi looks again before a prompt, with the model that was chosen for it."""
    built = two_models([LARGE] * 4 + [SMALL] * 2, (20_000, 250_000, 299_000, 300_000, 30_000, 40_000), 4)
    (item,) = explain(written_after(built)).compactions
    assert (item.threshold, item.verdict, item.before_change) == (155_000, Agreement.AGREES, False)


def test_a_compaction_between_two_models_that_neither_rule_explains_is_evidence_of_neither():
    explained = explain(two_models([SMALL] * 3 + [LARGE] * 2, (20_000, 100_000, 101_000, 30_000, 40_000), 3))
    (item,) = explained.compactions
    assert (item.verdict, item.reason.startswith("it was made between calls of two models")) == ("not modelled", True)
    assert all(one.at_most is None for one in explained.inference)


def test_a_transcript_without_a_version_may_have_the_rule_of_an_old_one():
    formulas = [item.formula for item in explain(transcript(version="")).inference[0].hypotheses]
    assert "200,000 − 32,000 (max output) − 13,000" in formulas


def test_the_command_names_the_model_where_there_are_several():
    session = transcript()
    calls = tuple(
        msgspec.structs.replace(call, model=("claude-opus-4-5", "claude-sonnet-4-5")[number % 2])
        for number, call in enumerate(session.calls)
    )
    shown = explain_command._ExplainedSession.of(msgspec.structs.replace(session, calls=calls), None, {})
    text = explain_command._text(shown)
    assert "steps 2 to 4 of claude-sonnet-4-5 2.1.14: the threshold is above 21,010 and at most 155,010" in text


def test_a_session_without_calls_has_a_rule_and_no_evidence():
    explanation = explain(Session(events=(user("hello"),), format="pi"))
    assert (explanation.rule.agent, explanation.compactions, explanation.inference) == ("pi", (), ())


def test_the_headline_says_the_rule_with_its_numbers():
    assert headline(explain(transcript())) == (
        f"Claude Code 2.1.14 compacts at 155,000: 200,000 − 32,000 (max output) − 13,000. Recorded at 155,010{COUNT}."
    )


@pytest.mark.parametrize(("other", "window"), [("claude-opus-4-5-20251101", 200_000), ("of-nobody", 60_000)])
def test_a_window_that_was_typed_is_that_of_the_main_model(other, window):
    """Another model keeps the one that the table has of it; one that nothing knows has the typed one."""
    session = transcript("pi", "", prompts=(9_000, 20_000, 40_000, 30_000))
    names = ("main-model", "main-model", "main-model", other)
    calls = [msgspec.structs.replace(call, model=name) for call, name in zip(session.calls, names, strict=True)]
    explanation = explain(msgspec.structs.replace(session, calls=tuple(calls)), typed={"contextWindow": "60000"})
    assert [item.window_tokens for item in explanation.stretches] == [60_000, window]


def test_a_window_may_be_typed_for_one_model():
    session = transcript("pi", "", prompts=(9_000, 20_000, 40_000, 30_000))
    names = ("main-model", "main-model", "main-model", "ollama/other:8b")
    calls = [msgspec.structs.replace(call, model=name) for call, name in zip(session.calls, names, strict=True)]
    session = msgspec.structs.replace(session, calls=tuple(calls))
    explanation = explain(session, typed={"contextWindow": "60000", "contextWindow:ollama/other:8b": "120k"})
    assert [item.threshold for item in explanation.rules] == [43_616, 103_616]
    with pytest.raises(SettingError, match="reserve_tokens of the rule of pi is one for all models"):
        explain(session, typed={"reserve_tokens:main-model": "9"})
    with pytest.raises(SettingError, match="window:main-model"):
        explain(session, typed={"window:main-model": "many"})


def test_a_file_that_states_several_windows_is_judged_by_that_of_each_call():
    built = transcript("codex", "0.169.0", prompts=(150_000, 110_000, 60_000, 116_000, 40_000), place=4)
    start = built.calls[2].at
    session = msgspec.structs.replace(
        built, window=Sourced(121_600, Provenance.RECORDER), windows=((0, 258_400), (start, 121_600))
    )
    explanation = explain(session)
    assert [rule.threshold for rule in explanation.rules] == [244_800, 115_200]
    assert [item.verdict for item in explanation.compactions] == [Agreement.AGREES]
    assert (explanation.missed, [item.window for item in explanation.inference]) == ((), [258_400, 121_600])
    assert judge_session(session).status is Status.KNOWN


def test_the_headline_does_not_claim_a_threshold_that_the_recording_excludes():
    words = headline(explain(transcript(version="2.1.62")))
    assert words.startswith("With its default settings, Claude Code 2.1.62 would compact at 167,000: ")
    assert f"Recorded at 155,010{COUNT}. So its threshold is above 151,010 and at most 155,010; " in words
    unsaid = headline(explain(transcript(version="2.1.62", trigger="")))
    assert "So, if it compacted by itself, its threshold is above 151,010 and at most 155,010; " in unsaid
    typed = headline(explain(transcript(), typed={"max_output_tokens": "8192"}))
    assert typed.startswith("With the settings given here, Claude Code 2.1.14 would compact at 178,808: ")


def test_a_threshold_that_rests_on_a_window_that_prompts_suggest_says_so():
    """The table has 200,000 alone: what was answered proves that it is more, not that it is a million."""
    explanation = explain(transcript(version="2.1.62", prompts=[150_000, 200_000, 250_000, 260_000]))
    assert explanation.rule.window.source is Provenance.PROMPTS
    assert ", if the window is 1,000,000." in headline(explanation)
    assert explanation.rule.assumed_window == 1_000_000


def test_a_window_that_is_larger_than_any_that_is_offered_is_an_assumption():
    session = msgspec.structs.replace(transcript("codex", ""), window=Sourced(50_000_000, Provenance.RECORDER))
    judged = judge_session(session)
    assert (judged.status, judged.words) == (
        Status.ASSUMED,
        "recorder, assumed: the file says so, and no model that is offered has more than 10,000,000",
    )
    assert ", if the window is 52,631,579." in headline(explain(session))


@pytest.mark.parametrize("format_", ["hermes", "kimi-cli"])
def test_a_rule_claims_no_threshold_by_a_window_that_an_answered_prompt_contradicts(format_):
    built = transcript(format_, "", prompts=[50_000, 100_000, 150_000, 150_010])
    session = msgspec.structs.replace(built, window=Sourced(100_000, Provenance.RECORDER), compactions=())
    explanation = explain(session)
    assert (explanation.rule.threshold, explanation.missed) == (None, ())
    assert "a prompt of 150,010 tokens was answered, so the window is not 10" in headline(explanation)
    asked_for = explain(session, window=Sourced(100_000, Provenance.USER))
    assert asked_for.rule.threshold is not None


def test_the_contradiction_names_the_window_of_the_file():
    built = transcript("hermes", "", prompts=[50_000, 100_000, 150_000, 150_010])
    session = msgspec.structs.replace(built, window=Sourced(95_000, Provenance.RECORDER), compactions=())
    explanation = explain(session)
    assert "so the window is not 95,000: set it" in headline(explanation)
    assert (explanation.rule.settings[0].value, explanation.rule.settings[0].note) == (None, explanation.rule.reason)


def test_qwen_code_reckons_with_the_window_in_its_file_whatever_was_answered():
    built = transcript("qwen-code", "0.15.6", prompts=[50_000, 80_000, 150_000, 150_010])
    session = msgspec.structs.replace(built, window=Sourced(131_072, Provenance.RECORDER))
    assert explain(session).rule.threshold == 91_751
    assert explain(session, window=Sourced(200_000, Provenance.USER)).rule.threshold == 140_000


@pytest.mark.parametrize(
    ("window", "typed", "threshold"),
    [
        (Sourced(258_400, Provenance.RECORDER), {}, 244_800),
        (Sourced(258_400, Provenance.RECORDER), {"model_context_window": "400000"}, 244_800),
        (Sourced(190_000, Provenance.RECORDER), {"model_context_window": "200000"}, 180_000),
        (None, {"model_context_window": "200000"}, 180_000),
    ],
)
def test_codex_reckons_with_the_window_in_its_file_whatever_was_answered(window, typed, threshold):
    """A configured window above the model's own has no effect, and the file has the one that counts."""
    session = msgspec.structs.replace(transcript("codex", ""), window=window)
    if window is not None:
        prompts = (100_000, 150_000, 295_000, 295_010)
        calls = [
            msgspec.structs.replace(call, prompt_tokens=tokens)
            for call, tokens in zip(session.calls, prompts, strict=True)
        ]
        session = msgspec.structs.replace(session, calls=tuple(calls))
    assert explain(session, typed=typed).rule.threshold == threshold


def test_the_average_of_a_session_contradicts_a_window_where_no_call_is_counted():
    built = transcript("hermes", "", prompts=[0, 0, 0, 0])
    totals = {"prompt_tokens_total": 600_000, "total_calls": 4, "compactions": ()}
    session = msgspec.structs.replace(built, window=Sourced(100_000, Provenance.RECORDER), **totals)
    assert explain(session).rule.threshold is None


def test_gemini_cli_reckons_with_its_own_limit_whatever_was_answered():
    built = transcript("gemini-cli", "", prompts=[500_000, 900_000, 1_100_000, 1_200_000])
    session = msgspec.structs.replace(built, compactions=())
    assert explain(session).rule.threshold == 524_288


def test_a_threshold_that_rests_on_a_doubted_window_says_so():
    built = transcript("pi", "", prompts=[20_000, 100_000, 150_000, 30_000], tokens_before=150_100)
    calls = tuple(msgspec.structs.replace(call, model="gpt-5.1") for call in built.calls)
    session = msgspec.structs.replace(built, calls=calls, model="gpt-5.1")
    assert judge_session(session).status is Status.DOUBTED
    assert ", if the window is 400,000. " in headline(explain(session))


def test_codex_answers_a_prompt_above_the_usable_part_of_its_window():
    built = transcript("codex", "", prompts=[50_000, 90_000, 99_000, 99_010])
    session = msgspec.structs.replace(built, window=Sourced(95_000, Provenance.RECORDER), compactions=())
    assert explain(session).rule.threshold == 90_000


@pytest.mark.parametrize("trigger", ["manual", "auto"])
def test_the_headline_quotes_no_count_that_no_request_can_have_had(trigger):
    explanation = explain(transcript(trigger=trigger, tokens_before=620_000))
    words = "No compaction with a count is recorded. No request can have had what the file says: 620,000."
    assert words in headline(explanation)
    assert explanation.compactions[0].reason.startswith("the file says 620,000, but no request")


def test_the_headline_parts_automatic_compactions_from_those_that_a_person_asked_for():
    built = transcript()
    manual = tuple(msgspec.structs.replace(item, trigger="manual") for item in built.compactions)
    by_hand, never = msgspec.structs.replace(built, compactions=manual), msgspec.structs.replace(built, compactions=())
    assert headline(explain(by_hand)).endswith(f"Recorded manually at 155,010{COUNT}.")
    assert headline(explain(never)).endswith("No compaction is recorded.")


def test_state_of_contextguard_in_a_recording_makes_it_the_agent():
    session = msgspec.structs.replace(transcript("adk", ""), guard_states=(GuardState(1, "a", real_tokens=5),))
    assert agent_of(session).label == "ContextGuard"
    assert explain(session, window=Sourced(128_000, Provenance.USER)).rule.threshold == 102_400


@pytest.mark.parametrize("window", [32_000, 128_000, 200_000, 512_000, 1_000_000])
def test_rule_and_policy_of_an_agent_have_one_threshold(window):
    for name in ("codex", "hermes", "contextguard"):
        (agent,) = (agent for agent in AGENTS if agent.label.casefold() == name)
        stretch = Stretch(0, 1, "", "m", Sourced(window, Provenance.USER))
        settings = get_policy(name, profile="current").settings
        own = settings.threshold(window) if hasattr(settings, "threshold") else settings.limits(window).threshold
        assert agent.ruled(stretch, {}).threshold == own
        assert agent.ruled(stretch, {}).profile in policy_kind(name).profile_names


def test_an_output_set_above_the_most_of_a_model_counts_as_that():
    session = transcript()
    calls = tuple(msgspec.structs.replace(call, model="claude-opus-4-1-20250805") for call in session.calls)
    typed = {"CLAUDE_CODE_MAX_OUTPUT_TOKENS": "100000"}
    rule = explain(msgspec.structs.replace(session, calls=calls), typed=typed).rule
    assert (rule.threshold, rule.settings[1].note) == (155_000, "typed in; counts as 32,000")
    assert explain(session, typed=typed).rule.threshold == 123_000


@pytest.mark.parametrize(
    ("name", "threshold", "note"),
    [
        ("CLAUDE_CODE_AUTO_COMPACT_WINDOW", 67_000, "typed in; counts as 100,000"),
        ("autoCompactWindow", None, "typed in; below 100,000 it has no effect"),
    ],
)
def test_a_window_set_below_the_least_does_what_was_measured_of_its_name(name, threshold, note):
    own = explain(transcript(version="2.1.332"), typed={name: "80000"}).rule
    assert own.threshold == threshold
    assert [item.note for item in own.settings if item.value == 80_000] == [note]


@pytest.mark.parametrize(
    ("typed", "relation", "threshold"),
    [
        ({}, ">", 171_808),
        ({"maxTokens": "32000"}, ">", 148_000),
        ({"autoCondenseContextPercent": "50"}, ">=", 100_000),
        ({"contextWindow": "128001"}, ">", 107_008),
        ({"contextWindow": "9000"}, ">", 0),
    ],
)
def test_a_file_of_roo_code_has_its_rule_and_not_that_of_cline(typed, relation, threshold):
    session = msgspec.structs.replace(transcript("cline", ""), agent="Roo Code")
    window = None if "contextWindow" in typed else Sourced(200_000, Provenance.USER)
    own_rule = explain(session, window=window, typed=typed).rule
    assert (own_rule.agent, own_rule.policy, own_rule.threshold, own_rule.relation) == (
        "Roo Code",
        "roo",
        threshold,
        relation,
    )
    assert worked_out(own_rule.formula) == threshold


def test_rule_and_policy_of_roo_code_fire_at_the_same_count():
    (agent,) = (agent for agent in AGENTS if agent.label == "Roo Code")
    for window, share in ((200_000, 100), (128_001, 100), (9_000, 100), (200_000, 50), (64_000, 33)):
        own_rule = agent.ruled(Stretch(0, 1, "", "m", Sourced(window, Provenance.USER)), {"share": str(share)})
        least = get_policy("roo", share=share / 100).threshold(window)
        assert [own_rule.fires(least - 1), own_rule.fires(least)] == [False, True]


@pytest.mark.parametrize(
    ("share", "other", "formula"),
    [
        ("100", {"share": "85"}, "85 % of 200,000 − 1"),
        ("85", {}, "200,000 − 20,000 (kept free) − 8,192 (reserved) + 1"),
    ],
)
def test_a_limit_of_roo_code_that_its_relation_does_not_have_is_one_token_off(share, other, formula):
    (agent,) = (agent for agent in AGENTS if agent.label == "Roo Code")
    stretch = Stretch(0, 1, "", "m", Sourced(200_000, Provenance.USER))
    relation = agent.ruled(stretch, {"share": share}).relation
    threshold = next(item.threshold for item in agent.hypotheses(stretch, {"share": share}) if item.formula == formula)
    real = agent.ruled(stretch, other)
    for count in range(threshold - 2, threshold + 3):
        assert (count > threshold if relation == ">" else count >= threshold) == real.fires(count)


def test_equal_counts_are_named_once():
    session = copilot(*(161_000,) * 4, compactions=())
    summary = RecordedCompaction(2, Evidence.DECLARED, "summary", base=(Inserted(0),), tokens_before=161_000)
    three = tuple(msgspec.structs.replace(summary, at=at) for at in (2, 4, 6))
    assert "Recorded 3 times, at 161,000 (the sizes before, as the agent wrote them)." in headline(
        explain(msgspec.structs.replace(session, compactions=three))
    )


@pytest.mark.parametrize(
    ("settings", "typed", "words"),
    [
        ({}, {}, "only its history processors edit requests, and which it had is not in the file"),
        ({"n": 0}, {}, "none of its history processors replaces observations, as far as the file says"),
        ({"n": 5, "polling": 1}, {}, "replaces all observations but the first and the newest 5"),
        ({}, {"n": "7", "polling": "3"}, "replaces all observations but the first and the newest 7, 3 at a time"),
    ],
)
def test_swe_agent_compacts_by_no_count_and_says_what_its_processor_does(settings, typed, words):
    held = tuple(AgentSetting(name, value) for name, value in settings.items())
    session = msgspec.structs.replace(transcript("swe-agent", ""), settings=held, compactions=())
    explanation = explain(session, typed=typed)
    assert explanation.rule.checks is Moment.NEVER
    assert headline(explanation).startswith("SWE-agent does not compact by itself: ")
    assert f"{words}." in headline(explanation)
    assert explanation.missed == ()


def test_mini_swe_agent_sends_the_whole_conversation_each_time():
    line = headline(explain(msgspec.structs.replace(transcript("mini-swe-agent", ""), compactions=())))
    assert line.startswith("mini-swe-agent does not compact by itself: each request is the whole conversation.")


@pytest.mark.parametrize(
    ("window", "typed", "threshold"),
    [(1_000_000, {}, 8_192), (32_000, {}, 2_000), (4_096, {}, 1_024), (0, {}, None), (0, {SETTING: "3000"}, 3_000)],
)
def test_aider_summarises_finished_exchanges_over_a_share_of_the_window(window, typed, threshold):
    own_rule = rule("aider", window=window, **typed)
    assert (own_rule.threshold, own_rule.relation) == (threshold, ">")
    if window and not typed:
        assert worked_out(own_rule.formula) == threshold
        assert threshold == int(get_policy("aider-chat-summary").settings.most(window))


def test_nothing_in_a_file_of_aider_can_be_compared():
    explanation = explain(transcript("aider", ""), window=Sourced(32_000, Provenance.USER))
    assert (explanation.missed, explanation.inference, explanation.comparable) == ((), (), 0)


def copilot(*prompts, compactions):
    calls = tuple(ModelCall(at, at, tokens, output_tokens=0) for at, tokens in zip((1, 3, 5, 7), prompts, strict=True))
    events = [item for n in range(4) for item in (user(f"{n}"), model("done"))]
    window = Sourced(200_000, Provenance.RECORDER)
    return Session(tuple(events), calls=calls, compactions=compactions, format="copilot-cli", window=window)


def test_copilot_cli_begins_a_summary_at_a_share_of_the_window():
    base = (Inserted(0), Span(5, 6))
    summary = RecordedCompaction(6, Evidence.DECLARED, "summary+tail", base=base, tokens_before=161_000)
    explanation = explain(copilot(100_000, 161_000, 165_000, 40_000, compactions=(summary,)))
    assert (explanation.rule.threshold, worked_out(explanation.rule.formula)) == (160_000, 160_000)
    (item,) = explanation.compactions
    assert (item.decision_tokens, item.verdict) == (161_000, Agreement.AGREES)
    assert explanation.missed == ()
    (interval,) = explanation.inference
    assert interval.above == 100_000  # it was begun in the next check, which therefore did not pass
    assert rule("copilot-cli", background_threshold="0.5").threshold == 100_000
    assert rule("copilot-cli", window=0).threshold is None


def test_copilot_cli_goes_by_the_window_in_its_file_whatever_was_answered():
    """1.0.102, run with a limit of 60,000 and a model of the user's own, which answered a prompt of 63,348."""
    base = (Inserted(0), Span(5, 6))
    summary = RecordedCompaction(6, Evidence.DECLARED, "summary+tail", base=base, tokens_before=161_000)
    explanation = explain(copilot(100_000, 161_000, 205_000, 40_000, compactions=(summary,)))
    (item,) = explanation.compactions
    assert (item.threshold, item.verdict, explanation.missed) == (160_000, Agreement.AGREES, ())


def test_messages_that_copilot_cli_cut_off_are_no_compaction_by_its_rule():
    trim = RecordedCompaction(4, Evidence.DECLARED, "trim", base=(Span(1, 4),), tokens_before=90_000)
    (item,) = explain(copilot(80_000, 90_000, 95_000, 99_000, compactions=(trim,))).compactions
    assert item.verdict is Agreement.NOT_MODELLED
    assert item.reason == "the oldest messages were only cut off, as versions without summaries do"


def test_of_a_check_that_copilot_cli_passed_only_the_causes_are_named_that_the_file_leaves():
    base = (Inserted(0), Span(5, 6))
    summary = RecordedCompaction(6, Evidence.DECLARED, "summary+tail", base=base, tokens_before=161_000)
    made = copilot(100_000, 161_000, 165_000, 40_000, compactions=(summary,))

    def reason(session):
        ledger = Ledger.of(session)
        return OwnChecks(session, ledger, explain(session, ledger)).at(2).reason

    assert reason(made) == "a summary was being made"
    resumed = msgspec.structs.replace(made, compactions=(), settings=(AgentSetting("resumed_at", 5),))
    assert reason(resumed).startswith("the session was just resumed")
    both = msgspec.structs.replace(made, settings=(AgentSetting("resumed_at", 5),))
    assert reason(both).count(", or ") == 1


def test_what_roo_code_wrote_down_at_a_compaction_is_the_count_it_compared():
    session = msgspec.structs.replace(transcript("cline", ""), agent="Roo Code")
    compactions = tuple(msgspec.structs.replace(item, tokens_before=171_900) for item in session.compactions)
    session = msgspec.structs.replace(session, compactions=compactions)
    (item,) = explain(session, window=Sourced(200_000, Provenance.USER)).compactions
    assert (item.recorded, item.decision_tokens) == (171_900, 171_900)


def test_what_qwen_code_wrote_down_before_0_22_is_not_the_count_it_compared():
    def counts(version):
        built = transcript("qwen-code", version)
        stated = tuple(msgspec.structs.replace(item, tokens_before=150_000) for item in built.compactions)
        (item,) = explain(msgspec.structs.replace(built, compactions=stated)).compactions
        return item.recorded, item.decision_tokens == item.computed

    assert counts("0.21.10") == (None, True)
    assert counts("0.23.0") == (150_000, False)


def test_an_agent_reckons_with_the_window_that_it_knows_and_not_with_the_limit_that_refused_its_request():
    calls = (ModelCall(1, 1, 90_000),)
    session = Session((user("Go"), model("Gone")), calls, format="claude-code", model=OPUS, versions=((0, "2.1.14"),))
    session = msgspec.structs.replace(session, refused=(2,), refusals=(Refusal(2, 110_000, 100_000),))
    assert judge_session(session).value == 100_000
    assert explain(session).rule.threshold == 155_000


def of_kimi_code(prompts, **fields):
    """A session of Kimi Code whose first compaction, before the call at 2, follows a refused request of 2,114 tokens by
    its own estimate: 1,796 are the window then, 1,527 the threshold."""
    built = transcript("kimi-code", "", "overflow", prompts=prompts, place=2)
    known = {"system": (TextPart("s" * 400),), "tools": (ToolDefinition("t"),)}
    return msgspec.structs.replace(built, **{**known, **fields})


def test_kimi_code_goes_by_a_window_that_a_refused_request_taught():
    prompts = (3_000, 90_000, 1_500, 1_900, 2_500)
    built = of_kimi_code(prompts)
    at = built.calls[4].at
    again = msgspec.structs.replace(built.compactions[0], at=at, base=(Inserted(0), Span(at, at)), trigger="auto")
    built = msgspec.structs.replace(built, compactions=(*built.compactions, again))
    explanation = explain(built, window=Sourced(100_000, Provenance.USER), typed={"reserved_context_size": "0"})
    assert [(item.start, item.window_tokens) for item in explanation.stretches] == [(0, 100_000), (3, 1_796)]
    assert "of a refused request of 2,114 tokens" in explanation.stretches[1].window.note
    assert (explanation.compactions[1].threshold, explanation.compactions[1].verdict) == (1_527, Agreement.AGREES)


def test_kimi_code_has_forgotten_a_learned_window_where_it_passed_a_check_that_it_would_have_compacted_at():
    built = of_kimi_code((3_000, 90_000, 1_500, 1_900, 2_500))
    explanation = explain(built, window=Sourced(100_000, Provenance.USER), typed={"reserved_context_size": "0"})
    assert [stretch.start for stretch in explanation.stretches] == [0, 3, 4]
    assert explanation.stretches[2].window_tokens == 100_000
    assert explanation.missed == ()


def test_kimi_code_learns_nothing_that_can_be_known_where_the_file_lacks_the_tools():
    built = of_kimi_code((3_000, 90_000, 1_500, 1_900, 2_500), tools=None)
    assert len(explain(built, window=Sourced(100_000, Provenance.USER)).stretches) == 1


@pytest.mark.parametrize("tools", [(ToolDefinition("t"),), None])
def test_compactions_of_kimi_code_after_a_refused_summary_bound_no_threshold_below_its_own(tools):
    """2.1.0, run: it goes by 85 % of its estimate of that request from then on."""
    built = transcript("kimi-code", "", "auto", prompts=(3_000, 60_000, 20_000, 80_000, 2_500), place=2)
    at = built.calls[4].at
    again = msgspec.structs.replace(built.compactions[0], at=at, base=(Inserted(0), Span(at, at)))
    refused = AgentSetting("summary_refused_at", 1)
    built = msgspec.structs.replace(
        built, compactions=(*built.compactions, again), settings=(refused,), tools=tools, system=(TextPart("s"),)
    )
    explanation = explain(built, window=Sourced(120_000, Provenance.USER))
    early, due = explanation.compactions
    assert (early.verdict, due.verdict) == (Agreement.NOT_MODELLED, Agreement.AGREES)
    assert early.reason.startswith("a request for a summary was refused as too long before")
    assert explanation.inference[0].at_most == 80_000 + 10


def slid(calls=12, keep=4, format_="homemade"):
    """A log of requests that hold the newest messages alone, from an agent whose rule is not known."""
    events, made, cuts = [], [], []
    for number in range(calls):
        events.append(user(f"part {number} " + "of the work " * 40))
        at = len(events)
        if at > keep:
            cuts.append(RecordedCompaction(at, Evidence.INFERRED, "trim", (Span(at - keep, at),)))
        made.append(ModelCall(at, at, 500 + 130 * min(at, keep), None, None, 100))
        events.append(model(f"step {number} " + "is done " * 60))
    return Session(events=tuple(events), calls=tuple(made), compactions=tuple(cuts), format=format_)


def test_the_moves_of_a_sliding_window_bound_no_threshold():
    explained = explain(slid())
    assert {item.at_most for item in explained.inference} == {None}
    assert all(item.slides and item.reason.startswith("it is a move of a window") for item in explained.compactions)
    assert headline(explained).endswith("is not known here. 10 compactions are moves of a sliding window.")
    (evidence,) = explained.evidence
    assert ({item.cause for item in evidence.compactions}, evidence.auto) == ({Cause.SLIDING}, 0)
    assert evidence.fired() == []


def test_a_summary_behind_a_sliding_window_bounds_one():
    built = slid()
    summary = RecordedCompaction(
        len(built.events), Evidence.INFERRED, "summary", (Inserted(0),), (user("All so far."),)
    )
    calls = (*built.calls, ModelCall(len(built.events), None, 300))
    explained = explain(msgspec.structs.replace(built, compactions=(*built.compactions, summary), calls=calls))
    assert explained.inference[0].at_most == 500 + 130 * 4
    assert "10 compactions are moves of a sliding window." in headline(explained)


def test_a_rule_without_a_threshold_that_a_compaction_contradicts_is_said_to_be_what_it_would_do():
    words = headline(explain(transcript(version="")))
    assert words.startswith("Claude Code would compact only when the provider refuses a request: the file names no")
    assert "So its threshold is above 151,010 and at most 155,010; " in words
    assert "0 of 1 compaction" not in words
    asked = headline(explain(transcript(version="", trigger="manual")))
    assert asked.startswith("Claude Code compacts only when the provider refuses a request")


def test_a_rule_that_checks_passed_without_a_compaction_is_what_the_agent_would_do():
    """A prompt of 180,000 passed, and 167,000 is the default of this version."""

    def words(*prompts):
        built = transcript(version="2.1.62", prompts=(*prompts, 100), place=0)
        return headline(explain(msgspec.structs.replace(built, compactions=(), calls=built.calls[: len(prompts)])))

    passed = words(20_000, 180_000, 181_000)
    assert passed.startswith("With its default settings, Claude Code 2.1.62 would compact at 167,000: ")
    assert "It did not at 1 check that reached it, before step 3 at 181,010 (one that failed" in passed
    assert words(20_000, 150_000, 160_000).startswith("Claude Code 2.1.62 compacts at 167,000: ")


def test_a_check_behind_cleared_results_says_why_it_has_no_count():
    """The last answer was counted, so that "not known" would contradict the number beside it."""
    built = transcript(version="2.1.62", prompts=(20_000, 60_000, 40_000), place=2)
    cleared = msgspec.structs.replace(
        built.compactions[0], kind="edit", base=(Span(0, built.compactions[0].at),), messages=()
    )
    built = msgspec.structs.replace(built, compactions=(cleared,))
    decision = OwnChecks(built, Ledger.of(built), explain(built)).at(2)
    assert decision.reason.startswith("old results were cleared since the last answer was counted")


@pytest.mark.parametrize(("is_answered", "missed"), [(True, [1]), (False, [])])
def test_pi_does_not_look_at_the_count_behind_a_turn_that_was_aborted_or_whose_last_calls_failed(is_answered, missed):
    """Such a turn ends with a result: pi goes by its last message, which has no usage."""
    work = [tool_call("bash", "a"), tool_result("x" * 400, "bash", "a")]
    events = [user("go"), *([model("done")] if is_answered else work), user("continue"), model("done")]
    second = len(events) - 1
    calls = (ModelCall(1, 1, 190_000, output_tokens=10), ModelCall(second, second, 190_500, output_tokens=10))
    window = Sourced(200_000, Provenance.RECORDER)
    log = msgspec.structs.replace(session(*events, calls=calls, format="pi", model=OPUS), window=window)
    explanation = explain(log)
    assert [item.step for item in explanation.missed] == missed
    reason = OwnChecks(log, Ledger.of(log), explanation).at(1).reason
    assert ("the turn ended without an answer" in reason) == (not is_answered)
