"""One side of a session, the recording or a replay, as a report has it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import msgspec
import numpy as np

from guard_core.bridge import Bridge, recorded_bridge, replayed_bridge
from guard_core.counts import MODELLED, RECORDED, CountedCompaction
from guard_core.decimation import kept_steps
from guard_core.events import part_text, utf8_bytes
from guard_core.facts.lanes import HELD, UNSURE, WITHDRAWN, Lane, Search, SnippetState, places_of, worst_first
from guard_core.facts.proposals import events_to_read, instructions
from guard_core.facts.words import blind_words, outcome_words, summary_words
from guard_core.findings import Facts
from guard_core.findings.facts import CHARACTERS
from guard_core.outcomes.bill import Prices, bill_of
from guard_core.outcomes.outcome import CallCosts, recorded_outcome, replayed_outcome
from guard_core.outcomes.payback import Payback, paybacks
from guard_core.outcomes.sent import SentRequests
from guard_core.outcomes.words import payback_words
from guard_core.policies import Policy, get_policy, policy_kind
from guard_core.replay import observe_recorded
from guard_core.report import document as doc
from guard_core.rules import OwnChecks
from guard_core.rules.agreement import ExplainedCompaction
from guard_core.rules.words import NOTHING, decision_words, inequality
from guard_core.sessions import Provenance
from guard_core.trace import CompactionRecord, Trace
from guard_core.triggers import AUTOMATIC
from guard_core.views import Inserted, Synthetic, View
from guard_core.windows.prices import UNIT

MOST_COMPACTIONS = 200  # that are listed
MOST_DETAILED = 4  # that are shown in full where none is chosen
MOST_FACTS = 20
MOST_POINTS = 600  # of the chart: about one for each of its pixels
MOST_TEXT = 6_000  # characters of one inserted message: what the page of a compaction shows of it at first


@dataclass(frozen=True)
class SideSource:
    """What a side is made of: `trace` and `policy` None mean the recording."""

    facts: Facts
    prices: Prices
    trace: Trace | None
    policy: Policy | None
    findings: tuple[doc.Claim, ...]
    verdict: doc.Claim

    @property
    def compaction_count(self) -> int:
        return self.facts.counts.total if self.trace is None else len(self.trace.compactions)

    @cached_property
    def sent(self) -> SentRequests:
        return (
            SentRequests.recorded(self.facts) if self.trace is None else SentRequests.replayed(self.facts, self.trace)
        )

    def side(self, chosen: frozenset[int] | None) -> doc.Side:
        """The side; `chosen` are the compactions that are shown in full."""
        settings = {} if self.trace is None else msgspec.to_builtins(self.trace.settings)
        lanes = self._lanes
        return doc.Side(
            name="recorded" if self.trace is None else "replayed",
            policy="" if self.trace is None else self.trace.policy,
            profile=str(settings.get("profile") or ""),
            settings=settings,
            digest="" if self.trace is None else self.trace.digest(),
            verdict=self.verdict,
            findings=self.findings,
            outcome=self._outcome(),
            facts=_facts(self.facts, lanes, blind_words(self.facts) if self.trace is None else ""),
            compactions=tuple(self._compactions(chosen)),
            series=self._series(),
        )

    @cached_property
    def _lanes(self) -> tuple[Lane, ...]:
        session, ledger = self.facts.session, self.facts.ledger
        snippets = instructions(session, [(index, session.events[index]) for index in events_to_read(ledger).tolist()])
        places = places_of(snippets, enumerate(session.events))
        return Search(self.sent, snippets, places, session.events.__getitem__).lanes()

    def _outcome(self) -> doc.Outcome:
        counts, facts = self.facts.counts, self.facts
        recorded = self.trace is None
        row = (
            recorded_outcome(facts, self.prices)
            if self.trace is None
            else replayed_outcome(facts, self.trace, self.prices)
        )
        source = "" if row.peak_step < 0 else MODELLED if self.sent.case.modelled[row.peak_step] else RECORDED
        return doc.Outcome(
            compactions=row.compactions,
            automatic=counts.automatic if recorded else row.compactions,
            manual=counts.manual if recorded else 0,
            unknown_trigger=counts.unknown if recorded else 0,
            overflows=row.overflows,
            near_misses=row.near_misses,
            peak=row.peak,
            peak_step=row.peak_step,
            peak_source=self._source(source),
            total_prompt_tokens=row.costs.prompt,
            requests=row.losses.requests,
            requests_dropped=row.losses.requests_dropped,
            is_least=row.losses.is_least,
            calls_without_result_steps=row.losses.parted_steps,
            never_paid=row.unpaid if row.costs.total is not None else None,
            costs=_costs(row.costs),
            reported=None if row.reported is None else _costs(row.reported),
        )

    def _source(self, source: str) -> str:
        """Where a count is from, and that it seems to be of characters where it does."""
        return f"{source}, perhaps {CHARACTERS}" if source and self.facts.counted_in == CHARACTERS else source

    # -- compactions

    def _compactions(self, chosen: frozenset[int] | None) -> Iterator[doc.ReportCompaction]:
        """The first MOST_COMPACTIONS and all that are chosen; with None, the first MOST_DETAILED are shown in full."""
        count = min(self.compaction_count, MOST_COMPACTIONS)
        in_full = frozenset(range(MOST_DETAILED)) if chosen is None else chosen
        for index in sorted({*range(count), *in_full}):
            if index < self.compaction_count:
                yield self._compaction(index, is_full=index in in_full)

    def _compaction(self, index: int, *, is_full: bool) -> doc.ReportCompaction:
        if self.trace is None:
            item = self._recorded(self.facts.counts.compactions[index], index)
        else:
            item = self._replayed(self.trace, self.trace.compactions[index], index)
        if not is_full:
            return item
        bridge = self._bridges(index)
        parts = tuple(doc.ReportBridgePart(**msgspec.structs.asdict(part)) for part in bridge.parts)
        ends = (bridge.before_step, bridge.after_step, str(bridge.before_source), str(bridge.after_source))
        return msgspec.structs.replace(
            item,
            decision=self._decision(item),
            bridge=doc.ReportBridge(parts, *ends, bridge.is_sealed),
            price=self._price(index),
            inserted=tuple(self._inserted(index)),
        )

    def _recorded(self, counted: CountedCompaction, index: int) -> doc.ReportCompaction:
        session, bridge = self.facts.session, self._bridges(index)
        recorded = session.compactions[counted.place]
        explained = self._explained.get(counted.place)
        before, source = bridge.uncompacted, bridge.uncompacted_source
        if bridge.is_blind:  # only the agent's own count is left, if it gives one
            before = max(recorded.tokens_before or 0, 0)
            source = Provenance.RECORDER.value if before else ""
        return doc.ReportCompaction(
            index=index,
            step=counted.step,
            message=recorded.at,
            trigger=counted.trigger,
            evidence=recorded.evidence.value,
            before=before,
            before_source=self._source(source),
            after=bridge.total("after"),
            after_source=self._source(str(bridge.after_source)),
            count=None if explained is None else explained.decision_tokens,
            threshold=None if explained is None else explained.threshold,
            agreement="" if explained is None else str(explained.verdict),
            reason="" if explained is None else explained.reason,
            instructions_lost=self._lost.get(index, 0),
        )

    def _replayed(self, trace: Trace, record: CompactionRecord, index: int) -> doc.ReportCompaction:
        bridge = self._bridges(index)
        count, threshold = (int(trace.columns[name][record.step]) for name in ("decision_tokens", "threshold"))
        return doc.ReportCompaction(
            index=index,
            step=record.step,
            message=int(self.facts.ledger.steps["at"][record.step]),
            trigger=AUTOMATIC,
            evidence="replayed",
            before=bridge.uncompacted,
            before_source=self._source(bridge.uncompacted_source),
            after=bridge.total("after"),
            after_source=self._source(str(bridge.after_source)),
            count=count if count >= 0 else None,
            threshold=threshold if threshold >= 0 else None,
            agreement="",
            reason=record.reason,
            instructions_lost=self._lost.get(index, 0),
        )

    @cached_property
    def _explained(self) -> dict[int, ExplainedCompaction]:
        """What the agent's own rule says of recorded compactions, by their place in the file."""
        return {item.place: item for item in self.facts.explanation.compactions}

    @cached_property
    def _lost(self) -> dict[int, int]:
        """How many instructions each compaction took out of the requests."""
        lost: dict[int, int] = {}
        for lane in self._lanes:
            for change in lane.losses:
                lost[change.compaction] = lost.get(change.compaction, 0) + 1
        return lost

    @cached_property
    def _observed(self) -> Trace:
        """The recording as a trace, once for all of its compactions."""
        facts = self.facts
        return observe_recorded(facts.ledger, get_policy("none"), window=facts.window.value, usage=facts.usage)

    def _bridges(self, index: int) -> Bridge:
        ledger, attribution = self.facts.ledger, self.facts.attribution
        if self.trace is not None:
            return replayed_bridge(ledger, attribution, self.facts.usage, self.trace, index)
        return recorded_bridge(ledger, attribution, self._observed, self.facts.counts.compactions[index].place)

    def _decision(self, item: doc.ReportCompaction) -> doc.ReportDecision | None:
        """The check before a compaction; None where that is before no call: at the end of the recording."""
        if self.trace is not None and self.policy is not None:
            return self._replayed_decision(self.trace, self.policy, item.step, item.reason)
        return self.decision_at(item.step) if 0 <= item.step < self.facts.ledger.step_count else None

    @staticmethod
    def _replayed_decision(trace: Trace, policy: Policy, step: int, reason: str) -> doc.ReportDecision:
        """`reason`: of a compaction at this step, "" where there was none."""
        count, threshold = (int(trace.columns[name][step]) for name in ("decision_tokens", "threshold"))
        sign = f"{count:,} against a threshold of {threshold:,}" if count > 0 and threshold > 0 else ""
        outcome = f"compacted here: {reason}." if reason else "did not compact here."
        return doc.ReportDecision(f"{trace.policy} {outcome}", sign, policy.explain(trace, step))

    def decision_at(self, step: int) -> doc.ReportDecision:
        """Why it compacted before this call, or did not: the check as arithmetic."""
        if self.trace is not None and self.policy is not None:
            reasons = [item.reason for item in self.trace.compactions if item.step == step]
            return self._replayed_decision(self.trace, self.policy, step, "; ".join(reasons))
        if self.facts.own_rule is not None:
            return self._guarded_decision(self.facts.own_rule, step)
        decision = self._checks.at(step)
        return doc.ReportDecision(decision_words(decision), inequality(decision), decision.terms)

    def _guarded_decision(self, trace: Trace, step: int) -> doc.ReportDecision:
        """Of a recording that holds ContextGuard's state: its arithmetic over the request that was sent."""
        count, threshold = (int(trace.columns[name][step]) for name in ("decision_tokens", "threshold"))
        fires, title = count >= threshold >= 0, policy_kind(trace.policy).title
        compacted = any(item.step == step for item in self.facts.counts.compactions)
        if compacted:
            outcome = "compacted here" if fires else "would not compact here by these numbers, but the recording did"
        else:
            outcome = "fires here, and the recording did not compact" if fires else "did not compact here"
        sign = f"{count:,} {'≥' if fires else '<'} {threshold:,}" if min(count, threshold) >= 0 else ""
        policy = policy_kind(trace.policy).make(trace.settings.get("profile") or None)
        return doc.ReportDecision(f"{title} {outcome}.", sign or NOTHING, policy.explain(trace, step))

    def judge_at(self, step: int) -> str:
        """By which rule the decision before a call is judged, in a sentence."""
        trace = self.trace or self.facts.own_rule
        if trace is not None:
            profile = f", profile {trace.settings['profile']}" if trace.settings.get("profile") else ""
            why = "the policy of this replay" if self.trace is not None else "whose state this recording holds"
            return f"Judged by {policy_kind(trace.policy).title}{profile}, {why}."
        rule = self._checks.at(step).rule
        if rule is None:
            return "Judged by no rule: that of the agent is not known here."
        return f"Judged by the rule of the agent that wrote this recording: {rule.agent} {rule.version}".rstrip() + "."

    @cached_property
    def _checks(self) -> OwnChecks:
        return OwnChecks(self.facts.session, self.facts.ledger, self.facts.explanation)

    def _price(self, index: int) -> doc.Price | None:
        price = self._paybacks.get(index)
        if price is None:
            return None
        priced = self.prices.has_prices
        return doc.Price(
            paid=round(price.paid / UNIT) if priced else None,
            saved=round(price.saved / UNIT) if priced else None,
            earned_back=price.earned_back,
            needed_from=price.needed_from,
            sentences=payback_words(price, self.prices),
        )

    @cached_property
    def _paybacks(self) -> dict[int, Payback]:
        """By compaction: one pass over all requests gives those of all."""
        return {item.index: item for item in paybacks(self.sent, bill_of(self.sent, self.prices))}

    def _inserted(self, index: int) -> Iterator[doc.ReportInserted]:
        """The messages that a compaction wrote; those that repeat the log are none."""
        ledger = self.facts.ledger
        if self.trace is not None:
            view: View = self.trace.compactions[index].after
            for segment in view:
                if isinstance(segment, Synthetic):
                    yield doc.ReportInserted(segment.kind, segment.bytes, _cut(segment.text or ""))
            return
        place = self.facts.counts.compactions[index].place
        recorded = self.facts.session.compactions[place]
        for segment in recorded.base:
            if isinstance(segment, Inserted) and segment.index not in ledger.repeated[place]:
                text = "\n".join(filter(None, map(part_text, recorded.messages[segment.index].parts)))
                yield doc.ReportInserted("summary" if text else "not readable", utf8_bytes(text), _cut(text))
            elif isinstance(segment, Synthetic):
                yield doc.ReportInserted(segment.kind, segment.bytes, _cut(segment.text or ""))

    # -- chart

    def _series(self) -> doc.Series:
        tokens, modelled = self.sent.tokens, self.sent.case.modelled
        threshold = self._checks.thresholds
        if self.trace is not None:
            threshold = np.asarray(self.trace.columns["threshold"], dtype=np.int64)
        marks = np.array([item.step for item in self.sent.fired], dtype=np.int64)
        steps = kept_steps([tokens.astype(np.float64)], marks, self.sent.case.over, 0, len(tokens), MOST_POINTS)
        return doc.Series(
            tuple(steps.tolist()),
            tuple(tokens[steps].tolist()),
            tuple(modelled[steps].tolist()),
            tuple(threshold[steps].tolist()),
        )


def _cut(text: str) -> str:
    return text if len(text) <= MOST_TEXT else f"{text[:MOST_TEXT]}\n[{len(text) - MOST_TEXT:,} more characters]"


def _costs(costs: CallCosts) -> doc.ReportCosts:
    return doc.ReportCosts(
        prompt=costs.prompt,
        cached=costs.read,
        output=costs.output,
        summariser_prompt=costs.summariser_prompt,
        summariser_output=costs.summariser_output,
        total=None if costs.total is None else round(costs.total / UNIT),
        source=costs.source,
    )


def _facts(facts: Facts, lanes: tuple[Lane, ...], blind: str) -> doc.FactsLost:
    holding = [lane for lane in lanes if lane.withdrawn_at < 0]
    return doc.FactsLost(
        sentence=" ".join(filter(None, (summary_words(lanes, has_system_prompt=facts.has_system_prompt), blind))),
        instructions=len(lanes),
        held=sum(lane.last_state in HELD and not lane.is_unseen for lane in holding),
        lost=sum(lane.last_state is SnippetState.GONE and lane.lost is not None for lane in holding),
        unknown=sum(lane.last_state in UNSURE or lane.is_unseen for lane in holding),
        listed=tuple(map(_fact, worst_first(lanes)[:MOST_FACTS])),
    )


def _fact(lane: Lane) -> doc.Fact:
    lost = lane.lost
    return doc.Fact(
        kind=lane.snippet.kind,
        text=lane.snippet.text,
        message=lane.snippet.event,
        state=lane.last_state.name.lower() if lane.withdrawn_at < 0 else WITHDRAWN,
        lost_at=-1 if lost is None else lost.step,
        compaction=-1 if lost is None else lost.compaction,
        outcome=outcome_words(lane),
    )
