"""Items of OpenAI's Responses API as parts: shared by Codex rollouts and by recordings of the API itself."""

from __future__ import annotations

from typing import Any

from guard_core.events import MediaPart, OtherPart, Part, ReasoningPart, ToolCallPart, ToolResultPart
from guard_core.recordings.reading import fields, placeholders

CALLS = frozenset({"function_call", "custom_tool_call", "local_shell_call", "mcp_call", "computer_call", "shell_call"})
ADDED_TOOLS = "additional_tools"  # the tools of a request as an item of its input: Codex from 0.169.0 on
_BLOBS = ("result", "encrypted_content")  # base64 or encrypted: their length is not text


def is_output(kind: str) -> bool:
    """Is an item of this type the result of a call that the client made?"""
    return kind.endswith("_call_output") or kind == "function_call_output"


def is_compaction(kind: str) -> bool:
    """Is it the encrypted summary of a compaction made by the provider?"""
    return kind in {"compaction", "compaction_summary", "context_compaction"}


def call_part(item: dict[str, Any], kind: str) -> ToolCallPart:
    """A call of a tool, whatever its spelling."""
    call_id = fields.text(item, "call_id") or fields.text(item, "id")
    name = fields.text(item, "name") or kind.removesuffix("_call")
    for key in ("arguments", "input", "action"):
        if item.get(key) is not None:
            return ToolCallPart(name=name, arguments=fields.arguments(item[key]), id=call_id)
    return ToolCallPart(name=name, id=call_id)


def result_parts(item: dict[str, Any]) -> tuple[Part, ...]:
    """The result of a call: text, then the media it brought."""
    content, success = item.get("output"), None
    if isinstance(content, dict) and "content" in content:
        content, success = content["content"], content.get("success")
    failed = success is False or fields.text(item, "status") in {"failed", "incomplete"}
    result = ToolResultPart(
        name=fields.text(item, "name"),
        content=result_text(content),
        call_id=fields.text(item, "call_id"),
        is_error=failed,
    )
    return (result, *(part for part in fields.content_parts(content) if isinstance(part, MediaPart)))


def result_text(content: Any) -> Any:
    """The text of an output: a string, or the texts of a list of content items; any other value as it is."""
    if isinstance(content, str) or content is None:
        return content
    if isinstance(content, dict) and isinstance(content.get("text"), str):
        return content["text"]
    if isinstance(content, list) and all(isinstance(item, dict) and "type" in item for item in content):
        return "".join(fields.text(item, "text") for item in content)
    return content


def reasoning_part(item: dict[str, Any]) -> ReasoningPart:
    """Reasoning: the raw text where it is there, else its summary; the encrypted rest by its size."""
    raw = fields.plain_text(item.get("content"))
    sealed = fields.text(item, "encrypted_content")
    summary = fields.plain_text(item.get("summary"))
    return ReasoningPart(raw or summary, opaque_bytes=_sealed_bytes(sealed))


def sealed_part(item: dict[str, Any]) -> ReasoningPart:
    """An encrypted summary: its size, for it is not readable."""
    sealed = fields.text(item, "encrypted_content")
    return ReasoningPart(fields.text(item, "summary"), opaque_bytes=_sealed_bytes(sealed))


def _sealed_bytes(sealed: str) -> int:
    """The size of what is encrypted; a word in its place (`REDACTED`) has none."""
    return fields.opaque_size(sealed) if sealed and not placeholders.is_placeholder(sealed) else 0


def hosted_parts(item: dict[str, Any], kind: str) -> tuple[Part, ...]:
    """A call that the provider made by itself (web search, image generation), without the bytes it carries."""
    picture = fields.text(item, "result") if kind == "image_generation_call" else ""
    value = {key: content for key, content in item.items() if key not in _BLOBS}
    other = OtherPart(kind=kind, value=value)
    return (other, fields.media("image/png", picture)) if picture else (other,)


def message_parts(item: dict[str, Any]) -> tuple[Part, ...]:
    """The content of a message item; an empty picture reference is left out."""
    parts: list[Part] = []
    for part in fields.content_parts(item.get("content")):
        if isinstance(part, OtherPart) and part.kind == "encrypted_content":
            parts.append(sealed_part(part.value))
        elif not isinstance(part, MediaPart) or part.size or part.uri:
            parts.append(part)
    return tuple(parts)
