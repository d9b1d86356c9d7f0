"""The worker process: takes jobs from the database as soon as they are there, and takes back those of dead workers.

Started by the server it hears about a new job through a pipe on its standard input, so that a small file is taken up
within milliseconds, and ends with the server; alone (team mode) it looks twice a second.
"""

from __future__ import annotations

import gc
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

from inspector.data_folder.owner import beside
from inspector.project import memory
from inspector.project.lifeline import end_with_parent
from inspector.project.structs import describe_all

log = logging.getLogger(__name__)

LOOK_EVERY = 0.5  # seconds, where nothing wakes the worker
LOOK_EVERY_PIPED = 2.0  # seconds; a lost wake-up costs this delay
GARBAGE_EVERY = 50_000  # new objects; a long file is hundreds of thousands of values that hold no cycles
HEARTBEAT_EVERY = 2.0  # seconds; a few of them may be missed before a lease runs out (jobs/leased.py)
IMPORTS = "import_recording"  # the kind of job that reads a file
IDLE_AFTER = 5  # heartbeats without a job
RENEW_FROM = 30_000_000  # bytes by which one import, or all jobs until it is idle, have grown a process: it restarts
RESUME_EVERY = 5  # heartbeats between two looks for unfinished slices
SWEEP_EVERY = 43_200  # heartbeats between two sweeps of the data folder: a day


class StopRequested(BaseException):
    """The process was asked to end: whatever runs is undone and handed back."""


class Renew(BaseException):
    """The process has grown and has no job in hand: it restarts, which gives all of its memory back."""


class Bell:
    """Rings when a byte comes through the pipe of the server; without a pipe it is only waited for."""

    def __init__(self, piped: bool) -> None:
        self._every = LOOK_EVERY_PIPED if piped else LOOK_EVERY
        self._rung = threading.Event()
        if piped:
            end_with_parent(self.ring)

    def wait(self) -> None:
        self._rung.wait(self._every)
        self._rung.clear()

    def ring(self) -> None:
        self._rung.set()


def main(piped: bool = False) -> int:
    """Work until asked to stop; 0. Raises Refused."""
    bell = Bell(piped)  # first of all: the server may be killed while this process still starts
    memory.keep_little()
    with memory.loading():
        import django  # Django is set up when the worker starts
        from django.conf import settings

        django.setup()
        import genai_prices  # noqa: F401 - both are what the first job would otherwise wait for

        import inspector.jobs.kinds  # noqa: F401

        describe_all()
    if not piped:  # else the server that started it gave it its own
        beside(Path(settings.DATA_DIR))
    os.environ["TMPDIR"] = str(settings.INCOMING_DIR)  # which is swept, if this process and its readers are killed
    signal.signal(signal.SIGTERM, _stop)
    signal.signal(signal.SIGINT, signal.SIG_IGN if piped else _stop)  # Ctrl-C goes to the server, which ends its worker
    logging.getLogger("django_tasks").addFilter(_is_news)
    gc.set_threshold(GARBAGE_EVERY, 20, 50)
    memory.note_start()
    with suppress(StopRequested):
        try:
            _work(bell)
        except Renew:
            _begin_anew()
    return 0


def _begin_anew() -> None:
    """The same process with the same standard input and locks, but without what it has in memory. A byte that was read
    from the pipe is not a loss: a process that begins looks for jobs first."""
    from django.db import connections  # Django is set up when the worker starts

    connections.close_all()
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606 - this very command


_stopping = threading.Event()


def _stop(signum: int, frame: FrameType | None) -> None:
    _stopping.set()
    raise StopRequested


def _is_news(record: logging.LogRecord) -> bool:
    """What the queue logs of a job that a stop has broken off is no failure: the job is handed back."""
    return not _stopping.is_set()


def _work(bell: Bell) -> None:
    from django.db import Error, connections  # Django is set up when the worker starts

    with Heartbeat(wake=bell.ring) as heart:
        while True:
            try:
                run_ready_tasks(heart)
            except Error:
                log.warning("the database does not answer; trying again", exc_info=True)
                connections.close_all()  # one that is stuck in a lock would stay stuck
                time.sleep(1)
            bell.wait()
            if heart.idle and memory.grown_by(RENEW_FROM):
                raise Renew


def run_ready_tasks(heart: Heartbeat) -> None:
    """Run every job that waits, one after the other."""
    from django.utils.crypto import get_random_string  # Django is set up when the worker starts
    from django_tasks_db.management.commands.db_worker import Worker

    from inspector.jobs.recovery import hand_back, take_up

    class Runner(Worker):
        def run_task(self, db_task_result: Any) -> None:
            job_id = next(iter(db_task_result.args_kwargs["args"]), "")
            heart.job_id, before = job_id, memory.resident()
            try:
                super().run_task(db_task_result)
            finally:  # a job that failed with the database has no owner: its lease must run out
                heart.job_id = ""
                memory.trim_if_grown()
            if _stopping.is_set():  # the task was broken off: django-tasks took the exception for a failure of the task
                hand_back(job_id)
                raise StopRequested
            if db_task_result.queue_name == IMPORTS and memory.resident() - before > RENEW_FROM:
                raise Renew  # the next job loads tokenizers, on top of what a long file has left behind
            take_up()

    take_up()
    Runner(
        queue_names=["*"],
        interval=0,
        batch=True,
        backend_name="default",
        startup_delay=False,
        max_tasks=None,
        worker_id=get_random_string(32),
        excluded_queue_names=[],
    ).run()


class Heartbeat:
    """Beats for as long as the process lives, whatever it is busy with.

    Every beat first says that the job in hand is alive, then takes back the jobs of dead workers: in this order, so
    that a process that was held up for longer than a lease does not take its own job away from itself. A process
    with a long queue, or in the middle of a long file, takes them back as soon as an idle one does.
    """

    def __init__(self, job_id: str = "", wake: Callable[[], None] = lambda: None) -> None:
        self.job_id = job_id
        self._wake = wake
        self._over = threading.Event()
        self._quiet = 0  # beats without a job
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Heartbeat:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()

    @property
    def idle(self) -> bool:
        """Has there been nothing to do for some time?"""
        return self._quiet >= IDLE_AFTER

    def _run(self) -> None:
        from django.db import connection  # Django is set up when the worker starts

        from inspector.project import health

        number = 0
        while not self._over.wait(HEARTBEAT_EVERY):
            health.beat()
            number += 1
            self._quiet = 0 if self.job_id else self._quiet + 1
            self.beat(resume=number % RESUME_EVERY == 0, sweep=number % SWEEP_EVERY == 1)
        connection.close()

    def beat(self, *, resume: bool = False, sweep: bool = False) -> None:
        from django.db import Error, connection  # Django is set up when the worker starts

        from inspector.data_folder import sweeping
        from inspector.jobs import recovery

        try:
            if self.job_id:
                recovery.beat(self.job_id)
            taken = recovery.recover()
            if resume:
                recovery.resume_slices()
            if sweep:
                sweeping.sweep_daily()
        except Error:  # SQLite's one writer may be this very job, storing: the lock then speaks for it
            connection.close()
            return
        except Exception:
            log.exception("the jobs of dead processes could not be reclaimed; trying again")
            return
        if taken:
            self._wake()


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "inspector.project.settings")
    sys.exit(main(piped="--piped" in sys.argv))
