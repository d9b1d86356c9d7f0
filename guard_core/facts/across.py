"""What a compaction did to snippets, and what was open when it came: calls, the last request, the list of todos."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import NamedTuple

import msgspec
import numpy as np

from guard_core.costs import CALL, RESULT
from guard_core.events import Event
from guard_core.facts.continuing import asks_only_to_continue
from guard_core.facts.lanes import Search, Snippet, SnippetState
from guard_core.facts.proposals import TODO
from guard_core.facts.todos import Todos
from guard_core.findings.first_words import first_words
from guard_core.findings.presence import SHORTEST, quotation
from guard_core.ledger import Ledger
from guard_core.quoting import width
from guard_core.views import View

LAST_REQUEST = "last request"
MOST_REQUESTS = 10  # that are looked at for the last one: those behind it only ask to continue


class Crossing(msgspec.Struct, frozen=True):
    """A snippet in the request before a compaction, in what the summariser was given (None: not known, or none was
    asked), and in the request after it."""

    snippet: Snippet
    before: SnippetState
    given: SnippetState | None
    after: SnippetState

    @property
    def is_worse(self) -> bool:
        """Is less of it known to be in the request after than before."""
        return self.after > self.before


class Views(NamedTuple):
    """The views of a compaction. The epochs say whose inserted messages those before and after mean (-1: none)."""

    before: View
    before_epoch: int
    given: View | None
    after: View
    after_epoch: int


def crossings(search: Search, views: Views) -> tuple[Crossing, ...]:
    """The snippets that the request before a compaction had, the worst first."""
    before = search.states_in(views.before, views.before_epoch)
    after = search.states_in(views.after, views.after_epoch)
    given = [None] * len(before) if not views.given else search.states_in(views.given, views.before_epoch)
    rows = (Crossing(*row) for row in zip(search.snippets, before, given, after, strict=True))
    return tuple(sorted((row for row in rows if row.before is not SnippetState.GONE), key=lambda row: -row.after))


def calls_without_result(ledger: Ledger, at: int) -> int:
    """How many tool calls of the first `at` events have no result among them."""
    parts, before = ledger.parts, ledger.parts["event"] < at
    answered = parts["answers"][before & (parts["kind"] == RESULT)]
    calls = np.flatnonzero(before & (parts["kind"] == CALL))
    return int((~np.isin(calls, answered)).sum())


def last_requests(ledger: Ledger, at: int) -> list[int]:
    """The messages that began the last turns of the user before event `at`, the first MOST_REQUESTS from the end."""
    earlier: list[int] = ledger.turn_starts[ledger.turn_starts < at].tolist()
    return earlier[-MOST_REQUESTS:]


def open_work(events: Iterable[tuple[int, Event]], at: int, requests: Container[int]) -> tuple[Snippet, ...]:
    """The last of the user's requests that does not only ask to continue, by the first words that findings know it by,
    and the todos open at event `at`."""
    todos = Todos()
    asked: tuple[Snippet, ...] = ()
    for index, event in events:
        if index in requests and not asks_only_to_continue(words := first_words(event)):
            quote = quotation(words)
            asked = (Snippet(LAST_REQUEST, quote, index),) if width(quote) >= SHORTEST else ()
        if index < at:
            todos.read(index, event)
    return (*asked, *dict.fromkeys(Snippet(TODO, todo.text, todo.message) for todo in todos.open))
