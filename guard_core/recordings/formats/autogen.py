"""AutoGen (AgentChat): the saved state of an agent or a team (`save_state()`), and the result of a run (`TaskResult`).

A state has each agent's context (`llm_context.messages`) as it is sent behind the system prompt, without counts; a
context that the agent limits is whole in it. The state of a team has what its agents said, too (`message_thread`): the
counts there are those of an agent's calls, in their order, where there are as many. A result has what agents said to
each other and, in events, their tool calls, with the provider's counts (`models_usage`) at what a call of the model
gave. Each agent of a team has a context of its own: what others said is a message of the user there, and begins no
turn; what they did is not in it. `ThoughtEvent` is the text beside the calls, or the reasoning before the text, that
follow it. The summary of tool calls with which an agent may answer, and its word that it hands over, are said to the
others alone. System prompts and tools are in neither.
Source: runs of autogen-agentchat 0.7.5 (one agent, a round-robin team), whose requests, states and results were
compared; `autogen_agentchat/messages.py` and `state/_states.py`, `autogen_core/models/_types.py`.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import Any

from msgspec.structs import replace

from guard_core.events import Part, ReasoningPart, Role, TextPart, ToolCallPart, ToolResultPart
from guard_core.recordings.base import Recording
from guard_core.recordings.reading import fields, wrong_kinds
from guard_core.recordings.reading.build import FactCounter, SessionBuilder
from guard_core.recordings.reading.fields import JSON
from guard_core.recordings.reading.known_names import Names, words
from guard_core.recordings.reading.source import ByteSource, SourceShape
from guard_core.sessions import UNRECORDED_COMPACTIONS, Session

NAME = "autogen"
_AGENT = "AssistantAgentState"
_DEPTH = 8  # teams in teams that are looked into; ours
_CALLS, _RESULTS, _THOUGHT = "ToolCallRequestEvent", "ToolCallExecutionEvent", "ThoughtEvent"
_OWN_EVENTS = frozenset({_CALLS, _RESULTS, _THOUGHT})
_TO_OTHERS = frozenset({"ToolCallSummaryMessage", "HandoffMessage", "StopMessage"})  # no answers of the model
_SAID = frozenset({"TextMessage", "MultiModalMessage", "StructuredMessage"}) | _TO_OTHERS
_COUNTS = ("prompt_tokens", "completion_tokens")
_USER = "user"  # the source of a task (`BaseChatAgent.run`)


class AutoGenFormat:
    name = NAME
    label = "AutoGen"
    place = "save_state() of an agent or a team"
    known_names = Names(
        usage=words("models_usage"),
        counts=words("prompt_tokens completion_tokens"),
        tools=words("content tool_calls results FunctionExecutionResultMessage ToolCallSummaryMessage")
        | {_CALLS, _RESULTS},
        passed_over=words("metadata message_thread message_buffer"),
    )

    def matches(self, source: ByteSource) -> bool:
        value = source.json_head() if source.shape is SourceShape.JSON else None
        return any(True for _ in _states(value)) or any(map(_is_message, _said(value)[:20]))

    def read(self, source: ByteSource) -> Recording:
        value, facts = source.json(), FactCounter(NAME)
        if any(True for _ in _states(value)):
            sessions = _of_states(source, facts, value)
        else:
            sessions = _of_result(source, facts, list(wrong_kinds.objects(source, _said(value), "message")))
        if not sessions:
            raise source.nothing_left("no agent with messages")
        return Recording(NAME, tuple(sessions), facts.facts(), source.notes)


FORMAT = AutoGenFormat()


def _states(value: Any, name: str = "", depth: int = 0) -> Iterator[tuple[str, JSON]]:
    """The states of agents in a state, each with the agent's name."""
    if not isinstance(value, dict) or depth > _DEPTH:
        return
    if fields.text(value, "type") == _AGENT and isinstance(fields.mapping(value, "llm_context").get("messages"), list):
        yield name, value
    for key in ("agent_state", "inner_team_state"):
        yield from _states(value.get(key), name, depth + 1)
    for inner, state in fields.mapping(value, "agent_states").items():
        yield from _states(state, inner, depth + 1)


def _said(value: Any) -> list[Any]:
    """The messages of a result, alone or in it."""
    listed = value.get("messages") if isinstance(value, dict) else value
    return listed if isinstance(listed, list) else []


def _is_message(value: Any) -> bool:
    kind = fields.text(value, "type")
    return kind in _SAID | _OWN_EVENTS and "models_usage" in value and "source" in value


# -- a state


def _of_states(source: ByteSource, facts: FactCounter, value: JSON) -> list[Session]:
    """The context of each agent, with the counts that the thread of its team has."""
    contexts = list(_states(value))
    threads = [
        message
        for state in fields.mapping(value, "agent_states").values()
        for message in fields.objects(fields.items(state, "message_thread"))
    ]
    sessions = []
    for name, state in contexts:
        log = _of_state(source, facts, state, {other for other, _ in contexts})
        counts = [_counts(message) for message in threads if fields.text(message, "source") == name]
        counts = [count for count in counts if count["prompt_tokens"]]
        notes = ["A state has no counts of tokens: the result of a run has them."]
        if counts and len(counts) == len(log.calls):
            log.calls = [replace(call, **count) for call, count in zip(log.calls, counts, strict=True)]
            notes = []
        for call in log.calls:
            if call.prompt_tokens:
                facts.call(call.prompt_tokens)
        if session := _session(log, name if len(contexts) > 1 else "", (*notes, UNRECORDED_COMPACTIONS)):
            sessions.append(session)
    return sessions


def _of_state(source: ByteSource, facts: FactCounter, state: JSON, agents: Container[str]) -> SessionBuilder:
    """The context of one agent; `agents`: those of the team."""
    log = SessionBuilder(NAME, source)
    facts.session()
    for message in wrong_kinds.objects(source, fields.mapping(state, "llm_context").get("messages"), "message"):
        wrong_kinds.check_words(source, message, "content", "a message")
        kind, content = fields.text(message, "type"), message.get("content")
        if kind == "AssistantMessage":
            parts = _answer(content, fields.text(message, "thought"))
        else:
            parts = _results(content) if kind == "FunctionExecutionResultMessage" else _words(content)
        if not parts:
            continue
        facts.message()
        facts.parts(parts)
        if kind == "AssistantMessage":
            log.answer(parts, call={})
        elif kind == "SystemMessage":
            log.event(Role.SYSTEM, parts, meta=True)
        else:
            author = fields.text(message, "source")
            log.event(Role.USER, parts, author=author, meta=author in agents)
    return log


def _session(log: SessionBuilder, name: str, notes: tuple[str, ...]) -> Session | None:
    if not log.events:
        return None
    notes = (*notes, "The system prompt and the schemas of the tools are not in the file.")
    return log.session(agent="AutoGen", title=name, notes=notes)


# -- a result


def _of_result(source: ByteSource, facts: FactCounter, messages: list[JSON]) -> list[Session]:
    """What each agent of a run had in its context."""
    known = [message for message in messages if _is_message(message)]
    for message in messages:
        wrong_kinds.check_counts(source, fields.mapping(message, "models_usage"), _COUNTS, "a message")
        if not _is_message(message):
            source.notes.skip(f"message of the type {fields.text(message, 'type')[:40] or 'none'}")
    agents: dict[str, None] = {}  # whose models wrote a message, or called a tool
    for message in known:
        counted = fields.mapping(message, "models_usage") or fields.text(message, "type") in _OWN_EVENTS
        if counted and fields.text(message, "source") != _USER:
            agents[fields.text(message, "source")] = None
    read = [(agent, _context(source, facts, known, agent, agents)) for agent in agents]
    sessions = [_session(log, agent if len(agents) > 1 else "", (UNRECORDED_COMPACTIONS,)) for agent, log in read]
    return [session for session in sessions if session is not None]


def _context(
    source: ByteSource, facts: FactCounter, messages: list[JSON], agent: str, agents: Container[str]
) -> SessionBuilder:
    """What one agent of a team heard, said and did."""
    log = SessionBuilder(NAME, source)
    facts.session()
    thought = ""
    for message in messages:
        kind, when = fields.text(message, "type"), fields.timestamp(message, "created_at")
        author, content = fields.text(message, "source"), message.get("content")
        is_own = author == agent
        wrong_kinds.check_words(source, message, "content", "a message")
        if is_own and kind == _THOUGHT:
            thought = fields.text(message, "content")
        if (kind in _OWN_EVENTS and not is_own) or kind == _THOUGHT or (is_own and kind in _TO_OTHERS):
            continue
        is_answer = is_own and kind != _RESULTS
        parts = _answer(content, thought) if is_answer else _results(content) if kind == _RESULTS else _words(content)
        if not parts:
            continue
        facts.message()
        facts.parts(parts)
        if is_answer:
            counts = _counts(message)
            if counts["prompt_tokens"]:
                facts.call(counts["prompt_tokens"])
            log.answer(parts, call={**counts, "timestamp": when}, timestamp=when)
            thought = ""
        else:
            log.event(Role.USER, parts, timestamp=when, author=author, meta=author in agents and not is_own)
    return log


def _counts(message: JSON) -> JSON:
    """The counts of the call of the model that gave a message, as fields of ModelCall."""
    usage = fields.mapping(message, "models_usage")
    prompt = fields.tokens(usage, "prompt_tokens") or None
    return {
        "prompt_tokens": prompt,
        "output_tokens": fields.tokens(usage, "completion_tokens") if prompt else None,
        "source_id": fields.text(message, "id"),
    }


# -- content


def _answer(content: Any, thought: str) -> list[Part]:
    """What a model said: the calls of tools, the text beside them first, or text, with the reasoning before it."""
    if not isinstance(content, list):
        return [*([ReasoningPart(thought)] if thought else []), *_words(content)]
    calls = [
        ToolCallPart(fields.text(item, "name"), fields.arguments(item.get("arguments")), fields.text(item, "id"))
        for item in fields.objects(content)
    ]
    return [*([TextPart(thought)] if thought else []), *calls]


def _results(content: Any) -> list[Part]:
    return [
        ToolResultPart(
            fields.text(item, "name"), item.get("content"), fields.text(item, "call_id"), item.get("is_error") is True
        )
        for item in fields.objects(content)
    ]


def _words(content: Any) -> list[Part]:
    """Text, or texts and pictures; what a structured message holds is read as JSON."""
    if isinstance(content, str):
        return [TextPart(content)] if content else []
    items = content if isinstance(content, list) else [content]
    parts: list[Part] = []
    for item in items:
        if isinstance(item, str) and item:
            parts.append(TextPart(item))
        elif data := fields.text(item, "data"):
            parts.append(fields.media("image", data))
        else:
            parts.extend(fields.content_parts(item))
    return parts
