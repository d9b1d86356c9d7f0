"""`compaction-inspector capture`: run an agent behind the proxy, and record what it sends."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
import threading
import webbrowser
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path

from inspector.capturing.clients import ANY, CLIENTS, CapturedAgent
from inspector.capturing.log import CaptureLog
from inspector.capturing.proxy import Proxy
from inspector.capturing.routes import HttpProxy, Route, Upstream
from inspector.watching.sending import Away, Changed, Server

SENT_EVERY = 1.0  # seconds between checks at what a running server does not have yet
LOOPBACK = "127.0.0.1,localhost"
NOT_FOUND, NOT_RUNNABLE, BY_SIGNAL = 127, 126, 128  # exit codes as shells have them


def capture(
    command: Sequence[str],
    folder: Path,
    server: str,
    *,
    key: str = "",
    opens: bool = False,
    environ: Mapping[str, str] = os.environ,
) -> int:
    """Run a command behind the proxy; its exit code.

    `command`: the name of a known agent and its arguments, or any other command. `folder`: of the recordings.
    `server`: address of a running application that gets the recording as it grows; nothing is lost without one. `key`:
    of the application in team mode, with the scope "ingest".
    """
    client = CLIENTS.get(command[0], ANY)
    program = shutil.which(command[0], path=environ.get("PATH"))
    if program is None:
        print(f"{command[0]} is not installed, or not on the PATH.", file=sys.stderr)
        return NOT_FOUND
    if warning := client.warning(environ):
        print(warning, file=sys.stderr)
    words = _Announcements()
    path = folder / f"{client.name or 'capture'}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{os.getpid()}.jsonl"
    sending = _Sending(path, Server(server, key), opens=opens)
    log = CaptureLog(path, client.name or Path(program).name, words.say, sending.wake)
    routes = {}
    try:
        for item in client.providers(environ):
            upstream = Upstream.parse(item.upstream(environ))
            routes[item.name] = Route(upstream, HttpProxy.between(upstream, environ))
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    try:
        code = asyncio.run(_run([program, *command[1:]], client, routes, log, environ))
    except OSError as error:
        print(f"{command[0]} cannot be run: {error.strerror or error}", file=sys.stderr)
        code = NOT_RUNNABLE
    log.close()
    words.end()
    print(_result(log, *sending.end()), file=sys.stderr)
    return code


def folder_of_captures() -> Path:
    """The folder of the recordings: CAPTURES_DIR, else one of the user's data folder."""
    given = os.environ.get("CAPTURES_DIR", "").strip()
    data = os.environ.get("XDG_DATA_HOME", "").strip() or "~/.local/share"
    return Path(given or f"{data}/compaction-inspector/captures").expanduser()


async def _run(
    command: list[str],
    client: CapturedAgent,
    routes: dict[str, Route],
    log: CaptureLog,
    environ: Mapping[str, str],
) -> int:
    addresses: dict[str, str] = {}
    async with AsyncExitStack() as proxies:
        for name, route in routes.items():
            proxy = Proxy(route, log.add)
            proxies.push_async_callback(proxy.stop)
            addresses[name] = await proxy.start()
        arguments = [command[0], *client.arguments(addresses), *command[1:]]
        # The environment of the agent with the proxy's addresses; no other proxy may come before these.
        direct = {name: ",".join(filter(None, (environ.get(name), LOOPBACK))) for name in ("NO_PROXY", "no_proxy")}
        variables = {**environ, **direct, **client.variables(addresses)}
        process = await asyncio.create_subprocess_exec(*arguments, env=variables)
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, lambda: None)  # the terminal sends it to the agent as well
        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, _forward, process, number)
        code = await process.wait()
    return code if code >= 0 else BY_SIGNAL - code


def _forward(process: asyncio.subprocess.Process, number: int) -> None:
    """The agent may have ended just before."""
    with suppress(ProcessLookupError):
        process.send_signal(number)


def _result(log: CaptureLog, url: str, trouble: str) -> str:
    """What was recorded, where it is shown, and why what is new in it is not."""
    if not log.lines:
        return "No model call went through the proxy: nothing was recorded."
    calls = f"{log.lines} {'call' if log.lines == 1 else 'calls'}"
    shown = f", shown at {url}" if url else ""
    left = f"; {trouble.rstrip('.')}; import it to see them" if trouble else ""
    return f"Recorded {calls} of a model in {log.path}{shown}{left}"


class _Announcements:
    """What is to be said: at once, or after the agent where that has the terminal."""

    def __init__(self) -> None:
        self._later: list[str] | None = [] if sys.stderr.isatty() else None

    def say(self, words: str) -> None:
        if self._later is None:
            print(words, file=sys.stderr, flush=True)
        else:
            self._later.append(words)

    def end(self) -> None:
        later, self._later = self._later or [], None
        for words in later:
            self.say(words)


class _Sending:
    """Sends the recording to a running application, in a thread of its own, whenever it has grown."""

    def __init__(self, path: Path, server: Server, *, opens: bool) -> None:
        self._path, self._opens = path, opens
        self._server = server
        self._grown, self._ended = threading.Event(), threading.Event()
        self._url = self._trouble = ""
        self._thread = threading.Thread(target=self._run, name="sending", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """The recording has a new line."""
        self._grown.set()

    def end(self, seconds: float = 15.0) -> tuple[str, str]:
        """Send what is left; the address of the session, "" where none is shown, and why not all of it was sent."""
        self._ended.set()
        self._thread.join(seconds)
        return self._url, f"{self._server.origin} has not answered yet" if self._thread.is_alive() else self._trouble

    def _run(self) -> None:
        while not self._ended.wait(SENT_EVERY):
            self._send()
        self._send()

    def _send(self) -> None:
        if not self._grown.is_set():
            return
        self._grown.clear()
        try:
            answer = self._server.send(self._path)
        except (Away, Changed, OSError) as error:
            self._trouble = str(error)
            self._grown.set()
            return
        self._trouble = answer.refused
        if answer.url and not self._url and self._opens:
            webbrowser.open(answer.url)
        self._url = answer.url or self._url
