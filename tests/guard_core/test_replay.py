"""A replay is a deterministic trace; the shadow trace never acts."""

import subprocess
import sys

import numpy as np
import pytest

from guard_core.estimation.usage import RatioUsage, usage_for
from guard_core.ledger import Ledger
from guard_core.policies import POLICIES, get_policy
from guard_core.policies.llama_index.buffer import ChatMemoryBuffer, LlamaIndexSettings
from guard_core.replay import observe_recorded, replay
from guard_core.simulator.flow import Simulation, Turn, play
from guard_core.simulator.scenarios import SCENARIOS
from guard_core.summaries.sizes import FixedSummaries
from guard_core.trace import PROMPT_SOURCES
from tests.builders import bundled, session, tool_call, tool_result, user
from tests.guard_core.policies.tools import run

POLICY = get_policy("contextguard")

# Golden digests change with the engine's version only.
GOLDEN = {
    (
        "Stress_200k_KubeAgent",
        "contextguard",
        "current",
    ): "f4d58de781316ba276bf2d115e3113ff019517037fb8020fb8d9df91f1562233",
    (
        "Stress_200k_KubeAgent",
        "contextguard",
        "early",
    ): "a99e7d037952924ab07eebda13ff5158c75ecce132f4417194198a3c6150c718",
    (
        "Stress_200k_KubeAgent",
        "contextguard",
        "tail",
    ): "58bd3093361dd005968c14d41fa989e1fd14263d6d7a02518b20aedcecb54206",
    (
        "Stress_8k_HeavyToolDefinitions",
        "contextguard",
        "fixed",
    ): "66897525db7615667a1dc280f851bb5a1eabce18b14b8fe0e55a9cfec265ed7a",
    (
        "Brutal_8k_SequentialToolChain",
        "contextguard-sliding",
        "current",
    ): "18d74baf02fe6491b002d41d23bbbf1ed6ee6721c607f26159f81d5ae29969c1",
    ("Brutal_8k_SequentialToolChain", "none", None): "873f8f588689a58c5b77cdd8c95ed1ac9a2cab7163e8b616816a2cec2a2d4442",
}


def digest(name, policy, profile):
    simulation = SCENARIOS[name].simulations[0]
    ledger = Ledger.of(play(simulation).session)
    chosen = get_policy(policy, **({"profile": profile} if profile else {}))
    return replay(ledger, chosen, window=simulation.window, summarizer=FixedSummaries(120)).digest()


@pytest.mark.parametrize("key", GOLDEN, ids=lambda key: "-".join(map(str, key)))
def test_the_golden_digests_stand(key):
    assert digest(*key) == GOLDEN[key]


def test_the_digest_does_not_depend_on_the_process():
    code = "from tests.guard_core.test_replay import *; print(digest('Stress_8k_KubeAgent', 'contextguard', 'current'))"
    seeds = [{"PYTHONHASHSEED": "1", "TZ": "Asia/Tokyo", "LC_ALL": "C"}, {"PYTHONHASHSEED": "2", "TZ": "UTC"}]
    digests = {
        subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True).stdout
        for env in seeds
    }
    assert len(digests) == 1


def test_the_digest_sees_every_setting_and_number(tool_heavy):
    first = run(POLICY, tool_heavy, window=20_000)
    assert first.digest() == run(POLICY, tool_heavy, window=20_000).digest()
    assert first.digest() != run(get_policy("contextguard", cap=4), tool_heavy, window=20_000).digest()
    assert first.digest() != run(POLICY, tool_heavy, window=20_000, summary=2_001).digest()


def test_a_stored_ledger_gives_the_same_trace(tool_heavy):
    ledger = Ledger.of(tool_heavy)
    again = Ledger.from_bytes(ledger.to_bytes())
    traces = [replay(item, POLICY, window=20_000, usage=usage_for(item, None)) for item in (ledger, again)]
    assert traces[0].digest() == traces[1].digest()


def test_recorded_and_modelled_counts_are_told_apart(tool_heavy):
    trace = run(POLICY, tool_heavy, window=60_000)
    fired = trace.compactions[0].step
    sources = [PROMPT_SOURCES[index] for index in trace.columns["prompt_tokens_source"]]
    assert set(sources[:fired]) == {"provider"}
    assert set(sources[fired:]) == {"modelled"}
    assert (trace.columns["modelled_prompt_tokens"][:fired] == trace.columns["recorded_prompt_tokens"][:fired]).all()


@pytest.mark.parametrize("name", ["autogen-buffered", "semantic-kernel-truncation", "agent-framework-tool-result"])
def test_no_count_is_reported_without_a_provider_however_many_steps_are_looked_at(name):
    events = [event for number in range(40) for event in (user("go"), tool_call(), tool_result("x" * 400))]
    log = session(*events, reported=False)
    trace = replay(Ledger.of(log), get_policy(name), window=10_000)
    assert trace.compactions
    assert {PROMPT_SOURCES[source] for source in trace.columns["prompt_tokens_source"].tolist()} == {"assumed"}
    assert not trace.column("last_prompt").any()


def test_a_session_without_usage_is_assumed_and_says_so(no_usage_reported):
    trace = replay(Ledger.of(no_usage_reported), POLICY, window=8_000)
    assert set(trace.columns["prompt_tokens_source"]) == {3}
    assert "assumed" in trace.notes[0]
    assert (trace.columns["modelled_prompt_tokens"] == trace.columns["heuristic_sent"] * 5 // 2).all()


def test_an_empty_session_gives_an_empty_trace():
    trace = replay(Ledger.of(session()), POLICY, window=8_000)
    assert (len(trace), trace.compactions) == (0, ())
    assert len(observe_recorded(Ledger.of(session()), POLICY, window=8_000)) == 0
    assert trace.digest()


def test_every_column_has_an_entry_per_step(tool_heavy):
    for name in ("none", "contextguard", "contextguard-sliding"):
        trace = run(get_policy(name), tool_heavy)
        assert {name: len(column) for name, column in trace.columns.items()} == dict.fromkeys(
            [item.name for item in trace.all_columns], 40
        )


def test_usage_that_comes_late_calibrates_from_then_on():
    turns = tuple(Turn(2_000) for _ in range(10))
    ledger = Ledger.of(play(Simulation(200_000, turns, 3.0, reported_from=6)).session)
    trace = replay(ledger, POLICY, window=200_000)
    assert trace.columns["correction_source"].tolist() == [2] * 7 + [1] * 3
    assert trace.columns["correction"][-1] == pytest.approx(3.0, abs=0.01)


def test_a_count_that_stops_coming_keeps_calibrating(tool_heavy):
    ledger = Ledger.of(tool_heavy)
    usage = RatioUsage(2.0)
    trace = replay(ledger, POLICY, window=200_000, usage=usage)
    assert (trace.columns["real_as_of"][1:] == np.arange(39)).all()


# The shadow trace


def test_the_shadow_never_acts_and_sees_what_was_sent():
    log = bundled("long-coding")
    ledger = Ledger.of(log)
    trace = observe_recorded(ledger, POLICY, window=log.window.value, usage=usage_for(ledger, None))
    assert trace.compactions == ()
    assert (trace.columns["modelled_prompt_tokens"] == ledger.steps["prompt_tokens"]).all()
    assert set(trace.columns["prompt_tokens_source"]) == {1}


def test_the_shadow_decides_on_the_request_before_a_recorded_compaction():
    log = bundled("long-coding")
    ledger = Ledger.of(log)
    trace = observe_recorded(ledger, POLICY, window=log.window.value)
    steps = np.flatnonzero(np.diff(ledger.steps["epoch"])) + 1
    assert len(steps) == 3
    before, after = trace.columns["heuristic_decided"][steps], trace.columns["heuristic_sent"][steps]
    assert (before > after).all()
    assert (trace.columns["real_loaded"][steps + 1] == ledger.steps["prompt_tokens"][steps]).all()


def test_the_shadow_equals_a_replay_that_does_nothing(short_chat):
    ledger = Ledger.of(short_chat)
    usage = usage_for(ledger, None)
    shadow = observe_recorded(ledger, POLICY, window=200_000, usage=usage)
    played = replay(ledger, POLICY, window=200_000, usage=usage)
    for name in shadow.columns:
        assert np.array_equal(shadow.columns[name], played.columns[name], equal_nan=True), name


def test_the_shadow_of_the_timing_gap_fires_where_the_stale_count_would_not():
    log = bundled("timing-gap")
    trace = observe_recorded(Ledger.of(log), POLICY, window=200_000)
    fired = trace.columns["fired"].nonzero()[0]
    assert len(fired) >= 1
    assert (trace.columns["real_loaded"][fired] < trace.columns["threshold"][fired]).any()


def test_the_shadow_compares_turns_with_turns():
    ledger, policy = Ledger.of(bundled("long-coding")), get_policy("adk-context-filter", num_invocations_to_keep=2)
    columns = observe_recorded(ledger, policy, window=200_000).columns
    assert columns["turns_compared"].tolist() == (ledger.steps["turn"] + 1).tolist()
    assert columns["fired"].tolist() == (ledger.steps["turn"] >= 2).tolist()


@pytest.mark.parametrize(
    "name", ["adk-sliding-window", "openai-agents", "agent-framework-sliding-window", "agent-framework-tool-result"]
)
def test_what_a_policy_counts_of_its_own_list_is_not_known_of_a_recording(name):
    policy = get_policy(name)
    trace = observe_recorded(Ledger.of(bundled("long-coding")), policy, window=200_000)
    counted, _ = policy.compared_names
    assert set(trace.columns[counted].tolist()) == {-1}
    assert not trace.columns["fired"].any()
    assert "of its own list" in policy.explain(trace, 20)[-1].expression


def test_whoever_waits_hears_how_far_a_replay_is_and_can_break_it_off(tool_heavy):
    ledger, heard = Ledger.of(tool_heavy), []
    replay(ledger, POLICY, window=2_000, each=heard.append)
    assert heard == sorted(heard)
    assert heard[0] == 0
    assert 0 < heard[-1] < ledger.step_count

    class EnoughError(Exception):
        pass

    def stop(done: int) -> None:
        if done >= 10:
            raise EnoughError

    with pytest.raises(EnoughError):
        replay(ledger, POLICY, window=2_000, each=stop)


def test_listening_to_a_replay_does_not_change_it(tool_heavy):
    ledger = Ledger.of(tool_heavy)
    assert (
        replay(ledger, POLICY, window=2_000, each=[].append).digest() == replay(ledger, POLICY, window=2_000).digest()
    )


def test_a_policy_that_looks_ahead_in_vain_does_so_less_and_less_often():
    class Busy(ChatMemoryBuffer):
        looks = 0

        def scan(self, run, start, stop, state):
            Busy.looks += 1
            return super().scan(run, start, stop, state)

    turn = (tool_call("read", "1"), tool_result("x" * 400, id="1")) * 200
    ledger = Ledger.of(session(user("begin"), *turn))
    policy = Busy(LlamaIndexSettings(token_limit=1))
    replay(ledger, policy, window=200_000)
    assert Busy.looks < 20


@pytest.mark.parametrize(
    ("name", "profile"), [(kind.name, profile) for kind in POLICIES.values() for profile in kind.profile_names or ("",)]
)
@pytest.mark.parametrize("events", [(), (user("go"),)], ids=["nothing", "words"])
def test_a_session_without_calls_is_replayed_and_observed_under_every_policy(name, profile, events):
    ledger = Ledger.of(session(*events))
    policy = get_policy(name, **({"profile": profile} if profile else {}))
    assert len(replay(ledger, policy, window=1_000)) == len(observe_recorded(ledger, policy, window=1_000)) == 0
