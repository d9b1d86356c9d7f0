"""A guarded agent's session as a file that can be read at any moment."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import pytest

from guard_core import AskedModel, Guard, Recorder, read
from guard_core.estimation.attribution import attribute
from guard_core.findings import Facts, recorded_findings, recorded_verdict
from guard_core.ledger import Ledger
from guard_core.policies import policy_kind
from guard_core.requests import materialise
from guard_core.rules.agreement import Agreement
from guard_core.rules.decisions import OwnChecks
from guard_core.rules.explanation import explain
from guard_core.sessions import Provenance
from guard_core.windows.window_evidence import judge_session
from tests.guard_core.guarding.test_guard import SYSTEM, turn


def play(path, policy="contextguard", **settings):
    """An agent of eight turns with its recorder; after each call what the file says, and what was really sent."""
    guard = Guard(policy, window=4_000, summarizer=AskedModel(lambda prompt: "The user wants it read."), **settings)
    recorder = Recorder(path, agent="tester", model="test-model")
    history, states, sent = [SYSTEM], [], []
    for number in range(8):
        for messages in (turn(number, 3_000)[:1], turn(number, 3_000)[1:3]):
            history += messages
            sent.append(guard.before_call(history)[1:])
            guard.after_call(sum(len(str(message)) for message in sent[-1]) // 3, output_tokens=7)
            recorder.record(guard)
            states.append(read(path).sessions[0])
        history += turn(number, 3_000)[3:]
    recorder.close(guard)
    return guard, states, sent


def bare(session):
    unset = dict.fromkeys(("source_id", "agent", "model", "title", "format"), "")
    return msgspec.structs.replace(session, window=None, system=None, **unset)


@pytest.mark.parametrize("digits", [20, 30, 400])  # the last is larger than any float
def test_an_integer_beyond_64_bits_costs_what_its_recording_costs(tmp_path, digits):
    guard = Guard("contextguard", window=4_000, summarizer=AskedModel(lambda prompt: "It is counted."))
    call = {"id": "c1", "function": {"name": "count", "arguments": {"to": 10**digits}}}
    history = [
        {"role": "user", "content": "Count."},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "done"},
    ]
    assert guard.before_call(history) == history
    guard.after_call(100)
    Recorder(tmp_path / "session.jsonl").close(guard)
    (session,) = read(tmp_path / "session.jsonl").sessions
    read_again, live = (Ledger.of(value).parts["heuristic"].tolist() for value in (session, guard.recorded))
    assert read_again == live


@pytest.mark.parametrize(
    ("policy", "settings"), [("contextguard", {}), ("anthropic-clear-tool-uses", {"trigger": 2_000, "keep": 1})]
)
def test_the_file_is_the_session_with_the_requests_that_were_sent(tmp_path, policy, settings):
    guard, _, sent = play(tmp_path / "session.jsonl", policy, **settings)
    recording = read(tmp_path / "session.jsonl")
    assert not recording.notes.problems
    (session,) = recording.sessions
    assert session.compactions
    assert bare(session) == bare(guard.recorded)
    assert (session.agent, session.model, session.window.value) == ("tester", "test-model", 4_000)
    ledger = Ledger.of(session)
    for step, messages in enumerate(sent):
        view, epoch = ledger.recorded_view(step)
        texts = [
            part.text for event in materialise(view, session, epoch) for part in event.parts if hasattr(part, "text")
        ]
        contents = [message["content"] for message in messages if message["role"] != "tool" and message["content"]]
        assert texts == contents, step


def explained(path):
    session = read(path).sessions[0]
    ledger = Ledger.of(session)
    explanation = explain(session, ledger)
    return session, explanation, OwnChecks(session, ledger, explanation)


@pytest.mark.parametrize("policy", ["contextguard", "codex", "openhands"])
def test_the_recording_is_explained_by_what_the_guard_compared(tmp_path, policy):
    guard, _, _ = play(tmp_path / "session.jsonl", policy)
    session, explanation, checks = explained(tmp_path / "session.jsonl")
    (rule,) = explanation.rules
    assert rule.agent == policy_kind(policy).title
    compacted = {item.at for item in session.compactions if item.trigger == "auto"}
    assert compacted
    for step, live in enumerate(guard.recorded.calls):
        assert checks.at(step).count == live.compared_tokens
        assert checks.at(step).fires == (live.at in compacted)
    assert {item.verdict for item in explanation.compactions} == {Agreement.AGREES}
    assert not explanation.missed


def test_a_guard_that_looks_at_more_than_tokens_is_not_judged_by_them(tmp_path):
    settings = {"trigger": "messages 6 or tokens 900000", "keep": "messages 2"}
    play(tmp_path / "session.jsonl", "langchain-summarization", **settings)
    session, explanation, checks = explained(tmp_path / "session.jsonl")
    assert session.compactions
    assert {item.verdict for item in explanation.compactions} == {Agreement.NOT_MODELLED}
    assert "does not decide by this count alone" in explanation.compactions[0].reason
    facts = Facts(session, checks.ledger, attribute(checks.ledger), judge_session(session))
    assert not {"own_early", "own_missed", "other_threshold"} & {item.kind for item in recorded_findings(facts)}


def test_a_compaction_after_a_refusal_is_recorded_as_one(tmp_path):
    guard = Guard("claude-code", window=20_000, summarizer=AskedModel(lambda prompt: "The user wants it read."))
    recorder = Recorder(tmp_path / "session.jsonl")
    history = [SYSTEM]
    for number in range(6):
        history += turn(number, 3_000)[:1]
        guard.before_call(history)
        if number == 4:
            assert guard.refused() is not None
        guard.after_call(1_000 * (number + 1), output_tokens=7)
        recorder.record(guard)
        history += [{"role": "assistant", "content": "Well."}]
    recorder.close(guard)
    session, explanation, _ = explained(tmp_path / "session.jsonl")
    assert [item.trigger for item in session.compactions if item.trigger] == ["overflow"]
    (rule,) = explanation.rules
    assert (rule.threshold, rule.formula, rule.reason) == (
        None,
        "a limit of its own",
        "the guard recorded no threshold in tokens",
    )
    assert [item.verdict for item in explanation.compactions] == [Agreement.AGREES]
    assert not any(interval.at_most for interval in explanation.inference)


def test_a_request_that_only_extends_the_one_before_is_no_compaction(tmp_path):
    guard, _, sent = play(tmp_path / "session.jsonl", "semantic-kernel-truncation", target_count=5, threshold_count=4)
    cut = sum(after[: len(before)] != before for before, after in pairwise(sent))
    assert 0 < cut == len(guard.recorded.compactions) < len(sent) - 2


def test_another_window_of_the_recorder_is_not_that_of_the_guard(tmp_path):
    guard = Guard("contextguard", window=4_000)
    recorder = Recorder(tmp_path / "session.jsonl", window=200_000)
    guard.before_call([SYSTEM, *turn(0, 100)[:1]])
    guard.after_call(100)
    recorder.close(guard)
    session, explanation, _ = explained(tmp_path / "session.jsonl")
    assert (session.window.value, session.window.note) == (200_000, "the window that its recorder was given")
    assert explanation.rules[0].formula == "4,000 − 800 (kept free)"
    assert [item.source for item in explanation.rules[0].settings] == [Provenance.RECORDER] * 2


def test_a_policy_that_never_looks_is_no_rule_of_a_recording(tmp_path):
    play(tmp_path / "session.jsonl", "none")
    session = read(tmp_path / "session.jsonl").sessions[0]
    assert (session.guarded_by, explain(session, Ledger.of(session)).rule) == ("", None)


def test_the_last_answer_is_recorded_where_the_guard_is_given_it(tmp_path):
    guard, recorder = Guard("none", window=200_000), Recorder(tmp_path / "session.jsonl")
    *asked, answer = turn(0, 100)
    guard.before_call(asked)
    guard.after_call(100)
    guard.take([*asked, answer])
    recorder.record(guard)
    recorder.close(guard)
    (session,) = read(tmp_path / "session.jsonl").sessions
    assert [(call.prompt_tokens, call.response) for call in session.calls] == [(100, 3)]
    assert session.events[-1].parts[0].text == answer["content"]


def test_the_title_is_what_the_user_wrote_first(tmp_path):
    play(tmp_path / "session.jsonl")
    assert read(tmp_path / "session.jsonl").sessions[0].title == turn(0, 3_000)[0]["content"][:80].rstrip()


def test_the_file_can_be_read_while_it_grows(tmp_path):
    _, states, _ = play(tmp_path / "session.jsonl")
    assert [len(state.calls) for state in states] == sorted(len(state.calls) for state in states)
    assert len(states[-1].calls) >= 15
    for earlier, later in pairwise(states):
        assert later.events[: len(earlier.events)] == earlier.events
        assert later.calls[: len(earlier.calls)] == earlier.calls


def test_a_verdict_can_be_given_on_it(tmp_path):
    play(tmp_path / "session.jsonl")
    session = read(tmp_path / "session.jsonl").sessions[0]
    ledger = Ledger.of(session)
    facts = Facts(session, ledger, attribute(ledger), judge_session(session))
    assert recorded_verdict(facts, recorded_findings(facts)).sentence


def test_an_integer_beyond_64_bits_is_kept_as_text(tmp_path):
    guard = Guard("contextguard", window=4_000, dialect="anthropic")
    recorder = Recorder(tmp_path / "session.jsonl")
    call = {"type": "tool_use", "id": "c", "name": "pay", "input": {"sum": 2**70}}
    result = {"type": "tool_result", "tool_use_id": "c", "content": "paid"}
    history = [{"role": "user", "content": "pay"}]
    guard.before_call(history)
    guard.after_call(9)
    history += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    guard.before_call(history)
    recorder.close(guard)
    recording = read(tmp_path / "session.jsonl")
    assert not recording.notes.problems
    assert recording.sessions[0].events[1].parts[0].arguments == {"sum": str(2**70)}


def test_an_existing_file_is_not_overwritten(tmp_path):
    (tmp_path / "session.jsonl").write_text("mine")
    with pytest.raises(FileExistsError):
        Recorder(tmp_path / "session.jsonl")


def test_a_recording_ends_where_the_agent_goes_back_behind_it(tmp_path, caplog):
    guard, other = Guard("contextguard", window=20_000), Guard("contextguard", window=20_000)
    recorder = Recorder(tmp_path / "session.jsonl")
    history = turn(0)
    for one in (guard, other):
        one.before_call(history)
        one.after_call(500)
    mark = guard.mark()
    guard.before_call(history + turn(1))
    guard.after_call(900)
    recorder.record(guard)
    guard.before_call(history + turn(1) + turn(2))  # and no answer
    guard.go_back(mark)
    assert guard.before_call(history + turn(3)) == other.before_call(history + turn(3))
    guard.after_call(950)
    other.after_call(950)
    assert guard.recorded == other.recorded
    recorder.record(guard)
    recorder.close(guard)
    assert caplog.messages == ["a recording ends after 8 events: the agent took some of them back"]
    (session,) = read(tmp_path / "session.jsonl").sessions
    assert (len(session.events), [call.prompt_tokens for call in session.calls]) == (8, [500])
