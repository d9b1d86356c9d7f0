"""Accounts of team mode: who signs in, what they may do in which project, links that let them in, and what was done.

Of a link's token only its SHA-256 is stored. Without team mode these tables stay empty.
"""

from __future__ import annotations

from datetime import datetime

from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.db import models
from django.utils.crypto import get_random_string, salted_hmac

from inspector.models.projects import Owned, Project

LONGEST_NAME = 60  # characters of an account's name


class AccountRole(models.TextChoices):
    """What an account may do in a project; each may do what those before it may."""

    VIEWER = "viewer"
    EDITOR = "editor"
    OWNER = "owner"

    @property
    def rank(self) -> int:
        """Its place from 0; a higher one may do more."""
        return list(AccountRole).index(self)


class Accounts(BaseUserManager["Account"]):
    """Finds accounts whatever the case of their name."""

    def get_by_natural_key(self, username: str | None) -> Account:
        return self.get(name=(username or "").lower())


class Account(AbstractBaseUser):
    """A person who signs in. Its name is lower case, so that no two look alike but for that."""

    name = models.CharField(max_length=LONGEST_NAME, unique=True)
    is_active = models.BooleanField(default=True)
    created = models.DateTimeField(auto_now_add=True)
    sessions_salt = models.CharField(max_length=32, default="", blank=True)  # another one ends all sessions

    objects = Accounts()
    USERNAME_FIELD = "name"

    def __str__(self) -> str:
        return self.name

    def _get_session_auth_hash(self, secret: str | None = None) -> str:
        """Django's, which another password changes; another salt does so, too."""
        known: str = super()._get_session_auth_hash(secret)  # type: ignore[misc]  # unknown to the stubs
        if not self.sessions_salt:
            return known
        return salted_hmac(self.sessions_salt, known, secret=secret, algorithm="sha256").hexdigest()

    def end_sessions(self) -> None:
        """Sign the account out of every browser."""
        self.sessions_salt = get_random_string(32)
        self.save(update_fields=["sessions_salt"])


class Identity(models.Model):
    """How an OpenID provider knows an account: its subject is never given to another person, as names and addresses
    are."""

    account = models.ForeignKey(Account, models.CASCADE, related_name="identities")
    issuer = models.CharField(max_length=255)
    subject = models.CharField(max_length=255)
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["issuer", "subject"], name="one_account_of_an_identity")]

    def __str__(self) -> str:
        return f"{self.account} at {self.issuer}"


class Membership(Owned):
    """An account in a project."""

    account = models.ForeignKey(Account, models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=10, choices=AccountRole.choices, default=AccountRole.VIEWER)
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "account"], name="one_membership_in_a_project")]

    def __str__(self) -> str:
        return f"{self.account} ({self.role})"

    def allows(self, role: AccountRole) -> bool:
        """May it do what needs this role."""
        return AccountRole(self.role).rank >= role.rank


class Invitation(Owned):
    """A link that lets one account into a project, once. With an account it is for that one alone, to choose a new
    password."""

    token_hash = models.CharField(max_length=64, unique=True)  # SHA-256
    role = models.CharField(max_length=10, choices=AccountRole.choices, default=AccountRole.VIEWER)
    account = models.ForeignKey(Account, models.CASCADE, null=True, related_name="+")
    made_by = models.CharField(max_length=LONGEST_NAME, blank=True, default="")  # "" for the link of the first start
    created = models.DateTimeField(auto_now_add=True)
    expires = models.DateTimeField()
    used = models.DateTimeField(null=True)
    revoked = models.DateTimeField(null=True)

    class Meta:
        indexes = [models.Index(fields=["project", "-created"], name="invitation_newest")]

    def __str__(self) -> str:
        return f"{self.role}, until {self.expires:%Y-%m-%d %H:%M}"

    def is_open(self, now: datetime) -> bool:
        """Can it still be used at this moment."""
        return self.used is None and self.revoked is None and now < self.expires


class AuditRecord(models.Model):
    """One thing that was done: by whom, to what, from where. It outlives what it is about."""

    project = models.ForeignKey(
        Project, models.PROTECT, null=True, related_name="+", db_index=False
    )  # None: of accounts
    actor = models.CharField(max_length=100, blank=True, default="")  # an account's name, or a key's; "" for none
    what = models.CharField(max_length=40)
    about = models.CharField(max_length=200, blank=True, default="")
    address = models.CharField(max_length=45, blank=True, default="")  # of the client
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes = [models.Index(fields=["project", "-at"], name="audit_newest")]

    def __str__(self) -> str:
        return f"{self.what} {self.at:%Y-%m-%d %H:%M}"


class Spent(models.Model):
    """How often something that is limited was done since the present window of time began."""

    key = models.CharField(max_length=64, primary_key=True)  # SHA-256 of what and who
    count = models.IntegerField(default=0)
    ends = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.count} until {self.ends:%H:%M:%S}"


class ApiKey(Owned):
    """A key for programs, with which one may read the project, send sessions into it, or write comments. Shown once,
    stored hashed."""

    class Scope(models.TextChoices):
        READ = "read"
        INGEST = "ingest"
        COMMENT = "comment"

    name = models.CharField(max_length=60)
    prefix = models.CharField(max_length=12)  # the beginning of the key, by which a person knows it again
    key_hash = models.CharField(max_length=64, unique=True)  # SHA-256
    scopes = models.CharField(max_length=40)  # a space between two
    made_by = models.CharField(max_length=LONGEST_NAME, blank=True, default="")
    created = models.DateTimeField(auto_now_add=True)
    expires = models.DateTimeField(null=True)
    revoked = models.DateTimeField(null=True)
    last_used = models.DateTimeField(null=True)  # to the minute

    class Meta:
        indexes = [models.Index(fields=["project", "-created"], name="key_newest")]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"

    def is_open(self, now: datetime) -> bool:
        """Does it open anything at this moment."""
        return self.revoked is None and (self.expires is None or now < self.expires)

    def may(self, scope: str) -> bool:
        """Has it this scope."""
        return scope in self.scopes.split()
