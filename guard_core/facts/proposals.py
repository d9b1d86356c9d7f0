"""Snippets worth following: instructions, open todos, and the paths, identifiers and quantities that people name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import msgspec
import numpy as np

from guard_core.costs import HAS_RESULT, SYSTEM, USER
from guard_core.events import Event, TextPart
from guard_core.facts.instructions import MOST_RULE_CHARS, RULE, kind_of, says_something, sentences
from guard_core.facts.lanes import Snippet
from guard_core.facts.todos import Todos, todo_events
from guard_core.facts.withdrawals import taken_back
from guard_core.findings.presence import SHORTEST
from guard_core.ledger import Ints, Ledger
from guard_core.own_words import own_parts, typed_parts
from guard_core.quoting import normalised, width
from guard_core.sessions import Session

TODO, PATH, IDENTIFIER, QUANTITY, TYPED = "todo", "path", "identifier", "quantity", "typed"
MOST_INSTRUCTIONS = 100  # of one session that are followed, the first ones: ours, so that a page takes a moment
MOST_DETAILS = 20  # of each kind of path, identifier and quantity, the first ones
MOST_READ = 1_000  # messages of users that are looked at
# Each pattern takes time in proportion to its text: no two of its parts can take the same character.
_DETAILS = {
    PATH: re.compile(
        r"(?<![\w/.@~+-])(?:https?://[\w./?&=%#:@+~-]{1,300}\w|~?[\w.@+-]*(?:/[\w.@+-]+)+/?"
        r"|[\w-]{1,100}(?:\.[a-z]{1,4}){1,2}\b)"
    ),
    IDENTIFIER: re.compile(
        r"(?<![\w/.-])(?:[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)+|[a-z]+(?:[A-Z][a-z0-9]+)+|(?:[A-Z][a-z0-9]+){2,}"
        r"|(?=[a-f]{0,39}\d)[0-9a-f]{7,40}|#\d{2,})(?![\w/])"
    ),
    QUANTITY: re.compile(
        r"(?<![\w.,])(?:[$€£]\s?\d[\d,.]{0,15}|\d[\d,.]{0,15}\s?(?:%|(?:ms|s|sec|seconds?|min|minutes?|hours?|days?|weeks?"
        r"|[kKMGT]i?B|bytes?|tokens?|px|rows?|lines?|users?|characters?|chars)\b))"
    ),
}
_COMMAND = "<command-name>"  # before the name of a command in what Claude Code makes of it
_SHORTEST = {PATH: 5, IDENTIFIER: 6, QUANTITY: 2}  # characters; shorter ones are in too many texts by chance


def events_to_read(ledger: Ledger) -> Ints:
    """The events whose texts are needed for proposals: those of users and of the system without tool results, the first
    MOST_READ, and those of todo tools, the last MOST_TODO_EVENTS."""
    flags = ledger.events["flags"]
    users = np.flatnonzero(((flags & (USER | SYSTEM)) > 0) & ((flags & HAS_RESULT) == 0))[:MOST_READ]
    return np.union1d(users, todo_events(ledger, ledger.event_count))


def instructions(session: Session, events: Iterable[tuple[int, Event]]) -> tuple[Snippet, ...]:
    """The rules and requests of the system prompt and of these messages, each once, in their order, with the message of
    the user that took a rule back for good. Those of the system prompt are of event -1."""
    snippets: dict[str, Snippet] = {}
    for index, sentence, of_user in _sentences(session, events):
        if of_user:
            in_force = {one.text: key for key, one in snippets.items() if one.kind == RULE and one.withdrawn_by < 0}
            for rule in taken_back(sentence, in_force):
                snippets[in_force[rule]] = msgspec.structs.replace(snippets[in_force[rule]], withdrawn_by=index)
        kind = kind_of(sentence, of_user=of_user)
        if not kind or width(sentence) < SHORTEST or not says_something(sentence):
            continue
        if (key := normalised(sentence)) in snippets:  # stated again, it holds again
            snippets[key] = msgspec.structs.replace(snippets[key], withdrawn_by=-1)
        elif len(snippets) < MOST_INSTRUCTIONS:
            snippets[key] = Snippet(kind, sentence, index)
    return tuple(snippets.values())


def _sentences(session: Session, events: Iterable[tuple[int, Event]]) -> Iterator[tuple[int, str, bool]]:
    """The sentences of the system prompt, of event -1, and of messages: is each a user's own words."""
    log = ((index, event.parts, event.starts_turn()) for index, event in events)
    for index, parts, of_user in ((-1, session.system or (), False), *log):
        for sentence in sentences(own_parts(parts) if of_user else parts):
            yield index, " ".join(sentence.split()), of_user


def details(events: Iterable[tuple[int, Event]]) -> tuple[Snippet, ...]:
    """The todos that are open at last by these messages, and the paths, identifiers and quantities that users name."""
    named: dict[str, dict[str, Snippet]] = {kind: {} for kind in _DETAILS}
    todos = Todos()
    for index, event in events:
        todos.read(index, event)
        if event.starts_turn():
            for part in typed_parts(event.parts):
                if isinstance(part, TextPart):
                    for snippet in named_in(part.text, index):
                        if len(named[snippet.kind]) < MOST_DETAILS:
                            named[snippet.kind].setdefault(normalised(snippet.text), snippet)
    listed = list(dict.fromkeys(Snippet(TODO, todo.text, todo.message) for todo in todos.open))
    return (*listed[:MOST_DETAILS], *(snippet for kind in named.values() for snippet in kind.values()))


def named_in(text: str, event: int = -1) -> Iterator[Snippet]:
    """The paths, identifiers and quantities in a text of message `event`."""
    for kind, pattern in _DETAILS.items():
        for match in pattern.finditer(text[:MOST_RULE_CHARS]):
            if len(words := match[0].rstrip(".,:;")) >= _SHORTEST[kind] and not _is_tag(match):
                yield Snippet(kind, words, event)


def _is_tag(match: re.Match[str]) -> bool:
    """Is it the name in a tag around a text, `<state_snapshot>` or `</command-args>`, or a command between such tags of
    Claude Code."""
    name, text = match[0].removeprefix("/"), match.string
    before, after = text[max(0, match.start() - len(_COMMAND)) : match.start()], text[match.end() : match.end() + 1]
    is_name = after == ">" and re.fullmatch(r"[\w-]+", name) is not None
    return before == _COMMAND or (is_name and before.removesuffix("/").endswith("<"))
