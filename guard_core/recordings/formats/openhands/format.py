"""OpenHands recordings: SDK event logs and folders, evaluation output (a session per row), downloaded trajectories.

Definition: https://github.com/OpenHands/software-agent-sdk (`openhands/sdk/event`), and `openhands/events` of OpenHands
for the older events.
SDK events are distinguished by `kind`. ActionEvents with one `llm_response_id` are one answer with several calls, its
thought in the first. `SystemPromptEvent` holds the system prompt and the tools. `Condensation` declares a compaction:
`forgotten_event_ids` leave the request, `summary` is sent at `summary_offset` (see `view`).
Older events have `action` or `observation` at the top and appear flat or as pairs `[action, observation]`; their
condensation is an action of that name, with ids or a range of ids. What a user ran is a user's message, and so is what
came of it.
Usage is cumulative (see `openhands_usage`). In SDK logs the metrics of usage id `default` (or `agent`) grow with every
call, those of `condenser` with every summary; older events carry the response itself in
`tool_call_metadata.model_response`, else `llm_metrics`; evaluation rows list `token_usages` by response, and so does
the state in a conversation's folder (see `folder`), which has the settings of the condenser, too. Facts count rows or
history entries as messages, tool calls and results by id, result text at the top level of an observation, and
calls of older events and rows only (in SDK logs usage is a state of the conversation, not of a call).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from guard_core.errors import DamagedRecording
from guard_core.events import Event, Part, ReasoningPart, Role, TextPart, ToolCallPart, ToolResultPart
from guard_core.recordings.base import Recording, RecordingFacts
from guard_core.recordings.formats.openhands import look as openhands_look
from guard_core.recordings.formats.openhands.conversations import (
    SDK_KINDS,
    OpenHandsConversation,
    array_of,
    conversations,
    is_event,
    is_row,
)
from guard_core.recordings.formats.openhands.folder import folders, holds_events, settings_of, value_of
from guard_core.recordings.formats.openhands.known_names import NAMES
from guard_core.recordings.formats.openhands.usage import OpenHandsUsage
from guard_core.recordings.formats.openhands.view import SentEvents
from guard_core.recordings.reading import chat, fields, wrong_kinds
from guard_core.recordings.reading.build import FactCounter, SessionBuilder
from guard_core.recordings.reading.bundle import Bundle
from guard_core.recordings.reading.fields import JSON
from guard_core.recordings.reading.first_look import FirstLook
from guard_core.recordings.reading.lost_lines import skipped_words
from guard_core.recordings.reading.source import ByteSource, SourceShape
from guard_core.sessions import AgentSetting, Evidence, ModelCall, RecordedCompaction, Session
from guard_core.views import Span

CONDENSATIONS = frozenset({"condensation", "condense"})
# `filter_out` of the agent's controller: not in the request, nor counted in it by a summary's offset.
NOT_IN_VIEW = frozenset({"change_agent_state", "null", "agent_state_changed"})
# What the older software says to itself; what it recalls is sent in words that are not in the file.
OWN = frozenset({"recall", "condensation_request", "loop_recovery", "loop_detection", "pause", "resume", "stop"})
REQUEST = "condensation_request"
AGENT_USAGE = frozenset({"default", "agent"})  # usage ids of the agent's own model; others write titles and the like
CONDENSER_USAGE = "condenser"
# A result of the SDK's terminal is sent with what its metadata say. By its kind: what marks one that failed, and what
# is sent ahead of that. Source: TerminalObservation.to_llm_content of openhands-tools 1.58.2, the same of
# ExecuteBashObservation of 1.0.0a5, and runs of both compared with their requests.
TERMINALS = {
    "TerminalObservation": ("is_error", "[An error occurred during execution.]\n"),
    "ExecuteBashObservation": ("error", "[There was an error during command execution.]\n"),
}
NO_EXIT_CODE = -1


class OpenHandsFormat:
    name = "openhands"
    label = "OpenHands"
    place = "~/.openhands/conversations/…, a folder or its zip archive; trajectory JSON"
    known_names = NAMES

    def matches(self, source: ByteSource) -> bool:
        if source.shape is SourceShape.ZIP:
            return holds_events(source)
        if source.shape is SourceShape.JSON:
            value = source.json_head()
            whole = is_event(value) or (isinstance(value, dict) and is_row(value))
            return whole or any(is_event(item) or is_row(item) for item in fields.objects(array_of(value)[:50]))
        return any(is_event(line.obj) or is_row(line.obj) for line in source.head_lines())

    def read(self, source: ByteSource) -> Recording:
        facts = _OpenHandsFacts(self.name)
        if source.shape is SourceShape.ZIP:
            sessions = list(_archived(source, facts))
        else:
            sessions = [session for row in conversations(source) for session in _read(source, row, facts)]
        if not sessions:
            raise DamagedRecording("this OpenHands file has no events that can be read")
        return Recording(self.name, tuple(sessions), facts.facts(), source.notes)

    def first_look(self, source: ByteSource) -> FirstLook | None:
        """Rows of an evaluation are conversations of their own: no chart shows them together."""
        if source.shape is not SourceShape.LINES or any(is_row(line.obj) for line in source.head_lines()):
            return None
        return openhands_look.look(source)


FORMAT = OpenHandsFormat()


class _OpenHandsFacts(FactCounter):
    """Facts that also know the text of results without an id, which count by their length alone."""

    def __init__(self, format_name: str) -> None:
        super().__init__(format_name)
        self._longest = 0

    def text_result(self, chars: int) -> None:
        self._longest = max(self._longest, chars)

    def facts(self) -> RecordingFacts:
        facts = super().facts()
        longest = max(self._longest, facts.largest_tool_result_chars)
        return msgspec.structs.replace(facts, largest_tool_result_chars=longest)


def _read(source: ByteSource, row: OpenHandsConversation, facts: _OpenHandsFacts) -> Iterator[Session]:
    reader = OpenHandsReader(source, facts)
    facts.session()
    for item, line in row.events:
        facts.message()
        reader.take(item, line)
    session = reader.session(row.about)
    if session.events:
        yield session


def _archived(source: ByteSource, facts: _OpenHandsFacts) -> Iterator[Session]:
    """The conversations that an archive holds, each as a folder of its events."""
    with Bundle(source) as bundle:
        for folder in folders(bundle.names()):
            reader = OpenHandsReader(source, facts)
            facts.session()
            if folder.state:
                with source.tolerate():
                    reader.begin(value_of(bundle, folder.state))
            for _, name in folder.events:
                with source.tolerate():
                    item = value_of(bundle, name)
                    facts.message()
                    reader.take(item, None)
            session = reader.session({}, folder.name, skipped_words([number for number, _ in folder.events]))
            if session.events:
                yield session


class OpenHandsReader:
    """One conversation's events, taken in order."""

    def __init__(self, source: ByteSource, facts: _OpenHandsFacts) -> None:
        self._source = source
        self._facts = facts
        self._builder = SessionBuilder("openhands", source)
        self._system: tuple[Part, ...] | None = None
        self._tools: Any = None
        self._model = ""
        self._places: dict[str, int] = {}  # event id -> index in the log
        self._responses: dict[str, int] = {}  # response id -> index in the log
        self._by_user: set[str] = set()  # ids of what the user ran
        self._sent = SentEvents()
        self._usage = OpenHandsUsage()
        self._requested = False  # was a condensation requested since the last one
        self._settings: tuple[AgentSetting, ...] = ()
        self._is_counted = False  # does the state list the usage of every response

    def begin(self, state: JSON) -> None:
        """Take the state of a conversation: its settings, and the usage of every response."""
        self._settings = settings_of(state)
        self._model = fields.text(fields.mapping(fields.mapping(state, "agent"), "llm"), "model")
        by_usage = fields.mapping(fields.mapping(state, "stats"), "usage_to_metrics")
        for usage_id, _metrics in by_usage.items():
            if usage_id in AGENT_USAGE:
                self._usage.note(fields.mapping(by_usage, usage_id))
                self._is_counted = True
            elif usage_id == CONDENSER_USAGE:
                self._usage.note_summaries(fields.mapping(by_usage, usage_id))

    def take(self, item: JSON, line: int | None) -> None:
        kind = fields.text(item, "kind")
        if kind in SDK_KINDS or (kind and "action" not in item and "observation" not in item):
            self._take_sdk(kind, item, line)
        else:
            self._take_older(item, line)

    def session(self, about: JSON, name: str = "", notes: tuple[str, ...] = ()) -> Session:
        """The session of what was taken. `about`: what an evaluation says of it; `name`: of its folder."""
        instance = fields.text(about, "instance_id") or fields.text(fields.mapping(about, "issue"), "title")
        metadata = fields.mapping(fields.mapping(about, "metadata"), "llm_config")
        self._usage.note(fields.mapping(about, "metrics"), 0)
        self._complete(counted=bool(about) or self._is_counted)
        if self._builder.calls and not any(call.prompt_tokens is not None for call in self._builder.calls):
            self._builder.notes.append("OpenHands recorded no usage per call in this file.")
        return self._builder.session(
            system=self._system,
            tools=chat.tool_definitions(self._tools),
            agent="OpenHands",
            model=self._model or fields.text(metadata, "model"),
            title=instance,
            source_id=fields.text(about, "instance_id") or name,
            settings=self._settings,
            notes=notes,
            window=self._builder.window("context_window in the file"),
        )

    def _complete(self, *, counted: bool) -> None:
        self._builder.calls[:] = self._usage.named(self._builder.calls)
        for index, call in enumerate(self._builder.calls):
            self._builder.calls[index] = completed = self._usage.completed(call)
            if counted and call.prompt_tokens is None and completed.prompt_tokens is not None:
                self._facts.call(completed.prompt_tokens)
        for at, window in self._usage.windows(self._builder.calls):
            self._builder.states_window(at, window)

    # -- SDK events

    def _take_sdk(self, kind: str, item: JSON, line: int | None) -> None:
        match kind:
            case "SystemPromptEvent":
                self._sent.add(_id(item))
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
            case "CondensationRequest":
                self._source.notes.skip(kind)
                self._requested = True
            case "Condensation":
                self._condense(item, _ids(item.get("forgotten_event_ids")), line)
            case "ConversationStateUpdateEvent":
                self._state(item)
            case _:
                self._source.notes.skip(kind[:80])

    def _sdk_message(self, item: JSON, line: int | None) -> None:
        wrong_kinds.check_words(self._source, item, "llm_message", "a MessageEvent", line)
        message = fields.mapping(item, "llm_message")
        wrong_kinds.check_words(self._source, message, "content", "a MessageEvent", line)
        parts = (*chat.message_parts(message), *fields.content_parts(item.get("extended_content")))
        if fields.text(message, "role") == "assistant" or fields.text(item, "source") == "agent":
            self._answer(item, parts, line, fields.text(item, "llm_response_id"))
        else:
            automatic = fields.text(item, "source") == "environment"
            self._append(item, Role.USER, parts, line, meta=automatic)

    def _sdk_action(self, item: JSON, line: int | None) -> None:
        call = fields.mapping(item, "tool_call")
        call_id = _call_id(item)
        self._facts.tool_call(call_id)
        name = fields.text(item, "tool_name") or fields.text(call, "name")
        arguments = call.get("arguments", fields.mapping(call, "function").get("arguments", item.get("action")))
        part = ToolCallPart(name, fields.arguments(arguments), call_id)
        response = fields.text(item, "llm_response_id")
        if response and response in self._responses:
            self._add_call(item, self._responses[response], part)
            return
        readable = fields.text(item, "reasoning_content")
        thinking: tuple[Part, ...] = (ReasoningPart(readable),) if readable else ()
        thinking = fields.content_parts(item.get("thinking_blocks")) or thinking
        self._answer(item, (*thinking, *fields.content_parts(item.get("thought")), part), line, response)

    def _add_call(self, item: JSON, index: int, part: ToolCallPart) -> None:
        event = self._builder.events[index]
        self._builder.events[index] = msgspec.structs.replace(event, parts=(*event.parts, part))
        self._place(item, index)

    def _sdk_result(self, kind: str, item: JSON, line: int | None) -> None:
        observation = fields.mapping(item, "observation")
        content = (
            fields.plain_text(observation.get("content"))
            or fields.plain_text(observation.get("output"))
            or fields.text(observation, "error")
            or fields.text(observation, "message")
            or fields.text(item, "error")
            or fields.text(item, "rejection_reason")
        )
        call_id = fields.text(item, "tool_call_id")
        self._facts.tool_result(call_id, len(fields.text(item, "content")))
        failed = True in (observation.get("is_error"), observation.get("error")) or kind != "ObservationEvent"
        media = tuple(
            part for part in fields.content_parts(observation.get("content")) if not isinstance(part, TextPart)
        )
        if screen := fields.text(observation, "screenshot_data"):
            media = (*media, fields.media("image/png", screen))
        shown = _of_terminal(observation, content) if fields.text(observation, "kind") in TERMINALS else content
        result = ToolResultPart(fields.text(item, "tool_name"), shown, call_id, failed)
        self._append(item, Role.USER, (result, *media), line)

    def _state(self, item: JSON) -> None:
        self._source.notes.skip("ConversationStateUpdateEvent")
        value = fields.mapping(item, "value")
        by_usage = fields.mapping(value, "usage_to_metrics") or fields.mapping(
            fields.mapping(value, "stats"), "usage_to_metrics"
        )
        for usage_id, metrics in by_usage.items():
            if isinstance(metrics, dict):
                self._metrics(usage_id, metrics)

    def _metrics(self, usage_id: str, metrics: JSON) -> None:
        totals = fields.mapping(metrics, "accumulated_token_usage")
        if usage_id in AGENT_USAGE:
            self._usage.note(metrics, len(self._builder.events))
            self._model = fields.text(metrics, "model_name") or self._model
            if unanswered := self._usage.agent.update(totals):
                self._builder.side_calls.append(ModelCall(at=len(self._builder.events), **unanswered))
        elif usage_id == CONDENSER_USAGE:
            self._usage.condenser.update(totals)

    # -- older events

    def _take_older(self, item: JSON, line: int | None) -> None:
        action, observation = fields.text(item, "action"), fields.text(item, "observation")
        if action in CONDENSATIONS:
            self._condense_older(item, line)
        elif action in NOT_IN_VIEW or observation in NOT_IN_VIEW | CONDENSATIONS:
            self._source.notes.skip(f"{action or observation} event")
        elif action in OWN or observation in OWN:
            self._requested = self._requested or action == REQUEST
            self._source.notes.skip(f"{action or observation} event")
            self._sent.add(_id(item))
        elif observation:
            self._older_result(item, line)
        elif action == "system":
            self._sent.add(_id(item))
            arguments = fields.mapping(item, "args") or item
            self._system = fields.content_parts(arguments.get("content"))
            self._tools = arguments.get("tools")
        elif action:
            self._older_action(item, action, line)
        else:
            self._source.notes.skip("entry without action or observation")

    def _older_action(self, item: JSON, action: str, line: int | None) -> None:
        arguments = fields.mapping(item, "args") or item
        wrong_kinds.check_words(self._source, arguments, "content", f"a {action[:40]} action", line)
        opens = action == "message" and not self._builder.events
        speaker = fields.text(item, "source") or ("user" if opens else "agent")
        if speaker != "agent":
            self._older_user(item, action, arguments, line, automatic=speaker != "user")
            return
        metadata = fields.mapping(item, "tool_call_metadata")
        response = fields.mapping(metadata, "model_response")
        call_id = fields.text(metadata, "tool_call_id")
        if call_id:
            self._facts.tool_call(call_id)
        thought = fields.text(arguments, "thought") or (
            fields.text(arguments, "content") if action == "message" else ""
        )
        parts: tuple[Part, ...] = (TextPart(thought),) if thought else ()
        if action != "message":
            name = fields.text(metadata, "function_name") or action
            parts = (*parts, ToolCallPart(name, _older_arguments(arguments, metadata, response), call_id))
        response_id = fields.text(response, "id")
        if response_id and response_id in self._responses and isinstance(parts[-1], ToolCallPart):
            self._add_call(item, self._responses[response_id], parts[-1])
            return
        self._usage.note(fields.mapping(item, "llm_metrics"), len(self._builder.events))
        self._usage.agent.update(fields.mapping(fields.mapping(item, "llm_metrics"), "accumulated_token_usage"))
        self._model = fields.text(response, "model") or self._model
        self._answer(item, parts, line, response_id, fields.mapping(response, "usage"))

    def _older_user(self, item: JSON, action: str, arguments: JSON, line: int | None, *, automatic: bool) -> None:
        """What a user said, or ran; the environment speaks in the user's name, too."""
        parts = [*fields.content_parts(arguments.get("content")), *_images(arguments)]
        if action != "message":
            self._by_user.add(_id(item))
            parts = [TextPart(fields.text(arguments, "command") or fields.text(arguments, "code") or action)]
        self._append(item, Role.USER, parts, line, meta=automatic or action != "message")

    def _older_result(self, item: JSON, line: int | None) -> None:
        metadata = fields.mapping(item, "tool_call_metadata")
        call_id = fields.text(metadata, "tool_call_id")
        text = fields.text(item, "content") or fields.text(item, "message")
        wrong_kinds.check_words(self._source, item, "content", "an observation", line)
        if call_id:
            self._facts.tool_result(call_id, len(text))
        else:
            self._facts.text_result(len(text))
        if str(item.get("cause")) in self._by_user:
            self._append(item, Role.USER, (TextPart(text),), line, meta=True)
            return
        failed = fields.text(item, "observation") == "error" or bool(item.get("error"))
        result = ToolResultPart(fields.text(metadata, "function_name"), text, call_id, failed)
        self._append(item, Role.USER, (result, *_images(fields.mapping(item, "extras"))), line)

    def _condense_older(self, item: JSON, line: int | None) -> None:
        arguments = fields.mapping(item, "args") or item
        forgotten = _ids(arguments.get("forgotten_event_ids"))
        start, stop = arguments.get("forgotten_events_start_id"), arguments.get("forgotten_events_end_id")
        if not forgotten and isinstance(start, int) and isinstance(stop, int):
            forgotten = {key for key in self._sent if key.isdigit() and start <= int(key) <= stop}
        self._condense(arguments | {"id": item.get("id"), "timestamp": item.get("timestamp")}, forgotten, line)

    # -- both

    def _append(self, item: JSON, role: Role, parts: Sequence[Part], line: int | None, meta: bool = False) -> None:
        time = fields.timestamp(item, "timestamp")
        index = self._builder.event(role, parts, line=line, source_id=_id(item), timestamp=time, meta=meta)
        self._place(item, index)

    def _place(self, item: JSON, index: int) -> None:
        self._places[_id(item)] = index
        metadata = fields.mapping(item, "tool_call_metadata")
        response = fields.text(item, "llm_response_id")
        if not fields.text(item, "observation"):
            response = response or fields.text(fields.mapping(metadata, "model_response"), "id")
        self._sent.add(_id(item), _call_id(item) or fields.text(metadata, "tool_call_id"), response)

    def _answer(
        self, item: JSON, parts: tuple[Part, ...], line: int | None, response_id: str, usage: JSON | None = None
    ) -> None:
        time = fields.timestamp(item, "timestamp")
        call = self._usage.agent.call(usage)
        if usage is not None and (prompt := call.get("prompt_tokens")) is not None:
            self._facts.call(prompt)
        call |= {"timestamp": time, "line": line, "source_id": response_id, "model": self._model}
        index = self._builder.answer(parts, call=call, line=line, source_id=_id(item), timestamp=time)
        self._place(item, index)
        if response_id:
            self._responses[response_id] = index

    def _condense(self, item: JSON, forgotten: set[str], line: int | None) -> None:
        self._facts.compaction()
        at, time = len(self._builder.events), fields.timestamp(item, "timestamp")
        summary = fields.text(item, "summary")
        message = Event(Role.USER, (TextPart(summary),), meta=True, line=line) if summary else None
        self._sent.condense(_id(item), forgotten, message, fields.tokens(item, "summary_offset"))
        base, messages = self._sent.view(self._places)
        kind = "summary+tail" if base and isinstance(base[-1], Span) else "summary"
        response = fields.text(item, "llm_response_id")
        usage, requested = self._usage.condenser.call() or self._usage.of_summary(response), self._requested
        self._requested = False
        self._builder.compaction(
            RecordedCompaction(
                at=at,
                evidence=Evidence.DECLARED,
                kind="trim" if message is None else kind,
                base=base,
                messages=messages,
                trigger="requested" if requested else "",
                summariser=ModelCall(at=at, source_id=response, **usage) if usage else None,
                line=line,
                timestamp=time,
            )
        )


def _id(item: JSON) -> str:
    name = item.get("id")
    return str(name) if isinstance(name, int | str) and not isinstance(name, bool) else ""


def _images(about: JSON) -> list[Part]:
    """Pictures of a message, or the screen of a browser: with marks on it, that is what was sent."""
    screen = fields.text(about, "set_of_marks") or fields.text(about, "screenshot")
    urls = [*fields.items(about, "image_urls"), *([screen] if screen else [])]
    return [fields.media("", url) for url in urls if isinstance(url, str)]


def _call_id(item: JSON) -> str:
    return fields.text(item, "tool_call_id") or fields.text(fields.mapping(item, "tool_call"), "id")


def _ids(value: Any) -> set[str]:
    return {str(item) for item in value if isinstance(item, int | str)} if isinstance(value, list) else set()


def _of_terminal(observation: JSON, content: str) -> str:
    """What the model is sent of a terminal's output; what is cut of one above 30,000 characters is not known."""
    about = fields.mapping(observation, "metadata")
    code = about.get("exit_code", NO_EXIT_CODE)
    lines = (
        ("Current working directory: ", fields.text(about, "working_dir")),
        ("Python interpreter: ", fields.text(about, "py_interpreter_path")),
        ("Command finished with exit code ", str(code) if isinstance(code, int) and code != NO_EXIT_CODE else ""),
    )
    mark, failed = TERMINALS[fields.text(observation, "kind")]
    head = failed if observation.get(mark) is True else ""
    shown = "".join(f"\n[{name}{value}]" for name, value in lines if value)
    return f"{head}{fields.text(about, 'prefix')}{content}{fields.text(about, 'suffix')}{shown}"


def _older_arguments(arguments: JSON, metadata: JSON, response: JSON) -> Any:
    """The arguments as the model wrote them where the response is kept, else the action's own fields."""
    call_id = fields.text(metadata, "tool_call_id")
    for choice in fields.objects(response.get("choices")):
        for call in fields.objects(fields.mapping(choice, "message").get("tool_calls")):
            if fields.text(call, "id") == call_id:
                return chat.tool_call(call).arguments
    shown = {"command", "code", "path", "content", "url", "browser_actions", "outputs", "task", "name", "arguments"}
    return {key: value for key, value in arguments.items() if key in shown and value not in (None, "")}
