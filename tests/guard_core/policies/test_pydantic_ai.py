"""The compaction of Pydantic AI's harness sends what the original sends."""

import msgspec
import pytest

from guard_core.conformance.libraries.function_model import words
from guard_core.ledger import Ledger
from guard_core.policies import get_policy
from guard_core.replay import replay
from guard_core.requests import materialise
from guard_core.sessions import ModelCall
from tests.builders import image, model, session, tool_call, tool_result, user
from tests.guard_core.conformance.libraries import check_equals_the_library

CLEARING = "pydantic-ai-clear-tool-results"
ROUNDS = session(
    user("u" * 400),
    *(event for _ in range(5) for event in (tool_call("read_file", path="p" * 20), tool_result("r" * 400))),
    calls=tuple(ModelCall(at=at) for at in (1, 3, 5, 7, 9, 11)),
)


def test_clearing_equals_recorded_runs_of_the_library():
    check_equals_the_library(CLEARING)


def results(log=ROUNDS, **settings):
    """The results of every request, c for a cleared one."""
    trace = replay(Ledger.of(log), get_policy(CLEARING, **{"max_tokens": 0, **settings}), window=1_000_000)
    requests = [materialise(trace.view(step, call.at), log) for step, call in enumerate(log.calls)]
    return [
        "".join(part.content[0] if part.content != "[tool result cleared]" else "c" for part in parts_of(request))
        for request in requests
    ]


def parts_of(request):
    return [part for event in request for part in event.parts if hasattr(part, "content")]


@pytest.mark.parametrize(
    ("settings", "last"),
    [
        ({}, "rrrrr"),
        ({"max_tokens": 10}, "ccrrr"),
        ({"max_tokens": 100_000}, "rrrrr"),
        ({"max_fraction": 0.0002}, "ccrrr"),
        ({"max_tokens": 10, "keep_pairs": 0}, "ccccc"),
        ({"max_tokens": 10, "exclude_tools": "grep, read_file"}, "rrrrr"),
        ({"max_tokens": 10, "min_clear_tokens": 300}, "rrrrr"),
    ],
)
def test_older_results_are_cleared_over_a_limit(settings, last):
    assert results(**settings)[-1] == last


def test_messages_are_counted_from_the_last_cleared_result():
    assert results(max_messages=4, keep_pairs=1) == ["", "r", "cr", "crr", "cccr", "cccrr"]
    assert results(max_messages=6, keep_pairs=1) == ["", "r", "rr", "ccr", "ccrr", "ccrrr"]


def test_arguments_of_cleared_results_go_where_that_is_set():
    policy = get_policy(CLEARING, max_tokens=10, clear_tool_inputs=True)
    trace = replay(Ledger.of(ROUNDS), policy, window=1_000_000)
    sent = materialise(trace.view(5, 11), ROUNDS)
    assert [event.parts[0].arguments for event in sent[1::2]] == [{}, {}, *[{"path": "p" * 20}] * 3]


def test_of_parallel_results_those_are_cleared_that_are_old():
    three = msgspec.structs.replace(tool_result(""), parts=tuple(tool_result(letter).parts[0] for letter in "xyz"))
    calls = msgspec.structs.replace(tool_call(), parts=tool_call().parts * 3)
    log = session(user("u"), calls, three, calls=(ModelCall(at=3),))
    assert results(log, max_tokens=1, keep_pairs=2) == ["cyz"]


def test_words_are_counted_as_the_model_of_the_recorded_runs_does():
    assert words(user("two words, and.more")) == 4
    assert words(model("")) == 0
    assert words(tool_call(path="a b")) == 1 + 5  # the braces count, too
    assert words(image(70)) == 70
