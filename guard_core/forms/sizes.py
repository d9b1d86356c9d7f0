"""Forms that shorten one kind of part by its length: pruned results (Hermes), results and texts cut in the middle
(Codex)."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import msgspec
import numpy as np

from guard_core.costs import RESULT, TEXT
from guard_core.errors import GuardError
from guard_core.events import Event, Part, TextPart, ToolResultPart, value_text
from guard_core.forms.base import KINDS, Form, Ints, LogColumns, PartColumns

BYTES_PER_TOKEN = 4  # Codex counts every tool output by this (specification of policies, section 4.1)
HERMES_PRUNED = "[Old tool output cleared to save context space]"  # 0.19.0, agent/context_compressor.py
PRUNED = "pruned"  # the name of the form of Hermes' pruned results
PRUNED_CHARS = 200  # Hermes: longer results are pruned (specification of policies, section 1.1)
MARKER_ROOM = 64  # bytes; ours: a result at most this far over its cap carries the mark of a cut that was made before


class Shortened(Form, frozen=True):
    """What happens to one kind of part, `part` as guard_core.costs has it. `size` bytes stay, -1: a placeholder."""

    part: int
    size: int = -1
    called: ClassVar[dict[int, str]] = {RESULT: "capped", TEXT: "cut"}

    @property
    def name(self) -> str:
        return PRUNED if self.size < 0 else f"{self.called[self.part]}:{self.size}"

    @property
    def words(self) -> str:
        if self.size < 0:
            return "pruned: the result was replaced by a placeholder"
        what = "the result was cut to" if self.part == RESULT else "the message was cut to"
        return f"{what} its first and last {self.size // 2:,} bytes"

    def touches(self, kind: int) -> bool:
        return kind == self.part

    @property
    def is_local(self) -> bool:
        return True

    def parts(self, ledger: LogColumns, parts: PartColumns) -> PartColumns:
        old, chars = parts["bytes"], parts["chars"]
        sizes = (
            np.where(chars > PRUNED_CHARS, len(HERMES_PRUNED), old) if self.size < 0 else _capped_sizes(old, self.size)
        )
        new = np.where(parts["kind"] == self.part, sizes, old)
        changed = new != old
        # What the part costs beside its text (the tool's name) stays.
        name = np.where(parts["kind"] == RESULT, parts["name_chars"] // BYTES_PER_TOKEN, 0)
        heuristic = np.where(changed, name + new // BYTES_PER_TOKEN, parts["heuristic"])
        # Code points of a changed text: all of its bytes where the old one was ASCII, else in the old one's proportion.
        scaled = np.asarray(np.where(chars == old, new, chars * new // np.maximum(old, 1)))
        return {
            **parts,
            "bytes": new,
            "chars": np.where(changed, scaled, chars),
            "heuristic": heuristic,
        }

    def message(self, event: Event) -> Event:
        parts = tuple(map(self._part, event.parts))
        return event if parts == event.parts else msgspec.structs.replace(event, parts=parts)

    def _part(self, part: Part) -> Part:
        if self.part == RESULT and isinstance(part, ToolResultPart):
            old = value_text(part.content)
            new = self.text(old)
            return part if new == old else msgspec.structs.replace(part, content=new)
        if self.part == TEXT and isinstance(part, TextPart):
            return msgspec.structs.replace(part, text=self.text(part.text))
        return part

    def text(self, text: str) -> str:
        """The new text of a part."""
        if self.size < 0:
            return HERMES_PRUNED if len(text) > PRUNED_CHARS else text
        return capped(text, self.size)


def _cut_form(part: int) -> Callable[[str], Form]:
    def make(value: str) -> Form:
        if not (value.isascii() and value.isdigit()):
            raise GuardError("the size of a cut is a number of bytes")
        return Shortened(part, int(value))

    return make


def _pruned_form(value: str) -> Form:
    """A form of no value beside those of a size in bytes: Hermes writes one text for all that it prunes."""
    if value:
        raise GuardError("pruned results have no size")
    return Shortened(RESULT)


KINDS |= {PRUNED: _pruned_form, "capped": _cut_form(RESULT), "cut": _cut_form(TEXT)}


def _capped_sizes(old: Ints, size: int) -> Ints:
    """Sizes in bytes after the cut: `size` of the text, and a marker that is longer by a digit of what was removed."""
    removed = old - size
    tokens = np.maximum(-(-removed // BYTES_PER_TOKEN), 1)
    digits = np.floor(np.log10(tokens)).astype(np.int64) + 1
    return np.where(removed > MARKER_ROOM, size + len(_marker(0)) - 1 + digits, old)


def _marker(tokens: int) -> str:
    return f"[{tokens} tokens left out]"  # ours; Codex says the same with other words


def capped(text: str, size: int) -> str:
    """The head and the tail of a text that has more than `size` bytes, half of them each, and how much is gone.

    Where the cut falls into a character, that character goes, too: at most three bytes at each end.
    """
    data = text.encode("utf-8", "surrogatepass")
    removed = len(data) - size
    if removed <= MARKER_ROOM:
        return text
    head, tail = size // 2, size - size // 2
    kept_tail = data[len(data) - tail :] if tail else b""
    marker = _marker(-(-removed // BYTES_PER_TOKEN))
    return data[:head].decode("utf-8", "ignore") + marker + kept_tail.decode("utf-8", "ignore")
