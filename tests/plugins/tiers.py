"""Two tiers of tests: `make test` has a test of everything that a user relies on, `make long` what repeats it at
length.

A test that is marked `long` says in its docstring, or in that of its module, which shorter test fails on the same
defect. One of which only the run on PostgreSQL is long is marked `long("postgresql")`: on SQLite it is part of `make
test`; so are the files in LONG_AGAIN. Of many cases `mostly_long` leaves a few to `make test`. Part of both are a law
of which `make test` tries few examples (`examples.py`), and what is marked `long("more")`, which asks the option
`--short` how much to do.

Together the two run every test on every database that it has; `test_tiers.py` holds them to it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest

from tests.plugins.examples import is_dear

POSTGRES, MORE = "postgresql", "more"
# What `make test` does not repeat on PostgreSQL, and the shorter tests that do: what pages, accounts and the API ask
# the database for, `test_hostile_requests.py` asks of each of their addresses, looking for errors alone; servers and
# workers start, store and stream there in AGAIN_AT_ONCE. Models, storage, jobs, imports and streams are repeated whole.
LONG_AGAIN = ("tests/inspector/pages/", "tests/inspector/accounts/", "tests/inspector/api/", "tests/services/")
AGAIN_AT_ONCE = (
    "tests/inspector/pages/test_hostile_requests.py",
    "tests/services/test_kills.py",
    "tests/services/test_streams.py",
    "tests/services/test_uploading.py",
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


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    is_postgres = config.getoption("second_database")
    for name, is_chosen in (("short", is_in_short), ("long", is_in_long)):
        if config.getoption(name):
            others = [item for item in items if not is_chosen(item, is_postgres)]
            config.hook.pytest_deselected(items=others)
            items[:] = [item for item in items if is_chosen(item, is_postgres)]


def is_in_short(item: pytest.Item, is_postgres: bool) -> bool:
    """Is a test part of `make test`, in the run on this database."""
    parts = [mark.args for mark in item.iter_markers("long")]
    is_again = item.nodeid.startswith(LONG_AGAIN) and not item.nodeid.startswith(AGAIN_AT_ONCE)
    return () not in parts and not (is_postgres and (is_again or (POSTGRES,) in parts))


def is_in_long(item: pytest.Item, is_postgres: bool) -> bool:
    """Is a test part of `make long`, in the run on this database."""
    is_longer = any(mark.args == (MORE,) for mark in item.iter_markers("long"))
    return not is_in_short(item, is_postgres) or is_longer or is_dear(item)
