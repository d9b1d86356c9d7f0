"""Runs of the stress gallery: all scenarios under a choice of guards, as a job with progress and a lease."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import msgspec
import zstandard
from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from guard_core import __version__
from guard_core.errors import GuardError
from guard_core.recordings.formats import native
from guard_core.simulator.flow import Simulation, play
from guard_core.simulator.scenario import Scenario
from guard_core.simulator.scenarios import SCENARIOS
from inspector.ingest.submitting import submit
from inspector.ingest.uploads import receive
from inspector.jobs.leased import LEASE, LeasedJob
from inspector.models import Import, Project
from inspector.models.gallery import GalleryRun
from inspector.pages.gallery.table import PolicyChoice, ResultRow, rows_for

NOTE_EVERY = 0.1  # seconds between two notes of progress
KEPT_RUNS = 40  # older results are dropped; they can be made again at any time
CANCELLED = "Cancelled. The scenarios run so far were not stored."
SHAPE = 2  # of a stored row; raise it when rows change, so that older results are made again


@cache
def engine_key() -> str:
    """What a result depends on beside the choice: the engine's version and the scenarios."""
    digest = hashlib.sha256(msgspec.msgpack.encode(list(SCENARIOS.values())))
    return f"{__version__}-{SHAPE}-{digest.hexdigest()[:16]}"


def choice_key(chosen: Iterable[PolicyChoice]) -> str:
    """The chosen policies as they are stored: "policy/profile" each, spaces between them."""
    return " ".join(guard.name for guard in chosen)


def guards_of(run: GalleryRun) -> tuple[PolicyChoice, ...]:
    """The policies that a run was for, read from its stored choice."""
    return tuple(PolicyChoice(*name.partition("/")[::2]) for name in run.choice.split())


def latest_run(project: Project, chosen: Iterable[PolicyChoice], *states: str) -> GalleryRun | None:
    """The newest run of a choice in a project, by state if wanted; results of another engine do not count."""
    runs = GalleryRun.objects.of(project).filter(choice=choice_key(chosen), engine=engine_key())
    return (runs.filter(state__in=states) if states else runs).order_by("-created").first()


def start_run(project: Project, chosen: tuple[PolicyChoice, ...]) -> GalleryRun:
    """The run under way for this choice, the result that is there, or a new job."""
    known = latest_run(project, chosen, *GalleryRun.UNDER_WAY, GalleryRun.State.DONE)
    if known is not None:
        return known
    with transaction.atomic():
        runs = GalleryRun.objects.of(project)
        run = runs.create(choice=choice_key(chosen), engine=engine_key(), total=len(SCENARIOS))
        GALLERY_RUNS.enqueue(run)
    return run


def cancel_run(run: GalleryRun) -> None:
    """End a run now. A worker that plays it notices at its next scenario and cannot store anything any more."""
    GalleryRun.objects.row(run).filter(state__in=GalleryRun.UNDER_WAY).update(
        state=GalleryRun.State.CANCELLED, message=CANCELLED, finished=timezone.now()
    )


class GalleryRuns(LeasedJob[GalleryRun]):
    """The jobs that play all scenarios."""

    kind = "play_gallery"
    model = GalleryRun
    silence = LEASE
    fresh = {"done": 0}
    begun = {"done": 0}

    def give_up(self, row: GalleryRun, mine: QuerySet[GalleryRun]) -> bool:
        message = f"The worker died {row.attempts} times while running the scenarios. Run them again to retry."
        return bool(mine.update(state=GalleryRun.State.FAILED, message=message, finished=timezone.now()))


GALLERY_RUNS = GalleryRuns()


class _RunEnded(Exception):
    """The run was cancelled, or another worker took it over."""


def run_gallery(run_id: str, scenarios: Iterable[Scenario] | None = None, note_every: float = NOTE_EVERY) -> None:
    """Play all scenarios of a run (or these) and store the table. Does nothing when another worker has the run.

    `note_every`: seconds between two notes of progress.
    """
    lease = GALLERY_RUNS.take(run_id)
    if not lease:
        return
    run, mine = GalleryRun.unscoped.get(pk=run_id), GALLERY_RUNS.held(run_id, lease)
    try:
        rows = play_all(guards_of(run), _noter(mine, note_every), scenarios)
        mine.update(
            state=GalleryRun.State.DONE, done=run.total, result=packed(rows), message="", finished=timezone.now()
        )
        _drop_old(run.project_id)
    except _RunEnded:
        return
    except GuardError as error:
        mine.update(state=GalleryRun.State.FAILED, message=str(error)[:2_000], finished=timezone.now())
    except MemoryError:
        message = "There was not enough memory to run the scenarios."
        mine.update(state=GalleryRun.State.FAILED, message=message, finished=timezone.now())
    except Exception:
        message = "An internal error stopped a scenario; see the server log."
        mine.update(state=GalleryRun.State.FAILED, message=message, finished=timezone.now())
        raise


def play_all(
    chosen: tuple[PolicyChoice, ...],
    note: Callable[[int], None] = lambda done: None,
    scenarios: Iterable[Scenario] | None = None,
) -> list[ResultRow]:
    """All scenarios (or these) under all guards; `note` hears how many scenarios are done."""
    rows: list[ResultRow] = []
    for done, scenario in enumerate(SCENARIOS.values() if scenarios is None else scenarios, 1):
        rows += rows_for(scenario, chosen)
        note(done)
    return rows


def _noter(mine: Any, every: float) -> Callable[[int], None]:
    noted = time.monotonic()

    def note(done: int) -> None:
        nonlocal noted
        if time.monotonic() - noted < every:
            return
        noted = time.monotonic()
        if not mine.update(done=done, heartbeat=Now()):
            raise _RunEnded

    return note


def _drop_old(project: int) -> None:
    """Delete the runs of a project that ended, but for those among its newest `KEPT_RUNS`."""
    runs = GalleryRun.objects.of(project)
    newest = runs.order_by("-created").values_list("pk", flat=True)[:KEPT_RUNS]
    runs.exclude(pk__in=list(newest)).exclude(state__in=GalleryRun.UNDER_WAY).delete()


def packed(rows: list[ResultRow]) -> bytes:
    """The table of a run as it is stored, compressed."""
    return zstandard.compress(msgspec.json.encode(rows))


def rows_of(run: GalleryRun | None) -> list[ResultRow]:
    """The table of a run that is done; nothing for any other."""
    if run is None or run.state != GalleryRun.State.DONE or run.result is None:
        return []
    return msgspec.json.decode(zstandard.decompress(bytes(run.result)), type=list[ResultRow])


# ---- a scenario as a session


def open_scenario(project: Project, scenario: Scenario) -> Import:
    """The import of a scenario's sessions through the normal pipeline; the same scenario is the same recording."""
    many = len(scenario.simulations) > 1
    sessions = [
        play(simulation, title=f"{scenario.name}, part {number}" if many else scenario.name).session
        for number, simulation in enumerate(scenario.simulations, 1)
    ]
    return submit(project, receive(native.write_all(sessions), f"{scenario.name}.jsonl"))


def open_simulation(project: Project, simulation: Simulation, title: str) -> Import:
    """The import of one simulation, made in the form."""
    return submit(project, receive([native.write(play(simulation, title=title).session)], f"{title}.jsonl"))
