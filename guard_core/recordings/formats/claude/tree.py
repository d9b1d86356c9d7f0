"""Which lines of a Claude Code transcript are the conversation in its last state: the path from the last leaf up."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import msgspec

_CONVERSATION = frozenset({"user", "assistant", "summary", "boundary"})


class Node(msgspec.Struct, frozen=True, gc=False):
    """One line of the tree. `parent` is the logical parent where the line itself has none (at a compaction)."""

    line: int
    uuid: str
    parent: str
    kind: str  # user, assistant, summary, boundary, or another line kind
    sidechain: bool
    rooted: bool  # the line says what its parent is, if only that it has none


def main_path(nodes: Sequence[Node], links: Iterable[Collection[int]], bridges: dict[int, set[str]]) -> list[Node]:
    """The nodes on the path, in the order of the file, parents first.

    `links` are lines that stand or fall together: those of one API message and the results of its tool calls (parallel
    calls fork the tree without being a branch). `bridges` are boundaries by line, with the uuids that they preserved:
    there the chain runs on through the preserved messages.
    """
    chosen = _walk(nodes)
    for lines in links:
        if any(line in chosen for line in lines):
            chosen.update(lines)
    last = max(chosen, default=0)
    by_uuid = {node.uuid: node.line for node in nodes if node.uuid} if bridges else {}
    for line, preserved in bridges.items():
        if line < last and any(by_uuid.get(uuid) in chosen for uuid in preserved):
            chosen.add(line)
    chosen |= _summaries(nodes, chosen)
    return parents_first([node for node in nodes if node.line in chosen])


def parents_first(nodes: Sequence[Node]) -> list[Node]:
    """The nodes in their order, but none before its parent: a fast answer may be written before its question."""
    by_uuid = {node.uuid: node for node in nodes if node.uuid}
    done: set[int] = set()
    ordered: list[Node] = []
    for node in nodes:
        line_of_descent: list[Node] = []
        current: Node | None = node
        while current is not None and current.line not in done:
            done.add(current.line)
            line_of_descent.append(current)
            current = by_uuid.get(current.parent)
        ordered.extend(reversed(line_of_descent))
    return ordered


def _walk(nodes: Sequence[Node]) -> set[int]:
    """From the last message upwards. Where a parent is not in the file, the line before it continues the path: a line
    was lost."""
    place = {nodes[index].uuid: index for index in range(len(nodes) - 1, -1, -1) if nodes[index].uuid}
    index = _last_leaf(nodes)
    chosen: set[int] = set()
    while index >= 0:
        node = nodes[index]
        if node.line in chosen:
            break
        chosen.add(node.line)
        parent = place.get(node.parent, -1) if node.parent else -1
        if parent >= 0 and parent != index and nodes[parent].line not in chosen:
            index = parent
        elif node.parent or node.kind == "boundary" or not node.rooted:
            index -= 1
        else:
            break
    return chosen


def _last_leaf(nodes: Sequence[Node]) -> int:
    for index in range(len(nodes) - 1, -1, -1):
        if nodes[index].kind in _CONVERSATION:
            return index
    return -1


def _summaries(nodes: Sequence[Node], chosen: set[int]) -> set[int]:
    """The summary that follows each chosen boundary; side lines may be between them."""
    summaries: set[int] = set()
    waiting = False
    for node in nodes:
        if node.kind == "summary" and waiting:
            summaries.add(node.line)
        if node.kind in _CONVERSATION:
            waiting = node.kind == "boundary" and node.line in chosen
    return summaries
