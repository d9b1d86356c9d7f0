"""Session logs of Mistral Vibe before 3.0: `messages.jsonl` with `meta.json` beside it, or both in one JSON object.

A log holds the messages of one context and totals of tokens, no counts of calls. A compaction ends it: another log with
a parent begins with the message that brings the user's messages and the summary. From 2.24 on the log is kept, and that
message marked as a boundary, before which nothing is sent any more. Until 2.0 both parts were one object.
Source: vibe/core/session of https://github.com/mistralai/mistral-vibe at ac8f1a0 (2.18.4); 2.24.5 and 2.25.8, run.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from guard_core.events import Event, Part, Role, TextPart
from guard_core.recordings.formats.vibe import messages
from guard_core.recordings.reading import chat, fields, wrong_kinds
from guard_core.recordings.reading.build import FactCounter, SessionBuilder
from guard_core.recordings.reading.fields import JSON
from guard_core.recordings.reading.source import ByteSource
from guard_core.sessions import AgentSetting, Evidence, ModelCall, RecordedCompaction, Session
from guard_core.views import Inserted

BOUNDARY, COMPACTED = "context_boundary", "compaction"  # a key and its value: vibe/core/compaction/manager.py of 2.24.5
PREFIX = "Another language model started"  # of summaries from 2.12 on, before the envelope; compact_summary_prefix.md
OPENING = "<summary>"  # with which models open a summary unasked; before 2.18 nothing else marks it
OUTLINE = ("1. User's Primary Goals and Intent", "7. Immediate Next Step")  # of summaries in 1.3.5, 2.9.6; compact.md
LAST_REQUEST = "\n\nLast request from user was: "  # behind a summary; 1.3.5, vibe/core/agent.py, compact
OF_PROCESS = "{:,} prompt tokens in the calls of its last process, which are not the calls of this log."
THRESHOLD_NOTE = "auto_compact_threshold of the model in meta.json"
LOST = "The history before the compaction is in the log before this one."


def is_message(value: JSON) -> bool:
    """Is it a message as only Vibe writes it down."""
    return fields.text(value, "role") in chat.ROLES and isinstance(value.get("injected"), bool)


def is_whole(value: Any) -> bool:
    """Is it a log of before 2.0: both parts in one object."""
    metadata = fields.mapping(value, "metadata")
    return metadata.keys() >= {"session_id", "start_time"} and isinstance(value.get("messages"), list)


def is_meta(value: Any) -> bool:
    """Is it a `meta.json`."""
    return isinstance(value, dict) and value.keys() >= {"session_id", "start_time", "environment", "git_commit"}


class LogReader:
    """Takes the messages of one log in their order."""

    def __init__(self, source: ByteSource, facts: FactCounter) -> None:
        self.source = source
        self.facts = facts
        self.meta: JSON = {}
        self.system: tuple[Part, ...] = ()  # the first message, of logs that have it among theirs
        self.log = SessionBuilder("mistral-vibe", source)

    def message(self, message: JSON, line: int | None) -> None:
        """One message; those that Vibe itself put in begin no turn."""
        event = chat.chat_event(message, line=line, meta=message.get("injected") is True)
        if event is None:
            self.source.notes.skip("message of an unknown role")
            return
        self.facts.message()
        self.facts.parts(event.parts)
        begins = not len(self.log.events) and not self.log.compactions
        if begins and event.role is Role.SYSTEM:
            self.system = event.parts
            return
        if fields.text(message, BOUNDARY) == COMPACTED:
            self._boundary(event)
            return
        if not self.log.calls and not self.log.compactions and _is_summary(event, first=begins):
            self._compaction(event)
            return
        at = len(self.log.events)
        name = fields.text(message, "message_id")
        index = self.log.event(event.role, event.parts, line=line, source_id=name, meta=event.meta)
        if event.role is Role.MODEL:
            self.log.calls.append(ModelCall(at=at, response=index, line=line))

    def _compaction(self, summary: Event) -> None:
        """A log that begins with a summary, from 2.12 on behind the user's messages that were kept (2.12.1, run)."""
        self.facts.compaction()
        messages = (*self.log.events, summary)
        del self.log.events[:]
        base = tuple(map(Inserted, range(len(messages))))
        self.log.compaction(
            RecordedCompaction(0, Evidence.MATCHED, "summary", base, messages, line=summary.line, note=LOST)
        )

    def _boundary(self, summary: Event) -> None:
        """The message that a compaction put behind what it replaces."""
        self.facts.compaction()
        at = len(self.log.events)
        note = "" if at else LOST
        base, messages = (Inserted(0),), (summary,)
        self.log.compaction(
            RecordedCompaction(at, Evidence.DECLARED, "summary", base, messages, line=summary.line, note=note)
        )

    def session(self) -> Session:
        """The session when all messages are taken."""
        stats = fields.mapping(self.meta, "stats")
        config = fields.mapping(self.meta, "config") or fields.mapping(self.meta, "agent_config")  # of 1.3.5
        wrong_kinds.check_counts(self.source, stats, ("session_prompt_tokens", "steps"), "meta.json")
        total, steps = fields.tokens(stats, "session_prompt_tokens"), fields.tokens(stats, "steps")
        prompt = fields.plain_text(fields.mapping(self.meta, "system_prompt").get("content"))
        system = (TextPart(prompt),) if prompt else self.system
        notes = ["Mistral Vibe records tokens per session only, before 3.0."]
        calls = self._calls_of(steps) if total and steps else None
        if total and calls is None:
            notes.append(OF_PROCESS.format(total))
        if not system:
            notes.append("The system prompt is not in the file.")
        return self.log.session(
            system=system or None,
            tools=chat.tool_definitions(self.meta.get("tools_available")),
            agent="Mistral Vibe",
            source_id=fields.text(self.meta, "session_id"),
            parent=fields.text(self.meta, "parent_session_id"),
            title=fields.text(self.meta, "title"),
            model=fields.text(config, "active_model"),
            started_at=fields.timestamp(self.meta, "start_time"),
            settings=_settings(config),
            prompt_tokens_total=total if calls else None,
            total_calls=calls,
            notes=tuple(notes),
        )

    def _calls_of(self, steps: int) -> int | None:
        """How many calls the tokens were counted of; None where these are not the calls of this log. Vibe counts as
        steps the user's messages and its requests for a summary, too, since its process began (1.3.5 to 2.22.0)."""
        asked = sum(event.role is Role.USER and event.starts_turn() for event in self.log.outlines)
        calls = len(self.log.calls)
        return calls if calls and steps == asked + calls and not self.log.compactions else None


def _is_summary(event: Event, *, first: bool) -> bool:
    """Is it a message with a summary; one that is not the log's first only by the words that Vibe itself opens with."""
    texts = [part.text for part in event.parts if isinstance(part, TextPart)]
    return event.role is Role.USER and any(
        text.startswith(PREFIX) or (first and _has_words_of_summary(text)) for text in texts
    )


def _has_words_of_summary(text: str) -> bool:
    return (
        text.rstrip().endswith(messages.SUMMARY_END)
        or text.startswith(OPENING)
        or LAST_REQUEST in text
        or all(heading in text for heading in OUTLINE)
    )


def _settings(config: JSON) -> tuple[AgentSetting, ...]:
    """The threshold of the active model, by its alias or name, else that of all models; 0 where it is switched off.
    2.22.0 writes models by their aliases, earlier versions a list of them."""
    active, models = fields.text(config, "active_model"), config.get("models")
    own: Iterable[JSON] = fields.objects(list(models.values()) if isinstance(models, dict) else models)
    chosen = (model for model in own if active in (fields.text(model, "alias"), fields.text(model, "name")))
    stated = (fields.tokens(holder, "auto_compact_threshold") for holder in (next(chosen, {}), config))
    value = next((value for value in stated if value is not None), None)
    return () if value is None else (AgentSetting("auto_compact_threshold", value, THRESHOLD_NOTE),)
