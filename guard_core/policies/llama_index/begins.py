"""What the memories share: where a request may begin, contents that are None, and the rule of thumb for tokens."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from guard_core.costs import HAS_MEDIA, HAS_TEXT
from guard_core.ledger import Ints, Ledger
from guard_core.policies.pieces.messages import ASSISTANT, TOOL, roles_of
from guard_core.policies.settings import SWITCH, Setting

SHARE_OF_WINDOW = 0.75  # DEFAULT_TOKEN_LIMIT_RATIO
CHARS_PER_TOKEN = 4  # as in the scripted runs; the library uses the tokenizer of gpt-3.5-turbo
NONE_CHARS = len("None")  # of a content without a text, as Python writes it
NULL_CONTENT = Setting(
    "null_content",
    "Null contents",
    SWITCH,
    True,
    (
        "as OpenAI's integration builds them, answers without a text, and pictures alone, have no content, which "
        "counts as the word None and is not given to a summariser; off: they have an empty text"
    ),
    "llama-index-core 0.14.25, ChatMessage.content; llama-index-llms-openai, from_openai_message",
)


def is_null(ledger: Ledger) -> NDArray[np.bool_]:
    """Which events have no content: answers without a text, and messages of pictures alone."""
    key = "llama-index nulls"
    if key not in ledger.derived:
        flags, roles = ledger.events["flags"], roles_of(ledger)
        without_text = (roles == ASSISTANT) | ((flags & HAS_MEDIA) > 0)
        ledger.derived[key] = without_text & ((flags & HAS_TEXT) == 0) & (roles != TOOL)
    nulls: NDArray[np.bool_] = ledger.derived[key]
    return nulls


def next_begin(ledger: Ledger) -> Ints:
    """For each event the first one from there on that is the user's or the system's; the number of events: none."""
    key = "llama-index begins"
    if key not in ledger.derived:
        count = ledger.event_count
        places = np.where(np.isin(roles_of(ledger), (ASSISTANT, TOOL)), count, np.arange(count))
        ledger.derived[key] = np.minimum.accumulate(np.append(places, count)[::-1])[::-1]
    begins: Ints = ledger.derived[key]
    return begins
