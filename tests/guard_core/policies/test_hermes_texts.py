"""Where texts are known, Hermes' list has the texts and sizes of the original."""

from __future__ import annotations

import pytest

from guard_core.estimation.usage import RatioUsage
from guard_core.events import Event, MediaPart, Role, TextPart, ToolCallPart, ToolResultPart, value_text
from guard_core.ledger import Ledger
from guard_core.policies import get_policy
from guard_core.policies.base import Check, Point, dump_state, load_state
from guard_core.policies.hermes import texts
from guard_core.policies.hermes.lines import line
from guard_core.policies.hermes.messages import message_count
from guard_core.replay import replay
from guard_core.requests import materialise
from guard_core.sessions import ModelCall, Session
from guard_core.summaries.base import Summary
from guard_core.summaries.sizes import FixedSummaries, ScriptedSummaries
from guard_core.views import Rewritten, Synthetic, content_count
from tests.builders import model, session, tool_call, tool_result, user
from tests.guard_core.conformance.libraries import check_equals_the_library


def test_it_equals_the_recorded_runs():
    check_equals_the_library("hermes")


LINES = [
    ("terminal", {"command": "npm test"}, '{"exit_code": 0}\nok', "ran `npm test` -> exit 0, 2 lines output"),
    ("terminal", {"command": "x" * 81}, "", f"ran `{'x' * 77}...` -> exit ?, 0 lines output"),
    ("read_file", {"path": "config.py"}, "y" * 1_200, "read config.py from line 1 (1,200 chars)"),
    ("write_file", {"path": "a.md", "content": "1\n2"}, "done", "wrote to a.md (2 lines)"),
    (
        "search_files",
        {"pattern": "compress", "path": "agent/"},
        '{"total_count": 12}',
        "content search for 'compress' in agent/ -> 12 matches",
    ),
    ("patch", {"path": "a.py"}, "y" * 300, "replace in a.py (300 chars result)"),
    ("browser_click", {"ref": "e3"}, "y", "ref=e3 (1 chars)"),
    ("web_search", {}, "y" * 2_626, "query='?' (2,626 chars result)"),
    ("web_extract", {"urls": [{"href": "a"}, "b", "c"]}, "y", "a (+2 more) (1 chars)"),
    ("web_extract", {"urls": [{"href": 3}, "b"]}, "y", "(1 chars result)"),  # no text: as a tool without a line
    ("execute_code", {"code": "a\nb"}, "1\n2", "`a b` (2 lines output)"),
    ("memory", {"action": "add"}, "", "add on ?"),
    ("process", '{"action": "poll", "session_id": "s1"}', "", "poll session=s1"),
    ("mine", {"path": "x" * 50, "n": None, "third": 1}, "y" * 300, f"path={'x' * 40} n=None (300 chars result)"),
    ("mine", "no JSON", "y", "(1 chars result)"),
]


@pytest.mark.parametrize(("tool", "arguments", "result", "expected"), LINES)
def test_an_old_result_becomes_a_line_about_its_call(tool, arguments, result, expected):
    assert line(tool, arguments, result) == f"[{tool}] {expected}"


def results(messages):
    return [value_text(part.content) for item in messages for part in item.parts if isinstance(part, ToolResultPart)]


def test_the_newest_of_equal_results_stays():
    log = [event for number in range(3) for event in (tool_call("t", f"c{number}"), tool_result("y" * 200, "t"))]
    changed = texts.shortened(log, 0)
    assert sorted(changed) == [1, 3]
    assert results(changed.values()) == [texts.REPEATED] * 2
    assert texts.shortened([tool_result("y" * 199, "t")] * 2, 0) == {}


def test_long_texts_in_the_arguments_of_old_calls_are_cut():
    arguments = {"path": "a", "content": "x" * 600, "lines": ["y" * 201, 7]}
    changed = texts.shortened([Event(Role.MODEL, (ToolCallPart("write_file", arguments, "c"),))] * 2, 1)
    cut = "...[truncated]"
    expected = {"path": "a", "content": "x" * 200 + cut, "lines": ["y" * 200 + cut, 7]}
    assert [(place, item.parts[0].arguments) for place, item in changed.items()] == [(0, expected)]


def test_of_arguments_nested_too_deep_nothing_is_read():
    """Python would stop at about 1,000 levels of JSON, or at tens of thousands, by its version."""
    for levels in (128, 129, 500, 2_000, 100_000):
        written = '{"path": "a.py", "b": "' + "x" * 600 + '", "c": ' + "[" * (levels - 1) + "]" * (levels - 1) + "}"
        is_read = levels == 128
        assert line("read_file", written, "y") == f"[read_file] read {'a.py' if is_read else '?'} from line 1 (1 chars)"
        call = Event(Role.MODEL, (ToolCallPart("read_file", written, "c"),))
        assert bool(texts.shortened([call], 1)) == is_read
        assert ("a.py" in texts.fallback([call], continued=False, reason="")) == is_read


def test_pictures_before_the_newest_of_the_user_are_removed():
    picture = MediaPart("image/png", 70)
    log = [user("a"), Event(Role.USER, (TextPart("b"), picture)), model("c"), Event(Role.USER, (picture,)), user("d")]
    changed = texts.without_old_pictures(log)
    assert {place: [part.text for part in item.parts] for place, item in changed.items()} == {
        1: ["b", texts.NO_PICTURE]
    }


def test_calls_whose_results_went_are_removed():
    both = Event(Role.MODEL, (ToolCallPart("t", {}, "c1"), ToolCallPart("t", {}, "c2")))
    assert texts.without_lost_calls([both, tool_result("y", "t", "c2")], ())[0].parts == both.parts[1:]
    assert texts.without_lost_calls([both], ())[0].parts == (TextPart(texts.NO_CALL),)
    assert texts.without_lost_calls([both], [0])[0].parts == ()


def test_the_last_request_among_the_removed_messages_is_quoted_in_the_summary():
    text = texts.grounded("All done.", [user("first"), user("do   it")])
    assert text.startswith(texts.TASK_HEADING)
    assert "'do it'" in text
    assert "first" not in text
    section = f"{texts.TASK_HEADING}\nan older one\n\n## Goal\nkept"
    assert texts.grounded(section, [user("new")]).endswith("\n\n## Goal\nkept")
    assert "older" not in texts.grounded(section, [user("new")])


def test_a_lean_summary_quotes_requests_newest_first_within_its_limits():
    requests = [user("first" * 1_000), user("second"), user("third" * 2_000)]
    quoted = texts.with_requests("done", requests, 5_000).split("\n\n")
    assert quoted == ["done", ("third" * 2_000)[:4_000], "second", ("first" * 1_000)[:994]]
    assert texts.with_requests("done", requests, 0) == "done"


def test_a_fallback_has_at_most_eight_thousand_characters():
    log = [model("w" * 900) for _ in range(40)]
    assert len(texts.fallback(log, continued=False, reason="")) == 8_000 - 42 + len(texts.FALLBACK_CUT)


def test_a_fallback_names_files_troubles_and_the_last_request():
    call = Event(Role.MODEL, (ToolCallPart("read_file", {"path": "src/a.py"}, "c"),))
    log = [user("fix it"), call, tool_result("Traceback: no", "read_file", "c")]
    text = texts.fallback(log, continued=True, reason="too slow")
    for expected in ("'fix it'", "- src/a.py", "- Traceback: no", "Called tool(s): read_file", "too slow"):
        assert expected in text
    assert len(text) - len(texts.fallback(log, continued=False, reason="too slow")) == 145


@pytest.mark.parametrize(("summarizer", "least"), [(FixedSummaries(600), 2_319), (ScriptedSummaries((None,)), 3_000)])
def test_a_compaction_with_texts_sends_them(summarizer, least):
    pairs = [event for number in range(12) for event in (tool_call("t", f"c{number}"), tool_result("y" * 20_000, "t"))]
    log = session(user("Go"), *pairs, calls=(ModelCall(at=25),))
    policy, ledger = get_policy("hermes"), Ledger.of(log)
    check = Check(ledger, 0, 25, 32_000, summarizer, session=log, point=Point.ON_OVERFLOW)
    decision = policy.decide(check, policy.start())
    summaries = [item for item in decision.view if isinstance(item, Synthetic)]
    assert [len(item.text) >= least for item in summaries] == [True]
    assert any(isinstance(item, Rewritten) for item in decision.view)
    sent = materialise(decision.view, log)
    assert texts.REPEATED in results(sent)
    assert load_state(policy, dump_state(decision.state)) == decision.state
    assert decision.evidence["estimate_sent"] < decision.evidence["request_estimate"]


class Numbered:
    """Summaries that say which one they are."""

    name = "numbered"

    def summarise(self, request):
        text = f"summary {request.call + 1}" + "." * 500
        return Summary(len(text), text)


def merged_twice():
    """A session whose two long requests are summarised one after the other, both into the answer behind them."""
    log = [user("x " * 9_500), model("short"), user("y " * 6_400), tool_call("t", "c"), tool_result("ok", "t")]
    log += [model("done"), user("third"), model("fine"), user("z " * 20_000), model("ok")]
    recorded = Session(tuple(log), tuple(ModelCall(at=at) for at in (1, 3, 5, 7, 9)))
    policy = get_policy("hermes", threshold_cap=4_000, protect_first_n=1, protect_last_n=6, prune_floor=0)
    usage = RatioUsage(0.05)  # a provider whose counts are low, so that no compaction counts as one in vain
    given = {"usage": usage, "summarizer": Numbered(), "session": recorded}
    return replay(Ledger.of(recorded), policy, window=200_000, **given)


def test_of_summaries_that_were_merged_the_next_one_continues_the_newest():
    first, second = merged_twice().compactions
    assert len(first.passes) == 2
    given = "".join(item.text or "" for item in second.passes[0].summariser_view if isinstance(item, Synthetic))
    assert "summary 2" in given
    assert "summary 1" not in given


def test_a_summary_that_is_merged_into_a_message_is_no_message_of_its_own():
    compaction = merged_twice().compactions[0]
    assert content_count(compaction.before) == 7
    assert content_count(compaction.after) - 1 == message_count(compaction.after) == 4
