"""Exports of chats from a web page: one conversation, an array of them, or the ZIP archive in which they are sent; and
the branch of a conversation that is displayed, where messages were edited or answered again."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from guard_core.recordings.reading import wrong_kinds
from guard_core.recordings.reading.bundle import Bundle
from guard_core.recordings.reading.fields import JSON
from guard_core.recordings.reading.source import ByteSource, SourceShape

_HEADS = 20  # conversations looked at, to know whose they are
# The files of an archive that hold conversations: all of them in one, or shared out over numbered ones.
_MEMBER = re.compile(r"(?:.*/)?conversations(?:-\d+)?\.json")


def is_export(source: ByteSource, is_its: Callable[[JSON], bool]) -> bool:
    """Does a source hold conversations, and are the first ones all of that kind?"""
    if source.shape is not SourceShape.ZIP:
        return _is_of(source, is_its)
    with Bundle(source, noting=False) as bundle:
        return bundle.holds(_members(bundle), lambda member: _is_of(member, is_its))


def conversations(source: ByteSource, is_its: Callable[[JSON], bool]) -> Iterator[JSON]:
    """The conversations of an export, in its order. Objects that are none are counted."""
    if source.shape is not SourceShape.ZIP:
        yield from _checked(source, is_its)
        return
    with Bundle(source) as bundle:
        for name in _members(bundle):
            with source.tolerate(), bundle.open(name) as member:
                if member is not None and _is_of(member, is_its):
                    yield from _checked(member, is_its)


def current_path(parents: Mapping[str, str], leaf: str) -> list[str]:
    """The ids from the first message to a leaf. `parents`: the parent of each id."""
    path: dict[str, None] = {}
    while leaf in parents and leaf not in path:
        path[leaf] = None
        leaf = parents[leaf]
    return list(reversed(path))


def newest_leaf(parents: Mapping[str, str], moments: Mapping[str, float | None]) -> str:
    """The newest message without an answer, the last of equals; "" where there is none."""
    answered = set(parents.values())
    leaves = [name for name in reversed(list(parents)) if name not in answered]
    return max(leaves, key=lambda name: moments.get(name) or 0, default="")


def _members(bundle: Bundle) -> list[str]:
    return [name for name in bundle.names() if _MEMBER.fullmatch(name)]


def _is_of(source: ByteSource, is_its: Callable[[JSON], bool]) -> bool:
    value = source.json_head() if source.shape is SourceShape.JSON else None
    heads = value[:_HEADS] if isinstance(value, list) else [value]
    return bool(heads) and all(isinstance(head, dict) and is_its(head) for head in heads)


def _checked(source: ByteSource, is_its: Callable[[JSON], bool]) -> Iterator[JSON]:
    for item in wrong_kinds.objects(source, source.elements(), "conversation"):
        if is_its(item):
            yield item
        else:
            source.notes.skip(f"object with the keys {', '.join(map(ascii, [*item][:4]))} that is no conversation")
