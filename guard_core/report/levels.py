"""Content levels: how much of the session's own words a report holds.

numbers   no word of the session but the names of its agent, format and models
names     and its title and the names of its tools
text      and what users asked, instructions, and the summaries
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from guard_core.errors import SettingError
from guard_core.report.document import Claim, Report, Side

NUMBERS, NAMES, TEXT = LEVELS = ("numbers", "names", "text")
WITHHELD = "…"
# Numbers of claims whose values are words of the engine. The words of any other are taken to be the session's.
ENGINE_WORDS = frozenset({"peak_source", "agent", "formula", "relation", "counter", "setting", "source", "policy"})
_QUOTED = re.compile(r'"[\s\S]*"')
_GONE = f'"{WITHHELD}"'


def check_level(level: str) -> str:
    """The level, if it is one. Raises SettingError."""
    if level not in LEVELS:
        raise SettingError(f"a level is one of {', '.join(LEVELS)}, not {level[:40]!r}")
    return level


def at_level(report: Report, level: str) -> Report:
    """A report without the words that a level withholds. What a level does not name is left out."""
    check_level(level)
    session = report.session
    if level == NUMBERS:
        session = msgspec.structs.replace(session, title="", tools=())
    sides = report.sides if level == TEXT else tuple(map(_without_words, report.sides))
    return msgspec.structs.replace(report, level=level, session=session, sides=sides)


def _without_words(side: Side) -> Side:
    replace = msgspec.structs.replace
    facts = replace(side.facts, listed=tuple(replace(fact, text="") for fact in side.facts.listed))
    compactions = tuple(
        replace(item, inserted=tuple(replace(message, text="") for message in item.inserted))
        for item in side.compactions
    )
    return replace(
        side,
        verdict=_claim(side.verdict),
        findings=tuple(map(_claim, side.findings)),
        facts=facts,
        compactions=compactions,
    )


def _claim(claim: Claim) -> Claim:
    words = [value for name, value in claim.numbers.items() if name not in ENGINE_WORDS and _has_words(value)]
    if not words:
        return claim
    numbers = {name: WITHHELD if value in words else value for name, value in claim.numbers.items()}
    return msgspec.structs.replace(claim, numbers=numbers, sentence=_sentence(claim.sentence, words))


def _sentence(sentence: str, words: list[Any]) -> str:
    """A sentence without its quotations: each of these words or the beginning of it, and, where anything else stands
    in quotation marks, all between the first and the last of those."""
    for text in words:
        if text and isinstance(text, str):
            beginnings = (text[:size] for size in range(len(text), 0, -1))
            quoted = next((words for words in beginnings if f'"{words}' in sentence), None)
            pattern = _QUOTED if quoted is None else re.compile(f'"{re.escape(quoted)}( ?…)?"')
            sentence = pattern.sub(_GONE, sentence)
    return _QUOTED.sub(_GONE, sentence) if '"' in sentence.replace(_GONE, "") else sentence


def _has_words(value: Any) -> bool:
    """Is a value text, or does it hold any."""
    if isinstance(value, dict):
        return any(map(_has_words, value.values()))
    return isinstance(value, str) or (isinstance(value, list | tuple) and any(map(_has_words, value)))
