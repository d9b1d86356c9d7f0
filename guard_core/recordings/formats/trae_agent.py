"""Trae Agent trajectories (`trae-cli run --trajectory-file`): each request with the provider's count of it.

Definition: https://github.com/bytedance/trae-agent, `trae_agent/utils/trajectory_recorder.py` at commit e839e559.
`{task, provider, model, llm_interactions, agent_steps, …}`. An interaction is one call: `input_messages` are the
messages that are new in its request (the client of the provider keeps those before), `response` is the answer.
`agent_steps` repeat both, and have the error with which a step ended. Anthropic's `input_tokens` lack the cached ones,
those of all other providers hold them; a response without usage is written with zeros. A tool's result goes to the
model as `result` and, where it failed, `error` behind words of the agent's (`parse_tool_call_result` of the clients).
The schemas of the tools are not in the file. Facts count messages and answers.
"""

from __future__ import annotations

from typing import Any

from guard_core.errors import DamagedRecording
from guard_core.events import Part, Role, ToolCallPart, ToolResultPart
from guard_core.recordings.base import Recording
from guard_core.recordings.formats.anthropic_messages import usage_of
from guard_core.recordings.reading import fields, wrong_kinds
from guard_core.recordings.reading.build import FactCounter, SessionBuilder
from guard_core.recordings.reading.fields import JSON
from guard_core.recordings.reading.known_names import Names, words
from guard_core.recordings.reading.refusals import names_length
from guard_core.recordings.reading.source import ByteSource, SourceShape
from guard_core.sessions import ModelCall

NAME = "trae-agent"
_KEYS = frozenset({"task", "provider", "model", "llm_interactions", "agent_steps"})
_COUNTS = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
_FAILED = "Tool call failed with error:"
_MISSING = "The schemas of the tools are not in the file."


class TraeAgentFormat:
    name = NAME
    label = "Trae Agent"
    place = "trajectories/trajectory_*.json"
    known_names = Names(
        usage=words("usage"),
        counts=frozenset({*_COUNTS, "reasoning_tokens"}),
        tools=words("tool_call tool_calls tool_result tool_results tools_available"),
        passed_over=words("agent_steps arguments"),
    )

    def matches(self, source: ByteSource) -> bool:
        value = source.json_head() if source.shape is SourceShape.JSON else None
        return isinstance(value, dict) and value.keys() >= _KEYS

    def read(self, source: ByteSource) -> Recording:
        value = source.json()
        facts, log = FactCounter(NAME), SessionBuilder(NAME, source)
        system: list[Part] = []
        for interaction in wrong_kinds.objects(source, value["llm_interactions"], "interaction"):
            with source.tolerate():
                _read_request(source, log, facts, interaction, system)
                _read_answer(source, log, facts, interaction)
        for step in fields.objects(value["agent_steps"]):
            if names_length(error := fields.text(step, "error")):
                log.refuse(error)
        if not log.events:
            raise DamagedRecording("this Trae Agent trajectory has no messages")
        session = log.session(
            system=tuple(system) or None,
            agent="Trae Agent",
            model=fields.text(value, "model"),
            started_at=fields.timestamp(value, "start_time"),
            notes=[_MISSING],
        )
        return Recording(NAME, (session,), facts.facts(), source.notes)


FORMAT = TraeAgentFormat()


def _read_request(
    source: ByteSource, log: SessionBuilder, facts: FactCounter, interaction: JSON, system: list[Part]
) -> None:
    """The messages that are new in a request."""
    for message in wrong_kinds.objects(source, interaction.get("input_messages"), "message"):
        wrong_kinds.check_words(source, message, "content", "a message")
        parts = _parts(message)
        if not parts:
            if message.get("content") is None:
                source.leave_out(f"a message with the keys {', '.join(map(ascii, [*message][:4]))}, left out")
            continue
        facts.message()
        facts.parts(parts)
        role = fields.text(message, "role")
        if role == "system" and not log.events:
            system += parts
        else:
            log.event(Role.MODEL if role == "assistant" else Role.SYSTEM if role == "system" else Role.USER, parts)


def _parts(message: JSON) -> tuple[Part, ...]:
    if result := fields.mapping(message, "tool_result"):
        error = fields.text(result, "error")
        said = [fields.plain_text(result.get("result")), f"{_FAILED}\n{error}" if error else ""]
        content = "\n".join(filter(None, said)).strip()
        return (ToolResultPart("", content, fields.text(result, "call_id"), result.get("success") is False),)
    if call := fields.mapping(message, "tool_call"):
        return (_call(call),)
    return fields.content_parts(message.get("content"))


def _call(call: JSON) -> ToolCallPart:
    return ToolCallPart(
        fields.text(call, "name"), fields.arguments(call.get("arguments")), fields.text(call, "call_id")
    )


def _read_answer(source: ByteSource, log: SessionBuilder, facts: FactCounter, interaction: JSON) -> None:
    response = fields.mapping(interaction, "response")
    time = fields.timestamp(interaction, "timestamp")
    call = {**_counts(source, response, fields.text(interaction, "provider")), "timestamp": time}
    call["model"] = fields.text(response, "model") or fields.text(interaction, "model")
    if prompt := call.get("prompt_tokens"):
        facts.call(prompt)
    wrong_kinds.check_words(source, response, "content", "an answer")
    said: list[Part] = [*fields.content_parts(response.get("content"))]
    said += map(_call, fields.objects(response.get("tool_calls")))
    if said:
        facts.message()
        facts.parts(said)
        log.answer(said, call=call, timestamp=time)
    else:
        log.calls.append(ModelCall(len(log.events), **call))


def _counts(source: ByteSource, response: JSON, provider: str) -> dict[str, Any]:
    """The provider's counts; a response without them has zeros."""
    usage = fields.mapping(response, "usage")
    wrong_kinds.check_counts(source, usage, _COUNTS, "an answer")
    counts = usage_of(usage)
    if provider != "anthropic":
        counts["prompt_tokens"] = fields.tokens(usage, "input_tokens")
    return counts if counts.get("prompt_tokens") else {}
