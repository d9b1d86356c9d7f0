"""The stress gallery: scenarios played under guards, as a job; one table row for each scenario and guard."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from functools import cache
from itertools import repeat
from typing import Any, NamedTuple
from uuid import uuid4

import msgspec
import numpy as np
import zstandard
from django.db import transaction
from django.utils import timezone

from guard_core import __version__
from guard_core.errors import GuardError, UnknownName
from guard_core.ledger import Ledger
from guard_core.policies import POLICIES, get_policy
from guard_core.policies.base import Policy
from guard_core.policies.contextguard.settings import PROFILES
from guard_core.recordings import native
from guard_core.replay import replay
from guard_core.simulator.flow import Simulation, play
from guard_core.simulator.running import count_injections, loop_lengths
from guard_core.simulator.scenarios import SCENARIOS, Scenario
from guard_core.summaries.sizes import FixedSummaries
from guard_core.trace import Trace
from inspector.figures.sparkline import Trend, trend
from inspector.models import Import
from inspector.models.gallery import GalleryRun
from inspector.services.importing import submit
from inspector.services.uploads import receive

LEASE = timedelta(seconds=15)  # a worker that says nothing for so long is taken to be dead
MAX_ATTEMPTS = 3
NOTE_EVERY = 0.1  # seconds between two notes of progress
KEPT_RUNS = 40  # older results are dropped; they can be made again at any time
CANCELLED = "Cancelled. The scenarios played so far were not kept."
UNDER_WAY = (GalleryRun.State.RECEIVED, GalleryRun.State.RUNNING)


class Guard(NamedTuple):
    """A policy and its profile; "" for a policy that has none."""

    policy: str
    profile: str

    @property
    def name(self) -> str:
        return f"{self.policy}/{self.profile}" if self.profile else self.policy


class Need(msgspec.Struct, frozen=True):
    """One thing that a scenario requires; `met` is None where it is not judged."""

    words: str
    met: bool | None
    found: str = ""


class Row(msgspec.Struct, frozen=True, omit_defaults=True):
    """One scenario under one guard. Tokens are modelled prompt tokens; steps count from 0 over all simulations."""

    scenario: str
    policy: str
    profile: str
    steps: int
    compactions: int
    injections: int  # steps that only put an old summary in again
    peak: int
    overflow_steps: int
    loops: int
    loop_steps: int
    trend: Trend
    compaction_steps: tuple[int, ...] = ()
    needs: tuple[Need, ...] = ()
    first_overflow: int | None = None

    @property
    def unmet(self) -> bool:
        return any(need.met is False for need in self.needs)

    @property
    def fails(self) -> bool:
        return bool(self.overflow_steps or self.loops or self.unmet)


# ---- what can be chosen


@cache
def profiles_of(policy: str) -> tuple[str, ...]:
    """The profiles that a policy knows, its default first; none for a policy without profiles."""
    default = str(getattr(get_policy(policy).settings, "profile", ""))
    if not default:
        return ()
    return (default, *(name for name in (*PROFILES, "seed") if name != default and _knows(policy, name)))


def _knows(policy: str, profile: str) -> bool:
    try:
        get_policy(policy, profile=profile)
    except GuardError:
        return False
    return True


def guards(policies: Iterable[str], profiles: Iterable[str]) -> tuple[Guard, ...]:
    """Every chosen policy under every chosen profile it knows, else under its default. Raises UnknownName."""
    chosen, wanted = set(policies), set(profiles)
    if unknown := sorted(chosen.difference(POLICIES)):
        raise UnknownName(f"there is no policy {unknown[0][:40]!r}; known are {', '.join(POLICIES)}")
    if unknown := sorted(wanted.difference(all_profiles())):
        raise UnknownName(f"there is no profile {unknown[0][:40]!r}; known are {', '.join(all_profiles())}")
    return tuple(guard for policy in POLICIES if policy in chosen for guard in _of_policy(policy, wanted))


def _of_policy(policy: str, wanted: set[str]) -> Iterator[Guard]:
    known = profiles_of(policy)
    order = [name for name in all_profiles() if name in known and name in wanted]
    for profile in order or known[:1] or ("",):
        yield Guard(policy, profile)


@cache
def all_profiles() -> tuple[str, ...]:
    """The profiles of all policies, each once."""
    found = {name for policy in POLICIES for name in profiles_of(policy)}
    return tuple(name for name in (*PROFILES, "seed") if name in found)


def make_policy(guard: Guard) -> Policy:
    """The policy of a guard."""
    return get_policy(guard.policy, **({"profile": guard.profile} if guard.profile else {}))


# ---- playing


def ledger_of(simulation: Simulation) -> Ledger:
    """The ledger of what a simulation plays."""
    return Ledger.of(play(simulation).session)


def play_trace(simulation: Simulation, guard: Guard, ledger: Ledger | None = None) -> Trace:
    """A simulation under a guard. As in the source's simulator, the continuation names no request."""
    made = FixedSummaries(simulation.summary_bytes)
    played = ledger or ledger_of(simulation)
    return replay(played, make_policy(guard), window=simulation.window, summarizer=made, request="")


def rows_for(scenario: Scenario, chosen: Iterable[Guard]) -> list[Row]:
    """A scenario under every guard; it is played once."""
    ledgers = [ledger_of(simulation) for simulation in scenario.simulations]
    return [row_of(scenario, guard, ledgers) for guard in chosen]


def row_of(scenario: Scenario, guard: Guard, ledgers: Iterable[Ledger]) -> Row:
    """A scenario's simulations under a guard, added up."""
    traces = [play_trace(*pair) for pair in zip(scenario.simulations, repeat(guard), ledgers, strict=False)]
    columns = {name: np.concatenate([trace.columns[name] for trace in traces]) for name in traces[0].columns}
    tokens, over = columns["modelled_prompt_tokens"], columns["overflow"]
    loops = [length for trace in traces for length in loop_lengths(trace)]
    threshold, window = int(columns["threshold"].max(initial=-1)), scenario.simulations[0].window
    counted = sum(map(count_injections, traces))
    put_in = (columns["heuristic_sent"] < columns["heuristic_built"]) & (columns["summary_bytes"] > 0)
    first = np.flatnonzero(over)
    return Row(
        scenario=scenario.name,
        policy=guard.policy,
        profile=guard.profile,
        steps=len(tokens),
        compactions=sum(len(trace.compactions) for trace in traces),
        injections=int((put_in & (columns["fired"] == 0)).sum()),
        peak=int(tokens.max(initial=0)),
        overflow_steps=int(over.sum()),
        loops=len(loops),
        loop_steps=sum(loops),
        trend=trend(tokens, columns["fired"], over, threshold=threshold, window=window),
        compaction_steps=tuple(np.flatnonzero(columns["fired"])[:8].tolist()),
        needs=needs_of(scenario, guard, counted, int(over.sum()), max(loops, default=0)),
        first_overflow=int(first[0]) if len(first) else None,
    )


def needs_of(scenario: Scenario, guard: Guard, counted: int, overflows: int, loop: int) -> tuple[Need, ...]:
    """What the source's test asserts, judged; its check for loops is replaced by a real one."""
    expected = scenario.expected
    judged = not (guard.profile in ("tail", "early") and scenario.since == "current")
    needs = []
    if expected.no_overflow:
        needs.append(Need("no overflow", overflows == 0, f"{overflows} found" if overflows else ""))
    if expected.injections:
        enough = counted >= expected.injections
        needs.append(Need(f"summary in ≥ {expected.injections} requests", enough, f"in {counted}"))
    if expected.no_loop:
        needs.append(Need("no loop", loop == 0, f"{loop} in a row" if loop else ""))
    return tuple(need if judged else msgspec.structs.replace(need, met=None) for need in needs)


# ---- the job


@cache
def engine_key() -> str:
    """What a result depends on beside the choice: the engine's version and the scenarios."""
    digest = hashlib.sha256(msgspec.msgpack.encode(list(SCENARIOS.values())))
    return f"{__version__}-{digest.hexdigest()[:16]}"


def choice_key(chosen: Iterable[Guard]) -> str:
    return " ".join(guard.name for guard in chosen)


def guards_of(run: GalleryRun) -> tuple[Guard, ...]:
    return tuple(Guard(*name.partition("/")[::2]) for name in run.choice.split())


def latest_run(chosen: Iterable[Guard], *states: str) -> GalleryRun | None:
    """The newest run of a choice, by state if wanted; results of another engine do not count."""
    found = GalleryRun.objects.filter(choice=choice_key(chosen), engine=engine_key())
    return (found.filter(state__in=states) if states else found).order_by("-created").first()


def start_run(chosen: tuple[Guard, ...]) -> GalleryRun:
    """The run under way for this choice, the result that is there, or a new job."""
    from inspector.tasks import play_gallery

    known = latest_run(chosen, *UNDER_WAY, GalleryRun.State.DONE)
    if known is not None:
        return known
    with transaction.atomic():
        run = GalleryRun.objects.create(choice=choice_key(chosen), engine=engine_key(), total=len(SCENARIOS))
        play_gallery.enqueue(str(run.pk))
    return run


def cancel_run(run: GalleryRun) -> None:
    """End a run now. A worker that plays it notices at its next scenario and cannot store anything any more."""
    GalleryRun.objects.filter(pk=run.pk, state__in=UNDER_WAY).update(
        state=GalleryRun.State.CANCELLED, message=CANCELLED, finished=timezone.now()
    )


def recover_runs() -> int:
    """Take runs back from workers that died: again into the queue, or failed after MAX_ATTEMPTS."""
    stale = GalleryRun.objects.filter(state=GalleryRun.State.RUNNING, heartbeat__lt=timezone.now() - LEASE)
    return sum(_take_back(run) for run in stale)


def _take_back(run: GalleryRun) -> bool:
    mine = GalleryRun.objects.filter(pk=run.pk, state=GalleryRun.State.RUNNING, lease=run.lease)
    if run.attempts >= MAX_ATTEMPTS:
        message = f"The worker died {run.attempts} times while it played the scenarios. Play them again to retry."
        return bool(mine.update(state=GalleryRun.State.FAILED, message=message, finished=timezone.now()))
    return _queue_again(run, mine)


def _queue_again(run: GalleryRun, mine: Any) -> bool:
    from inspector.tasks import play_gallery

    with transaction.atomic():
        if not mine.update(state=GalleryRun.State.RECEIVED, lease="", done=0):
            return False
        play_gallery.enqueue(str(run.pk))
    return True


class _Ended(Exception):
    """The run was cancelled, or another worker took it over."""


def run_gallery(run_id: str) -> None:
    """Play all scenarios of a run and store the table. Does nothing when another worker has the run."""
    lease = uuid4().hex
    free = GalleryRun.objects.filter(pk=run_id, state=GalleryRun.State.RECEIVED)
    if not free.update(state=GalleryRun.State.RUNNING, lease=lease, heartbeat=timezone.now(), done=0):
        return
    run = GalleryRun.objects.get(pk=run_id)
    mine = GalleryRun.objects.filter(pk=run_id, state=GalleryRun.State.RUNNING, lease=lease)
    mine.update(attempts=run.attempts + 1)
    try:
        rows = play_all(guards_of(run), _noter(mine))
        mine.update(
            state=GalleryRun.State.DONE, done=run.total, result=packed(rows), message="", finished=timezone.now()
        )
        _drop_old()
    except _Ended:
        return
    except GuardError as error:
        mine.update(state=GalleryRun.State.FAILED, message=str(error)[:2_000], finished=timezone.now())
    except MemoryError:
        message = "There was not enough memory to play the scenarios."
        mine.update(state=GalleryRun.State.FAILED, message=message, finished=timezone.now())
    except Exception:
        message = "This is our mistake: a scenario could not be played. The log of the server tells more."
        mine.update(state=GalleryRun.State.FAILED, message=message, finished=timezone.now())
        raise
    except BaseException:  # the worker is asked to end: hand the run back
        _queue_again(run, mine)
        raise


def play_all(chosen: tuple[Guard, ...], note: Callable[[int], None] = lambda done: None) -> list[Row]:
    """All scenarios under all guards; `note` hears how many scenarios are done."""
    rows: list[Row] = []
    for done, scenario in enumerate(SCENARIOS.values(), 1):
        rows += rows_for(scenario, chosen)
        note(done)
    return rows


def _noter(mine: Any) -> Callable[[int], None]:
    noted = time.monotonic()

    def note(done: int) -> None:
        nonlocal noted
        if time.monotonic() - noted < NOTE_EVERY:
            return
        noted = time.monotonic()
        if not mine.update(done=done, heartbeat=timezone.now()):
            raise _Ended

    return note


def _drop_old() -> None:
    kept = GalleryRun.objects.order_by("-created").values_list("pk", flat=True)[:KEPT_RUNS]
    GalleryRun.objects.exclude(pk__in=list(kept)).exclude(state__in=UNDER_WAY).delete()


def packed(rows: list[Row]) -> bytes:
    return zstandard.compress(msgspec.json.encode(rows))


def rows_of(run: GalleryRun | None) -> list[Row]:
    """The table of a run that is done; nothing for any other."""
    if run is None or run.state != GalleryRun.State.DONE or run.result is None:
        return []
    return msgspec.json.decode(zstandard.decompress(bytes(run.result)), type=list[Row])


# ---- a scenario as a session


def open_scenario(scenario: Scenario) -> Import:
    """The import of a scenario's sessions through the normal pipeline; the same scenario is the same recording."""
    many = len(scenario.simulations) > 1
    sessions = [
        play(simulation, title=f"{scenario.name}, part {number}" if many else scenario.name).session
        for number, simulation in enumerate(scenario.simulations, 1)
    ]
    return submit(receive(native.write_all(sessions), f"{scenario.name}.jsonl"))


def open_simulation(simulation: Simulation, title: str) -> Import:
    """The import of one simulation, made in the form."""
    return submit(receive([native.write(play(simulation, title=title).session)], f"{title}.jsonl"))
