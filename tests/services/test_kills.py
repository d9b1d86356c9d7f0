"""Servers killed at random moments: what was acknowledged is there, and nothing else is.

KILLS is the number of rounds; KILLS_SEED repeats the moments at which they end.

What a killed upload leaves and what is swept, `tests/inspector/data_folder/test_sweeping.py` tries without a server;
one kill under an upload, `test_uploading.py`.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from tests.services.folders import DATABASE
from tests.services.server import Running, running, transcript, within
from tests.services.test_orphans import PROMISE, processes_of
from tests.waiting import until

pytestmark = [pytest.mark.once, pytest.mark.long]

KILLS = int(os.environ.get("KILLS", "1"))
SEED = os.environ.get("KILLS_SEED") or str(random.randrange(2**32))


def upload_until_killed(server: Running, acknowledged: list[tuple[str, bytes]]) -> None:
    """Bring one session after another; the address and the bytes of each that the server says it has."""
    while True:
        content = transcript(random.randrange(2, 400))
        try:
            answer = server.send("chat.json", content)
        except (OSError, http.client.HTTPException):
            return
        if answer.status == 201:
            acknowledged.append((json.loads(answer.body)["imports"][0]["raw"], content))


def assert_whole(data_dir: Path) -> None:
    with closing(sqlite3.connect(data_dir / DATABASE)) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert database.execute("PRAGMA foreign_key_check").fetchall() == []
        (named,) = database.execute("SELECT count(*) FROM inspector_recording").fetchone()
    assert len(list((data_dir / "recordings").glob("??/*"))) == named
    assert not list((data_dir / "incoming").iterdir())


def test_what_was_acknowledged_survives_every_kill_and_nothing_else_stays(tmp_path: Path) -> None:
    print(f"KILLS_SEED={SEED}")
    dice = random.Random(SEED)
    acknowledged: list[tuple[str, bytes]] = []
    for _ in range(KILLS):
        with running(tmp_path, DATABASE_URL="") as started:
            before = len(acknowledged)
            senders = [threading.Thread(target=upload_until_killed, args=(started, acknowledged)) for _ in range(2)]
            for sender in senders:
                sender.start()
            until(lambda before=before: len(acknowledged) > before)
            time.sleep(dice.uniform(0, 1.5))
            started.process.kill()
            assert within(PROMISE, lambda: not processes_of(tmp_path))
            for sender in senders:
                sender.join()
    assert acknowledged
    with running(tmp_path, DATABASE_URL="") as started:
        for raw, content in acknowledged:
            assert started.get(raw).body == content
        until(lambda: not list((tmp_path / "incoming").glob("[!r]*")))
        started.stop()
    assert_whole(tmp_path)
