"""A plugin for Google's Agent Development Kit (ADK) that guards its agents; needs the extra `adk`.

plugin = ContextGuardPlugin()
plugin.add("coder", max_tokens=200_000)              # ContextGuard, in its threshold strategy
plugin.add("talker", strategy="sliding", max_turns=30)
plugin.add("researcher", policy="codex")             # or any other policy, with its settings
runner = InMemoryRunner(app=App(name="…", root_agent=agent, plugins=[plugin]))

ContextGuard keeps its state under its own keys, so that sessions of the Go plugin can continue here, and the reverse.
Any other policy keeps its state as JSON under one key. Source: specification of ContextGuard, sections 2, 6 and 11.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from google.adk.agents.callback_context import CallbackContext
from google.adk.agents.llm_agent import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.genai import types
from msgspec.structs import replace

from guard_core.errors import GuardError, SummaryFailed
from guard_core.events import Event, Part, Role, TextPart, ToolCallPart, ToolResultPart
from guard_core.forms import get_form
from guard_core.guarding.dialects import LEFT_OUT
from guard_core.guarding.log import GuardedLog
from guard_core.guarding.summarisers import AskedModel, Prompt, host_loop
from guard_core.integrations.adk_recording import Recordings, RecordTo
from guard_core.policies import get_policy
from guard_core.policies.base import Policy
from guard_core.policies.contextguard import STRATEGIES
from guard_core.policies.contextguard.memory import REAL_TOKENS, TODOS, GuardMemory, dump_memory, load_memory
from guard_core.recordings.formats.adk.parts import content_parts
from guard_core.recordings.reading import chat, normalise
from guard_core.replay import RequestDecision
from guard_core.requests import synthetic_text
from guard_core.sessions import Session
from guard_core.summaries.base import Summarizer, Todo
from guard_core.views import Rewritten, Span, Synthetic, View
from guard_core.windows.models import window_of

logger = logging.getLogger(__name__)

NAME = "context_guard"
STATE = "__guard_state_"  # of a policy other than ContextGuard, followed by the agent's name
MOST_REMEMBERED = 1_000  # conversations; of those before them there is what the session's state holds
Listener = Callable[[str, str, RequestDecision], None]
T = TypeVar("T")


@dataclass(frozen=True)
class _Guarded:
    """How one agent is guarded. `window` 0: that of the request's model."""

    policy: Policy
    window: int
    summarizer: Summarizer | BaseLlm | None


class ContextGuardPlugin(BasePlugin):
    """Compacts the requests of the agents that were added; all others pass untouched.

    `listener` is called after each decision with the agent's name, the session's id and the decision. `record_to`
    gives what the recording of a conversation is written to: the path of a new file, or a `guard_core.streaming.Client`
    that sends it to an inspector. Each agent of a session has a recording of its own; of more than 100 conversations
    the one that was idle longest is ended. Whatever goes wrong in a guard or a recording is logged, and the request is
    sent as it was.
    """

    def __init__(self, listener: Listener | None = None, record_to: RecordTo | None = None) -> None:
        super().__init__(name=NAME)
        self._recordings = None if record_to is None else Recordings(record_to)
        self._guarded: dict[str, _Guarded] = {}
        self._waiting: dict[tuple[str, str], GuardedLog] = {}
        self._memories: dict[tuple[str, str], GuardMemory] = {}
        self._listener = listener

    def add(
        self,
        agent: str,
        *,
        strategy: str = "threshold",
        policy: str = "",
        max_tokens: int = 0,
        summarizer: Summarizer | BaseLlm | None = None,
        **settings: Any,
    ) -> None:
        """Guard the agent of a name, in place of how it was guarded before.

        `strategy` of ContextGuard: "threshold" or "sliding"; `policy`: any other one of the registry. `max_tokens` is
        the window in tokens (0: that of the model; the sliding strategy always takes the model's). `summarizer`: a
        model, or what gives summaries; the agent's own model by default. `settings` are the policy's (`max_turns`,
        `max_passes` …). Raises SettingError and UnknownName.
        """
        if not policy and strategy not in STRATEGIES:
            raise GuardError(f"ContextGuard's strategies are {' and '.join(STRATEGIES)}, not {strategy[:40]!r}")
        chosen = get_policy(policy or STRATEGIES[strategy], **settings)
        window = max_tokens if policy or strategy == "threshold" else 0
        self._guarded[agent] = _Guarded(chosen, max(window, 0), summarizer)

    async def before_model_callback(
        self, *, callback_context: CallbackContext, llm_request: LlmRequest
    ) -> LlmResponse | None:
        """Decide, and put the view in place of the request's contents."""
        guarded = self._guarded.get(callback_context.agent_name)
        if guarded is None or not llm_request.contents:
            return None
        try:
            with host_loop(asyncio.get_running_loop()):
                await self._guard(guarded, callback_context, llm_request)
        except Exception:
            logger.warning("the guard of agent %s failed; its request is sent as it is", callback_context.agent_name)
            logger.debug("why the guard failed", exc_info=True)
        return None

    async def after_model_callback(
        self, *, callback_context: CallbackContext, llm_response: LlmResponse
    ) -> LlmResponse | None:
        """Remember what the provider counted; pieces of a streamed answer have no count that could be trusted."""
        agent = callback_context.agent_name
        guarded = self._guarded.get(agent)
        if guarded is None or llm_response.partial:
            return None
        if self._recordings is not None:
            event = _event(llm_response.content) if llm_response.content and llm_response.content.parts else None
            self._recordings.answered((callback_context.session.id, agent), event, llm_response)
        usage = llm_response.usage_metadata
        tokens = usage.prompt_token_count if usage is not None else None
        state = callback_context.state
        if guarded.policy.state_type is GuardMemory:
            if tokens is not None and tokens > 0:
                state[REAL_TOKENS + agent] = tokens
            return None
        log = self._waiting.pop((callback_context.session.id, agent), None)
        if log is not None and log.asked is not None:
            log.answered(tokens)
            state[STATE + agent] = log.dump().decode()
        return None

    async def close(self) -> None:
        """End the recordings."""
        if self._recordings is not None:
            await asyncio.to_thread(self._recordings.close)

    async def _guard(self, guarded: _Guarded, context: CallbackContext, request: LlmRequest) -> None:
        agent, session = context.agent_name, context.session.id
        events = [_event(content) for content in request.contents]
        system, listed = _system(request), request.config.tools if request.config else None
        declared = [_dumped(tool) for tool in listed or () if hasattr(tool, "model_dump")]
        tools = chat.tool_definitions(declared) if listed else None
        window = guarded.window or window_of(Session(events=(), model=request.model or ""))
        summarizer = guarded.summarizer
        if summarizer is None or isinstance(summarizer, BaseLlm):
            summarizer = asked_llm(summarizer or _model_of(context))
        tokens = window if isinstance(window, int) else window.value
        log = GuardedLog(guarded.policy, tokens, summarizer=summarizer, system=system, tools=tools)
        keeps_keys = guarded.policy.state_type is GuardMemory
        if keeps_keys:
            log.state = self._memory(context, agent, session)
            # The user's request of this invocation is the first text that is not empty.
            parts = (context.user_content.parts if context.user_content else None) or []
            log.request = normalise.clean(next((part.text for part in parts if part.text), ""))
        elif stored := context.state.get(STATE + agent):
            log.restore(str(stored).encode())
        log.extend(events)
        log.todos = _todos(context.state.get(TODOS))
        asked = await asyncio.to_thread(log.ask)
        request.contents = _contents(asked.decision.view, events, request.contents)
        if keeps_keys:
            _remember(self._memories, (session, agent), asked.decision.state)
            for key, value in dump_memory(asked.decision.state, agent).items():
                context.state[key] = value
        else:
            _remember(self._waiting, (session, agent), log)
        if self._recordings is not None:
            self._recordings.asked(
                (session, agent), guarded.policy, window, request.model or "", events, system, tools, asked
            )
        if self._listener is not None:
            self._listener(agent, session, asked)

    def _memory(self, context: CallbackContext, agent: str, session: str) -> GuardMemory:
        """What the session's state holds, and what a process remembers besides as long as it has that state."""
        stored = load_memory(context.state.to_dict(), agent)
        known = self._memories.get((session, agent))
        if known is None or (known.summary_text or "", known.watermark) != (stored.summary_text, stored.watermark):
            return stored
        return replace(known, real_tokens=stored.real_tokens, last_heuristic=stored.last_heuristic)


def _remember(some: dict[tuple[str, str], T], conversation: tuple[str, str], value: T) -> None:
    """Keep a value for a conversation, and forget the one that was set longest ago where there are too many: a server
    has any number of sessions, and hears of none that it ends."""
    some.pop(conversation, None)
    some[conversation] = value
    if len(some) > MOST_REMEMBERED:
        del some[next(iter(some))]


def _model_of(context: CallbackContext) -> BaseLlm:
    """The model of the agent itself, which summarises unless another one was given."""
    agent = context._invocation_context.agent
    if not isinstance(agent, LlmAgent):
        raise GuardError("this agent has no model that could summarise: give one with `summarizer`")
    return agent.canonical_model


def asked_llm(llm: BaseLlm) -> AskedModel:
    """Summaries by a model of the framework."""

    async def ask(prompt: Prompt) -> str:
        config = types.GenerateContentConfig(
            system_instruction=prompt.system, max_output_tokens=max(prompt.output_tokens, 1)
        )
        content = types.Content(role="user", parts=[types.Part(text=prompt.user)])
        request = LlmRequest(model=llm.model, contents=[content], config=config)
        texts: list[str] = []
        async for response in llm.generate_content_async(request, stream=False):
            if response.error_code:
                raise SummaryFailed(f"the model answered with {response.error_code}")
            parts = (response.content.parts if response.content else None) or []
            texts += [part.text for part in parts if part.text]
        return "".join(texts)

    return AskedModel(ask, name=f"model:{llm.model}")


def _dumped(value: Any) -> dict[str, Any]:
    """A value of the framework as JSON that can be counted and written: names of files, for one, may be no text that
    UTF-8 has. What is sent stays as it was."""
    dumped: dict[str, Any] = normalise.tree(value.model_dump(mode="json", exclude_none=True))[0]
    return dumped


def _event(content: types.Content) -> Event:
    role = Role.MODEL if content.role == "model" else Role.USER
    return Event(role, content_parts(_dumped(content)))


def _system(request: LlmRequest) -> tuple[Part, ...] | None:
    given = request.config.system_instruction if request.config else None
    if given is None:
        return None
    if isinstance(given, str):
        return (TextPart(normalise.clean(given)),)
    items = given if isinstance(given, list) else [given]
    texts = (item if isinstance(item, str) else None for item in items)
    contents = (_dumped(item) for item in items if not isinstance(item, str) and hasattr(item, "model_dump"))
    parts = tuple(TextPart(normalise.clean(text)) for text in texts if text is not None)
    return (
        *parts,
        *(part for item in contents for part in content_parts(item if "parts" in item else {"parts": [item]})),
    )


def _todos(value: Any) -> tuple[Todo, ...]:
    given = [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []
    items = [normalise.tree(dict(item))[0] for item in given]
    names = (("content", "status", "activeForm"), ("content", "status", "active_form"))
    return tuple(
        Todo(*(next((str(item[name]) for name in pair if item.get(name)), "") for pair in zip(*names, strict=True)))
        for item in items
    )


def _contents(view: View, events: Sequence[Event], contents: Sequence[types.Content]) -> list[types.Content]:
    """The contents of a view: the very ones of the request where the policy left them as they were."""
    written: list[types.Content] = []
    for segment in view:
        match segment:
            case Span(start, stop, form):
                for place in range(start, stop):
                    event = get_form(form).message(events[place]) if form else events[place]
                    written += _changed(event, events[place], contents[place])
            case Rewritten(place, message):
                written += _changed(message, events[place], contents[place])
            case Synthetic(role=role) if (text := synthetic_text(segment)).strip():  # else no API takes the message
                name = "model" if role is Role.MODEL else "user"
                written.append(types.Content(role=name, parts=[types.Part(text=text)]))
    # Gemini refuses a history that starts with a call: https://github.com/google-gemini/gemini-cli/issues/11814
    if written and written[0].role == "model" and contents[0].role != "model":
        written.insert(0, types.Content(role="user", parts=[types.Part(text=LEFT_OUT)]))
    return written


def _changed(event: Event, old: Event, content: types.Content) -> list[types.Content]:
    if event == old:
        return [content]
    known = [(content_parts({"parts": [_dumped(part)]}), part) for part in content.parts or []]
    same = (next((raw for read, raw in known if part in read), None) or _part(part) for part in event.parts)
    kept: list[types.Part] = []
    for part in same:
        if part is not None and not any(part is other for other in kept):  # a signed part is read as two
            kept.append(part)
    return [types.Content(role=content.role, parts=kept)] if kept else []


def _part(part: Part) -> types.Part | None:
    match part:
        case TextPart(text):
            return types.Part(text=text)
        case ToolCallPart():
            arguments = part.arguments if isinstance(part.arguments, dict) else {}
            return types.Part(function_call=types.FunctionCall(id=part.id or None, name=part.name, args=arguments))
        case ToolResultPart():
            given = part.content if isinstance(part.content, dict) else {"result": part.content}
            response = types.FunctionResponse(id=part.call_id or None, name=part.name, response=given)
            return types.Part(function_response=response)
    return None
