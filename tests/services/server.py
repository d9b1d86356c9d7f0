"""The server as a user starts it: a process with a data folder of its own, on a free port, spoken to over a socket."""

from __future__ import annotations

import atexit
import fcntl
import http.client
import json
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlparse
from uuid import uuid4

from tests.services.databases import DATABASE, ROOT, is_free, neighbours_of
from tests.waiting import LOOK_EVERY, PATIENCE, until

MOMENT = 0.03  # seconds that a held process goes on between two looks


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()


@dataclass
class Running:
    """A started server."""

    process: subprocess.Popen[str]
    origin: str
    data_dir: Path
    cookie: str = ""
    token: str = ""
    output: list[str] = field(default_factory=list)  # what it has printed up to now
    errors: list[str] = field(default_factory=list)  # the same of its log
    _fetching: threading.Lock = field(default_factory=threading.Lock)

    def request(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Answer:
        address = urlparse(self.origin)
        connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=PATIENCE)
        given = {"Cookie": self.cookie, **(headers or {})} if self.cookie else headers or {}
        try:
            connection.request(method, path, body=body, headers=given)
            response = connection.getresponse()
            return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Answer:
        return self.request("GET", path, headers=headers)

    def post(
        self, path: str, body: bytes = b"", content_type: str = "application/x-www-form-urlencoded", **more: str
    ) -> Answer:
        """A post as the page sends it, with its token."""
        with self._fetching:  # of two threads at once, one would send its token with the cookie of the other
            if not self.token:
                self._fetch_token()
        headers = {"X-CSRFToken": self.token, "Content-Type": content_type, "Origin": self.origin, **more}
        return self.request("POST", path, body, headers)

    def upload(self, name: str, content: bytes, **fields: str) -> Answer:
        """A file sent by the plain form."""
        return self._post_file(name, content, fields, "text/html")

    def send(self, name: str, content: bytes, **fields: str) -> Answer:
        """A file sent as the page's script sends it: the answer is JSON."""
        return self._post_file(name, content, fields, "application/json")

    def _post_file(self, name: str, content: bytes, fields: dict[str, str], accept: str) -> Answer:
        boundary = uuid4().hex
        parts = [
            f'--{boundary}\r\nContent-Disposition: form-data; name="{key}"\r\n\r\n{value}\r\n'.encode()
            for key, value in fields.items()
        ]
        parts.append(f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'.encode())
        body = b"".join([*parts, content, f"\r\n--{boundary}--\r\n".encode()])
        return self.post("/recordings/", body, f"multipart/form-data; boundary={boundary}", Accept=accept)

    def workers(self) -> list[int]:
        """Process ids of the workers."""
        return self.children("inspector.project.worker")

    def children(self, command: str = "") -> list[int]:
        """Process ids of what the server has started: worker, replays, watchers; those alone that have a `command`."""
        return children_of(self.process.pid, command)

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Ask it to end; its exit code. subprocess.TimeoutExpired when it does not end in time."""
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)

    def _fetch_token(self) -> None:
        self.cookie = ""  # with one, the answer would bring none
        page = self.get("/no-such-page/")  # every page carries a token, the smallest is this
        self.cookie = page.headers["set-cookie"].split(";")[0]
        result = re.search(r'X-CSRFToken": "([^"]+)"', page.text)
        assert result is not None, page.text[:500]
        self.token = result[1]


def children_of(process: int, command: str = "") -> list[int]:
    """Process ids of what a process has started; those alone that have a `command`."""
    asked = ["pgrep", "-P", str(process), "-f", command]
    result = subprocess.run(asked, capture_output=True, text=True, check=False)
    return [int(line) for line in result.stdout.split()]


def command(*arguments: str, environment: dict[str, str] | None = None) -> subprocess.Popen[str]:
    """The command line of the package, as a process."""
    return subprocess.Popen(
        [sys.executable, "-m", "inspector.project.cli", *arguments],
        cwd=ROOT,
        env={**clean_environment(), **(environment or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def clean_environment() -> dict[str, str]:
    inherited = {"PATH", "HOME", "LANG", "TMPDIR"}
    return {**{key: value for key, value in os.environ.items() if key in inherited}, "PYTHONUNBUFFERED": "1"}


@contextmanager
def running(data_dir: Path, *arguments: str, **environment: str) -> Iterator[Running]:
    """A server on the database that the suite runs on, ended with the block.

    A new folder begins with the tables and static files that the first start of a server makes, a used one that has no
    static files with those: making them is most of what a start computes.
    """
    if "DATABASE_URL" not in environment:
        environment = {**neighbours_of(data_dir), **environment}
    is_new = not data_dir.exists() or not any(data_dir.iterdir())
    if is_new or not (data_dir / "static").exists():
        begun = begun_folder()
        names = ["static", "static.stamp", *([DATABASE] if is_new and not environment.get("DATABASE_URL") else [])]
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name in names:
            copy = shutil.copytree if (begun / name).is_dir() else shutil.copy2
            copy(begun / name, data_dir / name)
    with started(data_dir, *arguments, **environment) as server:
        yield server


def begun_folder() -> Path:
    """A data folder on SQLite as the first start of a server leaves it, made once for all processes of the run."""
    shared = _shared_folder()
    folder, unfinished = shared / "begun", shared / "beginning"
    with (shared / "begun.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            shutil.rmtree(unfinished, ignore_errors=True)
            with started(unfinished, DATABASE_URL="") as server:
                until(lambda: server.get("/healthz").status == 200)  # its worker may take long to come up
                assert server.stop() == 0
            unfinished.rename(folder)
    return folder


@cache
def _shared_folder() -> Path:
    """The folder that the processes of a run share; one of its own for a measurement, which is not a run of tests."""
    if given := os.environ.get("TEST_SHARED_DIR"):
        return Path(given)
    folder = Path(tempfile.mkdtemp(prefix="inspector-begun-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@contextmanager
def started(data_dir: Path, *arguments: str, **environment: str) -> Iterator[Running]:
    """A server on a data folder as it is, ended with the block."""
    process = command("serve", "--port", "0", "--data-dir", str(data_dir), *arguments, environment=environment)
    lines: queue.Queue[str] = queue.Queue()
    errors: list[str] = []
    output: list[str] = []

    def listen() -> None:
        for line in process.stdout or ():
            output.append(line)
            lines.put(line)
        lines.put("")

    readers = [
        threading.Thread(target=listen, daemon=True),
        threading.Thread(target=lambda: errors.extend(process.stderr or ()), daemon=True),
    ]
    for reader in readers:
        reader.start()
    with process:  # closes its pipes in the end
        try:
            yield Running(process, _origin(lines, errors), data_dir, output=output, errors=errors)
        finally:
            _end(process)
            for reader in readers:
                reader.join(5)


def _end(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()


def _origin(lines: queue.Queue[str], errors: list[str]) -> str:
    greeting = lines.get(timeout=PATIENCE)
    if not greeting:  # the end of its output
        raise AssertionError("the server did not start: " + "".join(errors))
    result = re.search(r"http://\S+:\d+", greeting)
    assert result is not None, greeting
    return result[0]


def stepped(process: int, condition: Callable[[], Any]) -> Any:
    """The first true value of the condition, looked for while a process is held, which goes on for a moment between two
    looks: no machine is so fast that what comes and goes is missed. The process stays held."""

    def look() -> Any:
        os.kill(process, signal.SIGCONT)
        time.sleep(MOMENT)
        os.kill(process, signal.SIGSTOP)
        return condition()

    return until(look)


def held_worker(server: Running) -> int:
    """The worker of a server, held at a moment at which it does not keep others from the database."""
    (worker,) = until(server.workers)

    def held() -> bool:
        os.kill(worker, signal.SIGSTOP)
        until(lambda: _is_held(worker))
        if is_free(server.data_dir):
            return True
        go_on(worker)
        return False

    until(held)
    return worker


def _is_held(process: int) -> bool:
    """Have all threads stopped; one that was in a call into the kernel does when that has ended."""
    states = [path.read_text().rpartition(")")[2].split()[0] for path in Path(f"/proc/{process}/task").glob("*/stat")]
    return set(states) == {"T"}


def go_on(process: int) -> None:
    """Let a held process go on."""
    os.kill(process, signal.SIGCONT)


def within(seconds: float, condition: Callable[[], Any]) -> bool:
    """Does the condition come true in as many looks as these seconds have? A machine that is slow looks slowly, too."""
    for _ in range(round(seconds / LOOK_EVERY)):
        if condition():
            return True
        time.sleep(LOOK_EVERY)
    return False


def transcript(messages: int = 4) -> bytes:
    """A small list of chat messages, as a recording."""
    spoken = [
        {"role": "user" if index % 2 == 0 else "assistant", "content": f"message {index} of {uuid4().hex}"}
        for index in range(messages)
    ]
    return json.dumps({"model": "gpt-4o", "messages": spoken}).encode()
