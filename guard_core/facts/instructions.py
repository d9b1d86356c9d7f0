"""Sentences of users and of the system prompt that say what to do: rules and requests, by their wording alone."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from guard_core.events import Event, Part, TextPart
from guard_core.facts import wordings
from guard_core.facts.reports import reports
from guard_core.facts.statements import describes, is_guess, is_printed, is_question, without_statements
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
    "必须|必須|务必|務必|不要|不得|不能"
    # but for what has a quality: cannot be proved, read or relied on, is not possible. Longer verbs that begin alike
    # say what not to do: 读取 is to read, 分享 to share, 变更 to change, and 用 before a name is to use it.
    "|不可(?![能见逆控靠行知信达達数數比]|[变變](?![更动動])|[读讀](?![取写寫入])|追[溯踪蹤回]|[复復][现現原]|分(?![享发發配])"
    "|思[议議]|避免|或缺|[验驗][证證]|[预預][测測知]|重(?:[现現]|[复複](?:[读讀性的，。、；,.;!！）)\\s]|$))|恢[复復]"
    "|用(?:\\s*(?:[，。、；,.;!！）)的]|$)))"
    "|禁止|请勿|請勿|切勿|绝不|絕不|始终|始終|总是|只能|只准|不许|"
    "必ず|絶対に|しないで|てはいけ|てはなら|してください|のみ|반드시|절대|하지 마|지 마세요|금지|항상|해야"
)
# English rules are addressed to whoever works if they have one of the first words, or one of the others at the
# beginning or behind "you" or "we": "the server can't start" and "it only works here" say how things are. Ours.
_DIRECTING = re.compile(
    r"\b(?:must(?:n['’]?t)?|should(?:n['’]?t)?|shall|may not|(?:is|are) required|forbidden|prohibited|make sure"
    r"|ensure)\b|^\W*required: |\byou (?:can(?:not|['’]?t)|never|always|only)\b|\bwe (?:never|always)\b"
    r"|^(?:\W|(?:and|but|or|so|also|then|please|pls|rule|note|important|remember)\b)*"
    r"(?:never|always|do not|don['’]?t|only|avoid|prefer|at most|at least|without|instead of|unless)\b",
    re.IGNORECASE,
)
# What limits a request, "return JSON only", "change it without renaming anything": any of the words of a rule, but for
# what somebody else cannot or does not do, and what is missing. Ours.
_LIMIT = re.compile(
    r"\b(?:must(?:n['’]?t)?|never|always|should(?:n['’]?t)?|shall|make sure|ensure|only|avoid|forbidden|prohibited"
    r"|at most|at least|instead of|unless|prefer|without \w+ing)\b"
    r"|(?:^|[,;:.—–(-]|\b(?:and|but|or|so|please|you))\s*(?:do not|don['’]?t)\b",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r"\w+://\S+")
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
    r"|we (?:need|want|should))\b(?!-\w)"
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
# What a rule has that holds for the moment.
_PASSING = re.compile(r"\b(?:yet|for now|right now|this time|today|vorerst|noch nicht|diesmal)\b", re.IGNORECASE)
_CODE = re.compile(r"`[^`]*(?:[(\[]|[a-z]\.[A-Z])")  # calls and members, the parts of one task: "use `Store.find()`"
# How a rule begins that names no task, and whom one is addressed to.
_ADDRESSED = re.compile(
    r"^\W*(?:(?:and|but|or|so|also|then|please|pls|rule|note|important|remember)\b\W*)*"
    r"(?:never|always|do not|don['’]?t|only|avoid|prefer|make sure|ensure|at most|at least|no more than)\b"
    r"|\b(?:you|nobody|everybody|everyone|agents?) (?:must|should|shall|may|can(?:not|['’]?t)|never|always|only)\b"
    r"|\bwe (?:never|always|should (?:\w+ )?(?:never|always|not|only))\b"
    r"|\bmust(?:n['’]?t)?\b|\b(?:forbidden|prohibited|(?:is|are) required)\b|[,;:] (?:never|always|do not|don['’]?t)\b",
    re.IGNORECASE,
)
# A clause that begins so says how things are, in the languages of `wordings`.
_SUBORDINATE = re.compile(r"\W*(?:dass|weil|wenn|obwohl|denn|que|qui|parce|porque|perché|omdat|ponieważ|что)\b", re.I)


# A block of Markdown that is fenced as code of a language; prose and blocks without a language may be instructions.
_PROGRAM = re.compile(
    r"^[ \t]*```[ \t]*(?!(?:md|markdown|text|txt|plain|plaintext)\b)[\w+#.-][^\n]*\n.*?(?:^[ \t]*```[ \t]*$|\Z)",
    re.MULTILINE | re.DOTALL | re.IGNORECASE,
)
# A line of a program that begins as a request does, "return make_user(name)", or ends with an open call.
_PROGRAM_LINE = re.compile(r"(?:return|delete|print|yield)\s+[\w.]+[(\[].*[)\](\[{,;]|.*\w\($")
# What Claude Code puts into a message of a command that its user ran: what the command printed, and a caveat; and what
# another agent reports, one that works in the background or one of the same team.
_PRINTED = re.compile(
    r"<(bash-(?:stdout|stderr)|local-command-\w{1,40}|task-notification|teammate-message(?= ))[^<>]*>"
)
_TAG = re.compile(
    r",\s*(?:ok|okay|right|alright|please|yes|no|clear|understood|agreed|got it|will you|would you)\s*[?？]+$",
    re.IGNORECASE,
)


def sentences(parts: tuple[Part, ...]) -> Iterator[str]:
    """The sentences and lines of the texts of a message, without the programs in it, whose comments and messages say
    nothing to the model, and without what a command printed, what another agent reports and lines of JSON: data."""
    for part in parts:
        if isinstance(part, TextPart):
            text = _without_printed(_PROGRAM.sub("\n", part.text[:MOST_RULE_CHARS]))
            yield from split_sentences("\n".join(line for line in text.split("\n") if not _is_data(line)))


def _is_data(line: str) -> bool:
    """Is a line one object of JSON, or a list of them."""
    line = line.strip()
    if not (line.startswith("{") and line.endswith("}")) and not (line.startswith("[{") and line.endswith("}]")):
        return False
    try:
        msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False
    return True


def _without_printed(text: str) -> str:
    """A text without what commands printed. An end that is missing is looked for once, however often its tag is there:
    as one pattern this takes 20 s for 200,000 characters of such tags."""
    pieces: list[str] = []
    start = 0
    unended: set[str] = set()
    for tag in _PRINTED.finditer(text):
        if tag.start() < start or tag[1] in unended:
            continue
        end = text.find(f"</{tag[1]}>", tag.end())
        if end < 0:
            unended.add(tag[1])
            continue
        pieces += (text[start : tag.start()], "\n")
        start = end + len(f"</{tag[1]}>")
    return "".join((*pieces, text[start:]))


def kind_of(sentence: str, *, of_user: bool = False) -> str:
    """RULE, or REQUEST of a user's own words; "" for any other sentence. A question states no rule, but
    for a tag such as ", ok?", an address has no words, and what a program prints, or how things are, is no rule."""
    words = sentence.strip()
    if len(sentence) > LONGEST_RULE or is_printed(words):
        return ""
    if not is_question(_TAG.sub("", words)) and _states_rule(_ADDRESS.sub("", words)):
        return RULE
    if not of_user or words.endswith(("{", ";")):
        return ""
    return REQUEST if _asks(words) or wordings.asks(words) else ""


def directs(sentence: str) -> bool:
    """Is a rule addressed to whoever works, "never push" or "keep it at most 80 wide": that something always fails, or
    only works somewhere, has the words of a rule and is none. Of other languages `kind_of` knows it."""
    words = sentence.strip()
    if kind_of(words) != RULE or _SUBORDINATE.match(words) or is_guess(words) or describes(words):
        return False
    stated = without_statements(words)
    if _ENGLISH_RULE.search(stated) is None or _EASTERN_RULE.search(words):
        return True
    limits = _asks(words) and _LIMIT.search(stated) is not None
    return limits or _DIRECTING.search(stated) is not None or wordings.states_rule(words)


def outlasts_its_turn(sentence: str) -> bool:
    """Is a rule worded for more than one task: it names none, "use pnpm instead of npm", or says that it holds on."""
    words = sentence.strip()
    if not directs(words) or _PASSING.search(words) or (_asks(words) and _CODE.search(words)):
        return False
    if _MANNER.match(words):
        return True
    if _ENGLISH_RULE.search(without_statements(words)):
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
    if request is None or words.startswith("(", request.end()) or _PROGRAM_LINE.fullmatch(words):
        return False
    return _REPORT.match(words, request.end()) is None


def _states_rule(words: str) -> bool:
    """Does a sentence state a rule, in any of the languages whose words are known."""
    stated = without_statements(words)
    if _ENGLISH_RULE.search(stated):
        return True
    return bool(_EASTERN_RULE.search(stated) or wordings.states_rule(words)) and not reports(words)


def rule_sentences(event: Event) -> list[str]:
    """The sentences of a message that state a rule, of a user's those in the user's own words: they have a word such as
    "must", "never" or "only"."""
    parts = own_parts(event.parts) if event.starts_turn() else event.parts
    return [sentence for sentence in sentences(parts) if kind_of(sentence) == RULE]
