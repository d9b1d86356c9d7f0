"""Whether a sentence of a summary lifts a rule, or says its opposite, in English, though it has the words of the rule.

Only what says so by its wording is known: "pushing to main is allowed" of "Never push to main". All words are ours.
"""

from __future__ import annotations

import re
from functools import lru_cache

_NOT = (
    r"(?:never|do not|don['’]?t|does not|doesn['’]?t|must not|mustn['’]?t|should not|shouldn['’]?t|cannot|can['’]?t"
    r"|not to)"
)
_FORBIDS = re.compile(rf"\b(?:{_NOT}|avoid|no|forbidden|prohibited|not allowed)\b", re.IGNORECASE)
_FORBIDDEN_VERB = re.compile(rf"\b{_NOT} (?:ever )?(\w+)", re.IGNORECASE)
_DEMANDED_VERB = re.compile(r"\b(?:always|must|should|please|make sure to) (?!not\b|never\b|be\b)(\w+)", re.IGNORECASE)
_ALLOWS = re.compile(
    r"\b(?:is|are|was|were|be|been|now|explicitly) (?:(?:now|explicitly|again) )?(?:allowed|permitted)\b"
    r"|\b(?:user|they|he|she|you|i) (?:(?:has|have|had|later|then|now|since|explicitly) )*"
    r"(?:allow(?:s|ed)?|permit(?:s|ted)?)\b"
    r"|\b(?:allow|permit)(?:s|ed|ted) (?:\w+ing\b|(?:me|us|you|it|the (?:agent|assistant|model)) to\b)"
    r"|\b(?:gave|given|got|has|have) permission to\b|\b(?:free|okay|ok|fine) to\b",
    re.IGNORECASE,
)
_RULE = r"(?:ban|rule|prohibition|restriction|requirement|instruction|constraint)"
_ENDED = r"(?:lifted|withdrawn|withdrew|revoked|cancell?ed|waived|rescinded|dropped|retracted)"
_LIFTS = re.compile(
    r"\b(?:no longer|not|isn['’]t|aren['’]t|doesn['’]t|don['’]t|needn['’]t) (?:be |have been )?(?:forbidden|prohibited"
    r"|banned|required|needed|necessary|mandatory|appl(?:y|ies)|in force|have to|has to|need to|needs to)\b"
    rf"|\b{_RULE}\b[^.;]{{0,80}}? (?:was|is|were|are|has been|have been) {_ENDED}\b"
    rf"|\b{_ENDED} (?:the|his|her|their|that|this|my|your) (?:\w+ )?{_RULE}\b|\bno need to\b|\bneed not\b",
    re.IGNORECASE,
)
# What leaves a rule in force, in whole or in part, or says it in another way.
_HOLDS = re.compile(
    r"\b(?:not|no|never|nothing|none|neither|nor|cannot|\w+n['’]t|without|only|unless|except|until|before|avoid\w*|refrain\w*"
    r"|forb[ia]d\w*|prohibit\w*|bann?\w*|instead|rather|untouched|unchanged|intact|alone|off[- ]limits|protected)\b",
    re.IGNORECASE,
)
_AFFIRMED = re.compile(
    r"\b(?:always|must|should|can|may|will|(?:wants?|wanted|asked|told|decided)(?: \w+){0,2}? to) (?:now |also )?(\w+)",
    re.IGNORECASE,
)


def opposes(said: str, rule: str) -> bool:
    """Does a sentence that has the words of a rule lift it, permit what it forbids, or demand its opposite."""
    if _lifts(said) and not _lifts(rule):
        return True
    if verb := _FORBIDDEN_VERB.search(rule):
        is_affirmed = verb[1].casefold() in _affirmed(said)
        return (is_affirmed or (_allows(said) and not _allows(rule))) and not _HOLDS.search(said)
    if _FORBIDS.search(rule):
        return _allows(said) and not _allows(rule) and not _HOLDS.search(said)
    verb = _DEMANDED_VERB.search(rule)
    if verb is None or re.search(r"\b(?:without|only|unless|except|until|before|but)\b", said, re.IGNORECASE):
        return False
    return re.search(rf"\b{_NOT} (?:ever )?{re.escape(verb[1])}\b", said, re.IGNORECASE) is not None


@lru_cache(maxsize=4_096)  # a summary is held against many rules
def _lifts(sentence: str) -> bool:
    return _LIFTS.search(sentence) is not None


@lru_cache(maxsize=4_096)
def _allows(sentence: str) -> bool:
    return _ALLOWS.search(sentence) is not None


@lru_cache(maxsize=4_096)
def _affirmed(sentence: str) -> frozenset[str]:
    """The verbs that a sentence demands, wants or permits."""
    return frozenset(map(str.casefold, _AFFIRMED.findall(sentence)))
