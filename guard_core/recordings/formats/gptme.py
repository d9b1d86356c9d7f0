"""gptme's conversations: `conversation.jsonl`, one message a line, and the views beside it.

A line has `role`, `content` and `timestamp`, and whatever else a message has. `metadata.usage` of an answer counts the
tokens of its request: `input_tokens` without what was read from the cache or written to it (older versions have the
counts in `metadata` itself). Calls of tools are `@name(id): {…}` at the beginning of a line, outside of fenced blocks,
as gptme itself finds them; calls in its other notations are text. A result is a system message with the `call_id`. The
system messages at the head are the system prompt; later ones are sent in the user's name, those that are `ui_only` not
at all. Schemas of tools are not in the file.
A compaction leaves `conversation.jsonl` as it is and writes a view, `views/compacted-001.jsonl`, which is sent from
then on and has the messages that follow, too. `input_log_messages` of an answer is how many messages were before it in
what was sent from: fewer than in the file prove a view. What is in that is then not known. A view, and a conversation
that `/compact` replaced, begin with what was made of the earlier messages.
Source: gptme 0.35.1 (`message.py`, `tools/base.py`, `util/context_measurement.py`, `tools/autocompact`), run.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from itertools import count
from typing import Any

from guard_core.errors import DamagedRecording
from guard_core.events import Part, Role, TextPart, ToolCallPart, ToolResultPart
from guard_core.plural import counted
from guard_core.recordings.base import Recording
from guard_core.recordings.reading import fields
from guard_core.recordings.reading.build import FactCounter, SessionBuilder
from guard_core.recordings.reading.fields import JSON
from guard_core.recordings.reading.known_names import Names, words
from guard_core.recordings.reading.source import ByteSource, Line, SourceShape
from guard_core.sessions import BEGINS_WITH_SUMMARY

_COUNTS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_creation_tokens", "reasoning_tokens")
_ROLES = frozenset({"system", "user", "assistant"})
_KEYS = words(
    "role content timestamp files file_hashes pinned hide quiet ui_only ephemeral_ttl call_id metadata"
)  # of a message, in every version that was read
_OWN = words("pinned hide ui_only ephemeral_ttl file_hashes")  # of these, what only gptme writes
_OWN_METADATA = words("input_log_messages input_log_digest cache_read_tokens compaction_artifact")
# What marks the messages that a compaction put at the beginning.
_MADE = ("compaction_artifact", "anthropic_compaction_block")
_CALL = re.compile(r"^@([^\r\n]{1,300}?)\(([\w\-:.]{1,300})\):\s*+(?=\{)", re.MULTILINE)
_FENCE = re.compile(r"^(`{3,})([^\n`]*)$", re.MULTILINE)
_DECODER = json.JSONDecoder(strict=False)

_KNOWN_NAMES = Names(
    usage=words("usage"),
    counts=frozenset(_COUNTS),
    beside=frozenset(_COUNTS),
    holders=words("metadata"),
    tools=words("tool"),
    passed_over=words("timings artifacts panel_hints file_hashes anthropic_compaction_block voice_call"),
)


class GptmeFormat:
    """Reads gptme's conversations."""

    name = "gptme"
    label = "gptme"
    place = "~/.local/share/gptme/logs/*/conversation.jsonl"
    known_names = _KNOWN_NAMES

    def matches(self, source: ByteSource) -> bool:
        """Every line is a message with the keys of gptme's alone, and one has what only gptme writes."""
        if source.shape not in (SourceShape.LINES, SourceShape.JSON):
            return False
        heads = [line.obj for line in source.head_lines()]
        return bool(heads) and all(map(_is_message, heads)) and any(map(_is_own, heads))

    def read(self, source: ByteSource) -> Recording:
        return _Reader(source).read()


FORMAT = GptmeFormat()


def _is_message(value: JSON) -> bool:
    return {"role", "content", "timestamp"} <= value.keys() <= _KEYS and fields.text(value, "role") in _ROLES


def _is_own(value: JSON) -> bool:
    metadata = fields.mapping(value, "metadata")
    keys = {*metadata, *fields.mapping(metadata, "usage")}
    return bool(_OWN & value.keys() or _OWN_METADATA & keys)


class _Reader:
    """Reads the messages of one file in their order."""

    def __init__(self, source: ByteSource) -> None:
        self._source = source
        self._builder = SessionBuilder(FORMAT.name, source, first=True)
        self._facts = FactCounter(FORMAT.name)
        self._system: list[Part] = []
        self._is_head = True  # only the system prompt so far
        self._view_from = 0  # the line of the first answer to a request from a view
        self._is_continued = False
        self._dropped = 0  # messages that are sent a few times only

    def read(self) -> Recording:
        places = count()
        for line in self._source.lines():
            with self._source.tolerate(line.number):
                self._message(line, next(places))
        if not self._builder.events and not self._system:
            raise self._source.nothing_left("a conversation of gptme without any message")
        self._note()
        session = self._builder.session(system=tuple(self._system) or None, agent=FORMAT.label)
        return Recording(FORMAT.name, (session,), self._facts.facts(), self._source.notes)

    def _message(self, line: Line, place: int) -> None:
        """`place`: the number of messages before it."""
        message, role = line.obj, fields.text(line.obj, "role")
        content = message.get("content")
        if role not in _ROLES or not isinstance(content, str):
            wrong = "role" if role not in _ROLES else "content"
            raise DamagedRecording(f"{wrong} of a message is missing or none that gptme writes", line=line.number)
        if message.get("ui_only") is True:
            self._source.notes.skip("message that is only displayed")
            return
        self._facts.message()
        metadata = fields.mapping(message, "metadata")
        is_made = any(key in metadata for key in _MADE)
        self._is_continued = self._is_continued or (is_made and not self._builder.calls)
        self._dropped += message.get("ephemeral_ttl") is not None
        self._is_head = self._is_head and role == "system" and not is_made and not message.get("call_id")
        if self._is_head:
            self._system.append(TextPart(content))
        elif role == "assistant":
            self._answer(line, place, content, metadata)
        else:
            self._other(line, role, content)

    def _answer(self, line: Line, place: int, content: str, metadata: JSON) -> None:
        parts = _parts(content)
        self._facts.parts(parts)
        usage = metadata.get("usage") if isinstance(metadata.get("usage"), dict) else metadata
        fresh, output, read, written, _ = (fields.tokens(usage, name) for name in _COUNTS)
        prompt = None if fresh is None else fresh + (read or 0) + (written or 0)
        time = fields.timestamp(line.obj, "timestamp")
        if any(key in metadata for key in _MADE) or (prompt is None and self._is_continued and not self._builder.calls):
            self._builder.event(Role.MODEL, parts, line=line.number, timestamp=time)  # what a compaction wrote
            return
        if prompt is not None:
            self._facts.call(prompt)
            sent = fields.tokens(metadata, "input_log_messages")
            if sent is not None and sent < place:
                self._view_from = self._view_from or line.number
        call = {
            "prompt_tokens": prompt,
            "cached_tokens": read,
            "cache_write_tokens": written,
            "output_tokens": output,
            "model": fields.text(metadata, "model") or fields.text(metadata, "input_log_model"),
            "timestamp": time,
            "line": line.number,
        }
        self._builder.answer(parts, call=call, line=line.number, timestamp=time)

    def _other(self, line: Line, role: str, content: str) -> None:
        """A result, or a message of the user or in the user's name."""
        call_id = fields.text(line.obj, "call_id")
        name = fields.text(fields.mapping(line.obj, "metadata"), "tool")
        is_result = role == "system" and bool(call_id)
        part: Part = ToolResultPart(name, content, call_id) if is_result else TextPart(content)
        self._facts.parts((part,))
        is_meta = role == "system" and not is_result
        time = fields.timestamp(line.obj, "timestamp")
        self._builder.event(Role.USER, (part,), line=line.number, timestamp=time, meta=is_meta)

    def _note(self) -> None:
        if self._view_from:
            self._builder.notes.append(
                f"From line {self._view_from:,} on, gptme sent fewer messages than are in this file: a compacted view, "
                "which it keeps in a file of its own (views/*.jsonl). What it holds is not known here."
            )
        if self._is_continued:
            self._builder.notes.append(BEGINS_WITH_SUMMARY)
        if self._dropped:
            self._builder.notes.append(
                f"{counted(self._dropped, 'message')} that gptme drops from its requests after a few answers: read as "
                "if all later requests had held them."
            )


def _parts(content: str) -> tuple[Part, ...]:
    """The words of an answer, and the calls of tools in them."""
    parts: list[Part] = []
    at = 0
    fenced = _fenced(content) if "```" in content else []
    fences = [start for start, _ in fenced]
    for match in _CALL.finditer(content):
        fence = bisect_right(fences, match.start()) - 1  # the last one that begins before it
        if match.start() < at or (fence >= 0 and match.start() < fenced[fence][1]):
            continue
        try:
            _, end = _DECODER.raw_decode(content, match.end())
        except (ValueError, RecursionError):
            break  # as gptme does: what is not finished runs to the end
        arguments: Any = fields.decoded(content[match.end() : end])
        if not isinstance(arguments, dict):
            continue
        if words_before := content[at : match.start()].strip():
            parts.append(TextPart(words_before))
        parts.append(ToolCallPart(match[1], arguments, match[2]))
        at = end
    rest = content[at:].strip() if parts else content
    return (*parts, TextPart(rest)) if rest else tuple(parts)


def _fenced(content: str) -> list[tuple[int, int]]:
    """Where fenced blocks begin and end. One that does not end runs to the end."""
    ranges: list[tuple[int, int]] = []
    opened: tuple[int, int] | None = None  # its place and the length of its fence
    for match in _FENCE.finditer(content):
        if opened is None:
            opened = match.start(), len(match[1])
        elif len(match[1]) >= opened[1] and not match[2].strip():
            ranges.append((opened[0], match.end()))
            opened = None
    return [*ranges, (opened[0], len(content))] if opened else ranges
