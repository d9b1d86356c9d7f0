"""A recording whose agent was still running comes again, longer: its sessions go on instead of standing there twice.

    going_on = Continuation(recording)       # before the storing transaction: it reads the file
    row = going_on.store(0, session, ...)    # in it, in the place of convert.store_session
    going_on.close(1)                        # in it, after the last session

A file that begins with the bytes of a stored one goes on with that one's sessions. A file that is written anew each
time (a database, an export, one JSON value) goes on with a stored session where it names the same one, or has the same
file name if neither names any, and holds all of it: its beginning, every event and every count of tokens. Only the last
answer, while it has no count yet, may be longer now.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models import F, Q, QuerySet

from guard_core.attribution import Attribution
from guard_core.ledger import Ledger
from guard_core.sessions import ModelCall, Sourced
from guard_core.sessions import Session as CoreSession
from inspector import convert
from inspector.contents import text_of
from inspector.models import Import, Recording, Session
from inspector.services import search
from inspector.services.uploads import drop_unused

CHUNK = 1 << 20  # bytes
SMALLEST = 200  # bytes; shorter beginnings are too common to mean anything
COMPARED = 20  # stored sessions of one name that are compared with a new one
UNFINISHED = 20  # messages at the end that may still have been written: an answer and the results of its calls
NOT_COUNTED = (None, None)  # prompt tokens and those of the answer
ASIDE = 1_000_000_000  # added to the places of sessions in a file that is read again, until they have their new ones


class Continuation:
    """What the sessions of a recording go on with, if anything."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.grown = find_grown(recording)
        self.known: list[Session] = []  # sessions that were here already
        self.extended: list[Session] = []  # those of them that are longer now
        self.leaves_rows = False  # rows whose events another row has now, to be purged
        self._sources = {self.grown.pk} if self.grown else set()  # recordings that sessions were taken from
        self._aside = 0

    def may_go_on(self, ordinal: int, format_name: str, source_id: str) -> bool:
        """Is a session stored that one of this place and name could go on with."""
        return any(True for _ in self._candidates(ordinal, format_name, source_id))

    def store(
        self,
        ordinal: int,
        value: CoreSession,
        ledger: Ledger,
        attribution: Attribution | None,
        *,
        window: Sourced,
        counts: dict[str, Any],
    ) -> Session:
        """Extend the stored session that this one goes on with; store a new one where there is none."""
        self._set_aside()
        more: dict[str, Any] = {"window": window, "counts": counts}
        old, kept = self._old_of(ordinal, value)
        if old is None:
            return convert.store_session(self.recording, ordinal, value, ledger, attribution, **more)
        self._sources.add(old.recording_id)
        self.known.append(old)
        if kept < len(value.events):
            self.extended.append(old)
        self.leaves_rows |= convert.is_in_a_row(value)
        if kept < old.events:
            search.forget(old, kept)
        return convert.extend_session(old, self.recording, ordinal, value, ledger, attribution, kept=kept, **more)

    def close(self, count: int) -> None:
        """Sessions that are no longer in the file go. Bytes that this file begins with go after the commit, and their
        imports point here now; any other file whose sessions are all in this one is kept with it."""
        Recording.objects.filter(pk=self.recording.pk).update(newer=None)
        if self.grown == self.recording:
            for old in self.recording.sessions.filter(ordinal__gte=count):
                search.forget(old)
                old.delete()
        for pk in self._sources - {self.recording.pk}:
            if Session.objects.filter(recording=pk).exists():
                continue
            Recording.objects.filter(newer=pk).update(newer=self.recording)
            if self.grown is not None and pk == self.grown.pk:
                Import.objects.filter(recording=pk).update(recording=self.recording)
                transaction.on_commit(partial(drop_unused, pk))
            else:
                Recording.objects.filter(pk=pk).update(newer=self.recording)

    def _set_aside(self) -> None:
        """The sessions of a file that is read again may change places."""
        if self.grown == self.recording and not self._aside:
            self._aside = ASIDE
            self.recording.sessions.filter(ordinal__gte=0).update(ordinal=F("ordinal") + ASIDE)

    def _old_of(self, ordinal: int, value: CoreSession) -> tuple[Session | None, int]:
        """The stored session that a session goes on with, and how many of its events stay."""
        for old in self._candidates(ordinal, value.format, value.source_id, lock=True):
            kept = convert.common_events(old, value.events)
            if kept and (self._is_of_grown(old) or _holds(value, old, kept)):
                return old, kept
        return None, 0

    def _is_of_grown(self, old: Session) -> bool:
        return self.grown is not None and old.recording_id == self.grown.pk

    def _of_grown(self, stored: QuerySet[Session], place: int, name: str) -> Iterable[Session]:
        """Those of the same name, the one at the same place first; else the one at the same place. Sessions of a file
        that is read again may have changed places, so one of another name is another one there."""
        if name and (same := stored.filter(source_id=name[:200])):
            return sorted(same, key=lambda old: (old.ordinal != place, old.ordinal))
        there = stored.filter(ordinal=place)
        return there.filter(source_id="") if name and self.grown == self.recording else there

    def _candidates(self, ordinal: int, format_name: str, name: str, *, lock: bool = False) -> Iterator[Session]:
        """Sessions that may be the same one, the likeliest first."""
        alike = Session.objects.filter(format=format_name[:40], ordinal__gte=0)
        alike = alike.select_for_update(of=("self",)) if lock else alike
        if self.grown is not None:
            left = alike.filter(recording=self.grown, ordinal__gte=self._aside)  # those that no session went on with
            yield from self._of_grown(left, ordinal + self._aside, name)
        elsewhere = alike.filter(deleted=None, source_id=name[:200]).exclude(recording=self.recording)
        if not name:
            elsewhere = elsewhere.filter(recording__name=self.recording.name, calls__gt=0)
        elsewhere = elsewhere.annotate(moved=~Q(ordinal=ordinal))
        yield from elsewhere.order_by("moved", "-events", "pk")[:COMPARED]


def _holds(value: CoreSession, old: Session, kept: int) -> bool:
    """Does a session hold all of a stored one, whose first `kept` events it has. A simulation is made whole: it is
    another one whenever it comes; and so are messages without a name under another window."""
    head = convert.load_head(old)
    if value.usage_ratio is not None or (not value.source_id and head.window != value.window):
        return False
    if head.started_at != value.started_at or old.events > len(value.events) or len(head.calls) > len(value.calls):
        return False
    counted = [place for place, call in enumerate(head.calls) if _tokens_of(call) != NOT_COUNTED]
    last = counted[-1] if counted else -1
    if any(map(_are_unlike, head.calls[: last + 1], value.calls)):
        return False
    settled = max(head.calls[last].at + 1 if counted else 1, old.events - UNFINISHED)
    return kept == old.events or bool(value.source_id and kept >= settled and _have_gone_on(value, old, kept))


def _are_unlike(one: ModelCall, other: ModelCall) -> bool:
    return one.at != other.at or _tokens_of(one) != _tokens_of(other)


def _tokens_of(call: ModelCall) -> tuple[int | None, int | None]:
    return call.prompt_tokens, call.output_tokens


def _have_gone_on(value: CoreSession, old: Session, start: int) -> bool:
    """Are the stored messages from `start` on the beginnings of those in a session."""
    before = convert.load_events(old, start, old.events)
    now = convert.load_contents(value, start, old.events)
    return all(a.role == b.role and text_of(b.parts).startswith(text_of(a.parts)) for a, b in zip(before, now))


def find_grown(recording: Recording) -> Recording | None:
    """The stored recording whose sessions this one goes on with: itself when it is read again, else the longest one
    that is its beginning, byte for byte, and still has sessions."""
    if recording.sessions.filter(ordinal__gte=0).exists():
        return recording
    shorter = Recording.objects.filter(size__gte=SMALLEST, size__lt=recording.size, sessions__deleted=None)
    sizes = sorted(shorter.exclude(sessions=None).values_list("size", flat=True).distinct())
    digests = _digests(recording, sizes)
    return Recording.objects.filter(sha256__in=digests, sessions__deleted=None).order_by("-size").first()


def _digests(recording: Recording, sizes: list[int]) -> list[str]:
    """The SHA-256 of the file's beginnings of these sizes, in one pass."""
    digest = hashlib.sha256()
    found: list[str] = []
    done = 0
    with recording.path.open("rb") as file:
        for size in sizes:
            while done < size and (chunk := file.read(min(CHUNK, size - done))):
                digest.update(chunk)
                done += len(chunk)
            found.append(digest.copy().hexdigest())
    return found
