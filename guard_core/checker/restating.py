"""Whether a summary says a request in other words, as the checker finds it."""

from __future__ import annotations

import re

from guard_core.checker.plain_words import own_words, plainly_lacks, plainly_says, typed
from guard_core.checker.story import Story, own_texts
from guard_core.events import part_text
from guard_core.facts.instructions import (
    RULE,
    directs,
    kind_of,
    says_something,
)
from guard_core.facts.lifting import permits
from guard_core.facts.texts import (
    common_words,
    content_words,
    conveys,
    paraphrases,
    split_sentences,
)
from guard_core.facts.withdrawals import takes_back

_LONGEST_FRAME = 2_000  # letters that a client writes around a summary
# The word that joins a rule to what is asked for before it, and what a rule may depend on.
_LINK = re.compile(r"^(?:and|but|or|und|aber|oder|et|mais|ou|y|pero|o|mas|maar|ale|но|и)\s+", re.IGNORECASE)
_DEPENDS = re.compile(
    r"\W*(?:from|when|whenever|if|before|after|while|in|for|on|at|during|as|since|until|to|by|wenn|ab|bei|beim|vor|nach"
    r"|für|fuer|solange|bevor|quand|lorsque|si|dès|avant|après|pour|dans|cuando|al|antes|después|desde|para|en|se|quando"
    r"|prima|dopo|per|als|voor|w|przed|po|если|когда|перед|после)\b",
    re.IGNORECASE,
)
MARKS = "\"'“‘« "  # a request that its agent wrote in quotation marks is quoted without them
# What a clause of a request is known by: where it ends, characters (a Chinese one counts three times), the most shown.
_CLAUSES = re.compile(
    r"(?<=[.!?;:,])\s+|(?<=[。！？；：，])|\n|\s+(?:and|but|und|aber|et|mais|y|pero)\s+(?=(?:(?:please|you|we) )?(?:"
    r"never|always|do not|don['’]?t|only|avoid|make sure|must|nie|niemals|immer|nur|jamais|toujours|nunca|siempre)\b)",
    re.IGNORECASE,
)
_CLAUSE_CHARS, _SHOWN_CHARS, _FIRST_WIDE, SHORTEST_QUOTE = 24, 48, 0x3000, 12
_RESTATED = 0.55  # of the words of each of its sentences in a summary that says a request in other words
TYPED = re.compile(r"<command-(?:name|args)>(.*?)</command-(?:name|args)>")


def rule_in(sentence: str) -> str:
    """A sentence that states a rule, without what it asks for before it where the rule is one by itself."""
    if kind_of(sentence) != RULE:
        return ""
    stating = [clause for clause in _CLAUSES.split(sentence) if directs(clause)]
    if not stating:
        return ""
    rest = _LINK.sub("", sentence[sentence.index(stating[0]) :])
    depends = _DEPENDS.match(sentence) is not None
    return sentence if depends or not says_something(rest) or weight(rest) < SHORTEST_QUOTE else rest


def lifts_before(before: list[str], said: str) -> bool:
    """Does a sentence only take back a rule of one of those before it."""
    return permits(said) and any(takes_back(said, rule) for one in before if (rule := rule_in(one)))


def states_rules_alone(sentence: str) -> bool:
    """Is each clause of a sentence a rule."""
    return all(kind_of(clause.strip(MARKS)) == RULE for clause in _CLAUSES.split(sentence) if clause.strip())


def parted(story: Story, message: int) -> tuple[list[str], list[str]]:
    """The clauses of a message that state rules, and the others; where all do, these are what was asked for."""
    text = "\n".join(map(own_words, typed(story.session.events[message])))
    clauses = [" ".join(clause.split()).strip("\"'") for clause in _CLAUSES.split(text)]
    clauses = [clause for clause in clauses if weight(clause) >= SHORTEST_QUOTE]
    rules = [clause for clause in clauses if kind_of(clause) == RULE]
    tasks = [clause for clause in clauses if clause not in rules]
    return (rules, tasks) if tasks else ([], clauses)


def weight(clause: str) -> int:
    """How long some words are, in letters of the Latin script."""
    return sum(3 if ord(char) > _FIRST_WIDE else 1 for char in clause)


def repeats(story: Story, index: int, words: str) -> bool:
    """Does what a compaction put into the context quote some words."""
    return any(story.quotes(event, words) for event in own_texts(story.recorded(index)))


def restates(story: Story, index: int, message: int) -> bool:
    """Does it say what a message says in other words, sentence by sentence, as far as sentences are long enough."""
    asked = next(text for one in typed(story.session.events[message]) if (text := one.strip()))
    asked = " ".join(TYPED.findall(asked)) or own_words(asked)
    said = ["\n".join(map(part_text, event.parts)) for event in own_texts(story.recorded(index))]
    sentences = split_sentences(asked)
    sentences = [
        one for at, one in enumerate(sentences) if not states_rules_alone(one) and not lifts_before(sentences[:at], one)
    ] or sentences
    if is_foreign("\n".join(said), "\n".join(sentences)):
        return True
    long = [one for one in sentences if paraphrases(one, one)]
    short = [one for one in sentences if len(content_words(one)) > 1]
    for text in said:
        says = [is_said(text, one, paraphrases(text, one, _RESTATED)) for one in long]
        says = says or [may_state(text, one) for one in short]
        if says and all(says):
            return True
    return False


def may_state(text: str, sentence: str) -> bool:
    """May a text say what a sentence says."""
    return is_said(text, sentence, conveys(text, sentence))


def is_said(text: str, sentence: str, is_close: bool) -> bool:
    """The same, where `is_close` is what the shared measure of words makes of it, and plain words may contradict it."""
    return plainly_says(text, sentence) or (is_close and not plainly_lacks(text, sentence))


def is_foreign(text: str, asked: str) -> bool:
    """Is a text in another language than some words, or in letters that are not theirs, and long enough to say them."""
    alphas = [[letter for letter in one if letter.isalpha()] for one in (text, asked)]
    if not alphas[1] or 3 * len(alphas[0]) < len(alphas[1]):
        return False
    shares = [sum(ord(letter) > 0x24F for letter in letters) / len(letters) for letters in alphas]
    if shares[1] < 0.05 and _is_foreign_in_its_middle(text, len(alphas[1])):
        return True
    if max(shares) < 0.05:
        counts = [common_words(one) for one in (text, asked)]
        first, second = (max(one, key=one.__getitem__) for one in counts)
        is_other = counts[0][first] > 3 * counts[0][second] and counts[1][second] > 3 * counts[1][first]
        return (is_other and len(alphas[0]) >= len(alphas[1])) or _is_in_another_language_within(text, asked)
    return (shares[0] < 0.05 and shares[1] >= 0.5) or (shares[1] < 0.05 and shares[0] >= 0.5)


def _is_foreign_in_its_middle(text: str, asked: int) -> bool:
    """Is a text in foreign letters but for Latin sentences before and behind, which a client put there, and do these
    letters suffice to say what has so many."""
    middle = [[letter > "\u024f" for letter in one if letter.isalpha()] for one in split_sentences(text)]
    total = sum(map(len, middle))
    for end in (0, -1):
        while middle and (not middle[end] or 2 * sum(middle[end]) < len(middle[end])):
            middle.pop(end)
    foreign, size = sum(map(sum, middle)), sum(map(len, middle))
    return foreign > 0 and 2 * foreign >= size and 3 * foreign >= asked and total - size <= _LONGEST_FRAME


def _is_in_another_language_within(text: str, asked: str) -> bool:
    """Is a text in another language than some words, but for sentences before and behind, and long enough."""
    lines, own, letters = (
        split_sentences(text),
        _spoken_in(asked),
        [sum(map(str.isalpha, one)) for one in (text, asked)],
    )
    while lines and own and _spoken_in(lines[0]) in ("", own):
        lines.pop(0)
    while lines and own and _spoken_in(lines[-1]) in ("", own):
        lines.pop()
    middle = "\n".join(lines) if own else ""
    size, counts, of_words = sum(map(str.isalpha, middle)), common_words(middle), common_words(asked)
    other, mine = (max(one, key=one.__getitem__) for one in (counts, of_words))
    is_other = counts[other] > 3 * counts[mine] and of_words[mine] > 3 * of_words[other]
    return is_other and counts[other] > 5 and size >= letters[1] and letters[0] - size <= _LONGEST_FRAME


def _spoken_in(text: str) -> str:
    """The language of which a text has two common words or more, and more than of any other, "": none."""
    counts = common_words(text)
    most = max(counts.values())
    return (
        next(iter(one for one in counts if counts[one] == most))
        if most > 1 and list(counts.values()).count(most) == 1
        else ""
    )


def has_part(story: Story, index: int, message: int) -> bool:
    """Does a compaction quote a clause of a message, or say the message in other words."""
    asked = [clause.strip(" \"'.,;:!?…。，；：！？、") for clause in parted(story, message)[1]]
    shown = [clause[:_SHOWN_CHARS] for clause in asked if weight(clause) >= _CLAUSE_CHARS]
    return any(repeats(story, index, clause) for clause in shown) or restates(story, index, message)
