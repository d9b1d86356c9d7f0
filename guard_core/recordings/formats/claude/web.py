"""Sessions of Claude Code on the web, as its service gives them: one object with a transcript's entries as `loglines`.

`GET /v1/session_ingress/session/<id>` answers with it; programs that show transcripts keep it as `<id>.json`. Entries
may lack the uuids, ids and usage that lines of a transcript have: then each follows the one before, and no call has
tokens. An entry has a number and no line of its own.
Source: github.com/simonw/claude-code-transcripts (`fetch_session`, `tests/sample_session.json`).
"""

from __future__ import annotations

from guard_core.recordings.base import Recording
from guard_core.recordings.formats.claude.known_names import NAMES
from guard_core.recordings.formats.claude.lines import NAME
from guard_core.recordings.formats.claude.transcript import ClaudeTranscriptReader
from guard_core.recordings.reading import fields, wrong_kinds
from guard_core.recordings.reading.fields import JSON
from guard_core.recordings.reading.source import ByteSource, SourceShape

_ENTRIES = "loglines"
_MESSAGES = frozenset({"user", "assistant"})
_HEADS = 50  # entries that are looked at


class ClaudeWebFormat:
    """Reads what the service of Claude Code on the web gives of a session."""

    name = NAME
    label = "Claude Code"
    place = ""
    known_names = NAMES

    def matches(self, source: ByteSource) -> bool:
        """The list has its name, and a message of a user or of the model in it is wrapped as a transcript's."""
        value = source.json_head() if source.shape is SourceShape.JSON else None
        return isinstance(value, dict) and any(map(_is_message, fields.items(value, _ENTRIES)[:_HEADS]))

    def read(self, source: ByteSource) -> Recording:
        entries = fields.mapping({"file": source.json()}, "file").get(_ENTRIES)
        return ClaudeTranscriptReader(source, wrong_kinds.objects(source, entries, "entry")).read()


FORMAT = ClaudeWebFormat()


def _is_message(entry: JSON) -> bool:
    if not isinstance(entry, dict):
        return False
    message = fields.mapping(entry, "message")
    return (
        fields.text(entry, "type") in _MESSAGES and fields.text(message, "role") in _MESSAGES and "content" in message
    )
