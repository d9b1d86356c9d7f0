"""What rows have whose jobs one worker at a time holds (`jobs/leased.py`)."""

from __future__ import annotations

import uuid
from typing import ClassVar

from django.db import models

from inspector.models.projects import Owned


class Leased(Owned):
    """A row with a job of its own. Each kind has its states, of which `jobs/leased.py` knows RECEIVED and RUNNING."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    message = models.TextField(blank=True, default="")  # why it failed, in a sentence
    attempts = models.IntegerField(default=0)
    lease = models.CharField(max_length=32, blank=True, default="")  # fencing token of the worker that runs it
    heartbeat = models.DateTimeField(null=True)
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        abstract = True


class LeasedRun(Leased):
    """A leased row whose job ends by itself: done, failed or cancelled."""

    class State(models.TextChoices):
        RECEIVED = "received"
        RUNNING = "running"
        DONE = "done"
        FAILED = "failed"
        CANCELLED = "cancelled"

    UNDER_WAY: ClassVar = (State.RECEIVED, State.RUNNING)

    state = models.CharField(max_length=10, choices=State.choices, default=State.RECEIVED)
    finished = models.DateTimeField(null=True)

    class Meta:
        abstract = True
