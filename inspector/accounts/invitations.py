"""One-time links: for the first account of all, for others into a project, and for a forgotten password.

A token has 256 random bits; only its SHA-256 is stored.
"""

from __future__ import annotations

from datetime import timedelta

from django.db import transaction
from django.urls import reverse
from django.utils import timezone

from inspector.accounts.memberships import join
from inspector.models import Account, AccountRole, Invitation, Project, default_project
from inspector.project.tokens import hash_of, new_token

LIFETIME = timedelta(days=3)
SETUP_LIFETIME = timedelta(days=1)  # of the link that the first start prints; another start prints another


def invite(
    project: Project, role: AccountRole, by: str, account: Account | None = None, lifetime: timedelta = LIFETIME
) -> tuple[Invitation, str]:
    """A new invitation and its token, which is given this once. With an account: to choose a new password."""
    token = new_token()
    row = Invitation.objects.of(project).create(
        token_hash=hash_of(token), role=role, made_by=by, account=account, expires=timezone.now() + lifetime
    )
    return row, token


def opened_by(token: str) -> Invitation | None:
    """The invitation that a token opens now; None for any other token."""
    rows = Invitation.unscoped.select_related("project", "account")
    row = rows.filter(token_hash=hash_of(token)).first()
    return row if row is not None and row.is_open(timezone.now()) else None


def use(row: Invitation, account: Account) -> bool:
    """Let an account in, unless the link is only for its password; False where it was used, or revoked, a moment
    before."""
    with transaction.atomic():
        mine = Invitation.objects.row(row).filter(used=None, revoked=None)
        if not mine.update(used=timezone.now()):
            return False
        if row.account is None:
            join(account, row.project, AccountRole(row.role))
    return True


def revoke(row: Invitation) -> None:
    """End an unused invitation."""
    Invitation.objects.row(row).filter(used=None, revoked=None).update(revoked=timezone.now())


def setup_address(origin: str) -> str:
    """Where there is no account yet: the address at which the first one is made, which owns the first project. An
    address that an earlier start has given ends. "" where there is an account."""
    if Account.objects.exists():
        return ""
    project = default_project()
    with transaction.atomic():
        Invitation.objects.of(project).filter(made_by="", used=None).update(revoked=timezone.now())
        _, token = invite(project, AccountRole.OWNER, "", lifetime=SETUP_LIFETIME)
    return address_of(origin, token)


def address_of(origin: str, token: str) -> str:
    """The address of an invitation on a server."""
    return origin.rstrip("/") + reverse("join", args=[token])
