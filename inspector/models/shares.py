"""Shares: a report, as it was, under an address that cannot be guessed; and who did what with it."""

from __future__ import annotations

from datetime import datetime

from django.db import models
from django.urls import reverse

from inspector.models.leased import Leased
from inspector.models.projects import Owned
from inspector.models.sessions import Session


class Share(Leased):
    """A report that is being made (a job), reviewed (a draft) or published. It never changes with its session, and
    goes with it. Of its token and its password only hashes are stored."""

    class State(models.TextChoices):
        RECEIVED = "received"
        RUNNING = "running"
        DRAFT = "draft"
        PUBLISHED = "published"
        FAILED = "failed"

    # None for tables of several sessions, which stay when one of these is deleted
    session = models.ForeignKey(Session, models.CASCADE, null=True, related_name="shares")
    request = models.BinaryField()  # JSON of sharing.making.Request
    title = models.CharField(max_length=200, blank=True, default="")
    state = models.CharField(max_length=10, choices=State.choices, default=State.RECEIVED)
    draft = models.BinaryField(null=True)  # sharing.making.Draft, zstd: what is not redacted yet; none once published
    files = models.BinaryField(null=True)  # the rendered report by name, msgpack of zstd
    lifetime = models.IntegerField()  # seconds from its publication
    token_hash = models.CharField(max_length=64, null=True, unique=True)  # SHA-256
    password = models.CharField(max_length=200, blank=True, default="")  # Django's hash, "" without one
    published = models.DateTimeField(null=True)
    expires = models.DateTimeField(null=True)
    revoked = models.DateTimeField(null=True)
    views = models.IntegerField(default=0)
    last_view = models.DateTimeField(null=True)
    failures = models.IntegerField(default=0)  # wrong passwords since the last pause
    failed_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [models.Index(fields=["project", "-created"], name="share_newest")]

    def __str__(self) -> str:
        return f"{self.title} ({self.state})"

    def get_absolute_url(self) -> str:
        return reverse("share", args=[self.pk])

    @property
    def is_draft(self) -> bool:
        """Can it be reviewed and published."""
        return self.state == self.State.DRAFT and self.revoked is None

    def is_open(self, now: datetime) -> bool:
        """Can it be read at this moment."""
        is_published = self.state == self.State.PUBLISHED and self.revoked is None
        return is_published and self.expires is not None and now < self.expires


class ShareRecord(Owned):
    """One thing that was done with a share."""

    share = models.ForeignKey(Share, models.CASCADE, related_name="records")
    what = models.CharField(max_length=20)  # requested, kept, published, revoked
    detail = models.CharField(max_length=200, blank=True, default="")
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"{self.what} {self.at:%Y-%m-%d %H:%M}"
