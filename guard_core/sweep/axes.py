"""The axes of a sweep: what is typed as one, and the grid that several span."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from itertools import product
from math import prod
from typing import Any

from guard_core.errors import SettingError
from guard_core.policies import DEFAULT_POLICY, policy_kind
from guard_core.sizes import parse_amount
from guard_core.windows.window import parse_window

MOST_CELLS = 100_000  # ours: a grid larger than this is a mistake


def parse_axis(text: str) -> tuple[str, tuple[Any, ...]]:
    """An axis as typed: NAME=FROM:TO:STEP (ends included) or NAME=VALUE,VALUE. Raises SettingError."""
    name, sign, values = text.partition("=")
    if not sign or not name.strip() or not values.strip():
        raise SettingError(f"an axis is written NAME=FROM:TO:STEP or NAME=VALUE,VALUE, not {text[:60]!r}")
    return axis_of(name, values)


def axis_of(name: str, values: str) -> tuple[str, tuple[Any, ...]]:
    """An axis of a name and its values as typed: FROM:TO:STEP (ends included), in numbers such as 100k, 0.5 or 5%, or a
    list with commas. Raises SettingError."""
    plain = name.strip().replace("-", "_")
    items = _range(values) if ":" in values else _list(values)
    if plain == "window":
        return plain, tuple(parse_window(str(value)) for value in items)
    return plain, items


def _list(text: str) -> tuple[str, ...]:
    items = tuple(item.strip() for item in text.split(","))
    if not all(items):
        raise SettingError(f"a list has a value between any two commas, unlike {text.strip()[:60]!r}")
    if len(set(items)) < len(items):
        raise SettingError(f"a list has each value once, unlike {text.strip()[:60]!r}")
    return items


def _range(text: str) -> tuple[Any, ...]:
    ends = [item.strip() for item in text.split(":")]
    is_share = all(item.endswith("%") for item in ends)
    count, start, step = 0, Decimal(0), Decimal(0)
    try:
        start, stop, step = (parse_amount(item.removesuffix("%") if is_share else item) for item in ends)
        count = int((stop - start) // step) + 1 if step > 0 and stop >= start else 0
    except ValueError:
        count = 0
    if not 0 < count <= MOST_CELLS:
        raise SettingError(
            f"a range is written FROM:TO:STEP with TO not below FROM and STEP above 0, not {text.strip()[:60]!r}"
        )
    values = [start + number * step for number in range(count)]
    if is_share:
        return tuple(f"{value.normalize():f}%" for value in values)
    return tuple(int(value) if value == int(value) else float(value) for value in values)


def grid(axes: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """All combinations, the last axis changing fastest. Raises SettingError for a grid that is too large."""
    size = prod(len(values) for values in axes.values())
    if not 0 < size <= MOST_CELLS:
        raise SettingError(f"the grid has {size:,} settings; 1 to {MOST_CELLS:,} are allowed")
    return [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]


def default_axes(policy: str = DEFAULT_POLICY, profile: str = "") -> dict[str, tuple[Any, ...]]:
    """The grid that is swept where none is asked for: what the policy publishes for it. Raises UnknownName."""
    kind = policy_kind(policy)
    unused = kind.unused(profile)
    return {item.name: item.sweep for item in kind.settings if item.sweep and item not in unused}


def words(values: Mapping[str, Any]) -> str:
    """Settings as text."""
    return ", ".join(f"{name}={value}" for name, value in values.items()) or "the settings as they are"
