"""What `gemini -o json` prints."""

import json

import pytest

from guard_core.errors import DamagedRecording
from guard_core.recordings import read
from guard_core.recordings.formats.gemini.format import FORMAT
from guard_core.recordings.formats.gemini.result import is_result
from tests.guard_core.recordings.checks import check_hostile, read_as, recognises, spoiled, texts


def numbers(prompt, requests=1, **about):
    return {
        "api": {"totalRequests": requests, "totalErrors": 0},
        "tokens": {"prompt": prompt, "cached": prompt // 2, "candidates": 9},
        **about,
    }


def printed(models, calls=0, **about):
    stats = {"models": models, "tools": {"totalCalls": calls}}
    return {"session_id": "s", "response": "Done", "stats": stats, **about}


def in_role(prompt, requests=1):
    model = numbers(prompt, requests)
    return {**model, "roles": {"main": {**model["api"], "tokens": model["tokens"]}}}


MANY = printed({"router": numbers(80), "model-1": in_role(900, requests=3)}, calls=2)


def test_the_answer_is_all_that_is_in_the_file():
    recording = read(json.dumps(MANY, indent=2).encode(), strict=True)
    session = recording.sessions[0]

    assert (recording.format, session.source_id, session.model) == ("gemini-cli", "s", "model-1")
    assert texts(session) == ["Done"]
    assert "2, which are not in the file" in session.notes[1]


def test_a_sum_over_several_requests_is_no_calls_prompt():
    recording = read_as(FORMAT, MANY)

    assert [step.prompt_tokens for step in recording.sessions[0].calls] == [None]
    assert "900 prompt tokens over all calls" in recording.sessions[0].notes[-1]
    assert recording.facts.model_calls == 0


@pytest.mark.parametrize("models", [{"model-1": numbers(100)}, {"router": numbers(80), "model-1": in_role(100)}])
def test_the_sum_over_a_single_request_is_that_calls_prompt(models):
    recording = read_as(FORMAT, printed(models))

    assert [(step.prompt_tokens, step.cached_tokens) for step in recording.sessions[0].calls] == [(100, 50)]
    assert recording.facts.prompt_tokens_sum == 100


def test_thoughts_are_counted_as_output():
    model = numbers(100, tokens={"prompt": 100, "cached": 50, "candidates": 9, "thoughts": 30})
    assert [step.output_tokens for step in read_as(FORMAT, printed({"model-1": model})).sessions[0].calls] == [39]


def test_several_models_without_roles_tell_a_sum_only():
    session = read_as(FORMAT, printed({"a": numbers(80), "b": numbers(100)})).sessions[0]

    assert (session.model, session.calls[0].prompt_tokens) == ("", None)
    assert "180 prompt tokens" in session.notes[-1]


def test_a_run_without_an_answer_is_told():
    with pytest.raises(DamagedRecording, match="holds no answer"):
        read_as(FORMAT, printed({}, response=None))


def test_a_wrong_count_is_told():
    with pytest.raises(DamagedRecording, match='prompt is "many", no count of tokens'):
        read_as(FORMAT, printed({"m": {**numbers(0), "tokens": {"prompt": "many"}}}), strict=True)


def test_other_objects_are_left_to_others():
    assert not recognises(FORMAT, {"response": "Done", "stats": {"models": 3}})
    assert not recognises(FORMAT, {"session_id": "s", "response": "Done", "stats": {}})


def test_wrong_types_anywhere_are_survived():
    spoilt = [bad for bad in spoiled(MANY) if is_result(bad)]

    assert len(spoilt) > 100
    check_hostile(FORMAT, (json.dumps(bad).encode() for bad in spoilt))
