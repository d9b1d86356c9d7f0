"""What a reader would pass over silently: counts of tokens and tool calls under names that it does not know.

Readers take what they know and pass over the rest, so a format that changes, or a file of an agent whose lines resemble
another's, would be read with fewer figures and no problem. The watch looks at every parsed object before the reader
does. Names that are not known are noted with their first place and their number; what is not a count of tokens, or no
context window, is reported with its place, and taken out, so that no reader makes a figure of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from guard_core.bounds import MAX_TOKENS
from guard_core.recordings.reading import fields, placeholders
from guard_core.recordings.reading.fields import JSON
from guard_core.recordings.reading.known_names import Names
from guard_core.recordings.reading.normalise import ALLOWED, ALLOWED_WINDOW

Problem = Callable[[str, int | None, int | None], None]

_TOKENS = re.compile(r"token|usage", re.IGNORECASE)
_TOOLS = re.compile(r"tool|function|invocation", re.IGNORECASE)
# Numbers beside counts of tokens: prices, times, limits, counts of other things.
_OTHER_NUMBERS = re.compile(
    r"cost|price|time|duration|latency|seconds|_ms$|ms$|rate|request|quer|source|num_|limit|max|window|budget|percent",
    re.IGNORECASE,
)
_OUTPUT = re.compile(r"out|completion|candidate|reason|thought|thinking|total|tool", re.IGNORECASE)
_NAMED = frozenset({"name", "tool", "function_name", "tool_name", "toolName"})
_ARGUMENTS = frozenset({"args", "arguments", "input", "response"})
# What tools are given and give back, which may have any names.
_PAYLOADS = frozenset(
    {"args", "arguments", "parameters", "properties", "input_schema", "inputSchema", "parametersJsonSchema"}
    | {"parameters_json_schema", "tool_input", "toolUseResult"}
)
_RESULTS = frozenset({"functionResponse", "function_response"})  # objects with an id of their own around what came back
_LISTED = 20  # names
_CONTAINERS = frozenset({dict, list})
_SHAPES = 10_000  # remembered; a hostile file can make up one for every object
_COUNTS = "counts of tokens under a name that is not known here:"
_PART = "a tool call or result under a name that is not known here:"


class _Bad(NamedTuple):
    """A count that is none, and what of which object has to go so that no reader makes a figure of it."""

    holder: JSON
    key: str
    reason: str
    name: str
    value: Any


class _Shape(NamedTuple):
    """What to look at in objects of one kind with the same keys under the same key: those that may hold counts or parts
    of tools, the names of counts that are at home in another place, and those of ids."""

    any: bool
    odd: tuple[str, ...]
    counts: tuple[str, ...]
    ids: tuple[str, ...]


@dataclass
class Unknown:
    """A name that the reader does not know: what it looks like, where it was first, and how often."""

    what: str
    name: str
    line: int | None
    places: int = 0

    @property
    def counts_tokens(self) -> bool:
        return self.what == _COUNTS

    def __str__(self) -> str:
        places = "" if self.places == 1 else f", {self.places} places"
        return f"{self.what} {ascii(self.name[:80])[1:-1]}{places}, left out"


class ObjectWatch:
    """Looks at the parsed objects of one file. `names`: those that its reader knows."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._closed = _PAYLOADS | names.passed_over | names.usage  # keys that are not looked into
        # Keys that say nothing of their values.
        self._dull = set(_PAYLOADS | names.passed_over | names.tools | placeholders.KEYS)
        self._kinds = set(names.tools)  # that are known, or have nothing to do with tools
        self._shapes: dict[tuple[str, ...], _Shape] = {}
        self._again: ObjectWatch | None = None  # looks at what is read again
        self._unknown: dict[tuple[str, str], Unknown] = {}
        self.placeholders = 0  # ids that are none
        self.usages = 0  # objects with counts under the names that are known

    @property
    def unknown(self) -> list[Unknown]:
        """The names that are not known, the first ones."""
        return list(self._unknown.values())[:_LISTED]

    @property
    def counts_calls(self) -> bool:
        """Do files of this format count the tokens of calls, and not only of sessions or turns?"""
        return not self._names.totals

    def check(self, value: Any, line: int | None, problem: Problem, raw: bytes = b"") -> bool:
        """Look at one value. `problem(message, line, column)` is called for a count that is none; where it returns,
        the count becomes null, so that no reader makes a figure of it. Ids that are placeholders are taken out. `raw`:
        the value's bytes, in which a count's place is looked for. True where something was changed."""
        spoiled = False
        stack: list[tuple[str, Any]] = [("", value)]
        while stack:
            parent, item = stack.pop()
            if type(item) is list:
                inner = [(parent, each) for each in item if each.__class__ in _CONTAINERS]
                stack += reversed(inner)  # the first comes first, as in a large array
                continue
            if type(item) is not dict:
                continue
            kind = item.get("type", "")
            shape = (parent, kind if type(kind) is str else "", *item)
            suspects = self._shapes.get(shape) or self._shape(shape, item, line)
            if suspects.any and self._look(parent, suspects, item, line, problem, raw):
                spoiled = True
            if parent not in _RESULTS:
                stack += [
                    (key, each)
                    for key, each in item.items()
                    if each.__class__ in _CONTAINERS
                    and key not in self._closed
                    and (key != "input" or type(each) is list)
                ]
        return spoiled

    def spoil(self, value: Any) -> None:
        """Change again what `check` changes in a value that was read anew, and note nothing."""
        self._again = self._again or ObjectWatch(self._names)
        self._again.check(value, None, lambda *_: None)

    def check_flat(self, item: JSON, line: int | None) -> None:
        """Note counts of prompts under names that are not known among the attributes of a span."""
        for key, value in item.items():
            is_new = key not in self._names.beside and _TOKENS.search(key) and not _OUTPUT.search(key)
            if is_new and _holds_counts(key, value):
                self._note(_COUNTS, key, line)

    def _look(self, parent: str, suspects: _Shape, item: JSON, line: int | None, problem: Problem, raw: bytes) -> bool:
        """Look at the keys of an object that may hold something; True where something was changed."""
        spoiled = False
        for key in suspects.ids:
            if type(item[key]) is str and placeholders.is_placeholder(item[key]):
                del item[key]
                self.placeholders += 1
                spoiled = True
        if suspects.counts and sum(_holds_counts(key, item[key]) for key in suspects.counts) > 1:
            self._note(_COUNTS, parent, line)
        if suspects.odd:
            for bad in [bad for key in suspects.odd for bad in self._of_key(parent, key, item, line)]:
                problem(bad.reason, *_place(raw, bad, line))
                bad.holder[bad.key] = None
                spoiled = True
        return spoiled

    def _shape(self, shape: tuple[str, ...], item: JSON, line: int | None) -> _Shape:
        """What to look at in objects with these keys; a part of a tool that is not known is noted each time."""
        parent, kind, *keys = shape
        odd = tuple(key for key in keys if key not in self._dull and not self._is_dull(key))
        counted = parent and parent not in self._names.holders
        counts = tuple(self._names.counts & item.keys()) if counted else ()
        ids = tuple(key for key in keys if key in placeholders.KEYS)
        suspects = _Shape(bool(odd or counts or ids), odd, counts, ids)
        if not self._is_stray(parent, kind, item, line) and len(self._shapes) < _SHAPES:
            self._shapes[shape] = suspects
        return suspects

    def _is_dull(self, key: str) -> bool:
        """Can a key hold neither a count nor a part of a tool, by its name alone; it is remembered, so that it is
        examined once."""
        known = key in self._names.usage or key in self._names.beside or key in self._names.windows
        if known or _TOKENS.search(key) or _TOOLS.search(key):
            return False
        self._dull.add(key)
        return True

    def _is_stray(self, parent: str, kind: str, item: JSON, line: int | None) -> bool:
        """Note a part that looks like a tool's, of a kind or under a key that is not known."""
        if kind not in self._kinds:
            if _TOOLS.search(kind) and not kind.endswith(self._names.tool_endings):
                self._note(_PART, kind, line)
                return True
            self._kinds.add(kind)
        if not parent or parent in self._names.tools:
            return False
        called = not _NAMED.isdisjoint(item) and not _ARGUMENTS.isdisjoint(item)
        if called or "function" in item or kind in self._names.kinds:
            if called or type(item.get("function")) is dict or kind in self._names.kinds:
                self._note(_PART, f"{parent} of the type {kind}" if kind else parent, line)
            return True
        return False

    def _of_key(  # noqa: C901 - one branch for each meaning that a key may have
        self, parent: str, key: str, item: JSON, line: int | None
    ) -> Iterator[_Bad]:
        """Note a key that is not known; yield what is wrong with a count that is."""
        value, path = item[key], f"{parent}.{key}" if parent else key
        if key in self._names.usage:
            if type(value) is dict or type(value) is list:
                for usage in _objects(value):
                    yield from self._of_usage(path, (item, key), usage, line)
            elif value not in (None, "") and key not in self._names.counts and _TOKENS.search(key):
                yield _Bad(item, key, f"{path} is {_shown(value)}, no object of token counts", key, value)
        elif key in self._names.windows:
            yield from _of_window(path, item, key)
        elif key in self._names.beside:
            if not _is_count(value):
                yield _Bad(item, key, f"{path} is {_shown(value)}, no count of tokens: {ALLOWED}", key, value)
            elif self._is_astray(parent, key) and _holds_counts(key, value):
                self._note(_COUNTS, path, line)
        elif _TOKENS.search(key):
            if _holds_counts(key, value):
                self._note(_COUNTS, path, line)
        elif (type(value) is dict and value) or (type(value) is list and any(type(each) is dict for each in value)):
            self._note(_PART, key, line)

    def _is_astray(self, parent: str, key: str) -> bool:
        """Is a count as those of a usage object in an object that is not known to hold any?"""
        return bool(parent) and key in self._names.counts and parent not in self._names.holders

    def _of_usage(self, path: str, outer: tuple[JSON, str], usage: JSON, line: int | None) -> Iterator[_Bad]:
        """The counts of one call. One that is none spoils them all (`outer`), unless it counts the answer alone."""
        counted = False
        for key, value in ((key, value) for key, value in usage.items() if key not in self._names.passed_over):
            if type(value) is int and 0 <= value <= MAX_TOKENS and key in self._names.counts:
                counted = counted or value > 0
            elif key in self._names.usage and (type(value) is dict or type(value) is list):
                for inner in _objects(value):
                    yield from self._of_usage(f"{path}.{key}", outer, inner, line)
            elif key in self._names.windows:
                yield from _of_window(f"{path}.{key}", usage, key)
            elif key in self._names.counts:
                if not (_is_count(value) or (key in self._names.rests and _is_rest(value, usage))):
                    place = (usage, key) if _OUTPUT.search(key) else outer
                    yield _Bad(*place, f"{path}.{key} is {_shown(value)}, no count of tokens: {ALLOWED}", key, value)
            else:
                if _holds_counts(key, value) and _is_of_tokens(f"{path}.{key}", value):
                    self._note(_COUNTS, f"{path}.{key}", line)
                if type(value) is dict and self._names.windows:
                    yield from self._of_windows(f"{path}.{key}", value)
        self.usages += counted

    def _of_windows(self, path: str, item: JSON) -> Iterator[_Bad]:
        """The windows in the counts of several models, each under its name."""
        for key, value in item.items():
            if key in self._names.windows:
                yield from _of_window(f"{path}.{key}", item, key)
            elif type(value) is dict:
                yield from self._of_windows(f"{path}.{key}", value)

    def _note(self, what: str, name: str, line: int | None) -> None:
        self._unknown.setdefault((what, name), Unknown(what, name, line)).places += 1


def _of_window(path: str, item: JSON, key: str) -> Iterator[_Bad]:
    """What is wrong with a context window."""
    if not fields.may_be_window(item[key]):
        yield _Bad(item, key, f"{path} is {_shown(item[key])}, no context window: {ALLOWED_WINDOW}", key, item[key])


def _is_of_tokens(path: str, value: Any) -> bool:
    """Does a name on the way to a value, or in it, speak of tokens: metrics have other numbers, too."""
    return any(map(_TOKENS.search, (path, *(value if type(value) is dict else ()))))


def _objects(value: Any) -> Iterable[JSON]:
    """The object that a value is, or those of an array."""
    return (value,) if type(value) is dict else fields.objects(value)


def _is_count(value: Any) -> bool:
    """A count of tokens, as readers take it, or nothing."""
    if value is None or (type(value) is int and 0 <= value <= MAX_TOKENS):
        return True
    return fields.tokens({"count": value}, "count") is not None


def _is_rest(value: Any, usage: JSON) -> bool:
    """Is it less than nothing, and no less than the cached tokens beside it make good?"""
    if type(value) is not int:
        return False
    counts = (count for key, count in usage.items() if "cache" in key)
    parts = (part for count in counts for part in (count.values() if type(count) is dict else (count,)))
    return -sum(part for part in parts if type(part) is int) <= value < 0


def _holds_counts(key: str, value: Any) -> bool:
    """Is it a count of tokens that would be lost, or an object of such?"""
    if type(value) is dict:
        return any(_holds_counts(name, each) for name, each in value.items() if type(each) is not dict)
    return type(value) is int and value > 0 and _OTHER_NUMBERS.search(key) is None


def _shown(value: Any) -> str:
    shown = msgspec.json.encode(value).decode()
    return ascii(shown if len(shown) <= 40 else shown[:40] + "…")[1:-1]


def _place(raw: bytes, bad: _Bad, line: int | None) -> tuple[int | None, int | None]:
    """Line and column of a bad value, as far as they can be found in the bytes of its line or of the whole value."""
    value = re.escape(msgspec.json.encode(bad.value))
    match = re.search(b'"' + re.escape(bad.name.encode("utf-8", "replace")) + rb'"\s*:\s*' + value, raw)
    if match is None:
        return line, None
    start = raw.rfind(b"\n", 0, match.start()) + 1
    column = len(raw[start : match.start()].decode("utf-8", "replace")) + 1
    return line or raw.count(b"\n", 0, match.start()) + 1, column
