"""The rule of gptme: what it compares, and what a conversation without its views leaves unknown."""

from guard_core import recordings
from guard_core.rules import Agreement, explain
from tests.guard_core.recordings.checks import lines
from tests.guard_core.recordings.formats.test_gptme import CONVERSATION, VIEWS, folder

CALL, RESULT = 7, 62  # characters of `shell` with {"command":"cat a.txt"} and of a result of 250, / 4
BUDGET = {"context_budget": "110"}


def explained(source, **typed):
    [log] = recordings.read(source).sessions
    return explain(log, typed=typed)


def test_the_last_prompt_and_characters_of_the_answer_and_of_its_results_are_compared():
    first, second = explained(folder(CONVERSATION, VIEWS), **BUDGET).compactions
    assert (first.verdict, first.decision_tokens) == (Agreement.AGREES, 100 + CALL + RESULT)
    assert (second.verdict, second.decision_tokens) == (Agreement.AGREES, 110 + 6)


def test_the_provider_s_count_of_the_answer_is_not_compared():
    longer = [
        message | {"metadata": message["metadata"] | {"usage": message["metadata"]["usage"] | {"output_tokens": 900}}}
        if message["role"] == "assistant" and "metadata" in message
        else message
        for message in CONVERSATION
    ]
    (first, _) = explained(folder(longer, VIEWS), **BUDGET).compactions
    assert first.decision_tokens == 100 + CALL + RESULT


def test_nothing_is_missed_once_a_view_is_sent_that_is_not_in_the_file():
    assert not explained(lines(*CONVERSATION), **BUDGET).missed
    assert explained(lines(*CONVERSATION[:9]), **BUDGET).missed


def test_the_window_in_the_file_is_the_one_that_gptme_goes_by():
    stated = {**CONVERSATION[1], "content": "<budget:token_budget>64</budget:token_budget>"}
    own = explained(lines(CONVERSATION[0], stated, *CONVERSATION[2:9])).rule
    assert (own.threshold, own.version) == (64, "")
