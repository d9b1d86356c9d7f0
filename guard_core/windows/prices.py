"""What the tokens of a model's calls cost, for many calls at once, from the table bundled with genai-prices.

The table is loaded when first asked and never updated over the network. A model that it does not price has no price:
nothing is guessed.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from guard_core.ledger import Ints
from guard_core.windows.model_table import PriceRow, rows_of
from guard_core.windows.models import LONG_CONTEXT_SUFFIX

if TYPE_CHECKING:
    from genai_prices.types import ModelPrice

UNIT = 1_000_000  # of the rates below in a millionth of a US dollar: whole numbers, so that sums are exact
HOUR_FACTOR = 2  # of a plain token's price, which the table lacks: Anthropic's documentation of prompt caching
# How OpenRouter and OpenCode's gateway end the names of variants that cost nothing: the model's price is not theirs
# (https://openrouter.ai/docs, "Model Variants"; https://opencode.ai/docs/zen).
FREE = (":free", "-free")
# A few prices of the table depend on the date. Where a call has none, the latest price is taken, never today's.
_LATEST = datetime(2100, 1, 1, 12, tzinfo=UTC)


class Rate(NamedTuple):
    """The price of one token, in millionths of a millionth of a US dollar: `tokens` above so many prompt tokens.

    The highest step that a prompt exceeds prices all tokens of its call.
    """

    above: int
    price: int


class Rates(NamedTuple):
    """The prices of one model: what a prompt token costs that the cache neither gave nor took (`plain`), one that was
    read from the cache, one that was written to it, and an output token. Each as steps by prompt size, lowest first.

    `has_writes`: does the table price written tokens apart. What it does not price apart costs as much as plain tokens.
    `note` says which row of the table this is.
    """

    plain: tuple[Rate, ...]
    read: tuple[Rate, ...]
    written: tuple[Rate, ...]
    output: tuple[Rate, ...]
    has_writes: bool
    note: str

    def costs(self, prompt: Ints, read: Ints, written: Ints, output: Ints) -> Ints:
        """What calls cost, in the unit of Rate. `prompt` are all prompt tokens, `read` and `written` a part of them."""
        parts = ((prompt - read - written, self.plain), (read, self.read), (written, self.written))
        return np.asarray(sum(tokens * _at(steps, prompt) for tokens, steps in (*parts, (output, self.output))))

    def cost(self, prompt: int, read: int = 0, written: int = 0, output: int = 0) -> int:
        """What one call costs, in the unit of Rate."""
        return int(self.costs(*(np.array([tokens], dtype=np.int64) for tokens in (prompt, read, written, output)))[0])

    def for_an_hour(self) -> Rates:
        """The prices where the cache keeps what is written for an hour: HOUR_FACTOR times that of a plain token."""
        if not self.has_writes:
            return self
        return self._replace(written=tuple(rate._replace(price=HOUR_FACTOR * rate.price) for rate in self.plain))

    @property
    def cliffs(self) -> tuple[int, ...]:
        """The sizes of prompts, in tokens, above which a call costs more a token."""
        return tuple(sorted({rate.above for steps in self[:4] for rate in steps if rate.above > 0}))


def _at(steps: tuple[Rate, ...], prompt: Ints) -> Ints:
    """The price of a token in calls with so many prompt tokens."""
    prices = np.array([rate.price for rate in steps], dtype=np.int64)
    above = np.array([rate.above for rate in steps[1:]], dtype=np.int64)
    return prices[np.searchsorted(above, prompt, side="left")]


def rates_of(model: str, timestamp: float | None = None) -> Rates | None:
    """The prices of a model, or None where the table does not have them, or it is a FREE variant of one.

    `timestamp` (seconds since the epoch) picks those of that moment.
    """
    if model.strip().lower().endswith(FREE):
        return None
    rows = rows_of(model.removesuffix(LONG_CONTEXT_SUFFIX))
    try:
        moment = _LATEST if timestamp is None else datetime.fromtimestamp(timestamp, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    # A service whose row has no price, as GitHub Copilot's of gpt-4.1, is taken to charge what the maker does.
    named = [row for row in (rows.own, rows.maker) if row is not None]
    return next((rates for row in named if (rates := _rates(row, row.info.get_prices(moment))) is not None), None)


def _rates(row: PriceRow, prices: ModelPrice) -> Rates | None:
    """What is read from the cache or written to it costs as much as the rest where it has no price of its own."""
    plain, output = _steps(prices, "input_mtok"), _steps(prices, "output_mtok")
    if plain is None or output is None:
        return None
    read, written = _steps(prices, "cache_read_mtok"), _steps(prices, "cache_write_mtok")
    return Rates(plain, read or plain, written or plain, output, written is not None, row.note)


def _steps(prices: ModelPrice, name: str) -> tuple[Rate, ...] | None:
    """One price of the table by the size of the prompt; None where it has none."""
    from genai_prices.types import TieredPrices  # late: the table takes time to load

    value = getattr(prices, name)
    if value is None:
        return None
    if isinstance(value, TieredPrices):
        return (Rate(0, _whole(value.base)), *(Rate(tier.start, _whole(tier.price)) for tier in value.tiers))
    return (Rate(0, _whole(value)),)


def _whole(price: object) -> int:
    """A price in US dollars for a million tokens as that of one token in the unit of Rate."""
    return round(float(str(price)) * UNIT)


def break_even_calls(after: float, read: float = 0.1, written: float = 1.25, output: float = 5.0) -> float:
    """After how many calls a compaction has paid for itself, where nothing is kept but the summary.

    `after` is the size after it as a share of the size before; the prices are in units of a plain prompt token
    (defaults: Anthropic's). The summariser reads the request from the cache and writes the summary, the next call
    writes it to the cache, and each later call reads so much less. Source: specification of the evidence, section 3.
    Infinite where it removes nothing.
    """
    return (read + after * (output + written)) / (read * (1 - after)) if after < 1 else float("inf")
