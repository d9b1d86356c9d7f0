"""mini-swe-agent trajectories: one session per file, with real tokens per call where the response was kept.

Definition: https://mini-swe-agent.com/latest/usage/output_files/.
`{info, messages, trajectory_format: "mini-swe-agent-1.x"}`; the oldest files are the bare messages array, recognised by
the agent's own words in it. An assistant message's `extra.response` is the whole API response: `usage.prompt_tokens`
(in the spellings that logs of requests have, too; cached tokens included) or `usage.input_tokens` of the Responses API.
Commands are text in the answer (version 1) or as tool calls (version 2, also as Responses items in `output`);
observations are user messages, marked as automatic, or tool messages. Messages of role `exit` end the run and are not
sent. An answer in which the agent finds no action leaves only its complaint, a user message with the whole response
beside it (version 2.3 on; earlier ones keep nothing): that is a call whose answer is not in the log.
Facts count messages, calls with usage and the tool calls and results that have ids.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from guard_core.errors import DamagedRecording
from guard_core.events import Event, Part, Role, ToolCallPart, ToolResultPart
from guard_core.plural import counted
from guard_core.recordings.base import Recording
from guard_core.recordings.formats.openai.completions import usage_of
from guard_core.recordings.reading import chat, fields, wrong_kinds
from guard_core.recordings.reading.build import FactCounter, SessionBuilder
from guard_core.recordings.reading.fields import JSON
from guard_core.recordings.reading.known_names import CHAT_COUNTS, CHAT_TOOLS, CHAT_USAGE, Names, words
from guard_core.recordings.reading.source import ByteSource, SourceShape
from guard_core.sessions import ModelCall

REFUSED = "ContextWindowExceededError"  # litellm's exception for a prompt that is too long, by which the run ended
# Words of the agent's own prompts and observations, in every published configuration of it.
OWN_WORDS = ("COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT", "MINI_SWE_AGENT_FINAL_OUTPUT", "mswea_bash_command")


_KNOWN_NAMES = Names(
    usage=CHAT_USAGE,
    counts=CHAT_COUNTS,
    tools=CHAT_TOOLS | words("actions output function_call_output"),
    passed_over=words("config"),
)


class MiniSweAgentFormat:
    name = "mini-swe-agent"
    label = "mini-swe-agent"
    place = "*.traj.json"
    known_names = _KNOWN_NAMES

    def matches(self, source: ByteSource) -> bool:
        heads = source.head_lines(2) if source.shape is SourceShape.LINES else []
        alone = len(heads) == 1 and heads[0].number == 1  # a value with something else behind it
        value = source.json_head() if source.shape is SourceShape.JSON else heads[0].obj if alone else None
        if isinstance(value, list):
            return _is_bare(value)
        if not isinstance(value, dict) or not isinstance(value.get("messages"), list):
            return False
        if fields.text(value, "trajectory_format").startswith("mini-swe-agent"):
            return True
        info = fields.mapping(value, "info")
        return "mini_version" in info or ("model_stats" in info and "exit_status" in info)

    def read(self, source: ByteSource) -> Recording:
        value = source.json()
        listed = value if isinstance(value, list) else value.get("messages")
        messages = list(wrong_kinds.objects(source, listed, "message"))
        if not messages:
            raise DamagedRecording("this mini-swe-agent trajectory has no messages")
        facts = FactCounter(self.name)
        builder = SessionBuilder(self.name, source)
        system, _ = chat.split_system(event for item in messages[:1] if (event := chat.chat_event(item)))
        for message in messages:
            facts.message()
            _read_message(source, builder, facts, message)
        info = {} if isinstance(value, list) else fields.mapping(value, "info")
        is_refused = fields.text(info, "exit_status") == REFUSED
        if is_refused:
            builder.refuse()
        builder.notes.extend(_notes(info, builder.calls, refused=int(is_refused)))
        model = fields.mapping(fields.mapping(info, "config"), "model")
        name = fields.text(model, "model_name") or fields.text(model, "name")
        session = builder.session(system=system, agent="mini-swe-agent", model=name)
        return Recording(self.name, (session,), facts.facts(), source.notes)


FORMAT = MiniSweAgentFormat()


def _is_bare(value: list[Any]) -> bool:
    messages = list(fields.objects(value[:6]))
    if not messages or not all(isinstance(item.get("role"), str) and "content" in item for item in messages):
        return False
    roles = [item["role"] for item in messages]
    if roles[:2] != ["system", "user"] and roles[:1] != ["user"]:
        return False
    return any(word in fields.plain_text(item["content"]) for item in messages for word in OWN_WORDS)


def _read_message(source: ByteSource, builder: SessionBuilder, facts: FactCounter, message: JSON) -> None:
    event = _event(message)
    wrong_kinds.check_words(source, message, "content", "a message")
    if event is None:
        source.notes.skip(f"message of role {fields.text(message, 'role')[:40] or 'none'}")
        return
    facts.parts(event.parts)
    if event.role is Role.SYSTEM and not builder.events:
        return
    extra = fields.mapping(message, "extra")
    time = fields.timestamp(message, "timestamp") or fields.timestamp(extra, "timestamp")
    call = _call(message, extra)
    if call["prompt_tokens"] is not None:
        facts.call(call["prompt_tokens"])
    if event.role is Role.MODEL:
        builder.answer(event.parts, call={**call, "timestamp": time}, timestamp=time)
        return
    if call["prompt_tokens"] is not None:
        builder.calls.append(ModelCall(at=len(builder.events), **call))
    results = any(isinstance(part, ToolResultPart) for part in event.parts)
    automatic = bool(builder.calls) or "interrupt_type" in extra
    builder.event(event.role, event.parts, timestamp=time, meta=automatic and not results)


def _event(message: JSON) -> Event | None:
    kind = fields.text(message, "type")
    if kind == "function_call_output":
        output = fields.plain_text(message.get("output"))
        return Event(Role.USER, (ToolResultPart(content=output, call_id=fields.text(message, "call_id")),))
    if isinstance(message.get("output"), list):
        return Event(Role.MODEL, tuple(part for item in fields.objects(message["output"]) for part in _item(item)))
    return chat.chat_event(message)


def _item(item: JSON) -> tuple[Part, ...]:
    """One item of a Responses API answer."""
    kind = fields.text(item, "type")
    if kind == "function_call":
        arguments = fields.arguments(item.get("arguments"))
        return (ToolCallPart(fields.text(item, "name"), arguments, fields.text(item, "call_id")),)
    if kind == "reasoning":
        return fields.content_parts(item)
    return fields.content_parts(item.get("content"))


def _call(message: JSON, extra: JSON) -> dict[str, Any]:
    response = fields.mapping(extra, "response") or message
    return {
        "prompt_tokens": None,
        **usage_of(fields.mapping(response, "usage")),
        "model": fields.text(response, "model"),
        "source_id": fields.text(response, "id"),
    }


def _notes(info: JSON, calls: Sequence[ModelCall], *, refused: int) -> list[str]:
    """`refused`: requests that the provider refused, which the agent counts, too (2.4.6, run)."""
    notes = []
    if not any(call.prompt_tokens is not None for call in calls):
        notes.append("The file keeps no API responses, so no tokens per call.")
    total = fields.tokens(fields.mapping(info, "model_stats"), "api_calls") or 0
    if (missing := total - len(calls) - refused) > 0:
        notes.append(f"The agent made {counted(total, 'call')}, {missing:,} of them without a trace in the file.")
    return notes
