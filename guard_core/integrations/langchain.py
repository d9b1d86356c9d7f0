"""A guard for LangChain's messages, in a loop of one's own or in an agent of the library; needs langchain-core.

guard = LangChainGuard("contextguard", window=200_000)
answer = model.invoke(guard.before_call(messages))       # messages: the whole history
messages.append(answer)                                  # its usage_metadata is read at the next call

agent = create_agent(model, tools, middleware=[wrap_model_call(guard.wrap_model_call)])
agent = create_agent(model, tools, middleware=[wrap_model_call(guard.awrap_model_call)])  # one that is run by `ainvoke`
agent = create_react_agent(model, tools, pre_model_hook=guard.pre_model_hook)  # of LangGraph before 1.0
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    ToolMessage,
    convert_to_messages,
    convert_to_openai_messages,
)

from guard_core.integrations.histories import HistoryGuard, Plain, call_ids


class LangChainGuard(HistoryGuard[BaseMessage]):
    """Guards one conversation. What a policy leaves as it was is sent as the very message of the history; a result that
    it shortened keeps its id, name and artifact."""

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """For `langchain.agents.middleware.wrap_model_call`: the model is given the guard's messages in place of those
        of the state, which stay whole."""
        return handler(request.override(messages=self.before_call(request.messages)))

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """The same in an event loop."""
        return await handler(request.override(messages=await self.before_call_async(request.messages)))

    def pre_model_hook(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """For LangGraph: what the model is given in place of the `messages` of the state, which stay whole."""
        return {"llm_input_messages": self.before_call(state["messages"])}

    def units(self, messages: Sequence[Any]) -> list[BaseMessage]:
        return list(messages)

    def plain(self, unit: BaseMessage) -> list[Plain]:
        return list(convert_to_openai_messages([unit]))

    def is_same(self, one: BaseMessage, other: BaseMessage) -> bool:
        return one is other or one == other

    def counts(self, unit: BaseMessage) -> dict[str, int | None] | None:
        if not isinstance(unit, AIMessage):
            return None
        usage: Mapping[str, Any] = unit.usage_metadata or {}
        details = usage.get("input_token_details") or {}
        return {
            "prompt_tokens": usage.get("input_tokens"),  # cached ones included
            "cached_tokens": details.get("cache_read"),
            "cache_write_tokens": details.get("cache_creation"),
            "output_tokens": usage.get("output_tokens"),
        }

    def written(self, sent: Iterable[tuple[Plain, BaseMessage | None]]) -> list[Any]:
        messages: list[BaseMessage] = []
        for item, unit in sent:
            if unit is None:
                messages.append(self._changed(item))
            elif not messages or messages[-1] is not unit:
                messages.append(unit)
        return messages

    def _changed(self, item: Plain) -> BaseMessage:
        """A message that the policy wrote, or changed."""
        original = self._original(item)
        if isinstance(original, ToolMessage):
            return original.model_copy(update={"content": item["content"]})
        if item["role"] == "user":
            return HumanMessage(content=item["content"])
        (message,) = convert_to_messages([item])
        return message.model_copy(update={"id": original.id}) if original is not None else message

    def _original(self, item: Plain) -> BaseMessage | None:
        calls = call_ids(item)
        for unit in self._history:
            if isinstance(unit, ToolMessage) and item["role"] == "tool" and unit.tool_call_id == item["tool_call_id"]:
                return unit
            if isinstance(unit, AIMessage) and calls & {call["id"] for call in unit.tool_calls}:
                return unit
        return None
