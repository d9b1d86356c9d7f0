"""LangChain message lists and LangSmith runs: one session per list, or per thread of runs (see `runs`).

Definitions: `langchain_core.messages` (`messages_to_dict`, `dumpd`).
Messages appear as `{type, data}`, as serialised constructors `{lc, id, kwargs}` and flat; `usage_metadata.input_tokens`
of an answer includes cached tokens, `response_metadata` is read where it is missing. Calls that could not be parsed
(`invalid_tool_calls`) keep their raw arguments. A list that begins with the summarization middleware's own message
(`lc_source`, or its wording, which is only a match) continues after a compaction whose history is not in the file. The
state of a thread of LangGraph has its messages in `values`. A file of runs in which no model run is left (root runs
alone) is read as the messages that its chains ended with. Facts count calls with usage and, for runs, tool runs as
calls and results; of a tool run's result they count the text only where the run's output is a text, as LangSmith shows
it, not a message object.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from guard_core.errors import DamagedRecording
from guard_core.events import Event, Part, Role, TextPart, part_text
from guard_core.recordings.base import Recording
from guard_core.recordings.formats.langchain import look as langchain_look
from guard_core.recordings.formats.langchain.known_names import NAMES
from guard_core.recordings.formats.langchain.messages import (
    body_of,
    event_of,
    is_message,
    kind_of,
    model_of,
    unescaped,
    usage_of,
)
from guard_core.recordings.formats.langchain.runs import LangChainRuns, all_runs, runs_in
from guard_core.recordings.reading import fields, summary_words, wrong_kinds
from guard_core.recordings.reading.build import FactCounter, SessionBuilder
from guard_core.recordings.reading.fields import JSON
from guard_core.recordings.reading.first_look import FirstLook
from guard_core.recordings.reading.source import ByteSource, SourceShape
from guard_core.sessions import Evidence, RecordedCompaction, Session
from guard_core.views import Inserted

_HEADS = 20  # records looked at


class LangChainFormat:
    name = "langchain"
    label = "LangChain"
    place = "messages or runs as JSON"
    known_names = NAMES

    def matches(self, source: ByteSource) -> bool:
        if source.shape is SourceShape.JSON:
            value = source.json_head(allow_nan=True)
            listed = unescaped(_listed(value)[:_HEADS])  # no more: a file of another format may be large
            return bool(runs_in(value)) or any(map(runs_in, listed)) or _is_messages(listed)
        heads = [unescaped(line.obj) for line in source.head_lines()]
        return any(runs_in(head) for head in heads) or _is_messages(heads)

    def read(self, source: ByteSource) -> Recording:
        facts = FactCounter(self.name)
        records = _records(source)
        if source.shape is SourceShape.JSON:
            value = unescaped(source.json_head(allow_nan=True))
            of_messages = not runs_in(value) and _is_messages(_listed(value))
        else:
            of_messages = _is_messages([unescaped(line.obj) for line in source.head_lines()])
        if of_messages:
            sessions = [_read_messages(source, (item for item, _ in records), facts)]
        else:
            runs = LangChainRuns(source, all_runs(source, records))
            sessions = runs.sessions(facts)
            sessions = sessions or [_read_messages(source, listed, facts) for listed in runs.ended_with()]
        if not sessions:
            raise DamagedRecording("the LangChain file holds no calls of a model")
        return Recording(self.name, tuple(sessions), facts.facts(), source.notes)

    def first_look(self, source: ByteSource) -> FirstLook | None:
        return langchain_look.look(source) if source.shape is SourceShape.LINES else None


FORMAT = LangChainFormat()


def _records(source: ByteSource) -> Iterator[tuple[Any, int | None]]:
    """The messages or runs of the file, each with its line."""
    if source.shape is SourceShape.LINES:
        yield from ((unescaped(line.obj), line.number) for line in source.lines())
        return
    if isinstance(source.json_head(allow_nan=True), list):
        yield from ((unescaped(item), None) for item in source.elements(allow_nan=True))
        return
    value = unescaped(source.json(allow_nan=True))
    yield from ((item, None) for item in ([value] if runs_in(value) else _listed(value)))


def _listed(value: Any) -> list[Any]:
    if isinstance(value, dict):
        state = value.get("values") if "checkpoint" in value or "next" in value else None  # of a thread of LangGraph
        value = state if isinstance(state, dict) else value
        value = value.get("messages", value.get("runs"))
    return value if isinstance(value, list) else []


def _is_messages(listed: list[Any]) -> bool:
    head = list(fields.objects(listed[:10]))
    return bool(head) and all(is_message(item) for item in head)


def _read_messages(source: ByteSource, listed: Iterable[Any], facts: FactCounter) -> Session:
    builder = SessionBuilder("langchain", source)
    facts.session()
    system: tuple[Part, ...] | None = None
    for message in listed:
        event = event_of(message)
        if event is None:
            kind = kind_of(message) if isinstance(message, dict) else ""
            source.notes.skip(f"message of type {kind[:40] or 'none'}")
            continue
        facts.message()
        facts.parts(event.parts)
        body = body_of(message) if isinstance(message, dict) else {}
        wrong_kinds.check_words(source, body, "content", "a message")
        if event.role is Role.SYSTEM and not builder.events and system is None:
            system = event.parts
        elif not builder.events and (evidence := _summary_evidence(body, event)) is not None:
            builder.compactions.append(_earlier_compaction(event, evidence))
        elif event.role is Role.MODEL:
            usage = usage_of(body)
            if usage.get("prompt_tokens") is not None:
                facts.call(usage["prompt_tokens"])
            call = {**usage, "model": model_of(body), "source_id": event.source_id}
            builder.answer(event.parts, call=call, source_id=event.source_id)
        else:
            builder.event(event.role, event.parts, source_id=event.source_id)
    return builder.session(system=system, agent="LangChain")


def _summary_evidence(body: JSON, event: Event) -> Evidence | None:
    if event.role is not Role.USER:
        return None
    if fields.text(fields.mapping(body, "additional_kwargs"), "lc_source") == "summarization":
        return Evidence.DECLARED
    first = event.parts[0] if event.parts else None
    matched = isinstance(first, TextPart) and first.text.startswith(summary_words.LANGCHAIN)
    return Evidence.MATCHED if matched else None


def _earlier_compaction(event: Event, evidence: Evidence) -> RecordedCompaction:
    """The compaction whose summary the list begins with: empty where nothing follows LangChain's own opening."""
    note = "The history before the summary is not in the file."
    message = msgspec.structs.replace(event, meta=True)
    text = "".join(part_text(part) for part in event.parts)
    kind = "summary" if text.strip().removeprefix(summary_words.LANGCHAIN) else "empty"
    return RecordedCompaction(0, evidence, kind, (Inserted(0),), (message,), note=note)
