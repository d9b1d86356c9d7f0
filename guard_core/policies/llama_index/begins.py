"""What the memories share: where a request may begin, and the rule of thumb for tokens."""

from __future__ import annotations

import numpy as np

from guard_core.ledger import Ints, Ledger
from guard_core.policies.pieces.messages import ASSISTANT, TOOL, roles_of

SHARE_OF_WINDOW = 0.75  # DEFAULT_TOKEN_LIMIT_RATIO
CHARS_PER_TOKEN = 4  # as in the scripted runs; the library uses the tokenizer of gpt-3.5-turbo


def next_begin(ledger: Ledger) -> Ints:
    """For each event the first one from there on that is the user's or the system's; the number of events: none."""
    key = "llama-index begins"
    if key not in ledger.derived:
        count = ledger.event_count
        places = np.where(np.isin(roles_of(ledger), (ASSISTANT, TOOL)), count, np.arange(count))
        ledger.derived[key] = np.minimum.accumulate(np.append(places, count)[::-1])[::-1]
    begins: Ints = ledger.derived[key]
    return begins
