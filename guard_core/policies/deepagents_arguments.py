"""Long arguments of old calls that write files, which Deep Agents cuts in its requests; its list keeps them whole.

Source of the rule: deepagents 0.7.32, `middleware/summarization.py`, and scripted runs of it. Where the trigger of the
cutting is reached, every text over a length among the arguments of `write_file` and `edit_file`, in all messages but
the newest, becomes its first characters and a note. That comes before the question whether a summary is due.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, ClassVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from guard_core.costs import CALL, tool_key, value_sizes
from guard_core.events import Part, ToolCallPart
from guard_core.forms import brings_form
from guard_core.forms.base import SIZES, PartColumns
from guard_core.forms.edits import Edit
from guard_core.ledger import Ints, Ledger
from guard_core.policies.langchain.context_sizes import FRACTION, MESSAGES, ContextSize
from guard_core.policies.pieces.lists import ListRequest, Sizes
from guard_core.policies.pieces.messages import ListMessage, calls_of
from guard_core.sessions import Session
from guard_core.views import Span

TOOLS = ("write_file", "edit_file")
LONGEST, KEPT = 2_000, 20  # characters of an argument: over the first it is cut to the second (0.7.32)
NOTE = "...(argument truncated)"
KEPT_MESSAGES = ContextSize(MESSAGES, 20)  # that stay whole where a share of an unknown window is to stay (0.7.32)
# Ours: JSON characters beside the long argument, its path and the names, where the texts are not known.
OTHER_CHARS = 60


def shortened(arguments: Any, longest: int, note: str) -> Any:
    """The arguments of a call with its long texts cut and `note` behind them; the very same where none is."""
    if not isinstance(arguments, dict):
        return arguments
    cut = {
        name: value[:KEPT] + note
        for name, value in arguments.items()
        if isinstance(value, str) and len(value) > longest
    }
    return {**arguments, **cut} if cut else arguments


@brings_form
class ShortArguments(Edit, frozen=True):
    """Calls whose long arguments were cut. `calls` are, of each, its row in the columns of parts, and the characters,
    bytes and characters as Python writes them that are left."""

    kind: ClassVar[str] = "short arguments"
    longest: int = LONGEST
    note: str = NOTE
    calls: tuple[tuple[int, int, int, int], ...] = ()

    @property
    def of(self) -> int:
        return CALL

    @property
    def is_local(self) -> bool:
        """It names rows of the whole log."""
        return False

    @property
    def words(self) -> str:
        return f"arguments over {self.longest:,} characters were cut to their first {KEPT}"

    @property
    def keeps_beginning(self) -> bool:
        return True

    def parts(self, ledger: Any, parts: PartColumns) -> PartColumns:
        if not self.calls:
            return parts
        rows, chars, size, written = np.array(self.calls, dtype=np.int64).T
        old = np.maximum(parts["chars"][rows], 1)
        scaled = {name: parts[name][rows] * chars // old for name in SIZES if name not in ("name_chars", "id_chars")}
        new = {**scaled, "chars": chars, "bytes": size, "repr_chars": written}
        new |= {"separators": parts["separators"][rows], "heuristic": parts["name_chars"][rows] // 4 + size // 4}
        columns = {name: parts[name].copy() for name in new}
        for name, values in new.items():
            columns[name][rows] = values
        return {**parts, **columns}

    def part(self, part: ToolCallPart) -> Part:
        if part.name not in TOOLS:
            return part
        arguments = shortened(part.arguments, self.longest, self.note)
        return part if arguments is part.arguments else msgspec.structs.replace(part, arguments=arguments)


def may_be_cut(sizes: Sizes, longest: int) -> NDArray[np.bool_]:
    """At which steps the list has a call that may have a long argument, by the size of all its arguments."""
    ledger = sizes.ledger
    key = f"long calls {longest}"
    if key not in ledger.derived:
        parts = ledger.parts
        tools = np.isin(parts["tool"], [tool_key(name) for name in TOOLS])
        long_calls = (parts["kind"] == CALL) & tools & (parts["chars"] > longest)
        ledger.derived[key] = np.append(0, np.cumsum(ledger.by_event(long_calls.astype(np.int64))))
    before: Ints = ledger.derived[key]
    spans = [segment for segment in sizes.head.view if isinstance(segment, Span)]
    of_head = sum(before.item(span.stop) - before.item(span.start) for span in spans)
    return np.asarray(of_head + before[sizes.at] - before[np.minimum(sizes.head.kept_from, sizes.at)] > 0)


def with_short_arguments(
    request: ListRequest, messages: Sequence[ListMessage], stop: int, longest: int, note: str
) -> list[ListMessage]:
    """A list with the long arguments cut in its messages before place `stop`, and `note` behind what is left."""
    ledger, session = request.ledger, request.check.session
    short = [(place, call) for place in range(stop) for call in _short(ledger, session, messages[place], longest, note)]
    if not short:
        return list(messages)
    form = ShortArguments(longest=longest, note=note, calls=tuple(call for _, call in short)).name
    places = {place for place, _ in short}
    return [message.joined(form) if place in places else message for place, message in enumerate(messages)]


def first_kept(costs: Sequence[int], keep: ContextSize, window: int) -> int:
    """The first message whose arguments stay whole. `costs` are counted of each message; a `window` of -1 is not
    known."""
    count = len(costs)
    if keep.kind == FRACTION and window < 0:
        keep = KEPT_MESSAGES
    if keep.kind == MESSAGES:
        return max(count - int(keep.value), 0)
    suffix = list(accumulate(reversed(costs)))
    return count - int(np.searchsorted(np.array(suffix), keep.tokens(window), side="right"))


def _short(
    ledger: Ledger, session: Session | None, message: ListMessage, longest: int, note: str
) -> list[tuple[int, int, int, int]]:
    """The calls of a message that are cut, as the form has them."""
    cache = ledger.derived.setdefault(f"short arguments {longest} {session is not None} {note}", {})
    if message.event not in cache:
        calls = calls_of(ledger, ListMessage(message.event))
        shortened = (_call(ledger, session, row, longest, note) for row in calls)
        cache[message.event] = [call for call in shortened if call is not None]
    calls_cut: list[tuple[int, int, int, int]] = cache[message.event]
    return calls_cut


def _call(
    ledger: Ledger, session: Session | None, row: int, longest: int, note: str
) -> tuple[int, int, int, int] | None:
    """One call as the form has it, None: it is not cut. Without texts its arguments are taken as one long text."""
    parts = ledger.parts
    chars, tool, event = (parts[name].item(row) for name in ("chars", "tool", "event"))
    if chars <= longest or tool not in [tool_key(name) for name in TOOLS]:
        return None
    if session is None:
        left = KEPT + len(note) + OTHER_CHARS
        return (row, left, left, left) if chars > longest + OTHER_CHARS else None
    part = session.events[event].parts[row - int(ledger.part_starts[event])]
    if not isinstance(part, ToolCallPart):
        return None
    arguments = shortened(part.arguments, longest, note)
    if arguments is part.arguments:
        return None
    sizes = value_sizes(arguments)
    return row, sizes["chars"], sizes["bytes"], sizes["repr_chars"]
