"""What tokenizers say: of each text once, and of each session as columns with the errors of estimators."""

from __future__ import annotations

from django.db import models

from inspector.models.projects import Owned, SessionPart
from inspector.models.sessions import Session


class TextCount(Owned):
    """Counts of one text, under the SHA-256 that its payload has; counted once for all sessions of a project that hold
    it. Not for all projects: how soon a session is counted would say that another one has the same texts."""

    sha256 = models.BinaryField(max_length=32)
    o200k = models.IntegerField()  # tokens
    cl100k = models.IntegerField()  # tokens
    chars4 = models.IntegerField()  # characters // 4, part by part
    bytes4 = models.IntegerField()  # UTF-8 bytes // 4, part by part

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "sha256"], name="one_count_of_a_text")]


class Estimate(SessionPart):
    """How far a session is counted, and what came out; one of an older revision is replaced."""

    session = models.OneToOneField(Session, models.CASCADE, primary_key=True, related_name="estimate")
    revision = models.IntegerField()  # of the session
    counted = models.IntegerField(default=0)  # events whose texts are counted
    tokenizer = models.BinaryField(null=True)  # columns per event, packed, zstd; there as soon as all are counted
    result = models.BinaryField(null=True)  # storage.estimates.Result, msgpack, zstd; there as soon as it is measured
