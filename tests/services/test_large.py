"""Long files over real sockets: a chart before the end, workers killed in every phase, nothing left half done.

What a dead worker leaves, and what a cancel takes away, is tried on both databases without a server in
`tests/inspector/ingest/test_importing_large.py` and `tests/inspector/jobs/test_recovery.py`; the button in the browser,
in `tests/browser/test_uploading.py`.
"""

from __future__ import annotations

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from pathlib import Path

import pytest

from guard_core.simulator.big_files import write_claude_code
from tests.services.databases import query
from tests.services.server import Running, go_on, held_worker, running, stepped
from tests.services.test_uploading import only
from tests.waiting import until

PHASES = ("parsed", "counted", "indexed")
KILLED_IN = PHASES if os.environ.get("KILLS") else ("counted",)  # `make soak` kills in all of them
STEPS = 1_000
# Of 9 MB: has a chart while it is read, and its upload is answered before (`ingest/waiting.py`).


def transcript(seed: int, steps: int = STEPS, size: int = 9_000_000) -> bytes:
    out = BytesIO()
    write_claude_code(out, steps=steps, size=size, seed=seed)
    return out.getvalue()


@pytest.fixture
def started(tmp_path: Path):
    with running(tmp_path / "data", TMPDIR=str(tmp_path)) as server:
        yield server


def rows(server: Running, statement: str) -> list[tuple]:
    """What is in the database of the server."""
    return query(server.data_dir, statement)


def counted(server: Running, table: str) -> int:
    return int(rows(server, f"SELECT count(*) FROM inspector_{table}")[0][0])


def listed(server: Running) -> int:
    """Sessions that people see."""
    return int(rows(server, "SELECT count(*) FROM inspector_session WHERE deleted IS NULL")[0][0])


def complete(server: Running, url: str) -> str:
    return until(lambda: server.get(url).headers.get("location", ""))


def held_in(server: Running, content: bytes, phase: str) -> tuple[str, int]:
    """The address of the import of these bytes, and its worker, held in a phase."""
    worker = held_worker(server)
    job = only(server.send("big.jsonl", content))
    stepped(worker, lambda: rows(server, "SELECT phase FROM inspector_import") == [(phase,)])
    return job["url"], worker


@pytest.mark.long
@pytest.mark.once
def test_a_chart_is_shown_while_the_file_is_read(started: Running) -> None:
    worker = held_worker(started)
    url = only(started.send("big.jsonl", transcript(1)))["url"]
    page = stepped(worker, lambda: (text := started.get(url).text) and "first-look" in text and text)
    assert f"{STEPS:,} model calls" in page
    assert listed(started) == 0
    go_on(worker)
    assert started.get(complete(started, url)).status == 200


@pytest.mark.long
@pytest.mark.parametrize("phase", KILLED_IN)
def test_a_worker_killed_in_any_phase_costs_a_delay_and_nothing_else(phase: str, started: Running) -> None:
    url, worker = held_in(started, transcript(PHASES.index(phase) + 2), phase)
    os.kill(worker, signal.SIGKILL)
    assert listed(started) in (0, 1)  # not there, or committed with the word "done"
    assert started.get(complete(started, url)).status == 200
    until(lambda: counted(started, "session") == 1)  # what the dead worker had stored is swept
    assert [counted(started, table) for table in ("session", "sessiondata")] == [1, 1]
    assert (
        rows(started, "SELECT count(*) FROM inspector_event")[0][0]
        == rows(started, "SELECT events FROM inspector_session")[0][0]
    )
    assert (
        counted(started, "event")
        == rows(
            started,
            "SELECT count(*) FROM inspector_event e JOIN inspector_payload p "
            "ON p.sha256 = e.payload_id JOIN inspector_session s ON s.id = e.session_id",
        )[0][0]
    )


@pytest.mark.long
def test_a_cancelled_long_import_leaves_nothing(started: Running) -> None:
    url, worker = held_in(started, transcript(7), "counted")
    with ThreadPoolExecutor(1) as sender:
        cancel = sender.submit(started.post, url + "cancel")
        stepped(worker, cancel.done)  # in short turns: it may hold the database, and not end before the cancel
    assert cancel.result().status == 302
    go_on(worker)
    until(lambda: "cancelled" in started.get(url).text)
    until(lambda: counted(started, "payload") == counted(started, "session") == 0)
    until(lambda: not [path for path in (started.data_dir / "recordings").rglob("*") if path.is_file()])
    until(lambda: not list(started.data_dir.joinpath("incoming").iterdir()))


@pytest.mark.once
def test_a_file_over_the_limit_is_refused_before_it_is_written(started: Running) -> None:
    answer = started.request(
        "POST", "/recordings/", None, {"Content-Length": str(257 * 2**20 + 2**17), "Content-Type": "text/plain"}
    )
    assert answer.status == 413
    assert "268,435,456" in answer.text or "268,500,992" in answer.text
    # Where a body would be: the folder for temporary files, what comes in, and what is stored.
    data = started.data_dir
    places = (data.parent.glob("*"), (data / "incoming").rglob("*"), (data / "recordings").rglob("*"))
    assert not [path for place in places for path in place if path.is_file()]
