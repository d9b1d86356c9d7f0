"""The first look tells what the full reading will tell of the recorded calls, for a file without branches."""

import json
from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from guard_core import recordings
from guard_core.bounds import MAX_TOKENS
from guard_core.errors import RecordingError, UnknownFormat
from guard_core.events import Event, Role, TextPart
from guard_core.recordings import FirstLook
from guard_core.recordings.formats import native
from guard_core.recordings.reading.first_look import GivesFirstLook
from guard_core.sessions import Evidence, ModelCall, RecordedCompaction, Session
from guard_core.simulator.big_files import write_claude_code
from guard_core.views import Span
from tests.guard_core.recordings.checks import lines
from tests.guard_core.recordings.test_memory import peak

JSON = dict[str, Any]


@pytest.fixture
def transcript(tmp_path: Path) -> Path:
    path = tmp_path / "big.jsonl"
    with path.open("wb") as out:
        write_claude_code(out, steps=400, size=2_000_000)
    return path


def test_it_finds_the_calls_and_compactions_of_the_full_reading(transcript: Path) -> None:
    look = recordings.first_look(transcript)
    (session,) = recordings.read(transcript).sessions
    assert look is not None
    assert list(look.prompt_tokens) == [call.prompt_tokens for call in session.calls]
    assert len(look.compactions) == len(session.compactions) > 0
    assert look.model == session.model


SAMPLES = Path(__file__).parents[5] / "shared/samples"
LONG = (
    "claude-code/long-2-compactions.jsonl",
    "codex/long-2-compactions.jsonl",
    "pi/v3-2-compactions.jsonl",
    "pi/large-session-v1.jsonl",
    "gemini-cli/chats/session-2026-11-21T02-58-9436eadb.jsonl",
    "openai-chat/requests-responses.jsonl",
    "openhands/sdk-events.jsonl",
    "langchain/runs-first-20.jsonl",
    "otel/adk-genai-semconv.otlp.jsonl",
    "otel/openinference-openai-attribute-limit.otlp.jsonl",
)


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="../shared/samples is absent")
@pytest.mark.parametrize("name", LONG)
def test_it_tells_of_a_real_file_what_the_reading_tells(name: str) -> None:
    look = recordings.first_look(SAMPLES / name)
    (session,) = recordings.read(SAMPLES / name).sessions
    assert look is not None
    assert list(look.prompt_tokens) == [call.prompt_tokens for call in session.calls if call.prompt_tokens]
    compactions = [compaction for compaction in session.compactions if compaction.kind != "edit"]
    assert len(look.compactions) == sum(compaction.at <= session.calls[-1].at for compaction in compactions)
    assert look.model == session.model


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="../shared/samples is absent")
def test_a_rollout_with_records_of_usage_is_looked_at_too() -> None:
    """Its token counts fold the calls of the summariser away; the chart of the reading has them apart."""
    look = recordings.first_look(SAMPLES / "codex/rollout-0.169-2-compactions.jsonl")
    (session,) = recordings.read(SAMPLES / "codex/rollout-0.169-2-compactions.jsonl").sessions
    assert look is not None
    assert set(look.prompt_tokens) > {call.prompt_tokens for call in session.calls}
    assert len(look.compactions) == len(session.compactions)


def test_it_passes_over_damaged_lines(transcript: Path) -> None:
    whole = recordings.first_look(transcript)
    transcript.write_bytes(b'{"broken\n' + transcript.read_bytes() + b"[1,2]\n\xff\xfe\n")
    assert recordings.first_look(transcript) == whole


def test_a_format_that_cannot_tell_says_nothing(tmp_path: Path) -> None:
    path = tmp_path / "chat.json"
    path.write_text('{"model": "gpt-4o", "messages": [{"role": "user", "content": "hello"}]}')
    assert recordings.first_look(path) is None


def test_what_is_no_recording_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "words.txt"
    path.write_text("just words")
    with pytest.raises(UnknownFormat):
        recordings.first_look(path)


def test_a_count_that_is_null_is_none(tmp_path: Path) -> None:
    """As gateways to other providers write it."""
    path = tmp_path / "null.jsonl"
    line = b'{"type":"assistant","uuid":"a","parentUuid":null,"sessionId":"s","message":{"id":"m","model":"x",%s}}\n'
    path.write_bytes(line % b'"content":[],"usage":{"input_tokens":90,"cache_read_input_tokens":null}')
    look = recordings.first_look(path)
    assert look is not None
    assert list(look.prompt_tokens) == [90]
    assert recordings.read(path).facts.prompt_tokens_sum == 90


@pytest.mark.parametrize("spaces", [None, 1])
def test_a_long_json_value_is_not_parsed_for_a_look(tmp_path: Path, spaces: int | None) -> None:
    """Who parses it meets an error at its end."""
    path = tmp_path / "long.json"
    talk = [{"role": "user", "content": "hello " * 1_000}] * 1_000
    path.write_text(json.dumps({"model": "m", "messages": talk}, indent=spaces) + "}")
    assert recordings.first_look(path) is None
    with pytest.raises(RecordingError):
        recordings.read(path, strict=True)


# -- what each format tells


def looked_at(tmp_path: Path, content: bytes) -> FirstLook:
    """The look at a recording, which must tell what the first session of its reading tells."""
    path = tmp_path / "recording.jsonl"
    path.write_bytes(content)
    look = recordings.first_look(path)
    session = recordings.read(path).sessions[0]
    calls = [call for call in session.calls if call.prompt_tokens]
    assert look is not None
    assert list(look.prompt_tokens) == [call.prompt_tokens for call in calls]
    places = [bisect_left([call.at for call in calls], compaction.at) for compaction in session.compactions]
    assert list(look.compactions) == [place for place in places if place < len(calls)]
    assert look.model == session.model
    return look


def copilot(kind: str, *, agent: str = "", **data: Any) -> JSON:
    about = {"agentId": agent} if agent else {}
    return {"type": kind, "data": data, "id": "e", "timestamp": "2026-11-21T03:00:00Z", **about}


def copilot_call(call: str, tokens: int, agent: str = "") -> Iterator[JSON]:
    """A message, its usage, and the usage told once more in the older event."""
    yield copilot("assistant.turn_start", agent=agent, turnId=call)
    yield copilot("assistant.message", agent=agent, messageId=call, apiCallId=call, content="Done")
    yield copilot("session.usage_record", agent=agent, usage={"inputTokens": tokens, "apiCallId": call})
    yield copilot("assistant.usage", agent=agent, inputTokens=tokens, apiCallId=call)


def test_copilots_usage_counts_once_and_without_its_sub_agents(tmp_path: Path) -> None:
    ended = copilot("session.compaction_complete", success=True, summaryContent="S", compactionTokensUsed={"input": 99})
    failed = copilot("session.compaction_complete", success=False)
    cut = copilot("session.truncation", messagesRemovedDuringTruncation=1)
    start = copilot("session.start", sessionId="s", selectedModel="m-1")
    of_agent = copilot_call("b", 50, agent="x")
    first, second, third = copilot_call("a", 900), copilot_call("c", 300), copilot_call("d", 200)
    content = lines(
        start, copilot("user.message", content="Hi"), *first, *of_agent, failed, ended, *second, cut, *third
    )
    assert looked_at(tmp_path, content) == FirstLook((900, 300, 200), (1, 2), "m-1")


def gemini(name: str, text: str, tokens: int = 0) -> JSON:
    row = {"type": "gemini", "model": "g", "tokens": {"input": tokens, "cached": 9}} if tokens else {"type": "user"}
    return {"id": name, "timestamp": "2026-11-21T03:00:00Z", "content": [{"text": text}], **row}


GEMINI = {"sessionId": "s", "projectHash": "p", "startTime": "2026-11-21T03:00:00Z"}


def test_geminis_messages_count_once_and_a_new_snapshot_is_a_compaction(tmp_path: Path) -> None:
    rows = [gemini("u1", "Hi"), gemini("a1", "Look", 100), gemini("a1", "Look again", 130), gemini("u2", "Go on")]
    snapshot = {"$set": {"messages": [gemini("z", "<state_snapshot>All</state_snapshot>"), gemini("z2", "Got it")]}}
    content = lines(GEMINI, *rows, gemini("a2", "So", 140), snapshot, gemini("u3", "More"), gemini("a3", "Done", 40))
    assert looked_at(tmp_path, content) == FirstLook((100, 140, 40), (2,), "g")


def test_a_byte_order_mark_costs_no_call(tmp_path: Path) -> None:
    content = lines(chat_record(0, 100), chat_record(1, 140))
    assert looked_at(tmp_path, b"\xef\xbb\xbf" + content).prompt_tokens == (100, 140)


def test_what_geminis_user_took_back_is_no_call(tmp_path: Path) -> None:
    back = {"$rewindTo": "u2"}
    wrong = [gemini("u2", "Wrong"), gemini("a2", "Sorry", 140)]
    content = lines(GEMINI, gemini("u1", "Hi"), gemini("a1", "Yes", 100), *wrong, back, gemini("a3", "Right", 120))
    assert looked_at(tmp_path, content).prompt_tokens == (100, 120)


ASKED: list[JSON] = [{"role": "system", "content": "Be kind"}, {"role": "user", "content": "List the files"}]
ANSWERS: list[JSON] = [{"role": "assistant", "content": f"This is answer {number}"} for number in range(3)]
MORE: list[JSON] = [{"role": "user", "content": "Go on"}]


def chat_record(number: int, tokens: int) -> JSON:
    """The request of that number, which repeats what was said before, and its response."""
    messages = [*ASKED]
    for answer in ANSWERS[:number]:
        messages += [answer, *MORE]
    usage = {"prompt_tokens": tokens, "prompt_tokens_details": {"cached_tokens": 5}}
    response = {"id": f"r{number}", "created": 1763694000 + number, "model": "m", "usage": usage}
    response["choices"] = [{"index": 0, "message": ANSWERS[number]}]
    return {"request": {"model": "asked", "messages": messages}, "response": response}


def test_chat_requests_count_once_and_in_the_order_of_their_times(tmp_path: Path) -> None:
    first, second, third = (chat_record(number, 100 + 40 * number) for number in range(3))
    content = lines(first, third, second, second)
    assert looked_at(tmp_path, content) == FirstLook((100, 140, 180), (), "m")


def test_a_chat_response_may_be_in_pieces_and_a_request_a_text(tmp_path: Path) -> None:
    first, second = chat_record(0, 100), chat_record(1, 140)
    delta = {"object": "chat.completion.chunk", "id": "r1", "created": 1763694001, "model": "m"}
    end = {**delta, "choices": [], "usage": second["response"]["usage"]}
    words = {**delta, "choices": [{"index": 0, "delta": {"content": "This is answer 1"}}]}
    sent = "".join(f"data: {as_text(piece)}\n\n" for piece in (words, end))
    text = as_text(first["request"])
    content = lines({**first, "request": text}, {**first, "request": text}, {**second, "response": sent})
    assert looked_at(tmp_path, content).prompt_tokens == (100, 140)


def as_text(value: JSON) -> str:
    return lines(value).decode().strip()


def test_a_request_that_only_counts_tokens_is_no_call(tmp_path: Path) -> None:
    count = {**chat_record(0, 0), "response": {"input_tokens": 77}}
    assert looked_at(tmp_path, lines(count, chat_record(0, 100))).prompt_tokens == (100,)


def anthropic_record(number: int, messages: list[JSON], content: list[JSON], **usage: int) -> JSON:
    response = {"id": f"m{number}", "type": "message", "role": "assistant", "model": "c", "content": content}
    return {"request": {"system": "Be kind", "messages": messages}, "response": {**response, "usage": usage}}


def test_anthropics_cached_tokens_are_added_and_its_compaction_stands_before_its_own_answer(tmp_path: Path) -> None:
    block = {"type": "compaction", "content": "The user wants a list of files"}
    words = {"type": "text", "text": "Here they are"}
    first = anthropic_record(1, ASKED[1:], [block, words], input_tokens=20, cache_read_input_tokens=80)
    answer = {"role": "assistant", "content": [block, words]}
    second = anthropic_record(2, [*ASKED[1:], answer, *MORE], [words], input_tokens=3, cache_creation_input_tokens=40)
    assert looked_at(tmp_path, lines(first, second)) == FirstLook((100, 43), (0,), "c")
    alone = anthropic_record(1, ASKED[1:], [block], input_tokens=20, cache_read_input_tokens=80)
    later = [*ASKED[1:], {"role": "assistant", "content": [block]}, *MORE]
    second = anthropic_record(2, later, [words], input_tokens=3, cache_creation_input_tokens=40)
    assert looked_at(tmp_path, lines(alone, second)) == FirstLook((100, 43), (0,), "c")


GATEWAYS = [(20_000, 0), (24_000, 19_968), (29_000, 23_936), (31_000, 28_928)]  # input tokens, and cached ones in them


def test_cached_tokens_that_a_gateway_counts_inside_are_not_added_in_a_log(tmp_path: Path) -> None:
    """As in the chart behind the reading."""
    words = [{"type": "text", "text": "Here they are"}]
    log = [
        anthropic_record(at, [*ASKED[1:], *MORE * at], words, input_tokens=fresh, cache_read_input_tokens=read)
        for at, (fresh, read) in enumerate(GATEWAYS)
    ]
    assert looked_at(tmp_path, lines(*log)).prompt_tokens == tuple(fresh for fresh, _ in GATEWAYS)


def test_the_first_message_that_each_request_repeats_is_not_held_for_each(tmp_path: Path) -> None:
    first = {"role": "user", "content": "a large file " * 8_000}
    path = tmp_path / "log.jsonl"
    path.write_bytes(lines(*(anthropic_record(at, [first, *MORE], [], input_tokens=20 + at) for at in range(300))))
    assert peak(lambda: recordings.first_look(path)) < path.stat().st_size / 2


def test_cached_tokens_that_a_gateway_counts_inside_are_not_added_in_a_transcript(tmp_path: Path) -> None:
    rows: list[JSON] = [
        {
            "type": "assistant",
            "uuid": f"u{at}",
            "parentUuid": f"u{at - 1}" if at else None,
            "sessionId": "s",
            "message": {
                "id": f"m{at}",
                "model": "gateway/m",
                "role": "assistant",
                "content": [{"type": "text", "text": "I look"}],
                "usage": {"input_tokens": fresh, "cache_read_input_tokens": read, "output_tokens": 40},
            },
        }
        for at, (fresh, read) in enumerate(GATEWAYS)
    ]
    assert looked_at(tmp_path, lines(*rows)).prompt_tokens == tuple(fresh for fresh, _ in GATEWAYS)


def responses_record(name: str, sent: list[JSON], brought: list[JSON], tokens: int, **more: str) -> JSON:
    response = {"id": name, "object": "response", "model": "m", "output": brought, **more}
    return {"request": {"model": "m", "input": sent}, "response": {**response, "usage": {"input_tokens": tokens}}}


def test_the_call_that_compacted_a_response_stands_apart(tmp_path: Path) -> None:
    user = {"role": "user", "content": "Hi"}
    message = {"type": "message", "id": "a", "role": "assistant", "content": [{"type": "output_text", "text": "Hello"}]}
    sealed = {"type": "compaction", "id": "k", "encrypted_content": "c2VhbGVk"}
    first = responses_record("r1", [user], [message], 100)
    compacted = responses_record("r2", [user, message], [sealed], 120, object="response.compaction")
    last = responses_record("r3", [sealed, user], [message], 30)
    assert looked_at(tmp_path, lines(first, compacted, last)) == FirstLook((100, 30), (1,), "m")


def test_responses_alone_are_calls_too(tmp_path: Path) -> None:
    message = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hello"}]}
    alone = [responses_record(name, [], [message], tokens)["response"] for name, tokens in (("r1", 100), ("r2", 130))]
    assert looked_at(tmp_path, lines(*alone)).prompt_tokens == (100, 130)


def test_an_export_of_ours_is_looked_at_without_its_side_calls(tmp_path: Path) -> None:
    events = tuple(Event(Role.USER if at % 2 == 0 else Role.MODEL, (TextPart(str(at)),)) for at in range(6))
    calls = tuple(ModelCall(at, response=at, prompt_tokens=tokens) for at, tokens in ((1, 100), (3, None), (5, 60)))
    compaction = RecordedCompaction(4, Evidence.DECLARED, "trim", (Span(2, 4),))
    beside = (ModelCall(2, prompt_tokens=7),)
    session = Session(events, calls, compactions=(compaction,), side_calls=beside, model="m")
    assert looked_at(tmp_path, native.write(session)) == FirstLook((100, 60), (1,), "m")


def span(name: str, start: int, parent: str = "", **attributes: str | int) -> JSON:
    listed = [
        {"key": key.replace("__", "."), "value": {"intValue" if isinstance(value, int) else "stringValue": value}}
        for key, value in attributes.items()
    ]
    about = {"name": "chat", "startTimeUnixNano": f"{start}000000000", "attributes": listed}
    return {"traceId": "t", "spanId": name, "parentSpanId": parent, **about}


def call_span(name: str, start: int, tokens: int, **attributes: str | int) -> JSON:
    usage: JSON = {"gen_ai__usage__input_tokens": tokens, "gen_ai__response__model": "m"}
    return span(name, start, "agent", gen_ai__operation__name="chat", **usage, **attributes)


def export(*spans: JSON) -> JSON:
    return {"resourceSpans": [{"scopeSpans": [{"scope": {"name": "sdk"}, "spans": [*spans]}]}]}


def test_only_the_leaf_calls_of_a_trace_count_in_the_order_of_their_times(tmp_path: Path) -> None:
    agent = span("agent", 1, gen_ai__operation__name="invoke_agent", gen_ai__usage__input_tokens=240)
    first, second = call_span("a", 2, 100), call_span("b", 3, 140)
    tool = span("tool", 2, "agent", gen_ai__operation__name="execute_tool")
    content = lines(export(second, tool), export(first), export(first), export(agent))
    assert looked_at(tmp_path, content) == FirstLook((100, 140), (), "m")


def test_tokens_that_a_trace_counts_beside_cached_ones_are_added(tmp_path: Path) -> None:
    cached = {"gen_ai__usage__cache_read__input_tokens": 900}
    content = lines(export(call_span("a", 2, 100)), export(call_span("b", 3, 40, **cached)))
    assert looked_at(tmp_path, content).prompt_tokens == (100, 940)


def run(name: str, kind: str, second: int, **more: Any) -> JSON:
    return {"id": name, "run_type": kind, "trace_id": "t", "start_time": f"2026-11-21T03:00:0{second}", **more}


def answered(tokens: int, text: str) -> JSON:
    data = {"content": text, "usage_metadata": {"input_tokens": tokens}, "response_metadata": {"model_name": "m"}}
    return {"generations": [[{"message": {"type": "ai", "data": data}}]]}


def test_runs_that_are_patched_count_once_and_chains_never(tmp_path: Path) -> None:
    human = {"type": "human", "data": {"content": "Hi"}}
    hello = {"type": "ai", "data": {"content": "Hello"}}
    first = run("a", "llm", 1, inputs={"messages": [[human]]})
    second = run("b", "llm", 2, inputs={"messages": [[human, hello, human]]}, outputs=answered(140, "Bye"))
    chain = run("c", "chain", 0, inputs={"messages": [human]}, outputs=answered(900, "Bye"))
    patch = {"id": "a", "trace_id": "t", "outputs": answered(100, "Hello")}
    content = lines(chain, second, {"post": [first], "patch": [patch]})
    assert looked_at(tmp_path, content) == FirstLook((100, 140), (), "m")


def test_langchains_messages_on_lines_are_looked_at(tmp_path: Path) -> None:
    human = {"type": "human", "content": "Hi", "additional_kwargs": {}}
    first, second = ({"type": "ai", "content": "Yes", "usage_metadata": {"input_tokens": n}} for n in (100, 140))
    assert looked_at(tmp_path, lines(human, first, human, second)).prompt_tokens == (100, 140)


def totals(prompt: int, agent: str = "default") -> JSON:
    metrics = {"model_name": "m", "accumulated_token_usage": {"prompt_tokens": prompt}}
    return sdk("ConversationStateUpdateEvent", value={"usage_to_metrics": {agent: metrics}})


def sdk(kind: str, name: str = "e", **more: Any) -> JSON:
    return {"kind": kind, "id": name, "source": "agent", **more}


def action(name: str, response: str) -> JSON:
    call = {"id": name, "name": "bash", "arguments": "{}"}
    return sdk("ActionEvent", name, tool_call=call, tool_call_id=name, llm_response_id=response)


def test_openhands_totals_become_calls_and_those_of_the_condenser_stand_apart(tmp_path: Path) -> None:
    condensed = sdk("Condensation", "k", forgotten_event_ids=["a"], summary="Short")
    first = [totals(100), action("a", "r1"), action("b", "r1")]
    second = [totals(99, "condenser"), condensed, totals(140), action("c", "r2")]
    assert looked_at(tmp_path, lines(*first, *second)) == FirstLook((100, 40), (1,), "m")


def test_older_openhands_events_carry_the_response_itself(tmp_path: Path) -> None:
    def older(number: int, response: str, tokens: int) -> JSON:
        metrics = {"id": response, "model": "m", "usage": {"prompt_tokens": tokens}}
        about = {"tool_call_id": f"c{number}", "function_name": "bash", "model_response": metrics}
        run = {"id": number, "source": "agent", "action": "run", "args": {"command": "ls"}}
        return {**run, "tool_call_metadata": about}

    content = lines(older(1, "r1", 100), older(2, "r1", 100), older(3, "r2", 140))
    assert looked_at(tmp_path, content).prompt_tokens == (100, 140)


def test_rows_of_an_evaluation_have_no_common_look(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    row = {"instance_id": "i", "history": [{"action": "message", "source": "user", "args": {"content": "Hi"}, "id": 1}]}
    path.write_bytes(lines(row, row))
    assert recordings.first_look(path) is None


# -- hostile files

SPOILS: list[Any] = [None, True, -1, 10**20, 1.5, "many", [], [1], {}, {"id": []}]
CLAUDE: JSON = {"id": "m", "model": "c", "content": [], "usage": {"input_tokens": 90, "cache_read_input_tokens": 5}}
PI: JSON = {"role": "assistant", "model": "p", "content": [], "usage": {"input": 90, "cacheRead": 5, "cacheWrite": 0}}
KINDS: dict[str, list[JSON]] = {
    "compaction-inspector": [{"session": {"model": "m"}}, {"calls": {"at": 1, "prompt_tokens": 9}}],
    "claude-code": [{"type": "assistant", "uuid": "a", "message": CLAUDE}],
    "codex": [
        {"type": "event_msg", "payload": {"type": "token_count", "info": {"last_token_usage": {"input_tokens": 9}}}}
    ],
    "pi": [{"type": "message", "id": "a", "message": PI}, {"type": "compaction", "id": "b"}],
    "copilot-cli": [copilot("session.start", sessionId="s"), *copilot_call("a", 900)],
    "gemini-cli": [GEMINI, {"$set": {"messages": [gemini("u", "Hi")]}}, gemini("a", "Yes", 100), {"$rewindTo": "u"}],
    "openai-chat": [chat_record(0, 100), chat_record(1, 140)],
    "anthropic-messages": [anthropic_record(1, ASKED[1:], [{"type": "text", "text": "Hi"}], input_tokens=20)] * 2,
    "openai-responses": [responses_record("r", [{"role": "user", "content": "Hi"}], [], 100)] * 2,
    "otel": [export(call_span("a", 2, 100)), export(call_span("b", 3, 140))],
    "langchain": [run("a", "llm", 1, outputs=answered(100, "Hello")), run("b", "chain", 2)],
    "openhands": [totals(100), action("a", "r1"), totals(140), action("b", "r2")],
}


def spoiled(value: Any, bad: Any) -> Iterator[Any]:
    """The value with something else in the place of each of its parts, one at a time."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in list(inner):
        for other in (bad, *spoiled(part, bad)):
            copy = value.copy()
            copy[key] = other
            yield copy


@pytest.mark.parametrize("kind", KINDS)
def test_wrong_types_anywhere_are_passed_over(kind: str) -> None:
    good = KINDS[kind]
    format_ = next(each for each in recordings.FORMATS if each.name == kind and isinstance(each, GivesFirstLook))
    for number, line in enumerate(good):
        for other in (other for bad in SPOILS for other in spoiled(line, bad)):
            with recordings.ByteSource.open(lines(*good, *good[:number], other)) as source:
                look = format_.first_look(source)
            assert look is not None
            assert all(0 < tokens <= MAX_TOKENS for tokens in look.prompt_tokens)
            assert all(at < len(look.prompt_tokens) for at in look.compactions)


def test_runs_nested_without_end_are_survived(tmp_path: Path) -> None:
    deep = b'{"run_type":"llm","id":"a","child_runs":[' * 900 + b"{}" + b"]}" * 900
    path = tmp_path / "deep.jsonl"
    path.write_bytes(lines(run("b", "llm", 1, outputs=answered(100, "Hi"))) + deep + b"\n")
    look = recordings.first_look(path)
    assert look is not None
    assert look.prompt_tokens == (100,)


def test_a_session_that_was_read_gives_the_same_look_as_its_lines(transcript: Path) -> None:
    look = recordings.look_at(recordings.read(transcript).sessions[0])
    assert look == recordings.first_look(transcript)


@pytest.mark.parametrize(("at", "steps"), [(0, (0,)), (2, (1,)), (3, (1,)), (9, ())])
def test_a_compaction_stands_before_the_next_call(at: int, steps: tuple[int, ...]) -> None:
    cut = RecordedCompaction(at, Evidence.DECLARED, "summary", (Span(0, 0),))
    edit = RecordedCompaction(1, Evidence.INFERRED, "edit", (Span(0, 0),))
    calls = (ModelCall(1, 1, 10), ModelCall(3, 3, None))
    session = recordings.look_at(Session(events=(), calls=calls, compactions=(edit, cut), model="m"))
    assert (session.prompt_tokens, session.compactions, session.model, session.window) == ((10, 0), steps, "m", 0)
