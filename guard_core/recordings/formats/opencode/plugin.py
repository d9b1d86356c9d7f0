"""What OpenCode's plugin DCP ("dynamic context pruning") takes out of requests.

The model calls its tool `compress` with ranges of messages, each with a summary that is sent from the next request on
in the place of the range, as a message of the user. Ranges are named by numbers that the plugin gives the messages
(`m0001`, in their order) and by earlier summaries (`b1`), which a range replaces, too. Messages that only the person
sees, as the plugin's own, are not numbered, but some versions skip a number there; the result says how many messages
were replaced. A range is read only where numbers and result leave one way to read it. Once OpenCode itself compacts,
the plugin forgets its summaries and counts anew, from a message that the file does not say.

A summary also has what the tools that the plugin protects by default answered in the range, and the earlier summaries
that it names or leaves out. What else the plugin changes in requests is in no file: the numbers themselves, reminders,
and results of repeated or failed calls.
Source: https://github.com/Opencode-DCP/opencode-dynamic-context-pruning, lib/tools and lib/messages (3.0.4), in 3.1.9
lib/compress; seen in sessions of OpenCode 1.4.3 to 1.15.13.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

from guard_core.events import Event, Role, TextPart, value_text
from guard_core.recordings.reading import fields
from guard_core.recordings.reading.fields import JSON
from guard_core.views import Inserted, Segment, Span, View

TOOL = "compress"
HEADER = "[Compressed conversation section]"
UNREAD = "The plugin DCP replaced messages by a summary; the file does not say clearly which."
NOTE = "Made by the plugin DCP. What the tools that it protects by default answered is taken to be in the summary."
NOT_IN_FILE = "What the plugin DCP adds to requests or prunes without a call of its tool is not in the file."
PROTECTED = frozenset({"task", "skill", "todowrite", "todoread"})  # COMPRESS_DEFAULT_PROTECTED_TOOLS of config.ts
MOST_READINGS = 1_000  # ways to read one call
_DONE = re.compile(r"Compressed (\d{1,6}) messages? into " + re.escape(HEADER))
_NUMBER = re.compile(r"m(\d{4})")
_BLOCK = re.compile(r"b([1-9]\d{0,5})")
_NAMED = re.compile(r"\(b(\d{1,6})\)|\{block_(\d{1,6})\}", re.IGNORECASE)
_TOOLS = "\n\nThe following protected tools were used in this conversation as well:"
_EARLIER = "\n\nThe following previously compressed summaries were also part of this conversation section:"


class _Message(NamedTuple):
    """A message: the first of its events, and what protected tools answered in it."""

    event: int
    answers: tuple[str, ...]


class _Range(NamedTuple):
    """A range as the model asked for it: the names of its ends and the summary."""

    first: str
    last: str
    summary: str


class _Block(NamedTuple):
    """A summary that is sent in the place of messages; `first`: the message before which it is."""

    number: int
    first: int
    text: str

    @property
    def message(self) -> Event:
        tag = f"<dcp-message-id>b{self.number}</dcp-message-id>"
        return Event(Role.USER, (TextPart(f"{HEADER}\n{self.text.strip()}\n\n{tag}"),), meta=True)


class Compressions:
    """The messages of a session, and the summaries of the plugin that are sent in the place of some."""

    def __init__(self) -> None:
        self.is_used = False
        self._is_numbered = True  # are the numbers known?
        self._messages: list[_Message] = []  # those that are numbered
        self._hidden: list[int] = []  # before how many of these the others are
        self._skipped: dict[int, int] = {}  # by a message whose number is known: how many numbers were skipped before
        self._blocks: dict[int, _Block] = {}  # those that are sent
        self._covered: set[int] = set()  # the messages that are not
        self._last_number = 0  # of a block

    def message(self, event: int, role: str, parts: Sequence[JSON]) -> None:
        """The next message of the file, whose events begin at `event`."""
        if role == "user" and all(part.get("ignored") is True for part in parts):
            self._hidden.append(len(self._messages))
        else:
            self._messages.append(_Message(event, tuple(_answers(parts))))

    def forget(self) -> None:
        """OpenCode compacted, or the session is one of a sub-agent, whose first prompt has no number."""
        self._is_numbered = False
        self._blocks, self._covered = {}, set()

    def apply(self, tools: Sequence[JSON]) -> bool:
        """Apply the plugin's calls among those of a step that has at least one; False where it is not clear which
        messages one replaced."""
        self.is_used = True
        read = [self._apply(tool) for tool in tools if is_compression(tool)]
        return all(read)

    def view(self, stop: int) -> tuple[View, tuple[Event, ...]]:
        """What is sent of the first `stop` events, and the summaries among it."""
        blocks = sorted(self._blocks.values(), key=_order)
        placed: dict[int, list[int]] = {}
        for index, block in enumerate(blocks):
            placed.setdefault(block.first, []).append(index)
        segments: list[Segment] = []
        start = 0
        for place in sorted({*self._covered, *placed}):
            begin, end = self._events_of(place, stop)
            segments += [Span(start, begin)] if start < begin else []
            segments += map(Inserted, placed.get(place, ()))
            start = end if place in self._covered else begin
        segments += [Span(start, stop)] if start < stop else []
        return tuple(segments), tuple(block.message for block in blocks)

    def _events_of(self, place: int, stop: int) -> tuple[int, int]:
        """Where the events of a message begin and end."""
        later = self._messages[place + 1 : place + 2]
        return self._messages[place].event, later[0].event if later else stop

    # -- one call of the tool

    def _apply(self, tool: JSON) -> bool:
        state = fields.mapping(tool, "state")
        done = _DONE.match(fields.text(state, "output"))
        said = int(done[1]) if done is not None else 0
        ranges = list(_ranges(fields.mapping(state, "input")))
        first_number = self._last_number + 1
        self._last_number += len(ranges)
        places = self._read(ranges, said) if ranges and self._is_numbered else None
        if places is None:
            return False
        # All texts are made of what was sent before the call.
        blocks = [
            self._block(number, item, place)
            for number, (item, place) in enumerate(zip(ranges, places, strict=True), first_number)
        ]
        for block, (first, last) in zip(blocks, places, strict=True):
            replaced = [number for number, item in self._blocks.items() if first <= item.first <= last]
            self._blocks = {number: item for number, item in self._blocks.items() if number not in replaced}
            self._covered.update(range(first, last + 1))
            self._blocks[block.number] = block
        return True

    def _read(self, ranges: Sequence[_Range], said: int) -> list[tuple[int, int]] | None:
        """The first and last message of each range, None where there is no single way to read them all."""
        choices: list[list[tuple[int, int]]] = []
        size = 1
        for item in ranges:
            firsts, lasts = self._places(item.first), self._places(item.last)
            if len(firsts) * len(lasts) > MOST_READINGS:
                return None
            choices.append([(first, last) for first in firsts for last in lasts if first <= last])
            size *= len(choices[-1])
            if size > MOST_READINGS:
                return None
        fitting = [way for way in product(*choices) if sum(last - first + 1 for first, last in way) == said]
        if len(fitting) != 1:
            return None
        for item, ends in zip(ranges, fitting[0], strict=True):
            for name, place in zip(item[:2], ends, strict=True):
                if (number := _NUMBER.fullmatch(name)) is not None:
                    self._skipped[place] = int(number[1]) - 1 - place
        return list(fitting[0])

    def _places(self, name: str) -> list[int]:
        """The messages that a name may mean."""
        if (number := _BLOCK.fullmatch(name)) is not None:
            block = self._blocks.get(int(number[1]))
            return [] if block is None else [block.first]
        number = _NUMBER.fullmatch(name)
        if number is None:
            return []
        highest = min(int(number[1]) - 1, len(self._messages) - 2)  # the message with the call itself is the last
        lowest = max(0, int(number[1]) - 1 - len(self._hidden))
        if highest - lowest >= MOST_READINGS:
            return []
        known = sorted(self._skipped)
        return [place for place in range(lowest, highest + 1) if self._may_be(place, int(number[1]) - 1 - place, known)]

    def _may_be(self, place: int, skipped: int, known: Sequence[int]) -> bool:
        """May so many numbers have been skipped before a message? One at most for each hidden one before it."""
        behind = bisect_right(known, place)
        least, since = (self._skipped[known[behind - 1]], known[behind - 1]) if behind else (0, -1)
        if not least <= skipped <= least + self._hidden_between(since, place):
            return False
        if behind == len(known):
            return True
        most = self._skipped[known[behind]]
        return most - self._hidden_between(place, known[behind]) <= skipped <= most

    def _hidden_between(self, former: int, later: int) -> int:
        """How many hidden messages are behind one message and before another; `former` -1: before all."""
        return bisect_right(self._hidden, later) - (bisect_right(self._hidden, former) if former >= 0 else 0)

    # -- the text of a summary

    def _block(self, number: int, item: _Range, ends: tuple[int, int]) -> _Block:
        first, last = ends
        inside = sorted((block for block in self._blocks.values() if first <= block.first <= last), key=_order)
        waiting = {block.number: block for block in inside}
        pieces, cursor = [], 0
        for named in _NAMED.finditer(item.summary):
            if (block := waiting.pop(int(named[1] or named[2]), None)) is not None:
                pieces += [item.summary[cursor : named.start()], block.text]
                cursor = named.end()
        text = "".join((*pieces, item.summary[cursor:]))
        for name, is_before in ((item.first, True), (item.last, False)):
            at_end = _BLOCK.fullmatch(name)
            if at_end is not None and (block := waiting.pop(int(at_end[1]), None)) is not None:
                text = "\n\n".join((block.text, text) if is_before else (text, block.text))
        own = (place for place in range(first, last + 1) if place not in self._covered)
        answers = [answer for place in own for answer in self._messages[place].answers]
        text += _TOOLS + "".join(answers) if answers else ""
        rest = [f"\n### (b{block.number})\n{block.text}" for block in inside if block.number in waiting]
        return _Block(number, first, (text + _EARLIER + "".join(rest) if rest else text).strip())


def is_compression(tool: JSON) -> bool:
    """Is a part a call by which the plugin replaced messages?"""
    state = fields.mapping(tool, "state")
    is_done = fields.text(tool, "tool") == TOOL and fields.text(state, "status") == "completed"
    return is_done and _DONE.match(fields.text(state, "output")) is not None


def _order(block: _Block) -> tuple[int, int]:
    return block.first, block.number


def _answers(parts: Sequence[JSON]) -> Iterator[str]:
    """What protected tools answered, as a summary has it."""
    for part in parts:
        name, state = fields.text(part, "tool"), fields.mapping(part, "state")
        if name in PROTECTED and fields.text(state, "status") == "completed" and state.get("output"):
            yield f"\n### Tool: {name}\n{value_text(state['output'])}"


def _ranges(arguments: JSON) -> Iterator[_Range]:
    """The ranges of a call: a list of them, one alone, or one in the arguments themselves; or single messages."""
    content = arguments.get("content", arguments)
    items = list(fields.objects(content if isinstance(content, list) else [content]))
    for item in items:
        alone = fields.text(item, "messageId")
        ends = (alone, alone) if alone else (fields.text(item, "startId"), fields.text(item, "endId"))
        first, last = (end.strip().lower() for end in ends)
        yield _Range(first, last, fields.text(item, "summary"))
