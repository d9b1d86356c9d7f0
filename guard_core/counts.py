"""Two figures that every page, the list and the command line share: how many compactions, and how large the peak."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from guard_core.defaults import WINDOW
from guard_core.estimation.attribution import Attribution, attribute
from guard_core.estimation.usage import usage_for
from guard_core.ledger import Ints, Ledger
from guard_core.policies import get_policy
from guard_core.replay import observe_recorded
from guard_core.sessions import Session
from guard_core.triggers import AUTOMATIC, MANUAL, UNKNOWN, is_counted, trigger_of

RECORDED, MODELLED = "recorded", "modelled"  # where the tokens of a request come from


@dataclass(frozen=True)
class CountedCompaction:
    """A compaction that counts. `place` is its index among all recorded ones (the ledger's epoch), `step` the first
    call whose request it changed (from 0), with any edit in between, -1 where no call came before the next one that
    counts, or the end."""

    place: int
    step: int
    trigger: str
    at_the_end: bool  # no call came after it at all


@dataclass(frozen=True)
class CompactionCounts:
    """Those that count, by who asked for them."""

    compactions: tuple[CountedCompaction, ...]

    @property
    def total(self) -> int:
        return len(self.compactions)

    @property
    def automatic(self) -> int:
        return self._of(AUTOMATIC)

    @property
    def manual(self) -> int:
        return self._of(MANUAL)

    @property
    def unknown(self) -> int:
        """Whose trigger the file does not say."""
        return self._of(UNKNOWN)

    @property
    def at_the_end(self) -> int:
        """After which no call came."""
        return sum(item.at_the_end for item in self.compactions)

    @property
    def split(self) -> list[str]:
        """The same in words."""
        return split_words(self.automatic, self.manual, self.unknown, self.at_the_end)

    def _of(self, trigger: str) -> int:
        return sum(item.trigger == trigger for item in self.compactions)


def split_words(automatic: int, manual: int, unknown: int, at_the_end: int) -> list[str]:
    """Compactions by who asked for them, and how many of all of these are at the end, in the words of every page and of
    the command line; nothing of none."""
    counts = ((automatic, "automatic"), (manual, "manual"), (unknown, "of unknown trigger"))
    parts = [f"{count:,} {words}" for count, words in counts if count]
    if at_the_end:
        of_them = " of them" if automatic + manual + unknown > at_the_end else ""
        parts.append(f"{at_the_end:,}{of_them} at the end of the recording")
    return parts


def counted_compactions(session: Session, ats: Ints | None = None) -> CompactionCounts:
    """The compactions of a recording that count: declared, inferred or matched.

    Edits of single messages, resumes and rewinds that rewrite the history are none, unless the recorder itself gives
    the tokens before them. Events are not looked at: the head of a stored session is enough. `ats`: where its calls
    were made, as its ledger has them, whose columns cost less to read than the calls.
    """
    if ats is None:
        ats = np.array([call.at for call in session.calls], dtype=np.int64)
    epochs = np.searchsorted([item.at for item in session.compactions], ats, side="right") - 1
    last = int(epochs.max(initial=-1))
    counted = [place for place, item in enumerate(session.compactions) if is_counted(item)]
    in_force, firsts = np.unique(np.searchsorted(counted, epochs, side="right") - 1, return_index=True)
    steps = dict(zip(in_force.tolist(), firsts.tolist(), strict=True))
    return CompactionCounts(
        tuple(
            CountedCompaction(place, steps.get(number, -1), trigger_of(session.compactions[place]), place > last)
            for number, place in enumerate(counted)
        )
    )


@dataclass(frozen=True)
class RequestTokens:
    """Prompt tokens of the requests that were really sent: recorded where the provider reported them, else modelled."""

    tokens: Ints
    reported: NDArray[np.bool_]

    @cached_property
    def peak(self) -> Peak | None:
        """The largest request, of several the first that was counted; None where there was no call."""
        if not len(self.tokens):
            return None
        largest = np.flatnonzero(self.tokens == self.tokens.max())
        step = int(largest[np.argmax(self.reported[largest])])
        return Peak(int(self.tokens[step]), step, RECORDED if self.reported[step] else MODELLED)


@dataclass(frozen=True)
class Peak:
    """The largest request of a session, in prompt tokens, its step (from 0), and whether it was counted or modelled."""

    tokens: int
    step: int
    source: str


def requests_of(ledger: Ledger, attribution: Attribution | None = None) -> RequestTokens:
    """The requests of a recording, one per call."""
    usage = usage_for(ledger, attribution or attribute(ledger))
    sent = observe_recorded(ledger, get_policy("none"), window=WINDOW, usage=usage).columns["modelled_prompt_tokens"]
    return RequestTokens(np.maximum(sent, 0).astype(np.int64), ledger.steps["prompt_tokens"] > 0)
