"""One server for the tests that do not stop it, on the database that the suite runs on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.services.server import Running, running, transcript, until


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.services)
            item.add_marker(pytest.mark.xdist_group("services"))


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("served")) as started:
        warm = json.loads(started.send("first.json", transcript()).body)["imports"][0]
        until(lambda: "/s/" in (started.get(warm["url"]).headers.get("location") or warm["url"]))
        yield started
