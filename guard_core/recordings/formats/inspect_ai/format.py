"""Inspect (inspect_ai) evaluation logs: `.eval` archives and JSON logs, one session per sample.

Definition: https://inspect.aisi.org.uk/eval-logs.html, and `inspect_ai.log` for the fields.
An archive's entries are deflate or zstd (method 93) and read as streams; a crashed run has no `header.json`, so the
task and model come from `_journal/start.json`, and an archive whose directory was never written is read entry by entry.
NaN and Infinity are legal in these logs and read as nothing. Long strings are `attachment://<hash>` into the sample's
`attachments`; a model event holds its `input`, or `input_refs`, ranges `[start, end)` of `events_data.messages` (older:
of the sample's `message_pool`). Prompt tokens are `input_tokens` and both cache counts, which Inspect takes out of
`input_tokens` for every provider. The log of a session is rebuilt from the model events: their requests show what was
sent, and a `compaction` event declares that the next request is a compacted one (kind summary, edit or trim, with the
recorder's own token counts); the summarising call before it is itself a model event and becomes its summariser, not
as a step. Each run of an agent is a context of its own, by the spans (`spans`): those of sub-agents become
sessions of their own, single calls beside the main context (graders) are side calls.
A model event without counted tokens that ended by the model's length, or by an error that says so, is a refused request
and no call. Pending and failed model events are left out and counted, and so are those that older logs nest in tool
events. Samples without events give their message list as the log.
Facts count every model event with usage, the summariser's too, and the messages of the samples' final lists.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from guard_core.bounds import MAX_TOKENS
from guard_core.errors import DamagedRecording, RecordingError
from guard_core.events import Event, OtherPart, Part, Role, TextPart, ToolResultPart, value_text
from guard_core.recordings.base import Recording
from guard_core.recordings.formats.inspect_ai.known_names import NAMES
from guard_core.recordings.formats.inspect_ai.spans import SampleContexts, Spans
from guard_core.recordings.reading import chat, fields
from guard_core.recordings.reading.answer_limits import answer_limit
from guard_core.recordings.reading.build import FactCounter, SessionBuilder
from guard_core.recordings.reading.conversations import fold_side_calls, threads_of
from guard_core.recordings.reading.fields import JSON
from guard_core.recordings.reading.refusals import names_length
from guard_core.recordings.reading.requests import Declared, Request, message_key
from guard_core.recordings.reading.source import ByteSource, SourceShape
from guard_core.recordings.reading.threads import Thread
from guard_core.recordings.reading.zip_entries import ZipEntries, entry_names
from guard_core.sessions import AgentSetting, ModelCall, Session

_HEADER, _JOURNAL = "header.json", "_journal/start.json"  # the journal is all that a run which was stopped leaves
_STOPPED = "The run was stopped: samples that it had not ended are not in the file."
TOO_LONG = "model_length"  # the stop reason of a request that the provider refused as too long
_UNFINISHED = "unfinished"  # noted in the header that is read
ATTACHMENT = re.compile(r"attachment://([0-9A-Za-z]{8,64})")


class InspectFormat:
    name = "inspect"
    label = "Inspect"
    place = "logs/*.eval, or .json"
    known_names = NAMES

    def matches(self, source: ByteSource) -> bool:
        if source.shape is SourceShape.ZIP:
            with source.stream() as stream:
                names = entry_names(stream, source.size)
            return any(name in {_HEADER, _JOURNAL} or _is_sample(name) for name in names)
        if source.shape is SourceShape.LINES:
            heads = source.head_lines()
            return len(heads) > 1 and all(_is_log(line.obj) for line in heads)
        return (
            source.shape is SourceShape.JSON
            and bool(_logs(source.json_head(allow_nan=True)))
            and all(map(_is_log, source.elements(allow_nan=True)))
        )

    def read(self, source: ByteSource) -> Recording:
        facts = FactCounter(self.name)
        sessions: list[Session] = []
        if source.shape is SourceShape.ZIP:
            with source.stream() as stream:
                archive = ZipEntries(stream, source.size, source.limits)
                header = _header(source, archive)
                for sample in _archived_samples(source, archive):
                    with source.apart(sessions):
                        sessions.extend(_read_sample(source, header, sample, facts))
        else:
            lined = source.shape is SourceShape.LINES
            for log in _logs([line.obj for line in source.lines()]) if lined else source.elements(allow_nan=True):
                for sample in _listed_samples(source, log):
                    with source.apart(sessions):
                        sessions.extend(_read_sample(source, log, sample, facts))
        if not sessions:
            if source.notes.problems:
                raise source.nothing_left("no sample of this Inspect log can be read")
            raise DamagedRecording("this Inspect log holds no samples: nothing was run, or only its header was kept")
        return Recording(self.name, tuple(sessions), facts.facts(), source.notes)


FORMAT = InspectFormat()


def _is_sample(name: str) -> bool:
    return name.startswith("samples/") and name.endswith(".json")


def _is_sample_object(value: JSON) -> bool:
    return "epoch" in value and isinstance(value.get("messages"), list) and ("events" in value or "target" in value)


def _is_log(value: Any) -> bool:
    """Is it a whole log, or a sample of one?"""
    if not isinstance(value, dict):
        return False
    whole = isinstance(value.get("eval"), dict) and ("plan" in value or "samples" in value or "stats" in value)
    return whole or _is_sample_object(value)


def _logs(value: Any) -> list[JSON]:
    """The logs in a JSON value: one, or an array of them. Else none."""
    logs = value if isinstance(value, list) else [value]
    return logs if all(map(_is_log, logs)) else []


def _listed_samples(source: ByteSource, log: JSON) -> Iterator[JSON]:
    samples = [log] if _is_sample_object(log) else fields.items(log, "samples")
    for number, sample in enumerate(samples, start=1):
        if isinstance(sample, dict):
            yield sample
        else:
            source.problem(f"sample {number} is not an object")


def _header(source: ByteSource, archive: ZipEntries) -> JSON:
    """What is known of the run. Left empty when neither the header nor the journal can be read."""
    for name in (_HEADER, _JOURNAL):
        if name in archive:
            with source.tolerate():
                value = source.parse(archive.read(name), allow_nan=True, what=name)
                if isinstance(value, dict):
                    return {**value, _UNFINISHED: _HEADER not in archive}
    return {}


def _archived_samples(source: ByteSource, archive: ZipEntries) -> Iterator[JSON]:
    if archive.damage:
        source.problem(archive.damage)
    for name in archive.names():
        if not _is_sample(name):
            continue
        value: Any = None
        with source.tolerate():
            value = source.parse(archive.read(name), allow_nan=True, what=ascii(name[:80])[1:-1])
        if isinstance(value, dict):
            yield value
        elif value is not None:
            source.problem(f"the sample {name[:80]!a} is not an object")


def _read_sample(source: ByteSource, header: JSON, sample: JSON, facts: FactCounter) -> list[Session]:
    reader = _SampleReader(source, header, sample)
    facts.session()
    reader.count(facts)
    try:
        return reader.sessions()
    except RecordingError as error:
        source.problem(f"the sample {reader.title!a}: {error.reason}")
        return []


class _SampleReader:
    """One sample: its messages with attachments put back, its model events as requests."""

    def __init__(self, source: ByteSource, header: JSON, sample: JSON) -> None:
        self._source = source
        self._header = header
        self._sample = sample
        self._attachments = fields.mapping(sample, "attachments")
        self._transcript = fields.items(sample, "events") or fields.items(
            fields.mapping(sample, "transcript"), "events"
        )
        data = fields.mapping(sample, "events_data")
        self._pool = fields.items(data, "messages") or fields.items(sample, "message_pool")
        self._pooled: dict[int, Event | None] = {}
        self._final = [event for message in fields.items(sample, "messages") if (event := self._event(message))]

    @property
    def title(self) -> str:
        task = fields.text(fields.mapping(self._header, "eval"), "task")
        name = str(self._sample.get("id", ""))[:200]
        epoch = self._sample.get("epoch")
        suffix = f" (epoch {epoch})" if isinstance(epoch, int) and epoch != 1 else ""
        return (f"{task}: {name}" if task else name) + suffix

    def count(self, facts: FactCounter) -> None:
        facts.message(len(self._final))
        for event in self._final:
            facts.parts(event.parts)
        for item in fields.objects(self._transcript):
            kind = fields.text(item, "event")
            if kind == "compaction":
                facts.compaction()
            elif kind == "model" and (prompt := prompt_tokens(_usage(item))) is not None:
                facts.call(prompt)

    def sessions(self) -> list[Session]:
        threads = [thread for requests in self._conversations() for thread in threads_of(requests, side_calls=False)]
        if not threads:
            return [self._without_calls()]
        final = [message_key(event) for event in self._final]
        main = max(threads, key=lambda thread: (thread.shares(final), len(thread.calls)))
        conversations = fold_side_calls(threads, main)
        return [self._session(thread, number) for number, thread in enumerate(conversations)]

    def _without_calls(self) -> Session:
        builder = SessionBuilder("inspect", self._source)
        system, events = chat.split_system(self._final)
        for event in events:
            if event.role is Role.MODEL:
                builder.answer(event.parts, call={}, source_id=event.source_id)
            else:
                builder.event(event.role, event.parts, source_id=event.source_id)
        builder.notes.append("The sample has no model events: what each call cost is not in the file.")
        return builder.session(system=system, **self._about())

    def _session(self, thread: Thread, number: int) -> Session:
        if number == 0:  # what is behind the last answer (the last tool result), as the sample's final list has it
            known = {event.source_id for event in thread.events if event.source_id}
            places = [index for index, event in enumerate(self._final) if event.source_id in known]
            thread.events.extend(self._final[places[-1] + 1 :] if places else ())
        session = thread.session("inspect", self._source.limits, **self._about())
        if number == 0:
            return session
        name = f" ({thread.agent})" if thread.agent else ""
        return msgspec.structs.replace(session, title=f"{session.title} · context {number + 1}{name}")

    def _about(self) -> dict[str, Any]:
        run = fields.mapping(self._header, "eval")
        version = fields.text(fields.mapping(run, "packages"), "inspect_ai")
        return {
            "title": self.title,
            "agent": fields.text(run, "task"),
            "model": fields.text(run, "model"),
            "source_id": fields.text(self._sample, "uuid") or str(self._sample.get("id", ""))[:200],
            "started_at": fields.timestamp(self._sample, "started_at") or fields.timestamp(run, "created"),
            "notes": (_STOPPED,) if self._header.get(_UNFINISHED) is True else (),
            "settings": _settings(self._header),
            "versions": ((0, version),) if version else (),
        }

    def _conversations(self) -> SampleContexts:
        """The model events as requests, by the agent that sent them."""
        spans = Spans()
        conversations = SampleContexts(spans)
        declared: dict[str, Declared] = {}  # by agent: a compaction that its next request shows
        for item in fields.objects(self._transcript):
            kind, agent = fields.text(item, "event"), spans.agent_of(item)
            if kind == "compaction":
                declared[agent] = _declared(item)
            elif kind == "model":
                request = self._request(item, declared.get(agent), spans.name_of(agent))
                if request is not None:
                    declared.pop(agent, None)
                    conversations.add(request, agent)
            else:
                spans.see(item)
                self._skip(item, kind)
        for _ in declared:
            self._source.notes.skip("compaction event without a later call")
        return conversations

    def _skip(self, item: JSON, kind: str) -> None:
        """Note what is passed over; calls of a model inside a tool belong to another conversation."""
        self._source.notes.skip(f"{kind or 'unnamed'} event")
        for inner in fields.objects(item.get("events")):
            if fields.text(inner, "event") == "model":
                self._source.notes.skip("model call inside a tool event")

    def _request(self, item: JSON, declared: Declared | None, agent: str) -> Request | None:
        output = fields.mapping(item, "output")
        choice = next(fields.objects(output.get("choices")), {})
        answer = self._event(choice.get("message"))
        usage = _usage(item)
        counted = prompt_tokens(usage)
        failed = bool(item.get("error")) and counted is None  # newer logs give it an empty answer
        refusal = "" if counted else _refusal(item, choice)
        if item.get("pending") or not (refusal or answer is not None) or (failed and not refusal):
            self._source.notes.skip("pending or failed model call")
            return None
        system, messages = chat.split_system(self._input(item))
        call = ModelCall(
            at=0,
            prompt_tokens=counted,
            cached_tokens=fields.tokens(usage, "input_tokens_cache_read"),
            cache_write_tokens=fields.tokens(usage, "input_tokens_cache_write"),
            output_tokens=fields.tokens(usage, "output_tokens"),
            model=fields.text(item, "model") or fields.text(output, "model"),
            timestamp=fields.timestamp(item, "timestamp"),
            source_id=fields.text(item, "uuid"),
        )
        tools = chat.tool_definitions(item.get("tools"))
        about: JSON = {"system": system, "tools": tools, "declared": declared, "agent": agent, "refusal": refusal}
        limit = answer_limit(fields.mapping(item, "config"))
        return Request(tuple(messages), call, None if refusal else answer, answer_limit=limit, **about)

    def _input(self, item: JSON) -> list[Event]:
        refs = fields.items(item, "input_refs")
        if not refs:
            return [event for message in fields.items(item, "input") if (event := self._event(message))]
        messages: list[Event] = []
        for ref in refs:
            is_range = isinstance(ref, list) and len(ref) == 2 and all(type(end) is int for end in ref)
            start, stop = (max(0, min(end, len(self._pool))) for end in (ref if is_range else (0, 0)))
            messages.extend(event for index in range(start, stop) if (event := self._from_pool(index)))
        return messages

    def _from_pool(self, index: int) -> Event | None:
        """A message of the pool, read once: every later request refers to it again."""
        if index not in self._pooled:
            self._pooled[index] = self._event(self._pool[index])
        return self._pooled[index]

    def _event(self, message: Any) -> Event | None:
        """One chat message, attachments put back."""
        if not isinstance(message, dict):
            return None
        message = self._whole(message)
        role = chat.ROLES.get(fields.text(message, "role"))
        if role is None:
            return None
        parts = _result(message) if message["role"] == "tool" else _content(message)
        return Event(role, parts, source_id=fields.text(message, "id"))

    def _whole(self, value: Any) -> Any:
        if isinstance(value, str):
            return ATTACHMENT.sub(self._attached, value) if "attachment://" in value else value
        if isinstance(value, dict):
            return {key: self._whole(item) for key, item in value.items()}
        return [self._whole(item) for item in value] if isinstance(value, list) else value

    def _attached(self, match: re.Match[str]) -> str:
        """The text of an attachment; where the file lacks it, the reference stays."""
        text = self._attachments.get(match[1])
        return text if isinstance(text, str) else match[0]


def _content(message: JSON) -> tuple[Part, ...]:
    content = message.get("content")
    parts: list[Part] = []
    for item in content if isinstance(content, list) else [content]:
        if isinstance(item, dict) and fields.text(item, "type") == "tool_use":
            parts.append(OtherPart("server_tool_use", item))  # run by the provider inside the answer
        else:
            parts.extend(fields.content_parts(item))
    parts.extend(chat.tool_call(item) for item in fields.objects(message.get("tool_calls")))
    return tuple(parts)


def _result(message: JSON) -> tuple[Part, ...]:
    error = fields.mapping(message, "error")
    content = message.get("content")
    media = tuple(part for part in fields.content_parts(content) if not isinstance(part, TextPart))
    result = fields.plain_text(content) or fields.text(error, "message")
    call_id, name = fields.text(message, "tool_call_id"), fields.text(message, "function")
    return (ToolResultPart(name, result, call_id, bool(error)), *media)


def _usage(item: JSON) -> JSON:
    return fields.mapping(fields.mapping(item, "output"), "usage")


def _refusal(item: JSON, choice: JSON) -> str:
    """The words in which the provider answered that the request is too long: Inspect gives that a stop reason, or an
    error; "" where it did not. An answer that filled the window has this stop reason, too, but its tokens are
    counted."""
    errors = (place.get("error") for place in (item, fields.mapping(item, "output")))
    words = next((words for error in errors if error and names_length(words := value_text(error))), "")
    return words or (TOO_LONG if fields.text(choice, "stop_reason") == TOO_LONG else "")


def prompt_tokens(usage: JSON) -> int | None:
    """Input tokens with both cache counts, which Inspect reports apart from `input_tokens`."""
    fresh = fields.tokens(usage, "input_tokens")
    if fresh is None:
        return None
    cached = fields.tokens(usage, "input_tokens_cache_read") or 0
    return fresh + cached + (fields.tokens(usage, "input_tokens_cache_write") or 0)


def _declared(item: JSON) -> Declared:
    about, kind = fields.mapping(item, "metadata"), fields.text(item, "type") or "summary"
    return Declared(
        kind="opaque" if kind == "native" else kind,
        inserts=1 if kind == "summary" else None,  # behind the first messages: `CompactionSummary`
        trigger=fields.text(about, "trigger"),
        tokens_before=fields.tokens(item, "tokens_before"),
        tokens_after=fields.tokens(item, "tokens_after"),
        timestamp=fields.timestamp(item, "timestamp"),
        note=fields.text(about, "strategy"),
    )


def _settings(header: JSON) -> tuple[AgentSetting, ...]:
    """The threshold of the compaction that a step of the plan was given: tokens, or a share of the window up to 1."""
    for step in fields.objects(fields.mapping(header, "plan").get("steps")):
        given = fields.mapping(step, "params").get("compaction")
        for strategy in fields.objects(given if isinstance(given, list) else [given]):
            threshold: Any = strategy.get("threshold")
            if type(threshold) in (int, float) and 0 < threshold <= MAX_TOKENS:
                return (AgentSetting("threshold", threshold, f"in the plan, of {fields.text(step, 'solver')[:80]}"),)
    return ()
