"""When the attribution of a session that grows is extended, and when it is learnt again."""

import msgspec
import numpy as np
import pytest

from guard_core.estimation.attribution import Attribution, attribute
from guard_core.estimation.grown import extended, is_due, is_learnt
from guard_core.events import part_text
from guard_core.ledger import Ledger
from guard_core.sessions import ModelCall, Session
from guard_core.tokens import tokenizer
from tests.builders import calls, model, tool_result, user


def chat(turns: int) -> Session:
    """A chat whose prompts are counted."""
    events = tuple(event for turn in range(turns) for event in (user("word " * (40 + turn % 7)), model("so " * 30)))
    return Session(events=events, calls=calls(events))


@pytest.mark.parametrize(("turns", "due"), [(100, False), (110, False), (111, True)])
def test_it_is_learnt_again_when_the_log_has_grown_by_a_tenth(turns, due):
    assert is_due(attribute(Ledger.of(chat(100))), Ledger.of(chat(turns))) is due


def test_the_ratios_stay_until_then():
    learnt = attribute(Ledger.of(chat(100)))
    longer = extended(learnt, Ledger.of(chat(105)))
    assert (longer.ratios, longer.fitted_events) == (learnt.ratios, 200)
    assert len(longer.tokens) == 210
    assert not longer.residual.any()


def test_new_events_are_shared_out_by_the_tokenizer_that_the_others_were():
    texts = ["f3a9-0c17-77be " * 200, "Summarise the report. " * 200] * 60  # half as many, and as lexical tokens
    counts = np.cumsum(tokenizer.count(texts)) + 5_000
    events = tuple(map(user, texts))
    asked = tuple(ModelCall(at, None, int(counts[at - 1]), model="gpt-5.4") for at in range(2, len(texts) + 1, 2))
    whole = Session(events=events, calls=asked)
    before = msgspec.structs.replace(whole, events=events[:116], calls=asked[:58])
    longer = extended(attribute(Ledger.of(before)), Ledger.of(whole))
    assert longer.fitted_events == 116
    assert longer.tokens[116:] == pytest.approx(attribute(Ledger.of(whole)).tokens[116:], abs=2)


def test_reasoning_that_was_not_sealed_is_expected_in_no_request_after_new_answers_either():
    question, words = user("word " * 200), "answer " * 48
    added = sum(tokenizer.count([part_text(question.parts[0]), words])) + 20

    def thinking(turns: int) -> Session:
        calls = [
            ModelCall(at, at, 9_000 + added * at // 2, output_tokens=660, model="gpt-5.4")
            for at in range(1, 2 * turns, 2)
        ]
        events = (question, model(words, reasoning="Thinking it over")) * turns
        return Session(events=events, calls=tuple(calls), format="opencode")

    whole = Ledger.of(thinking(42))
    longer = extended(attribute(Ledger.of(thinking(40))), whole)
    assert longer.fitted_events == 80
    assert longer.tokens == pytest.approx(attribute(whole).tokens, abs=2)


def test_nothing_is_learnt_from_one_prompt():
    learnt = attribute(Ledger.of(chat(1)))
    assert not is_learnt(learnt)
    assert extended(learnt, Ledger.of(chat(9))).to_bytes() == attribute(Ledger.of(chat(9))).to_bytes()


def test_what_came_after_the_last_count_is_shared_out_when_the_next_count_is_known():
    whole = chat(60)
    before = msgspec.structs.replace(
        whole, events=(*whole.events[:100], tool_result("r" * 400)), calls=whole.calls[:50]
    )
    now = msgspec.structs.replace(whole, events=(*before.events, *whole.events[101:]))
    longer = extended(attribute(Ledger.of(before)), Ledger.of(now))
    at, tokens = 99, [call.prompt_tokens for call in whole.calls[49:51]]
    assert longer.tokens[at:101].sum() == tokens[1] - tokens[0]


def test_one_stored_before_sessions_were_extended_is_made_anew():
    learnt = attribute(Ledger.of(chat(20)))
    fields = msgspec.msgpack.decode(learnt.to_bytes())
    older = msgspec.msgpack.encode(
        {name: fields[name] for name in fields if name not in ("fitted_events", "drift", "habit")}
    )
    stored = Attribution.from_bytes(older)
    assert is_due(stored, Ledger.of(chat(20)))
    assert extended(stored, Ledger.of(chat(21))).to_bytes() == attribute(Ledger.of(chat(21))).to_bytes()
