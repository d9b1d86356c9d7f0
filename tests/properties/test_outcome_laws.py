"""Laws of what policies come to: bills add up, prices of compactions add up, a cache gives no more than was sent."""

import msgspec
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from guard_core.defaults import CACHE_LEAST
from guard_core.estimation.usage import counts_of, normal
from guard_core.findings.facts import Facts
from guard_core.outcomes.bill import CacheReach, Prices, bill_of, summary_prices
from guard_core.outcomes.cycles import cycles_of
from guard_core.outcomes.losses import losses_of
from guard_core.outcomes.outcome import recorded_outcome, replayed_outcome
from guard_core.outcomes.payback import paybacks
from guard_core.outcomes.sent import SentRequests
from guard_core.policies import get_policy
from guard_core.replay import replay
from guard_core.views import Span, Synthetic, content_count
from tests.properties.strategies import policies, sessions, summarizers, windows
from tests.properties.test_policy_laws import listed_policies


def priced(session):
    """The same session, answered by a model that has prices."""
    calls = tuple(msgspec.structs.replace(call, model="claude-sonnet-4-5") for call in session.calls)
    return msgspec.structs.replace(session, calls=calls, model="claude-sonnet-4-5")


def sides(session, policy, window, summarizer):
    facts = Facts.of(priced(session))
    trace = replay(facts.ledger, policy, window=window, usage=facts.usage, summarizer=summarizer)
    prices = Prices.of(facts.session, facts.ledger)
    for sent in (SentRequests.recorded(facts), SentRequests.replayed(facts, trace)):
        yield sent, bill_of(sent, prices)


@given(sessions(), policies(), windows, summarizers)
def test_bills_and_prices_of_compactions_add_up_call_by_call(session, policy, window, summarizer):
    for sent, bill in sides(session, policy, window, summarizer):
        check_shared(sent, bill)
        check_bill(sent, bill)
        check_paybacks(sent, bill, paybacks(sent, bill))


@given(sessions(), st.lists(st.sampled_from(("one", "two", "three")), min_size=1))
def test_a_model_finds_what_all_requests_since_its_last_one_begin_with(session, names):
    calls = tuple(
        msgspec.structs.replace(call, model=names[step % len(names)]) for step, call in enumerate(session.calls)
    )
    facts = Facts.of(msgspec.structs.replace(session, calls=calls))
    shared, reach = SentRequests.recorded(facts).shared, CacheReach.of(facts.ledger)
    reached = reach.reached(shared)
    for step, call in enumerate(calls):
        since = max((place for place in range(step) if calls[place].model == call.model), default=-1)
        assert reach.since[step] == since
        if since < 0:
            assert not reach.alive[step]
        else:
            assert reached[step] == shared[since + 1 : step + 1].min()
    starts = np.array([step for step in range(len(calls)) if step % 3 == 2 or step % 5 == 3], dtype=np.int64)
    without = shared + 7 * (np.arange(len(shared)) % 4)
    reached = reach.reached_without(without, shared, starts)
    for step in np.flatnonzero(reach.since >= 0).tolist():
        start = max(starts[starts <= step], default=0)
        since = int(reach.since[step])
        found = [without[place] if place >= start else shared[place] for place in range(since + 1, step + 1)]
        assert reached[step] == min(found)


def check_shared(sent, bill):
    """A request shares no more than it has, nor than the one before had, and the cache gives no more than that."""
    before = np.concatenate([[0], sent.tokens[:-1]])[: len(sent.tokens)]
    unchanged = np.setdiff1d(np.arange(len(sent.tokens)), sent.changed)
    assert (sent.shared <= sent.tokens).all()
    assert (sent.shared[unchanged] == np.minimum(before, sent.tokens)[unchanged]).all()
    assert (bill.read <= sent.shared).all()
    assert ((bill.read + bill.written) <= bill.prompt).all()


def check_bill(sent, bill):
    """A bill is the sum of its calls."""
    rates = bill.prices.main
    columns = zip(bill.prompt.tolist(), bill.read.tolist(), bill.written.tolist(), bill.output.tolist())
    calls = [rates.cost(*call) for call in columns]
    assert bill.costs.tolist() == calls
    if calls:
        assert bill.total == sum(calls) + sum(summary_prices(bill.prices, bill.summarising))


def check_paybacks(sent, bill, made):
    """The prices of compactions are the difference of two bills, and each is earned back only if it ends ahead."""
    assert [item.stop for item in made[:-1]] == [item.step for item in made[1:]]
    assert sum(item.summary for item in made) == bill.summary_cost
    without = with_them = 0
    for item in made:
        assert (item.earned_back >= 0) == (item.net <= 0)
        balance, earned, over = -item.summary, item.step, []
        for step in range(item.step, item.stop):
            larger = max(0, int(sent.tokens[step]) + item.before - item.after)
            read = _read_without(sent, bill, item, step, larger)
            written = larger - read if bill.prices.writes()[step] else 0
            cost = bill.prices.main.cost(larger, read, written, int(bill.output[step]))
            without += cost
            with_them += int(bill.costs[step])
            balance += cost - int(bill.costs[step])
            earned = step + 1 if balance < 0 else earned
            over += [step] if sent.trace and larger > sent.trace.window > 0 else []
        assert item.earned_back == (earned if earned < item.stop else -1)
        assert sent.trace is None or item.needed_from == min(over, default=-1)
    assert sum(item.net for item in made) == with_them + bill.summary_cost - without


def _read_without(sent, bill, item, step, larger):
    """What a call would have read, had its compaction not been made."""
    if not bill.prices.reach.alive[step]:
        return 0
    if step == item.step:
        shared = _shared_without(sent, step)
    else:
        is_parted = step in sent.changed and sent.shared[step] <= sent.fixed
        shared = int(sent.shared[step]) + (0 if is_parted else item.before - item.after)
    shared = min(shared, larger)
    return shared if shared >= CACHE_LEAST else 0


def _shared_without(sent, step):
    """What the request before and the one that the first compaction of a step replaced begin with, event by event."""
    if sent.trace is None:
        return int(sent.tokens[step - 1])
    replaced = next(item.replaced for item in sent.fired if item.step == step)
    before, others = (_one_by_one(sent.ledger, view) for view in (sent.view(step - 1)[0], replaced))
    common = [mine for mine, other in zip(before, others) if mine == other]
    common = common[: next((at for at, pair in enumerate(zip(before, others)) if pair[0] != pair[1]), len(common))]
    if len(common) == len(before):
        return int(sent.tokens[step - 1])
    return sent._priced(normal(common), step, -1)


def _one_by_one(ledger, view):
    """The segments of a view, a span of its own for each event, with its form only where that changes it."""
    segments = []
    for segment in view:
        if isinstance(segment, Span):
            segments += [
                Span(event, event + 1, segment.form if ledger.changes_event(event, segment.form, "") else "")
                for event in range(segment.start, segment.stop)
            ]
        else:
            segments.append(segment)
    return segments


@given(sessions(), policies(), windows, summarizers)
def test_a_row_has_the_totals_of_its_parts(session, policy, window, summarizer):
    facts = Facts.of(priced(session))
    prices = Prices.of(facts.session, facts.ledger)
    trace = replay(facts.ledger, policy, window=window, usage=facts.usage, summarizer=summarizer)
    row = replayed_outcome(facts, trace, prices)
    assert row.costs.prompt == int(np.maximum(trace.columns["modelled_prompt_tokens"], 0).sum())
    assert row.compactions == len(trace.compactions)
    assert row.cycle_count == len(cycles_of(SentRequests.replayed(facts, trace))) <= row.compactions
    assert 0 <= row.losses.requests_dropped <= row.losses.requests
    assert recorded_outcome(facts, prices).digest == ""


@given(sessions(), windows)
def test_what_is_never_compacted_loses_nothing(session, window):
    facts = Facts.of(session)
    trace = replay(facts.ledger, get_policy("none"), window=window, usage=facts.usage)
    losses = losses_of(SentRequests.replayed(facts, trace), ())
    assert (losses.requests_dropped, losses.rules_gone, losses.parted_steps) == (0, 0, 0)


def replayed(session, policy, window, summarizer):
    facts = Facts.of(session)
    trace = replay(facts.ledger, policy, window=window, usage=facts.usage, summarizer=summarizer)
    return SentRequests.replayed(facts, trace)


@given(sessions(), listed_policies(), windows, summarizers)
def test_requests_in_columns_are_priced_and_compared_as_one_by_one(session, policy, window, summarizer):
    sent = replayed(session, policy, window, summarizer)
    steps, usage, costs = np.arange(len(session.calls)), sent.facts.usage, policy.estimator(sent.ledger)
    if sent.columns is None:
        return
    views = [normal(sent.view(step)[0]) for step in steps.tolist()]
    assert sent.columns.views() == views
    assert sent.columns.contents.tolist() == [content_count(view) for view in views]
    heuristics = costs.fixed + sent.columns.total(costs.log, costs.segment, costs.segments)
    assert heuristics.tolist() == sent.trace.columns["heuristic_sent"].tolist()
    counted = counts_of(usage, steps, sent.columns, heuristics)
    for step, view, heuristic in zip(steps.tolist(), views, heuristics.tolist(), strict=True):
        assert tuple(column.item(step) for column in counted) == usage.one(step, view, heuristic)
    for step in sent.changed.tolist():
        common, epoch = sent.common(step)
        heuristic = costs.fixed + sum(map(costs.segment, common))
        tokens = usage.one(step, common, heuristic, epoch).tokens
        if common or session.usage_ratio is not None:
            assert sent.shared[step] == min(tokens, sent.tokens[step])


@given(sessions(), listed_policies(), windows, summarizers)
def test_what_requests_lose_is_what_looking_at_each_of_them_finds(session, policy, window, summarizer):
    sent = replayed(session, policy, window, summarizer)
    ledger, dropped, parted = sent.ledger, set(), 0
    parts = ledger.parts
    results = np.flatnonzero(parts["answers"] >= 0)
    pairs = list(zip(parts["event"][parts["answers"][results]].tolist(), parts["event"][results].tolist(), strict=True))
    for step, call in enumerate(session.calls):
        spans = [segment for segment in sent.view(step)[0] if isinstance(segment, Span)]
        held = {event for span in spans for event in range(span.start, span.stop)}
        changed = {
            span.start + place
            for span in spans
            if span.form
            for place in np.flatnonzero(changes(ledger, span)).tolist()
        }
        users = {place for place in range(call.at) if session.events[place].starts_turn()}
        dropped |= users - (held - changed) - resent(sent, step)
        parted += any((one in held) != (other in held) for one, other in pairs if max(one, other) < call.at)
    losses = losses_of(sent, None)
    assert (losses.requests_dropped, losses.parted_steps) == (len(dropped), parted)


def resent(sent, step):
    """The message that the policy sends again at a step, in words around it."""
    inserted = [part for part in sent.view(step)[0] if isinstance(part, Synthetic)]
    records = [record for record in sent.trace.compactions if record.step <= step]
    again = any(part.kind == "request sent again" for part in inserted)
    named = any(part.kind == "continuation" and part.bytes > 187 for part in inserted)  # its form without a request
    return {int(sent.ledger.steps["user_event"][records[-1].step])} if again or named else set()


def changes(ledger, span):
    return ledger.changed_in(span.start, span.stop, span.form)
