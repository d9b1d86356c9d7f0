"""Replaces what should not be shared by counted stubs, the same value by the same stub wherever it is."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from guard_core.redaction.finding import (
    ACCOUNT,
    ENCODED,
    ENCODED_TEXT,
    PERSONAL,
    Match,
    OwnPattern,
    _without_overlaps,
    decoded,
    find,
)

LEAST_KNOWN = 8  # characters of a value that is looked for everywhere, without the words beside it
MOST_KNOWN = 500  # such values
CONTEXT = 40  # characters on either side that a review shows
SHOWN = 6  # characters of a secret that a review shows
_CUT = re.compile(r"\s?…|\"|\n\[|\Z")  # what follows text that was cut


class RedactionEntry(msgspec.Struct, frozen=True):
    """One value for a review: `key` identifies it without giving it away, `count` is how often it was found, `shown` is
    the value shortened, `before` and `after` its surroundings where it was found first, themselves redacted."""

    key: str
    kind: str
    number: int
    count: int
    shown: str
    before: str
    after: str


class Redactor:
    """Finds and replaces. `own` are patterns besides the known kinds; `kept` are keys of values, and kinds, that are
    not replaced. What it has learnt from one text it finds in every later one."""

    def __init__(self, own: Sequence[OwnPattern] = (), kept: Collection[str] = ()) -> None:
        self.own, self.kept = tuple(own), frozenset(kept)
        self._numbers: dict[tuple[str, str], int] = {}  # of kind and value
        self._first: dict[tuple[str, str], tuple[str, str]] = {}
        self._values: Counter[str] = Counter()  # how many different ones of each kind
        self._known: dict[str, tuple[str, str]] = {}  # values by themselves
        self._cut_off: dict[str, tuple[str, str]] = {}  # their beginnings, where a quotation ended within one
        self.counts: Counter[tuple[str, str]] = Counter()

    def learn(self, text: str) -> None:
        """Remember the values in a text, so that they are found without the words beside them."""
        for match in find(text, self.own):
            self._noted(text, match)

    def remember(self, values: Iterable[tuple[str, str]]) -> None:
        """Know these values, each with its kind, as if they had been learnt here."""
        for kind, value in values:
            self._noted(value, Match(kind, 0, len(value)))

    @property
    def known(self) -> tuple[tuple[str, str], ...]:
        """All values that were learnt, in their order."""
        return tuple(self._numbers)

    def text(self, text: str) -> str:
        """A text with stubs in the places of what was found."""
        if not isinstance(text, str) or not text:
            return text
        return self._replaced(text, find(text, self.own))

    def value(self, value: Any) -> Any:
        """A JSON value with every text in it redacted, keys of objects, too."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.text(str(key)): self._beside(str(key), item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(item) for item in value]
        return value

    @property
    def hidden(self) -> dict[str, int]:
        """How many places of each kind were replaced."""
        totals: Counter[str] = Counter()
        for (kind, value), count in self.counts.items():
            if not self.is_kept(kind, value):
                totals[kind] += count
        return dict(sorted(totals.items()))

    @property
    def entries(self) -> list[RedactionEntry]:
        """What was found in the texts that were redacted, kept values, too: by kind, then by number."""
        return [
            RedactionEntry(
                key_of(kind, value),
                kind,
                self._numbers[kind, value],
                count,
                shortened(kind, value),
                *self._first.get((kind, value), ("", "")),
            )
            for (kind, value), count in sorted(
                self.counts.items(), key=lambda item: (item[0][0], self._numbers[item[0]])
            )
        ]

    def is_kept(self, kind: str, value: str) -> bool:
        """Did the user decide that a value is not a secret."""
        return kind in self.kept or key_of(kind, value) in self.kept

    def _beside(self, key: str, value: Any) -> Any:
        """The value of a key: text beside a name like "password" may be a secret by that name alone."""
        if not isinstance(value, str):
            return self.value(value)
        lead = f"{key}="
        matches = [item for item in find(lead + value, self.own) if item.stop > len(lead)]
        moved = [item._replace(start=max(0, item.start - len(lead)), stop=item.stop - len(lead)) for item in matches]
        return self._replaced(value, _without_overlaps([*moved, *find(value, self.own)]))

    def _replaced(self, text: str, hits: list[Match]) -> str:
        matches = _without_overlaps([*hits, *self._known_in(text)])
        if not matches:
            return text
        pieces, place = [], 0
        for match in matches:
            value = self._noted(text, match)
            self.counts[value] += 1
            stub = (
                text[match.start : match.stop]
                if self.is_kept(*value)
                else f"[redacted {value[0]} {self._numbers[value]}]"
            )
            pieces += [text[place : match.start], stub]
            self._note_context(value, text, match, matches)
            place = match.stop
        return "".join([*pieces, text[place:]])

    def _noted(self, text: str, match: Match) -> tuple[str, str]:
        """Kind and value of a match. One that was found by itself, or cut off, is the value that is known."""
        matched = text[match.start : match.stop]
        value = self._known.get(matched) or self._cut_off.get(matched) or (match.kind, matched)
        if value not in self._numbers:
            self._values[value[0]] += 1
            self._numbers[value] = self._values[value[0]]
        is_telling = len(matched) >= LEAST_KNOWN and match.kind not in (ACCOUNT, ENCODED)
        if is_telling and matched not in self._cut_off and len(self._known) < MOST_KNOWN:
            self._known.setdefault(matched, value)
        return value

    def _note_context(self, value: tuple[str, str], text: str, match: Match, matches: list[Match]) -> None:
        if value in self._first:
            return
        place = matches.index(match)
        low = max(match.start - CONTEXT, matches[place - 1].stop if place else 0)
        high = min(match.stop + CONTEXT, matches[place + 1].start if place + 1 < len(matches) else len(text))
        self._first[value] = text[low : match.start], text[match.stop : high]

    def _known_in(self, text: str) -> Iterator[Match]:
        """Values learnt before, whole or cut off at the end of a quotation; and base64 of a text that has one."""
        for name, value in list(self._known.items()):
            begin, place = name[:LEAST_KNOWN], text.find(name[:LEAST_KNOWN])
            while place >= 0:
                stop = place + len(begin)
                while stop < len(text) and stop - place < len(name) and text[stop] == name[stop - place]:
                    stop += 1
                if stop - place < len(name) and _CUT.match(text, stop):
                    self._cut_off.setdefault(text[place:stop], value)
                    yield Match(value[0], place, stop)
                elif stop - place == len(name):
                    yield Match(value[0], place, stop)
                place = text.find(begin, stop)
        if self._known:
            for hit in ENCODED_TEXT.finditer(text):
                if (plain := decoded(hit[0])) and any(name in plain for name in self._known):
                    yield Match(ENCODED, *hit.span())


def key_of(kind: str, value: str) -> str:
    """What a choice of the user names a value by: no value follows from it that is not known."""
    return hashlib.sha256(f"{kind}\0{value}".encode("utf-8", "surrogatepass")).hexdigest()[:32]


def shortened(kind: str, value: str) -> str:
    """A value as a review shows it: personal data whole, of a secret its beginning and its length."""
    if kind in PERSONAL:
        return value[:80]
    return f"{value[:SHOWN]}… ({len(value):,} characters)"
