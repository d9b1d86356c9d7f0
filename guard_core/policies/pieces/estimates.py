"""Estimates: what an agent takes messages to cost by its own rule of thumb, as prefix sums over the log."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from guard_core.costs import RESULT
from guard_core.estimation.estimators import Heuristic
from guard_core.ledger import Ints, Ledger
from guard_core.policies.pieces.message_columns import Bools, MessageColumns
from guard_core.views import Span, Synthetic, View


@dataclass(frozen=True)
class TokenEstimate:
    """A rule of thumb in tokens. `column` gives the tokens of each event, in a form ("": as it is); `text` those of a
    message of so many UTF-8 bytes that no event holds. `name` is unique: prefix sums are found again by it. `words` say
    how it estimates."""

    name: str
    words: str
    column: Callable[[Ledger, str], Ints]
    text: Callable[[int], int]

    def prefix(self, ledger: Ledger, form: str = "") -> Ints:
        """Prefix sums: events i to j - 1 cost the difference of items j and i."""
        return ledger.prefix_by(f"{self.name}/{form}", lambda ledger: self.column(ledger, form))

    def view(self, ledger: Ledger, view: View) -> int:
        """The messages of a view."""
        total = 0
        prefixes: dict[str, Ints] = {}  # by form: a view may have hundreds of spans in one
        for segment in view:
            if isinstance(segment, Span):
                start, stop, form = segment.start, segment.stop, segment.form
                if form not in prefixes:
                    prefixes[form] = self.prefix(ledger, form)
                prefix = prefixes[form]
                total += prefix.item(stop) - prefix.item(start)
            else:
                assert isinstance(segment, Synthetic)
                total += self.text(segment.bytes)
        return total

    def tokens(self, messages: MessageColumns) -> Ints:
        """Each message of a list."""
        rows = [np.zeros(0, dtype=np.int64)]
        for segment in messages.view:
            if isinstance(segment, Span):
                rows.append(np.diff(self.prefix(messages.ledger, segment.form)[segment.start : segment.stop + 1]))
            else:
                assert isinstance(segment, Synthetic)
                rows.append(np.array([self.text(segment.bytes)]))
        return np.concatenate(rows)


def rounded_up(chars: Ints) -> Ints:
    """ceil(characters / 4)."""
    return -(-chars // 4)


def part_chars(ledger: Ledger, form: str = "", column: str = "chars") -> Ints:
    """Code points of the text of each part (or another count of it, `column`), in a form; a text that is shortened has
    the same share of them as of its bytes."""
    parts = ledger.parts
    chars = parts[column]
    if not form:
        return chars
    new = ledger.parts_in(form)["bytes"]
    shorter = (parts["kind"] == RESULT) & (new < parts["bytes"])
    return np.where(shorter, chars * new // np.maximum(parts["bytes"], 1), chars)


HEURISTIC = TokenEstimate(
    "heuristic",
    "UTF-8 bytes // 4",  # as this project estimates everywhere (guard_core.tokens.heuristic)
    lambda ledger, form: np.diff(Heuristic.of(ledger).log(form)),
    lambda size: size // 4,
)


def at_ends(sizes: Ints, member: Bools, counted: Callable[[Ints], Ints]) -> Ints:
    """The count of each run of events in a row that belong together, at the last event of the run."""
    ends = member & ~np.append(member[1:], False)
    starts = member & ~np.append(False, member[:-1])[: len(member)]
    sums = np.append(0, np.cumsum(sizes))
    out = np.zeros(len(sizes), dtype=np.int64)
    first, last = np.flatnonzero(starts), np.flatnonzero(ends)
    out[last] = counted(sums[last + 1] - sums[first])
    return out
