"""One server for the tests that do not stop it, on the database that the suite runs on."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from tests.services.server import Running, running


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.services)
            item.add_marker(pytest.mark.xdist_group("services"))


@pytest.fixture(scope="session")
def team() -> Iterator[dict[str, str]]:
    """Environment of the server: nothing, or the PostgreSQL and Redis that the suite was given."""
    base = os.environ.get("TEST_DATABASE_URL", "")
    if not base:
        yield {}
        return
    import psycopg

    admin = base.rsplit("/", 1)[0] + "/postgres"
    name = f"inspector_services_{uuid4().hex[:12]}"
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    yield {"DATABASE_URL": base.rsplit("/", 1)[0] + "/" + name, "REDIS_URL": os.environ.get("TEST_REDIS_URL", "")}
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory, team: dict[str, str]) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("served"), **team) as started:
        yield started
