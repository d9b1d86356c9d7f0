"""Sending a recording to a running server, as the page's own form does."""

from __future__ import annotations

import http.client
import json
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit
from uuid import uuid4

from inspector.watching.files import companions, is_in_lines, versions_of, whole_size

TOKEN = re.compile(r'X-CSRFToken": "([^"]+)"')
TIMEOUT = 120.0  # seconds for one answer; a server waits a moment for small files only
CHUNK = 1 << 20  # bytes
# A login or a key is missing, too much was sent, or the server has no room or no time (`project/trouble.py`, and what
# stands before it): the file is sent again when that has changed.
TRIED_AGAIN = (
    http.client.UNAUTHORIZED,
    http.client.FORBIDDEN,
    http.client.REQUEST_TIMEOUT,
    http.client.TOO_MANY_REQUESTS,
    http.client.BAD_GATEWAY,
    http.client.SERVICE_UNAVAILABLE,
    http.client.GATEWAY_TIMEOUT,
    http.client.INSUFFICIENT_STORAGE,
)

GREETED = "/search"  # every page carries a token; without words this one is short
TOO_LARGE = "it is larger than the server accepts (setting MAX_UPLOAD_BYTES)"


class Away(Exception):
    """The server does not answer, or is none of ours."""


class Changed(Exception):
    """A file was cut or replaced while it was sent, or is not written line by line and was written to; of a database,
    rows went from its log to the file, so that what was sent may have them in neither. The next look finds it as it is.
    """


class SentFile(NamedTuple):
    """What became of a file: where its session is, or why it was refused."""

    url: str = ""
    refused: str = ""


class Server:
    """A running server, by its address such as `http://127.0.0.1:8000`; in team mode with a key."""

    def __init__(self, address: str, key: str = "") -> None:
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("the address of a server begins with http:// or https:// and a host")
        if not (key.isascii() and key.isprintable()):
            raise ValueError("the key of a server has letters, digits and _ only")
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        # Without a name and a password, which would be printed; ValueError for a port that is none.
        self.origin = f"{parts.scheme}://{host}{'' if parts.port is None else f':{parts.port}'}"
        self._parts = parts
        self._cookie = self._token = ""
        self._key = key

    def send(self, path: Path) -> SentFile:
        """Send what is whole of a file. Raises Away, and OSError where the file cannot be read."""
        if not (self._token or self._key):
            self._greet()
        if not whole_size(path):
            return SentFile(refused="no whole line yet")
        status, body = self._post(path)
        if status == http.client.FORBIDDEN and self._is_greeted():
            status, body = self._post(path)
        if status == http.client.REQUEST_ENTITY_TOO_LARGE:  # said in plain text, by whoever limits the size of bodies
            return SentFile(refused=TOO_LARGE)
        try:
            answer = json.loads(body)
        except ValueError as error:
            raise Away(f"{self.origin} answered with status {status} and no JSON") from error
        if status in TRIED_AGAIN:
            raise Away(f"{self.origin} refuses: {answer.get('error', status) if isinstance(answer, dict) else status}")
        return _read(answer, self.origin)

    def _is_greeted(self) -> bool:
        """The server was started anew, or is not in team mode and takes no key: does its page have a token now. Raises
        Away where there is no key."""
        try:
            self._greet()
        except Away:
            if not self._key:
                raise
            return False
        return True

    def _greet(self) -> None:
        response, page = self._ask("GET", GREETED)
        token = TOKEN.search(page.decode("utf-8", "replace"))
        cookie = response.getheader("Set-Cookie") or ""
        if token is None or not cookie:
            raise Away(f"{self.origin} is not a Compaction Inspector, or requires a login")
        self._cookie, self._token = cookie.split(";")[0], token[1]

    def _post(self, path: Path) -> tuple[int, bytes]:
        boundary = uuid4().hex
        files, before = companions(path), versions_of(path)[:1]
        sizes = [whole_size(path), *(file.stat().st_size for file in files[1:])]
        heads = [
            f'--{boundary}\r\nContent-Disposition: form-data; name="file"; '
            f'filename="{_quoted(file.name)}"\r\n\r\n'.encode()
            for file in files
        ]
        mode = f'--{boundary}\r\nContent-Disposition: form-data; name="mode"\r\n\r\nlenient\r\n'.encode()
        end = f"--{boundary}--\r\n".encode()
        length = len(mode) + len(end) + sum(map(len, heads)) + sum(sizes) + 2 * len(files)

        def body() -> Iterator[bytes]:
            yield mode
            for file, head, count in zip(files, heads, sizes, strict=True):
                yield head
                yield from _bytes(file, count)
                yield b"\r\n"
            if not is_in_lines(path) and versions_of(path)[:1] != before:
                raise Changed(f"{path.name} was written to while it was sent")
            yield end

        headers = {
            "Content-Type": f"multipart/form-data; boundary={boundary}",
            "Content-Length": str(length),
            "Accept": "application/json",
        }
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        if self._token:
            headers |= {"X-CSRFToken": self._token, "Origin": self.origin, "Cookie": self._cookie}
        response, answer = self._ask("POST", "/recordings/", body(), headers)
        return response.status, answer

    def _ask(
        self, method: str, path: str, body: Iterator[bytes] | None = None, headers: dict[str, str] | None = None
    ) -> tuple[http.client.HTTPResponse, bytes]:
        kind = http.client.HTTPSConnection if self._parts.scheme == "https" else http.client.HTTPConnection
        connection = kind(self._parts.hostname or "", self._parts.port, timeout=TIMEOUT)
        try:
            connection.connect()
            with suppress(BrokenPipeError, ConnectionResetError):  # who refuses a body by its size does not read it
                connection.request(method, path, body=body, headers=headers or {})
            response = connection.getresponse()
            return response, response.read()
        except (ConnectionError, TimeoutError, http.client.HTTPException, OSError) as error:
            raise Away(f"{self.origin} does not answer ({type(error).__name__})") from error
        finally:
            connection.close()


def _bytes(path: Path, size: int) -> Iterator[bytes]:
    """Exactly so many bytes of a file: one that got shorter meanwhile breaks the request off."""
    with path.open("rb") as file:
        while size:
            chunk = file.read(min(CHUNK, size))
            if not chunk:
                raise Changed(f"{path.name} became shorter while it was sent")
            size -= len(chunk)
            yield chunk


def _quoted(name: str) -> str:
    """A file's name as the value of a header's quoted parameter, which some characters would end."""
    return "".join(char if char.isprintable() and char not in '"\\\r\n' else "_" for char in name)


def _read(answer: Any, origin: str) -> SentFile:
    imports = answer.get("imports") if isinstance(answer, dict) else None
    if not imports:
        aside = (answer.get("aside") or [{}])[0] if isinstance(answer, dict) else {}
        reason = answer.get("error") if isinstance(answer, dict) else ""
        return SentFile(refused=str(reason or aside.get("reason") or "it was not taken"))
    first = imports[0]
    if first.get("error"):
        return SentFile(refused=str(first["error"]))
    return SentFile(url=origin + str(first.get("url", "")))
