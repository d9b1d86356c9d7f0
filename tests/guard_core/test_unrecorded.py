"""What a first prompt after a compaction holds and the file does not follows from files and earlier compactions."""

import pytest

from guard_core.attribution import attribute
from guard_core.forecast import known_at, predict
from guard_core.ledger import Ledger
from guard_core.sessions import Evidence, ModelCall, RecordedCompaction
from guard_core.unrecorded import USUAL_BESIDES_FILES
from guard_core.views import Inserted
from tests.builders import model, session, user

OVERHEAD, TURN, CALLS = 20_000, 500, 20  # prompt tokens of the fixed part and of each call; calls between compactions
BESIDES = 3_000  # prompt tokens after a compaction that belong to no file


def compacting(*files: int | None) -> Ledger:
    """A session of Claude Code that is compacted once for each number of characters attached again, each a token."""
    events, calls, compactions = [], [], []
    for place, chars in enumerate((0, *files)):
        if place:
            note = (user("summary " * 100),)
            cut = RecordedCompaction(
                len(events), Evidence.DECLARED, "summary", (Inserted(0),), note, restored_chars=chars
            )
            compactions.append(cut)
        prompt = OVERHEAD + (100 + (chars or 0) // 4 + BESIDES if place else 0)
        for _ in range(CALLS):
            events.append(user("result " * 200))
            prompt += TURN
            calls.append(ModelCall(len(events), len(events), prompt))
            events.append(model("answer " * 150))
    ledger = Ledger.of(session(*events, calls=tuple(calls), compactions=tuple(compactions), format="claude-code"))
    return ledger


def expected_after(ledger: Ledger, compaction: int) -> int:
    """Tokens of the first prompt after a compaction, predicted from the call before it."""
    step = CALLS * (compaction + 1)
    return predict(ledger, known_at(ledger, step - 1), step)


def test_files_that_are_attached_again_are_expected_after_the_first_compaction():
    small, large = (expected_after(compacting(chars), 0) for chars in (0, 40_000))
    per_char = attribute(compacting(0)).ratios["tool results"]
    assert large - small == pytest.approx(40_000 * per_char, rel=0.1)


def test_what_else_is_attached_is_learnt_from_earlier_compactions():
    first, third = (expected_after(compacting(0, 0, 0, 0), number) for number in (0, 3))
    real = int(compacting(0, 0, 0, 0).steps["prompt_tokens"][CALLS])
    assert abs(third - real) < abs(first - real) / 2


def test_without_the_sizes_of_files_the_usual_amount_is_expected():
    by_rule, usual = (known_at(compacting(chars), CALLS - 1).anchors.unrecorded for chars in (0, None))
    assert usual.after(0) == usual.tokens == usual.usual
    assert by_rule.after(0) == USUAL_BESIDES_FILES
