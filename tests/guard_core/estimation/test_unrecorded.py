"""What a first prompt after a compaction holds and the file does not follows from files and earlier compactions."""

import pytest

from guard_core.estimation.attribution import attribute
from guard_core.estimation.forecast import known_at, predict
from guard_core.estimation.unrecorded import USUAL, USUAL_BESIDES_FILES
from guard_core.ledger import Ledger
from guard_core.sessions import Evidence, ModelCall, RecordedCompaction
from guard_core.views import Inserted
from tests.builders import model, session, user

OVERHEAD, TURN, CALLS = 20_000, 500, 20  # prompt tokens of the fixed part and of each call; calls between compactions
BESIDES = 3_000  # prompt tokens after a compaction that belong to no file


def compacting(*files: int | None, kind: str = "summary", agent: str = "claude-code", before: int = 0) -> Ledger:
    """A session of an agent that is compacted once for each number of lexical tokens attached again; `before`: tokens
    of the conversation before the file begins."""
    events, calls, compactions = [], [], []
    for place, tokens in enumerate((0, *files)):
        if place:
            note = (user("summary " * 100),)
            cut = RecordedCompaction(
                len(events),
                Evidence.DECLARED,
                kind,
                (Inserted(0),),
                note,
                tokens_before=100_000,
                restored_tokens=tokens,
            )
            compactions.append(cut)
        prompt = OVERHEAD + (100 + (tokens or 0) + BESIDES if place else before)
        for _ in range(CALLS):
            events.append(user("result " * 200))
            prompt += TURN
            calls.append(ModelCall(len(events), len(events), prompt))
            events.append(model("answer " * 150))
    ledger = Ledger.of(session(*events, calls=tuple(calls), compactions=tuple(compactions), format=agent))
    return ledger


def expected_after(ledger: Ledger, compaction: int) -> int:
    """Tokens of the first prompt after a compaction, predicted from the call before it."""
    step = CALLS * (compaction + 1)
    return predict(ledger, known_at(ledger, step - 1), step)


def test_files_that_are_attached_again_are_expected_after_the_first_compaction():
    small, large = (expected_after(compacting(tokens), 0) for tokens in (0, 10_000))
    ratio = attribute(compacting(0)).lexical_ratios["tool results"]
    assert large - small == pytest.approx(10_000 * ratio, rel=0.1)


def test_what_else_is_attached_is_learnt_from_earlier_compactions():
    first, third = (expected_after(compacting(0, 0, 0, 0), number) for number in (0, 3))
    real = int(compacting(0, 0, 0, 0).steps["prompt_tokens"][CALLS])
    assert abs(third - real) < abs(first - real) / 2


def test_without_the_sizes_of_files_the_usual_amount_is_expected():
    by_rule, usual = (known_at(compacting(tokens), CALLS - 1).anchors.unrecorded for tokens in (0, None))
    assert usual.after(0) == usual.tokens == usual.usual
    assert by_rule.after(0) == USUAL_BESIDES_FILES


def test_nothing_is_expected_where_old_results_were_only_cleared():
    usual, cleared = (expected_after(compacting(None, kind=kind), 0) for kind in ("summary", "edit"))
    assert usual - cleared == known_at(compacting(None), CALLS - 1).anchors.unrecorded.tokens
    assert not known_at(compacting(None, None, kind="edit"), 2 * CALLS).anchors.unrecorded.measured


@pytest.mark.parametrize(("kind", "usual"), [("summary", 0), ("opaque", USUAL["codex"])])
def test_of_the_exact_history_of_codex_nothing_is_missing_but_a_sealed_summary(kind, usual):
    assert known_at(compacting(None, kind=kind, agent="codex"), CALLS - 1).anchors.unrecorded.after(0) == usual


def test_files_that_the_overhead_was_taken_with_are_not_expected_twice():
    """The first prompt after the first compaction is the smallest, and has files, too."""
    ledger = compacting(8_000, 12_000, before=90_000)
    more = known_at(ledger, 2 * CALLS - 1).anchors.unrecorded.after(1)
    ratio = attribute(ledger).lexical_ratios["tool results"]
    assert more == pytest.approx(4_000 * ratio, rel=0.05)


def sealed(*estimates: int | None) -> Ledger:
    """A session with a sealed compaction for each estimate of its recorder, before a prompt larger by a constant than
    4,000, 9,000, 6,000, … tokens, which it estimates, or not (None)."""
    left = (4_000, 9_000, 6_000, 14_000)
    events, calls, compactions = [], [], []
    for place in range(len(estimates) + 1):
        if place:
            cut = RecordedCompaction(
                len(events),
                Evidence.DECLARED,
                "opaque",
                (Inserted(0),),
                (user("The task. " * place),),
                tokens_before=100_000,
                tokens_after=estimates[place - 1],
            )
            compactions.append(cut)
        prompt = OVERHEAD + (left[place - 1] + BESIDES if place else 0)
        for turn in range(CALLS):
            calls.append(ModelCall(len(events), len(events), prompt + turn * TURN))
            events += [model("answer " * 150), user("result " * 200)]
    return Ledger.of(session(*events, calls=tuple(calls), compactions=tuple(compactions), format="codex"))


def test_after_a_sealed_compaction_the_prompt_exceeds_the_recorders_estimate_as_it_did_before():
    ledger = sealed(4_000, 9_000, 6_000)
    for number in (1, 2):
        real = int(ledger.steps["prompt_tokens"][CALLS * (number + 1)])
        assert expected_after(ledger, number) == pytest.approx(real, abs=2)
    assert expected_after(ledger, 0) == expected_after(sealed(None, None, None), 0)


def test_without_an_estimate_of_both_compactions_the_usual_amount_is_expected():
    plain, unknown, first = (sealed(*some) for some in ((None, None), (4_000, None), (None, 9_000)))
    assert expected_after(plain, 1) == expected_after(unknown, 1) == expected_after(first, 1)
    real = int(plain.steps["prompt_tokens"][2 * CALLS])
    assert abs(expected_after(plain, 1) - real) > real / 10


def test_an_estimate_in_between_is_measured_against_the_last_one_before():
    """Nothing is learnt from a compaction without an estimate, nor from the future."""
    ledger = sealed(4_000, None, 6_000, 14_000)
    assert expected_after(ledger, 2) == pytest.approx(int(ledger.steps["prompt_tokens"][3 * CALLS]), abs=2)
