"""An OpenID provider on this machine, over HTTP: discovery, keys, authorization code with PKCE, ID tokens signed RS256.

What a test wants wrong it says by the fields of `Provider`. The rules are those of OpenID Connect Core 1.0 and
RFC 7636.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import threading
import time
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey

CLIENT_ID, CLIENT_SECRET = "inspector", "a secret & more"


@cache
def key(name: str) -> RSAKey:
    """A key, made once for all tests of a process."""
    return RSAKey.generate_key(2048, {"kid": name, "use": "sig", "alg": "RS256"})


@dataclass
class Provider:
    """What it says, and what came."""

    address: str = ""
    person: dict[str, Any] = field(default_factory=lambda: {"sub": "248289761001", "preferred_username": "Dora"})
    claims: dict[str, Any] = field(default_factory=dict)  # in place of those of the ID token; None leaves one out
    userinfo: dict[str, Any] = field(default_factory=dict)
    described: dict[str, Any] = field(default_factory=dict)  # in place of those of the discovery
    header: dict[str, Any] = field(default_factory=lambda: {"alg": "RS256", "kid": "first"})
    signs_with: str = "first"
    publishes: tuple[str, ...] = ("first",)
    answers: dict[str, tuple[int, bytes]] = field(default_factory=dict)  # by path, in place of all others
    asked: list[str] = field(default_factory=list)
    codes: dict[str, dict[str, str]] = field(default_factory=dict)

    def description(self) -> dict[str, Any]:
        return {
            "issuer": self.address,
            "authorization_endpoint": f"{self.address}/authorize",
            "token_endpoint": f"{self.address}/token",
            "jwks_uri": f"{self.address}/keys",
            "userinfo_endpoint": f"{self.address}/userinfo",
            "end_session_endpoint": f"{self.address}/end",
            "id_token_signing_alg_values_supported": ["RS256", "HS256", "none"],
            **self.described,
        }

    def authorize(self, query: dict[str, str]) -> str:
        """The address to which the browser of a person who agrees is sent."""
        assert (query["response_type"], query["client_id"]) == ("code", CLIENT_ID)
        assert query["code_challenge_method"] == "S256"
        assert "openid" in query["scope"].split()
        code = secrets.token_urlsafe(16)
        self.codes[code] = query
        return f"{query['redirect_uri']}?{urlencode({'code': code, 'state': query['state']})}"

    def token(self, form: dict[str, str], authorization: str) -> tuple[int, dict[str, Any]]:
        begun = self.codes.pop(form.get("code", ""), None)  # a code works once
        if begun is None or form["redirect_uri"] != begun["redirect_uri"] or not is_proof(form, begun):
            return 400, {"error": "invalid_grant"}
        if shown(form, authorization) != (CLIENT_ID, CLIENT_SECRET):
            return 401, {"error": "invalid_client"}
        now = int(time.time())
        claims = {"iss": self.address, "aud": CLIENT_ID, "iat": now, "exp": now + 300, "nonce": begun["nonce"]}
        claims = {name: value for name, value in {**claims, **self.person, **self.claims}.items() if value is not None}
        return 200, {"access_token": "opens-userinfo", "token_type": "Bearer", "id_token": self.signed(claims)}

    def signed(self, claims: dict[str, Any]) -> str:
        if self.header["alg"] in ("none", "HS256"):  # what no library writes
            text = b".".join(encoded(json.dumps(part).encode()) for part in (self.header, claims))
            shared = hmac.digest(
                key(self.signs_with).as_pem(private=False), text, "sha256"
            )  # with what anyone can read
            return b".".join((text, encoded(shared) if self.header["alg"] == "HS256" else b"")).decode()
        return jwt.encode(self.header, claims, key(self.signs_with), algorithms=[self.header["alg"]])


def encoded(content: bytes) -> bytes:
    return base64.urlsafe_b64encode(content).rstrip(b"=")


def is_proof(form: dict[str, str], begun: dict[str, str]) -> bool:
    digest = hashlib.sha256(form["code_verifier"].encode()).digest()
    return encoded(digest).decode() == begun["code_challenge"]


def shown(form: dict[str, str], authorization: str) -> tuple[str, ...]:
    """Client and secret, in the form or in the header."""
    if not authorization:
        return form["client_id"], form["client_secret"]
    plain = base64.b64decode(authorization.removeprefix("Basic ")).decode()
    return tuple(unquote(part) for part in plain.split(":", 1))


class Handler(BaseHTTPRequestHandler):
    provider: Provider

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        mine = self.provider
        mine.asked.append(address.path)
        query = {name: values[0] for name, values in parse_qs(address.query).items()}
        if address.path in mine.answers:
            self.answer(*mine.answers[address.path])
        elif address.path == "/.well-known/openid-configuration":
            self.answer(200, mine.description())
        elif address.path == "/keys":
            self.answer(200, {"keys": [key(name).as_dict(private=False) for name in mine.publishes]})
        elif address.path == "/authorize":
            self.answer(302, b"", mine.authorize(query))
        elif address.path == "/userinfo" and self.headers["Authorization"] == "Bearer opens-userinfo":
            self.answer(200, {"sub": mine.person["sub"], **mine.userinfo})
        else:
            self.answer(404, {})

    def do_POST(self) -> None:
        self.provider.asked.append(self.path)
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        form = {name: values[0] for name, values in parse_qs(body).items()}
        canned = self.provider.answers.get(self.path)
        self.answer(*(canned or self.provider.token(form, self.headers.get("Authorization", ""))))

    def answer(self, status: int, content: Any, location: str = "") -> None:
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if location:
            self.send_header("Location", location)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


class Running:
    """A provider that answers, until it is closed."""

    def __init__(self) -> None:
        self.provider = Provider()
        handler = type("Handler", (Handler,), {"provider": self.provider})
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.provider.address = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()
