"""Which addresses a webhook may have, and which machines a message may reach.

Whoever sets an address makes this server connect to it, so it must lead out: to a public address over TLS. The operator
may name the hosts that alone are allowed (WEBHOOK_HOSTS), and networks of their own that may be reached, too
(WEBHOOK_NETWORKS). What a name leads to is looked at when a message is sent, and that very address is connected to.
"""

from __future__ import annotations

import ipaddress
import socket
from typing import NamedTuple
from urllib.parse import urlsplit

from django.conf import settings

MOST_CHARS = 500  # of an address
TLS_PORT = 443
NAT64 = ipaddress.ip_network("64:ff9b::/96")  # RFC 6052: the last four bytes are an IPv4 address

IP = ipaddress.IPv4Address | ipaddress.IPv6Address


class AddressNotAllowed(ValueError):
    """Why nothing is sent to an address, in a sentence."""


class Target(NamedTuple):
    """An address in its parts; `path` with the query."""

    is_tls: bool
    host: str
    port: int
    path: str

    @property
    def header(self) -> str:
        """The value of the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (TLS_PORT if self.is_tls else 80) else f"{host}:{self.port}"


def target_of(url: str) -> Target:
    """The parts of an address that may be set. Raises AddressNotAllowed. No name is looked up."""
    if not url.isascii() or not url.isprintable() or " " in url or len(url) > MOST_CHARS:
        raise AddressNotAllowed(f"An address has at most {MOST_CHARS} ASCII characters and no spaces.")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise AddressNotAllowed("This is not an address. Example: https://hooks.example/compactions.") from None
    if parts.scheme not in ("https", "http") or not host:
        raise AddressNotAllowed("An address begins with https:// and names a host.")
    if parts.username is not None or parts.password is not None or parts.fragment:
        raise AddressNotAllowed("An address holds neither a password nor a fragment (#).")
    is_tls = parts.scheme == "https"
    path = f"{parts.path or '/'}{'?' + parts.query if parts.query else ''}"
    target = Target(is_tls, host, port or (TLS_PORT if is_tls else 80), path)
    if not is_tls and not settings.WEBHOOK_NETWORKS:
        raise AddressNotAllowed(
            "An address begins with https://; without TLS anyone on the way could read the messages."
        )
    _check_host(target)
    if (literal := _literal(host)) is not None:
        check(target, literal)
    return target


def resolved(target: Target) -> list[str]:
    """The addresses that a host leads to, each of which may be reached. Raises AddressNotAllowed, and OSError where
    there is none."""
    _check_host(target)  # the list may have changed since the address was set
    answers = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
    addresses = list(dict.fromkeys(str(item[4][0]) for item in answers))
    for address in addresses:
        check(target, ipaddress.ip_address(address))
    return addresses


def check(target: Target, address: IP) -> None:
    """Raises AddressNotAllowed where a message may not go to this machine."""
    if any(address in ipaddress.ip_network(item, strict=False) for item in settings.WEBHOOK_NETWORKS):
        return
    if not _is_public(address):
        what = "is not" if _literal(target.host) else f"is {address}, which is not"
        raise AddressNotAllowed(
            f"{target.host} {what} a public address. The operator of this server can allow its network with "
            "WEBHOOK_NETWORKS."
        )
    if not target.is_tls:
        what = "is" if _literal(target.host) else f"is {address},"
        raise AddressNotAllowed(f"{target.host} {what} a public address: messages go there only over https://.")
    if target.port != TLS_PORT and not settings.WEBHOOK_HOSTS:
        raise AddressNotAllowed(
            f"Port {target.port} of a public address is used only if the operator names {target.host}:{target.port} "
            "in WEBHOOK_HOSTS."
        )


def _check_host(target: Target) -> None:
    allowed = settings.WEBHOOK_HOSTS
    names = {target.header.lower(), f"{target.host}:{target.port}"}
    if allowed and not names & {name.lower() for name in allowed}:
        raise AddressNotAllowed(f"{target.header} is not among the hosts that the operator of this server allows.")


def _literal(host: str) -> IP | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _is_public(address: IP) -> bool:
    """Can it be reached from everywhere: also the IPv4 address that an IPv6 address contains."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour or (address.teredo and address.teredo[1])
        if address in NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return _is_public(inner)
        if address.is_site_local:
            return False
    return address.is_global and not (address.is_multicast or address.is_reserved or address.is_unspecified)
