"""Pydantic AI: the messages of a run or a conversation, as `all_messages_json()` and its type adapter write them.

Requests and responses take turns. A response has the usage of its call: `input_tokens` includes cached ones of every
provider (before 1.0 `request_tokens`, with the cached ones in `details`); all zeros stand for a provider that counted
nothing. The system prompt is the `system-prompt` parts of the first request and its `instructions`, which each request
repeats; a later request with other ones is noted. The schemas of tools are not in the file. A `compaction` part in a
response is the provider's: what precedes it was not sent again. One in a request is the application's own summary,
with which a replaced history begins; within a history it is one more message, for the rest is still sent. Parts that
only keep account (`instruction-baseline`, `tool-availability-delta`) are not sent. An attempt that a fallback moved on
from is a side call, or a refused request.
Source: pydantic-ai 2.68, `pydantic_ai/messages.py`, `usage.py` and `models/__init__.py`, measured by running it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from guard_core.errors import DamagedRecording
from guard_core.events import (
    Event,
    MediaPart,
    OtherPart,
    Part,
    ReasoningPart,
    Role,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    value_text,
)
from guard_core.plural import counted
from guard_core.recordings.base import Recording
from guard_core.recordings.reading import fields, wrong_kinds
from guard_core.recordings.reading.build import FactCounter, SessionBuilder
from guard_core.recordings.reading.fields import JSON
from guard_core.recordings.reading.known_names import Names, words
from guard_core.recordings.reading.refusals import names_length
from guard_core.recordings.reading.source import ByteSource, SourceShape
from guard_core.sessions import Evidence, ModelCall, RecordedCompaction, Session
from guard_core.views import Inserted

NAME = "pydantic-ai"
_HEADS = 20
_KINDS = frozenset({"request", "response"})
_COUNTS = ("input_tokens", "request_tokens", "output_tokens", "response_tokens")
_FAILED = frozenset({"failed", "retried"})  # outcomes of a tool that are sent as errors
_FILES = frozenset({"binary", "image-url", "audio-url", "video-url", "document-url", "uploaded-file"})
_NOT_SENT = frozenset({"instruction-baseline", "instruction-delta", "model-settings-delta"})
_NOT_SENT |= {"tool-availability-delta", "capability-load-delta", "cache-point"}
_HISTORY_LOST = "The history before the summary is not in the file."


class PydanticAiFormat:
    name = NAME
    label = "Pydantic AI"
    place = "all_messages_json()"
    known_names = Names(
        usage=words("usage details"),
        counts=words(
            "input_tokens request_tokens output_tokens response_tokens total_tokens requests cache_read_tokens"
            " cache_write_tokens cache_write_1h_tokens input_audio_tokens output_audio_tokens cache_audio_read_tokens"
            " output_reasoning_tokens reasoning_tokens cached_tokens cache_read_input_tokens audio_tokens"
            " cache_creation_input_tokens cached_content_tokens thoughts_tokens text_prompt_tokens tool_calls"
            " accepted_prediction_tokens rejected_prediction_tokens"
        ),
        tools=words("parts"),
        passed_over=words("content provider_details vendor_details metadata settings"),
    )

    def matches(self, source: ByteSource) -> bool:
        if source.shape is SourceShape.LINES:
            heads = [line.obj for line in source.head_lines()]
        else:
            heads = _listed(source.json_head())[:_HEADS] if source.shape is SourceShape.JSON else []
        return bool(heads) and sum(map(_is_message, heads)) * 2 > len(heads)

    def read(self, source: ByteSource) -> Recording:
        facts = FactCounter(NAME)
        reader = _HistoryReader(source, facts)
        messages: Iterator[tuple[int | None, JSON]]
        if source.shape is SourceShape.LINES:
            messages = ((line.number, line.obj) for line in source.lines())
        else:
            items = wrong_kinds.objects(source, source.elements(_listed), "message")
            messages = ((None, item) for item in items)
        for line, message in messages:
            with source.tolerate(line):
                reader.message(message, line)
        return Recording(NAME, (reader.session(),), facts.facts(), source.notes)


FORMAT = PydanticAiFormat()


def _listed(value: Any) -> list[Any]:
    listed = value.get("messages") if isinstance(value, dict) else value
    return listed if isinstance(listed, list) else []


def _is_message(value: Any) -> bool:
    """Is it a request or a response, by its kind and that of its parts?"""
    if fields.text(value, "kind") not in _KINDS or not isinstance(value.get("parts"), list):
        return False
    return all("part_kind" in part for part in fields.objects(value["parts"]))


class _HistoryReader:
    def __init__(self, source: ByteSource, facts: FactCounter) -> None:
        self._source = source
        self._facts = facts
        self._log = SessionBuilder(NAME, source)
        self._prompts: list[Part] = []
        self._instructions: list[str] = []  # different ones, in their order
        self._conversation = ""
        facts.session()

    def message(self, message: JSON, line: int | None) -> None:
        kind = fields.text(message, "kind")
        self._conversation = self._conversation or fields.text(message, "conversation_id")
        if kind == "request":
            self._facts.message()
            self._request(message, line)
        elif kind == "response":
            self._facts.message()
            self._response(message, line)
        else:
            self._source.notes.skip(f"message of the kind {kind[:40] or 'none'}")

    def session(self) -> Session:
        if not self._log.events and not self._log.compactions and not self._prompts:
            raise DamagedRecording("no message can be read")
        first = [TextPart(text) for text in self._instructions[:1]]
        if (changes := len(self._instructions) - 1) > 0:
            self._log.notes.append(
                f"The instructions changed: {counted(changes, 'other text')} in later requests, which their prompt "
                "tokens include. The first is shown as the system prompt."
            )
        self._log.notes.append("The schemas of the tools are not in the file.")
        system = (*self._prompts, *first) or None
        return self._log.session(system=system, agent="Pydantic AI", source_id=self._conversation)

    # -- what was sent

    def _request(self, message: JSON, line: int | None) -> None:
        said = fields.text(message, "instructions")
        if said and said not in self._instructions:
            self._instructions.append(said)
        results: list[Part] = []
        words_: list[Part] = []
        for part in fields.objects(message.get("parts")):
            kind = fields.text(part, "part_kind")
            if kind == "user-prompt":
                wrong_kinds.check_words(self._source, part, "content", "a part", line)
            if kind == "compaction" and not self._log.events and not words_:
                self._begin_with(part, line)
            elif kind == "system-prompt":
                self._system(part, line)
            elif kind == "tool-return" or (kind == "retry-prompt" and part.get("tool_name")):
                results.extend(_result_parts(part))
            elif kind in _NOT_SENT:
                self._source.notes.skip(f"part of the kind {kind}")
            else:
                words_.extend(_words(part))
        places = (message, *fields.objects(message.get("parts")))  # before 1.0 only the parts say when
        when = next((time for place in places if (time := fields.timestamp(place, "timestamp")) is not None), None)
        for parts in (results, words_):
            if parts:
                self._facts.parts(parts)
                self._log.event(Role.USER, parts, line=line, timestamp=when)

    def _system(self, part: JSON, line: int | None) -> None:
        """A system prompt before the first message is the session's; one that comes later is a message."""
        text = fields.plain_text(part.get("content"))
        if not self._log.events:
            self._prompts.append(TextPart(text))
        else:
            self._log.event(Role.SYSTEM, (TextPart(text),), line=line, meta=True)

    def _begin_with(self, part: JSON, line: int | None) -> None:
        """The history begins with a summary that the application wrote."""
        self._facts.compaction()
        summary = Event(Role.USER, (TextPart(fields.text(part, "content")),), line=line, meta=True)
        kind = "summary" if fields.text(part, "content").strip() else "empty"
        self._log.compaction(
            RecordedCompaction(0, Evidence.DECLARED, kind, (Inserted(0),), (summary,), line=line, note=_HISTORY_LOST)
        )

    # -- what came back

    def _response(self, message: JSON, line: int | None) -> None:
        self._attempts(message, line)
        wrong_kinds.check_counts(self._source, fields.mapping(message, "usage"), _COUNTS, "a response", line)
        call: JSON = {
            **usage_of(fields.mapping(message, "usage")),
            "model": fields.text(message, "model_name"),
            "timestamp": fields.timestamp(message, "timestamp"),
            "line": line,
            "source_id": fields.text(message, "provider_response_id") or fields.text(message, "vendor_id"),
        }
        if (prompt := call["prompt_tokens"]) is not None:
            self._facts.call(prompt)
        listed = list(fields.objects(message.get("parts")))
        cuts = [place for place, part in enumerate(listed) if fields.text(part, "part_kind") == "compaction"]
        after = listed[cuts[-1] + 1 :] if cuts else listed
        parts = [part for item in after for part in _answer_parts(item)]
        if cuts:
            own = ModelCall(len(self._log.events), **call) if not parts and prompt is not None else None
            self._compact(listed[cuts[-1]], own, line)
        if parts or not cuts:
            self._facts.parts(parts)
            self._log.answer(parts, call=call, line=line, timestamp=call["timestamp"], source_id=call["source_id"])

    def _compact(self, part: JSON, summariser: ModelCall | None, line: int | None) -> None:
        """The provider's compaction: its summary, which may be encrypted, takes the place of all before it."""
        self._facts.compaction()
        summary, details = fields.text(part, "content"), fields.mapping(part, "provider_details")
        sealed = fields.opaque_size(fields.text(details, "encrypted_content"))
        content: Part = TextPart(summary) if summary else ReasoningPart("", opaque_bytes=sealed)
        self._log.compaction(
            RecordedCompaction(
                len(self._log.events),
                Evidence.DECLARED,
                "summary" if summary.strip() else "opaque",
                (Inserted(0),),
                (Event(Role.USER, (content,), line=line, meta=True),),
                summariser=summariser,
                line=line,
                note="" if summary else "The summary is encrypted.",
            )
        )

    def _attempts(self, message: JSON, line: int | None) -> None:
        """Attempts at this request that failed before it was answered."""
        for attempt in fields.objects(message.get("failed_attempts")):
            error, counts = fields.text(attempt, "error"), usage_of(fields.mapping(attempt, "usage"))
            if names_length(error):
                self._log.refuse(error)
            if (prompt := counts["prompt_tokens"]) is not None:
                self._facts.call(prompt)
                about: JSON = {"model": fields.text(attempt, "model_name"), "line": line}
                when = fields.timestamp(attempt, "timestamp")
                self._log.side_calls.append(ModelCall(len(self._log.events), timestamp=when, **about, **counts))


def usage_of(usage: JSON) -> JSON:
    """The counts of a response, as fields of ModelCall; None for what its provider did not count."""
    details = fields.mapping(usage, "details")
    prompt = fields.first_tokens(usage, "input_tokens", "request_tokens")
    output = fields.first_tokens(usage, "output_tokens", "response_tokens")
    if not prompt:
        return {"prompt_tokens": None, "output_tokens": output or None}
    read = ("cached_tokens", "cache_read_input_tokens", "cache_read_tokens", "cached_content_tokens")
    written = ("cache_creation_input_tokens", "cache_write_tokens")
    hour = fields.tokens(usage, "cache_write_1h_tokens")
    return {
        "prompt_tokens": prompt,
        "cached_tokens": _counted(usage, "cache_read_tokens", details, read),
        "cache_write_tokens": _counted(usage, "cache_write_tokens", details, written),
        "output_tokens": output,
        **({"cache_hour_tokens": hour} if hour else {}),
    }


def _counted(usage: JSON, name: str, details: JSON, older: tuple[str, ...]) -> int | None:
    """A count of its own, or that of the details, where it was before."""
    count = fields.tokens(usage, name)
    return count if count is not None else fields.first_tokens(details, *older)


def _words(part: JSON) -> list[Part]:
    """What the user, a retry or a summary says: text, and media by their size or address."""
    content = part.get("content")
    if fields.text(part, "part_kind") in {"retry-prompt", "retry-feedback"} and not isinstance(content, str):
        return [TextPart(value_text(content))]
    if fields.text(part, "part_kind") == "speech":
        return [TextPart(fields.text(part, "transcript"))]
    return [part for item in (content if isinstance(content, list) else [content]) for part in _content(item)]


def _content(item: Any) -> list[Part]:
    if isinstance(item, str):
        return [TextPart(item)] if item else []
    if not isinstance(item, dict) or fields.text(item, "kind") in _NOT_SENT:
        return []
    if fields.text(item, "kind") in _FILES:
        return [_file(item)]
    text = fields.text(item, "content")
    return [TextPart(text) if text else OtherPart(fields.text(item, "kind") or "unknown", item)]


def _file(item: JSON) -> MediaPart:
    mime = fields.text(item, "media_type")
    if data := fields.text(item, "data"):
        return fields.media(mime, data)
    return MediaPart(mime, uri=(fields.text(item, "url") or fields.text(item, "file_id"))[:2000])


def _result_parts(part: JSON) -> list[Part]:
    """A tool's result, and the files it brought. A retry says what was wrong with the call."""
    content = part.get("content")
    items = content if isinstance(content, list) else [content]
    files = [item for item in fields.objects(items) if fields.text(item, "kind") in _FILES]
    rest = [item for item in items if item not in files]
    value = content if not files else rest[0] if len(rest) == 1 else rest
    failed = fields.text(part, "outcome") in _FAILED or fields.text(part, "part_kind") == "retry-prompt"
    name, call_id = fields.text(part, "tool_name"), fields.text(part, "tool_call_id")
    return [ToolResultPart(name, value, call_id, failed), *map(_file, files)]


def _answer_parts(part: JSON) -> list[Part]:
    kind = fields.text(part, "part_kind")
    if kind == "text":
        return [TextPart(fields.text(part, "content"))]
    if kind == "thinking":
        signature = fields.text(part, "signature")
        return [
            ReasoningPart(fields.text(part, "content"), opaque_bytes=fields.opaque_size(signature) if signature else 0)
        ]
    if kind == "tool-call":
        arguments = fields.arguments(part.get("args"))
        return [ToolCallPart(fields.text(part, "tool_name"), arguments, fields.text(part, "tool_call_id"))]
    if kind == "file":
        return [_file(fields.mapping(part, "content"))]
    if kind == "speech":
        return [TextPart(fields.text(part, "transcript"))]
    return [OtherPart(kind or "unknown", part)]
