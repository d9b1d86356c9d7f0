"""Messages of Kimi Code: their parts, how a tool's result is worded for the model, and Kimi Code's estimate of tokens.

Source: packages/agent-core-v2/src of https://github.com/MoonshotAI/kimi-code at d723cc47: toolResultRender.ts and
loopEventFold.ts (agent/contextMemory) for the words, kosong/contract/tokens.ts for the estimate.
"""

from __future__ import annotations

from typing import Any

from guard_core.events import Event, MediaPart, OtherPart, Part, ReasoningPart, Role, TextPart, ToolCallPart
from guard_core.events import ToolResultPart as Result
from guard_core.recordings.reading import fields
from guard_core.recordings.reading.fields import JSON

FAILED = "<system>ERROR: Tool execution failed.</system>"
EMPTY = "<system>Tool output is empty.</system>"
FAILED_EMPTY = "<system>ERROR: Tool execution failed. Tool output is empty.</system>"
EMPTY_WORDS = "Tool output is empty."  # an output that says so is worded as an empty one
INTERRUPTED = (
    "Tool execution was interrupted before its result was recorded. Do not assume the tool completed successfully."
)
# Tools whose results begin with the time that they took; 2.1.0, shouldRenderWallTime.
TIMED = frozenset({"Agent", "AgentSwarm", "Bash", "FetchURL", "Glob", "Grep", "WebSearch"})
MCP = "mcp__"  # begins the names of those that servers of tools offer
MEDIA_TOKENS = 2_000  # of a picture, sound or video
ROLE_TOKENS = 1  # of "user" and "tool": four letters
ROLES = {"user": Role.USER, "assistant": Role.MODEL, "tool": Role.USER, "system": Role.SYSTEM}


def estimated(text: str) -> int:
    """Kimi Code's estimate of a text in tokens: a quarter of its ASCII characters, rounded up, one for any other."""
    plain = len(text) if text.isascii() else sum(char < "\x80" for char in text)
    return -(-plain // 4) + len(text) - plain


def estimated_parts(content: Any) -> int:
    """The same of a message's content: text or parts of it."""
    if isinstance(content, str):
        return estimated(content)
    tokens = 0
    for part in fields.objects(content):
        kind = fields.text(part, "type")
        if kind in ("text", "think"):
            tokens += estimated(fields.text(part, kind))
        elif kind.endswith("_url"):
            tokens += MEDIA_TOKENS
    return tokens


def content_parts(content: Any) -> tuple[Part, ...]:
    """Text, thinking and media of a message."""
    if isinstance(content, str):
        return (TextPart(content),) if content else ()
    return tuple(content_part(part) for part in fields.objects(content))


def content_part(part: JSON) -> Part:
    """One of them; media lie under a key that is spelt as their kind."""
    kind = fields.text(part, "type")
    if kind == "text":
        return TextPart(fields.text(part, "text"))
    if kind == "think":
        sealed = fields.text(part, "encrypted")
        return ReasoningPart(fields.text(part, "think"), opaque_bytes=fields.opaque_size(sealed) if sealed else 0)
    if kind in ("image_url", "audio_url", "video_url"):
        medium = kind.removesuffix("_url")
        address = fields.text(fields.mapping(part, f"{medium}Url"), "url")
        return fields.media("" if address.startswith("data:") else medium, address)
    return OtherPart(kind or "unknown", part)


def is_blank(part: Part) -> bool:
    """A part that Kimi Code takes for nothing: white space, or thinking without a word or a seal."""
    if isinstance(part, TextPart):
        return not part.text.strip()
    return isinstance(part, ReasoningPart) and not part.text.strip() and not part.opaque_bytes


def call_part(name: str, arguments: Any, call_id: str) -> ToolCallPart:
    """A tool call; its arguments are an object, or the text that the model wrote."""
    return ToolCallPart(name, fields.arguments(arguments), call_id)


def result_parts(call_id: str, result: JSON, tool: str = "") -> tuple[Part, ...]:
    """A result of a tool as it is sent: of some tools the time that it took, a word of failure, the output, and the
    tool's note."""
    output, failed = result.get("output"), result.get("isError") is True
    texts = [part.text for part in content_parts(output) if isinstance(part, TextPart)]
    media = tuple(part for part in content_parts(output) if isinstance(part, MediaPart | OtherPart))
    text = "".join(texts)
    if not media and (not text.strip() or (not failed and text.strip() == EMPTY_WORDS)):
        text = FAILED_EMPTY if failed else EMPTY
    elif failed:
        text = f"{FAILED}\n{text}" if text else FAILED
    milliseconds = result.get("durationMs")
    is_timed = tool in TIMED or tool.startswith(MCP)
    if is_timed and isinstance(milliseconds, int | float) and not isinstance(milliseconds, bool):
        header = f"Wall time: {milliseconds / 1000:.3f} seconds"  # 2.1.0, renderToolResultForModel
        text = f"{header}\n{text}" if text else header
    if note := fields.text(result, "note"):
        text = f"{text}\n{note}" if text else note
    return (Result("", text, call_id, failed), *media)


def interrupted(call_id: str) -> tuple[Event, int]:
    """What is sent for a call whose result was never recorded, and its estimated tokens."""
    parts = result_parts(call_id, {"output": INTERRUPTED, "isError": True})
    return Event(Role.USER, parts), ROLE_TOKENS + estimated(INTERRUPTED)
