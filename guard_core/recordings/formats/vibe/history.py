"""What Mistral Vibe's session store (3.0) keeps of the time before its journal: the entries of the public history.

Entries are the user's messages, answers in words, tools with input and output ("effects"), and checkpoints where the
context was compacted. Tools that ran at the same time were called by one answer. There is no usage, and no text of a
summary but the last, which the journal's first request shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from guard_core.events import Event, Part, Role, TextPart, ToolCallPart, ToolResultPart, value_text
from guard_core.recordings.formats.vibe import messages
from guard_core.recordings.reading import fields
from guard_core.recordings.reading.fields import JSON
from guard_core.recordings.reading.requests import Declared, Request
from guard_core.sessions import ModelCall

LOST = "The summary is not in the file."
INTERRUPTED = "Interrupted"  # the error of a tool that was cancelled; 3.0.3, run
KEPT_CHARS = 80_000  # of the user's messages that a compaction keeps, newest first: 20,000 tokens of four characters


def merged(entries: Iterable[JSON]) -> list[JSON]:
    """Entries in the order of their beginning, each in its last state: chunks and journals repeat them."""
    last: dict[str, JSON] = {}
    for entry in entries:
        name = fields.text(entry, "id")
        known = last.get(name)
        if known is None or _changed(known) <= _changed(entry):
            last[name] = entry
    return sorted(last.values(), key=_began)


def _began(entry: JSON) -> float:
    return fields.timestamp(entry, "createdAt") or 0.0


def _changed(entry: JSON) -> float:
    return fields.timestamp(entry, "updatedAt") or 0.0


def is_entry(value: JSON) -> bool:
    """Is it an entry of the public history."""
    return value.keys() >= {"createdAt", "generationStatus", "turnId", "type"}


def before(entries: Sequence[JSON], moment: float | None) -> list[JSON]:
    """The entries that began before the journal did."""
    return [entry for entry in entries if moment is None or _began(entry) < moment]


class VibeHistory:
    """The requests of the time before the journal, as far as entries show them.

    `envelope` is the message with which a compacted context begins, None where no request shows it. `keeps_round`: a
    compaction keeps the answer whose results came last, as that of 3.0.3 does.
    """

    def __init__(self, entries: Sequence[JSON], envelope: Event | None, *, keeps_round: bool = False) -> None:
        self._envelope = envelope
        self._keeps_round = keeps_round
        self._users: list[Event] = []
        self.requests: list[Request] = []
        self._sent: list[Event] = []
        self._declared: Declared | None = None
        for group in _together(entries):
            if _is_effect(group[-1]):
                self._tools(group)
            else:
                self._entry(group[0], _began(group[0]))

    def continued(self, sent: tuple[Event, ...]) -> tuple[list[Request], Declared | None]:
        """The requests before one that sends `sent`, and the compaction right before it.

        Behind the last compaction, or all of them where there was none, they are taken from `sent`, which has the texts
        and the ids of calls as they went to the model.
        """
        length = messages.compacted_length(sent)
        marked = [place for place, item in enumerate(self.requests) if item.declared is not None]
        is_compacted = bool(marked) or self._declared is not None
        if not self.requests or is_compacted is (length is None):  # the two do not belong together
            return self.requests, None
        place = len(self.requests) if self._declared is not None else marked[-1] if marked else 0
        if length is not None:
            length = self._with_open_round(place, sent, length)
        if self._declared is not None:
            return self.requests, msgspec.structs.replace(self._declared, length=length, note="")
        answers = [at for at in range(length or 0, len(sent)) if sent[at].role is Role.MODEL]
        if not answers:
            return self.requests, None
        calls = [request.call for request in self.requests[place:]]
        shown = [
            Request(sent[:at], calls[number] if len(calls) == len(answers) else ModelCall(at=0), sent[at])
            for number, at in enumerate(answers)
        ]
        if declared := self.requests[place].declared:
            mark = msgspec.structs.replace(declared, length=length, note="")
            shown[0] = msgspec.structs.replace(shown[0], declared=mark)
        return [*self.requests[:place], *shown], None

    def _with_open_round(self, place: int, sent: tuple[Event, ...], length: int) -> int:
        """How many messages at the head of `sent` the compaction before the request at `place` left: with the round
        that was open, which 3.0.3 keeps. Its events are then those of `sent`, which have the model's own ids."""
        compacted, answered = self.requests[place - 1], self.requests[place - 2] if place > 1 else None
        known = _open_round(compacted.messages)
        stop = length + len(known)
        shown = sent[length:stop]
        if answered is None or not known or list(map(_results, shown)) != list(map(_results, known)):
            return length
        events = tuple(
            msgspec.structs.replace(event, timestamp=old.timestamp) for event, old in zip(shown, known, strict=True)
        )
        self.requests[place - 2] = msgspec.structs.replace(answered, response=events[0])
        self.requests[place - 1] = msgspec.structs.replace(compacted, messages=(*answered.messages, *events))
        return stop

    def _entry(self, entry: JSON, began: float) -> None:
        if fields.text(entry, "type") == "checkpoint":
            if fields.text(entry, "kind") == "compaction" and fields.text(entry, "generationStatus") == "completed":
                trigger = fields.text(fields.mapping(entry, "details"), "trigger")
                summariser = ModelCall(at=0, source_id=fields.text(entry, "id"))
                self.requests.append(Request(tuple(self._sent), summariser))  # it shows the last results
                open_round = _open_round(self._sent) if self._keeps_round else []
                self._sent = [*([self._envelope] if self._envelope else []), *self._kept(), *open_round]
                self._declared = Declared(
                    length=len(self._sent), summariser=summariser, trigger=trigger, timestamp=began, note=LOST
                )
        elif fields.text(entry, "role") == "assistant":
            self._answer((*messages.answer_parts(entry.get("content")),), entry, began)
        elif fields.text(entry, "role") == "user" and (parts := messages.answer_parts(entry.get("content"))):
            event = Event(Role.USER, parts, source_id=fields.text(entry, "id"), timestamp=began or None)
            self._sent.append(event)
            self._users.append(event)

    def _kept(self) -> list[Event]:
        """The user's messages that a compaction keeps whole."""
        newest, left = list[Event](), KEPT_CHARS
        for event in reversed(self._users):
            left -= sum(len(part.text) for part in event.parts if isinstance(part, TextPart))
            if left < 0:
                break
            newest.append(event)
        return newest[::-1]

    def _tools(self, entries: list[JSON]) -> None:
        """An answer with calls, and its words where the first entry has them."""
        effects = [entry for entry in entries if _is_effect(entry)]
        calls: list[Part] = [
            part for entry in entries[: -len(effects)] for part in messages.answer_parts(entry.get("content"))
        ]
        results: list[Event] = []
        for effect in effects:
            detail, call_id = fields.mapping(effect, "detail"), fields.text(effect, "id")
            name = fields.text(detail, "toolName").rpartition(".")[2]
            calls.append(ToolCallPart(name, detail.get("input"), call_id))
            if (text := _output(effect)) is not None:
                failed = fields.text(fields.mapping(effect, "state"), "status") in messages.FAILURES
                part = ToolResultPart(name, text, call_id, failed)
                when = fields.timestamp(effect, "updatedAt")
                results.append(Event(Role.USER, (part,), source_id=call_id, timestamp=when))
        self._answer(tuple(calls), entries[0], _began(entries[0]))
        self._sent.extend(results)

    def _answer(self, parts: tuple[Part, ...], entry: JSON, began: float) -> None:
        if not parts:
            return
        declared, self._declared = self._declared, None
        response = Event(Role.MODEL, parts, source_id=fields.text(entry, "id"), timestamp=began or None)
        call = ModelCall(at=0, timestamp=began or None)
        self.requests.append(Request(tuple(self._sent), call, response, declared=declared))
        self._sent.append(response)


def _together(entries: Sequence[JSON]) -> Iterator[list[JSON]]:
    """The entries of each answer, and every other one by itself. An answer is not asked for before all results of the
    last one are there, so tools of which one began while another ran were called together; and an answer in words that
    tools follow in the same turn called the tools."""
    group, ended = list[JSON](), 0.0
    for entry in entries:
        began, last = _began(entry), group[-1] if group else {}
        if _is_effect(entry) and group:
            ran_then = _is_effect(last) and (began < ended or began == _began(last))
            called = fields.text(last, "role") == "assistant" and last.get("turnId") == entry.get("turnId")
            if ran_then or called:
                group.append(entry)
                ended = max(ended, _changed(entry))
                continue
        if group:
            yield group
        group, ended = [entry], _changed(entry) if _is_effect(entry) else 0.0
    if group:
        yield group


def _open_round(sent: Sequence[Event]) -> list[Event]:
    """The last answer and its results where these are the last messages; nothing else."""
    at = next((at for at in range(len(sent) - 1, -1, -1) if sent[at].role is Role.MODEL), len(sent))
    return list(sent[at:]) if len(sent) > at + 1 and all(map(_results, sent[at + 1 :])) else []


def _results(event: Event) -> list[object]:
    """What tools gave back in a message."""
    return [part.content for part in event.parts if isinstance(part, ToolResultPart)]


def _is_effect(entry: JSON) -> bool:
    return fields.text(entry, "type") == "effect"


def _output(effect: JSON) -> str | None:
    """The result as the harness words it for the model; None where there is none."""
    state = fields.mapping(effect, "state")
    output: Any = state.get("output")
    if isinstance(output, dict):
        structured = output.get("structured_content")
        if structured is not None:
            return value_text(structured)
        if output.get("type") == "failure" and (error := fields.mapping(state, "error")):
            return _error(name=error.get("code"), message=error.get("message"), details=error.get("details"))
        return fields.plain_text(output.get("content"))
    if (text := fields.text(state, "outputText")) or fields.text(state, "status") != "cancelled":
        return text or None
    return _error(name=INTERRUPTED, message=fields.text(state, "reason"))


def _error(**details: Any) -> str:
    """An error in the harness's words; the details in their order."""
    return msgspec.json.encode({"result": {"type": "error", "error": details}}).decode()
