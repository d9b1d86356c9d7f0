"""Streams: the lines and spans that running agents have sent, stored before they are acknowledged."""

from __future__ import annotations

import hashlib

from django.db import models

from inspector.models.projects import Owned
from inspector.models.recordings import Recording


class Stream(Owned):
    """One running agent, by the name that it gave itself. `received` lines are stored and acknowledged; its session has
    what the first `applied` of them hold."""

    name = models.CharField(max_length=100)
    recording = models.OneToOneField(Recording, models.CASCADE, related_name="stream")
    received = models.IntegerField(default=0)
    applied = models.IntegerField(default=0)
    growth = models.BinaryField()  # guard_core Growth, msgpack: what the next line is checked against
    prompt_tokens = models.BigIntegerField(null=True)  # of the last call whose provider reported them
    trouble = models.CharField(max_length=400, blank=True, default="")  # why lines are not in the session yet
    created = models.DateTimeField(auto_now_add=True)
    heard = models.DateTimeField()  # the last batch, by the database's clock
    ended = models.DateTimeField(null=True)  # the agent said so

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "name"], name="one_stream_of_a_name")]
        indexes = [models.Index(fields=["project", "-heard"], name="stream_heard")]

    def __str__(self) -> str:
        return self.name


class PurgedStream(Owned):
    """A stream whose session was deleted for good: what its client still has is refused, and begins no new session."""

    digest = models.CharField(max_length=64)  # SHA-256 of its name
    purged = models.DateTimeField()  # by the database's clock

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "digest"], name="one_purged_stream_of_a_name")]

    def __str__(self) -> str:
        return self.digest[:8]

    @staticmethod
    def digest_of(name: str) -> str:
        """What is left of a name."""
        return hashlib.sha256(name.encode()).hexdigest()


class StreamBatch(models.Model):
    """Lines of a stream as they came: `count` from number `first` on."""

    stream = models.ForeignKey(Stream, models.CASCADE, related_name="batches")
    first = models.IntegerField()
    count = models.IntegerField()
    digests = models.BinaryField()  # of streams.machine, one after the other
    body = models.BinaryField()  # JSON Lines, zstd

    class Meta:
        constraints = [models.UniqueConstraint(fields=["stream", "first"], name="one_batch_per_place")]

    def __str__(self) -> str:
        return f"{self.first} + {self.count}"


class SpanBatch(Owned):
    """Spans of one recording that a program exported in one request, stored once under the digest of their content."""

    # The recording they belong to: a digest of the resource, which is the program that runs, or of that and the
    # conversation that is the first of a recording.
    source = models.CharField(max_length=64)
    # The one they are in, where no conversation is named; of those without a call of a model, log records above all,
    # always: they may have to follow their spans to another recording.
    trace = models.CharField(max_length=64, blank=True, default="")
    service = models.CharField(max_length=200)  # its name
    digest = models.BinaryField(max_length=32)
    body = models.BinaryField()  # one line of OTLP/JSON, zstd
    size = models.BigIntegerField(default=0)  # bytes of that line; 0 of one stored before they were counted
    has_calls = models.BooleanField()  # some span is about a language model
    taken = models.BooleanField(default=False)  # a recording has it
    recording = models.ForeignKey(Recording, models.SET_NULL, null=True, related_name="+")  # the last one that has it
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "source", "digest"], name="one_batch_of_spans")]
        indexes = [
            models.Index(fields=["source"], condition=models.Q(taken=False), name="spans_to_take"),
            models.Index(fields=["source", "trace"], condition=~models.Q(trace=""), name="spans_without_conversation"),
            models.Index(fields=["project", "trace"], condition=~models.Q(trace=""), name="spans_of_a_trace"),
        ]

    def __str__(self) -> str:
        return f"{self.service} {self.created}"


class SpanPlace(Owned):
    """Which recording the later spans of a conversation, or of a trace, belong to."""

    program = models.CharField(max_length=64)  # digest of the resource
    key = models.CharField(max_length=64)  # digest of what is placed: a conversation by its id, or a trace
    is_conversation = models.BooleanField()
    source = models.CharField(max_length=64, db_index=True)  # as of SpanBatch
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "program", "key"], name="one_place_of_spans")]
        indexes = [models.Index(fields=["project", "key"], name="places_of_spans")]

    def __str__(self) -> str:
        return f"{self.key[:8]} in {self.source[:8]}"
