"""The plugin in real ADK runs: a real Runner, a real session service, and a model that answers by a script."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.genai import types

from guard_core.errors import GuardError, UnknownName
from guard_core.integrations.adk import ContextGuardPlugin

SUMMARY, MARK = "The user wants the log read.", "[Previous conversation summary]"
WATERMARK, REAL, STORED = (
    f"__context_guard_{name}_coder" for name in ("contents_at_compaction", "real_tokens", "summary")
)

# ADK marks its own plugin and model interfaces as experimental, and its database layer warns of its own columns.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")


class Scripted(BaseLlm):
    """A model that answers the n-th request with the n-th answer, and counts prompt tokens by a rule."""

    model: str = "scripted"
    answers: list[Any] = []
    count: Callable[[LlmRequest], int | None] = lambda request: None
    sent: list[list[types.Content]] = []
    asked: list[str] = []
    fails: bool = False

    async def generate_content_async(self, llm_request: LlmRequest, stream: bool = False) -> AsyncIterator[LlmResponse]:
        prompt = llm_request.contents[0].parts[0].text or ""
        if "[Conversation to summarize]" in prompt:
            self.asked.append(prompt)
            if self.fails:
                raise ConnectionError("the provider is away")
            yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text=SUMMARY)]))
            return
        self.sent.append(list(llm_request.contents))
        answer = self.answers[min(len(self.sent), len(self.answers)) - 1]
        parts = [types.Part(text=answer)] if isinstance(answer, str) else answer
        tokens = self.count(llm_request)
        usage = types.GenerateContentResponseUsageMetadata(prompt_token_count=tokens) if tokens is not None else None
        yield LlmResponse(
            content=types.Content(role="model", parts=[types.Part(text="…")]),
            partial=True,
            usage_metadata=types.GenerateContentResponseUsageMetadata(prompt_token_count=7),
        )
        yield LlmResponse(content=types.Content(role="model", parts=parts), usage_metadata=usage)


def call(*sizes: int) -> list[types.Part]:
    """Parallel calls of the tool."""
    return [types.Part(function_call=types.FunctionCall(name="read", args={"size": size})) for size in sizes]


def read(size: int) -> dict[str, str]:
    """Reads so many characters."""
    return {"text": "r" * size}


def by_size(ratio: float) -> Callable[[LlmRequest], int]:
    """A provider that counts 200 tokens for instructions and tools, and all contents by their size times a ratio."""

    def count(request: LlmRequest) -> int:
        parts = (part for content in request.contents for part in content.parts)
        return 200 + int(sum(len(str(part.model_dump(exclude_none=True))) for part in parts) // 4 * ratio)

    return count


class Agents:
    """A runner with one session, whose agent is guarded."""

    def __init__(self, llm: Scripted, plugin: ContextGuardPlugin, service: Any = None, **agent: Any) -> None:
        root = LlmAgent(name="coder", model=llm, tools=[read], instruction="Mend programs.", **agent)
        app = App(name="agents", root_agent=root, plugins=[plugin])
        self.service = service or InMemorySessionService()
        self.runner = Runner(app=app, session_service=self.service)
        self.llm = llm

    async def say(self, text: str) -> None:
        if await self.service.get_session(app_name="agents", user_id="u", session_id="s") is None:
            await self.service.create_session(app_name="agents", user_id="u", session_id="s")
        message = types.Content(role="user", parts=[types.Part(text=text)])
        async for _ in self.runner.run_async(user_id="u", session_id="s", new_message=message):
            pass

    async def state(self) -> dict[str, Any]:
        return (await self.service.get_session(app_name="agents", user_id="u", session_id="s")).state


def guarded(**settings: Any) -> ContextGuardPlugin:
    plugin = ContextGuardPlugin()
    plugin.add("coder", **settings)
    return plugin


def texts(contents: list[types.Content]) -> list[str]:
    return [content.parts[0].text or "" for content in contents]


async def test_a_summary_takes_the_place_of_the_history_in_all_later_turns():
    llm = Scripted(answers=[call(60_000), "done", "again", "more"], sent=[], asked=[], count=by_size(2.0))
    agents = Agents(llm, guarded(max_tokens=20_000))
    await agents.say("Read the log.")
    assert len(llm.asked) == 1
    assert "user: Read the log." in llm.asked[0]
    assert MARK in texts(llm.sent[1])[0]
    assert SUMMARY in texts(llm.sent[1])[0]
    assert "Read the log." in texts(llm.sent[1])[-1], "the continuation quotes the user's request"
    await agents.say("And now?")
    assert MARK in texts(llm.sent[2])[0]
    assert texts(llm.sent[2])[1:] == ["done", "And now?"], "what the summary stands for is not sent again"
    await agents.say("Once more.")
    assert len(llm.asked) == 1, "nothing is compacted twice without growth"
    state = await agents.state()
    assert state[STORED] == SUMMARY
    assert state[WATERMARK] == 3
    assert state[REAL] == by_size(2.0)(LlmRequest(contents=llm.sent[3]))


async def test_the_loop_of_the_field_report_does_not_come_back():
    """228,967 tokens against a threshold of 120,000: without a watermark every later step compacted again."""
    counts = iter([228_967, 8_756, 8_900, 9_000, 9_100])
    llm = Scripted(
        answers=[call(400_000), "done", call(100), "done", "done"],
        sent=[],
        asked=[],
        count=lambda request: next(counts),
    )
    agents = Agents(llm, guarded(max_tokens=150_000))
    await agents.say("Find the fault.")
    assert len(llm.asked) == 1
    for words in ("Go on.", "And then?"):
        await agents.say(words)
    assert len(llm.asked) == 1
    assert (await agents.state())[REAL] == 9_100
    assert all(MARK in texts(contents)[0] for contents in llm.sent[1:])


async def test_a_result_that_arrives_between_two_counts_fires_by_the_calibrated_estimate():
    """The timing gap: the last count is far below the threshold, the result that came after it is not."""
    llm = Scripted(answers=["hello", call(200_000), "done"], sent=[], asked=[], count=by_size(2.0))
    agents = Agents(llm, guarded(max_tokens=100_000))
    await agents.say("Hello. " + "w" * 4_000)
    assert (await agents.state())[REAL] < 10_000
    await agents.say("Read it.")
    assert len(llm.asked) == 1
    assert MARK in texts(llm.sent[2])[0]


async def test_parallel_results_a_failing_summariser_and_todos():
    llm = Scripted(answers=[call(30_000, 30_000), "done"], sent=[], asked=[], count=by_size(2.0), fails=True)
    agents = Agents(llm, guarded(max_tokens=20_000))
    await agents.service.create_session(
        app_name="agents",
        user_id="u",
        session_id="s",
        state={"todos": [{"content": "mend it", "status": "pending", "activeForm": "mending"}]},
    )
    await agents.say("Read both.")
    assert "- [pending] mend it" in llm.asked[0]
    assert texts(llm.sent[1])[0].startswith(MARK), "a mechanical summary"
    assert "Read both." in texts(llm.sent[1])[0]


async def test_a_session_goes_on_in_another_process(tmp_path):
    llm = Scripted(answers=[call(60_000), "done"], sent=[], asked=[], count=by_size(2.0))
    await Agents(llm, guarded(max_tokens=20_000), SqliteSessionService(str(tmp_path / "s.db"))).say("Read the log.")
    other = Scripted(answers=["yes"], sent=[], asked=[], count=by_size(2.0))
    again = Agents(other, guarded(max_tokens=20_000), SqliteSessionService(str(tmp_path / "s.db")))
    await again.say("Still there?")
    assert texts(other.sent[0])[0] == texts(llm.sent[1])[0]
    assert texts(other.sent[0])[1:] == ["done", "Still there?"]
    assert not other.asked


async def test_agents_of_one_session_are_kept_apart_and_others_pass_untouched():
    helper_llm = Scripted(model="helper", answers=["helped"], sent=[], asked=[], count=by_size(2.0))
    helper = LlmAgent(name="helper", model=helper_llm)
    transfer = [types.Part(function_call=types.FunctionCall(name="transfer_to_agent", args={"agent_name": "helper"}))]
    llm = Scripted(answers=[call(60_000), transfer], sent=[], asked=[], count=by_size(2.0))
    agents = Agents(llm, guarded(max_tokens=20_000), sub_agents=[helper])
    await agents.say("Read the log.")
    assert helper_llm.sent
    assert not any(MARK in text for text in texts(helper_llm.sent[0]))
    state = await agents.state()
    assert {key for key in state if key.startswith("__context_guard_")} == {
        f"__context_guard_{name}_coder"
        for name in ("summary", "summarized_at", "contents_at_compaction", "real_tokens", "last_heuristic")
    }


async def test_any_other_policy_guards_too_and_keeps_its_state_in_the_session():
    llm = Scripted(
        answers=[call(40_000), call(41_000), call(42_000), "done", "yes"], sent=[], asked=[], count=by_size(2.0)
    )
    agents = Agents(llm, guarded(policy="anthropic-clear-tool-uses", max_tokens=200_000, trigger=20_000, keep=1))
    await agents.say("Read the three.")
    responses = [part.function_response for content in llm.sent[3] for part in content.parts if part.function_response]
    assert [len(str(item.response)) > 10_000 for item in responses] == [False, False, True]
    await agents.say("All of them?")
    assert [content.role for content in llm.sent[4]] == [content.role for content in llm.sent[3]] + ["model", "user"]
    assert "__guard_state_coder" in await agents.state()


async def test_a_guard_that_fails_lets_the_request_pass(caplog):
    class Broken:
        name = "broken"

        def summarise(self, request: Any) -> Any:
            raise RuntimeError("no")

    llm = Scripted(answers=[call(60_000), "done"], sent=[], asked=[], count=by_size(2.0))
    agents = Agents(llm, guarded(max_tokens=20_000, summarizer=Broken()))
    await agents.say("Read the log.")
    assert texts(llm.sent[1])[0] == "Read the log."
    assert "sent as it is" in caplog.text


def test_what_cannot_be_is_refused():
    with pytest.raises(GuardError, match="threshold and sliding"):
        guarded(strategy="hope")
    with pytest.raises(UnknownName):
        guarded(policy="hope")
