"""Tool results that come again after a compaction took them away, where sizes tell them apart."""

import msgspec
import pytest
from msgspec.structs import replace

from guard_core.checker import check
from guard_core.findings import Facts, recorded_findings, recorded_verdict
from guard_core.sessions import Evidence, ModelCall, RecordedCompaction
from guard_core.views import Inserted, Span
from tests.builders import session, tool_call, tool_result, user
from tests.guard_core.checker.cases import calling_again, calling_in_turn

FILES = [(f"src/{'x' * number}.py", f"file {number}\n" + "some words\n" * (300 + number)) for number in range(6)]


def reading(*rounds, kept=0):
    """Files read in rounds; before each round but the first, a summary takes the place of all but `kept` messages."""
    events, calls, compactions = [user("please read the sources and then tell me what they do")], [], []
    for number, files in enumerate(rounds):
        at = len(events)
        if number:
            base = (Inserted(0), Span(at - kept, at))
            compactions.append(
                RecordedCompaction(at, Evidence.DECLARED, "summary", base, (user("files were read"),), "auto")
            )
        for path, text in files:
            name = str(len(events))
            calls.append(ModelCall(len(events), len(events), 1_000 * (len(calls) + 1 - 4 * number)))
            events += [tool_call("read_file", name, path=path), tool_result(text, id=name)]
    calls.append(ModelCall(len(events), len(events), 1_000 * (len(calls) + 2)))
    return session(*events, user("so?"), calls=tuple(calls), compactions=tuple(compactions))


def claims(built):
    facts = Facts.of(built)
    findings = recorded_findings(facts)
    assert check(built, findings, facts.window) == []
    return [item for item in findings if item.kind == "asked_again"]


def test_files_that_are_read_again_after_a_compaction_are_counted_with_their_tokens():
    built = reading(FILES, FILES[1:5])
    (claim,) = claims(built)
    tokens = sum(int(Facts.of(built).attribution.tokens[event]) for event in (14, 16, 18, 20))
    assert claim.sentence == (
        "After compaction 1 (step 7), the agent got 4 tool results again that the context no longer had (same call, "
        f"same result): {tokens:,} tokens (attributed)."
    )
    assert (claim.severity, claim.step, claim.numbers["tokens"]) == ("info", 6, tokens)


def test_the_compaction_after_which_most_came_again_is_named_and_the_others_counted():
    (claim,) = claims(reading(FILES, FILES[:3], FILES))
    assert (claim.numbers["compaction"], claim.numbers["results"], claim.numbers["compactions"]) == (1, 6, [0, 1])
    assert claim.sentence.endswith(" The same holds after 1 more compaction.")


@pytest.mark.parametrize(
    "again",
    [
        FILES[:2],  # too few
        [(path, text + "!") for path, text in FILES],  # changed meanwhile
        [(f"{path}x", text) for path, text in FILES],  # other files of the same size
        [(path, text[:900]) for path, text in FILES],  # short ones
    ],
)
def test_other_results_are_not(again):
    assert claims(reading(FILES, again)) == []


def test_nor_is_what_was_polled_before():
    assert claims(reading([*FILES, *FILES], FILES)) == []


def test_nor_are_other_outputs_of_the_same_size():
    first, then = ([(path, sign * 2_000) for path, _ in FILES] for sign in "xy")
    assert claims(reading(first, then)) == []
    assert claims(reading(first, first))


def test_nor_is_what_the_compaction_kept():
    assert claims(reading(FILES, FILES, kept=12)) == []
    (claim,) = claims(reading(FILES, FILES, kept=4))
    assert claim.numbers["results"] == 4


def test_a_claim_of_more_or_of_another_compaction_is_caught():
    built = reading(FILES, FILES[:3], FILES)
    (claim,) = claims(built)
    window = Facts.of(built).window
    for name, value in (("results", 5), ("compaction", 0), ("compactions", [1]), ("tokens", 10_000)):
        lie = msgspec.structs.replace(claim, numbers={**claim.numbers, name: value})
        assert check(built, [lie], window)


def repeated_calls(built):
    """Its findings of calls that are made again and again, and its verdict; the checker has no objection."""
    facts = Facts.of(built)
    findings = recorded_findings(facts)
    verdict = recorded_verdict(facts, findings)
    assert check(built, findings, facts.window, verdict) == []
    return [item for item in findings if item.kind == "repeated_call"], verdict


@pytest.mark.parametrize(("times", "severity"), [(4, None), (5, "info"), (9, "info"), (10, "warning")])
def test_a_call_that_is_made_again_and_again_with_one_result_is_named(times, severity):
    found, verdict = repeated_calls(calling_again(times))
    assert [item.severity for item in found] == [severity] * (severity is not None)
    if found:
        assert found[0].sentence == (
            f"A tool was called {times} times in a row with the same arguments and the same result "
            f"(steps 3 to {times + 2}): the agent is waiting for something, or makes no progress."
        )
        assert (found[0].step, verdict.kind) == (2, "repeated_call" if severity == "warning" else "healthy")


@pytest.mark.parametrize("text", ["Error: the table user2 is missing", "Error: it is another one"])
def test_another_result_in_between_ends_the_run_also_one_of_the_same_size(text):
    built = calling_again(12)
    events = list(built.events)
    events[14] = replace(events[14], parts=(replace(events[14].parts[0], content=text),))
    found = {item.kind: item for item in recorded_findings(Facts.of(replace(built, events=tuple(events))))}
    assert found["repeated_call"].numbers["rounds"] == 7


@pytest.mark.parametrize(("rounds", "severity"), [(4, None), (5, "info"), (10, "warning")])
def test_calls_that_are_made_in_turn_again_and_again_with_the_same_results_are_named(rounds, severity):
    """Three calls in turn, one of them without a word in its result: a loop, though none is made twice in a row."""
    found, verdict = repeated_calls(calling_in_turn(rounds))
    assert [item.severity for item in found] == [severity] * (severity is not None)
    if found:
        assert found[0].sentence == (
            f"The same 3 calls were made {rounds} times in turn, with the same results (steps 1 to {3 * rounds}): the "
            "agent is waiting for something, or makes no progress."
        )
        assert found[0].count == 1
    if severity == "warning":
        assert verdict.sentence.startswith("The same 3 calls were made 10 times in turn")


def test_calls_in_turn_whose_results_differ_are_no_loop():
    built = calling_in_turn(10, progress=True)
    assert "repeated_call" not in {item.kind for item in recorded_findings(Facts.of(built))}
