"""The requests of a Claude Code session, in the versions that write them down (2.1.300 does, 2.1.250 does not).

An `api-request` line says with how many messages (`keep`) of an earlier request (`base`) a request begins, and has the
hashes of those that follow (`tail`). An `api-request-blob` line has the message of a hash: one of the user as it was
sent, reminders and files that are attached again included. An answer has a hash without such a line until another
process sends it again. Requests that the provider refused are listed, those that ask for a summary are not.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import MutableSequence
from hashlib import blake2b
from typing import Any

import msgspec

from guard_core.events import Part, Role
from guard_core.recordings.formats.claude.lines import parts_of
from guard_core.recordings.reading import fields
from guard_core.recordings.reading.packed_list import PackedList
from guard_core.recordings.reading.shelf import Shelf, outline
from guard_core.recordings.reading.source import Line

REMEMBERED = 8  # requests whose messages are held as a list; others are put together again when one is built on them


class SentMessage(msgspec.Struct, gc=False):
    """A message as it was sent. `parts` are outlines where the texts are on a shelf, at `place`."""

    role: Role
    parts: tuple[Part, ...]
    place: int | None
    line: int


class _Request(msgspec.Struct, gc=False):
    """A request as it is written: what it takes over of another one, and its own messages."""

    base: str
    keep: int
    tail: array[int]


class Requests:
    """The requests of a file by their ids, and the messages in them by the number of their hash."""

    def __init__(self, *, packing: bool) -> None:
        self._messages: MutableSequence[SentMessage] = PackedList(SentMessage) if packing else []
        self._places: dict[int, int] = {}  # of the messages
        self._requests: dict[str, _Request] = {}
        self._lines, self._names = array("q"), list[str]()  # where each request is written
        self._views: OrderedDict[str, list[int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._requests)

    def read(self, line: Line, shelf: Shelf | None) -> None:
        """An `api-request` or an `api-request-blob` line."""
        if fields.text(line.obj, "type") == "api-request":
            self._request(line)
            return
        message = fields.mapping(line.obj, "message")
        parts = parts_of(message.get("content"))
        key = number_of(fields.text(line.obj, "hash"))
        is_empty = message.get("content") == []  # it changes how the model answers, and says nothing
        if key in self._places or not (parts or is_empty):
            return
        self._places[key] = len(self._messages)
        role = Role.MODEL if fields.text(message, "role") == "assistant" else Role.USER
        outlines = tuple(map(outline, parts)) if shelf else parts
        self._messages.append(SentMessage(role, outlines, shelf.put(parts) if shelf else None, line.number))

    def _request(self, line: Line) -> None:
        name = fields.text(line.obj, "id")
        tail = [item for item in fields.items(line.obj, "tail") if isinstance(item, str)]
        keep = fields.tokens(line.obj, "keep")
        if name and keep is not None and name not in self._requests:
            own = array("q", map(number_of, tail))
            self._requests[name] = _Request(fields.text(line.obj, "base"), keep, own)
            self._lines.append(line.number)
            self._names.append(name)

    def message(self, key: int) -> SentMessage | None:
        """The message of a hash, None where the file has it as an answer, or not at all."""
        place = self._places.get(key)
        return None if place is None else self._messages[place]

    def last_before(self, line: int) -> str:
        """The id of the last request that is written before a line, "" where there is none."""
        place = bisect_left(self._lines, line)
        return self._names[place - 1] if place else ""

    def view(self, name: str) -> list[int] | None:
        """The messages of a request by the numbers of their hashes; None where the file does not have all of it."""
        chain: dict[str, None] = {}
        while name not in self._views:
            request = self._requests.get(name)
            if request is None or name in chain:
                return None
            chain[name] = None
            if not request.keep:
                break
            name = request.base
        view = self._views.get(name, [])
        for name in reversed(chain):
            request = self._requests[name]
            if request.keep > len(view):
                return None
            view = [*view[: request.keep], *request.tail]
            self._views[name] = view
            while len(self._views) > REMEMBERED:
                self._views.popitem(last=False)
        return view


def number_of(name: str) -> int:
    """A hash as a number that takes little room; two are never the same in one file, as far as anyone can see."""
    return int.from_bytes(blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big", signed=True)


def holds(sent: Any, part: Part) -> bool:
    """Does a part of a message that was sent hold the text of another part."""
    text = getattr(part, "text", None)
    return isinstance(text, str) and bool(text.strip()) and text.strip() in getattr(sent, "text", "")
