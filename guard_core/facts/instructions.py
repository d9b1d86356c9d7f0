"""Sentences of users and of the system prompt that say what to do: rules and requests, by their wording alone."""

from __future__ import annotations

import re
from collections.abc import Iterator

from guard_core.events import Event, Part, TextPart
from guard_core.facts.texts import split_sentences

RULE, REQUEST = "rule", "request"
LONGEST_RULE = 400  # characters of a sentence that is looked at; longer ones are data
MOST_RULE_CHARS = 200_000  # of one message that are looked at
# A sentence states a rule if it has one of these words: ours. It finds rules that are worded as rules, and no others.
_RULE = re.compile(
    r"\b(?:must(?:n['’]?t)?|never|always|do not|don['’]?t|should(?:n['’]?t)?|shall|may not|cannot|can['’]?t|make sure"
    r"|ensure|only|avoid|required?|forbidden|prohibited|at most|at least|instead of|without|unless|prefer)\b"
    "|必须|必須|务必|務必|不要|不得|不能|不可|禁止|请勿|請勿|切勿|绝不|絕不|始终|始終|总是|只能|只准|不许|"
    "必ず|絶対に|しないで|てはいけ|てはなら|してください|のみ|반드시|절대|하지 마|지 마세요|금지|항상|해야",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r"\w+://\S+")
# A sentence of a user asks for something if it begins with one of these words: ours.
_REQUEST = re.compile(
    r"(?:[-*•]\s+(?:\[[ x]?\]\s+)?|\d+[.)]\s+)?"
    r"(?:(?:ok(?:ay)?|please|pls|then|also|and|now|next|so|yes|no|first|finally)[,:]?\s+)*"
    r"(?:let['’]?s|add|allow|answer|apply|ask|build|change|check|clean|compare|continue|convert|copy|create|debug|delete"
    r"|describe|disable|document|drop|enable|end|explain|extend|extract|find|fix|follow|format|generate|give|go|handle"
    r"|help|implement|improve|include|install|investigate|keep|leave|limit|list|look|make|merge|migrate|modify|move|name"
    r"|open|optimi[sz]e|perform|pick|plan|print|put|read|rebase|refactor|remember|remove|rename|replace|reply|report"
    r"|respond|restore|return|review|rewrite|run|search|send|set|show|start|stop|summari[sz]e|switch|test|translate|try|update"
    r"|use|verify|work|wrap|write|(?:can|could|would|will) you|i(?:['’]d| would) like|i want|i need"
    r"|we (?:need|want|should))\b"
    "|请|請|帮我|幫我",
    re.IGNORECASE,
)


_TAG = re.compile(
    r",\s*(?:ok|okay|right|alright|please|yes|no|clear|understood|agreed|got it|will you|would you)\s*[?？]+$",
    re.IGNORECASE,
)


def sentences(parts: tuple[Part, ...]) -> Iterator[str]:
    """The sentences and lines of the texts of a message."""
    for part in parts:
        if isinstance(part, TextPart):
            yield from split_sentences(part.text[:MOST_RULE_CHARS])


def kind_of(sentence: str, *, of_user: bool = False) -> str:
    """RULE, or REQUEST of a user's own words; "" for any other sentence. A question states no rule, but
    for a tag such as ", ok?", and an address has no words."""
    words = sentence.strip()
    if len(sentence) > LONGEST_RULE:
        return ""
    if not _TAG.sub("", words).endswith(("?", "？")) and _RULE.search(_ADDRESS.sub("", words)):
        return RULE
    request = _REQUEST.match(words) if of_user else None
    is_code = request is not None and (words[request.end() :].startswith("(") or words.endswith(("{", ";")))
    return REQUEST if request and not is_code else ""


def rule_sentences(event: Event) -> int:
    """How many sentences of a message state a rule: they have a word such as "must", "never" or "only"."""
    return sum(kind_of(sentence) == RULE for sentence in sentences(event.parts))
