"""A first look at an OpenHands event log: the agent's running totals, each difference with the answer behind it."""

from __future__ import annotations

from typing import Any

import msgspec

from guard_core.recordings.formats.openhands.usage import OpenHandsUsage
from guard_core.recordings.reading import fields, looks
from guard_core.recordings.reading.fields import JSON
from guard_core.recordings.reading.first_look import FirstLook
from guard_core.recordings.reading.source import ByteSource
from guard_core.sessions import ModelCall

_AGENT_USAGE = ("default", "agent")  # usage ids of the agent's own model
_CONDENSATIONS = ("condensation", "condense")  # as older events call it


class _Message(msgspec.Struct, gc=False):
    role: str = ""


class _Metadata(msgspec.Struct, gc=False):
    model_response: Any = None


class _Event(msgspec.Struct, gc=False):
    """An event of the SDK (`kind`), or an older one (`action`)."""

    kind: str = ""
    source: Any = None
    value: msgspec.Raw = msgspec.Raw(b"null")
    llm_message: _Message | None = None
    llm_response_id: str | None = None
    action: Any = None
    tool_call_metadata: _Metadata | None = None
    llm_metrics: Any = None

    @property
    def is_answer(self) -> bool:
        """Is it what the model said: a call of a tool, or a message?"""
        role = self.llm_message.role if self.llm_message is not None else ""
        return self.kind == "ActionEvent" or (
            self.kind == "MessageEvent" and (role == "assistant" or self.source == "agent")
        )


def look(source: ByteSource) -> FirstLook:
    """Calls and compactions from one quick pass over the events of one conversation."""
    log = _Log()
    for event in looks.lines_of(source, _Event):
        log.take(event)
    return log.look()


class _Log:
    """The calls of one conversation. What the full reading counts as usage without an answer is left out here, too."""

    def __init__(self) -> None:
        self._usage = OpenHandsUsage()
        self._calls: list[ModelCall] = []
        self._responses: set[str] = set()
        self._compactions: list[int] = []  # the calls before which they are
        self._model = ""

    def take(self, event: _Event) -> None:
        if event.kind == "ConversationStateUpdateEvent":
            self._state(looks.value_of(event.value))
        elif event.kind == "Condensation" or event.action in _CONDENSATIONS:
            self._compactions.append(len(self._calls))
        elif event.is_answer:
            self._answer(event.llm_response_id or "", is_call=event.kind == "ActionEvent")
        elif event.action and event.source == "agent":
            self._older(event)

    def look(self) -> FirstLook:
        calls = looks.CallsInOrder()
        calls.model = self._model
        before = [0]  # calls with tokens before each call
        for call in self._calls:
            calls.call(self._usage.completed(call).prompt_tokens)
            before.append(len(calls))
        for at in self._compactions:
            calls.compacted(before[at])
        return calls.look()

    def _state(self, value: JSON) -> None:
        by_usage = fields.mapping(value, "usage_to_metrics")
        by_usage = by_usage or fields.mapping(fields.mapping(value, "stats"), "usage_to_metrics")
        for name in _AGENT_USAGE:
            if metrics := fields.mapping(by_usage, name):
                self._usage.note(metrics)
                self._usage.agent.update(fields.mapping(metrics, "accumulated_token_usage"))
                self._model = fields.text(metrics, "model_name") or self._model

    def _older(self, event: _Event) -> None:
        response = event.tool_call_metadata.model_response if event.tool_call_metadata is not None else None
        if response is None and event.llm_metrics is None:
            return  # the agent's own doing, or an answer whose tokens are nowhere
        metrics = event.llm_metrics
        self._usage.note(metrics if isinstance(metrics, dict) else {})
        self._usage.agent.update(fields.mapping(metrics, "accumulated_token_usage"))
        self._model = fields.text(response, "model") or self._model
        usage = fields.mapping(response, "usage")
        self._answer(fields.text(response, "id"), is_call=event.action != "message", usage=usage)

    def _answer(self, response: str, *, is_call: bool, usage: JSON | None = None) -> None:
        """An answer, and its call; several calls of tools in one response are one answer."""
        if is_call and response and response in self._responses:
            return
        counts = self._usage.agent.call(usage)
        self._calls.append(ModelCall(at=0, source_id=response, **counts))
        self._responses.update({response} - {""})
