"""LangChain's own messages under a guard, in a loop and as LangGraph's hook."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

pytest.importorskip("langchain_core")

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from guard_core import Recorder
from guard_core.errors import GuardError
from guard_core.guarding.summarisers import AskedModel
from guard_core.integrations.langchain import LangChainGuard
from guard_core.recordings import read

WINDOW = 20_000
SUMMARY = "Mending the parser."


def tokens_of(messages: list[BaseMessage]) -> int:
    return sum(len(str(message.content)) for message in messages) // 4


def answer_to(messages: list[BaseMessage], number: int) -> AIMessage:
    usage = {"input_tokens": tokens_of(messages), "output_tokens": 10, "total_tokens": tokens_of(messages) + 10}
    calls = [{"name": "read", "args": {"n": number}, "id": f"c{number}"}]
    return AIMessage("", tool_calls=calls, usage_metadata=usage, id=f"a{number}")


def asked() -> AskedModel:
    return AskedModel(lambda prompt: SUMMARY)


def run(guard: LangChainGuard, steps: int) -> tuple[list[BaseMessage], list[list[BaseMessage]]]:
    """An agent that reads something long at every step: its whole history, and what it sent."""
    history: list[BaseMessage] = [SystemMessage("You mend parsers."), HumanMessage("Mend it.")]
    sent = []
    for number in range(steps):
        messages = guard.before_call(history)
        sent.append(messages)
        history.append(answer_to(messages, number))
        history.append(ToolMessage("x" * 12_000, tool_call_id=f"c{number}", name="read", artifact={"n": number}))
    return history, sent


def test_a_loop_is_compacted_and_keeps_its_whole_history():
    guard = LangChainGuard("contextguard", window=WINDOW, summarizer=asked())
    history, sent = run(guard, 12)
    assert len(history) == 2 + 24
    assert max(map(tokens_of, sent)) < WINDOW
    compacted = [messages for messages in sent if any(SUMMARY in str(message.content) for message in messages)]
    assert compacted
    assert all(messages[0] is history[0] for messages in sent)
    originals = {id(message) for message in history}
    assert [id(message) in originals for message in compacted[-1]].count(False) <= 2  # summary and continuation


def test_a_recording_has_each_answer_at_once_and_what_was_sent(tmp_path):
    guard = LangChainGuard("contextguard", window=WINDOW, summarizer=asked())
    recorder = Recorder(tmp_path / "chain.jsonl", agent="chain")
    history: list[BaseMessage] = [SystemMessage("You mend parsers."), HumanMessage("Mend it.")]
    sent = []
    for number in range(12):
        sent.append(guard.before_call(history))
        history.append(answer_to(sent[-1], number))
        guard.take(history)
        recorder.record(guard)
        (session,) = read(tmp_path / "chain.jsonl").sessions
        assert [call.prompt_tokens for call in session.calls] == list(map(tokens_of, sent))
        history.append(ToolMessage("x" * 12_000, tool_call_id=f"c{number}", name="read"))
        guard.take(history)
    recorder.close(guard)
    (session,) = read(tmp_path / "chain.jsonl").sessions
    assert (session.agent, session.window.value, session.title) == ("chain", WINDOW, "Mend it.")
    assert len(session.events) == len(history) - 1  # the system prompt is none of them
    assert session.compactions
    other = LangChainGuard("contextguard", window=WINDOW, summarizer=asked())
    _, untaken = run(other, 12)
    assert [[m.content for m in messages] for messages in untaken] == [[m.content for m in one] for one in sent]


def test_what_the_provider_counted_is_read_from_the_answer():
    guard = LangChainGuard("none", window=WINDOW)
    _, sent = run(guard, 3)
    assert [call.prompt_tokens for call in guard.guard.session.calls][:2] == [tokens_of(sent[0]), tokens_of(sent[1])]


def test_a_result_that_is_shortened_keeps_what_the_program_put_beside_it():
    guard = LangChainGuard("inspect-edit", window=WINDOW)
    history, sent = run(guard, 8)
    shortened = [
        message
        for messages in sent
        for message in messages
        if isinstance(message, ToolMessage) and len(message.content) < 12_000
    ]
    assert shortened
    assert all(message.artifact and message.name == "read" for message in shortened)
    assert all(len(message.content) == 12_000 for message in history if isinstance(message, ToolMessage))


def test_a_request_that_failed_is_made_again_as_if_it_had_not_been():
    guard, other = (LangChainGuard("contextguard", window=WINDOW, summarizer=asked()) for _ in range(2))
    history, _ = run(guard, 5)
    run(other, 5)
    first = guard.before_call(history)
    assert guard.before_call(history) == first == other.before_call(history)


def test_a_turn_that_failed_may_be_taken_back_as_if_it_had_not_been():
    guard, other = (LangChainGuard("contextguard", window=WINDOW, summarizer=asked()) for _ in range(2))
    history, _ = run(guard, 5)
    run(other, 5)
    history += [AIMessage("Mended."), HumanMessage("Mend the next one.")]
    failing = list(history)
    for number in range(5, 10):
        guard.before_call(failing)
        failing += [answer_to(failing, number), ToolMessage("x" * 12_000, tool_call_id=f"c{number}", name="read")]
    guard.before_call(failing)  # and no answer
    history[-1] = HumanMessage("Or rather another one.")
    assert guard.before_call(history) == other.before_call(history)
    assert guard.recorded == other.recorded
    with pytest.raises(GuardError, match="another conversation"):
        guard.before_call([HumanMessage("two")])


def test_langgraphs_hook_gives_the_model_its_messages_and_leaves_the_state_whole():
    guard = LangChainGuard("contextguard", window=WINDOW, summarizer=asked())
    history, _ = run(guard, 6)
    state = {"messages": history}
    assert guard.pre_model_hook(state) == {"llm_input_messages": guard.before_call(history)}
    assert state["messages"] is history


class Request(NamedTuple):
    """What a middleware of `langchain.agents` is given, as far as a guard looks at it."""

    messages: list[BaseMessage]

    def override(self, **more: Any) -> Request:
        return self._replace(**more)


async def test_as_a_middleware_it_gives_the_model_its_messages():
    guard = LangChainGuard("contextguard", window=WINDOW, summarizer=asked())
    history, _ = run(guard, 6)
    expected = guard.before_call(history)
    assert len(expected) < len(history)
    assert guard.wrap_model_call(Request(history), lambda request: request.messages) == expected

    async def handler(request: Request) -> list[BaseMessage]:
        return request.messages

    assert await guard.awrap_model_call(Request(history), handler) == expected


async def test_a_model_of_the_library_takes_what_the_guard_gives():
    model = GenericFakeChatModel(messages=iter([AIMessage("first"), AIMessage("second")]))
    guard = LangChainGuard("contextguard", window=WINDOW)
    history: list[BaseMessage] = [HumanMessage([{"type": "text", "text": "Look at this."}])]
    for _ in range(2):
        history.append(await model.ainvoke(await guard.before_call_async(history)))
    assert [message.content for message in history[1:]] == ["first", "second"]


def test_the_history_of_another_conversation_is_refused():
    guard = LangChainGuard("contextguard", window=WINDOW)
    guard.before_call([HumanMessage("one")])
    with pytest.raises(GuardError, match="another conversation"):
        guard.before_call([HumanMessage("two")])


def test_the_loop_of_the_readme_ends_guarded(readme_code):
    sent: list[list[BaseMessage]] = []

    class Model:
        def invoke(self, messages: list[BaseMessage]) -> AIMessage:
            sent.append(messages)
            return answer_to(messages, len(sent)) if len(sent) < 50 else AIMessage("done")

    def run_tools(message: AIMessage) -> list[BaseMessage]:
        return [ToolMessage("x" * 40_000, tool_call_id=call["id"]) for call in message.tool_calls]

    messages: list[BaseMessage] = [HumanMessage("Mend it.")]
    exec(readme_code("langchain"), {"messages": messages, "model": Model(), "run_tools": run_tools})
    assert len(messages) == 1 + 2 * 49 + 1
    assert max(map(tokens_of, sent)) < 200_000 < tokens_of(messages)
