"""What a recording format is: a name, a way to recognise its bytes, and a reader that gives sessions and facts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import msgspec

from guard_core.recordings.reading.known_names import Names
from guard_core.recordings.reading.notes import ImportNotes
from guard_core.recordings.reading.source import ByteSource
from guard_core.sessions import Session


class RecordingFacts(msgspec.Struct, frozen=True):
    """Counts over a whole file, defined as in the table of `guard_core/README.md`, to check a reading against.

    model_calls: calls with recorded token usage. messages: user, assistant and tool messages as the file holds them,
    exact repeats of one id dropped. prompt_tokens: cached tokens included.
    """

    format: str
    model_calls: int = 0
    messages: int = 0
    tool_calls: int = 0
    tool_results: int = 0
    prompt_tokens_sum: int = 0
    prompt_tokens_max: int = 0
    compactions: int = 0
    largest_tool_result_chars: int = 0


@dataclass(frozen=True)
class Recording:
    """One file, read: its sessions (several for databases and traces), facts over the whole file, and notes."""

    format: str
    sessions: tuple[Session, ...]
    facts: RecordingFacts
    notes: ImportNotes


class RecordingFormat(Protocol):
    """One module per format holds one of these and registers it in `guard_core.recordings.FORMATS`.

    `matches` decides by content alone (never by file name) from the first lines or the parsed beginning; `read`
    turns the whole source into a Recording. Strictness is the source's: in strict mode a damaged line raises, in
    lenient mode the source notes it and continues. A reader must keep going over line kinds it does not know
    (count them with `notes.skip(kind)`) and must raise DamagedRecording where the file cannot mean anything.
    """

    name: str  # "claude-code": as in facts, URLs, the registry
    label: str  # "Claude Code": for people
    place: str  # where its agent leaves such files, for people; "" where that is nowhere, or another format names it

    @property
    def known_names(self) -> Names | None:
        """The names of its counts and tool parts: others that look like such are noted. None: nothing is looked for."""

    def matches(self, source: ByteSource) -> bool: ...

    def read(self, source: ByteSource) -> Recording: ...
