"""Real clients behind the proxy: what they get is what the provider sent, and the recording holds what went through."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import resource
import ssl
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import brotli
import httpx2
import pytest
import zstandard
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from guard_core import read
from guard_core.events import TextPart
from inspector.capturing.exchanges import Exchange
from inspector.capturing.log import CaptureLog
from inspector.capturing.proxy import Proxy
from inspector.capturing.routes import Route, Upstream
from tests.inspector.capturing.provider import Seen, provider
from tests.plugins.tiers import mostly_long
from tests.waiting import PATIENCE

ROOT = Path(__file__).parents[3]
KEY = "sk-ant-secret-key-of-the-user"
HELLO = [{"role": "user", "content": "hello"}]


class Captured:
    """A proxy before a provider, with the file that it records to."""

    def __init__(self, address: str, seen: Seen, path: Path) -> None:
        self.address, self.seen, self.path = address, seen, path
        self.said: list[str] = []
        self.log = CaptureLog(path, "test", self.said.append)
        self.clients: list[Any] = []

    def sessions(self) -> Any:
        self.log.close()
        return read(self.path).sessions

    @property
    def anthropic(self) -> Any:
        import anthropic  # inside of functions: loading takes long, and every process collects this file

        self.clients.append(anthropic.AsyncAnthropic(base_url=self.address, api_key=KEY, max_retries=0))
        return self.clients[-1]

    @property
    def openai(self) -> Any:
        import openai

        self.clients.append(openai.AsyncOpenAI(base_url=f"{self.address}/v1", api_key=KEY, max_retries=0))
        return self.clients[-1]


@asynccontextmanager
async def capturing(path: Path) -> AsyncIterator[Captured]:
    with provider() as (origin, seen):
        captured = Captured("", seen, path)
        proxy = Proxy(Route(Upstream.parse(origin)), captured.log.add)
        captured.address = await proxy.start()
        try:
            yield captured
        finally:
            for client in captured.clients:
                await client.close()
            await proxy.stop()
            captured.log.close()


async def test_a_conversation_of_anthropics_library_is_recorded_whole(tmp_path: Path) -> None:
    async with capturing(tmp_path / "log.jsonl") as captured:
        messages: list[Any] = []
        for number in range(3):
            messages.append({"role": "user", "content": f"question {number} {'x' * 1000}"})
            async with captured.anthropic.messages.stream(
                model="claude-opus-4-5", max_tokens=100, system="Be brief.", messages=messages
            ) as stream:
                answer = await stream.get_final_message()
            assert answer.usage.output_tokens == 5
            messages.append({"role": "assistant", "content": answer.content[0].text})
        (session,) = captured.sessions()
    assert [(call.prompt_tokens, call.cached_tokens, call.output_tokens) for call in session.calls] == [
        (100, 90, 5)
    ] * 3
    assert session.system == (TextPart("Be brief."),)
    assert [event.parts[0].text[:10] for event in session.events if event.role.value == "model"] == [
        "answer 1",
        "answer 3",
        "answer 5",
    ]
    text = captured.path.read_text()
    assert text.count("question 0") == 1, "a request is not written twice with the conversation before it"
    assert captured.path.stat().st_mode & 0o777 == 0o600


async def test_credentials_arrive_and_are_not_recorded(tmp_path: Path) -> None:
    async with capturing(tmp_path / "log.jsonl") as captured:
        await captured.anthropic.messages.create(
            model="m",
            max_tokens=9,
            messages=HELLO,
            extra_headers={"Cookie": "sid=crumbs"},
            extra_query={"key": "AIza1"},
        )
        await captured.openai.chat.completions.create(model="m", messages=HELLO)
        captured.log.close()
    (path, headers, _), (_, other, _) = captured.seen.requests
    given = httpx2.Headers(headers)
    assert (given["authorization"], given["cookie"]) == (f"Bearer {KEY}", "sid=crumbs")
    assert httpx2.Headers(other)["authorization"] == f"Bearer {KEY}"
    assert path.endswith("?key=AIza1")
    text = captured.path.read_text()
    assert not [secret for secret in (KEY, "crumbs", "AIza1") if secret in text]
    assert len(text.splitlines()) == 3


async def test_openais_library_works_in_both_of_its_apis(tmp_path: Path) -> None:
    async with capturing(tmp_path / "log.jsonl") as captured:
        client = captured.openai
        pieces = await client.chat.completions.create(model="gpt-5", messages=HELLO, stream=True)
        words = [piece.choices[0].delta.content async for piece in pieces if piece.choices]
        assert "".join(filter(None, words)) == "answer 1"
        response = await client.responses.create(model="gpt-5", instructions="Be brief.", input="hello")
        assert response.output_text == "answer"
        chat, responses = sorted(captured.sessions(), key=lambda session: len(session.system or ()))
    assert [call.prompt_tokens for call in (*chat.calls, *responses.calls)] == [100, 100]
    assert responses.system == (TextPart("Be brief."),)


async def test_the_bodies_and_heads_that_go_through_are_the_same_bytes(tmp_path: Path) -> None:
    body = json.dumps({"model": "m", "messages": HELLO, "user": "gzip"}, indent=7).encode()
    async with capturing(tmp_path / "log.jsonl") as captured, httpx2.AsyncClient() as client:

        async def pieces() -> AsyncIterator[bytes]:
            for at in range(0, len(body), 10):
                yield body[at : at + 10]

        headers = {"X-Own": "Ünïcode".encode("latin-1"), "Content-Type": "application/json"}
        request = client.build_request(
            "POST", f"{captured.address}/v1/chat/completions?a=%2F", headers=headers, content=pieces()
        )
        response = await client.send(request, stream=True)
        raw = b"".join([chunk async for chunk in response.aiter_raw()])
        direct = await client.get(f"{captured.address}/v1/models")
    path, headers, seen = captured.seen.requests[0]
    assert (path, seen) == ("/v1/chat/completions?a=%2F", body)
    assert headers["X-Own"] == "Ünïcode"
    assert headers["Transfer-Encoding"] == "chunked"
    assert headers["Host"] == captured_host(headers)
    assert len(raw) == int(response.headers["content-length"])
    assert (response.headers["content-encoding"], response.headers["x-request-id"]) == ("gzip", "req_1")
    assert direct.json() == {"data": []}


def captured_host(headers: dict[str, str]) -> str:
    assert headers["Host"].startswith("127.0.0.1:")
    return headers["Host"]


async def test_what_precedes_an_answer_is_passed_on_as_it_was(tmp_path: Path) -> None:
    said = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 204 Nothing Here\r\nConnection: close\r\n\r\n"

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(said)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        origin = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        proxy = Proxy(Route(Upstream.parse(origin)), lambda exchange: None)
        _, _, host, key = (await proxy.start()).split("/")
        reader, writer = await asyncio.open_connection(*host.split(":"))
        writer.write(f"GET /{key}/v1/models HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        assert await reader.read() == said
        writer.close()
        await proxy.stop()


async def test_a_provider_hears_at_once_of_an_agent_that_does_not_wait_for_the_answer(tmp_path: Path) -> None:
    left = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"{}")
        asked.set()
        assert not await reader.read()
        left.set()
        writer.close()

    asked, calls = asyncio.Event(), []
    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        origin = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        proxy = Proxy(Route(Upstream.parse(origin)), calls.append)
        _, _, host, key = (await proxy.start()).split("/")
        _, writer = await asyncio.open_connection(*host.split(":"))
        writer.write(f"POST /{key}/v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{{}}".encode())
        await asked.wait()
        writer.close()
        async with asyncio.timeout(PATIENCE):
            await left.wait()
        await proxy.stop()
    assert [call.answer.is_complete for call in calls] == [False]


@pytest.mark.parametrize("status", [400, 401, 429, 500, 529])
async def test_an_error_reaches_the_client_once_and_is_a_call_without_an_answer(tmp_path: Path, status: int) -> None:
    import anthropic

    async with capturing(tmp_path / "log.jsonl") as captured:
        with pytest.raises(anthropic.APIStatusError) as raised:
            await captured.anthropic.messages.create(
                model="m", max_tokens=9, messages=HELLO, metadata={"user_id": str(status)}
            )
        await captured.anthropic.messages.create(model="m", max_tokens=9, messages=HELLO)
        (session,) = captured.sessions()
    assert raised.value.status_code == status
    assert len(captured.seen.requests) == 2, "nothing is sent twice"
    assert [call.prompt_tokens for call in session.calls] == [None, 100]


TOO_LARGE = b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"


@asynccontextmanager
async def refusing(*, reads_rest: bool) -> AsyncIterator[str]:
    """A proxy before a provider that answers before the request is whole: servers that limit the size of bodies do."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            await reader.readuntil(b"\r\n\r\n")
            await reader.read(1_000)
            writer.write(TOO_LARGE)
            await writer.drain()
            while reads_rest and await reader.read(65_536):
                pass
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        upstream = Upstream.parse(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        proxy = Proxy(Route(upstream), lambda exchange: None)
        try:
            yield await proxy.start()
        finally:
            await proxy.stop()


async def test_an_early_answer_reaches_an_agent_that_sends_all_of_its_request_before_it_reads() -> None:
    async with refusing(reads_rest=True) as address:
        _, _, host, key = address.split("/")
        reader, writer = await asyncio.open_connection(*host.split(":"))
        writer.write(f"POST /{key}/v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: {2**23}\r\n\r\n".encode())
        for _ in range(2**23 // 2**16):
            writer.write(bytes(2**16))
            await writer.drain()
            await asyncio.sleep(0)  # where the connection is reset, asyncio sees it now
        async with asyncio.timeout(PATIENCE):
            assert await reader.read() == TOO_LARGE
        writer.close()


async def test_an_answer_is_passed_on_whose_provider_closes_the_connection_before_the_request_is_whole() -> None:
    """The answer and the reset come at nearly the same time: an answer that comes between a look and the write behind
    it may be lost."""
    async with refusing(reads_rest=False) as address, httpx2.AsyncClient() as client:
        statuses = []
        for _ in range(10):
            with suppress(httpx2.HTTPError):
                statuses.append((await client.post(f"{address}/v1/messages", content=bytes(2**22))).status_code)
    assert statuses.count(413) >= 8


@pytest.mark.parametrize("how", ["reset", "reset in the middle"])
async def test_a_broken_answer_is_broken_for_the_client_too(tmp_path: Path, how: str) -> None:
    import anthropic

    async with capturing(tmp_path / "log.jsonl") as captured:
        with pytest.raises((anthropic.APIConnectionError, httpx2.HTTPError)):
            async with captured.anthropic.messages.stream(
                model="m", max_tokens=9, messages=HELLO, metadata={"user_id": how}
            ) as stream:
                await stream.get_final_message()
        captured.log.close()
    assert len(captured.seen.requests) == 1
    line = json.loads(captured.path.read_text().splitlines()[1])
    assert line["broken_off"] is True
    assert line["request"]["messages"] == HELLO
    assert ("message_start" in line["response"]) == (how == "reset in the middle")


async def test_a_stalled_stream_comes_through_up_to_where_it_stalled(tmp_path: Path) -> None:
    async with (
        capturing(tmp_path / "log.jsonl") as captured,
        captured.anthropic.messages.stream(
            model="m", max_tokens=9, messages=HELLO, metadata={"user_id": "stall"}
        ) as stream,
    ):
        texts = stream.text_stream
        assert await anext(texts) == "a"
        assert await asyncio.to_thread(captured.seen.stalled.wait, 60)
        assert not captured.seen.released.is_set(), "the beginning came while the rest was not sent yet"
        captured.seen.released.set()
        assert "a" + "".join([text async for text in texts]) == "answer 1"


async def test_only_its_own_address_is_served_and_no_websocket(tmp_path: Path) -> None:
    async with capturing(tmp_path / "log.jsonl") as captured, httpx2.AsyncClient() as client:
        origin = captured.address.rsplit("/", 1)[0]
        assert (await client.post(f"{origin}/v1/messages", json={"messages": HELLO})).status_code == 404
        upgrade = {"Connection": "Upgrade", "Upgrade": "websocket"}
        refused = await client.get(f"{captured.address}/v1/responses", headers=upgrade)
        assert (refused.status_code, refused.headers["upgrade"]) == (426, "HTTP/1.1")
    assert captured.seen.requests == []


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"POST %s/v1/messages HTTP/1.1\r\nHost: a\r\nX-Long: " + b"x" * 2_000_000 + b"\r\n\r\n", 431),
        (b"POST %s/v1/messages HTTP/1.1\r\nHost a\r\n\r\n", 400),
        (b"no HTTP %s\r\n\r\n", 400),
    ],
)
async def test_a_head_that_cannot_be_forwarded_is_answered(head: bytes, status: int, tmp_path: Path) -> None:
    async with capturing(tmp_path / "log.jsonl") as captured:
        address = httpx2.URL(captured.address)
        reader, writer = await asyncio.open_connection(address.host, address.port)
        writer.write(head % address.path.encode())
        async with asyncio.timeout(PATIENCE):
            await writer.drain()
            answer = await reader.read()
        writer.close()
        first, _, body = answer.partition(b"\r\n\r\n")
        assert int(first.split()[1]) == status
        assert json.loads(body)["error"]["message"].startswith("The request was not forwarded: ")
        text = await captured.anthropic.messages.create(model="m", max_tokens=9, messages=HELLO)
        assert text.content[0].text == "answer 1"
    assert len(captured.seen.requests) == 1


async def test_a_client_that_offers_http_2_is_answered_by_http_1(tmp_path: Path) -> None:
    """As the HTTP client of Java does over a plain connection: whoever does not want to upgrade answers as usual."""
    async with capturing(tmp_path / "log.jsonl") as captured, httpx2.AsyncClient() as client:
        offer = {"Connection": "Upgrade, HTTP2-Settings", "Upgrade": "h2c", "HTTP2-Settings": "AAEAAEAA"}
        url, body = f"{captured.address}/v1/messages", {"model": "m", "max_tokens": 9, "messages": HELLO}
        for _ in range(2):  # the second on the same connection
            assert (await client.post(url, json=body, headers=offer)).status_code == 200
    (_, headers, _), _ = captured.seen.requests
    assert not {"upgrade", "http2-settings"} & {name.lower() for name in headers}


async def test_a_provider_that_is_away_or_whose_certificate_is_not_valid_is_named(tmp_path: Path) -> None:
    with provider() as (origin, _):
        closed = origin
    calls: list[Exchange] = []
    with certified(tmp_path) as unsigned:
        for address, words in ((closed, "cannot be reached"), (unsigned, "its certificate is not valid")):
            proxy = Proxy(Route(Upstream.parse(address)), calls.append)
            origin = await proxy.start()
            async with httpx2.AsyncClient() as client:
                answer = await client.post(f"{origin}/v1/messages", json={"messages": HELLO})
            await proxy.stop()
            assert answer.status_code == 502
            assert words in answer.json()["error"]["message"]
    assert calls == []


def certificate_of(folder: Path, host: str) -> None:
    """A key and a certificate for a host that nobody else has signed, in one file `both.pem`."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
    now, day = datetime.now(UTC), timedelta(days=1)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(now - day).not_valid_after(now + day)
    names = x509.SubjectAlternativeName([x509.DNSName(host), x509.IPAddress(ip_address("127.0.0.1"))])
    builder = builder.add_extension(names, critical=False)
    certificate = builder.sign(key, hashes.SHA256())
    pem = serialization.Encoding.PEM
    text = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "both.pem").write_bytes(text + certificate.public_bytes(pem))


@contextmanager
def certified(folder: Path) -> Iterator[str]:
    """The address of a TLS server whose certificate nobody has signed."""
    certificate_of(folder, "127.0.0.1")
    server = ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "both.pem")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"https://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


async def test_the_agent_goes_on_where_nothing_can_be_recorded(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    async with capturing(tmp_path / "file" / "log.jsonl") as captured:
        for _ in range(3):
            answer = await captured.anthropic.messages.create(model="m", max_tokens=9, messages=HELLO)
            assert answer.content[0].text == "answer 1"
        captured.log.close()
    assert len(captured.said) == 1
    assert captured.said[0].startswith("A request was forwarded, but not recorded:")


def test_a_call_that_does_not_fit_on_the_disk_leaves_no_half_line_before_the_next(tmp_path: Path) -> None:
    def call(content: str) -> Exchange:
        exchange = Exchange("/v1/messages", "anthropic", status=200)
        exchange.request.add(json.dumps({"model": "m", "messages": [{"role": "user", "content": content}]}).encode())
        exchange.answer.add(b"{}")
        return exchange

    said: list[str] = []
    refused = threading.Event()

    def say(words: str) -> None:
        said.append(words)
        refused.set()

    log = CaptureLog(tmp_path / "log.jsonl", "test", say)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, hard))
    try:
        log.add(call("a"))
        log.add(call("b" * 1_000))
        assert refused.wait(PATIENCE)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    log.add(call("c"))
    log.close()
    lines = [json.loads(line) for line in log.path.read_bytes().splitlines()]
    assert [line["request"]["messages"][0]["content"] for line in lines[1:]] == ["a", "c"]
    assert said == [f"A request was forwarded, but not recorded: {log.path}: No space left on device."]


AGENT = """
import os, sys, anthropic
client = anthropic.Anthropic(api_key="k", max_retries=0)
print(client.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "hello"}]).content[0].text)
sys.exit(int(sys.argv[1]))
"""


def run(arguments: list[str], folder: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "inspector.project.cli", "capture", "--folder", str(folder)]
    command += ["--server", "http://127.0.0.1:9", *arguments]
    given = {**os.environ, "PYTHONPATH": str(ROOT), **environ}
    return subprocess.run(command, capture_output=True, text=True, env=given, timeout=120, check=False)


@pytest.fixture
def origin() -> Iterator[str]:
    with provider() as (address, _):
        yield address


def test_a_command_runs_behind_the_proxy_with_its_own_exit_code(tmp_path: Path, origin: str) -> None:
    done = run(["--", sys.executable, "-c", AGENT, "3"], tmp_path / "out", ANTHROPIC_BASE_URL=origin)
    assert (done.returncode, done.stdout) == (3, "answer 1\n"), done.stderr
    (recording,) = (tmp_path / "out").iterdir()
    away = "http://127.0.0.1:9 does not answer (ConnectionRefusedError)"
    assert f"Recorded 1 call of a model in {recording}; {away}; import it to see them" in done.stderr
    assert [call.prompt_tokens for call in read(recording).sessions[0].calls] == [100]


class TeamServer(BaseHTTPRequestHandler):
    """An application in team mode: it takes recordings from whoever has the key alone, and shows others its login."""

    def do_GET(self) -> None:
        self._answer(200, b"<form>Sign in</form>")

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers["Authorization"] == "Bearer ci_key":
            self._answer(201, json.dumps({"imports": [{"url": "/s/1/"}]}).encode())
        else:
            self._answer(401, b'{"error": "This key is not known."}')

    def log_message(self, *_: Any) -> None:
        pass

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.mark.parametrize(
    ("key", "said"),
    mostly_long(
        [
            ("ci_key", ", shown at {server}/s/1/\n"),
            ("ci_old", "; {server} refuses: This key is not known; import it to see them\n"),
            ("", "; {server} is not a Compaction Inspector, or requires a login; import it to see them\n"),
        ],
        short=[("ci_key", ", shown at {server}/s/1/\n")],
    ),
    ids=["key", "unknown key", "no key"],
)
def test_a_server_in_team_mode_is_sent_the_recording_with_a_key(
    tmp_path: Path, origin: str, key: str, said: str
) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), TeamServer) as team:
        threading.Thread(target=team.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{team.server_port}"
        command = ["--server", address, "--", sys.executable, "-c", AGENT, "0"]
        done = run(command, tmp_path, ANTHROPIC_BASE_URL=origin, INSPECTOR_KEY=key)
        team.shutdown()
    assert done.stderr.endswith(said.format(server=address)), done.stderr


def test_a_command_that_is_not_there_and_one_that_calls_nothing_are_said(tmp_path: Path, origin: str) -> None:
    missing = run(["--", "no-such-agent"], tmp_path)
    assert (missing.returncode, missing.stderr) == (127, "no-such-agent is not installed, or not on the PATH.\n")
    quiet = run(["--", sys.executable, "-c", "pass"], tmp_path, OPENAI_BASE_URL=origin)
    assert (quiet.returncode, quiet.stderr) == (0, "No model call went through the proxy: nothing was recorded.\n")
    nothing = run([], tmp_path)
    assert nothing.returncode == 2
    assert nothing.stderr.startswith("Name an agent")
    wrong = run(["--", sys.executable, "-c", "pass"], tmp_path, OPENAI_BASE_URL="ftp://host")
    assert (wrong.returncode, "an address of a provider is http(s)://host/path" in wrong.stderr) == (2, True)


PI = f"""#!{sys.executable}
import json, os, sys, urllib.request
assert sys.argv[1] == "--extension" and "registerProvider" in open(sys.argv[2]).read()
where = json.loads(os.environ["CAPTURED_PROVIDERS"])
body = {{"model": "m", "max_tokens": 9, "messages": [{{"role": "user", "content": "hi"}}]}}
headers = {{"Content-Type": "application/json", "X-Api-Key": "k"}}
request = urllib.request.Request(where[sys.argv[3]] + "/v1/messages", json.dumps(body).encode(), headers)
print(json.loads(urllib.request.urlopen(request).read())["content"][0]["text"])
print(*sorted(where))
"""


@pytest.mark.parametrize("name", ["anthropic", "mine"])
def test_pi_asks_the_proxy_whatever_address_its_user_has_given_a_provider(
    tmp_path: Path, origin: str, name: str
) -> None:
    """What the extension does within pi was seen with pi 1.5.2; here a program reads what pi would."""
    (tmp_path / "pi").write_text(PI)
    (tmp_path / "pi").chmod(0o755)
    (tmp_path / "models.json").write_text(
        f'{{"providers": {{ // mine\n"{name}": {{"baseUrl": "{origin}", // moved\n}}}}}}'
    )
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    done = run(["pi", name], tmp_path / "out", PATH=path, PI_CODING_AGENT_DIR=str(tmp_path))
    assert done.returncode == 0, done.stderr
    providers = {"anthropic", "google", "openai", "openai-codex", "openrouter", name}
    assert done.stdout.splitlines() == ["answer 1", " ".join(sorted(providers))]
    (recording,) = (tmp_path / "out").iterdir()
    assert [call.prompt_tokens for call in read(recording).sessions[0].calls] == [100]


def test_where_pis_own_addresses_cannot_be_read_nothing_is_sent_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "pi").write_text(PI)
    (tmp_path / "pi").chmod(0o755)
    (tmp_path / "models.json").write_text("{")
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    done = run(["pi", "anthropic"], tmp_path / "out", PATH=path, PI_CODING_AGENT_DIR=str(tmp_path))
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{tmp_path}/models.json is not JSON with providers" in done.stderr


EVENTS = b"".join(b'data: {"n": %d}\n\n' % number for number in range(500))


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("", EVENTS),
        ("gzip", gzip.compress(EVENTS)),
        ("gzip", gzip.compress(EVENTS[:100]) + gzip.compress(EVENTS[100:])),
        ("gzip", gzip.compress(EVENTS) + b"\0\0"),
        ("x-gzip", gzip.compress(EVENTS)),
        ("deflate", zlib.compress(EVENTS)),
        ("deflate", zlib.compress(EVENTS)[2:-4]),
        ("deflate", zlib.compress(EVENTS, wbits=9)),
        ("br", brotli.compress(EVENTS)),
        ("zstd", zstandard.compress(EVENTS[:100]) + zstandard.compress(EVENTS[100:])),
    ],
)
def test_an_answer_is_recorded_in_full_however_it_is_compressed(encoding, body, tmp_path):
    assert response_of(encoding, body, tmp_path) == {"response": EVENTS.decode()}


def test_the_members_of_an_answer_are_unpacked_in_time_in_proportion_to_their_number(tmp_path):
    """A stream may have one for each of its events."""
    took = []
    for number in (1_000, 50_000):
        begun = time.process_time()
        assert response_of("gzip", gzip.compress(b"x") * number, tmp_path / str(number)) == {"response": "x" * number}
        took.append(time.process_time() - begun)
    assert took[1] < 150 * took[0]


def test_an_answer_that_is_not_compressed_as_it_says_is_noted(tmp_path):
    assert response_of("gzip", EVENTS, tmp_path) == {"note": "the answer cannot be decompressed (error)"}


def response_of(encoding: str, body: bytes, folder: Path) -> dict[str, Any]:
    """What the recording of a call holds of its answer."""
    log = CaptureLog(folder / "capture.jsonl", "test", pytest.fail)
    exchange = Exchange("/v1/messages", "anthropic", status=200)
    exchange.request.add(b"{}")
    exchange.answer.encoding, exchange.answer.kind, exchange.answer.is_complete = encoding, "text/event-stream", True
    exchange.answer.add(body)
    log.add(exchange)
    log.close()
    _, line = (folder / "capture.jsonl").read_text().splitlines()
    return {key: value for key, value in json.loads(line).items() if key in ("response", "note")}
