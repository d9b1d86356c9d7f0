"""Models by name: their context window and what a call costs, from the table bundled with genai-prices.

The table is loaded when first asked and never updated over the network. A name that it does not hold is unknown:
nothing is guessed.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from guard_core import defaults
from guard_core.sessions import Session, Source, Sourced

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo, Provider

LONG_CONTEXT_SUFFIX, LONG_CONTEXT = "[1m]", 1_000_000  # Claude Code writes so for a model used with a million tokens
MICRO = 1_000_000  # costs are whole millionths of a US dollar
LONGEST_NAME = 200  # characters; names in recordings are hostile text
# A few prices of the table depend on the date. Where a call has none, the latest price is taken, never today's.
_LATEST = datetime(2100, 1, 1, 12, tzinfo=UTC)


class CallTokens(NamedTuple):
    """The tokens of one call. `prompt` includes what was read from and written to the cache."""

    prompt: int
    output: int = 0
    cached: int = 0
    cache_write: int = 0


def context_window(model: str) -> Sourced | None:
    """The context window of a model in tokens, or None where the model or its window is not in the table."""
    if model.endswith(LONG_CONTEXT_SUFFIX) and _find(model[: -len(LONG_CONTEXT_SUFFIX)]):
        return Sourced(LONG_CONTEXT, Source.MODEL_TABLE, f"the name ends in {LONG_CONTEXT_SUFFIX}")
    found = _find(model)
    if found is None or not found[1].context_window:
        return None
    return Sourced(int(found[1].context_window), Source.MODEL_TABLE, _note(*found))


def window_of(session: Session) -> Sourced:
    """The context window of a session in tokens: from its file, else by the name of its model, else assumed."""
    if session.window is not None and session.window.value > 0:
        return session.window
    for name in dict.fromkeys([session.model, *(call.model for call in session.calls[-1:])]):
        if name and (found := context_window(name)):
            return found
    return Sourced(defaults.WINDOW, Source.ASSUMED, "neither the file nor the model table tells it")


def call_cost(model: str, tokens: CallTokens, timestamp: float | None = None) -> Sourced | None:
    """The list price of a call in millionths of a US dollar, or None where the table does not know.

    `timestamp` (seconds since the epoch) picks the price of that day.
    """
    from genai_prices import Usage

    found = _find(model)
    if found is None or min(tokens) < 0:
        return None
    provider, info = found
    usage = Usage(
        input_tokens=max(tokens.prompt, tokens.cached + tokens.cache_write),
        cache_read_tokens=tokens.cached,
        cache_write_tokens=tokens.cache_write,
        output_tokens=tokens.output,
    )
    try:
        when = _LATEST if timestamp is None else datetime.fromtimestamp(timestamp, UTC)
        price = info.calc_price(usage, provider, genai_request_timestamp=when)
    except (LookupError, ValueError, OverflowError, OSError):
        return None
    return Sourced(round(price.total_price * MICRO), Source.MODEL_TABLE, _note(provider, info))


def _note(provider: Provider, info: ModelInfo) -> str:
    from genai_prices import __version__

    return f"{info.id} of {provider.name} in genai-prices {__version__}"


@lru_cache(maxsize=1_024)
def _find(model: str) -> tuple[Provider, ModelInfo] | None:
    """The model of this name; a name with a router's prefix is tried without it."""
    if not model or len(model) > LONGEST_NAME:
        return None
    from genai_prices.data_snapshot import get_snapshot

    for name in dict.fromkeys((model, model.rsplit("/", 1)[-1])):
        try:
            return get_snapshot().find_provider_model(name, None, None, None)
        except LookupError:
            continue
    return None
