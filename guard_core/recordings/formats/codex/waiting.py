"""What Codex estimates of the items that wait for the model, which is not in the log as it is in the file."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from guard_core.agent_versions import numbers
from guard_core.recordings.formats.openai import items as responses_items
from guard_core.recordings.reading import fields

BYTES_PER_TOKEN = 4  # codex-rs' own estimate of tokens
# Versions that estimate whole items, as the file has them; later ones look at the text of an output alone.
ITEMS_COUNTED_FROM, ITEMS_COUNTED_BEFORE = (0, 95), (0, 156)
CALLING = responses_items.CALLS | {"reasoning"}


def estimates_items(version: str) -> bool:
    """Does this version of Codex estimate whole items."""
    return ITEMS_COUNTED_FROM <= numbers(version) < ITEMS_COUNTED_BEFORE


class CodexEstimate(NamedTuple):
    """Codex's estimate of the items since the last one of the model, in tokens: of tool `outputs`, and of all."""

    outputs: int = 0
    items: int = 0


class WaitingItems:
    """What waits for the model: `now`, and `before` its last items in a row. An item is estimated as a quarter of the
    bytes of its JSON, rounded up (context_manager/history.rs, `estimate_response_item_model_visible_bytes`; measured
    by running 0.95.0 to 0.155.0 with results of many sizes, up to eight at once)."""

    def __init__(self) -> None:
        self.now = self.before = CodexEstimate()
        self._model = False  # was the last item one of the model's

    def add(self, item: dict[str, Any], kind: str) -> None:
        is_output = responses_items.is_output(kind)
        is_model = kind in CALLING or kind.endswith("_call") or fields.text(item, "role") == "assistant"
        if is_model:
            self.before = self.before if self._model else self.now
            self.now = CodexEstimate()
        else:
            tokens = -(-len(msgspec.json.encode(item)) // BYTES_PER_TOKEN)
            self.now = CodexEstimate(self.now.outputs + is_output * tokens, self.now.items + tokens)
        self._model = is_model
