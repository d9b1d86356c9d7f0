"""What a person typed into a search, as words that any text index takes, and where they are in a text."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import NamedTuple

MAX_QUERY = 300  # characters
MAX_TERMS = 8
MAX_TOKENS = 12  # of one term
PREFIX_CHARS = 3  # a word of at least so many characters also finds longer words
LONGEST = 30  # ours: letters of a word that is left out whole where the text around a hit would begin or end in it
AROUND = 100  # characters shown before and after a hit

_WORDS_END, _WORDS_BEGIN = re.compile(rf"\w{{1,{LONGEST}}}\b[^\w\s]*"), re.compile(rf"\b\w{{1,{LONGEST}}}\Z")
_TERM = re.compile(r'"([^"]*)"?|(\S+)')
_TOKEN = re.compile(r"[^\W_]+")


class QueryTerm(NamedTuple):
    """Words that must follow one another. With `prefix` the last may be longer."""

    tokens: tuple[str, ...]
    prefix: bool


class SnippetPiece(NamedTuple):
    """A stretch of a snippet, and whether it is a hit."""

    text: str
    hit: bool


@dataclass(frozen=True)
class Query:
    """All terms must be in one message."""

    text: str
    terms: tuple[QueryTerm, ...]

    def __bool__(self) -> bool:
        return bool(self.terms)

    def phrases(self) -> list[str]:
        """What must be in the words of a text for it to be a hit."""
        return [f" {' '.join(term.tokens)}{'' if term.prefix else ' '}" for term in self.terms]


def parse(text: str) -> Query:
    """Words in any order; "words in quotes" as they are written, whole; nothing else has a meaning of its own."""
    clean = text.replace("\x00", " ").encode("utf-8", "replace").decode()[:MAX_QUERY]
    terms = []
    for term in _TERM.finditer(clean):
        quoted = term[1] is not None
        tokens = tuple(_TOKEN.findall(fold(term[1] if quoted else term[2])))[:MAX_TOKENS]
        if tokens:
            terms.append(QueryTerm(tokens, not quoted and len(tokens[-1]) >= PREFIX_CHARS))
    return Query(" ".join(clean.split()), tuple(dict.fromkeys(terms))[:MAX_TERMS])


def fold(text: str) -> str:
    """Lower case without accents, as both text indexes compare."""
    lower = text.lower()
    if lower.isascii():
        return lower
    return "".join(char for char in unicodedata.normalize("NFD", lower) if not unicodedata.combining(char))


def words_of(text: str) -> str:
    """The words of a text, folded, each with a space before and after it: where `Query.phrases` are looked for."""
    return f" {' '.join(_TOKEN.findall(fold(text)))} "


def snippet(text: str, query: Query, around: int = AROUND) -> list[SnippetPiece]:
    """The text around the first occurrence of a term, with the terms in it marked. Newlines become spaces."""
    pattern = re.compile("|".join(_pattern(term) for term in query.terms), re.IGNORECASE)
    first = pattern.search(text) or pattern.search(_same_length(text))
    start = max(0, first.start() - around) if first else 0
    stop = min(len(text), (first.end() if first else 0) + 2 * around)
    if first and start and (end := _WORDS_END.match(text, start - 1)):
        start = min(end.end(), first.start())
    begin = _WORDS_BEGIN.search(text, max(start, stop - LONGEST), stop)
    if begin and _WORDS_END.match(text, stop):
        stop = max(begin.start(), first.end() if first else 0)
    shown = _same_length(text[start:stop])
    pieces, done = [], 0
    for match in pattern.finditer(shown):
        pieces += [SnippetPiece(text[start + done : start + match.start()], False)]
        pieces += [SnippetPiece(text[start + match.start() : start + match.end()], True)]
        done = match.end()
    pieces.append(SnippetPiece(text[start + done : stop], False))
    whole = [SnippetPiece(re.sub(r"\s+", " ", piece.text), piece.hit) for piece in pieces if piece.text]
    return [
        *([SnippetPiece("… ", False)] if start else []),
        *whole,
        *([SnippetPiece(" …", False)] if stop < len(text) else []),
    ]


def _pattern(term: QueryTerm) -> str:
    """A term as the text index matches it: whole words with only signs between them, the last perhaps a beginning."""
    words = r"[\W_]{1,8}".join(re.escape(token) for token in term.tokens)
    end = r"[^\W_]*" if term.prefix else r"(?![^\W_])"
    return rf"(?<![^\W_]){words}{end}"


def _same_length(text: str) -> str:
    """The text without accents, character for character, so that places in it are places in the text."""
    if text.isascii():
        return text
    return "".join((unicodedata.normalize("NFD", char)[:1] or char) for char in text)
