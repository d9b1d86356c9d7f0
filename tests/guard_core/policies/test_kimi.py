"""Kimi CLI and Kimi Code: the share of the window or what is reserved of it, and what they keep."""

import pytest

from guard_core.estimation.usage import RatioUsage
from guard_core.forms import CutToEnds
from guard_core.policies import get_policy
from guard_core.sessions import Evidence, ModelCall, RecordedCompaction
from guard_core.trace import NOTHING_TO_COMPACT
from guard_core.views import Span, Synthetic
from tests.builders import model, session, tool_call, tool_result, user
from tests.guard_core.conformance.libraries import check_equals_the_library
from tests.guard_core.policies.tools import run


def test_kimi_cli_equals_recorded_runs_of_its_own_code():
    check_equals_the_library("kimi-cli")


@pytest.mark.parametrize(
    ("policy", "settings", "window", "threshold"),
    [
        ("kimi-cli", {}, 262_144, 212_144),
        ("kimi-cli", {"reserved": 10_000}, 262_144, 222_823),
        ("kimi-cli", {}, 128_000, 78_000),
        ("kimi-code", {}, 262_144, 212_144),
        ("kimi-code", {}, 128_000, 78_000),
        ("kimi-code", {"reserved": 10_000}, 262_144, 222_823),
        ("kimi-code", {}, 50_000, 42_500),  # nothing is reserved in a window that is not larger
    ],
)
def test_thresholds_are_those_that_were_measured(policy, settings, window, threshold):
    assert get_policy(policy, **settings).threshold(window) == threshold


def work(prompt, before=()):
    """Two tool calls of one turn, the second on a prompt of `prompt` tokens."""
    events = [*before, user("go")]
    at = len(events)
    events += [tool_call("read", "a"), tool_result("y" * 7, "read", "a")]
    events += [tool_call("read", "b"), tool_result("y" * 7, "read", "b")]
    calls = (
        ModelCall(at, at, 1_000, output_tokens=10),
        ModelCall(at + 2, at + 2, prompt, output_tokens=10),
        ModelCall(at + 4, None, 500),
    )
    return session(*events, calls=calls)


@pytest.mark.parametrize(("prompt", "fires"), [(212_132, False), (212_133, True)])
def test_kimi_cli_counts_the_answer_and_a_quarter_of_the_characters_since_rounded_down(prompt, fires):
    trace = run(get_policy("kimi-cli"), work(prompt), window=262_144)
    assert trace.columns["decision_tokens"][2] == prompt + 10 + 1
    assert len(trace.compactions) == fires


def test_kimi_cli_estimates_anew_where_there_was_nothing_to_compact():
    """1.52.0: texts up to that look and texts since are rounded down each by itself; 21 characters are 1 + 3 tokens."""
    events = [user("seventy"), model("seventy"), user("seventy"), model("seventy"), user("seventy")]
    calls = (ModelCall(1, 1), ModelCall(3, 3), ModelCall(5))
    policy = get_policy("kimi-cli", reserved=8_000, kept=9)
    trace = run(policy, session(*events, calls=calls), window=8_000, usage=RatioUsage(1.0, reported_from=10**6))
    assert trace.columns["held"].tolist() == [NOTHING_TO_COMPACT] * 3
    assert trace.columns["decision_tokens"].tolist() == [1, 1 + 3, 21 // 4 + 3]


def test_kimi_cli_estimates_summary_and_kept_messages_as_one_text_where_nothing_was_counted():
    """1.52.0, estimated_token_count: 84 characters of its own, a summary of 7 and 7 kept are 98 // 4 tokens, not
    22 + 1; the 14 since are 3 more."""
    events = [user("seventy"), model("seventy"), user("seventy"), model("seventy"), user("seventy")]
    calls = (ModelCall(1, 1), ModelCall(3, 3), ModelCall(5))
    usage = RatioUsage(1.0, reported_from=10**6)
    policy = get_policy("kimi-cli", reserved=8_000, kept=1)
    trace = run(policy, session(*events, calls=calls), summary=7, window=8_000, usage=usage)
    assert [record.step for record in trace.compactions] == [1, 2]
    assert trace.columns["decision_tokens"].tolist() == [1, 1 + 3, 24 + 3]


def test_kimi_cli_without_messages_to_keep_never_compacts():
    trace = run(get_policy("kimi-cli", kept=0), work(215_000), window=262_144)
    assert not trace.compactions


def test_kimi_cli_keeps_the_last_two_messages_with_their_results():
    (record,) = run(get_policy("kimi-cli"), work(215_000), window=262_144).compactions
    assert record.after[1:] == (Span(1, 5),)


def test_kimi_cli_compacts_before_every_call_in_a_small_window():
    trace = run(get_policy("kimi-cli"), work(2_000), window=50_000)
    assert trace.columns["threshold"].tolist() == [0, 0, 0]
    assert trace.columns["held"][1] == NOTHING_TO_COMPACT  # the user's message and one call: nothing is before them
    assert [record.step for record in trace.compactions] == [2]


def test_kimi_code_keeps_the_messages_of_the_person_and_a_summary_behind_them():
    log = work(215_000, before=(user("first"), model("done")))
    (record,) = run(get_policy("kimi-code"), log, window=262_144).compactions
    assert record.after[:2] == (Span(0, 1), Span(2, 3))
    assert isinstance(record.after[2], Synthetic)
    assert len(record.after) == 3


def test_kimi_code_keeps_the_first_and_the_last_of_too_many_messages():
    log = work(215_000, before=tuple(user("x" * 40_000) for _ in range(3)))
    (record,) = run(get_policy("kimi-code"), log, window=262_144).compactions
    kinds = [item.form if isinstance(item, Span) else item.kind for item in record.after]
    ends = 'ends:{{"{}":{},"what":"text"}}'
    # 2,000 tokens of the first; "go" (2) and the third (10,001) whole, and the end of the second: 7,997 tokens.
    assert kinds == [ends.format("head", 8_000), "elision", ends.format("tail", 31_988), "", "summary"]


def test_kimi_code_keeps_both_ends_of_one_message_that_is_too_long():
    log = work(215_000, before=(user("x" * 90_000), user("é" * 8)))
    (record,) = run(get_policy("kimi-code"), log, window=262_144).compactions
    head, note, tail = record.after[:3]
    assert (head.start, head.form, tail.start, tail.form) == (
        0,
        CutToEnds(what="text", head=8_000).name,
        0,
        CutToEnds(what="text", tail=4 * (18_000 - 2 - 9)).name,
    )
    assert note.bytes == 345 + len("2512")


@pytest.mark.parametrize(("prompt", "fires"), [(212_130, False), (212_131, True)])
def test_kimi_code_adds_the_reminders_of_a_step_after_it_has_looked(prompt, fires):
    """They are neither counted by then nor in the history that is summarised."""
    reminders = (user("r" * 400, meta=True), user("s" * 400, meta=True))
    events = (user("go"), tool_call("read", "a"), tool_result("y" * 7, "read", "a"), *reminders, model("done"))
    log = session(*events, calls=(ModelCall(1, 1, prompt, output_tokens=10), ModelCall(5, 5, 500)))
    records = run(get_policy("kimi-code"), log, window=262_144).compactions
    assert [(item.passes[0].summariser_view, item.after[2:]) for item in records] == (
        [((Span(0, 3),), (Span(3, 5),))] if fires else []
    )


@pytest.mark.parametrize(("prompt", "fires"), [(211_928, False), (211_929, True)])
def test_kimi_code_has_looked_at_reminders_behind_the_words_of_the_person(prompt, fires):
    reminders = (user("r" * 400, meta=True), user("s" * 400, meta=True))
    log = session(
        *(user("go"), model("done"), user("again"), *reminders, model("done")),
        calls=(ModelCall(1, 1, prompt, output_tokens=10), ModelCall(5, 5, 500)),
    )
    records = run(get_policy("kimi-code"), log, window=262_144).compactions
    assert [item.after[:2] for item in records] == ([(Span(0, 1), Span(2, 3))] if fires else [])
    assert all(len(item.after) == 3 for item in records)


def test_kimi_code_has_not_looked_at_reminders_that_a_recording_has_behind_a_compaction():
    first, again = user("r" * 400, meta=True), user("s" * 400, meta=True)
    log = session(
        *(user("go"), model("done"), user("again"), first, again, model("done")),
        calls=(ModelCall(1, 1, 212_200, output_tokens=10), ModelCall(5, 5, 500)),
        compactions=(RecordedCompaction(4, Evidence.DECLARED, "summary", (), trigger="auto"),),
    )
    (record,) = run(get_policy("kimi-code"), log, window=262_144).compactions
    assert (record.passes[0].summariser_view, record.after[3:]) == ((Span(0, 4),), (Span(4, 5),))


@pytest.mark.parametrize(("format_", "fires"), [("kimi-code", False), ("", True)])
@pytest.mark.parametrize("is_compacted", [False, True])
def test_kimi_code_counts_what_its_recording_has_pending_without_the_notes_around_results(format_, fires, is_compacted):
    """A result of 400 characters, of which 160 are a note: 61 tokens are pending, not 101."""
    events = (user("go"), tool_call("read", "a"), tool_result("y" * 400, "read", "a"), model("done"))
    pending = {} if is_compacted else {"pending_tokens": 61}
    done = RecordedCompaction(3, Evidence.DECLARED, "summary", (), trigger="auto", pending_tokens=61)
    log = session(
        *events,
        calls=(ModelCall(1, 1, 212_050, output_tokens=10), ModelCall(3, 3, 500, **pending)),
        compactions=(done,) if is_compacted else (),
        format=format_,
    )
    trace = run(get_policy("kimi-code"), log, window=262_144)
    assert trace.columns["pending"].tolist() == [0, 101 if fires else 61]
    assert len(trace.compactions) == fires


def test_kimi_code_takes_a_share_of_a_refused_request_for_the_window_from_then_on():
    """The second request is 14,015 tokens by its own estimate, and three times that for the provider: 85 % of it is the
    window, 85 % of which the threshold."""
    events = [event for _ in range(3) for event in (user("u" * 28_000), model("m" * 40))]
    log = session(*events, calls=(*(ModelCall(2 * n + 1, 2 * n + 1) for n in range(3)),), system="", tools=())
    trace = run(get_policy("kimi-code", reserved=0), log, window=40_000, usage=RatioUsage(3.0, 0), summary=400)
    assert (trace.compactions[0].step, trace.compactions[0].point) == (1, "on an overflow")
    assert trace.columns["threshold"].tolist() == [34_000, 10_126, 10_126]
    assert "refused request" in get_policy("kimi-code", reserved=0).explain(trace, 2)[-2].expression
