"""Tool results at the end of Deep Agents' list that are moved to files, where a request does not fit.

Source of the rules: deepagents 0.7.32, `_overflow_clip.py` and `_message_eviction.py`, and scripted runs of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from guard_core.events import ToolCallPart, ToolResultPart, value_text
from guard_core.forms import brings_form
from guard_core.policies.agno import Compressed
from guard_core.policies.pieces.lists import ListRequest
from guard_core.policies.pieces.messages import TOOL, ListMessage, results_of, role_of

# What a result that is moved to a file leaves behind: words, its beginning and its end (0.7.32, scripted runs).
STUB_CHARS, OMITTED_CHARS, CLIPPED_CHARS, BOTH_CHARS = 464, 128, 109, 236
SHOWN_LINES, LINE_CHARS, GUTTER = 5, 1_000, 2
MARKER_CHARS = len("\n... [ lines truncated] ...\n")
READ_CHARS, READ_NOTICE_CHARS = 4_000, 259  # of a result of read_file, whose file exists: it stays in part (0.7.32)
ID_CHARS, LONG_ID_CHARS, HASHED_ID_CHARS = 32, 128, 69  # of a call's id, as it is shown and as it names the file


@brings_form
class MovedToFile(Compressed, frozen=True):
    """Tool results that were moved to a file, and what is left of them."""

    kind: ClassVar[str] = "moved to a file"

    @property
    def words(self) -> str:
        return f"the result was moved to a file; {self.size:,} characters of it and about it stay"

    @property
    def keeps_beginning(self) -> bool:
        return True


def without_large_results(request: ListRequest, messages: Sequence[ListMessage]) -> list[ListMessage]:
    """A list with the tool results at its end moved to files."""
    ledger, start = request.ledger, len(messages)
    while start and role_of(ledger, messages[start - 1]) == TOOL:
        start -= 1
    held = {message.event for message in messages}
    return [*messages[:start], *(_moved(request, message, held) for message in messages[start:])]


def _moved(request: ListRequest, message: ListMessage, held: set[int]) -> ListMessage:
    """A message whose results were moved to files. `held` are the events of the list."""
    ledger, session = request.ledger, request.check.session
    texts: list[str] = []
    if session is not None:
        parts = session.events[message.event].parts
        texts = [value_text(part.content) for part in parts if isinstance(part, ToolResultPart)]
    for place, row in enumerate(results_of(ledger, message)):
        column = {name: ledger.parts[name].item(row) for name in ("chars", "lines", "id_chars", "answers")}
        lines = texts[place].splitlines() if texts else _equal_lines(column["chars"], column["lines"])
        size = _stub_chars(lines, column["id_chars"])
        read = _file_read(request, column["answers"], held)
        if read is not None:
            size = min(column["chars"], READ_CHARS) + READ_NOTICE_CHARS + 2 * len(read)
        message = message.joined(MovedToFile(which=(place,), size=size).name)
    return message


def _equal_lines(chars: int, count: int) -> list[str]:
    """Lines of a text that is not known, taken as equally long."""
    return ["x" * (chars // count)] * count if count else []


def _file_read(request: ListRequest, call: int, held: set[int]) -> str | None:
    """The path of the file that a call to read_file in the list read, where that is known."""
    session, ledger = request.check.session, request.ledger
    if session is None or call < 0 or ledger.parts["event"].item(call) not in held:
        return None
    event = ledger.parts["event"].item(call)
    part = session.events[event].parts[call - int(ledger.part_starts[event])]
    if not isinstance(part, ToolCallPart) or part.name != "read_file" or not isinstance(part.arguments, dict):
        return None
    path = part.arguments.get("file_path")
    return path if isinstance(path, str) and path else None


def _stub_chars(lines: Sequence[str], id_chars: int) -> int:
    """Characters of what is left of a result of these lines, whose call has an id of so many characters."""
    shown_id = id_chars if id_chars <= ID_CHARS else ID_CHARS + len("...")
    name = id_chars if id_chars <= LONG_ID_CHARS else HASHED_ID_CHARS
    omitted = len(lines) - 2 * SHOWN_LINES
    parts = {1: lines}
    if omitted > 0:
        parts = {1: lines[:SHOWN_LINES], len(lines) - SHOWN_LINES + 1: lines[-SHOWN_LINES:]}
    shown = sum(_preview_chars(part, first) for first, part in parts.items())
    clipped = any(len(line) > LINE_CHARS for part in parts.values() for line in part)
    if omitted > 0:
        shown += MARKER_CHARS + len(str(omitted)) + (BOTH_CHARS if clipped else OMITTED_CHARS)
    elif clipped:
        shown += CLIPPED_CHARS
    return STUB_CHARS + shown_id + name + shown


def _preview_chars(lines: Sequence[str], first: int) -> int:
    """Characters of lines that are shown with their numbers, of which the first one is `first`."""
    if not lines:
        return 0
    gutter = len(str(first + len(lines) - 1)) + GUTTER
    return sum(min(len(line), LINE_CHARS) + gutter for line in lines) + len(lines) - 1
