"""The main session of a Claude Code transcript: its lines in order, and its log as it grows while the file is read."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Collection, Iterator, Sequence
from operator import ne

from guard_core.events import Role, ToolCallPart, ToolResultPart
from guard_core.recordings.formats.claude.lines import ClaudeLines
from guard_core.recordings.formats.claude.log import Log
from guard_core.recordings.formats.claude.requests import ClaudeRequests
from guard_core.recordings.formats.claude.tree import ATTACHMENT, LineGroups, Node, Picked, main_path
from guard_core.recordings.reading.early_events import SendingPace
from guard_core.recordings.reading.identities import Identities
from guard_core.recordings.reading.numbers_by_name import numbers_for
from guard_core.recordings.reading.source import ByteSource


def path_of(nodes: Sequence[Node], lines: ClaudeLines) -> Sequence[Node]:
    """The lines of the main session among these, parents first; what hooks add to one of several results of an answer
    is behind the last of these, as it is sent."""
    attached: set[int] = set()
    last: dict[int, int] = {}  # of attachments between two results, the line of the last result

    def links() -> Iterator[Sequence[int]]:
        for group in _links(nodes, lines, attached):
            between = attached.intersection(group)
            final = max(line for line in group if line not in between)
            last.update((line, final) for line in between if line < final)
            yield group

    # Boundaries whose chain runs on through the messages they preserved instead of through the boundary line.
    bridges = {line: set(boundary.preserved) for line, boundary in lines.boundaries.items() if boundary.preserved}
    path = main_path(nodes, links(), bridges)
    if not last:
        return path
    places = {node.line: place for place, node in enumerate(path)}
    moves = [places.get(last.get(node.line, node.line), place) for place, node in enumerate(path)]
    return Picked(path, (place for _, _, place in sorted((to, to > place, place) for place, to in enumerate(moves))))


def _links(nodes: Sequence[Node], lines: ClaudeLines, attached: set[int]) -> Iterator[Sequence[int]]:
    """For each API message the lines that belong together: its own, the results of the tools it called, and what was
    attached to these (whose lines come into `attached`)."""
    links = LineGroups(len(nodes))
    owner = numbers_for(len(nodes))  # the group of each tool call
    results = numbers_for(len(nodes))  # the group of each result, and of what hangs from it
    for node in nodes:
        if node.kind == ATTACHMENT and node.parent and (group := results.get(node.parent)) is not None:
            links.extend(group, node.line)
            attached.add(node.line)
            results[node.uuid] = group
        message = lines.messages.get(node.line)
        if message is None:
            continue
        if message.role is Role.MODEL:
            own = links.add(message.key, node.line)
            for part in message.parts:
                if isinstance(part, ToolCallPart):
                    owner[part.id] = own
        for part in message.parts:
            if isinstance(part, ToolResultPart) and (group := owner.get(part.call_id)) is not None:
                links.extend(group, node.line)
                if node.uuid:
                    results[node.uuid] = group
    yield from (together for together in links if len(together) > 1)


class LogDraft:
    """The log of the main session while the file is read: its lines are taken up stretch by stretch, as if nothing of
    it were left for another branch. It stays if the whole file says the same in the end."""

    def __init__(self, lines: ClaudeLines, requests: ClaudeRequests, source: ByteSource, pace: SendingPace) -> None:
        self.lines = lines
        self.pace = pace
        self.log = Log(lines, source, first=True, requests=requests)
        self.path = array("q")  # lines that were taken up
        self.due = pace.stretch + pace.around  # lines of the tree for the next stretch
        self._settled = 0  # of them

    def grow(self, nodes: Sequence[Node], known: Collection[Identities]) -> None:
        """Take up the next stretch; `known` have the uuids of all lines so far."""
        stretch = [node for node in nodes[max(0, self._settled - self.pace.around) :] if not node.sidechain]
        first, last = nodes[self._settled].line, nodes[-self.pace.around - 1].line
        near = {node.uuid for node in stretch}
        far = [node.parent for node in stretch if node.line >= first and node.parent and node.parent not in near]
        if self.log.late or any(parent in uuids for parent in far for uuids in known):
            self.due = sys.maxsize  # it continues from far back: what follows is sent when all is read
            return
        path = path_of(stretch, self.lines)
        chosen = [node for node in path if first <= node.line <= last]
        self.log.take(chosen, [node for node in path if node.line > last])
        self.path.extend(node.line for node in chosen)
        self._settled = len(nodes) - self.pace.around
        self.due = len(nodes) + self.pace.stretch

    def finished(self, path: Sequence[Node]) -> Log | None:
        """The log of the whole path, where it continues as it was taken up."""
        count = len(self.path)
        if len(path) < count or any(map(ne, self.path, (node.line for node in path))):
            return None
        self.log.take(path[count:])
        return None if self.log.late else self.log
