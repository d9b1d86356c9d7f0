"""Which recordings in some folders have changed, and what of them is whole."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from guard_core.errors import RecordingError
from guard_core.recordings.detection import UNFORESEEN
from guard_core.recordings.formats.claude.transcript import ClaudeTranscriptFormat
from guard_core.recordings.reading import fields
from guard_core.recordings.reading.source import ByteSource

# Where agents keep their sessions by default, each read from the agent's own documentation or source.
KNOWN = (
    "~/.claude/projects",
    "~/.codex/sessions",
    "~/.gemini/tmp",
    "~/.qwen",
    "~/.pi/agent/sessions",
    "~/.kimi/sessions",
    "~/.local/share/opencode/opencode.db",
    "~/.local/share/kilo/kilo.db",
)
LINES = (".jsonl", ".ndjson")
DATABASES = (".db", ".sqlite", ".sqlite3")
ENDINGS = (*LINES, ".json", *DATABASES)
NEWLINE = b"\n"
CHUNK = 1 << 16  # bytes
# Bytes of a Claude Code file that is looked at for a message before it is sent. Ours: what such a file begins with (its
# mode, a snapshot of files, hooks) has some thousand.
BEGINNING = 1 << 20
MESSAGES = ("user", "assistant")  # the kinds of its lines that a session needs


class Version(NamedTuple):
    """What a file was when it was looked at: size in bytes, time of its last change in nanoseconds, and which file it
    was, for another one may have been put in its place."""

    size: int
    changed: int
    inode: int


@dataclass
class Watched:
    """Files and folders, and the version of each file that was last sent."""

    paths: Sequence[Path]
    since: float  # seconds since the epoch; files that have not changed since are left alone
    _sent: dict[Path, tuple[Version, ...]] = field(default_factory=dict)  # or left alone, as old

    def changed(self) -> Iterator[Path]:
        """Files that have changed since they were last sent, in the order of their changes."""
        present = [(versions, path) for path in self._files() if (versions := versions_of(path))]
        for versions, path in sorted(present, key=lambda item: (_last_change(item[0]), item[1])):
            if path not in self._sent and _last_change(versions) < self.since * 1e9:
                self._sent[path] = versions  # left alone until it is another one, even if a clock was set back
            elif self._sent.get(path) != versions_of(path) and versions[0].size:
                yield path

    def sent(self, path: Path, versions: tuple[Version, ...]) -> None:
        """A version of a file, as `versions_of` gave it before it was read, has been sent."""
        self._sent[path] = versions

    def _files(self) -> Iterator[Path]:
        for path in self.paths:  # of `os.path`, as in _is_there
            if os.path.isdir(path):
                yield from (
                    Path(folder, name) for folder, _, names in os.walk(path) for name in names if is_session(name)
                )
            elif os.path.isfile(path):
                yield path


def is_session(name: str) -> bool:
    """May a file of this name be a recording."""
    return name.endswith(ENDINGS) and not name.startswith(".")


def is_in_lines(path: Path) -> bool:
    """Is this a file that is written line by line."""
    return path.name.endswith(LINES)


def versions_of(path: Path) -> tuple[Version, ...]:
    """The versions of a file and of the write-ahead log beside it, to compare with later."""
    return tuple(version for file in companions(path) if (version := _version(file)) is not None)


def whole_size(path: Path) -> int:
    """Bytes up to the end of the last whole line, where a file is written line by line; else all of it."""
    size = path.stat().st_size
    if not is_in_lines(path):
        return size
    with path.open("rb") as file:
        end = size
        while end > 0:
            start = max(0, end - CHUNK)
            file.seek(start)
            place = file.read(end - start).rfind(NEWLINE)
            if place >= 0:
                return start + place + 1
            end = start
    return 0


def is_only_begun(path: Path) -> bool:
    """Is this a Claude Code file without a message so far: it is no session yet."""
    size = whole_size(path) if is_in_lines(path) else 0
    if not 0 < size <= BEGINNING:
        return False
    with path.open("rb") as file:
        begun = file.read(size)
    with suppress(RecordingError, *UNFORESEEN), ByteSource.open(begun) as source:  # the server says what is wrong
        has_message = any(fields.text(line.obj, "type") in MESSAGES for line in source.lines())
        return not has_message and ClaudeTranscriptFormat().matches(source)
    return False


def companions(path: Path) -> list[Path]:
    """The file and, of a database, the write-ahead log that holds its newest rows."""
    log = path.with_name(path.name + "-wal")
    return [path, log] if path.name.endswith(DATABASES) and _version(log) is not None else [path]


def known_folders() -> list[Path]:
    """Those of KNOWN that are there."""
    return [place for name in KNOWN if _is_there(place := Path(name).expanduser())]


def _version(path: Path) -> Version | None:
    try:
        known = path.stat()
    except OSError:  # it went away meanwhile, or may not be read
        return None
    return Version(known.st_size, known.st_mtime_ns, known.st_ino)


def existing(paths: Iterable[str]) -> tuple[list[Path], list[str]]:
    """The paths that are there, and the names of those that are not."""
    places = [Path(name).expanduser() for name in paths]
    return [place for place in places if _is_there(place)], [str(place) for place in places if not _is_there(place)]


def _last_change(versions: tuple[Version, ...]) -> int:
    """When a file or what belongs to it was last written: a database in use may be in its log alone for hours."""
    return max(version.changed for version in versions)


def _is_there(place: Path) -> bool:
    """Can it be looked at now. As `os.path` has it and not `Path`, which before Python 3.14 raises what else is wrong
    with the way there: no permission, a network drive that is away."""
    return os.path.exists(place)
