"""Tokenizer counts: tiktoken over the text, offline. They price text of models whose tokenizer is public, and are a
second opinion next to the provider's own figures.

The two vocabularies are package data, loaded by path when first needed and checked against their SHA-256; the network
is never asked.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from guard_core.errors import TokenizerUnavailable, UnknownName
from guard_core.events import Event, part_text

if TYPE_CHECKING:
    import tiktoken
    from numpy.typing import NDArray

VOCABULARIES = Path(__file__).with_name("vocab")
ENCODINGS = ("o200k_base", "cl100k_base")
# tiktoken 0.14 panics on a million spaces (its pattern matcher overflows its stack) and needs more than linear time
# for very long unbroken words; runs are cut here. Ordinary words, numbers and indentation are shorter.
LONGEST_RUN = 2_000
# Sought only where a run begins: at each of its characters would take LONGEST_RUN times as long.
_RUN = re.compile(rf"(?<!\S)\S{{{LONGEST_RUN},}}|(?<!\s)\s{{{LONGEST_RUN},}}")


class _Encoding(msgspec.Struct, frozen=True):
    file: str
    sha256: str
    pattern: str
    special_tokens: dict[str, int]


def count(texts: Iterable[str], encoding: str = "o200k_base") -> list[int]:
    """Tokens of each text. A text that occurs several times is counted once.

    Special tokens in a text count as the characters they are written with. A run of more than LONGEST_RUN characters
    without whitespace (or of nothing but whitespace) is counted in pieces of that length, which can add a token per
    piece: a text of one letter a million times is bounded in time and right to one in two thousand characters.

    Errors: UnknownName for an encoding that is not shipped, TokenizerUnavailable where its files cannot be used.
    """
    tokenizer = load(encoding)
    known: dict[str, int] = {}
    counts = []
    for text in texts:
        if text not in known:
            known[text] = sum(len(tokenizer.encode_ordinary(piece)) for piece in pieces(text))
        counts.append(known[text])
    return counts


def count_events(events: Sequence[Event], encoding: str = "o200k_base") -> NDArray[np.int64]:
    """Tokens of the text of each event, its parts counted one by one: the weights that attribution takes."""
    owners = [index for index, event in enumerate(events) for _ in event.parts]
    counts = count((part_text(part) for event in events for part in event.parts), encoding)
    totals = np.zeros(len(events), dtype=np.int64)
    np.add.at(totals, owners, counts)
    return totals


def pieces(text: str) -> Iterator[str]:
    """The text cut so that no run of one sort (whitespace or not) is longer than LONGEST_RUN."""
    start = 0
    for match in _RUN.finditer(text):
        for end in range(match.start() + LONGEST_RUN, match.end() + 1, LONGEST_RUN):
            yield text[start:end]
            start = end
    if start < len(text):
        yield text[start:]


@cache
def load(encoding: str, folder: Path = VOCABULARIES) -> tiktoken.Encoding:
    """The tokenizer of the vocabularies in a folder, read once per process."""
    if encoding not in ENCODINGS:
        raise UnknownName(f"there is no encoding {encoding!r}; known are {', '.join(ENCODINGS)}")
    try:
        import tiktoken  # late: it takes time to load
    except ImportError as error:
        raise TokenizerUnavailable("the package tiktoken is not installed, so tokens cannot be counted") from error
    known = _encoding(encoding, folder)
    loaded = tiktoken.Encoding(
        encoding, pat_str=known.pattern, mergeable_ranks=_ranks(known, folder), special_tokens=known.special_tokens
    )
    loaded._mergeable_ranks = {}  # counting uses the tables of the compiled part; these are as large, and for pickling
    return loaded


def _encoding(name: str, folder: Path) -> _Encoding:
    """The entry of a vocabulary in the list beside it. Raises TokenizerUnavailable."""
    data = _read(folder / "encodings.json")
    try:
        return msgspec.json.decode(data, type=dict[str, _Encoding])[name]
    except (msgspec.DecodeError, KeyError) as error:
        raise TokenizerUnavailable("the list of vocabularies, encodings.json, is damaged: install again") from error


def _ranks(known: _Encoding, folder: Path) -> dict[bytes, int]:
    data = _read(folder / known.file)
    if hashlib.sha256(data).hexdigest() != known.sha256:
        raise TokenizerUnavailable(f"the vocabulary {known.file} is damaged (its checksum differs): install again")
    try:
        rows = (line.split() for line in BytesIO(data) if line.strip())  # 200,000 lines: not all at once
        return {base64.b64decode(token): int(rank) for token, rank in rows}
    except (ValueError, binascii.Error) as error:
        raise TokenizerUnavailable(f"the vocabulary {known.file} cannot be read: install again") from error


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise TokenizerUnavailable(f"the vocabulary file {file.name} is missing: install again") from error
