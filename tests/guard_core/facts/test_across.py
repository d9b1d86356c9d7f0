"""What a compaction did to snippets, and what was open when it came."""

from guard_core.facts.across import Views, calls_without_result, crossings, last_requests, open_work
from guard_core.facts.lanes import Search, Snippet, SnippetState, places_of
from guard_core.findings import Facts
from guard_core.ledger import Ledger
from guard_core.outcomes.sent import SentRequests
from guard_core.views import Span, Synthetic
from tests.builders import model, session, tool_call, tool_result, user

LOG = (user("Never push to main branch"), model("ok"), user("Use tabs in the Makefile"), model("fine"))


def test_a_snippet_is_compared_before_given_and_after():
    built = session(*LOG)
    snippets = (Snippet("rule", "Use tabs in the Makefile", 2), Snippet("rule", "Never push to main branch", 0))
    places = places_of(snippets, enumerate(LOG))
    search = Search(SentRequests.recorded(Facts.of(built)), snippets, places, LOG.__getitem__)
    views = Views((Span(0, 4),), -1, (Span(2, 4),), (Synthetic("summary", 9, "Use tabs in the Makefile"),), -1)
    first, second = crossings(search, views)
    assert (first.snippet.event, first.before, first.given, first.after) == (
        0,
        SnippetState.VERBATIM,
        SnippetState.GONE,
        SnippetState.GONE,
    )
    assert (second.before, second.given, second.after) == (
        SnippetState.VERBATIM,
        SnippetState.VERBATIM,
        SnippetState.QUOTED,
    )
    assert first.is_worse
    assert second.is_worse


def test_calls_wait_until_their_result_has_come():
    ledger = Ledger.of(session(user("go"), tool_call("ls", "a"), tool_result("x", "ls", "a"), tool_call("ls", "b")))
    assert [calls_without_result(ledger, at) for at in range(5)] == [0, 0, 1, 0, 1]


def test_the_last_request_and_the_open_todos_are_those_before_it():
    todos = [{"content": "first", "status": "pending"}], [{"content": "second", "status": "in_progress"}]
    log = [*LOG, tool_call("TodoWrite", "t", todos=todos[0]), tool_call("TodoWrite", "u", todos=todos[1])]
    ledger = Ledger.of(session(*log))
    assert [last_requests(ledger, at) for at in (0, 1, 2, 3, 6)] == [[], [0], [0], [0, 2], [0, 2]]
    texts = [(item.kind, item.text) for item in open_work(enumerate(log), 5, [0, 2])]
    assert texts == [("last request", "Use tabs in the Makefile"), ("todo", "first")]
    assert [item.text for item in open_work(enumerate(log), 6, [0, 2])][1:] == ["second"]


def test_the_last_request_is_the_one_that_messages_behind_it_say_to_go_on_with():
    log = [*LOG, user("continue"), model("ok"), user("Weiter!")]
    assert [item.text for item in open_work(enumerate(log), 7, [0, 2, 4, 6])] == ["Use tabs in the Makefile"]
    assert open_work(enumerate([*log, user("yes")]), 8, [0, 2, 4, 6, 7]) == ()
