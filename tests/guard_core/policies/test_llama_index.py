"""LlamaIndex's memories send what the originals send."""

import pytest

from guard_core.ledger import Ledger
from guard_core.policies import get_policy
from guard_core.policies.llama_index.begins import is_null
from guard_core.replay import replay
from guard_core.sessions import ModelCall
from guard_core.summaries.sizes import FixedSummaries, ScriptedSummaries
from guard_core.trace import HELD_REASONS, RAISED
from guard_core.views import Span, content_count
from tests.builders import model, session, tool_call, tool_result, user
from tests.guard_core.conformance.libraries import check_equals_the_library


@pytest.mark.parametrize("policy", ["llama-index-buffer", "llama-index-memory", "llama-index-summary"])
def test_it_equals_recorded_runs_of_the_library(policy):
    check_equals_the_library(policy)


LOG = session(
    user("x" * 399),
    model("y" * 399),
    user("x" * 39),
    tool_call("read", "a"),
    tool_result("z" * 399, "read", "a"),
    calls=(ModelCall(at=1), ModelCall(at=3), ModelCall(at=5)),
)


@pytest.mark.parametrize(
    ("limit", "view"),
    [
        (1_000, (Span(0, 5),)),
        (150, (Span(2, 5),)),  # from the second question on: 438 characters, None, a space between two messages each
        (111, (Span(2, 5),)),
        (110, (Span(4, 5),)),  # the turn does not fit: its newest message alone
    ],
)
def test_it_begins_with_the_user_or_sends_the_newest_message_alone(limit, view):
    trace = replay(Ledger.of(LOG), get_policy("llama-index-buffer", token_limit=limit), window=1_000)
    assert trace.view(2, 5) == view


def test_without_a_limit_three_quarters_of_the_window_count():
    trace = replay(Ledger.of(LOG), get_policy("llama-index-buffer"), window=1_000)
    assert set(trace.columns["threshold"]) == {750}


def tools(*sizes):
    """A question, then a call with a result of each size; called before each answer."""
    events = [user("q" * 40)]
    for number, size in enumerate(sizes):
        events += [tool_call("read", f"c{number}"), tool_result("z" * size, "read", f"c{number}")]
    return session(*events, calls=tuple(ModelCall(at=at) for at in range(1, len(events) + 1, 2)))


def chat(*sizes):
    """A question of each size, each answered in one word; called before each answer."""
    events = [event for size in sizes for event in (user("q" * size), model("yes."))]
    return session(*events, calls=tuple(ModelCall(at=at) for at in range(1, len(events), 2)))


def starts(log, **settings):
    trace = replay(Ledger.of(log), get_policy("llama-index-memory", **settings), window=1_000)
    return trace, [trace.view(step, call.at)[0].start for step, call in enumerate(log.calls)]


def test_the_memory_flushes_up_to_a_message_of_the_user():
    settings = {"token_limit": 100, "chat_history_token_ratio": 0.7, "token_flush_size": 20}
    _, first = starts(chat(120, 120, 120, 120), **settings)  # 30 and 1 tokens each; over 70 with the third
    assert first == [0, 0, 2, 4]


def test_the_memory_keeps_the_newest_turn_however_long_it_is():
    trace, first = starts(tools(200, 200, 200), token_limit=100)
    assert first == [0, 0, 0, 0]
    assert HELD_REASONS[trace.columns["held"][-1]] == "nothing to compact"
    assert trace.columns["threshold"].tolist() == [70] * 4


def test_a_memory_without_a_message_of_the_user_drops_all():
    log = session(model("y" * 400), model("y" * 400), user("q"), calls=(ModelCall(at=2), ModelCall(at=3)))
    trace = replay(Ledger.of(log), get_policy("llama-index-memory", token_limit=200), window=1_000)
    assert [trace.view(0, 2), trace.view(1, 3)] == [(), (Span(2, 3),)]


def test_the_summary_buffer_summarises_what_does_not_fit():
    log, policy = chat(120, 120, 120, 120), get_policy("llama-index-summary", token_limit=70)
    trace = replay(Ledger.of(log), policy, window=1_000, summarizer=FixedSummaries(8))
    assert trace.columns["decision_tokens"].tolist() == [30, 61, 92, 94]  # from the third on with a summary of 2 tokens
    assert trace.columns["fired"].tolist() == [0, 0, 1, 1]
    assert trace.compactions[1].passes[0].summariser_view[1:] == (Span(2, 4),)  # behind the earlier summary
    assert trace.view(3, 7)[1:] == (Span(4, 7),)


def test_of_a_turn_that_does_not_fit_only_a_summary_is_sent():
    policy = get_policy("llama-index-summary", token_limit=60)
    trace = replay(Ledger.of(tools(160, 160)), policy, window=1_000, summarizer=FixedSummaries(8))
    assert [content_count(trace.view(step, at)) for step, at in enumerate((1, 3, 5))] == [1, 3, 1]


def test_an_error_of_the_summariser_leaves_the_library():
    policy = get_policy("llama-index-summary", token_limit=10)
    trace = replay(Ledger.of(chat(120)), policy, window=1_000, summarizer=ScriptedSummaries((None,)))
    assert trace.columns["held"].tolist() == [RAISED]


def test_an_answer_at_the_beginning_is_summarised_once_it_is_there():
    log = session(model("y"), user("q"), calls=(ModelCall(at=0), ModelCall(at=2)))
    trace = replay(Ledger.of(log), get_policy("llama-index-summary"), window=1_000, summarizer=FixedSummaries(8))
    assert trace.columns["fired"].tolist() == [0, 1]
    assert trace.compactions[0].passes[0].summariser_view == (Span(0, 1),)


def test_a_content_without_a_text_counts_as_the_word_none():
    """Run with llama-index-core 0.14.25: of an answer that only calls, `content` is None, and 4 characters count."""
    log = session(user("q" * 39), tool_call("read", "a"), tool_result("z" * 36, "read", "a"), calls=(ModelCall(at=3),))
    sent = {
        null: replay(Ledger.of(log), get_policy("llama-index-buffer", token_limit=19, null_content=null), window=1_000)
        for null in (False, True)
    }
    assert sent[False].view(0, 3) == (Span(0, 3),)  # 39 + 36 characters and 2 spaces: 19 tokens
    assert sent[True].view(0, 3) == (Span(2, 3),)  # 4 more: 20 tokens


def test_contents_that_are_none_are_looked_up_once_for_a_log():
    ledger = Ledger.of(tools(400))
    assert is_null(ledger) is is_null(ledger)


def test_a_summariser_is_not_given_a_content_without_a_text():
    log = tools(400, 400)
    trace = replay(
        Ledger.of(log),
        get_policy("llama-index-summary", token_limit=50),
        window=1_000,
        summarizer=FixedSummaries(40),
        session=log,
    )
    assert trace.compactions[0].passes[0].summariser_view == (Span(0, 1), Span(2, 3))
