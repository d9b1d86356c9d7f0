"""Sockets: who may open one, what they say, and that a bad frame harms nobody."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID, uuid4

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from tests.services.server import Running, go_on, held_worker, transcript
from tests.services.test_uploading import only, settled
from tests.waiting import PATIENCE

HOSTILE_FRAMES = ["{", "[" * 100_000, "9" * 5_000, b"\x00\xff", '{"a": "\\ud800"}', "null", "NaN"]


@contextmanager
def opened(server: Running, path: str, origin: str | None = None) -> Iterator[ClientConnection]:
    address = server.origin.replace("http", "ws") + path
    with connect(address, origin=server.origin if origin is None else origin or None, open_timeout=PATIENCE) as socket:
        yield socket


def talk(socket: ClientConnection, frame: str | bytes) -> str:
    """The code that the socket closes with after a frame; before, it says only what it may say."""
    try:
        socket.send(frame)
        while True:
            assert set(json.loads(socket.recv(PATIENCE))) <= {"changed", "error"}
    except ConnectionClosed as closed:
        return str(closed.rcvd.code if closed.rcvd else closed.sent.code if closed.sent else 1006)


def refusal(server: Running, path: str, origin: str | None = None) -> str:
    """How an attempt to open a socket ends: the HTTP status, or the code it was closed with."""
    try:
        with opened(server, path, origin) as socket:
            return talk(socket, "{}")
    except InvalidStatus as refused:
        return str(refused.response.status_code)


@pytest.fixture
def held_import(server: Running, finished: str) -> Iterator[str]:
    """The address of an import whose worker is held: it lasts as long as the test."""
    worker = held_worker(server)
    try:
        yield json.loads(server.send("held.json", transcript()).body)["imports"][0]["url"]
    finally:
        go_on(worker)


@pytest.fixture(scope="module")
def finished(server: Running) -> str:
    """The id of an import that has ended."""
    words = f"no session {uuid4()}".encode()
    return only(settled(lambda: server.send("words.txt", words)))["url"].split("/")[2]


def test_a_watcher_is_told_that_something_changed_and_nothing_else(server: Running, finished: str) -> None:
    with opened(server, f"/ws/imports/{finished}/") as socket:
        assert json.loads(socket.recv(PATIENCE)) == {"changed": True}
        with pytest.raises(ConnectionClosed):
            socket.recv(PATIENCE)


@pytest.mark.once
@pytest.mark.parametrize(
    "origin",
    ["https://evil.invalid", "http://127.0.0.1:3000", "http://localhost:1", "", "http://[::1", "null", "file://"],
    ids=["elsewhere", "another port", "another name", "none", "malformed", "null", "file"],
)
def test_other_origins_may_not_open_a_socket(origin: str, server: Running, finished: str) -> None:
    assert refusal(server, f"/ws/imports/{finished}/", origin) == "403"


@pytest.mark.once
@pytest.mark.parametrize("path", ["/ws/nope/", f"/ws/imports/{UUID(int=7)}/", "/ws/imports/x/", "/"])
def test_an_unknown_socket_is_refused_without_an_error(path: str, server: Running) -> None:
    assert refusal(server, path) in ("403", "4404")


@pytest.mark.once
@pytest.mark.parametrize("frame", HOSTILE_FRAMES, ids=range(len(HOSTILE_FRAMES)))
def test_a_hostile_frame_is_answered_or_closed_and_the_server_goes_on(
    frame: str | bytes, server: Running, finished: str
) -> None:
    with opened(server, f"/ws/imports/{finished}/") as socket:
        assert talk(socket, frame) in ("1000", "1008", "1009", "1005")
    assert server.get("/healthz").status == 200


@pytest.mark.once
def test_a_frame_over_the_limit_closes_the_socket(server: Running, held_import: str) -> None:
    with opened(server, f"/ws{held_import}") as socket:
        assert talk(socket, "x" * (2**20 + 1)) == "1009"


def test_pages_go_on_while_a_file_is_read(server: Running, held_import: str) -> None:
    assert server.get("/healthz").status == 200
    assert server.send("small.json", transcript()).status == 201
