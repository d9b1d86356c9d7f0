"""Recorded outputs price answers where prompts agree with them, and reasoning that is dropped is known before it is."""

from dataclasses import replace

import numpy as np
import pytest

from guard_core.estimation.attribution import attribute
from guard_core.estimation.forecast import known_at, predict
from guard_core.estimation.ratios import left_out
from guard_core.events import Event, ReasoningPart, Role, TextPart, part_text
from guard_core.ledger import Ledger
from guard_core.sessions import ModelCall
from guard_core.tokens import tokenizer
from tests.builders import model, session, user

FIXED, ASKED, VISIBLE, FRAME = 5_000, 230, 60, 20
REASONING = (400, 40, 900, 15, 260, 700, 120, 33)  # tokens by call; the file shows none of them


def thinking(*, drops: bool, resent: bool = True, turns: int = 12, calls: int = 6) -> Ledger:
    """Turns of several calls whose reasoning is in no event, sent again within its turn, or beyond, or never."""
    events, model_calls, earlier, step = [], [], 0, 0
    prompt = FIXED
    for _ in range(turns):
        prompt -= earlier if drops else 0
        earlier = 0
        for call in range(calls):
            events += [user("word " * 200)] if not call else [user("result " * 200)]
            prompt += ASKED
            reasoning = REASONING[step % len(REASONING)]
            model_calls.append(ModelCall(len(events), len(events), prompt, output_tokens=VISIBLE + reasoning))
            events.append(model("answer " * 48))
            sent = resent and not (drops and call == calls - 1)
            prompt += VISIBLE + FRAME + (reasoning if sent else 0)
            earlier += reasoning if sent else 0
            step += 1
    return _by_turns(Ledger.of(session(*events, calls=tuple(model_calls))), calls)


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


@pytest.mark.parametrize("sealed", [0, 2_000])
def test_reasoning_of_a_model_of_openai_is_sent_again_only_as_it_was_sealed(sealed):
    question, words = user("word " * 200), TextPart("answer " * 48)
    answer = Event(Role.MODEL, (ReasoningPart("Thinking it over", opaque_bytes=sealed), words))
    added = sum(tokenizer.count([part_text(question.parts[0]), words.text])) + 20
    prompts = [9_000 + (added + (600 if sealed else 0)) * call for call in range(3)]  # tokens
    calls = [
        ModelCall(2 * call + 1, 2 * call + 1, prompt, output_tokens=660, model="gpt-5.4")
        for call, prompt in enumerate(prompts)
    ]
    ledger = Ledger.of(session(*([question, answer] * 3), calls=tuple(calls), format="opencode"))
    assert predict(ledger, known_at(ledger, 1), 2) == pytest.approx(prompts[2], abs=60)


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


def thinking_aloud(model_name: str) -> Ledger:
    """Turns of one thought and one answer; the thoughts of earlier turns are not sent. No output is recorded."""
    events, calls, prompt = [], [], FIXED
    for _ in range(6):
        events.append(user("word " * 200))
        prompt += ASKED
        calls.append(ModelCall(len(events), len(events), prompt, model=model_name))
        events.append(Event(Role.MODEL, (ReasoningPart("thought " * 900), TextPart("answer " * 48))))
        prompt += VISIBLE + FRAME
    return Ledger.of(session(*events, calls=tuple(calls)))


def test_a_model_that_is_known_to_leave_out_earlier_reasoning_is_forecast_without_it():
    assert error(thinking_aloud("claude-sonnet-4-5-20250929"), 1, 2) == pytest.approx(0.0, abs=0.02)
    assert error(thinking_aloud("claude-opus-4-6"), 1, 2) > 0.05


def test_growth_that_no_event_explains_is_expected_to_go_on():
    events, calls = [], []
    for call in range(80):
        events += [user("word " * 200), model("answer " * 60)]
        calls.append(ModelCall(2 * call + 1, 2 * call + 1, FIXED + 900 * call))
    ledger = Ledger.of(session(*events, calls=tuple(calls)))
    assert error(ledger, 25, 75) == pytest.approx(0.0, abs=0.02)


DENSE, LOOSE = '{["(9";%8)]}\n' * 90, "ordinary words here " * 50


def counted(by: str, calls: int = 24) -> Ledger:
    """A chat of dense and loose texts, counted by characters (of JSON, too) or by lexical tokens."""
    events = [user(DENSE), model(LOOSE), user(LOOSE), model(LOOSE), user(DENSE + DENSE), model(DENSE)] * (calls // 3)
    ledger = Ledger.of(session(*events, calls=tuple(ModelCall(2 * call + 1, 2 * call + 1) for call in range(calls))))
    as_json = ledger.by_event(ledger.parts["json_chars"])
    sizes = {
        "characters": ledger.events["chars"] // 4,
        "JSON": as_json // 4,
        "lexical": ledger.events["lexical_tokens"],
    }[by]
    ledger.steps["prompt_tokens"][:] = FIXED + np.concatenate([[0], np.cumsum(sizes)])[ledger.steps["at"]]
    return ledger


@pytest.mark.parametrize("by", ["characters", "JSON", "lexical"])
def test_counts_that_follow_characters_are_recognised_and_others_are_not(by):
    ledger = counted(by)
    assert attribute(ledger).weights == ("lexical" if by == "lexical" else "characters")
    assert max(abs(error(ledger, origin, origin + 1)) for origin in range(9, 20)) < 0.01


@pytest.mark.parametrize("by", ["characters", "JSON"])
def test_four_intervals_are_enough_to_recognise_counts_of_characters(by):
    ledger = counted(by)
    assert [known_at(ledger, origin).attribution.weights for origin in (3, 4)] == ["lexical", "characters"]


@pytest.mark.parametrize(("off", "weights"), [(0.005, "characters"), (0.1, "lexical")])
def test_counts_that_follow_characters_only_roughly_are_a_tokenizers(off, weights):
    ledger = counted("characters")
    steps = ledger.steps["prompt_tokens"]
    growth = np.diff(steps) * (1 + off * np.resize([1, -1, -1, 1, 1], len(steps) - 1))
    steps[1:] = steps[0] + np.cumsum(growth.astype(np.int64))
    assert attribute(ledger).weights == weights


def test_a_few_requests_with_something_unrecorded_do_not_hide_counts_of_characters():
    ledger = counted("characters")
    ledger.steps["prompt_tokens"][12:] += 100
    assert attribute(ledger).weights == "characters"


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


def test_what_came_once_is_not_expected_with_every_call():
    events = [part for _ in range(40) for part in (user("word " * 200), model("answer " * 200))]
    hidden = 30_000  # comes with the third call and is in no event
    calls = tuple(ModelCall(2 * call + 1, 2 * call + 1, FIXED + 600 * call + hidden * (call > 1)) for call in range(40))
    assert error(Ledger.of(session(*events, calls=calls)), 4, 24) == pytest.approx(0.0, abs=0.08)


@pytest.mark.parametrize("agent", ["claude-code", "opencode"])
def test_outputs_are_believed_from_the_first_answer_on_where_they_are_those_of_whole_answers(agent):
    ledger = replace(thinking(drops=False), agent=agent)
    assert error(ledger, 2, 3) == pytest.approx(0.0, abs=0.01)
    assert error(thinking(drops=False), 2, 3) < -0.05
    cut = replace(ledger, steps={**ledger.steps, "output_tokens": np.full(ledger.step_count, 3)}, _prefixes={})
    without = replace(ledger, steps={**ledger.steps, "output_tokens": np.full(ledger.step_count, -1)}, _prefixes={})
    assert predict(cut, known_at(cut, 2), 3) == predict(without, known_at(without, 2), 3)


def test_answers_to_come_cost_what_outputs_say_of_their_content():
    per_byte, prompt, events, calls = 0.45, FIXED, [], []
    for call in range(40):
        signed = (800, 3_600, 0, 1_600)[call % 4] * (1 if call < 24 else 4)  # from then on the model thinks more
        events.append(user("result " * (40 + 90 * (call % 3))))
        prompt += 60 + 100 * (call % 3)
        output = VISIBLE + round(signed * per_byte) + REASONING[call % len(REASONING)] // 4  # this in no byte
        calls.append(ModelCall(len(events), len(events), prompt, output_tokens=output))
        thought = (ReasoningPart("", opaque_bytes=signed),) if signed else ()
        events.append(Event(Role.MODEL, (*thought, TextPart("answer " * 48))))
        prompt += output + FRAME
    ledger = _by_turns(Ledger.of(session(*events, calls=tuple(calls))), 40)
    assert known_at(ledger, 23).attribution.habit is not None
    assert error(ledger, 23, 33) == pytest.approx(0.0, abs=0.06)


def thinking_too_long(agent: str, *, split: bool = False) -> Ledger:
    """Turns of an answer each; that of every eighth call is reasoning alone, which no later request holds."""
    events, calls, prompt = [], [], FIXED
    for call in range(32):
        events.append(user("word " * 200))
        prompt += ASKED
        cut = call % 8 == 7
        calls.append(ModelCall(len(events), len(events), prompt, output_tokens=32_000 if cut else VISIBLE))
        thought = (ReasoningPart("", opaque_bytes=90_000),)
        events.append(Event(Role.MODEL, thought) if cut else model("answer " * 48))
        if cut and split:
            events.append(model("answer " * 48))
        prompt += 0 if cut else VISIBLE + FRAME
    return Ledger.of(session(*events, calls=tuple(calls), format=agent))


def test_answers_of_reasoning_alone_are_not_expected_in_the_requests_of_claude_code():
    ledger = thinking_too_long("claude-code")
    assert error(ledger, 15, 16) == pytest.approx(0.0, abs=0.01)
    assert error(ledger, 10, 20) == pytest.approx(0.0, abs=0.02)
    assert error(thinking_too_long("scripted"), 15, 16) > 0.5


def test_reasoning_whose_answer_is_the_next_message_is_not_left_out():
    assert not len(left_out(thinking_too_long("claude-code", split=True)))
    assert left_out(thinking_too_long("claude-code")).tolist() == [15, 31, 47, 63]
