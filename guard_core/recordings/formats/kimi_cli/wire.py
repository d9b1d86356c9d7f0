"""A wire file of Kimi CLI: what was shown while it ran. That is all but the system prompt, the summaries of compactions
and what the software added to the conversation by itself.

A turn begins with what the user typed (a command that no step follows is never sent); a step is one call: its parts,
its usage (`StatusUpdate`), its results. A compaction within a step is automatic, any other was asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from guard_core.events import Event, Part, ReasoningPart, Role, TextPart, ToolCallPart
from guard_core.recordings.formats.kimi_cli.messages import parts_of, shown_result, tool_call, user_event
from guard_core.recordings.reading import fields
from guard_core.recordings.reading.fields import JSON
from guard_core.recordings.reading.lost_lines import NumberedStep
from guard_core.recordings.reading.source import ByteSource, Line
from guard_core.sessions import ModelCall

UNNUMBERED = "1.0"  # ours: of a file that begins without the line that names a protocol, as those of 0.77
# The protocol of 0.88, and what every version from then on names in a file that was there before its first line, as a
# sub-agent's is: WIRE_PROTOCOL_LEGACY_VERSION of wire/protocol.py, 0.88 to 1.51. Sub-agents have files of their own
# from 1.25 on, whose statuses name the window; those of 0.88 do not (wire/types.py).
LEGACY = "1.1"


@dataclass
class WireStep:
    """A call and its answer, with the results of its tools in the order of the calls."""

    answer: Event
    call: ModelCall
    results: list[Event] = field(default_factory=list)
    window: int = 0  # that the wire states at the time, in tokens

    @property
    def key(self) -> object:
        """What distinguishes it from others: the ids of its tool calls, else its text."""
        return key_of(self.answer)


@dataclass(frozen=True)
class WireCompaction:
    """A compaction that ended. `trigger`: auto, manual, or "" where that is not known. `is_cut`: the file begins in the
    turn that it is of, so that what it summarised may be missing."""

    trigger: str
    timestamp: float | None
    line: int
    is_cut: bool = False


Entry = Event | WireStep | WireCompaction  # an event is a message of the user


def key_of(answer: Event) -> object:
    """What distinguishes an answer from others: the ids of its tool calls, else its text."""
    ids = tuple(part.id for part in answer.parts if isinstance(part, ToolCallPart))
    return ids if any(ids) else "".join(part.text for part in answer.parts if isinstance(part, TextPart))


@dataclass
class Wire:
    """One file: its entries in order, what else it says, and the calls of sub-agents. `protocol` is "" where it names
    none, or perhaps one of another version."""

    entries: list[Entry] = field(default_factory=list)
    protocol: str = ""
    window: int = 0
    side_calls: list[tuple[int, ModelCall]] = field(default_factory=list)  # with the number of entries before each
    sub_agents: dict[str, str] = field(default_factory=dict)  # by their id, the tool call that started them
    failed: int = 0  # compactions that did not end
    numbered: list[NumberedStep] = field(default_factory=list)  # the steps that have numbers

    @property
    def steps(self) -> Iterator[tuple[int, WireStep]]:
        """The steps with their places among the entries."""
        return ((place, entry) for place, entry in enumerate(self.entries) if isinstance(entry, WireStep))


def is_record(record: JSON) -> bool:
    """Is this a line that a wire of Kimi CLI has, apart from its header."""
    message = fields.mapping(record, "message")
    return "timestamp" in record and isinstance(message.get("payload"), dict) and bool(fields.text(message, "type"))


def is_header(record: JSON) -> bool:
    """Is this the header, which Kimi Code has, too, with a time."""
    return fields.text(record, "type") == "metadata" and record.keys() == {"type", "protocol_version"}


def read_wire(source: ByteSource) -> Wire:
    """What a file shows."""
    reader = _KimiCliWireReader(source)
    for line in source.lines():
        with source.tolerate(line.number):
            if line.number == 1 and fields.text(line.obj.get("message"), "type") == "TurnBegin":
                reader.wire.protocol = UNNUMBERED
            reader.line(line)
    reader.end()
    return reader.wire


class _KimiCliWireReader:
    def __init__(self, source: ByteSource) -> None:
        self.notes = source.notes
        self.wire = Wire()
        self.typed: Event | None = None  # begins the next step, if there is one
        self.in_step = False
        self.turns = 0
        self.begun: Line | None = None  # of a compaction
        self.parts: list[Part] = []
        self.results: list[Event] = []
        self.usage: ModelCall | None = None
        self.first: Line | None = None  # of the answer

    def line(self, line: Line) -> None:
        if not is_record(line.obj):
            if fields.text(line.obj, "type") == "metadata":
                self.wire.protocol = fields.text(line.obj, "protocol_version")[:20]
            else:
                self.notes.skip("line without a message")
            return
        message = fields.mapping(line.obj, "message")
        kind, payload = fields.text(message, "type"), fields.mapping(message, "payload")
        handle = _HANDLERS.get(kind)
        if handle is None:
            self.notes.skip(kind[:60])
            return
        handle(self, line, payload)

    def _turn(self, line: Line, payload: JSON) -> None:
        """What was typed waits for the first step: a command that none follows is never sent."""
        self._finish_step()
        self.turns += 1
        parts = parts_of(payload.get("user_input"))
        self.typed = user_event(parts, **_place(line)) if parts else None
        self.in_step = False

    def _steer(self, line: Line, payload: JSON) -> None:
        """What is typed while the agent works goes with the next request."""
        self._finish_step()
        if parts := parts_of(payload.get("user_input")):
            self.wire.entries.append(user_event(parts, **_place(line)))

    def _step(self, line: Line, payload: JSON) -> None:
        self._finish_step()
        if self.typed is not None:
            self.wire.entries.append(self.typed)
            self.typed = None
        if number := fields.tokens(payload, "n"):
            self.wire.numbered.append(NumberedStep(self.turns, number, line.number))
        self.in_step = True

    def _interrupted(self, line: Line, payload: JSON) -> None:
        """What the step had shown by then is its answer."""
        self._finish_step()
        self.in_step = False

    def _retry(self, line: Line, payload: JSON) -> None:
        """What an attempt that failed had shown is not kept."""
        self.parts, self.first = [], None
        self.notes.skip("StepRetry")

    def _turn_end(self, line: Line, payload: JSON) -> None:
        """What was typed and no step followed was a command."""
        self._finish_step()
        if self.typed is not None:
            self.notes.skip("command of the user, not sent")
        self.typed, self.in_step = None, False

    def _compaction_begin(self, line: Line, payload: JSON) -> None:
        """One that has not ended when another begins has failed."""
        self._finish_step()
        self.wire.failed += self.begun is not None
        self.begun = line

    def _compaction_end(self, line: Line, payload: JSON) -> None:
        if self.begun is None:
            self.notes.skip("CompactionEnd without its beginning")
            return
        self.begun = None
        trigger = "auto" if self.in_step else "manual" if self.turns else ""
        when = fields.timestamp(line.obj, "timestamp")
        self.wire.entries.append(WireCompaction(trigger, when, line.number, is_cut=not self.turns))

    def _content(self, line: Line, payload: JSON) -> None:
        if not self.in_step:
            self.notes.skip("text shown outside of a step")
            return
        self.first = self.first or line
        self.parts.extend(parts_of(payload))

    def _call(self, line: Line, payload: JSON) -> None:
        """A call may be the first that is shown of an answer."""
        self.first = self.first or line
        self.parts.append(tool_call(payload))

    def _result(self, line: Line, payload: JSON) -> None:
        """Results come as their tools end; the end of the step puts them in the order of the calls."""
        self.results.append(shown_result(payload, **_place(line)))

    def _status(self, line: Line, payload: JSON) -> None:
        """It may state the window at any time; only within a step does it count a call."""
        self.wire.window = fields.window(payload, "max_context_tokens") or self.wire.window
        if isinstance(payload.get("token_usage"), dict) and self.in_step:
            self.first = self.first or line
            self.usage = _usage(payload, line)

    def _sub_agent(self, line: Line, payload: JSON) -> None:
        """An event of a sub-agent: its calls count apart."""
        call = fields.text(payload, "parent_tool_call_id") or fields.text(payload, "task_tool_call_id")
        if agent := fields.text(payload, "agent_id"):
            self.wire.sub_agents.setdefault(agent, call)
        event = fields.mapping(payload, "event")
        if fields.text(event, "type") == "StatusUpdate":
            usage = _usage(fields.mapping(event, "payload"), line)
            if usage.prompt_tokens:
                self.wire.side_calls.append((len(self.wire.entries), usage))
        self.notes.skip("SubagentEvent")

    def _finish_step(self) -> None:
        """The answer so far, with its results, is one call."""
        if self.parts or self.usage is not None:
            place = _place(self.first) if self.first else {}
            call = self.usage or ModelCall(at=0, timestamp=place.get("timestamp"), line=place.get("line"))
            answer = Event(Role.MODEL, _merged(self.parts), **place)
            order = {part.id: number for number, part in enumerate(self.parts) if isinstance(part, ToolCallPart)}
            results = sorted(self.results, key=lambda event: order.get(_answered(event), len(order)))
            self.wire.entries.append(WireStep(answer, call, results, self.wire.window))
        elif self.results:
            self.notes.skip("ToolResult without its call")
        self.parts, self.results, self.usage, self.first = [], [], None, None

    def end(self) -> None:
        """The file ends, perhaps in the middle of a step."""
        self._finish_step()
        self.wire.failed += self.begun is not None
        has_old_status = not self.wire.window and any(step.call.prompt_tokens for _, step in self.wire.steps)
        if self.wire.protocol == LEGACY and not has_old_status:
            self.wire.protocol = ""


_HANDLERS = {
    "TurnBegin": _KimiCliWireReader._turn,
    "SteerInput": _KimiCliWireReader._steer,
    "StepBegin": _KimiCliWireReader._step,
    "StepInterrupted": _KimiCliWireReader._interrupted,
    "StepRetry": _KimiCliWireReader._retry,
    "TurnEnd": _KimiCliWireReader._turn_end,
    "CompactionBegin": _KimiCliWireReader._compaction_begin,
    "CompactionEnd": _KimiCliWireReader._compaction_end,
    "ContentPart": _KimiCliWireReader._content,
    "TextPart": _KimiCliWireReader._content,
    "ThinkPart": _KimiCliWireReader._content,
    "ToolCall": _KimiCliWireReader._call,
    "ToolResult": _KimiCliWireReader._result,
    "StatusUpdate": _KimiCliWireReader._status,
    "SubagentEvent": _KimiCliWireReader._sub_agent,
}


def _place(line: Line) -> dict[str, Any]:
    return {"line": line.number, "timestamp": fields.timestamp(line.obj, "timestamp")}


def _answered(event: Event) -> str:
    """The id of the call that an event with a result answers."""
    return str(getattr(event.parts[0], "call_id", "")) if event.parts else ""


def _usage(payload: JSON, line: Line) -> ModelCall:
    """The counts of a call: prompt tokens are those that were not cached, read from a cache and written to it."""
    usage = fields.mapping(payload, "token_usage")
    cached, written = fields.tokens(usage, "input_cache_read"), fields.tokens(usage, "input_cache_creation")
    prompt = (fields.tokens(usage, "input_other") or 0) + (cached or 0) + (written or 0)
    return ModelCall(
        at=0,
        prompt_tokens=prompt or None,
        cached_tokens=cached if prompt else None,
        cache_write_tokens=written if prompt else None,
        output_tokens=fields.tokens(usage, "output") if prompt else None,
        timestamp=fields.timestamp(line.obj, "timestamp"),
        line=line.number,
        source_id=fields.text(payload, "message_id"),
    )


def _merged(parts: list[Part]) -> tuple[Part, ...]:
    """Parts with texts and thoughts that came in pieces joined."""
    merged: list[Part] = []
    for part in parts:
        last = merged[-1] if merged else None
        if isinstance(last, TextPart) and isinstance(part, TextPart):
            merged[-1] = TextPart(last.text + part.text)
        elif isinstance(last, ReasoningPart) and isinstance(part, ReasoningPart) and not last.opaque_bytes:
            merged[-1] = replace(part, text=last.text + part.text)
        else:
            merged.append(part)
    return tuple(merged)
