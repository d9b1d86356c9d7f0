"""The capture proxy in a network whose requests must go through an HTTP proxy."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest

from inspector.capturing.exchanges import Exchange
from inspector.capturing.proxy import Proxy
from inspector.capturing.routes import HttpProxy, Route, Upstream
from tests.inspector.capturing.provider import Seen, provider
from tests.inspector.capturing.test_capture import AGENT, HELLO, KEY, certificate_of, run

HOST = "provider.invalid"  # no name of RFC 6761 is looked up: the proxies of the network alone reach it
LOGIN = b"Basic " + base64.b64encode(b"user:pass word")


@dataclass
class Network:
    """A network with a provider that is reached through its proxy alone. `answer`: what the proxy says to a tunnel
    instead of making it."""

    seen: Seen
    answer: bytes = b""
    has_tls: bool = False  # of the way to the proxy
    heads: list[bytes] = field(default_factory=list)  # of the requests that the proxy has got
    port: int = 0

    @property
    def environ(self) -> dict[str, str]:
        address = f"http{'s' if self.has_tls else ''}://user:pass%20word@127.0.0.1:{self.port}"
        return {"HTTPS_PROXY": address, "HTTP_PROXY": address, "NO_PROXY": "example.org"}

    def route(self, scheme: str, tls: ssl.SSLContext | None = None) -> Route:
        upstream = Upstream.parse(f"{scheme}://{HOST}")
        return Route(upstream, HttpProxy.between(upstream, self.environ), tls)


@asynccontextmanager
async def network(folder: Path, *, has_tls: bool = False) -> AsyncIterator[Network]:
    certificate_of(folder, HOST)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "both.pem")
    with provider() as (origin, seen):
        made, plain = Network(seen, has_tls=has_tls), urlsplit(origin).port or 0

        async def to_provider(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await joined(reader, writer, plain, b"")

        async def between(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            head = await reader.readuntil(b"\r\n\r\n")
            made.heads.append(head)
            if made.answer or not head.startswith(b"CONNECT"):
                writer.write(made.answer)
                await (left(writer) if made.answer else joined(reader, writer, plain, head))
            else:
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                await joined(reader, writer, secure.sockets[0].getsockname()[1], b"")

        async with (
            await asyncio.start_server(to_provider, "127.0.0.1", 0, ssl=context) as secure,
            await asyncio.start_server(between, "127.0.0.1", 0, ssl=context if has_tls else None) as proxy,
        ):
            made.port = proxy.sockets[0].getsockname()[1]
            yield made


async def joined(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int, first: bytes) -> None:
    """Pass on what comes, in both directions, until one side ends."""
    other_reader, other_writer = await asyncio.open_connection("127.0.0.1", port)
    other_writer.write(first)
    await asyncio.gather(passed(reader, other_writer), passed(other_reader, writer))


async def passed(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    await left(writer)


async def left(writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        writer.close()
        await writer.wait_closed()


async def asked(route: Route, calls: list[Exchange], times: int = 1) -> httpx2.Response:
    """The last answer of a provider to an agent behind the capture proxy."""
    proxy = Proxy(route, calls.append)
    origin = await proxy.start()
    body = {"model": "m", "max_tokens": 9, "messages": HELLO}
    try:
        async with httpx2.AsyncClient(trust_env=False) as client:
            for _ in range(times):
                answer = await client.post(f"{origin}/v1/messages", json=body, headers={"X-Api-Key": KEY})
    finally:
        await proxy.stop()
    return answer


@pytest.mark.parametrize("has_tls", [False, True])
async def test_a_provider_is_reached_through_a_tunnel_that_shows_nothing(has_tls: bool, tmp_path: Path) -> None:
    calls: list[Exchange] = []
    async with network(tmp_path, has_tls=has_tls) as made:
        tls = ssl.create_default_context(cafile=tmp_path / "both.pem")
        answer = await asked(made.route("https", tls), calls, times=2)
    assert (answer.status_code, answer.json()["content"][0]["text"]) == (200, "answer 1")
    assert [call.status for call in calls] == [200, 200]
    (head,) = made.heads  # one tunnel for all requests of a connection
    assert head.startswith(b"CONNECT provider.invalid:443 HTTP/1.1\r\n")
    assert b"\r\nProxy-Authorization: " + LOGIN + b"\r\n" in head
    assert KEY.encode() not in head
    for path, headers, _ in made.seen.requests:
        assert (path, headers["Host"], headers["X-Api-Key"]) == ("/v1/messages", HOST, KEY)
        assert "Proxy-Authorization" not in headers


async def test_a_certificate_that_is_not_valid_is_refused_behind_a_proxy_too(tmp_path: Path) -> None:
    calls: list[Exchange] = []
    async with network(tmp_path) as made:
        answer = await asked(made.route("https"), calls)
    assert answer.status_code == 502
    assert "its certificate is not valid" in answer.json()["error"]["message"]
    assert (calls, made.seen.requests) == ([], [])


async def test_a_provider_without_tls_is_asked_by_its_whole_address(tmp_path: Path) -> None:
    calls: list[Exchange] = []
    async with network(tmp_path) as made:
        answer = await asked(made.route("http"), calls)
    assert answer.status_code == 200
    (head,) = made.heads
    assert head.startswith(b"POST http://provider.invalid/v1/messages HTTP/1.1\r\n")
    assert b"\r\nProxy-Authorization: " + LOGIN + b"\r\n" in head


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "refuses the connection: 407 Proxy Authentication"),
        (b"HTTP/1.1 403\r\nContent-Length: 2\r\n\r\nno", "refuses the connection: 403"),
        (b"SSH-2.0-x\r\n\r\n", "did not answer as an HTTP proxy does"),
        (b"HTTP/1.1 1", "did not answer as an HTTP proxy does"),
    ],
)
async def test_a_proxy_that_does_not_let_through_is_named_without_its_password(
    said: bytes, words: str, tmp_path: Path
) -> None:
    async with network(tmp_path) as made:
        made.answer = said
        answer = await asked(made.route("https"), [])
    message = answer.json()["error"]["message"]
    assert answer.status_code == 502
    assert f"the proxy 127.0.0.1:{made.port} {words}" in message
    assert "pass word" not in message


async def test_a_proxy_that_asks_for_a_password_says_whether_one_was_given(tmp_path: Path) -> None:
    upstream = Upstream.parse(f"https://{HOST}")
    async with network(tmp_path) as made:
        made.answer = b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n"
        for login, words in (("user:pass@", "those of its address are not accepted"), ("", "its address has none")):
            environ = {"HTTPS_PROXY": f"http://{login}127.0.0.1:{made.port}"}
            answer = await asked(Route(upstream, HttpProxy.between(upstream, environ)), [])
            assert f"it asks for a user and a password, and {words}" in answer.json()["error"]["message"]


async def test_a_proxy_that_is_away_is_named(tmp_path: Path) -> None:
    async with network(tmp_path) as made:
        route = made.route("https")
    answer = await asked(route, [])
    assert answer.status_code == 502
    assert f"the proxy 127.0.0.1:{made.port} cannot be reached" in answer.json()["error"]["message"]


PROXY = HttpProxy("proxy.example", 3128)
SECURE = HttpProxy("proxy.example", 443, has_tls=True, credentials="u:p@")


@pytest.mark.parametrize(
    ("address", "environ", "proxy"),
    [
        ("https://a.example", {}, None),
        ("https://a.example", {"HTTPS_PROXY": "http://proxy.example:3128"}, PROXY),
        ("https://a.example", {"https_proxy": "proxy.example:3128"}, PROXY),
        ("https://a.example", {"https_proxy": "proxy.example:3128", "HTTPS_PROXY": "http://other"}, PROXY),
        ("https://a.example", {"ALL_PROXY": "http://proxy.example:3128/"}, PROXY),
        ("https://a.example", {"HTTPS_PROXY": "http://proxy.example:3128", "ALL_PROXY": "socks5://x:1"}, PROXY),
        ("https://a.example", {"HTTPS_PROXY": "https://u:p%40@proxy.example"}, SECURE),
        ("https://a.example", {"HTTP_PROXY": "http://proxy.example:3128"}, None),
        ("http://a.example", {"HTTP_PROXY": "http://proxy.example:3128"}, PROXY),
        ("https://a.example", {"HTTPS_PROXY": " "}, None),
        ("https://a.example", {"HTTPS_PROXY": "http://proxy.example:3128", "NO_PROXY": "b.example, .example"}, None),
        ("https://a.example", {"HTTPS_PROXY": "http://proxy.example:3128", "no_proxy": "*"}, None),
        ("https://a.example:8443", {"HTTPS_PROXY": "http://proxy.example:3128", "no_proxy": "a.example:8443"}, None),
        ("http://127.0.0.1:4000", {"HTTP_PROXY": "http://proxy.example:3128"}, None),
        ("http://[::1]:4000", {"HTTP_PROXY": "http://proxy.example:3128"}, None),
        ("http://localhost:4000", {"ALL_PROXY": "http://proxy.example:3128"}, None),
    ],
)
def test_the_usual_variables_name_the_proxy(address: str, environ: dict[str, str], proxy: HttpProxy | None) -> None:
    assert HttpProxy.between(Upstream.parse(address), environ) == proxy


async def test_a_command_is_captured_behind_the_proxy_of_a_network(tmp_path: Path) -> None:
    environ = {"ANTHROPIC_BASE_URL": f"http://{HOST}"}
    async with network(tmp_path) as made:
        command = ["--", sys.executable, "-c", AGENT, "0"]
        done = await asyncio.to_thread(run, command, tmp_path / "log", **environ, **made.environ)
    assert (done.returncode, done.stdout) == (0, "answer 1\n"), done.stderr
    (recording,) = (tmp_path / "log").iterdir()
    assert json.loads(recording.read_bytes().splitlines()[1])["status"] == 200
    assert b"pass" not in recording.read_bytes()


@pytest.mark.parametrize("given", ["http://u:sec\u2100ret@p:1", "http://u:secret@[p:1", "http://u:secret@p:port"])
def test_a_proxy_that_cannot_be_understood_is_refused_without_its_password(given: str) -> None:
    with pytest.raises(ValueError, match=r"is not an HTTP proxy; HTTPS_PROXY may be http://host:port") as refused:
        HttpProxy.between(Upstream.parse("https://a.example"), {"HTTPS_PROXY": given})
    assert "sec" not in str(refused.value)


def test_a_proxy_that_is_not_reached_by_http_is_named_before_the_agent_runs(tmp_path: Path) -> None:
    done = run(["--", sys.executable, "-c", AGENT, "0"], tmp_path, ALL_PROXY="socks5://user:secret@127.0.0.1:1080")
    assert (done.returncode, done.stdout) == (2, "")
    allowed = "HTTPS_PROXY may be http://host:port or https://host:port, with user:password@ before the host"
    assert f"The proxy for https addresses is a SOCKS proxy; {allowed}" in done.stderr
    assert "Add api.anthropic.com to NO_PROXY" in done.stderr
    assert "secret" not in done.stderr
