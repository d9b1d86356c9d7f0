"""Mistral Vibe: the session store of 3.0 (a zip archive of its folder, or a journal alone) and the logs before it.

A store's folder (`CURRENT`, `meta.json`, `journal/*.jsonl`, `chunks/*.json`, `generations/`) holds every request since
its last snapshot, and of the time before what the user saw (`journal`, `history`). A lone journal gives its calls, a
lone chunk its messages. Compactions are declared, with their trigger; their summaries are in the file where a request
shows them.
The threshold is in the settings of the journal or, with the archive of the folder, of a generation's runtime state, the
context window of the model nowhere. Logs before the store, to 2.25: `log`.
Checked against files that 2.25.8, 2.26.1, 3.0.2 and 3.0.3 wrote, with the requests they really sent.
"""

from __future__ import annotations

from typing import Any

from guard_core.errors import DamagedRecording
from guard_core.recordings.base import Recording
from guard_core.recordings.formats.vibe import log, look, store
from guard_core.recordings.formats.vibe.known_names import NAMES
from guard_core.recordings.formats.vibe.log import LogReader
from guard_core.recordings.formats.vibe.store import StoreReader
from guard_core.recordings.reading import fields
from guard_core.recordings.reading.build import FactCounter
from guard_core.recordings.reading.bundle import Bundle
from guard_core.recordings.reading.fields import JSON
from guard_core.recordings.reading.first_look import FirstLook
from guard_core.recordings.reading.source import ByteSource, SourceShape
from guard_core.recordings.reading.zip_entries import entry_names
from guard_core.sessions import Session

META, MESSAGES, CURRENT = "meta.json", "messages.jsonl", "CURRENT"
ONE_FILE = (
    "this is one file of a Mistral Vibe session, without messages: import a journal, or a zip archive of its folder"
)


class VibeFormat:
    name = "mistral-vibe"
    label = "Mistral Vibe"
    place = "~/.vibe/logs/session/…, a folder or its zip archive"
    known_names = NAMES

    def matches(self, source: ByteSource) -> bool:
        if source.shape is SourceShape.ZIP:
            with source.stream() as stream:
                return bool(_roots(entry_names(stream, source.size)))
        if source.shape is SourceShape.LINES or _is_journal(source):
            heads = [line.obj for line in source.head_lines()]
            return any(map(_is_record, heads)) or sum(map(log.is_message, heads)) * 2 > len(heads)
        if source.shape is not SourceShape.JSON:
            return False
        value = source.json_head(allow_nan=True)
        if store.is_chunk(value) or log.is_whole(value) or log.is_meta(value):
            return True
        return isinstance(value, dict) and value.keys() >= {"store_format", "generation"}

    def read(self, source: ByteSource) -> Recording:
        facts = FactCounter(self.name)
        if source.shape is SourceShape.ZIP:
            sessions = _archived(source, facts)
        elif source.shape is SourceShape.LINES or _is_journal(source):
            sessions = _lines(source, facts)
        else:
            sessions = _value(source, source.json(allow_nan=True), facts)
        if not sessions:
            raise source.nothing_left("this Mistral Vibe recording holds no message that can be read")
        return Recording(self.name, tuple(sessions), facts.facts(), source.notes)

    def first_look(self, source: ByteSource) -> FirstLook | None:
        return look.look(source) if any(_is_record(line.obj) for line in source.head_lines()) else None


FORMAT = VibeFormat()


def _is_record(value: JSON) -> bool:
    return "recovery_journal_record_version" in value


def _is_journal(source: ByteSource) -> bool:
    """A journal or a log of one line."""
    heads = source.head_lines(1)
    return source.shape is SourceShape.JSON and any(_is_record(line.obj) or log.is_message(line.obj) for line in heads)


def _roots(names: list[str]) -> list[str]:
    """The folders of sessions in an archive, each with its last slash."""
    roots = dict[str, None]()
    for name in names:
        folder, _, file = name.rpartition("/")
        parent = folder.rpartition("/")[0]
        if file == CURRENT or (file == META and f"{folder}/{MESSAGES}".lstrip("/") in names):
            roots[f"{folder}/" if folder else ""] = None
        elif folder.rpartition("/")[2] == "journal" and file.endswith(".jsonl"):
            roots[f"{parent}/" if parent else ""] = None
    return list(roots)


def _archived(source: ByteSource, facts: FactCounter) -> list[Session]:
    sessions: list[Session] = []
    with Bundle(source) as bundle:
        for root in _roots(bundle.names()):
            facts.session()
            with source.apart(sessions):
                sessions += _folder(source, bundle, root, facts)
    return sessions


def _folder(source: ByteSource, bundle: Bundle, root: str, facts: FactCounter) -> list[Session]:
    """The sessions of one folder of an archive."""
    reader, older = StoreReader(source, facts), LogReader(source, facts)
    names = sorted(name for name in bundle.names() if name.startswith(root))
    for name in sorted(names, key=lambda name: not name.endswith(META)):
        with source.tolerate(), bundle.open(name) as part:
            if part is not None:
                _file(reader, older, name.removeprefix(root), part)
    sessions = reader.sessions()
    return [*sessions, older.session()] if len(older.log.events) else sessions


def _file(reader: StoreReader, older: LogReader, name: str, part: ByteSource) -> None:
    """One file of a session's folder."""
    if name == META:
        reader.meta = older.meta = _object(part)
    elif name.startswith("chunks/") and name.endswith(".json"):
        reader.chunk(part.json(allow_nan=True))
    elif name == CURRENT:
        reader.current(_object(part))
    elif name.startswith("generations/") and name.endswith("/runtime-state.json"):
        reader.runtime_state(_object(part))
    elif name.startswith("journal/") or name == MESSAGES:
        for line in part.lines():
            with part.tolerate(line.number):
                reader.line(line) if name != MESSAGES else older.message(line.obj, line.number)


def _object(part: ByteSource) -> JSON:
    value = part.json(allow_nan=True)
    return value if isinstance(value, dict) else {}


def _lines(source: ByteSource, facts: FactCounter) -> list[Session]:
    if any(_is_record(line.obj) for line in source.head_lines()):
        reader = StoreReader(source, facts)
        for line in source.lines():
            with source.tolerate(line.number):
                reader.line(line)
        return reader.sessions()
    older = LogReader(source, facts)
    for line in source.lines():
        with source.tolerate(line.number):
            older.message(line.obj, line.number)
    return [older.session()] if len(older.log.events) else []


def _value(source: ByteSource, value: Any, facts: FactCounter) -> list[Session]:
    if log.is_whole(value):
        older = LogReader(source, facts)
        older.meta = value["metadata"]
        for message in fields.objects(value["messages"]):
            older.message(message, None)
        return [older.session()] if len(older.log.events) else []
    if not store.is_chunk(value):
        raise DamagedRecording(ONE_FILE)
    reader = StoreReader(source, facts)
    reader.chunk(value)
    return reader.sessions()
