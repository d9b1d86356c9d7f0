"""A large JSON array, checked element by element: none of them is kept but the first ones."""

from __future__ import annotations

from typing import IO, Any, NamedTuple

from guard_core.recordings.reading import json_array, strict_json
from guard_core.recordings.reading.limits import MIB, Limits

HEADS = 200  # elements that are kept to recognise a format by
HEAD_BYTES = MIB  # of the array, in which these begin; as values they take several times as much
# Bytes of an element, on average, from which it is worth the time to find its end. Ours, measured: that takes 4 µs in
# every pass, as long as parsing 400 bytes; an array of numbers would take minutes.
ELEMENT_BYTES = 100


class LargeArray(NamedTuple):
    """An array whose elements are good, or were mended."""

    heads: list[Any]
    mended: list[strict_json.Mended]  # what is replaced in it, with offsets in the array
    more: int  # places that are replaced beyond those
    has_nan: bool


def checked_array(stream: IO[bytes], limits: Limits, *, allow_nan: bool) -> LargeArray | None:
    """The array that a stream holds; None where it is none, one of very small elements, or damaged, since only as a
    whole it shows where. `limits` are those of an element."""
    heads: list[Any] = []
    mended: list[strict_json.Mended] = []
    more, has_nan = 0, False
    try:
        for number, (offset, raw) in enumerate(json_array.elements(stream)):
            if number >= HEADS and offset < number * ELEMENT_BYTES:
                return None
            value, places, further = strict_json.decode(raw, limits, allow_nan=allow_nan)
            if len(heads) < HEADS and offset < HEAD_BYTES:
                heads.append(value)
            known = max(strict_json.MENDED_SHOWN - len(mended), 0)
            mended += [strict_json.Mended(reason, offset + at) for reason, at in places[:known]]
            more += further + len(places[known:])
            has_nan = has_nan or names_nan(raw)
    except (json_array.NotParted, strict_json.JsonProblem):
        return None
    return LargeArray(heads, mended, more, has_nan)


def names_nan(raw: bytes) -> bool:
    """May there be a number that JSON does not have."""
    return b"NaN" in raw or b"Infinity" in raw
