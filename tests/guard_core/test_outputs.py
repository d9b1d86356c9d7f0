"""Recorded outputs price answers where prompts agree with them, and reasoning that is dropped is known before it is."""

from dataclasses import replace

import numpy as np
import pytest

from guard_core.attribution import attribute
from guard_core.forecast import known_at, predict
from guard_core.ledger import Ledger
from guard_core.sessions import ModelCall
from tests.builders import model, session, user

FIXED, ASKED, VISIBLE, FRAME = 5_000, 230, 60, 20
REASONING = (400, 40, 900, 15, 260, 700, 120, 33)  # tokens by call; the file shows none of them


def thinking(*, drops: bool, resent: bool = True, turns: int = 12, calls: int = 6) -> Ledger:
    """Turns of several calls whose reasoning is in no event, sent again within its turn, or beyond, or never."""
    events, made, earlier, step = [], [], 0, 0
    prompt = FIXED
    for _ in range(turns):
        prompt -= earlier if drops else 0
        earlier = 0
        for call in range(calls):
            events += [user("word " * 200)] if not call else [user("result " * 200)]
            prompt += ASKED
            reasoning = REASONING[step % len(REASONING)]
            made.append(ModelCall(len(events), len(events), prompt, output_tokens=VISIBLE + reasoning))
            events.append(model("answer " * 48))
            sent = resent and not (drops and call == calls - 1)
            prompt += VISIBLE + FRAME + (reasoning if sent else 0)
            earlier += reasoning if sent else 0
            step += 1
    return _by_turns(Ledger.of(session(*events, calls=tuple(made))), calls)


def _by_turns(ledger: Ledger, calls: int) -> Ledger:
    ledger.steps["turn"] = np.arange(ledger.step_count) // calls
    return ledger


def error(ledger: Ledger, origin: int, step: int) -> float:
    """The relative error of one forecast."""
    return predict(ledger, known_at(ledger, origin), step) / int(ledger.steps["prompt_tokens"][step]) - 1.0


def test_the_prompt_after_an_answer_grows_by_its_recorded_output():
    ledger = thinking(drops=False)
    assert [error(ledger, origin, origin + 1) for origin in range(20, 28)] == pytest.approx([0.0] * 8, abs=0.004)


def test_reasoning_that_is_never_sent_again_is_not_added():
    ledger = thinking(drops=False, resent=False)
    assert [error(ledger, origin, origin + 1) for origin in range(20, 28)] == pytest.approx([0.0] * 8, abs=0.01)


def test_a_fall_at_a_new_turn_is_forecast_where_earlier_turns_showed_it():
    ledger = thinking(drops=True)
    before, after = 47, 48
    recorded = ledger.steps["prompt_tokens"]
    assert recorded[after] < recorded[before]
    assert error(ledger, before, after) == pytest.approx(0.0, abs=0.01)


def test_no_fall_is_forecast_where_earlier_turns_kept_their_reasoning():
    assert error(thinking(drops=False), 47, 48) == pytest.approx(0.0, abs=0.01)


def test_what_a_turn_drops_is_said_at_its_first_step_alone():
    dropped = attribute(thinking(drops=True)).dropped
    assert set(np.flatnonzero(dropped)) == set(range(6, 72, 6))
    assert attribute(thinking(drops=False)).dropped.sum() == 0


def test_a_session_without_outputs_drops_nothing():
    ledger = thinking(drops=True)
    ledger.steps["output_tokens"][:] = -1
    assert attribute(ledger).dropped.sum() == 0


def test_growth_that_no_event_explains_is_expected_to_go_on():
    events, made = [], []
    for call in range(80):
        events += [user("word " * 200), model("answer " * 60)]
        made.append(ModelCall(2 * call + 1, 2 * call + 1, FIXED + 900 * call))
    ledger = Ledger.of(session(*events, calls=tuple(made)))
    assert error(ledger, 20, 70) == pytest.approx(0.0, abs=0.02)


DENSE, LOOSE = "{[(9;%8)]} " * 90, "ordinary words here " * 50


def counted(by: str, calls: int = 24) -> Ledger:
    """A chat of dense and loose texts, counted by characters or by the lexical tokens of each message."""
    events = [user(DENSE), model(LOOSE), user(LOOSE), model(LOOSE), user(DENSE + DENSE), model(DENSE)] * (calls // 3)
    ledger = Ledger.of(session(*events, calls=tuple(ModelCall(2 * call + 1, 2 * call + 1) for call in range(calls))))
    sizes = ledger.events["chars"] // 4 if by == "characters" else ledger.events["lexical_tokens"]
    ledger.steps["prompt_tokens"][:] = FIXED + np.concatenate([[0], np.cumsum(sizes)])[ledger.steps["at"]]
    return ledger


@pytest.mark.parametrize("by", ["characters", "lexical"])
def test_counts_that_follow_characters_are_recognised_and_others_are_not(by):
    ledger = counted(by)
    assert attribute(ledger).weights == by
    assert max(abs(error(ledger, origin, origin + 1)) for origin in range(9, 20)) < 0.01


def test_no_count_after_the_origin_changes_a_forecast():
    for ledger in (thinking(drops=True), counted("characters")):
        for origin in (5, 11, 17):
            later = np.arange(ledger.step_count) > origin
            changed = {name: np.where(later, 7 * column + 3, column) for name, column in ledger.steps.items()}
            names = ("prompt_tokens", "cached_tokens", "cache_write_tokens", "output_tokens")
            other = replace(ledger, steps={**ledger.steps, **{name: changed[name] for name in names}}, _prefixes={})
            assert predict(other, known_at(other, origin), 21) == predict(ledger, known_at(ledger, origin), 21)


def test_growth_far_beyond_the_messages_is_not_carried_on():
    events = [part for _ in range(40) for part in (user("word " * 40), model("answer " * 40))]
    calls = tuple(ModelCall(2 * call + 1, 2 * call + 1, FIXED + 9_000 * call) for call in range(40))
    ledger = Ledger.of(session(*events, calls=calls))
    added = predict(ledger, known_at(ledger, 10), 20) - int(ledger.steps["prompt_tokens"][10])
    assert 0 < added < 10 * 2_000
