"""The sample sessions tell the stories their cards promise, and are the same every time."""

import hashlib

import msgspec
import pytest

from guard_core.ledger import Ledger
from guard_core.sessions import Session
from guard_core.simulator.samples import SAMPLES


def prompts(session: Session) -> list[int]:
    return [call.prompt_tokens for call in session.calls if call.prompt_tokens is not None]


def heuristic(session: Session, events: int) -> int:
    ledger = Ledger.of(session)
    costs = ("text_tokens", "inline_tokens", "metadata_tokens")
    return ledger.system_tokens + ledger.tools_tokens + sum(int(ledger.prefix(name)[events]) for name in costs)


def test_there_are_five_in_the_order_of_their_cards():
    assert list(SAMPLES) == ["healthy", "timing-gap", "small-window", "unpersisted-loop", "long-coding"]
    assert all(sample.title and sample.blurb for sample in SAMPLES.values())


@pytest.mark.parametrize("name", SAMPLES)
def test_it_is_the_same_every_time(name):
    first, second = (msgspec.json.encode(SAMPLES[name].build()) for _ in range(2))
    assert hashlib.sha256(first).digest() == hashlib.sha256(second).digest()


@pytest.mark.parametrize("name", SAMPLES)
def test_every_call_is_answered_by_its_own_event(name):
    session = SAMPLES[name].build()
    assert all(call.response in (None, call.at) for call in session.calls)
    assert all(0 <= call.cached_tokens <= call.prompt_tokens for call in session.calls if call.prompt_tokens)


def test_the_healthy_one_ends_near_sixty_percent_without_compaction():
    session = SAMPLES["healthy"].build()
    assert not session.compactions
    assert 0.55 < max(prompts(session)) / session.window.value < 0.65


def test_the_timing_gap_has_the_figures_of_the_design_document():
    session = SAMPLES["timing-gap"].build()
    seen = next(index for index, call in enumerate(session.calls) if call.prompt_tokens == 140_000)
    assert heuristic(session, session.calls[seen].at) == 70_000
    assert heuristic(session, session.calls[seen + 1].at) == 90_009
    assert session.compactions[0].tokens_before == 180_018
    assert session.compactions[0].at == session.calls[seen + 1].at


def test_the_small_window_is_hit_by_forty_thousand_characters():
    session = SAMPLES["small-window"].build()
    sizes = [len(str(part.content)) for event in session.events for part in event.parts if hasattr(part, "content")]
    assert max(sizes) == 40_000
    assert [call.prompt_tokens for call in session.calls].count(None) == 1
    assert max(prompts(session)) < session.window.value == 8_000


def test_the_loop_has_the_figures_of_the_log_and_goes_on_every_call():
    session = SAMPLES["unpersisted-loop"].build()
    compactions = session.compactions
    assert [(item.tokens_before, item.tokens_after) for item in compactions[:2]] == [(228_967, 8_756), (231_400, 8_798)]
    assert [call.at for call in session.calls[-len(compactions) :]] == [item.at for item in compactions]
    assert prompts(session)[-len(compactions) :] == [item.tokens_after for item in compactions]


def test_the_long_one_is_compacted_three_times_in_about_150_calls():
    session = SAMPLES["long-coding"].build()
    assert [item.kind for item in session.compactions] == ["summary", "summary+tail", "summary"]
    assert 135 <= len(session.calls) <= 165
    assert session.system is None
    assert session.tools is None
