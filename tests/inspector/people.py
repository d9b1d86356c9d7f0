"""People of team mode, and their browsers."""

from __future__ import annotations

from django.test.client import ClientHandler

from inspector.accounts.memberships import join
from inspector.models import Account, AccountRole, Project
from inspector.pages.account.views import PASSWORDS
from tests.inspector.conftest import PageClient

PASSWORD = "correct horse battery"


def person(
    name: str, project: Project | None = None, role: AccountRole = AccountRole.OWNER, password: str = ""
) -> Account:
    """An account, in a project if one is named. Only with a password can it sign in by the form."""
    account = Account(name=name)
    if password:
        account.set_password(password)
    else:
        account.set_unusable_password()  # whose hash costs nothing
    account.save()
    if project is not None:
        join(account, project, role)
    return account


def browser(handler: ClientHandler, account: Account | None = None) -> PageClient:
    """The browser of an account that is signed in; of nobody for None."""
    client = PageClient(handler)
    if account is not None:
        client.force_login(account, backend=PASSWORDS)
    return client
