"""The process of one long replay: `python -m inspector.replays TASK`, messages.Task as JSON.

It replays, saying how far it is, and then answers what the web process asks for, until its standard input ends: it
does not outlive the server.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from functools import cache, cached_property
from io import BytesIO
from queue import SimpleQueue
from typing import IO, TYPE_CHECKING, Any

signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to the server, whose end ends this process

import msgspec  # noqa: E402

from guard_core.errors import GuardError  # noqa: E402
from inspector.project import memory  # noqa: E402
from inspector.replays.messages import (  # noqa: E402
    AVOID,
    POLICIES,
    PROFILES,
    REPLAY,
    PageRequest,
    PageResponse,
    Ready,
    ReplayFailed,
    ReplayMessage,
    ReplayProgress,
    Task,
    read,
    write,
)

if TYPE_CHECKING:
    from inspector.replays.analysis import Analysis

MOST_COPIES = 2  # of this process, for a comparison: two such tasks run at a time
SAY_EVERY = 0.2  # seconds between two words about progress
NICENESS = 5  # other pages go first
MOST_MEMORY = 2_000_000_000  # bytes; two such processes run at a time, and the smallest machines meant have 8 GB
OUR_MISTAKE = "An internal error stopped the computation; see the server log."


def main() -> int:
    """Replay one session, then answer requests for its pages until the pipe ends. Returns the exit code."""
    task = msgspec.json.decode(sys.argv[1], type=Task)
    os.nice(NICENESS)
    asked: SimpleQueue[ReplayMessage | None] = SimpleQueue()
    thread = threading.Thread(target=_listen, args=(sys.stdin.buffer, asked), daemon=True)

    def listen() -> None:
        if not thread.is_alive():
            thread.start()

    with os.fdopen(os.dup(1), "wb") as out:
        os.dup2(2, 1)  # whatever a library prints is not a message
        outcome, _held = _replayed(task, out, listen)  # held: other sides of a comparison drive it out of no cache
        write(out, outcome)
        listen()
        while isinstance(ask := asked.get(), PageRequest):
            write(out, _page(ask))
    return 0


def _listen(source: IO[bytes], asked: SimpleQueue[ReplayMessage | None]) -> None:
    """At the end of the pipe the server is gone, or has no use for this process any more."""
    while (message := read(source)) is not None:
        asked.put(message)
    os._exit(0)


def _replayed(task: Task, out: IO[bytes], listen: Callable[[], None]) -> tuple[Ready | ReplayFailed, Analysis | None]:
    """Do the task, and compute everything that pages will ask of it: how it ended, and the analysis that they show.

    A comparison is made by copies of this process, which can be made while it has one thread only: until then nobody
    listens whether the server is still there.
    """
    if task.work not in (POLICIES, PROFILES):
        listen()
    with memory.loading():
        import django  # Django is set up when a task comes

        django.setup()
        from guard_core.memory import limit
        from inspector.models import Session
        from inspector.replays import analysis, avoiding, comparing
        from inspector.storage.byte_cache import keep_for_good

    keep_for_good()
    analysis.read_stored()
    memory.keep_little()
    limit(MOST_MEMORY)
    try:
        row = Session.unscoped.select_related("recording").get(pk=task.session, deleted=None)
        if task.work == AVOID:
            avoiding.search_whole(row, _Progress(out, row.calls * avoiding.USUAL_REPLAYS))
        elif task.work != REPLAY:
            progress = _Progress(out, comparing.all_steps(row, task.work))
            comparing.compare_whole(
                row, task.choice, task.work, progress, processes=min(os.cpu_count() or 1, MOST_COPIES), copied=listen
            )
        listen()
        result = analysis.analyse_whole(row, task.choice, _Progress(out, row.calls))
        for owner in (result, result.facts):
            for name, value in vars(type(owner)).items():
                if isinstance(value, cached_property):
                    getattr(owner, name)
        result.narrow()
        memory.trim()
    except (GuardError, Session.DoesNotExist) as error:
        return ReplayFailed(str(error)), None
    except MemoryError:
        return ReplayFailed("There is not enough memory for this computation."), None
    except Exception:
        traceback.print_exc()
        return ReplayFailed(OUR_MISTAKE), None
    return Ready(), result


class _Progress:
    """Says now and then how many steps are done."""

    def __init__(self, out: IO[bytes], total: int) -> None:
        self._out, self._total, self._next = out, total, 0.0

    def __call__(self, done: int) -> None:
        if (now := time.monotonic()) >= self._next:
            write(self._out, ReplayProgress(done, self._total))
            self._next = now + SAY_EVERY


def _page(ask: PageRequest) -> PageResponse:
    """The page as the web process would answer it, middleware and all."""
    from django.core.handlers.wsgi import WSGIRequest  # Django is set up when a task comes

    environ: dict[str, Any] = {**ask.meta, "wsgi.input": BytesIO()}
    response = _handler().get_response(WSGIRequest(environ))
    cookies = [morsel.OutputString() for morsel in response.cookies.values()]
    body = b"".join(response) if response.streaming else response.content
    response.close()
    return PageResponse(response.status_code, list(response.items()), cookies, body)


@cache
def _handler() -> Any:
    """Django's handler, with its middleware and all pages loaded."""
    from django.core.handlers.wsgi import WSGIHandler  # Django is set up when a task comes
    from django.urls import get_resolver

    with memory.loading():
        _ = get_resolver().url_patterns
        return WSGIHandler()


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "inspector.project.settings")
    sys.exit(main())
