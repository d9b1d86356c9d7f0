"""What one policy comes to in one session, in a row: the figures that every policy is compared by."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from guard_core.counts import MODELLED, RECORDED, Peak
from guard_core.findings.facts import Facts
from guard_core.findings.peak import peak_of, peak_window
from guard_core.findings.sizes import NEAR_MISS_SHARE, runs
from guard_core.forms import get_form
from guard_core.outcomes.bill import Bill, Prices, SummaryCosts, bill_of, reported_bill
from guard_core.outcomes.cycles import Cycle, cycles_of, stuck_at
from guard_core.outcomes.losses import Losses, StatedRule, losses_of
from guard_core.outcomes.payback import Payback, paybacks
from guard_core.outcomes.sent import SentRequests
from guard_core.trace import HELD_REASONS, Trace
from guard_core.views import held_events

MOST_LISTED = 200  # cycles that a row lists one by one


class CallCosts(msgspec.Struct, frozen=True):
    """Tokens and price of all calls. `read` came from the provider's cache, the rest of `prompt` did not; `total` is in
    the unit of `windows.prices`, None where the table has no price, and has the summariser's calls in it
    (`summaries`). `source`: are the figures of the cache reported or modelled."""

    prompt: int
    read: int
    output: int
    summariser_calls: int
    summariser_prompt: int
    summariser_output: int
    summaries: int
    total: int | None
    source: str

    @property
    def uncached(self) -> int:
        """Prompt tokens that no cache gave."""
        return self.prompt - self.read


class Closest(msgspec.Struct, frozen=True):
    """The step, from 0, at which a policy that never compacted came closest to its threshold: the tokens that it
    compared, counted in its own way, and the threshold."""

    step: int
    compared: int
    threshold: int


class PolicyOutcome(msgspec.Struct, frozen=True):
    """One row. Steps count from 0, -1: none; tokens are prompt tokens.

    `peak` is the request that fills most of its model's window, `peak_window`, 0 where that is not known; the largest
    one there. `overflows` are requests over their model's window, and those that the provider refused, or of a replay
    those as large as one that it refused, `refused` steps at which a policy replaced a request over the window with a
    smaller one; `near_misses` counts how often the requests rose above NEAR_MISS_SHARE of the window without leaving
    it, `held` the steps at which a policy did not compact, or did in vain, by reason. `cycles` are the first
    MOST_LISTED of `cycle_count`, `least_room` the least room that any cycle left, `stuck` the number of the first that
    left none. `divergence` is the first step whose request has another size than the recorded one. `paid` and `saved`
    are sums over all compactions, `unpaid` counts those that never paid; in the unit of `windows.prices`. `reported` is
    the bill by what the provider reported, of a recording that has it. `rewrites` says what a policy does to messages
    before it compacts at all, so that its requests are smaller than the recorded ones without a compaction. `closest`
    is of a replay without a compaction that compared tokens with a threshold and stayed below it. `largest_summariser`
    are the most prompt tokens that any summariser's call of a replay has, modelled.
    """

    policy: str
    profile: str
    settings: dict[str, object]
    side: str
    steps: int
    window: int
    compactions: int
    overflows: int
    refused: int
    near_misses: int
    held: dict[str, int]
    peak: int
    peak_step: int
    peak_window: int
    cycles: tuple[Cycle, ...]
    cycle_count: int
    least_room: int | None
    stuck: int
    divergence: int
    costs: CallCosts
    reported: CallCosts | None
    paid: int
    saved: int
    unpaid: int
    losses: Losses
    digest: str = ""
    rewrites: tuple[str, ...] = ()
    closest: Closest | None = None
    largest_summariser: int = 0


def recorded_outcome(facts: Facts, prices: Prices, rules: Sequence[StatedRule] | None = None) -> PolicyOutcome:
    """The row of the recording itself."""
    return outcome_of(SentRequests.recorded(facts), prices, rules)


def replayed_outcome(
    facts: Facts, trace: Trace, prices: Prices, rules: Sequence[StatedRule] | None = None
) -> PolicyOutcome:
    """The row of a replay."""
    return outcome_of(SentRequests.replayed(facts, trace), prices, rules)


def outcome_of(sent: SentRequests, prices: Prices, rules: Sequence[StatedRule] | None = None) -> PolicyOutcome:
    """The row of either."""
    case, trace, facts = sent.case, sent.trace, sent.facts
    bill, cycles = bill_of(sent, prices), cycles_of(sent)
    reported = reported_bill(facts, prices) if trace is None else None
    payback = paybacks(sent, bill)
    settings = {} if trace is None else trace.settings
    peak = peak_of(case) if len(sent.tokens) else Peak(0, -1, MODELLED)
    near = (case.tokens > NEAR_MISS_SHARE * case.windows) & (case.tokens <= case.windows)
    return PolicyOutcome(
        policy="" if trace is None else trace.policy,
        profile=str(settings.get("profile", "")),
        settings=settings,
        side=RECORDED if trace is None else MODELLED,
        steps=len(sent.tokens),
        window=case.window.value,
        compactions=facts.counts.total if trace is None else len(trace.compactions),
        overflows=case.overflows,
        refused=0 if trace is None else sent_again(trace),
        near_misses=len(runs(near)),
        held=_held(trace),
        peak=peak.tokens,
        peak_step=peak.step,
        peak_window=peak_window(case) if len(sent.tokens) else case.window.value,
        cycles=cycles[:MOST_LISTED],
        cycle_count=len(cycles),
        least_room=min((cycle.room for cycle in cycles), default=None),
        stuck=stuck_at(cycles),
        divergence=divergence(sent),
        costs=costs_of(bill, MODELLED),
        reported=None if reported is None else costs_of(reported, RECORDED),
        paid=sum(item.paid for item in payback),
        saved=sum(item.saved for item in payback),
        unpaid=sum(is_unpaid(item) for item in payback),
        losses=losses_of(sent, rules),
        digest="" if trace is None else trace.digest(),
        rewrites=rewrites(sent),
        closest=None if trace is None else closest(trace),
        largest_summariser=0 if trace is None else largest_call(bill.summarising),
    )


def largest_call(summarising: Sequence[SummaryCosts]) -> int:
    """The most prompt tokens of one call among those of some summaries, several calls of one taken as equal."""
    return max((item.prompt // max(item.calls, 1) for item in summarising), default=0)


def closest(trace: Trace) -> Closest | None:
    """Where a policy that never compacted came closest to its threshold; None where it did compact, compares no tokens
    or reached its threshold."""
    counted, thresholds = trace.columns["decision_tokens"], trace.columns["threshold"]
    steps = np.flatnonzero((counted >= 0) & (thresholds > 0))
    if trace.compactions or not len(steps):
        return None
    step = int(steps[np.argmin(thresholds[steps] - counted[steps])])
    place = Closest(step, int(counted[step]), int(thresholds[step]))
    return place if place.compared < place.threshold else None


def rewrites(sent: SentRequests) -> tuple[str, ...]:
    """What a replay does to messages when they are recorded: the forms of its requests up to its first compaction, in
    words; those that change nothing there are left out."""
    trace, ledger = sent.trace, sent.ledger
    if trace is None or not len(sent.tokens):
        return ()
    step = trace.compactions[0].step - 1 if trace.compactions else len(sent.tokens) - 1
    if step < 0:
        return ()
    spans = [span for span in held_events(sent.view(step)[0]) if span.form]
    changing = [span.form for span in spans if ledger.changed_in(span.start, span.stop, span.form).any()]
    return tuple(dict.fromkeys(get_form(form).words for form in changing))


def sent_again(trace: Trace) -> int:
    """Steps whose first request was larger than the window, and the one that was answered was not."""
    refused = (trace.columns["overflow"] == 1) & (trace.columns["modelled_prompt_tokens"] <= trace.window)
    return int(refused.sum())


def is_unpaid(price: Payback) -> bool:
    """Did a compaction never pay, although the window did not need it either."""
    return price.earned_back < 0 and price.needed_from < 0


def costs_of(bill: Bill, source: str) -> CallCosts:
    """The sums of a bill over all calls: tokens, and money where all prices are known."""
    return CallCosts(
        prompt=int(bill.prompt.sum()),
        read=int(bill.read.sum()),
        output=int(bill.output.sum()),
        summariser_calls=sum(item.calls for item in bill.summarising),
        summariser_prompt=sum(item.prompt for item in bill.summarising),
        summariser_output=sum(item.output for item in bill.summarising),
        summaries=bill.summary_cost,
        total=bill.total,
        source=source,
    )


def _held(trace: Trace | None) -> dict[str, int]:
    """At how many steps a policy was held, by reason."""
    if trace is None:
        return {}
    counts = np.bincount(trace.columns["held"], minlength=len(HELD_REASONS))
    return {HELD_REASONS[reason]: int(count) for reason, count in enumerate(counts) if reason and count}


def divergence(sent: SentRequests) -> int:
    """The first step whose request is not the recorded one, -1: none. A recording has none."""
    if sent.trace is None:
        return -1
    modelled = np.flatnonzero(sent.tokens != sent.facts.requests.tokens)
    return int(modelled[0]) if len(modelled) else -1
