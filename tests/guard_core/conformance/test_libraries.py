"""Recorded runs of libraries are judged step by step: what differs is named, what cannot be judged says why."""

import json

import pytest

from guard_core.__main__ import main
from guard_core.conformance import check_file
from guard_core.conformance.libraries.judge import policy_of
from guard_core.conformance.libraries.views import Shown, difference, facts_of
from guard_core.errors import SettingError
from guard_core.events import Event, MediaPart, Role, TextPart, ToolResultPart
from guard_core.policies import POLICIES

CONVERSATION = {
    "name": "small",
    "messages": [
        {"role": "system", "text": "[m0] Be brief."},
        {"role": "user", "text": {"prefix": "[m1] ", "unit": "look ", "chars": 400}},
        {"role": "assistant", "text": "", "calls": [{"id": "c1", "name": "grep", "arguments": {"q": "[c2.0] x"}}]},
        {"role": "tool", "id": "c1", "name": "grep", "text": {"prefix": "[m3] ", "unit": "line ", "chars": 4_000}},
        {"role": "assistant", "text": "[m4] Done."},
        {"role": "user", "text": "[m5] And now?"},
        {"role": "assistant", "text": "[m6] Nothing."},
    ],
}
CLEARED = {"of": [3], "role": "tool", "chars": 21, "text": "(Tool result removed)"}
STEPS = [
    [2, 0, None, 500, {}],
    [4, 1, 1111, 500, {"rewritten": [CLEARED]}],
    [6, 0, None, 500],
]
PARAMETERS = {"name": "small", "threshold": 500, "keep_tool_uses": 0}


def judged(tmp_path, steps=STEPS, parameters=PARAMETERS, more=(), messages=CONVERSATION["messages"], **changes):
    """The outcome for a file of one run."""
    run = {"parameters": "small", "conversation": "small", "steps": steps}
    file = {"format": "policy-vector/1", "library": "inspect_ai", "version": "0", "strategy": "edit"}
    file |= {"parameters": [parameters, *more], "runs": [run]} | changes
    conversation = {**CONVERSATION, "messages": messages}
    conversations = {"format": "policy-conversations/1", "conversations": [conversation]}
    (tmp_path / "conversations.json").write_text(json.dumps(conversations))
    (tmp_path / "runs.json").write_text(json.dumps(file))
    return check_file(tmp_path / "runs.json")


def differences(outcome):
    return [str(item) for verdict in outcome.verdicts for item in verdict.differences]


def test_a_run_that_is_equal_is_equal(tmp_path):
    outcome = judged(tmp_path)
    assert (outcome.problem, differences(outcome)) == ("", [])
    assert outcome.verdicts[0].figures > 10


def test_a_provider_may_refuse_by_another_count_than_it_reports(tmp_path):
    """strands-agents 1.62.0: requests over 300 tokens are refused, counts reported, and the window is another one."""
    cut = {"of": [3], "role": "tool", "chars": 449, "sha": "3d7aae55ba59"}
    steps = [
        [2, 0, 420, 1_050, {"usage": [104, 6]}],
        [4, 1, 223, 1_050, {"rewritten": [cut], "overflows": [1104], "usage": [228, 3]}],
        [6, 0, 235, 1_050, {"usage": [242, 4]}],
    ]
    parameters = {"name": "small", "overflow_at": 300, "window": 1_500, "limit": 1_050, "usage": "c4"}
    parameters["proactive_compression"] = True
    run = {"parameters": "small", "conversation": "small", "steps": steps, "outside": [0]}
    library = {"library": "strands-agents", "strategy": "sliding_window"}
    outcome = judged(tmp_path, parameters=parameters, runs=[run], **library)
    assert (outcome.problem, differences(outcome)) == ("", [])


def test_messages_that_cannot_be_told_apart_are_the_same_by_any_name():
    """A result that is emptied is what another empty one is; a file names the first of them in order."""
    events = tuple(Event(Role.USER, (ToolResultPart("read", text, "c"),)) for text in ("long", "", "short"))
    emptied = facts_of(events[1])
    assert difference([Shown(1)], [Shown(0, emptied)], events) is None
    assert difference([Shown(1)], [Shown(2)], events).what == "message 0 of the view, which message"
    sizes = {name: value for name, value in emptied.items() if name not in ("text", "sha")}
    assert difference([Shown(1)], [Shown(0, sizes)], events).what == "message 0 of the view, which message"


def test_pictures_do_not_tell_verbatim_messages_apart():
    picture, empty = MediaPart("image/png", 70), TextPart("")
    events = Event(Role.USER, (empty,)), Event(Role.USER, (empty, picture)), Event(Role.USER, (TextPart("a"), picture))
    assert difference([Shown(0)], [Shown(1)], events) is None
    assert difference([Shown(1)], [Shown(2)], events).what == "message 0 of the view, which message"


@pytest.mark.parametrize(("named", "equal"), [([0, 1, 2, 6], True), ([0, 1, 3, 6], False), ([0, 1, 6], False)])
def test_a_summariser_may_be_given_any_of_the_messages_that_cannot_be_told_apart(tmp_path, named, equal):
    """inspect_ai 0.3.285: a file names the first empty answer of two, of which the summariser was given the second."""
    messages = [
        *CONVERSATION["messages"][:2],
        {"role": "assistant", "text": ""},
        {"role": "user", "text": {"prefix": "[m3] ", "unit": "look ", "chars": 4_000}},
        {"role": "user", "text": "[m4] And now?"},
        {"role": "assistant", "text": ""},
        {"role": "user", "text": {"prefix": "[m6] ", "unit": "look ", "chars": 4_000}},
        {"role": "assistant", "text": "[m7] Done."},
    ]
    summary = {"new": 1, "role": "user", "chars": 875}
    steps = [
        [5, 1, 1_111, 500, {"view": [[0, 1], summary], "summariser": [{"given": [[0, 4]], "reply": 600}]}],
        [7, 1, 1_323, 500, {"view": [[0, 1], summary], "summariser": [{"given": named, "reply": 600}]}],
    ]
    parameters = {"name": "small", "threshold": 500}
    unequal = differences(judged(tmp_path, steps, parameters, messages=messages, strategy="summary"))
    assert any("messages given" in item for item in unequal) is not equal


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ([4, 0, None, 500, {"rewritten": [CLEARED]}], "acted: expected False, got True"),
        ([4, 1, 1112, 500, {"rewritten": [CLEARED]}], "tokens: expected 1112.0, got 1111"),
        ([4, 1, 1111, 501, {"rewritten": [CLEARED]}], "threshold: expected 501.0, got 500"),
        ([4, 1, 1111, 500], "message 3 of the view, whether it is rewritten"),
        ([4, 1, 1111, 500, {"rewritten": [{**CLEARED, "text": "(gone)"}]}], "message 3 of the view, text"),
        ([4, 1, 1111, 500, {"rewritten": [{**CLEARED, "chars": 20}]}], "message 3 of the view, chars"),
        ([4, 1, 1111, 500, {"rewritten": [{**CLEARED, "sha": "0" * 12}]}], "message 3 of the view, sha"),
        ([4, 1, 1111, 500, {"gone": [2], "rewritten": [CLEARED]}], "message 2 of the view, which message"),
        ([4, 1, 1111, 500, {"gone": [3]}], "messages in the view: expected 3, got 4"),
        ([4, 1, 1111, 500, {"view": [[0, 1], {"new": 1, "role": "user", "chars": 9}, 3]}], "message 2 of the view"),
        ([4, 1, 1111, 500, {"rewritten": [CLEARED], "summariser": [{"given": [0]}]}], "calls of the summariser"),
        ([4, 0, None, 500, {"error": "RuntimeError"}], "raises an error: expected True, got False"),
    ],
)
def test_what_differs_is_named(tmp_path, row, says):
    named = differences(judged(tmp_path, [STEPS[0], row, *STEPS[2:]]))
    assert says in named[0]
    assert "small, step at message 4" in named[0]


def test_a_run_that_ends_with_an_error_is_judged_up_to_it(tmp_path):
    steps = [[2, 0, None, 50, {"error": "RuntimeError: Compaction insufficient"}]]
    outcome = judged(tmp_path, steps, {**PARAMETERS, "threshold": 50})
    assert differences(outcome) == []


def test_a_library_without_a_policy_is_not_judged(tmp_path):
    assert (
        judged(tmp_path, library="unheard-of").problem == "not judged: there is no policy here for edit of unheard-of"
    )


def test_a_setting_that_the_policy_does_not_have_is_named_and_the_other_runs_are_judged(tmp_path, capsys):
    coloured = {**PARAMETERS, "name": "coloured", "colour": 1}
    outcome = judged(tmp_path, parameters=PARAMETERS, more=[coloured])
    assert [verdict.figures > 10 for verdict in outcome.verdicts] == [True, False]
    assert "has no setting 'colour'" in outcome.verdicts[1].problem
    assert not outcome.equal
    assert main(["conformance", str(tmp_path)]) == 2
    printed = capsys.readouterr().out
    assert "small: equal" in printed
    assert "coloured: not judged:" in printed


@pytest.mark.parametrize(
    ("parameter", "says"),
    [
        ({"window": "large"}, "Expected `int | null`, got `str` - at `$.window`"),
        ({"summary_chars": [600]}, "Expected `int`, got `array` - at `$.summary_chars`"),
        ({"overflow_at": -1}, "Expected `int` >= 0 - at `$.overflow_at`"),
        ({"summary": "long"}, "Invalid enum value 'long' - at `$.summary`"),
    ],
)
def test_a_parameter_of_the_script_without_its_shape_is_named(tmp_path, parameter, says):
    (verdict,) = judged(tmp_path, parameters={**PARAMETERS, **parameter}).verdicts
    assert says in verdict.problem


def test_without_its_conversations_a_file_is_not_judged(tmp_path):
    judged(tmp_path)
    (tmp_path / "conversations.json").unlink()
    assert "conversations.json, cannot be read beside the file" in check_file(tmp_path / "runs.json").problem


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"runs": [{"parameters": "small", "conversation": "other", "steps": []}]}, "no conversation 'other'"),
        ({"runs": [{"parameters": "small", "conversation": "small", "steps": [[99, 0, None, None]]}]}, "message 99"),
        ({"runs": 3}, "does not have the shape of its format"),
        ({"runs": [{"parameters": "small", "conversation": "small", "steps": [["x"]]}]}, "shape of its format"),
    ],
)
def test_a_damaged_file_is_refused_with_the_reason(tmp_path, change, says):
    assert says in judged(tmp_path, **change).problem


@pytest.mark.parametrize("detail", [{"gone": [[1]]}, {"gone": "x"}, {"view": [{"again": "0"}]}, {"view": [["a", 2]]}])
def test_a_damaged_view_is_refused_with_the_reason(tmp_path, detail):
    outcome = judged(tmp_path, [STEPS[0], [4, 1, 1111, 500, detail]])
    assert outcome.problem


def test_the_command_judges_a_folder_and_leaves_the_conversations_out(tmp_path, capsys):
    judged(tmp_path)
    assert main(["conformance", str(tmp_path)]) == 0
    assert "1 files" in capsys.readouterr().out


def test_the_command_fails_at_a_difference(tmp_path, capsys):
    judged(tmp_path, [STEPS[0], [4, 1, 1111, 500], STEPS[2]])
    assert main(["conformance", str(tmp_path)]) == 1
    assert "whether it is rewritten" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("policy", "parameters", "settings"),
    [
        (
            "strands-sliding-window",
            {"proactive_compression": {"compression_threshold": 0.5}},
            {"proactive": True, "compression_threshold": 0.5},
        ),
        (
            "strands-sliding-window",
            {"proactive_compression": None, "per_turn": True},
            {"proactive": False, "per_turn": 1},
        ),
        ("strands-summarizing", {"summarization_system_prompt": "Be brief.", "pin_first": None}, {"pin_first": 0}),
        ("kimi-cli", {"trigger_ratio": 0.5, "reserved_context_size": 9}, {"share": 0.5, "reserved": 9}),
        ("kimi-cli", {"max_preserved_messages": 0}, {"kept": 0}),
        ("openhands", {"hard_context_reset_context_scaling": 0.5, "max_size": 9}, {"max_size": 9}),
        ("hermes", {"max_tokens": 8_192, "summary_target_ratio": 0.3}, {"reserved_output": 8_192, "target_ratio": 0.3}),
        ("hermes", {"max_tokens": None}, {"reserved_output": 0}),
        ("autogen-token-limited", {"token_limit": 10**9}, {"token_limit": 10**9}),
        ("aider-chat-summary", {}, {"max_tokens": 1_024}),
        ("langchain-summarization", {}, {"trigger": ""}),
        ("langchain-summarization", {"trigger": None, "summary_prompt": "Sum up {messages}"}, {"trigger": ""}),
        ("langchain-trim-messages", {"start_on": None}, {"start_on": ""}),
        ("deepagents-summarization", {"keep": ["messages", 4]}, {"trigger": "", "keep": "messages 4"}),
        ("inspect-edit", {"memory": False, "keep_thinking_turns": "all"}, {"keep_thinking_turns": 1_000_000}),
        ("pydantic-ai-sliding-window", {"max_fraction": None, "receipts": False}, {"max_fraction": 0.0}),
        ("pydantic-ai-summarizing", {"fallback_context_window": 9_000}, {"context_window": 9_000}),
        ("pydantic-ai-summarizing", {"fallback_context_window": 9_000, "window": 8_000}, {"context_window": 0}),
        ("pydantic-ai-summarizing", {"fallback_context_window": 9, "context_window": 7}, {"context_window": 7}),
    ],
)
def test_parameters_of_a_library_become_our_settings(policy, parameters, settings):
    own = policy_of(POLICIES[policy], {"name": "any", **parameters}).settings
    assert {name: getattr(own, name) for name in settings} == settings


@pytest.mark.parametrize(
    ("reply", "script"), [(100, {"summary_chars": 100}), (0, {"summary": "empty"})], ids=["a text", "empty"]
)
def test_a_summary_of_nothing_is_a_call_of_the_summariser_too(tmp_path, reply, script):
    """aider 0.86.2: where the first message alone is over the summariser's window, the summarised head is empty."""
    roles = ["user", "assistant"] * 6
    texts = [{"prefix": f"[m{i}] ", "unit": "look ", "chars": 200 if i else 400} for i in range(12)]
    messages = [{"role": role, "text": text} for role, text in zip(roles, texts, strict=True)]
    summary = {"new": 1, "role": "user", "chars": 52 + reply}
    asked = {"summariser": [{"messages": 2, "marks": [], "reply": reply}]}
    steps = [[at, 0, 50 + 50 * (at - 1) if at > 1 else 0, 450] for at in range(1, 11, 2)]
    steps += [[11, 1, 550, 450, {"view": [summary, [6, 10]], **asked}]]
    run = {"parameters": "small", "conversation": "small", "steps": steps, "outside": []}
    parameters = {"name": "small", "max_tokens": 450, "window": 600, **script}
    library = {"library": "aider", "strategy": "chat_summary"}
    outcome = judged(tmp_path, parameters=parameters, messages=messages, runs=[run], **library)
    assert (outcome.problem, differences(outcome)) == ("", [])


def test_a_library_may_take_the_blanks_at_the_ends_of_a_summary_away(tmp_path):
    """langchain 1.4.7: of 11 characters, "[S1] summar", all stay, and of 13 those before the blank."""
    library = {"library": "langchain", "strategy": "summarization_middleware"}
    for chars, stays in ((11, 11), (13, 12)):
        summary = {"new": 1, "role": "user", "chars": 48 + stays}
        asked = {"summariser": [{"messages": 1, "marks": [1, 3], "reply": chars}]}
        steps = [[4, 1, 1145, None, {"view": [summary, [2, 3]], **asked}]]
        run = {"parameters": "small", "conversation": "small", "steps": steps, "outside": [0]}
        parameters = {"name": "small", "trigger": ["tokens", 500], "keep": ["messages", 2], "summary_chars": chars}
        outcome = judged(tmp_path, parameters=parameters, runs=[run], **library)
        assert [item for item in differences(outcome) if "view" in item] == []
        assert outcome.problem == ""


@pytest.mark.parametrize(
    ("policy", "parameter"),
    [
        ("langchain-summarization", {"trigger": 4_000}),
        ("langchain-summarization", {"trigger": ["tokens", None]}),
        ("langchain-summarization", {"keep": "x"}),
        ("deepagents-summarization", {"keep": [1, 2]}),
        ("deepagents-summarization", {"truncate_args_settings": ["tokens", 4_000]}),
    ],
)
def test_a_value_that_the_library_would_not_take_is_refused(policy, parameter):
    with pytest.raises(SettingError):
        policy_of(POLICIES[policy], parameter)


@pytest.mark.parametrize("parameter", [{"receipts": True}, {"keep_tokens": 0}])
def test_a_value_that_is_not_modelled_is_refused(parameter):
    with pytest.raises(SettingError, match="not modelled"):
        policy_of(POLICIES["pydantic-ai-summarizing"], parameter)
