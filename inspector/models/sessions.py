"""Sessions: narrow rows of numbers, the columns of the ledger, and texts apart, each stored once."""

from __future__ import annotations

import uuid

from django.db import models
from django.urls import reverse

import guard_core
from inspector.models.projects import Owned, SessionPart
from inspector.models.recordings import Recording

REVISION = 43  # of what the list stores of findings; raise it when that changes while the engine does not
IN_CHARACTERS = "usage_in_characters"  # the kind of the finding that counts are of characters
ENGINE = f"{guard_core.__version__}/{REVISION}"


class Session(Owned):
    """One agent conversation, with what the list shows of it. Token counts are the provider's unless said otherwise."""

    class Severity(models.IntegerChoices):
        """Of the verdict; the list begins with the smallest."""

        ERROR = 0
        WARNING = 1
        FINE = 2
        UNJUDGED = 3  # no model call, or not assessed yet

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    recording = models.ForeignKey(Recording, models.CASCADE, related_name="sessions")
    ordinal = models.IntegerField(default=0)  # place in the file
    title = models.CharField(max_length=200)
    format = models.CharField(max_length=40)
    source_id = models.CharField(max_length=200, blank=True, default="")  # what the agent calls it
    parent_source = models.CharField(max_length=200, blank=True, default="")  # the same of the session that started it
    agent = models.CharField(max_length=200, blank=True, default="")
    model = models.CharField(max_length=200, blank=True, default="")
    window = models.BigIntegerField()  # tokens
    window_source = models.CharField(max_length=20)
    window_note = models.CharField(max_length=200, blank=True, default="")
    window_override = models.BigIntegerField(null=True)  # tokens, set by a person for this session
    model_window = models.BigIntegerField(null=True)  # tokens, set by a person for its model; None: it has its own
    started_at = models.DateTimeField(null=True)
    created = models.DateTimeField(auto_now_add=True, db_index=True)
    deleted = models.DateTimeField(null=True)
    revision = models.IntegerField(default=1)
    events = models.IntegerField(default=0)
    calls = models.IntegerField(default=0)
    reported_calls = models.IntegerField(default=0)
    turns = models.IntegerField(default=0)
    tool_calls = models.IntegerField(default=0)
    tool_results = models.IntegerField(default=0)
    compactions = models.IntegerField(default=0)
    prompt_tokens_max = models.BigIntegerField(default=0)  # recorded
    peak_tokens = models.BigIntegerField(default=0)  # of the largest request, recorded or modelled
    # Tokens: the window of the model that the largest request went to; 0: not known, None: not looked up.
    peak_window = models.BigIntegerField(null=True)
    peak_source = models.CharField(max_length=10, blank=True, default="")  # "recorded" or "modelled"
    prompt_tokens_sum = models.BigIntegerField(default=0)
    overflows = models.IntegerField(default=0)
    near_misses = models.IntegerField(default=0)
    loops = models.IntegerField(default=0)
    fallbacks = models.IntegerField(default=0)  # mechanical summaries
    threshold = models.BigIntegerField(default=0)  # tokens, by the own rule, or at most; 0: not known
    threshold_source = models.CharField(max_length=10, blank=True, default="")  # "rule" or "inferred"
    verdict = models.CharField(max_length=400, blank=True, default="")
    verdict_kind = models.CharField(max_length=40, blank=True, default="")
    severity = models.SmallIntegerField(choices=Severity.choices, default=Severity.UNJUDGED)
    kinds = models.CharField(max_length=1_000, blank=True, default="")  # of its findings, a space around each
    # The verdict and the counts of findings are those under this window, by this engine.
    assessed_window = models.BigIntegerField(null=True)
    assessed_by = models.CharField(max_length=40, blank=True, default="")
    requests = models.BinaryField(null=True)  # guard_core RequestWords; empty: not looked up yet
    # SHA-256 of what was read of it, by ingest.unchanged.Reading; None where that is not known, or more has come since.
    content = models.BinaryField(max_length=32, null=True)
    indexed = models.IntegerField(default=0)  # events that the text search knows; all of them when it equals `events`

    class Meta:
        ordering = ["-created", "ordinal"]
        indexes = [
            models.Index(
                fields=["project", "-created", "ordinal"], condition=models.Q(deleted=None), name="session_list"
            ),
            models.Index(
                fields=["project", "severity", "-created", "ordinal"],
                condition=models.Q(deleted=None),
                name="session_worst",
            ),
            # Only of what is deleted: SQLite would take an index of all for the list, and sort every session.
            models.Index(fields=["deleted"], condition=models.Q(deleted__isnull=False), name="session_deleted"),
            models.Index(fields=["project", "source_id"], name="session_source"),
            models.Index(
                fields=["project", "parent_source"], condition=~models.Q(parent_source=""), name="session_parent"
            ),
        ]
        constraints = [models.UniqueConstraint(fields=["recording", "ordinal"], name="one_session_per_place")]

    def __str__(self) -> str:
        return self.title

    def get_absolute_url(self) -> str:
        return reverse("session_overview", args=[self.pk])

    @property
    def effective_window(self) -> int:
        """The context window in tokens: a person's figure, for this session or its model, before the recording's."""
        return self.window_override or self.model_window or self.window

    @property
    def filled_window(self) -> int:
        """The window in tokens that the largest request is held against: its own model's, 0 where that is not known."""
        is_judged = self.peak_window is not None and self.assessed_window == self.effective_window
        return self.peak_window or 0 if is_judged else self.effective_window

    @property
    def is_assessed(self) -> bool:
        """Do the verdict and the counts of findings belong to the window and the engine in use."""
        return self.assessed_by == ENGINE and self.assessed_window == self.effective_window

    @property
    def counts_characters(self) -> bool:
        """Do the recorded counts seem to count characters, so that no figure made of them is in tokens."""
        return f" {IN_CHARACTERS} " in self.kinds

    @property
    def counted_in(self) -> str:
        """What its counts are: "tokens", "characters" as it seems, or "estimates" where nothing was counted."""
        if self.counts_characters:
            return "characters"
        return "tokens" if self.reported_calls or self.peak_source == "recorded" else "estimates"


class SessionData(SessionPart):
    """What is computed of a session besides its chunks; all of it, where an older version stored it (`in_chunks`)."""

    session = models.OneToOneField(Session, models.CASCADE, primary_key=True, related_name="data")
    in_chunks = models.BooleanField(default=False)
    ledger = models.BinaryField()  # guard_core LedgerState, or Ledger.to_bytes where it is not in chunks; zstd
    head = models.BinaryField()  # guard_core Session without events and what is in chunks, msgpack, zstd
    attribution = models.BinaryField(null=True)  # guard_core Attribution.to_bytes, zstd
    lines = models.BinaryField(null=True)  # places and times of events, where they are not in chunks


class SessionChunk(SessionPart):
    """Some rows of one kind of a session: columns of events or calls, calls, compactions, places of events. A session
    of 50,000 calls has about 150; one that grows rewrites the last of each kind."""

    session = models.ForeignKey(Session, models.CASCADE, related_name="chunks")
    kind = models.CharField(max_length=20)
    number = models.IntegerField()  # from 0
    digest = models.BinaryField(max_length=32)  # SHA-256 of the body before it was compressed
    body = models.BinaryField()  # msgpack, zstd

    class Meta:
        constraints = [models.UniqueConstraint(fields=["session", "kind", "number"], name="one_chunk_per_place")]


class Payload(models.Model):
    """One text, stored once: an event's message as msgpack, zstd-compressed, under the SHA-256 of the msgpack."""

    sha256 = models.BinaryField(max_length=32, primary_key=True)
    body = models.BinaryField()


class Event(SessionPart):
    """One event of the log: its place, its kind and where its text is."""

    session = models.ForeignKey(Session, models.CASCADE, related_name="log")
    seq = models.IntegerField()
    # No constraint in the database: with one, each text that is deleted is a scan of all events, which have no index
    # on it. Texts are stored before their events, and `deleting.drop_texts` takes only those that no event names.
    payload = models.ForeignKey(Payload, models.PROTECT, related_name="+", db_index=False, db_constraint=False)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["session", "seq"], name="one_event_per_place")]


class SummaryText(SessionPart):
    """The words of one message that a recorded compaction inserted: a summary, a continuation. They are not events of
    the log. `compaction` counts from 0 among those that count, `message` among the compaction's."""

    session = models.ForeignKey(Session, models.CASCADE, related_name="summaries")
    compaction = models.IntegerField()
    message = models.IntegerField()
    words = models.TextField()  # folded, each with a space before and after it

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["session", "compaction", "message"], name="one_text_per_inserted_message")
        ]
