"""One row per agent, version, model and window: what its sessions together prove of the threshold."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from functools import cached_property
from itertools import chain

import msgspec
import numpy as np

from guard_core.agent_versions import numbers
from guard_core.corpus.bounds import Bounds, CheckPlace, RowKey, SessionStretch, joined
from guard_core.corpus.obedience import ObedienceState, obedience_of, stated_settings
from guard_core.findings.sizes import NEAR_MISS_SHARE
from guard_core.ledger import Ints
from guard_core.rules.base import Hypothesis, Moment, OwnRule, Stretch
from guard_core.rules.evidence import EVIDENCE, Cause, CompactionCheck
from guard_core.rules.inference import Interval, general_variants
from guard_core.rules.registry import AGENTS
from guard_core.rules.settings import RuleNumber

BY_LABEL = {agent.label: agent for agent in AGENTS}


class RuleContradiction(msgspec.Struct, frozen=True):
    """A session that does not do what its rule says; `fired`: did the agent compact at this check."""

    place: CheckPlace
    fired: bool


class RuleTally(msgspec.Struct, frozen=True):
    """A rule that sessions of a row have, under the same stated settings, and which of them obey it.

    Of `auto` compactions `comparable` can be compared with it, and `agrees` fit it. `obeys` and `contradicts` are
    sessions; the others show nothing.
    """

    formula: str
    threshold: int | None
    stated: tuple[RuleNumber, ...]
    reason: str
    checks: Moment
    sessions: int
    obeys: tuple[str, ...]
    contradicts: tuple[RuleContradiction, ...]
    auto: int
    comparable: int
    agrees: int


class ForcedCompaction(msgspec.Struct, frozen=True):
    """A compaction after a refused request, or at `NEAR_MISS_SHARE` of the window or more."""

    place: CheckPlace
    refused: bool


class Cluster(msgspec.Struct, frozen=True):
    """Sessions of a row that one threshold explains, and what they prove of it; fields as of a TriggerRow."""

    sessions: tuple[str, ...]
    above: CheckPlace | None
    at_most: CheckPlace | None
    fired: int
    formula: Hypothesis | None
    explained: int
    others: int


class TriggerRow(msgspec.Struct, frozen=True):
    """What the sessions of one agent, version, model and window prove of its threshold, in tokens of `counter`.

    `compactions` are counted by cause. The threshold is above `above` and at most `at_most` (relation ">": at least,
    and below); both are named where they exclude each other (`contradiction`). `left_out` are compactions that a person
    may have asked for. `formula` is the simplest known one that explains most of the `fired` compactions with a count,
    `explained` of them; `others` counts the other thresholds of known formulas that explain as many. `clusters` part
    sessions that contradict each other into as few thresholds as possible; sessions without a bound from above are in
    none. `rules` are the agent's own with the settings of its sessions.
    """

    key: RowKey
    sessions: tuple[str, ...]
    compactions: Mapping[Cause, int]
    above: CheckPlace | None
    at_most: CheckPlace | None
    contradiction: bool
    left_out: int
    fired: int
    formula: Hypothesis | None
    explained: int
    others: int
    clusters: tuple[Cluster, ...]
    rules: tuple[RuleTally, ...]
    forced: tuple[ForcedCompaction, ...]
    missed: int

    @property
    def interval(self) -> Interval:
        """The interval as `rules.inference` writes one; its steps are those of two sessions."""
        return interval_of(self.key, self.above, self.at_most, contradiction=self.contradiction)


def interval_of(
    key: RowKey, above: CheckPlace | None, at_most: CheckPlace | None, *, contradiction: bool = False
) -> Interval:
    """Two bounds as an interval."""
    return Interval(
        start=0,
        stop=0,
        version=key.version,
        model=key.model,
        counter=key.counter,
        relation=key.relation,
        above=above and above.tokens,
        above_step=above and above.step,
        at_most=at_most and at_most.tokens,
        at_most_step=at_most and at_most.step,
        contradiction="no threshold explains both" if contradiction else "",
    )


def rows_of(items: Iterable[SessionStretch]) -> list[TriggerRow]:
    """The rows of many sessions, in order. Stretches without calls and compactions are left out."""
    groups: defaultdict[RowKey, list[SessionStretch]] = defaultdict(list)
    for item in items:
        stretch = item.evidence.stretch
        if item.evidence.compactions or stretch.stop > stretch.start:
            groups[item.key].append(item)
    return [_RowStretches(key, groups[key]).row() for key in sorted(groups, key=_order)]


def _order(key: RowKey) -> tuple[object, ...]:
    """Versions by their numbers, so that 1.9 is before 1.10; a window that is not known, which has no order among
    numbers, before all others."""
    names = key.agent.casefold(), numbers(key.version), key.version, key.model
    return *names, key.window is not None, key.window or 0, *key


class _RowStretches:
    """What a row of triggers is made of: stretches of sessions, by session and place."""

    def __init__(self, key: RowKey, items: list[SessionStretch]) -> None:
        self.key = key
        self.items = sorted(items, key=lambda item: (item.session, item.evidence.stretch.start))

    def row(self) -> TriggerRow:
        whole = joined(item.bounds for item in self.items)
        above, at_most, left_out = whole.limits
        formula, explained, others = self.formula(whole, self.fired)
        return TriggerRow(
            key=self.key,
            sessions=tuple(dict.fromkeys(item.session for item in self.items)),
            compactions=Counter(check.cause for check in self.checks),
            above=above,
            at_most=at_most,
            contradiction=whole.contradiction is not None,
            left_out=len(left_out),
            fired=len(self.fired),
            formula=formula,
            explained=explained,
            others=others,
            clusters=tuple(self.clusters()) if whole.contradiction else (),
            rules=tuple(self.rules()),
            forced=tuple(self.forced()),
            missed=sum(item.evidence.missed for item in self.items),
        )

    @cached_property
    def checks(self) -> list[CompactionCheck]:
        return list(chain.from_iterable(item.evidence.compactions for item in self.items))

    @cached_property
    def fired(self) -> list[CompactionCheck]:
        return list(chain.from_iterable(item.evidence.fired() for item in self.items))

    def forced(self) -> Iterable[ForcedCompaction]:
        near = (self.key.window or 0) * NEAR_MISS_SHARE
        for item in self.items:
            for check in item.evidence.compactions:
                refused = check.cause is Cause.REFUSED
                is_near = near and check.cause in EVIDENCE and (check.tokens or 0) >= near
                if refused or is_near:
                    yield ForcedCompaction(CheckPlace(check.tokens or 0, item.session, check.step), refused)

    def rules(self) -> Iterable[RuleTally]:
        """The rules of the sessions, those with stated settings first."""
        groups: defaultdict[tuple[str, tuple[RuleNumber, ...]], list[int]] = defaultdict(list)
        for place, item in enumerate(self.items):
            if (rule := item.evidence.rule) is not None:
                groups[rule.formula, stated_settings(rule)].append(place)
        for (_, stated), places in sorted(groups.items(), key=lambda pair: (not pair[0][1], pair[0][0], pair[1])):
            yield self.tally(stated, places)

    def tally(self, stated: tuple[RuleNumber, ...], places: list[int]) -> RuleTally:
        """The sessions at these places beside the rule that they share."""
        obeying, contradicting = [], []
        for place in places:
            obedience = obedience_of(self.items[place])
            if obedience.state is ObedienceState.OBEYS:
                obeying.append(self.items[place].session)
            elif obedience.state is ObedienceState.CONTRADICTS and obedience.place is not None:
                contradicting.append(RuleContradiction(obedience.place, obedience.fired))
        rule = self.rule_at(places[0])
        return RuleTally(
            formula=rule.formula,
            threshold=rule.threshold,
            stated=stated,
            reason=rule.reason,
            checks=rule.checks,
            sessions=len({self.items[place].session for place in places}),
            obeys=tuple(dict.fromkeys(obeying)),
            contradicts=tuple(contradicting),
            auto=sum(self.items[place].evidence.auto for place in places),
            comparable=sum(self.items[place].evidence.comparable for place in places),
            agrees=sum(self.items[place].evidence.agrees for place in places),
        )

    def rule_at(self, place: int) -> OwnRule:
        rule = self.items[place].evidence.rule
        assert rule is not None
        return rule

    # -- the formula

    def formula(self, bounds: Bounds, fired: list[CompactionCheck]) -> tuple[Hypothesis | None, int, int]:
        """The simplest formula that explains most compactions, how many those are, and how many other thresholds do.

        A formula outside the interval is none, unless the sessions contradict each other: then it is the one that
        explains more than half.
        """
        above, at_most, _ = bounds.limits
        interval = interval_of(self.key, above, at_most)
        is_open = above is None or at_most is None  # one bound proves too little for other settings than its own
        inside = [
            item
            for item in (self.hypotheses if fired else ())
            if (bounds.contradiction or interval.contains(item.threshold)) and not (is_open and item.changes)
        ]
        by_threshold: dict[int, Hypothesis] = {}
        for item in sorted(inside, key=lambda item: item.changes):
            by_threshold.setdefault(item.threshold, item)
        known = list(by_threshold.values())  # the simplest of each threshold, the simplest first
        counts = explained_by(fired, np.array([item.threshold for item in known], dtype=np.int64), self.key.relation)
        most = int(counts.max(initial=0))
        if bounds.contradiction and 2 * most <= len(fired):
            return None, 0, 0
        best = [item for item, count in zip(known, counts, strict=True) if count == most > 0]
        return (best[0], most, len(best) - 1) if best else (None, 0, 0)

    def clusters(self) -> Iterable[Cluster]:
        """Of the sessions with a bound from above, in order of it: each threshold explains as many as it can."""
        bounded = [item for item in self.items if item.bounds.fired and not item.bounds.contradiction]
        bounded.sort(key=lambda item: item.bounds.fired or ())
        cluster: list[SessionStretch] = []
        for item in bounded:
            if cluster and joined(member.bounds for member in (cluster[0], item)).contradiction:
                yield self.cluster(cluster)
                cluster = []
            cluster.append(item)
        if cluster:
            yield self.cluster(cluster)

    def cluster(self, items: list[SessionStretch]) -> Cluster:
        bounds = joined(item.bounds for item in items)
        above, at_most, _ = bounds.limits
        fired = list(chain.from_iterable(item.evidence.fired() for item in items))
        sessions = tuple(dict.fromkeys(item.session for item in items))
        return Cluster(sessions, above, at_most, len(fired), *self.formula(bounds, fired))

    @cached_property
    def hypotheses(self) -> list[Hypothesis]:
        """What the threshold may be: the rules of the sessions, then what the agent's formula gives otherwise."""
        return [item for item in self._hypotheses() if item.threshold > 0]

    def _hypotheses(self) -> Iterable[Hypothesis]:
        rules = (item.evidence.rule for item in self.items)
        own = dict.fromkeys((rule.formula, rule.threshold) for rule in rules if rule is not None)
        for formula, threshold in own:
            if threshold is not None:
                yield Hypothesis(formula, threshold, 0)
        first = self.items[0].evidence.stretch
        largest = max(item.evidence.stretch.largest for item in self.items)
        stretch = Stretch(0, 1, self.key.version, self.key.model, first.window, largest)
        agent = BY_LABEL.get(self.key.agent)
        yield from general_variants(stretch) if agent is None else agent.hypotheses(stretch, {})


def explained_by(checks: Iterable[CompactionCheck], thresholds: Ints, relation: str) -> Ints:
    """How many of the compactions each threshold explains: it fires at their count and at none that passed before."""
    counts = [(check.passed, check.tokens) for check in checks if check.tokens and check.passed < check.tokens]
    passed, fired = np.sort(np.array(counts, dtype=np.int64).reshape(-1, 2), axis=0).T
    least = thresholds + (relation == ">")  # the smallest count at which each fires
    return np.asarray(np.searchsorted(passed, least, side="left") - np.searchsorted(fired, least, side="left"))
