"""The rows of the price table that a model's name means, under any provider and any spelling.

Recordings write one model in many ways: behind the names of routers ("litellm_proxy/anthropic/…", "models/…"), with a
date ("@20250514"), as a cloud names it ("us.anthropic.…-v1:0"), with a router's variant (":free"), with other
characters between its words and Claude's version first, as gateways and editors do ("claude_4_5_opus").
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo, Provider

LONGEST_NAME = 200  # characters; names in recordings are hostile text
MOST_PREFIXES = 4  # names of routers in front of a model's own
_BETWEEN_WORDS = re.compile(r"[ _]+")
# Names with the version before the size, as Anthropic wrote them until 3.7; its names of later models end in it.
_VERSION_FIRST = re.compile(r"\bclaude-(\d+)[.-](\d+)-([a-z]+)")
_VERSION = re.compile(r"(?<=-)(\d)-(\d)(?=-|$)")  # "gpt-4-1", which the table writes with a full stop
_CLOUD_PREFIX = re.compile(r"^(?:[a-z-]+\.)+(?=[a-z])")  # "us.anthropic.", "meta."; never "gpt-4."


class PriceRow(NamedTuple):
    """One model as one provider serves it."""

    provider: Provider
    info: ModelInfo

    @property
    def window(self) -> int:
        """Tokens; 0 where the table does not say."""
        return int(self.info.context_window or 0)

    @property
    def note(self) -> str:
        """Whose row it is, in words."""
        from genai_prices import __version__  # late: the table takes time to load

        return f"{self.info.id} of {self.provider.name} in genai-prices {__version__}"


class ModelRows(NamedTuple):
    """What the table has of a model: the row of the host that its name begins with, its maker's, and all others."""

    host: PriceRow | None = None
    maker: PriceRow | None = None
    others: tuple[PriceRow, ...] = ()

    @property
    def own(self) -> PriceRow | None:
        """The row that is meant by the name itself."""
        return self.host or self.maker


@lru_cache(maxsize=1_024)
def rows_of(model: str) -> ModelRows:
    """The rows of a model's name; none where the table does not have it."""
    name = model.strip().lower()
    if not name or len(name) > LONGEST_NAME:
        return ModelRows()
    parts = name.split("/", MOST_PREFIXES)
    tails = ["/".join(parts[first:]) for first in range(len(parts))]
    whole = _named(name)
    host = None if whole else _host(parts, tails)
    # The provider whose models are called so, without the names in front of it.
    maker = whole or next(
        (row for each in dict.fromkeys((*tails[1:], *_spellings(tails[-1]))) if (row := _named(each))), None
    )
    names = [*_spellings(tails[-1]), *(_last(row.info.id) for row in (maker, host) if row)]
    others = next((matches for name in names if (matches := _by_name().get(name))), ())
    return ModelRows(host, maker, tuple(row for row in others if row not in (host, maker)))


def as_its_maker_writes(name: str) -> str:
    """A model's name in small letters, with hyphens between its words and, of Claude, with the version last."""
    return _VERSION_FIRST.sub(r"claude-\3-\1-\2", _BETWEEN_WORDS.sub("-", name.lower()))


def _spellings(name: str) -> Iterator[str]:
    """A name without its router's prefixes, in the ways in which the table may write it."""
    plain = _CLOUD_PREFIX.sub("", name.replace("@", "-"))
    hyphened = _BETWEEN_WORDS.sub("-", plain)
    dotted = _VERSION.sub(r"\1.\2", hyphened)
    yield from dict.fromkeys((name, plain, plain.partition(":")[0], hyphened, as_its_maker_writes(plain), dotted))


def _host(parts: list[str], tails: list[str]) -> PriceRow | None:
    """The row of the first provider that is named in front of the model and has it."""
    from genai_prices.data_snapshot import find_provider_by_id  # late: the table takes time to load

    for prefix, rest in zip(parts, tails[1:], strict=False):
        provider = find_provider_by_id(_providers(), prefix) if prefix else None
        if provider and (info := next(filter(None, map(provider.find_model, (rest, *_spellings(rest)))), None)):
            return PriceRow(provider, info)
    return None


def _named(name: str) -> PriceRow | None:
    """The row of the provider whose models are called exactly so."""
    from genai_prices.data_snapshot import get_snapshot  # late: the table takes time to load

    try:
        return PriceRow(*get_snapshot().find_provider_model(name, None, None, None))
    except LookupError:
        return None


@lru_cache(maxsize=1)
def _by_name() -> dict[str, tuple[PriceRow, ...]]:
    """All rows by the model's name without a provider in front of it, as the table writes it or says it is written."""
    by_name: dict[str, list[PriceRow]] = defaultdict(list)
    for provider in _providers():
        for info in provider.models:
            for name in dict.fromkeys(map(_last, (info.id, *_equals(info.match)))):
                by_name[name].append(PriceRow(provider, info))
    return {name: tuple(rows) for name, rows in by_name.items()}


def _equals(clause: Any) -> Iterator[str]:
    """The names that a rule of the table allows literally."""
    for each in getattr(clause, "or_", [clause]):
        if isinstance(name := getattr(each, "equals", None), str):
            yield name


def _providers() -> list[Provider]:
    from genai_prices.data_snapshot import get_snapshot  # late: the table takes time to load

    return get_snapshot().providers


def _last(name: str) -> str:
    return name.lower().rsplit("/", 1)[-1]
