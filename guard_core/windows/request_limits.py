"""How large a request may be at every step of a replay without an overflow: by windows and by what was refused."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from guard_core.ledger import Ints

NO_LIMIT = int(np.iinfo(np.int64).max)  # where nothing can be said against a request


class RequestLimits(NamedTuple):
    """The most prompt tokens of a request without an overflow: `most`, and another number at the steps where `others`
    is not 0 (calls of a model with a window of its own; None: there are none)."""

    most: int
    others: Ints | None = None

    def over(self, tokens: Ints) -> NDArray[np.bool_]:
        """Which requests of a replay, one per step, are larger."""
        return over_limits(tokens, self.most, self.others)


def over_limits(tokens: NDArray[Any], most: Any, others: Ints | None) -> NDArray[np.bool_]:
    """The same for arrays of any shape; `most` and `others` must broadcast to it."""
    return np.asarray(tokens > (most if others is None else np.where(others > 0, others, most)))
