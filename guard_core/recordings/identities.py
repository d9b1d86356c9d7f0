"""Ids of lines and messages: what was read before, and what only has the id of something else."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import msgspec

from guard_core.recordings.source import Source


class Identities:
    """The ids of one kind of thing (`what`) in one file, each with what it was the id of."""

    def __init__(self, source: Source, what: str) -> None:
        self._source = source
        self._what = what
        self._known: dict[str, tuple[int, bytes]] = {}  # by id: the line, else the number; the content's digest
        self._count = 0

    def __contains__(self, name: str) -> bool:
        return name in self._known

    def is_repeat(self, name: str, content: Any, line: int | None = None) -> bool:
        """Was the very same read before under this id? Other content under it is a conflict: a strict reading stops
        there, a lenient one notes it and keeps both."""
        self._count += 1
        if not name:
            return False
        digest = blake2b(msgspec.json.encode(content), digest_size=8).digest()
        place = line or self._count
        if " " in name:  # words in the place of everything: shapes of records made for tests, not messages
            return name in self._known or not self._known.setdefault(name, (place, digest))
        first, known = self._known.setdefault(name, (place, digest))
        if known is digest:
            return False
        if known == digest:
            return True
        unit = "line" if line else self._what
        shown = ascii(name[:60])[1:-1]
        reason = f"the id {shown} is on {unit} {first} and, with other content, on {unit} {place}; both are kept"
        self._source.problem(reason, line)
        return False
