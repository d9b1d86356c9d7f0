"""Two web processes, each with a worker and a data folder, on one PostgreSQL and Redis: a stream into either, viewers
on either, a file in the folder of one of them.

What one server does with interleaved writers, `test_machine.py` tries without processes; that a file waits for its own
worker, `test_importing.py`.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlparse

import pytest
from websockets.sync.client import connect

from tests.big_sessions import big_session
from tests.inspector.streamed import lines_of
from tests.plugins.neighbours import find_redis
from tests.services.databases import fresh_postgres
from tests.services.server import Answer, Running, go_on, held_worker, running, transcript
from tests.waiting import PATIENCE, until

pytestmark = [pytest.mark.once, pytest.mark.long]
LINES = lines_of(big_session(60, 0))


@pytest.fixture(scope="module")
def neighbours() -> Iterator[dict[str, str]]:
    """The environment that the servers share."""
    redis = find_redis()
    if not redis:
        pytest.skip("no Redis answers on this machine")
    with fresh_postgres() as url:
        yield {"DATABASE_URL": url, "REDIS_URL": redis}


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory, neighbours: dict[str, str]) -> Iterator[tuple[Running, Running]]:
    folder = tmp_path_factory.mktemp("servers")
    with running(folder / "one", **neighbours) as one, running(folder / "two", **neighbours) as two:
        yield one, two


def post(server: Running, name: str, first: int, lines: list[dict[str, Any]]) -> Answer:
    body = json.dumps({"first": first, "lines": lines})
    return server.request("POST", f"/api/v1/sessions/{name}/events", body, {"Content-Type": "application/json"})


def test_a_viewer_on_one_server_hears_of_what_the_other_is_sent(servers):
    one, two = servers
    page = json.loads(post(one, "seen", 0, LINES[:3]).body)["url"]
    assert two.get(page).status == 200
    address = two.origin.replace("http", "ws") + page.replace("/s/", "/ws/sessions/")
    with connect(address, origin=two.origin, open_timeout=PATIENCE) as socket:
        before = json.loads(socket.recv(PATIENCE))["steps"]
        post(one, "seen", 3, LINES[3:6])
        assert json.loads(socket.recv(PATIENCE))["steps"] > before


def test_writers_on_both_servers_store_each_line_once(servers):
    def write(server: Running) -> None:
        at = 0
        while at < len(LINES):
            answer = post(server, "shared", at, LINES[at : at + 7])
            document = json.loads(answer.body)
            assert answer.status == 200 or "expected" in document, document
            at = document.get("acknowledged", document.get("expected"))

    writers = [threading.Thread(target=write, args=(server,)) for server in servers * 2]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    for server in servers:
        document = json.loads(post(server, "shared", 0, []).body)
        assert (document["acknowledged"], document["steps"]) == (len(LINES), 60)


def test_the_worker_of_one_server_does_what_that_of_the_other_cannot(servers):
    one, two = servers
    worker = held_worker(one)
    try:
        post(one, "left", 0, LINES)
        until(lambda: state(two, "left")["assessed"])
    finally:
        go_on(worker)


def test_a_file_in_the_folder_of_one_server_waits_for_its_worker(servers):
    one, two = servers
    worker = held_worker(one)
    try:
        page = urlparse(one.upload("waiting.json", transcript()).headers["location"]).path
        until(lambda: "in the data folder of the server that received it" in two.get(page).text)
    finally:
        go_on(worker)
    until(lambda: two.get(page).headers.get("location", "").startswith("/s/"))


def state(server: Running, name: str) -> dict[str, Any]:
    """What the API says of the session of a stream."""
    session = json.loads(post(server, name, 0, []).body)["session"]
    document: dict[str, Any] = json.loads(server.get(f"/api/v1/sessions/{session}").body)
    return document
