"""The search: replays of the ways that are tried, and a sentence on the nearest that reaches each goal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import NamedTuple

import msgspec
import numpy as np

from guard_core import defaults
from guard_core.avoiding.cost import Cost, cost_of, cost_words, loses_more, recorded_case
from guard_core.avoiding.goals import FITS, LASTS, QUIET, VERBATIM, Goal, goal_of, is_met, overflows, words
from guard_core.avoiding.ways import POLICY, PROFILE, SETTING, TIERS, WINDOW, StartingSettings, Way, base_of, ways
from guard_core.errors import GuardError
from guard_core.estimation.forecast import COMPACTION, HORIZONS, Forecast
from guard_core.findings.claims import MODELLED_TOKENS, SAME_TURNS, Finding
from guard_core.findings.facts import Case, Facts
from guard_core.findings.words import counted, if_window, off_words, percent, window_assumptions
from guard_core.outcomes.losses import StatedRule
from guard_core.outcomes.outcome import rewrites
from guard_core.outcomes.sent import SentRequests
from guard_core.policies import get_policy, policy_kind
from guard_core.replay import replay
from guard_core.summaries.base import Summarizer
from guard_core.summaries.sizes import FixedSummaries
from guard_core.trace import Trace

Each = Callable[[int], object]


class ReplayOutcome(msgspec.Struct, frozen=True):
    """What a replay came to. `peak` is the largest request in prompt tokens, of the window `peak_window`; `overflows`
    counts requests over it, sent or refused."""

    compactions: int
    overflows: int
    peak: int
    peak_window: int
    tokens_sent: int


class Remedy(msgspec.Struct, frozen=True):
    """A way that reaches a goal, with what its replay came to and what it costs. `rivals` counts the ways of its tier
    that reach it where all were tried: other policies have no order of nearness, so the gentlest is taken
    (`_ReachingWay.harm`). `loses_more`: than the recording, as every way of its tier that reaches the goal does.
    `short` is how `sentence` begins: what is reached by which change; where that loses more, the whole sentence; "" in
    answers stored before it was kept."""

    way: Way
    outcome: ReplayOutcome
    sentence: str
    rivals: int = 0
    cost: Cost | None = None
    loses_more: bool = False
    short: str = ""


class _ReachingWay(NamedTuple):
    """A way whose replay reaches a goal."""

    way: Way
    case: Case
    cost: Cost
    loses_more: bool

    @property
    def harm(self) -> tuple[bool, bool, int, int]:
        """How gentle the replay is: first those that lose no more than the recording, of these those that send messages
        as they were recorded, then by compactions and tokens."""
        return (
            self.loses_more,
            bool(rewrites(SentRequests(self.case))),
            len(self.case.fired),
            self.cost.tokens_sent,
        )


class Answer(msgspec.Struct, frozen=True):
    """What would have avoided some findings: the nearest way of each tier that reaches the goal and loses no more than
    the recording, else the nearest that reaches it.

    `kinds` and `steps` have one entry for each finding. `unchanged` is set where a replay under the unchanged rule
    reaches the goal already, so that no change can be credited. `tried` counts the replays. `sentence` says it all
    where there are no remedies.
    """

    goal: Goal
    kinds: tuple[str, ...]
    steps: tuple[int, ...]
    remedies: tuple[Remedy, ...]
    tried: int
    sentence: str
    unchanged: ReplayOutcome | None = None
    assumptions: tuple[str, ...] = ()
    recorded: Cost | None = None


def avoid(
    facts: Facts,
    findings: Iterable[Finding],
    base: StartingSettings | None = None,
    *,
    rules: Sequence[StatedRule] | None = None,
    summarizer: Summarizer | None = None,
    forecast: Forecast | None = None,
    each: Each = lambda done: None,
) -> tuple[Answer, ...]:
    """An answer for each goal of some findings, in their order. Nothing where the window is contradicted.

    `base` is what is changed, by default the rule of the recording's own agent. `rules` are those that the log states
    (`losses.stated_in`), None: the cost of a replay has none. `forecast` is the engine's own error on
    this session. `each` hears how many steps of all replays are done, often, and 0 before the first; what it raises
    ends the search.
    """
    wanted: dict[Goal, list[Finding]] = {}
    for finding in findings:
        if (goal := goal_of(finding)) is not None:
            wanted.setdefault(goal, []).append(finding)
    if not wanted or facts.window.is_disproved or not facts.ledger.step_count:
        return ()
    if summarizer is None and facts.ledger.usage_ratio is not None:
        summarizer = FixedSummaries(defaults.SUMMARY_BYTES)  # as Facts.simulation
    search = _RemedySearch(facts, base or base_of(facts), rules, summarizer, forecast or {}, each)
    return search.answers(wanted)


class _RemedySearch:
    """The replays of one search, each made once."""

    def __init__(
        self,
        facts: Facts,
        base: StartingSettings,
        rules: Sequence[StatedRule] | None,
        summarizer: Summarizer | None,
        forecast: Forecast,
        each: Each,
    ) -> None:
        self.facts, self.base, self.rules, self.summarizer = facts, base, rules, summarizer
        self.forecast, self.each = forecast, each
        self.recorded = cost_of(recorded_case(facts), rules)
        self.tried = 0

    def answers(self, wanted: dict[Goal, list[Finding]]) -> tuple[Answer, ...]:
        """The answers to all goals: one replay of a way is held against each."""
        self.each(0)
        unchanged = self._unchanged()
        reached = {goal for goal in wanted if unchanged is not None and is_met(goal, unchanged)}
        open_goals = [goal for goal in wanted if goal not in reached]
        remedies: dict[Goal, list[Remedy]] = {goal: [] for goal in wanted}
        for tier in TIERS if open_goals else ():
            self._try(tier, open_goals, remedies)
        return tuple(
            self._answer(goal, finding, remedies[goal], unchanged if goal in reached else None)
            for goal, finding in wanted.items()
        )

    def _try(self, tier: str, goals: Sequence[Goal], remedies: dict[Goal, list[Remedy]]) -> None:
        """Add the remedies of a tier: the first way that reaches a goal and loses no more than the recording, else the
        first that reaches it; of other policies the gentlest."""
        left = list(goals)
        reaching: dict[Goal, list[_ReachingWay]] = {goal: [] for goal in goals}
        if tier == WINDOW:  # what fits without a compaction needs no larger window
            without = self.facts.replay(self.facts.whole_log)
            left = [goal for goal in left if goal.kind != QUIET and not is_met(goal, without)]
        for way in ways(self.base, tier):
            if not left:
                break
            if (case := self._case(way)) is None or not (met := [goal for goal in left if is_met(goal, case)]):
                continue
            cost = cost_of(case, self.rules)
            reached = _ReachingWay(way, case, cost, loses_more(cost, self.recorded))
            for goal in met:
                reaching[goal].append(reached)
            left = [goal for goal in left if tier == POLICY or reached.loses_more or goal not in met]
        for goal, some in reaching.items():
            if some:
                remedies[goal].append(self._remedy(goal, tier, some))

    def _remedy(self, goal: Goal, tier: str, reaching: list[_ReachingWay]) -> Remedy:
        best = min(reaching, key=attrgetter("harm" if tier == POLICY else "loses_more"))
        rivals = reaching if tier == POLICY else []
        assumed = if_window(self.facts.window) if best.way.tier != WINDOW else ""
        words = f"{_change_words(best.way, self.base, self.facts.counts.total)}{assumed}."
        change = f"{_capitalised(_reached(goal, best.case, best.way.window))} {words}"
        sentence = f"{change} {self._outcome_sentences(goal, best, rivals)}"
        short = sentence if best.loses_more else change
        return Remedy(best.way, _outcome(best.case), sentence, len(rivals), best.cost, best.loses_more, short)

    def _unchanged(self) -> Case | None:
        """The replay before any change; None where the recording is the starting point, which is not replayed."""
        kind = self.base.kind
        if kind is None:
            return None
        return self._case(Way("", kind.name, self.base.values, self.base.window, "", "", "", ""))

    def _case(self, way: Way) -> Case | None:
        """The replay of a way; None where it cannot be replayed here."""
        facts, done = self.facts, self.tried * self.facts.ledger.step_count
        self.tried += 1
        try:
            trace: Trace = replay(
                facts.ledger,
                get_policy(way.policy, **way.settings),
                window=way.window,
                usage=facts.usage,
                summarizer=self.summarizer,
                request="" if facts.ledger.usage_ratio is not None else None,
                each=lambda step: self.each(done + step),
            )
        except (GuardError, MemoryError):
            return None
        return facts.replay(trace)

    def _answer(self, goal: Goal, findings: list[Finding], remedies: list[Remedy], unchanged: Case | None) -> Answer:
        sentence = ""
        if unchanged is not None:
            reached = _capitalised(_reached(goal, unchanged, self.base.window))
            basis = self._basis_words(goal, unchanged)
            sentence = (
                f"{reached} under {self.base.name} as it is, so no change of settings can be credited: the recording "
                f"went another way. {_capitalised(self._outcome_words(unchanged))}. {basis}"
            )
        elif not remedies:
            sentence = (
                f"None of {self.tried:,} settings, windows and policies avoids this without a request over the window "
                f"or a loop. Each was replayed over the same messages."
            )
        return Answer(
            goal,
            tuple(item.kind for item in findings),
            tuple(item.step for item in findings),
            tuple(remedies),
            self.tried,
            sentence,
            None if unchanged is None else _outcome(unchanged),
            (*window_assumptions(self.facts.window), SAME_TURNS, MODELLED_TOKENS),
            self.recorded,
        )

    def _outcome_sentences(self, goal: Goal, reached: _ReachingWay, rivals: list[_ReachingWay]) -> str:
        """What the replay came to and costs, then what that rests on."""
        case = reached.case
        result = f"{_capitalised(self._outcome_words(case))}."
        cost = cost_words(case, reached.cost, self.recorded)
        basis, rest = self._basis_words(goal, case, reached.cost), _rival_words(rivals, self.recorded)
        return " ".join(filter(None, (result, cost, basis, rest)))

    def _basis_words(self, goal: Goal, case: Case, cost: Cost | None = None) -> str:
        """What the figures of a replay rest on, and what it cannot know; `cost` where it is said."""
        error = self._error_words(case) if case.modelled.any() else ""
        counts_words = goal.kind in VERBATIM or (cost is not None and (cost.dropped > 0 or cost.gone > 0))
        is_unknown = counts_words and case.fired and case.may_summarise
        unknown = " What its summaries would say is not known: only verbatim messages count." if is_unknown else ""
        return f"Replayed over the same messages{f'; {error}' if error else ''}.{unknown}"

    def _outcome_words(self, case: Case) -> str:
        outcome = _outcome(case)
        over = counted(outcome.overflows, "overflow") if outcome.overflows else "no overflow"
        before = self.facts.counts.total
        recorded = "" if self.facts.ledger.usage_ratio is not None else f" (the recording has {before:,})"
        compactions = counted(outcome.compactions, "compaction") if outcome.compactions else "no compaction"
        rewritten = "; the policy rewrites each message when it is recorded" if rewrites(SentRequests(case)) else ""
        share = percent(outcome.peak / outcome.peak_window) if outcome.peak_window else ""
        source = " (modelled)" if case.modelled[_peak(case)] else ""
        peak = f"largest request {outcome.peak:,} tokens{f', {share} of the window' if share else ''}{source}"
        return f"{over}, {compactions}{recorded}, {peak}{rewritten}"

    def _error_words(self, case: Case) -> str:
        """The forecast error that bears on a replay: across a compaction where it makes one, else many calls ahead."""
        names = [COMPACTION] if case.fired else []
        for name in (*names, *map(str, reversed(HORIZONS))):
            if (errors := self.forecast.get(name)) is not None:
                where = "after a compaction" if name == COMPACTION else f"{counted(int(name), 'call')} ahead"
                return f"forecast error {off_words(errors)} {where}"
        return ""


def _reached(goal: Goal, case: Case, window: int) -> str:
    """What a replay that reaches a goal has, as a clause: compactions that last, only where there are any; that there
    are none is said of the policy which never makes one already."""
    if goal.kind in (LASTS, QUIET) and case.trace is not None and not policy_kind(case.trace.policy).compacts:
        return words(Goal(FITS), window)
    return words(Goal(QUIET) if goal.kind == LASTS and not case.fired else goal, window)


def _rival_words(rivals: list[_ReachingWay], recorded: Cost) -> str:
    """How many other policies avoid a finding, and that of several the gentlest was taken, as sentences."""
    if len(rivals) < 2:
        return ""
    fewest, *others = sorted(item.harm for item in rivals)
    alike = [item for item in (fewest, *others) if item[:2] == fewest[:2]]
    verbs = []  # of several, and of one
    if any(item[0] != fewest[0] for item in others):
        lose = ("perhaps lose", "perhaps loses") if recorded.is_least else ("lose", "loses")
        verbs.append([f"{verb} no more than the recording" for verb in lose])
    if any(item[1] for item in others) and not fewest[1]:
        verbs.append([f"{verb} messages as they were recorded" for verb in ("send", "sends")])
    many = f"{len(rivals):,} policies avoid this"
    which = "it is the one with the fewest compactions"
    equal = sum(item[:3] == fewest[:3] for item in alike)
    if equal > 1:
        few = counted(fewest[2], "compaction") if fewest[2] else "no compaction"
        share = "all" if equal == len(alike) else f"{equal:,}"
        which = f"{share} have {few}, and of these it sends the fewest tokens"
    if not verbs or len(alike) == len(rivals):
        return f"{many}; {which}."
    if len(alike) == 1:
        return f"{many}; it is the only one of them that {' and '.join(one for _, one in verbs)}."
    return f"{many}; {len(alike):,} of them {' and '.join(several for several, _ in verbs)}. Of these, {which}."


def _capitalised(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}"


def _peak(case: Case) -> int:
    """The step of the request that fills most of its window."""
    return int(np.argmax(case.filled)) if case.filled.any() else int(np.argmax(case.tokens))


def _outcome(case: Case) -> ReplayOutcome:
    peak = _peak(case)
    return ReplayOutcome(
        len(case.fired),
        len(overflows(case)),
        int(case.tokens[peak]),
        int(case.windows[peak]),
        int(case.tokens.sum()),
    )


def _change_words(way: Way, base: StartingSettings, compactions: int) -> str:
    """A change of what a recording with so many compactions has, as the end of a clause."""
    if way.tier == WINDOW:
        without = " and without any compaction" if base.kind is None and compactions else ""
        return f"with a window of {way.new:,} tokens instead of {way.old:,}{without}"
    if not policy_kind(way.policy).compacts:
        return f"without any compaction instead of {base.name}"
    if way.tier == POLICY:
        return f"under {way.label} at its defaults instead of {base.name}"
    if way.tier == PROFILE:
        return f"with the rule of {base.name} {way.new} instead of {way.old}"
    assert way.tier == SETTING
    name, old = f"{way.label[:1].lower()}{way.label[1:]}", _value(way.old)
    if way.unit == "tokens" and way.old == 0:  # nothing is set, or kept, or added
        old = "none"
    return f"with {name} {_value(way.new, way.unit)} instead of {old}"


def _value(value: object, unit: str = "") -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    text = f"{value:,}" if isinstance(value, int) else f"{value:g}" if isinstance(value, float) else str(value)
    return f"{text} {unit}" if unit and not isinstance(value, str) else text
