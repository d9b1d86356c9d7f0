"""Which lines of a Claude Code transcript are the conversation in its last state: the path from the last leaf up."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import overload

import msgspec

from guard_core.recordings.reading.numbers_by_name import NumbersByName, numbers_for
from guard_core.recordings.reading.placeholders import is_placeholder

# Lines about tools that run, and about requests that are tried again, which are in the tree and are not messages.
PROGRESS, API_ERROR = "progress", "api_error"
ATTACHMENT = "attachment"
_CONVERSATION = frozenset({"user", "assistant", "summary", "boundary"})


class Node(msgspec.Struct, frozen=True, gc=False):
    """One line of the tree. `parent` is the logical parent where the line itself has none (at a compaction)."""

    line: int
    uuid: str
    parent: str
    kind: str  # user, assistant, summary, boundary, or another line kind
    sidechain: bool
    rooted: bool  # the line says what its parent is, if only that it has none


class Picked(Sequence[Node]):
    """Some of the nodes, in an order of their own, by their indexes."""

    def __init__(self, nodes: Sequence[Node], indexes: Iterable[int]) -> None:
        self._nodes = nodes
        self._indexes = indexes if isinstance(indexes, array) else array("q", indexes)

    def __len__(self) -> int:
        return len(self._indexes)

    def __iter__(self) -> Iterator[Node]:
        return map(self._nodes.__getitem__, self._indexes)

    @overload
    def __getitem__(self, index: int) -> Node: ...

    @overload
    def __getitem__(self, index: slice) -> Picked: ...

    def __getitem__(self, index: int | slice) -> Node | Picked:
        if isinstance(index, slice):
            return Picked(self._nodes, self._indexes[index])
        return self._nodes[self._indexes[index]]


class LineGroups:
    """Lines that belong together, by a name; a few bytes for each line of a long file."""

    def __init__(self, most: int) -> None:
        self._numbers = numbers_for(most)  # of the groups, at most so many
        self._first, self._last = array("q"), array("q")  # entry of each group
        self._lines, self._next = array("q"), array("q")  # of each entry; -1: the last of its group

    def __iter__(self) -> Iterator[list[int]]:
        """The lines of each group, in the order of their first lines."""
        return map(self._of, range(len(self._first)))

    def add(self, name: str, line: int) -> int:
        """Add a line to the group of this name; the group's number."""
        number = self._numbers.setdefault(name, len(self._first))
        if number == len(self._first):
            self._first.append(len(self._lines))
            self._last.append(len(self._lines))
            self._lines.append(line)
            self._next.append(-1)
        else:
            self.extend(number, line)
        return number

    def extend(self, number: int, line: int) -> None:
        """Add a line to the group of this number."""
        self._next[self._last[number]] = self._last[number] = len(self._lines)
        self._lines.append(line)
        self._next.append(-1)

    def of(self, name: str) -> list[int]:
        """The lines of a group."""
        return self._of(self._numbers[name])

    def _of(self, number: int) -> list[int]:
        lines, entry = [], self._first[number]
        while entry >= 0:
            lines.append(self._lines[entry])
            entry = self._next[entry]
        return lines


def conversations(nodes: Sequence[Node], owners: Sequence[int], main: Sequence[int]) -> list[array[int]]:
    """The nodes of each conversation of a file, by their indexes among `main`. `owners` has the session of each node.

    Lines of several sessions are one conversation where one follows from another, as after a resume; a compaction and
    a line that does not say what it follows continue the line before them. What else begins under another session's
    id is another conversation: several files were put into one.
    """
    places = numbers_for(len(nodes))
    for index in main:
        if nodes[index].uuid:
            places.setdefault(nodes[index].uuid, index)
    leaders: dict[int, int] = {}

    def leader(owner: int) -> int:
        while (above := leaders.get(owner, owner)) != owner:
            owner = above
        return owner

    before = main[0] if main else 0
    for index in main:
        node = nodes[index]
        parent = places.get(node.parent) if node.parent else None
        if parent is None and (node.kind == "boundary" or not node.rooted):
            parent = before
        if parent is not None:
            first, second = sorted((leader(owners[parent]), leader(owners[index])))
            leaders[second] = first
        before = index
    parts: dict[int, array[int]] = {}
    for index in main:
        parts.setdefault(leader(owners[index]), array("q")).append(index)
    return [*parts.values()]


class Shared:
    """Which of a file's sessions a line belongs to, by their number: `parts` are the nodes of each. Lines of any other
    session are of the first."""

    def __init__(self, nodes: Sequence[Node], owners: Sequence[int], parts: Sequence[Sequence[int]]) -> None:
        self._nodes, self._owners = nodes, owners
        self.first_owners = [owners[part[0]] for part in parts if part]
        several = enumerate(parts) if len(parts) > 1 else ()
        self._numbers = {owners[index]: number for number, part in several for index in part}

    def of_owner(self, owner: int) -> int:
        """The number of the session under one of the file's ids."""
        return self._numbers.get(owner, 0)

    def number(self, line: int) -> int:
        """The number of the session of a line; one that is no node is of the session of the line before it."""
        if not self._numbers:
            return 0
        place = bisect_right(self._nodes, line, key=lambda node: node.line) - 1
        return self.of_owner(self._owners[max(place, 0)])


def main_path(nodes: Sequence[Node], links: Iterable[Collection[int]], bridges: dict[int, set[str]]) -> Sequence[Node]:
    """The nodes on the path, in the order of the file, parents first.

    `links` are lines that are kept or dropped together: those of one API message and the results of its tool calls
    (parallel calls fork the tree without being a branch), but for copies on another branch. `bridges` are boundaries by
    line, with the uuids that they preserved: there the chain runs on through the preserved messages.
    """
    chosen = _walk(nodes)
    above: _Above | None = None
    root = next((node for node in nodes if chosen[node.line]), None)
    for lines in links:
        if root is not None and root.line in lines:
            _choose_question(nodes, chosen, root, lines)
        apart = [line for line in lines if not chosen[line]]
        if apart and len(apart) < len(lines):
            above = above or _Above(nodes)
            elsewhere = above.elsewhere(apart, frozenset(lines), chosen)
            for line in apart:
                chosen[line] = line not in elsewhere
    last = chosen.rfind(1)
    bridged: set[str] = set().union(*bridges.values())
    by_uuid = {node.uuid: node.line for node in nodes if node.uuid in bridged} if bridged else {}  # their last lines
    for line, preserved in bridges.items():
        if line < last and any(chosen[by_uuid[uuid]] for uuid in preserved if uuid in by_uuid):
            chosen[line] = 1
    for line in _summaries(nodes, chosen):
        chosen[line] = 1
    return parents_first(Picked(nodes, (index for index, node in enumerate(nodes) if chosen[node.line])))


class _Above:
    """What is above single lines of a file."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._nodes = nodes
        self._lines = array("q", (node.line for node in nodes))
        self._places = numbers_for(len(nodes))
        for index, node in enumerate(nodes):
            if node.uuid:
                self._places.setdefault(node.uuid, index)
        self._messages: dict[int, int | None] = {}  # of lines that are none: the message above, where that is known

    def elsewhere(self, apart: Iterable[int], together: Collection[int], chosen: bytearray) -> set[int]:
        """Which lines, of some that belong together, hang below a message of another branch, so that they are copies: a
        file may hold a turn twice."""
        known: dict[int, bool] = {}  # by line; each is passed once, however many of them hang from it
        for line in apart:
            index: int | None = bisect_left(self._lines, line)
            passed: list[int] = []
            is_copy = False
            while index is not None:
                node = self._nodes[index]
                if chosen[node.line] or node.line in known:
                    is_copy = known.get(node.line, False)
                    break
                if node.kind in _CONVERSATION and node.line not in together:
                    is_copy = True
                    break
                known[node.line] = False  # in a circle nothing is above
                passed.append(node.line)
                index = self._message_above(index)
            known.update(dict.fromkeys(passed, is_copy))
        return {line for line, is_copy in known.items() if is_copy}

    def _message_above(self, index: int) -> int | None:
        """The next message that a line hangs below: hundreds of lines about a tool that runs may be between."""
        passed: list[int] = []
        above = self._parent(index)
        while above is not None and self._nodes[above].kind not in _CONVERSATION:
            if above in self._messages:
                above = self._messages[above]
                break
            self._messages[above] = None  # in a circle no message is above
            passed.append(above)
            above = self._parent(above)
        self._messages.update(dict.fromkeys(passed, above))
        return above

    def _parent(self, index: int) -> int | None:
        parent = self._nodes[index].parent
        return self._places.get(parent) if parent else None


def _choose_question(nodes: Sequence[Node], chosen: bytearray, root: Node, copies: Collection[int]) -> None:
    """The lines above the first copy of an answer with which the chosen ones begin: 1.0.30 and 1.0.80 write the
    conversation anew for each question of one process, without the first question (run)."""
    if root.kind != "assistant":
        return
    above = {node.uuid: node for node in nodes if node.line < root.line}
    lines = frozenset(copies)
    for copy in [node for node in above.values() if node.line in lines]:
        node = above.get(copy.parent)
        while node is not None and not chosen[node.line]:
            chosen[node.line] = 1
            node = above.get(node.parent)


def parents_first(nodes: Sequence[Node]) -> Picked:
    """The nodes in their order, but none before its parent: a fast answer may be written before its question. A forked
    session begins with a boundary that names a line behind it, which follows from it."""
    places = numbers_for(len(nodes))
    for index, node in enumerate(nodes):
        if node.uuid:
            places[node.uuid] = index
    done = bytearray(len(nodes))
    ordered = array("q")
    for start in range(len(nodes)):
        line_of_descent: list[int] = []
        current: int | None = start
        while current is not None and not done[current]:
            done[current] = 1
            line_of_descent.append(current)
            current = places.get(nodes[current].parent)
        if current == start and line_of_descent:
            ordered.append(line_of_descent.pop(0))
        ordered.extend(reversed(line_of_descent))
    return Picked(nodes, ordered)


def lost_at(nodes: Sequence[Node], path: Sequence[Node]) -> list[int]:
    """The lines of a path, the first apart, that follow one which is in none of the file's nodes."""
    known = numbers_for(len(nodes))
    for node in nodes:
        known.setdefault(node.uuid, 1)
    follows = (node for node in path[1:] if node.parent and node.kind != "boundary")
    return [node.line for node in follows if node.parent not in known and not is_placeholder(node.parent)]


def _walk(nodes: Sequence[Node]) -> bytearray:
    """From the last message upwards: for each line 1 or 0. Where a parent is not in the file, the line before it
    continues the path: a line was lost. A file none of whose lines has a parent was written by another program: its
    order is all there is."""
    places = numbers_for(len(nodes))
    for index, node in enumerate(nodes):
        if node.uuid:
            places.setdefault(node.uuid, index)
    linked = any(node.parent for node in nodes)
    backwards = range(len(nodes) - 1, -1, -1)
    index = next((index for index in backwards if nodes[index].kind in _CONVERSATION), -1)
    chosen = bytearray(max((node.line for node in nodes), default=0) + 1)
    while index >= 0:
        node = nodes[index]
        if chosen[node.line]:
            break
        chosen[node.line] = 1
        parent = places.get(node.parent) if node.parent else None
        if parent is not None and parent != index and not chosen[nodes[parent].line]:
            index = _written_late(nodes, places, index, parent) if node.kind in (PROGRESS, API_ERROR) else parent
        elif node.parent or node.kind == "boundary" or not node.rooted or not linked:
            index -= 1
        else:
            break
    return chosen


def _written_late(nodes: Sequence[Node], places: NumbersByName | dict[str, int], index: int, parent: int) -> int:
    """Where the path continues above a line that is no message: its parent, unless the newest message before the line
    comes from that parent. Versions about 2.1.74 write progress at the end of a turn, 2.1.100 errors of requests that
    were tried again (run), and the next question hangs from them."""
    tip = index - 1
    while tip > parent and (nodes[tip].kind not in _CONVERSATION or nodes[tip].sidechain):
        tip -= 1
    current: int | None = tip
    while current is not None and current > parent:
        above = places.get(nodes[current].parent) if nodes[current].parent else None
        current = above if above is not None and above < current else None
    return tip if current == parent else parent


def _summaries(nodes: Sequence[Node], chosen: bytearray) -> set[int]:
    """The summary that follows each chosen boundary; side lines may be between them."""
    summaries: set[int] = set()
    waiting = False
    for node in nodes:
        if node.kind == "summary" and waiting:
            summaries.add(node.line)
        if node.kind in _CONVERSATION:
            waiting = node.kind == "boundary" and chosen[node.line] == 1
    return summaries
