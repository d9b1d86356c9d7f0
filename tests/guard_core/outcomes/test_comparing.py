"""One row per policy, with the figures that its own replay has."""

import gc
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from guard_core import memory
from guard_core.estimation.usage import usage_for
from guard_core.findings import conclusions
from guard_core.ledger import Ledger
from guard_core.memory import limited_growth
from guard_core.outcomes.bill import Prices
from guard_core.outcomes.comparing import NO_MEMORY, Candidate, candidates, compared, compared_apart, made_apart
from guard_core.outcomes.outcome import recorded_outcome
from guard_core.outcomes.words import assumptions, closest_words, refused_words, summariser_words
from guard_core.policies import POLICIES, get_policy
from guard_core.recordings import read
from guard_core.replay import replay
from guard_core.sessions import ModelCall, Session
from guard_core.simulator.samples import SAMPLES
from guard_core.summaries.sizes import FixedSummaries
from guard_core.views import SharedView
from tests.builders import model, tool_call, tool_result, transcript, user
from tests.guard_core.outcomes.cast import counted, facts_of

GROWING = counted(tuple(20_000 + 6_000 * k for k in range(40)))
LONG = Path(__file__).parents[3] / "../shared/samples/claude-code/long-2-compactions.jsonl"


def rows(session, **more):
    return list(compared(facts_of(session), candidates(), **more))


@pytest.fixture(scope="module")
def growing():
    """The rows of GROWING."""
    return rows(GROWING)


def test_the_peak_is_the_fullest_request_by_the_window_of_its_own_model_as_in_the_verdict():
    session = counted((150_000, 160_000, 12_000), names=("claude-opus-4-6",) * 2 + ("voxtral-small-24b-2507",))
    facts = facts_of(msgspec.structs.replace(session, model="claude-opus-4-6"))
    row = recorded_outcome(facts, Prices.of(facts.session, facts.ledger))
    assert (row.peak, row.peak_step, row.peak_window) == (12_000, 2, 32_768)
    _, verdict = conclusions(facts)
    assert (row.peak, row.peak_window) == (verdict.numbers["peak"], verdict.numbers["window"])


def test_the_recording_is_on_top_and_every_policy_follows(growing):
    assert growing[0].candidate is None
    assert [row.candidate.kind.name for row in growing[1:]] == list(POLICIES)


def test_a_policy_that_let_requests_overflow_without_acting_says_how_far_its_own_count_was_from_its_threshold():
    text = "word " * 4_000  # 5,000 tokens by characters / 4, and 10,000 by the provider's count
    events, calls = [], []
    for step in range(20):
        events += [user(f"{step} {text}"), model("done")]
        calls.append(ModelCall(at=2 * step + 1, prompt_tokens=10_000 * (step + 1), model="some model"))
    every = {
        row.candidate.kind.name: row.outcome
        for row in rows(Session(tuple(events), tuple(calls)), window=150_000)
        if row.candidate and row.outcome
    }
    idle = every["llama-index-buffer"]
    assert (idle.compactions, idle.overflows, idle.closest.step, idle.closest.threshold) == (0, 5, 19, 112_500)
    assert 100_000 <= idle.closest.compared < 112_500
    assert closest_words(idle) == (
        f"never reached its threshold by its own count; closest at step 20: {idle.closest.compared:,} of 112,500 tokens"
    )
    assert every["contextguard"].compactions
    assert every["none"].overflows
    assert [closest_words(every[name]) for name in ("contextguard", "none")] == ["", ""]


@pytest.mark.parametrize(("version", "compactions"), [("2.1.50", 1), ("2.1.330", 0)])
def test_the_row_of_the_recordings_own_agent_is_played_as_its_version_does(version, compactions):
    session = transcript(version=version, prompts=(20_000, 160_000, 170_000, 180_000), place=1)
    facts = facts_of(msgspec.structs.replace(session, compactions=()))
    chosen = [item for item in candidates(rule=facts.explanation.rule) if item.kind.name == "claude-code"]
    assert chosen[0].profile == facts.explanation.rule.profile
    (_, own) = compared(facts, chosen)
    assert own.outcome.compactions == compactions


def test_what_a_rows_overflows_leave_out_is_said():
    """The provider refused a request that no call of the file answered; summarisers are given as much."""
    events = [user("go"), model("on it"), tool_result("x" * 900_000, id="1"), user("again, shorter"), model("done")]
    calls = (ModelCall(1, 1, 20_000, model="claude-sonnet-4-5"), ModelCall(4, 4, model="claude-sonnet-4-5"))
    facts = facts_of(Session(tuple(events), calls, refused=(3,)))
    every = {row.candidate.kind.name: row.outcome for row in compared(facts, candidates()) if row.candidate}
    said = " ".join(assumptions(facts, Prices.of(facts.session, facts.ledger)))
    assert (
        "overflows of the recording include 1 request that the provider refused. The file has no calls for them" in said
    )
    asked = [summariser_words(outcome) for outcome in every.values() if outcome and outcome.largest_summariser]
    assert any("more than the window of 200,000, and is assumed to answer" in words for words in asked)
    assert all(bool(summariser_words(row)) == (row.largest_summariser > 200_000) for row in every.values() if row)
    assert all(bool(refused_words(row)) == (row.refused > 0) for row in every.values() if row)


def test_each_profile_is_a_row_where_all_are_asked_for():
    every = candidates(all_profiles=True)
    assert len(every) == sum(max(1, len(kind.profiles)) for kind in POLICIES.values())
    assert len({item.title for item in every}) == len(every)


def test_the_figures_are_those_of_the_single_replay(growing):
    facts, ledger = facts_of(GROWING), Ledger.of(GROWING)
    for name, kind in POLICIES.items():
        (row,) = [row for row in growing if row.candidate and row.candidate.kind.name == name]
        trace = replay(ledger, kind.make(), window=facts.window.value, usage=usage_for(ledger, None))
        sent = trace.columns["modelled_prompt_tokens"]
        assert row.outcome.digest == trace.digest(), name
        assert row.outcome.compactions == len(trace.compactions), name
        assert (row.outcome.costs.prompt, row.outcome.peak) == (int(sent.sum()), int(sent.max())), name
        assert sum(row.outcome.held.values()) == int((trace.columns["held"] > 0).sum()), name


def test_no_garbage_is_searched_for_while_a_row_is_made(monkeypatch):
    monkeypatch.setattr(memory.threading, "active_count", lambda: 1)  # what other tests started may still run
    enabled = []
    list(compared(facts_of(GROWING), candidates()[:1], each=lambda done: enabled.append(gc.isenabled())))
    assert enabled[0]  # before its replay
    assert not any(enabled[1:])
    assert len(enabled) > 1
    assert gc.isenabled()


def test_garbage_is_searched_for_again_when_the_replay_of_a_row_is_gone(monkeypatch):
    monkeypatch.setattr(memory.threading, "active_count", lambda: 1)  # what other tests started may still run
    enabled = list(made_apart(facts_of(GROWING), candidates()[:2], 1, lambda row: gc.isenabled()))
    assert enabled == [True, False, False]  # the recording has no replay
    assert gc.isenabled()


def test_what_policies_derived_is_dropped_once_there_is_much_of_it(growing, monkeypatch):
    monkeypatch.setattr(memory.threading, "active_count", lambda: 1)  # what other tests started may still run
    facts = facts_of(GROWING)
    dropped_at = -(2**40)  # bytes; the process may hold less than before
    table = list(compared_apart(facts, candidates()[:12], 1, most_derived=dropped_at))
    assert [row.outcome for row in table] == [row.outcome for row in growing[:13]]
    assert not facts.ledger.derived


def test_never_compacting_sends_the_recording_where_it_has_no_compaction(growing):
    recording, never = growing[:2]
    assert never.candidate.kind.name == "none"
    assert never.outcome.costs == recording.outcome.costs
    assert (recording.outcome.side, never.outcome.side) == ("recorded", "modelled")


def test_a_simulated_session_has_no_recording_to_compare_with():
    sample = next(iter(SAMPLES.values())).build()
    table = rows(sample)
    assert (table[0].candidate is None) == (sample.usage_ratio is None)
    assert all(row.outcome for row in table)


def test_progress_is_told_in_steps_and_can_end_the_work():
    heard = []
    rows(GROWING, each=heard.append)
    assert heard == sorted(heard)
    assert heard[-1] <= len(POLICIES) * 40

    class Stop(Exception):
        pass

    def stop(done):
        if done:
            raise Stop

    with pytest.raises(Stop):
        rows(GROWING, each=stop)


def test_a_session_without_calls_has_rows_of_nothing():
    table = rows(counted(()))
    assert {row.outcome.costs.prompt for row in table} == {0}


def test_what_the_cache_is_said_to_give_is_near_what_was_reported():
    if not LONG.exists():
        pytest.skip("../shared/samples is absent")
    session = read(LONG).sessions[0]
    (recording,) = compared(facts_of(session), ())
    modelled, reported = recording.outcome.costs, recording.outcome.reported
    assert abs(modelled.read / reported.read - 1) < 0.01
    assert abs((modelled.total - modelled.summaries) / reported.total - 1) < 0.05
    assert Prices.of(session, Ledger.of(session)).has_prices


def rounds(number):
    """A session of so many rounds of a request, a call, its result and an answer."""
    events, calls = [], []
    for each in range(number):
        calls.append(ModelCall(at=len(events) + 3))
        name = str(each)
        events += [user("u" * 200), tool_call("read", name, path=name)]
        events += [tool_result("x" * 3_000, id=name), model("done")]
    return Session(events=tuple(events), calls=tuple(calls), usage_ratio=2.0)


def test_a_policy_without_enough_memory_leaves_the_others_theirs():
    def build():
        raise MemoryError

    greedy = Candidate(msgspec.structs.replace(POLICIES["none"], name="greedy", build=build), "")
    facts = facts_of(rounds(3))
    rows = [row for row in compared(facts, (greedy, *candidates()[:1]), window=20_000) if row.candidate]
    assert [row.problem for row in rows] == [NO_MEMORY, ""]
    assert rows[1].outcome is not None


@pytest.mark.parametrize("processes", [1, 2])
def test_rows_made_by_several_processes_are_those_of_one(processes):
    facts = facts_of(counted((20_000, 60_000, 110_000, 150_000)))
    rows = list(compared(facts, candidates()))
    heard: list[int] = []
    copied: list[int] = []
    apart = list(
        compared_apart(
            facts,
            candidates(),
            processes,
            each=heard.append,
            copied=lambda: copied.append(len(heard)),
        )
    )
    assert copied == [0]
    assert heard == [facts.ledger.step_count * (place + 1) for place in range(len(candidates()))]
    assert [(row.candidate, row.outcome, row.problem) for row in apart] == [
        (row.candidate, row.outcome, row.problem) for row in rows
    ]


@pytest.mark.skipif(sys.platform != "linux", reason="the limit of a process is Linux's")
def test_what_grows_beyond_its_limit_is_a_memory_error_and_the_limit_ends():
    size = 300_000_000
    with pytest.raises(MemoryError), limited_growth(size // 3):
        bytes(size)
    assert len(bytes(size)) == size


@pytest.mark.parametrize("name", ["agent-framework-tool-result", "openai-agents", "adk-sliding-window"])
def test_records_share_what_their_views_have_in_common(name):
    """A view of a replay that changes its list at every step is as long as the log: records hold what differs."""
    ledger = Ledger.of(rounds(600))
    trace = replay(ledger, get_policy(name), window=200_000, summarizer=FixedSummaries(200))
    views = [record.after for record in trace.compactions]
    pieces = {id(piece): len(piece) for view in views if isinstance(view, SharedView) for piece, _ in view.pieces}
    assert sum(map(len, views)) > 15_000
    assert sum(pieces.values()) < sum(map(len, views)) / 5


KILLED = """
import time
from guard_core.outcomes.comparing import candidates, made_apart
from tests.guard_core.outcomes.test_comparing import GROWING, facts_of

def made(row):
    if row.candidate:
        print("begun", flush=True)
        time.sleep(1)

list(made_apart(facts_of(GROWING), candidates(), 2, made))
"""


def test_copies_of_a_process_that_is_killed_end_with_it_in_silence():
    command = [sys.executable, "-c", KILLED]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert "begun" in process.stdout.readline()
        process.kill()
        assert process.stderr.read() == ""  # it has ended once the copies have, too
