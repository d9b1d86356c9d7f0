"""Runs of the stress gallery: jobs with progress and a lease, and their table as one compressed value."""

from __future__ import annotations

from django.db import models

from inspector.models.leased import LeasedRun


class GalleryRun(LeasedRun):
    """All scenarios played under a choice of policies and profiles. The result depends on choice and engine alone."""

    choice = models.CharField(max_length=2_000)  # "policy/profile policy/profile …", in the registry's order
    engine = models.CharField(max_length=60)  # version and scenarios that the result belongs to
    done = models.IntegerField(default=0)  # scenarios played
    total = models.IntegerField(default=0)
    result = models.BinaryField(null=True)  # JSON of pages.gallery.table.ResultRow, zstd

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
