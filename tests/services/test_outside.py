"""A server of team mode as an outsider meets it: headers, cookies, forms, sockets, shares, uploads, paths; and what it
must never do, which is to connect to anything.

Every address with every role is tried where it is cheap: tests/inspector/accounts/test_access.py.
"""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from http.cookies import SimpleCookie
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlencode, urlparse
from uuid import uuid4

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from guard_core.recordings.formats import native
from inspector.accounts import limits
from tests.big_sessions import big_session
from tests.services.server import Answer, Running, running
from tests.waiting import PATIENCE, until

PASSWORD = "correct horse battery"
POLICY = "default-src 'none'"
FORM = "application/x-www-form-urlencoded"


@dataclass
class Visitor:
    """A browser as far as HTTP goes: it keeps cookies, and sends the token of the forms."""

    server: Running
    cookies: dict[str, str] = field(default_factory=dict)

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        given = {"Cookie": self.cookie, **headers} if self.cookies else dict(headers)
        answer = self.server.request(method, path, body, given)
        for name, morsel in SimpleCookie(answer.headers.get("set-cookie", "")).items():
            self.cookies[name] = morsel.value
        return answer

    def get(self, path: str, **headers: str) -> Answer:
        return self.ask("GET", path, **headers)

    def post(self, path: str, form: dict[str, Any] | None = None, **headers: str) -> Answer:
        body = urlencode({"csrfmiddlewaretoken": self.token(), **(form or {})}, doseq=True)
        return self.ask("POST", path, body, **{"Content-Type": FORM, **headers})

    def token(self) -> str:
        """The token of a form; every page has one."""
        match = re.search(r'X-CSRFToken": "([^"]+)"', self.get("/no-such-page/").text)
        assert match is not None
        return match[1]

    @property
    def cookie(self) -> str:
        return "; ".join(f"{name}={value}" for name, value in self.cookies.items())

    def upload(self, name: str, content: bytes, **headers: str) -> Answer:
        boundary, token = uuid4().hex, "" if "Authorization" in headers else self.token()
        parts = f'--{boundary}\r\nContent-Disposition: form-data; name="csrfmiddlewaretoken"\r\n\r\n{token}\r\n'
        parts += f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
        body = parts.encode() + content + f"\r\n--{boundary}--\r\n".encode()
        kind = f"multipart/form-data; boundary={boundary}"
        return self.ask("POST", "/recordings/", body, **{"Content-Type": kind, "Accept": "application/json", **headers})


def join(visitor: Visitor, path: str, name: str) -> Answer:
    return visitor.post(path, {"name": name, "password1": PASSWORD, "password2": PASSWORD})


def sign_in(server: Running, name: str, password: str = PASSWORD, **more: str) -> tuple[Visitor, Answer]:
    visitor = Visitor(server)
    return visitor, visitor.post("/login/", {"username": name, "password": password, **more})


@pytest.fixture(scope="module")
def canary() -> Iterator[socket.socket]:
    """A server of someone else on this machine, which nobody must connect to."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        yield listener


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory, canary: socket.socket) -> Iterator[SimpleNamespace]:
    """Alice, who owns the first project with a session in it, vera, who views it, and bob, who has one of his own."""
    with running(tmp_path_factory.mktemp("team"), TEAM="1") as server:
        link = until(lambda: re.search(r"/join/[\w-]{43,}/", "".join(server.output)))[0]
        alice, vera, bob = Visitor(server), Visitor(server), Visitor(server)
        assert join(alice, link, "alice").status == 302
        for visitor, name in ((vera, "vera"), (bob, "bob")):
            page = alice.post("/team/invitations", {"role": "viewer"}).text
            assert join(visitor, re.search(r"/join/[\w-]{43,}/", page)[0], name).status == 302
        assert bob.post("/account/projects", {"name": "Bob's"}).status == 302
        members = alice.get("/team/").text
        (form,) = re.findall(r'action="(/team/members/\d+)"(?:(?!</form>).)*?Role of bob', members, re.DOTALL)
        assert alice.post(form, {"role": "remove"}).status == 302
        url = f"http://127.0.0.1:{canary.getsockname()[1]}/x.png"
        spoken = [("user", f"<img src={url}> zanzibar sk-{'a1B2' * 12}"), ("assistant", f"![x]({url}) [y]({url})")]
        content = {"model": "gpt-4o", "messages": [{"role": role, "content": text} for role, text in spoken]}
        (job,) = json.loads(alice.upload("../../zanzibar.json", json.dumps(content).encode()).body)["imports"]
        session = until(lambda: re.search(r"/s/[0-9a-f-]{36}/", job["url"] + alice.get(job["url"]).text))[0]
        yield SimpleNamespace(server=server, alice=alice, vera=vera, bob=bob, session=session, job=job, link=link)


@pytest.fixture(scope="module")
def share(there: SimpleNamespace) -> SimpleNamespace:
    """A published report of alice's session."""
    answer = there.alice.post(f"{there.session}share", {"level": "text", "lifetime": "1d", "title": "About zanzibar"})
    path = answer.headers["location"]
    until(lambda: "to be reviewed" in there.alice.get(path).text)
    page = there.alice.post(f"{path}publish").text
    return SimpleNamespace(path=path, link=re.search(r"/r/[\w-]{43,}/", page)[0])


def test_every_kind_of_answer_has_its_headers(there: SimpleNamespace, share: SimpleNamespace) -> None:
    nobody = Visitor(there.server)
    answers = {
        "login": nobody.get("/login/"),
        "sent to the login": nobody.get("/"),
        "list": there.alice.get("/"),
        "session": there.alice.get(there.session),
        "part": there.alice.get(f"{there.session}steps", **{"HX-Request": "true"}),
        "download": there.alice.get(there.job["raw"]),
        "report": nobody.get(share.link),
        "report as a file": nobody.get(f"{share.link}report.csv"),
        "not there": there.alice.get("/s/nope/"),
        "not allowed": there.vera.post("/samples/small-window/"),
        "not this host": nobody.get("/", Host="evil.invalid"),
        "refused": nobody.ask("POST", "/recordings/", b""),
    }
    for name, answer in answers.items():
        assert answer.status < 500, name
        headers = answer.headers
        assert POLICY in headers["content-security-policy"], name
        assert "unsafe-eval" not in headers["content-security-policy"], name
        assert headers["x-content-type-options"] == "nosniff", name
        is_report = name.startswith("report")
        assert headers["referrer-policy"] == ("no-referrer" if is_report else "same-origin"), name
        assert headers["cross-origin-opener-policy"] == "same-origin", name
        assert headers["cross-origin-resource-policy"] == "same-origin", name
        assert "no-store" in headers["cache-control"], name
        assert headers["x-robots-tag"].startswith("noindex"), name
        assert "server" not in headers, name
    for name in ("download", "report as a file"):
        assert answers[name].headers["content-disposition"].startswith("attachment; filename="), name
        assert "sandbox" in answers[name].headers["content-security-policy"], name
    assert "HX-Request" in answers["part"].headers["vary"]
    statics = re.search(r'href="(/static/css/base[^"]+)"', answers["list"].text)[1]
    assert nobody.get(statics).headers["x-content-type-options"] == "nosniff"


def test_cookies_are_for_this_server_and_no_script(there: SimpleNamespace) -> None:
    _, answer = sign_in(there.server, "alice")
    port = urlparse(there.server.origin).port
    assert answer.status == 302
    name, _, attributes = answer.headers["set-cookie"].partition("=")
    assert name in (f"inspector_{port}_session", f"inspector_{port}_csrf")
    assert {"HttpOnly", "Path=/", "SameSite=Lax"} <= set(attributes.split("; "))


def test_a_form_needs_its_token_and_its_own_origin(there: SimpleNamespace) -> None:
    visitor, _ = sign_in(there.server, "alice")
    assert visitor.ask("POST", "/logout/", "", **{"Content-Type": FORM}).status == 403
    for origin in ("https://evil.invalid", "null", there.server.origin.replace("http:", "https:")):
        assert visitor.post("/logout/", Origin=origin).status == 403
    assert visitor.get("/").status == 200
    assert visitor.post("/logout/", Origin=there.server.origin).status == 302


def test_a_session_that_was_ended_opens_nothing_any_more(there: SimpleNamespace) -> None:
    visitor, _ = sign_in(there.server, "alice")
    old = Visitor(there.server, dict(visitor.cookies))
    assert old.get(there.session).status == 200
    visitor.post("/logout/")
    assert old.get(there.session).status == 302


def test_guesses_are_answered_later_and_from_elsewhere_one_still_gets_in(there: SimpleNamespace) -> None:
    name = f"guessed-{uuid4().hex[:8]}"
    statuses = [sign_in(there.server, name, "wrong")[1].status for _ in range(limits.SIGN_IN.most)]
    assert statuses == [422] * limits.SIGN_IN.most
    visitor = Visitor(there.server)
    form = {"username": name, "password": "wrong"}
    for forged in ("10.0.0.1", "127.0.0.1, 8.8.8.8"):
        answer = visitor.post("/login/", form, **{"X-Forwarded-For": forged})
        assert (answer.status, int(answer.headers["retry-after"]) > 0) == (429, True)
    assert sign_in(there.server, "vera")[1].status == 302


def test_a_login_leads_nowhere_else(there: SimpleNamespace) -> None:
    assert sign_in(there.server, "vera", next="https://evil.invalid/")[1].headers["location"] == "/"


def test_the_link_of_the_first_start_works_once(there: SimpleNamespace) -> None:
    assert Visitor(there.server).get(there.link).status == 404


def socket_of(there: SimpleNamespace, cookie: str, path: str, origin: str | None) -> Any:
    """A socket of a page, as far as the server can see."""
    address = there.server.origin.replace("http", "ws") + path
    return connect(address, origin=origin, additional_headers={"Cookie": cookie}, open_timeout=PATIENCE)


def import_socket(report: str) -> str:
    return f"/ws{report.partition('?')[0]}"


@pytest.mark.parametrize("who", ["alice", "vera"])
def test_a_socket_opens_for_members(there: SimpleNamespace, who: str) -> None:
    cookie = getattr(there, who).cookie
    with socket_of(there, cookie, import_socket(there.job["report"]), there.server.origin) as opened:
        assert json.loads(opened.recv(PATIENCE)) == {"changed": True}


@pytest.mark.parametrize("who", ["bob", "nobody"])
def test_a_socket_opens_for_nobody_else(there: SimpleNamespace, who: str) -> None:
    cookie = getattr(there, who).cookie if who != "nobody" else "x=y"
    with pytest.raises(InvalidStatus, match="403"):
        socket_of(there, cookie, import_socket(there.job["report"]), there.server.origin)


@pytest.mark.parametrize("origin", ["https://evil.invalid", "http://127.0.0.1:3000", "http://[::1", None])
def test_a_socket_opens_from_our_own_pages_alone(there: SimpleNamespace, origin: str | None) -> None:
    with pytest.raises(InvalidStatus, match="403"):
        socket_of(there, there.alice.cookie, import_socket(there.job["report"]), origin)


def test_a_socket_ends_with_the_session_that_opened_it(there: SimpleNamespace) -> None:
    visitor, _ = sign_in(there.server, "alice")
    large = native.write(big_session(8_000, 5))  # its import takes a while
    job = json.loads(there.alice.upload("big.jsonl", large).body)["imports"][0]
    path = import_socket(job["report"])
    with socket_of(there, visitor.cookie, path, there.server.origin) as opened:
        visitor.post("/logout/")
        with pytest.raises(ConnectionClosed):
            drain(opened)
    with pytest.raises(InvalidStatus, match="403"):
        socket_of(there, visitor.cookie, path, there.server.origin)
    there.alice.post(f"{job['report'].partition('?')[0]}cancel")


def drain(opened: Any) -> None:
    """All that a socket says until it is closed."""
    while True:
        opened.recv(PATIENCE)


def test_a_share_is_read_by_anyone_and_opens_nothing_else(there: SimpleNamespace, share: SimpleNamespace) -> None:
    nobody = Visitor(there.server)
    report = nobody.get(share.link)
    assert report.status == 200
    assert "zanzibar" in report.text
    files = ("report.html", "report.json", "report.csv", "report.md", "badge.svg")
    bodies = [nobody.get(share.link + name) for name in files]
    assert [body.status for body in bodies] == [200] * len(files)
    assert all(b"a1B2a1B2" not in answer.body for answer in (report, *bodies))
    assert "<script" not in report.text
    token = share.link.split("/")[2]
    for path in (there.session, "/", "/search?q=zanzibar", "/shares/", share.path, there.job["raw"]):
        answer = nobody.get(path, Authorization=f"Bearer {token}")
        assert (answer.status, "zanzibar" in answer.text) == (401, False), path
        assert nobody.get(f"{path}?token={token}").status == 302, path
    assert nobody.ask("POST", share.link, b"").status == 403


def test_a_revoked_share_is_as_one_that_never_was(there: SimpleNamespace) -> None:
    answer = there.alice.post(f"{there.session}share", {"level": "numbers", "lifetime": "1d"})
    path = answer.headers["location"]
    until(lambda: "to be reviewed" in there.alice.get(path).text)
    link = re.search(r"/r/[\w-]{43,}/", there.alice.post(f"{path}publish").text)[0]
    nobody = Visitor(there.server)
    assert nobody.get(link).status == 200
    assert there.bob.post(f"{path}revoke").status == 404
    assert there.vera.post(f"{path}revoke").status == 403
    assert nobody.get(link).status == 200
    there.alice.post(f"{path}revoke")
    random = f"/r/{uuid4().hex}{uuid4().hex}/"
    for name in ("", "report.json", "report.csv", "badge.svg", "?format=json"):
        one, other = nobody.get(link + name), nobody.get(random + name)
        assert (one.status, one.body) == (404, other.body), name
    assert nobody.ask("HEAD", link).status == 404


def test_what_is_alices_is_not_there_for_bob(there: SimpleNamespace, share: SimpleNamespace) -> None:
    paths = [
        there.session,
        f"{there.session}steps",
        f"{there.session}context",
        f"{there.session}policies?format=json",
        f"{there.session}share",
        f"{there.session}comments?step=1",
        there.job["raw"],
        there.job["report"],
        share.path,
        f"{share.path}preview",
    ]
    for path in paths:
        for method in ("GET", "POST", "DELETE"):
            answer = there.bob.post(path) if method == "POST" else there.bob.ask(method, path)
            assert answer.status in (403, 404, 405), (method, path)  # 403: a deletion without a form's token
            assert "zanzibar" not in answer.text, (method, path)
    for path in ("/", "/search?q=zanzibar", "/triggers/", "/shares/", f"/compare/?side={there.session[3:-1]}"):
        assert there.session not in there.bob.get(path).text
    key = there.session[3:-1]
    there.bob.post("/sessions/bulk", {"action": "delete", "id": [key]})
    assert there.alice.get(there.session).status == 200


def test_a_key_sends_and_reads_nothing_and_ends_when_it_is_revoked(there: SimpleNamespace) -> None:
    page = there.alice.post("/team/keys", {"name": "agent", "scope": ["ingest"], "lifetime": "30"}).text
    key = {"Authorization": "Bearer " + re.search(r'value="(ci_[\w-]{43,})"', page)[1]}
    program = Visitor(there.server)
    sent = program.upload("sent.json", json.dumps({"messages": [{"role": "user", "content": "hello"}]}).encode(), **key)
    assert sent.status in (201, 422), sent.text
    assert program.get("/", **key).status == 403
    assert program.ask("POST", "/team/keys", b"", **key).status == 403
    there.alice.post(re.search(r"/team/keys/\d+/revoke", page)[0])
    assert program.upload("sent.json", b"{}", **key).status == 401


def test_whoever_may_not_send_is_cut_off_early(there: SimpleNamespace) -> None:
    address = urlparse(there.server.origin)
    head = (
        f"POST /recordings/ HTTP/1.1\r\nHost: {address.netloc}\r\nTransfer-Encoding: chunked\r\n"
        "Content-Type: multipart/form-data; boundary=x\r\n\r\n"
    )
    chunk, taken = b"10000\r\n" + b"\0" * 65_536 + b"\r\n", 0
    with socket.create_connection((address.hostname, address.port), timeout=PATIENCE) as connection:
        connection.sendall(head.encode())
        with suppress(ConnectionError):
            while taken < 64 * 2**20:
                connection.sendall(chunk)
                taken += 65_536
        answer = b""
        with suppress(ConnectionError):
            answer = connection.recv(4_096)
    assert taken < 64 * 2**20  # the limit of others, and what lies in buffers on the way
    assert b" 413 " in answer.split(b"\r\n", 1)[0] or not answer
    assert not list((there.server.data_dir / "incoming").glob("*.upload*"))


@pytest.mark.parametrize(
    "path",
    [
        "/static/../inspector.sqlite3",
        "/static/..%2f..%2fsecret-key",
        "/static/%2e%2e/secret-key",
        "/static//etc/passwd",
        "/.env",
        "/.git/config",
        "/inspector.sqlite3",
        "/secret-key",
        "/admin/",
        "/static/css/..%5c..%5csecret-key",
        "/s/%00/",
        "/%ff",
    ],
)
def test_no_file_of_the_server_is_there(there: SimpleNamespace, path: str) -> None:
    answer = there.alice.get(path)
    assert answer.status in (301, 400, 404), path
    secret = (there.server.data_dir / "secret-key").read_text()
    assert secret not in answer.text
    assert "SQLite format" not in answer.text


def test_a_file_keeps_no_path_of_its_name(there: SimpleNamespace) -> None:
    assert there.job["name"] == "zanzibar.json"
    data = there.server.data_dir
    assert not list(data.parent.rglob("*zanzibar*"))


def test_whoever_watches_over_it_asks_without_an_account(there: SimpleNamespace) -> None:
    nobody = Visitor(there.server)
    assert [nobody.get(path).status for path in ("/healthz", "/readyz", "/metrics")] == [200, 200, 404]


def test_tokens_and_passwords_are_stored_nowhere_and_the_log_is_about_it(there: SimpleNamespace, share: Any) -> None:
    sign_in(there.server, "vera", "wrong")
    audit = there.alice.get("/team/audit").text
    for what in ("signed in", "sign-in failed", "share published", "share opened", "key made", "member removed"):
        assert what in audit, what
    token = share.link.split("/")[2].encode()
    for path in there.server.data_dir.glob("inspector.sqlite3*"):
        stored = path.read_bytes()
        assert token not in stored
        assert PASSWORD.encode() not in stored


def test_nothing_was_connected_to(there: SimpleNamespace, share: Any, canary: socket.socket) -> None:
    with pytest.raises(BlockingIOError):
        canary.accept()
