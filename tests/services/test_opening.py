"""What a server does before it takes a data folder into use, and what it refuses without touching anything."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from inspector.data_folder import opening
from tests.services.databases import ROOT, fresh_postgres
from tests.services.folders import DATABASE, change, damage, digest, manage, refused
from tests.services.server import clean_environment, command, running
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.once

OLD = "0003"  # migrations of the first release but one


@pytest.fixture(scope="module")
def used_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("used")
    with running(folder, DATABASE_URL="") as started:
        started.stop()
    return folder


@pytest.fixture(scope="module")
def old_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("old")
    assert manage(folder, "migrate", "inspector", OLD, "-v0").returncode == 0
    change(folder, "INSERT INTO inspector_tag (name) VALUES ('kept')")
    return folder


@pytest.fixture
def used(used_folder: Path, tmp_path: Path) -> Path:
    """A data folder that a server has used."""
    return shutil.copytree(used_folder, tmp_path, dirs_exist_ok=True)


@pytest.fixture
def old(old_folder: Path, tmp_path: Path) -> Path:
    """A data folder of an older version, with a tag in it."""
    return shutil.copytree(old_folder, tmp_path, dirs_exist_ok=True)


def tags(data_dir: Path) -> list[tuple]:
    return change(data_dir, "SELECT name FROM inspector_tag")


def is_whole(database: Path) -> bool:
    with closing(sqlite3.connect(database)) as connection:
        return connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def migrations(data_dir: Path) -> int:
    try:
        return change(data_dir, "SELECT count(*) FROM django_migrations")[0][0]
    except sqlite3.OperationalError:  # locked by the upgrade
        return 0


def test_a_folder_of_a_newer_version_is_refused_untouched(used: Path) -> None:
    change(used, "INSERT INTO django_migrations (app, name, applied) VALUES ('inspector', '9000_later', '2030-01-01')")
    before = digest(used)
    assert "newer version" in (sentence := refused(used))
    assert "9000_later" in sentence
    assert digest(used) == before
    done = manage(used, "import", __file__)
    assert (done.returncode, "newer version" in done.stderr) == (2, True)
    assert digest(used) == before


@pytest.mark.long
def test_a_newer_version_is_seen_in_what_was_written_last_before_a_kill(used: Path, tmp_path: Path) -> None:
    """A folder of a newer version is refused in the first test."""
    writer = sqlite3.connect(used / DATABASE, isolation_level=None)
    try:
        writer.execute("INSERT INTO django_migrations (app, name, applied) VALUES ('inspector', '9000_later', '2030')")
        assert (used / f"{DATABASE}-wal").stat().st_size
        before = digest(used)
        assert "newer version" in refused(used)
        assert digest(used) == before
    finally:
        writer.close()


@pytest.mark.parametrize("harm", ["noise in the middle", "cut off", "no database"])
def test_a_damaged_database_is_refused_untouched(harm: str, used: Path) -> None:
    path = used / DATABASE
    match harm:
        case "noise in the middle":
            damage(path)
        case "cut off":
            path.write_bytes(path.read_bytes()[: path.stat().st_size // 2 + 100])
        case "no database":
            path.write_bytes(b"these are other bytes\n" * 5_000)
    before = digest(used)
    sentence = refused(used)
    assert "damaged" in sentence
    assert "restore" in sentence
    assert digest(used) == before


@pytest.mark.long
def test_so_it_is_by_a_command(used: Path) -> None:
    """The server, which asks the same function, is tried above."""
    damage(used / DATABASE)
    before = digest(used)
    done = manage(used, "import", __file__)
    assert (done.returncode, "damaged" in done.stderr) == (2, True)
    assert digest(used) == before


@pytest.mark.parametrize("lose", [Path.unlink, lambda path: path.write_bytes(b"")], ids=["missing", "empty"])
def test_recordings_without_their_database_are_no_new_folder(lose, used: Path) -> None:
    (used / "recordings" / "aa").mkdir()
    (used / "recordings" / "aa" / ("a" * 64)).write_bytes(b"kept")
    lose(used / DATABASE)
    before = digest(used)
    assert "missing or empty" in refused(used)
    assert digest(used) == before


def test_an_upgrade_begins_with_a_copy_of_the_database(old: Path) -> None:
    began = time.strftime("%Y%m%d", time.gmtime())
    with running(old, DATABASE_URL="") as started:
        started.stop()
    (copy,) = (old / opening.COPIES).iterdir()
    assert began <= copy.name[:8] <= time.strftime("%Y%m%d", time.gmtime())
    assert "0003_gallery" in copy.name
    assert copy.stat().st_mode & 0o777 == 0o600
    with closing(sqlite3.connect(copy)) as connection:
        assert connection.execute("SELECT name FROM inspector_tag").fetchall() == [("kept",)]
        (last,) = connection.execute("SELECT max(name) FROM django_migrations WHERE app = 'inspector'").fetchone()
    assert last == "0003_gallery"
    assert tags(old) == [("kept",)]


def test_a_new_folder_and_a_current_one_are_not_copied(used: Path) -> None:
    with running(used, DATABASE_URL="") as started:
        started.stop()
    assert not (used / opening.COPIES).exists()


@pytest.mark.long
def test_only_the_newest_copies_are_kept(old: Path) -> None:
    """That an upgrade begins with a copy, and what is in it, is tried above."""
    folder = old / opening.COPIES
    folder.mkdir()
    for number in range(5):
        (folder / f"2020010{number}-000000-0001_initial.sqlite3").write_text("older")
    (folder / "unfinished").write_text("broken off")
    assert manage(old, "import", __file__).returncode == 1  # a file of Python is not a session
    names = sorted(path.name for path in folder.iterdir())
    assert len(names) == opening.KEPT_COPIES
    assert names[:2] == ["20200103-000000-0001_initial.sqlite3", "20200104-000000-0001_initial.sqlite3"]


@pytest.mark.long
@pytest.mark.parametrize("more", [1, 3, 5])
def test_a_killed_upgrade_goes_on_at_the_next_start(more: int, old: Path) -> None:
    """What an upgrade that ended half way leaves, and that its copy is not made anew, is tried by one that fails."""
    wanted = migrations(old) + more
    with command("serve", "--port", "0", "--data-dir", str(old)) as process:
        until(lambda: migrations(old) >= wanted)
        process.kill()
    assert is_whole(old / DATABASE)
    with running(old, DATABASE_URL="") as started:
        assert started.get("/healthz").status == 200
        started.stop()
    assert tags(old) == [("kept",)]
    (copy,) = (old / opening.COPIES).iterdir()  # of before the upgrade, not of its middle
    assert copy.name.endswith("0003_gallery.sqlite3")
    assert is_whole(copy)


def test_an_upgrade_that_fails_says_how_to_go_back(old: Path) -> None:
    before = migrations(old)
    change(old, "CREATE TABLE inspector_estimate (in_the_way)")  # which a migration is to create
    sentence = refused(old)
    (copy,) = (old / opening.COPIES).iterdir()
    assert f"manage.py restore {copy} --replace" in sentence
    assert is_whole(copy)
    assert str(copy) in refused(old)  # the same one, however often it is tried
    assert list((old / opening.COPIES).iterdir()) == [copy]
    assert manage(old, "restore", copy, "--replace").returncode == 0
    assert migrations(old) == before


def test_no_upgrade_begins_while_another_process_uses_the_folder(old: Path) -> None:
    from inspector.data_folder.owner import beside

    before = digest(old)
    shared = beside(old)
    try:
        assert "must be upgraded" in refused(old)
    finally:
        shared.close()
    assert digest(old) == before


UPGRADE = "import django; django.setup(); from inspector.data_folder.opening import upgrade; upgrade()"


def test_two_servers_that_begin_at_once_upgrade_one_postgresql_in_turn(tmp_path: Path) -> None:
    with fresh_postgres() as url:
        environment = {**clean_environment(), "DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": "inspector.settings"}
        servers = [
            subprocess.Popen(
                [sys.executable, "-c", UPGRADE],
                cwd=ROOT,
                env={**environment, "DATA_DIR": str(tmp_path / name)},
                stderr=subprocess.PIPE,
                text=True,
            )
            for name in ("first", "second")
        ]
        assert [server.communicate(timeout=2 * PATIENCE)[1] for server in servers] == ["", ""]
        assert [server.returncode for server in servers] == [0, 0]
