"""A replay of an agent's policy plays the rule of the recording: its thresholds are those that the rule says."""

import dataclasses

import msgspec
import pytest

from guard_core.estimation.agents_view import compared_counts
from guard_core.findings import Facts
from guard_core.policies import POLICIES, policy_kind
from guard_core.recordings.formats.pi.oh_my_pi import NAME as OH_MY_PI
from guard_core.recordings.formats.pi.openclaw import NAME as OPENCLAW
from guard_core.replay import replay
from guard_core.rules import AGENTS
from guard_core.rules.base import Stretch
from guard_core.rules.played import PLAYED
from guard_core.sessions import AgentSetting, Evidence, ModelCall, Provenance, RecordedCompaction, Sourced
from guard_core.summaries.sizes import RecordedSummaries
from guard_core.views import Inserted
from guard_core.windows.window_evidence import judge_session
from tests.builders import OPUS, model, tool_call, tool_result, user
from tests.guard_core.findings.cases import chat

RULES = [
    ("claude-code", "1.0.30", {}, 154_560),
    ("claude-code", "1.0.128", {"autocompact_pct": "50"}, 155_000),
    ("claude-code", "2.1.14", {}, 155_000),
    ("claude-code", "2.1.14", {"max_output_tokens": "8192"}, 178_808),
    ("claude-code", "2.1.14", {"autocompact_pct": "50"}, 84_000),
    ("claude-code", "2.1.330", {"auto_compact_window": "150000"}, 117_000),
    ("claude-code", "2.1.332", {"settings_window": "120000"}, 87_000),
    ("codex", "0.130.0", {"model_auto_compact_token_limit": "100000"}, 100_000),
    ("codex", "0.130.0", {}, 189_473),
    ("gemini-cli", "0.20.0", {"compression_threshold": "0.3"}, 60_000),
    ("hermes", "0.19", {"threshold_tokens": "60000"}, 60_000),
    ("hermes", "0.19", {"max_output_tokens": "20000"}, 135_000),
    ("kimi-cli", "1.40", {"reserved_context_size": "20000", "compaction_trigger_ratio": "0.6"}, 120_000),
    ("kimi-code", "2.1.0", {"reserved_context_size": "20000"}, 170_000),
    ("mistral-vibe", "2.0.0", {"auto_compact_threshold": "50000"}, 50_000),
    ("opencode", "1.18.1", {"input_limit": "150000", "reserved": "10000"}, 140_000),
    ("pi", "0.80", {"reserve_tokens": "30000"}, 170_000),
    ("qwen-code", "0.24.0", {"auto_compact_threshold": "0.5"}, 100_000),
]


def facts_of(format_, version, typed, **fields):
    built = chat(
        30_000,
        70_000,
        window=200_000,
        source=Provenance.RECORDER,
        format=format_,
        model="claude-opus-4-5-20251101",
        versions=((0, version),),
        **fields,
    )
    return dataclasses.replace(Facts.of(built), settings=typed)


def threshold_of(facts, profile, **changes):
    rule = facts.explanation.rule
    kind = policy_kind(rule.policy)
    policy = kind.make(**facts.made_with(kind, {"profile": profile, **changes}))
    trace = replay(facts.ledger, policy, window=facts.window.value, usage=facts.usage)
    return trace.columns["threshold"].tolist()


@pytest.mark.parametrize(("format_", "version", "typed", "threshold"), RULES)
def test_the_own_agents_policy_has_the_threshold_of_the_own_rule(format_, version, typed, threshold):
    facts = facts_of(format_, version, typed)
    rule = facts.explanation.rule
    profile = rule.profile if rule.profile in policy_kind(rule.policy).profile_names else ""
    assert rule.threshold == threshold
    assert threshold_of(facts, profile) == [threshold] * 2


@pytest.mark.parametrize(("typed", "threshold"), [({}, 115_200), ({"maxInputTokens": "50000"}, 45_000)])
def test_the_sdk_of_cline_plays_the_limit_that_it_takes_where_no_window_is_known(typed, threshold):
    """3.0.65, run with a model that it does not know: it compacted at 119,867 tokens, and not at 113,611."""
    built = chat(30_000, 70_000, source=Provenance.ASSUMED, format="cline", model="m")
    of_sdk = msgspec.structs.replace(built, settings=(AgentSetting("is_of_sdk", 1),))
    facts = dataclasses.replace(Facts.of(of_sdk), settings=typed)
    assert facts.window.source is Provenance.ASSUMED
    assert facts.explanation.rule.threshold == threshold
    assert threshold_of(facts, "") == [threshold] * 2


@pytest.mark.parametrize(
    ("agent", "typed", "threshold"),
    [
        ("oh-my-pi", {"thresholdPercent": "62.5"}, 125_000),
        ("oh-my-pi", {"thresholdTokens": "90000", "thresholdPercent": "62.5"}, 90_000),
        ("oh-my-pi", {"reserveTokens": "40000"}, 160_000),
        ("openclaw", {"reserveTokens": "40000"}, 160_000),
    ],
)
def test_the_descendants_of_pi_have_their_own_settings_beside_what_stays(agent, typed, threshold):
    name = {"oh-my-pi": OH_MY_PI, "openclaw": OPENCLAW}[agent]
    facts = facts_of("pi", "", {**typed, "keepRecentTokens": "5000"}, agent=name)
    rule = facts.explanation.rule
    assert (rule.policy, rule.threshold) == (agent, threshold)
    assert facts.made_with(policy_kind(agent))["keep_recent_tokens"] == 5_000
    assert threshold_of(facts, "") == [threshold] * 2


def test_a_setting_that_is_typed_for_a_replay_comes_before_that_of_the_rule():
    facts = facts_of("pi", "0.80", {"reserve_tokens": "30000"})
    assert threshold_of(facts, "", reserve_tokens=16_384) == [200_000 - 16_384] * 2


@pytest.mark.parametrize(("typed", "prune"), [({"prune": "on"}, True), ({"prune": "off"}, False), ({}, None)])
def test_a_switch_that_is_typed_is_played(typed, prune):
    assert facts_of("opencode", "1.18.1", typed).made_with(policy_kind("opencode")).get("prune") is prune


def test_settings_of_the_file_are_played_in_every_profile_and_defaults_of_a_version_in_its_own_alone():
    stated = AgentSetting("auto_compact_threshold", 60_000, "in the file")
    facts = facts_of("mistral-vibe", "2.0.0", {}, settings=(stated,))
    kind = policy_kind("mistral-vibe")
    every_profile = [facts.made_with(kind, {"profile": name}) for name in kind.profile_names]
    assert {settings["auto_compact_threshold"] for settings in every_profile} == {60_000}
    by_default = facts_of("claude-code", "2.1.14", {})
    kind = policy_kind("claude-code")
    own = by_default.explanation.rule.profile
    for name in kind.profile_names:
        limit = {"max_output": 32_000} if name == own else {}
        assert by_default.made_with(kind, {"profile": name}) == {"profile": name, **limit}


@pytest.mark.parametrize(
    ("typed", "threshold"),
    [
        ({}, 209_715),
        ({"max_context_length": "262144"}, 209_715),
        ({"max_context_length": "100000"}, 80_000),
        ({"auto_compact_threshold": "300000"}, 300_000),
    ],
)
def test_the_threshold_that_a_file_of_mistral_vibe_has_is_played_whatever_the_window_is_assumed_to_be(typed, threshold):
    built = chat(30_000, 70_000, source=Provenance.ASSUMED, format="mistral-vibe", versions=((0, "store 9"),))
    stated = AgentSetting("auto_compact_threshold", 209_715, "in the file")
    facts = Facts.of(msgspec.structs.replace(built, settings=(stated,)))
    length = typed.get("max_context_length")
    if length is not None:
        facts = dataclasses.replace(facts, judged=judge_session(facts.session, Sourced(int(length), Provenance.USER)))
    facts = dataclasses.replace(facts, settings=typed)
    assert facts.explanation.rule.threshold == threshold
    assert threshold_of(facts, "") == [threshold] * 2


def test_the_own_agents_policy_is_made_in_the_profile_of_the_agents_version():
    facts = facts_of("claude-code", "2.1.14", {})
    assert policy_kind("claude-code").default_profile == "from-2.1.310"
    assert facts.made_with(policy_kind("claude-code")) == {"profile": "until-2.1.19", "max_output": 32_000}
    assert facts.made_with(policy_kind("contextguard")) == {"profile": "current"}
    assert facts.made_with(policy_kind("none")) == {}


def test_other_policies_play_nothing_of_the_rule():
    facts = facts_of("pi", "0.80", {"reserve_tokens": "30000"})
    by_policy = {name: facts.made_with(kind) for name, kind in POLICIES.items()}
    assert {name for name, settings in by_policy.items() if set(settings) - {"profile"}} == {"pi"}


def test_a_policy_that_an_agents_rule_goes_by_is_listed_or_has_no_settings_of_a_rule():
    named = {agent.rule(Stretch(0, 1, "", "", None), {}).policy for agent in AGENTS if agent.format}
    without = {"", "none", "contextguard", "adk-events", "copilot-cli", "inspect"}
    assert named - without <= set(PLAYED)


def test_settings_of_a_rule_are_played_under_names_that_the_policy_has():
    for agent in AGENTS:
        for policy, names in agent.plays.items():
            assert set(names.values()) <= {setting.name for setting in policy_kind(policy).settings}


WRITTEN = 167_900  # what the agent wrote down at its compaction: more than the file has of that request


def compacted(tokens_before=WRITTEN):
    """Requests of Claude Code 2.1.50 by which the file has 166,000 tokens before a compaction, and 60,000 after it."""
    facts = facts_of("claude-code", "2.1.50", {})
    counts = (150_000, 166_000, 60_000, 61_000)
    events = (user("go"), *(model("done " * 40) for _ in counts))
    calls = tuple(ModelCall(at, at, count, output_tokens=20, model=OPUS) for at, count in enumerate(counts, start=1))
    left = RecordedCompaction(
        3, Evidence.DECLARED, "summary", (Inserted(0),), (user("s" * 900),), "auto", tokens_before=tokens_before
    )
    log = msgspec.structs.replace(facts.session, events=events, calls=calls, compactions=(left,))
    return Facts.of(log)


@pytest.mark.parametrize(
    ("tokens_before", "changes", "fired", "count"),
    [
        (WRITTEN, {}, [2], WRITTEN),
        (WRITTEN, {"max_output": 18_000}, [], WRITTEN),  # the threshold is 169,000
        (WRITTEN, {"profile": "until-2.1.19"}, [2], 166_001),  # counts otherwise, so that it is its own count
        (None, {}, [], 166_020),
    ],
)
def test_a_replay_compares_what_the_agent_compared_as_long_as_it_sends_what_was_sent(
    tokens_before, changes, fired, count
):
    facts = compacted(tokens_before)
    kind = policy_kind("claude-code")
    policy = kind.make(**facts.made_with(kind, changes))
    summaries = RecordedSummaries.of(facts.ledger)
    trace = replay(facts.ledger, policy, window=200_000, usage=facts.usage, summarizer=summaries)
    assert trace.columns["decision_tokens"][2] == count
    assert [record.step for record in trace.compactions] == fired
    assert sum(trace.columns[name][2] for name in ("last_prompt", "last_output", "pending")) == count


def test_what_the_agent_compared_is_no_count_of_another_policy():
    facts = compacted()
    counter = facts.usage.compared.counter
    assert compared_counts(facts.usage, "claude-code", "2.1.21-2.1.152", counter).tolist()[2] == WRITTEN
    assert compared_counts(facts.usage, "claude-code", "until-2.1.19", counter) is None
    assert compared_counts(facts.usage, "claude-code", "2.1.21-2.1.152", None) is None
    assert compared_counts(facts.usage, "pi", "current", counter) is None


@pytest.mark.parametrize(
    ("pending_tokens", "counts"),
    [(None, [16_062, 31_122]), (12_000, [13_020, 14_020])],
)
def test_what_a_file_says_that_the_agent_compared_at_least_does_not_replace_the_policys_estimate(
    pending_tokens, counts
):
    """Files of Mistral Vibe need not have what Vibe estimates of the results behind an answer."""
    facts = facts_of("mistral-vibe", "2.26.1", {})
    rounds = ((tool_call("shell", str(n)), tool_result("x" * 60_000, id=str(n))) for n in range(3))
    events = (user("go"), *(event for pair in rounds for event in pair))
    calls = [ModelCall(at, at, 1_000 * n, output_tokens=20, model="m") for n, at in enumerate((1, 3, 5), start=1)]
    calls[1:] = [msgspec.structs.replace(call, pending_tokens=pending_tokens) for call in calls[1:]]
    facts = Facts.of(msgspec.structs.replace(facts.session, events=events, calls=(*calls,)))
    kind = policy_kind("mistral-vibe")
    trace = replay(facts.ledger, kind.make(**facts.made_with(kind)), window=200_000, usage=facts.usage)
    assert trace.columns["decision_tokens"].tolist()[1:] == counts


@pytest.mark.parametrize(("changes", "pending"), [({}, 1_000), ({"count_pending": False}, 0), ({"output_cap": 10}, 30)])
def test_a_setting_that_changes_what_is_counted_changes_it_where_the_recorded_requests_are_sent_too(changes, pending):
    facts = facts_of("codex", "0.169.0", {})
    events = (user("go"), tool_call("shell", "1"), tool_result("x" * 3_998, id="1"), model("done"))
    calls = tuple(ModelCall(at, at, 1_000 * at, output_tokens=20, model="gpt-5") for at in (1, 3))
    facts = Facts.of(msgspec.structs.replace(facts.session, events=events, calls=calls))
    kind = policy_kind("codex")
    trace = replay(facts.ledger, kind.make(**facts.made_with(kind, changes)), window=200_000, usage=facts.usage)
    assert trace.columns["pending"][1] == pytest.approx(pending, abs=30)
