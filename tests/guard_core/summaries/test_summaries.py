"""Who makes summaries, how long they are, and what the summariser is sent."""

import pytest

from guard_core.errors import SettingError, SummaryFailed
from guard_core.ledger import Ledger
from guard_core.sessions import Evidence, ModelCall, RecordedCompaction
from guard_core.summaries.base import Summary, SummaryRequest, Todo
from guard_core.summaries.continuation import continuation, continuation_bytes, continuation_message
from guard_core.summaries.fallback import fallback_summary
from guard_core.summaries.rendering import system_prompt, user_prompt
from guard_core.summaries.sizes import RecordedSummaries, ScriptedSummaries, ShareSummaries, get_summarizer
from guard_core.summaries.todos import load_todos
from guard_core.summaries.wrapper import wrap, wrapped_bytes
from guard_core.views import Inserted, Span, Synthetic
from tests.builders import bundled, model, session, tool_call, tool_result, user

ASKED = SummaryRequest(view=(), tokens=0, previous=Summary(0), output_tokens=1_000, words=750)


def test_the_wrapper_has_the_marker_of_its_profile():
    assert wrap("SUM") == "[Previous conversation summary]\nSUM\n[End of summary - conversation continues below]"
    assert (wrapped_bytes(3), wrapped_bytes(3, "—")) == (83, 85)


def test_the_continuation_holds_the_whole_request():
    assert len(continuation(None)) == len(continuation("")) == continuation_bytes(0) == 187
    assert "`Fix the bug`" in continuation("Fix the bug")
    assert len(continuation("Fix the bug")) == continuation_bytes(11)
    assert continuation_message(11, None) == Synthetic("continuation", continuation_bytes(11))


def test_sizes_are_chosen_by_name(short_chat):
    ledger = Ledger.of(short_chat)
    assert get_summarizer("fixed:2000", ledger).summarise(ASKED).bytes == 2_000
    assert get_summarizer("share:nominal", ledger).summarise(ASKED).bytes == 1_200
    assert get_summarizer("mechanical", ledger).summarise(ASKED).bytes == 0
    assert get_summarizer("recorded", ledger) == ShareSummaries("nominal")


@pytest.mark.parametrize("text", ["", "fixed", "fixed:-1", "fixed:x", "share:some", "recorded:1", "fixed:9999999999"])
def test_a_wrong_size_says_what_is_allowed(text, short_chat):
    with pytest.raises(SettingError, match="recorded, fixed:BYTES, share:low"):
        get_summarizer(text, Ledger.of(short_chat))


def test_recorded_sizes_follow_the_recording():
    sample = bundled("long-coding")
    sizes = RecordedSummaries.of(Ledger.of(sample)).sizes
    assert len(sizes) == 3
    assert min(sizes) > 0


def test_recorded_sizes_are_of_summaries_not_of_results_that_were_left_changed():
    events = (user("go"), tool_call("read", "a"), tool_result("y" * 900, "read", "a"), model("done"), user("again"))
    cleared, summary = tool_result("[cleared]", "read", "a"), user("s" * 70)
    left = (Inserted(0), Span(1, 2), Inserted(1), Span(3, 4))
    done = (
        RecordedCompaction(3, Evidence.INFERRED, "edit", (Span(0, 2), Inserted(0)), (cleared,)),
        RecordedCompaction(4, Evidence.DECLARED, "summary", left, (summary, cleared)),
    )
    value = session(*events, calls=(ModelCall(3, 3), ModelCall(5, None)), compactions=done)
    assert RecordedSummaries.of(Ledger.of(value)).sizes == (70,)


def test_a_script_repeats_its_last_reply():
    script = ScriptedSummaries((5, None))
    assert script.summarise(ASKED).bytes == 5
    with pytest.raises(SummaryFailed):
        script.summarise(SummaryRequest((), 0, Summary(0), 0, 0, call=7))


LOG = session(
    user("hello"), model("é" * 150), tool_call("look", "c1", path="/secret"), tool_result("payload", "look", "c1")
)


def test_the_mechanical_summary_costs_what_it_weighs():
    ledger, view = Ledger.of(LOG), (Span(0, 4),)
    with_text = fallback_summary(view, ledger, Summary(0, ""), session=LOG)
    assert with_text.text.startswith("user: hello\nmodel: éé")
    assert with_text.bytes == fallback_summary(view, ledger, Summary(0)).bytes
    again = fallback_summary(view, ledger, with_text, session=LOG)
    assert again.bytes == 2 * with_text.bytes + len("\n\n---\n\n")


def test_a_cut_inside_a_character_does_not_break_the_text():
    log = session(user("a" + "é" * 150))
    text = fallback_summary((Span(0, 1),), Ledger.of(log), Summary(0, ""), session=log).text
    assert text.endswith("\ufffd...\n")


def test_another_excerpt_needs_the_texts():
    ledger = Ledger.of(LOG)
    assert len(fallback_summary((Span(0, 1),), ledger, Summary(0, ""), excerpt=2, session=LOG).text) == len(
        "user: he...\n"
    )
    with pytest.raises(SettingError, match="needs the texts"):
        fallback_summary((Span(0, 1),), ledger, Summary(0), excerpt=2)


def test_the_prompt_names_calls_and_leaves_payloads_out():
    prompt = user_prompt(LOG.events)
    assert "model: [called tool: look]" in prompt
    assert "user: [tool look returned a result]" in prompt
    assert "secret" not in prompt
    assert "payload" not in prompt
    assert "[Previous summary for context]" not in prompt
    assert "todo" not in prompt.lower()


def test_the_prompt_carries_the_previous_summary_and_the_todos():
    prompt = user_prompt(LOG.events, "earlier", (Todo("Deploy", "pending"), Todo("Watch", "done")))
    assert "[Previous summary for context]\nearlier\n[End previous summary]" in prompt
    assert "[Current todo list]\n- [pending] Deploy\n- [done] Watch\n[End todo list]" in prompt
    assert "`todos` tool" in prompt


def test_the_system_prompt_asks_for_four_sections_and_a_limit():
    text = system_prompt(600)
    for heading in ("Current State", "Key Information", "Context & Decisions", "Exact Next Steps"):
        assert f"## {heading}" in text
    assert text.endswith("\n\nKeep the summary under 600 words.")


def test_todos_are_read_tolerantly():
    todos = load_todos([{"content": "Deploy", "status": "pending", "active_form": 5}, {"status": "x"}, "text", None])
    assert todos == (Todo("Deploy", "pending"),)
    assert load_todos("notalist") is None
    assert load_todos(None) is None
