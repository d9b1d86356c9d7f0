"""What Letta Code adds to pi's entries in the conversations that it keeps on its own machine.

Every message names agent and conversation (`metadata`). A compaction has the message that is sent in its place: JSON
with the summary and the counts before and after, which are Letta Code's estimates of the messages alone; and who asked
for it (`details.stats`), with the context window that was compared. The version is in the reminder with which it tells
the model about the machine, again at the start of each of its processes.
Source: Letta Code 0.32.18 and 0.34.12, run (`messages.jsonl` with a `manifest.json` that says
`pi-session-entry-jsonl`).

Earlier versions keep the messages alone, without entries around them (`pi-ai-message-jsonl`; 0.25.9, run), and only
those that are still sent: a compaction writes the file anew, with the message in its place first. Here it is put behind
the messages that were there before it. Compactions before the last one are lost, and so is what they took out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from guard_core.events import Part, TextPart
from guard_core.recordings.reading import fields
from guard_core.recordings.reading.source import Line
from guard_core.sessions import AgentSetting
from guard_core.triggers import OVERFLOW

NAME = "Letta Code"
WINDOW_NOTE = "context_window of a compaction"
KEEPS_LAST_ALONE = AgentSetting("keeps_last_compaction_alone", 1, "the file has messages without entries around them")
LOST = "Only messages that were still sent are in the file: earlier ones, and compactions before the last, are lost."
_VERSION = re.compile(r"\*\*Letta Code version\*\*: ([0-9][\w.+-]{0,40})")
_LONGEST_REMINDER = 4_000  # characters of a text in which the version is looked for
_TRIGGERS = {"context_window_limit": "auto", "context_window_overflow": OVERFLOW}  # "manual" is called so


def is_its(entry: dict[str, Any]) -> bool:
    """Did Letta Code write an entry of a conversation."""
    return {"agent_id", "conversation_id"} <= fields.mapping(fields.mapping(entry, "message"), "metadata").keys()


def is_bare(message: dict[str, Any]) -> bool:
    """Is a line a message without an entry around it, as earlier versions of Letta Code wrote it."""
    named = {"agent_id", "conversation_id"} <= fields.mapping(message, "metadata").keys()
    return named and "type" not in message and fields.text(message, "role") in {"user", "assistant", "toolResult"}


def entries_of(lines: Iterable[Line]) -> Iterator[Line]:
    """Messages of an earlier version as the entries of a session."""
    held: Line | None = None  # the compaction, whose place is not known yet
    begun = False
    for line in lines:
        message, time = line.obj, _created_at(line.obj)
        if not begun:
            name = fields.text(fields.mapping(message, "metadata"), "conversation_id")
            yield line._replace(obj={"type": "session", "version": 3, "id": name, "timestamp": time, "cwd": ""})
            begun = True
        entry = {"type": "message", "id": message.get("id"), "timestamp": time, "message": message}
        summary = fields.mapping(fields.mapping(message, "metadata"), "compaction")
        if summary:
            stats = {"details": {"stats": summary.get("stats")}, "summary": fields.text(summary, "summary")}
            if held is not None:  # no file of one conversation has two
                yield held
            held = line._replace(obj={**entry, "type": "compaction", **stats})
            continue
        if held is not None and "firstKeptEntryId" not in held.obj:
            held.obj["firstKeptEntryId"] = message.get("id") if time < _created_at(held.obj["message"]) else None
        if held is not None and time >= _created_at(held.obj["message"]):
            yield held
            held = None
        yield line._replace(obj=entry)
    if held is not None:
        yield held


def _created_at(message: dict[str, Any]) -> str:
    return fields.text(fields.mapping(message, "metadata"), "created_at")


def sent_message(entry: dict[str, Any]) -> str:
    """The text that is sent in place of what a compaction took out, "" where the entry has none."""
    blocks = fields.objects(fields.mapping(entry, "message").get("content"))
    return next((text for block in blocks if (text := fields.text(block, "text"))), "")


def trigger(entry: dict[str, Any]) -> str:
    """Who asked for a compaction, "" where the entry does not say it."""
    word = fields.text(_stats(entry), "trigger")
    return _TRIGGERS.get(word, word)


def window(entry: dict[str, Any]) -> int | None:
    """The context window in tokens that a compaction names."""
    return fields.tokens(_stats(entry), "context_window")


def version(parts: tuple[Part, ...]) -> str:
    """The version in a message's reminders, "" where it has none."""
    texts = (part.text for part in parts if isinstance(part, TextPart) and len(part.text) <= _LONGEST_REMINDER)
    reminders = (text for text in texts if text.startswith("<system-reminder>"))
    return next((match[1] for text in reminders if (match := _VERSION.search(text))), "")


def _stats(entry: dict[str, Any]) -> dict[str, Any]:
    return fields.mapping(fields.mapping(entry, "details"), "stats")
