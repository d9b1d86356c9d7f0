"""One server for the tests that do not stop it, on the database that the suite runs on."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.services.server import Running, running, transcript, until


def pytest_itemcollected(item: pytest.Item) -> None:
    """All of this folder run in one process, which has the one server. (Later hooks are too late: xdist has looked.)"""
    item.add_marker(pytest.mark.services)
    item.add_marker(pytest.mark.xdist_group("services"))


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("served")) as started:
        warm = json.loads(started.send("first.json", transcript()).body)["imports"][0]
        until(lambda: "/s/" in (started.get(warm["url"]).headers.get("location") or warm["url"]))
        yield started
