"""Where recorded counts begin a new baseline, in words."""

from __future__ import annotations

import numpy as np

from guard_core.costs import HAS_MEDIA
from guard_core.estimation.attribution import Attribution
from guard_core.estimation.baselines import (
    count_changes,
    model_changes,
    returned_at,
    silent_truncations,
    unexplained_rises,
)
from guard_core.estimation.sharing import ASSUMED as ASSUMED_RATIO
from guard_core.estimation.sharing import SESSION, USUAL
from guard_core.ledger import Ledger

MOST_NOTES = 5  # silent truncations that are named one by one


def baseline_notes(ledger: Ledger, attribution: Attribution) -> tuple[str, ...]:
    """Where recorded counts begin a new baseline, and why, in words."""
    notes = []
    if attribution.prologue:
        source = (
            "usual for this agent" if attribution.overhead_source == USUAL else "as the prompts after compactions allow"
        )
        notes.append(
            f"of the first prompt, {attribution.overhead:,} tokens are counted as system prompt and tools "
            f"({source}) and {attribution.prologue:,} as messages from before this file begins, "
            "which are assumed to leave the requests with the first message of this file that does"
        )
    for cut in silent_truncations(ledger)[:MOST_NOTES]:
        back = returned_at(ledger, cut)
        what = f"the count returned by itself at step {back + 1:,}" if back >= 0 else "content was cut away silently"
        notes.append(
            f"the recorded prompt fell from {cut.before:,} to {cut.after:,} tokens while the log grew (step "
            f"{cut.step + 1:,}): {what}, and a new baseline begins"
        )
    notes += [
        f"the provider counts the same content at {change.factor:.2f} times the tokens from step {change.step + 1:,} "
        f"on (the prompt went from {change.before:,} to {change.after:,}): a new baseline begins"
        for change in count_changes(ledger)[:MOST_NOTES]
    ]
    notes += [
        f"the recorded prompt rose from {rise.before:,} to {rise.after:,} tokens at step {rise.step + 1:,}, by more "
        "than the messages in between explain: content that is not in this file; a new baseline begins"
        for rise in unexplained_rises(ledger)[:MOST_NOTES]
    ]
    dropped = np.flatnonzero(attribution.dropped)
    if len(dropped):
        notes.append(
            f"reasoning is sent until the user writes again: {len(dropped):,} prompts lack that of the turn "
            f"before, the first at step {int(dropped[0]) + 1:,}; {int(attribution.dropped.sum()):,} tokens in all, by "
            "the recorded outputs"
        )
    changed = model_changes(ledger)
    if changed:
        notes.append(f"another model counts from step {changed[0] + 1:,} on: a new baseline begins at each change")
    # How many messages that were sent hold content whose tokens neither the file nor its recorded prompts give?
    events, sent = ledger.events, int(ledger.steps["at"].max(initial=0))
    hidden = ((events["flags"] & HAS_MEDIA) > 0) | (events["opaque_bytes"] > 0)
    if unmeasured := int(np.count_nonzero((hidden & np.isin(attribution.source, (ASSUMED_RATIO, SESSION)))[:sent])):
        notes.append(
            f"no recorded prompt measures the pictures or encrypted reasoning in {unmeasured:,} "
            f"message{'' if unmeasured == 1 else 's'}: {attribution.ratios['media']:,.0f} tokens per picture and the "
            "usual size of reasoning are assumed, and no forecast error shows how far off that is"
        )
    return tuple(notes)
