"""Runs of the stress gallery: jobs with progress and a lease, and their table as one compressed value."""

from __future__ import annotations

import uuid

from django.db import models

from inspector.models.projects import Owned


class GalleryRun(Owned):
    """All scenarios played under a choice of policies and profiles. The result depends on choice and engine alone."""

    class State(models.TextChoices):
        RECEIVED = "received"
        RUNNING = "running"
        DONE = "done"
        FAILED = "failed"
        CANCELLED = "cancelled"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    choice = models.CharField(max_length=2_000)  # "policy/profile policy/profile …", in the registry's order
    engine = models.CharField(max_length=60)  # version and scenarios that the result belongs to
    state = models.CharField(max_length=10, choices=State.choices, default=State.RECEIVED)
    done = models.IntegerField(default=0)  # scenarios played
    total = models.IntegerField(default=0)
    message = models.TextField(blank=True, default="")
    result = models.BinaryField(null=True)  # JSON of pages.gallery.table.ResultRow, zstd
    attempts = models.IntegerField(default=0)
    lease = models.CharField(max_length=32, blank=True, default="")  # fencing token of the worker that runs it
    heartbeat = models.DateTimeField(null=True)
    created = models.DateTimeField(auto_now_add=True)
    finished = models.DateTimeField(null=True)

    class Meta:
        indexes = [models.Index(fields=["project", "choice", "engine", "state"], name="gallery_choice")]

    def __str__(self) -> str:
        return f"{self.choice} ({self.state})"

    @property
    def ended(self) -> bool:
        return self.state in (self.State.DONE, self.State.FAILED, self.State.CANCELLED)

    @property
    def percent(self) -> int:
        return min(100, self.done * 100 // self.total) if self.total else 0
