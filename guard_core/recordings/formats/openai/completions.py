"""OpenAI Chat Completions: a bare array of messages, a wrapped one (`messages`, `tools`, `model`), or request logs.

A log has `{request, response}` (or what a proxy calls them, see `log_records`) per line or in an array; a response
may be a stream's pieces (see `streams`), a record of its own behind its request, or missing (an error). Each request
repeats the history, so the conversation is rebuilt from the requests, and the usage of a call is where its
messages end; prompt tokens are `usage.prompt_tokens`, cached ones included. A request that does not extend the one
before shows that the history was compacted or edited in between: an inferred compaction, which the facts leave out,
for the file does not declare it. Calls that share no history are contexts of their own, or side calls. `arguments`
may be no valid JSON (kept as text); ids may be empty or repeated (results are then paired by order); `content` may
be null, text or parts. System messages at the head are the system prompt. A bare array has no tokens: its calls are
the assistant messages. Responses alone (`chat.completion` objects, a batch's output) hold what came back, not what
was sent. Of several choices the first is the answer, unless the next request continues another.
Source: https://platform.openai.com/docs/api-reference/chat.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from itertools import pairwise
from typing import Any

from msgspec.structs import replace

from guard_core.errors import DamagedRecording, LimitExceeded
from guard_core.events import Event, Part, Role, ToolCallPart, ToolResultPart, value_text
from guard_core.recordings.base import Recording
from guard_core.recordings.formats.openai import known_names
from guard_core.recordings.reading import chat, fields, log_look, log_records, streams, wrong_kinds
from guard_core.recordings.reading.answer_limits import answer_limit
from guard_core.recordings.reading.build import FactCounter, SessionBuilder
from guard_core.recordings.reading.conversations import threads_of
from guard_core.recordings.reading.fields import JSON
from guard_core.recordings.reading.first_look import FirstLook
from guard_core.recordings.reading.requests import Request
from guard_core.recordings.reading.source import ByteSource, SourceShape
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
from guard_core.triggers import is_counted
from guard_core.views import Inserted

NAME = "openai-chat"
_HEADS = 20  # messages looked at to recognise a chat
_COUNTS = ("prompt_tokens", "completion_tokens", "input_tokens", "output_tokens")
# Where a message or a record may have counts, and what may be around those of a message.
_COUNTED = ("usage", "metrics", "token_usage")
_AROUND = ("metadata", "meta", "response_metadata")
# What an answer has that is an error, by API and proxy.
_FAILURE = frozenset(("error", "errors", "message", "detail", "details", "type", "code", "status", "statusCode"))
_PIECES = ("chunk", "data", "event")  # what a log calls one piece of a stream


class ChatCompletionsFormat:
    """Chat messages and logs of chat requests."""

    name = NAME
    label = "OpenAI chat messages"
    place = "messages, or request and response logs"
    known_names = known_names.CHAT_COMPLETIONS

    def matches(self, source: ByteSource) -> bool:
        if source.shape is SourceShape.LINES:
            heads = [line.obj for line in source.head_lines()]
            return sum(map(_is_record, heads)) * 2 > len(heads)
        if source.shape is not SourceShape.JSON:
            return False
        value = log_records.unwrapped(source.json_head())
        if isinstance(value, list):
            heads = [item for item in value[:_HEADS] if isinstance(item, dict)]
            return bool(heads) and sum(map(_is_record, heads)) * 2 > len(value[:_HEADS])
        return isinstance(value, dict) and not is_message(value) and _is_record(value)

    def read(self, source: ByteSource) -> Recording:
        return ChatReader(source).read()

    def first_look(self, source: ByteSource) -> FirstLook | None:
        return log_look.look(source, usage_of) if source.shape is SourceShape.LINES else None


def is_message(value: Any) -> bool:
    """Is it one chat message?"""
    if not isinstance(value, dict) or fields.text(value, "role").lower() not in chat.ROLES:
        return False
    return any(key in value for key in ("content", "tool_calls", "function_call", "refusal", "audio"))


def _is_record(value: JSON) -> bool:
    if is_message(value) or any(map(is_message, _messages(value)[:_HEADS])):
        return True
    # A response, a record that holds only a response, or a piece of one.
    response = piece_of(value) or (value if "choices" in value else log_records.response_of(value))
    return any("message" in choice or "delta" in choice for choice in fields.objects(response.get("choices")))


def _messages(record: JSON) -> list[Any]:
    return fields.items(log_records.request_of(record), "messages")


def piece_of(record: JSON) -> JSON | None:
    """The piece of a stream that a record is, or that is in it."""
    places = (record, *map(record.get, _PIECES))
    return next((piece for piece in places if isinstance(piece, dict) and streams.is_piece(piece)), None)


class ChatReader:
    """Messages, wrapped messages or request logs of one file, record by record; another provider's spelling overrides.

    A message that many requests repeat is made into an event once.
    """

    name = NAME

    def __init__(self, source: ByteSource) -> None:
        self.source = source
        self.facts = FactCounter(self.name)
        self._known: dict[bytes, Event | None] = {}
        self._returned: dict[int, Event] = {}  # by identity of the event: the results in its calls, behind it
        self._usages: dict[int, JSON] = {}  # by identity of the event: usage that a message carries itself
        self._messages: list[Event] = []
        self._requests: list[Request] = []
        self._heads: list[int] = []  # system messages at the head of each request
        self._answered = False
        self._logged: set[str] = set()
        self._waiting: dict[str, int] = {}  # requests without a response, by the id of their record
        self._pieces: dict[str, list[JSON]] = {}  # of streams that are records of their own, by id
        self._lone: list[tuple[ModelCall, Event | None]] = []  # responses whose request is not in the file

    def read(self) -> Recording:
        """All records of the file as a recording."""
        for line, record in log_records.entries(self.source):
            with self.source.tolerate(line):
                self.record(line, record)
        return self.recording()

    def make_event(self, message: JSON, line: int | None) -> Event | None:
        """The event of one message; None for a role that no chat has."""
        return chat.chat_event(message, line=line)

    def usage(self, usage: JSON) -> JSON:
        """Counts of a response's usage as fields of ModelCall; empty where it says nothing."""
        return usage_of(usage)

    def answer(self, response: JSON) -> JSON | None:
        """The message that a response holds: the first of several choices."""
        choices = [choice for choice in fields.objects(response.get("choices")) if fields.mapping(choice, "message")]
        for _ in choices[1:]:
            self.source.notes.skip("further choice of an answer")
        if choices:
            return fields.mapping(min(choices, key=lambda choice: fields.tokens(choice, "index") or 0), "message")
        inner = fields.mapping(response, "message") or response
        return inner if is_message(inner) else None

    def system_of(self, body: JSON) -> tuple[Part, ...] | None:
        """A system prompt besides the messages."""
        return None

    def note_settings(self, body: JSON) -> None:
        """A request body, for what it asks the provider to change in the messages; chats ask for nothing."""

    def window(self, request: Request) -> Request:
        """The request as the model was given it; another provider may leave out what a compaction replaced."""
        return request

    def compaction_in(self, event: Event) -> tuple[Event, Event] | None:
        """The summary of a compaction that a message declares, and the rest of the message; chats declare none."""
        return None

    def settings(self) -> tuple[AgentSetting, ...]:
        """What the requests of a log ask the provider to compact or clear; chats ask for nothing."""
        return ()

    def remarks(self) -> list[str]:
        """Notes about a log besides those that every log may have."""
        return []

    def record(self, line: int | None, record: JSON) -> None:
        if is_message(record):
            self._take_back(fields.text(record, "tool_call_id"))
            self._messages.extend(self._events([record], line))
        elif (piece := piece_of(record)) is not None:
            if fields.text(piece, "type") == "message_start":
                self._end_streams()
            self._pieces.setdefault(fields.text(piece, "id"), []).append(piece)
        elif _messages(record):
            self._ask(line, record)
        elif response := record if "choices" in record else log_records.response_of(record):
            self._answer(line, record, response)
        else:
            self.source.notes.skip("record without messages")

    def recording(self) -> Recording:
        self._end_streams()
        if self._messages:
            system, messages = chat.split_system(self._messages)
            self._heads.append(len(self._messages) - len(messages))
            self._requests.append(Request(tuple(messages), ModelCall(at=0), system=system))
        if not self._requests and not self._lone:
            raise DamagedRecording("no message can be read")
        self.mend_counts(self._requests)
        for call in (*(request.call for request in self._requests), *(call for call, _ in self._lone)):
            if call.prompt_tokens is not None:
                self.facts.call(call.prompt_tokens)
        log = self._answered or (len(self._requests) > 1 and _is_one_history(self._requests))
        if not log:
            self.facts.message(sum(self._heads))
        sessions = self._threads() if log else [self._conversation(request) for request in self._requests]
        if self._lone:
            sessions.append(self._answers_alone())
        if len(sessions) > self.source.limits.sessions:
            raise LimitExceeded(f"{len(sessions)} sessions in one file (limit {self.source.limits.sessions})")
        return Recording(self.name, tuple(sessions), self.facts.facts(), self.source.notes)

    def mend_counts(self, requests: list[Request]) -> None:
        """Mend counts, in place, that only all requests together show to be wrong."""

    def _ask(self, line: int | None, record: JSON) -> None:
        """A request, with its response where that is in the same record."""
        self._end_streams()
        response = log_records.response_of(record)
        if set(response) in ({"input_tokens"}, {"input_tokens", "context_management"}):
            self.source.notes.skip("request that only counts tokens")
            return
        if self._is_repeat(record, response):
            self.source.notes.folded += 1
            return
        if log_records.is_damaged(record):
            self.source.notes.problem("a response that is neither JSON nor a stream", line)
        if not response:
            self._waiting[log_records.id_of(record)] = len(self._requests)
        self._requests.append(self._request(line, record, response))

    def _is_repeat(self, record: JSON, response: JSON) -> bool:
        """Was this very response logged before? Ids alone do not show it: some servers give every response the same."""
        identity = (
            response.get("id"),
            response.get("usage"),
            log_records.time_of(record, response),
            len(messages := _messages(record)),
            messages[-1] if messages else None,
        )
        key = value_text(identity)
        known = key in self._logged
        self._logged.add(key)
        return known and bool(fields.text(response, "id"))

    def _answer(self, line: int | None, record: JSON, response: JSON) -> None:
        """A response that is a record of its own: of the request with its id, else of the last one that waits."""
        at = self._waiting.pop(log_records.id_of(record), None)
        if at is None and self._waiting:
            at = self._waiting.popitem()[1]
        if at is None:
            call = self._call(line, record, {}, response)
            self._lone.append((call, self._answer_event(response, line)))
            return
        request = self._requests[at]
        call = self._call(line, record, {"model": request.call.model}, response)
        if request.call.timestamp is not None:
            call = replace(call, timestamp=request.call.timestamp)
        self._answered = True
        self._requests[at] = replace(request, call=call, response=self._answer_event(response, line))

    def _end_streams(self) -> None:
        pieces, self._pieces = self._pieces, {}
        for stream in pieces.values():
            self._answer(None, {}, streams.joined(stream))

    def _events(self, messages: Iterable[Any], line: int | None) -> list[Event]:
        listed = list(wrong_kinds.objects(self.source, iter(messages), "message", line))
        answered = {name for message in listed if (name := fields.text(message, "tool_call_id"))}
        events: list[Event] = []
        for message in listed:
            event = self._event(message, line)
            events += [event] if event is not None else []
            if event is not None and "tool_calls" in message:
                events += self._results(message, event, answered)
        return events

    def _results(self, message: JSON, event: Event, answered: set[str]) -> list[Event]:
        """The event of the results that a log keeps in the calls of a message, but for those that follow it as messages
        of their own; none where it keeps none."""
        parts = chat.results_within(message)
        parts = tuple(part for part in parts if isinstance(part, ToolResultPart) and part.call_id not in answered)
        if not parts:
            return []
        known = self._returned.get(id(event))
        if known is None or known.parts != parts:
            self._returned[id(event)] = known = Event(Role.USER, parts, line=event.line)
        return [known]

    def _take_back(self, call_id: str) -> None:
        """Take the result of a call out of the messages of a list, where its call kept it: a message of its own has
        it."""
        if not call_id or not self._returned:
            return
        for at in range(len(self._messages) - 1, -1, -1):
            event = self._messages[at]
            if event.role is not Role.MODEL:
                continue
            within, behind = self._returned.get(id(event)), at + 1
            if within is not None and behind < len(self._messages) and self._messages[behind] is within:
                parts = tuple(part for part in within.parts if getattr(part, "call_id", "") != call_id)
                self._returned[id(event)] = rest = replace(within, parts=parts)
                self._messages[behind : behind + 1] = [rest] if parts else []
            return

    def _event(self, message: JSON, line: int | None) -> Event | None:
        key = blake2b(value_text(message).encode("utf-8", "replace"), digest_size=16).digest()
        if key not in self._known:
            wrong_kinds.check_words(self.source, message, "content", "a message", line)
            self._known[key] = built = self.make_event(message, line)
            places = (message, *(fields.mapping(message, key) for key in _AROUND))
            own = next((own for place in places for key in _COUNTED if (own := fields.mapping(place, key))), {})
            if built is not None and own:
                self._usages[id(built)] = self.usage(own)
        event = self._known[key]
        if event is None:
            self.source.notes.skip("message of an unknown role")
        return event

    def _request(self, line: int | None, record: JSON, response: JSON) -> Request:
        body = log_records.request_of(record)
        self.note_settings(body)
        call = self._call(line, record, body, response)
        self._answered |= bool(response) or call.prompt_tokens is not None
        events = self._events(fields.items(body, "messages"), line)
        system, messages = chat.split_system(events)
        self._heads.append(len(events) - len(messages))
        event = self._answer_event(response, line)
        if event is None and response and call.prompt_tokens is None and _FAILURE.isdisjoint(response):
            named = ", ".join(ascii(key[:40])[1:-1] for key in list(response)[:5])
            self.source.notes.problem(
                f"a response without a message that is known here (it has {named}), left out", line
            )
        if event is None and call.prompt_tokens is not None and messages and messages[-1].role is Role.MODEL:
            event = messages.pop()  # some proxies write the answer behind the messages it answers
        is_open = event is None and call.prompt_tokens is None
        refusal = log_records.refusal_of(record, response) if is_open else ""
        self._answered |= bool(refusal)
        system = self.system_of(body) or system
        about: JSON = {"system": system, "tools": _tools(body), "refusal": refusal, "answer_limit": answer_limit(body)}
        return Request(tuple(messages), call, event, **about)

    def _call(self, line: int | None, record: JSON, body: JSON, response: JSON) -> ModelCall:
        """The call that a request and its response are."""
        beside = (fields.mapping(record, key) for key in _COUNTED)
        places = (fields.mapping(response, "usage"), *beside, response, record)
        wrong_kinds.check_counts(self.source, places[0], _COUNTS, "a response", line)
        usage = next((counts for place in places if (counts := self.usage(place))), {})
        if not response and not usage.get("prompt_tokens"):
            usage = {}  # a failed request that a proxy counted as 0 tokens
        return ModelCall(
            at=0,
            model=fields.text(response, "model") or fields.text(body, "model"),
            timestamp=log_records.time_of(record, response),
            line=line,
            source_id=fields.text(response, "id") or log_records.id_of(record),
            **usage,
        )

    def _answer_event(self, response: JSON, line: int | None) -> Event | None:
        answer = self.answer(response)
        return self._event(answer, line) if answer is not None else None

    def _conversation(self, request: Request) -> Session:
        """One conversation of messages alone: its calls are its assistant messages."""
        self.facts.session()
        self._count(request.messages)
        log = SessionBuilder(self.name, self.source)
        for original, event in zip(request.messages, unique_ids(request.messages), strict=True):
            if (compaction := self.compaction_in(event)) is not None:
                summary, event = compaction
                at = len(log.events)
                log.compaction(RecordedCompaction(at, Evidence.DECLARED, "summary", (Inserted(0),), (summary,)))
                self.facts.compaction()
            if event.role is Role.MODEL:
                usage = self._usages.get(id(original), {})
                if usage:
                    self.facts.call(usage["prompt_tokens"])
                call = {"line": event.line, **usage}
                log.answer(event.parts, call=call, line=event.line, source_id=event.source_id)
            else:
                log.event(event.role, event.parts, line=event.line, source_id=event.source_id)
        return log.session(
            system=request.system,
            tools=request.tools,
            model=request.call.model,
            source_id=request.call.source_id,
            notes=_missing(request.system, request.tools),
        )

    def _answers_alone(self) -> Session:
        """What came back from the model, in its order."""
        log = SessionBuilder(self.name, self.source)
        answers = [event for _, event in self._lone if event is not None]
        self._count(answers)
        events = iter(unique_ids(answers))
        for call, answer in self._lone:
            at = len(log.events)
            if answer is not None:
                event = next(events)
                log.event(Role.MODEL, event.parts, line=event.line, timestamp=call.timestamp, source_id=call.source_id)
            log.calls.append(replace(call, at=at, response=at if answer is not None else None))
        return log.session(notes=(ANSWERS_ONLY, *_missing(None, None)))

    def _threads(self) -> list[Session]:
        threads = threads_of([self.window(request) for request in _by_time(self._requests)])
        self.facts.message(max(self._heads) * sum(thread.system is not None for thread in threads))
        for thread in threads:
            for compaction in thread.compactions:
                if compaction.evidence is Evidence.DECLARED and is_counted(compaction):
                    self.facts.compaction()
            inserted = {id(event): event for compaction in thread.compactions for event in compaction.own_messages}
            self._count([*thread.events, *inserted.values()])
        return [self._session(thread, number) for number, thread in enumerate(threads)]

    def _session(self, thread: Thread, number: int) -> Session:
        thread.events[:] = unique_ids(thread.events)
        title = f"context {number + 1}" if number else ""
        notes = [*_missing(thread.system, thread.tools), *self.remarks()]
        if failed := sum(call.response is None for call in thread.calls) + thread.failed_again:
            notes.append(
                "1 request has no answer in the file: it failed, or its answer was not kept."
                if failed == 1
                else f"{failed:,} requests have no answer in the file: they failed, or their answer was not kept."
            )
        if beside := len(thread.side_calls) - thread.failed_again:
            notes.append(
                "1 request is not part of the conversation: its tokens are counted, not its messages."
                if beside == 1
                else f"{beside:,} requests are not part of the conversation: their tokens are counted, not their "
                "messages."
            )
        limits, settings = self.source.limits, self.settings()
        return thread.session(self.name, limits, title=title, notes=tuple(notes), settings=settings)

    def _count(self, events: Iterable[Event]) -> None:
        for event in events:
            self.facts.message()
            self.facts.parts(event.parts)


def _missing(system: tuple[Part, ...] | None, tools: Any) -> tuple[str, ...]:
    notes = [] if system is not None else ["There is no system message in the file."]
    return (*notes, *([] if tools is not None else ["The schemas of the tools are not in the file."]))


def _tools(body: JSON) -> tuple[ToolDefinition, ...] | None:
    """The tools of a request, where the API or a proxy (litellm) puts them."""
    places = (body, fields.mapping(body, "optional_params"), fields.mapping(body, "model_parameters"))
    listed = (place.get(key) for place in places for key in ("tools", "functions"))
    return chat.tool_definitions(next((tools for tools in listed if isinstance(tools, list)), None))


def usage_of(usage: JSON) -> JSON:
    """Counts of a usage object as fields of ModelCall; empty where it says nothing.

    Servers other than OpenAI's write cached tokens otherwise: DeepSeek, Moonshot, litellm (as Anthropic), OpenRouter
    those that it wrote to the cache; Ollama has names of its own for all, and Langfuse.
    """
    if (observed := _observed(usage)) is not None:
        return observed
    prompt = fields.first_tokens(usage, "prompt_tokens", "input_tokens", "promptTokens", "prompt_eval_count")
    if prompt is None:
        return {}
    details = fields.mapping(usage, "prompt_tokens_details") or fields.mapping(usage, "input_tokens_details")
    cached = fields.first_tokens(details, "cached_tokens")
    beside = ("cache_read_input_tokens", "prompt_cache_hit_tokens", "cached_tokens")
    written = fields.first_tokens(details, "cache_creation_tokens", "cache_write_tokens")
    return {
        "prompt_tokens": prompt,
        "cached_tokens": cached if cached is not None else fields.first_tokens(usage, *beside),
        "cache_write_tokens": written if written is not None else fields.tokens(usage, "cache_creation_input_tokens"),
        "output_tokens": fields.first_tokens(
            usage, "completion_tokens", "output_tokens", "completionTokens", "eval_count"
        ),
    }


# Of Vertex AI's models Langfuse's handler for LangChain takes cached tokens out of the input, and names them so:
# `_parse_usage_model` of `CallbackHandler.py`, github langfuse/langfuse-python.
_CACHED_BESIDE = "cached_modality_"


def _observed(record: JSON) -> JSON | None:
    """Counts of a Langfuse observation: every kind of `usageDetails` whose name has `input` in it is a part of the
    prompt; before there were kinds, `usage` had a unit. None where it is no such observation.

    Source: https://langfuse.com/docs/observability/features/token-and-cost-tracking.
    """
    details, usage = fields.mapping(record, "usageDetails"), fields.mapping(record, "usage")
    if not details and fields.text(usage, "unit") == "TOKENS":
        details = usage
    counts = {kind: count for kind in details if (count := fields.tokens(details, kind)) is not None}
    prompt = [kind for kind in counts if "input" in kind.lower()]
    if not prompt:
        return None
    prompt += [kind for kind in counts if kind.startswith(_CACHED_BESIDE)]
    written = [kind for kind in prompt if "cache" in kind and ("creation" in kind or "write" in kind)]
    cached = [kind for kind in prompt if "cache" in kind and kind not in written]
    output = [kind for kind in counts if "output" in kind.lower()]
    return {
        "prompt_tokens": sum(counts[kind] for kind in prompt),
        "cached_tokens": sum(counts[kind] for kind in cached) if cached else None,
        "cache_write_tokens": sum(counts[kind] for kind in written) if written else None,
        "output_tokens": sum(counts[kind] for kind in output) if output else None,
    }


def _by_time(requests: list[Request]) -> list[Request]:
    """Requests in the order in which they were sent: proxies write a record when its answer has been handled. In that
    of the file where by their times fewer would extend the one before: a clock was set back."""
    times = [request.call.timestamp for request in requests]
    if None in times:
        return requests
    ordered = sorted(requests, key=lambda request: request.call.timestamp or 0.0)
    return requests if _extensions(requests) > _extensions(ordered) else ordered


def _extensions(requests: list[Request]) -> int:
    """How many requests have, as far as their first and last common message show, those of the one before and more."""
    sent = [[id(event) for event in request.messages] for request in requests]
    return sum(
        0 < len(one) < len(other) and (one[0], one[-1]) == (other[0], other[len(one) - 1])
        for one, other in pairwise(sent)
    )


def _is_one_history(requests: list[Request]) -> bool:
    """Do most requests begin as the one before did: one history growing, not separate conversations?"""
    openings = [[id(event) for event in request.messages[:2]] for request in requests]
    return sum(one == other for one, other in pairwise(openings)) * 2 > len(openings)


def unique_ids(events: Iterable[Event]) -> list[Event]:
    """Events in which no two calls have one id; a result belongs to the first open call of its id in the newest message
    that has one, for an id is used again after calls that were never answered."""
    seen: dict[str, int] = {}
    waiting: dict[str, dict[int, list[str]]] = {}  # by id and number of the message, oldest first
    renamed: list[Event] = []
    for number, event in enumerate(events):
        if not any(isinstance(part, ToolCallPart | ToolResultPart) for part in event.parts):
            renamed.append(event)
            continue
        renamed.append(replace(event, parts=tuple(_renamed(part, number, seen, waiting) for part in event.parts)))
    return renamed


def _renamed(part: Part, number: int, seen: dict[str, int], waiting: dict[str, dict[int, list[str]]]) -> Part:
    if isinstance(part, ToolCallPart) and part.id:
        count = seen[part.id] = seen.get(part.id, 0) + 1
        new = part.id if count == 1 else f"{part.id}#{count}"
        waiting.setdefault(part.id, {}).setdefault(number, []).append(new)
        return replace(part, id=new)
    if isinstance(part, ToolResultPart) and (calls := waiting.get(part.call_id)):
        newest = next(reversed(calls))
        answered = calls[newest].pop(0)
        if not calls[newest]:
            del calls[newest]
        return replace(part, call_id=answered)
    return part


FORMAT = ChatCompletionsFormat()
