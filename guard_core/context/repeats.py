"""Repeats: results that a request holds more than once, and copies of files that were edited since they were read.

Only texts decide. Which texts may be equal is known from the sizes of the ledger, so that few of them are read: every
call of the request, and the results that have the size of another one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from guard_core.context.filling import ContextFilling
from guard_core.events import Event, ToolCallPart, ToolResultPart, value_text
from guard_core.ledger import Ints
from guard_core.views import Span

MOST_RESULTS = 2_000  # ours: results of one request that are compared, the newest ones
LEAST_CHARS = 40  # ours: code points of a result; of different calls shorter ones, such as "ok", are not copies
PATHS = ("file_path", "path", "filePath", "absolute_path", "filename", "notebook_path", "target_file")
# Tools by their names in lower case, without "_" and "-". Sources: the tool lists of Claude Code, Gemini CLI, Qwen
# Code, opencode, Cline, Roo Code, OpenHands, SWE-agent and Crush.
READS = frozenset({"read", "readfile", "view", "viewfile", "openfile", "cat"})
EDITS = frozenset(
    {
        *("edit", "write", "multiedit", "notebookedit", "writefile", "editfile", "replace", "strreplace", "createfile"),
        *("applydiff", "writetofile", "replaceinfile", "searchandreplace", "insertcontent", "patch"),
    }
)
EDITORS = frozenset({"strreplaceeditor", "strreplacebasededittool"})  # their argument `command` says what they do
VIEW = "view"
SAME, SAME_CALL, SAME_CONTENT = "same call and content", "same call, other content", "same content"


class Repeat(msgspec.Struct, frozen=True):
    """A result that repeats one before it in the same request. Events are indices in the log, `position` is the
    message's index in the request, `tokens` are those of this result."""

    kind: str
    tool: int
    first: int
    event: int
    position: int
    tokens: int


class StaleRead(msgspec.Struct, frozen=True):
    """The result of reading a file that a later call of the request edited. `again`: the event of the newest result
    that read it after that edit, None: it was not read again."""

    path: str
    event: int
    position: int
    edit: int
    again: int | None
    tokens: int


class Repeats(msgspec.Struct, frozen=True):
    """What a request holds twice or out of date, in the log's order. `left_out` older results were not compared."""

    repeats: tuple[Repeat, ...]
    stale: tuple[StaleRead, ...]
    left_out: int

    @property
    def held_twice(self) -> int:
        """Results whose content the request holds already."""
        return sum(item.kind != SAME_CALL for item in self.repeats)

    @property
    def called_again(self) -> int:
        """Results of a call that the request holds already, with another content."""
        return len(self.repeats) - self.held_twice

    @property
    def repeated_tokens(self) -> int:
        """Tokens of results whose content the request holds already."""
        return sum(item.tokens for item in self.repeats if item.kind != SAME_CALL)

    @property
    def stale_tokens(self) -> int:
        """Tokens of copies that are out of date."""
        return sum(item.tokens for item in self.stale)


class HeldResults(msgspec.Struct, frozen=True):
    """The results that a request holds as they are in the log, in its order: places among `ResultParts`, positions in
    the request, and the row of the call that each answers (-1: not known). `left_out` older ones are not among them."""

    places: Ints
    positions: Ints
    calls: Ints
    left_out: int


def held_results(filling: ContextFilling, step: int) -> HeldResults:
    """The results of a request that may be compared."""
    view, _ = filling.sent.view(step)
    results, parts = filling.costs.results, filling.ledger.parts
    places, positions, position = [], [], 0
    for segment in view:
        if not isinstance(segment, Span):
            position += 1
            continue
        first, last = np.searchsorted(results.events, (segment.start, segment.stop))
        inside = np.arange(first, last)
        if segment.form:
            inside = inside[~filling.ledger.changed_by(segment.form)[results.events[inside]]]
        places.append(inside)
        positions.append(results.events[inside] - segment.start + position)
        position += segment.stop - segment.start
    none = np.zeros(0, dtype=np.int64)
    all_places = np.concatenate([none, *places])
    where = np.concatenate([none, *positions])
    _, firsts = np.unique(all_places, return_index=True)
    chosen = firsts[-MOST_RESULTS:]
    calls = parts["answers"][results.rows[all_places[chosen]]]
    return HeldResults(all_places[chosen], where[chosen], calls, len(firsts) - len(chosen))


def needed_events(filling: ContextFilling, held: HeldResults) -> list[int]:
    """The events whose texts decide: those of the calls, and of results that have the size of another one."""
    parts, rows = filling.ledger.parts, filling.costs.results.rows[held.places]
    sizes = np.stack([parts[name][rows] for name in ("chars", "bytes", "lines", "json_chars")], axis=1)
    _, inverse, counts = np.unique(sizes, axis=0, return_inverse=True, return_counts=True)
    alike = rows[counts[inverse.reshape(-1)] > 1]
    events = np.concatenate([parts["event"][held.calls[held.calls >= 0]], parts["event"][alike]])
    listed: list[int] = np.unique(events).tolist()
    return listed


def repeats_at(filling: ContextFilling, held: HeldResults, events: Mapping[int, Event]) -> Repeats:
    """The repeats of a request. `events` has those of `needed_events`."""
    results, starts = filling.costs.results, filling.ledger.part_starts
    sizes, call_events = filling.costs.costs().parts, filling.ledger.parts["event"]
    by_call: dict[tuple[str, str], tuple[int, str | None]] = {}
    by_content: dict[str, int] = {}
    repeats, reads, edits = [], [], []
    rows = zip(held.places.tolist(), held.positions.tolist(), held.calls.tolist(), strict=True)
    for place, position, call_row in rows:
        event, tokens = int(results.events[place]), int(sizes[place])
        result = _part(events, event, int(results.rows[place] - starts[event]))
        text = value_text(result.content) if isinstance(result, ToolResultPart) else None
        is_long = text is not None and len(text) >= LEAST_CHARS
        call = None
        if call_row >= 0:
            call_event = int(call_events[call_row])
            call = _part(events, call_event, call_row - int(starts[call_event]))
        first, kind = (by_content.get(text), SAME_CONTENT) if text is not None and is_long else (None, "")
        if isinstance(call, ToolCallPart):
            key = (call.name, value_text(call.arguments))
            if key in by_call:
                first, known = by_call[key]
                kind = SAME if text is not None and known == text else SAME_CALL
            by_call[key] = (event, text)
            path = path_of(call.arguments)
            if path and is_edit(call.name, call.arguments):
                edits.append((path, event))
            elif path and is_read(call.name, call.arguments):
                reads.append((path, event, position, tokens))
        if first is not None:
            repeats.append(Repeat(kind, int(results.tools[place]), first, event, position, tokens))
        if text is not None and is_long:
            by_content.setdefault(text, event)
    return Repeats(tuple(repeats), tuple(_stale(reads, edits)), held.left_out)


def _part(events: Mapping[int, Event], event: int, place: int) -> object:
    message = events.get(event)
    return message.parts[place] if message is not None and place < len(message.parts) else None


def _stale(reads: list[tuple[str, int, int, int]], edits: list[tuple[str, int]]) -> list[StaleRead]:
    last_edit: dict[str, int] = {}
    for path, event in edits:
        last_edit[path] = max(event, last_edit.get(path, -1))
    again: dict[str, int] = {}
    for path, event, *_ in reads:
        if event > last_edit.get(path, event):
            again[path] = event
    return [
        StaleRead(path, event, position, last_edit[path], again.get(path), tokens)
        for path, event, position, tokens in reads
        if event < last_edit.get(path, -1)
    ]


def path_of(arguments: Any) -> str:
    """The file that a call names; "" where it names none."""
    if not isinstance(arguments, dict):
        return ""
    return next((value for name in PATHS if isinstance(value := arguments.get(name), str) and value), "")


def is_read(name: str, arguments: Any) -> bool:
    """Does a call read the file that it names."""
    plain = _plain(name)
    return plain in READS or (plain in EDITORS and _command(arguments) == VIEW)


def is_edit(name: str, arguments: Any) -> bool:
    """Does a call change the file that it names."""
    plain = _plain(name)
    return plain in EDITS or (plain in EDITORS and _command(arguments) not in ("", VIEW))


def _plain(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")


def _command(arguments: Any) -> str:
    command = arguments.get("command", "") if isinstance(arguments, dict) else ""
    return command if isinstance(command, str) else ""
