"""What is computed of a recording once, whoever asks for it."""

from tests.guard_core.findings.cases import chat, replayed


def test_a_side_of_a_replay_that_is_in_use_is_not_made_again():
    facts, trace = replayed(chat(1_000, 2_000, 9_500, 9_800))
    side = facts.replay(trace)
    assert facts.replay(trace) is side
    _, other = replayed(chat(1_000, 2_000, 9_500, 9_800), profile="early")
    assert facts.replay(other) is not side
    assert facts.replay(other).trace is other
