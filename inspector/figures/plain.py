"""A figure as plain values that are JSON as plotly.js reads it: arrays of numbers are typed arrays in base64.

Plotly's own Figure writes the same. It checks every name and value, which the tests have it do; in a server its tables
take 15 MB and a tenth of a second.
"""

from __future__ import annotations

import base64
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Of numpy's types the names that plotly.js has for them; it has none for integers of eight bytes.
_TYPES = {"int8": "i1", "int16": "i2", "int32": "i4", "float32": "f4", "float64": "f8"}
_INTEGERS = (np.int8, np.int16, np.int32)


def plain_figure(value: Any) -> Any:
    """A figure or a part of it as dictionaries, lists, texts, numbers and None, which NaN outside of arrays becomes."""
    match value:
        case dict():
            return {key: plain_figure(item) for key, item in value.items()}
        case list() | tuple():
            return [plain_figure(item) for item in value]
        case np.ndarray():
            return _array(value)
        case np.generic():
            return plain_figure(value.item())
        case float() if not math.isfinite(value):
            return None
    return value


def _array(values: NDArray[Any]) -> Any:
    if values.dtype == np.int64 and values.size:
        low, high = int(values.min()), int(values.max())
        fitting = (kind for kind in _INTEGERS if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max)
        values = values.astype(next(fitting, np.int64))
    name = _TYPES.get(values.dtype.name)
    if name is None or not values.size:
        return plain_figure(values.tolist())
    data = np.ascontiguousarray(values, values.dtype.newbyteorder("<"))
    return {"dtype": name, "bdata": base64.b64encode(data.tobytes()).decode()}
