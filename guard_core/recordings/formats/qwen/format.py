"""Qwen Code chats: JSON Lines whose lines are linked (from 0.3), before that one JSON value as Gemini CLI's.

The log is the path from the last line to the root; what a rewind took back counts apart. Contents are Google's; the
text of a tool's result is what a model is sent of it. Prompt tokens are `promptTokenCount`, cached ones included. A
`chat_compression` line declares a compaction with the whole history after it and, from 0.16 on, the count that was
compared (`originalTokenCount`: before, the last count of the provider) and who asked. It is written before the message
that waited to be sent, so what waits follows that history, whether or not it is in it. `ui_telemetry` lines report
every call: those of no line of the assistant are summaries, titles and sub-agents, and count apart. Neither the system
prompt, nor the tools, nor the context texts before the first prompt are in the file; nor what an idle session clears of
old results. A sub-agent's file has side-chain lines only, one for each call of an answer, and names the session of its
parent.
Source: https://github.com/QwenLM/qwen-code, packages/core/src/services/chatRecordingService.ts and
session-api-history.ts, and the packages 0.1.4 to 0.24.4.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from guard_core.agent_versions import numbers
from guard_core.errors import DamagedRecording, LimitExceeded
from guard_core.events import Event, Role, TextPart, ToolCallPart, ToolResultPart
from guard_core.plural import counted
from guard_core.recordings.base import Recording
from guard_core.recordings.formats.gemini.chat import GeminiChatReader, read_chats
from guard_core.recordings.formats.qwen import look
from guard_core.recordings.formats.qwen.known_names import NAMES
from guard_core.recordings.formats.qwen.messages import answer_of, event_of, reported_call
from guard_core.recordings.formats.qwen.tree import ChatPath, is_side, paths_of
from guard_core.recordings.reading import fields, summary_words
from guard_core.recordings.reading.build import FactCounter, SessionBuilder
from guard_core.recordings.reading.fields import JSON
from guard_core.recordings.reading.first_look import FirstLook
from guard_core.recordings.reading.identities import Identities
from guard_core.recordings.reading.lost_lines import lost_words
from guard_core.recordings.reading.rebase import LogIndex
from guard_core.recordings.reading.refusals import names_length, says_too_long
from guard_core.recordings.reading.source import ByteSource, Line, SourceShape
from guard_core.recordings.reading.versions import Versions
from guard_core.sessions import Evidence, LeftBranches, ModelCall, RecordedCompaction, Session, ToolDefinition
from guard_core.views import Inserted, Span, View, kept_events

NAME, LABEL = "qwen-code", "Qwen Code"
MISSING = "The system prompt, the tools and the context texts before the first prompt are not in the file."
NO_CALLS = "No tool call is in the file: with `-p` these versions write neither calls nor the answers that made them."
TRIGGERS = {"token_limit": "auto", "manual": "manual", "payload_overflow": "overflow"}
# What is sent for a call without a result: ORPHAN_TOOL_USE_REPAIR_REASON of 0.21.2 and 0.24.4; 0.15.10 has it not yet,
# and of the versions between it is not known.
REPAIR = (
    "Tool execution result was not recorded — likely interrupted by network failure, abort, or process exit. Treat as"
    " failure and retry if needed."
)
REPAIRED_FROM = (0, 21, 2)
_MESSAGES = frozenset({"user", "assistant", "tool_result"})
_REFUSALS = frozenset({400, 413, 422})  # HTTP statuses of a provider for a request that is too large


class QwenCodeFormat:
    """Chats that Qwen Code recorded."""

    name = NAME
    label = LABEL
    place = "~/.qwen/projects/…/chats/*.jsonl"
    known_names = NAMES

    def matches(self, source: ByteSource) -> bool:
        if source.shape in (SourceShape.LINES, SourceShape.JSON) and any(map(is_line, _heads(source))):
            return True
        if source.shape is SourceShape.LINES:  # several states of a chat
            return any(map(_is_chat, _heads(source)))
        return source.shape is SourceShape.JSON and _is_chat(source.json_head(allow_nan=True))

    def read(self, source: ByteSource) -> Recording:
        if not any(map(is_line, _heads(source))):
            return read_chats(source, _EarlyChatReader)
        facts, readers = FactCounter(NAME), list[QwenChatReader]()
        paths = paths_of(source)
        for line in source.lines():
            with source.tolerate(line.number):
                if paths and line.number >= paths[0].start:
                    facts.session()
                    readers.append(QwenChatReader(source, paths.pop(0), facts, first=not readers))
                readers[-1].line(line)
        if not facts.messages and not any(reader.log.events for reader in readers):
            raise source.nothing_left("the chat holds no message that can be read")
        return Recording(NAME, tuple(reader.recorded() for reader in readers), facts.facts(), source.notes)

    def first_look(self, source: ByteSource) -> FirstLook | None:
        return look.look(source) if source.shape is SourceShape.LINES else None


def _heads(source: ByteSource) -> list[JSON]:
    return [line.obj for line in source.head_lines()]


def is_line(record: JSON) -> bool:
    """A line linked as Claude Code's, with a message of Google's parts, or one of Qwen Code's own payloads."""
    if "uuid" not in record or "sessionId" not in record:
        return False
    return isinstance(fields.mapping(record, "message").get("parts"), list) or "systemPayload" in record


def _is_chat(value: Any) -> bool:
    """A chat of one JSON value: Gemini CLI's, but that the model is called qwen."""
    messages = fields.items(value, "messages")
    chat = isinstance(value, dict) and "projectHash" in value and "sessionId" in value
    return chat and any(fields.text(message, "type") == "qwen" for message in fields.objects(messages))


class _EarlyChatReader(GeminiChatReader):
    """A chat of one JSON value, as versions before 0.3 write it (0.1.4, run)."""

    name, agent, version = NAME, LABEL, "before 0.3"

    def record(self, record: JSON, line: int | None) -> None:
        own = fields.text(record, "type") == "qwen"
        super().record({**record, "type": "gemini"} if own else record, line)

    def remarks(self) -> list[str]:
        has_calls = any(isinstance(part, ToolCallPart) for event in self.log.outlines for part in event.parts)
        return [] if has_calls else [NO_CALLS]


class QwenChatReader:
    """One chat, line by line. `path`: the lines of its last state; `first`: it is the first one of the file."""

    def __init__(self, source: ByteSource, path: ChatPath, facts: FactCounter, *, first: bool) -> None:
        self.source, self.notes, self.path, self.facts = source, source.notes, path, facts
        self.log = SessionBuilder(NAME, source, first=first)
        self.index = LogIndex(self.log)
        self.seen = Identities(source, "line")
        self.versions = Versions()
        self.system: tuple[TextPart, ...] | None = None
        self.tools: tuple[ToolDefinition, ...] | None = None
        self.session = self.parent = self.title = self.agent = self.agent_id = ""
        self.reported: list[ModelCall] = []  # by telemetry, of no answer so far
        self.answered: ModelCall | None = None  # the last answer, if no telemetry reported it yet
        self.unanswered: list[ToolCallPart] = []  # calls of the last answer that never get a result
        self.refused = False  # a request was too large for the provider since the last answer
        self.elsewhere = 0  # messages that were taken back, or of a sub-agent
        self.left = LeftBranches()  # what was taken back

    def line(self, line: Line) -> None:
        record, kind = line.obj, fields.text(line.obj, "type")
        self.session = self.session or fields.text(record, "sessionId")
        self.agent_id = self.agent_id or fields.text(record, "agentId")
        self.agent = self.agent or fields.text(record, "agentName")
        on_path = line.number in self.path and (self.path.is_side or not is_side(record))
        content = {key: value for key, value in record.items() if key not in ("parentUuid", "timestamp")}
        if self.seen.is_repeat(fields.text(record, "uuid"), content, line.number):
            self.notes.folded += 1
        elif kind in _MESSAGES:
            self._message(line, kind, on_path)
        elif kind == "system":
            self._system(line, fields.mapping(record, "systemPayload"), on_path)
        else:
            self.notes.skip(kind or "line without a type")

    # -- messages

    def _message(self, line: Line, kind: str, on_path: bool) -> None:
        record, subtype = line.obj, fields.text(line.obj, "subtype")
        content = fields.mapping(record, "message")
        if subtype in ("realtime_message", "code_mode_tool_result"):
            self.notes.skip(f"{subtype}, not sent")
            return
        self.versions.see(line.number, fields.text(record, "version"))
        self.facts.message()
        place = {
            "line": line.number,
            "timestamp": fields.timestamp(record, "timestamp"),
            "source_id": fields.text(record, "uuid"),
        }
        role = "model" if kind == "assistant" else "user"
        event = event_of({**content, "role": role}, meta=subtype == "notification", **place)
        self.facts.parts(event.parts)
        self.elsewhere += not on_path
        if not on_path and self._was_taken_back(line):
            self.left = replace(self.left, messages=self.left.messages + 1)
        if on_path and kind == "assistant" and self._is_piece(record, event):
            self._add_piece(event)
            return
        if on_path and kind != "tool_result":
            # The resumed program sends results of its own for calls without one, behind the recorded results.
            if self.unanswered and numbers(fields.text(record, "version")) >= REPAIRED_FROM:
                repairs = [ToolResultPart(call.name, REPAIR, call.id, True) for call in self.unanswered]
                self.log.event(Role.USER, repairs)
            self.unanswered = []
        if kind == "assistant":
            self._answer(line, event, on_path)
        elif on_path and subtype == "mid_turn_user_message" and self._follows_user():
            last = self.log.events[-1]
            self.log.events[-1] = replace(last, parts=(*last.parts, *event.parts))
            self.index.forget(len(self.log.events) - 1)
        elif on_path and event.parts:
            self._append(event)
        elif not event.parts:
            self.notes.skip(f"{kind} without content")

    def _was_taken_back(self, line: Line) -> bool:
        """Is a line that is not on the path one of this conversation, and none of a sub-agent."""
        return self.path.is_side or not is_side(line.obj)

    def _follows_user(self) -> bool:
        return bool(self.log.events) and self.log.outlines[-1].role is Role.USER

    def _append(self, event: Event) -> int:
        return self.log.event(**{name: getattr(event, name) for name in event.__struct_fields__})

    def _answer(self, line: Line, event: Event, on_path: bool) -> None:
        call = answer_of(line.obj, line.number)
        if call.prompt_tokens:
            self.facts.call(call.prompt_tokens)
            self._claim(call)
        at = len(self.log.events)
        if not on_path:
            self.log.side_calls.append(replace(call, at=at))
            if self._was_taken_back(line):
                self.left = replace(self.left, largest=max(self.left.largest, call.prompt_tokens or 0))
            return
        self.log.states_window(at, fields.window(line.obj, "contextWindowSize"))
        self.refused = False
        self._take_early(event)
        response = self._append(event) if event.parts else None
        self.log.calls.append(replace(call, at=at, response=response))
        self._await_results(event)

    def _await_results(self, answer: Event) -> None:
        calls = (part for part in answer.parts if isinstance(part, ToolCallPart))
        self.unanswered += (call for call in calls if call.id and call.id not in self.path.answered)

    def _is_piece(self, record: JSON, event: Event) -> bool:
        """Is a line of a sub-agent a call of the answer before it: each is a line of its own there, and the words and
        the usage are the line before them (`attachJsonlTranscriptWriter` of 0.15.10, 0.21.2 and 0.24.4)."""
        if not self.path.is_side or not self.log.calls or "usageMetadata" in record:
            return False
        last, size = self.log.calls[-1], len(self.log.events)
        follows = (last.at if last.response is None else last.response + 1) == size
        return follows and bool(event.parts) and all(isinstance(part, ToolCallPart) for part in event.parts)

    def _add_piece(self, piece: Event) -> None:
        self._await_results(piece)
        call = self.log.calls[-1]
        if call.response is None:
            self.log.calls[-1] = replace(call, response=self._append(piece))
            return
        answer = self.log.events[call.response]
        if len(answer.parts) >= self.log.limits.parts:
            raise LimitExceeded(f"an answer with more than {self.log.limits.parts} parts", line=piece.line)
        self.log.events[call.response] = replace(answer, parts=(*answer.parts, *piece.parts))
        self.index.forget(call.response)

    def _take_early(self, answer: Event) -> None:
        """Take an answer out of the compressed history before it, which may hold it already (0.15.10, run)."""
        last = self.log.compactions[-1] if self.log.compactions else None
        if last is None or last.at != len(self.log.events) or not last.messages:
            return
        if last.base[-1] == Inserted(len(last.messages) - 1) and last.messages[-1].parts == answer.parts:
            self.log.compactions[-1] = replace(last, base=last.base[:-1], messages=last.messages[:-1])

    def _claim(self, call: ModelCall) -> None:
        """Take the telemetry of an answer away, which may come before or after it."""
        for index in reversed(range(len(self.reported))):
            if _is_same(self.reported[index], call):
                del self.reported[index]
                return
        self.answered = call

    # -- lines of the software

    def _system(self, line: Line, payload: JSON, on_path: bool) -> None:
        subtype = fields.text(line.obj, "subtype")
        if subtype == "ui_telemetry":
            self._telemetry(fields.mapping(payload, "uiEvent"), line.number)
        elif subtype == "chat_compression":
            self._compaction(line, payload, on_path)
        elif subtype == "custom_title":
            self.title = fields.text(payload, "customTitle") or self.title
        elif subtype == "parent_session":
            self.parent = fields.text(payload, "parentSessionId")
        elif subtype == "agent_bootstrap" and on_path:
            self._bootstrap(payload, line.number)
        elif subtype == "slash_command" and on_path:
            self._command(payload)
        else:
            self.notes.skip(f"system: {subtype or 'no subtype'}")

    def _telemetry(self, event: JSON, line: int) -> None:
        name = fields.text(event, "event.name")
        if name.endswith(".api_response"):
            call = reported_call(event, line)
            if self.answered is not None and _is_same(call, self.answered):
                self.answered = None
            elif call.prompt_tokens:
                self.reported.append(replace(call, at=len(self.log.events)))
        elif name.endswith(".api_error"):
            message = fields.text(event, "error_message") or fields.text(event, "error")
            status = fields.tokens(event, "status_code")
            refused = status in (None, *_REFUSALS)
            self.refused |= refused and says_too_long(message)
            if refused and names_length(message):
                self.log.refuse(message)
        else:
            self.notes.skip("system: ui_telemetry")

    def _bootstrap(self, payload: JSON, line: int) -> None:
        """What a sub-agent was started with."""
        for content in fields.objects(payload.get("history")):
            event = event_of(content, line=line)
            if event.parts:
                self._append(event)
        if text := fields.plain_text(payload.get("systemInstruction")) or fields.plain_text(
            fields.items(fields.mapping(payload, "systemInstruction"), "parts")
        ):
            self.system = (TextPart(text),)
        if declared := list(fields.objects(payload.get("tools"))):
            self.tools = tuple(
                ToolDefinition(
                    fields.text(tool, "name"),
                    fields.text(tool, "description"),
                    tool.get("parametersJsonSchema") or tool.get("parameters"),
                )
                for tool in declared
            )

    def _command(self, payload: JSON) -> None:
        """A command that was answered here: the model never gets the line in which the user typed it."""
        self.notes.skip("system: slash_command")
        typed = fields.text(payload, "rawCommand")
        if fields.text(payload, "phase") != "result" or payload.get("sentToModel") is True or not typed:
            return
        is_last = self._follows_user() and self.log.events[-1].parts == (TextPart(typed),)
        if is_last and self._last_cut() < len(self.log.events):
            del self.log.events[-1:]
            self.index.forget(len(self.log.events))

    # -- compactions

    def _compaction(self, line: Line, payload: JSON, on_path: bool) -> None:
        info, history = fields.mapping(payload, "info"), payload.get("compressedHistory")
        if not isinstance(history, list):
            raise DamagedRecording("a compaction without the history after it", line=line.number)
        self.facts.compaction()
        self.unanswered = [] if on_path else self.unanswered
        if not on_path:
            if self._was_taken_back(line):
                self.left = replace(self.left, compactions=self.left.compactions + 1)
            self.notes.skip("compaction that was taken back")
            return
        contents = [
            event for content in fields.objects(history) for event in self._divided(event_of(content, line=line.number))
        ]
        # Versions before 0.16 do not say who asked. A count that is no estimate is the provider's, of a request that it
        # refused.
        reason = fields.text(info, "triggerReason")
        trigger = TRIGGERS.get(reason, reason[:40])
        if (self.refused or info.get("originalTokenCountIsEstimated") is False) and trigger in ("", "auto"):
            trigger = "overflow"
        base, messages = self._sent(*self.index.rebase([event for event in contents if event.parts]))
        base = self._with_waiting(base, trigger)
        texts = [part.text for event in messages for part in event.parts if isinstance(part, TextPart)]
        kind = "summary+tail" if any(not isinstance(segment, Inserted) for segment in base) else "summary"
        if not any(summary_words.SNAPSHOT in text or text.startswith(summary_words.GEMINI_ANSWER) for text in texts):
            kind = "edit"
        self.log.compaction(
            RecordedCompaction(
                at=len(self.log.events),
                evidence=Evidence.DECLARED,
                kind=kind,
                base=base,
                messages=tuple(
                    replace(event, meta=event.role is Role.USER or event.meta, line=line.number) for event in messages
                ),
                trigger=trigger,
                tokens_before=fields.tokens(info, "originalTokenCount") or None,
                tokens_after=fields.tokens(info, "newTokenCount") or None,
                summariser=self.reported.pop() if self.reported else None,
                line=line.number,
                timestamp=fields.timestamp(line.obj, "timestamp"),
            )
        )
        self.refused = False

    def _sent(self, base: View, messages: tuple[Event, ...]) -> tuple[View, tuple[Event, ...]]:
        """A compressed history as it is sent: without a call at its end that the log does not have yet, for its answer
        was not finished (0.15.10, run)."""
        last = messages[-1] if messages and base and isinstance(base[-1], Inserted) else None
        calls = [] if last is None else _calls_of(last)
        answered = next((event for event in reversed(self.log.outlines) if event.role is Role.MODEL), None)
        answered_calls = [] if answered is None else _calls_of(answered)
        is_early = bool(calls) and not any(name and name in answered_calls for name in calls)
        return (base[:-1], messages[:-1]) if is_early else (base, messages)

    def _divided(self, message: Event) -> list[Event]:
        """A message of the history as the events that the log has of it: the results of calls made together, and the
        user's own words behind a reminder, are written as one message there and as one line each here."""
        if message.role is Role.MODEL or len(message.parts) < 2:
            return [message]
        single = [replace(message, parts=(part,)) for part in message.parts]
        return single if any(map(self.index.knows, single)) else [message]

    def _with_waiting(self, base: View, trigger: str) -> View:
        """The history after a compaction with what waited to be sent: user messages and results since the last answer,
        those behind the last one that the history holds. After a refused request they were a part of what was
        summarised."""
        if trigger in ("manual", "overflow"):
            return base
        outlines, stop = self.log.outlines, len(self.log.events)
        start = stop
        while start and outlines[start - 1].role is not Role.MODEL:
            start -= 1
        start = max(
            start, self._last_cut(), 1 + max((index for span in kept_events(base) for index in span), default=-1)
        )
        if start >= stop:
            return base
        last = base[-1] if base else None
        if isinstance(last, Span) and last.stop == start:
            return (*base[:-1], Span(last.start, stop))
        return (*base, Span(start, stop))

    def _last_cut(self) -> int:
        return self.log.compactions[-1].at if self.log.compactions else 0

    # -- the end

    def recorded(self) -> Session:
        """The chat as a session."""
        self.log.side_calls += self.reported
        self.log.side_calls.sort(key=lambda call: (call.at, call.line or 0))
        return self.log.session(
            system=self.system,
            tools=self.tools,
            source_id=self.agent_id if self.path.is_side else self.session,
            parent=self.session if self.path.is_side else self.parent,
            title=self.title or (self.agent if self.path.is_side else ""),
            agent=LABEL,
            window=self.log.window("contextWindowSize in the file"),
            versions=self.versions.of(self.log.outlines),
            notes=tuple(self._words()),
            left=self.left if self.left != LeftBranches() else None,
        )

    def _words(self) -> list[str]:
        notes = [] if self.system else [MISSING]
        if self.path.is_side:
            notes.append("A sub-agent's chat.")
        if self.elsewhere:
            notes.append(
                f"Not in the log: {counted(self.elsewhere, 'message')} taken back by a rewind, or of a sub-agent."
            )
        return [*notes, *lost_words(self.path.lost_at)]


def _is_same(reported: ModelCall, answer: ModelCall) -> bool:
    """Are these the counts of one call."""
    return reported.prompt_tokens == answer.prompt_tokens and reported.output_tokens == answer.output_tokens


FORMAT = QwenCodeFormat()


def _calls_of(event: Event) -> list[str]:
    """The ids of the calls in an event."""
    return [part.id for part in event.parts if isinstance(part, ToolCallPart)]
