"""Laws of every replay: over random sessions, profiles, settings, and summarisers that fail or say too much."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import numpy as np
from hypothesis import given

from guard_core.estimation.usage import usage_for
from guard_core.events import ToolCallPart, ToolResultPart
from guard_core.ledger import Ledger
from guard_core.policies.contextguard.contents import costs_of
from guard_core.replay import observe_recorded, replay
from guard_core.requests import materialise
from guard_core.views import Span, Synthetic, content_count
from tests.properties.strategies import policies, sessions, summarizers, windows


def run(session, policy, window, summarizer, *, texts=False):
    ledger = Ledger.of(session)
    usage = usage_for(ledger, None)
    return ledger, replay(
        ledger, policy, window=window, usage=usage, summarizer=summarizer, session=session if texts else None
    )


@given(sessions(), policies(), windows, summarizers)
def test_it_ends_with_an_entry_for_every_step(session, policy, window, summarizer):
    _, trace = run(session, policy, window, summarizer)
    assert {len(trace.columns[item.name]) for item in trace.all_columns} == {len(session.calls)}
    passes = [len(record.passes) for record in trace.compactions]
    assert all(1 <= count <= policy.settings.max_passes for count in passes)
    assert [record.step for record in trace.compactions] == trace.columns["fired"].nonzero()[0].tolist()


@given(sessions(), policies(names=("contextguard",)), windows, summarizers)
def test_the_factor_stays_in_its_bounds(session, policy, window, summarizer):
    _, trace = run(session, policy, window, summarizer)
    source, factor = trace.columns["correction_source"], trace.columns["correction"]
    by_ratio, by_default = factor[source == 1], factor[source >= 2]
    settings = policy.settings
    assert ((settings.floor <= by_ratio) & (by_ratio <= settings.cap)).all()
    assert (by_default == settings.default_factor).all()


@given(sessions(), policies(profiles=("early", "current", "fixed"), names=("contextguard",)), windows, summarizers)
def test_the_estimate_is_never_below_the_count_it_rests_on(session, policy, window, summarizer):
    _, trace = run(session, policy, window, summarizer)
    built = trace.columns["contents_built"] > 0
    assert (trace.columns["decision_tokens"] >= trace.columns["real_loaded"])[built].all()
    assert (trace.columns["decision_tokens"] >= trace.columns["calibrated"])[built].all()


@given(sessions(), policies(), windows, summarizers)
def test_a_priced_view_costs_what_its_messages_cost(session, policy, window, summarizer):
    ledger, trace = run(session, policy, window, summarizer)
    costs = costs_of(ledger, policy.settings)
    for step, call in enumerate(session.calls):
        view = trace.view(step, call.at)
        assert costs.request(view) == trace.columns["heuristic_sent"][step]
        assert content_count(view) == trace.columns["contents_sent"][step]
    last = trace.view(len(session.calls) - 1, session.calls[-1].at)
    messages = materialise(last, session)
    again = costs_of(Ledger.of(msgspec.structs.replace(session, events=messages, calls=())), policy.settings)
    assert again.prefix[-1] + again.fixed == trace.columns["heuristic_sent"][-1]


@given(sessions(), policies(), windows, summarizers)
def test_a_view_is_synthetic_messages_and_one_span_of_the_log(session, policy, window, summarizer):
    _, trace = run(session, policy, window, summarizer)
    for step, call in enumerate(session.calls):
        spans = [item for item in trace.view(step, call.at) if isinstance(item, Span)]
        assert len(spans) <= 1
        assert all(span.stop == call.at for span in spans)


@given(sessions(), policies(), windows, summarizers)
def test_a_step_that_passes_through_changes_nothing(session, policy, window, summarizer):
    _, trace = run(session, policy, window, summarizer)
    columns = trace.columns
    quiet = (columns["summary_bytes"] == 0) & (columns["fired"] == 0)
    assert (columns["heuristic_sent"] == columns["heuristic_built"])[quiet].all()
    assert (columns["contents_sent"] == columns["contents_built"])[quiet].all()
    calm = columns["fired"] == 0
    before = np.append(0, columns["watermark"][:-1])
    assert (columns["watermark"] == before)[calm].all()


@given(sessions(), policies(), windows, summarizers)
def test_the_session_is_equal_to_itself_after_any_replay(session, policy, window, summarizer):
    before = msgspec.msgpack.encode(session)
    _, first = run(session, policy, window, summarizer)
    _, second = run(session, policy, window, summarizer)
    assert msgspec.msgpack.encode(session) == before
    assert first.digest() == second.digest()


@dataclass(frozen=True)
class StepByStep:
    """A policy that never looks ahead."""

    inner: object

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def scan(self, run, start, stop, state):
        return None


@given(sessions(), policies(), windows, summarizers)
def test_looking_ahead_gives_the_numbers_of_deciding_step_by_step(session, policy, window, summarizer):
    _, ahead = run(session, policy, window, summarizer)
    _, slow = run(session, StepByStep(policy), window, summarizer)
    for name in slow.columns:
        assert np.array_equal(ahead.columns[name], slow.columns[name], equal_nan=True), name
    assert ahead.compactions == slow.compactions
    assert ahead.heads == slow.heads
    assert ahead.state == slow.state


@given(sessions(), policies(), windows, summarizers)
def test_texts_do_not_change_a_number(session, policy, window, summarizer):
    _, sized = run(session, policy, window, summarizer)
    _, with_texts = run(session, policy, window, summarizer, texts=True)
    for name in sized.columns.keys() - {"head"}:
        assert np.array_equal(sized.columns[name], with_texts.columns[name], equal_nan=True), name
    assert sent_without_texts(sized) == sent_without_texts(with_texts)


def sent_without_texts(trace):
    """How each request begins, as sizes: a summary that gets a text of the same size begins it in another way."""
    heads = [
        tuple(msgspec.structs.replace(item, text=None) if isinstance(item, Synthetic) else item for item in head.view)
        for head in trace.heads
    ]
    return [heads[number] for number in trace.columns["head"]]


@given(sessions(), policies(profiles=("fixed",)), windows, summarizers)
def test_fixed_never_parts_a_call_from_its_result(session, policy, window, summarizer):
    _, trace = run(session, policy, window, summarizer)
    answered = {part.call_id for event in session.events for part in event.parts if isinstance(part, ToolResultPart)}
    for step, call in enumerate(session.calls):
        sent = [
            event
            for item in trace.view(step, call.at)
            if isinstance(item, Span)
            for event in session.events[item.start : item.stop]
        ]
        seen = {part.id for event in sent for part in event.parts if isinstance(part, ToolCallPart)}
        results = {part.call_id for event in sent for part in event.parts if isinstance(part, ToolResultPart)}
        assert results <= seen & answered


@given(sessions(), policies(profiles=("fixed",), names=("contextguard",)), windows, summarizers)
def test_fixed_says_so_where_it_sends_too_much(session, policy, window, summarizer):
    _, trace = run(session, policy, window, summarizer)
    columns = trace.columns
    built = columns["contents_built"] > 0
    over = (columns["decision_tokens"] >= columns["threshold"]) & built
    assert ((columns["fired"] == 1) | (columns["held"] > 0))[over].all()
    after = np.floor(columns["heuristic_sent"] * columns["correction"])
    vain = (columns["fired"] == 1) & (after >= columns["threshold"])
    assert (columns["held"] > 0)[vain].all()


@given(sessions(), policies(), windows)
def test_the_shadow_equals_a_replay_that_never_fires(session, policy, window):
    ledger = Ledger.of(session)
    usage = usage_for(ledger, None)
    shadow = observe_recorded(ledger, policy, window=window, usage=usage)
    assert {len(column) for column in shadow.columns.values()} == {len(session.calls)}
    played = replay(ledger, policy, window=window, usage=usage)
    if not played.columns["fired"].any() and not played.columns["held"].any() and session.usage_ratio is None:
        built = played.columns["contents_built"] > 0
        for name in ("heuristic_sent", "decision_tokens", "correction", "real_loaded"):
            assert np.array_equal(shadow.columns[name][built], played.columns[name][built], equal_nan=True), name
