"""A chat of the Gemini CLI as a session, record by record."""

from __future__ import annotations

from bisect import bisect_left
from itertools import pairwise

from msgspec.structs import replace

from guard_core.errors import DamagedRecording, LimitExceeded
from guard_core.events import Event, Part, Role, ToolCallPart, ToolResultPart
from guard_core.plural import counted
from guard_core.recordings.base import Recording
from guard_core.recordings.formats.gemini.history import (
    find_snapshot,
    first_messages,
    kind_of,
    own_texts,
    places_of,
    with_changed_results,
)
from guard_core.recordings.formats.gemini.messages import GeminiMessage, model_call, name_of, read_message, shown
from guard_core.recordings.formats.gemini.records import FURTHER, NOTICES, SPEAKERS, chat_records
from guard_core.recordings.reading import fields
from guard_core.recordings.reading.build import FactCounter, SessionBuilder
from guard_core.recordings.reading.fields import JSON
from guard_core.recordings.reading.rebase import LogIndex
from guard_core.recordings.reading.refusals import names_length
from guard_core.recordings.reading.requests import message_key
from guard_core.recordings.reading.source import ByteSource, SourceShape
from guard_core.sessions import (
    UNRECORDED_COMPACTIONS,
    AgentSetting,
    Evidence,
    LeftBranches,
    ModelCall,
    RecordedCompaction,
    Session,
)
from guard_core.triggers import RESUME, is_counted
from guard_core.views import Segment, Span, View, content_count

NAME = "gemini-cli"
FALL = 0.8  # of the tokens of the call before: a history that only grows costs more, whatever the model
SILENT = AgentSetting("writes_compressions", 0, "one JSON object, or counts that fell without a mark")
SHORTER = "A history without a snapshot replaced the one before, and the prompt tokens fell: taken for a compaction."
RELOADED = "A resumed session loaded its history again."
REWRITTEN = "The history was written once more, with other texts: 0.61.0 does so where it masks old results of tools."
CANCELLED = (  # closeUnansweredToolResponseTurn of 0.61; 0.45 has it not, and the file names no version
    "Cancelled answers to results of tools: {:,}. From there on newer versions (0.61) send 60 characters in the model's"
    " name that are not in the file."
)
MOST_INSERTED = 3  # by a compaction itself: what opens the chat, the snapshot, and the model's word on it


def read_chats(source: ByteSource, chat: type[GeminiChatReader]) -> Recording:
    """The chats of a file, each from its header on: several files may have been put into one."""
    facts = FactCounter(chat.name)
    chats = [chat(source, facts)]
    for line, record in chat_records(source):
        with source.tolerate(line):
            if chats[-1].is_before(record):
                facts.session()
                chats.append(chat(source, facts))
            chats[-1].record(record, line)
    if len(chats) > source.limits.sessions:
        raise LimitExceeded(f"{len(chats)} sessions in one file (limit {source.limits.sessions})")
    sessions = tuple(one.session() for one in chats)
    return Recording(chat.name, sessions, facts.facts(), source.notes)


class GeminiChatReader:
    """One chat, record by record. `name` is the format, `agent` who wrote it, and in which `version` where that is
    known: descendants write the same."""

    name, agent, version = NAME, "Gemini CLI", ""

    def __init__(self, source: ByteSource, facts: FactCounter) -> None:
        self.source, self.facts = source, facts
        self.notes = source.notes
        self.log = SessionBuilder(self.name, source)
        self.index = LogIndex(self.log)
        self.header: JSON = {}
        self.title = ""
        self.places: dict[str, int | None] = {}  # every id ever written; its event in the log, None: not there
        self.empty: set[str] = set()  # of these, the ids of messages that said nothing when they were written first
        self.placed: list[str] = []  # the ids that are in the log, in its order
        self.used: set[str] = set()  # ids whose tokens are counted
        self.answered: set[str] = set()  # calls whose results are in the log
        self.called: dict[str, int] = {}  # calls that are in the log, with their events
        self.waiting: tuple[ToolResultPart, ...] = ()
        self.left = LeftBranches()  # what rewinds took back
        self.snapshot: Event | None = None  # the last one that was seen
        self.appended: Event | None = None  # the last one
        self.edits = self.cancelled = 0
        self.unmarked: list[RecordedCompaction] = []  # histories without a snapshot that replaced the one before
        self.based: list[str] = []  # ids of the messages of the last replacing history
        self.held: list[tuple[JSON, int | None]] = []  # messages that may be a history that is written once more

    def is_before(self, record: JSON) -> bool:
        """Is a record the header of another chat, behind this one?"""
        name, own = fields.text(record, "sessionId"), fields.text(self.header, "sessionId")
        return "type" not in record and "$set" not in record and bool(name and own) and name != own

    def record(self, record: JSON, line: int | None) -> None:
        change = fields.mapping(record, "$set")
        if self._may_be_written_again(record):
            self.held.append((record, line))
            return
        if "messages" in change and self._is_held(change):
            self.notes.folded += len(self.held)
            self.held = []
            self._set(change, line, note=REWRITTEN)
            return
        if "$set" not in record or "messages" in change:
            self._let_go()
        self._take(record, line)

    def _may_be_written_again(self, record: JSON) -> bool:
        """Can a record be the next of a history that is written once more: one of the user, or behind that one of the
        model without its name and tokens."""
        kind = fields.text(record, "type")
        is_told = kind == "user" or (bool(self.held) and kind in SPEAKERS and not record.get("tokens"))
        return is_told and "model" not in record and name_of(record) not in ("", *self.places)

    def _is_held(self, change: JSON) -> bool:
        """Are the messages of a replacing history those that were written right before it, each of them."""
        names = [name_of(record) for record in fields.objects(change["messages"])]
        return len(names) > 1 and names == [name_of(record) for record, _ in self.held]

    def _let_go(self) -> None:
        """What was held is no history."""
        held, self.held = self.held, []
        for record, line in held:
            self._take(record, line)

    def _take(self, record: JSON, line: int | None) -> None:
        if "$set" in record:
            self._set(fields.mapping(record, "$set"), line)
        elif "$rewindTo" in record:
            self._rewind(fields.text(record, "$rewindTo"), line)
        elif fields.text(record, "type") in SPEAKERS:
            self._message(record, line)
        elif fields.text(record, "type") in NOTICES:
            if self._is_new(name_of(record)):
                self.notes.skip(f"{record['type']} message")
                words = fields.plain_text(record.get("content")) if record["type"] == "error" else ""
                if names_length(words):
                    self.log.refuse(words)
        elif "sessionId" in record:
            self.header = self.header or record
            self.title = fields.text(record, "summary") or self.title
        else:
            self.notes.skip(fields.text(record, "type") or "line without a type")

    def _is_new(self, message_id: str) -> bool:
        if message_id and message_id in self.places:
            return False
        if FURTHER not in message_id:
            self.facts.message()
        self.places[message_id] = None
        return True

    # -- messages

    def _message(self, record: JSON, line: int | None) -> None:
        message_id = name_of(record)
        message = read_message(record, line)
        self._count(message)
        if not self._is_new(message_id):
            self._rewritten(message_id, message, record, line)
            return
        at = self._place(message_id, message)
        if message.event.role is not Role.MODEL:
            return
        if message.event.parts and not model_call(record, line).prompt_tokens and self._waits_for_content(at):
            self.log.calls[-1] = replace(self.log.calls[-1], response=at)
        else:
            self._called(record, at, at if message.event.parts else None, line)

    def _waits_for_content(self, at: int) -> bool:
        """Was the last answer written with its tokens alone, and nothing after it: in ACP mode (0.61.0, run) the calls
        of tools are a message of their own."""
        last = self.log.calls[-1] if self.log.calls else None
        return last is not None and last.response is None and last.at == at and last.source_id in self.empty

    def _place(self, message_id: str, message: GeminiMessage) -> int:
        """Put a message behind those so far, if it says anything; its place in the log."""
        self._flush(message.event)
        at = len(self.log.events)
        self.cancelled += self._follows_results(message.event)
        if message.event.parts:
            self._append(message.event)
            self.places[message_id] = at
            self.placed.append(message_id)
        elif message_id:
            self.empty.add(message_id)
        self.waiting = message.results
        return at

    def _follows_results(self, event: Event) -> bool:
        """Does the user speak where the model has not answered to results: the request with them was cancelled."""
        last: Segment | None = Span(0, len(self.log.events)) if self.log.events else None
        if self.log.compactions and (change := self.log.compactions[-1]).at == len(self.log.events):
            last = change.base[-1] if change.base else None
        if event.role is not Role.USER or event.meta or _has_results(event) or not isinstance(last, Span):
            return False
        return _has_results(self.log.outlines[last.stop - 1])

    def _rewritten(self, message_id: str, message: GeminiMessage, record: JSON, line: int | None) -> None:
        """A message written once more: the last one counts."""
        self.notes.folded += 1
        if message_id in self.empty and message.event.parts:
            self._completed(message_id, message, record, line)
            return
        place = self.places[message_id]
        if place is None:
            if (
                message_id not in self.used
                and message.event.role is Role.MODEL
                and model_call(record, line).prompt_tokens
            ):
                self._called(record, len(self.log.events), None, line)
            return
        own, further = self._divided(message.event, place)
        self._put(place, own)
        self.waiting = tuple(result for result in message.results if result.call_id not in self.answered)
        is_counted_now = message_id not in self.used and bool(model_call(record, line).prompt_tokens)
        if is_counted_now and message.event.role is Role.MODEL:
            behind = self.log.calls[bisect_left(self.log.calls, place, key=lambda call: call.at) :]
            del self.log.calls[len(self.log.calls) - len(behind) :]
            self._called(record, place, place, line)
            self.log.calls += (call for call in behind if call.response != place)
        if further.parts:
            self._called_further(further)

    def _divided(self, event: Event, place: int) -> tuple[Event, Event]:
        """A message that is written once more, as it was said at its place in the log, and the new calls of tools in
        it, which are of answers behind that: in ACP mode (0.61.0, run) the first message with calls gets all later
        ones, too."""
        is_own = place == len(self.log.events) - 1 or not _has_calls(self.log.events[place])
        own: list[Part] = []
        new: list[Part] = []
        for part in event.parts:
            at = self.called.get(part.id) if isinstance(part, ToolCallPart) and part.id else place
            if is_own or at == place:
                own.append(part)
            elif at is None:
                new.append(part)
        return replace(event, parts=tuple(own)), replace(event, parts=tuple(new))

    def _called_further(self, event: Event) -> None:
        """Calls of tools that the last answer made."""
        last = len(self.log.events) - 1
        before = self.log.events[last]
        if _has_calls(before):
            self._put(last, replace(before, parts=(*before.parts, *event.parts)))
            return
        self._append(event)
        if self.log.calls and self._waits_for_content(last + 1):
            self.log.calls[-1] = replace(self.log.calls[-1], response=last + 1)

    def _put(self, place: int, event: Event) -> None:
        """Exchange an event of the log."""
        self.log.events[place] = event
        self.index.forget(place)
        self.called.update((part.id, place) for part in event.parts if isinstance(part, ToolCallPart) and part.id)

    def _completed(self, message_id: str, message: GeminiMessage, record: JSON, line: int | None) -> None:
        """A message that said nothing at first, as an answer does before its tool calls, has its content now."""
        self.empty.discard(message_id)
        at = self._place(message_id, message)
        if message.event.role is not Role.MODEL:
            return
        calls = self.log.calls
        own = next((index for index in reversed(range(len(calls))) if calls[index].source_id == message_id), None)
        if own is not None and message_id in self.used:
            calls[own] = replace(calls[own], response=at)
            return
        if own is not None:
            del calls[own]
        self._called(record, at, at, line)

    def _append(self, event: Event) -> None:
        self.log.event(**{name: getattr(event, name) for name in event.__struct_fields__})
        self.answered.update(part.call_id for part in event.parts if isinstance(part, ToolResultPart))
        at = len(self.log.events) - 1
        self.called.update((part.id, at) for part in event.parts if isinstance(part, ToolCallPart) and part.id)
        before = (self.appended,) if self.appended is not None else ()
        self.snapshot = find_snapshot((*before, event)) or self.snapshot
        self.appended = event

    def _flush(self, upcoming: Event | None) -> None:
        """Results that the calls carry and no message brings become a message of their own."""
        brought = {part.call_id for part in upcoming.parts if isinstance(part, ToolResultPart)} if upcoming else set()
        missing = [part for part in self.waiting if part.call_id not in brought]
        if missing:
            self._append(Event(Role.USER, tuple(missing), line=upcoming.line if upcoming else None))
        self.waiting = ()

    def _called(self, record: JSON, at: int, response: int | None, line: int | None) -> None:
        call = model_call(record, line)
        if call.prompt_tokens:
            self.facts.call(call.prompt_tokens)
            self.used.add(name_of(record))
        self.log.calls.append(replace(call, at=at, response=response))

    def _count(self, message: GeminiMessage) -> None:
        for part in (*message.event.parts, *message.results):
            if isinstance(part, ToolCallPart):
                self.facts.tool_call(part.id)
            elif isinstance(part, ToolResultPart):
                self.facts.tool_result(part.call_id, len(shown(part.content)))

    # -- changes of the history

    def _set(self, change: JSON, line: int | None, note: str = RELOADED) -> None:
        self.title = fields.text(change, "summary") or self.title
        if "messages" not in change:
            return
        records = list(fields.objects(change["messages"]))
        if not self.log.events:
            for record in records:
                self._message(record, line)
            return
        history: list[Event] = []
        for record in records:
            message = read_message(record, line)
            self._count(message)
            self._is_new(name_of(record))
            if message.event.parts:
                history.append(message.event)
        # Of the results that wait, those that this history holds: the next message may bring the others.
        held = {part.call_id for event in history for part in event.parts if isinstance(part, ToolResultPart)}
        later = tuple(part for part in self.waiting if part.call_id not in held)
        self.waiting = tuple(part for part in self.waiting if part.call_id in held)
        self._flush(None)
        self.waiting = later
        self._replaced(tuple(history), line, note)

    def _replaced(self, history: tuple[Event, ...], line: int | None, note: str) -> None:
        base, messages = self.index.rebase(history)
        snapshot, at = find_snapshot(history), len(self.log.events)
        compacted = snapshot is not None and not self._is_known(snapshot, note)
        compacted = compacted and not self._lacks_its_compaction(messages)
        self.snapshot = snapshot or self.snapshot
        if compacted:
            self.facts.compaction()
        elif self._is_current(base, messages):
            self.notes.folded += 1
            return
        else:
            self.edits += note == RELOADED
        self.based = [event.source_id for event in history]
        is_rewritten = not compacted and note == REWRITTEN
        if is_rewritten:
            base, messages = with_changed_results(base, messages, self.log.outlines)
        self.log.compaction(
            RecordedCompaction(
                at=at,
                evidence=Evidence.DECLARED if is_rewritten else Evidence.INFERRED,
                kind=kind_of(base) if compacted else "edit",
                base=base,
                messages=messages,
                trigger=RESUME if not compacted and note == RELOADED else "",
                line=line,
                timestamp=max((event.timestamp or 0 for event in history), default=0) or None,
                note="" if compacted else note,
            )
        )
        goes_back = base in ((), (Span(0, content_count(base)),))
        if snapshot is None and note == RELOADED and not goes_back:
            self.unmarked.append(self.log.compactions[-1])

    def _is_known(self, snapshot: Event, note: str) -> bool:
        """Is the summary of a replacing history the last one that was seen? One that is written once more has another
        id."""
        if self.snapshot is None:
            return False
        if note != REWRITTEN and (snapshot.source_id or self.snapshot.source_id):
            return snapshot.source_id == self.snapshot.source_id
        return own_texts(snapshot) == own_texts(self.snapshot)

    def _lacks_its_compaction(self, messages: tuple[Event, ...]) -> bool:
        """Was a history compacted in a part that the file lacks? What a compaction keeps of the model's is in the log
        or in the history before, but for its word on the summary; at the beginning of a file without its header, so is
        all that it keeps."""
        earlier = self.log.compactions[-1].messages if self.log.compactions else ()
        known = {message_key(event) for event in earlier if event.role is Role.MODEL}
        of_model = sum(event.role is Role.MODEL and message_key(event) not in known for event in messages)
        begins = not self.header and self.snapshot is None
        return of_model > 1 or (begins and len(messages) > MOST_INSERTED)

    def _is_current(self, base: View, messages: tuple[Event, ...]) -> bool:
        """Is a replacing history the one that was sent anyway, perhaps written again at another line?"""
        last = self.log.compactions[-1] if self.log.compactions else None
        at = len(self.log.events)
        if last is None:
            return not messages and content_count(base) == at
        new, old = ([replace(event, line=None) for event in each] for each in (messages, last.messages))
        return new == old and places_of(base) == places_of((*last.base, Span(last.at, at)))

    def _rewind(self, message_id: str, line: int | None) -> None:
        """The user went back to before a message: it and all behind it are in no later request."""
        length = self.based.index(message_id) if message_id in self.based else None
        cut = self.places.get(message_id) if length is None else self.log.compactions[-1].at
        if cut is None:
            self.notes.skip("$rewindTo a message that is not there")
            return
        self.waiting = ()
        self.empty.clear()
        first = bisect_left(self.log.calls, cut, key=lambda call: call.at)
        removed = self.log.calls[first:]
        del self.log.calls[first:]
        self.log.side_calls += [replace(call, at=cut, response=None) for call in removed]
        compactions = 0
        while self.log.compactions and self.log.compactions[-1].at > cut:
            compactions += is_counted(self.log.compactions.pop())
            self.based = []
        self.left = LeftBranches(
            self.left.messages + len(self.log.events) - cut,
            self.left.compactions + compactions,
            self.left.refused + sum(at > cut for at in self.log.refused),
            max([self.left.largest, *(call.prompt_tokens or 0 for call in removed)]),
        )
        self.log.refused = [at for at in self.log.refused if at <= cut]
        while self.placed and (self.places[self.placed[-1]] or 0) >= cut:
            self.places[self.placed.pop()] = None
        del self.log.events[cut:]
        self.called = {call: at for call, at in self.called.items() if at < cut}
        self.index.forget(cut)
        self.log.notes.append(f"Taken back by a rewind: not in the log, {len(removed)} calls count apart.")
        if length is not None:
            self._cut_base(length, line)

    def _cut_base(self, length: int, line: int | None) -> None:
        """A rewind into the history that replaced another: only its first messages are still sent."""
        last = self.log.compactions[-1]
        self.based = self.based[:length]
        base = first_messages(last.base, length)
        self.log.compaction(
            replace(
                last,
                kind="edit",
                base=base,
                trigger="rewind",
                line=line,
                timestamp=None,
                note="Taken back by a rewind.",
            )
        )

    def _compact_where_tokens_fell(self) -> None:
        """A history that replaced another one and cost far fewer tokens is no session that was resumed, which has all
        of it: what it has in the place of the rest is a summary, though no snapshot. A compaction with one explains the
        fall already."""
        for before, after in self._falls():
            between = [item for item in self.log.compactions if before.at < item.at <= after.at]
            change = next((item for item in between if any(item is one for one in self.unmarked)), None)
            if change is None or any(map(is_counted, between)):
                continue
            kind = kind_of(change.base) if change.messages else "trim"
            place = next(place for place, item in enumerate(self.log.compactions) if item is change)
            self.log.compactions[place] = replace(change, kind=kind, trigger="", note=SHORTER)
            self.facts.compaction()
            self.edits -= 1

    def _falls(self) -> list[tuple[ModelCall, ModelCall]]:
        """Neighbouring calls of which the second saw far fewer tokens."""
        counted = [call for call in self.log.calls if call.prompt_tokens]
        return [
            (before, after)
            for before, after in pairwise(counted)
            if (after.prompt_tokens or 0) < FALL * (before.prompt_tokens or 0)
        ]

    def remarks(self) -> list[str]:
        """Notes about the chat besides those that every chat may have."""
        return []

    def session(self) -> Session:
        """The chat as a session. Raises DamagedRecording where it has none."""
        self._let_go()
        self._flush(None)
        if not self.header and not self.places:
            raise DamagedRecording("the chat holds no message that can be read")
        self._compact_where_tokens_fell()
        notes = ["The system prompt and the schemas of the tools are not in the file."]
        changes = {item.at for item in self.log.compactions}
        # How often a call saw far fewer tokens than the one before, with no change of the history between them.
        falls = sum(not any(before.at < at <= after.at for at in changes) for before, after in self._falls())
        if falls:
            notes.append(
                f"The prompt tokens fell {_times(falls)} although no message was taken out: the history was probably"
                " compressed, which older versions do not write down."
            )
        if further := sum(FURTHER in call.source_id for call in self.log.calls):
            notes.append(
                f"Written into the message of the answer before, without tokens: {counted(further, 'answer')}."
            )
        if self.cancelled and self.name == NAME and self.source.shape is SourceShape.LINES:
            notes.append(CANCELLED.format(self.cancelled))
        is_silent = bool(falls) or self.source.shape is SourceShape.JSON or "messages" in self.header
        notes += [UNRECORDED_COMPACTIONS] if is_silent else []
        notes += ["A sub-agent's chat."] if fields.text(self.header, "kind") == "subagent" else []
        notes += [f"The history was reloaded {_times(self.edits)} (resumed sessions)."] if self.edits else []
        return self.log.session(
            source_id=fields.text(self.header, "sessionId"),
            title=self.title,
            agent=self.agent,
            versions=((0, self.version),) if self.version else (),
            started_at=fields.timestamp(self.header, "startTime"),
            settings=(SILENT,) if is_silent else (),
            notes=(*self.remarks(), *notes),
            left=self.left if self.left != LeftBranches() else None,
        )


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"


def _has_calls(event: Event) -> bool:
    return any(isinstance(part, ToolCallPart) for part in event.parts)


def _has_results(event: Event) -> bool:
    return any(isinstance(part, ToolResultPart) for part in event.parts)
