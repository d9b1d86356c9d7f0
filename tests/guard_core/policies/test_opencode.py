"""OpenCode fires where a recorded run of it fired, keeps a tail of turns, and clears old results."""

from __future__ import annotations

import numpy as np
import pytest

from guard_core.errors import SettingError
from guard_core.estimation.usage import usage_for
from guard_core.ledger import Ledger
from guard_core.policies import get_policy
from guard_core.policies.opencode import CONTINUE, LOST_STEPS, MESSAGES, QUESTION
from guard_core.replay import observe_recorded, replay
from guard_core.requests import materialise
from guard_core.sessions import ModelCall
from guard_core.summaries.sizes import FixedSummaries
from guard_core.trace import STALLED
from guard_core.views import Span, Synthetic
from tests.builders import session, tool_call, tool_result, user
from tests.guard_core.rules.measured import run_of

SUMMARY = Synthetic("summary", 2_400, role="model")


def conversation(words, *counts):
    """A session from "u a25000 u a": a turn begins at each u, each a is a call whose result has so many tokens. The
    last `counts` are those of the last calls, the others 1,000."""
    events, calls = [], []
    for number, word in enumerate(words.split()):
        if word == "u":
            events.append(user("Go on"))
            continue
        calls.append(len(events))
        result = "y" * 4 * int(word[1:] or 1)
        events += [tool_call("read", f"c{number}"), tool_result(result, "read", f"c{number}")]
    tokens = [*[1_000] * (len(calls) - len(counts)), *counts]
    model_calls = (ModelCall(at, at, count, output_tokens=0) for at, count in zip(calls, tokens, strict=True))
    return session(*events, calls=tuple(model_calls))


def replayed(log, window=200_000, size=2_400, **settings):
    ledger = Ledger.of(log)
    policy = get_policy("opencode", **settings)
    return replay(ledger, policy, window=window, usage=usage_for(ledger, None), summarizer=FixedSummaries(size))


# ---- when it fires


@pytest.mark.parametrize(
    ("profile", "window", "settings", "threshold"),
    [
        ("before-1.0", 200_000, {"max_output": 64_000}, 168_000),
        ("before-1.0", 128_000, {"max_output": 16_384}, 111_616),
        ("before-1.0", 16_384, {"max_output": 0}, 0),  # nothing is left: every step compacts
        ("1.18", 200_000, {"max_output": 64_000}, 168_000),
        ("1.18", 128_000, {"max_output": 16_384}, 111_616),
        ("1.18", 200_000, {"reserved": "10000"}, 168_000),
        ("1.18", 400_000, {"input_limit": 272_000}, 252_000),
        ("reserving", 200_000, {"max_output": 64_000}, 148_000),
        ("reserving", 128_000, {"max_output": 16_384}, 95_232),
        ("reserving", 65_536, {}, 13_536),
        ("v2", 200_000, {"max_output": 64_000}, 168_000),
        ("v2", 400_000, {"input_limit": 272_000}, 252_000),
    ],
)
def test_the_threshold_is_what_the_output_and_the_reserve_leave(profile, window, settings, threshold):
    trace = replayed(conversation("u a a"), window, profile=profile, **settings)
    assert set(trace.columns["threshold"]) == {threshold}


@pytest.mark.parametrize(("profile", "tokens"), [("before-1.0", 168_001), ("1.18", 168_000)])
def test_the_oldest_version_needs_one_token_more(profile, tokens):
    for count, fires in ((tokens - 1, 0), (tokens, 1)):
        trace = replayed(conversation("u a u a5000 a a", count, 1_000), profile=profile)
        assert trace.columns["fired"].tolist() == [0, 0, 0, fires]


def test_a_window_of_no_known_size_never_fires_and_a_wrong_size_is_refused():
    assert get_policy("opencode").threshold(0) is None
    with pytest.raises(SettingError, match="Keep recent"):
        get_policy("opencode", keep="much")


def test_version_2_counts_what_was_added_since_the_last_count():
    log = conversation("u a20000 a", 150_000, 1_000)
    assert replayed(log).columns["decision_tokens"][1] == 150_000
    trace = replayed(log, profile="v2")
    ledger = Ledger.of(log)
    assert trace.columns["pending"][1] == MESSAGES.prefix(ledger)[3] - MESSAGES.prefix(ledger)[2] >= 20_000
    assert trace.columns["fired"][1] == 1


def test_it_fires_at_every_call_of_a_recorded_run_where_opencode_fired_and_leaves_what_it_left(tmp_path):
    run = run_of("opencode/default", tmp_path)
    log, truth = run.session, run.truth
    ledger, policy, usage = Ledger.of(log), get_policy("opencode"), usage_for(Ledger.of(log), None)
    trace = observe_recorded(ledger, policy, window=run.window.value, usage=usage)
    fired = np.flatnonzero(trace.columns["fired"])
    assert fired.tolist() == (np.flatnonzero(np.diff(ledger.steps["epoch"])) + 1).tolist()
    assert trace.columns["decision_tokens"][fired].tolist() == [item["count"] for item in truth["compactions"]]
    record = replay(ledger, policy, window=run.window.value, usage=usage).compactions[0]
    sizes = [len(message.parts[0].text) for message in log.compactions[0].messages]
    assert (record.step, [item.bytes for item in record.after]) == (fired[0], sizes)


# ---- what it keeps


def test_the_oldest_version_keeps_nothing():
    record = replayed(conversation("u a5000 u a a", 170_000, 1_000), profile="before-1.0", prune=False).compactions[0]
    assert record.after == (QUESTION, SUMMARY, CONTINUE)
    assert record.passes[0].summariser_view == (Span(0, 6),)


@pytest.mark.parametrize(
    ("words", "settings", "kept"),
    [
        ("u a9000 u a4000 u a4000 a", {}, Span(3, 9)),  # two turns fit 15,000 tokens
        ("u a9000 u a4000 u a4000 a", {"tail_turns": 1}, Span(6, 9)),
        ("u a9000 u a4000 u a4000 a", {"keep": "0"}, None),
        ("u a9000 u a9000 a4000 a4000 a", {}, Span(6, 10)),  # of the last turn what fits, from an answer on
        ("u a100 u a100 a", {}, None),  # all of it would fit, so nothing is kept
        ("u a9000 u a20000 a", {}, None),  # the newest result alone does not fit
    ],
)
def test_a_tail_of_turns_stays_behind_the_summary(words, settings, kept):
    record = replayed(conversation(words, 170_000, 1_000), **settings).compactions[0]
    assert record.after == (QUESTION, SUMMARY, *((kept,) if kept else ()), CONTINUE)


def test_a_second_summary_continues_the_first_and_is_not_made_of_it():
    trace = replayed(conversation("u a9000 u a4000 a a9000 a", 170_000, 1_000, 171_000, 1_000))
    assert len(trace.compactions) == 2
    given = trace.compactions[1].passes[0].summariser_view
    assert not any(item in (QUESTION, SUMMARY) for item in given)


def test_version_2_sends_its_tail_as_text_in_the_message_of_the_summary():
    record = replayed(conversation("u a9000 u a9000 u a4000 a", 170_000, 1_000), profile="v2").compactions[0]
    (message,) = record.after
    assert 2_400 + 2_000 < message.bytes < 2_400 + 3_000  # a result is shown with 2,000 characters
    assert record.passes[0].summariser_view[-1].stop == 6


def test_a_refused_request_is_repeated_with_the_users_message_alone_behind_the_summary():
    record = replayed(conversation("u a500 u a40000 a", 1_000, 210_000), max_output=0).compactions[0]
    assert record.point == "on an overflow"
    assert record.after == (QUESTION, SUMMARY, Span(3, 4))
    assert record.notes == (LOST_STEPS,)


def test_a_compaction_that_leaves_as_much_is_the_last_of_its_turn_where_that_is_asked_for():
    log = conversation("u a u a a a a", *[40_000] * 5)  # nearly all of it is not in the messages
    assert replayed(log, window=50_000).columns["fired"].tolist() == [0, 1, 1, 1, 1]
    stalled = replayed(log, window=50_000, stall_share=0.95).columns
    assert stalled["fired"].tolist() == [0, 1, 0, 0, 0]
    assert stalled["held"].tolist()[2:] == [STALLED] * 3


# ---- what it clears


def cleared(words, **settings):
    trace = replayed(conversation(words), profile="before-1.0", **settings)
    records = [record for record in trace.compactions if "cleared" in record.reason]
    return [span for record in records for span in record.after if isinstance(span, Span) and span.form]


def test_results_older_than_two_turns_and_40000_tokens_are_cleared():
    # Before the last two turns: 18,000 and 20,000 stay, with 15,000 they are more than 40,000.
    log = conversation("u a25000 a15000 a20000 a18000 u a50000 u a1000 u a")
    trace = replayed(log, profile="before-1.0")
    after = materialise(trace.compactions[0].after, log)
    cleared = [index for index, event in enumerate(after) if event != log.events[index]]
    assert cleared == [2, 4]


@pytest.mark.parametrize(("oldest", "count"), [(20_000, 0), (20_001, 1)])
def test_results_are_cleared_where_that_is_worth_it(oldest, count):
    assert len(cleared(f"u a{oldest} a40000 u a u a u a")) == count


def test_what_was_cleared_once_is_not_counted_again_and_new_versions_clear_when_asked():
    words = "u a25000 a41000 u a1000 u a1000 u a1000 u a1000"
    assert len(cleared(words)) == 1
    assert not replayed(conversation(words)).compactions
    assert len(replayed(conversation(words), prune=True).compactions) == 1
