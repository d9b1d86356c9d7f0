"""Traces in the words of what exported them: Langfuse, OpenAI Agents SDK, MLflow, Braintrust, W&B Weave, any-agent.

A file holds one trace or span, several in an array, under `data` or another name for a list, or one per line. The
conversations, calls and tools of their spans are then those of any trace (see `otlp.format`).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, Protocol

from guard_core.errors import DamagedRecording
from guard_core.recordings.base import Recording
from guard_core.recordings.formats.otlp.format import read_spans
from guard_core.recordings.formats.otlp.spans import TraceSpan
from guard_core.recordings.formats.trace_exports import any_agent, braintrust, langfuse, mlflow, openai_agents, weave
from guard_core.recordings.formats.trace_exports.known_names import NAMES
from guard_core.recordings.reading import fields
from guard_core.recordings.reading.fields import JSON
from guard_core.recordings.reading.source import ByteSource, SourceShape

_HEADS = 50
_LISTS = ("data", "events", "rows", "objects", "calls", "traces", "items")  # what an object around the records has


class _Service(Protocol):
    """The records of one service."""

    def is_record(self, value: JSON, /) -> bool: ...

    def spans_of(self, value: JSON, line: int | None, /) -> Iterator[TraceSpan]: ...


_SERVICES: tuple[_Service, ...] = (any_agent, langfuse, openai_agents, mlflow, braintrust, weave)


class TraceExportFormat:
    name = "trace-export"
    label = "Trace exports"
    place = "exports of Langfuse, OpenAI Agents SDK, MLflow, Braintrust, Weave or any-agent"
    known_names = NAMES

    def matches(self, source: ByteSource) -> bool:
        heads = [record for _, record in _records(source, heads=True)]
        return bool(heads) and sum(_service_of(head) is not None for head in heads) * 2 > len(heads)

    def read(self, source: ByteSource) -> Recording:
        recording = read_spans(source, self.name, list(_spans(source)))
        if not recording.sessions:
            raise DamagedRecording("the trace holds no call of a language model")
        return recording


FORMAT = TraceExportFormat()


def _service_of(record: JSON) -> _Service | None:
    return next((service for service in _SERVICES if service.is_record(record)), None)


def _records(source: ByteSource, *, heads: bool = False) -> Iterator[tuple[int | None, JSON]]:
    """The records of the file, or the first ones."""
    if source.shape is SourceShape.LINES:
        yield from ((line.number, line.obj) for line in (source.head_lines() if heads else source.lines()))
        return
    if source.shape is not SourceShape.JSON:
        return
    if heads:
        items = fields.objects(_listed(source.json_head(allow_nan=True)))
    else:
        items = fields.objects(source.elements(_listed, allow_nan=True))
    yield from ((None, item) for item in islice(items, _HEADS if heads else None))


def _listed(value: Any) -> list[Any]:
    """The records of one value."""
    if isinstance(value, dict) and _service_of(value) is None:
        value = next((value[key] for key in _LISTS if isinstance(value.get(key), list)), None)
    return value if isinstance(value, list) else [value]


def _spans(source: ByteSource) -> Iterator[TraceSpan]:
    for line, record in _records(source):
        service = _service_of(record)
        if service is None:
            source.notes.skip("record of no trace")
            continue
        if source.watch is not None and service is any_agent:
            for span in fields.objects(record.get("spans")):
                source.watch.check_flat(fields.mapping(span, "attributes"), line)
        with source.tolerate(line):
            yield from service.spans_of(record, line)
