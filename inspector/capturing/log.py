"""What went through the proxy, as lines of a recording: the format "capture" of guard_core.

A request repeats the conversation, so a line names the earlier request that it begins like and holds only the rest. It
holds bodies alone: no headers, no query, nothing that carries a credential.
"""

from __future__ import annotations

import json
import os
import queue
import threading
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from guard_core.recordings.formats.capture.lines import NAME, VERSION, Shortener
from guard_core.recordings.reading.fields import JSON
from guard_core.recordings.reading.gzip_members import gunzip
from guard_core.streaming.whole_lines import append
from inspector.capturing.exchanges import MOST_BYTES, Body, Exchange

MOST_WAITING = 256  # exchanges that wait to be written; more are not recorded, and the agent does not wait for the disk


class Unreadable(Exception):
    """A body that is not recorded, with the reason in words."""


class CaptureLog:
    """A file that grows by one line for each call of a model. Everything is written by a thread of its own.

    `say` hears once that something could not be recorded; `written` is called after each line.
    """

    def __init__(
        self, path: Path, client: str, say: Callable[[str], None], written: Callable[[], None] = lambda: None
    ) -> None:
        self.path = path
        self._client, self._say, self._written = client, say, written
        self._waiting: queue.Queue[Exchange | None] = queue.Queue(MOST_WAITING)
        self._shortener = Shortener()
        self._reported: set[str] = set()
        self._thread = threading.Thread(target=self._run, name="capture", daemon=True)
        self._thread.start()

    @property
    def lines(self) -> int:
        """Calls of a model that were recorded."""
        return self._shortener.number

    def add(self, exchange: Exchange) -> None:
        """Record an exchange, soon; never waits."""
        try:
            self._waiting.put_nowait(exchange)
        except queue.Full:
            self._report("a request came faster than the disk could take it")

    def close(self, seconds: float = 10.0) -> None:
        """Write what waits, for at most so many seconds."""
        with suppress(queue.Full):
            self._waiting.put(None, timeout=seconds)
        self._thread.join(seconds)

    def _run(self) -> None:
        while (exchange := self._waiting.get()) is not None:
            try:
                self._write(exchange)
            except Unreadable as error:
                self._report(str(error))
            except OSError as error:
                self._report(f"{self.path}: {error.strerror or error}")
            except Exception as error:  # whatever fails here must not stop the agent
                self._report(f"{type(error).__name__}: {error}")
            else:
                self._written()

    def _report(self, reason: str) -> None:
        if reason not in self._reported:
            self._reported.add(reason)
            self._say(f"A request was forwarded, but not recorded: {reason}.")

    def _write(self, exchange: Exchange) -> None:
        request = _object(exchange.request, "the request")
        line = self._line(exchange, request)
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(descriptor, "ab", buffering=0) as out:
            lines = _encoded(line)
            if not out.tell():
                head = {"format": NAME, "version": VERSION, "client": self._client, "user_agent": exchange.user_agent}
                lines = _encoded(head) + lines
            append(out, lines)
        self._shortener.written(exchange.api, request)

    def _line(self, exchange: Exchange, request: JSON) -> JSON:
        line = {
            **self._shortener.shorten(exchange.api, request),
            "timestamp": round(exchange.began, 3),
            "api": exchange.api,
            "path": exchange.path,
            "status": exchange.status,
            "milliseconds": round(exchange.seconds * 1000),
        }
        try:
            line["response"] = _answer(exchange.answer)
        except Unreadable as error:
            line["note"] = str(error)
        if not exchange.answer.is_complete:
            line["broken_off"] = True
        return line


def _object(body: Body, what: str) -> JSON:
    try:
        value = json.loads(_decoded(body, what))
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"{what} is not JSON") from error
    if not isinstance(value, dict):
        raise Unreadable(f"{what} is not a JSON object")
    return value


def _answer(body: Body) -> Any:
    """The answer as JSON, or as the text of a stream."""
    text = _decoded(body, "the answer").decode("utf-8", "replace")
    if "event-stream" not in body.kind:
        with suppress(ValueError, RecursionError):
            return json.loads(text)
    return text


def _decoded(body: Body, what: str) -> bytes:
    """The bytes of a body without their compression."""
    if not body.is_kept:
        raise Unreadable(f"{what} has more than {MOST_BYTES:,} bytes")
    data = b"".join(body.chunks)
    if not body.encoding or body.encoding == "identity":
        return data
    try:
        data, is_all = _UNPACK[body.encoding](data)
    except KeyError:
        raise Unreadable(f"{what} is compressed by {body.encoding[:20]!r}") from None
    except Exception as error:  # each library has its own
        raise Unreadable(f"{what} cannot be decompressed ({type(error).__name__})") from error
    if not is_all:
        raise Unreadable(f"{what} has more than {MOST_BYTES:,} bytes when decompressed")
    return data


def _gzip(data: bytes) -> tuple[bytes, bool]:
    return gunzip(data, MOST_BYTES)[:2]


def _deflate(data: bytes) -> tuple[bytes, bool]:
    """Some senders leave the header of zlib out (RFC 9110, section 8.4.1.2)."""
    try:
        return _inflated(data, zlib.MAX_WBITS)
    except zlib.error:
        return _inflated(data, -zlib.MAX_WBITS)


def _inflated(data: bytes, bits: int) -> tuple[bytes, bool]:
    unpacker = zlib.decompressobj(bits)
    return unpacker.decompress(data, MOST_BYTES), not unpacker.unconsumed_tail


def _zstd(data: bytes) -> tuple[bytes, bool]:
    """A body may have several frames. One byte above the limit shows that there is more."""
    import zstandard  # only where a provider uses it

    out = zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True).read(MOST_BYTES + 1)
    return out[:MOST_BYTES], len(out) <= MOST_BYTES


def _brotli(data: bytes) -> tuple[bytes, bool]:
    """A body that fills the limit is taken for a longer one."""
    import brotli  # only where a provider uses it

    out = brotli.Decompressor().process(data, output_buffer_limit=MOST_BYTES)
    return out, len(out) < MOST_BYTES


_UNPACK = {
    "gzip": _gzip,
    "x-gzip": _gzip,  # the same (RFC 9110, section 8.4.1.3)
    "deflate": _deflate,
    "zstd": _zstd,
    "br": _brotli,
}


def _encoded(line: JSON) -> bytes:
    return json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass") + b"\n"
