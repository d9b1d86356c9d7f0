"""Reads a file in a process of its own, and passes on its messages."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import Empty, Full, Queue

import msgspec

from guard_core import errors
from inspector.ingest.reading.messages import ReaderMessage, ReadingFailed, read
from inspector.ingest.reading.reader import ReadingOptions
from inspector.project.pipes import environment

WAIT = 0.1  # seconds without a message between two words about it
AHEAD = 2  # messages that wait
_ENDED = "The reader of this file was ended by the system; most likely there was not enough memory."


class ReaderFailed(Exception):
    """The reader's process made a mistake: its traceback, for the log."""


def read_in_process(
    options: ReadingOptions,
    send: Callable[[ReaderMessage], None],
    idle: Callable[[], object],
    meanwhile: Callable[[], object] = lambda: None,
    wait: float = WAIT,
) -> None:
    """The same as reader.read_here, in another process. `idle` is called every `wait` seconds while nothing comes,
    `meanwhile` once while the process starts; where one of them raises, as `send` may, the process ends. Raises
    RecordingError, MemoryError, OSError and ReaderFailed."""
    with _process(options) as messages:
        meanwhile()
        while (message := _next(messages, idle, wait)) is not None:
            if isinstance(message, ReadingFailed):
                raise _error(message)
            send(message)


@contextmanager
def _process(options: ReadingOptions) -> Iterator[Queue[ReaderMessage | None]]:
    """A process that reads, and its messages; None after the last. It does not outlive the block, and neither do the
    files that it unpacks."""
    with tempfile.TemporaryDirectory(prefix="reader-") as folder, _started(options, folder) as messages:
        yield messages


@contextmanager
def _started(options: ReadingOptions, folder: str) -> Iterator[Queue[ReaderMessage | None]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "inspector.ingest.reading", msgspec.json.encode(options).decode()],
        stdin=subprocess.PIPE,  # carries nothing: when it closes, the reader knows that its messages are no longer read
        stdout=subprocess.PIPE,
        env={**environment(), "TMPDIR": folder},
    )
    assert process.stdout is not None
    assert process.stdin is not None
    out, lifeline = process.stdout, process.stdin
    messages: Queue[ReaderMessage | None] = Queue(AHEAD)
    over = threading.Event()

    def listen() -> None:
        message: ReaderMessage | None = None
        while not over.is_set():
            message = read(out)
            while not over.is_set():
                try:
                    messages.put(message, timeout=WAIT)
                    break
                except Full:
                    continue
            if message is None:
                return

    thread = threading.Thread(target=listen, name="reader", daemon=True)
    thread.start()
    try:
        yield messages
        if (code := process.wait()) != 0:
            raise MemoryError(_ENDED) if code < 0 else ReaderFailed(f"its process ended with {code}")
    finally:
        over.set()
        process.kill()
        process.wait()
        thread.join()
        out.close()
        lifeline.close()


def _next(messages: Queue[ReaderMessage | None], idle: Callable[[], object], wait: float) -> ReaderMessage | None:
    """The next message, with a call of `idle` each `wait` seconds before it comes; None at the end."""
    while True:
        try:
            return messages.get(timeout=wait)
        except Empty:
            idle()


def _error(failed: ReadingFailed) -> Exception:
    match failed.kind:
        case "memory":
            return MemoryError()
        case "system":
            return OSError(0, failed.reason)
        case "UnknownFormat" | "DamagedRecording" | "LimitExceeded" | "RecordingError":
            kind: type[errors.RecordingError] = getattr(errors, failed.kind)
            return kind(failed.reason, line=failed.line, column=failed.column)
    return ReaderFailed(failed.reason)
