"""Single sign-on: whoever a proxy in PROXIES has signed in is signed in here.

`project.proxies` takes the header away from everyone else, so what arrives here was written by such a proxy.
"""

from __future__ import annotations

from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib.auth.backends import RemoteUserBackend
from django.contrib.auth.middleware import RemoteUserMiddleware
from django.core.exceptions import MiddlewareNotUsed

from inspector.accounts import audit
from inspector.models import Account, AccountRole, Membership, default_project
from inspector.models.accounts import LONGEST_NAME


class ProxySignIn(RemoteUserMiddleware):
    """Django's own, with the header of SSO_HEADER; left out where that is not set."""

    @property
    def header(self) -> str:  # type: ignore[override]  # known once the settings are
        """The name under which Django keeps the header."""
        return f"HTTP_{settings.SSO_HEADER.upper().replace('-', '_')}"

    def __init__(self, get_response: Any) -> None:
        if not settings.SSO_HEADER:
            raise MiddlewareNotUsed
        super().__init__(get_response)

    async def aprocess_request(self, request: Any) -> None:
        """The same as for a synchronous request: Django's own puts "HTTP_" before the name of the header once more, and
        asks the backend by methods of other names."""
        await sync_to_async(self.process_request)(request)


class ProxyBackend(RemoteUserBackend):
    """An account for each name that a proxy hands on; a new one has the role SSO_ROLE in the first project, or none."""

    def authenticate(self, request: Any, remote_user: str | None = None, **_: Any) -> Any:  # type: ignore[override]
        name = self.clean_username(remote_user or "")
        if not name:
            return None
        if len(name) > LONGEST_NAME or not name.isprintable():
            about = f"the proxy named {name[:LONGEST_NAME]!r}, which is not an account name"
            audit.note_failure(request, audit.SSO_FAILED, about, default_project())
            return None
        account = super().authenticate(request, remote_user=name)
        if account is None:
            audit.note_failure(request, audit.INACTIVE, name)
        return account

    def clean_username(self, username: str) -> str:
        return username.strip().lower()

    def configure_user(self, request: Any, user: Any, created: bool = True) -> Any:
        account: Account = user
        if created:
            account.set_unusable_password()
            account.save(update_fields=["password"])
        if created and settings.SSO_ROLE:
            Membership.objects.of(default_project()).create(account=account, role=AccountRole(settings.SSO_ROLE))
        return account
