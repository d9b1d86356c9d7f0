"""Where the words of a user's request are: looked up once in the texts of a session, and kept beside its columns.

Only requests are looked for that a compaction took out of the context while their turn went on. Whether they were lost
follows from these places and the recorded views, without texts.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, islice

import msgspec
import numpy as np
from numpy.typing import NDArray

from guard_core.counts import counted_compactions
from guard_core.events import Event, TextPart, part_text
from guard_core.facts.instructions import RULE, kind_of, says_something, sentences
from guard_core.facts.texts import may_translate, paraphrases, restates, split_sentences
from guard_core.ledger import Base, Ints, Ledger
from guard_core.quoting import HAN, HANGUL, KANA, letters_of, may_say, readings, runs_of, says
from guard_core.sessions import Session
from guard_core.views import JOINED, Rewritten, Segment, Span, View

QUOTE_CHARS = 60  # characters that a request is known by (see `width`)
SHORTEST = 12  # characters; "yes" or "go on" is found everywhere and says nothing
PASSAGE_CHARS = 24  # ours: the shortest clause of a request whose repetition is no accident
MOST_PASSAGES = 20  # clauses of one request that are looked for in summaries: as many at its beginning as at its end
WIDE = 3  # ours: a Chinese or Japanese character says about as much as so many Latin letters
MOST_RULES = 5  # of one request that are looked for, the first ones: as costly
FIRST_WORDS = ""  # the key of a message's first words; those of its rules are the rules
MOST_REQUESTS = 20  # looked for in one session: each costs a pass over all its texts
MOST_PLACES = 500  # words found more often than this are not quotations
# How Claude Code writes commands down: `/name` with arguments, which becomes a prompt, and what is done without the
# model (`/model`, `!ls`), which has none or is a shell's.
_MARKUP = ("<command-", "<bash-input>")
# Tags that Cline and Roo Code put around what was typed (formatResponse, src/core/prompts/responses.ts).
_WRAPPED = re.compile(r"<(task|user_message|feedback)>\s*(.*?)\s*(?:</\1>|$)")
_COMMAND, _ARGUMENTS = (re.compile(f"<command-{part}>(.*?)</command-{part}>") for part in ("name", "args"))
_COURTESY = re.compile(
    r"(?:(?:please|pls|kindly|(?:can|could|would|will) you(?: please)?|bitte|s['’]il (?:te|vous) pla[îi]t|por favor"
    r"|per favore)[,:]?\s+|请|請)",
    re.IGNORECASE,
)
_WIDE = re.compile(f"[{KANA}{HAN}{HANGUL}]")
_CLAUSE = re.compile(r"(?<=[.!?;:,])\s+|(?<=[。！？；：，])|\n")  # where one ends
_END = ".,;:!?… 。，；：！？、"  # what ends words, and is left away where they are quoted


class RuleWords(msgspec.Struct, frozen=True):
    """A sentence of a request that states a rule, the events of the log that quote it, its own message too, and the
    compactions of its turn whose messages quote it, paraphrase it, or may say it in another script or language."""

    text: str
    events: tuple[int, ...]
    compactions: tuple[int, ...]


class RequestWords(msgspec.Struct, frozen=True):
    """One request: the index of its message, its first words with whitespace folded, and where they are quoted: in
    which events of the log, and in which recorded compactions' messages (by their place in the session). `passages` are
    clauses of it that the messages of other compactions repeat: the compaction, and the clause; `kept_rules` the same
    of those that repeat only what it states as a rule, and nothing of what it asks for. `restated` are the compactions
    of its turn without quotation or passage whose messages may say each of its sentences in other words
    (`facts.texts.restates`), or all of it in another script or language (`may_translate`).
    `rules` are its first rules, where it asks for something besides."""

    message: int
    quote: str
    is_whole: bool  # is that all the user wrote
    events: tuple[int, ...]
    compactions: tuple[int, ...]
    passages: tuple[tuple[int, str], ...] = ()
    restated: tuple[int, ...] = ()
    kept_rules: tuple[tuple[int, str], ...] = ()
    rules: tuple[RuleWords, ...] = ()


def request_words(session: Session, ledger: Ledger, read: Callable[[], Iterable[Event]]) -> tuple[RequestWords, ...]:
    """Look up the requests that compactions took away. `session` may be a head; `read` gives all events in order: up to
    the last of these requests for their words, then all for the places of these words, earlier ones too."""
    wanted = removed_requests(session, ledger)
    words, clauses, texts = {}, {}, {}
    for index, event in enumerate(islice(read(), max(wanted, default=-1) + 1)):
        if index in wanted and width(quotation(asked := asked_words(event))) >= SHORTEST:
            words[index], clauses[index], texts[index] = asked, passages_of(event), _own_text(event)
    quotes = {(message, FIRST_WORDS): _spoken(quotation(text)) for message, text in words.items()}
    rules = {message: _rules_of(text) for message, text in texts.items()}
    quotes |= {(message, rule): readings(rule.rstrip(_END)) for message, said in rules.items() for rule in said}
    runs = {key: runs_of(quote) for key, quote in quotes.items()}
    found: dict[tuple[int, str], list[int]] = {(message, what): [message] for message, what in quotes}
    for index, event in enumerate(read() if quotes else ()):
        text = text_to_compare(event)
        letters = letters_of(text)
        likely = [key for key in quotes if may_say(letters, runs[key])]
        read_ways = readings(text) if likely else ""
        for key in likely:
            if says(read_ways, quotes[key]) and index != key[0]:
                found[key].append(index)
    requests = []
    for message, text in words.items():
        places = found[message, FIRST_WORDS]
        if len(places) <= MOST_PLACES:
            quote, quoting = quotation(text), _quoting(session, quotes[message, FIRST_WORDS])
            tasks, stated = ([one for one in part if quote not in one] for part in clauses[message])
            others = _repeating(session, quoting, tasks)
            repeating = _repeating(session, (*quoting, *dict(others)), stated)
            in_turn = sorted(_compactions_of_turn(session, ledger, message))
            silent = [place for place in in_turn if place not in quoting and place not in dict(others)]
            restated = _restating(session, silent, _asked_for(texts[message]))
            is_whole, events = quote == text.rstrip(_END), tuple(sorted(places))
            own = tuple(
                RuleWords(rule, tuple(sorted(found[message, rule])), _saying(session, in_turn, rule))
                for rule in rules[message]
            )
            requests.append(RequestWords(message, quote, is_whole, events, quoting, others, restated, repeating, own))
    return tuple(requests)


def _rules_of(text: str) -> list[str]:
    """The first sentences of a user's words that only state rules, where others ask for something."""
    said = [" ".join(one.split()) for one in sentences((TextPart(text),))]
    rules = [one for one in dict.fromkeys(said) if width(one) >= SHORTEST and _is_rule(one)]
    has_task = any(one and not _is_rule(one) for one in said)
    return [one for one in rules if says_something(one)][:MOST_RULES] if has_task else []


def removed_requests(session: Session, ledger: Ledger) -> list[int]:
    """Messages whose turn went on after a compaction that did not keep them, the first MOST_REQUESTS in order."""
    users = ledger.steps["user_event"]
    messages: dict[int, None] = {}
    for item in counted_compactions(session).compactions:
        if item.step >= 0:
            message, base = int(users[item.step]), ledger.bases[item.place]
            if 0 <= message < base.at and not holds(base.view, message):
                messages[message] = None
    return list(messages)[:MOST_REQUESTS]


def holds(view: View, event: int) -> bool:
    """Does a view have this event as it was, perhaps joined with others into one message."""
    return any(has(segment, event) for segment in view)


def has(segment: Segment, event: int) -> bool:
    """The same of one segment."""
    if isinstance(segment, Span):
        return segment.start <= event < segment.stop
    return isinstance(segment, Rewritten) and (segment.event, segment.reason) == (event, JOINED)


def may_be_summarised(bases: Sequence[Base], left: NDArray[np.bool_], places: Sequence[Ints]) -> NDArray[np.bool_]:
    """Which words, a row each, may be in a summary that cannot be read, after each recorded compaction.

    A summary is written from the history that it replaces: words that had left that history are not in it. `left` says
    which compactions left the words readable, `places` which events of the log have them.
    """
    may = np.zeros_like(left)
    if not any(base.is_sealed for base in bases):
        return may
    ats = np.array([0, *(base.at for base in bases)], dtype=np.int64)
    counts = np.array([np.searchsorted(events, ats) for events in places]).reshape(len(left), len(ats))
    added = np.diff(counts) > 0
    known = np.zeros(len(left), dtype=np.bool_)
    for place, base in enumerate(bases):
        known |= added[:, place]
        may[:, place] = base.is_sealed & known & ~left[:, place]
        known = left[:, place] | may[:, place]
    return may


def comparable(event: Event) -> str:
    """The text of a message as quotations are looked for in it."""
    return readings(text_to_compare(event))


def text_to_compare(event: Event) -> str:
    """The text of a message in which quotations are looked for."""
    return "\n".join(part_text(part) for part in event.parts)


_QUOTES = re.compile(r'^(?:\\?")+|(?:\\?")+$')


def first_words(event: Event) -> str:
    """A user's words, folded and without quotation marks or an agent's tags around them: the first part that has text.
    Of a command of Claude Code what was typed; "" where that is no request to the model."""
    words = next((words for part in event.parts if (words := _unquoted(" ".join(part_text(part).split())))), "")
    if wrapped := _WRAPPED.match(words):
        return wrapped[2]
    if not words.startswith(_MARKUP):
        return words
    name, arguments = (
        " ".join(found[1].split()) if (found := kind.search(words)) else "" for kind in (_COMMAND, _ARGUMENTS)
    )
    return f"{name} {arguments}" if name and arguments else ""


def _unquoted(words: str) -> str:
    """Words without the quotation marks around them, escaped or not."""
    return _QUOTES.sub("", words)


def width(words: str) -> int:
    """How many characters some words have, one that says as much as several counted as WIDE."""
    return len(words) + (WIDE - 1) * (0 if words.isascii() else len(_WIDE.findall(words)))


def shortened(words: str, chars: int = QUOTE_CHARS) -> str:
    """The first words up to so many characters (`width`), whole ones where there are several."""
    if width(words) <= chars:
        return words
    sizes = accumulate(map(width, words[: chars + 1]))
    most = bisect_right(list(sizes), chars)
    cut = words[: most + 1].rpartition(" ")[0]
    return cut if 2 * width(cut) >= chars else words[:most]


def quotation(words: str) -> str:
    """The first words, as they are looked for and shown: without the mark at their end, which a quotation changes."""
    return shortened(words).rstrip(_END)


def asked_words(event: Event) -> str:
    """The words by which a request is known: the first ones, without sentences before them that only state rules, for
    a request may begin with those."""
    words = first_words(event)
    sentences = split_sentences(words)
    for place, sentence in enumerate(sentences):
        if not _is_rule(sentence):
            rest = " ".join(sentences[place:]) if place else words
            return rest if width(quotation(rest)) >= SHORTEST else words
    return words


def _spoken(quote: str) -> str:
    """The readings of a quotation, and of it without the courtesy before it, which a summary leaves away."""
    plain = _COURTESY.sub("", quote)
    return f"{readings(quote)}\n{readings(plain)}" if plain != quote and width(plain) >= SHORTEST else readings(quote)


def _asked_for(text: str) -> str:
    """A user's words without the sentences that only state rules, unless all do."""
    asked = [sentence for sentence in split_sentences(text) if not _is_rule(sentence)]
    return "\n".join(asked) if "".join(asked).strip() else text


def _is_rule(sentence: str) -> bool:
    """Does every clause of a sentence state a rule."""
    return all(kind_of(clause) == RULE for clause in _CLAUSE.split(sentence) if clause.strip())


def passages_of(event: Event) -> tuple[list[str], list[str]]:
    """The clauses of a user's words that can be known again, as `quotation` shows them, the first ones and the last:
    those of what is asked for, and those that state rules. Where all state rules, these are what is asked for."""
    clauses = [" ".join(clause.split()).strip("\"'") for clause in _CLAUSE.split(_own_text(event))]
    distinct = [clause for clause in dict.fromkeys(clauses) if width(clause) >= SHORTEST]
    rules = {clause for clause in distinct if kind_of(clause) == RULE}
    asked = [clause for clause in distinct if clause not in rules] or distinct
    parts = ([one for one in part if width(one) >= PASSAGE_CHARS] for part in (asked, rules.difference(asked)))
    shown = [list(dict.fromkeys(map(quotation, sorted(part, key=distinct.index)))) for part in parts]
    return _ends(shown[0]), _ends(shown[1])


def _ends(clauses: list[str]) -> list[str]:
    half = MOST_PASSAGES // 2
    return clauses if len(clauses) <= MOST_PASSAGES else [*clauses[:half], *clauses[-half:]]


def _own_text(event: Event) -> str:
    """A user's words as they were set: the first part that has text; of a command of Claude Code what was typed."""
    text = next((text for part in event.parts if (text := part_text(part).strip())), "")
    return first_words(event) if text.startswith(_MARKUP) else text


def _repeating(session: Session, quoting: Sequence[int], passages: Sequence[str]) -> tuple[tuple[int, str], ...]:
    """The compactions that do not quote a request but one of its passages, with the longest of them."""
    longest_first = sorted(passages, key=width, reverse=True)
    repeated = []
    for place, item in enumerate(session.compactions):
        if place not in quoting and longest_first:
            texts = [comparable(message) for message in item.own_messages]
            found = (one for one in longest_first if any(says(text, readings(one)) for text in texts))
            repeated += [(place, one) for one in islice(found, 1)]
    return tuple(repeated)


def _compactions_of_turn(session: Session, ledger: Ledger, message: int) -> set[int]:
    """The compactions behind a request, up to the last call of its turn."""
    steps = ledger.steps
    last = int(steps["at"][steps["user_event"] == message].max(initial=-1))
    return {place for place, item in enumerate(session.compactions) if message < item.at <= last}


def _restating(session: Session, places: Iterable[int], text: str) -> tuple[int, ...]:
    """Which of some compactions may say a request in other words, or in another script or language."""
    inserted = {place: list(map(text_to_compare, session.compactions[place].own_messages)) for place in places}
    return tuple(
        place
        for place, said in inserted.items()
        if may_translate("\n".join(said), text) or any(restates(one, text) for one in said)
    )


def _saying(session: Session, places: Iterable[int], rule: str) -> tuple[int, ...]:
    """Which of some compactions quote or paraphrase a rule, or may say it in another script or language."""
    quote = readings(rule.rstrip(_END))
    inserted = {place: list(map(text_to_compare, session.compactions[place].own_messages)) for place in places}
    return tuple(
        place
        for place, said in inserted.items()
        if may_translate("\n".join(said), rule)
        or any(says(readings(one), quote) or paraphrases(one, rule) for one in said)
    )


def _quoting(session: Session, quote: str) -> tuple[int, ...]:
    """The compactions whose own messages hold the quote, given in its `readings`."""
    return tuple(
        place
        for place, item in enumerate(session.compactions)
        if any(says(comparable(message), quote) for message in item.own_messages)
    )
