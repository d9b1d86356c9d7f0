"""A socket joins what it watches whether Redis is there or not."""

from __future__ import annotations

import socket

import pytest

pytest.importorskip("channels_redis")

from inspector.api.hint_layer import HintLayer

GROUP = "changes.1"


@pytest.mark.parametrize("is_listening", [True, False], ids=["stopped", "gone"])
async def test_a_socket_opens_and_closes_without_redis(is_listening, caplog):
    """One that was stopped takes connections and answers nothing."""
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        if is_listening:
            place.listen()
        layer = HintLayer(hosts=[f"redis://127.0.0.1:{place.getsockname()[1]}/0"])
        with caplog.at_level("WARNING", "inspector.api.hint_layer"):
            one, other = await layer.new_channel(), await layer.new_channel()
            await layer.group_add(GROUP, one)
            await layer.group_discard(GROUP, one)
        assert one != other
        assert len(caplog.records) >= 3
        assert "it looks at its row itself" in caplog.text
