"""Secrets of webhooks, and the headers by which a receiver knows that a message is ours and whole.

As Standard Webhooks 1.0.0 has it (https://www.standardwebhooks.com): HMAC-SHA256 over `id.timestamp.body`, so that
libraries for receivers exist. A secret is made of the server's secret key and a salt, and is stored nowhere.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from typing import NamedTuple

from django.conf import settings

BEGIN = "whsec_"
SALT_BYTES = 24


class Secret(NamedTuple):
    """What is signed with. `text` is what a receiver is given."""

    salt: str
    text: str

    @property
    def digest(self) -> str:
        """What is stored of it, to see that it has not changed."""
        return hashlib.sha256(self.text.encode()).hexdigest()


def new_secret() -> Secret:
    """A secret that no other webhook has."""
    return secret_of(secrets.token_urlsafe(SALT_BYTES))


def secret_of(salt: str) -> Secret:
    """The secret with this salt, under the secret key of the server."""
    key = hmac.digest(settings.SECRET_KEY.encode(), f"inspector.webhooks:{salt}".encode(), "sha256")
    return Secret(salt, BEGIN + base64.b64encode(key).decode())


def headers(secret: Secret, message_id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """`timestamp`: whole seconds since 1970 at this attempt. The id is the same at every attempt."""
    key = base64.b64decode(secret.text.removeprefix(BEGIN))
    signed = hmac.digest(key, f"{message_id}.{timestamp}.".encode() + body, "sha256")
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": f"v1,{base64.b64encode(signed).decode()}",
    }
