"""What the health check says, and that it is a failure for whoever watches over the server."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from inspector.project import health

pytestmark = pytest.mark.django_db


def test_a_healthy_server_gives_no_reasons(client):
    answer = client.get("/healthz")
    assert (answer.status_code, answer.json()["status"]) == (200, "ok")


def test_a_disk_below_the_floor_is_named_with_its_setting(client, settings):
    settings.MIN_FREE_BYTES = 2**60
    answer = client.get("/healthz")
    assert (answer.status_code, answer.json()["status"]) == (503, "failing")
    (reason,) = answer.json()["reasons"]
    assert reason["about"] == "disk"
    assert "1,152,921,504,606,846,976 (MIN_FREE_BYTES)" in reason["reason"]


@pytest.mark.parametrize("shift", [-health.WORKER_SILENT_SECONDS - 1, 3_600])
def test_a_worker_that_was_not_heard_of_is_named(settings, shift):
    beat = Path(settings.DATA_DIR) / "worker.beat"
    os.utime(beat, (time.time() + shift,) * 2)
    (reason,) = health.problems(began=time.monotonic() - health.STARTING_SECONDS)
    assert reason["about"] == "worker"
    assert "imports wait" in reason["reason"]


def test_a_lock_is_named_once_it_was_held_for_seconds_in_which_nothing_was_written():
    lock, seconds = health.Lock(), health.LOCKED_SECONDS
    assert not any(lock.is_stuck(second, second // 3) for second in range(100))  # writers take turns
    assert [lock.is_stuck(200 + later, "same") for later in (0, seconds - 1, seconds)] == [False, False, True]
    lock.free()
    assert not lock.is_stuck(300, "same")
