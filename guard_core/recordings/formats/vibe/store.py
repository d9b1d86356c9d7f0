"""A session of Mistral Vibe's store (3.0) from its files: journals, chunks and `meta.json`, or any of them alone."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from guard_core.events import Event, Role, TextPart, part_text
from guard_core.plural import counted
from guard_core.recordings.formats.vibe import journal, messages
from guard_core.recordings.formats.vibe.history import VibeHistory, before, is_entry, merged
from guard_core.recordings.formats.vibe.journal import JournalReader
from guard_core.recordings.reading import chat, fields
from guard_core.recordings.reading.build import FactCounter
from guard_core.recordings.reading.conversations import threads_of
from guard_core.recordings.reading.fields import JSON
from guard_core.recordings.reading.requests import Request
from guard_core.recordings.reading.source import ByteSource, Line
from guard_core.recordings.reading.threads import Thread
from guard_core.recordings.reading.versions import single
from guard_core.sessions import AgentSetting, ModelCall, RecordedCompaction, Session

BEFORE = "{} before the journal {} no tokens in the file; tools that began at one moment count as one call."
BEGINS = "The journal begins at a snapshot: of what came before, its first request shows what was still sent."


def is_chunk(value: object) -> bool:
    """Is it a chunk of entries or of the context's messages."""
    if not isinstance(value, list):
        return False
    first = next(fields.objects(value), {})
    return is_entry(first) or is_context(first)


def is_context(value: JSON) -> bool:
    """Is it a message of the context as a snapshot has it."""
    return value.keys() >= {"message", "source", "turn_index"}


class StoreReader:
    """Takes the files of one session in any order; journals in the order of their names."""

    def __init__(self, source: ByteSource, facts: FactCounter) -> None:
        self.source = source
        self.facts = facts
        self.journal = JournalReader(source, facts)
        self.meta: JSON = {}
        self.store_format: int | None = None  # its minor number in CURRENT
        self.settings: tuple[AgentSetting, ...] = ()  # of the latest generation
        self._entries: list[JSON] = []
        self._contexts: list[tuple[Event, ...]] = []

    def line(self, line: Line) -> None:
        """A record of a journal."""
        self.journal.line(line)

    def chunk(self, value: object) -> None:
        """A chunk: entries, or the messages of a context."""
        items = list(fields.objects(value))
        self._entries += [item for item in items if is_entry(item)]
        inner = [messages.message_event(fields.mapping(item, "message")) for item in items if is_context(item)]
        events = [event for event in inner if event is not None]
        if events:
            self._contexts.append(tuple(chat.split_system(events)[1]))

    def current(self, value: JSON) -> None:
        """CURRENT, which names the generation and the format."""
        self.store_format = fields.tokens(value, "store_format_minor")

    def runtime_state(self, value: JSON) -> None:
        """The state of a generation, with the settings of the harness; generations in their order."""
        self.settings = journal.threshold_of(fields.mapping(value, "core_settings"), "runtime state") or self.settings

    def sessions(self) -> list[Session]:
        """The session, and those of sub-agents in its journal; none where nothing was sent."""
        self.journal.finish()
        entries = merged([*self._entries, *self.journal.entries])
        requests, notes = self._requests(entries)
        if not requests:
            return []
        threads = threads_of(requests)
        return [self._session(thread, number, notes) for number, thread in enumerate(threads)]

    def _requests(self, entries: list[JSON]) -> tuple[list[Request], list[str]]:
        """All requests in their order, and what is to be said of those before the journal."""
        own = self.journal.requests
        sent = own[0].messages if own else self._last_context(entries)
        envelope = sent[0] if messages.compacted_length(sent) else None
        earlier = before(entries, self.journal.started_at) if own else entries
        keeps_round = (self.store_format or 0) >= journal.CORRECTED_STORE or self.journal.is_corrected
        history = VibeHistory(earlier, envelope, keeps_round=keeps_round)
        for request in history.requests:
            if request.declared is not None:
                self.facts.compaction()
        past, declared = history.continued(sent)
        if not own and not past:  # a chunk of a context alone
            past = [
                Request(sent[:at], ModelCall(at=0), sent[at]) for at in range(len(sent)) if sent[at].role is Role.MODEL
            ]
        answered = [place for place, request in enumerate(past) if request.response is not None]
        if not own:
            return past, _notes_before(past)
        if answered and (usage := journal.counts(self.journal.known_usage)):
            place = answered[-1]
            past[place] = msgspec.structs.replace(past[place], call=msgspec.structs.replace(past[place].call, **usage))
            self.facts.call(usage["prompt_tokens"])
        notes = _notes_before(past)
        if declared is not None:
            self.facts.compaction()
            own = [msgspec.structs.replace(own[0], declared=declared), *own[1:]]
        return [*past, *own], notes or ([BEGINS] if len(sent) > 1 else [])

    @property
    def _version(self) -> str:
        """The number of the store's format, in place of the agent's version, which the store does not have."""
        known = journal.CORRECTED_STORE if self.journal.is_corrected else None
        number = self.store_format or known
        return "" if number is None else f"store {number}"

    def _last_context(self, entries: list[JSON]) -> tuple[Event, ...]:
        """Of the snapshots' contexts the one that ends as the entries do, else the longest."""
        answers = [
            fields.plain_text(entry.get("content")) for entry in entries if fields.text(entry, "role") == "assistant"
        ]
        last = answers[-1] if answers else ""
        ending: list[tuple[Event, ...]] = []
        for context in self._contexts if last else ():
            parts = context[-1].parts if context else ()
            if any(isinstance(part, TextPart) and part_text(part).strip() == last.strip() for part in parts):
                ending.append(context)
        return max(ending or self._contexts, key=len, default=())

    def _session(self, thread: Thread, number: int, notes: Iterable[str]) -> Session:
        for event in thread.events:
            self.facts.message()
            self.facts.parts(event.parts)
        config = fields.mapping(self.meta, "config")
        name = fields.text(self.meta, "session_id") or self.journal.session_id
        remarks = [*notes] if not number else []
        if thread.system is None:
            remarks.append("The system prompt is not in the file.")
        if thread.tools is None:
            remarks.append("The schemas of the tools are not in the file.")
        thread.compactions = [_with_pending(item, self.journal.pending) for item in thread.compactions]
        if not number:
            thread.side_calls.extend(self.journal.side_calls)
        return thread.session(
            "mistral-vibe",
            self.source.limits,
            agent="Mistral Vibe",
            source_id=f"{name} {number + 1}" if number else name,
            parent=name if number else fields.text(self.meta, "parent_session_id"),
            title=fields.text(self.meta, "title"),
            model=fields.text(config, "model_name") or fields.text(config, "active_model"),
            started_at=fields.timestamp(self.meta, "start_time") or thread.calls[0].timestamp,
            settings=() if number else self.journal.settings or self.settings,
            versions=single(self._version),
            notes=tuple(remarks),
        )


def _with_pending(item: RecordedCompaction, pending: dict[str, int | None]) -> RecordedCompaction:
    """A compaction of the journal with the tokens that were pending; its summariser is known where its tokens are."""
    summariser = item.summariser
    pending_tokens = pending.get("" if summariser is None else summariser.source_id) or None
    known = summariser is not None and summariser.prompt_tokens is not None
    return msgspec.structs.replace(item, pending_tokens=pending_tokens, summariser=summariser if known else None)


def _notes_before(past: list[Request]) -> list[str]:
    """What is to be said of the calls before the journal; the last of them may have its tokens."""
    answered = [request.call for request in past if request.response is not None]
    lacking = sum(call.prompt_tokens is None for call in answered)
    return [BEFORE.format(counted(lacking, "call"), "has" if lacking == 1 else "have")] if past else []
