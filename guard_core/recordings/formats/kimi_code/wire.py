"""One agent of a Kimi Code session, from the records of its wire log.

A step is one model call: `step.begin`, its parts and tool calls, `step.end` with the usage. The records of a step are
put together at its end, as Kimi Code does: the answer, the results in the order of their calls, then what came
meanwhile. A call without a result gets the words that Kimi Code sends in its place. Prompt tokens are `inputOther`,
`inputCacheRead` and `inputCacheCreation` together.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from guard_core.errors import DamagedRecording
from guard_core.events import Event, Part, Role, TextPart, ToolCallPart, part_text
from guard_core.recordings.formats.kimi_code import messages
from guard_core.recordings.formats.kimi_code.context import USER, ContextMessage, KimiCodeContext
from guard_core.recordings.reading import chat, fields
from guard_core.recordings.reading.build import FactCounter, SessionBuilder
from guard_core.recordings.reading.fields import JSON
from guard_core.recordings.reading.lost_lines import NumberedStep, skipped_in_turns, skipped_turns
from guard_core.recordings.reading.source import ByteSource, Line
from guard_core.sessions import (
    AgentSetting,
    Evidence,
    ModelCall,
    Provenance,
    RecordedCompaction,
    Session,
    Sourced,
    ToolDefinition,
)

MAIN = "main"  # the agent that the user talks to
SUMMARY_REFUSED = "summary_refused_at"  # name of a setting: events before a request for a summary that was too long
SUMMARY_OUTPUT = 128 * 1024  # tokens: the most that a compaction asks for where no limit of the output is configured
SLASH = "user-slash"  # the trigger of commands and skills that the user typed
_NUMBER = re.compile("[0-9]{1,9}")
_CANCELLED = "interrupted"
_BROKEN_OFF = frozenset({_CANCELLED, "error"})  # reasons at which a step stays open until the next one
WINDOW_NOTE = "what its requests may answer with, which is the window where no limit of the output is configured"


@dataclass
class _PendingResult:
    event: Event
    tokens: int
    place: dict[str, Any]


@dataclass
class _OpenStep:
    """A step while its records come in. `at` is the length of the log when its request was built."""

    at: int
    pending: int | None
    place: dict[str, Any]  # fields of the answer: line, timestamp, model
    parts: list[Part] = field(default_factory=list)
    results: dict[str, _PendingResult | None] = field(default_factory=dict)  # by the id of their call, in its order
    later: list[tuple[JSON, Line]] = field(default_factory=list)  # messages that came while it ran
    usage: JSON = field(default_factory=dict)
    name: str = ""  # the provider's id of the answer
    cancelled: bool = False


class WireReader:
    """Takes the records of one wire log in their order. `first`: it is the first session of the source."""

    def __init__(self, source: ByteSource, facts: FactCounter, *, first: bool = True) -> None:
        self.source = source
        self.notes = source.notes
        self.facts = facts
        self.log = SessionBuilder("kimi-code", source, first=first)
        self.context = KimiCodeContext()
        self.agent = ""
        self.system, self.changes = "", -1
        self.tools: tuple[ToolDefinition, ...] | None = None
        self.model = ""
        self._names: list[str] = []  # what distinguishes this session from others: when it began, was forked
        self._step: _OpenStep | None = None
        self._requests: tuple[set[int], set[int]] = (set(), set())  # limits of answers: of steps, of compactions
        self._refused = False  # the last request was answered by nothing, and the user said nothing since
        self._begun = False  # a compaction was begun
        self._dropped: int | None = None  # messages that its last request for a summary left out
        self._shrunk: list[AgentSetting] = []  # requests for summaries that were refused
        self._begun_at = 0  # events before it
        self._trigger = ""
        self._checked: int | None = None  # estimated tokens behind the last count when it began
        self._summariser: ModelCall | None = None
        self._absent = 0  # messages that follow a compaction and are not in the file
        self._numbered: list[NumberedStep] = []  # the steps that have numbers
        self._turns: list[str] = []  # the numbers of turns that have a step in the file, as they first come
        self._handlers: dict[str, Callable[[Line], None]] = {
            "metadata": self._metadata,
            "forked": self._forked,
            "profile.bind": self._configured,
            "config.update": self._configured,
            "llm.tools_snapshot": self._tools,
            "llm.request": self._request,
            "usage.record": self._usage,
            "agent.turn.started": self._turn_started,
            "context.append_message": self._appended,
            "context.append_loop_event": self._loop_event,
            "context.apply_compaction": self._compaction,
            "context.clear": self._clear,
            "context.undo": self._undo,
            "token_counting.rebased": self._rebased,
            "full_compaction.begin": self._begin_compaction,
            "full_compaction.cancel": self._cancel_compaction,
        }

    def line(self, line: Line) -> None:
        """One record."""
        kind = fields.text(line.obj, "type")
        self.agent = self.agent or fields.text(line.obj, "agentId")
        if handler := self._handlers.get(kind):
            handler(line)
        else:
            self.notes.skip(kind or "line without a type")

    @property
    def is_sub_agent(self) -> bool:
        """Is it the log of an agent that another one started."""
        return self.agent not in ("", MAIN)

    # -- the session

    def _metadata(self, line: Line) -> None:
        """A session without a folder is known by when it began."""
        if created := fields.tokens(line.obj, "created_at"):
            self._names.append(str(created))

    def _forked(self, line: Line) -> None:
        """A fork begins with the records of its origin, so that the time of the fork distinguishes it."""
        self._names.append(f"forked {fields.tokens(line.obj, 'time') or line.number}")

    def _configured(self, line: Line) -> None:
        prompt = fields.text(line.obj, "systemPrompt")
        if prompt and prompt != self.system:
            self.system, self.changes = prompt, self.changes + 1
        self.model = self.model or fields.text(line.obj, "modelAlias")

    def _tools(self, line: Line) -> None:
        """The tools of the last snapshot are those of the session."""
        self.tools = chat.tool_definitions(line.obj.get("tools"))

    def _request(self, line: Line) -> None:
        summarises = fields.text(line.obj, "kind") == "compaction"
        if limit := fields.window(line.obj, "maxTokens"):
            self._requests[summarises].add(limit)
        self.model = fields.text(line.obj, "model") or self.model
        if summarises:
            dropped = fields.tokens(line.obj, "droppedCount") or 0
            if self._dropped is not None and dropped > self._dropped:  # the request before it was too long
                self._shrunk.append(AgentSetting(SUMMARY_REFUSED, len(self.log.events), "droppedCount of its requests"))
            self._dropped = dropped
        elif self._step is not None:
            self._step.place["model"] = self.model

    @property
    def window(self) -> Sourced | None:
        """The window, where requests show it: steps may answer with all of it, compactions with no more than 131,072,
        unless a limit is configured, which is then that of both: so a prompt above it shows that it is not a window."""
        steps, summaries = self._requests
        limit = max(steps, default=0)
        if len(steps) != 1 or summaries != {min(limit, SUMMARY_OUTPUT)}:
            return None
        largest = max((call.prompt_tokens or 0 for call in self.log.calls), default=0)
        return Sourced(limit, Provenance.RECORDER, WINDOW_NOTE) if largest <= limit else None

    # -- messages

    def _appended(self, line: Line) -> None:
        message = fields.mapping(line.obj, "message")
        if not message:
            raise DamagedRecording("a record of an appended message without the message", line=line.number)
        self.facts.message()
        if self._step is not None:
            self._step.later.append((message, line))
        else:
            self._log_message(message, line)

    def _log_message(self, message: JSON, line: Line) -> None:
        role = fields.text(message, "role")
        origin = fields.mapping(message, "origin")
        kind = fields.text(origin, "kind")
        typed = kind in ("skill_activation", "plugin_command") and fields.text(origin, "trigger") == SLASH
        is_users = role == "user" and (kind in ("", USER) or typed)
        parts = _message_parts(message, role)
        if role not in messages.ROLES or not parts:
            self.notes.skip(f"message of role {role[:40] or 'none'} without content")
            return
        self.facts.parts(parts)
        tokens = messages.estimated(role) + messages.estimated_parts(message.get("content"))
        meta = role == "user" and not is_users
        place = {**_place(line), "source_id": fields.text(message, "id")}
        index = self.log.event(messages.ROLES[role], parts, meta=meta, author=kind if meta else "", **place)
        event = Event(messages.ROLES[role], parts) if is_users else None
        self._refused = self._refused and not is_users
        self.context.add(ContextMessage(index, tokens, kind or role, is_users, event))

    # -- steps

    def _turn_started(self, line: Line) -> None:
        """A turn without a prompt of its own continues the one before it, and its steps have that one's number: 2.1.0
        starts it after a compaction that a refused request forced (run)."""
        turn = line.obj.get("turnId")
        if isinstance(turn, int) and "queueItemId" not in line.obj:
            self._turns.append(str(turn))
        self.notes.skip("agent.turn.started")

    def _loop_event(self, line: Line) -> None:
        event = fields.mapping(line.obj, "event")
        kind = fields.text(event, "type")
        if kind == "step.begin":
            self._settle()
            if number := fields.tokens(event, "step"):
                self._numbered.append(NumberedStep(fields.text(event, "turnId"), number, line.number))
                self._turns.append(fields.text(event, "turnId"))
            self._step = _OpenStep(len(self.log.events), self.context.pending_at_check(), _place(line))
        elif self._step is None:
            self.notes.skip(f"{kind[:40] or 'event'} outside of a step")
        elif kind == "content.part":
            self._step.parts.append(messages.content_part(fields.mapping(event, "part")))
        elif kind == "tool.call":
            call_id = fields.text(event, "toolCallId")
            self._step.parts.append(messages.call_part(fields.text(event, "name"), event.get("args"), call_id))
            self._step.results.setdefault(call_id, None)
            self.facts.tool_call(call_id)
        elif kind == "tool.result":
            self._result(self._step, event, line)
        elif kind == "step.end":
            self._end(self._step, event, line)
        else:
            self.notes.skip(kind or "loop event without a type")

    def _result(self, step: _OpenStep, event: JSON, line: Line) -> None:
        call_id, result = fields.text(event, "toolCallId"), fields.mapping(event, "result")
        if call_id not in step.results or step.results[call_id] is not None:
            self.notes.skip("result without a call, not sent")
            return
        calls = (part for part in step.parts if isinstance(part, ToolCallPart))
        parts = messages.result_parts(call_id, result, next(call.name for call in calls if call.id == call_id))
        self.facts.message()
        self.facts.parts(parts)
        tokens = messages.ROLE_TOKENS + messages.estimated_parts(result.get("output"))
        step.results[call_id] = _PendingResult(Event(Role.USER, parts), tokens, _place(line))

    def _end(self, step: _OpenStep, event: JSON, line: Line) -> None:
        step.usage = fields.mapping(event, "usage") or step.usage
        step.name = fields.text(event, "messageId")
        reason = fields.text(event, "finishReason")
        step.cancelled = reason == _CANCELLED
        if reason not in _BROKEN_OFF:
            step.place = {**step.place, **_place(line)}
            self._settle()

    def _settle(self, *, ended: bool = True) -> None:
        """The step's messages go to the log. `ended`: calls without a result will not get one any more."""
        step, self._step = self._step, None
        if step is None:
            return
        call = ModelCall(
            at=step.at, pending_tokens=step.pending, source_id=step.name, **step.place, **_counts(step.usage)
        )
        is_empty = all(map(messages.is_blank, step.parts))
        self._refused = call.prompt_tokens is None and is_empty and not step.cancelled
        if not is_empty:
            self._answer(step, call)
        elif call.prompt_tokens is not None:
            self.log.calls.append(call)
        else:
            self.notes.skip("step without an answer")
        if call.prompt_tokens is not None:
            self.facts.call(call.prompt_tokens)
            self.context.pending = 0
        for call_id, result in step.results.items():
            self._log_result(call_id, result, ended)
        for message, line in step.later:
            self._log_message(message, line)

    def _answer(self, step: _OpenStep, call: ModelCall) -> None:
        self.facts.message()
        place = {key: value for key, value in step.place.items() if key != "model"}
        index = self.log.event(Role.MODEL, tuple(step.parts), source_id=step.name, **place)
        self.log.calls.append(replace(call, response=index))
        tokens = 0  # the usage counts it
        if call.prompt_tokens is None:
            tokens = messages.estimated("assistant") + sum(messages.estimated(part_text(part)) for part in step.parts)
        self.context.add(ContextMessage(index, tokens, "assistant"))

    def _log_result(self, call_id: str, result: _PendingResult | None, ended: bool) -> None:
        if result is None and not ended:
            return
        if result is None:
            event, tokens = messages.interrupted(call_id)
            result = _PendingResult(event, tokens, {})
        index = self.log.event(Role.USER, result.event.parts, **result.place)
        self.context.add(ContextMessage(index, result.tokens, "tool"))

    # -- usage

    def _usage(self, line: Line) -> None:
        usage = fields.mapping(line.obj, "usage")
        of_step = not self._begun or fields.text(line.obj, "usageScope") == "turn"
        if self._step is not None and of_step:  # a compaction may run beside a step
            self._step.usage = self._step.usage or usage
        elif counts := _counts(usage):
            call = ModelCall(at=len(self.log.events), model=self.model, **_place(line), **counts)
            if self._begun:
                self._summariser = call
            else:
                self.log.side_calls.append(call)

    # -- compactions

    def _begin_compaction(self, line: Line) -> None:
        self._settle()
        self._begun, self._trigger = True, fields.text(line.obj, "source")
        self._checked, self._summariser = self.context.pending_at_check(), None
        self._begun_at, self._dropped = len(self.log.events), None
        if self._trigger == "auto" and self._refused:
            self._trigger = "overflow"
            self.log.refuse()

    def _cancel_compaction(self, line: Line) -> None:
        """The request for its summary may have been answered, and then counts as a call beside the conversation."""
        self._begun = False
        if self._summariser is not None:
            self.log.side_calls.append(replace(self._summariser, at=self._begun_at))
        self.notes.skip("compaction that was cancelled")

    def _compaction(self, line: Line) -> None:
        if not self._begun:
            self._begin_compaction(line)
        message = fields.mapping(line.obj, "summary")
        words = fields.text(line.obj, "contextSummary") or fields.text(line.obj, "summary")
        text, has_summary = words or fields.plain_text(message.get("content")), bool(words or message)
        summary = Event(Role.USER, (TextPart(text),) if text else (), meta=True, author="compaction_summary")
        legacy = line.obj.get("legacyTail", fields.tokens(line.obj, "keptUserMessageCount") is None)
        if legacy is True:
            cut = fields.first_tokens(line.obj, "compactedCount", "count")
            self.context.compact_before(len(self.context.messages) if cut is None else cut, summary)
        else:
            self.context.compact(summary)
        base, inserted = self.context.view()
        kind = "summary" if len(self.context.messages) == 1 else "summary+tail"
        if not text:
            kind = "empty" if has_summary else "opaque"
        self.facts.compaction()
        self.log.compaction(
            RecordedCompaction(
                at=len(self.log.events),
                evidence=Evidence.DECLARED,
                kind=kind,
                base=base,
                messages=inserted,
                trigger=self._trigger,
                summariser=self._summariser,
                line=line.number,
                timestamp=fields.timestamp(line.obj, "time"),
                note=_estimates(line.obj) if has_summary else "The summary is not in the file.",
                pending_tokens=self._checked,
            )
        )
        self._begun = self._refused = False

    def _rebased(self, line: Line) -> None:
        """How many messages Kimi Code itself counted after a compaction: more than are in the file."""
        length = fields.tokens(line.obj, "length") or 0
        self._absent = max(self._absent, length - len(self.context.messages))

    def _undo(self, line: Line) -> None:
        """More messages than came since the last compaction are not taken back."""
        self._settle()
        if self.context.undo(fields.tokens(line.obj, "count") or 1):
            self._edited(line, "undo", "The user took messages back.")
        else:
            self.notes.skip("undo of more than there was")

    def _clear(self, line: Line) -> None:
        """The next request begins anew; what was said before stays in the log."""
        self._settle()
        self.context.clear()
        self._edited(line, "clear", "The user cleared the context.")

    def _edited(self, line: Line, trigger: str, note: str) -> None:
        base, inserted = self.context.view()
        when = fields.timestamp(line.obj, "time")
        self.log.compaction(
            RecordedCompaction(
                at=len(self.log.events),
                evidence=Evidence.DECLARED,
                kind="edit",
                base=base,
                messages=inserted,
                trigger=trigger,
                line=line.number,
                timestamp=when,
                note=note,
            )
        )

    def session(self, *, parent: str = "", folder: str = "") -> Session:
        """The session when all records are taken. `folder`: the id that the folder of the log has."""
        self._settle(ended=False)
        notes = []
        if not self.system:
            notes.append("The system prompt is not in the file.")
        if self.tools is None:
            notes.append("The schemas of the tools are not in the file.")
        if self.changes > 0:
            notes.append(f"Later changes of the system prompt: {self.changes}. The last is shown.")
        if self._absent > 0:
            words = "A message" if self._absent == 1 else f"{self._absent} messages"
            notes.append(f"{words} behind the summary of a compaction: sent by Kimi Code, not in the file.")
        notes += skipped_in_turns(self._numbered)
        turns = list(dict.fromkeys(self._turns))
        notes += skipped_turns([int(turn) for turn in turns]) if all(map(_NUMBER.fullmatch, turns)) else ()
        agent = self.agent if self.is_sub_agent else ""
        names = [folder, agent] if folder else [*self._names, agent]
        return self.log.session(
            system=(TextPart(self.system),) if self.system else None,
            tools=self.tools,
            source_id=" ".join(filter(None, names)),
            parent=parent,
            title=f"Sub-agent {agent}" if agent else "",
            agent="Kimi Code",
            model="" if self.log.calls else self.model,
            window=self.window,
            settings=tuple(self._shrunk),
            notes=tuple(notes),
        )


def _place(line: Line) -> dict[str, Any]:
    return {"line": line.number, "timestamp": fields.timestamp(line.obj, "time")}


def _message_parts(message: JSON, role: str) -> tuple[Part, ...]:
    """A message that was appended whole: imported, restored or the user's."""
    if role == "tool":
        result = {"output": message.get("content"), "isError": message.get("isError"), "note": message.get("note")}
        return messages.result_parts(fields.text(message, "toolCallId"), result)
    calls = [chat.tool_call(item) for item in fields.objects(message.get("toolCalls"))]
    return (*messages.content_parts(message.get("content")), *calls)


def _estimates(record: JSON) -> str:
    """Kimi Code's own estimates round a compaction, which are of texts and no counts of the provider."""
    before, after = fields.tokens(record, "tokensBefore"), fields.tokens(record, "tokensAfter")
    if before is None or after is None:
        return ""
    return f"By Kimi Code's own estimate of texts {before:,} tokens before and {after:,} after."


def _counts(usage: JSON) -> dict[str, Any]:
    """Counts of a usage as fields of ModelCall; without prompt tokens they count no call."""
    fresh, cached = fields.tokens(usage, "inputOther"), fields.tokens(usage, "inputCacheRead")
    written = fields.tokens(usage, "inputCacheCreation")
    prompt = sum(count or 0 for count in (fresh, cached, written))
    if not prompt:
        return {}
    return {
        "prompt_tokens": prompt,
        "cached_tokens": cached,
        "cache_write_tokens": written,
        "output_tokens": fields.tokens(usage, "output"),
    }
