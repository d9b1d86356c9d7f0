"""The threads in which requests are answered, used again by later requests.

Django answers each request in a thread of its own. Without this one such thread is begun, and another one to wait for
its end, for each request: an eighth of what a batch of a stream costs the web process.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from asgiref.sync import ThreadSensitiveContext

App = Callable[[Any, Any, Any], Awaitable[None]]  # of scope, receive and send
MOST = 16  # threads that wait for a request; ours: more are seldom busy at once, and each keeps memory of its own


class RequestThread(ThreadPoolExecutor):
    """One thread, which knows whether it has anything left to do."""

    def __init__(self) -> None:
        super().__init__(max_workers=1, thread_name_prefix="request")
        self._last: Future[Any] | None = None

    @property
    def is_free(self) -> bool:
        """Has it done all that it was given? Of a request whose client left, a view may still run."""
        return self._last is None or self._last.done()

    def submit(self, *call: Any, **options: Any) -> Future[Any]:
        self._last = super().submit(*call, **options)
        return self._last


class RequestThreads:
    """Gives each request a thread: the one that was used last, whose caches are the warmest."""

    def __init__(self, app: App) -> None:
        self.app = app
        self._free: list[RequestThread] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        thread = self._free.pop() if self._free else RequestThread()
        try:
            async with ThreadSensitiveContext(executor=thread):
                await self.app(scope, receive, send)
        finally:
            if thread.is_free and len(self._free) < MOST:
                self._free.append(thread)
            else:
                thread.shutdown(wait=False)
