"""Starting, refusing to start, stopping."""

from __future__ import annotations

import json
import os
import signal
import stat
from pathlib import Path

import pytest

from guard_core.recordings.formats import native
from inspector.project import serving
from tests.big_sessions import big_session
from tests.plugins.tiers import mostly_long
from tests.services.databases import query
from tests.services.server import Running, command, go_on, held_worker, running, stepped, transcript
from tests.waiting import PATIENCE, until


def test_it_says_where_it_listens_and_is_healthy(server: Running) -> None:
    answer = server.get("/healthz")
    assert answer.status == 200
    assert json.loads(answer.body)["status"] == "ok"


def test_everything_stored_is_for_its_owner_alone(server: Running) -> None:
    assert stat.S_IMODE(server.data_dir.stat().st_mode) == 0o700
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in server.data_dir.iterdir() if path.is_file()}
    assert modes["secret-key"] == 0o600
    assert set(modes.values()) == {0o600}


@pytest.mark.once
@pytest.mark.parametrize("number", mostly_long([signal.SIGTERM, signal.SIGINT], short=[signal.SIGINT]))
def test_it_stops_cleanly_when_asked(number: int, tmp_path: Path) -> None:
    with running(tmp_path) as started:
        workers = until(started.workers)
        assert started.stop(number) == 0
    assert not any(_alive(worker) for worker in workers)


@pytest.mark.once
def test_a_job_that_a_stop_breaks_off_is_no_error_in_the_log(tmp_path: Path) -> None:
    with running(tmp_path) as started:
        worker = held_worker(started)
        started.send("long.jsonl", native.write(big_session(1_000, 20)))
        stepped(worker, lambda: query(tmp_path, "SELECT 1 FROM inspector_event LIMIT 1"))
        started.process.terminate()
        go_on(worker)
        assert started.stop() == 0
    assert not any("ERROR" in line for line in started.errors)


def test_the_time_to_stop_adds_up_to_less_than_the_promise() -> None:
    assert serving.GRACE_SECONDS + serving.WORKER_GRACE_SECONDS < 10


@pytest.mark.once
def test_a_second_start_keeps_the_key_and_the_static_files(tmp_path: Path) -> None:
    def kept() -> tuple[str, str, float]:
        files = [tmp_path / name for name in ("secret-key", "static.stamp", "static/staticfiles.json")]
        return files[0].read_text(), files[1].read_text(), files[2].stat().st_mtime

    with running(tmp_path) as started:
        first = kept()
        assert started.stop() == 0
    with running(tmp_path):
        assert kept() == first


@pytest.mark.once
@pytest.mark.parametrize("address", ["0.0.0.0", "::", "192.0.2.1"])
def test_without_login_it_refuses_to_be_reached_from_elsewhere(address: str, tmp_path: Path) -> None:
    process = command("--bind", address, "--data-dir", str(tmp_path))
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 2
    assert errors.count("\n") == 1
    assert "no login" in errors


@pytest.mark.once
def test_a_port_in_use_is_told_in_one_sentence(server: Running, tmp_path: Path) -> None:
    process = command("--port", server.origin.rsplit(":", 1)[1], "--data-dir", str(tmp_path))
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 2
    assert errors.count("\n") == 1
    assert "Address already in use" in errors


@pytest.mark.once
@pytest.mark.parametrize(
    ("name", "value"), [("PORT", "eighty"), ("ALLOWED_HOSTS", "*"), ("DATABASE_URL", "mysql://x/y")]
)
def test_a_wrong_setting_is_told_in_one_sentence(name: str, value: str, tmp_path: Path) -> None:
    process = command("--data-dir", str(tmp_path), environment={name: value})
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 2
    assert errors.count("\n") == 1
    assert name in errors


@pytest.mark.once
def test_a_data_folder_that_cannot_be_made_is_told_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    process = command("--data-dir", str(tmp_path / "file" / "data"))
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 2
    assert errors.count("\n") == 1


@pytest.mark.once
def test_a_database_that_does_not_answer_is_told_in_one_sentence(tmp_path: Path) -> None:
    nobody = {"DATABASE_URL": "postgresql://nobody@127.0.0.1:1/nothing"}
    process = command("--port", "0", "--data-dir", str(tmp_path), environment=nobody)
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 2
    assert errors.count("\n") == 1
    assert "database" in errors


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


@pytest.mark.once
@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="asks Linux what a process has loaded")
def test_an_idle_worker_begins_anew_without_what_its_jobs_have_loaded(tmp_path: Path) -> None:
    with running(tmp_path) as started:
        (worker,) = until(started.workers)
        started.send("short.json", transcript())
        until(lambda: "tiktoken" in _loaded(worker))
        until(lambda: "tiktoken" not in _loaded(worker) and "_sqlite3" in _loaded(worker))
        assert started.workers() == [worker], "the same process, which the server need not start"
        second = json.loads(started.send("second.json", transcript()).body)["imports"][0]["url"]
        until(lambda: second.startswith("/s/") or started.get(second).headers.get("location", ""))
        assert started.stop() == 0


def _loaded(pid: int) -> str:
    """The files that a process has in memory."""
    return Path(f"/proc/{pid}/maps").read_text()
