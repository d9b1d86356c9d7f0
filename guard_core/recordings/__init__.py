"""Recordings: files of agent sessions, recognised by content and read into sessions and facts.

recording = read("session.jsonl")
recording.format, recording.sessions, recording.facts, recording.notes
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import IO

import msgspec

from guard_core import plural
from guard_core.errors import DamagedRecording, LimitExceeded
from guard_core.recordings.base import Recording, RecordingFacts, RecordingFormat
from guard_core.recordings.detection import UNFORESEEN, detect
from guard_core.recordings.reading.early_events import EarlyEvents
from guard_core.recordings.reading.file_bytes import Progress
from guard_core.recordings.reading.first_look import FirstLook, GivesFirstLook, look_at
from guard_core.recordings.reading.limits import Limits
from guard_core.recordings.reading.notes import FileProblem, ImportNotes
from guard_core.recordings.reading.source import SHELVED_FROM, ByteSource, SourceShape, noting_damage
from guard_core.recordings.reading.watch import ObjectWatch
from guard_core.recordings.registry import FORMATS, LABELS, PLACES
from guard_core.sessions import COUNTS_UNREAD, ModelCall, Provenance, Session, Sourced

__all__ = [
    "FORMATS",
    "LABELS",
    "PLACES",
    "ByteSource",
    "EarlyEvents",
    "FileProblem",
    "FirstLook",
    "ImportNotes",
    "Limits",
    "Progress",
    "Recording",
    "RecordingFacts",
    "RecordingFormat",
    "SourceShape",
    "detect",
    "first_look",
    "look_at",
    "read",
]


def read(
    recording: str | os.PathLike[str] | bytes | IO[bytes],
    *,
    strict: bool = False,
    progress: Progress | None = None,
    window: int | None = None,
    limits: Limits | None = None,
    shelve: str | os.PathLike[str] | None = None,
    shelve_from: int = SHELVED_FROM,
    early: EarlyEvents | None = None,
) -> Recording:
    """Read a file, a file object or bytes. `window` (tokens) overrides the context window of every session.

    `shelve`: a folder in which the texts of a file of `shelve_from` bytes or more may lie while its sessions are in
    use; their events are then a sequence that fetches each text when it is asked for, instead of a tuple. Nothing is
    left there. `early` gets the events of such a file while it is being read.

    `strict`: the first damaged place raises DamagedRecording; else it is left out and noted. Raises UnknownFormat
    when no format recognises the content, LimitExceeded when it is too large. `progress(done, total)` counts bytes.
    """
    with ByteSource.open(recording, strict=strict, limits=limits, progress=progress) as source:
        source.shelve, source.shelve_from = None if shelve is None else Path(shelve), shelve_from
        source.early = early
        result = read_source(source)
    if window is None:
        return result
    sourced = Sourced(window, Provenance.USER, "set by the user")
    return replace(
        result, sessions=tuple(msgspec.structs.replace(session, window=sourced) for session in result.sessions)
    )


def first_look(recording: str | os.PathLike[str]) -> FirstLook | None:
    """The calls' recorded prompt tokens in a fraction of the time of `read`; None where the format cannot know so soon,
    and of a long file that is not lines, which would be parsed whole only to know its format.

    Raises RecordingError for what no format recognises.
    """
    with ByteSource.open(recording) as source:
        if not source.may_be_lines:
            return None
        format_ = detect(source)
        try:
            return format_.first_look(source) if isinstance(format_, GivesFirstLook) else None
        except UNFORESEEN:  # a full reading reports what is wrong
            return None


def read_source(source: ByteSource) -> Recording:
    """Read an open source with the format that recognises it."""
    format_ = detect(source)
    source.watch = ObjectWatch(format_.known_names) if format_.known_names is not None else None
    try:
        recording = format_.read(source)
    except UNFORESEEN as error:
        kind, text = type(error).__name__, ascii(str(error)[:80])[1:-1]
        words = f"{kind} {text}" if text else kind
        raise DamagedRecording(f"cannot be read as {format_.label}: {words}") from error
    if _note_unread(source, recording):
        sessions = (msgspec.structs.replace(one, notes=(*one.notes, COUNTS_UNREAD)) for one in recording.sessions)
        recording = replace(recording, sessions=tuple(sessions))
    if len(recording.sessions) > source.limits.sessions:
        raise LimitExceeded(f"a file with {len(recording.sessions)} sessions (limit {source.limits.sessions})")
    if not source.has_left_out:
        return recording
    return replace(recording, sessions=tuple(map(noting_damage, recording.sessions)))


def _note_unread(source: ByteSource, recording: Recording) -> bool:
    """Note names that the reader does not know. A strict reading stops where they hold all there is. True where all
    counts of tokens are left out."""
    watch = source.watch
    if watch is None:
        return False
    counted = recording.facts.model_calls or any(
        session.prompt_tokens_total or any(call.prompt_tokens for call in _calls(session))
        for session in recording.sessions
    )
    if watch.placeholders:
        source.notes.skipped["placeholder in the place of an id"] = watch.placeholders
    for unknown in watch.unknown:
        whole = not (counted if unknown.counts_tokens else recording.facts.tool_calls)
        (source.problem if whole else source.notes.problem)(str(unknown), unknown.line)
    uncounted = watch.usages and not counted and watch.counts_calls
    if uncounted:
        source.problem(
            f"{plural.counted(watch.usages, 'object')} with counts of tokens, but no call that was read has one above 0"
        )
    return bool(uncounted) or (not counted and any(unknown.counts_tokens for unknown in watch.unknown))


def _calls(session: Session) -> Iterator[ModelCall]:
    """Every call of a model that was read: of the conversation, beside it, and of its compactions."""
    yield from (*session.calls, *session.side_calls)
    yield from (item.summariser for item in session.compactions if item.summariser is not None)
