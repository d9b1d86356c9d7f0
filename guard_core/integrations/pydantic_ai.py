"""A guard for the history of a Pydantic AI agent, as its history processor; needs pydantic-ai-slim.

guard = PydanticAIGuard("contextguard", window=200_000)
agent = Agent(model, capabilities=[ProcessHistory(guard.process)])

One guard is for one conversation. The agent continues with the messages that it is given: its own history becomes the
compacted one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    RetryPromptPart,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from guard_core.integrations.histories import HistoryGuard, Plain, call_ids


class MessageUnit(NamedTuple):
    """A part of a request, or a response as a whole (`part` None)."""

    message: Any  # a ModelRequest or a ModelResponse
    part: Any = None


class PydanticAIGuard(HistoryGuard[MessageUnit]):
    """Guards one conversation. What a policy leaves as it was is sent as the very part of the history."""

    async def process(self, messages: list[ModelMessage]) -> list[ModelMessage]:
        """The messages to send in place of the history, for `ProcessHistory`."""
        last = next((item for item in reversed(messages) if isinstance(item, ModelRequest)), None)
        return await self.before_call_async(messages, _system(messages, last))

    def units(self, messages: Sequence[Any]) -> list[MessageUnit]:
        units: list[MessageUnit] = []
        for message in messages:
            parts = message.parts if isinstance(message, ModelRequest) else (None,)
            units += [MessageUnit(message, part) for part in parts]
        return units

    def plain(self, unit: MessageUnit) -> list[Plain]:
        return [_plain_part(unit.part) if unit.part is not None else _plain_response(unit.message)]

    def is_same(self, one: MessageUnit, other: MessageUnit) -> bool:
        if (one.part is None) != (other.part is None):
            return False
        same = one.message.parts == other.message.parts if one.part is None else one.part == other.part
        return bool(same)

    def counts(self, unit: MessageUnit) -> dict[str, int | None] | None:
        if unit.part is not None:
            return None
        usage = unit.message.usage
        return {
            "prompt_tokens": usage.input_tokens or None,  # cached ones included; 0 where nothing was reported
            "cached_tokens": usage.cache_read_tokens,
            "cache_write_tokens": usage.cache_write_tokens,
            "output_tokens": usage.output_tokens,
        }

    def written(self, sent: Iterable[tuple[Plain, MessageUnit | None]]) -> list[Any]:
        messages: list[Any] = []
        for item, unit in sent:
            taken = unit or self._changed(item)
            if taken.part is None:
                messages.append(taken.message)
            elif messages and isinstance(messages[-1], _BegunRequest) and messages[-1].message is taken.message:
                messages[-1].parts.append(taken.part)
            else:
                messages.append(_BegunRequest(taken.message, [taken.part]))
        return [item.whole() if isinstance(item, _BegunRequest) else item for item in messages]

    def _changed(self, item: Plain) -> MessageUnit:
        """What the policy wrote, or changed."""
        text = str(item.get("content") or "")
        if item["role"] == "tool":
            for unit in self._history:
                if unit.part is not None and getattr(unit.part, "tool_call_id", None) == item["tool_call_id"]:
                    return MessageUnit(unit.message, replace(unit.part, content=text))
        if item["role"] != "assistant":
            part: Any = SystemPromptPart(text) if item["role"] == "system" else UserPromptPart(text)
            return MessageUnit(ModelRequest(parts=[part]), part)
        calls = call_ids(item)
        parts: list[Any] = [TextPart(text)] if text else []
        for call in item.get("tool_calls") or ():
            parts.append(ToolCallPart(call["function"]["name"], call["function"]["arguments"], call["id"]))
        known = (
            unit.message
            for unit in self._history
            if unit.part is None
            and calls & frozenset(part.tool_call_id for part in unit.message.parts if isinstance(part, ToolCallPart))
        )
        original = next(known, None)
        return MessageUnit(replace(original, parts=parts) if original is not None else ModelResponse(parts=parts))


class _BegunRequest(NamedTuple):
    """A request that is put together from its parts."""

    message: Any
    parts: list[Any]

    def whole(self) -> Any:
        """The very message of the history where it has all of its parts."""
        return self.message if self.parts == list(self.message.parts) else replace(self.message, parts=self.parts)


def _system(messages: Sequence[Any], last: ModelRequest | None) -> list[Plain] | None:
    """The system prompts at the head and the instructions of the request, where there are instructions."""
    if last is None or not last.instructions:
        return None
    first = messages[0].parts if isinstance(messages[0], ModelRequest) else ()
    texts = [part.content for part in first if isinstance(part, SystemPromptPart)]
    return [{"type": "text", "text": text} for text in (*texts, last.instructions)]


def _plain_part(part: Any) -> Plain:
    if isinstance(part, SystemPromptPart):
        return {"role": "system", "content": part.content}
    if isinstance(part, ToolReturnPart):
        return {"role": "tool", "tool_call_id": part.tool_call_id, "content": part.model_response_str()}
    if isinstance(part, RetryPromptPart):
        asked = {"role": "tool", "tool_call_id": part.tool_call_id} if part.tool_name else {"role": "user"}
        return {**asked, "content": part.model_response()}
    content = part.content if isinstance(part, UserPromptPart) else str(getattr(part, "content", ""))
    return {"role": "user", "content": content if isinstance(content, str) else list(map(_block, content))}


def _block(item: Any) -> Plain:
    """A text or a file of a user's prompt."""
    if isinstance(item, str):
        return {"type": "text", "text": item}
    url = getattr(item, "data_uri", None) or getattr(item, "url", None)
    if url:
        return {"type": "image_url", "image_url": {"url": str(url)}}
    return {"type": "text", "text": str(getattr(item, "content", item))}


def _plain_response(response: ModelResponse) -> Plain:
    texts = [part.content for part in response.parts if isinstance(part, TextPart)]
    thoughts = [part.content for part in response.parts if isinstance(part, ThinkingPart) and part.content]
    calls = [
        {
            "id": part.tool_call_id,
            "type": "function",
            "function": {"name": part.tool_name, "arguments": part.args_as_json_str()},
        }
        for part in response.parts
        if isinstance(part, ToolCallPart)
    ]
    message: Plain = {"role": "assistant", "content": "\n".join(texts) or None}
    if thoughts:
        message["reasoning_content"] = "\n".join(thoughts)
    return {**message, "tool_calls": calls} if calls else message
