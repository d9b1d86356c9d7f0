"""What the lines of a Codex rollout look like: in envelopes, bare (2025), or all in one object (spring of 2025).

Source: https://github.com/openai/codex, codex-rs/protocol/src/protocol.rs; codex-cli/src/utils/storage/save-rollout.ts.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator
from typing import Any

from guard_core.recordings.formats.openai import items as responses_items
from guard_core.recordings.reading import fields
from guard_core.recordings.reading.placeholders import is_placeholder
from guard_core.recordings.reading.source import ByteSource, Line, SourceShape

ENVELOPES = frozenset(
    {
        "session_meta",
        "response_item",
        "event_msg",
        "turn_context",
        "compacted",
        "world_state",
        "token_usage_record",
        "inter_agent_communication_metadata",
    }
)
BARE = frozenset({"message", "reasoning"}) | responses_items.CALLS
_TURN_BOUNDS = frozenset({"user_message", "task_started", "task_complete", "turn_aborted"})
WHOLE = BARE | {"function_call_output", "local_shell_call_output"}


def is_rollout(source: ByteSource) -> bool:
    """Does this come from Codex, in any of its layouts?"""
    if source.shape not in (SourceShape.LINES, SourceShape.JSON):
        return False
    if source.shape is SourceShape.JSON and _is_whole(source.json_head()):
        return True
    heads = [line.obj for line in source.head_lines()]
    hits = sum(fields.text(obj, "type") in ENVELOPES and isinstance(obj.get("payload"), dict) for obj in heads)
    return hits * 2 >= len(heads) > 0 if hits else bool(heads) and _is_bare(heads)


def _is_whole(value: Any) -> bool:
    """Is it a rollout in one object, as the first versions wrote them?"""
    items = fields.items(value, "items")
    known = all(isinstance(item, dict) and fields.text(item, "type") in WHOLE for item in items[:20])
    return {"id", "timestamp"} <= fields.mapping(value, "session").keys() and bool(items) and known


def records(source: ByteSource) -> Iterator[tuple[int | None, dict[str, Any]]]:
    """The lines, or header and items of a rollout in one object, which have no lines of their own. Where the header of
    the same session is repeated, the lines after it that are repeated as well, in their order, are left out."""
    if source.shape is SourceShape.JSON and _is_whole(source.json_head()):
        value = source.json()
        yield None, value["session"]
        yield from ((None, item) for item in fields.objects(value["items"]))
        return
    copies = _CopiedLines()
    for line in source.lines():
        if copies.have(line):
            source.notes.folded += 1
        else:
            yield line.number, line.obj


class _CopiedLines:
    """Lines of a session that is written again from a header on, which may differ from the first one."""

    def __init__(self) -> None:
        self._name = ""  # the session in the first header
        self._known = array("q")  # hashes of the lines that are no copies
        self._places: dict[int, list[int]] = {}  # of these, since the last repeated header
        self._next = 0  # in `_known`, of the copy

    def have(self, line: Line) -> bool:
        """Is a line one of a copy. Asked for all lines in their order."""
        key, is_header = hash(line.raw), fields.text(line.obj, "type") == "session_meta"
        name = fields.text(fields.mapping(line.obj, "payload"), "id") if is_header else ""
        if is_header and name == self._name and name and not is_placeholder(name):
            self._next, self._places = 1, {}
            for place, known in enumerate(self._known):
                self._places.setdefault(known, []).append(place)
            return True
        if is_header and not self._known:
            self._name = name
        if places := self._places.get(key):
            number = bisect_left(places, self._next)
            if number < len(places):
                self._next = places[number] + 1
                return True
        self._known.append(key)
        return False


def _is_bare(heads: list[dict[str, Any]]) -> bool:
    first = heads[0]
    header = "type" not in first and {"id", "timestamp"} <= first.keys() and {"instructions", "git"} & first.keys()
    marked = any("record_type" in obj for obj in heads)
    return bool(header or marked) and all(
        "record_type" in obj or fields.text(obj, "type") in BARE or responses_items.is_output(fields.text(obj, "type"))
        for obj in heads[1:]
    )


def marks_requests(source: ByteSource) -> bool:
    """Does this version write a line of its own between the results of one request and the next (0.20 to 0.98)?"""
    came_back = False  # a result, and no end of a turn since
    for line in source.head_lines():
        kind = _kind(line.obj)
        if kind == "state" or (kind == "turn_context" and came_back):
            return True
        came_back = responses_items.is_output(kind) or (came_back and kind not in _TURN_BOUNDS)
    return False


def _kind(obj: dict[str, Any]) -> str:
    """The kind of the item or event on a line, else of the line."""
    kind = fields.text(obj, "type")
    if kind in {"response_item", "event_msg"}:
        return fields.text(fields.mapping(obj, "payload"), "type")
    return kind or fields.text(obj, "record_type")
