"""Gemini CLI chats: one JSON object (to early 2026), a patch log in JSON Lines (now), a checkpoint, or a stream.

In the patch log a message may be written again under its id (the last one counts: first without, then with its tool
calls), `$set` changes fields, `$set.messages` replaces the whole history and `$rewindTo` takes back a message and all
behind it. Prompt tokens are `tokens.input`, cached ones included. Compactions are not marked: a replaced history that
holds a new `<state_snapshot>` is an inferred one, with the messages it kept as its tail. A history replaced without a
new snapshot (a session resumed, where results are repeated) is an inferred edit, and no compaction in the facts, unless
the prompt tokens fell with it. Where 0.61.0 masks old results, it writes all messages once more, under new ids and
without tokens, and then the list of them: an edit, too, and no calls, also where it repeats a summary. Older files have
the results of tools inside the calls only; they become the message that the API got. Notices (`info`, `error`,
`warning`) are not sent, and versions to 0.42 do not write compressions down: a note says where prompt tokens fell. One
object has answers in a row that only call tools as one message, with the tokens of the first of them (0.10.0 and
0.30.0, run); the calls of each answer have one time, by which they are parted here. A file of a resumed session may
begin with a history that another file holds. What `--output-format stream-json` and `json` print has tokens for the
whole run only. Neither the system prompt nor the tools are in the file.
Source: https://github.com/google-gemini/gemini-cli, packages/core/src/services/chatRecordingService.ts.
"""

from __future__ import annotations

from typing import Any

from guard_core.recordings.base import Recording
from guard_core.recordings.formats.gemini import look as gemini_look
from guard_core.recordings.formats.gemini import result as gemini_json
from guard_core.recordings.formats.gemini import stream as gemini_stream
from guard_core.recordings.formats.gemini.chat import NAME, GeminiChatReader, read_chats
from guard_core.recordings.formats.gemini.known_names import NAMES
from guard_core.recordings.formats.gemini.records import NOTICES, SPEAKERS
from guard_core.recordings.reading import fields
from guard_core.recordings.reading.first_look import FirstLook
from guard_core.recordings.reading.source import ByteSource, SourceShape


class GeminiFormat:
    """Chats that the Gemini CLI recorded or saved."""

    name = NAME
    label = "Gemini CLI"
    place = "~/.gemini/tmp/…/chats/*.json"
    known_names = NAMES

    def matches(self, source: ByteSource) -> bool:
        if source.shape is SourceShape.LINES:
            heads = [line.obj for line in source.head_lines()]
            header = any("projectHash" in obj and "sessionId" in obj for obj in heads)
            patches = sum("$set" in obj or "$rewindTo" in obj for obj in heads)
            kinds = [fields.text(obj, "type") for obj in heads if "content" in obj and "id" in obj]
            messages = sum(kind in SPEAKERS | NOTICES for kind in kinds)
            is_patched = patches > 0 and (patches + messages) * 2 > len(heads)
            return header or is_patched or gemini_stream.is_stream(heads)
        if source.shape is not SourceShape.JSON:
            return False
        value = source.json_head()
        if isinstance(value, dict):
            chat = ("projectHash" in value and "sessionId" in value) or _is_checkpoint(value.get("history"))
            return chat or gemini_json.is_result(value)
        return _is_checkpoint(value)

    def read(self, source: ByteSource) -> Recording:
        if source.shape is SourceShape.LINES and gemini_stream.is_stream([line.obj for line in source.head_lines()]):
            return gemini_stream.read_stream(source, NAME)
        if source.shape is SourceShape.JSON and gemini_json.is_result(source.json_head()):
            return gemini_json.read_result(source, NAME)
        return read_chats(source, GeminiChatReader)

    def first_look(self, source: ByteSource) -> FirstLook | None:
        return gemini_look.look(source) if source.shape is SourceShape.LINES else None


def _is_checkpoint(value: Any) -> bool:
    heads = value[:20] if isinstance(value, list) else []
    return bool(heads) and all(
        isinstance(item, dict) and item.get("role") in ("user", "model") and isinstance(item.get("parts"), list)
        for item in heads
    )


FORMAT = GeminiFormat()
