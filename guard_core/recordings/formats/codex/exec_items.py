"""What one line of `codex exec --json` says: words of the model, a call, its result. Items (from 0.40) and messages.

Items come as `item.started`, `item.updated`, `item.completed` under one id; messages of older versions are pairs such
as `exec_command_begin` and `exec_command_end` under one `call_id`.
Source: https://github.com/openai/codex, codex-rs/exec/src/exec_events.rs and codex-rs/protocol/src/protocol.rs.
"""

from __future__ import annotations

from typing import Any

from guard_core.events import MediaPart, OtherPart, Part, ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from guard_core.recordings.reading import fields
from guard_core.recordings.reading.fields import JSON
from guard_core.recordings.reading.strict_json import SECOND_ID

_CALLS = frozenset({"command_execution", "file_change", "mcp_tool_call", "collab_tool_call", "dynamic_tool_call"})
_OUTCOMES = frozenset({"aggregated_output", "exit_code", "result", "error", "agents_states"})
_ABOUT = frozenset({"id", SECOND_ID, "type", "status"})
_BEGINS = ("exec_command", "patch_apply", "mcp_tool_call")


def spoken(kind: str, said: JSON) -> Part | None:
    """Words or reasoning of the model, and what the provider did by itself."""
    text = fields.text(said, "text") or fields.text(said, "message")
    if text and kind == "agent_message":
        return TextPart(text)
    if text and kind in {"reasoning", "agent_reasoning", "agent_reasoning_raw_content"}:
        return ReasoningPart(text)
    if kind in {"web_search", "web_search_end"}:
        return OtherPart("web_search", {key: value for key, value in said.items() if key not in _ABOUT})
    return None


def plan(kind: str, said: JSON, call_id: str) -> ToolCallPart | None:
    """A new plan: a call whose result is not printed."""
    if kind == "todo_list":
        return ToolCallPart(kind, {"items": said.get("items")}, call_id)
    if kind == "plan_update":
        return ToolCallPart("update_plan", {key: said[key] for key in said if key != "type"}, call_id)
    return None


# -- items


def is_call(kind: str) -> bool:
    """Is an item of this type a call that the program itself answers?"""
    return kind in _CALLS


def item_call(kind: str, item: JSON, call_id: str) -> ToolCallPart:
    """The call in an item; a tool of an MCP server is named `server__tool`."""
    name, arguments = fields.text(item, "tool"), item.get("arguments")
    if server := fields.text(item, "server"):
        name = f"{server}__{name}"
    if arguments is None:
        left_out = _ABOUT | _OUTCOMES | {"tool"}
        arguments = {key: value for key, value in item.items() if key not in left_out}
    return ToolCallPart(name or kind, arguments, call_id)


def item_result(item: JSON, call_id: str) -> tuple[Part, ...]:
    """The result in an item: an error where there is one, else the output."""
    failed = fields.text(item, "status") in {"failed", "declined"}
    error = fields.text(fields.mapping(item, "error"), "message") or fields.text(item, "error")
    content: Any = item.get("aggregated_output", item.get("agents_states", ""))
    return _result(error or content, item.get("result"), call_id, failed=failed or bool(error))


# -- messages of older versions


def begun(kind: str) -> bool:
    """Is a message of this type a call?"""
    return kind.removesuffix("_begin") in _BEGINS and kind.endswith("_begin")


def ended(kind: str) -> bool:
    """Is it a call's result?"""
    return kind.removesuffix("_end") in _BEGINS and kind.endswith("_end")


def message_call(kind: str, said: JSON) -> ToolCallPart:
    """The call in a message of older versions; a tool of an MCP server is named `server__tool`."""
    asked, name = fields.mapping(said, "invocation"), kind.removesuffix("_begin").removesuffix("_end")
    if asked:
        name = f"{fields.text(asked, 'server')}__{fields.text(asked, 'tool')}"
    arguments = asked.get("arguments") if asked else {key: said[key] for key in ("command", "changes") if key in said}
    return ToolCallPart(name, arguments, fields.text(said, "call_id"))


def message_result(said: JSON) -> tuple[Part, ...]:
    """The output as the model got it, where that is recorded; else all that was put out."""
    put_out = fields.text(said, "aggregated_output") or fields.text(said, "stdout") + fields.text(said, "stderr")
    answer = fields.mapping(said, "result")
    error = fields.text(answer, "Err")
    failed = said.get("success") is False or said.get("exit_code") not in (None, 0) or bool(error)
    text = error or fields.text(said, "formatted_output") or put_out
    return _result(text, answer.get("Ok"), fields.text(said, "call_id"), failed=failed)


def _result(text: Any, answer: Any, call_id: str, *, failed: bool) -> tuple[Part, ...]:
    """`answer`: of an MCP server, with texts and media."""
    blocks = answer.get("content") if isinstance(answer, dict) else answer
    failed = failed or (isinstance(answer, dict) and answer.get("isError") is True)
    media = (part for part in fields.content_parts(blocks) if isinstance(part, MediaPart))
    return (ToolResultPart("", text or fields.plain_text(blocks), call_id, failed), *media)
