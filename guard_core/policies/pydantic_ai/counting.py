"""What the library counts: characters, its own messages, and the tokens of a request."""

from __future__ import annotations

import numpy as np

from guard_core.costs import CALL, REASONING, RESULT, TEXT
from guard_core.ledger import Ints, Ledger
from guard_core.policies.pieces.counters import in_steps, outputs_as_of
from guard_core.policies.pieces.lists import Sizes
from guard_core.policies.pieces.messages import ASSISTANT, MessageCosts, roles_of

CHARS_PER_TOKEN = 4  # `_shared.py`, where the library is given no tokenizer


def _chars(ledger: Ledger, parts: dict[str, Ints]) -> Ints:
    """Characters of each event: texts, results, and of calls the tool's name and the arguments by `repr`."""
    kind = parts["kind"]
    text = np.where(np.isin(kind, (TEXT, RESULT, REASONING)), parts["chars"], 0)
    return ledger.by_event(np.where(kind == CALL, parts["name_chars"] + parts["repr_chars"], text))


COSTS = MessageCosts("pydantic-ai characters", _chars, lambda message: message.bytes)


def _begins(ledger: Ledger, parts: dict[str, Ints]) -> Ints:
    """1 for every event with which a message of the library begins: an answer, and what follows one."""
    answers = roles_of(ledger) == ASSISTANT
    before = np.append(True, answers)[: len(answers)]
    return np.asarray((answers | before).astype(np.int64))


GROUPS = MessageCosts("pydantic-ai messages", _begins, lambda message: 1)


def request_tokens(sizes: Sizes) -> Ints:
    """The last count with its answer, and what follows that answer; without a count all of it."""
    ledger, prefix = sizes.ledger, COSTS.prefix(sizes.ledger)
    answer = in_steps(ledger, "at", sizes.as_of, 0)
    behind = prefix[sizes.at] - prefix[np.minimum(answer + 1, sizes.at)]
    counted = sizes.last + outputs_as_of(ledger, sizes.as_of) + behind // CHARS_PER_TOKEN
    return np.where(sizes.as_of >= 0, counted, (sizes.whole + ledger.system_chars) // CHARS_PER_TOKEN)
