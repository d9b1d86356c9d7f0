"""Tokenizer counts and the errors of estimators: a job in slices, after a session is visible and below all other jobs.

Each distinct text is counted once, for whatever session holds it. A slice that is interrupted leaves whole steps behind
and the next one continues from there; two workers at the same session do some work twice, and store the same.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar

import numpy as np
from django.db import DatabaseError, connection, transaction
from django.db.models import F, QuerySet

from guard_core.decimation import thinned
from guard_core.errors import GuardError
from guard_core.estimation.comparison import COUNTERS, given_errors, request_counts
from guard_core.estimation.forecast import forecast
from guard_core.estimation.measurement import Errors, errors, interpolate
from guard_core.events import part_text
from guard_core.ledger import Ints, Ledger
from inspector.jobs import queue
from inspector.jobs.slices import SlicedJob
from inspector.models import Estimate, Event, Payload, Session, TextCount
from inspector.project import memory
from inspector.replays import avoiding
from inspector.replays.analysis import observe
from inspector.storage import loading, storing
from inspector.storage.estimates import (
    COLUMNS,
    LONG_EVENTS,
    EstimationResult,
    Points,
    counts_of,
    packed_counts,
    packed_result,
    to_count,
)

T = TypeVar("T")

log = logging.getLogger(__name__)

LOOK_EVERY = 0.3  # seconds between two checks for a waiting job, while a session is measured
NOT_COUNTED = -1  # tokens of a text that the second tokenizer has not seen yet
STEP_EVENTS = 500  # counted and stored in one short transaction
FETCHED = 50  # messages in memory at once; one may be megabytes
READ_EVENTS = 20_000  # counts put together in one query
PRIORITY = -60  # below the text index
MOST_POINTS = 2_000  # of the scatter figure
OUR_MISTAKE = "An internal error; see the server log."
ENCODINGS = {"o200k": "o200k_base", "cl100k": "cl100k_base"}
SECOND = "cl100k"  # counted in a pass of its own over a long session
NAMES = {"chars/4": "chars4", "bytes/4": "bytes4", "o200k_base": "o200k", "cl100k_base": "cl100k"}


class _EstimateYields(Exception):
    """Another job waits: what is not stored is done again later."""


def pending() -> QuerySet[Session]:
    """Sessions on any list that are not measured as they are now, the newest first."""
    done = Estimate.unscoped.filter(result__isnull=False, revision=F("session__revision"))
    return Session.unscoped.filter(deleted=None).exclude(pk__in=done.values("pk")).order_by("-created", "ordinal")


def take_step(session: Session, look_every: float = LOOK_EVERY) -> bool:
    """The next step for one session; False where another job waits, after which it looks every so many seconds."""
    try:
        _work_on(session, look_every)
    except _EstimateYields:
        return False
    return True


def _work_on(session: Session, look_every: float) -> None:
    """The next step for one session. One that cannot be read must not keep all others waiting; one that has grown since
    its row was read is begun again, for what is read of it then may be of two moments."""
    state = _state(session)
    mine = Estimate.objects.in_session(session).filter(revision=session.revision)
    if state.counted >= to_count(session) and session.events > LONG_EVENTS:
        memory.release()  # of the tokenizers: measuring a long session takes as much
    try:
        if state.tokenizer is not None:
            mine.update(result=packed_result(_measured(session, state, _Look(look_every))))
            _search_settings(session, state)
        elif state.counted < to_count(session):
            mine.update(counted=count_some(session, state.counted))
        elif (columns := _joined(session)) is not None:
            mine.update(tokenizer=packed_counts(columns))
        else:  # counts were swept away between: begin again
            mine.update(counted=0)
    except (_EstimateYields, DatabaseError):
        raise
    except Exception as error:
        if not _is_current(state):
            return
        log.exception("the tokens of session %s cannot be counted", session.pk)
        words = str(error)[:1_000] if isinstance(error, GuardError) else OUR_MISTAKE
        mine.update(result=packed_result(EstimationResult(error=words)))


def _is_current(state: Estimate) -> bool:
    """Is the session still of the revision that is measured."""
    return Session.unscoped.filter(pk=state.session_id, revision=state.revision).exists()


def _state(session: Session) -> Estimate:
    """How far a session is counted; of one that has changed since, nothing is."""
    state, _ = Estimate.objects.in_session(session).get_or_create(defaults={"revision": session.revision})
    if state.revision != session.revision:
        state.revision, state.counted, state.tokenizer, state.result = session.revision, 0, None, None
        state.save()
    return state


# ---- counting


def count_some(session: Session, start: int) -> int:
    """Count the texts of the next events that are not counted in their project yet; the place to continue from, of
    `to_count`."""
    number, first = divmod(start, max(1, session.events))
    stop = min(session.events, first + STEP_EVENTS)
    log_ = Event.objects.in_session(session).filter(seq__gte=first, seq__lt=stop)
    keys = list(dict.fromkeys(bytes(key) for key in log_.values_list("payload_id", flat=True)))
    counts = TextCount.objects.of(session.project_id)
    known = list(counts.filter(sha256__in=keys).values_list("sha256", SECOND))
    missing = sorted(set(keys) - {bytes(key) for key, _ in known})
    halves = sorted(bytes(key) for key, tokens in known if tokens == NOT_COUNTED)
    columns, later = list(NAMES.values()), {}
    if session.events > LONG_EVENTS and not number:
        columns, halves, later = [name for name in columns if name != SECOND], [], {SECOND: NOT_COUNTED}
    elif session.events > LONG_EVENTS:
        columns, missing = [SECOND], []  # what was swept away since the first pass is missed when all are joined
    _TOKENIZERS.use(*columns)
    rows = [TextCount(sha256=key, **sums, **later) for key, sums in _counted(missing, columns)]
    seconds = dict(_counted(halves, [SECOND]))
    with transaction.atomic():
        counts.bulk_create(rows, ignore_conflicts=True)
        for key, sums in seconds.items():
            counts.filter(sha256=key).update(**sums)
    return number * session.events + stop


def _counted(keys: list[bytes], columns: Sequence[str]) -> Iterator[tuple[bytes, dict[str, int]]]:
    """What these columns count of each text."""
    for first in range(0, len(keys), FETCHED):
        bodies = list(Payload.objects.filter(sha256__in=keys[first : first + FETCHED]).values_list("sha256", "body"))
        for key, body in bodies:
            texts = [part_text(part) for part in loading.load_content(body).parts]
            yield (
                bytes(key),
                {column: sum(COUNTERS[name](texts)) for name, column in NAMES.items() if column in columns},
            )


class _Tokenizers:
    """The tokenizers that this process has loaded, 54 MB and 22 MB."""

    def __init__(self) -> None:
        self._loaded: set[str] = set()

    def use(self, *columns: str) -> None:
        """Make room for those of these columns, where others are loaded."""
        if not self._loaded <= set(columns):
            memory.release()
            self._loaded.clear()
        self._loaded |= ENCODINGS.keys() & set(columns)


_TOKENIZERS = _Tokenizers()


def _joined(session: Session) -> dict[str, Ints] | None:
    """The counts of every event in order; None where one is missing."""
    events, counts = (connection.ops.quote_name(model._meta.db_table) for model in (Event, TextCount))
    statement = (
        f"SELECT c.o200k, c.cl100k, c.chars4, c.bytes4 FROM {events} e JOIN {counts} c ON c.sha256 = e.payload_id "
        "WHERE c.project_id = %s AND e.session_id = %s AND e.seq >= %s AND e.seq < %s ORDER BY e.seq"
    )
    owner = Event._meta.get_field("session").get_db_prep_value(session.pk, connection)
    parts = [np.zeros((0, len(COLUMNS)), dtype=np.int64)]
    with connection.cursor() as cursor:
        for start in range(0, session.events, READ_EVENTS):
            cursor.execute(statement, [session.project_id, owner, start, start + READ_EVENTS])
            parts.append(np.array(cursor.fetchall(), dtype=np.int64).reshape(-1, len(COLUMNS)))
    rows = np.concatenate(parts)
    whole = len(rows) == session.events and not (rows == NOT_COUNTED).any()
    return dict(zip(COLUMNS, rows.T, strict=True)) if whole else None


def _search_settings(session: Session, state: Estimate) -> None:
    """What would have avoided its findings, with the error just measured, before a person asks; of a long session only
    when one does."""
    if session.calls > avoiding.SEARCHED_CALLS:
        return
    try:
        avoiding.search_whole(session, lambda done: None)
    except DatabaseError:
        raise
    except Exception:  # the counts are stored, and its page searches again when a person asks
        if _is_current(state):
            log.exception("no settings were searched for session %s", session.pk)


# ---- measuring


def _measured(session: Session, state: Estimate, look: _Look) -> EstimationResult:
    storing.ensure_current(session)
    ledger = loading.load_ledger(session)
    if ledger.usage_ratio is not None or not (ledger.steps["prompt_tokens"] > 0).any():
        return EstimationResult()
    columns, parts = counts_of(state.tokenizer or b""), _under_way.of(session)
    forecasts = parts("forecast", lambda: forecast(ledger, look))
    between = parts("interpolation", lambda: interpolate(ledger, each=look))
    weighed: dict[str, Errors] = {}
    for column, name in ENCODINGS.items():
        known = parts(name, partial(interpolate, ledger, columns[column], look, stretches=False)).overall
        weighed |= {name: known} if known is not None else {}
    head = loading.load_head(session)
    estimators = {}
    for name, column in NAMES.items():
        look()
        if session.events > LONG_EVENTS:
            _TOKENIZERS.use(column)
        estimators[name] = given_errors(ledger, request_counts(head, ledger, COUNTERS[name], columns[column]))
    observed = observe(session)
    return EstimationResult(
        forecast=forecasts,
        interpolated=between.overall,
        between=between.between,
        weighed=weighed,
        by_kind=between.by_kind,
        by_method=between.by_method,
        stretches=between.stretches,
        estimators=estimators,
        heuristic=_errors_of(ledger, observed.columns["heuristic_sent"]),
        calibrated=_errors_of(ledger, observed.columns["calibrated"], following=True),
        points=_points(ledger, observed.columns["heuristic_sent"]),
    )


class MeasuredParts:
    """The parts of one measurement that are done, so that one which makes way for an import repeats only the last."""

    def __init__(self) -> None:
        self._key: tuple[Any, int] | None = None
        self._done: dict[str, Any] = {}

    def of(self, session: Session) -> MeasuredParts:
        """The parts of this session; those of another one, or of an older revision, are dropped."""
        key = (session.pk, session.revision)
        if key != self._key:
            self._key, self._done = key, {}
        return self

    def __call__(self, name: str, work: Callable[[], T]) -> T:
        """The part of this name, computed where it is not done yet."""
        if name not in self._done:
            self._done[name] = work()
        result: T = self._done[name]
        return result


_under_way = MeasuredParts()


class _Look:
    """Raises _EstimateYields when another job waits."""

    def __init__(self, every: float) -> None:
        self.every = every
        self.next = time.monotonic() + every

    def __call__(self) -> None:
        if time.monotonic() < self.next:
            return
        if queue.others_wait(PRIORITY):
            raise _EstimateYields
        self.next = time.monotonic() + self.every


def _errors_of(ledger: Ledger, said: Ints, *, following: bool = False) -> Errors | None:
    """Errors of what was said of each call. `following`: of the calls that have one before them in the same stretch;
    the others are decided on the count of a request that a compaction has replaced."""
    recorded, epoch = ledger.steps["prompt_tokens"], ledger.steps["epoch"]
    steps = np.flatnonzero(recorded > 0)
    if following:
        steps = steps[1:][epoch[steps[1:]] == epoch[steps[:-1]]]
    return errors(recorded, said, steps[said[steps] > 0])


def _points(ledger: Ledger, heuristic: Ints) -> Points:
    """The calls to draw: spread evenly, with those among them whose ratio is lowest and highest."""
    recorded = ledger.steps["prompt_tokens"]
    steps = np.flatnonzero((recorded > 0) & (heuristic > 0))
    if not len(steps):
        return Points([], [], [])
    ratio = recorded[steps] / heuristic[steps]
    ends = steps[[int(np.argmin(ratio)), int(np.argmax(ratio))]]
    shown = np.unique(np.concatenate([thinned(steps, MOST_POINTS - len(ends)), ends]))
    return Points(shown.tolist(), recorded[shown].tolist(), heuristic[shown].astype(np.int64).tolist())


TOKEN_COUNTS = SlicedJob(
    kind="count_tokens",
    pending=pending,
    work_on=take_step,
    priority=PRIORITY,
    dead_after=timedelta(minutes=10),  # measuring a long session takes ten seconds
)
