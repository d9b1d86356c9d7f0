"""From SQLite to PostgreSQL by the command, with every row and every digest."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from guard_core.recordings.formats import native
from guard_core.simulator.samples import SAMPLES
from tests.plugins.neighbours import find_postgres
from tests.plugins.tiers import mostly_long

pytestmark = pytest.mark.once
ROOT = Path(__file__).resolve().parents[2]
NAME = f"inspector_move_{uuid4().hex[:12]}"
DIGESTS = """
import django, hashlib; django.setup()
from guard_core.packing import encode
from inspector.replays.analysis import analyse
from inspector.storage.loading import load_session
from inspector.models import Session
from inspector.replays.choice import Choice
for row in Session.unscoped.order_by("pk"):
    trace = analyse(row, Choice()).replayed
    print(row.pk, row.recording.sha256, hashlib.sha256(encode(load_session(row))).hexdigest(), trace.digest())
"""

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def target() -> Iterator[str]:
    """The address of a PostgreSQL database of our own."""
    import psycopg

    server = find_postgres()
    if not server:
        pytest.skip("no PostgreSQL answers on this machine")
    base = server.rsplit("/", 1)[0]
    with psycopg.connect(f"{base}/postgres", autocommit=True) as admin:
        yield f"{base}/{NAME}"
        admin.execute(f"DROP DATABASE IF EXISTS {NAME} WITH (FORCE)")


@pytest.fixture
def empty(target: str) -> str:
    """The same, without anything in it."""
    import psycopg

    with psycopg.connect(target.rsplit("/", 1)[0] + "/postgres", autocommit=True) as admin:
        admin.execute(f"DROP DATABASE IF EXISTS {NAME} WITH (FORCE)")
        admin.execute(f"CREATE DATABASE {NAME}")
    return target


def runner_on(data_dir: Path) -> Run:
    """Runs Python in the checkout with a data folder, on SQLite unless told otherwise."""

    def runner(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        plain = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "REDIS_URL")}
        settings = {"DATA_DIR": str(data_dir), "DJANGO_SETTINGS_MODULE": "inspector.project.settings"}
        return subprocess.run(
            [sys.executable, *arguments], cwd=ROOT, env=plain | settings | environment, capture_output=True, text=True
        )

    return runner


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A data folder with two samples; the digests of what is stored and of its replay."""
    folder = tmp_path_factory.mktemp("source")
    run = runner_on(folder / "data")
    names = ("small-window", "unpersisted-loop")
    for name in names:
        (folder / f"{name}.jsonl").write_bytes(native.write(SAMPLES[name].build()))
    assert run("manage.py", "import", *(str(folder / f"{name}.jsonl") for name in names)).returncode == 0
    return folder / "data", run("-c", DIGESTS).stdout


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs Python with a data folder of this test."""
    return runner_on(tmp_path / "data")


@pytest.fixture
def stored(source: tuple[Path, str], tmp_path: Path) -> str:
    """The samples in the data folder of this test; their digests."""
    shutil.copytree(source[0], tmp_path / "data")
    return source[1]


@pytest.mark.long
def test_what_was_moved_has_the_same_digests_stays_when_moved_again_and_takes_new_sessions(
    stored, run, empty, tmp_path
):
    """That a copy is compared row by row before it is kept, the next test tries."""
    moved = run("manage.py", "move_to_postgres", empty)
    assert moved.returncode == 0, moved.stderr
    assert len(stored.splitlines()) == 2
    again = run("manage.py", "move_to_postgres", empty)
    assert again.returncode == 1
    assert "already" in again.stderr
    (tmp_path / "new.jsonl").write_bytes(native.write(SAMPLES["timing-gap"].build()))
    added = run("manage.py", "import", str(tmp_path / "new.jsonl"), DATABASE_URL=empty)
    assert added.returncode == 0, added.stderr
    asked = run("-c", DIGESTS + SEARCH, DATABASE_URL=empty)
    assert asked.returncode == 0, asked.stderr
    *digests, matches, pending = asked.stdout.splitlines()
    assert set(stored.splitlines()) < set(digests), asked.stderr
    assert (len(digests), matches, pending) == (3, "3", "0")


SEARCH = """
from inspector.models import default_project
from inspector.storage.query_words import parse
from inspector.storage import search
from inspector.jobs import indexing
print(len(search.everywhere(default_project(), parse("the"), None, 9, 1)))
print(indexing.pending().count())
"""


def test_a_copy_that_differs_is_not_kept(stored, run, empty):
    differing = (
        "import django; django.setup(); from inspector.data_folder import moving as m; m.digest = lambda t, a: a"
    )
    failed = run("-c", f"{differing}\nm.move({empty!r}, print)")
    assert "differs from the original" in failed.stderr
    assert run("-c", DIGESTS, DATABASE_URL=empty).stdout == ""


@pytest.mark.parametrize(
    "url", mostly_long(["mysql://x/y", "postgresql://nobody@127.0.0.1:1/none", "nonsense"], short=["mysql://x/y"])
)
def test_a_wrong_address_is_a_sentence(run, url):
    refused = run("manage.py", "move_to_postgres", url)
    assert refused.returncode == 1
    assert "Traceback" not in refused.stderr
