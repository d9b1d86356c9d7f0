"""One message to one address: connects to what was checked, follows nothing, and ends within a time.

Of the answer only the status is looked at. Its text is neither read nor kept: whoever sets an address learns nothing of
what this server can reach.
"""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Mapping
from typing import NamedTuple

import h11

from inspector.webhooks.addresses import AddressNotAllowed, Target, resolved, target_of

# Ours: a receiver answers first and works then. While one is waited for, the worker does no other job.
TOTAL_SECONDS = 5.0
READ_BYTES = 4096
GONE = 410
BUSY = (408, 425, 429)  # Request Timeout, Too Early, Too Many Requests: the same message may be accepted later


class AttemptOutcome(NamedTuple):
    """What became of an attempt, in words; the HTTP status, 0 without an answer."""

    status: int
    words: str

    @property
    def is_success(self) -> bool:
        """Did the receiver take the message."""
        return 200 <= self.status < 300

    @property
    def is_refusal(self) -> bool:
        """Did the receiver answer, and not for lack of time: it may want other messages."""
        return 400 <= self.status < 500 and self.status not in BUSY


def post(url: str, headers: Mapping[str, str], body: bytes, seconds: float = TOTAL_SECONDS) -> AttemptOutcome:
    """Send a message. Never raises for what an address or a receiver does."""
    clock = _Clock(seconds)
    try:
        target = target_of(url)
        with _connected(target, clock) as connection:
            status = _exchange(connection, target, headers, body, clock)
    except AddressNotAllowed as error:
        return AttemptOutcome(0, str(error))
    except TimeoutError:
        return AttemptOutcome(0, f"No answer within {seconds:g} seconds.")
    except socket.gaierror:
        return AttemptOutcome(0, f"The name {target.host} has no address.")
    except ssl.SSLError as error:
        return AttemptOutcome(0, f"No safe connection (TLS): {error.reason or error.__class__.__name__}.")
    except h11.RemoteProtocolError:
        return AttemptOutcome(0, "The answer is not HTTP, or was cut off.")
    except OSError as error:
        return AttemptOutcome(0, f"No connection: {error.strerror or error.__class__.__name__}.")
    if 300 <= status < 400:
        return AttemptOutcome(status, f"HTTP {status}: redirects are not followed; use the final address.")
    return AttemptOutcome(status, f"HTTP {status}.")


class _Clock:
    """The time that is left of an attempt."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    def limit(self, connection: socket.socket) -> None:
        """What the socket does next ends when the time is over. Raises TimeoutError where it is."""
        connection.settimeout(self.left())

    def left(self) -> float:
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left


def _connected(target: Target, clock: _Clock) -> socket.socket:
    """A connection to an address that was checked; over TLS, to the host that the address names."""
    *others, last = resolved(target)
    for address in others:
        try:
            return _secured(socket.create_connection((address, target.port), clock.left()), target, clock)
        except (TimeoutError, ssl.SSLError):
            raise
        except OSError:  # refused or reset, or this machine has no way there, as without IPv6
            continue
    return _secured(socket.create_connection((last, target.port), clock.left()), target, clock)


def _secured(connection: socket.socket, target: Target, clock: _Clock) -> socket.socket:
    if not target.is_tls:
        return connection
    with connection:  # the one over TLS takes its place, or it is closed
        connection.getpeername()  # raises where it was reset; `wrap_socket` would leave another socket open then
        context = ssl.create_default_context()
        secured = context.wrap_socket(connection, server_hostname=target.host, do_handshake_on_connect=False)
        try:
            clock.limit(secured)
            secured.do_handshake()
        except BaseException:
            secured.close()
            raise
        return secured


def _exchange(connection: socket.socket, target: Target, headers: Mapping[str, str], body: bytes, clock: _Clock) -> int:
    """The status of the answer."""
    sides = h11.Connection(h11.CLIENT)
    fields = [("Host", target.header), *headers.items(), ("Content-Length", str(len(body))), ("Connection", "close")]
    request = h11.Request(method="POST", target=target.path, headers=fields)
    events = (request, h11.Data(data=body), h11.EndOfMessage())
    clock.limit(connection)
    connection.sendall(b"".join(sides.send(event) or b"" for event in events))
    while True:
        event = sides.next_event()
        if isinstance(event, h11.Response):
            return event.status_code
        if event is h11.NEED_DATA:
            clock.limit(connection)
            sides.receive_data(connection.recv(READ_BYTES))
        elif not isinstance(event, h11.InformationalResponse):
            raise h11.RemoteProtocolError("the connection was closed without an answer")
