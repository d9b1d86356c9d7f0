"""pi fires where recorded runs of it fired, and cuts where its source says it cuts."""

from __future__ import annotations

import numpy as np
import pytest

from guard_core.estimation.usage import RatioUsage, usage_for
from guard_core.ledger import Ledger
from guard_core.policies import get_policy
from guard_core.policies.pi import FRAME_BYTES, NO_HISTORY_BYTES, SPLIT_BYTES
from guard_core.replay import observe_recorded, replay
from guard_core.sessions import ModelCall
from guard_core.summaries.sizes import FixedSummaries, ScriptedSummaries
from guard_core.trace import NOTHING_TO_COMPACT, SUMMARISER_FAILED
from guard_core.views import Span, Synthetic
from tests.builders import model, session, tool_call, tool_result, user
from tests.guard_core.rules.measured import run_of


def conversation(sizes, last=190_000, after=1_000):
    """A session from "u100 a400 r8000": messages of so many tokens of user, assistant and result; an answer whose next
    message is a result calls a tool. The last answer's prompt has `last` tokens; a new turn of one call follows."""
    words = sizes.split()
    events, calls = [], []
    for number, word in enumerate(words):
        kind, tokens = word[0], int(word[1:])
        if kind == "u":
            events.append(user("x" * 4 * tokens))
        elif kind == "r":
            events.append(tool_result("y" * 4 * tokens, "read", f"c{number - 1}"))
        else:
            calls.append(ModelCall(len(events), len(events), 1_000, output_tokens=0))
            calling = number + 1 < len(words) and words[number + 1][0] == "r"
            text = "z" * (4 * tokens - (6 if calling else 0))  # the call itself: its name and "{}"
            events.append(tool_call("read", f"c{number}", text=text) if calling else model(text))
    calls[-1] = ModelCall(calls[-1].at, calls[-1].response, last, output_tokens=0)
    calls.append(ModelCall(len(events) + 1, None, after))
    return session(*events, user("next"), calls=tuple(calls))


def replayed(log, window=200_000, summarizer=None, **settings):
    ledger = Ledger.of(log)
    policy = get_policy("pi", **settings)
    usage = usage_for(ledger, None)
    return replay(ledger, policy, window=window, usage=usage, summarizer=summarizer or FixedSummaries(2_400))


# ---- when it fires


@pytest.mark.parametrize(("tokens", "fires"), [(180_000, 0), (183_616, 0), (183_617, 1)])
def test_it_fires_above_the_window_less_the_reserve(tokens, fires):
    for profile in ("current", "seed"):
        trace = replayed(conversation("u100 a400 u100 a30000", tokens), profile=profile, keep_recent_tokens=1_000)
        assert (trace.columns["decision_tokens"][2], trace.columns["threshold"][2]) == (tokens, 183_616)
        assert profile == "seed" or trace.columns["fired"][2] == fires


def test_it_never_looks_within_a_turn_unless_it_estimates_results():
    log = session(
        user("go"),
        tool_call("read", "a"),
        tool_result("y" * 400_000, "read", "a"),
        model("done"),
        calls=(ModelCall(1, 1, 180_000, output_tokens=0), ModelCall(3, 3, 1_000)),
    )
    assert replayed(log).columns["decision_tokens"].tolist() == [-1, 180_000]
    trace = replayed(log, profile="seed", pending="largest")
    assert trace.columns["decision_tokens"][1] == 280_000  # 180,000 + 400,000 // 4
    assert trace.columns["held"][1] == NOTHING_TO_COMPACT


@pytest.mark.parametrize(("chars", "fires"), [(14_464, False), (14_465, True)])
def test_from_0_85_on_it_looks_before_every_call_with_what_was_added(chars, fires):
    """180,000 and a quarter of the characters, rounded up, above 183,616. The result alone is more than is kept: the
    cut is before its call."""
    log = session(
        user("go"),
        tool_call("read", "a"),
        tool_result("y" * chars, "read", "a"),
        calls=(ModelCall(1, 1, 180_000, output_tokens=0), ModelCall(3, None, 1_000)),
    )
    trace = replayed(log, profile="0.85", keep_recent_tokens=3_000)
    assert trace.columns["decision_tokens"].tolist() == [-1, 180_000 + -(-chars // 4)]
    assert [(record.step, record.kept_from) for record in trace.compactions] == ([(1, 1)] if fires else [])


def test_from_0_85_on_a_message_of_the_user_is_not_counted_before_it_is_in_the_log():
    calls = (ModelCall(1, 1, 180_000, output_tokens=7), ModelCall(3, None, 1_000))
    log = session(user("go"), model("done"), user("x" * 40_000), calls=calls)
    assert replayed(log, profile="0.85").columns["decision_tokens"].tolist() == [-1, 180_007]


def test_from_0_85_on_the_earlier_summary_stays_where_only_a_turns_beginning_is_new():
    log = session(
        *(user("x" * 400), model("z" * 8_000), user("x" * 2_000)),
        *(tool_call("read", "a"), tool_result("y" * 1_600, "read", "a")),
        *(tool_call("read", "b"), tool_result("y" * 6_000, "read", "b"), model("done")),
        calls=tuple(ModelCall(at, at) for at in (1, 3, 5, 7)),
    )
    policy = get_policy("pi", profile="0.85", reserve_tokens=0, keep_recent_tokens=900)
    summaries = FixedSummaries(2_400)
    trace = replay(Ledger.of(log), policy, window=2_700, usage=RatioUsage(1.0), summarizer=summaries)
    assert [(record.step, record.kept_from) for record in trace.compactions] == [(2, 2), (3, 5)]
    first, second = (record.carried[0].bytes for record in trace.compactions)
    assert (first, second) == (FRAME_BYTES + 2_400, first + SPLIT_BYTES + 2_400)


def test_results_are_compared_one_by_one_or_all_together():
    log = session(
        user("go"),
        tool_call("read", "a"),
        tool_result("y" * 400, "read", "a"),
        tool_result("y" * 4_000, "read", "b"),
        calls=(ModelCall(1, 1, 1_000, output_tokens=0), ModelCall(4, None, 1_000)),
    )
    pending = [replayed(log, pending=which).columns["pending"][1] for which in ("none", "largest", "sum")]
    assert pending == [0, 1_000, 1_100]


def test_it_fires_at_every_call_of_a_recorded_run_where_pi_fired_and_keeps_what_it_kept(tmp_path):
    run = run_of("pi/0.74.2-default", tmp_path)
    log, truth = run.session, run.truth
    ledger = Ledger.of(log)
    policy = get_policy("pi")
    trace = observe_recorded(ledger, policy, window=run.window.value, usage=usage_for(ledger, None))
    fired = np.flatnonzero(trace.columns["fired"])
    assert fired.tolist() == (np.flatnonzero(np.diff(ledger.steps["epoch"])) + 1).tolist()
    assert trace.columns["decision_tokens"][fired].tolist() == [item["count"] for item in truth["compactions"]]
    summarising = replay(ledger, policy, window=run.window.value, usage=usage_for(ledger, None)).compactions[0]
    assert (summarising.step, *summarising.carried, Span(summarising.kept_from, log.compactions[0].at)) == (
        fired[0],
        Synthetic("summary", 5_233),
        log.compactions[0].base[1],
    )


# ---- what it keeps


@pytest.mark.parametrize(
    ("sizes", "cut", "frame"),
    [
        # The sum reaches 20,000 at a result: the cut is at the answer behind it, within the first turn.
        ("u100 a400 r8000 a300 r6000 a500 u80 a200 r9000 a250 r5000 a600", 5, SPLIT_BYTES + NO_HISTORY_BYTES),
        ("u100 a400 r30000 a300", 3, SPLIT_BYTES + NO_HISTORY_BYTES),
        ("u100 a400 u100 a9000 u100 a20000", 5, SPLIT_BYTES),
        ("u100 a400 u100 a9000 u20000 a100", 4, 0),
    ],
)
def test_the_cut_is_at_or_behind_the_message_that_reaches_the_budget(sizes, cut, frame):
    record = replayed(conversation(sizes)).compactions[0]
    assert record.cut == (cut, cut, cut)
    assert record.carried[0] == Synthetic("summary", FRAME_BYTES + frame + 2_400 * (1 + (frame == SPLIT_BYTES)))
    assert record.kept_from == cut


def test_a_split_turn_is_summarised_in_two_calls():
    record = replayed(conversation("u100 a400 u100 a9000 u100 a20000")).compactions[0]
    assert [item.summariser_view for item in record.passes] == [(Span(0, 4),), (Span(4, 5),)]


@pytest.mark.parametrize("sizes", ["u100 a400 r12500 r12500", "u100 a400 u100 a500"])
def test_where_there_is_nothing_before_a_cut_it_does_nothing_and_says_so(sizes):
    trace = replayed(conversation(sizes))
    assert not trace.compactions
    assert trace.columns["held"][-1] == NOTHING_TO_COMPACT


def test_outputs_are_cut_when_they_are_recorded_and_for_the_summariser():
    log = conversation("u100 a400 r9000 u100 a30000")
    trace = replayed(conversation("u100 a400 r9000 u100 a30000", 250_000), output_cap=30_000)
    assert trace.compactions[0].before[0].form == get_policy("pi", output_cap=30_000).form
    plain = replayed(log).compactions[0]
    given, *_ = plain.passes
    assert given.summariser_tokens < 1_500 < 9_000 < plain.tokens_before


def test_the_earlier_summary_is_continued_and_never_summarised_again():
    first = conversation("u100 a400 u100 a400 u100 a25000 u100 a21000")
    log = session(
        *first.events,
        model("z" * 100_000),
        user("more"),
        calls=(
            ModelCall(6, 6, 190_000, output_tokens=0),
            *first.calls[-1:],
            ModelCall(len(first.events) + 2, None, 1_000),
        ),
    )
    ledger = Ledger.of(log)
    policy = get_policy("pi")
    usage = usage_for(ledger, None)
    trace = replay(ledger, policy, window=40_000, usage=usage, summarizer=FixedSummaries(2_400))
    for record in trace.compactions:
        assert not any(
            isinstance(item, Synthetic) for summarising in record.passes for item in summarising.summariser_view
        )


def test_the_seed_keeps_the_turns_whose_counts_are_within_the_budget_of_the_newest():
    events, calls = [], []
    for tokens in (150_000, 160_000, 172_000, 184_000):
        calls.append(ModelCall(len(events) + 1, len(events) + 1, tokens, output_tokens=0))
        events += [user("x"), model("y")]
    log = session(*events, user("next"), calls=(*calls, ModelCall(9, None, 1_000)))
    record = replayed(log, profile="seed").compactions[0]
    assert (record.step, record.kept_from, record.carried) == (4, 4, (Synthetic("summary", FRAME_BYTES + 2_400),))


@pytest.mark.parametrize("profile", ["current", "0.85"])
def test_a_history_of_results_alone_is_not_compacted(profile):
    """A recording may begin in the middle of a turn: there is no message that may come first then."""
    log = session(tool_result("x" * 90_000, id="0"), model("done"), user("next"), model("done"))
    trace = replayed(log, window=20_000, profile=profile)
    assert 0 not in [record.step for record in trace.compactions]


def test_a_failed_summary_leaves_the_messages_as_they_are():
    trace = replayed(conversation("u100 a400 u100 a30000"), summarizer=ScriptedSummaries((None,)))
    assert not trace.compactions
    assert trace.columns["held"][-1] == SUMMARISER_FAILED


def test_a_refused_request_is_compacted_once_in_a_turn():
    log = conversation("u100 a400 u100 a30000", 30_000, 250_000)
    recovered, plain = replayed(log, window=50_000, reserve_tokens=1), replayed(log, window=50_000, recover=False)
    assert [record.point for record in plain.compactions] == []
    assert [record.point for record in recovered.compactions] == ["on an overflow"]


def test_a_step_is_explained_by_where_it_looks_and_what_it_compares():
    trace = replayed(conversation("u100 a400 r400 a500", 190_000), keep_recent_tokens=300)
    policy = get_policy("pi", keep_recent_tokens=300)
    verdicts = [policy.explain(trace, step)[-1].expression for step in (1, 2)]
    assert verdicts == [
        "1,000 <= 183,616: it does not check here",
        "190,000 > 183,616: it compacts",
    ]
