"""What one line of a Claude Code transcript says: a message with its parts and usage, or a compaction boundary."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections.abc import Iterator, MutableSequence, Sequence
from dataclasses import dataclass
from functools import lru_cache
from sys import intern
from typing import Any

import msgspec

from guard_core.errors import DamagedRecording
from guard_core.events import OtherPart, Part, ReasoningPart, Role, TextPart, ToolCallPart, ToolResultPart, part_text
from guard_core.recordings.formats.claude.restored import UsedFile
from guard_core.recordings.formats.claude.tree import Node
from guard_core.recordings.reading import fields, normalise, summary_words
from guard_core.recordings.reading.cached_tokens import CachedTokens
from guard_core.recordings.reading.numbers_by_name import NumbersByName
from guard_core.recordings.reading.packed_list import PackedList
from guard_core.recordings.reading.refusals import names_length
from guard_core.recordings.reading.source import Line
from guard_core.sessions import ModelCall

NAME = "claude-code"
SYNTHETIC = "<synthetic>"  # the model name of lines that Claude Code wrote itself: errors, interruptions
API_ERROR = "API Error"  # how lines about a failed request begin in versions that did not mark them
MOVED = "<persisted-output>"  # how the preview of a tool output begins that was moved to `tool-results/*.txt`
# What Claude Code writes between the first words of a summary message and those of the model, by version (the third up
# to 2.0, the fourth in the transcripts of 2.1 that were read), and behind them.
SUMMARY_OPENINGS = (
    "that ran out of context",
    ".",
    "The conversation is summarized below:",
    "The summary below covers the earlier portion of the conversation.",
)
SUMMARY_ENDINGS = (
    "If you need specific details from before compaction (",
    "Please continue the conversation from where we left it off",
)
MARKED_FROM = (1, 0, 30)  # the program of 1.0.30 knows `isCompactSummary`, that of 0.2.126 does not
# Messages that Claude Code adds by itself in the user's name: they begin no turn.
AUTOMATIC = (
    "<local-command-",
    "<bash-stdout>",
    "<bash-stderr>",
    "<task-notification>",
    "<system-reminder>",
    "[Request interrupted by user",
)
# How a message of an agent of the same team begins, and one of the team's lead. Source: public transcripts of 2.1.
TEAMMATE = '<teammate-message teammate_id="'
TEAM_LEAD = f'{TEAMMATE}team-lead"'

# How the lines begin that Claude Code writes behind the summary for the command that asked for it.
OF_COMMAND = ("<local-command-", "<command-name>/compact")

_PRESERVED = ("preservedMessages", "preservedSegment")


class ClaudeMessage(msgspec.Struct, gc=False):
    """One user or assistant line, reduced to what the model saw. A long file has hundreds of thousands of them."""

    node: Node
    role: Role
    parts: tuple[Part, ...]  # outlines, where the texts are on a shelf
    place: int | None  # on the shelf
    timestamp: float | None
    message_id: str = ""
    model: str = ""
    usage: ModelCall | None = None  # its `at` counts once the message was taken up
    meta: bool = False
    summary: bool = False  # by its own mark
    worded: bool = False  # by the wording that every version uses
    marked: bool = False  # written by a version that marks its summaries: there the wording alone proves nothing
    attached: bool = False  # an attachment line: what the software added by itself
    of_command: bool = False  # what Claude Code writes of a command that compacted
    unsent: bool = False  # shown to the user alone: an error in the model's place
    too_long: bool = False  # such an error, of a request that was too long
    agent: str = ""
    request: str = ""  # the id of the request that it answers
    file: UsedFile | None = None  # what a tool read, wrote or edited

    @property
    def key(self) -> str:
        """What joins the lines of one API message."""
        return self.message_id or self.node.uuid or f"line {self.node.line}"


@dataclass(slots=True)
class Boundary:
    """A line that says that the history was compacted."""

    node: Node
    details: dict[str, Any]
    timestamp: float | None
    cleared: bool  # a micro-compaction: tool results cleared, no summary
    agent: str = ""

    @property
    def preserved(self) -> list[str]:
        """The uuids of messages that were kept word for word behind the summary, as far as they are listed."""
        listed = fields.items(fields.mapping(self.details, "preservedMessages"), "uuids")
        return [uuid for uuid in (*listed, *self.segment) if isinstance(uuid, str) and uuid]

    @property
    def summary_last(self) -> bool:
        """Do the preserved messages precede the summary: is the first of them hung below the boundary itself?"""
        anchors = [fields.text(fields.mapping(self.details, key), "anchorUuid") for key in _PRESERVED]
        return bool(self.node.uuid) and self.node.uuid in anchors

    @property
    def segment(self) -> tuple[str, str]:
        """The uuids of the first and the last of them, where versions write only these."""
        ends = fields.mapping(self.details, "preservedSegment")
        return fields.text(ends, "headUuid"), fields.text(ends, "tailUuid")


class ClaudeMessages:
    """Messages by the number of their line, which only grows; packed where `packing`."""

    def __init__(self, *, packing: bool) -> None:
        self.lines = array("q")
        self._messages: MutableSequence[ClaudeMessage] = PackedList(ClaudeMessage) if packing else []

    def __setitem__(self, line: int, message: ClaudeMessage) -> None:
        self.lines.append(line)
        self._messages.append(message)

    def __len__(self) -> int:
        return len(self.lines)

    def get(self, line: int) -> ClaudeMessage | None:
        """The message on a line; None where there is none."""
        place = bisect_left(self.lines, line)
        return self._messages[place] if place < len(self.lines) and self.lines[place] == line else None

    def values(self) -> Iterator[ClaudeMessage]:
        """The messages in the order of the file."""
        return iter(self._messages)


class ClaudeLines:
    """What the lines of a file say, by their numbers. `packing`: the texts are elsewhere, and the rest is packed."""

    def __init__(self, *, packing: bool) -> None:
        self.messages = ClaudeMessages(packing=packing)
        self.boundaries: dict[int, Boundary] = {}
        self.joined = NumbersByName()  # places on the shelf: the parts of one API message, by the numbers of its lines
        self.cached = CachedTokens()  # hears every usage that a line has

    def usage_of(self, message: ClaudeMessage) -> ModelCall | None:
        """The usage of a message; as its line has it until all lines were heard."""
        return None if message.usage is None else self.cached.counted(message.usage)


def is_summary(message: ClaudeMessage) -> bool:
    """A summary by its own mark, or by the wording of versions that had no mark; a quoted wording does not count."""
    return message.summary or (message.worded and not message.marked)


@lru_cache(maxsize=64)  # each line names the version
def writes_marks(version: str) -> bool:
    """Does this version of Claude Code mark the summaries it writes? Not known: no."""
    numbers = version.split("-")[0].split(".")[:3]
    return all(re.fullmatch(r"[0-9]{1,9}", number) for number in numbers) and tuple(map(int, numbers)) >= MARKED_FROM


def is_worded(parts: Sequence[Part]) -> bool:
    """Does a message begin as the summaries of Claude Code do."""
    first = parts[0] if parts else None
    return isinstance(first, TextPart) and first.text.startswith(summary_words.CLAUDE_CODE)


def is_of_command(parts: Sequence[Part]) -> bool:
    """Does a message begin as those that Claude Code writes of a command that compacted."""
    first = parts[0] if parts else None
    return isinstance(first, TextPart) and first.text.startswith(OF_COMMAND)


def is_empty_summary(parts: Sequence[Part]) -> bool:
    """Is there nothing in a summary but the words that Claude Code writes around those of the model?"""
    if not all(isinstance(part, TextPart) for part in parts):
        return False
    text = "".join(part_text(part) for part in parts).strip().removeprefix(summary_words.CLAUDE_CODE)
    for words in SUMMARY_OPENINGS:
        text = text.lstrip().removeprefix(words)
    return not text.strip() or text.lstrip().startswith(SUMMARY_ENDINGS)


def is_unsent(line: dict[str, Any], parts: Sequence[Part]) -> bool:
    """An error that Claude Code shows in the model's place; other lines of its own are sent as the model's words."""
    first = parts[0] if parts else None
    return line.get("isApiErrorMessage") is True or (isinstance(first, TextPart) and first.text.startswith(API_ERROR))


def is_too_long(parts: Sequence[Part], *, unsent: bool) -> bool:
    """Is a message an error (`unsent`) that says that the request was too long, in Claude Code's own words or the
    provider's."""
    first = parts[0] if parts else None
    return unsent and isinstance(first, TextPart) and names_length(first.text)


def is_moved(part: Part) -> bool:
    """A tool output whose text lies in a file of its own; the model saw the preview."""
    return isinstance(part, ToolResultPart) and str(part.content).startswith(MOVED)


def is_automatic(parts: Sequence[Part]) -> bool:
    """Does a message begin as those do that Claude Code writes in the user's name, or with a report of another agent
    of the team: only its lead gives an agent its tasks."""
    first = parts[0] if parts else None
    words = first.text.lstrip() if isinstance(first, TextPart) else ""
    return words.startswith(AUTOMATIC) or (words.startswith(TEAMMATE) and TEAM_LEAD not in words)


def usage_of(line: Line, message: dict[str, Any]) -> ModelCall | None:
    """The tokens of the API message a line belongs to; cached tokens are part of the prompt."""
    usage = message.get("usage")
    if message.get("model") == SYNTHETIC or not isinstance(usage, dict):
        return None
    try:
        fresh = normalise.count(usage.get("input_tokens"), "input_tokens") or 0
        read = normalise.count(usage.get("cache_read_input_tokens"), "cache_read_input_tokens") or 0
        written = normalise.count(usage.get("cache_creation_input_tokens"), "cache_creation_input_tokens") or 0
        output = normalise.count(usage.get("output_tokens"), "output_tokens")
        hour = fields.tokens(fields.mapping(usage, "cache_creation"), fields.HOUR_TOKENS)
    except DamagedRecording as error:
        name = error.reason.split(" ", 1)[0]
        raise DamagedRecording(error.reason, line=line.number, column=line.column(name)) from error
    return ModelCall(
        at=0,
        prompt_tokens=fresh + read + written,
        cached_tokens=read,
        cache_write_tokens=written,
        # Before the message is complete this is the value at its start, not the number of tokens written.
        output_tokens=output if message.get("stop_reason") else None,
        output_tokens_at_start=None if message.get("stop_reason") else output,
        model=intern(fields.text(message, "model")),
        timestamp=fields.timestamp(line.obj, "timestamp"),
        line=line.number,
        source_id=fields.text(message, "id"),
        cache_hour_tokens=hour,
    )


def fuller(old: ModelCall | None, new: ModelCall) -> ModelCall:
    """The usage of one message from two of its lines: the later one, unless it lacks what the earlier had."""
    if old is None:
        return new
    tokens = new if new.prompt_tokens else old
    output = new.output_tokens if new.output_tokens is not None else old.output_tokens
    start = None if output is not None else tokens.output_tokens_at_start
    return msgspec.structs.replace(
        tokens, output_tokens=output, output_tokens_at_start=start, line=old.line, timestamp=old.timestamp
    )


def parts_of(content: Any) -> tuple[Part, ...]:
    """The parts of a message's `content`: a text, or a list of blocks."""
    if isinstance(content, str):
        return (TextPart(content),) if content else ()
    parts: list[Part] = []
    for block in fields.objects(content):
        parts.extend(_block(block))
    return tuple(parts)


def _block(block: dict[str, Any]) -> tuple[Part, ...]:
    kind = fields.text(block, "type")
    if kind == "tool_use":
        return (ToolCallPart(intern(fields.text(block, "name")), block.get("input"), fields.text(block, "id")),)
    if kind == "tool_result":
        return _result(block)
    if kind == "redacted_thinking":
        return (ReasoningPart(opaque_bytes=fields.opaque_size(fields.text(block, "data"))),)
    if kind in {"text", "thinking", "image", "document"}:
        return fields.content_parts([block])
    return (OtherPart(kind or "(none)", block),)


def _result(block: dict[str, Any]) -> tuple[Part, ...]:
    """A tool result, and the images in it as parts of their own: they are not text."""
    content = block.get("content")
    inner = (TextPart(content),) if isinstance(content, str) else parts_of(content)
    texts = [part.text for part in inner if isinstance(part, TextPart)]
    result = ToolResultPart(
        content="\n".join(texts),
        call_id=fields.text(block, "tool_use_id"),
        is_error=block.get("is_error") is True,
    )
    return (result, *(part for part in inner if not isinstance(part, TextPart)))
