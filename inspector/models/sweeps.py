"""Sweeps: a question about many settings, and one job per session with its share of the answer."""

from __future__ import annotations

import uuid

from django.db import models
from django.urls import reverse

from inspector.models.leased import LeasedRun
from inspector.models.projects import Owned


class Sweep(Owned):
    """A grid of settings over some sessions. Its state is that of its slices; the answer follows from theirs."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    question = models.BinaryField()  # JSON of pages.sweep.question.Question
    name = models.CharField(max_length=200)  # the question in words, for the list
    cells = models.IntegerField()  # settings in the grid
    created = models.DateTimeField(auto_now_add=True)
    deleted = models.DateTimeField(null=True)  # off every page from then on, gone after a day

    class Meta:
        indexes = [models.Index(fields=["project", "-created"], name="sweep_newest")]

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return reverse("sweep", args=[self.pk])


class SweepSlice(LeasedRun):
    """One session of a sweep: a job with progress and a lease. Any worker may take any slice."""

    sweep = models.ForeignKey(Sweep, models.CASCADE, related_name="slices")
    ordinal = models.IntegerField()  # among the slices of its sweep, from 0
    session_key = models.UUIDField()  # of a session that may have been deleted since
    title = models.CharField(max_length=200)  # of the session
    recording = models.CharField(max_length=64)  # SHA-256 of its bytes: halves of a cross-over are made by it
    done = models.IntegerField(default=0)  # settings replayed
    result = models.BinaryField(null=True)  # pages.sweep.runs.SliceResult, msgpack, zstd

    class Meta:
        ordering = ["ordinal"]
        constraints = [models.UniqueConstraint(fields=["sweep", "ordinal"], name="one_slice_of_a_number")]

    def __str__(self) -> str:
        return f"{self.title} ({self.state})"
