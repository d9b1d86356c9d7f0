"""The part of a message that fits where messages are trimmed: some of its blocks, or lines of its text."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate

from guard_core.costs import MEDIA, TEXT
from guard_core.events import TextPart, ToolResultPart, value_text
from guard_core.forms import CutToEnds, Removed
from guard_core.policies.pieces.lists import ListRequest
from guard_core.policies.pieces.messages import ListMessage

Fits = Callable[[ListMessage], bool]


def part_of(request: ListRequest, event: int, fits_blocks: Fits, fits_lines: Fits, *, last: bool) -> ListMessage | None:
    """The part of an event that fits: without blocks where it has pictures, else the first or last lines of its text.

    Without the texts of a session its lines are taken as equally long.
    """
    first, stop = request.ledger.part_starts[event : event + 2].tolist()
    kinds = request.ledger.parts["kind"][first:stop].tolist()
    images = kinds.count(MEDIA)
    if images:
        for form in _without_blocks(images, last=last):
            if fits_blocks(ListMessage(event, form)):
                return ListMessage(event, form)
        if last:
            return None
    text_kind = "text" if TEXT in kinds else "result"
    lines = _lines(request, event)
    amounts = list(accumulate(lines[::-1] if last else lines))  # characters of one line, two lines and so on
    base = ListMessage(event, _without_blocks(images, last=last)[-1] if images else "")
    low, high = 0, len(amounts)
    while low < high:
        middle = (low + high + 1) // 2
        if fits_lines(base.joined(_cut(amounts[middle - 1], text_kind, last=last))):
            low = middle
        else:
            high = middle - 1
    return base.joined(_cut(amounts[low - 1], text_kind, last=last)) if low else None


def _cut(chars: int, what: str, *, last: bool) -> str:
    """The form of a text of which the first or last characters stay."""
    return (CutToEnds(tail=chars, what=what) if last else CutToEnds(head=chars, what=what)).name


def _without_blocks(images: int, *, last: bool) -> list[str]:
    """The forms of a message with a text and pictures that loses one of them after the other."""
    forms, removed = [], [Removed(what="text").name] if last else []
    if last:
        forms.append(removed[0])
    for count in range(1, images if last else images + 1):
        which = tuple(range(count)) if last else tuple(range(images - count, images))
        forms.append("+".join([*removed, Removed(what="media", which=which).name]))
    return forms


def _lines(request: ListRequest, event: int) -> list[int]:
    """Characters of the lines of an event's text, with their ends."""
    ledger, session = request.ledger, request.check.session
    if session is not None:
        parts = session.events[event].parts
        texts = [part.text for part in parts if isinstance(part, TextPart)]
        texts += [value_text(part.content) for part in parts if isinstance(part, ToolResultPart)]
        first, *others = (texts[0] if texts else "").split("\n")[::-1]
        return [*(len(line) + 1 for line in others[::-1]), len(first)] if texts and texts[0] else []
    first_row, stop = ledger.part_starts[event : event + 2].tolist()
    if first_row == stop:
        return []
    chars, count = int(ledger.parts["chars"][first_row]), max(int(ledger.parts["lines"][first_row]), 1)
    ends = [chars * number // count for number in range(count + 1)]
    return [ends[number + 1] - ends[number] for number in range(count)] if chars else []
