"""How soon an import obeys a cancel, by what it does between two looks: few bytes, few events, few short statements.

Seconds are measured by tests/benchmarks/measure_jobs.py; here they cannot be, on a machine of any speed.
"""

from __future__ import annotations

from io import BytesIO
from itertools import pairwise
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from guard_core.simulator.big_files import write_claude_code
from inspector.ingest.importing import ImportWatch, run_import
from inspector.ingest.reading import reader
from inspector.ingest.submitting import cancel_import, submit
from inspector.ingest.uploads import receive
from inspector.models import Import, Session, default_project
from inspector.storage import texts

pytestmark = pytest.mark.django_db

BYTES_A_LOOK = 4 * 2**20  # read between two looks: a fifth of a second at 20 MB a second
STATEMENTS_A_LOOK = 40  # each of at most texts.ROWS rows
LAST_STATEMENTS = 40  # after the last look, whatever the length of the session


def transcript(steps: int, size: int) -> bytes:
    out = BytesIO()
    write_claude_code(out, steps=steps, size=size, seed=steps)  # none is the beginning of another
    return out.getvalue()


class Looks:
    """Everything that an import does, in order: its looks, and its statements with the number of their values."""

    def __init__(self) -> None:
        self.done: list[tuple[str, int]] = []  # ("look", bytes done) or ("statement", values)

    def watching(self, *args: Any) -> ImportWatch:
        """A watch whose looks are noted here."""
        noted = self.done

        class Noting(ImportWatch):
            def reading(self, done: int, total: int) -> None:
                noted.append(("look", done))
                super().reading(done, total)

            def stored(self, count: int) -> None:
                noted.append(("stored", count))
                super().stored(count)

            def phase(self, name: str) -> None:
                noted.append((name, 0))
                super().phase(name)

        return Noting(*args)

    def statement(self, execute, sql, params, many, context):
        self.done.append(("statement", sum(map(len, params)) if many else len(params or ())))
        return execute(sql, params, many, context)

    def of(self, job: Import) -> list[tuple[str, int]]:
        with connection.execute_wrapper(self.statement):
            run_import(str(job.pk), watching=self.watching)
        job.refresh_from_db()
        assert job.state == "done", job.message
        return self.done

    def between(self) -> list[int]:
        """How many statements came between two looks or phases."""
        counts = [0]
        for kind, _ in self.done:
            if kind == "statement":
                counts[-1] += 1
            else:
                counts.append(0)
        return counts


@pytest.fixture
def looks(folders) -> Looks:
    return Looks()


@pytest.mark.once  # the file is read before anything is stored
def test_few_bytes_are_read_between_two_looks(looks):
    content = transcript(200, 9_000_000)
    done = looks.of(submit(default_project(), receive([content], "a.jsonl")))
    reading = done[: done.index(("counted", 0))]
    places = [0, *(bytes_done for kind, bytes_done in reading if kind == "look")]
    assert places[-1] == len(content)
    assert max(b - a for a, b in pairwise(places)) <= BYTES_A_LOOK


def test_few_short_statements_are_run_between_two_looks(looks):
    looks.of(submit(default_project(), receive([transcript(2_000, 2_000_000)], "a.jsonl")))
    assert max(looks.between()) <= STATEMENTS_A_LOOK
    values = [count for kind, count in looks.done if kind == "statement"]
    assert max(values) <= 3 * max(texts.ROWS, reader.BATCH)


@pytest.mark.long
@pytest.mark.once  # SQLite takes fewer values in one statement, so its statements are the most
def test_what_comes_after_the_last_look_does_not_grow_with_the_session(folders):
    """That few short statements are run between two looks is tried on a shorter file."""
    counts = []
    for steps in (2_500, 5_000):  # both are stored while they are read
        content = transcript(steps, steps * 2_000)
        assert len(content) > 2**22
        done = Looks().of(submit(default_project(), receive([content], f"{steps}.jsonl")))
        counts.append(len(done) - done.index(("indexed", 0)))
    assert max(counts) <= LAST_STATEMENTS
    assert abs(counts[1] - counts[0]) <= 2


@pytest.mark.parametrize("phase", ["counted", "indexed"])
def test_a_cancel_at_the_beginning_of_a_phase_stores_nothing(phase, folders):
    class CancelledFirst(ImportWatch):
        def phase(self, name: str) -> None:
            if name == phase:
                cancel_import(self.job)
            super().phase(name)

    job = submit(default_project(), receive([transcript(200, 400_000)], "a.jsonl"))
    run_import(str(job.pk), watching=CancelledFirst)
    job.refresh_from_db()
    assert job.state == "cancelled"
    assert not Session.unscoped.exists()


def test_a_cancel_is_one_row_changed_and_waits_for_no_worker(folders):
    def asked(messages: int) -> int:
        """Statements of a cancel, whose number follows from the tables that refer to a recording."""
        job = submit(default_project(), receive([transcript(messages, 400_000)], "a.jsonl"))
        Import.unscoped.filter(pk=job.pk).update(state="running", lease="busy")
        with CaptureQueriesContext(connection) as queries:
            cancel_import(job)
        assert Import.unscoped.get(pk=job.pk).state == "cancelled"
        return len(queries)

    assert asked(10) == asked(200) < 50
