"""What one event costs, in every column of the ledger, and counting events one after the other.

Plain counts, one event at a time; the ledger makes its columns of them.
"""

from __future__ import annotations

import zlib
from array import array

import numpy as np
from numpy.typing import NDArray

from guard_core.columns import Packed, pack_columns, unpack_columns
from guard_core.events import (
    Event,
    MediaPart,
    ReasoningPart,
    Role,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    part_text,
    utf8_bytes,
)
from guard_core.tokens.heuristic import event_costs
from guard_core.tokens.lexical import lexical_tokens

Ints = NDArray[np.int64]
# One entry per event. Tokens of the first three are ContextGuard's heuristic (bytes // 4 per field), split by what
# its profiles count or leave out, so that any profile is a sum of columns.
EVENT_COLUMNS = (
    "text_tokens",  # text, calls and results
    "inline_tokens",  # inline data
    "metadata_tokens",  # part metadata and server-side tool parts
    "chars",  # code points of all text
    "bytes",  # UTF-8 bytes of all text
    "media_bytes",  # raw bytes of inline media
    "reasoning_bytes",  # of `bytes`: reasoning text
    "call_bytes",  # of `bytes`: tool calls
    "result_bytes",  # of `bytes`: tool results
    "opaque_bytes",  # signed or encrypted reasoning, not in `bytes`
    "flags",  # bits below
    "request_bytes",  # UTF-8 bytes of the first non-empty text part
    "fallback_bytes",  # what the mechanical summary takes from it
    "transcript_bytes",  # what the summariser's prompt shows of it
    "lexical_tokens",  # about the tokens of all text, by classes of bytes
    "tool",  # which tool's result it holds (the first, where there are several): tool_key of its name, 0: none
)
PACKED_EVENTS = 4_096  # counted one by one, then packed: most of their counts are small
USER, MODEL, SYSTEM = 1, 2, 4
HAS_TEXT, HAS_CALL, HAS_RESULT, HAS_MEDIA, HAS_REASONING = 8, 16, 32, 64, 128
STARTS_TURN, IS_ERROR, STARTS_WITH_MARKER = 256, 512, 1024
IN_PAIR = 2048  # a cut just before this event would separate a tool call from its result
_ROLE_FLAG = {Role.USER: USER, Role.MODEL: MODEL, Role.SYSTEM: SYSTEM}


def tool_key(name: str) -> int:
    """A tool's name as a number, the same in every session."""
    return zlib.crc32(name.encode("utf-8", "surrogatepass"))


class EventCounter:
    """Counts events one after the other, in order, so that nobody needs to hold all of them."""

    def __init__(self) -> None:
        self.count = 0
        self._values = array("q")  # of the newest events
        self._packed: list[Packed] = []  # of the others, each column as narrow as it may be
        self._open_calls: dict[tuple[str, str], list[int]] = {}
        self.pairs = array("q")  # begin and end of each pair of a call and its result

    def add(self, event: Event) -> None:
        """Count one event."""
        self._values.extend(event_columns(event).values())
        for part in event.parts:
            if isinstance(part, ToolCallPart):
                key = ("id", part.id) if part.id else ("name", part.name)
                self._open_calls.setdefault(key, []).append(self.count)
            elif isinstance(part, ToolResultPart):
                start = _take_call(self._open_calls, part)
                if start is not None:
                    self.pairs.extend((start, self.count))
        self.count += 1
        if self.count % PACKED_EVENTS == 0:
            self._packed.append(pack_columns(self._newest(), EVENT_COLUMNS))
            self._values = array("q")

    def columns(self) -> dict[str, Ints]:
        """The columns of EVENT_COLUMNS."""
        blocks = [*map(unpack_columns, self._packed), self._newest()]
        return {name: np.concatenate([block[name] for block in blocks]) for name in EVENT_COLUMNS}

    def _newest(self) -> dict[str, Ints]:
        table = np.array(self._values, dtype=np.int64).reshape(-1, len(EVENT_COLUMNS))
        return {name: table[:, place] for place, name in enumerate(EVENT_COLUMNS)}


def _take_call(open_calls: dict[tuple[str, str], list[int]], result: ToolResultPart) -> int | None:
    for key in (("id", result.call_id), ("name", result.name)):
        if waiting := open_calls.get(key):
            start = waiting.pop(0)
            if not waiting:
                del open_calls[key]
            return start
    return None


def event_columns(event: Event) -> dict[str, int]:
    """The cost of one event in every column of EVENT_COLUMNS, in their order; in one pass, since all are counted."""
    text_tokens, inline_tokens, metadata_tokens = event_costs(event)
    flags = _ROLE_FLAG[event.role] | (STARTS_TURN if event.starts_turn() else 0)
    chars = total = media = reasoning = call = result = opaque = lexical = tool = 0
    request = fallback = transcript = 0  # what the summariser's prompt and the mechanical summary take
    said = len(event.role.value) + 2
    for index, part in enumerate(event.parts):
        text = part_text(part)
        size = utf8_bytes(text)
        chars += len(text)
        total += size
        lexical += lexical_tokens(text)
        if isinstance(part, TextPart | ReasoningPart):
            if text:
                request = request or size
                fallback += said + min(size, 200) + (3 if size > 200 else 0) + 1
                transcript += said + size + 1
            if isinstance(part, ReasoningPart):
                reasoning += size
                opaque += part.opaque_bytes
                flags |= HAS_REASONING
            else:
                flags |= HAS_TEXT if text else 0
                if index == 0 and text.startswith("[Previous conversation summary]"):
                    flags |= STARTS_WITH_MARKER
        elif isinstance(part, ToolCallPart):
            call += size
            transcript += said + len("[called tool: ]") + utf8_bytes(part.name) + 1
            flags |= HAS_CALL
        elif isinstance(part, ToolResultPart):
            result += size
            transcript += said + len("[tool  returned a result]") + utf8_bytes(part.name) + 1
            tool = tool or tool_key(part.name)
            flags |= HAS_RESULT | (IS_ERROR if part.is_error else 0)
        elif isinstance(part, MediaPart):
            media += part.size
            flags |= HAS_MEDIA
    return {
        "text_tokens": text_tokens,
        "inline_tokens": inline_tokens,
        "metadata_tokens": metadata_tokens,
        "chars": chars,
        "bytes": total,
        "media_bytes": media,
        "reasoning_bytes": reasoning,
        "call_bytes": call,
        "result_bytes": result,
        "opaque_bytes": opaque,
        "flags": flags,
        "request_bytes": request,
        "fallback_bytes": fallback,
        "transcript_bytes": transcript,
        "lexical_tokens": lexical,
        "tool": tool,
    }
