"""The requests of a Claude Code session, in the versions that write them down (2.1.300 does, 2.1.250 does not).

An `api-request` line says with how many messages (`keep`) of an earlier request (`base`) a request begins, and has the
hashes of those that follow (`tail`). An `api-request-blob` line has the message of a hash: one of the user as it was
sent, reminders and files that are attached again included. Where nothing was put between or behind the lines of a
message, as for models that are sent reminders as messages of their own, there is none: its hash is that of the lines
(`UserLines`). An answer has a hash without such a line until another process sends it again. Requests that the provider
refused are listed, those that ask for a summary are not.
"""

from __future__ import annotations

import json
from array import array
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import MutableSequence
from hashlib import blake2b, sha256
from typing import Any

import msgspec

from guard_core.agent_versions import numbers
from guard_core.events import Part, Role
from guard_core.recordings.formats.claude.lines import parts_of
from guard_core.recordings.reading import fields
from guard_core.recordings.reading.packed_list import PackedList
from guard_core.recordings.reading.shelf import Shelf, outline
from guard_core.recordings.reading.source import Line

UNWRITTEN_TO = (2, 1, 250)  # the last version that was run and writes no requests down
REMEMBERED = 8  # requests whose messages are held as a list; others are put together again when one is built on them


class SentMessage(msgspec.Struct, gc=False):
    """A message as it was sent. `parts` are outlines where the texts are on a shelf, at `place`."""

    role: Role
    parts: tuple[Part, ...]
    place: int | None
    line: int


class UserLines:
    """The lines of the user by the hash of the message that they make together, as they are. The hash is the SHA-256 of
    the message as JSON with sorted keys and without spaces (2.1.332, run)."""

    def __init__(self) -> None:
        self._lines: dict[int, tuple[int, ...]] = {}
        self._open: tuple[int, ...] = ()  # those of the message that grows
        self._begun = sha256()  # the JSON of that message so far
        self._answer = ""  # the id of the last one

    def read(self, line: Line) -> None:
        """A line of the user or, with an id of its own, of an answer, which ends the message before it."""
        obj, message = line.obj, fields.mapping(line.obj, "message")
        if obj.get("isSidechain") is True or numbers(fields.text(obj, "version")) <= UNWRITTEN_TO:
            return
        if fields.text(obj, "type") == "assistant":
            answer = fields.text(message, "id")  # results may come between the lines of the answer that asked for them
            if not answer or answer != self._answer:
                self._open = ()
            self._answer = answer
            return
        content = message.get("content")
        if isinstance(content, str):
            if not self._open:
                self._lines[number_of(sha256(_json({"content": content, "role": "user"})).hexdigest())] = (line.number,)
            content = [{"type": "text", "text": content}]
        if not isinstance(content, list) or not content:
            return
        if not self._open:
            self._begun = sha256(b'{"content":[')
        blocks = b",".join(map(_json, content))
        self._begun.update(b"," + blocks if self._open else blocks)
        self._open = (*self._open, line.number)
        whole = self._begun.copy()
        whole.update(b'],"role":"user"}')
        self._lines[number_of(whole.hexdigest())] = self._open

    def of(self, key: int) -> tuple[int, ...]:
        """The numbers of the lines of a message, by the number of its hash; none where it is not one of them."""
        return self._lines.get(key, ())


def _json(value: Any) -> bytes:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return text.encode("utf-8", "surrogatepass")


class _WrittenRequest(msgspec.Struct, gc=False):
    """A request as it is written: what it takes over of another one, and its own messages."""

    base: str
    keep: int
    tail: array[int]


class ClaudeRequests:
    """The requests of a file by their ids, and the messages in them by the number of their hash."""

    def __init__(self, *, packing: bool) -> None:
        self.plain = UserLines()
        self._messages: MutableSequence[SentMessage] = PackedList(SentMessage) if packing else []
        self._places: dict[int, int] = {}  # of the messages
        self._requests: dict[str, _WrittenRequest] = {}
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
            self._requests[name] = _WrittenRequest(fields.text(line.obj, "base"), keep, own)
            self._lines.append(line.number)
            self._names.append(name)

    def message(self, key: int) -> SentMessage | None:
        """The message that is written with a hash, None where the file has it as its lines alone, or not at all."""
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
