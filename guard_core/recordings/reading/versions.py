"""Which version of the agent wrote which events of a recording."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from sys import intern

from guard_core.events import Event

LONGEST = 60  # characters of a version that are taken over; ours


class Versions:
    """The versions that the lines of a file name, as they change."""

    def __init__(self) -> None:
        self._changes: list[tuple[int, str]] = []  # the line from which a version holds

    def see(self, line: int, version: str) -> None:
        """A line names the version that wrote it; lines without one say nothing."""
        if version and (not self._changes or self._changes[-1][1] != version[:LONGEST]):
            self._changes.append((line, intern(version[:LONGEST])))

    def of(self, outlines: Sequence[Event]) -> tuple[tuple[int, str], ...]:
        """The versions with the first event of these that each wrote, as Session has them; those of no event are left
        out, and the first holds from the beginning."""
        if not self._changes:
            return ()
        lines = [event.line or 0 for event in outlines] if len(self._changes) > 1 else []
        places = [0, *(bisect_left(lines, line) for line, _ in self._changes[1:])]
        versions: list[tuple[int, str]] = []
        for place, (_, version) in zip(places, self._changes, strict=True):
            while versions and versions[-1][0] >= place:
                versions.pop()
            if (place < len(outlines) or not place) and not (versions and versions[-1][1] == version):
                versions.append((place, version))
        return tuple(versions)


def single(version: str) -> tuple[tuple[int, str], ...]:
    """The one version of a file that names it once, as Session has it."""
    return ((0, version[:LONGEST]),) if version else ()
