"""One session under one choice of settings: everything its pages show, computed once and kept for the next click."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any
from uuid import UUID

from django.conf import settings

from guard_core import defaults
from guard_core.columns import Columns, bytes_of, narrowed
from guard_core.estimation.attribution import Attribution, attribute
from guard_core.estimation.forecast import Forecast
from guard_core.estimation.usage import usage_for
from guard_core.findings import (
    Facts,
    Finding,
    Verdict,
    conclusions,
    recorded_findings,
    recorded_verdict,
    replayed_findings,
    replayed_verdict,
)
from guard_core.findings.gaps import ResultClearing, clearings
from guard_core.ledger import Ledger
from guard_core.outcomes.bill import Prices, bill_of
from guard_core.outcomes.payback import Payback, paybacks
from guard_core.outcomes.sent import SentRequests
from guard_core.policies import DEFAULT_POLICY, get_policy
from guard_core.policies.base import Policy
from guard_core.replay import observe_recorded, replay
from guard_core.rules import OwnChecks
from guard_core.sessions import Provenance, Sourced
from guard_core.sessions import Session as CoreSession
from guard_core.summaries.base import Summarizer
from guard_core.summaries.sizes import FixedSummaries, get_summarizer
from guard_core.trace import Trace
from guard_core.windows.models import answers_of
from guard_core.windows.window_evidence import judge_session
from inspector.figures.timeline import Own, Timeline, own_series, timeline
from inspector.models import Session
from inspector.replays import stored
from inspector.replays.choice import Choice
from inspector.replays.messages import Task
from inspector.replays.processes import REPLAYS, LongReplay
from inspector.storage import explanations, loading, storing
from inspector.storage.byte_cache import ByteCache
from inspector.storage.estimates import load_result

CACHE_BYTES = 20_000_000  # of analyses in a process; one of 50,000 steps holds about 34 MB, and stays while it is used
# Measured at 3,000 and 10,000 steps with what its findings hold, without the columns that are kept elsewhere:
BYTES_A_STEP = 290  # of an analysis besides its traces: the series of the chart, tokens and growth of both sides
FACTS_BYTES_A_STEP = 60  # of what is computed once of a recording, without its columns
BYTES_A_RECORD = 1_950  # of one replayed compaction with its passes and views
SMALLEST = 20_000  # bytes that any analysis takes
_reads_stored = False


@dataclass(frozen=True)
class StoredFacts(Facts):
    """The facts of a stored session with what follows from them alone, once for all settings."""

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """What is to be said of the recording."""
        return recorded_findings(self)

    @cached_property
    def conclusions(self) -> tuple[Finding, ...]:
        """The same; where nothing was ever sent, what is to be said of its simulation."""
        return self.findings if self.ledger.usage_ratio is None else conclusions(self)[0]

    @cached_property
    def clearings(self) -> dict[int, ResultClearing]:
        """Where results are cleared in the requests alone, by the step of the request."""
        return {item.step: item for item in clearings(self)}

    @cached_property
    def own_checks(self) -> OwnChecks:
        """The checks of the recording by the rule of its agent."""
        return OwnChecks(self.session, self.ledger, self.explanation)

    @cached_property
    def own(self) -> Own | None:
        """What that rule compares; None where it is ContextGuard's, which has a trace."""
        return None if self.is_contextguards else own_series(self.own_checks)

    @cached_property
    def prices(self) -> Prices:
        """What the calls of this session cost."""
        return Prices.of(self.session, self.ledger, self.answers)

    @cached_property
    def payback(self) -> tuple[Payback, ...]:
        """The price of every recorded compaction that a call followed."""
        sent = SentRequests.recorded(self)
        return paybacks(sent, bill_of(sent, self.prices))


@dataclass(frozen=True)
class Analysis:
    """A session's columns, the recorded side as a policy sees it, and the replay beside it."""

    choice: Choice
    window: Sourced
    ledger: Ledger
    attribution: Attribution
    policy: Policy
    observed: Trace
    replayed: Trace
    data: Timeline
    facts: StoredFacts
    key: tuple[str, int]  # of the session: id, revision

    @property
    def head(self) -> CoreSession:
        return self.facts.session

    @property
    def recorded_findings(self) -> tuple[Finding, ...]:
        return self.facts.findings

    @cached_property
    def replayed_findings(self) -> tuple[Finding, ...]:
        """Of the replay, if it differs from the recording at all."""
        if not self.diverges:
            return ()
        return replayed_findings(self.facts, self.replayed)

    @property
    def shown_replayed_findings(self) -> tuple[Finding, ...]:
        """The same where that policy was chosen, or is the recording's own: else what it would do was not asked for."""
        return self.replayed_findings if self.data.shows_policy else ()

    @cached_property
    def verdict(self) -> Verdict:
        """Of the recording; of the replay, where nothing was ever sent."""
        if self.simulated:
            return replayed_verdict(self.facts, self.replayed, replayed_findings(self.facts, self.replayed))
        return recorded_verdict(self.facts, self.recorded_findings)

    @property
    def forecast(self) -> Forecast:
        """How well this session's recorded calls are predicted from the past; empty until a job has measured it."""
        measured = load_result(Session(pk=UUID(self.key[0]), revision=self.key[1]))
        return measured.forecast if measured else {}

    @property
    def diverges(self) -> bool:
        return self.data.replayed is not None and self.data.replayed.divergence is not None

    @property
    def own_checks(self) -> OwnChecks:
        """The checks of the recording by the rule of its agent."""
        return self.facts.own_checks

    @property
    def prices(self) -> Prices:
        """What the calls of this session cost."""
        return self.facts.prices

    @property
    def recorded_payback(self) -> tuple[Payback, ...]:
        """The price of every recorded compaction that a call followed."""
        return self.facts.payback

    @cached_property
    def replayed_payback(self) -> tuple[Payback, ...]:
        """The price of every compaction that the replay makes."""
        sent = SentRequests.replayed(self.facts, self.replayed)
        return paybacks(sent, bill_of(sent, self.prices))

    @property
    def simulated(self) -> bool:
        """No request of this session was ever sent: what a policy does in it is its story."""
        return self.ledger.usage_ratio is not None

    def trace(self, side: str) -> Trace:
        """The trace of one side: "recorded" or "replayed"."""
        return self.replayed if side == "replayed" else self.observed

    def narrow(self) -> Analysis:
        """The same, its columns as narrow as before they were read."""
        ledger, traces = self.ledger, [self.observed, self.replayed]
        if "whole_log" in vars(self.facts):
            traces.append(self.facts.whole_log)
        for columns in (ledger.events, ledger.parts, ledger.steps, *(trace.columns for trace in traces)):
            if isinstance(columns, Columns):
                columns.narrow()
        return self


class ReplayUnderWay(Exception):
    """The analysis takes long: this replay makes it, and the pages that need it, in a process of its own."""

    def __init__(self, replay: LongReplay) -> None:
        super().__init__(replay.id)
        self.replay = replay


class TooLong(Exception):
    """A replay has used up what a page may compute."""


def analyse(row: Session, choice: Choice, basis: str = "") -> Analysis:
    """The analysis of a session under a choice, where it is quick; `basis` is that of explanations, where it is known.

    Raises ReplayUnderWay where it is not, loading.Outdated where its columns must be made again first, and GuardError
    where the settings contradict each other.
    """
    key = key_of(row, choice, basis)
    if (under_way := REPLAYS.find(key)) is not None:
        raise ReplayUnderWay(under_way)
    try:
        return _cache.get(key, lambda: _quick(row, choice, key)).narrow()
    except TooLong:
        raise ReplayUnderWay(REPLAYS.start(key, Task(str(row.pk), choice), row.calls)) from None


def analyse_whole(row: Session, choice: Choice, each: Callable[[int], object]) -> Analysis:
    """The analysis however long it takes, kept for `analyse`; `each` hears how many steps are replayed.

    Its replay and findings are stored, and read where they are stored already.
    """
    return _cache.get(key_of(row, choice), lambda: _stored_or_made(row, choice, each))


def _quick(row: Session, choice: Choice, key: tuple[Any, ...]) -> Analysis:
    """The analysis from what is stored of it, where this process reads that, else computed. Raises TooLong."""
    analysis = _stored(row, choice, budget()) if _reads_stored else None
    return analysis or _analyse(row, choice, budget(), key=key)


def _stored_or_made(row: Session, choice: Choice, each: Callable[[int], object]) -> Analysis:
    storing.ensure_current(row)
    if (analysis := _stored(row, choice, each)) is not None:
        return analysis
    analysis = _analyse(row, choice, each)
    if stored.is_storable(analysis.replayed):
        result = stored.result_of(analysis.replayed, analysis.recorded_findings, analysis.replayed_findings)
        stored.store(stored.place_of(row, choice), result)
    return analysis


def _stored(row: Session, choice: Choice, each: Callable[[int], object]) -> Analysis | None:
    """The analysis with the replay and the findings that are stored; None where none are."""
    if (known := stored.load(stored.place_of(row, choice), stored.ReplayResult)) is None:
        return None
    analysis = _analyse(row, choice, each, known.trace)
    vars(analysis.facts).update(findings=known.recorded)
    vars(analysis).update(replayed_findings=known.replayed)
    return analysis


def read_stored() -> None:
    """Pages of this process read stored replays by themselves: that of a long replay has none to ask for them, and one
    page may compare several that take long."""
    global _reads_stored
    _reads_stored = True


def stay_at_hand(row: Session) -> None:
    """A page of a session is open: what it is made of is not dropped, so that its next click does not wait for it."""
    session = str(row.pk)
    _cache.use(lambda key: isinstance(key, tuple) and key[0] == session)


def forget() -> None:
    """Drop the analyses that this process holds."""
    _cache.clear()
    _facts.clear()


def observe(row: Session) -> Trace:
    """The recording as the default policy sees it; nothing is replayed."""
    ledger = loading.load_ledger(row)
    usage = usage_for(ledger, loading.load_attribution(row))
    return observe_recorded(ledger, get_policy(DEFAULT_POLICY), window=window_of(row, Choice()).value, usage=usage)


def key_of(row: Session, choice: Choice, basis: str = "") -> tuple[Any, ...]:
    """What an analysis follows from; it begins with the id of the session. `basis` is as for `analyse`."""
    of_rule = basis or explanations.basis_of(row)
    return str(row.pk), row.revision, row.assessed_by, row.effective_window, of_rule, choice


def budget() -> Callable[[int], None]:
    """Raises TooLong PAGE_MILLISECONDS of this thread's computing after its first call: neither loading the columns nor
    waiting for other threads counts."""
    end, allowed = 0.0, settings.PAGE_MILLISECONDS / 1000

    def check(done: int) -> None:
        nonlocal end
        end = end or time.thread_time() + allowed
        if time.thread_time() > end:
            raise TooLong

    return check


def _size(analysis: Analysis) -> int:
    """Bytes of the columns and compactions, which are nearly all of it; the ledger is kept elsewhere."""
    columns = bytes_of(analysis.observed.columns) + bytes_of(analysis.replayed.columns)
    series = BYTES_A_STEP * analysis.ledger.step_count
    records = BYTES_A_RECORD * len(analysis.replayed.compactions)
    return columns + series + records + SMALLEST


_cache: ByteCache[Analysis] = ByteCache(CACHE_BYTES, _size, revision=1)
_facts: ByteCache[StoredFacts] = ByteCache(
    CACHE_BYTES, lambda facts: FACTS_BYTES_A_STEP * facts.ledger.step_count + SMALLEST, revision=1
)


def _analyse(
    row: Session,
    choice: Choice,
    each: Callable[[int], object],
    replayed: Trace | None = None,
    key: tuple[Any, ...] | None = None,
) -> Analysis:
    """`replayed`: the replay, where it was made before; `key`: that of `key_of`, where it is known."""
    facts = facts_of(row, key)
    ledger, usage = facts.ledger, facts.usage
    policy = get_policy(choice.kind.name, **choice.engine_settings(facts))
    window = window_of(row, choice)
    simulated = ledger.usage_ratio is not None
    summarizer = summarizer_of(choice, ledger, simulated)
    observed = observe_recorded(ledger, policy, window=window.value, usage=usage)
    request = "" if simulated else None
    if replayed is None:
        replayed = replay(
            ledger, policy, window=window.value, usage=usage, summarizer=summarizer, request=request, each=each
        )
    shows_policy = choice.changed or facts.is_contextguards
    data = timeline(facts.recording, observed, replayed, own=facts.own, shows_policy=shows_policy)
    observed, replayed = (replace(trace, columns=narrowed(trace.columns)) for trace in (observed, replayed))
    of = (str(row.pk), row.revision)
    return Analysis(choice, window, ledger, facts.attribution, policy, observed, replayed, data, facts, of)


def facts_of(row: Session, key: tuple[Any, ...] | None = None) -> StoredFacts:
    """The stored recording, with everything that is said of it: the same whatever is replayed beside it. `key`: that of
    `key_of` under any choice, where it is known."""
    window = window_of(row, Choice())
    known = (*(key or key_of(row, Choice()))[:-1], window)
    return _facts.get(known, lambda: _load_facts(row, window))


def _load_facts(row: Session, window: Sourced) -> StoredFacts:
    together = loading.read_together(row)
    ledger, head = loading.load_ledger(row), loading.load_head(row)
    answers = answers_of(head)
    facts = StoredFacts(
        head,
        ledger,
        loading.load_attribution(row) or attribute(ledger),
        judge_session(head, window, answers),
        loading.request_words_of(row),
        explained=explanations.load(row),
    )
    vars(facts).update(answers=answers)  # each look at them reads all calls
    vars(facts).update(together=together)  # held as long: what else is read of this revision is of the same moment
    return facts


def summarizer_of(choice: Choice, ledger: Ledger, simulated: bool) -> Summarizer | None:
    """As chosen; a simulated session is summarised as in the gallery, so that both show the same figures."""
    if choice.summary:
        return get_summarizer(choice.summary, ledger)
    return FixedSummaries(defaults.SUMMARY_BYTES) if simulated else None


def window_of(row: Session, choice: Choice) -> Sourced:
    """The context window in use and where it comes from: the URL, a person's, the recording."""
    if choice.window:
        return Sourced(int(choice.window), Provenance.USER, "set in this address")
    return loading.window_in_use(row)
