"""One server for the tests that do not stop it, on the database that the suite runs on."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.services.server import Running, running, transcript
from tests.waiting import until


def pytest_itemcollected(item: pytest.Item) -> None:
    item.add_marker(pytest.mark.services)


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """It ends with this folder: a server that nothing asks still takes half a second of a processor each minute."""
    with running(tmp_path_factory.mktemp("served")) as started:
        warm = json.loads(started.send("first.json", transcript()).body)["imports"][0]
        until(lambda: "/s/" in (started.get(warm["url"]).headers.get("location") or warm["url"]))
        yield started
