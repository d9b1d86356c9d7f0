"""A worker that is killed in the middle of a sweep: another one finishes it, and the answer is the same.

`tests/inspector/pages/sweep/test_views.py` lets another worker go on without a server.
"""

import json
import os
import signal
from pathlib import Path
from urllib.parse import urlencode, urlparse

import pytest

from guard_core.recordings.formats import native
from tests.big_sessions import big_session
from tests.browser.conftest import followed
from tests.services.server import Running, running
from tests.waiting import until

pytestmark = [pytest.mark.once, pytest.mark.long]

VALUES = "100k:139k:1k"  # of a policy that is replayed setting by setting: the worker is busy for seconds


def started(server: Running, key: str) -> str:
    form = {"session": key, "policy": "codex", "axis1": "window", "values1": VALUES, "figure": "cost"}
    answer = server.post("/sweeps/new", urlencode(form).encode())
    assert answer.status == 302, answer.text[:500]
    return urlparse(answer.headers["location"]).path


def answer(server: Running, address: str) -> dict:
    until(lambda: server.get(f"{address}sweep.json").status == 200)
    return json.loads(server.get(f"{address}sweep.json").body)


def page(server: Running, address: str) -> str:
    """The words of the page, without its line breaks."""
    return " ".join(server.get(address).text.split())


def test_a_killed_worker_leaves_a_sweep_that_another_one_finishes_with_the_same_answer(tmp_path: Path) -> None:
    with running(tmp_path, DATABASE_URL="") as server:
        location = server.upload("big.jsonl", native.write(big_session(600, 7))).headers["location"]
        key = followed(server, location).split("/")[2]
        undisturbed = answer(server, started(server, key))
        address = started(server, key)
        until(lambda: "0 of 40 replays" not in page(server, address))  # the first settings are stored
        os.kill(server.workers()[0], signal.SIGKILL)
        assert answer(server, address)["cells"] == undisturbed["cells"]
        server.stop()
    with running(tmp_path, DATABASE_URL="") as server:  # the answer is stored
        assert answer(server, address)["cells"] == undisturbed["cells"]
