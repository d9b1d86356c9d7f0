"""Signing in at an OpenID provider: the way there and back, and what the provider said of whom it has signed in.

Authlib does the protocol: authorization code with PKCE, state and nonce, and ID tokens whose signature, issuer,
audience and times are checked. It is imported when somebody signs in this way. The server connects to the addresses of
OIDC_ISSUER alone, and only for that.
"""

from __future__ import annotations

import hmac
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, NamedTuple

from django.conf import settings

DISCOVERY = "/.well-known/openid-configuration"  # OpenID Connect Discovery 1.0, section 4
SCOPE = "openid profile email"
# Signatures by a key of the provider's own: "none" and those with a shared secret (HS256) are not accepted.
ALGORITHMS = frozenset(f"{kind}{bits}" for kind in ("RS", "PS", "ES") for bits in (256, 384, 512))
DEFAULT_ALGORITHM = "RS256"  # of a provider that names none: OpenID Connect Core 1.0, section 2
BY_HEADER, BY_FORM = "client_secret_basic", "client_secret_post"  # how the secret is shown; the first by default
ANSWER_SECONDS = 5.0  # for the provider, each time it is asked
KEPT_SECONDS = 3600  # that the provider's description of itself is kept, in each process
CLOCK_SECONDS = 60  # that the provider's clock may differ from ours
LONGEST_SUBJECT = 255  # characters: OpenID Connect Core 1.0, section 2


class SignInFailed(Exception):
    """The sign-in failed. `sentence` is for the person, the text for the log; `status` is the one of HTTP, `account`
    the name of the one that may not be used."""

    def __init__(self, reason: str, sentence: str, status: int = 400, account: str = "") -> None:
        super().__init__(reason)
        self.sentence, self.status, self.account = sentence, status, account


class Begun(NamedTuple):
    """What the browser keeps while a person is at the provider."""

    state: str
    nonce: str
    verifier: str


class Person(NamedTuple):
    """Whom the provider has signed in. `email` is empty unless the provider says that it was verified."""

    issuer: str
    subject: str
    name: str
    email: str


def is_on() -> bool:
    """Can people sign in at a provider."""
    return bool(settings.TEAM and settings.OIDC_ISSUER)


def name() -> str:
    """What the provider is called, on buttons; "" where people cannot sign in at one."""
    return settings.OIDC_NAME if is_on() else ""


def begin(back: str) -> tuple[str, Begun]:
    """The address at the provider to which the browser goes, and what it keeps; `back` is the address to which the
    provider sends it. Raises SignInFailed."""
    with _asked():
        client, _ = _provider()
        begun = client.create_authorization_url(back)
        return begun["url"], Begun(begun["state"], begun["nonce"], begun["code_verifier"])


def finish(begun: Begun, answer: Mapping[str, str], back: str) -> Person:
    """Whom the provider has signed in, by the answer with which it sent the browser back. Raises SignInFailed."""
    if not hmac.compare_digest(answer.get("state", "").encode(), begun.state.encode()):
        raise SignInFailed("the state is another one", "A newer sign-in was started in this browser. Start again.")
    if "error" in answer:
        sentence = f"{settings.OIDC_NAME} did not sign you in. Try again, or ask whoever runs it."
        raise SignInFailed(f"the provider answered {answer['error'][:100]!r}", sentence, 403)
    with _asked():
        client, described = _provider()
        if answer.get("iss", described["issuer"]) != described["issuer"]:  # RFC 9207
            raise ValueError("the answer is another issuer's")
        token = client.fetch_access_token(back, code=answer.get("code", ""), code_verifier=begun.verifier)
        expected = {"iss": {"value": described["issuer"]}, "aud": {"values": [settings.OIDC_CLIENT_ID]}}
        claims = client.parse_id_token(token, begun.nonce, claims_options=expected, leeway=CLOCK_SECONDS)
        if claims is None:
            raise ValueError("the answer has no ID token")
        if "email" not in claims and "userinfo_endpoint" in described:
            more = client.userinfo(token=token)
            claims = {**more, **claims} if more.get("sub") == claims["sub"] else claims
        return _person(described["issuer"], claims)


def sign_out_address(back: str) -> str:
    """The address at which a person ends the session at the provider, who may then send the browser to `back`; "" where
    the provider names none. Raises SignInFailed."""
    with _asked():
        client, described = _provider()
        if "end_session_endpoint" not in described:
            return ""
        address = client.create_logout_url(back, client_id=settings.OIDC_CLIENT_ID)["url"]
        return str(address)


def _person(issuer: str, claims: Mapping[str, Any]) -> Person:
    subject = claims["sub"]
    if not isinstance(subject, str) or not 0 < len(subject) <= LONGEST_SUBJECT or not subject.isprintable():
        raise ValueError("the subject is not a name")
    email = claims.get("email") if claims.get("email_verified") is True else ""
    names = (claims.get("preferred_username"), claims.get("email"), claims.get("name"), subject)
    name = next(name for name in names if isinstance(name, str) and name)
    return Person(issuer, subject, name, email if isinstance(email, str) else "")


@contextmanager
def _asked() -> Iterator[None]:
    """Says in words what went wrong while the provider was asked."""
    from authlib.common.errors import AuthlibBaseError
    from joserfc.errors import JoseError
    from requests import RequestException

    name = settings.OIDC_NAME
    try:
        yield
    except RequestException as error:
        sentence = f"{name} cannot be reached, or does not answer as it should. Try again in a moment."
        raise SignInFailed(f"{type(error).__name__}: {error}", sentence, 503) from error
    except (AuthlibBaseError, JoseError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        sentence = f"What {name} answered could not be verified, so you are not signed in. Try again."
        raise SignInFailed(f"{type(error).__name__}: {error}", sentence) from error


def _provider() -> tuple[Any, dict[str, Any]]:
    """Authlib's client of the provider, and how the provider describes itself."""
    hour = int(time.monotonic() // KEPT_SECONDS)
    client = _client(settings.OIDC_ISSUER, settings.OIDC_CLIENT_ID, settings.OIDC_CLIENT_SECRET, hour)
    described = client.load_server_metadata()
    if str(described.get("issuer")).rstrip("/") != settings.OIDC_ISSUER.rstrip("/"):
        raise ValueError(f"OIDC_ISSUER describes itself as {str(described.get('issuer'))[:200]!r}")
    offered = described.get("id_token_signing_alg_values_supported", [DEFAULT_ALGORITHM])
    described["id_token_signing_alg_values_supported"] = sorted(ALGORITHMS.intersection(offered))
    methods = described.get("token_endpoint_auth_methods_supported", [BY_HEADER])
    client.client_kwargs["token_endpoint_auth_method"] = BY_HEADER if BY_HEADER in methods else BY_FORM
    return client, described


@lru_cache(maxsize=2)
def _client(issuer: str, client_id: str, secret: str, hour: int) -> Any:
    """A client that has asked nothing yet. `hour` is what a later one differs by."""
    from authlib.integrations.django_client import OAuth

    return OAuth().register(
        "provider",
        client_id=client_id,
        client_secret=secret,
        server_metadata_url=issuer.rstrip("/") + DISCOVERY,
        client_kwargs={"scope": SCOPE, "code_challenge_method": "S256", "default_timeout": ANSWER_SECONDS},
    )
