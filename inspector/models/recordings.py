"""Uploaded bytes, kept as they came, and the jobs that read them."""

from __future__ import annotations

import hashlib
import uuid
from pathlib import Path

from django.conf import settings
from django.db import models
from django.urls import reverse

from inspector.models.leased import LeasedRun
from inspector.models.projects import Owned

STREAM = "stream-"  # what the name of a recording begins with that has no bytes but the lines of a stream
WAL = "-wal"  # how the write-ahead log of a database is named after it


class Recording(Owned):
    """One uploaded file. The bytes lie in the data folder under their SHA-256 and can be downloaded identical. Projects
    that were given the same file have a row each and share the bytes.

    That of a stream (`sha256` begins with STREAM) has no file: its lines are in the database.
    A SQLite database may bring its write-ahead log (`-wal`), which holds its newest rows: then it is both files.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    sha256 = models.CharField(max_length=64)
    wal_sha256 = models.CharField(max_length=64, blank=True, default="")
    name = models.CharField(max_length=200)
    size = models.BigIntegerField()  # bytes
    format = models.CharField(max_length=40, blank=True, default="")
    created = models.DateTimeField(auto_now_add=True)
    # The files in which its sessions continued; the bytes stay here as long as those do.
    newer = models.ManyToManyField("self", symmetrical=False, blank=True, related_name="older")

    class Meta:
        constraints = [  # the hash first: whether any project still needs the bytes is asked without one
            models.UniqueConstraint(fields=["sha256", "wal_sha256", "project"], name="one_recording_in_a_project")
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def path(self) -> Path:
        return Path(settings.RECORDINGS_DIR) / stored_at(self.sha256, self.wal_sha256)

    @property
    def wal_path(self) -> Path:
        """Where the write-ahead log lies, or would: next to the database, as SQLite wants it."""
        return self.path.with_name(self.path.name + WAL)


def stored_at(sha256: str, wal_sha256: str = "") -> str:
    """Folder and name of a recording's bytes: its own SHA-256, or one of both where it has a write-ahead log."""
    name = hashlib.sha256(f"{sha256}{wal_sha256}".encode()).hexdigest() if wal_sha256 else sha256
    return f"{name[:2]}/{name}"


class Import(LeasedRun):
    """One reading of a recording, or the unpacking of a ZIP archive: a job with progress, a lease and a report.

    The recording is gone (None) when nothing could be read: then nothing of the file is kept.
    """

    ELSEWHERE = "elsewhere"  # the phase of one that waits for a worker whose data folder has the file
    NOTHING_LEFT = "damaged"  # the phase of one that failed, and of which a lenient reading leaves nothing

    recording = models.ForeignKey(Recording, models.SET_NULL, null=True, related_name="imports")
    name = models.CharField(max_length=200)
    folder = models.CharField(max_length=400, blank=True, default="")  # where it lay in the folder that was dropped
    # What took this file out of a ZIP archive; that one has no sessions itself, and no bytes when all are taken out.
    archive = models.ForeignKey("self", models.SET_NULL, null=True, related_name="members")
    unpacks = models.BooleanField(default=False)  # the archive of a folder: it brings an import for each file in there
    strict = models.BooleanField(default=False)
    window = models.BigIntegerField(null=True)  # tokens, given by the user at upload
    phase = models.CharField(max_length=12, default="received")
    done = models.BigIntegerField(default=0)  # bytes read
    total = models.BigIntegerField(default=0)
    line = models.BigIntegerField(null=True)
    column = models.BigIntegerField(null=True)
    first_look = models.TextField(blank=True, default="")  # JSON of figures.first_look.Look, while the file is read
    report = models.TextField(blank=True, default="")  # JSON of ingest.submitting.Report

    class Meta:
        indexes = [models.Index(fields=["state", "heartbeat"])]

    def __str__(self) -> str:
        return f"{self.name} ({self.state})"

    def get_absolute_url(self) -> str:
        return reverse("import_detail", args=[self.pk])

    @property
    def ended(self) -> bool:
        return self.state in (self.State.DONE, self.State.FAILED, self.State.CANCELLED)

    @property
    def what_stays(self) -> str:
        """What is stored of an import that did not end well: of an archive, what another worker had imported."""
        before = self.members.filter(state=self.State.DONE).count()
        if not before:
            return "Nothing was stored."
        return f"{before:,} {'file' if before == 1 else 'files'} of the archive had been imported before."

    @property
    def left_aside(self) -> bool:
        """Was it found in a folder among sessions, and is none itself."""
        return self.state == self.State.FAILED and bool(self.folder) and self.phase == "received"

    @staticmethod
    def are_left_aside() -> models.Q:
        """The same as a condition on rows."""
        return models.Q(state=Import.State.FAILED, phase="received") & ~models.Q(folder="")

    @property
    def mendable(self) -> bool:
        """Did it fail at a damaged place of a known format, without which a lenient reading may leave a session."""
        is_damaged = self.state == self.State.FAILED and self.strict and self.line is not None
        return is_damaged and self.phase not in ("received", self.NOTHING_LEFT)

    @property
    def percent(self) -> int:
        return min(100, self.done * 100 // self.total) if self.total else 0
