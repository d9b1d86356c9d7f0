"""Hermes' rows: a message row as an event, a session row as a session's own fields."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from guard_core.bounds import MAX_TOKENS
from guard_core.events import Event, Part, ReasoningPart, TextPart
from guard_core.recordings.reading import chat, fields, summary_words
from guard_core.recordings.reading.fields import JSON
from guard_core.recordings.reading.source import ByteSource
from guard_core.sessions import AgentSetting, Provenance, Sourced

# What precedes a summary that Hermes put behind a kept message's text (context_compressor.py).
MERGED = "[END OF PRIOR CONTEXT — COMPACTION SUMMARY BELOW]"
JSON_PREFIX = "json:"  # of content that is a list of parts, behind a NUL
WINDOW_KEYS = ("context_length", "context_window")  # in the configuration of a session's model
_JSON_COLUMNS = ("tool_calls", "reasoning_details", "codex_reasoning_items")


def is_summary(event: Event) -> bool:
    """Does a message begin as Hermes' summaries do, or hold one behind its own text? Tool results never count."""
    for part in event.parts:
        if isinstance(part, TextPart):
            return part.text.startswith(summary_words.HERMES) or MERGED in part.text
    return False


def row_event(row: JSON, source: ByteSource | None = None) -> Event | None:
    """One row as an event; None for a role that is not a message. What is damaged in it is reported to `source`."""
    role = chat.ROLES.get(fields.text(row, "role"))
    if role is None:
        return None
    name = row.get("id")
    source_id = str(name) if isinstance(name, int | str) and not isinstance(name, bool) else ""
    read = {key: _json(row, key, source_id, source) for key in _JSON_COLUMNS}
    content = _content(row.get("api_content") or row.get("content"), source_id, source)
    message = {**row, **read, "content": content, "name": row.get("tool_name") or row.get("name")}
    parts = chat.result_parts(message) if fields.text(row, "role") in chat.RESULT_ROLES else _parts(message)
    return Event(role, parts, source_id=source_id, timestamp=fields.timestamp(row, "timestamp"))


def _json(row: JSON, key: str, name: str, source: ByteSource | None) -> Any:
    """A column that holds a JSON list; in an export the list itself."""
    value = fields.decoded(row.get(key))
    if source is not None and value and not isinstance(value, list):
        source.leave_out(f"the {key} of message {name[:60] or '(without id)'} are not a list")
    return value


def _content(content: Any, name: str, source: ByteSource | None) -> Any:
    """Text, or the list of parts that Hermes stores as JSON behind a NUL.

    Text is sent without the white space around it (0.13.0, run_agent.py, to 0.19.0, agent/conversation_loop.py), and
    stored so by a compaction after the session was resumed.
    """
    if not isinstance(content, str):
        if source is not None and not isinstance(content, list | None):
            source.leave_out(f"the content of message {name[:60] or '(without id)'} is not text")
        return content
    if content[:1] in {"\x00", "␀"} and content[1:].startswith(JSON_PREFIX):
        return fields.decoded(content[1 + len(JSON_PREFIX) :])
    return content.strip()


def _parts(message: JSON) -> tuple[Part, ...]:
    """Parts of a message; reasoning that only OpenAI can read counts by its size."""
    blobs = [fields.text(item, "encrypted_content") for item in fields.objects(message.get("codex_reasoning_items"))]
    size = sum(fields.opaque_size(blob) for blob in blobs if blob)
    head: tuple[Part, ...] = (ReasoningPart("", opaque_bytes=size),) if size else ()
    return (*head, *chat.message_parts(message))


def flag(row: JSON, key: str) -> bool:
    """A column of 0 and 1."""
    value = row.get(key)
    return value is True or (isinstance(value, int) and value != 0)


def about(row: JSON) -> dict[str, Any]:
    """The session's own fields, as fields of Session."""
    prompt = fields.text(row, "system_prompt")
    config = fields.decoded(row.get("model_config"))
    window = next(filter(None, (fields.window(config, key) for key in WINDOW_KEYS)), None)
    output = fields.tokens(config, "max_tokens") if isinstance(config, dict) else None
    return {
        "system": (TextPart(prompt),) if prompt else None,
        "tools": chat.tool_definitions(fields.decoded(row.get("tools"))),
        "agent": "Hermes",
        "model": fields.text(row, "model"),
        "title": fields.text(row, "title") or fields.text(row, "display_name"),
        "source_id": fields.text(row, "id") or fields.text(row, "session_id"),
        "parent": fields.text(row, "parent_session_id"),
        "started_at": fields.timestamp(row, "started_at") or fields.timestamp(row, "session_start"),
        "settings": (AgentSetting("max_output_tokens", output, "max_tokens in model_config"),) if output else (),
        "window": Sourced(window, Provenance.RECORDER, "model_config of the session") if window else None,
    }


def totals(row: JSON) -> dict[str, int]:
    """The session's totals, as fields of Session; empty where the row has none. Hermes records no tokens per call."""
    total = sum(fields.tokens(row, key) or 0 for key in ("input_tokens", "cache_read_tokens", "cache_write_tokens"))
    calls = fields.tokens(row, "api_call_count") or 0
    return {"prompt_tokens_total": total, "total_calls": calls} if 0 < total <= MAX_TOKENS and calls else {}


def usage_note(row: JSON) -> str:
    """What the session has in place of counts per call."""
    if not (counts := totals(row)):
        return "Hermes records no tokens per call."
    total, calls = counts["prompt_tokens_total"], counts["total_calls"]
    return f"Hermes records tokens per session only: {total:,} prompt tokens (cached ones included) in {_calls(calls)}."


def only_call(row: JSON) -> dict[str, int | None]:
    """The counts of a session's call, as fields of ModelCall: its totals, where it made one call; empty elsewhere."""
    counts = totals(row)
    if counts.get("total_calls") != 1:
        return {}
    return {
        "prompt_tokens": counts["prompt_tokens_total"],
        "cached_tokens": fields.tokens(row, "cache_read_tokens"),
        "cache_write_tokens": fields.tokens(row, "cache_write_tokens"),
        "output_tokens": fields.tokens(row, "output_tokens"),
    }


def task_notes(rows: Iterable[JSON]) -> list[str]:
    """What calls beside the conversation used, by their task: `compression` is that of the summariser."""
    notes = []
    for row in rows:
        prompt = sum(
            fields.tokens(row, key) or 0 for key in ("input_tokens", "cache_read_tokens", "cache_write_tokens")
        )
        calls = fields.tokens(row, "api_call_count") or 0
        if calls and prompt <= MAX_TOKENS:
            task = fields.text(row, "task")[:40]
            notes.append(f"Beside them {prompt:,} prompt tokens in {_calls(calls)} of the task {task!r}.")
    return notes


def _calls(count: int) -> str:
    return "1 call" if count == 1 else f"{count:,} calls"
