"""The form in which Mistral Vibe 3.0.3 keeps a message of the user that does not fit: its two ends around a note."""

from __future__ import annotations

from typing import ClassVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from guard_core.costs import TEXT
from guard_core.events import Event, TextPart
from guard_core.forms import Form, brings_form
from guard_core.forms.base import LogColumns, PartColumns

BYTES_PER_TOKEN = 4  # of what is cut, rounded up


def note_of(tokens: int) -> str:
    """What is between the two ends (3.0.3)."""
    return f"<system>{tokens} tokens truncated here for size</system>"


@brings_form
class CutMessage(Form, frozen=True):
    """Texts of which no more than `size` bytes stay, the note between their ends included."""

    kind: ClassVar[str] = "vibe cut"
    size: int = 0

    @property
    def words(self) -> str:
        return f"message cut in its middle to {self.size:,} bytes"

    @property
    def is_local(self) -> bool:
        return True

    @property
    def keeps_beginning(self) -> bool:
        return True

    def touches(self, kind: int) -> bool:
        return kind == TEXT

    def parts(self, ledger: LogColumns, parts: PartColumns) -> PartColumns:
        old = parts["bytes"]
        new = np.minimum(old, self.size)
        note = np.minimum(len(note_of(10)), new)
        kept = new - note  # of its own text
        shorter = {name: note + parts[name] * kept // np.maximum(old, 1) for name in ("chars", "utf16", "repr_chars")}
        shorter |= {name: parts[name] * kept // np.maximum(old, 1) for name in ("non_ascii", "wide")}
        escapes = parts["json_chars"] - parts["chars"] - len('""')
        quoted = shorter["chars"] + len('""') + escapes * kept // np.maximum(old, 1)
        shorter |= {"bytes": new, "json_chars": quoted, "heuristic": new // 4}
        is_cut = self._is_cut(parts)
        return {**parts, **{name: np.where(is_cut, value, parts[name]) for name, value in shorter.items()}}

    def differs(self, ledger: LogColumns, old: PartColumns, new: PartColumns) -> NDArray[np.bool_]:
        return self._is_cut(old)

    def _is_cut(self, parts: PartColumns) -> NDArray[np.bool_]:
        return np.asarray((parts["kind"] == TEXT) & (parts["bytes"] > self.size))

    def message(self, event: Event) -> Event:
        parts = tuple(
            msgspec.structs.replace(part, text=cut(part.text, self.size)) if isinstance(part, TextPart) else part
            for part in event.parts
        )
        return event if parts == event.parts else msgspec.structs.replace(event, parts=parts)


def cut(text: str, size: int) -> str:
    """The first and the last bytes of a text around the note, `size` bytes together where the text has more; the first
    alone where there is no room for the note. A character that a cut would part goes, too."""
    data = text.encode("utf-8", "surrogatepass")
    if len(data) <= size:
        return text
    note = note_of(-(-(len(data) - size) // BYTES_PER_TOKEN))
    if len(note) >= size:  # no room for both ends and the note: the first end alone
        return data[:size].decode("utf-8", "ignore")
    head = tail = b""
    for _ in range(2):  # the note is part of the size, and as long as its number
        room = max(size - len(note), 0)
        head = data[: room // 2].decode("utf-8", "ignore").encode()
        tail = data[len(data) - (room - room // 2) :].decode("utf-8", "ignore").encode()
        note = note_of(-(-(len(data) - len(head) - len(tail)) // BYTES_PER_TOKEN))
    return head.decode() + note + tail.decode()
