"""Agents of ADK with a model that answers by a script.

Loading ADK takes long: only the process that runs these tests does, not each one that collects them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.genai import types

from guard_core.integrations.adk import ContextGuardPlugin

SUMMARY = "The user wants the log read."


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

    def __init__(
        self,
        llm: Scripted,
        plugin: ContextGuardPlugin | None = None,
        service: Any = None,
        app: App | None = None,
        session: str = "s",
        **agent: Any,
    ) -> None:
        """Of an `app`, or of one agent with the plugin."""
        if app is None:
            root = LlmAgent(name="coder", model=llm, tools=[read], instruction="Mend programs.", **agent)
            app = App(name="agents", root_agent=root, plugins=[plugin] if plugin else [])
        self.service = service or InMemorySessionService()
        self.runner = Runner(app=app, session_service=self.service)
        self.llm = llm
        self.place = {"app_name": "agents", "user_id": "u", "session_id": session}

    async def say(self, text: str) -> None:
        if await self.service.get_session(**self.place) is None:
            await self.service.create_session(**self.place)
        message = types.Content(role="user", parts=[types.Part(text=text)])
        place = {"user_id": self.place["user_id"], "session_id": self.place["session_id"]}
        async for _ in self.runner.run_async(**place, new_message=message):
            pass

    async def state(self) -> dict[str, Any]:
        return (await self.service.get_session(**self.place)).state


def guarded(record_to: Any = None, **settings: Any) -> ContextGuardPlugin:
    plugin = ContextGuardPlugin(record_to=record_to)
    plugin.add("coder", **settings)
    return plugin


def texts(contents: list[types.Content]) -> list[str]:
    return [content.parts[0].text or "" for content in contents]
