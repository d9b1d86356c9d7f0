"""Webhooks: addresses of a project that hear of near misses, overflows and loops, and what was sent to them."""

from __future__ import annotations

import uuid

from django.db import models

from inspector.models.projects import Owned
from inspector.models.sessions import Session


class Webhook(Owned):
    """An address that an owner of the project has set. Its secret is not stored: it is made of `salt` and of the
    server's secret key, which is outside the database; `secret_digest` says whether it is still what was shown."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    url = models.CharField(max_length=500)
    kinds = models.CharField(max_length=60)  # of findings, blanks between them
    salt = models.CharField(max_length=64)
    secret_digest = models.CharField(max_length=64)  # SHA-256 of the secret
    made_by = models.CharField(max_length=100, blank=True, default="")
    created = models.DateTimeField(auto_now_add=True)
    failures = models.IntegerField(default=0)  # attempts since the last one that succeeded
    due = models.DateTimeField(null=True)  # nothing is sent before: a worker is sending, or the receiver has failed
    stopped = models.CharField(max_length=200, blank=True, default="")  # why nothing is sent any more

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "url"], name="one_webhook_of_an_address")]

    def __str__(self) -> str:
        return self.url


class Delivery(Owned):
    """One message for a webhook: sent until it is accepted or given up. The same occurrence is one message."""

    class State(models.TextChoices):
        WAITING = "waiting"
        DELIVERED = "delivered"
        FAILED = "failed"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)  # what a receiver knows it again by
    webhook = models.ForeignKey(Webhook, models.CASCADE, related_name="deliveries")
    session = models.ForeignKey(Session, models.CASCADE, null=True, related_name="+")  # None for a test
    kind = models.CharField(max_length=20)  # of finding, or "test"
    first = models.IntegerField(default=0)  # step from 0 at which it began
    body = models.TextField()  # JSON, as it is signed and sent
    state = models.CharField(max_length=10, choices=State.choices, default=State.WAITING)
    attempts = models.IntegerField(default=0)
    answer = models.CharField(max_length=200, blank=True, default="")  # what became of the last attempt, in words
    created = models.DateTimeField(auto_now_add=True)
    due = models.DateTimeField()  # of the next attempt
    finished = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["webhook", "session", "kind", "first"], name="one_message_of_an_occurrence")
        ]
        indexes = [models.Index(fields=["webhook", "-created"], name="delivery_newest")]

    def __str__(self) -> str:
        return f"{self.kind} ({self.state})"
