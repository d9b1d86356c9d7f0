"""Nothing of a server outlives it: whatever its worker is doing, and whatever the worker has started."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from guard_core.recordings.formats import native
from tests.big_sessions import big_session
from tests.builders import model, session, user
from tests.services.databases import query
from tests.services.server import Running, go_on, held_worker, running, stepped, within
from tests.services.server import transcript as small
from tests.services.test_large import transcript
from tests.waiting import PATIENCE, until

PROMISE = 2.0  # seconds from the death of the server to that of its last process


def processes_of(data_dir: Path) -> list[int]:
    """Every living process that was started with this data folder: workers, and what they started."""
    wanted = f"DATA_DIR={data_dir}".encode()
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit() and _has(entry, wanted)]


def _has(process: Path, variable: bytes) -> bool:
    try:
        return variable in (process / "environ").read_bytes().split(b"\0")
    except OSError:  # it has just ended, or is another user's
        return False


def starting(server: Running) -> None:
    until(server.workers)


def idle(server: Running) -> None:
    assert server.send("chat.json", small()).status == 201  # read: the worker has started


def importing(server: Running) -> None:
    worker = held_worker(server)
    server.send("big.jsonl", transcript(1))
    stepped(worker, lambda: len(processes_of(server.data_dir)) == 2)  # the worker and its reader
    go_on(worker)


def storing(server: Running) -> None:
    server.send("big.jsonl", native.write(big_session(6_000, 20)))
    until(lambda: query(server.data_dir, "SELECT 1 FROM inspector_event LIMIT 1"))


def counting_tokens(server: Running) -> None:
    texts = (f"question {number}: " + f"word{number} " * 400 for number in range(1_500))
    server.send("texts.jsonl", native.write(session(*(user(text) for text in texts), model("done"))))
    (worker,) = until(server.workers)
    stepped(worker, lambda: query(server.data_dir, "SELECT 1 FROM inspector_textcount LIMIT 1"))
    assert query(server.data_dir, "SELECT 1 FROM inspector_estimate WHERE result IS NULL")
    go_on(worker)


def playing_the_gallery(server: Running) -> None:
    worker = held_worker(server)
    server.post("/gallery/run", b"policy=contextguard&policy=none&profile=early")
    stepped(worker, lambda: query(server.data_dir, "SELECT 1 FROM inspector_galleryrun WHERE state = 'running'"))
    go_on(worker)


# For the kernel an idle worker, or one at another job, is the same: `make test` kills one that begins and one that has
# started a process itself.
PHASES = [
    pytest.param(starting, marks=pytest.mark.once),
    pytest.param(importing, marks=pytest.mark.once),
    pytest.param(storing, marks=pytest.mark.long),
    *(
        pytest.param(job, marks=(pytest.mark.once, pytest.mark.long))
        for job in (counting_tokens, idle, playing_the_gallery)
    ),
]


@pytest.mark.parametrize("phase", PHASES)
def test_no_process_outlives_a_server_that_is_killed(phase: Callable[[Running], None], tmp_path: Path) -> None:
    with running(tmp_path) as started:
        phase(started)
        until(lambda: processes_of(tmp_path))
        started.process.kill()
        # A worker that has not begun yet notices as soon as it begins, which takes as long as the machine is slow.
        assert within(PATIENCE if phase is starting else PROMISE, lambda: not processes_of(tmp_path))


@pytest.mark.once
def test_a_reader_does_not_outlive_its_worker(tmp_path: Path) -> None:
    with running(tmp_path) as started:
        importing(started)
        before = processes_of(tmp_path)
        (worker,) = until(started.workers)
        os.kill(worker, 9)
        assert within(PROMISE, lambda: not set(before) & set(processes_of(tmp_path)))
