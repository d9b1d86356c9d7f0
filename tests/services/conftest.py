"""One server for the tests that do not stop it, on the database that the suite runs on."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import pytest

from tests.services.server import Running, running, transcript, until


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.services)
            item.add_marker(pytest.mark.xdist_group("services"))


@contextmanager
def neighbours() -> Iterator[dict[str, str]]:
    """Environment of one server: nothing, or a database of its own in the PostgreSQL that the suite was given."""
    base = os.environ.get("TEST_DATABASE_URL", "").rpartition("/")[0]
    if not base:
        yield {}
        return
    import psycopg

    name = f"inspector_services_{uuid4().hex[:12]}"
    with psycopg.connect(f"{base}/postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
        yield {"DATABASE_URL": f"{base}/{name}", "REDIS_URL": os.environ.get("TEST_REDIS_URL", "")}
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def team() -> Iterator[dict[str, str]]:
    """Environment of a server that is started for one test."""
    with neighbours() as environment:
        yield environment


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with neighbours() as environment, running(tmp_path_factory.mktemp("served"), **environment) as started:
        warm = json.loads(started.send("first.json", transcript()).body)["imports"][0]
        until(lambda: "/s/" in (started.get(warm["url"]).headers.get("location") or warm["url"]))
        yield started
