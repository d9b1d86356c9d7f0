"""Accounts of people who sign in at an OpenID provider: known by issuer and subject, never by a name or an address."""

from __future__ import annotations

import re

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet

from inspector.accounts.memberships import join
from inspector.accounts.oidc import Person
from inspector.models import Account, AccountRole, Identity, default_project
from inspector.models.accounts import LONGEST_NAME

_OTHER_SIGNS = re.compile(r"[^a-z0-9._@+-]+")
NAMELESS = "member"


class LastWay(Exception):
    """No one could sign in to the account without this identity."""


def account_of(person: Person) -> Account | None:
    """The account that a person has here; None where there is none."""
    row = Identity.objects.select_related("account").filter(issuer=person.issuer, subject=person.subject).first()
    return None if row is None else row.account


def is_connected(account: Account) -> bool:
    """Can an account be signed in to at the provider."""
    return _in_use(account).exists()


def _in_use(account: Account) -> QuerySet[Identity]:
    plain = settings.OIDC_ISSUER.rstrip("/")
    return account.identities.filter(issuer__in=(plain, f"{plain}/"))


def disconnect(account: Account, pk: int) -> Identity | None:
    """End that a person signs in to an account at the provider, and every session of the account; None where it has no
    such identity. Raises LastWay."""
    with transaction.atomic():
        locked = Account.objects.select_for_update().get(pk=account.pk)  # of two at a time, one sees what is left
        row = locked.identities.filter(pk=pk).first()
        if row is None:
            return None
        if not locked.has_usable_password() and not _in_use(locked).exclude(pk=pk).exists():
            raise LastWay
        row.delete()
        locked.end_sessions()
    return row


def connect(person: Person, account: Account) -> None:
    """Let a person sign in as an account."""
    Identity.objects.create(issuer=person.issuer, subject=person.subject, account=account)


def make_account(person: Person) -> Account:
    """A new account of a person, without a password, named as the provider names the person."""
    with transaction.atomic():
        account = Account(name=free_name(person.name))
        account.set_unusable_password()
        account.save()
        connect(person, account)
    return account


def is_let_in(person: Person) -> bool:
    """May a person have an account without an invitation: by a verified address in one of OIDC_DOMAINS."""
    return person.email.lower().rpartition("@")[2] in settings.OIDC_DOMAINS if "@" in person.email else False


def let_in(person: Person) -> Account:
    """A new account of a person who needs no invitation, with the role SSO_ROLE in the first project, or none."""
    with transaction.atomic():
        account = make_account(person)
        if settings.SSO_ROLE:
            join(account, default_project(), AccountRole(settings.SSO_ROLE))
    return account


def free_name(wanted: str) -> str:
    """An unused name of an account, as near as possible to the wanted one."""
    name = _OTHER_SIGNS.sub("-", wanted.lower()).lstrip("._@+-").rstrip("-")[: LONGEST_NAME - 8] or NAMELESS
    taken = set(Account.objects.filter(name__startswith=name).values_list("name", flat=True))
    return next(one for one in (name, *(f"{name}-{number}" for number in range(2, len(taken) + 3))) if one not in taken)
