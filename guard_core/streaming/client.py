"""Sends the lines of a running agent's session to an inspector, from a thread of its own.

recorder = Recorder(Client("http://127.0.0.1:8000"), agent="my agent", model="gpt-5")

What the agent writes is queued and never waits: neither a slow nor an absent server is noticed by it. Lines are sent
until they are acknowledged, with pauses that grow while the server is away. With a `spool` folder they are in a file as
well, until all are acknowledged; what a run could not send is sent by the next one that uses the folder, beside its own
lines, which do not wait for it. What a server will never take, as its session was deleted there, gets the ending
`.refused`, and no server is asked again.
"""

from __future__ import annotations

import atexit
import fcntl
import http.client
import json
import logging
import random
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit
from uuid import uuid4

from guard_core.streaming.outbox import Outbox, OutOfStep
from guard_core.streaming.whole_lines import append

log = logging.getLogger(__name__)

TIMEOUT = 30.0  # seconds for one answer
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 30.0  # seconds between two attempts, doubled each time
MOST_WAITING = (
    64 * 2**20
)  # bytes in memory; a server that is away for so long gets the rest by the spool, or not at all
_jitter = random.Random()  # noqa: S311 - no secret; of its own, for the program that it is in may count on its numbers
PATIENCE = 5.0  # seconds that `close` waits for the last acknowledgement
ENDING = ".stream.jsonl"  # of a file in the spool
REFUSED = ".refused"  # what its name ends with once a server has refused it for good
AGAIN = (408, 429, 500, 502, 503, 504, 507)  # HTTP status after which the same may be taken later
BAD, CONFLICT, OK, TOO_LARGE = 400, 409, 200, 413
FOR_GOOD = (BAD, CONFLICT, 410, TOO_LARGE)  # after which the same lines are not taken later either, by whatever key
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,99}")


class _GaveUp(Exception):
    """The server does not take this stream from this client."""


class _StreamRefused(_GaveUp):
    """The server will never take this stream: its session was deleted, or its lines are not what the server has."""


class _NotReached(Exception):
    """The server does not answer, or not now."""


class _StreamServer(NamedTuple):
    scheme: str
    host: str
    port: int | None
    path: str
    key: str

    def post(self, name: str, body: bytes) -> tuple[int, dict[str, Any]]:
        """Status and answer. Raises _NotReached."""
        kind = http.client.HTTPSConnection if self.scheme == "https" else http.client.HTTPConnection
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        connection = kind(self.host, self.port, timeout=TIMEOUT)
        try:
            connection.connect()
            with suppress(BrokenPipeError, ConnectionResetError):  # who refuses a body by its size does not read it
                connection.request("POST", f"{self.path}/api/v1/sessions/{quote(name)}/events", body, headers)
            response = connection.getresponse()
            text = response.read()
            # Whoever limits the size of bodies, be it a proxy, says so in a page or in plain text.
            is_json = response.status != TOO_LARGE or text.startswith(b"{")
            answer = json.loads(text) if is_json else {"error": f"{len(body):,} bytes are too many at once"}
        except (json.JSONDecodeError, UnicodeDecodeError) as error:  # a proxy's page, or the address of something else
            to = f" (redirected to {place})" if (place := response.getheader("Location")) else ""
            raise _NotReached(f"the server answered with status {response.status} and no JSON{to}") from error
        except (OSError, http.client.HTTPException, ValueError) as error:  # an address that HTTP cannot hold, too
            raise _NotReached(f"{type(error).__name__}: {error}") from error
        finally:
            connection.close()
        return response.status, answer if isinstance(answer, dict) else {}


class Client:
    """One stream, written like a file. `write`, `flush` and `close` never raise and, but for `close`, never wait.

    `server` is the address of an inspector, `key` a key of its team mode with the scope "ingest". `name` distinguishes
    the sessions of a project; a stream cannot be begun twice under one. ValueError where an address, a key or a name is
    none.
    """

    def __init__(self, server: str, name: str = "", *, key: str = "", spool: str | Path | None = None) -> None:
        parts = urlsplit(server)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("the address of a server begins with http:// or https:// and a host")
        if not (key.isascii() and key.isprintable()):  # the line break of a file: an error of the header would print it
            raise ValueError("the key of a server has letters, digits and _ only")
        self.name = name or uuid4().hex
        if NAME.fullmatch(self.name) is None:
            raise ValueError("a name has 1 to 100 letters, digits and . _ : -, and begins with a letter or digit")
        self.session = ""  # the address of the session, once it is known
        self.trouble = ""  # why nothing more is sent, or not now; empty while all is well
        self._server = _StreamServer(parts.scheme, parts.hostname, parts.port, parts.path.rstrip("/"), key)
        self._spool = None if spool is None else Path(spool)
        self._place: Path | None = None  # of this stream in the spool
        self._file: FileIO | None = None  # that file; it is locked as long as it is open
        self._is_kept = False  # whether it has every line
        self._outbox = Outbox()
        self._rest = b""  # of a line that is not whole
        self._waiting = 0  # bytes
        self._lines = 0  # that were written, whether they are sent or not
        self._changed = threading.Condition()
        self._ended = self._given_up = self._done = self._has_warned = False
        self._open_spool()
        self._left_behind = threading.Thread(target=self._send_left_behind, name=f"spool of {self.name}", daemon=True)
        self._thread = threading.Thread(target=self._run, name=f"stream {self.name}", daemon=True)
        self._thread.start()
        atexit.register(self.close)

    def write(self, data: bytes) -> int:
        """Whole lines, or parts of them."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        if self._is_kept and (file := self._file) is not None:
            self._keep(file, b"".join(line + b"\n" for line in lines))
        with self._changed:
            self._lines += sum(map(bool, lines))
            for line in lines:
                self._waiting += len(line)
                if self._given_up or not line:
                    continue
                if self._waiting > MOST_WAITING:
                    self._give_up("the server was away for too long")
                    break
                self._outbox.add(line)
            self._changed.notify_all()
        return len(data)

    def flush(self) -> None:
        """Nothing: lines are sent as they come."""

    def wait(self, seconds: float = PATIENCE) -> bool:
        """Wait until everything written is acknowledged; False where that takes longer, or will not happen."""
        with self._changed:
            self._changed.wait_for(lambda: self._given_up or not self._outbox, seconds)
            return not self._outbox and not self._given_up

    def close(self, patience: float = PATIENCE) -> bool:
        """Say that the agent has ended, and wait for the last acknowledgement up to so many seconds, for what earlier
        runs left in the spool, too. True where everything of this one was acknowledged; else the rest stays in the
        spool, or is lost without one, and a warning in the log says how many lines that are."""
        until = time.monotonic() + patience
        with self._changed:
            self._ended = True
            self._changed.notify_all()
        atexit.unregister(self.close)
        self._thread.join(patience)
        if self._done and self._left_behind.is_alive():
            self._left_behind.join(max(0.0, until - time.monotonic()))
        self._warn_of_rest()
        if self._file is not None:
            with suppress(OSError):
                self._file.close()
            self._file = None
        return self._done

    def _warn_of_rest(self) -> None:
        """Once, for the lines that are not acknowledged at the end."""
        with self._changed:
            number, is_first, self._has_warned = self._lines - self._outbox.first, not self._has_warned, True
        if number and is_first:
            lines = f"{number:,} line{'' if number == 1 else 's'}"
            where = "left in the spool" if self._is_kept else "without a spool lost when the program ends"
            log.warning("stream %s was closed with %s not acknowledged, %s", self.name, lines, where)

    def _run(self) -> None:
        pause = FIRST_PAUSE
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._outbox or self._ended)
                first, lines = self._outbox.batch()
                is_last = self._ended and first + len(lines) == self._outbox.end
            try:
                self._send(self.name, first, lines, ended=is_last)
                pause, self.trouble = FIRST_PAUSE, ""
                if self._left_behind.ident is None:  # the server answers
                    self._left_behind.start()
                if is_last:
                    self._finish()
                    return
            except _NotReached as error:
                self.trouble = f"not sent now: {error}"
                with self._changed:
                    self._changed.wait_for(lambda: self._ended, pause * _jitter.uniform(0.5, 1))
                    if self._ended:
                        time.sleep(FIRST_PAUSE)
                pause = min(2 * pause, LONGEST_PAUSE)
            except (_GaveUp, OutOfStep) as error:
                with self._changed:
                    self._give_up(str(error))
                if self._place and self._is_kept and isinstance(error, _StreamRefused | OutOfStep):
                    with suppress(OSError):  # what the agent writes from now on is in the same file
                        _set_aside(self._place)
                return

    def _send(self, name: str, first: int, lines: tuple[bytes, ...], *, ended: bool) -> None:
        answer = _sent(self._server, name, first, lines, ended=ended)
        with self._changed:
            if "acknowledged" in answer:
                self._outbox.acknowledged(answer["acknowledged"])
                self.session = str(answer.get("url") or self.session)
                self._waiting = max(0, self._waiting - sum(map(len, lines)))
            else:
                self._outbox.expected(answer["expected"])
            self._changed.notify_all()

    def _give_up(self, reason: str) -> None:
        self._given_up, self.trouble = True, reason
        log.warning("stream %s is not sent any more: %s", self.name, reason)
        self._changed.notify_all()

    def _finish(self) -> None:
        """Everything is acknowledged."""
        self._done = True
        if self._place is not None:
            with suppress(OSError):
                self._place.unlink()

    # -- the spool

    def _open_spool(self) -> None:
        if self._spool is None:
            return
        try:
            self._spool.mkdir(mode=0o700, parents=True, exist_ok=True)
            place = self._spool / f"{self.name}{ENDING}"
            self._file = place.open("xb", buffering=0)  # an earlier stream of this name may have left its lines there
            self._place = place
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._is_kept = True
        except OSError as error:
            log.warning("stream %s is not kept on disk: %s", self.name, error)

    def _keep(self, file: FileIO, lines: bytes) -> None:
        """Where that fails, the file ends with the last line that it has; it stays locked, so that no other run sends
        it while this one does."""
        try:
            append(file, lines)
        except (OSError, ValueError) as error:
            log.warning("stream %s is not kept on disk any more: %s", self.name, error)
            self._is_kept = False

    def _send_left_behind(self) -> None:
        """Send what earlier runs left in the spool. The file of a client that still runs is locked."""
        if self._spool is None:
            return
        for path in sorted(self._spool.glob(f"*{ENDING}")):
            name = path.name.removesuffix(ENDING)
            if name == self.name or NAME.fullmatch(name) is None:
                continue
            with suppress(OSError, _NotReached), _locked(path) as lines:
                try:
                    _send_all(self._server, name, lines)
                    path.unlink()
                except (_StreamRefused, OutOfStep) as error:
                    aside = _set_aside(path)
                    reason = str(error).rstrip(".")
                    log.warning(
                        "stream %s of an earlier run is not sent any more: %s; it is in %s", name, reason, aside
                    )
                except _GaveUp as error:
                    log.warning("stream %s of an earlier run stays in the spool: %s", name, error)


def _set_aside(path: Path) -> Path:
    """Rename a file of the spool so that no run sends it, over no other one; its new place. Raises OSError."""
    names = (f"{path.name}{REFUSED}{f'-{number}' if number > 1 else ''}" for number in count(1))
    aside = next(place for place in map(path.with_name, names) if not place.exists())
    return path.rename(aside)


def _send_all(server: _StreamServer, name: str, lines: list[bytes]) -> None:
    """Send a whole stream from where the server has it: a run that is too short for all of it helps the next one.
    Raises _NotReached, _GaveUp, _StreamRefused and OutOfStep."""
    outbox = Outbox()
    for line in lines:
        outbox.add(line)
    outbox.expected(_sent(server, name, 0, (), ended=False).get("acknowledged", 0))
    while True:
        first, some = outbox.batch()
        is_last = first + len(some) == outbox.end
        answer = _sent(server, name, first, some, ended=is_last)
        if "acknowledged" in answer:
            outbox.acknowledged(answer["acknowledged"])
        else:
            outbox.expected(answer["expected"])
        if is_last and not outbox:
            return


def _sent(server: _StreamServer, name: str, first: int, lines: tuple[bytes, ...], *, ended: bool) -> dict[str, Any]:
    """What the server answers: how far it has the stream, or which line it expects. Raises _NotReached, _GaveUp and
    _StreamRefused."""
    body = b'{"first":%d,"lines":[%s],"ended":%s}' % (first, b",".join(lines), b"true" if ended else b"false")
    status, answer = server.post(name, body)
    if status == OK and isinstance(answer.get("acknowledged"), int):
        return answer
    if status == CONFLICT and "index" not in answer and isinstance(answer.get("expected"), int):
        return {"expected": answer["expected"]}
    reason = f"{status}: {answer.get('error', 'no reason given')}"
    is_for_good = status in FOR_GOOD and not (status == BAD and _refuses_all(server, name))
    raise (_NotReached if status in AGAIN else _StreamRefused if is_for_good else _GaveUp)(reason)


def _refuses_all(server: _StreamServer, name: str) -> bool:
    """Is a batch without lines a bad request, too: the server is not known by this address (its ALLOWED_HOSTS), and may
    be tomorrow. Raises _NotReached."""
    return server.post(name, b'{"first":0,"lines":[],"ended":false}')[0] == BAD


@contextmanager
def _locked(path: Path) -> Iterator[list[bytes]]:
    """The whole lines of a file that no other process holds. Raises OSError."""
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        *lines, _ = file.read().split(b"\n")
        yield [line for line in lines if line]
