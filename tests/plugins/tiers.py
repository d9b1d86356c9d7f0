"""Two tiers of tests: `make test` is short enough to be run before every commit, and `make long` has the rest, which
must pass before anything is merged.

Part of `make test` are, on SQLite, the engine, the formats and the pages as the views answer them; of what a browser
shows and of servers and workers that are processes of their own WALKS, a few ways through what is used most; and on
PostgreSQL AGAIN, most of what the database itself takes part in: rows, transactions, jobs, imports.

What else costs half a second and more, and one in so many of many cases, `longer.py` lists, each beside what `make
test` has of the same promise. Elsewhere a test that is marked `long` says in its docstring, or in that of its module,
which shorter test fails on the same defect. One of which only the run on PostgreSQL is long is marked
`long("postgresql")`. Of many cases `mostly_long` leaves a few to `make test`. Part of both are a law of which `make
test` tries few examples (`examples.py`), and what is marked `long("more")`, which asks the option `--short` how much to
do.

Together the two run every test on every database that it has; `test_tiers.py` holds them to it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from tests.plugins.examples import is_dear
from tests.plugins.longer import LONG, SAMPLED

POSTGRES, MORE = "postgresql", "more"
LONGER = tuple(f"{file}::{test}" for file, tests in LONG.items() for test in tests)  # how the ids of long tests begin
# Folders of which `make test` has WALKS alone: tests whose ids begin so.
WALKED = ("tests/browser/", "tests/services/")
WALKS = (
    "tests/browser/test_console.py",
    "tests/browser/test_first_light.py",
    "tests/browser/test_growing_session.py::test_new_steps_are_said_shown_and_followed_until_one_steps_back",
    "tests/browser/test_guarded_agent.py",
    "tests/browser/test_hostile_text.py",
    "tests/browser/test_jobs.py",
    "tests/browser/test_library.py::test_chosen_sessions_are_tagged_deleted_and_brought_back_at_once",
    "tests/browser/test_looks.py::test_it_is_accessible_and_fits_in_every_theme_and_at_every_width[home]",
    "tests/browser/test_looks.py::test_it_is_accessible_and_fits_in_every_theme_and_at_every_width[overview]",
    "tests/browser/test_looks.py::test_it_is_accessible_and_fits_in_every_theme_and_at_every_width[step]",
    "tests/browser/test_overview.py::test_a_zoom_fetches_the_points_between",
    "tests/browser/test_overview.py::test_the_chart_can_be_read_as_a_table_that_opens_in_view",
    "tests/browser/test_overview.py::test_what_is_typed_stays_as_typed_however_slow_the_answers_are",
    "tests/browser/test_stepper.py::test_keys_go_through_steps_compactions_and_ends",
    "tests/browser/test_uploading.py::test_a_damaged_file_is_told_and_the_rest_can_be_kept",
    "tests/browser/test_uploading.py::test_a_dropped_file_opens_as_a_session",
    "tests/browser/test_without_scripts.py::test_every_chart_is_a_picture",
    "tests/services/test_kills.py",
    "tests/services/test_orphans.py::test_no_process_outlives_a_server_that_is_killed[importing]",
    "tests/services/test_outside.py",
    "tests/services/test_serving.py::test_a_wrong_setting_is_told_in_one_sentence",
    "tests/services/test_serving.py::test_everything_stored_is_for_its_owner_alone",
    "tests/services/test_serving.py::test_it_says_where_it_listens_and_is_healthy",
    "tests/services/test_serving.py::test_it_stops_cleanly_when_asked",
    "tests/services/test_serving.py::test_without_login_it_refuses_to_be_reached_from_elsewhere",
    "tests/services/test_sockets.py::test_a_hostile_frame_is_answered_or_closed_and_the_server_goes_on",
    "tests/services/test_sockets.py::test_other_origins_may_not_open_a_socket",
    "tests/services/test_streams.py",
    "tests/services/test_uploading.py::test_a_sample_opens_in_one_click",
    "tests/services/test_uploading.py::test_a_small_file_is_a_session_before_the_answer_comes",
    "tests/services/test_uploading.py::test_bad_input_is_refused_in_a_sentence",
    "tests/services/test_uploading.py::test_what_was_uploaded_comes_back_byte_for_byte",
)
# What `make test` has on PostgreSQL; `make long` has the rest of what a second database may change.
AGAIN = (
    "tests/inspector/ingest/test_importing.py",
    "tests/inspector/jobs/",
    "tests/inspector/models/",
    "tests/inspector/storage/",
    "tests/services/test_kills.py",
)


def mostly_long(cases: Iterable[Any], short: Collection[Any]) -> list[Any]:
    """The cases of a test, each marked `long` but those of `short`, which must be among them."""
    every = list(cases)
    assert all(case in every for case in short), f"no such cases: {[case for case in short if case not in every]}"
    return [
        case if case in short else pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.long)
        for case in every
    ]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--short", action="store_true", help="without the tests marked `long`")
    parser.addoption("--long", action="store_true", help="only the tests marked `long`, and laws with more examples")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A file of which `make test` repeats nothing is not even read there."""
    if not (config.getoption("short") and config.getoption("second_database")):
        return None
    place = collection_path.relative_to(config.rootpath).as_posix()
    return True if collection_path.name.startswith("test_") and not place.startswith(AGAIN) else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    is_postgres = config.getoption("second_database")
    for name, is_chosen in (("short", is_in_short), ("long", is_in_long)):
        if config.getoption(name):
            others = [item for item in items if not is_chosen(item, is_postgres)]
            config.hook.pytest_deselected(items=others)
            items[:] = [item for item in items if is_chosen(item, is_postgres)]


def is_in_short(item: pytest.Item, is_postgres: bool) -> bool:
    """Is a test part of `make test`, in the run on this database."""
    if item.nodeid.startswith(LONGER) or is_left_out(item.nodeid):
        return False
    parts = [mark.args for mark in item.iter_markers("long")]
    if () in parts or (is_postgres and (POSTGRES,) in parts):
        return False
    if is_postgres:
        return item.nodeid.startswith(AGAIN)
    return not item.nodeid.startswith(WALKED) or item.nodeid.startswith(WALKS)


def is_left_out(nodeid: str) -> bool:
    """Is this one of the many cases that `make test` does not have: always the same ones, wherever they are run."""
    return any(nodeid.startswith(start) and crc32(nodeid.encode()) % one_in for start, one_in in SAMPLED.items())


def is_in_long(item: pytest.Item, is_postgres: bool) -> bool:
    """Is a test part of `make long`, in the run on this database."""
    is_longer = any(mark.args == (MORE,) for mark in item.iter_markers("long"))
    return not is_in_short(item, is_postgres) or is_longer or is_dear(item)
