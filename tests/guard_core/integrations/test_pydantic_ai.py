"""A real agent of Pydantic AI under a guard: its history processor, over several runs of one conversation."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("pydantic_ai")

from pydantic_ai import Agent
from pydantic_ai.capabilities import ProcessHistory
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.usage import RequestUsage

from guard_core import Recorder
from guard_core.errors import GuardError
from guard_core.guarding.summarisers import AskedModel
from guard_core.integrations.pydantic_ai import PydanticAIGuard
from guard_core.recordings import read

WINDOW = 20_000
SUMMARY = "Mending the parser."
STEPS = 8  # calls of a run


def tokens_of(messages: list[ModelMessage]) -> int:
    return sum(len(str(getattr(part, "content", ""))) for message in messages for part in message.parts) // 4


class Scripted:
    """An agent that reads something long at every step, and what its model was sent."""

    def __init__(self, guard: PydanticAIGuard) -> None:
        self.sent: list[list[ModelMessage]] = []
        self.fails_at = 0  # the number of the request, from 1, at which the provider is away
        self.agent: Agent[None, str] = Agent(
            FunctionModel(self._answer),
            system_prompt="You mend parsers.",
            instructions="Be brief.",
            capabilities=[ProcessHistory(guard.process)],
        )
        self.agent.tool_plain(self.read)

    def read(self, number: int) -> str:
        """Read a file."""
        return "x" * 12_000

    def _answer(self, messages: list[ModelMessage], info: Any) -> ModelResponse:
        self.sent.append(list(messages))
        number = len(self.sent)
        if number == self.fails_at:
            raise ConnectionError("the provider is away")
        parts = [ToolCallPart("read", {"number": number})] if number % STEPS else [TextPart("done")]
        return ModelResponse(parts=parts, usage=RequestUsage(input_tokens=tokens_of(messages), output_tokens=5))


def guarded(policy: str = "contextguard") -> tuple[PydanticAIGuard, Scripted]:
    guard = PydanticAIGuard(policy, window=WINDOW, summarizer=AskedModel(lambda prompt: SUMMARY))
    return guard, Scripted(guard)


@pytest.mark.parametrize("policy", ["contextguard", "codex", "opencode", "contextguard-sliding"])
async def test_a_conversation_stays_within_the_window_over_several_runs(policy):
    guard, scripted = guarded(policy)
    history: list[ModelMessage] = []
    for task in ("Mend it.", "Again.", "Once more."):
        result = await scripted.agent.run(task, message_history=history)
        history = result.all_messages()
        assert result.output == "done"
    assert len(scripted.sent) == 3 * STEPS
    if policy != "contextguard-sliding":  # which counts turns
        assert max(map(tokens_of, scripted.sent)) < WINDOW
    assert guard.guard.recorded.compactions
    whole = guard.guard.session
    assert len(whole.calls) == 3 * STEPS
    assert sum(tokens == tokens_of(sent) for tokens, sent in zip(counts(guard), scripted.sent)) == 3 * STEPS - 1
    assert len(history) < len(whole.events), "the agent goes on with the compacted history"


def counts(guard: PydanticAIGuard) -> list[int | None]:
    return [call.prompt_tokens for call in guard.guard.session.calls]


async def test_the_summary_is_sent_and_every_call_keeps_its_result():
    _, scripted = guarded()
    await scripted.agent.run("Mend it.")
    assert any(SUMMARY in str(messages) for messages in scripted.sent)
    for messages in scripted.sent:
        calls = {p.tool_call_id for m in messages for p in m.parts if isinstance(p, ToolCallPart)}
        results = {p.tool_call_id for m in messages for p in m.parts if isinstance(p, ToolReturnPart)}
        assert calls == results


async def test_a_run_that_failed_leaves_a_guard_that_goes_on_with_the_history_from_before_it():
    guard, scripted = guarded()
    history = (await scripted.agent.run("Mend it.")).all_messages()
    begun = len(history)
    for _ in range(2):
        scripted.fails_at = len(scripted.sent) + 3
        with pytest.raises(ConnectionError):
            await scripted.agent.run("Again.", message_history=history)
    scripted.fails_at = 0
    del scripted.sent[STEPS:]
    result = await scripted.agent.run("Again.", message_history=history)
    assert (result.output, len(history)) == ("done", begun)
    assert len(guard.guard.session.calls) == 2 * STEPS, "those of the runs that failed are not in the conversation"


async def test_what_is_left_as_it_was_is_the_very_message():
    guard = PydanticAIGuard("none", window=WINDOW)
    history: list[ModelMessage] = [
        ModelRequest(parts=[UserPromptPart("Mend it.")]),
        ModelResponse(parts=[ToolCallPart("read", {"number": 1}, "c1")], usage=RequestUsage(input_tokens=9)),
        ModelRequest(parts=[ToolReturnPart("read", "x", "c1"), UserPromptPart(["And this?"])]),
    ]
    sent = await guard.process(history)
    assert all(one is other for one, other in zip(sent, history, strict=True))


async def test_a_recording_has_the_last_answer_of_every_run(tmp_path):
    guard, agent = guarded()
    recorder = Recorder(tmp_path / "agent.jsonl", agent="mender")
    history: list[ModelMessage] = []
    for number in range(3):
        result = await agent.agent.run(f"Mend parser {number}.", message_history=history)
        history = result.all_messages()
        guard.take(history)
        recorder.record(guard)
        (session,) = read(tmp_path / "agent.jsonl").sessions
        assert [call.prompt_tokens for call in session.calls] == list(map(tokens_of, agent.sent))
        assert session.events[-1].parts[0].text == "done"
    recorder.close(guard)
    (session,) = read(tmp_path / "agent.jsonl").sessions
    assert (session.title, len(session.calls), bool(session.compactions)) == ("Mend parser 0.", 3 * STEPS, True)


async def test_the_history_of_another_conversation_is_refused():
    guard = PydanticAIGuard("contextguard", window=WINDOW)
    await guard.process([ModelRequest(parts=[UserPromptPart("one")])])
    with pytest.raises(GuardError, match="another conversation"):
        await guard.process([ModelRequest(parts=[UserPromptPart("two")])])


async def test_the_agent_of_the_readme_runs_guarded(readme_code):
    sent: list[list[ModelMessage]] = []

    def read(number: int) -> str:
        """Read a file."""
        return "x" * 40_000

    def answer(messages: list[ModelMessage], info: Any) -> ModelResponse:
        sent.append(list(messages))
        parts = [ToolCallPart("read", {"number": 1})] if len(sent) < 30 else [TextPart("done")]
        return ModelResponse(parts=parts, usage=RequestUsage(input_tokens=tokens_of(messages)))

    given: dict[str, Any] = {
        "Agent": Agent,
        "ProcessHistory": ProcessHistory,
        "read": read,
        "model": FunctionModel(answer),
    }
    exec(readme_code("pydantic_ai"), given)
    result = await given["agent"].run("Mend it.")
    assert result.output == "done"
    assert len(sent) == 30
    assert max(map(tokens_of, sent)) < 200_000
    assert given["guard"].guard.recorded.compactions
