"""Where the words of a user's request are: looked up once in the texts of a session, and kept beside its columns.

Only requests are looked for that a compaction took out of the context while their turn continued. Whether they were
lost follows from these places and the recorded views, without texts.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from itertools import accumulate, islice

import msgspec
import numpy as np
from numpy.typing import NDArray

from guard_core.compaction_bases import CompactionBase
from guard_core.counts import CountedCompaction, counted_compactions
from guard_core.events import Event, TextPart, part_text
from guard_core.facts.askers import is_of_agent
from guard_core.facts.instructions import REQUEST, RULE, directs, kind_of, says_something, sentences
from guard_core.facts.lifting import permits
from guard_core.facts.texts import conveys, may_translate, restates, split_sentences
from guard_core.facts.todos import OpenTodo, all_todo_events, open_at
from guard_core.facts.withdrawals import only_lifts, takes_back, withdraws
from guard_core.findings.first_words import MARKUP, first_words, unquoted
from guard_core.findings.tasks import continued_tasks, may_be_no_request, task_column
from guard_core.ledger import Ints, Ledger
from guard_core.own_words import typed_parts, without_documents
from guard_core.quoting import asserts, letters_of, may_say, readings, runs_of, says, width
from guard_core.sessions import Session
from guard_core.views import JOINED, Rewritten, Segment, Span, View

QUOTE_CHARS = 60  # characters that a request is known by (see `width`)
SHORTEST = 12  # characters; "yes" or "go on" is found everywhere and says nothing
PASSAGE_CHARS = 24  # ours: the shortest clause of a request whose repetition is no accident
MOST_PASSAGES = 20  # clauses of one request that are looked for in summaries: as many at its beginning as at its end
MOST_TODOS = 10  # of one list, the first open ones: as costly
MOST_RULES = 5  # of one request that are looked for, the first ones: as costly
MOST_PARTS = 5  # things that one request asks for that are looked for: as costly
FIRST_WORDS = ""  # the key of a message's first words; those of its rules are the rules
MOST_REQUESTS = 20  # looked for in one session: each costs a pass over all its texts
MOST_PLACES = 500  # words found more often than this are not quotations
_COURTESY = re.compile(
    r"(?:(?:please|pls|kindly|(?:can|could|would|will) you(?: please)?|bitte|s['’]il (?:te|vous) pla[îi]t|por favor"
    r"|per favore)[,:]?\s+|请|請)",
    re.IGNORECASE,
)
# Where a clause ends: at a mark, or before a rule that is joined to it, "port it and never touch the old one".
_CLAUSE = re.compile(
    r"(?<=[.!?;:,])\s+|(?<=[。！？；：，])|\n|\s+(?:and|but|und|aber|et|mais|y|pero)\s+(?=(?:please |you |we )?(?:"
    r"never|always|do not|don['’]?t|only|avoid|make sure|must|nie|niemals|immer|nur|jamais|toujours|nunca|siempre)\b)",
    re.IGNORECASE,
)
_CONJUNCTION = re.compile(r"^(?:and|but|or|und|aber|oder|et|mais|ou|y|pero|o|mas|maar|ale|но|и)\s+", re.IGNORECASE)
# Words that begin what a rule behind a comma depends on: when, where and for what it holds. Ours.
_CIRCUMSTANCE = re.compile(
    r"\W*(?:from|when(?:ever)?|if|before|after|while|in|for|on|at|during|as|since|until|to|by|wenn|ab|beim?|vor|nach|f(?:ü|ue)r"
    r"|solange|bevor|quand|lorsque|si|dès|avant|après|pour|dans|cuando|al|antes|después|desde|para|en|se|quando|prima|dopo"
    r"|per|als|voor|w|przed|po|если|когда|перед|после)\b",
    re.IGNORECASE,
)
_END = ".,;:!?… 。，；：！？、"  # what ends words, and is left away where they are quoted


class RuleWords(msgspec.Struct, frozen=True):
    """What a message of the user states as a rule, or one of several things that it asks for: the events of the log
    that quote it, its own message too, and the compactions behind it whose messages quote it, paraphrase it, or may say
    it in another script or language. `withdrawn_by` is the first later message of the user that takes a rule back, -1:
    none that is known to."""

    text: str
    events: tuple[int, ...]
    compactions: tuple[int, ...]
    withdrawn_by: int = -1

    def holds_at(self, at: int) -> bool:
        """Had the user not taken it back in the first `at` messages."""
        return not 0 <= self.withdrawn_by < at


class TodoWords(msgspec.Struct, frozen=True):
    """An open todo of the agent, the message that wrote it, and where it is quoted, as of RuleWords; `later` is the
    next message of the agent that writes, closes or renames it, or its list, -1: none."""

    text: str
    message: int
    events: tuple[int, ...]
    compactions: tuple[int, ...]
    later: int = -1


class RequestWords(msgspec.Struct, frozen=True):
    """One request: the index of its message, its first words with whitespace folded, and where they are quoted: in
    which events of the log, and in which recorded compactions' messages (by their place in the session). `passages` are
    clauses of it that the messages of other compactions repeat: the compaction, and the clause; `kept_rules` the same
    of those that repeat only what it states as a rule, and nothing of what it asks for. `restated` are the compactions
    of its turn without quotation or passage whose messages may say each of its sentences in other words
    (`facts.texts.restates`), or all of it in another script or language (`may_translate`).
    `parts` are the sentences that ask for something, of a message with several.
    `continued_by` are the later messages that only ask to continue with it: their turns count as part of its own.
    `rules` are its first rules, but for those that the system prompt has, too. Of a message that only a compaction of a
    later turn took away nothing else is looked up, and `quote` is empty. So it is for `todos` that a compaction took
    away, all at once; `message` is that of the first of them. `of_agent`: an agent wrote the message, not a person."""

    message: int
    quote: str
    is_whole: bool  # is that all the user wrote
    events: tuple[int, ...]
    compactions: tuple[int, ...]
    passages: tuple[tuple[int, str], ...] = ()
    restated: tuple[int, ...] = ()
    kept_rules: tuple[tuple[int, str], ...] = ()
    rules: tuple[RuleWords, ...] = ()
    asks: bool = True  # is something asked for besides these rules
    todos: tuple[TodoWords, ...] = ()
    continued_by: tuple[int, ...] = ()
    parts: tuple[RuleWords, ...] = ()
    of_agent: bool = False


def request_words(session: Session, ledger: Ledger, read: Callable[[], Iterable[Event]]) -> tuple[RequestWords, ...]:
    """Look up the requests that compactions took away, and the rules of other messages that they did. `session` may be
    a head; `read` gives all events in order: up to the last of these messages for their words, then all for the places
    of these words, earlier ones too."""
    begun, todos = _read_first(session, ledger, read)
    continuing = continued_tasks(ledger, begun)
    tasks = task_column(ledger.steps["user_event"], continuing)
    words = {index: asked_words(begun[index]) for index in removed_requests(session, ledger, tasks)}
    words = {index: asked for index, asked in words.items() if width(quotation(asked)) >= SHORTEST}
    lifting = _only_lifting({index: begun[index] for index in words}, read)
    words = {index: asked for index, asked in words.items() if index not in lifting}
    texts = {index: _own_text(begun[index]) for index in {*words, *removed_later(session, ledger, tasks)}}
    rules = _rules_in(session, texts, words)
    parts = {index: _parts_of(texts[index]) for index in words}
    quotes = {(message, FIRST_WORDS): _spoken(quotation(text)) for message, text in words.items()}
    quotes |= {(message, part): _spoken(part.rstrip(_END)) for message, asked in parts.items() for part in asked}
    quotes |= {(message, rule): readings(rule.rstrip(_END)) for message, said in rules.items() for rule in said}
    quotes |= {(todo.message, todo.text): readings(todo.text.rstrip(_END)) for said in todos for todo in said}
    quoted_in, withdrawn_by = _places(quotes, rules, read)
    requests = [_todo_words(session, said, quoted_in) for said in todos]
    for message in sorted({*words, *rules}):
        own, asked = (
            tuple(
                RuleWords(
                    one,
                    tuple(quoted_in[message, one]),
                    _saying(session, _behind(session, message), one),
                    withdrawn_by.get((message, one), -1),
                )
                for one in said.get(message, ())
            )
            for said in (rules, parts)
        )
        later = tuple(index for index, task in continuing.items() if task == message)
        of_agent = is_of_agent(session, begun[message])
        if message not in words:
            requests.append(RequestWords(message, "", False, (), (), rules=own, continued_by=later, of_agent=of_agent))
            continue
        places, text = quoted_in[message, FIRST_WORDS], words[message]
        if len(places) <= MOST_PLACES:
            last = int(ledger.steps["at"][tasks == message].max(initial=-1))
            in_turn = {place for place, item in enumerate(session.compactions) if message < item.at <= last}
            request = _words_of(session, message, begun[message], text, tuple(places), in_turn)
            about = {"rules": own, "continued_by": later, "parts": asked, "of_agent": of_agent}
            requests.append(msgspec.structs.replace(request, **about))
    return tuple(sorted(requests, key=lambda item: item.message))


def _read_first(
    session: Session, ledger: Ledger, read: Callable[[], Iterable[Event]]
) -> tuple[dict[int, Event], list[list[OpenTodo]]]:
    """The messages that a compaction may have taken away, those that may only ask to continue, each with the one that
    began the turn before, and the todos that one took away; read up to the last of all these."""
    users = ledger.steps["user_event"]
    removed = {*removed_requests(session, ledger, users), *removed_later(session, ledger, users)}
    starts = set(ledger.turn_starts.tolist()) if removed else set()
    # The events that call a todo tool, or answer such a call, matter where a compaction left one of them out.
    events = all_todo_events(ledger)
    items = (item for item in counted_compactions(session).compactions if item.step >= 0)
    is_removed = any(_removed_by(ledger, item, events).any() for item in items)
    of_todos = set(events.tolist() if is_removed else [])
    begun: dict[int, Event] = {}
    written: list[tuple[int, Event]] = []
    before: dict[int, Event] = {}
    for index, event in enumerate(islice(read(), max([*removed, *starts, *of_todos], default=-1) + 1)):
        if index in of_todos:
            written.append((index, event))
        if index in removed:
            begun[index] = event
        if index in starts:
            begun |= {**before, index: event} if may_be_no_request(event) else {}
            before = {index: event}
    return begun, _removed_todos(session, ledger, written)


def _only_lifting(asked: Mapping[int, Event], read: Callable[[], Iterable[Event]]) -> set[int]:
    """Which of some messages do nothing but take back rules that the user stated before."""
    lifting: set[int] = set()
    said = {index: _telling(_own_text(event)) for index, event in asked.items()}
    said = {index: telling for index, telling in said.items() if telling and all(map(permits, telling))}
    rules: list[str] = []
    for index, event in enumerate(islice(read(), max(said) + 1) if said else ()):
        if event.starts_turn():
            rules += _rules_of(_own_text(event))
            lifting |= {index} if index in said and all(only_lifts(one, rules) for one in said[index]) else set()
    return lifting


def _telling(text: str) -> list[str]:
    """The sentences of a text but for those that say nothing by themselves, such as thanks."""
    said = (" ".join(one.split()) for one in sentences((TextPart(text),)))
    return [one for one in said if says_something(one) or kind_of(one, of_user=True)]


def _words_of(
    session: Session, message: int, event: Event, asked: str, places: tuple[int, ...], in_turn: Iterable[int]
) -> RequestWords:
    """Where a request that `asked` for something is, by its first words, clauses and sentences. `places` are the events
    that quote its first words, `in_turn` the compactions of its turn."""
    quote, text = quotation(asked), _own_text(event)
    spoken = _spoken(quote)
    quoting = tuple(
        place
        for place, item in enumerate(session.compactions)
        if any(asserts(comparable(own), spoken) for own in item.own_messages)
    )
    clauses, stated = ([one for one in part if quote not in one] for part in passages_of(event))
    passages = _repeating(session, quoting, clauses)
    kept_rules = _repeating(session, (*quoting, *dict(passages)), stated)
    silent = [place for place in sorted(in_turn) if place not in quoting and place not in dict(passages)]
    restated, is_whole = _restating(session, silent, _asked_for(text)), quote == asked.rstrip(_END)
    # Has it anything besides its rules, and what takes them back?
    said = [" ".join(one.split()) for one in sentences((TextPart(text),))]
    asks = any(one and _rule_in(one) != one and not _lifts_own(said, place) for place, one in enumerate(said))
    return RequestWords(message, quote, is_whole, places, quoting, passages, restated, kept_rules, asks=asks)


def _todo_words(session: Session, said: Sequence[OpenTodo], quoted_in: Mapping[Sought, list[int]]) -> RequestWords:
    """Todos that a compaction took away, with where they are quoted."""
    words = (
        TodoWords(
            todo.text,
            todo.message,
            tuple(quoted_in[todo.message, todo.text]),
            _saying(session, _behind(session, todo.message), todo.text),
            todo.later,
        )
        for todo in said
    )
    return RequestWords(said[0].message, "", False, (), (), todos=tuple(words))


def _removed_todos(session: Session, ledger: Ledger, written: Iterable[tuple[int, Event]]) -> list[list[OpenTodo]]:
    """The todos that were open when a compaction left out the message that wrote them, those that are long enough to be
    known again: for each compaction those that none before it left out, the first ones. `written` are all events of
    todo tools."""
    items = [item for item in counted_compactions(session).compactions if item.step >= 0]
    removed: list[list[OpenTodo]] = []
    known: set[tuple[int, str]] = set()
    for item, state in zip(items, open_at(written, [ledger.bases[item.place].at for item in items]), strict=True):
        todos = [todo for todo in state if width(todo.text) >= SHORTEST and says_something(todo.text)]
        todos = [
            todo for todo in todos if (todo.message, todo.text) not in known and removes(ledger, item, todo.message)
        ]
        known.update((todo.message, todo.text) for todo in todos)
        distinct = list({todo.text: todo for todo in reversed(todos)}.values())[::-1]
        removed += [distinct[:MOST_TODOS]] if distinct else []
    return removed[:MOST_REQUESTS]


def rules_of(session: Session, messages: Iterable[int]) -> tuple[RequestWords, ...]:
    """The rules of some messages of a session whose texts are in memory, and the events that quote each; of the first
    MOST_REQUESTS messages that state some. Nothing else of them is looked up."""
    rules = _rules_in(session, {message: _own_text(session.events[message]) for message in messages}, ())
    quotes = {(message, rule): readings(rule.rstrip(_END)) for message, said in rules.items() for rule in said}
    quoted_in, withdrawn_by = _places(quotes, rules, lambda: session.events)

    def words_of(message: int, rule: str) -> RuleWords:
        return RuleWords(rule, tuple(quoted_in[message, rule]), (), withdrawn_by[message, rule])

    return tuple(
        RequestWords(message, "", False, (), (), rules=tuple(words_of(message, one) for one in said))
        for message, said in rules.items()
    )


def _rules_in(session: Session, texts: Mapping[int, str], words: Container[int]) -> dict[int, list[str]]:
    """The rules of some messages that the system prompt has not: of all in `words`, of the first MOST_REQUESTS others
    that state some."""
    system = "\n".join(map(part_text, session.system or ()))
    fixed = readings(system) if system else ""
    rules: dict[int, list[str]] = {}
    for message, text in sorted(texts.items()):
        stated = [rule for rule in _rules_of(text) if not fixed or not says(fixed, readings(rule.rstrip(_END)))]
        is_known = message in words or sum(one not in words for one in rules) < MOST_REQUESTS
        rules |= {message: stated} if stated and is_known else {}
    return rules


Sought = tuple[int, str]  # what is looked for: a message, and its words as `quotes` of `_places` name them


def _places(
    quotes: Mapping[Sought, str], rules: Mapping[int, list[str]], read: Callable[[], Iterable[Event]]
) -> tuple[dict[Sought, list[int]], dict[Sought, int]]:
    """The events that have each quotation, its own message among them, in their order; and of each rule of a message
    the first later message of the user that takes it back, -1: none."""
    runs = {key: runs_of(quote) for key, quote in quotes.items()}
    quoted_in = {key: [key[0]] for key in quotes}
    withdrawn_by = {(message, rule): -1 for message, stated in rules.items() for rule in stated}
    for index, event in enumerate(read() if quotes else ()):
        text = text_to_compare(event)
        letters = letters_of(text)
        likely = [key for key in quotes if may_say(letters, runs[key])]
        read_ways = readings(text) if likely else ""
        for key in likely:
            if says(read_ways, quotes[key]) and index != key[0]:
                quoted_in[key].append(index)
        if event.starts_turn():
            in_force = [key for key, by in withdrawn_by.items() if by < 0 and key[0] < index]
            withdrawn_by |= {key: index for key in in_force if withdraws(event, key[1])}
    return {key: sorted(places) for key, places in quoted_in.items()}, withdrawn_by


def _behind(session: Session, message: int) -> list[int]:
    """The compactions behind a message."""
    return [place for place, item in enumerate(session.compactions) if message < item.at]


def _rules_of(text: str) -> list[str]:
    """The first rules of a user's words, but for those that a later sentence takes back."""
    said = [" ".join(sentence.split()) for sentence in sentences((TextPart(text),))]
    stated = ((place, _rule_in(sentence)) for place, sentence in enumerate(said))
    rules = (rule for place, rule in stated if rule and not any(takes_back(one, rule) for one in said[place + 1 :]))
    return [rule for rule in dict.fromkeys(rules) if width(rule) >= SHORTEST and says_something(rule)][:MOST_RULES]


def _parts_of(text: str) -> list[str]:
    """The sentences of a user's words that ask for something, if there are several; none of more than MOST_PARTS, for
    then they are most likely a document."""
    said = dict.fromkeys(" ".join(sentence.split()) for sentence in sentences((TextPart(text),)))
    asked = [one for one in said if kind_of(one, of_user=True) == REQUEST and says_something(one)]
    asked = [one for one in asked if width(one) >= SHORTEST]
    return asked if 1 < len(asked) <= MOST_PARTS else []


def _rule_in(sentence: str) -> str:
    """The words of a sentence that state a rule: all of it or, behind clauses that ask for something, from the first on
    that does, if that says something by itself; "" of a sentence that states none."""
    starts = [0, *(mark.end() for mark in _CLAUSE.finditer(sentence))]
    clauses = [sentence[start:stop] for start, stop in zip(starts, [*starts[1:], len(sentence)], strict=True)]
    first = next((start for start, clause in zip(starts, clauses, strict=True) if directs(clause)), None)
    if first is None or kind_of(sentence) != RULE:
        return ""
    rest = _CONJUNCTION.sub("", sentence[first:])
    is_apart = not _CIRCUMSTANCE.match(sentence) and says_something(rest) and width(rest) >= SHORTEST
    return rest if is_apart else sentence


def removed_requests(session: Session, ledger: Ledger, tasks: Ints) -> list[int]:
    """Messages whose turn continued after a compaction that did not keep them, the first MOST_REQUESTS in order.
    `tasks` are the messages that the steps work on."""
    messages: dict[int, None] = {}
    for item in counted_compactions(session).compactions:
        if item.step >= 0:
            message, base = int(tasks[item.step]), ledger.bases[item.place]
            if 0 <= message < base.at and not holds(base.view, message):
                messages[message] = None
    return list(messages)[:MOST_REQUESTS]


def removed_later(session: Session, ledger: Ledger, tasks: Ints) -> set[int]:
    """Messages that began a turn with calls, and that a compaction of a later turn did not keep. `tasks` are the
    messages that the steps work on."""
    turns = np.unique(tasks[tasks >= 0])
    removed = np.zeros(len(turns), dtype=np.bool_)
    for item in counted_compactions(session).compactions:
        if item.step >= 0:
            removed |= _removed_by(ledger, item, turns) & (turns != tasks[item.step])
    return set(turns[removed].tolist())


def _removed_by(ledger: Ledger, item: CountedCompaction, events: Ints) -> NDArray[np.bool_]:
    """Which of many events, in their order, a compaction left out (`removes`)."""
    base = ledger.bases[item.place]
    removed = events < base.at
    for segment in base.view:
        if isinstance(segment, Span):
            removed[slice(*np.searchsorted(events, (segment.start, segment.stop)).tolist())] = False
        elif isinstance(segment, Rewritten) and segment.reason == JOINED:
            removed &= events != segment.event
    return removed


def removes(ledger: Ledger, item: CountedCompaction, event: int) -> bool:
    """Did a compaction leave an event before it out of the history."""
    base = ledger.bases[item.place]
    return event < base.at and not holds(base.view, event)


def holds(view: View, event: int) -> bool:
    """Does a view have this event as it was, perhaps joined with others into one message."""
    return any(has(segment, event) for segment in view)


def has(segment: Segment, event: int) -> bool:
    """The same of one segment."""
    if isinstance(segment, Span):
        return segment.start <= event < segment.stop
    return isinstance(segment, Rewritten) and (segment.event, segment.reason) == (event, JOINED)


def may_be_summarised(
    bases: Sequence[CompactionBase], unread: NDArray[np.bool_], left: NDArray[np.bool_], places: Sequence[Ints]
) -> NDArray[np.bool_]:
    """Which words, a row each, may be in a summary that cannot be read, after each recorded compaction.

    A summary is written from the history that it replaces: words that had left that history are not in it. `unread`
    says of which compactions the summary cannot be read (for each row, or for all), `left` which of them left the words
    readable, `places` which events of the log have them.
    """
    may = np.zeros_like(left)
    unread = np.broadcast_to(unread, left.shape)
    if not unread.any():
        return may
    ats = np.array([0, *(base.at for base in bases)], dtype=np.int64)
    counts = np.array([np.searchsorted(events, ats) for events in places]).reshape(len(left), len(ats))
    added = np.diff(counts) > 0
    known = np.zeros(len(left), dtype=np.bool_)
    for place in range(len(bases)):
        known |= added[:, place]
        may[:, place] = unread[:, place] & known & ~left[:, place]
        known = left[:, place] | may[:, place]
    return may


def comparable(event: Event) -> str:
    """The text of a message as quotations are looked for in it."""
    return readings(text_to_compare(event))


def text_to_compare(event: Event) -> str:
    """The text of a message in which quotations are looked for."""
    return "\n".join(part_text(part) for part in event.parts)


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
    own = next((text for part in typed_parts(event.parts) if (text := part_text(part).strip())), "")
    is_typed = unquoted(" ".join(own.split())) == words  # then its lines are known: code below it is no part of it
    sentences = [" ".join(sentence.split()) for sentence in split_sentences(unquoted(own) if is_typed else words)]
    for place, sentence in enumerate(sentences):
        if not _is_rule(sentence) and not _lifts_own(sentences, place):
            rest = " ".join(filter(None, sentences[place:])) if place else words
            return rest if width(quotation(rest)) >= SHORTEST else words
    return words


def _spoken(quote: str) -> str:
    """The readings of a quotation, and of it without the courtesy before it, which a summary leaves away."""
    plain = _COURTESY.sub("", quote)
    return f"{readings(quote)}\n{readings(plain)}" if plain != quote and width(plain) >= SHORTEST else readings(quote)


def _asked_for(text: str) -> str:
    """A user's words without the sentences that only state rules, or take them back, unless all do."""
    said = split_sentences(text)
    asked = [one for place, one in enumerate(said) if not _is_rule(one) and not _lifts_own(said, place)]
    return "\n".join(asked) if "".join(asked).strip() else text


def _lifts_own(said: Sequence[str], place: int) -> bool:
    """Does a sentence of a message only take back a rule that one before it states."""
    return only_lifts(said[place], (rule for one in said[:place] if (rule := _rule_in(" ".join(one.split())))))


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
    """A user's own words as they were set: the first part that has text, without documents in it; of a command of
    Claude Code what was typed."""
    text = next((text for part in typed_parts(event.parts) if (text := part_text(part).strip())), "")
    return first_words(event) if text.startswith(MARKUP) else without_documents(text)


def _repeating(session: Session, quoting: Sequence[int], passages: Sequence[str]) -> tuple[tuple[int, str], ...]:
    """The compactions that do not quote a request but one of its passages, with the longest of them."""
    longest_first = sorted(passages, key=width, reverse=True)
    repeated = []
    for place, item in enumerate(session.compactions):
        if place not in quoting and longest_first:
            texts = [comparable(message) for message in item.own_messages]
            repeats = (one for one in longest_first if any(asserts(text, readings(one)) for text in texts))
            repeated += [(place, one) for one in islice(repeats, 1)]
    return tuple(repeated)


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
        or any(asserts(readings(one), quote) or conveys(one, rule) for one in said)
    )
