"""OpenHands recordings: SDK event logs, evaluation output (one session per row) and downloaded trajectories.

Definition: https://github.com/OpenHands/software-agent-sdk (`openhands/sdk/event`), and `openhands/events` of OpenHands
for the older events.
SDK events are told apart by `kind`. ActionEvents with one `llm_response_id` are one answer with several calls, its
thought in the first. `SystemPromptEvent` holds the system prompt and the tools. `Condensation` declares a compaction:
`forgotten_event_ids` leave the request (those of earlier condensations, too), `summary` stands at `summary_offset`.
Older events have `action` or `observation` at the top and appear flat or as pairs `[action, observation]`; their
condensation is an action of that name, with ids or a range of ids.
Usage is cumulative. In SDK logs the metrics of usage id `default` (or `agent`) grow with every call: a difference that
`per_turn_token` confirms is that call's own prompt count (cached tokens included); one that it does not confirm folds
several calls and is left out. Older events carry the response itself in `tool_call_metadata.model_response`, else
`llm_metrics`, of which differences are taken likewise. Facts count rows or history entries as messages, tool calls and
results by id, result text at the top level of an observation, and calls of older events only (in SDK logs usage is a
state of the conversation, not of a call).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from guard_core.errors import DamagedRecording
from guard_core.events import Event, Part, ReasoningPart, Role, TextPart, ToolCallPart, ToolResultPart
from guard_core.recordings import chat, fields
from guard_core.recordings.base import Facts, Recording
from guard_core.recordings.build import FactCounter, SessionBuilder
from guard_core.recordings.fields import JSON
from guard_core.recordings.source import Shape, Source
from guard_core.sessions import Evidence, RecordedCompaction, Session
from guard_core.views import Inserted, Segment, Span, View

SDK_KINDS = frozenset(
    {
        "ActionEvent",
        "ObservationEvent",
        "MessageEvent",
        "SystemPromptEvent",
        "AgentErrorEvent",
        "ConversationStateUpdateEvent",
        "Condensation",
        "CondensationRequest",
        "UserRejectObservation",
        "PauseEvent",
        "ConversationErrorEvent",
        "TokenEvent",
    }
)
SOURCES = frozenset({"user", "agent", "environment"})
CONDENSATIONS = frozenset({"condensation", "condense"})
NOT_SENT = frozenset({"change_agent_state", "null", "agent_state_changed", "recall", "condense", "condensation"})
AGENT_USAGE = ("default", "agent")  # usage ids of the agent's own model; others are condensers and titles


class OpenHandsFormat:
    name = "openhands"
    label = "OpenHands"

    def matches(self, source: Source) -> bool:
        if source.shape is Shape.JSON:
            value = source.json()
            return any(_is_event(item) for item in _array(value)[:50]) or (isinstance(value, dict) and _is_row(value))
        return any(_is_event(line.obj) or _is_row(line.obj) for line in source.head_lines())

    def read(self, source: Source) -> Recording:
        facts = _Facts(self.name)
        sessions = [session for row in _conversations(source) for session in _read(source, row, facts)]
        if not sessions:
            raise DamagedRecording("this OpenHands file has no events that can be read")
        return Recording(self.name, tuple(sessions), facts.facts(), source.notes)


FORMAT = OpenHandsFormat()


class _Facts(FactCounter):
    """Facts that also know the text of results without an id, which count by their length alone."""

    def __init__(self, format_name: str) -> None:
        super().__init__(format_name)
        self._longest = 0

    def text_result(self, chars: int) -> None:
        self._longest = max(self._longest, chars)

    def facts(self) -> Facts:
        found = super().facts()
        longest = max(self._longest, found.largest_tool_result_chars)
        return msgspec.structs.replace(found, largest_tool_result_chars=longest)


class _Row:
    """One conversation: its events with the lines they stand on, and what the evaluation tells about it."""

    def __init__(self, events: Iterable[tuple[JSON, int | None]], about: JSON) -> None:
        self.events = events
        self.about = about


def _array(value: Any) -> list[Any]:
    if isinstance(value, dict):
        value = value.get("trajectory", value.get("events"))
    return value if isinstance(value, list) else []


def _is_event(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    if fields.text(value, "kind") in SDK_KINDS:
        return True
    return fields.text(value, "source") in SOURCES and ("action" in value or "observation" in value) and "id" in value


def _is_row(value: JSON) -> bool:
    history = value.get("history")
    if not isinstance(history, list):
        return False
    entries = list(_flat(history[:4]))
    return bool(entries) and all("action" in item or "observation" in item or _is_event(item) for item in entries)


def _flat(history: list[Any]) -> Iterator[JSON]:
    """The entries of a history: flat events, or pairs of action and observation."""
    for item in history:
        if isinstance(item, dict):
            yield item
        elif isinstance(item, list):
            yield from fields.objects(item)


def _conversations(source: Source) -> Iterator[_Row]:
    if source.shape is Shape.JSON:
        value = source.json()
        if isinstance(value, dict) and _is_row(value):
            yield _Row(((item, 1) for item in _flat(value["history"])), value)
        elif isinstance(value, dict) and _is_event(value):
            yield _Row([(value, 1)], {})
        else:
            yield _Row(((item, None) for item in fields.objects(_array(value))), {})
        return
    if any(_is_row(line.obj) for line in source.head_lines()):
        for line in source.lines():
            if _is_row(line.obj):
                number = line.number
                yield _Row([(item, number) for item in _flat(line.obj["history"])], line.obj)
            else:
                source.notes.skip("row without a history")
        return
    yield _Row(((line.obj, line.number) for line in source.lines()), {})


def _read(source: Source, row: _Row, facts: _Facts) -> Iterator[Session]:
    reader = _Reader(source, facts)
    for item, line in row.events:
        facts.message()
        reader.take(item, line)
    session = reader.session(row.about)
    if session.events:
        yield session


class _Reader:
    """One conversation's events, taken in order."""

    def __init__(self, source: Source, facts: _Facts) -> None:
        self._source = source
        self._facts = facts
        self._builder = SessionBuilder("openhands", source)
        self._system: tuple[Part, ...] | None = None
        self._tools: Any = None
        self._model = ""
        self._places: dict[str, int] = {}  # event id -> index in the log
        self._responses: dict[str, int] = {}  # response id -> index in the log
        self._forgotten: set[str] = set()
        self._usage = _Cumulative()

    def take(self, item: JSON, line: int | None) -> None:
        kind = fields.text(item, "kind")
        if kind in SDK_KINDS or (kind and "action" not in item and "observation" not in item):
            self._take_sdk(kind, item, line)
        else:
            self._take_older(item, line)

    def session(self, about: JSON) -> Session:
        instance = fields.text(about, "instance_id") or fields.text(fields.mapping(about, "issue"), "title")
        metadata = fields.mapping(fields.mapping(about, "metadata"), "llm_config")
        if self._builder.calls and not any(call.prompt_tokens is not None for call in self._builder.calls):
            self._builder.notes.append("OpenHands recorded no usage per call in this file.")
        return self._builder.session(
            system=self._system,
            tools=chat.tool_definitions(self._tools),
            agent="OpenHands",
            model=self._model or fields.text(metadata, "model"),
            title=instance,
            source_id=fields.text(about, "instance_id"),
        )

    # -- SDK events

    def _take_sdk(self, kind: str, item: JSON, line: int | None) -> None:
        match kind:
            case "SystemPromptEvent":
                self._system = fields.content_parts(item.get("system_prompt"))
                self._tools = item.get("tools")
                dynamic = fields.content_parts(item.get("dynamic_context"))
                self._system = (*self._system, *dynamic)
            case "MessageEvent":
                self._sdk_message(item, line)
            case "ActionEvent":
                self._sdk_action(item, line)
            case "ObservationEvent" | "UserRejectObservation" | "AgentErrorEvent":
                self._sdk_result(kind, item, line)
            case "Condensation":
                self._condense(item, _ids(item.get("forgotten_event_ids")), line)
            case "ConversationStateUpdateEvent":
                self._state(item)
            case _:
                self._source.notes.skip(kind[:80])

    def _sdk_message(self, item: JSON, line: int | None) -> None:
        message = fields.mapping(item, "llm_message")
        parts = (*chat.message_parts(message), *fields.content_parts(item.get("extended_content")))
        if fields.text(message, "role") == "assistant" or fields.text(item, "source") == "agent":
            self._answer(item, parts, line, fields.text(item, "llm_response_id"))
        else:
            automatic = fields.text(item, "source") == "environment"
            self._append(item, Role.USER, parts, line, meta=automatic)

    def _sdk_action(self, item: JSON, line: int | None) -> None:
        call = fields.mapping(item, "tool_call")
        call_id = fields.text(item, "tool_call_id") or fields.text(call, "id")
        self._facts.tool_call(call_id)
        name = fields.text(item, "tool_name") or fields.text(call, "name")
        arguments = call.get("arguments", fields.mapping(call, "function").get("arguments", item.get("action")))
        part = ToolCallPart(name, fields.arguments(arguments), call_id)
        response = fields.text(item, "llm_response_id")
        if response and response in self._responses:
            self._add_call(item, self._responses[response], part)
            return
        self._answer(item, (*_thinking(item), *fields.content_parts(item.get("thought")), part), line, response)

    def _add_call(self, item: JSON, index: int, part: ToolCallPart) -> None:
        event = self._builder.events[index]
        self._builder.events[index] = Event(
            event.role, (*event.parts, part), event.source_id, event.line, event.timestamp, event.author
        )
        self._places[_id(item)] = index

    def _sdk_result(self, kind: str, item: JSON, line: int | None) -> None:
        observation = fields.mapping(item, "observation")
        found = (
            fields.plain_text(observation.get("content"))
            or fields.plain_text(observation.get("output"))
            or fields.text(item, "error")
            or fields.text(item, "rejection_reason")
        )
        call_id = fields.text(item, "tool_call_id")
        self._facts.tool_result(call_id, len(fields.text(item, "content")))
        failed = observation.get("is_error") is True or kind != "ObservationEvent"
        media = tuple(
            part for part in fields.content_parts(observation.get("content")) if not isinstance(part, TextPart)
        )
        result = ToolResultPart(fields.text(item, "tool_name"), found, call_id, failed)
        self._append(item, Role.USER, (result, *media), line)

    def _state(self, item: JSON) -> None:
        self._source.notes.skip("ConversationStateUpdateEvent")
        value = fields.mapping(item, "value")
        by_usage = fields.mapping(value, "usage_to_metrics") or fields.mapping(
            fields.mapping(value, "stats"), "usage_to_metrics"
        )
        for usage_id in AGENT_USAGE:
            metrics = fields.mapping(by_usage, usage_id)
            if metrics:
                self._model = fields.text(metrics, "model_name") or self._model
                self._usage.update(fields.mapping(metrics, "accumulated_token_usage"))
                return

    # -- older events

    def _take_older(self, item: JSON, line: int | None) -> None:
        action, observation = fields.text(item, "action"), fields.text(item, "observation")
        if action in CONDENSATIONS:
            self._condense_older(item, line)
        elif action in NOT_SENT or observation in NOT_SENT:
            self._source.notes.skip(f"{action or observation} event")
        elif observation:
            self._older_result(item, line)
        elif action == "system":
            self._older_system(item)
        elif action:
            self._older_action(item, action, line)
        else:
            self._source.notes.skip("entry without action or observation")

    def _older_system(self, item: JSON) -> None:
        arguments = fields.mapping(item, "args") or item
        self._system = fields.content_parts(arguments.get("content"))
        self._tools = arguments.get("tools")

    def _older_action(self, item: JSON, action: str, line: int | None) -> None:
        arguments = fields.mapping(item, "args") or item
        by_user = fields.text(item, "source") == "user" or (
            not fields.text(item, "source") and not self._builder.events
        )
        if action == "message" and by_user:
            parts = fields.content_parts(arguments.get("content"))
            self._append(item, Role.USER, parts, line, meta=False)
            return
        metadata = fields.mapping(item, "tool_call_metadata")
        response = fields.mapping(metadata, "model_response")
        call_id = fields.text(metadata, "tool_call_id")
        if call_id:
            self._facts.tool_call(call_id)
        thought = fields.text(arguments, "thought") or (
            fields.text(arguments, "content") if action == "message" else ""
        )
        parts = (TextPart(thought),) if thought else ()
        if action != "message":
            name = fields.text(metadata, "function_name") or action
            parts = (*parts, ToolCallPart(name, _older_arguments(arguments, metadata, response), call_id))
        response_id = fields.text(response, "id")
        if response_id and response_id in self._responses and isinstance(parts[-1], ToolCallPart):
            self._add_call(item, self._responses[response_id], parts[-1])
            return
        self._usage.update(fields.mapping(fields.mapping(item, "llm_metrics"), "accumulated_token_usage"))
        self._model = fields.text(response, "model") or self._model
        self._answer(item, parts, line, response_id, fields.mapping(response, "usage"))

    def _older_result(self, item: JSON, line: int | None) -> None:
        metadata = fields.mapping(item, "tool_call_metadata")
        call_id = fields.text(metadata, "tool_call_id")
        found = fields.text(item, "content") or fields.text(item, "message")
        if call_id:
            self._facts.tool_result(call_id, len(found))
        else:
            self._facts.text_result(len(found))
        failed = fields.text(item, "observation") == "error" or bool(item.get("error"))
        name = fields.text(metadata, "function_name")
        self._append(item, Role.USER, (ToolResultPart(name, found, call_id, failed),), line)

    def _condense_older(self, item: JSON, line: int | None) -> None:
        arguments = fields.mapping(item, "args") or item
        forgotten = _ids(arguments.get("forgotten_event_ids"))
        start, stop = arguments.get("forgotten_events_start_id"), arguments.get("forgotten_events_end_id")
        if not forgotten and isinstance(start, int) and isinstance(stop, int):
            forgotten = {key for key in self._places if key.isdigit() and start <= int(key) <= stop}
        self._condense(arguments, forgotten, line)

    # -- both

    def _append(self, item: JSON, role: Role, parts: tuple[Part, ...], line: int | None, meta: bool = False) -> None:
        time = fields.timestamp(item, "timestamp")
        index = self._builder.event(role, parts, line=line, source_id=_id(item), timestamp=time, meta=meta)
        self._places[_id(item)] = index

    def _answer(
        self, item: JSON, parts: tuple[Part, ...], line: int | None, response_id: str, usage: JSON | None = None
    ) -> None:
        time = fields.timestamp(item, "timestamp")
        call = self._usage.call(usage or {})
        if usage is not None and (prompt := call.get("prompt_tokens")) is not None:
            self._facts.call(prompt)
        call |= {"timestamp": time, "line": line, "source_id": response_id}
        index = self._builder.answer(parts, call=call, line=line, source_id=_id(item), timestamp=time)
        self._places[_id(item)] = index
        if response_id:
            self._responses[response_id] = index

    def _condense(self, item: JSON, forgotten: set[str], line: int | None) -> None:
        self._facts.compaction()
        self._forgotten |= forgotten
        gone = {index for key, index in self._places.items() if key in self._forgotten}
        kept = [index for index in range(len(self._builder.events)) if index not in gone]
        summary = fields.text(item, "summary")
        offset = fields.tokens(item, "summary_offset")
        place = (offset or 0) - (self._system is not None)
        base = _view(kept, max(0, min(place, len(kept))) if summary else None)
        message = Event(Role.USER, (TextPart(summary),), meta=True, line=line)
        self._builder.compactions.append(
            RecordedCompaction(
                at=len(self._builder.events),
                evidence=Evidence.DECLARED,
                kind=("summary+tail" if kept and place < len(kept) else "summary") if summary else "trim",
                base=base,
                messages=(message,) if summary else (),
                line=line,
                timestamp=fields.timestamp(item, "timestamp"),
            )
        )


class _Cumulative:
    """Running totals, of which the last difference is the usage of one call when it is confirmed to be one."""

    def __init__(self) -> None:
        self._last: JSON = {}
        self._next: dict[str, Any] = {}

    def update(self, usage: JSON) -> None:
        if not usage:
            return
        names = ("prompt_tokens", "completion_tokens", "cache_read_tokens", "cache_write_tokens")
        now = {name: fields.tokens(usage, name) or 0 for name in names}
        grown = {name: now[name] - self._last.get(name, 0) for name in names}
        self._last = now
        if grown["prompt_tokens"] <= 0:
            return
        one = fields.tokens(usage, "per_turn_token")
        confirmed = one is None or one == grown["prompt_tokens"] + grown["completion_tokens"]
        self._next = _call_fields(grown) if confirmed else {}

    def call(self, own: JSON) -> dict[str, Any]:
        """The usage of the call that is answered now: its own where it is recorded, else the last difference."""
        found, self._next = self._next, {}
        if fields.tokens(own, "prompt_tokens") is None:
            return found
        details = fields.mapping(own, "prompt_tokens_details")
        return {
            "prompt_tokens": fields.tokens(own, "prompt_tokens"),
            "cached_tokens": fields.tokens(details, "cached_tokens"),
            "output_tokens": fields.tokens(own, "completion_tokens"),
        }


def _call_fields(grown: dict[str, int]) -> dict[str, Any]:
    return {
        "prompt_tokens": grown["prompt_tokens"],
        "output_tokens": max(0, grown["completion_tokens"]),
        "cached_tokens": max(0, grown["cache_read_tokens"]),
        "cache_write_tokens": max(0, grown["cache_write_tokens"]),
    }


def _id(item: JSON) -> str:
    found = item.get("id")
    return str(found) if isinstance(found, int | str) and not isinstance(found, bool) else ""


def _ids(value: Any) -> set[str]:
    return {str(item) for item in value if isinstance(item, int | str)} if isinstance(value, list) else set()


def _thinking(item: JSON) -> tuple[Part, ...]:
    blocks = fields.content_parts(item.get("thinking_blocks"))
    readable = fields.text(item, "reasoning_content")
    return blocks or ((ReasoningPart(readable),) if readable else ())


def _older_arguments(arguments: JSON, metadata: JSON, response: JSON) -> Any:
    """The arguments as the model wrote them where the response is kept, else the action's own fields."""
    call_id = fields.text(metadata, "tool_call_id")
    for choice in fields.objects(response.get("choices")):
        for call in fields.objects(fields.mapping(choice, "message").get("tool_calls")):
            if fields.text(call, "id") == call_id:
                return chat.tool_call(call).arguments
    shown = {"command", "code", "path", "content", "url", "browser_actions", "outputs", "task", "name", "arguments"}
    return {key: value for key, value in arguments.items() if key in shown and value not in (None, "")}


def _view(kept: list[int], summary_at: int | None) -> View:
    segments: list[Segment] = []
    for place, index in enumerate(kept):
        if place == summary_at:
            segments.append(Inserted(0))
        last = segments[-1] if segments else None
        if isinstance(last, Span) and last.stop == index:
            segments[-1] = Span(last.start, index + 1)
        else:
            segments.append(Span(index, index + 1))
    if summary_at is not None and summary_at >= len(kept):
        segments.append(Inserted(0))
    return tuple(segments)
