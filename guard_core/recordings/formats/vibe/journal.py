"""The journal of Mistral Vibe's session store (3.0): every request to the model with its messages, and what came back.

An `action_intent` of the kind completion brings a request, whose messages replace or extend those of the one before;
its `action_result` the answer and its usage. Prompt tokens are `input_tokens`, cached ones included. The purpose
"compaction" is the call of the summariser; the next request shows what it left. What the summariser is sent may lack
the oldest rounds (2.26.1) or the last results (3.0.3): what was compacted is the agent's last request, its answer and
the results since. A journal begins at a snapshot of the store, so that older requests are only in its chunks.
"""

from __future__ import annotations

from typing import Any

import msgspec

from guard_core.events import Event, Part, Role, value_text
from guard_core.recordings.formats.vibe import estimate, messages
from guard_core.recordings.formats.vibe.estimate import VibeRequest
from guard_core.recordings.reading import chat, fields
from guard_core.recordings.reading.build import FactCounter
from guard_core.recordings.reading.fields import JSON
from guard_core.recordings.reading.requests import Declared, Request
from guard_core.recordings.reading.source import ByteSource, Line
from guard_core.sessions import AgentSetting, ModelCall, ToolDefinition

THRESHOLD_NOTE = "{} in the settings of the {}"
# The format of the store that 3.0.3 writes, the first that counts `cache_write_tokens`: store_format_minor of CURRENT.
CORRECTED_STORE, CORRECTED_USAGE = 10, "cache_write_tokens"
AGENT, COMPACTION = "agent", "compaction"  # purposes of requests
DISABLED = "disabled"  # the mode of a harness that never compacts by itself


class _OpenRequest(msgspec.Struct):
    """A request without its answer so far."""

    messages: tuple[Event, ...]
    system: tuple[Part, ...] | None
    line: int
    purpose: str
    trigger: str = ""
    size: VibeRequest | None = None
    pending: int | None = None


class JournalReader:
    """Takes the records of the journals of one session in their order."""

    def __init__(self, source: ByteSource, facts: FactCounter) -> None:
        self.source = source
        self.facts = facts
        self.requests: list[Request] = []
        self.side_calls: list[ModelCall] = []
        self.settings: tuple[AgentSetting, ...] = ()
        self.session_id = ""
        self.started_at: float | None = None  # of the journal's first record
        self.entries: list[JSON] = []  # of the public history, in which an id may occur again
        self.known_usage: JSON = {}  # that of the last answer before the journal
        self._tools: tuple[ToolDefinition, ...] | None = None
        self._sent: list[Event] = []
        self._system: tuple[Part, ...] | None = None
        self._open: dict[str, _OpenRequest] = {}
        self.pending: dict[str, int | None] = {}  # tokens pending at each compaction, by its action
        self.is_corrected = False  # it was written by 3.0.3 or later
        self._size = VibeRequest()
        self._last: VibeRequest | None = None  # the agent's last request, if it was counted and not compacted since
        self._asked: tuple[Event, ...] = ()  # the agent's last request in any case, and what was pending in it
        self._waiting: int | None = None
        self._is_answered = False
        self._results: dict[str, str] = {}  # what tools gave back since then, by the id of the call
        self._declared: Declared | None = None
        self._failed = False

    def line(self, line: Line) -> None:
        """One record."""
        kind, payload = fields.text(line.obj, "type"), fields.mapping(line.obj, "payload")
        if kind == "action_intent" and fields.text(payload, "kind") == "completion":
            self._intent(fields.mapping(payload, "request"), fields.text(payload, "action_id"), line.number)
        elif kind == "action_result":
            self._result(fields.mapping(payload, "result"), line.number)
        elif kind == "core_input":
            self._input(payload)
        elif kind == "projection_delta":
            self._projection(payload)
        elif kind != "action_intent":
            self.source.notes.skip(f"record {kind[:40] or 'without a type'}")

    def finish(self) -> None:
        """All records are taken: requests without an answer show what was sent."""
        for action, opened in self._open.items():
            self.source.notes.skip("request without an answer")
            if opened.purpose == AGENT:
                call = ModelCall(at=0, line=opened.line, source_id=action)
                self._add(Request(opened.messages, call, system=opened.system, tools=self._tools))
        self._open.clear()

    # -- requests

    def _intent(self, request: JSON, action: str, line: int) -> None:
        model_input = fields.mapping(request, "model_input")
        sent = fields.mapping(model_input, "messages")
        items, is_whole = list(fields.objects(sent.get("messages"))), fields.text(sent, "type") != "append"
        events = _events(items, line)
        if is_whole:
            system, self._sent = chat.split_system(events)
            self._system = system or self._system
        else:
            self._sent.extend(events)
        catalog = fields.mapping(model_input, "tool_catalog")
        self._tools = chat.tool_definitions(catalog.get("tools")) or self._tools
        self._size = self._size.with_request(items, catalog.get("tools"), is_whole=is_whole)
        purpose = fields.text(request, "purpose") or AGENT
        opened = _OpenRequest(
            tuple(self._sent), self._system, line, purpose, fields.text(request, "trigger"), self._size
        )
        if purpose == AGENT:
            opened.pending = self._pending(estimate.since_answer(items), self._size)
            self._asked, self._waiting = opened.messages, opened.pending
            self._is_answered, self._results = False, {}
        elif purpose == COMPACTION:
            opened.messages, opened.pending = self._compacted(items[:-1], opened.messages[:-1], line)
        self._open[action] = opened

    def _compacted(
        self, items: list[JSON], shown: tuple[Event, ...], line: int
    ) -> tuple[tuple[Event, ...], int | None]:
        """The context that a compaction replaces and the tokens pending in it; `items` are what the summariser is sent
        of it, without its instruction, and `shown` their events."""
        if not self._is_answered:
            return self._asked or shown, self._waiting
        since = [self._with_result(item) for item in estimate.since_answer(items)]
        pending = self._pending(since, self._last.with_request(since)) if self._last else None
        return (*self._asked, *_events(since, line)), pending

    def _with_result(self, item: JSON) -> JSON:
        """A message with the result that the tool really gave back, where it is another text."""
        result = self._results.get(fields.text(item, "tool_call_id"))
        return item if result is None else {**item, "content": [{"type": "text", "text": result}]}

    def _pending(self, since: list[JSON], sent: VibeRequest) -> int | None:
        """How many tokens Vibe's count has above the total of the last answer, None where there is none to go by.
        `since` are the messages from that answer on, `sent` all of them."""
        return None if self._last is None else self._last.pending(since, sent, is_corrected=self.is_corrected)

    def _result(self, result: JSON, line: int) -> None:
        """The result of a completion waits for the record that has its time; other results are those of tools."""
        action = fields.text(result, "action_id")
        if action in self._open:
            self._answered(action, result, line)
        elif (text := value_text(fields.mapping(result, "result").get("structured_content"))) != "":
            self._results[fields.text(result, "call_id")] = text

    def _answered(self, action: str, result: JSON, line: int) -> None:
        opened, body = self._open.pop(action), fields.mapping(result, "result")
        usage = fields.mapping(body, "usage")
        self.is_corrected |= CORRECTED_USAGE in usage
        call = ModelCall(
            at=0, line=opened.line, source_id=action, pending_tokens=opened.pending or None, **counts(usage)
        )
        parts = messages.answer_parts(body.get("parts"))
        if not parts and call.prompt_tokens is None:
            self._failed = opened.purpose != COMPACTION
            self.source.notes.skip("request without an answer")
            return
        if call.prompt_tokens:
            self.facts.call(call.prompt_tokens)
        if opened.purpose == COMPACTION:
            trigger = "overflow" if self._failed and opened.trigger == "automatic" else opened.trigger
            self._declared = Declared(trigger=trigger, summariser=call, line=opened.line)
            self.pending[action], self._last = opened.pending, None
            self.requests.append(Request(opened.messages, call))  # it shows the last results
            self.facts.compaction()
        elif opened.purpose != AGENT:
            self.side_calls.append(call)
        else:
            response = Event(Role.MODEL, parts, line=line) if parts else None
            self._is_answered = True
            self._last = opened.size and opened.size.counted(call.prompt_tokens, call.output_tokens)
            self._add(Request(opened.messages, call, response, system=opened.system, tools=self._tools))
        self._failed = False

    def _add(self, request: Request) -> None:
        declared, self._declared = self._declared, None
        if declared is not None:
            length = messages.compacted_length(request.messages)
            anew = (0,) if length and request.messages[0].meta else ()  # the message before the user's
            declared = msgspec.structs.replace(declared, length=length, anew=anew)
        self.requests.append(msgspec.structs.replace(request, declared=declared))

    # -- what stands beside them

    def _input(self, payload: JSON) -> None:
        settings = fields.mapping(payload, "checkpoint_settings")
        self.settings = threshold_of(settings, "journal") or self.settings
        source = fields.mapping(payload, "input")
        time = fields.timestamp(fields.mapping(source, "determinism"), "time_unix_ms")
        self.started_at = self.started_at or time
        action = fields.text(fields.mapping(source, "command"), "action_id")
        if self.requests and action and self.requests[-1].call.source_id == action:
            request = self.requests[-1]
            response = request.response and msgspec.structs.replace(request.response, timestamp=time)
            call = msgspec.structs.replace(request.call, timestamp=time)
            self.requests[-1] = msgspec.structs.replace(request, call=call, response=response)

    def _projection(self, payload: JSON) -> None:
        for change in fields.objects(payload.get("delta")):
            if entry := fields.mapping(change, "entry"):
                self.entries.append(entry)
                self.session_id = self.session_id or fields.text(entry, "sessionId")
            session = fields.mapping(fields.mapping(change, "state"), "session")
            self.session_id = self.session_id or fields.text(session, "id")
            if not self.requests and not self.known_usage:
                self.known_usage = fields.mapping(session, "contextUsage")


def threshold_of(settings: JSON, place: str) -> tuple[AgentSetting, ...]:
    """The threshold in the settings of the harness: of 3.0.3 among the facts of the model, before it by itself; 0 where
    it is switched off, as versions to 3.0.2 can be."""
    context = fields.mapping(settings, "context")
    policy = fields.mapping(context, COMPACTION)
    of_policy = 0 if fields.text(policy, "mode") == DISABLED else fields.tokens(policy, "token_threshold")
    of_model = fields.tokens(fields.mapping(context, "model_facts"), "compaction_threshold")
    stated = (("compaction_threshold", of_model), ("token_threshold", of_policy))
    named = ((THRESHOLD_NOTE.format(name, place), value) for name, value in stated if value is not None)
    return tuple(AgentSetting("auto_compact_threshold", value, note) for note, value in named)[:1]


def _events(items: list[JSON], line: int) -> list[Event]:
    return [event for item in items if (event := messages.message_event(item, line)) is not None]


def counts(usage: JSON) -> dict[str, Any]:
    """Counts of a usage as fields of ModelCall, in the spelling of the provider or of the public state."""
    prompt = fields.first_tokens(usage, "input_tokens", "inputTokens")
    if not prompt:
        return {}
    return {
        "prompt_tokens": prompt,
        "cached_tokens": fields.first_tokens(usage, "cached_input_tokens", "cachedInputTokens"),
        "output_tokens": fields.first_tokens(usage, "output_tokens", "outputTokens"),
    }
