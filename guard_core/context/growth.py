"""Growth: the largest step from one request to the next, held against the room between threshold and window.

A check passes just below the threshold; what comes before the next check then has the room from there to the window.
A growth that is larger may overflow the window although the rule was followed.
"""

from __future__ import annotations

import msgspec
import numpy as np

from guard_core.context.filling import ContextFilling
from guard_core.ledger import Ints
from guard_core.rules import OwnChecks
from guard_core.windows.models import if_window_is


class LargestGrowth(msgspec.Struct, frozen=True):
    """The largest growth between two requests with no compaction between them, in prompt tokens.

    `step` is the later one (from 0), `messages` came between them, `largest` is the biggest message among these (its
    index in the log, None: none) with `largest_tokens`. `window` and `threshold` hold at `step`; the window is 0 where
    an answered prompt contradicts it, or counts seem to count characters (`is_in_characters`), the threshold None where
    none is known. `is_counted`: both counts are the provider's. `is_window_assumed`: what is said of the window and the
    threshold rests on an assumption.
    """

    step: int
    tokens: int
    messages: int
    largest: int | None
    largest_tokens: int
    window: int
    threshold: int | None
    is_counted: bool
    is_window_assumed: bool = False
    is_in_characters: bool = False

    @property
    def reserve(self) -> int | None:
        """The growth that fits between threshold and window, in tokens; None where one of the two is not known."""
        return None if self.threshold is None or not self.window else max(0, self.window - self.threshold)

    @property
    def condition(self) -> str:
        """What the reserve rests on, as the end of a clause."""
        return if_window_is(self.window) if self.is_window_assumed else ""

    @property
    def why_unknown(self) -> str:
        """Why there is no reserve."""
        if self.is_in_characters:
            return "the counts seem to count characters"
        return "no threshold is known" if self.threshold is None else "a prompt above the window was answered"

    @property
    def fits(self) -> bool | None:
        """Does the growth fit into the reserve."""
        return None if self.reserve is None else self.tokens <= self.reserve


def largest_growth(filling: ContextFilling) -> LargestGrowth | None:
    """The largest growth of a side; None where no request grew."""
    sent, ledger = filling.sent, filling.ledger
    grown = np.diff(sent.tokens)
    grown[sent.changed - 1] = 0
    if not len(grown) or int(grown.max()) <= 0:
        return None
    step = int(np.argmax(grown)) + 1
    start, stop = (int(ledger.steps["at"][place]) for place in (step - 1, step))
    sizes = filling.costs.attribution.tokens[start:stop]
    largest = start + int(np.argmax(sizes)) if stop > start else None
    limit = int(thresholds(filling)[step])
    return LargestGrowth(
        step=step,
        tokens=int(grown[step - 1]),
        messages=stop - start,
        largest=largest,
        largest_tokens=int(sizes.max()) if stop > start else 0,
        window=int(sent.case.windows[step]),
        threshold=limit if limit > 0 else None,
        is_counted=not sent.case.modelled[step - 1 : step + 1].any(),
        is_window_assumed=sent.case.rests_on_window(step) and sent.case.window.is_unsure,
        is_in_characters=bool(len(sent.facts.in_characters[0])),
    )


def thresholds(filling: ContextFilling) -> Ints:
    """The threshold in tokens at every step: the policy's, of a recording that of its agent's own rule; not above 0
    where none is known."""
    sent = filling.sent
    if sent.trace is not None:
        limits: Ints = sent.trace.columns["threshold"]
        return limits
    own = sent.facts.own_rule
    if own is not None:
        return np.asarray(own.columns["threshold"])
    return OwnChecks(sent.facts.session, filling.ledger, sent.facts.explanation).thresholds
