"""A first look at this project's own export: the lines of its calls, and the events at which compactions are."""

from __future__ import annotations

from bisect import bisect_left

import msgspec

from guard_core.recordings.reading import looks
from guard_core.recordings.reading.first_look import FirstLook
from guard_core.recordings.reading.source import ByteSource


class _HeaderLine(msgspec.Struct, gc=False):
    model: str = ""


class _CallLine(msgspec.Struct, gc=False):
    at: int
    prompt_tokens: int | None = None


class _CompactionLine(msgspec.Struct, gc=False):
    at: int


class _Line(msgspec.Struct, gc=False):
    """One line of an export. Side calls have a key of their own, which is passed over."""

    session: _HeaderLine | None = None
    calls: _CallLine | None = None
    compactions: _CompactionLine | None = None


def look(source: ByteSource) -> FirstLook:
    """Of several sessions the calls one after the other."""
    calls = looks.CallsInOrder()
    places: list[int] = []  # events at which the calls of this session are
    first = 0  # the session's first call
    for line in looks.lines_of(source, _Line):
        if line.session is not None:
            calls.model = line.session.model or calls.model
            first, places = len(calls), []
        elif line.calls is not None:
            calls.call(line.calls.prompt_tokens)
            places += [line.calls.at] * (len(calls) - first - len(places))
        elif line.compactions is not None:
            calls.compacted(first + bisect_left(places, line.compactions.at))
    return calls.look()
