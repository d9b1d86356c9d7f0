"""One session under one choice of settings: everything its pages show, computed once and kept for the next click."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from uuid import UUID

from guard_core import defaults
from guard_core.attribution import Attribution, attribute
from guard_core.findings import (
    Facts,
    Finding,
    Verdict,
    recorded_findings,
    recorded_verdict,
    replayed_findings,
    replayed_verdict,
)
from guard_core.forecast import Forecast
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
from guard_core.usage import usage_for
from guard_core.window_evidence import judge_session
from inspector.figures.timeline import Own, Timeline, own_series, timeline
from inspector.models import Session
from inspector.replays import stored
from inspector.replays.choice import Choice
from inspector.replays.messages import Task
from inspector.replays.processes import REPLAYS, LongReplay
from inspector.storage import convert, explanations
from inspector.storage.byte_cache import ByteCache
from inspector.storage.estimates import load_result

CACHE_BYTES = 20_000_000  # of analyses in a process; one of 50,000 steps holds about 34 MB, and stays while it is used
# Measured at 3,000 and 10,000 steps with what its findings hold, without the columns that are kept elsewhere:
BYTES_A_STEP = 290  # of an analysis besides its traces: the series of the chart, tokens and growth of both sides
BYTES_A_RECORD = 1_950  # of one replayed compaction with its passes and views
SMALLEST = 20_000  # bytes that any analysis takes
PAGE_SECONDS = 0.3  # of computing that a replay may take from the process of all pages


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
    facts: Facts
    key: tuple[str, int]  # of the session: id, revision

    @property
    def head(self) -> CoreSession:
        return self.facts.session

    @cached_property
    def recorded_findings(self) -> tuple[Finding, ...]:
        return recorded_findings(self.facts)

    @cached_property
    def replayed_findings(self) -> tuple[Finding, ...]:
        """Of the replay, if it differs from the recording at all."""
        if not self.diverges:
            return ()
        return replayed_findings(self.facts, self.replayed)

    @property
    def shown_replayed_findings(self) -> tuple[Finding, ...]:
        """The same where that policy was chosen, or is the recording's own: else nobody has asked what it would do."""
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
        found = load_result(Session(pk=UUID(self.key[0]), revision=self.key[1]))
        return found.forecast if found else {}

    @property
    def diverges(self) -> bool:
        return self.data.replayed is not None and self.data.replayed.divergence is not None

    @cached_property
    def own_checks(self) -> OwnChecks:
        """The checks of the recording by the rule of its agent."""
        return OwnChecks(self.head, self.ledger, self.facts.explanation)

    @cached_property
    def prices(self) -> Prices:
        """What the calls of this session cost."""
        return Prices.of(self.head, self.ledger)

    @cached_property
    def recorded_payback(self) -> tuple[Payback, ...]:
        """The price of every recorded compaction that a call followed."""
        return self._payback(SentRequests.recorded(self.facts))

    @cached_property
    def replayed_payback(self) -> tuple[Payback, ...]:
        """The price of every compaction that the replay makes."""
        return self._payback(SentRequests.replayed(self.facts, self.replayed))

    def _payback(self, sent: SentRequests) -> tuple[Payback, ...]:
        return paybacks(sent, bill_of(sent, self.prices))

    @property
    def simulated(self) -> bool:
        """No request of this session was ever sent: what a policy does in it is its story."""
        return self.ledger.usage_ratio is not None

    def trace(self, side: str) -> Trace:
        """The trace of one side: "recorded" or "replayed"."""
        return self.replayed if side == "replayed" else self.observed


class ReplayUnderWay(Exception):
    """The analysis takes long: this replay makes it, and the pages that need it, in a process of its own."""

    def __init__(self, replay: LongReplay) -> None:
        super().__init__(replay.id)
        self.replay = replay


class TooLong(Exception):
    """A replay has used up what a page may compute."""


def analyse(row: Session, choice: Choice) -> Analysis:
    """The analysis of a session under a choice, where it is quick.

    Raises ReplayUnderWay where it is not, convert.Outdated where its columns must be made again first, and GuardError
    where the settings contradict each other.
    """
    key = _key(row, choice)
    if (under_way := REPLAYS.find(key)) is not None:
        raise ReplayUnderWay(under_way)
    try:
        return _cache.get(key, lambda: _analyse(row, choice, budget()))
    except TooLong:
        raise ReplayUnderWay(REPLAYS.start(key, Task(str(row.pk), choice), row.calls)) from None


def analyse_whole(row: Session, choice: Choice, each: Callable[[int], object]) -> Analysis:
    """The analysis however long it takes, kept for `analyse`; `each` hears how many steps are replayed.

    Its replay and findings are stored, and read where they are stored already.
    """
    return _cache.get(_key(row, choice), lambda: _stored_or_made(row, choice, each))


def _stored_or_made(row: Session, choice: Choice, each: Callable[[int], object]) -> Analysis:
    convert.ensure_current(row)
    place = stored.place_of(row, choice)
    if (known := stored.load(place, stored.Result)) is not None:
        found = _analyse(row, choice, each, known.trace)
        vars(found).update(recorded_findings=known.recorded, replayed_findings=known.replayed)
        return found
    found = _analyse(row, choice, each)
    stored.store(place, stored.result_of(found.replayed, found.recorded_findings, found.replayed_findings))
    return found


def forget() -> None:
    """Drop the analyses that this process holds."""
    _cache.clear()


def observe(row: Session) -> Trace:
    """The recording as the default policy sees it; nothing is replayed."""
    ledger = convert.load_ledger(row)
    usage = usage_for(ledger, convert.load_attribution(row))
    return observe_recorded(ledger, get_policy(DEFAULT_POLICY), window=window_of(row, Choice()).value, usage=usage)


def _key(row: Session, choice: Choice) -> tuple[Any, ...]:
    basis = explanations.basis_of(row)
    return str(row.pk), row.revision, row.requests is None, row.effective_window, basis, choice


def budget() -> Callable[[int], None]:
    """Raises TooLong PAGE_SECONDS of this thread's computing after its first call: neither loading the columns nor
    waiting for other threads counts."""
    end = 0.0

    def check(done: int) -> None:
        nonlocal end
        end = end or time.thread_time() + PAGE_SECONDS
        if time.thread_time() > end:
            raise TooLong

    return check


def _size(analysis: Analysis) -> int:
    """Bytes of the columns and compactions, which are nearly all of it; the ledger is kept elsewhere."""
    columns = [*analysis.observed.columns.values(), *analysis.replayed.columns.values()]
    series = BYTES_A_STEP * analysis.ledger.step_count
    records = BYTES_A_RECORD * len(analysis.replayed.compactions)
    return sum(column.nbytes for column in columns) + series + records + SMALLEST


_cache: ByteCache[Analysis] = ByteCache(CACHE_BYTES, _size)


def _analyse(row: Session, choice: Choice, each: Callable[[int], object], replayed: Trace | None = None) -> Analysis:
    """`replayed`: the replay, where it was made before."""
    facts = facts_of(row)
    ledger, usage = facts.ledger, facts.usage
    policy = get_policy(choice.kind.name, **choice.engine_settings(facts.session))
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
    data = timeline(facts.recording, observed, replayed, own=_own(facts), shows_policy=shows_policy)
    key = (str(row.pk), row.revision)
    return Analysis(choice, window, ledger, facts.attribution, policy, observed, replayed, data, facts, key)


def facts_of(row: Session) -> Facts:
    """The stored recording, with everything that is said of it."""
    ledger, head = convert.load_ledger(row), convert.load_head(row)
    return Facts(
        head,
        ledger,
        convert.load_attribution(row) or attribute(ledger),
        judge_session(head, window_of(row, Choice())),
        convert.request_words_of(row),
        explained=explanations.load(row),
    )


def _own(facts: Facts) -> Own | None:
    """What the rule of the recording's agent compares; None where that is ContextGuard, which has a trace."""
    if facts.is_contextguards:
        return None
    return own_series(OwnChecks(facts.session, facts.ledger, facts.explanation))


def summarizer_of(choice: Choice, ledger: Ledger, simulated: bool) -> Summarizer | None:
    """As chosen; a simulated session is summarised as in the gallery, so that both show the same figures."""
    if choice.summary:
        return get_summarizer(choice.summary, ledger)
    return FixedSummaries(defaults.SUMMARY_BYTES) if simulated else None


def window_of(row: Session, choice: Choice) -> Sourced:
    """The context window in use and where it comes from: the URL, a person's, the recording."""
    if choice.window:
        return Sourced(int(choice.window), Provenance.USER, "set in this address")
    return convert.window_in_use(row)
