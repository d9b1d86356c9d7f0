"""Backups come back whole or not at all, and what is wrong with one is said before anything is touched."""

from __future__ import annotations

import io
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import pytest

from inspector.data_folder import opening
from inspector.data_folder.owner import CommandRefused, beside
from inspector.data_folder.restoring import ASIDE, STAGING, VERIFIED, finish_restoring, restore
from tests.plugins.tiers import mostly_long
from tests.services.databases import fresh_postgres
from tests.services.folders import DATABASE, change, damage, digest, manage, refused
from tests.services.server import begun_folder, running, transcript

pytestmark = pytest.mark.once

Rewriter = Callable[[str, bytes], bytes | None]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with two sessions."""
    folder = tmp_path_factory.mktemp("source")
    for name in ("one.json", "two.json"):
        (folder / name).write_bytes(transcript())
    done = manage(folder / "data", "import", folder / "one.json", folder / "two.json")
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "data"


@pytest.fixture(scope="module")
def backup(source: Path) -> Path:
    """A backup of it."""
    file = source.parent / "backup.tar"
    done = manage(source, "backup", file)
    assert done.returncode == 0, done.stderr
    return file


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder without anything in it."""
    folder = tmp_path_factory.mktemp("empty")
    manage(folder, "check")  # makes its folders and its key
    return folder


def rewritten(backup: Path, target: Path, change_member: Rewriter) -> Path:
    """A backup with other contents; a member that is changed into None is left out."""
    with tarfile.open(backup) as old, tarfile.open(target, "w") as new:
        for member in old:
            content = old.extractfile(member).read()
            if (other := change_member(member.name, content)) is not None:
                member.size = len(other)
                new.addfile(member, io.BytesIO(other))
    return target


def recordings(folder: Path) -> dict[str, str]:
    return {path.name: digest(path.parent) for path in (folder / "recordings").glob("??/*")}


def titles(folder: Path) -> list[tuple]:
    return change(folder, "SELECT id, title FROM inspector_session ORDER BY id")


def test_a_backup_comes_back_into_an_empty_folder(source: Path, backup: Path, tmp_path: Path) -> None:
    done = manage(tmp_path / "new", "restore", backup)
    assert done.returncode == 0, done.stderr
    assert "2 recordings" in done.stdout
    assert titles(tmp_path / "new") == titles(source)
    assert recordings(tmp_path / "new") == recordings(source)
    with running(tmp_path / "new", DATABASE_URL="") as started:
        for key, _ in titles(source):
            assert started.get(f"/s/{UUID(key)}/").status == 200


def test_a_folder_that_holds_something_is_left_alone(source: Path, backup: Path, tmp_path: Path) -> None:
    shutil.copytree(source, tmp_path / "used")
    before = digest(tmp_path / "used")
    done = manage(tmp_path / "used", "restore", backup)
    assert (done.returncode, "--replace" in done.stderr) == (2, True)
    assert digest(tmp_path / "used") == before


def test_what_a_folder_held_is_moved_aside_when_asked(backup: Path, tmp_path: Path) -> None:
    (tmp_path / "third.json").write_bytes(transcript())
    shutil.copytree(begun_folder(), tmp_path / "used")
    manage(tmp_path / "used", "import", tmp_path / "third.json")
    held = recordings(tmp_path / "used")
    done = manage(tmp_path / "used", "restore", backup, "--replace")
    assert done.returncode == 0, done.stderr
    (aside,) = (tmp_path / "used").glob(f"{ASIDE}*")
    assert str(aside) in done.stdout
    assert recordings(aside) == held
    assert len(titles(aside)) == 1
    assert len(titles(tmp_path / "used")) == 2


def leave_out(part: str) -> Rewriter:
    return lambda name, content: None if part in name else content


def spoil(part: str) -> Rewriter:
    return lambda name, content: content[:-9] + b"spoiled\n\n" if part in name else content


DAMAGES = {
    "a recording with other bytes": (spoil("recordings/"), "not the bytes that were uploaded"),
    "a recording left out": (leave_out("recordings/"), "missing"),
    "a database with other bytes": (spoil(DATABASE), "not the bytes that were backed up"),
    "a database left out": (leave_out(DATABASE), "missing"),
    "a list of contents left out": (leave_out("backup.json"), "cut off or damaged"),
    "a list of contents that is none": (lambda n, c: b"[]" if n == "backup.json" else c, "does not say"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_backup_is_refused_with_what_is_damaged(name, backup, empty, tmp_path, settings) -> None:
    change_member, words = DAMAGES[name]
    file = rewritten(backup, tmp_path / "damaged.tar", change_member)
    before, settings.DATA_DIR = digest(empty), empty
    with pytest.raises(CommandRefused, match=words):
        restore(file, replace=False)
    assert digest(empty) == before


def test_noise_cuts_and_other_files_are_refused(backup, empty, tmp_path, settings) -> None:
    content = backup.read_bytes()
    cases = {"cut.tar": content[: len(content) // 2], "none.tar": b"no archive\n" * 999, "empty.tar": b""}
    for name, case in cases.items():
        (tmp_path / name).write_bytes(case)
    with tarfile.open(tmp_path / "foreign.tar", "w") as archive:
        archive.addfile(tarfile.TarInfo("../../outside"), io.BytesIO())
    before, settings.DATA_DIR = digest(empty), empty
    for name in [*cases, "foreign.tar", "absent.tar"]:
        with pytest.raises(CommandRefused):
            restore(tmp_path / name, replace=False)
    assert digest(empty) == before


def test_a_refusal_is_one_sentence_of_the_command_and_exit_code_2(backup: Path, empty: Path, tmp_path: Path) -> None:
    (tmp_path / "cut.tar").write_bytes(backup.read_bytes()[:5_000])
    done = manage(empty, "restore", tmp_path / "cut.tar")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr


def test_a_backup_is_verified_without_being_restored(backup: Path, empty: Path) -> None:
    before = digest(empty)
    done = manage(empty, "restore", backup, "--check")
    assert (done.returncode, "verified" in done.stdout) == (0, True)
    assert digest(empty) == before


@pytest.mark.long
def test_nothing_is_restored_or_moved_while_a_server_runs(backup: Path, tmp_path: Path) -> None:
    """That a folder in use is not had alone, `test_folder_locks.py` tries without a server."""
    with running(tmp_path, DATABASE_URL="") as started:
        for arguments in (["restore", backup, "--replace"], ["move_to_postgres", "postgresql:///none"]):
            done = manage(tmp_path, *arguments)
            assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
            assert started.origin in done.stderr
        checked = manage(tmp_path, "restore", backup, "--check")
        assert (checked.returncode, "verified" in checked.stdout) == (0, True), checked.stderr


@pytest.mark.parametrize("moved", mostly_long([[], ["recordings"], ["recordings", DATABASE]], short=[["recordings"]]))
def test_a_restore_that_was_killed_half_way_goes_on_at_the_next_start(moved, source, tmp_path) -> None:
    folder, verified = tmp_path / "data", tmp_path / "data" / f"{VERIFIED}20260101-000000"
    shutil.copytree(begun_folder(), folder)
    shutil.copytree(source / "recordings", verified / "recordings")
    shutil.copy(source / DATABASE, verified)
    for name in moved:  # before it was killed
        (folder / f"{ASIDE}20260101-000000").mkdir(exist_ok=True)
        (folder / name).rename(folder / f"{ASIDE}20260101-000000" / name)
        (verified / name).rename(folder / name)
    (folder / f"{STAGING}other").mkdir()  # of one that was killed before it had verified anything
    with running(folder, DATABASE_URL="") as started:
        started.stop()
    assert titles(folder) == titles(source)
    assert recordings(folder) == recordings(source)
    assert not [*folder.glob(f"{VERIFIED}*"), *folder.glob(f"{STAGING}*")]
    finish_restoring(folder)  # nothing is left to do


def test_a_copy_from_before_an_upgrade_comes_back_with_its_recordings(source: Path, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    shutil.copytree(source, folder)
    (folder / opening.COPIES).mkdir()
    copy = folder / opening.COPIES / "20260101-000000-0001_initial.sqlite3"
    shutil.copy(source / DATABASE, copy)
    damage(folder / DATABASE)
    assert f"manage.py restore {copy} --replace" in refused(folder)
    done = manage(folder, "restore", copy, "--replace")
    assert done.returncode == 0, done.stderr
    assert titles(folder) == titles(source)
    assert recordings(folder) == recordings(source)
    with running(folder, DATABASE_URL="") as started:
        assert started.get("/healthz").status == 200


def test_a_copy_whose_recordings_are_gone_says_which(source: Path, tmp_path: Path) -> None:
    done = manage(tmp_path / "empty", "restore", source / DATABASE)
    assert done.returncode == 0, done.stderr
    assert "2 recordings cannot be downloaded" in done.stdout
    assert "one.json" in done.stdout


def test_a_damaged_database_is_not_backed_up(source: Path, tmp_path: Path) -> None:
    shutil.copytree(source, tmp_path / "data")
    damage(tmp_path / "data" / DATABASE)
    done = manage(tmp_path / "data", "backup", tmp_path / "b.tar")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert not list(tmp_path.glob("b.tar*"))


@pytest.mark.long
def test_a_backup_of_postgresql_comes_back_into_an_empty_database(source: Path, tmp_path: Path) -> None:
    """Of SQLite, the first test does so; the rows of PostgreSQL come from `pg_dump` and `pg_restore`."""
    with fresh_postgres() as first, fresh_postgres() as second:
        shutil.copytree(source, tmp_path / "data")
        for arguments in (["move_to_postgres", first], ["backup", tmp_path / "b.tar"]):
            done = manage(tmp_path / "data", *arguments, DATABASE_URL="" if first in arguments else first)
            assert done.returncode == 0, done.stderr
        refusal = manage(tmp_path / "new", "restore", tmp_path / "b.tar")
        assert (refusal.returncode, "set DATABASE_URL" in refusal.stderr) == (2, True)
        used = manage(tmp_path / "new", "restore", tmp_path / "b.tar", DATABASE_URL=first)
        assert (used.returncode, "not empty" in used.stderr) == (2, True)
        done = manage(tmp_path / "new", "restore", tmp_path / "b.tar", DATABASE_URL=second)
        assert done.returncode == 0, done.stderr
        assert recordings(tmp_path / "new") == recordings(source)
        again = manage(tmp_path / "new", "backup", tmp_path / "c.tar", DATABASE_URL=second)
        assert (again.returncode, "2 recordings" in again.stdout) == (0, True), again.stderr


@pytest.mark.long
def test_an_upgrade_of_postgresql_does_not_wait_for_the_workers_of_a_team(tmp_path: Path) -> None:
    """No shorter test: only two processes on one PostgreSQL can wait for one another."""
    shared = beside(tmp_path)  # a worker of the version before
    try:
        with fresh_postgres() as url:
            done = manage(tmp_path, "migrate", "inspector", "0003", "-v0", DATABASE_URL=url)
            assert done.returncode == 0, done.stderr
            with running(tmp_path, DATABASE_URL=url) as started:
                assert started.get("/healthz").status == 200
    finally:
        shared.close()
