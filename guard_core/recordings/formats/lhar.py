"""LHAR ("LLM HTTP Archive") of Context Lens: lines of a session and its entries, or one object `lhar` around both.

An entry is a call of a model with its counts, sizes and times; the bodies are in `raw`, where Context Lens was run
with CONTEXT_LENS_PRIVACY=full, and null elsewhere. They are read as in logs of their API (`http.api_format`); without
them an archive has no message, and is refused with what to set. `gen_ai.usage.input_tokens` is without cached tokens,
so the usage in the bodies is what counts here.
Definition: github.com/larsderidder/context-lens, docs/LHAR.md and schema/lhar.schema.json, version 0.1.0.
"""

from __future__ import annotations

from collections.abc import Iterator

from guard_core.errors import DamagedRecording
from guard_core.recordings.base import Recording
from guard_core.recordings.formats.capture.bodies import KNOWN_NAMES, CapturedCalls
from guard_core.recordings.reading import fields
from guard_core.recordings.reading.fields import JSON
from guard_core.recordings.reading.known_names import Names, united, words
from guard_core.recordings.reading.source import ByteSource, SourceShape

APIS = {  # `http.api_format`
    "anthropic-messages": "anthropic",
    "openai-chat": "chat",
    "chat-completions": "chat",
    "openai-responses": "responses",
    "responses": "responses",
    "chatgpt-backend": "responses",
    "google-gemini": "gemini",
    "gemini": "gemini",
}
NO_BODIES = "no entry has its bodies: Context Lens keeps them only with CONTEXT_LENS_PRIVACY=full"
_OWN = Names(
    usage=words("usage_ext gen_ai"),
    counts=words("cache_read_tokens cache_write_tokens thinking_tokens input_tokens output_tokens total_tokens"),
    beside=words("total_tokens tokens"),
    passed_over=words("context_lens"),
)


class LharFormat:
    """Archives of Context Lens."""

    name = "lhar"
    label = "Context Lens archive (LHAR)"
    place = "*.lhar, *.lhar.json"
    known_names: Names = united(KNOWN_NAMES, _OWN)

    def matches(self, source: ByteSource) -> bool:
        if source.shape is SourceShape.LINES:
            return any(_is_ours(line.obj) for line in source.head_lines(3))
        value = source.json_head() if source.shape is SourceShape.JSON else None
        return isinstance(value, dict) and (isinstance(value.get("lhar"), dict) or _is_ours(value))

    def read(self, source: ByteSource) -> Recording:
        calls, without, bodies = CapturedCalls(source), 0, 0
        for line, entry in _entries(source):
            with source.tolerate(line):
                if _add(calls, line, entry):
                    bodies += 1
                else:
                    without += 1
                    source.notes.skip("entry without bodies")
        if without and not bodies:
            raise DamagedRecording(NO_BODIES)
        return calls.recording(self.name)


def _is_ours(value: JSON) -> bool:
    """Is it a session's line or an entry?"""
    kind = value.get("type")
    if kind == "session":
        return {"trace_id", "started_at", "tool"} <= value.keys()
    return kind == "entry" and {"trace_id", "gen_ai", "raw"} <= value.keys()


def _entries(source: ByteSource) -> Iterator[tuple[int | None, JSON]]:
    if source.shape is SourceShape.LINES:
        yield from ((line.number, line.obj) for line in source.lines() if line.obj.get("type") == "entry")
        return
    value = source.json()
    listed = fields.mapping(value, "lhar").get("entries")
    yield from ((None, entry) for entry in fields.objects([value] if value.get("type") == "entry" else listed))


def _add(calls: CapturedCalls, line: int | None, entry: JSON) -> bool:
    """Add the call of an entry; False where its request is not in the file."""
    http, raw = fields.mapping(entry, "http"), fields.mapping(entry, "raw")
    request = raw.get("request_body")
    if not isinstance(request, dict):
        return False
    kind = fields.text(http, "api_format")
    about = {"path": fields.text(http, "url"), "status": http.get("status_code"), "timestamp": entry.get("timestamp")}
    response = raw.get("response_body")
    if isinstance(response, dict) and isinstance(response.get("chunks"), str):
        response = response["chunks"]  # of a stream
    calls.add(line, APIS.get(kind, kind), request, response, **about)
    return True


FORMAT = LharFormat()
