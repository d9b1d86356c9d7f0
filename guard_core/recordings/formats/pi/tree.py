"""The entries of pi's sessions as a tree: which of them lie on the way from the last one to the root."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import Any, NamedTuple

from guard_core.recordings.reading import fields
from guard_core.recordings.reading.source import Line

_LEAF_KEYS = ("leafId", "targetId", "entryId")


def is_header(obj: dict[str, Any]) -> bool:
    """Is a line the header of a session."""
    return obj.get("type") == "session" and ("cwd" in obj or "version" in obj) and "message" not in obj


_ENTRY_ID = re.compile(r"[0-9a-f]{8}")  # as pi makes them; other parents are not proof of an entry


class _EntryNode(NamedTuple):
    line: int
    parent: str


class _Tree:
    """The entries of one session, and the way from the last of them to the root.

    Some descendants name parents that are not entries (a tool call's id): then the entry before is taken for it.
    """

    def __init__(self) -> None:
        self.nodes: dict[str, _EntryNode] = {}
        self.written: dict[str, bytes] = {}  # what is on the line of each id
        self.last: dict[str, str] = {}  # ids of several lines, and what the last of them is called here
        self.lost_at: list[int] = []  # lines whose parent is an entry that the file does not have
        self.leaf = self.header = self.before = ""
        self.lines = 0  # that are not headers

    def add(self, line: Line) -> None:
        entry, parent = fields.text(line.obj, "id"), fields.text(line.obj, "parentId")
        if is_header(line.obj):
            self.header = self.header or entry
            return
        self.lines += 1
        if not entry or "parentId" not in line.obj:
            return
        digest = blake2b(line.raw, digest_size=8).digest()
        if self.written.get(entry) == digest:
            return
        if entry in self.written:  # another line of this id follows the first
            parent = self.last.get(entry, entry)
            self.last[entry] = entry = f"{entry} on line {line.number}"
        else:
            parent = self.last.get(parent, parent)
        self.written[entry] = digest
        lost = parent not in self.nodes and parent not in ("", self.header)
        self.nodes[entry] = _EntryNode(line.number, self.before if lost else parent)
        if lost and self.before and _ENTRY_ID.fullmatch(parent):
            self.lost_at.append(line.number)
        self.before = entry
        chosen = next((entry_id for key in _LEAF_KEYS if (entry_id := fields.text(line.obj, key))), "")
        self.leaf = chosen if line.obj.get("type") == "leaf" and chosen in self.nodes else entry

    @property
    def lost(self) -> list[int]:
        """The lines on that way whose parent is an entry that the file does not have."""
        path = self.path() or set()
        return [line for line in self.lost_at if line in path]

    def path(self) -> set[int] | None:
        """The lines on that way; None where entries have no ids (version 1)."""
        path: set[int] = set()
        leaf = self.leaf
        while leaf in self.nodes and self.nodes[leaf].line not in path:
            path.add(self.nodes[leaf].line)
            leaf = self.nodes[leaf].parent
        return path or None


def active_paths(lines: Iterable[Line]) -> Iterator[tuple[set[int] | None, list[int]]]:
    """The lines on the way to the root, and those of them whose parent is lost, of each session of the lines."""
    tree = _Tree()
    for line in lines:
        if begins_another(line.obj, tree.header, tree.lines):
            yield tree.path(), tree.lost
            tree = _Tree()
        tree.add(line)
    yield tree.path(), tree.lost


def begins_another(obj: dict[str, Any], header: str, entries: int) -> bool:
    """Is this the header of another session, behind the entries of one: several files were put into one."""
    return bool(header) and entries > 0 and is_header(obj) and fields.text(obj, "id") not in ("", header)
