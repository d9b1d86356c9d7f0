"""A running server tells a receiver of the trouble of an agent that streams, while it streams."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from urllib.parse import urlencode

import pytest

from guard_core.sessions import ModelCall
from tests.builders import model, session, user
from tests.inspector.streamed import lines_of
from tests.inspector.webhooks.receiver import receiving
from tests.services.server import running
from tests.waiting import until


@pytest.mark.long
def test_a_near_miss_of_a_stream_reaches_the_receiver_signed_and_once(tmp_path: Path) -> None:
    """`tests/inspector/webhooks/test_deliveries.py` does so without a server."""
    events = [event for number in range(3) for event in (user(f"q{number}"), model(f"a{number}"))]
    calls = tuple(
        ModelCall(2 * n + 1, 2 * n + 1, prompt_tokens=count) for n, count in enumerate((9_000, 95_000, 96_000))
    )
    lines = lines_of(session(*events, calls=calls, window=100_000))
    with (
        receiving("error", "ok") as receiver,
        running(tmp_path, WEBHOOK_NETWORKS="127.0.0.0/8") as server,
    ):
        form = urlencode({"url": receiver.url, "kind": ["near_miss", "overflow", "loop"]}, doseq=True)
        page = html.unescape(server.post("/webhooks/add", form.encode()).text)
        (secret,) = re.findall(r'value="(whsec_[^"]+)"', page)
        for first in range(0, len(lines), 4):
            batch = json.dumps({"first": first, "lines": lines[first : first + 4]})
            answer = server.request(
                "POST", "/api/v1/sessions/agent/events", batch, {"Content-Type": "application/json"}
            )
            assert answer.status == 200, answer.text
        until(lambda: "delivered" in server.get("/webhooks/").text)
    assert {message.data["type"] for message in receiver.messages} == {"session.near_miss"}
    assert len({message.headers["webhook-id"] for message in receiver.messages}) == 1
    assert [message.is_signed_with(secret) for message in receiver.messages] == [True, True]
