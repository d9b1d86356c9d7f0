"""The worker process: takes jobs from the database as soon as they are there, and takes back those of dead workers.

Started by the server it hears about a new job through a pipe on its standard input, so that a small file is taken up
within milliseconds; alone (team mode) it looks twice a second. The end of the pipe means that the server is gone.
"""

from __future__ import annotations

import gc
import logging
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from types import FrameType
from typing import Any

log = logging.getLogger(__name__)

LOOK_EVERY = 0.5  # seconds, where nobody wakes the worker
LOOK_EVERY_PIPED = 2.0  # seconds; a lost wake-up costs this delay
RECOVER_EVERY = 2.0  # seconds between two looks for imports of dead workers
GARBAGE_EVERY = 50_000  # new objects; a long file is hundreds of thousands of values that hold no cycles
HEARTBEAT_EVERY = 3.0  # seconds; well under importing.LEASE


class Stop(BaseException):
    """The process was asked to end: whatever runs is undone and handed back."""


class Bell:
    """Rings when a byte comes through the pipe, and for ever when the pipe ends."""

    def __init__(self, piped: bool) -> None:
        self.piped = piped
        self.ended = False
        self._rung = threading.Event()
        if piped:
            threading.Thread(target=self._listen, daemon=True).start()

    def wait(self) -> None:
        self._rung.wait(LOOK_EVERY_PIPED if self.piped else LOOK_EVERY)
        self._rung.clear()

    def _listen(self) -> None:
        while os.read(0, 4096):
            self._rung.set()
        self.ended = True
        self._rung.set()


def main(piped: bool = False) -> int:
    """Work until asked to stop; 0."""
    import django

    django.setup()
    signal.signal(signal.SIGTERM, _stop)
    signal.signal(signal.SIGINT, signal.SIG_IGN if piped else _stop)  # Ctrl-C goes to the server, which ends its worker
    bell = Bell(piped)
    gc.set_threshold(GARBAGE_EVERY, 20, 50)
    _load_ahead()
    with suppress(Stop):
        _work(bell)
    return 0


_stopping = threading.Event()


def _stop(signum: int, frame: FrameType | None) -> None:
    _stopping.set()
    raise Stop


def _load_ahead() -> None:
    """Import what the first job would otherwise wait for."""
    import genai_prices  # noqa: F401

    import inspector.tasks  # noqa: F401


def _work(bell: Bell) -> None:
    from django.db import Error, connections

    from inspector.services.gallery import recover_runs
    from inspector.services.importing import recover_imports

    recovered = 0.0
    while not bell.ended:
        try:
            if time.monotonic() - recovered >= RECOVER_EVERY:
                recover_imports()
                recover_runs()
                recovered = time.monotonic()
            run_ready_tasks()
        except Error:
            log.warning("the database does not answer; trying again", exc_info=True)
            connections.close_all()  # one that is stuck in a lock would stay stuck
            time.sleep(1)
        bell.wait()


def run_ready_tasks() -> None:
    """Run every job that waits, one after the other."""
    from django.utils.crypto import get_random_string
    from django_tasks_db.management.commands.db_worker import Worker

    from inspector.services.importing import hand_back

    class Runner(Worker):
        def run_task(self, db_task_result: Any) -> None:
            job_id = next(iter(db_task_result.args_kwargs["args"]), "")
            with Heartbeat(job_id):
                super().run_task(db_task_result)
            if _stopping.is_set():  # the task was broken off: django-tasks took the exception for a failure of the task
                hand_back(job_id)
                raise Stop

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
    """While a job runs, says so every HEARTBEAT_EVERY seconds, whatever the job is busy with."""

    def __init__(self, job_id: str) -> None:
        self.job_id = job_id
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()

    def _beat(self) -> None:
        from django.db import Error, connection
        from django.utils import timezone

        from inspector.models import Import

        while not self._over.wait(HEARTBEAT_EVERY):
            try:
                running = Import.objects.filter(pk=self.job_id, state=Import.State.RUNNING)
                running.update(heartbeat=timezone.now())
            except Error:  # SQLite's one writer may be this very job, storing: the lock then speaks for it
                continue
        connection.close()


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "inspector.settings")
    sys.exit(main(piped="--piped" in sys.argv))
