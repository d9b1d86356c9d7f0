"""Which lines of a Qwen Code chat are the conversation in its last state: the path from the last line up.

A rewind writes a line whose parent is an earlier one, so what it took back is on no path.
"""

from __future__ import annotations

from functools import cached_property

from guard_core.recordings.reading import fields
from guard_core.recordings.reading.source import ByteSource, Line


def paths_of(source: ByteSource) -> list[ChatPath]:
    """The paths of the chats in a file, of which there are several where files were put into one: another begins with a
    line of another session that has no parent."""
    paths: list[ChatPath] = []
    known: set[str] = set()
    for line in source.lines():
        session = fields.text(line.obj, "sessionId")
        is_root = "uuid" in line.obj and not fields.text(line.obj, "parentUuid")
        if not paths or (is_root and session and known and session not in known):
            paths.append(ChatPath(line.number))
        known |= {session} if session else set()
        paths[-1].add(line)
    return paths


class ChatPath:
    """The lines of the last state of the chat that begins with the line `start`. `answered` are the ids of the calls
    whose results the file has."""

    def __init__(self, start: int) -> None:
        self.start = start
        self.answered: set[str] = set()
        self._lines: dict[str, list[int]] = {}  # of each uuid: a message may be written in pieces
        self._parents: dict[str, str] = {}
        self._lost_at: set[int] = set()
        self._main = self._last = ""

    def add(self, line: Line) -> None:
        """The next line of the chat."""
        uuid, parent = fields.text(line.obj, "uuid"), fields.text(line.obj, "parentUuid")
        if not uuid:
            return
        parts = fields.objects(fields.mapping(line.obj, "message").get("parts"))
        self.answered |= {fields.text(fields.mapping(part, "functionResponse"), "id") for part in parts}
        self._lines.setdefault(uuid, []).append(line.number)
        lost = bool(parent) and parent not in self._lines
        self._parents.setdefault(uuid, self._last if lost else parent)
        if lost and self._last:
            self._lost_at.add(line.number)
        self._last = uuid
        self._main = self._main if is_side(line.obj) else uuid

    @property
    def is_side(self) -> bool:
        """Is the file a sub-agent's: all its lines are of a side chain."""
        return bool(self._last) and not self._main

    @property
    def lost_at(self) -> list[int]:
        """The lines whose parent is not in the file."""
        return sorted(self._lost_at & self._chosen)

    def __contains__(self, line: int) -> bool:
        return line in self._chosen

    @cached_property
    def _chosen(self) -> set[int]:
        chosen: set[int] = set()
        uuid = self._main or self._last
        while uuid in self._lines and self._lines[uuid][0] not in chosen:
            chosen.update(self._lines[uuid])
            uuid = self._parents[uuid]
        return chosen


def is_side(record: fields.JSON) -> bool:
    """Is a line a sub-agent's?"""
    return record.get("isSidechain") is True
