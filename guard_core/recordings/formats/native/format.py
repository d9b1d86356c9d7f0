"""This project's own export: a header line for a session, then a line for each event, call, compaction and state.

A session that is written and read again is equal to itself. Events carry their index, so that a damaged line leaves a
gap with a mark in it and nothing else points to the wrong event. A header without counts is that of a session whose
agent is still running (`guard_core.guarding.recorder`): it has as many events as follow.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, MutableSequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar, cast

import msgspec

from guard_core.bounds import MAX_TOKENS
from guard_core.errors import DamagedRecording, LimitExceeded
from guard_core.events import Event, OtherPart, Role
from guard_core.recordings.base import Recording, RecordingFacts
from guard_core.recordings.formats.native import look as native_look
from guard_core.recordings.reading import fields, normalise
from guard_core.recordings.reading.build import FactCounter, SessionBuilder
from guard_core.recordings.reading.fields import JSON
from guard_core.recordings.reading.first_look import FirstLook
from guard_core.recordings.reading.source import ByteSource, Line
from guard_core.sessions import Evidence, GuardState, ModelCall, Provenance, RecordedCompaction, Session
from guard_core.views import Inserted, Rewritten, Span, Synthetic

NAME = "compaction-inspector"
VERSION = 1  # of the lines below; raise it when a reader of the version before would misread them
_LISTS = ("events", "calls", "side_calls", "compactions", "guard_states")
EVENT = {"index", "events"}  # the keys of the line of an event
KINDS: dict[str, type[msgspec.Struct]] = {
    "calls": ModelCall,
    "side_calls": ModelCall,
    "compactions": RecordedCompaction,
    "guard_states": GuardState,
}
_WORDS = {"role": tuple(Role), "evidence": tuple(Evidence), "source": tuple(Provenance)}  # by the name of the field
_GAP = Event(role=Role.USER, parts=(OtherPart("missing"),), meta=True)  # in the place of a missing event
T = TypeVar("T")


def write(session: Session) -> bytes:
    """The session as JSON Lines."""
    return b"".join(_lines(session))


def write_all(sessions: Iterable[Session]) -> Iterator[bytes]:
    """Several sessions as one export, line by line."""
    for session in sessions:
        yield from _lines(session)


def digest(session: Session) -> str:
    """SHA-256 of the export with the keys of every object in order: equal for a session, for its export that is read
    again, and for the same session from any store."""
    sha256 = hashlib.sha256()
    for line in _lines(session, "deterministic"):
        sha256.update(line)
    return sha256.hexdigest()


def _lines(session: Session, order: Literal["deterministic"] | None = None) -> Iterator[bytes]:
    counts = {name: len(getattr(session, name)) for name in _LISTS}
    bare = msgspec.structs.replace(session, **dict.fromkeys(_LISTS, ()))
    yield _line({"format": NAME, "version": VERSION, "counts": counts, "session": bare}, order)
    for index, event in enumerate(session.events):
        yield _line({"index": index, "events": event}, order)
    for name in _LISTS[1:]:
        for value in getattr(session, name):
            yield _line({name: value}, order)


def _line(value: dict[str, Any], order: Literal["deterministic"] | None) -> bytes:
    return msgspec.json.encode(value, order=order) + b"\n"


class NativeFormat:
    """Reads this project's own export."""

    name = NAME
    label = "Compaction Inspector export"
    place = "our own export"
    known_names = None

    def matches(self, source: ByteSource) -> bool:
        """A header, or the lines that follow one: an export without its header is named as such."""
        heads = [line.obj for line in source.head_lines(5)]
        return any((head.get("format") == NAME and "session" in head) or head.keys() == EVENT for head in heads)

    def read(self, source: ByteSource) -> Recording:
        drafts: list[_Draft] = []
        for line in source.lines(with_copies=True):
            with source.tolerate(line.number):
                if line.obj.get("format") == NAME:
                    drafts.append(_draft(line, source))
                elif drafts:
                    drafts[-1].add(line)
                else:
                    raise DamagedRecording("a line before the header of a session")
        if not drafts:
            raise DamagedRecording("an export without the header of a session")
        sessions = tuple(draft.session() for draft in drafts)
        return Recording(NAME, sessions, _facts(sessions), source.notes)

    def first_look(self, source: ByteSource) -> FirstLook:
        return native_look.look(source)


FORMAT = NativeFormat()


@dataclass
class _Draft:
    """One session while its lines come in."""

    source: ByteSource
    header: Session
    counts: dict[str, int] | None  # None: the session is being written
    line: int
    events: MutableSequence[Event]
    missing: int = 0
    lists: dict[str, list[tuple[int, Any]]] = field(default_factory=lambda: {name: [] for name in KINDS})

    def add(self, line: Line) -> None:
        name = next((name for name in line.obj if name in _LISTS), "")
        if name == "events":
            self._add_event(line)
        elif name:
            self.lists[name].append((line.number, converted(line.obj[name], KINDS[name])))
        else:
            self.source.notes.skip("line of an unknown kind")

    def _add_event(self, line: Line) -> None:
        index = normalise.count(line.obj.get("index"), "index")
        stop = self.counts["events"] if self.counts else self.source.limits.events
        if index is None or not len(self.events) <= index < stop:
            raise DamagedRecording(f"an event whose index is {index}, after {len(self.events)} of {stop} events")
        event = converted(line.obj["events"], Event)
        self._leave_gap(index)
        self.events.append(event)

    def _leave_gap(self, stop: int) -> None:
        """A mark in the place of every event that is missing before this one."""
        while len(self.events) < stop:
            self.missing += 1
            self.events.append(_GAP)

    def session(self) -> Session:
        """The session, with a mark where an event is missing; what points outside of it is left out."""
        self._leave_gap(self.counts["events"] if self.counts else 0)
        if self.missing:
            self.source.leave_out(f"{self.missing} of {len(self.events)} events of this session are missing", self.line)
        events = tuple(self.events) if isinstance(self.events, list) else cast("tuple[Event, ...]", self.events)
        session = msgspec.structs.replace(header_over(self.header, len(events)), events=events)
        return msgspec.structs.replace(session, **{name: self._checked(name) for name in KINDS})

    def _checked(self, name: str) -> tuple[Any, ...]:
        values: list[Any] = []
        last = 0
        for number, value in self.lists[name]:
            with self.source.tolerate(number):
                check(value, len(self.events), last)
                last = value.at if name in {"calls", "compactions"} else 0
                values.append(value)
        if self.counts and len(values) != self.counts[name]:
            missing = self.counts[name] - len(values)
            self.source.leave_out(f"{missing} of {self.counts[name]} entries of {name} are missing", self.line)
        return tuple(values)


def header_of(value: JSON, source: ByteSource | None = None, line: int | None = None) -> Session:
    """The session that a header line names. Raises DamagedRecording; where a `source` is given, a window that no model
    has is a problem of it at this line, and left out."""
    version = value.get("version")
    if version != VERSION or isinstance(version, bool):
        raise DamagedRecording(f"an export of version {ascii(version)[:20]}; this program reads version {VERSION}")
    session = converted(value.get("session"), Session)
    windows = [*([session.window.value] if session.window else []), *(size for _, size in session.windows)]
    if all(map(fields.may_be_window, windows)):
        return session
    wrong = next(size for size in windows if not fields.may_be_window(size))
    reason = f"a window of the session is {wrong}, no context window: {normalise.ALLOWED_WINDOW}"
    if source is None:
        raise DamagedRecording(reason)
    source.problem(reason, line)
    known = tuple(item for item in session.windows if fields.may_be_window(item[1]))
    window = session.window if session.window and fields.may_be_window(session.window.value) else None
    return msgspec.structs.replace(session, window=window, windows=known)


def header_over(header: Session, size: int) -> Session:
    """A header whose places are in a log of `size` events, in their order; others are left out."""
    versions = tuple(sorted(item for item in header.versions if 0 <= item[0] <= size))
    windows = tuple(sorted(item for item in header.windows if 0 <= item[0] <= size and item[1] > 0))
    refused = tuple(at for at in header.refused if 0 <= at <= size)
    refusals = tuple(item for item in header.refusals if item.at in refused)
    return msgspec.structs.replace(header, versions=versions, windows=windows, refused=refused, refusals=refusals)


def _draft(line: Line, source: ByteSource) -> _Draft:
    session = header_of(line.obj, source, line.number)
    given = fields.mapping(line.obj, "counts")
    counts = {name: fields.tokens(given, name) or 0 for name in _LISTS} if "counts" in line.obj else None
    if counts and counts["events"] > source.limits.events:
        raise LimitExceeded(f"a session with {counts['events']} events (limit {source.limits.events})")
    return _Draft(source, session, counts, line.number, SessionBuilder(NAME, source).events)


def converted(value: Any, kind: type[T], name: str = "") -> T:
    """A decoded value as one of ours. Raises DamagedRecording."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        if "got `float`" in str(error):
            with suppress(msgspec.ValidationError):
                return msgspec.convert(_whole(value), kind)
        raise DamagedRecording(f"not a valid {name or kind.__name__}: {error}{_allowed(str(error))}") from error


def _allowed(problem: str) -> str:
    """The words that are allowed in the place of one that is not, which msgspec does not say."""
    place = problem.rpartition(".")[2].rstrip("`")
    words = _WORDS.get(place, ()) if problem.startswith("Invalid enum value") else ()
    return f"; allowed is one of: {', '.join(words)}" if words else ""


def _whole(value: Any) -> Any:
    """The value with 12 for 12.0, which is a whole number in JSON as well."""
    if isinstance(value, dict):
        return {key: _whole(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_whole(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) <= MAX_TOKENS else value


def check(value: Any, size: int, last: int) -> None:
    """Everything that points into the log of `size` events points to something, behind `last`. Raises
    DamagedRecording."""
    if not last <= value.at <= size:
        raise DamagedRecording(f"an entry at event {value.at}, behind {last} of {size} events")
    if isinstance(value, ModelCall):
        _check_call(value, size)
    elif isinstance(value, RecordedCompaction):
        if value.summariser is not None:
            _check_call(value.summariser, size)
        for segment in value.base:
            if not _is_inside(segment, size, len(value.messages)):
                raise DamagedRecording("a compaction whose view is outside of the session")


def _check_call(call: ModelCall, size: int) -> None:
    if call.response is not None and call.response >= size:
        raise DamagedRecording(f"a call answered by event {call.response} of {size}")


def _is_inside(segment: object, size: int, messages: int) -> bool:
    match segment:
        case Span(start, stop):
            return start <= stop <= size
        case Inserted(index):
            return index < messages
        case Rewritten(event=event, joins=joins):
            return max(event, *joins, 0) < size
    return isinstance(segment, Synthetic)


def _facts(sessions: Iterable[Session]) -> RecordingFacts:
    counter = FactCounter(NAME)
    for session in sessions:
        counter.session()
        counter.message(len(session.events))
        for call in (*session.calls, *session.side_calls):
            if call.prompt_tokens:
                counter.call(call.prompt_tokens)
        for _ in session.compactions:
            counter.compaction()
        for event in session.events:
            counter.parts(event.parts)
    return counter.facts()
