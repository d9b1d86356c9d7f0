"""The way to a provider: direct, or through the HTTP proxy that the network requires.

Which one, the usual variables say: HTTPS_PROXY or HTTP_PROXY by the scheme of the provider's address, else ALL_PROXY,
and NO_PROXY for the hosts that are asked directly, each in small letters, too. Loopback is never asked through a proxy:
there it would be another machine. A provider with TLS is reached through a tunnel (CONNECT, RFC 9110, section 9.3.6):
the proxy sees neither requests nor keys, and the provider's certificate is checked as without one. A provider without
TLS is asked by its whole address (RFC 9112, section 3.2.2).
"""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from ipaddress import ip_address
from typing import NamedTuple
from urllib.parse import unquote, urlsplit
from urllib.request import proxy_bypass_environment  # type: ignore[attr-defined]

import h11

READ_BYTES = 65_536  # at a time
MOST_HEAD = 262_144  # bytes of a request's or answer's head
PORTS = {"https": 443, "http": 80}
ALLOWED = "http://host:port or https://host:port, with user:password@ before the host where the proxy asks for them"
AUTHENTICATION_REQUIRED = 407  # HTTP status


class Refused(OSError):
    """The proxy on the way to a provider does not let through."""


class Streams(NamedTuple):
    """Both directions of a connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


@dataclass(frozen=True)
class Upstream:
    """Where requests go: scheme, host, port, and what comes before their path."""

    scheme: str
    host: str
    port: int
    prefix: str

    @staticmethod
    def parse(address: str) -> Upstream:
        """The parts of `https://host/prefix`. Raises ValueError, in words, for anything else."""
        parts = urlsplit(address)
        if parts.scheme not in PORTS or not parts.hostname or parts.username or parts.query:
            raise ValueError("an address of a provider is http(s)://host/path, without a password and a query")
        return Upstream(parts.scheme, parts.hostname, parts.port or PORTS[parts.scheme], parts.path.rstrip("/"))

    @property
    def host_header(self) -> bytes:
        return (_bracketed(self.host) if self.port == PORTS[self.scheme] else self.authority).encode()

    @property
    def authority(self) -> str:
        """Host and port."""
        return f"{_bracketed(self.host)}:{self.port}"


@dataclass(frozen=True)
class HttpProxy:
    """A proxy that requests of a network must go through; `credentials`: of its Proxy-Authorization, "" for none."""

    host: str
    port: int
    has_tls: bool = False
    credentials: str = ""

    @staticmethod
    def between(upstream: Upstream, environ: Mapping[str, str]) -> HttpProxy | None:
        """The one that an environment names for an address; None where it is asked directly. Raises ValueError, in
        words, for a proxy of another kind."""
        # By scheme, "all" and "no"; the variables in small letters come first, as curl and Python have it.
        names = sorted((name for name in environ if name.lower().endswith("_proxy")), key=str.islower)
        proxies = {name.lower().removesuffix("_proxy"): environ[name].strip() for name in names}
        given = proxies.get(upstream.scheme) or proxies.get("all")
        if not given or _is_loopback(upstream.host) or proxy_bypass_environment(upstream.authority, proxies):
            return None
        try:
            parts = urlsplit(given if "://" in given else f"http://{given}")
            scheme, host, port = parts.scheme, parts.hostname, parts.port
        except ValueError:  # its words may have the password
            scheme, host = "", None
        if scheme not in PORTS or not host:
            kind = "is a SOCKS proxy" if scheme.startswith("socks") else "is not an HTTP proxy"
            raise ValueError(
                f"The proxy for {upstream.scheme} addresses {kind}; {upstream.scheme.upper()}_PROXY may be {ALLOWED}. "
                f"Add {upstream.host} to NO_PROXY if it can be reached without one."
            )
        credentials = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}" if parts.username else ""
        return HttpProxy(host, port or PORTS[scheme], scheme == "https", credentials)

    @property
    def name(self) -> str:
        """How it is named to the user: without what it is opened with."""
        return f"the proxy {_bracketed(self.host)}:{self.port}"

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        """What it needs to let a request through."""
        if not self.credentials:
            return []
        return [(b"Proxy-Authorization", b"Basic " + base64.b64encode(self.credentials.encode()))]


@dataclass(frozen=True)
class Route:
    """How a provider is reached. `tls`: with which certificates are checked, its own and that of a proxy."""

    upstream: Upstream
    proxy: HttpProxy | None = None
    tls: ssl.SSLContext | None = None

    @property
    def is_asked_whole(self) -> bool:
        """Do requests go to the proxy, and name the whole address?"""
        return self.proxy is not None and self.upstream.scheme == "http"

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        """Made once: reading the system's certificates takes some 50 ms, in which no request goes on."""
        return self.tls or ssl.create_default_context()

    async def opened(self) -> Streams:
        """A connection. Raises OSError, with words for a proxy that is not there or does not let through."""
        own_tls = self._tls if self.upstream.scheme == "https" else None
        if self.proxy is None:
            return Streams(*await asyncio.open_connection(self.upstream.host, self.upstream.port, ssl=own_tls))
        try:
            proxy_tls = self._tls if self.proxy.has_tls else None
            streams = Streams(*await asyncio.open_connection(self.proxy.host, self.proxy.port, ssl=proxy_tls))
        except OSError as error:
            raise Refused(f"{self.proxy.name} cannot be reached: {error_words(error)}") from error
        if own_tls is None:
            return streams
        try:
            await _tunnel(streams, self.upstream, self.proxy)
            await streams.writer.start_tls(own_tls, server_hostname=self.upstream.host)
        except BaseException:
            streams.writer.transport.abort()
            raise
        return streams


def error_words(error: BaseException) -> str:
    """Why a connection could not be made."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not valid ({error.verify_message})"
    return str(getattr(error, "strerror", "") or error or type(error).__name__)


async def _tunnel(streams: Streams, upstream: Upstream, proxy: HttpProxy) -> None:
    """Have a proxy pass on whatever comes. Raises Refused where it does not."""
    http = h11.Connection(h11.CLIENT, MOST_HEAD)
    headers = [(b"Host", upstream.authority.encode()), *proxy.headers]
    request = h11.Request(method=b"CONNECT", target=upstream.authority.encode(), headers=headers)
    streams.writer.write((http.send(request) or b"") + (http.send(h11.EndOfMessage()) or b""))
    await streams.writer.drain()
    try:
        while (event := http.next_event()) is h11.NEED_DATA or isinstance(event, h11.InformationalResponse):
            if event is h11.NEED_DATA:
                http.receive_data(await streams.reader.read(READ_BYTES))
    except h11.RemoteProtocolError as error:
        raise Refused(f"{proxy.name} did not answer as an HTTP proxy does") from error
    if not isinstance(event, h11.Response):
        raise Refused(f"{proxy.name} ended the connection")
    if event.status_code not in range(200, 300):
        reason = event.reason.decode("latin-1")
        words = f"{proxy.name} refuses the connection: {event.status_code} {reason}".rstrip()
        if event.status_code == AUTHENTICATION_REQUIRED:
            which = "those of its address are not accepted" if proxy.credentials else "its address has none"
            words += f"; it asks for a user and a password, and {which} (http://user:password@host:port)"
        raise Refused(words)


def _is_loopback(host: str) -> bool:
    """Is a host this machine, which no proxy reaches."""
    with suppress(ValueError):
        return ip_address(host).is_loopback
    return host.lower() == "localhost"


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
