"""Ids of lines and messages: what was read before, and what only has the id of something else."""

from __future__ import annotations

from array import array
from hashlib import blake2b
from typing import Any

import msgspec

from guard_core.recordings.reading.numbers_by_name import NumbersByName
from guard_core.recordings.reading.source import ByteSource


class Identities:
    """The ids of one kind of thing (`what`) in one file, each with what it was the id of."""

    def __init__(self, source: ByteSource, what: str) -> None:
        self._source = source
        self._what = what
        self._known = NumbersByName()  # places in the two columns below
        self._places = array("q")  # the line of each, else its number
        self._digests = array("Q")  # of each one's content
        self._count = 0

    def __contains__(self, name: str) -> bool:
        return name in self._known

    def is_repeat(self, name: str, content: Any, line: int | None = None) -> bool:
        """Was the very same read before under this id? Other content under it is a conflict: a strict reading stops
        there, a lenient one notes it and keeps both."""
        self._count += 1
        if not name:
            return False
        digest = int.from_bytes(blake2b(msgspec.json.encode(content), digest_size=8).digest())
        place = line or self._count
        known = self._known.get(name)
        if known is None:
            self._add(name, place, digest)
            return False
        if (
            self._digests[known] == digest or " " in name
        ):  # words as an id: shapes of records made for tests, no messages
            return True
        other = f"{name} {digest:x}"
        if other in self._known:
            return True
        self._add(other, place, digest)
        first = self._places[known]
        unit = "line" if line else self._what
        shown = ascii(name[:60])[1:-1]
        reason = f"the id {shown} is on {unit} {first} and, with other content, on {unit} {place}; both are kept"
        self._source.problem(reason, line)
        return False

    def _add(self, name: str, place: int, digest: int) -> None:
        self._known[name] = len(self._places)
        self._places.append(place)
        self._digests.append(digest)
