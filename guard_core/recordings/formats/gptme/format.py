"""gptme's conversations: `conversation.jsonl`, one message a line, and the views beside it.

A line has `role`, `content` and `timestamp`, and whatever else a message has. `metadata.usage` of an answer counts the
tokens of its request: `input_tokens` without what was read from the cache or written to it (older versions have the
counts in `metadata` itself). Calls of tools are `@name(id): {…}` at the beginning of a line, outside of fenced blocks,
as gptme itself finds them; calls in its other notations are text. A result is a system message with the `call_id`. The
system messages at the head are the system prompt; later ones are sent in the user's name, those that are `ui_only` not
at all. Schemas of tools are not in the file.
A compaction leaves `conversation.jsonl` as it is and writes a view, `views/compacted-001.jsonl`, which is sent from
then on and has the messages that follow, too. A message that is only displayed names it; of the conversation's folder
or its archive the reader takes what was sent from the view. For a checkpoint gptme asks within the conversation, and
that question and its answer are not in the view. Without the views, `input_log_messages` of an answer, how many
messages were before it in what was sent from, proves one where it is fewer than in the file, and what it holds is not
known. A view that was made after a refused request is named nowhere in the conversation. A view that is read alone, and
a conversation that `/compact` replaced, begin with what was made of the earlier messages.
Source: gptme 0.35.1 (`message.py`, `tools/base.py`, `util/context_measurement.py`, `tools/autocompact`), run.
"""

from __future__ import annotations

import re

from guard_core.recordings.base import Recording
from guard_core.recordings.formats.gptme.conversation import COUNTS, NAME, ConversationReader
from guard_core.recordings.formats.gptme.messages import ROLES
from guard_core.recordings.reading import fields
from guard_core.recordings.reading.build import FactCounter
from guard_core.recordings.reading.bundle import Bundle
from guard_core.recordings.reading.fields import JSON
from guard_core.recordings.reading.known_names import Names, words
from guard_core.recordings.reading.source import ByteSource, SourceShape
from guard_core.recordings.reading.zip_entries import entry_names
from guard_core.sessions import Session

_CONVERSATION = re.compile(r"(?:^|(?P<folder>.*)/)conversation\.jsonl$")
_VIEW = re.compile(r"(?P<folder>.*)/?views/(?P<name>compacted-[0-9]+)\.jsonl$")
_KEYS = words(
    "role content timestamp files file_hashes pinned hide quiet ui_only ephemeral_ttl call_id metadata"
)  # of a message, in every version that was read
_OWN = words("pinned hide ui_only ephemeral_ttl file_hashes")  # of these, what only gptme writes
_OWN_METADATA = words("input_log_messages input_log_digest cache_read_tokens compaction_artifact")

_KNOWN_NAMES = Names(
    usage=words("usage"),
    counts=frozenset(COUNTS),
    beside=frozenset(COUNTS),
    holders=words("metadata"),
    tools=words("tool"),
    passed_over=words("timings artifacts panel_hints file_hashes anthropic_compaction_block voice_call"),
)


class GptmeFormat:
    """Reads gptme's conversations."""

    name = NAME
    label = "gptme"
    place = "~/.local/share/gptme/logs/…, a folder or its zip archive"
    known_names = _KNOWN_NAMES

    def matches(self, source: ByteSource) -> bool:
        """Every line is a message with the keys of gptme's alone, and one has what only gptme writes. An archive holds
        conversations with their views."""
        if source.shape is SourceShape.ZIP:
            with source.stream() as stream:
                return bool(_conversations(entry_names(stream, source.size)))
        if source.shape not in (SourceShape.LINES, SourceShape.JSON):
            return False
        heads = [line.obj for line in source.head_lines()]
        return bool(heads) and all(map(_is_message, heads)) and any(map(_is_own, heads))

    def read(self, source: ByteSource) -> Recording:
        facts = FactCounter(NAME)
        if source.shape is SourceShape.ZIP:
            sessions = _archived(source, facts)
        else:
            reader = ConversationReader(source, facts, first=True)
            reader.read(source)
            sessions = reader.sessions(self.label)
        if not sessions:
            raise source.nothing_left("a conversation of gptme without any message")
        return Recording(NAME, tuple(sessions), facts.facts(), source.notes)


FORMAT = GptmeFormat()


def _conversations(names: list[str]) -> dict[str, dict[str, str]]:
    """The conversations of an archive that have views, each with the files of these by their names."""
    views: dict[str, dict[str, str]] = {}
    for name in names:
        if match := _VIEW.fullmatch(name):
            views.setdefault(match["folder"].rstrip("/"), {})[match["name"]] = name
    matches = ((name, _CONVERSATION.fullmatch(name)) for name in sorted(names))
    return {name: views[match["folder"] or ""] for name, match in matches if match and (match["folder"] or "") in views}


def _archived(source: ByteSource, facts: FactCounter) -> list[Session]:
    """Every conversation of an archive; a damaged one does not stop the others."""
    sessions: list[Session] = []
    with Bundle(source) as bundle:
        for name, views in _conversations(bundle.names()).items():
            facts.session()
            with source.apart(sessions), source.tolerate(), bundle.open(name) as part:
                if part is not None:
                    reader = ConversationReader(source, facts, bundle=bundle, views=views)
                    reader.read(part)
                    sessions += reader.sessions(FORMAT.label)
    return sessions


def _is_message(value: JSON) -> bool:
    """No version of gptme leaves one of these keys out of a message, or has one that `_KEYS` lacks."""
    return {"role", "content", "timestamp"} <= value.keys() <= _KEYS and fields.text(value, "role") in ROLES


def _is_own(value: JSON) -> bool:
    """Has a message what only gptme writes; of older versions the counts are in `metadata` itself."""
    metadata = fields.mapping(value, "metadata")
    keys = {*metadata, *fields.mapping(metadata, "usage")}
    return bool(_OWN & value.keys() or _OWN_METADATA & keys)
