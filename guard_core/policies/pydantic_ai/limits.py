"""When the strategies act: over a limit in tokens, else over one in messages; what all three share."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from guard_core.ledger import Ints
from guard_core.policies.pieces.compared import MESSAGES, TOKENS
from guard_core.policies.pieces.lists import ListPolicy, Sizes
from guard_core.policies.pieces.messages import MessageCosts
from guard_core.policies.pydantic_ai.counting import COSTS, request_tokens
from guard_core.policies.pydantic_ai.parameters import limit_of


class LimitedPolicy(ListPolicy):
    """Compares tokens where a limit in tokens is set, and acts over either limit; a limit of 0 does not act."""

    forgets: ClassVar[bool] = False
    settings: Any

    @property
    def compares(self) -> str:
        return TOKENS if self.settings.max_tokens or self.settings.max_fraction else MESSAGES

    def costs(self) -> MessageCosts:
        return COSTS

    def limit(self, window: int) -> int:
        return int(self.settings.max_messages) if self.compares == MESSAGES else limit_of(self.settings, window)

    @abstractmethod
    def counted_messages(self, sizes: Sizes) -> Ints:
        """The messages that are held against `max_messages` at each check."""

    def counted(self, sizes: Sizes) -> Ints:
        return request_tokens(sizes) if self.compares == TOKENS else self.counted_messages(sizes)

    def acts(self, sizes: Sizes, counted: Ints, limit: int) -> NDArray[np.bool_]:
        over, most = (counted > limit) & (limit > 0), self.settings.max_messages
        if most and self.compares == TOKENS:
            over = over | (self.counted_messages(sizes) > most)
        return np.asarray(over)

    @property
    def acts_below(self) -> str:
        return f"more than {self.settings.max_messages:,} messages"
