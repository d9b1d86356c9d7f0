"""Comments: what people of a project say about a place of a session."""

from __future__ import annotations

import uuid

from django.db import models

from inspector.models.accounts import LONGEST_NAME, Account, ApiKey
from inspector.models.projects import SessionPart
from inspector.models.sessions import Session


class Comment(SessionPart):
    """One comment: it begins a thread at a place of the recording, or answers in one. Threads have one level.

    A place is a step, a compaction of the recording (among those that count) or a part of a message of the log. They
    count from 0 here. A comment that was deleted while others answer it stays as a row without text.
    """

    class Place(models.TextChoices):
        """What `number` counts."""

        STEP = "step"
        COMPACTION = "compaction"
        PART = "part"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    session = models.ForeignKey(Session, models.CASCADE, related_name="comments")
    place = models.CharField(max_length=10, choices=Place.choices)
    number = models.IntegerField()  # of the step, the compaction or the message
    part = models.IntegerField(default=0)  # of the message
    thread = models.ForeignKey("self", models.CASCADE, null=True, related_name="replies")  # None: it begins one
    account = models.ForeignKey(Account, models.SET_NULL, null=True, related_name="+")  # None in local mode
    key = models.ForeignKey(ApiKey, models.SET_NULL, null=True, related_name="+")  # of the program that wrote it
    author = models.CharField(max_length=LONGEST_NAME)
    text = models.TextField(blank=True)  # "" once it is deleted
    created = models.DateTimeField(auto_now_add=True)
    edited = models.DateTimeField(null=True)
    resolved = models.DateTimeField(null=True)  # of the comment that begins a thread
    resolved_by = models.CharField(max_length=LONGEST_NAME, blank=True, default="")
    sent = models.CharField(max_length=64, blank=True, default="")  # SHA-256 of who sent it, as which sending; or ""

    class Meta:
        ordering = ["created", "pk"]
        indexes = [models.Index(fields=["session", "place", "number"], name="comment_place")]
        constraints = [
            models.UniqueConstraint(fields=["session", "sent"], condition=~models.Q(sent=""), name="comment_sent_once")
        ]

    def __str__(self) -> str:
        return f"{self.author} on {self.place} {self.number}"
