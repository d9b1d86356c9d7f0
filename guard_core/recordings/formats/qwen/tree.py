"""Which lines of a Qwen Code chat are the conversation in its last state: the path from the last line up.

A rewind writes a line whose parent is an earlier one, so what it took back is on no path.
"""

from __future__ import annotations

from guard_core.recordings.reading import fields
from guard_core.recordings.reading.source import ByteSource


class Path:
    """The lines of the last state, and whether the file is a sub-agent's (all its lines are of a side chain).
    `answered` are the ids of the calls whose results the file has."""

    def __init__(self, source: ByteSource) -> None:
        self._lines: dict[str, list[int]] = {}  # of each uuid: a message may be written in pieces
        self._parents: dict[str, str] = {}
        self.answered: set[str] = set()
        lost_at: set[int] = set()
        main, last, before = "", "", ""
        for line in source.lines():
            uuid, parent = fields.text(line.obj, "uuid"), fields.text(line.obj, "parentUuid")
            if not uuid:
                continue
            parts = fields.objects(fields.mapping(line.obj, "message").get("parts"))
            self.answered |= {fields.text(fields.mapping(part, "functionResponse"), "id") for part in parts}
            self._lines.setdefault(uuid, []).append(line.number)
            lost = bool(parent) and parent not in self._lines
            self._parents.setdefault(uuid, before if lost else parent)
            if lost and before:
                lost_at.add(line.number)
            before = last = uuid
            main = main if is_side(line.obj) else uuid
        self.is_side = bool(last) and not main
        self._chosen = self._walk(main or last)
        self.lost_at = sorted(lost_at & self._chosen)  # the lines whose parent is not in the file

    def __contains__(self, line: int) -> bool:
        return line in self._chosen

    def _walk(self, uuid: str) -> set[int]:
        chosen: set[int] = set()
        while uuid in self._lines and self._lines[uuid][0] not in chosen:
            chosen.update(self._lines[uuid])
            uuid = self._parents[uuid]
        return chosen


def is_side(record: fields.JSON) -> bool:
    """Is a line a sub-agent's?"""
    return record.get("isSidechain") is True
