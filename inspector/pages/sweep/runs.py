"""The jobs of a sweep: one slice per session, in blocks of settings, taken by whatever worker is free.

A slice stores what it has done every few seconds and makes way for jobs that go first, so that a worker which dies or
is needed elsewhere loses little.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import msgspec
import zstandard
from django.db import transaction
from django.db.models import Count, Q, QuerySet, Sum
from django.db.models.functions import Now
from django.utils import timezone

from guard_core import defaults
from guard_core.errors import GuardError
from guard_core.findings.facts import Facts
from guard_core.summaries.sizes import FixedSummaries
from guard_core.sweep import Figures, GridCell, Priced, SweepResult, judged, session_cells
from inspector.jobs import queue
from inspector.jobs.leased import LEASE, LeasedJob
from inspector.models import Project, Session, Sweep, SweepSlice
from inspector.pages.sweep.question import Question
from inspector.replays.analysis import facts_of, window_of
from inspector.replays.choice import Choice
from inspector.replays.comparing import rules_of
from inspector.storage import deleting, storing
from inspector.storage.byte_cache import ByteCache

PRIORITY = -10  # below every import, above what no page waits for
STORE_EVERY = 2.0  # seconds between two notes of what is done
BLOCK = 256  # settings that lanes run at once
REPLAYS_AT_ONCE = 8  # settings of other policies between two looks for jobs that go first
OUR_MISTAKE = "An internal error stopped the replay; see the server log."
CACHE_BYTES = 40_000_000  # of results in a process
BYTES_A_FIGURE = 400  # about: what one setting of one session takes in memory


class SliceResult(msgspec.Struct):
    """What one session gives: its window and its model calls, the figures of the first so many settings, and whether
    its window is an assumption, or disproved by what was answered."""

    window: int
    steps: int
    figures: list[Figures]
    assumed: bool = False
    disproved: bool = False

    @classmethod
    def of(cls, facts: Facts, window: int, *, by_own: bool) -> SliceResult:
        """Nothing yet of a session, in a window that is its own (`by_own`) or was chosen for the sweep."""
        own = facts.window
        return cls(window, facts.ledger.step_count, [], by_own and own.is_unsure, by_own and not own.judges_replays)


class SweepProgress(msgspec.Struct, frozen=True):
    """How far a sweep is, in replays and in sessions."""

    done: int
    total: int
    sessions_done: int
    sessions: int
    left_out: int
    cancelled: int
    waiting: int

    @property
    def percent(self) -> int:
        return min(100, self.done * 100 // self.total) if self.total else 0

    @property
    def under_way(self) -> bool:
        return self.waiting > 0


def start(project: Project, question: Question, sessions: Sequence[Session]) -> Sweep:
    """A new sweep and its jobs, in one transaction."""
    with transaction.atomic():
        sweep = Sweep.objects.of(project).create(
            question=msgspec.json.encode(question), name=question.words()[:200], cells=len(question.points)
        )
        slices = SweepSlice.objects.of(project)
        for ordinal, session in enumerate(sessions):
            row = slices.create(
                sweep=sweep,
                ordinal=ordinal,
                session_key=session.pk,
                title=session.title[:200],
                recording=session.recording.sha256,
            )
            SWEEP_SLICES.enqueue(row)
    return sweep


def question_of(sweep: Sweep) -> Question:
    """The question that a sweep stores."""
    return msgspec.json.decode(bytes(sweep.question), type=Question)


def slices_of(sweep: Sweep) -> QuerySet[SweepSlice]:
    """The slices of a sweep, in their order."""
    return SweepSlice.objects.of(sweep.project_id).filter(sweep=sweep).order_by("ordinal")


def progress_of(sweep: Sweep) -> SweepProgress:
    """How far the slices of a sweep are."""
    state = SweepSlice.State
    sums = slices_of(sweep).aggregate(
        sessions=Count("pk"),
        done=Sum("done"),
        finished=Count("pk", filter=Q(state=state.DONE)),
        failed=Count("pk", filter=Q(state=state.FAILED)),
        cancelled=Count("pk", filter=Q(state=state.CANCELLED)),
        waiting=Count("pk", filter=Q(state__in=SweepSlice.UNDER_WAY)),
    )
    total = sums["sessions"] * sweep.cells
    return SweepProgress(
        sums["done"] or 0, total, sums["finished"], sums["sessions"], sums["failed"], sums["cancelled"], sums["waiting"]
    )


def sweeps_of(project: Project) -> QuerySet[Sweep]:
    """The sweeps of a project that were not deleted."""
    return Sweep.objects.of(project).filter(deleted=None)


def delete(sweep: Sweep) -> str:
    """End a sweep and take it off the list; the key of the undo."""
    cancel(sweep)
    moment = timezone.now()
    with transaction.atomic():
        Sweep.objects.row(sweep).update(deleted=moment)
        deleting.purge_after(moment, str(sweep.pk))
    return deleting.key_of(moment)


def restore(project: Project, key: str) -> int:
    """Bring back the sweep of a deletion; how many that are."""
    return deleted_by(project, key).update(deleted=None)


def deleted_by(project: Project, key: str) -> QuerySet[Sweep]:
    """The sweep of a deletion that is still there."""
    moment = deleting.moment_of(key)
    sweeps = Sweep.objects.of(project)
    return sweeps.none() if moment is None else sweeps.filter(deleted=moment)


def cancel(sweep: Sweep) -> None:
    """End a sweep now. A worker at a slice notices at its next note and cannot store anything any more."""
    waiting = slices_of(sweep).filter(state__in=SweepSlice.UNDER_WAY)
    waiting.update(state=SweepSlice.State.CANCELLED, finished=timezone.now())


class SweepSlices(LeasedJob[SweepSlice]):
    """The jobs that replay one session each."""

    kind = "sweep_session"
    model = SweepSlice
    silence = LEASE
    fresh = {}
    begun = {}
    priority = PRIORITY
    priority_again = PRIORITY

    def give_up(self, row: SweepSlice, mine: QuerySet[SweepSlice]) -> bool:
        message = f"The worker died {row.attempts} times while replaying this session."
        return bool(mine.update(state=SweepSlice.State.FAILED, message=message, finished=timezone.now()))


SWEEP_SLICES = SweepSlices()


def run_slice(slice_id: str, store_every: float = STORE_EVERY, block: int = BLOCK) -> None:
    """Replay the settings of a slice that are not done yet, and store their figures. Does nothing when another worker
    has the slice. It makes way for jobs that go first: the rest is queued again.

    `store_every`: seconds between two notes; `block`: settings at once.
    """
    lease = SWEEP_SLICES.take(slice_id)
    if not lease:
        return
    row, mine = SweepSlice.unscoped.select_related("sweep").get(pk=slice_id), SWEEP_SLICES.held(slice_id, lease)
    failed: dict[str, Any] = {"state": SweepSlice.State.FAILED, "finished": timezone.now()}
    try:
        _work(row, mine, store_every, block)
    except _SliceEnded:
        return
    except _SliceYields:
        SWEEP_SLICES.hand_back(slice_id)
    except GuardError as error:
        mine.update(message=str(error)[:2_000], **failed)
    except MemoryError:
        mine.update(message="There was not enough memory to replay this session.", **failed)
    except Exception:
        mine.update(message=OUR_MISTAKE, **failed)
        raise


class _SliceEnded(Exception):
    """The sweep was cancelled or deleted, or another worker took the slice over."""


class _SliceYields(Exception):
    """Another job goes first."""


class _Gone(GuardError):
    """The session of a slice is not there any more."""


def _work(row: SweepSlice, mine: QuerySet[SweepSlice], store_every: float, block: int) -> None:
    session = Session.objects.of(row.project_id).filter(pk=row.session_key, deleted=None).first()
    if session is None:
        raise _Gone("The session was deleted before it was replayed.")
    question = question_of(row.sweep)
    storing.ensure_current(session)
    facts = facts_of(session)
    base = question.window or window_of(session, Choice()).value
    points = question.points
    by_own = not question.window and "window" not in question.grid_axes
    at_once = REPLAYS_AT_ONCE if question.measure.priced or question.kind.lanes is None else block
    result = _begun(row, SliceResult.of(facts, base, by_own=by_own))
    noted = time.monotonic()
    simulated = facts.ledger.usage_ratio is not None
    summarizer = FixedSummaries(defaults.SUMMARY_BYTES) if simulated else None  # as a page replays it

    def look(done: int) -> None:
        """Say that the job lives and hear whether it was cancelled, now and then within a block, too."""
        nonlocal noted
        if time.monotonic() - noted < store_every:
            return
        noted = time.monotonic()
        if not mine.update(done=len(result.figures), result=packed(result), heartbeat=Now()):
            raise _SliceEnded

    priced = Priced.of(facts, rules_of(session, facts, look)) if question.measure.priced else None
    while len(result.figures) < len(points):
        first = len(result.figures)
        cells = session_cells(
            facts.ledger,
            points[first : first + at_once],
            window=base,
            policy=question.policy,
            settings=question.fixed,
            usage=facts.usage,
            summarizer=summarizer,
            made_with=facts.made_with,
            priced=priced,
            limits=facts.limits,
            each=look,
        )
        result.figures += [figures for cell in cells for figures in cell.figures]
        look(len(result.figures))
        if len(result.figures) < len(points) and queue.others_wait(PRIORITY):
            if not mine.update(done=len(result.figures), result=packed(result)):
                raise _SliceEnded
            raise _SliceYields
    mine.update(
        state=SweepSlice.State.DONE, done=len(points), result=packed(result), message="", finished=timezone.now()
    )


def _begun(row: SweepSlice, fresh: SliceResult) -> SliceResult:
    """What an earlier worker stored of a slice, where the session is still the same; else nothing yet."""
    if row.result is None:
        return fresh
    known = unpacked(bytes(row.result))
    return known if (known.window, known.steps) == (fresh.window, fresh.steps) else fresh


def packed(result: SliceResult) -> bytes:
    """The figures of a slice as they are stored."""
    return zstandard.compress(msgspec.msgpack.encode(result))


def unpacked(body: bytes) -> SliceResult:
    """The figures of a slice."""
    return msgspec.msgpack.decode(zstandard.decompress(body), type=SliceResult)


class EndedSweep(msgspec.Struct, frozen=True):
    """A sweep that has ended: its cells, judged, and the sessions they are from. `left_out` are those that could not be
    replayed, each with the reason."""

    question: Question
    result: SweepResult
    sessions: tuple[tuple[str, str], ...]  # key, title
    left_out: tuple[tuple[str, str], ...]  # title, reason


def ended(sweep: Sweep, progress: SweepProgress | None = None) -> EndedSweep | None:
    """The answer of a sweep; None as long as it is under way, and where it has none."""
    known = progress or progress_of(sweep)
    return None if known.under_way or known.cancelled else answer_of(sweep)


def answer_of(sweep: Sweep) -> EndedSweep | None:
    """The answer of a sweep whose slices have all ended; None where it was cancelled, or nothing could be replayed."""
    return _cache.get(str(sweep.pk), lambda: _answer(sweep))


_cache: ByteCache[EndedSweep | None] = ByteCache(
    CACHE_BYTES,
    lambda answer: 1_000 if answer is None else BYTES_A_FIGURE * len(answer.result.cells) * len(answer.sessions),
)


def _answer(sweep: Sweep) -> EndedSweep | None:
    rows = list(slices_of(sweep))
    whole = [row for row in rows if row.state == SweepSlice.State.DONE and row.result is not None]
    if not whole or any(row.state == SweepSlice.State.CANCELLED for row in rows):
        return None
    question = question_of(sweep)
    points = question.points
    slices = [unpacked(bytes(row.result or b"")) for row in whole]
    result = judged(
        question.grid_axes,
        [_column(points, item) for item in slices],
        [item.steps for item in slices],
        by=question.measure,
        recordings=[row.recording for row in whole],
        titles=[row.title for row in whole],
        assumed=[item.assumed for item in slices],
        disproved=[item.disproved for item in slices],
    )
    return EndedSweep(
        question,
        result,
        tuple((str(row.session_key), row.title) for row in whole),
        tuple((row.title, row.message) for row in rows if row.state == SweepSlice.State.FAILED),
    )


def _column(points: list[dict[str, Any]], item: SliceResult) -> list[GridCell]:
    """The cells of one session, each with its window in tokens: that of the axis, else the session's."""
    windows = [int(point.get("window", item.window)) for point in points]
    return [
        GridCell(*cell)
        for cell in zip(points, ((size,) for size in windows), ((f,) for f in item.figures), strict=True)
    ]
