"""Forms: how a policy rewrites events without a summariser, as columns of costs and as messages.

A form changes some parts of the log (a tool result is pruned or capped) and leaves the others as they are. What it
saves follows from the sizes of the parts alone, so that prefix sums price a rewrite of a thousand results like any
other span; the changed texts are made only when a view is materialised.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from guard_core.costs import RESULT, TEXT
from guard_core.errors import GuardError
from guard_core.events import Event, Part, TextPart, ToolResultPart, value_text

Ints = NDArray[np.int64]
BYTES_PER_TOKEN = 4  # Codex counts every tool output by this (specification of policies, section 4.1)
HERMES_PRUNED = "[Older tool output left out to save context space]"  # ours; the specification gives no wording
PRUNED_CHARS = 200  # Hermes: longer results are pruned (specification of policies, section 1.1)
MARKER_ROOM = 64  # bytes; ours: a result at most this far over its cap carries the mark of a cut that was made before


class Columns(Protocol):
    """The columns of a log that a form is priced by; a ledger has them (guard_core.ledger)."""

    @property
    def events(self) -> dict[str, Ints]: ...

    @property
    def parts(self) -> dict[str, Ints]: ...

    @property
    def event_count(self) -> int: ...

    def by_event(self, values: Ints) -> Ints:
        """Sums per event of values that stand per part."""
        ...


@dataclass(frozen=True)
class Form:
    """What happens to one kind of part. `sizes` gives the new bytes of the texts of some parts from their columns
    `bytes` and `chars` (the same number where nothing changes), `text` the new text; new texts have as many
    characters as bytes unless they keep some of the old."""

    name: str
    words: str  # what it did, for a person
    kind: int  # of part, as guard_core.costs has it
    sizes: Callable[[Ints, Ints], Ints]
    text: Callable[[str], str]

    def changes(self, ledger: Columns, column: str) -> Ints:
        """What the form adds to a column of the ledger's events (mostly below 0)."""
        parts = ledger.parts
        own = parts["kind"] == self.kind
        old, chars = parts["bytes"], parts["chars"]
        new = np.where(own, self.sizes(old, chars), old)
        changed = new != old
        if column in ("bytes", "result_bytes"):
            by_part = new - old if column == "bytes" or self.kind == RESULT else np.zeros_like(old)
        elif column == "chars":
            by_part = np.where(changed, _share(chars, new, old) - chars, 0)
        elif column == "text_tokens":
            # What the part costs besides its text (the tool's name) stays.
            name = np.where(parts["kind"] == RESULT, parts["name_chars"] // BYTES_PER_TOKEN, 0)
            by_part = np.where(changed, name + new // BYTES_PER_TOKEN - parts["heuristic"], 0)
        elif column == "lexical_tokens":
            lexical, total = ledger.events["lexical_tokens"], ledger.events["bytes"]
            saved = ledger.by_event(new - old)
            return np.asarray(np.where(total > 0, saved * lexical // np.maximum(total, 1), 0))
        else:
            return np.zeros(ledger.event_count, dtype=np.int64)
        return ledger.by_event(by_part)

    def message(self, event: Event) -> Event:
        """The event in this form."""
        parts = tuple(map(self._part, event.parts))
        return event if parts == event.parts else msgspec.structs.replace(event, parts=parts)

    def _part(self, part: Part) -> Part:
        if self.kind == RESULT and isinstance(part, ToolResultPart):
            old = value_text(part.content)
            new = self.text(old)
            return part if new == old else msgspec.structs.replace(part, content=new)
        if self.kind == TEXT and isinstance(part, TextPart):
            return msgspec.structs.replace(part, text=self.text(part.text))
        return part


def _share(chars: Ints, new: Ints, old: Ints) -> Ints:
    """Code points of a changed text: all of its bytes where the old one was ASCII, else in the old one's proportion."""
    return np.asarray(np.where(chars == old, new, chars * new // np.maximum(old, 1)))


@cache
def get_form(name: str) -> Form:
    """A form by its name: `pruned`, `capped:BYTES` (tool results) or `cut:BYTES` (a user's text). Raises GuardError."""
    kind, _, value = name.partition(":")
    size = int(value) if value.isascii() and value.isdigit() else -1
    if name == "pruned":
        return Form(name, "pruned: the result was replaced by a placeholder", RESULT, _pruned_sizes, _pruned)
    if kind in ("capped", "cut") and size >= 0:
        what = "result cut to" if kind == "capped" else "message cut to"
        return Form(
            name,
            f"{what} its first and last {size // 2:,} bytes",
            RESULT if kind == "capped" else TEXT,
            lambda old, chars: _capped_sizes(old, size),
            lambda text: capped(text, size),
        )
    raise GuardError(f"there is no form {name[:40]!r}; known are pruned, capped:BYTES and cut:BYTES")


def _pruned_sizes(old: Ints, chars: Ints) -> Ints:
    return np.where(chars > PRUNED_CHARS, len(HERMES_PRUNED), old)


def _pruned(text: str) -> str:
    return HERMES_PRUNED if len(text) > PRUNED_CHARS else text


def _capped_sizes(old: Ints, size: int) -> Ints:
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
