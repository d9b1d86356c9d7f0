"""Requests are answered in threads that earlier requests have used, one request in a thread at a time."""

from __future__ import annotations

import asyncio
import re
import threading
from pathlib import Path
from typing import Any

from asgiref.sync import sync_to_async

from inspector.project.threads import MOST, RequestThreads
from tests.waiting import PATIENCE


async def test_the_next_request_has_the_same_thread_and_one_at_the_same_time_another():
    seen: list[int] = []
    both = threading.Barrier(2, timeout=PATIENCE)

    async def app(scope: Any, *_: Any) -> None:
        await sync_to_async(lambda: seen.append(threading.get_ident()))()
        await sync_to_async(lambda: scope.wait() if scope else None)()
        await sync_to_async(lambda: seen.append(threading.get_ident()))()

    threads = RequestThreads(app)
    for _ in range(3):
        await threads(None, None, None)
    assert len(set(seen)) == 1
    seen.clear()
    await asyncio.gather(threads(both, None, None), threads(both, None, None))
    assert sorted(seen.count(thread) for thread in set(seen)) == [2, 2]


async def test_no_request_waits_for_what_one_whose_client_left_still_computes():
    held, entered = threading.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    async def app(scope: Any, *_: Any) -> None:
        def work() -> None:
            loop.call_soon_threadsafe(entered.set)
            held.wait(PATIENCE)

        if scope:
            await asyncio.shield(asyncio.ensure_future(sync_to_async(work)()))
        else:
            await sync_to_async(lambda: None)()

    threads = RequestThreads(app)
    left = asyncio.create_task(threads({"left": True}, None, None))
    await entered.wait()
    left.cancel()
    await asyncio.wait((left,), timeout=PATIENCE)
    async with asyncio.timeout(PATIENCE / 2):
        await threads(None, None, None)
    held.set()


async def test_few_threads_are_kept():
    before = threading.active_count()

    async def app(*_: Any) -> None:
        await sync_to_async(both.wait)()

    threads, count = RequestThreads(app), MOST + 4
    both = threading.Barrier(count, timeout=PATIENCE)
    await asyncio.gather(*(threads(None, None, None) for _ in range(count)))
    async with asyncio.timeout(PATIENCE):
        while threading.active_count() > before + MOST + 1:
            await asyncio.sleep(0.01)


def test_a_version_of_asgiref_that_takes_no_thread_is_not_installed():
    """Before 3.13 a context cannot be given one, and every request would fail; Django itself is content with 3.8."""
    (least,) = re.findall(r'"asgiref>=([0-9.]+)"', (Path(__file__).parents[3] / "pyproject.toml").read_text())
    assert [int(part) for part in least.split(".")] >= [3, 13]
