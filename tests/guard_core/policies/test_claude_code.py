"""Claude Code: thresholds by version as they were measured, and what a compaction keeps."""

from dataclasses import dataclass

import numpy as np
import pytest

from guard_core.estimation.usage import RatioUsage
from guard_core.events import Role, ToolResultPart
from guard_core.policies import get_policy, policy_kind
from guard_core.policies.claude_code import ClaudeCode
from guard_core.requests import materialise
from guard_core.sessions import ModelCall
from guard_core.views import Span
from tests.builders import model, session, tool_call, tool_result, user
from tests.guard_core.policies.tools import run

OLD, CAPPED, REFUSAL, NEW = "until-2.1.19", "2.1.21-2.1.152", "from-2.1.154", "from-2.1.310"


@pytest.mark.parametrize(
    ("profile", "settings", "window", "threshold"),
    [
        (OLD, {}, 200_000, 155_000),
        (OLD, {}, 1_000_000, 955_000),
        (OLD, {"max_output": 8_192}, 200_000, 178_808),
        (OLD, {"autocompact_pct": 50}, 200_000, 84_000),
        (OLD, {"auto_compact_window": 100_000}, 200_000, 155_000),  # no effect in these versions
        (CAPPED, {}, 200_000, 167_000),
        (CAPPED, {"auto_compact_window": 100_000}, 200_000, 67_000),  # from 2.1.81 on
        (CAPPED, {"max_output": 64_000}, 1_000_000, 967_000),
        (NEW, {}, 200_000, None),
        (REFUSAL, {}, 200_000, None),
        (REFUSAL, {"auto_compact_window": 200_000}, 200_000, 167_000),
        (NEW, {"autocompact_pct": 50}, 200_000, None),
        (NEW, {"auto_compact_window": 200_000}, 200_000, 167_000),
        (NEW, {"auto_compact_window": 100_000}, 200_000, 67_000),
        (NEW, {"auto_compact_window": 150_000}, 200_000, 117_000),
        (NEW, {"auto_compact_window": 1_000_000}, 1_000_000, 967_000),
        (NEW, {"auto_compact_window": 200_000, "max_output": 8_192}, 200_000, 178_808),
        (NEW, {"auto_compact_window": 200_000, "autocompact_pct": 50}, 200_000, 90_000),
    ],
)
def test_thresholds_are_those_that_were_measured(profile, settings, window, threshold):
    assert get_policy("claude-code", profile=profile, **settings).threshold(window) == threshold


def test_what_a_small_window_does_not_do_is_a_known_problem():
    assert get_policy("claude-code", auto_compact_window=80_000).threshold(200_000) == 67_000
    (problem,) = (item for item in policy_kind("claude-code").known_problems if "below 100,000" in item.name)
    assert "such a value has no effect (2.1.332)" in problem.help


def rounds(count, prompt):
    """One turn of tool calls; the last call's prompt has `prompt` tokens."""
    events = [user("go")]
    for number in range(count):
        events += [tool_call("read", f"c{number}"), tool_result("y" * 400, "read", f"c{number}")]
    calls = [ModelCall(2 * k + 1, 2 * k + 1, 1_000 * (k + 1), output_tokens=20) for k in range(count - 1)]
    calls.append(ModelCall(2 * count - 1, 2 * count - 1, prompt, output_tokens=20))
    return session(*events, model("done"), calls=(*calls, ModelCall(2 * count + 1, None, 500)))


@pytest.mark.parametrize(("settings", "kept"), [({"profile": CAPPED}, 0), ({"auto_compact_window": 200_000}, 1)])
def test_at_a_threshold_it_keeps_nothing_or_the_last_tool_round(settings, kept):
    trace = run(get_policy("claude-code", **settings), rounds(6, 170_000), window=200_000)
    (record,) = trace.compactions
    assert record.after[1:] == ((Span(13 - 2 * kept, 13),) if kept else ())


def test_an_answer_without_calls_is_kept_like_one_with_calls():
    """2.1.197, run: of answers without calls the last one stayed, and no tool round from before it."""
    events = (user("go"), tool_call("read", "c"), tool_result("y" * 40, "read", "c"), model("done"), user("more"))
    calls = (ModelCall(1, 1, 50_000, output_tokens=20), ModelCall(3, 3, 170_000, output_tokens=20))
    chat = session(*events, model("done"), calls=(*calls, ModelCall(5, 5, 20_000, output_tokens=20)))
    (record,) = run(get_policy("claude-code", auto_compact_window=200_000), chat, window=200_000).compactions
    assert record.after[1:] == (Span(3, 5),)


@pytest.mark.parametrize(("settings", "steps"), [({"profile": CAPPED}, [1]), ({"auto_compact_window": 200_000}, [2])])
def test_behind_the_first_answer_later_versions_do_not_compact(settings, steps):
    """2.1.152 compacts there; 2.1.160, 2.1.197 and 2.1.332 do not, run with a long first prompt."""
    events = [user("go" * 350_000)]
    for number in range(3):
        events += [tool_call("read", f"c{number}"), tool_result("y" * 400, "read", f"c{number}")]
    counts = ((1, 170_000), (3, 170_200), (5, 170_400))
    calls = tuple(ModelCall(at, at, prompt, output_tokens=20) for at, prompt in counts)
    trace = run(get_policy("claude-code", **settings), session(*events, calls=calls), window=200_000)
    assert [record.step for record in trace.compactions] == steps


def test_the_answer_of_old_versions_counts_as_the_one_token_that_its_beginning_reports():
    count = rounds(2, 154_899)  # 154,899 + 1 + 100: the result has 400 characters
    trace = run(get_policy("claude-code", profile=OLD), count, window=200_000)
    assert trace.columns["decision_tokens"][2] == 155_000
    assert [record.step for record in trace.compactions] == [2]


def test_without_a_threshold_it_compacts_after_the_refusal_of_the_provider():
    trace = run(get_policy("claude-code", kept_rounds_refused=4), rounds(6, 210_000), window=200_000)
    record = trace.compactions[0]
    assert (record.step, record.reason) == (5, "the provider refused the request")
    assert record.after[1:] == (Span(3, 11),)  # the last four rounds
    terms = {item.name: item for item in get_policy("claude-code").explain(trace, 4)}
    assert terms["verdict"].expression == "there is no threshold: it does not compact"


def turns(first, others):
    """Turns of an answer each, whose messages Claude Code takes to have `first` tokens before the first answer and
    then `others` (an answer of 100, and the user's words)."""
    events = [user("u" * 4 * first)]
    for size in others:
        events += [model("a" * 400), user("u" * 4 * (size - 100))]
    calls = [ModelCall(at, at, None) for at in range(1, len(events), 2)]
    return session(*events, calls=(*calls, ModelCall(len(events), None, None)))


@dataclass(frozen=True)
class Refusing(RatioUsage):
    """A provider whose counts are not known, but that it refused the last request (of step `last`) for its `tokens`."""

    last: int = 0
    tokens: int = 0

    def one(self, step, view, heuristic, epoch=-1):
        counted = super().one(step, view, heuristic)
        return counted._replace(tokens=self.tokens) if (step, len(view)) == (self.last, 1) else counted

    def run(self, start, stop, head, kept_from, heuristics, form=""):
        counted = super().run(start, stop, head, kept_from, heuristics)
        counted.tokens[np.arange(start, stop) == self.last] = self.tokens
        return counted


def after_refusal(log, tokens, *, reported_from=10**9, **settings):
    """What is left of a log after its last request, of so many tokens, was refused: all but the summary."""
    usage = Refusing(0.01, reported_from, len(log.calls) - 1, tokens)
    trace = run(get_policy("claude-code", **settings), log, window=200_000, usage=usage)
    return trace.compactions[0].after[1:] if trace.compactions else None


def answers_kept(log, tokens, **settings):
    """How many answers are among that."""
    (kept,) = after_refusal(log, tokens, **settings)
    return sum(event.role is Role.MODEL for event in log.events[kept.start : kept.stop])


# After 60 turns of text, with a reminder in each tenth: 2.1.197 and 2.1.332, run.
EARLIER_TURNS = 1_673, ([110] * 9 + [225]) * 6
LATER_TURNS = 2_596, ([132] * 9 + [247]) * 6


@pytest.mark.parametrize(
    ("tokens", "kept"),
    [(200_100, 1), (200_300, 2), (201_000, 9), (202_000, 17), (204_000, 33), (205_500, 45), (207_000, 58)],
)
def test_after_a_refusal_it_keeps_answers_for_the_tokens_that_were_too_many(tokens, kept):
    assert answers_kept(turns(*EARLIER_TURNS), tokens, profile=REFUSAL) == kept


@pytest.mark.parametrize(("tokens", "kept"), [(200_100, 11), (240_000, 25), (300_000, 38), (400_000, 51)])
def test_later_versions_leave_room_for_the_words_that_ask_for_a_summary(tokens, kept):
    assert answers_kept(turns(*LATER_TURNS), tokens) == kept


def test_after_a_refusal_that_no_cut_makes_up_for_about_half_of_the_answers_stay():
    assert answers_kept(turns(*EARLIER_TURNS), 240_000, profile=REFUSAL) == 31
    assert answers_kept(turns(2_589, [152] * 40), 400_000) == 21
    assert answers_kept(turns(3_586, [1_122] * 2), 240_000) == 1


def test_after_a_refusal_behind_the_first_answer_the_words_of_the_user_stay_alone():
    assert after_refusal(turns(3_586, [1_122]), 240_000) == (Span(2, 3),)


def test_a_refused_request_without_an_answer_in_it_cannot_be_compacted():
    assert after_refusal(turns(12_586, []), 200_100) is None


def test_a_refused_request_has_no_more_tokens_than_bytes_were_added_to_the_last_one():
    """A model of the provider that adds 200,000 tokens for 128 bytes is not to be trusted."""
    assert answers_kept(turns(*LATER_TURNS), 400_000, reported_from=0) == 11


def results_sent(sizes, **settings):
    """The characters of every result in the last request of a turn with results of these sizes."""
    events, calls = [user("q")], []
    for number, size in enumerate(sizes):
        calls.append(ModelCall(len(events), len(events), 1_000))
        events += [tool_call("Read", f"c{number}"), tool_result("y" * size, "Read", f"c{number}")]
    log = session(*events, calls=(*calls, ModelCall(len(events), None, 1_000)))
    trace = run(get_policy("claude-code", **settings), log, window=200_000)
    messages = materialise(trace.view(len(sizes), len(events)), log)
    return [len(part.content) for item in messages for part in item.parts if isinstance(part, ToolResultPart)]


@pytest.mark.parametrize(
    ("sizes", "cleared"),
    [
        ([40_000] * 5, 0),  # 50,000 tokens of results: 10,000 are too few to clear
        ([40_000] * 6, 2),  # 20,000 of 60,000
        ([16_000] * 5 + [160_000] * 3, 5),  # the newest three stay, however large they are
        ([4_000, 160_000, 160_000, 160_000], 0),
    ],
)
def test_microcompact_clears_old_results_until_forty_thousand_tokens_are_left(sizes, cleared):
    sent = results_sent(sizes, microcompact=True)
    assert sum(size < 100 for size in sent) == cleared
    assert sent[cleared:] == sizes[cleared:]
    assert results_sent(sizes) == sizes


def test_a_run_knows_the_numbers_of_the_step_behind_it_at_which_something_happens():
    known = []

    class Watched(ClaudeCode):
        def decide(self, check, state):
            decision = super().decide(check, state)
            if check.known is not None:
                known.append(check.step)
                assert super().decide(check._replace(known=None), state) == decision
            return decision

    policy = Watched(get_policy("claude-code", profile=CAPPED).settings)
    trace = run(policy, rounds(40, 170_000), window=54_000)
    assert len(trace.compactions) > 1
    assert {record.step for record in trace.compactions} <= {*known}
