"""Spans of running programs on their way into sessions: stored and acknowledged first, then read as a recording is.

Newer instrumentations send the messages of a call as log records: those that are events of spans about a language model
are stored with the spans, by trace and span, for their resource may be another one; all other log records are left out.

The spans of one program (one resource) make recordings that grow, which are imported like an uploaded file: the import
extends their sessions. A conversation that its spans name belongs to one recording from its first span on, together
with the other spans of its traces; where a recording has grown large, the next new conversations begin another one, so
that what is read again for a new span stays small. Traces that name no conversation share one recording, for they may
continue each other. Nothing is imported of a program that has no spans about a language model.

Texts of spans are in the database as long as a later recording may need them. They go with the last session that has
them, when their recording is full, and when it has not grown for a day. Until that day is over a digest
stays, by which spans that an exporter sends again are recognised.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import timedelta
from typing import Any, NamedTuple

import msgspec
from django.conf import settings
from django.db import transaction
from django.db.models import Count, Exists, Max, OuterRef, Q, QuerySet, Sum
from django.utils import timezone

from guard_core.recordings.formats.otlp.kinds import CONVERSATION_KEYS, MARKS, first
from guard_core.recordings.formats.otlp.spans import (
    LOGS,
    RESOURCES,
    Placed,
    placed_events,
    placed_spans,
    resource_with,
    service_of,
)
from guard_core.recordings.reading import fields
from inspector.ingest import uploads
from inspector.ingest.submitting import submit
from inspector.jobs import queue
from inspector.models import Import, Project, Session, SpanBatch, SpanPlace
from inspector.storage.compression import compressed, decompressed

KIND = "import_spans"
LATER = timedelta(seconds=1)  # in which further spans come, to be read together
LEFT = timedelta(seconds=30)  # after which spans that no job has taken were left by a dead process
SILENT = timedelta(days=1)  # after which no exporter sends spans again
NAME_CHARS = 80
EVENTS = f'{{"{LOGS[0]}"'.encode()  # the beginning of a line of events
# Ids of traces have 32 (https://www.w3.org/TR/trace-context/#trace-id); more is cut where it is stored.
TRACE_CHARS = 64
SLICE = 500  # keys in one query
FEW = 20  # texts in memory at once
# Bytes and rows of a program in which the spans of events are looked for, the latest first, where programs share a
# trace. Ours: events come within seconds of their spans, and no request takes long that has spans of nowhere.
MOST_LOOKED_AT, MOST_ROWS = 16 * 2**20, 500
_SPAN_ID = re.compile(rb'"span_?[iI]d":"([^"]+)"')  # in a stored line, before it is parsed
# Bytes of a program's recording for which one second more is waited before all of it is read again, so that programs
# that grow leave the worker time for other jobs. Ours: 16 MiB take 0.4 seconds of a processor to read where no session
# is new (tests.benchmarks.measure_traces).
READ_AGAIN = 16 * 2**20
# Bytes of a recording from which on new conversations begin another one. Ours: less than what is read in a process of
# its own (`counting.OWN_PROCESS_FROM`), and enough that short conversations do not each cost an import of their own.
ENOUGH = 3 * 2**20


class _SpanGroup(NamedTuple):
    """The spans of one resource that belong together: those of a conversation, or of a trace that names none. Or the
    events of such spans, where they were sent as log records."""

    program: str
    conversation: str
    trace: str  # "" where the conversation is named
    service: str
    digest: bytes
    body: bytes  # compressed, before the transaction in which it is stored: that is the only one of its moment
    size: int  # of the plain body, in bytes
    has_calls: bool
    traces: frozenset[str]  # whose spans without a name belong to this conversation, too
    spans: frozenset[str]  # the ids of its spans, or of the spans that its events are of

    @property
    def all_traces(self) -> set[str]:
        """The traces that its spans are in, as they are stored."""
        return {trace for trace in (*self.traces, self.trace) if trace}

    @classmethod
    def of(cls, program: str, kind: str, resource: dict[str, Any], **more: Any) -> _SpanGroup:
        """The group of a resource that has its spans alone, or its events, in a line of this `kind`."""
        line = msgspec.json.encode({kind: [resource]}, order="deterministic")
        digest = hashlib.sha256(line).digest()
        return cls(program, digest=digest, body=compressed(line), size=len(line), **more)

    @classmethod
    def of_events(cls, batch: SpanBatch) -> _SpanGroup:
        """The group that a stored row of events is."""
        return cls(
            batch.source,
            conversation="",
            trace=batch.trace,
            service=batch.service,
            digest=bytes(batch.digest),
            body=bytes(batch.body),
            size=batch.size,
            has_calls=False,
            traces=frozenset(),
            spans=_spans_of_events(decompressed(batch.body)),
        )

    def only(self, spans: frozenset[str]) -> _SpanGroup:
        """The events of some of the spans alone."""
        if spans == self.spans:
            return self
        about = self._asdict()
        for name in ("program", "digest", "body", "size"):
            del about[name]
        (resource,) = _resources(msgspec.json.decode(decompressed(self.body)), LOGS)
        some = [item for item in placed_events(resource) if _id(item) in spans]
        part = resource_with(resource, some)
        return _SpanGroup.of(self.program, LOGS[0], part, **{**about, "spans": spans})


def store(project: Project, request: dict[str, Any]) -> int:
    """Store what an export request holds, all of it or nothing; of how many conversations, and traces without one, it
    has new spans. Committed when it returns."""
    spans = ((RESOURCES[0], item, list(placed_spans(item))) for item in _resources(request, RESOURCES))
    events = ((LOGS[0], item, placed) for item in _resources(request, LOGS) if (placed := list(placed_events(item))))
    with_spans = [group for given in spans for group in _groups(*given)]
    with_events = [group for given in events for group in _groups(*given)]
    with transaction.atomic():
        if with_events or any(group.has_calls for group in with_spans):
            # Spans and their events may come at the same moment, and each looks for the other.
            Project.objects.select_for_update(no_key=True).get(pk=project.pk)
        new = _add(project, with_spans)
        new += _add(project, _beside_their_spans(project, with_events))
        gathered = _gather(project, [group for group in with_spans if group.has_calls])
        for source in {batch.source for batch in new} | gathered:
            _queue(SpanBatch.objects.of(project).filter(source=source))
    return len(new)


def run(batch_id: str) -> None:
    """The job: bring all spans of a program as one recording, where some are new."""
    first = SpanBatch.unscoped.select_related("project").defer("body").filter(pk=batch_id).first()
    if first is None:
        return
    rows = SpanBatch.objects.of(first.project).filter(source=first.source)
    sessions = Session.unscoped.filter(recording=OuterRef("recording"), ordinal__gte=0)
    were_deleted = Q(Exists(sessions.exclude(deleted=None))) & ~Q(Exists(sessions.filter(deleted=None)))
    if (deleted := rows.filter(were_deleted)).exists():  # asked first: to update nothing, too, waits for its turn
        _forget(deleted)
    if not rows.filter(taken=False).exists():
        return
    lines = _Fitting(rows)
    received = uploads.receive(lines, f"{first.service[:NAME_CHARS] or 'spans'}-{first.source[:8]}.otlp.jsonl")
    if not lines.has_new:  # the recording is full: the program continues in another one
        received.drop()
        if _forget(rows.filter(_is_recorded())):
            _queue(rows)
        return
    with transaction.atomic():
        job = submit(first.project, received, strict=False)
        for start in range(0, len(lines.keys), SLICE):
            rows.filter(pk__in=lines.keys[start : start + SLICE]).update(taken=True, recording=job.recording)


def resume() -> None:
    """Queue the programs of which dead processes left spans."""
    left = SpanBatch.unscoped.filter(taken=False, created__lt=timezone.now() - LEFT)
    for project, source in left.values_list("project", "source").distinct()[:100]:
        _queue(SpanBatch.objects.of(project).filter(source=source))


def forget_silent() -> None:
    """Drop what no recording will need: rows without texts, spans of programs that have sent none for a day and are in
    a recording, and all of such a program that has nothing about a language model."""
    old = SpanBatch.unscoped.filter(created__lt=timezone.now() - SILENT)
    old.filter(body=b"").delete()
    programs = SpanBatch.unscoped.values_list("project", "source").annotate(
        heard=Max("created"), calls=Count("pk", filter=Q(has_calls=True))
    )
    for project, source, _, calls in programs.filter(heard__lt=timezone.now() - SILENT):
        rows = old.filter(project=project, source=source)
        (rows.filter(_is_recorded()) if calls else rows).delete()
    lately = SpanBatch.unscoped.filter(source=OuterRef("source"), created__gte=timezone.now() - SILENT)
    SpanPlace.unscoped.filter(~Exists(lately), created__lt=timezone.now() - SILENT).delete()


def _forget(rows: QuerySet[SpanBatch]) -> int:
    """Drop the texts of spans; the digest of each stays for a while. How many rows."""
    return rows.update(body=b"", has_calls=False, taken=True)


class _Fitting:
    """The lines of a program, as many as one recording may have; the keys of those that were read, and whether one of
    them is in no recording yet."""

    def __init__(self, rows: QuerySet[SpanBatch]) -> None:
        self._rows = rows
        self.keys: list[int] = []
        self.has_new = False

    def __iter__(self) -> Iterator[bytes]:
        size = 0
        for key, taken, body in self._stored():
            line = decompressed(body) + b"\n"
            size += len(line)
            if self.keys and size > settings.MAX_UPLOAD_BYTES:
                return
            self.keys.append(key)
            self.has_new |= not taken
            yield line

    def _stored(self) -> Iterator[tuple[int, bool, bytes | memoryview]]:
        """Key, whether a recording has them, and text of the spans, in order; a few texts at a time are in memory."""
        rows = self._rows.exclude(body=b"").order_by("pk")
        keys = list(rows.values_list("pk", flat=True))
        for start in range(0, len(keys), FEW):
            yield from list(rows.filter(pk__in=keys[start : start + FEW]).values_list("pk", "taken", "body"))


def _queue(rows: QuerySet[SpanBatch]) -> None:
    """Queue the job of a program with these rows, where one is about a language model and no job waits. The more there
    is to be read, the later."""
    first = rows.filter(has_calls=True).select_related("recording").defer("body").first()
    if first is None:
        return
    if queue.entries(KIND).filter(args_kwargs__args__0=str(first.pk), status="READY").exists():
        return
    read = first.recording.size if first.recording else 0
    queue.enqueue(KIND, str(first.pk), run_after=timezone.now() + LATER * (1 + read / READ_AGAIN))


def _is_recorded() -> Exists:
    """Was the recording that has the spans read to its end: it holds them now."""
    return Exists(Import.unscoped.filter(recording=OuterRef("recording"), state=Import.State.DONE))


def _resources(request: dict[str, Any], keys: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    return (item for key in keys for item in fields.objects(request.get(key)))


def _groups(kind: str, resource: dict[str, Any], placed: list[Placed]) -> list[_SpanGroup]:
    """The spans of one resource by conversation, or its events by trace: which conversation these are of, their spans
    say. What names none belongs to the first that its trace names, as the reader has it. Events alone are no call:
    their spans are."""
    program, service = _digest(fields.mapping(resource, "resource")), service_of(resource)
    keys = CONVERSATION_KEYS if kind in RESOURCES else ()
    named: dict[str, str] = {}
    for item in sorted(placed, key=lambda item: item.start):
        if item.trace and (conversation := first(item.attributes, keys)):
            named.setdefault(item.trace, conversation)
    parts: dict[tuple[str, str], list[Placed]] = {}
    for item in placed:
        conversation = first(item.attributes, keys) or named.get(item.trace, "")
        parts.setdefault((conversation, "" if conversation else item.trace), []).append(item)
    if not parts:
        nothing = {
            "conversation": "",
            "trace": "",
            "service": "",
            "has_calls": False,
            "traces": frozenset(),
            "spans": frozenset(),
        }
        return [_SpanGroup.of(program, kind, resource, **nothing)]
    return [
        _SpanGroup.of(
            program,
            kind,
            resource_with(resource, some),
            conversation=conversation,
            trace=trace,
            service=service[:200],
            has_calls=kind in RESOURCES and any(key.startswith(MARKS) for item in some for key in item.attributes),
            traces=frozenset(item.trace for item in some if named.get(item.trace) == conversation),
            spans=_ids(some),
        )
        for (conversation, trace), some in parts.items()
    ]


def _placed(project: Project, program: str, groups: list[_SpanGroup]) -> list[SpanBatch]:
    """The rows of some groups of one program, each with the recording that it belongs to. Where later spans belong is
    stored."""
    sources = _place(project, program, [group for group in groups if group.conversation])
    sources |= _known_places(project, program, {_trace_key(group.trace) for group in groups if group.trace})
    batches = []
    for group in groups:
        key = _conversation_key(group.conversation) if group.conversation else _trace_key(group.trace)
        source = sources.get(key, program)
        batches.append(_row(project, source, group, in_trace=source == program or not group.has_calls))
    return batches


def _row(project: Project, source: str, group: _SpanGroup, *, in_trace: bool = True) -> SpanBatch:
    return SpanBatch(
        project=project,
        source=source,
        trace=group.trace[:TRACE_CHARS] if in_trace else "",
        service=group.service,
        digest=group.digest,
        body=group.body,
        size=group.size,
        has_calls=group.has_calls,
    )


def _beside_their_spans(project: Project, events: list[_SpanGroup]) -> list[_SpanGroup]:
    """Events of spans, each as if the program of its spans had sent it: log records may have another resource. In a
    trace of several programs the span decides. Events whose spans have not come wait under their own program."""
    programs = _programs_of(project, {trace for group in events for trace in group.all_traces})
    owners = _owners(project, [group for group in events if len(programs[group.trace]) > 1], programs)
    groups = []
    for group in events:
        only = programs[group.trace] if len(programs[group.trace]) == 1 else ()
        owner = {span: next(iter(only), owners.get((group.trace, span), group.program)) for span in group.spans}
        for program in sorted(set(owner.values())):
            mine = frozenset(span for span in group.spans if owner[span] == program)
            groups.append(group.only(mine)._replace(program=program))
    return groups


def _owners(
    project: Project, groups: list[_SpanGroup], programs: Mapping[str, Collection[str]]
) -> dict[tuple[str, str], str]:
    """Which of the several programs of a trace has sent a span that some events are of, by trace and span. The spans of
    each program are looked at once for all events, the latest first, up to a limit: events come close to their
    spans."""
    wanted: dict[str, dict[str, set[str]]] = {}  # spans by program and trace
    for group in groups:
        for program in programs[group.trace]:
            wanted.setdefault(program, {}).setdefault(group.trace, set()).update(group.spans)
    owners: dict[tuple[str, str], str] = {}
    for program in sorted(wanted):
        known = _known_places(project, program, {_trace_key(trace) for trace in wanted[program]})
        traces: dict[str, list[str]] = {}  # by the recording that they are in
        for trace in wanted[program]:
            traces.setdefault(known.get(_trace_key(trace), program), []).append(trace)
        for source, some in traces.items():
            missing = {span for trace in some for span in wanted[program][trace] if (trace, span) not in owners}
            spans = _latest_spans(project, source, missing)
            owners |= {(trace, span): program for trace in some for span in wanted[program][trace] & spans} | owners
    return owners


def _latest_spans(project: Project, source: str, wanted: set[str]) -> set[str]:
    """Those of some spans that are among the latest of a recording."""
    rows = SpanBatch.objects.of(project).filter(source=source, has_calls=True).exclude(body=b"")
    latest, size = [], 0
    for key, more in rows.order_by("-pk").values_list("pk", "size")[:MOST_ROWS]:
        size += more
        if size > MOST_LOOKED_AT:
            break
        latest.append(key)
    present: set[str] = set()
    for start in range(0, len(latest), FEW):
        if present == wanted:
            break
        some = rows.filter(pk__in=latest[start : start + FEW])  # a worker may have dropped the texts of some by now
        for body in map(decompressed, some.values_list("body", flat=True)):
            if not wanted.isdisjoint(map(bytes.decode, _SPAN_ID.findall(body))):
                present |= wanted & _spans_in(body, RESOURCES, placed_spans)
    return present


def _programs_of(project: Project, traces: set[str]) -> defaultdict[str, set[str]]:
    """The programs that have spans about a language model in some traces."""
    programs: defaultdict[str, set[str]] = defaultdict(set)
    keys = {_trace_key(trace): trace for trace in traces}
    places, batches = SpanPlace.objects.of(project), SpanBatch.objects.of(project).filter(has_calls=True)
    for some in _slices(keys):
        for key, program in places.filter(key__in=some).values_list("key", "program"):
            programs[keys[key]].add(program)
    stored = {trace[:TRACE_CHARS]: trace for trace in traces}
    for some in _slices(stored):
        for trace, source in batches.filter(trace__in=some).values_list("trace", "source"):
            programs[stored[trace]].add(source)
    return programs


def _gather(project: Project, spans: list[_SpanGroup]) -> set[str]:
    """Have the events that waited for these spans under a resource of their own belong to the recording of the spans;
    the recordings that have more now."""
    rows, gathered = SpanBatch.objects.of(project).filter(has_calls=False).exclude(body=b""), set()
    for group in spans:
        known = _known_places(project, group.program, {_trace_key(trace) for trace in group.all_traces})
        traces: defaultdict[str, list[str]] = defaultdict(list)
        for trace in group.all_traces:
            traces[known.get(_trace_key(trace), group.program)].append(trace[:TRACE_CHARS])
        for source, some in ((source, some) for source, mine in traces.items() for some in _slices(mine)):
            for batch in list(rows.filter(trace__in=some).exclude(source=source)):
                if mine := group.spans & _spans_of_events(decompressed(batch.body)):
                    _move(_only(batch, mine), source)
                    gathered.add(source)
    return gathered


def _only(batch: SpanBatch, spans: frozenset[str]) -> SpanBatch:
    """A row with the events of these spans; where it has those of others, too, they go to a row of their own."""
    whole = _SpanGroup.of_events(batch)
    if others := whole.spans - spans:
        _add_new(batch.project, [_row(batch.project, batch.source, whole.only(others))])
        group = whole.only(spans)
        batch.digest, batch.body, batch.size = group.digest, group.body, group.size
        rows = SpanBatch.objects.of(batch.project_id)
        rows.filter(pk=batch.pk).update(digest=group.digest, body=group.body, size=group.size)
    return batch


def _spans_of_events(body: bytes) -> frozenset[str]:
    """The ids of the spans that the events in a stored line are of; none where it has no events."""
    return _spans_in(body, LOGS, placed_events) if body.startswith(EVENTS) else frozenset()


def _spans_in(
    body: bytes, keys: tuple[str, ...], placed: Callable[[dict[str, Any]], Iterator[Placed]]
) -> frozenset[str]:
    """The ids of the spans in a stored line, or of those that its events are of."""
    return _ids([item for resource in _resources(msgspec.json.decode(body), keys) for item in placed(resource)])


def _ids(some: list[Placed]) -> frozenset[str]:
    """The ids of some spans, or of the spans that some events are of: both are written alike."""
    return frozenset(map(_id, some))


def _id(item: Placed) -> str:
    return str(item.value.get("spanId", item.value.get("span_id")))


def _move(batch: SpanBatch, source: str) -> None:
    """Have spans belong to another recording, where they are not in it already. Events are looked for by their trace
    later, too, for other spans may have had them in the meantime."""
    rows = SpanBatch.objects.of(batch.project_id)
    if rows.filter(source=source, digest=batch.digest).exists():
        batch.delete()
    else:
        rows.filter(pk=batch.pk).update(source=source, trace="" if batch.has_calls else batch.trace, taken=False)


def _slices(values: Collection[str]) -> Iterator[list[str]]:
    some = sorted(values)
    return (some[start : start + SLICE] for start in range(0, len(some), SLICE))


def _place(project: Project, program: str, named: list[_SpanGroup]) -> dict[str, str]:
    """The recordings of conversations and of their traces, by key: where they are known, there, else where new ones
    belong. Spans of a trace that came before it named its conversation go there as well."""
    conversations = [_conversation_key(group.conversation) for group in named]
    traces = {_trace_key(trace): trace for group in named for trace in group.traces}
    sources = _known_places(project, program, {*conversations, *traces})
    unknown = [key for key in conversations if key not in sources]
    if unknown:
        sources |= dict.fromkeys(unknown, _open_source(project, program, unknown[0]))
    for group, key in zip(named, conversations, strict=True):
        for trace in map(_trace_key, group.traces):
            if trace not in sources:
                sources[trace] = sources[key]
                unknown.append(trace)
    if not unknown:
        return sources
    places = [
        SpanPlace(program=program, key=key, source=sources[key], is_conversation=key not in traces)
        for key in sorted(set(unknown))  # in one order, so that processes that store the same wait for each other
    ]
    SpanPlace.objects.of(project).bulk_create(places, ignore_conflicts=True)
    sources |= _known_places(project, program, set(unknown))  # where another process was faster, it counts for both
    moved = {traces[key][:TRACE_CHARS]: sources[key] for key in unknown if key in traces and sources[key] != program}
    earlier = SpanBatch.objects.of(project).filter(source=program).exclude(trace="")
    for some in _slices(moved):
        for batch in list(earlier.filter(trace__in=some).defer("body")):
            _move(batch, moved[batch.trace])
    return sources


def _known_places(project: Project, program: str, keys: set[str]) -> dict[str, str]:
    """The recordings of those of some keys that have one."""
    places = SpanPlace.objects.of(project).filter(program=program)
    return {
        key: source
        for some in _slices(keys)
        for key, source in places.filter(key__in=some).values_list("key", "source")
    }


def _open_source(project: Project, program: str, key: str) -> str:
    """The recording that new conversations of a program belong to: the newest as long as it is not large, else one that
    begins with the conversation of this key."""
    rows = SpanBatch.objects.of(project)
    if rows.filter(source=program, size=0).exists():  # stored by a version that had one recording for each program
        return program
    conversations = SpanPlace.objects.of(project).filter(program=program, is_conversation=True)
    newest = conversations.order_by("-pk").values_list("source", flat=True).first()
    if newest is not None and (rows.filter(source=newest).aggregate(bytes=Sum("size"))["bytes"] or 0) < ENOUGH:
        return newest
    return _digest([program, key])


def _add(project: Project, groups: list[_SpanGroup]) -> list[SpanBatch]:
    """Store the groups of which no row is stored yet; their rows."""
    batches = [
        batch
        for program in dict.fromkeys(group.program for group in groups)
        for batch in _placed(project, program, [group for group in groups if group.program == program])
    ]
    return _add_new(project, batches) if batches else []


def _add_new(project: Project, batches: list[SpanBatch]) -> list[SpanBatch]:
    """Store the rows that are new; those."""
    rows = SpanBatch.objects.of(project).filter(source__in={batch.source for batch in batches})
    digests = [batch.digest for batch in batches]
    stored = {
        (source, bytes(digest))
        for start in range(0, len(digests), SLICE)
        for source, digest in rows.filter(digest__in=digests[start : start + SLICE]).values_list("source", "digest")
    }
    new = {(batch.source, batch.digest): batch for batch in batches if (batch.source, batch.digest) not in stored}
    return SpanBatch.objects.of(project).bulk_create(new.values(), ignore_conflicts=True)


def _conversation_key(conversation: str) -> str:
    return _digest(["conversation", conversation])


def _trace_key(trace: str) -> str:
    return _digest(["trace", trace])


def _digest(value: Any) -> str:
    return hashlib.sha256(msgspec.json.encode(value, order="deterministic")).hexdigest()
