"""One server at a time has a data folder, and who comes second is told who."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from inspector.data_folder.owner import CommandRefused, alone, beside
from tests.services.folders import manage, refused
from tests.services.server import Running, running
from tests.waiting import until

pytestmark = pytest.mark.once


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server that has its folder."""
    with running(tmp_path_factory.mktemp("first"), DATABASE_URL="") as started:
        yield started


def test_a_second_server_says_who_has_the_folder(first: Running) -> None:
    sentence = refused(first.data_dir)
    assert first.origin in sentence
    assert f"process {first.process.pid} on " in sentence
    assert "since 20" in sentence
    assert first.get("/healthz").status == 200


def test_a_second_server_on_the_same_port_says_so_too(first: Running) -> None:
    sentence = refused(first.data_dir, "--port", first.origin.rsplit(":", 1)[1])
    assert f"process {first.process.pid} on " in sentence


@pytest.mark.long
def test_the_lease_of_a_killed_server_is_taken_over_at_once(tmp_path: Path) -> None:
    """The next test stops a server; of a killed one the system itself lets go of the lock."""
    with running(tmp_path, DATABASE_URL="") as started:
        until(started.workers)
        started.process.kill()
        with running(tmp_path, DATABASE_URL="") as second:
            assert second.get("/healthz").status == 200


def test_the_lease_of_a_stopped_server_is_free(tmp_path: Path) -> None:
    with running(tmp_path, DATABASE_URL="") as started:
        started.stop()
    alone(tmp_path).close()


def test_an_import_runs_beside_a_server(first: Running, tmp_path: Path) -> None:
    (tmp_path / "chat.json").write_text(
        '[{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"}]'
    )
    done = manage(first.data_dir, "import", tmp_path / "chat.json")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.long
def test_neither_a_server_nor_an_import_begins_while_a_command_has_the_folder(tmp_path: Path) -> None:
    """That a folder is had by one alone, and who has it, the other tests of this file try."""
    (tmp_path / "chat.json").write_text("[]")
    held = alone(tmp_path)
    try:
        assert "another command" in refused(tmp_path)
        done = manage(tmp_path, "import", tmp_path / "chat.json")
        assert (done.returncode, "another command" in done.stderr) == (2, True)
    finally:
        held.close()


def test_a_folder_that_is_used_is_not_had_alone(tmp_path: Path) -> None:
    shared = beside(tmp_path)
    with pytest.raises(CommandRefused, match="another command"):
        alone(tmp_path)
    shared.close()
    alone(tmp_path).close()
