"""Values of a kind that no program writes in their place: reported, so that nothing is left out silently."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from guard_core.recordings.reading import fields
from guard_core.recordings.reading.fields import JSON
from guard_core.recordings.reading.normalise import ALLOWED, ALLOWED_WINDOW
from guard_core.recordings.reading.source import ByteSource

_KINDS = {bool: "a boolean", int: "a number", float: "a number", str: "text", list: "an array", dict: "an object"}


def kind_of(value: Any) -> str:
    """What a value is, in words."""
    return _KINDS.get(type(value), "null")


def objects(source: ByteSource, value: Any, what: str, line: int | None = None) -> Iterator[JSON]:
    """The objects of an array, or of the elements of one; whatever else is in it is reported and left out."""
    for place, item in enumerate(value if isinstance(value, list | Iterator) else (), start=1):
        if isinstance(item, dict):
            yield item
        else:
            source.leave_out(f"{what} {place} is {kind_of(item)} and no object, left out", line)


def check_words(source: ByteSource, message: JSON, key: str, what: str, line: int | None = None) -> None:
    """Report content that is neither text nor blocks."""
    if not isinstance(message.get(key), str | list | dict | None):
        source.leave_out(f"{what} whose {key} is {kind_of(message[key])}, left out", line)


def check_window(source: ByteSource, value: JSON, key: str, line: int | None = None) -> None:
    """Report a context window that no model has, in a place that the watch does not see."""
    if not fields.may_be_window(value.get(key)):
        source.problem(f"{key} is {ascii(value[key])[:40]}, no context window: {ALLOWED_WINDOW}", line)


def check_counts(source: ByteSource, usage: JSON, names: Iterable[str], what: str, line: int | None = None) -> None:
    """Report counts of tokens that are none."""
    for name in names:
        if usage.get(name) is not None and fields.tokens(usage, name) is None:
            source.problem(f"{name} of {what} is {ascii(usage[name])[:40]}, no count of tokens: {ALLOWED}", line)
