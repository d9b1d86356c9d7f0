"""Sentences of users and of the system prompt that say what to do: rules and requests, by their wording alone."""

from __future__ import annotations

import re
from collections.abc import Iterator

from guard_core.events import Event, Part, TextPart
from guard_core.facts import wordings
from guard_core.facts.reports import reports
from guard_core.facts.texts import content_words, has_unspaced, split_sentences
from guard_core.own_words import own_parts

RULE, REQUEST = "rule", "request"
LEAST_WORDS = 2  # content words of an instruction: "do it" says nothing by itself; a pair of ideographs is a word
LONGEST_RULE = 400  # characters of a sentence that is looked at; longer ones are data
MOST_RULE_CHARS = 200_000  # of one message that are looked at
# A sentence states a rule if it has one of these words: ours. It finds rules that are worded as rules, and no others:
# what things require, "these boards require a query", says how they are.
_ENGLISH_RULE = re.compile(
    r"\b(?:must(?:n['’]?t)?|never|always|do not|don['’]?t|should(?:n['’]?t)?|shall|may not|cannot|can['’]?t|make sure"
    r"|ensure|only|avoid|required|forbidden|prohibited|at most|at least|instead of|without|unless|prefer)\b"
    r"|^\W*(?:please )?require\b(?!\s*[('\"])|\b(?:i|we|you) require\b",
    re.IGNORECASE,
)
_EASTERN_RULE = re.compile(
    "必须|必須|务必|務必|不要|不得|不能|不可|禁止|请勿|請勿|切勿|绝不|絕不|始终|始終|总是|只能|只准|不许|"
    "必ず|絶対に|しないで|てはいけ|てはなら|してください|のみ|반드시|절대|하지 마|지 마세요|금지|항상|해야"
)
# English rules are addressed to whoever works if they have one of the first words, or one of the others at the
# beginning or behind "you" or "we": "the server can't start" and "it only works here" say how things are. Ours.
_DIRECTING = re.compile(
    r"\b(?:must(?:n['’]?t)?|should(?:n['’]?t)?|shall|may not|(?:is|are) required|forbidden|prohibited|make sure"
    r"|ensure)\b|^\W*required:? (?!=)|\b(?:you|we) (?:can(?:not|['’]?t)|never|always|only)\b"
    r"|^(?:\W|(?:and|but|or|so|also|then|please|pls|rule|note|important|remember)\b)*"
    r"(?:never|always|do not|don['’]?t|only|avoid|prefer|at most|at least|without|instead of|unless)\b",
    re.IGNORECASE,
)
# What begins as such a rule and continues as a statement: with a subject and a verb that no rule has, "only three of
# them were left", or with a circumstance and a verb before its subject, "never before has it rained so much"; behind
# "without" and the like in its main clause. Ours.
_STATEMENT = re.compile(
    r"\W*(?:(?:(?:and|but|or|so|also|then)\b\W*)*(?:only|never|always|at least|at most)\s+(?:(?:in|on|at|after|before"
    r"|once|since|when|during)\b(?P<circumstance>[^,;:]*)|(?:a|an|the|this|these|those|some|few|half|most|one|two|three"
    r"|four|five|six|seven|eight|nine|ten|eleven|twelve|he|she|it|they|\d[\d.,]*)\b(?P<about>[^,;:]*)"
    r"|(?P<verb>has|had|is|are|was|were|did)\b)"
    r"|(?:without|instead of|unless)\b(?P<main>.*))",
    re.IGNORECASE,
)
_FINITE = re.compile(
    r"\b(?:is|are|was|were|has|have|had|does|did|would|they|he|she|(?!embed)[a-z]{2,}(?<!e)ed)\b", re.IGNORECASE
)
# A participle before its noun, "the generated files", is no verb of a statement.
_ATTRIBUTE = re.compile(
    r"(?:^|\b(?:an?|the|of|in|on|at|for|with))\s+[a-z]+ed\s+"
    r"(?=[a-z])(?!(?:an?|the|this|that|his|her|its|their|it|in|on|at|by|for|from|to|with|of|and|or)\b)",
    re.IGNORECASE,
)
_INVERTED = re.compile(
    r"^\s*(?:has|have|had|is|are|was|were|did|does)\b"
    r"|\b(?:had|was|were|did)\s+(?:an?|the|this|that|these|those|so|any|some|many|most|he|she|it|they|his|her|its|their)\b",
    re.IGNORECASE,
)
_RELATIVE = re.compile(
    r"\b(?:that|which|who|whose|where|when|if|while|until|because|as|what|how|than|you|we|i)\b.*", re.I
)
_DEMANDS = re.compile(
    r"\b(?:must|should|shall|please|required|forbidden|prohibited|allowed|permitted|(?:is|are) (?:to|needed)"
    r"|ha(?:s|ve) to|needs? to|(?:may|can)(?: ?not)? be|never|always|avoid|do not|don['’]?t)\b",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r"\w+://\S+")
# Lines of programs that have such words: times, errors and warnings with a colon, tracebacks, assertions. Ours.
_OUTPUT = re.compile(
    r"[^\w\s]*(?:\d{4}-\d\d-\d\d|\d\d:\d\d:\d\d|[\w.]+(?:Error|Exception|Warning):|Error:|(?:error|warning|fatal)(?:\[\w+\])?:"
    r"|npm (?:ERR!|WARN)|Traceback |E {2,}|assert )"
)
# What these words say of how things are, not of what to do: left out before they are looked for. Ours.
_STATED = re.compile(
    r"\bi (?:can(?:no|['’]?)t|don['’]?t (?:get|have|know|remember|see|think|understand)|always|never|only)\b"
    r"|\bwe (?:never|always) (?:had|have|saw|see|got|get)\b"
    r"|\bthere(?:['’]s| is| are| was| were) (?:at least|at most|only|always)\b"
    r"|\b(?:it|that|this) should (?:now )?(?:be (?:fine|ok(?:ay)?|good)|work)\b"
    r"|\byou should (?:now )?(?:get|see)\b"
    r"|\bonly (?=(?:(?:the|one|an?|some|\d+)(?: \w+){1,3} )?"
    r"(?:appear(?:s|ed)|fail(?:s|ed)|happen(?:s|ed)|takes?|took)\b)"
    r"|\bwithout (?:an? )?(?:error|problem|warning)s?\b",
    re.IGNORECASE,
)
# A word that begins a request and what follows it in a report: "Test passed", "Check: ok", "Read timeout=30". Ours.
_REPORT = re.compile(
    r"\s*[:=]|\s+(?:complete[ds]?|fail(?:s|ed|ure)?|finished|ok|passed|succeeded|timed out|timeout)\b", re.I
)
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


# Requests that say how to work, not what to do: ours.
_MANNER = re.compile(
    r"\W*(?:please |pls )?(?:use|keep|follow|format|answer|respond|reply|name|limit|remember|ask|work|stop)\b"
    r"|.*\b(?:niemals|nie|immer|stets|jamais|toujours|nunca|siempre|sempre)\b",
    re.IGNORECASE,
)
# Words that say that a rule holds from then on; English ones where they are addressed to somebody, for "it never works"
# is a report. Ours.
_UNIVERSAL = re.compile(
    r"(?:^\W*|[,;:.]\s*|\b(?:and|but|or|you|we|must|should|shall|please|then|to)\s+)(?:never|always)\b"
    r"|\b(?<!we )must(?:n['’]?t)?\b|\b(?:from now on|in (?:the )?future|every time|each time|under no circumstances)\b"
    r"|必须|必須|务必|務必|永远不|永遠不|绝不|絕不|必ず|絶対に|절대|반드시",
    re.IGNORECASE,
)
_UNIVERSAL_ELSEWHERE = re.compile(
    r"\b(?:niemals|nie|immer|stets|ab jetzt|in zukunft|muss(?:t)?|darf(?:st)?|jamais|toujours|désormais|nunca|jamás"
    r"|siempre|sempre|nooit|altijd|nigdy|zawsze|никогда|всегда)\b",
    re.IGNORECASE,
)
# Guesses and turns of speech, which have the words of a rule, and what a rule has that holds for the moment. Ours.
_GUESS = re.compile(
    r"\b(?:must have|(?:it|this|that|there|i) must be|never mind|don['’]?t (?:worry|you|forget)"
    r"|should be (?:enough|able)|i (?:think|guess|believe|suppose|wonder)|seems?|looks? like)\b",
    re.IGNORECASE,
)
_PASSING = re.compile(r"\b(?:yet|for now|right now|this time|today|vorerst|noch nicht|diesmal)\b", re.IGNORECASE)
# How a rule begins that names no task, and whom one is addressed to.
_ADDRESSED = re.compile(
    r"^\W*(?:(?:and|but|or|so|also|then|please|pls|rule|note|important|remember)\b\W*)*"
    r"(?:never|always|do not|don['’]?t|only|avoid|prefer|make sure|ensure|at most|at least|no more than)\b"
    r"|\b(?:you|we|nobody|everybody|everyone|agents?) (?:must|should|shall|may|can(?:not|['’]?t)|never|always|only)\b"
    r"|\bmust(?:n['’]?t)?\b|\b(?:forbidden|prohibited|(?:is|are) required)\b|[,;:] (?:never|always|do not|don['’]?t)\b",
    re.IGNORECASE,
)
# A clause that begins so says how things are, in the languages of `wordings`.
_SUBORDINATE = re.compile(r"\W*(?:dass|weil|wenn|obwohl|denn|que|qui|parce|porque|perché|omdat|ponieważ|что)\b", re.I)


# A block of Markdown that is fenced as code of a language; prose and blocks without a language may be instructions.
_PROGRAM = re.compile(
    r"^[ \t]*```[ \t]*(?!(?:md|markdown|text|txt|plain|plaintext)\b)[\w+#.-]+[^\n]*\n.*?(?:^[ \t]*```[ \t]*$|\Z)",
    re.MULTILINE | re.DOTALL | re.IGNORECASE,
)
_TAG = re.compile(
    r",\s*(?:ok|okay|right|alright|please|yes|no|clear|understood|agreed|got it|will you|would you)\s*[?？]+$",
    re.IGNORECASE,
)


def sentences(parts: tuple[Part, ...]) -> Iterator[str]:
    """The sentences and lines of the texts of a message, without the programs in it: their comments and messages say
    nothing to the model."""
    for part in parts:
        if isinstance(part, TextPart):
            yield from split_sentences(_PROGRAM.sub("\n", part.text[:MOST_RULE_CHARS]))


def kind_of(sentence: str, *, of_user: bool = False) -> str:
    """RULE, or REQUEST of a user's own words; "" for any other sentence. A question states no rule, but
    for a tag such as ", ok?", an address has no words, and what a program prints, or how things are, is no rule."""
    words = sentence.strip()
    if len(sentence) > LONGEST_RULE or _OUTPUT.match(words):
        return ""
    if not _TAG.sub("", words).endswith(("?", "？", "؟")) and _states_rule(_ADDRESS.sub("", words)):
        return RULE
    if not of_user or words.endswith(("{", ";")):
        return ""
    return REQUEST if _asks(words) or wordings.asks(words) else ""


def directs(sentence: str) -> bool:
    """Is a rule addressed to whoever works, "never push" or "keep it at most 80 wide": that something always fails, or
    only works somewhere, has the words of a rule and is none. Of other languages `kind_of` knows it."""
    words = sentence.strip()
    if kind_of(words) != RULE or _SUBORDINATE.match(words) or _GUESS.search(words):
        return False
    if _ENGLISH_RULE.search(_STATED.sub("", words)) is None or _EASTERN_RULE.search(words) or _asks(words):
        return True
    return (_DIRECTING.search(words) is not None and not _happens(words)) or wordings.states_rule(words)


def _happens(words: str) -> bool:
    """Does a sentence begin as a rule does, and say how things are or were."""
    stated = _STATEMENT.match(words)
    if stated is None or stated["verb"]:
        return stated is not None
    if (circumstance := stated["circumstance"]) is not None:
        return _INVERTED.search(circumstance) is not None and _DEMANDS.search(circumstance) is None
    clause = stated["about"] or (stated["main"] or "").partition(",")[2]
    main = _RELATIVE.sub("", _ATTRIBUTE.sub(" ", clause))
    return _FINITE.search(main) is not None and _DEMANDS.search(clause) is None


def outlasts_its_turn(sentence: str) -> bool:
    """Is a rule worded for more than one task: it names none, "use pnpm instead of npm", or says that it holds on."""
    words = sentence.strip()
    if not directs(words) or _PASSING.search(words):
        return False
    if _MANNER.match(words):
        return True
    if _ENGLISH_RULE.search(_STATED.sub("", words)):
        return _ADDRESSED.search(words) is not None and not _asks(words)
    return not wordings.asks(words)


def is_universal(sentence: str) -> bool:
    """Does a rule say itself that it holds from then on: "never", "always", "must"."""
    if _UNIVERSAL.search(sentence):
        return True
    return _UNIVERSAL_ELSEWHERE.search(sentence) is not None and wordings.asks(sentence)


def says_something(sentence: str) -> bool:
    """Has an instruction words of content, so that following it says something."""
    return len(content_words(sentence)) >= (1 if has_unspaced(sentence) else LEAST_WORDS)


def _asks(words: str) -> bool:
    """Does a sentence in English ask for something: not code, and no report of what was done."""
    request = _REQUEST.match(words)
    if request is None or words.startswith("(", request.end()):
        return False
    return _REPORT.match(words, request.end()) is None


def _states_rule(words: str) -> bool:
    """Does a sentence state a rule, in any of the languages whose words are known."""
    stated = _STATED.sub("", words)
    if _ENGLISH_RULE.search(stated):
        return True
    return bool(_EASTERN_RULE.search(stated) or wordings.states_rule(words)) and not reports(words)


def rule_sentences(event: Event) -> int:
    """How many sentences of a message state a rule, of a user's those in the user's own words: they have a word such as
    "must", "never" or "only"."""
    parts = own_parts(event.parts) if event.starts_turn() else event.parts
    return sum(kind_of(sentence) == RULE for sentence in sentences(parts))
