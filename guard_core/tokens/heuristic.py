"""ContextGuard's token heuristic: UTF-8 bytes // 4 for every field, each floored on its own.

Source of the rules: spec of ContextGuard section 3 (its function `estimatePartTokens` and Go's `%v` formatting).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

from guard_core.defaults import BYTES_PER_TOKEN
from guard_core.events import (
    Event,
    MediaPart,
    Part,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    utf8_bytes,
)
from guard_core.sessions import ToolDefinition

Costs = tuple[int, int, int]  # text, inline data, metadata and server-side parts; heuristic tokens


def event_costs(event: Event) -> Costs:
    """Heuristic tokens of one event, split by what ContextGuard's profiles count or leave out."""
    return parts_costs(event.parts)


def parts_costs(parts: Iterable[Part]) -> Costs:
    """Heuristic tokens of some parts: (text, calls and results; inline data; metadata and server-side parts)."""
    text = inline = metadata = 0
    for part in parts:
        costs = part_costs(part)
        text += costs[0]
        inline += costs[1]
        metadata += costs[2]
    return text, inline, metadata


def part_costs(part: Part) -> Costs:
    """The same of one part."""
    metadata = 0 if part.metadata is None else entries_tokens(part.metadata)
    if isinstance(part, TextPart | ReasoningPart):
        return utf8_bytes(part.text) // BYTES_PER_TOKEN, 0, metadata
    if isinstance(part, ToolCallPart):
        return text_tokens(part.name) + entries_tokens(part.arguments), 0, metadata
    if isinstance(part, ToolResultPart):
        return text_tokens(part.name) + result_tokens(part.content), 0, metadata
    if isinstance(part, MediaPart):
        return 0, 0 if part.uri else text_tokens(part.mime) + part.size // BYTES_PER_TOKEN, metadata
    return 0, 0, metadata + text_tokens(render(part.value))


def text_tokens(text: str) -> int:
    """UTF-8 bytes // 4."""
    return utf8_bytes(text) // BYTES_PER_TOKEN


def entries_tokens(entries: Any) -> int:
    """Arguments or metadata: key and rendered value of every entry, each floored; raw text counts as text."""
    if isinstance(entries, Mapping):
        return sum(text_tokens(key) + text_tokens(render(value)) for key, value in entries.items())
    return 0 if entries is None else text_tokens(render(entries))


def result_tokens(content: Any) -> int:
    """A tool's response: a missing one is Go's empty map, five bytes and so one token."""
    return text_tokens("map[]" if content is None else render(content))


def tool_definition_tokens(tool: ToolDefinition) -> int:
    """Name, description and compact JSON schema of a tool definition."""
    return text_tokens(tool.name) + text_tokens(tool.description) + text_tokens(schema_json(tool.schema))


def schema_json(schema: Any) -> str:
    """Compact JSON as Go's encoder writes it: map keys sorted, <, > and & escaped, other text kept, and every number a
    float64, so that 1.0 is 1; '' for none."""
    if schema is None:
        return ""
    try:
        return _json(schema)
    except (TypeError, ValueError, OverflowError):
        return ""  # a marshalling error counts 0, as does a number beyond every float64


def _json(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{_json(str(key))}:{_json(value[key])}" for key in sorted(value)) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(_json, value)) + "]"
    if isinstance(value, float) or (isinstance(value, int) and abs(value) > EXACT_INTEGERS):
        number = float(value)
        if not math.isfinite(number):
            raise ValueError(f"{number} is not JSON")
        return _written(number, JSON_PLAIN_EXPONENTS, digits_of_exponent=1)
    text = json.dumps(value, ensure_ascii=False)
    for character, escape in _GO_ESCAPES:
        text = text.replace(character, escape)
    return text


EXACT_INTEGERS = 2**53  # up to here a float64 is every integer


_GO_ESCAPES = (("<", "\\u003c"), (">", "\\u003e"), ("&", "\\u0026"), ("\u2028", "\\u2028"), ("\u2029", "\\u2029"))


def render(value: Any) -> str:
    """A JSON value in Go's `%v` form; every JSON number is a float64 there. An integer beyond 64 bits, as only a live
    agent has, is the text that a recording has in its place."""
    if isinstance(value, str):
        return value
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return str(value)
    if isinstance(value, int | float):
        return render_float(value)
    if isinstance(value, Mapping):
        keys = sorted(value, key=lambda key: key.encode("utf-8", "surrogatepass"))
        return "map[" + " ".join(f"{key}:{render(value[key])}" for key in keys) + "]"
    return "[" + " ".join(render(item) for item in value) + "]"


def render_float(number: float) -> str:
    """Shortest digits that read back the same; plain for decimal exponents -4 to 5, else with an exponent."""
    value = float(number)
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("+Inf" if value > 0 else "-Inf")
    return _written(value, PLAIN_EXPONENTS, digits_of_exponent=2)


PLAIN_EXPONENTS = range(-4, 6)  # measured: 100000 is plain, 1000000 is 1e+06 (spec section 3)
JSON_PLAIN_EXPONENTS = range(-6, 21)  # Go's `encoding/json`, whose exponents have no leading zero


def _written(value: float, plain: range, digits_of_exponent: int) -> str:
    """A number with its shortest digits, without an exponent where that is in a range."""
    digits, exponent = _shortest(value)
    sign = "-" if math.copysign(1.0, value) < 0 else ""
    if exponent in plain:
        return sign + _plain(digits, exponent)
    mantissa = digits[0] + ("." + digits[1:] if len(digits) > 1 else "")
    return f"{sign}{mantissa}e{'-' if exponent < 0 else '+'}{abs(exponent):0{digits_of_exponent}d}"


def _shortest(value: float) -> tuple[str, int]:
    """Shortest round-trip decimal digits without trailing zeros, and the decimal exponent of the first digit."""
    mantissa, _, exponent = f"{abs(value)!r}".partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = whole + fraction
    point = len(whole) + int(exponent or 0)
    stripped = digits.lstrip("0")
    if not stripped:
        return "0", 0
    return stripped.rstrip("0") or "0", point - (len(digits) - len(stripped)) - 1


def _plain(digits: str, exponent: int) -> str:
    """A number written without an exponent; `exponent` is that of its first digit."""
    if exponent < 0:
        return "0." + "0" * (-exponent - 1) + digits
    whole = digits[: exponent + 1].ljust(exponent + 1, "0")
    fraction = digits[exponent + 1 :]
    return f"{whole}.{fraction}" if fraction else whole
