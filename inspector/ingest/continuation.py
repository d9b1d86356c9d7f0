"""Re-importing a recording that has grown extends its sessions instead of duplicating them.

    continuation = Continuation(recording)       # before the storing transaction: it reads the file
    row = continuation.store(0, session, ...)    # in it, in the place of storing.store_session
    continuation.close(1)                        # in it, after the last session

A file that begins with the bytes of a stored one extends that one's sessions. A file that is rewritten each time (a
database, an export, one JSON value) extends a stored session where it names the same one, or has the same file name if
neither names any, and holds all of it: its beginning, every event and every count of tokens. Only the last
answer and the results of its calls may be longer now, while it has no count yet. The other way round, a file that has
no more of a named session than is stored (an older copy, a log that was cut and is written again) brings nothing new.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, partial
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F, Q, QuerySet

from guard_core.estimation.attribution import Attribution
from guard_core.events import Event, Part, ReasoningPart, Role, TextPart, ToolCallPart, ToolResultPart
from guard_core.facts.searchable import text_of
from guard_core.ledger import Ledger
from guard_core.rules import Explanation
from guard_core.sessions import ModelCall, Sourced
from guard_core.sessions import Session as CoreSession
from inspector.ingest.growth import Added
from inspector.ingest.uploads import begins_with, drop_unused
from inspector.models import Import, Recording, Session
from inspector.models.recordings import STREAM
from inspector.storage import appending, explanations, loading, search, storing
from inspector.storage.assessment import assess
from inspector.storage.contents import Content

CHUNK = 1 << 20  # bytes
SMALLEST = 200  # bytes; shorter beginnings are too common to mean anything
SLICE = 500  # keys in one query
COMPARED = 20  # stored sessions of one name that are compared with a new one
UNFINISHED = 20  # messages at the end that may still have been written: an answer and the results of its calls
NOT_COUNTED = (None, None)  # prompt tokens and those of the answer
ASIDE = 1_000_000_000  # added to the places of sessions in a file that is read again, until they have their new ones


class Continuation:
    """The stored sessions of its project that those of a recording extend, if any."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.grown = find_grown(recording)
        self.known: list[Session] = []  # sessions that were here already
        self.extended: list[Session] = []  # those of them that are longer now
        self.calls_before: dict[UUID, int] = {}  # of each of these, by its key
        self.leaves_texts = False  # texts, or rows whose events another row has now, to be purged
        self._sources = {self.grown.pk} if self.grown else set()  # recordings that sessions were taken from
        self._aside = 0
        self._new: set[tuple[int, str]] = set()  # places and names that no stored session can be continued at
        self._kept: dict[int, list[UUID]] = {}  # sessions that are the same, by how far their place has moved
        self._sessions = Session.objects.of(recording.project_id)
        self._recordings = Recording.objects.of(recording.project_id)

    def may_extend(self, ordinal: int, format_name: str, source_id: str) -> bool:
        """Is a session stored that one of this place and name could extend."""
        if self.stored_under(source_id):
            return True
        if self._has_newer and self._behind(format_name, source_id).exists():
            return True
        could = self.grown is not None or not source_id or self._sessions.filter(source_id=source_id[:200]).exists()
        if could and any(True for _ in self._candidates(ordinal, format_name, source_id)):
            return True
        self._new.add((ordinal, source_id))
        return False

    def stored_under(self, source_id: str) -> list[Session]:
        """The sessions of this name that the recording had before it grew."""
        return self._of_name.get(source_id[:200], []) if source_id else []

    @cached_property
    def _has_newer(self) -> bool:
        """Is there a file that begins with this one."""
        return self.recording.newer.exists()

    @cached_property
    def _of_name(self) -> dict[str, list[Session]]:
        """Those sessions by their names: one query for all sessions of the file."""
        names: dict[str, list[Session]] = {}
        if self.grown is not None and self.grown != self.recording:
            for row in self._sessions.filter(recording=self.grown, ordinal__gte=0, deleted=None).defer("requests"):
                names.setdefault(row.source_id, []).append(row)
        return names

    def keep(self, ordinal: int, row: Session) -> Session:
        """Leave a stored session as it is: the recording has it unchanged, at this place."""
        self._sources.add(row.recording_id)
        self.known.append(row)
        self._kept.setdefault(ordinal - row.ordinal, []).append(row.pk)
        return row

    def only_candidate(self, ordinal: int, format_name: str, source_id: str) -> Session | None:
        """The stored session that one of this place and name could extend, where there is exactly one."""
        candidates = list(self._candidates(ordinal, format_name, source_id))
        return candidates[0] if len(candidates) == 1 and candidates[0].deleted is None else None

    def store(
        self,
        ordinal: int,
        value: CoreSession,
        ledger: Ledger,
        attribution: Attribution | None,
        *,
        window: Sourced,
        counts: dict[str, Any],
        explanation: Explanation,
    ) -> Session:
        """Extend the stored session that this one continues, or store a new one."""
        self._set_aside()
        more: dict[str, Any] = {"window": window, "counts": counts}
        is_new = (ordinal, value.source_id) in self._new
        old, same = (None, 0) if is_new else self._old_of(ordinal, value)
        if old is None and not is_new and (longer := self._longer(ordinal, value)):
            self.known.append(longer)
            self.leaves_texts |= loading.is_in_a_row(value)
            return longer
        if old is None:
            row = storing.store_session(self.recording, ordinal, value, ledger, attribution, **more)
            explanations.store(row, value, explanation)
            return row
        self._sources.add(old.recording_id)
        self.known.append(old)
        if same < len(value.events):
            self._extends(old)
        self.leaves_texts |= loading.is_in_a_row(value) or same < old.events
        if same < old.events:
            search.forget(old, same)
        row = storing.extend_session(old, self.recording, ordinal, value, ledger, attribution, same=same, **more)
        if row.window_override:
            assess(row)
        else:
            explanations.store(row, value, explanation)
        return row

    def append(self, ordinal: int, added: Added, value: CoreSession) -> Session | None:
        """Append to the stored session what a recording adds to it: `value` is the whole; None where the stored one
        has changed since they were compared."""
        self._set_aside()
        old = self._sessions.select_for_update(of=("self",)).filter(pk=added.row.pk).first()
        if old is None or old.revision != added.row.revision:
            return None
        self._sources.add(old.recording_id)
        self.known.append(old)
        if added.events:
            self._extends(old)
        return appending.extend(old, self.recording, ordinal, value, added.events, added.calls)

    def _extends(self, old: Session) -> None:
        self.extended.append(old)
        self.calls_before[old.pk] = old.calls

    def close(self, count: int) -> None:
        """Remove sessions that are no longer in the file. Bytes that this file begins with go after the commit,
        and their imports point here now; any other file that sessions were taken from is kept as long as this one."""
        for moved, keys in self._kept.items():  # one that was deleted meanwhile, or belongs to a longer one, stays so
            for start in range(0, len(keys), SLICE):
                some = self._sessions.filter(pk__in=keys[start : start + SLICE], recording=self.grown)
                some.update(recording=self.recording, ordinal=F("ordinal") + moved)
        if self.grown == self.recording:
            for old in self.recording.sessions.filter(ordinal__gte=count):
                search.forget(old)
                old.delete()
        for pk in self._sources - {self.recording.pk}:
            contained = self.grown is not None and pk == self.grown.pk
            if contained and not self._sessions.filter(recording=pk).exists():
                self.recording.older.add(*self._recordings.filter(newer=pk).exclude(pk=self.recording.pk))
                Import.objects.of(self.recording.project_id).filter(recording=pk).update(recording=self.recording)
                transaction.on_commit(partial(drop_unused, pk))
            else:
                older = self._recordings.filter(Q(pk=pk) | Q(newer=pk)).exclude(pk=self.recording.pk)
                self.recording.older.add(*older)

    def _set_aside(self) -> None:
        """The sessions of a file that is read again may change places."""
        if self.grown == self.recording and not self._aside:
            self._aside = ASIDE
            self.recording.sessions.filter(ordinal__gte=0).update(ordinal=F("ordinal") + ASIDE)

    def _old_of(self, ordinal: int, value: CoreSession) -> tuple[Session | None, int]:
        """The stored session that a session continues, and how many of its events stay: the most, where there are
        several."""
        best: tuple[Session | None, int] = None, -1
        for old in self._candidates(ordinal, value.format, value.source_id, first=loading.first_key(value)):
            same = loading.common_events(old, value.events)
            if same > best[1] and self._continues(value, old, same):
                best = old, same
        return best if best[0] is not None else (None, 0)

    def _continues(self, value: CoreSession, old: Session, same: int) -> bool:
        """A file that begins with the old bytes is the better reading of them; under another name it must hold all."""
        if self.grown is None or old.recording_id != self.grown.pk:
            return same > 0 and old.events <= len(value.events) and _holds(value, old, same)
        if value.source_id and old.source_id == value.source_id[:200]:
            return True
        return same == old.events if value.source_id and old.source_id else same > 0

    def _behind(self, format_name: str, name: str) -> QuerySet[Session]:
        """Sessions of newer files that hold this one's."""
        newer = self._sessions.filter(recording__in=self.recording.newer.all(), deleted=None, ordinal__gte=0)
        return newer.filter(format=format_name[:40], source_id=name[:200])

    def _longer(self, ordinal: int, value: CoreSession) -> Session | None:
        """The stored session that has all of this one: where this file is read again, in a newer one, else the longer
        one of this name. So a file that was cut, and is written again, doubles nothing."""
        if self._has_newer:
            for longer in self._behind(value.format, value.source_id).order_by("pk"):
                same = loading.common_events(longer, value.events)
                if same == len(value.events) or (same and value.source_id):
                    return longer
        if not value.source_id or value.usage_ratio is not None:
            return None
        for longer in self._elsewhere(ordinal, value.format, value.source_id, loading.first_key(value)):
            if self._is_cut_from(longer.recording) or (
                longer.events >= len(value.events) and _is_beginning(value, longer)
            ):
                self.recording.newer.add(longer.recording)
                return longer
        return None

    def _is_cut_from(self, other: Recording | None) -> bool:
        """Is this file the beginning of another, byte for byte."""
        if other is None or other.size <= self.recording.size:
            return False
        try:
            return begins_with(other.path, self.recording.path)
        except FileNotFoundError:  # on PostgreSQL, in the data folder of another machine
            return False

    def _of_grown(self, stored: QuerySet[Session], place: int, name: str) -> Iterable[Session]:
        """Those of the same name, the one at the same place first; else the one at the same place. Sessions of a file
        that is read again may have changed places, so one of another name is another one there."""
        if name and (same := stored.filter(source_id=name[:200])):
            return sorted(same, key=lambda old: (old.ordinal != place, old.ordinal))
        there = stored.filter(ordinal=place)
        return there.filter(source_id="") if name and self.grown == self.recording else there

    def _candidates(self, ordinal: int, format_name: str, name: str, *, first: bytes = b"") -> Iterator[Session]:
        """Sessions that may be the same one, the likeliest first; locked, where the `first` text of it is known."""
        if self.grown is not None:
            alike = self._alike(format_name, first)
            left = alike.filter(recording=self.grown, ordinal__gte=self._aside)  # those that no session continued
            yield from self._of_grown(left, ordinal + self._aside, name)
        yield from self._elsewhere(ordinal, format_name, name, first)

    def _elsewhere(self, ordinal: int, format_name: str, name: str, first: bytes) -> Iterable[Session]:
        """Those of other files."""
        own = [self.recording.pk, self.grown.pk if self.grown else None]
        elsewhere = self._alike(format_name, first).filter(deleted=None, source_id=name[:200])
        elsewhere = elsewhere.exclude(recording__in=own)
        if not name:
            elsewhere = elsewhere.filter(recording__name=self.recording.name, calls__gt=0)
        if first:
            elsewhere = elsewhere.filter(log__seq=0, log__payload_id=first)
        ordered = elsewhere.annotate(moved=~Q(ordinal=ordinal)).order_by("moved", "-events", "pk")
        return ordered[:COMPARED]

    def _alike(self, format_name: str, first: bytes) -> QuerySet[Session]:
        alike = self._sessions.filter(format=format_name[:40], ordinal__gte=0)
        alike = alike.exclude(recording__sha256__startswith=STREAM)  # those grow by their stream alone
        return alike.select_for_update(of=("self",)) if first else alike


def _holds(value: CoreSession, old: Session, same: int) -> bool:
    """Does a session hold all of a stored one, whose first `kept` events it has. A simulation is made whole: it is
    another one whenever it comes; and so are messages without a name under another window."""
    head = loading.load_only_head(old)
    if value.usage_ratio is not None or (not value.source_id and head.window != value.window):
        return False
    if head.started_at != value.started_at or len(head.calls) > len(value.calls):
        return False
    counted = [place for place, call in enumerate(head.calls) if _tokens_of(call) != NOT_COUNTED]
    last = counted[-1] if counted else -1
    if any(map(_are_unlike, head.calls[: last + 1], value.calls)):
        return False
    if same == old.events:
        return True
    settled = max(head.calls[last].at + 1 if counted else 1, old.events - UNFINISHED)
    is_one = bool(value.source_id) and head.started_at is not None  # a name alone may be one that people give
    if not is_one or same < settled:
        return False
    return _has_grown(loading.load_events(old, same, old.events), loading.load_contents(value, same, old.events))


def _is_beginning(value: CoreSession, longer: Session) -> bool:
    """Has a stored session all of this one, whose last answer may have been cut while it had no count."""
    head, same, count = loading.load_only_head(longer), loading.common_events(longer, value.events), len(value.events)
    if head.started_at != value.started_at or len(head.calls) < len(value.calls):
        return False
    counted = [place for place, call in enumerate(value.calls) if _tokens_of(call) != NOT_COUNTED]
    last = counted[-1] if counted else -1
    if same == 0 or any(map(_are_unlike, value.calls[: last + 1], head.calls)):
        return False
    if same == count:
        return True
    settled = max(value.calls[last].at + 1 if counted else 1, count - UNFINISHED)
    if value.started_at is None or same < settled:
        return False
    return _has_grown(loading.load_contents(value, same, count), loading.load_events(longer, same, count))


def _are_unlike(one: ModelCall, other: ModelCall) -> bool:
    return one.at != other.at or _tokens_of(one) != _tokens_of(other)


def _tokens_of(call: ModelCall) -> tuple[int | None, int | None]:
    return call.prompt_tokens, call.output_tokens


def _has_grown(before: Sequence[Event | Content], now: Sequence[Event | Content]) -> bool:
    """Are the messages of before an answer and results of its calls that were still being written."""
    answers = sum(event.role == Role.MODEL for event in before)
    others = [part for event in before if event.role != Role.MODEL for part in event.parts]
    if answers > 1 or not all(isinstance(part, ToolResultPart) for part in others):
        return False
    return all(a.role == b.role and _begins(a.parts, b.parts) for a, b in zip(before, now))


def _begins(before: tuple[Part, ...], now: tuple[Part, ...]) -> bool:
    """Are these the first parts of a message, the last of them perhaps not whole."""
    whole = max(0, len(before) - 1)
    return len(before) <= len(now) and before[:whole] == now[:whole] and _is_begun(before[whole:], now[whole:])


def _is_begun(before: tuple[Part, ...], now: tuple[Part, ...]) -> bool:
    match before, now:
        case ((), _):
            return True
        case ((TextPart() as a,), (TextPart() as b, *_)) | ((ReasoningPart() as a,), (ReasoningPart() as b, *_)):
            return b.text.startswith(a.text)
        case (ToolCallPart() as a,), (ToolCallPart() as b, *_):
            return (a.name, a.id) == (b.name, b.id)
        case (ToolResultPart() as a,), (ToolResultPart() as b, *_):
            return a.call_id == b.call_id and text_of((b,)).startswith(text_of((a,)))
    return before[0] == now[0]


def find_grown(recording: Recording) -> Recording | None:
    """The stored recording whose sessions this one continues: itself when it is read again, else the longest one
    that is its beginning, byte for byte, and still has sessions."""
    if recording.sessions.filter(ordinal__gte=0).exists():
        return recording
    stored = Recording.objects.of(recording.project_id)
    shorter = stored.filter(size__gte=SMALLEST, size__lt=recording.size, sessions__deleted=None)
    sizes = sorted(shorter.exclude(sessions=None).values_list("size", flat=True).distinct())
    digests = _digests(recording, sizes)
    return stored.filter(sha256__in=digests, sessions__deleted=None).order_by("-size").first()


def _digests(recording: Recording, sizes: list[int]) -> list[str]:
    """The SHA-256 of the file's beginnings of these sizes, in one pass."""
    digest = hashlib.sha256()
    digests: list[str] = []
    done = 0
    with recording.path.open("rb") as file:
        for size in sizes:
            while done < size and (chunk := file.read(min(CHUNK, size - done))):
                digest.update(chunk)
                done += len(chunk)
            digests.append(digest.copy().hexdigest())
    return digests
