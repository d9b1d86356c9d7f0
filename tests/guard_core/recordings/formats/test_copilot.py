"""Copilot CLI event logs."""

from __future__ import annotations

from typing import Any

import pytest

from guard_core import recordings
from guard_core.bounds import MAX_TOKENS
from guard_core.checker import check
from guard_core.events import MediaPart, ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from guard_core.findings import Facts, conclusions
from guard_core.recordings.formats.copilot.format import FORMAT
from guard_core.rules import explain
from guard_core.sessions import Evidence, Provenance, SubAgent
from guard_core.triggers import AUTOMATIC, MANUAL, OVERFLOW, trigger_of
from guard_core.views import Inserted, Span
from guard_core.windows.window_evidence import Status, judge_session, stated_windows
from tests.guard_core.recordings.checks import (
    check_hostile,
    check_sample_facts,
    lines,
    read_as,
    recognises,
    spoiled,
    texts,
)


def event(kind: str, **data: Any) -> dict[str, Any]:
    return {"type": kind, "data": data, "id": kind, "parentId": None, "timestamp": "2026-03-01T10:00:00.000Z"}


HEAD = (
    event("session.start", sessionId="s1", selectedModel="m-1", startTime="2026-03-01T09:59:00Z"),
    event("system.message", role="system", content="Be brief."),
    event("user.message", content="List files", transformedContent="List files"),
)
REQUEST = {"toolCallId": "c1", "name": "bash", "arguments": {"command": "ls"}}
LOOK = event("assistant.message", messageId="m1", content="I look", toolRequests=[REQUEST], reasoningText="Files.")
RESULT = event(
    "tool.execution_complete", toolCallId="c1", success=True, result={"content": "a.txt", "detailedContent": "x"}
)
DONE = event("assistant.message", messageId="m2", content="Done", toolRequests=[])


def numbered(*events: dict[str, Any]) -> bytes:
    """Each event with an id of its own."""
    return lines(*({**item, "id": f"{item['id']} {number}"} for number, item in enumerate(events)))


def read(*events: dict[str, Any]):
    return read_as(FORMAT, numbered(*HEAD, *events))


def test_an_event_that_was_written_twice_counts_once():
    recording = read_as(FORMAT, lines(*HEAD, LOOK, RESULT, RESULT, DONE))
    assert (len(recording.sessions[0].events), recording.notes.folded) == (4, 1)


def test_the_words_of_the_user_are_an_event_joined_with_what_is_sent_around_them():
    sent = "<current_datetime>8:07</current_datetime>\n\nGo on\n\n<system_reminder/>"
    session = read(LOOK, event("user.message", content="Go on", transformedContent=sent)).sessions[0]
    words = session.events[2:]
    assert texts(session)[2:] == ["<current_datetime>8:07</current_datetime>\n\n", "Go on", "\n\n<system_reminder/>"]
    assert [(item.starts_turn(), item.joined) for item in words] == [(False, False), (True, True), (False, True)]


def test_where_what_was_typed_is_not_in_what_is_sent_that_is_the_event():
    session = read(event("user.message", content="/fix", transformedContent="Fix the bug")).sessions[0]
    assert texts(session) == ["List files", "Fix the bug"]
    assert session.events[1].starts_turn()


def test_a_request_that_a_compaction_repeats_is_not_lost():
    typed = "Rename every file of the folder to lower case"
    user = event("user.message", content=typed, transformedContent=f"<date>8:07</date>\n\n{typed}\n\n<reminder/>")
    end = event("session.compaction_complete", success=True, summaryContent="We looked.", preCompactionTokens=9_000)
    recording = read_as(FORMAT, lines(*HEAD[:2], user, LOOK, RESULT, end, DONE))
    [finding] = [item for item in conclusions(Facts.of(recording.sessions[0]))[0] if "request" in item.kind]
    assert (finding.severity, "still quotes it" in finding.sentence) == ("info", True)


def test_what_is_sent_is_read():
    session = read(LOOK, RESULT, DONE).sessions[0]
    assert texts(session)[0] == "List files"
    assert session.events[1].parts == (
        ReasoningPart("Files."),
        TextPart("I look"),
        ToolCallPart("bash", {"command": "ls"}, "c1"),
    )
    assert session.events[2].parts == (ToolResultPart("bash", "a.txt", "c1"),)
    assert session.system == (TextPart("Be brief."),)
    assert [(call.at, call.response, call.prompt_tokens) for call in session.calls] == [(1, 1, None), (3, 3, None)]


def test_facts_count_message_events():
    facts = read(LOOK, RESULT, DONE).facts
    assert (facts.messages, facts.tool_calls, facts.tool_results, facts.model_calls) == (4, 1, 1, 0)


def test_usage_events_give_their_call_its_prompt_tokens():
    usage = event("assistant.usage", inputTokens=900, cacheReadTokens=800, outputTokens=3)
    recording = read(usage, LOOK)
    assert recording.sessions[0].calls[0].prompt_tokens == 900
    assert recording.facts.model_calls == 1


def test_usage_behind_its_message_belongs_to_it_and_not_to_the_next():
    usage = event("assistant.usage", inputTokens=900)
    turn = event("assistant.turn_start", turnId="1")
    session = read(turn, LOOK, usage, RESULT, turn, DONE).sessions[0]
    assert [call.prompt_tokens for call in session.calls] == [900, None]


TWO = event(
    "assistant.message", messageId="m1", content="Both", toolRequests=[REQUEST, {**REQUEST, "toolCallId": "c2"}]
)
SECOND = event("tool.execution_complete", toolCallId="c2", success=True, result={"content": "b.txt"})
RECORD = event("session.usage_record", usage={"inputTokens": 900, "outputTokens": 3})


@pytest.mark.parametrize(
    ("lines", "order"),
    [
        ((RECORD, TWO, SECOND, RESULT, DONE), ["a.txt", "b.txt"]),
        ((RECORD, TWO, SECOND, event("user.message", content="Stop", transformedContent="Stop")), ["b.txt", "Stop"]),
        ((TWO, SECOND, RESULT, DONE), ["b.txt", "a.txt"]),
    ],
)
def test_results_are_in_the_order_of_their_calls_where_the_version_sends_them_so(lines, order):
    """1.0.102, which writes usage records, does; 1.0.92, which does not, sends them as they ended (run)."""
    events = read(*lines).sessions[0].events[2:4]
    assert [
        part.content if isinstance(part, ToolResultPart) else part.text for item in events for part in item.parts
    ] == order


def test_the_version_is_that_of_the_beginning():
    start = event("session.start", sessionId="s1", copilotVersion="1.0.102")
    assert read_as(FORMAT, lines(start, *HEAD[1:], LOOK)).sessions[0].version == "1.0.102"


def test_a_request_that_the_provider_refused_is_known_with_its_sizes():
    words = "400 This model's maximum context length is 47000 tokens. However, your messages resulted in 47450 tokens."
    failed = event("session.error", errorType="query", message=words, statusCode=400)
    other = event("session.error", errorType="query", message="The connection was lost")
    session = read(LOOK, RESULT, failed, other).sessions[0]
    assert session.refused == (3,)
    assert [(item.at, item.tokens, item.limit) for item in session.refusals] == [(3, 47_450, 47_000)]


def test_what_a_provider_with_tools_of_its_own_is_called_is_no_tool_call_that_was_missed():
    recording = recordings.read(
        lines(*HEAD, {**LOOK, "data": {**LOOK["data"], "serverTools": {"provider": "p"}}}), strict=True
    )
    assert recording.notes.problem_count == 0


def test_usage_of_a_sub_agent_is_a_side_call():
    session = read(LOOK, event("assistant.usage", inputTokens=90, parentToolCallId="c1"), RESULT, DONE).sessions[0]
    assert [call.prompt_tokens for call in session.calls] == [None, None]
    assert [call.prompt_tokens for call in session.side_calls] == [90]


def test_a_compaction_is_declared_and_its_summary_is_outside_the_log():
    used = {"input": 5000, "output": 90}
    cut = event(
        "session.compaction_complete",
        success=True,
        summaryContent="We listed.",
        preCompactionTokens=5100,
        compactionTokensUsed=used,
    )
    session = read(LOOK, RESULT, cut, DONE).sessions[0]
    compaction = session.compactions[0]
    assert (compaction.at, compaction.evidence, compaction.base) == (3, Evidence.DECLARED, (Inserted(0),))
    assert compaction.messages[0].parts == (TextPart("List files"), TextPart("We listed."))
    assert (compaction.tokens_before, compaction.summariser.prompt_tokens) == (5100, 5000)
    assert "We listed." not in texts(session)


@pytest.mark.parametrize(
    "used",
    [
        {"input": 5000, "cachedInput": 4000, "output": 90},
        {"inputTokens": 5000, "cacheReadTokens": 4000, "outputTokens": 90, "requestCount": 1},
    ],
)
def test_the_call_that_wrote_a_summary_has_its_cached_tokens_and_its_answer(used):
    cut = event("session.compaction_complete", success=True, summaryContent="We listed.", compactionTokensUsed=used)
    [compaction] = read(LOOK, RESULT, cut, DONE).sessions[0].compactions
    call = compaction.summariser
    assert (call.prompt_tokens, call.cached_tokens, call.output_tokens) == (5000, 4000, 90)
    assert "requests" not in compaction.note


def test_a_summary_that_took_several_requests_says_that_their_tokens_are_added_up():
    used = {"inputTokens": 50_000, "outputTokens": 335, "requestCount": 10}
    cut = event("session.compaction_complete", success=True, summaryContent="We listed.", compactionTokensUsed=used)
    [compaction] = read(LOOK, RESULT, cut, DONE).sessions[0].compactions
    assert compaction.note.endswith("The summary took 10 requests; their tokens are added up.")


# What `session.shutdown` of 1.0.80 says, in short.
BILLED = {"input": {"tokenCount": 600}, "cache_read": {"tokenCount": 9000}, "output": {"tokenCount": 40}}
METRICS = {"m-1": {"requests": {"count": 2}, "usage": {"inputTokens": 9600}, "tokenDetails": BILLED, "totalNanoAiu": 7}}


def test_sums_and_what_was_billed_are_no_counts_that_were_missed():
    used = {"inputTokens": 5000, "outputTokens": 90, "copilotUsage": {"tokenDetails": BILLED, "totalNanoAiu": 9}}
    cut = event("session.compaction_complete", success=True, summaryContent="We listed.", compactionTokensUsed=used)
    agents = {"main": {"totalNanoAiu": 7, "modelMetrics": METRICS}}
    end = event("session.shutdown", tokenDetails=BILLED, modelMetrics=METRICS, agentMetrics=agents)
    recording = recordings.read(numbered(*HEAD, LOOK, RESULT, cut, DONE, end), strict=True)
    assert recording.notes.problem_count == 0
    assert recording.sessions[0].notes == ("9,600 prompt tokens in 2 calls of m-1 together.",)


@pytest.mark.parametrize(
    ("trigger", "who"),
    [
        ("threshold", AUTOMATIC),
        ("context_limit_retry", AUTOMATIC),
        ("memory_pressure", AUTOMATIC),
        ("model_switch", AUTOMATIC),
        ("manual", MANUAL),
    ],
)
def test_who_asked_for_a_compaction_is_in_its_trigger(trigger, who):
    end = event("session.compaction_complete", success=True, summaryContent="We listed.", trigger=trigger)
    [compaction] = read(LOOK, RESULT, end, DONE).sessions[0].compactions
    assert trigger_of(compaction) == who
    assert (compaction.trigger == OVERFLOW) == (trigger == "context_limit_retry")


def test_a_compaction_at_another_threshold_is_confirmed_by_the_count_that_copilot_wrote():
    start = event("session.compaction_start", tokenLimit=128_000, currentTokens=90_000, trigger="threshold")
    end = event("session.compaction_complete", success=True, summaryContent="We listed.", preCompactionTokens=90_000)
    end["data"]["trigger"] = "threshold"
    session = read(LOOK, RESULT, start, end, DONE).sessions[0]
    facts = Facts.of(session)
    findings, verdict = conclusions(facts)
    assert verdict.sentence.endswith("the threshold of Copilot CLI is at most 90,000, not the default 102,400.")
    assert check(session, findings, facts.window, verdict) == []


def test_what_copilot_compared_is_in_the_start_of_a_compaction_and_not_in_its_local_estimate():
    """As 1.0.102 wrote it: the tokens after the compaction are of the local estimate, too, and no measure of a fall."""
    start = event("session.compaction_start", tokenLimit=40_000, currentTokens=33_062, trigger="threshold")
    basis = {"tokenAccountingBasis": "local_full_context_estimate", "postCompactionTokens": 11_075}
    end = event("session.compaction_complete", success=True, summaryContent="S", preCompactionTokens=31_420, **basis)
    [compaction] = read(LOOK, start, RESULT, end, DONE).sessions[0].compactions
    assert (compaction.tokens_before, compaction.tokens_after) == (33_062, None)
    [older] = read(LOOK, RESULT, end, DONE).sessions[0].compactions
    assert (older.tokens_before, older.tokens_after) == (31_420, 11_075)
    assert "not in the file" in compaction.note


def test_a_compaction_without_a_count_that_ends_before_an_answer_changes_the_request_after_it():
    """As in 1.0.69, on the wire."""
    start, turn = event("session.compaction_start", systemTokens=9), event("assistant.turn_start", turnId="1")
    end = event("session.compaction_complete", success=True, summaryContent="S", preCompactionTokens=31_398)
    for rest in ((DONE,), (DONE, turn, DONE)):
        [compaction] = read(turn, LOOK, RESULT, start, turn, end, *rest).sessions[0].compactions
        assert (compaction.at, compaction.base, compaction.tokens_before) == (4, (Inserted(0), Span(3, 4)), 31_398)
        assert "a call or two away" in compaction.note
    [compaction] = read(turn, LOOK, RESULT, start, turn, end).sessions[0].compactions
    assert compaction.at == 3
    counted = event("session.compaction_start", currentTokens=33_062)
    [compaction] = read(turn, LOOK, RESULT, counted, turn, end, DONE).sessions[0].compactions
    assert (compaction.at, "a call or two" in compaction.note) == (3, False)


@pytest.mark.parametrize("is_written", [True, False])
def test_a_summary_that_was_begun_and_not_used_is_a_side_call_and_explains_why_none_was_begun_later(is_written):
    """In 1.0.102 a run ended before its summary was used; the next one did not know its last count at first."""
    usages = [
        event("assistant.usage", inputTokens=tokens, outputTokens=9) for tokens in (31_200, 32_990, 33_350, 33_890)
    ]
    start = event("session.compaction_start", tokenLimit=40_000, currentTokens=32_712, model="m-1")
    end = event("session.compaction_complete", success=False, outcome="cancelled")
    again = event("session.compaction_start", tokenLimit=40_000, currentTokens=33_720)
    used = event("session.compaction_complete", success=True, summaryContent="S", trigger="threshold")
    user = event("user.message", content="Go on", transformedContent="Go on")
    turn = event("assistant.turn_start", turnId="1")
    steps = [(turn, usage, {**DONE, "id": f"m{number}"}) for number, usage in enumerate(usages)]
    run = (*steps[0], start, *steps[1], *([end] if is_written else []), event("session.resume"), user)
    session = read(*run, *steps[2], again, *steps[3], used, turn, DONE).sessions[0]
    assert [(call.at, call.prompt_tokens, call.model) for call in session.side_calls] == [(2, None, "m-1")]
    explanation = explain(session)
    assert [(item.recorded, str(item.verdict)) for item in explanation.compactions] == [(33_720, "agrees")]
    assert (explanation.rule.threshold, explanation.missed) == (32_000, ())


def test_no_check_is_missed_while_a_summary_is_made_that_is_given_up_calls_later():
    """1.0.102, run with a window of 60,000: two calls were answered before the run ended and its summary with it."""
    counts = (30_000, 32_700, 33_400, 33_900)
    usages = [event("assistant.usage", inputTokens=tokens, outputTokens=9) for tokens in counts]
    start = event("session.compaction_start", tokenLimit=40_000, currentTokens=32_100, model="m-1")
    end = event("session.compaction_complete", success=False, outcome="cancelled")
    user = event("user.message", content="Go on", transformedContent="Go on")
    turn = event("assistant.turn_start", turnId="1")
    steps = [(turn, usage, {**DONE, "id": f"m{number}"}) for number, usage in enumerate(usages)]
    explanation = explain(read(*steps[0], start, *steps[1], *steps[2], end, user, *steps[3]).sessions[0])
    assert [check.count for check in explanation.missed] == [33_409]  # behind the end of the summary


def test_checks_between_two_summaries_that_are_given_up_count():
    counts = (30_000, 32_700, 33_400, 33_900, 34_300)
    usages = [event("assistant.usage", inputTokens=tokens, outputTokens=9) for tokens in counts]
    start = event("session.compaction_start", tokenLimit=40_000, currentTokens=32_100, model="m-1")
    end = event("session.compaction_complete", success=False, outcome="cancelled")
    user = event("user.message", content="Go on", transformedContent="Go on")
    turn = event("assistant.turn_start", turnId="1")
    first, *steps = [(turn, usage, {**DONE, "id": f"m{number}"}) for number, usage in enumerate(usages)]
    lines = [*first, start, *steps[0], end, user, *steps[1], user, start, *steps[2], end, user, *steps[3]]
    explanation = explain(read(*lines).sessions[0])
    assert [check.count for check in explanation.missed] == [32_709, 33_909]  # behind the end of each


def test_calls_that_were_interrupted_are_noted():
    user = event("user.message", content="Go on", transformedContent="Go on")
    assert any("interrupted: 1." in note for note in read(LOOK, user, DONE).sessions[0].notes)
    assert read(LOOK, user, RESULT, user, LOOK).sessions[0].notes == ()


def test_counts_beside_the_tokens_of_a_call_are_known():
    usage = {"inputTokens": 900, "availableToolCount": 17, "toolTokenCount": 5748, "numToolCalls": 1}
    usage |= {"toolCounts": {"view": 1}, "accounting": {"sequence": 1, "usageId": "c0"}, "orphanToolCallCount": 0}
    recording = recordings.read(lines(*HEAD, event("session.usage_record", usage=usage), LOOK), strict=True)
    assert recording.notes.problem_count == 0


def test_a_message_with_a_date_and_a_reminder_is_one_of_those_that_are_cut_off():
    user = event("user.message", content="Go on", transformedContent="<date/>\nGo on\n<reminder/>")
    trim = event("session.truncation", tokenLimit=128000, messagesRemovedDuringTruncation=2)
    session = read_as(FORMAT, lines(*HEAD[:2], user, LOOK, RESULT, trim, DONE)).sessions[0]
    assert session.compactions[0].base == (Span(4, 5),)


def test_a_failed_compaction_is_none():
    recording = read(LOOK, event("session.compaction_complete", success=False, error="no"))
    assert recording.sessions[0].compactions == ()
    assert recording.facts.compactions == 0


def test_a_truncation_takes_the_oldest_messages_also_after_a_compaction():
    cut = event("session.compaction_complete", success=True, summaryContent="We listed.")
    trim = event("session.truncation", tokenLimit=128000, messagesRemovedDuringTruncation=1)
    session = read(LOOK, RESULT, trim, DONE, cut, DONE, trim).sessions[0]
    assert [item.kind for item in session.compactions] == ["trim", "summary", "trim"]
    assert session.compactions[0].base == (Span(1, 3),)
    assert session.compactions[2].base == (Span(4, 5),)
    assert (session.window.value, session.window.source) == (128000, Provenance.RECORDER)


def test_sub_agents_are_another_context():
    child = event("assistant.message", content="Sub", parentToolCallId="c1", toolRequests=[REQUEST])
    result = event("tool.execution_complete", toolCallId="c2", parentToolCallId="c1", result={"content": "x"})
    session, agent = read(LOOK, child, result, RESULT, DONE).sessions
    assert len(session.events) == 4
    assert [call.at for call in session.side_calls] == [2]
    assert (texts(agent), agent.title, len(agent.calls)) == (["Sub", ""], "Sub-agent c1", 1)
    assert [(item.session, item.call) for item in session.sub_agents] == [("c1", "c1")]
    assert agent.parent == session.source_id


def test_a_sub_agent_with_an_id_has_its_own_prompt_model_and_name():
    def of_agent(kind: str, **data: Any) -> dict[str, Any]:
        return {**event(kind, **data), "agentId": "k1"}

    session, agent = read(
        LOOK,
        of_agent("subagent.started", toolCallId="c1", agentDisplayName="Explorer"),
        of_agent("session.model_change", newModel="m-2"),
        of_agent("system.message", content="Explore."),
        of_agent("user.message", content="Go"),
        of_agent("session.usage_record", usage={"inputTokens": 70, "apiCallId": "a1"}),
        of_agent("assistant.message", content="Gone", apiCallId="a1"),
        RESULT,
    ).sessions
    assert (session.model, session.system, len(session.events)) == ("m-1", (TextPart("Be brief."),), 3)
    assert (agent.model, agent.system, agent.title) == ("m-2", (TextPart("Explore."),), "Sub-agent Explorer")
    assert [call.prompt_tokens for call in agent.calls] == [70]
    assert [(call.at, call.prompt_tokens) for call in session.side_calls] == [(2, 70)]
    assert session.sub_agents == (SubAgent("k1", "c1", 1),)


def test_usage_records_give_prompt_tokens_and_the_window_once_per_call():
    usage = {"inputTokens": 900, "cacheReadTokens": 800, "outputTokens": 3, "apiCallId": "a1", "maxPromptTokens": 9000}
    recording = read(event("session.usage_record", usage=usage), event("assistant.usage", **usage), LOOK)
    call = recording.sessions[0].calls[0]
    assert (call.prompt_tokens, call.cached_tokens, call.output_tokens) == (900, 800, 3)
    assert recording.facts.model_calls == 1
    assert recording.sessions[0].window.value == 9000


def test_usage_without_an_answer_is_a_call_without_response():
    usage = event("session.usage_record", usage={"inputTokens": 900, "apiCallId": "a1"})
    session = read(usage, event("assistant.turn_start", turnId="1"), DONE).sessions[0]
    assert [(call.at, call.response, call.prompt_tokens) for call in session.calls] == [(1, None, 900), (1, 1, None)]


def test_a_message_that_names_no_api_call_where_others_do_is_no_call():
    named = event("assistant.message", content="I look", apiCallId="a1")
    session = read(named, LOOK, RESULT).sessions[0]
    assert (len(session.calls), len(session.events)) == (1, 4)


def test_a_notification_is_sent_in_the_name_of_the_user():
    notification = read(LOOK, RESULT, event("system.notification", content="Agent is done")).sessions[0].events[-1]
    assert (notification.parts, notification.starts_turn()) == ((TextPart("Agent is done"),), False)


def test_what_came_while_a_compaction_ran_is_kept_behind_the_summary():
    start = event("session.compaction_start", tokenLimit=9000)
    end = event("session.compaction_complete", success=True, summaryContent="We listed.")
    compaction = read(LOOK, start, RESULT, DONE, end).sessions[0].compactions[0]
    assert (compaction.kind, compaction.base) == ("summary+tail", (Inserted(0), Span(1, 4)))


def test_images_of_a_tool_stand_beside_its_text():
    image = {"type": "image", "mimeType": "image/png", "byteLength": 278, "assetId": "sha256:0"}
    result = {"content": "Viewed", "binaryResultsForLlm": [image]}
    session = read(LOOK, event("tool.execution_complete", toolCallId="c1", result=result)).sessions[0]
    assert session.events[-1].parts[1] == MediaPart(mime="image/png", size=278)


def test_the_answer_of_a_summariser_is_no_message():
    assert read(LOOK, event("model.message", message={"role": "assistant"})).facts.messages == 3


def test_totals_of_every_run_are_told_where_no_call_has_its_tokens():
    first, last = ({"m-1": {"requests": {"count": n}, "usage": {"inputTokens": n * 350}}} for n in (1, 2))
    runs = event("session.shutdown", modelMetrics=first), event("session.shutdown", modelMetrics=last)
    growing = event("session.shutdown", accountingSnapshot={"modelMetrics": last})
    usage = event("assistant.usage", inputTokens=900)
    counts = ((350, "1 call"), (700, "2 calls"))
    sentences = [f"{tokens} prompt tokens in {calls} of m-1 together." for tokens, calls in counts]
    assert read(LOOK, *runs).sessions[0].notes == tuple(sentences)
    assert read(LOOK, runs[0], growing).sessions[0].notes == tuple(sentences[1:])
    assert read(usage, LOOK, *runs).sessions[0].notes == ()


def test_totals_of_as_many_calls_as_the_log_has_are_those_of_the_session():
    def ended(model: str, calls: int) -> dict[str, Any]:
        return event(
            "session.shutdown", modelMetrics={model: {"requests": {"count": calls}, "usage": {"inputTokens": 20_900}}}
        )

    session = read(LOOK, RESULT, ended("claude-sonnet-4.6", 1)).sessions[0]
    assert (session.prompt_tokens_total, session.total_calls, session.mean_prompt_tokens) == (20_900, 1, 20_900)
    unnamed = {**HEAD[0], "data": {key: value for key, value in HEAD[0]["data"].items() if key != "selectedModel"}}
    log = lines(unnamed, *HEAD[1:], LOOK, RESULT, ended("claude-sonnet-4.6", 1))
    assert read_as(FORMAT, log).sessions[0].model == "claude-sonnet-4.6"
    for others in ((ended("m-1", 2),), (ended("m-1", 1), ended("m-2", 1)), ()):
        assert read(LOOK, RESULT, *others).sessions[0].prompt_tokens_total is None


def test_totals_that_are_too_many_tokens_together_are_not_those_of_the_session():
    metrics = {"m": {"requests": {"count": 1}, "usage": {"inputTokens": MAX_TOKENS}}}
    runs = [event("session.shutdown", modelMetrics=metrics) | {"id": f"run {number}"} for number in range(2)]
    answers = [LOOK | {"id": f"answer {number}"} for number in range(2)]
    assert read(answers[0], runs[0]).sessions[0].prompt_tokens_total == MAX_TOKENS
    session = read(*answers, *runs).sessions[0]
    assert (len(session.calls), session.prompt_tokens_total) == (2, None)


def test_unknown_kinds_are_counted():
    assert read(event("hook.start"), event("mood", level=3)).notes.skipped == {"hook.start": 1, "mood": 1}


def test_other_json_lines_are_not_taken():
    assert not recognises(FORMAT, lines({"type": "session_meta", "payload": {}}))
    assert not recognises(FORMAT, lines({"type": "user", "uuid": "u"}))


def test_wrong_types_anywhere_are_survived():
    cut = event("session.compaction_complete", success=True, summaryContent="S", compactionTokensUsed={"input": 5})
    trim = event("session.truncation", tokenLimit=9, messagesRemovedDuringTruncation=1)
    records = [*HEAD, LOOK, RESULT, cut, trim, DONE]
    for index, record in enumerate(records):
        rest = [lines(*records[:index], bad, *records[index + 1 :]) for bad in spoiled(record)]
        check_hostile(FORMAT, rest)


def test_the_facts_of_the_samples_are_equal():
    check_sample_facts(FORMAT, "copilot-cli")


def test_a_limit_that_changes_holds_from_the_call_with_which_it_is_stated():
    """The model was changed for a smaller one: what the larger one answered contradicts nothing."""

    def asked(limit, tokens, name):
        usage = event("assistant.usage", inputTokens=tokens)
        answer = event("assistant.message", messageId=name, content="Done", toolRequests=[])
        return event("session.usage_info", tokenLimit=limit, currentTokens=tokens), usage, answer

    session = read(*asked(128_000, 90_000, "m1"), *asked(64_000, 20_000, "m2")).sessions[0]
    assert stated_windows(session) == [128_000, 64_000]
    assert judge_session(session).status is Status.KNOWN


def test_an_entry_whose_predecessor_is_not_in_the_file_is_noted():
    chain = [{**item, "id": str(at), "parentId": str(at - 1) if at else None} for at, item in enumerate((*HEAD, LOOK))]
    ends = [{**DONE, "id": "5", "parentId": "4"}]
    whole = [*chain, {**RESULT, "id": "4", "parentId": "3"}, *ends]
    assert not any("follows" in note for note in read_as(FORMAT, lines(*whole)).sessions[0].notes)
    (note,) = (note for note in read_as(FORMAT, lines(*chain, *ends)).sessions[0].notes if "follows" in note)
    assert note.startswith("The entry on line 5 follows one that is not in the file")
    (note,) = (note for note in read_as(FORMAT, lines(*whole[2:])).sessions[0].notes if "follows" in note)
    assert note.startswith("The entry on line 1 follows one")
