"""What a recorder says a compaction began at, where no request can have had so many tokens by the calls before it.

Which of the two is wrong is not known (a figure in another unit, calls that a proxy counted), so that the figure
stays in the session and is compared with nothing. One far below the last count is dropped where the file is read.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from guard_core.costs import HAS_MEDIA
from guard_core.ledger import Ledger, prefix_sums

MOST_UNSEEN = 20_000  # tokens that a request may grow by besides the text in the file: attached files, reminders


class Unfit(NamedTuple):
    """A recorder's figure and the provider's count of the last call before it, in tokens."""

    figure: int
    prompt: int


def unfit_figures(ledger: Ledger) -> dict[int, Unfit]:
    """The compactions, by index, whose figure is above that count, its answer, a token for every byte of text that
    followed, and MOST_UNSEEN. None where pictures followed, whose cost is not their bytes, or where no call was counted
    since the compaction before."""
    if not any(base.tokens_before > 0 for base in ledger.bases):
        return {}
    if "unfit figures" not in ledger.derived:
        ledger.derived["unfit figures"] = _unfit(ledger)
    figures: dict[int, Unfit] = ledger.derived["unfit figures"]
    return figures


def _unfit(ledger: Ledger) -> dict[int, Unfit]:
    steps, size = ledger.steps, ledger.prefix_of(("bytes", "opaque_bytes"))
    pictures = prefix_sums(((ledger.events["flags"] & HAS_MEDIA) > 0).astype(np.int64))
    counted = steps["prompt_tokens"] > 0
    at, prompts, outputs = (steps[name][counted] for name in ("at", "prompt_tokens", "output_tokens"))
    previous, unfit = 0, {}
    for place, base in enumerate(ledger.bases):
        last = int(at.searchsorted(base.at)) - 1
        if base.tokens_before > 0 and last >= 0 and at[last] >= previous:
            start, prompt = int(at[last]), int(prompts[last])
            room = max(int(outputs[last]), 0) + int(size[base.at] - size[start]) + MOST_UNSEEN
            if base.tokens_before > prompt + room and pictures[start] == pictures[base.at]:
                unfit[place] = Unfit(base.tokens_before, prompt)
        previous = base.at
    return unfit
