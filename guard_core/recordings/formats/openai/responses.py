"""OpenAI Responses: input items, response objects, logs of both, and the sessions that openai-agents keeps in SQLite.

Reasoning, text and calls that follow each other are one response and one event; every result is an event. Items have
no tokens; a response's `usage.input_tokens` includes cached ones. A `compaction` item declares a compaction whose
summary is encrypted: what precedes it is dropped, unless only user messages do (a compacted window as
the API returned it); the call of `/responses/compact` that made it is its summariser. One that the server made while
it answered (`compact_threshold`) is in that response, and the next request continues from it. A list that the API gives
newest first is turned around. With `previous_response_id` or `conversation` a request holds new items only: the history
is put together along these ids, and where the earlier response is not in the file, a note says so. Streamed responses
are put together (see `streams`), failed requests are calls without an answer. A list of responses alone (openai-agents'
`raw_responses`) holds what came back, not what was sent. `instructions` are the system prompt. A session's database has
no tokens, or sums by turn, which a note states.
Source: https://platform.openai.com/docs/api-reference/responses.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from typing import Any, NamedTuple

from msgspec.structs import replace

from guard_core.errors import DamagedRecording, LimitExceeded
from guard_core.events import Event, Part, Role, TextPart
from guard_core.plural import counted
from guard_core.recordings.base import Recording
from guard_core.recordings.formats.openai import items as responses_items
from guard_core.recordings.formats.openai import known_names
from guard_core.recordings.reading import chat, fields, log_look, log_records, normalise, wrong_kinds
from guard_core.recordings.reading.answer_limits import answer_limit
from guard_core.recordings.reading.build import FactCounter, SessionBuilder
from guard_core.recordings.reading.conversations import threads_of
from guard_core.recordings.reading.fields import JSON
from guard_core.recordings.reading.first_look import FirstLook
from guard_core.recordings.reading.requests import Declared, Request, message_key
from guard_core.recordings.reading.source import ByteSource, SourceShape
from guard_core.recordings.reading.sqlite_source import Database, tables
from guard_core.recordings.reading.threads import Thread
from guard_core.sessions import (
    ANSWERS_ONLY,
    AgentSetting,
    Evidence,
    ModelCall,
    RecordedCompaction,
    Session,
    ToolDefinition,
)
from guard_core.views import Inserted, Span, View

NAME = "openai-responses"
_OWN_CONTENT = frozenset({"input_text", "output_text", "input_image", "input_file", "refusal"})
_COUNTS = ("input_tokens", "output_tokens")
_HEADS = 50
COMPACT_THRESHOLD = "compact_threshold"  # in tokens; above it the server compacts by itself
SEALED_NOTE = "The summary is encrypted."


class ResponsesFormat:
    """Items and responses of OpenAI's Responses API."""

    name = NAME
    label = "OpenAI Responses"
    place = "input and output items"
    known_names = known_names.RESPONSES_API

    def matches(self, source: ByteSource) -> bool:
        if source.shape is SourceShape.SQLITE:
            columns = tables(source)
            return "agent_sessions" in columns and "message_data" in columns.get("agent_messages", ())
        if source.shape is SourceShape.LINES:
            return _is_ours([line.obj for line in source.head_lines()])
        if source.shape is not SourceShape.JSON:
            return False
        value = source.json_head()
        if isinstance(value, list):
            return _is_ours(value[:_HEADS])
        inner = log_records.unwrapped(value)
        return _is_record(value) or (isinstance(inner, list) and _is_ours(inner[:_HEADS]))

    def read(self, source: ByteSource) -> Recording:
        if source.shape is SourceShape.SQLITE:
            return _from_database(source)
        reader = ResponsesReader(source)
        for line, record in _records(source):
            with source.tolerate(line):
                reader.record(line, record)
        return reader.recording()

    def first_look(self, source: ByteSource) -> FirstLook | None:
        return log_look.look_at_responses(source) if source.shape is SourceShape.LINES else None


def _is_record(value: Any) -> bool:
    """Is it a response, a request body, or a log record of both?"""
    return isinstance(value, dict) and (_is_response(value) or _is_body(value) or _is_logged(value))


def _is_response(value: JSON) -> bool:
    output = value.get("output")
    known = value.get("object") == "response" or "response_id" in value or isinstance(value.get("usage"), dict)
    return isinstance(output, list) and known and all(isinstance(item, dict) and "type" in item for item in output[:5])


def _is_body(value: JSON) -> bool:
    given = value.get("input")
    known = any(key in value for key in ("model", "instructions", "previous_response_id"))
    return known and "output" not in value and (isinstance(given, str) or _is_ours(given, needs_own=False))


def _is_logged(value: JSON) -> bool:
    """Is it a record of a request with its response, an error, or nothing in the response's place?"""
    answered = any(key in value for key in ("response", "error", "response_body"))
    return answered and log_records.request_within(value, "input") is not None


def _is_ours(values: Any, *, needs_own: bool = True) -> bool:
    """Are these items or records; and does one of them have what only this API has?"""
    if not isinstance(values, list) or not values:
        return False
    known = [value for value in values if isinstance(value, dict) and (_is_item(value) or _is_record(value))]
    own = not needs_own or any(_is_record(value) or _is_own_item(value) for value in known)
    return own and len(known) * 2 > len(values)


def are_items(value: Any) -> bool:
    """Is it a list of items, at least one of which only this API has?"""
    return any(map(_is_own_item, fields.objects(value)))


def _is_item(value: JSON) -> bool:
    return _is_own_item(value) or (fields.text(value, "type") in {"", "message"} and "role" in value)


def _is_own_item(value: JSON) -> bool:
    kind = fields.text(value, "type")
    if kind in responses_items.CALLS or responses_items.is_output(kind) or responses_items.is_compaction(kind):
        return True
    if kind == "reasoning":
        return "summary" in value or "encrypted_content" in value
    return kind == "message" and any(
        fields.text(block, "type") in _OWN_CONTENT for block in fields.objects(value.get("content"))
    )


def _records(source: ByteSource) -> Iterator[tuple[int | None, JSON]]:
    value = source.json_head() if source.shape is not SourceShape.LINES else None
    if isinstance(value, dict) and _is_record(value):
        yield None, source.json()
        return
    entries = log_records.entries(source)
    yield from reversed(list(entries)) if value is not None and _is_newest_first(source) else entries


def _is_newest_first(source: ByteSource) -> bool:
    """Are items in the order in which the API lists those of a conversation or a response unless it is asked otherwise:
    results before their calls or, in a list of the API without any, an answer at the head and a question at the end."""
    calls: dict[str, int] = {}
    results: dict[str, int] = {}
    roles: list[str] = []
    for place, item in enumerate(filter(_is_item, fields.objects(source.elements(log_records.listed)))):
        if fields.text(item, "type") in responses_items.CALLS:
            calls.setdefault(fields.text(item, "call_id"), place)
        if responses_items.is_output(fields.text(item, "type")):
            results[fields.text(item, "call_id")] = place
        if _is_message(item):
            roles.append(fields.text(item, "role"))
    if pairs := [results[name] < place for name, place in calls.items() if name and name in results]:
        return sum(pairs) * 2 > len(pairs)
    value = source.json_head()
    is_page = isinstance(value, dict) and value.get("object") == "list"
    return is_page and len(roles) > 1 and (roles[0], roles[-1]) == ("assistant", "user")


def _from_database(source: ByteSource) -> Recording:
    """Every session of openai-agents' SQLiteSession (and of AdvancedSQLiteSession, which counts tokens by turn)."""
    facts = FactCounter(NAME)
    items: dict[str, list[tuple[JSON, float | None]]] = {}  # by session: several may be written at the same time
    with Database(source) as database:
        columns = ("id", "session_id", "message_data", "created_at")
        for number, row in enumerate(database.rows("agent_messages", columns, order=("id",)), start=1):
            with source.tolerate():
                item = database.json(row["message_data"], f"message {number}")
                key = str(row["session_id"] or "")
                if key not in items and len(items) >= source.limits.sessions:
                    raise LimitExceeded(f"more than {source.limits.sessions} sessions in the database")
                when = normalise.timestamp(row["created_at"])
                items.setdefault(key, []).append((item if isinstance(item, dict) else {}, when))
        turns = _turns(database)
        missing, gaps = database.wal_sentence(), database.notes
    if not items:
        raise DamagedRecording(missing or "the database holds no message")
    sessions = []
    for key in items:
        facts.session()
        log = _ItemLog(source, facts)
        for item, when in items[key]:
            with source.tolerate():
                log.item(item, None, when)
        sessions.append(log.session(source_id=key, notes=(*turns.get(key, ()), *gaps)))
    return Recording(NAME, tuple(sessions), facts.facts(), source.notes)


def _turns(database: Database) -> dict[str, tuple[str, ...]]:
    """What AdvancedSQLiteSession counted: sums over the calls of a turn, from which no single call can be derived."""
    sums: dict[str, list[int]] = {}
    for row in database.rows("turn_usage", ("session_id", "requests", "input_tokens"), order=("id",)):
        total = sums.setdefault(str(row["session_id"] or ""), [0, 0])
        total[0] += fields.tokens(row, "requests") or 0
        total[1] += fields.tokens(row, "input_tokens") or 0
    return {
        key: (f"Tokens are counted by turn only: {tokens} input tokens in {counted(requests, 'call')}.",)
        for key, (requests, tokens) in sums.items()
    }


class _ItemLog:
    """A conversation from items alone: consecutive items of the model are one response, and one call."""

    def __init__(self, source: ByteSource, facts: FactCounter) -> None:
        self.source = source
        self.facts = facts
        self.log = SessionBuilder(NAME, source)
        self.open = False  # may the last event still grow?

    def item(self, item: JSON, line: int | None, timestamp: float | None = None) -> None:
        if responses_items.is_compaction(fields.text(item, "type")):
            self._compaction(item, line)
            return
        wrong_kinds.check_words(self.source, item, "content", "a message", line)
        event = item_event(item, line)
        if event is None:
            self.source.notes.skip(f"{fields.text(item, 'type') or 'unnamed'} item")
            return
        _count(event, self.facts, is_message=_is_message(item))
        if event.role is not Role.MODEL:
            self.log.event(event.role, event.parts, line=line, source_id=event.source_id, timestamp=timestamp)
        elif self.open:
            last = self.log.events[-1]
            self.log.events[-1] = replace(last, parts=(*last.parts, *event.parts))
        else:
            call = {"line": line, "timestamp": timestamp}
            self.log.answer(event.parts, call=call, line=line, source_id=event.source_id, timestamp=timestamp)
        self.open = event.role is Role.MODEL

    def response(self, response: JSON, line: int | None) -> None:
        """A response alone: one event and one call with its usage."""
        self.open = False
        parts: list[Part] = []
        for item in fields.objects(response.get("output")):
            if responses_items.is_compaction(fields.text(item, "type")):
                self._compaction(item, line)
            elif (event := item_event(item, line)) is not None:
                _count(event, self.facts, is_message=_is_message(item))
                parts.extend(event.parts)
        call = response_call(response, line)
        if call.prompt_tokens is not None:
            self.facts.call(call.prompt_tokens)
        at = len(self.log.events)
        if parts:
            self.log.event(Role.MODEL, parts, line=line, source_id=call.source_id, timestamp=call.timestamp)
        self.log.calls.append(replace(call, at=at, response=at if parts else None))

    def _compaction(self, item: JSON, line: int | None) -> None:
        self.facts.compaction()
        at, self.open = len(self.log.events), False
        window = all(event.role is not Role.MODEL for event in self.log.outlines)
        earlier: View = (Span(0, at),) if window and at else ()
        message = Event(Role.USER, (responses_items.sealed_part(item),), fields.text(item, "id"), line, meta=True)
        base = (*earlier, Inserted(0))
        compaction = RecordedCompaction(at, Evidence.DECLARED, "opaque", base, (message,), note=SEALED_NOTE)
        self.log.compactions.append(replace(compaction, line=line))

    def session(self, **about: Any) -> Session:
        system, tools = about.pop("system", None), about.pop("tools", None)
        notes = list(about.pop("notes", ()))
        notes += [] if system else ["The system prompt is not in the file."]
        notes += [] if tools is not None else ["The schemas of the tools are not in the file."]
        return self.log.session(system=system, tools=tools, notes=tuple(notes), **about)


class _Within(NamedTuple):
    """A compaction that the server made within a response: its item, the call, and the tokens that it then had, None
    where the file does not say."""

    item: Event
    call: ModelCall
    tokens_before: int | None


class ResponsesReader:
    """Items, responses or request logs of one file, record by record."""

    def __init__(self, source: ByteSource) -> None:
        self.source = source
        self.facts = FactCounter(NAME)
        self.items = _ItemLog(source, self.facts)
        self.about: JSON = {}
        self.requests: list[Request] = []
        self.histories: dict[str, tuple[Event, ...]] = {}  # by response or conversation: all sent, and the answer
        self.answers: set[bytes] = set()  # of the responses so far
        self.missing = 0  # requests whose earlier response is not in the file
        self.answers_only = False
        self.sealed: set[bytes] = set()  # the compactions that a request has shown
        self.summariser: ModelCall | None = None  # the call that made the next one
        self.compacts = False  # does a request ask the provider to compact by itself
        self.threshold: int | None = None  # tokens above which it does, by the last request that says so
        self.within: dict[bytes, _Within] = {}  # compactions within responses that no request has shown

    def record(self, line: int | None, record: JSON) -> None:
        if _is_logged(record):
            self._logged(record, line)
        elif _is_response(record):
            self.answers_only = True
            self._describe(record)
            self.items.response(record, line)
        elif _is_body(record):
            self._describe(record)
            for item in _input_items(record):
                self.items.item(item, line)
        else:
            self.items.item(record, line)

    def _describe(self, body: JSON) -> None:
        instructions = fields.text(body, "instructions")
        self.about.setdefault("system", (TextPart(instructions),) if instructions else None)
        self.about.setdefault("tools", _tools(body))
        self.about.setdefault("model", fields.text(body, "model"))

    def _logged(self, record: JSON, line: int | None) -> None:
        body = log_records.request_within(record, "input") or {}
        response = log_records.response_of(record)
        edits = fields.objects(body.get("context_management"))
        for edit in edits:
            if fields.text(edit, "type") == "compaction":
                self.compacts = True
                threshold = fields.tokens(edit, COMPACT_THRESHOLD)
                self.threshold = self.threshold if threshold is None else threshold
        for item in _input_items(body):
            wrong_kinds.check_words(self.source, item, "content", "a message", line)
        wrong_kinds.check_counts(self.source, fields.mapping(response, "usage"), _COUNTS, "a response", line)
        call = response_call(response, line)
        if call.prompt_tokens is not None:
            self.facts.call(call.prompt_tokens)
        call = replace(call, model=call.model or fields.text(body, "model"))
        if call.timestamp is None:
            call = replace(call, timestamp=log_records.time_of(record, response))
        output = list(fields.objects(response.get("output")))
        sent, declared = self._sent(body, response, line)
        brought = grouped(output, line)
        answer = replace(_joined(brought), role=Role.MODEL, meta=False) if brought else None
        self.answers |= set() if answer is None else {message_key(answer)}
        if fields.text(response, "object") == "response.compaction":
            self.summariser, answer = call, None
        else:
            sealed = [event for event in grouped(output, line) if _is_sealed(event)]
            self.within |= {_sealed_key(event): _Within(event, call, self._tokens_before(call)) for event in sealed}
        for key in (call.source_id, _conversation(body, response)):
            if key:
                self.histories[key] = (*sent, *grouped(output, line))
        instructions = fields.text(body, "instructions")
        system = (TextPart(instructions),) if instructions else None
        head, messages = chat.split_system(sent)
        if declared is not None and declared.length is not None:
            declared = replace(declared, length=max(0, declared.length - (len(sent) - len(messages))))
        tools = _tools(body)
        is_open = answer is None and call.prompt_tokens is None
        refusal = log_records.refusal_of(record, response) if is_open else ""
        about: JSON = {"system": system or head, "tools": tools, "declared": declared, "refusal": refusal}
        self.requests.append(Request(tuple(messages), call, answer, answer_limit=answer_limit(body), **about))

    def _sent(self, body: JSON, response: JSON, line: int | None) -> tuple[list[Event], Declared | None]:
        """What the model was given: earlier responses and the new items, from the last compaction on."""
        sent = grouped(_input_items(body), line, self.answers)
        previous = fields.text(body, "previous_response_id") or fields.text(response, "previous_response_id")
        if previous:
            self.missing += previous not in self.histories
        earlier = self.histories.get(previous or _conversation(body, response), ())
        sent = [*earlier, *sent]
        at = next((at for at in range(len(sent) - 1, -1, -1) if _is_sealed(sent[at])), None)
        if at is None:
            return sent, None
        if any(event.role is Role.MODEL for event in sent[:at]):
            sent, at = sent[at:], 0
        key = _sealed_key(sent[at])
        if key in self.sealed:
            return sent, None
        self.sealed.add(key)
        within = self.within.pop(key, None)
        summariser, self.summariser = self.summariser, None
        trigger = "auto" if self.compacts and summariser is None else ""
        before = None if within is None else within.tokens_before
        return sent, Declared("opaque", at + 1, summariser, trigger, before, line=line, note=SEALED_NOTE)

    def _tokens_before(self, call: ModelCall) -> int | None:
        """The tokens at which the server compacted within a response: its input, or, where it came to the threshold
        while it answered, its output, too. Counts that are not above the threshold may be of what was left."""
        if self.threshold is None or call.prompt_tokens is None:
            return None
        counts = (call.prompt_tokens, call.prompt_tokens + (call.output_tokens or 0))
        return next((count for count in counts if count > self.threshold), None)

    def recording(self) -> Recording:
        sessions = self._threads() if self.requests else []
        if self.items.log.events or self.items.log.calls or self.items.log.compactions:
            notes = (ANSWERS_ONLY,) if self.answers_only else ()
            sessions.append(self.items.session(notes=notes, **self.about))
        if not sessions:
            raise DamagedRecording("no item can be read")
        if len(sessions) > self.source.limits.sessions:
            raise LimitExceeded(f"{len(sessions)} sessions in one file (limit {self.source.limits.sessions})")
        return Recording(NAME, tuple(sessions), self.facts.facts(), self.source.notes)

    def _threads(self) -> list[Session]:
        gap = (
            f"{counted(self.missing, 'request')} after a response that is not in the file: an incomplete history there."
        )
        notes = (gap,) if self.missing else ()
        sessions: list[Session] = []
        limit, where = self.threshold, "context_management of the requests"
        settings = () if limit is None else (AgentSetting(COMPACT_THRESHOLD, limit, where),)
        for number, thread in enumerate(threads_of(self.requests)):
            self._compact_at_end(thread)
            for event in thread.events:
                has_text = any(isinstance(part, TextPart) for part in event.parts)
                _count(event, self.facts, is_message=has_text)
            for compaction in thread.compactions:
                if compaction.evidence is Evidence.DECLARED:
                    self.facts.compaction()
            title = f"context {number + 1}" if number else ""
            sessions.append(thread.session(NAME, self.source.limits, title=title, notes=notes, settings=settings))
        return sessions

    def _compact_at_end(self, thread: Thread) -> None:
        """The compaction within the last response of a conversation, which no request has shown."""
        last = thread.calls[-1] if thread.calls else None
        same = (item for item in self.within.values() if last and _id_of(item.call) == _id_of(last))
        within, at = next(same, None), len(thread.events)
        if within is None or last is None:
            return
        answer = () if last.response is None else (Span(last.response, at),)
        compaction = RecordedCompaction(
            at, Evidence.DECLARED, "opaque", (Inserted(0), *answer), (within.item,), note=SEALED_NOTE, line=last.line
        )
        trigger = "auto" if self.compacts else ""
        thread.compactions.append(replace(compaction, trigger=trigger, tokens_before=within.tokens_before))


def _conversation(body: JSON, response: JSON) -> str:
    """The id of the conversation that the provider keeps: a request then holds its new items only."""
    places = (body.get("conversation"), response.get("conversation"))
    return next(
        (name for place in places if (name := fields.text({"id": place}, "id") or fields.text(place, "id"))), ""
    )


def _input_items(body: JSON) -> list[JSON]:
    """The items of a request; a text alone is the user's message."""
    given = body.get("input")
    return [{"role": "user", "content": given}] if isinstance(given, str) else list(fields.objects(given))


def _tools(body: JSON) -> tuple[ToolDefinition, ...] | None:
    """The tools of a request; newer ones come as an item of the input."""
    given = chat.tool_definitions(body.get("tools"))
    later = (item for item in _input_items(body) if fields.text(item, "type") == responses_items.ADDED_TOOLS)
    added = tuple(tool for item in later for tool in chat.tool_definitions(item.get("tools")) or ())
    return (*(given or ()), *added) if given is not None or added else None


def item_event(item: JSON, line: int | None = None) -> Event | None:
    """One item as an event of its own; None for kinds that hold nothing here."""
    kind, source_id = fields.text(item, "type"), fields.text(item, "id")
    if _is_message(item):
        role = chat.ROLES.get(fields.text(item, "role").lower())
        return None if role is None else Event(role, responses_items.message_parts(item), source_id, line)
    if kind == "reasoning":
        return Event(Role.MODEL, (responses_items.reasoning_part(item),), source_id, line)
    if kind in responses_items.CALLS:
        return Event(Role.MODEL, (responses_items.call_part(item, kind),), source_id, line)
    if responses_items.is_output(kind):
        return Event(Role.USER, responses_items.result_parts(item), source_id, line)
    if responses_items.is_compaction(kind):
        return Event(Role.USER, (responses_items.sealed_part(item),), source_id, line, meta=True)
    if kind.endswith("_call"):
        return Event(Role.MODEL, responses_items.hosted_parts(item, kind), source_id, line)
    return None


def grouped(items: Iterable[JSON], line: int | None = None, answers: Container[bytes] = ()) -> list[Event]:
    """Items as events, those of the model that follow each other as one, or as several of the `answers`, given by their
    `message_key`, that they are made of."""
    runs: list[list[Event]] = []
    for event in (item_event(item, line) for item in items):
        if event is not None and runs and event.role is Role.MODEL and runs[-1][0].role is Role.MODEL:
            runs[-1].append(event)
        elif event is not None:
            runs.append([event])
    return [event for run in runs for event in _answers_in(run, answers)]


def _answers_in(run: list[Event], answers: Container[bytes]) -> list[Event]:
    """The answers that items of the model are made of, the longest first; one event of all where they are not."""
    parted: list[Event] = []
    rest = run
    while len(rest) > 1 or (parted and rest):
        heads = ((_joined(rest[:stop]), stop) for stop in range(len(rest), 0, -1)) if answers else ()
        head, stop = next(((head, stop) for head, stop in heads if message_key(head) in answers), (None, 0))
        if head is None:
            return [_joined(run)]
        parted, rest = [*parted, head], rest[stop:]
    return parted or [_joined(run)]


def _joined(events: list[Event]) -> Event:
    return replace(events[0], parts=tuple(part for event in events for part in event.parts))


def _is_sealed(event: Event) -> bool:
    """Is it a compaction item: the one kind of item that is neither a message nor a result, but is not the model's?"""
    return event.role is Role.USER and event.meta


def _sealed_key(event: Event) -> bytes:
    """What distinguishes two compaction items."""
    return message_key(event) + event.source_id.encode()


def _id_of(call: ModelCall) -> tuple[str, int | None]:
    """The response of a call, by its id and line."""
    return call.source_id, call.line


def response_call(response: JSON, line: int | None = None) -> ModelCall:
    """The call that a response object is about, in the API's or in openai-agents' spelling."""
    usage = fields.mapping(response, "usage")
    details = fields.mapping(usage, "input_tokens_details")
    prompt = fields.tokens(usage, "input_tokens")
    return ModelCall(
        at=0,
        prompt_tokens=prompt,
        cached_tokens=fields.first_tokens({**usage, **details}, "cached_tokens"),
        cache_write_tokens=fields.tokens(details, "cache_write_tokens"),
        output_tokens=fields.tokens(usage, "output_tokens"),
        model=fields.text(response, "model"),
        timestamp=fields.timestamp(response, "created_at"),
        line=line,
        source_id=fields.text(response, "response_id") or fields.text(response, "id"),
    )


def _is_message(item: JSON) -> bool:
    return fields.text(item, "type") in {"", "message"} and "role" in item


def _count(event: Event, facts: FactCounter, *, is_message: bool) -> None:
    if is_message:
        facts.message()
    facts.parts(event.parts)


FORMAT = ResponsesFormat()
