"""What becomes of a body that is refused. `tests/services/test_uploading.py` asks a real server."""

from __future__ import annotations

import errno

from asgiref.testing import ApplicationCommunicator

from inspector.project.body_limit import BodyLimit
from tests.waiting import PATIENCE

LIMIT = 100  # bytes
SCOPE = {"type": "http", "method": "POST", "path": "/x/", "headers": []}


async def _full_disk(scope, receive, send):
    """Fails once it has the whole body."""
    while (await receive()).get("more_body"):
        pass
    raise OSError(errno.ENOSPC, "No space left on device")


def _server(**headers: bytes) -> ApplicationCommunicator:
    stated = [(name.replace("_", "-").encode(), value) for name, value in headers.items()]
    return ApplicationCommunicator(BodyLimit(_full_disk, upload=LIMIT, other=LIMIT), {**SCOPE, "headers": stated})


async def _statuses(server: ApplicationCommunicator) -> list[int | None]:
    """Of all messages of an answer that ends."""
    messages = [await server.receive_output(PATIENCE) for _ in range(3)]
    await server.wait(PATIENCE)
    return [message.get("status") for message in messages]


async def test_the_answer_comes_before_the_body():
    server = _server(content_length=b"101")
    assert (await server.receive_output(PATIENCE))["status"] == 413
    assert b"100 bytes" in (await server.receive_output(PATIENCE))["body"]
    assert await server.receive_nothing(), "the connection stays open while the rest comes in"
    await server.send_input({"type": "http.request", "body": b"x" * 101, "more_body": False})
    assert await server.receive_output(PATIENCE) == {"type": "http.response.body"}
    await server.wait(PATIENCE)


async def test_a_body_without_end_is_taken_up_to_twice_the_limit():
    server = _server()
    for _ in range(3):
        await server.send_input({"type": "http.request", "body": b"x" * 70, "more_body": True})
    assert await _statuses(server) == [413, None, None]


async def test_an_answer_after_the_whole_body_waits_for_nothing():
    server = _server()
    await server.send_input({"type": "http.request", "body": b"x", "more_body": False})
    assert await _statuses(server) == [507, None, None]
