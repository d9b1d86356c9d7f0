"""What the whole suite is: on both databases, and never less than that in CI."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from tests.plugins import neighbours
from tests.plugins.run import (
    LONG,
    PAGES,
    SERVED,
    SHORT,
    SPEED_TESTS,
    WITHOUT_DATABASE,
    Run,
    plan,
    plan_long,
    run_beside,
)
from tests.plugins.scheduling import FIRST, ByFile, rank
from tests.plugins.second_database import ONE_SESSION, is_repeated, pytest_ignore_collect

ROOT = Path(__file__).resolve().parents[2]
NOBODY = {"TEST_DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none", "TEST_REDIS_URL": "redis://127.0.0.1:1/0"}
REACHING = ("inspector", "django", "channels", "psycopg", "tests.services", "tests.browser", "tests.inspector")


def modules(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


def imported(path: Path) -> set[str]:
    """Modules that a file imports, inside of functions too."""
    modules_named = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            modules_named |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            modules_named.add(node.module or "")
    return modules_named


@pytest.mark.parametrize("folder", [name for name in WITHOUT_DATABASE if name != "tests/plugins"])
def test_a_folder_that_is_left_out_on_postgres_can_reach_no_database(folder):
    assert modules(folder)
    for path in modules(folder):
        reaching = {name for name in imported(path) if name.startswith(REACHING)}
        assert not reaching, path
        assert "django_db" not in path.read_text(), path


def ignored(run: Run) -> set[str]:
    """The folders that a run leaves out."""
    return {argument.removeprefix("--ignore=") for argument in run.arguments if argument.startswith("--ignore=")}


def named(run: Run) -> set[str]:
    """The folders that it has alone; none where it has all."""
    return {argument for argument in run.arguments if argument.startswith("tests/")}


def test_every_other_folder_is_collected_for_both_databases():
    ((pages, sqlite, served, engine, postgres),) = plan("postgresql://127.0.0.1/some")
    ((parallel, again), (speed,)) = plan_long("postgresql://127.0.0.1/some")
    assert [run.postgres for run in (pages, sqlite, served, engine, parallel, speed)] == [""] * 6
    assert postgres.postgres == again.postgres == "postgresql://127.0.0.1/some"
    assert [named(run) for run in (pages, served, engine)] == [{PAGES}, set(SERVED), set(WITHOUT_DATABASE)]
    assert named(speed) == {SPEED_TESTS}
    assert ignored(sqlite) == {SPEED_TESTS, *WITHOUT_DATABASE, *SERVED, PAGES}
    assert ignored(postgres) == ignored(again) == {SPEED_TESTS, *WITHOUT_DATABASE}
    assert ignored(parallel) == {SPEED_TESTS}
    assert not ignored(pages) | ignored(served) | ignored(engine)
    for run in (sqlite, postgres, parallel, again):
        assert not named(run)
        assert ("--second-database" in run.arguments) is (run in (postgres, again))


def test_each_run_has_the_tests_of_one_tier():
    for runs, tier, other in ((plan("p")[0], SHORT, LONG), (plan_long("p")[0], LONG, SHORT)):
        assert all(tier in run.arguments and other not in run.arguments for run in runs)


def test_every_change_passes_types_lint_and_both_tiers_once():
    called = [line for line in (ROOT / ".ci/run").read_text().splitlines() if line.startswith("make ")]
    assert called == ["make types", "make test", "make long"]
    (checks,) = yaml.safe_load((ROOT / ".github/workflows/tests.yml").read_text())["jobs"]["test"]["steps"][1:]
    assert checks["run"] == ".ci/run"
    commands = {name: would_run(name) for name in ("types", "test", "long")}
    for tool, only in (("mypy", "types"), ("ruff check", "test"), ("ruff format --check", "test"), ("--long", "long")):
        assert [name for name, text in commands.items() if tool in text] == [only]
    assert "tests.plugins.run" in commands["test"]


def would_run(target: str) -> str:
    """What `make` would do, whatever this machine has installed."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    command = ["make", "-n", target]
    return subprocess.run(command, cwd=ROOT, env=plain, capture_output=True, text=True, check=True).stdout


def test_of_runs_beside_each_other_each_is_shown_and_one_that_fails_fails_them_all(capfd):
    assert run_beside([Run("first:", ("--version",)), Run("second:", ("no-such-folder",))], "") == 4
    shown = capfd.readouterr().out
    assert shown.index("first:") < shown.index("second:") < shown.index("no-such-folder")
    assert run_beside([Run("", ("--version",)), Run("", ("--version",))], "") == 0


def item(nodeid: str, *fixtures: str, marks: tuple[str, ...] = ()) -> SimpleNamespace:
    return SimpleNamespace(
        nodeid=nodeid, fixturenames=fixtures, get_closest_marker=lambda name: name if name in marks else None
    )


@pytest.mark.parametrize(
    ("test", "repeated"),
    [
        (item("tests/inspector/test_a.py::test_x", marks=("django_db",)), True),
        (item("tests/inspector/test_a.py::test_x", "bring", "db"), True),
        (item("tests/inspector/test_a.py::test_x", "settings"), False),
        (item("tests/inspector/pages/library/test_a.py::test_x", "db"), True),
        (item("tests/inspector/pages/steps/test_a.py::test_x", "db"), False),
        (item("tests/services/test_a.py::test_x"), True),
        (item("tests/services/test_a.py::test_x", marks=("once",)), False),
        (item("tests/browser/test_first_light.py::test_1_x"), True),
        (item("tests/browser/test_looks.py::test_x"), False),
    ],
)
def test_what_can_reach_the_database_is_repeated_and_of_the_browser_one_walk(test, repeated):
    assert is_repeated(test) is repeated


def test_a_file_that_is_not_even_read_has_no_test_that_is_repeated():
    config = SimpleNamespace(getoption=lambda name: True, rootpath=ROOT)
    unread = [path for path in modules("tests") if pytest_ignore_collect(path, config)]
    tests = [path.relative_to(ROOT).as_posix() for path in unread if path.name.startswith("test_")]
    assert len(tests) > len(ONE_SESSION)
    assert not [name for name in tests if is_repeated(item(f"{name}::test_x", "db"))]
    everything = SimpleNamespace(getoption=lambda name: False, rootpath=ROOT)
    assert not [path for path in unread if pytest_ignore_collect(path, everything)]


def test_the_pages_that_are_not_repeated_are_there():
    for folder in ONE_SESSION:
        assert (ROOT / folder).is_dir(), folder


def test_a_module_that_chooses_its_database_starts_no_server_on_that_of_the_suite():
    marked = [path for path in modules("tests/services") if "pytestmark = pytest.mark.once" in path.read_text()]
    assert marked
    for path in marked:
        for call in ast.walk(ast.parse(path.read_text())):
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "running":
                assert "DATABASE_URL" in [keyword.arg for keyword in call.keywords], f"{path.name}:{call.lineno}"


def test_without_postgres_it_is_sqlite_alone():
    assert [[run.postgres for run in runs] for runs in plan("")] == [[""] * 4]
    assert [[run.postgres for run in runs] for runs in plan_long("")] == [[""], [""]]


@pytest.mark.parametrize(
    ("postgres", "redis", "word"), [("", "r", "PostgreSQL"), ("p", "", "Redis"), ("", "", "Redis")]
)
def test_in_ci_a_missing_service_ends_the_run_in_a_sentence(postgres, redis, word, monkeypatch):
    monkeypatch.setenv("CI", "true")
    with pytest.raises(neighbours.Unavailable, match=f"no {word} answers"):
        neighbours.check_whole(postgres, redis)


def test_elsewhere_a_missing_service_is_no_error(monkeypatch):
    monkeypatch.delenv("CI", raising=False)
    neighbours.check_whole("", "")


def test_a_service_that_was_named_and_is_not_there_ends_the_run():
    command = [sys.executable, "-m", "tests.plugins.run"]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, **NOBODY}, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "TEST_DATABASE_URL" in done.stderr
    assert "passed" not in done.stdout


def test_processes_of_one_run_have_a_redis_database_each(monkeypatch):
    monkeypatch.setenv("TEST_REDIS_URL", "redis://127.0.0.1:6379/15")
    named = [neighbours.redis_of(worker) for worker in ("", "gw0", "gw1", "gw15")]
    assert [url.rpartition("/")[2] for url in named] == ["15", "15", "14", "0"]


def test_tests_that_share_what_they_set_up_stay_in_one_process():
    split = ByFile._split_scope
    for shared in ("tests/browser/{}.py", "tests/inspector/test_a.py::{}", "tests/services/test_a.py::test_x[{}::1]"):
        assert len({split(None, shared.format(name)) for name in ("test_a", "test_b")}) == 1
    assert split(None, "tests/services/test_a.py::test_x") != split(None, "tests/services/test_b.py::test_x")


def test_the_folders_that_take_longest_begin():
    assert all((ROOT / folder).is_dir() for folder in FIRST)
    ids = ["tests/guard_core/test_a.py::test_x", *(f"{folder}test_a.py::test_x" for folder in reversed(FIRST))]
    assert sorted(ids, key=rank) == ids[::-1]
