"""Sessions of agents that no reader knows yet, recognised so that none is read as another agent's.

Their files resemble known ones: Factory Droid's lines are linked as pi's are, Amp's messages have Anthropic's blocks.
Read as those, they would lose their tokens, their tool calls or both silently. Each is known here by keys and kinds
that only it writes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from guard_core.recordings.reading import fields
from guard_core.recordings.reading.fields import JSON
from guard_core.recordings.reading.source import ByteSource, SourceShape

_LOOKED_AT = 200  # messages of a JSON value in which a kind of block that identifies the agent is looked for
_DROID_KINDS = frozenset({"session_start", "todo_state", "compaction_state"})
_DROID_BLOCKS = frozenset({"tool_use", "tool_result"})


def agent_of(source: ByteSource) -> str:
    """The agent whose session this is, where it is one without a reader; else "". Raises RecordingError where the
    content cannot be looked at."""
    if source.shape is SourceShape.LINES:
        return _first(_LINES, [line.obj for line in source.head_lines()])
    if source.shape is not SourceShape.JSON:
        return ""
    value = source.json(allow_nan=True)
    if agent := _first(_VALUES, [value]):
        return agent
    messages = fields.items(value, "messages") if isinstance(value, dict) else value
    return _first(_LINES, messages[:_LOOKED_AT] if isinstance(messages, list) else [value])


def _first(agents: dict[str, Callable[[JSON], bool]], records: list[Any]) -> str:
    names = (name for record in fields.objects(records) for name, is_its in agents.items() if is_its(record))
    return next(names, "")


def _is_droid_line(record: JSON) -> bool:
    """A kind of line that pi does not have, or an entry as pi's with Anthropic's blocks for tools."""
    kind = fields.text(record, "type")
    if kind in _DROID_KINDS:
        return "id" in record and "data" not in record
    blocks = fields.objects(fields.mapping(record, "message").get("content"))
    own = any(fields.text(block, "type") in _DROID_BLOCKS for block in blocks)
    return kind == "message" and own and "sessionId" not in record


def _is_printed_by_qwen(record: JSON) -> bool:
    """The first line of what a run of Qwen Code prints, else as Claude Code's, but with prompts that hold the cache."""
    return "qwen_code_version" in record and fields.text(record, "type") == "system"


def _is_amp_message(record: JSON) -> bool:
    """A message numbered within its thread, or a tool's result under Amp's own spelling."""
    blocks = fields.objects(record.get("content"))
    own = any("toolUseID" in block for block in blocks) or "totalInputTokens" in fields.mapping(record, "usage")
    return own and "role" in record


def _is_printed_by_amp(record: JSON) -> bool:
    """The first line of what a run of Amp prints, else as Claude Code's: its sessions are threads."""
    kinds = (fields.text(record, "type"), fields.text(record, "subtype"))
    return kinds == ("system", "init") and fields.text(record, "session_id").startswith("T-")


def _is_amp_thread(value: JSON) -> bool:
    return fields.text(value, "id").startswith("T-") and isinstance(value.get("messages"), list) and "v" in value


def _lists_langfuse_traces(value: JSON) -> bool:
    """Traces without their observations, as the API lists them: the ids of these are there at most."""
    listed = value.get("data") if isinstance(value.get("data"), list) else [value]
    heads = list(fields.objects(listed))[:_LOOKED_AT]
    return bool(heads) and all(_is_langfuse_trace_alone(head) for head in heads)


def _is_langfuse_trace_alone(value: JSON) -> bool:
    has_observations = any(True for _ in fields.objects(value.get("observations")))
    return "htmlPath" in value and "sessionId" in value and not has_observations


def _is_mistral_conversation(value: JSON) -> bool:
    return fields.text(value, "object") in {"conversation.history", "conversation.messages"}


def _is_assistants_thread(value: JSON) -> bool:
    """A page of the messages of a thread, or one of them: the calls of tools are in its runs."""
    listed = value["data"] if isinstance(value.get("data"), list) else [value]
    return any(fields.text(item, "object") == "thread.message" for item in fields.objects(listed[:_LOOKED_AT]))


_LINES: dict[str, Callable[[JSON], bool]] = {
    "Qwen Code (what a run printed; the chat that it recorded can be imported)": _is_printed_by_qwen,
    "Factory Droid": _is_droid_line,
    "Amp": lambda record: _is_amp_message(record) or _is_printed_by_amp(record),
}
_VALUES: dict[str, Callable[[JSON], bool]] = {
    "Amp": _is_amp_thread,
    "Mistral's Conversations API (a log of its chat requests can be imported)": _is_mistral_conversation,
    "OpenAI's Assistants API (a log of requests of Chat Completions or Responses can be imported)": (
        _is_assistants_thread
    ),
    "Langfuse (traces without their observations; a trace with them, or a list of them, can be imported)": (
        _lists_langfuse_traces
    ),
}
