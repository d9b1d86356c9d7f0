"""Codex fires where recorded runs of it fired, and keeps what its source says it keeps."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from guard_core.errors import SettingError
from guard_core.estimation.usage import RatioUsage, usage_for
from guard_core.forms import capped, get_form
from guard_core.ledger import Ledger
from guard_core.policies import get_policy
from guard_core.policies.base import Check
from guard_core.policies.codex import PREFIX_BYTES, output_tokens
from guard_core.policies.pieces.requests import newest_requests
from guard_core.recordings import read
from guard_core.replay import observe_recorded, replay
from guard_core.sessions import ModelCall
from guard_core.summaries.sizes import FixedSummaries
from guard_core.trace import STILL_OVER
from guard_core.views import Span, Synthetic
from tests.builders import model, session, tool_call, tool_result, user

RUN = Path(__file__).parents[3] / "../shared/rules/codex/default"


def counted(*prompts, results=100, output=10):
    """One turn: a call of a tool and its result of some characters after every count of prompt tokens."""
    events = [user("Read the files")]
    steps = []
    for number, tokens in enumerate(prompts):
        steps.append(ModelCall(len(events), len(events), tokens, output_tokens=output))
        events += [tool_call("read", f"c{number}"), tool_result("y" * results, "read", f"c{number}")]
    return session(*events, calls=tuple(steps))


def replayed(log, window=200_000, **settings):
    ledger = Ledger.of(log)
    policy = get_policy("codex", **settings)
    return replay(ledger, policy, window=window, usage=usage_for(ledger, None), summarizer=FixedSummaries(2_400))


# ---- when it fires


@pytest.mark.parametrize(("tokens", "fires"), [(179_999, False), (180_000, True)])
def test_it_fires_at_nine_tenths_of_the_window(tokens, fires):
    trace = replayed(counted(tokens, 1_000, output=0), count_pending=False)
    assert bool(trace.columns["fired"][1]) == fires
    assert set(trace.columns["threshold"]) == {180_000}


def test_what_was_added_since_the_last_call_counts_now_and_did_not_at_first():
    log = counted(179_000, 1_000, results=4_000, output=0)  # and 2 characters of its id: 1,001 tokens
    current, seed = replayed(log).columns, replayed(log, profile="seed").columns
    assert (current["pending"][1], current["decision_tokens"][1], current["fired"][1]) == (1_001, 180_001, 1)
    assert (seed["pending"][1], seed["decision_tokens"][1], seed["fired"][1]) == (0, 179_000, 0)


def test_a_new_turn_is_checked_before_the_message_of_the_user_counts():
    log = session(
        user("Begin"),
        model("done"),
        user("x" * 4_000_000),
        calls=(ModelCall(1, 1, 1_000, output_tokens=5), ModelCall(3, None, 1_000_000)),
    )
    trace = replayed(log)
    assert trace.columns["decision_tokens"][1] == 1_005
    assert not trace.columns["fired"][1]


def test_a_limit_set_by_hand_is_never_above_nine_tenths():
    thresholds = [
        get_policy("codex", limit=limit).settings.threshold(200_000) for limit in ("auto", "50%", "150k", "1M")
    ]
    assert thresholds == [180_000, 100_000, 150_000, 180_000]
    with pytest.raises(SettingError, match=r"Limit is auto, a number of tokens or a share"):
        get_policy("codex", limit="much")


def test_the_window_in_its_own_recordings_is_the_usable_part_of_the_models():
    assert get_policy("codex", usable_share=0.95).settings.threshold(258_400) == 244_800
    assert get_policy("codex", usable_share=0.95).settings.threshold(121_600) == 115_200


@pytest.mark.skipif(not RUN.exists(), reason="../shared/rules is absent")
def test_it_fires_at_every_call_of_a_recorded_run_where_codex_fired_and_nowhere_else():
    truth = json.loads((RUN / "truth.json").read_text())
    log = read(RUN / truth["session_files"][0]).sessions[0]
    ledger = Ledger.of(log)
    policy = get_policy("codex", usable_share=0.95)
    trace = observe_recorded(ledger, policy, window=log.window.value, usage=usage_for(ledger, None))
    fired = np.flatnonzero(trace.columns["fired"])
    assert fired.tolist() == (np.flatnonzero(np.diff(ledger.steps["epoch"])) + 1).tolist()
    assert trace.columns["decision_tokens"][fired].tolist() == [item["count"] for item in truth["compactions"]]
    assert set(trace.columns["threshold"]) == {truth["rule"]["threshold"]}


# ---- what it keeps


def user_messages(sizes, budget=20_000):
    log = session(*(event for size in sizes for event in (user("x" * size), model("ok"))))
    return newest_requests(Ledger.of(log), 2 * len(sizes), budget)


def test_the_newest_user_messages_stay_and_the_one_that_does_not_fit_is_cut():
    assert user_messages([40_000, 4_000, 60_000, 12_000]) == (
        Span(0, 1, "cut:4000"),  # 1,000 tokens were left
        Span(2, 3),
        Span(4, 5),
        Span(6, 7),
    )


def test_of_twelve_messages_of_8000_bytes_the_newest_ten_stay():
    assert [item.start for item in user_messages([8_000] * 12)] == [2 * number for number in range(2, 12)]


def test_a_compaction_leaves_context_user_messages_and_a_summary_and_nothing_of_the_work():
    log = session(
        user("environment", meta=True),
        user("first wish"),
        model("working"),
        user("second wish"),
        tool_call("read", "c"),
        tool_result("y" * 900, "read", "c"),
        calls=(ModelCall(2, 2, 1_000), ModelCall(4, 4, 190_000, output_tokens=20), ModelCall(6, None, 500)),
    )
    trace = replayed(log)
    record = trace.compactions[0]
    assert record.step == 2
    # In the middle of a turn the context stands before the last message of the user, and the summary is last.
    assert record.after == (Span(1, 2), Span(0, 1), Span(3, 4), Synthetic("summary", PREFIX_BYTES + 2_400))


def test_before_a_turn_the_context_follows_the_summary_and_the_new_message_comes_last():
    log = session(
        user("environment", meta=True),
        user("first wish"),
        model("done"),
        user("second wish"),
        calls=(ModelCall(2, 2, 190_000, output_tokens=20), ModelCall(4, None, 500)),
    )
    summary = Synthetic("summary", PREFIX_BYTES + 2_400)
    assert replayed(log).compactions[0].after == (Span(1, 2), summary, Span(0, 1), Span(3, 4))


def test_where_the_request_for_the_summary_overflows_the_oldest_items_go_with_their_results():
    log = counted(*[1_000] * 4, results=40_000)
    ledger = Ledger.of(log)
    policy = get_policy("codex", limit="1000")
    check = Check(ledger, 3, 9, 25_000, FixedSummaries(2_400), usage=RatioUsage(1.0))
    record = policy.decide(check, policy.observe(policy.start(), 24_000, 2)).compaction
    summarising = record.passes[0]
    first = summarising.summariser_view[0].start
    assert summarising.dropped_before_summariser == first > 0
    assert not any(part.name for part in log.events[first].parts if hasattr(part, "call_id"))  # begins with no result
    assert summarising.summariser_tokens <= 25_000 < summarising.tokens_in


def test_a_compaction_that_leaves_the_request_over_the_limit_says_so():
    log = session(user("x" * 60_000), model("ok"), calls=(ModelCall(1, 1, 30_000), ModelCall(2, None, 30_100)))
    assert replayed(log, window=20_000).columns["held"][1] == STILL_OVER


# ---- what is cut when it is recorded


@pytest.mark.parametrize(("cap", "end", "gone"), [(40_000, 20_000, 15_000), (48_000, 24_000, 13_000)])
def test_a_long_output_keeps_its_two_ends(cap, end, gone):
    text = "a" * 50_000 + "z" * 50_000
    short = capped(text, cap)
    assert short == "a" * end + f"[{gone} tokens left out]" + "z" * end
    assert capped(short, cap) == short  # what was cut once is not cut again


def test_the_cap_of_a_profile_is_the_form_of_its_views():
    assert get_policy("codex").settings.form == "capped:48000"
    assert get_policy("codex", profile="seed").settings.form == "capped:40000"
    assert get_policy("codex", output_cap=0).settings.form == ""


def test_letters_beyond_ascii_count_with_all_their_bytes():
    log = session(user("go"), tool_call("read", "c"), tool_result("漢字\n", "read", "c"))
    assert output_tokens(Ledger.of(log)).tolist() == [0, 0, 2]  # 7 bytes, and one of the id


@pytest.mark.parametrize(("id", "tokens"), [("call_00390", 1_040), ("x" * 39, 1_047), ("", 1_044)])
def test_an_output_is_estimated_with_the_id_of_its_call(id, tokens):
    """0.171.0, run: 4,147 bytes with an id of 10 characters are more than 1,039 and less than 1,042 tokens."""
    log = session(user("go"), tool_call("read", id), tool_result("y" * 4_147, "read", id))
    assert output_tokens(Ledger.of(log))[2] == tokens


def test_a_form_saves_in_every_column_what_its_messages_save():
    log = session(
        user("go"), tool_call("read", "c"), tool_result("y" * 70_000, "read", "c"), tool_result("short", "read")
    )
    ledger, form = Ledger.of(log), get_form("capped:48000")
    again = Ledger.of(session(*map(form.message, log.events)))
    for name in ("bytes", "chars", "result_bytes", "text_tokens"):
        assert ledger.prefix(name, form.name).tolist() == again.prefix(name).tolist(), name


def test_a_step_is_explained_with_the_sum_that_was_compared():
    policy, trace = get_policy("codex"), replayed(counted(100_000, 101_000))
    terms = {item.name: item for item in policy.explain(trace, 1)}
    assert terms["decision tokens"].expression == "100,000 + 10 + 26"
    assert terms["verdict"].expression == "100,036 < 180,000: it does not compact"
