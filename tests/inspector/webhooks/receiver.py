"""A receiver of webhooks on loopback that fails in every way that one can."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

ANSWERS = {
    "ok": b"HTTP/1.1 204 No Content\r\n\r\n",
    "informed": b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
    "redirect": b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n",
    "error": b"HTTP/1.1 500 Internal Server Error\r\ncontent-length: 6\r\n\r\nsecret",
    "refused": b"HTTP/1.1 422 Unprocessable Content\r\ncontent-length: 0\r\n\r\n",
    "gone": b"HTTP/1.1 410 Gone\r\ncontent-length: 0\r\n\r\n",
    "garbage": b"SSH-2.0-OpenSSH_9.2p1\r\n\r\n",
    "half": b"HTTP/1.1 20",
    "endless": b"HTTP/1.1 200 OK\r\nx: " + b"y" * 200_000,
    "nothing": b"",
}


@dataclass
class Message:
    """A request as it arrived."""

    line: str
    headers: dict[str, str]
    body: bytes

    @property
    def data(self) -> dict[str, Any]:
        value: dict[str, Any] = json.loads(self.body)
        return value

    def is_signed_with(self, secret: str) -> bool:
        """Verified as a receiver does, by the words of the standard."""
        key = base64.b64decode(secret.removeprefix("whsec_"))
        signed = f"{self.headers['webhook-id']}.{self.headers['webhook-timestamp']}.".encode() + self.body
        wanted = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
        return self.headers["webhook-signature"] == f"v1,{wanted}"


@dataclass
class Receiver:
    """What arrived, and how the next requests are answered, by a name or by the bytes themselves; the last answer is
    given again and again."""

    url: str
    answers: list[str] = field(default_factory=lambda: ["ok"])
    messages: list[Message] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    def serve(self, listening: socket.socket) -> None:
        while not self.over.is_set():
            with suppress(OSError):
                connection, _ = listening.accept()
                threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        how = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        with connection, suppress(OSError):
            if how == "reset":
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                return
            self.messages.append(_read(connection))
            if how == "stall":
                self.over.wait(60)
            elif how == "drip":
                connection.sendall(b"HTTP/1.1 200 OK\r\nx: ")
                while not self.over.wait(0.02):
                    connection.sendall(b"y")
            else:
                connection.sendall(ANSWERS[how] if how in ANSWERS else how.encode())


def _read(connection: socket.socket) -> Message:
    read = b""
    while b"\r\n\r\n" not in read:
        read += connection.recv(4096)
        if read.startswith(b"\x16"):
            raise OSError("the first byte of TLS, which is not spoken here")
    head, _, body = read.partition(b"\r\n\r\n")
    line, *fields = head.decode().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (item.partition(":") for item in fields)}
    while len(body) < int(headers["content-length"]):
        body += connection.recv(4096)
    return Message(line, headers, body)


@contextmanager
def receiving(*answers: str) -> Iterator[Receiver]:
    """A receiver that answers in these ways, one after the other."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        receiver = Receiver(f"http://127.0.0.1:{listening.getsockname()[1]}/hooks?a=1", list(answers or ("ok",)))
        listening.settimeout(0.1)
        thread = threading.Thread(target=receiver.serve, args=(listening,), daemon=True)
        thread.start()
        try:
            yield receiver
        finally:
            receiver.over.set()
            thread.join()
