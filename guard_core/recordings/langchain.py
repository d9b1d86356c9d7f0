"""LangChain message lists and LangSmith runs: one session per list, or per thread of runs.

Definitions: `langchain_core.messages` (`messages_to_dict`, `dumpd`) and https://docs.langchain.com/langsmith/run-data-format.
Messages appear as `{type, data}`, as serialised constructors `{lc, id, kwargs}` and flat; `usage_metadata.input_tokens`
of an answer includes cached tokens, `response_metadata` is read where it is missing. Calls that could not be parsed
(`invalid_tool_calls`) keep their raw arguments. A list that begins with the summarization middleware's own message
(`lc_source`, or its wording, which is only a match) goes on after a compaction whose history is not in the file.
Of runs only those of type llm (or chat_model) and tool are read: chains repeat the same messages over and over. A run
belongs to the thread named in its metadata (`thread_id`, `session_id`, `conversation_id`), else to its trace. A
request's messages are in `inputs.messages`; where a run has only rendered `prompts`, they are taken from the chain
around it when its text is found in the prompt, else from the prompts themselves. Child runs may be nested. Facts count
calls with usage and, for runs, tool runs as calls and results.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from guard_core.errors import DamagedRecording
from guard_core.events import Event, Part, Role, TextPart, ToolCallPart, ToolResultPart
from guard_core.recordings import chat, fields
from guard_core.recordings.base import Recording
from guard_core.recordings.build import FactCounter, SessionBuilder
from guard_core.recordings.fields import JSON
from guard_core.recordings.requests import Request, threads_of
from guard_core.recordings.source import Shape, Source
from guard_core.sessions import Evidence, ModelCall, RecordedCompaction, Session, ToolDefinition
from guard_core.views import Inserted

KINDS = {
    "human": Role.USER,
    "user": Role.USER,
    "ai": Role.MODEL,
    "assistant": Role.MODEL,
    "system": Role.SYSTEM,
    "developer": Role.SYSTEM,
    "tool": Role.USER,
    "function": Role.USER,
    "chat": Role.USER,
}
MODEL_RUNS = frozenset({"llm", "chat_model"})
THREAD_KEYS = ("thread_id", "session_id", "conversation_id")
SUMMARY_WORDS = "Here is a summary of the conversation to date:"  # langchain's SummarizationMiddleware
RUN_DEPTH = 64  # runs nested in runs
_TURN = re.compile(r"(?:^|\n)(System|Human|AI|Tool|Function): ")


class LangChainFormat:
    name = "langchain"
    label = "LangChain"

    def matches(self, source: Source) -> bool:
        if source.shape is Shape.JSON:
            value = source.json(allow_nan=True)
            if isinstance(value, dict) and _is_run(value):
                return True
            listed = _listed(value)
            return any(_is_run(item) for item in listed[:20]) or _is_messages(listed)
        return any(_is_run(line.obj) for line in source.head_lines())

    def read(self, source: Source) -> Recording:
        facts = FactCounter(self.name)
        value = source.json(allow_nan=True) if source.shape is Shape.JSON else None
        listed = _listed(value) if value is not None else []
        if value is not None and not (isinstance(value, dict) and _is_run(value)) and _is_messages(listed):
            sessions = [_read_messages(source, listed, facts)]
        else:
            runs = _Runs(source, _all_runs(source, value, listed))
            sessions = runs.sessions(facts)
        if not sessions:
            raise DamagedRecording("the LangChain file holds no calls of a model")
        return Recording(self.name, tuple(sessions), facts.facts(), source.notes)


FORMAT = LangChainFormat()


def _listed(value: Any) -> list[Any]:
    if isinstance(value, dict):
        value = value.get("messages", value.get("runs"))
    return value if isinstance(value, list) else []


def _is_run(value: Any) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("run_type"), str):
        return False
    return "trace_id" in value or "dotted_order" in value or "child_runs" in value or "parent_run_id" in value


def _is_messages(listed: list[Any]) -> bool:
    head = list(fields.objects(listed[:10]))
    return bool(head) and all(_is_message(item) for item in head)


def _is_message(value: JSON) -> bool:
    if isinstance(value.get("lc"), int) and isinstance(value.get("kwargs"), dict):
        return _kind(value) in KINDS
    kind = _kind(value)
    if isinstance(value.get("data"), dict):
        return kind in KINDS
    own = any(
        key in value for key in ("additional_kwargs", "response_metadata", "usage_metadata", "invalid_tool_calls")
    )
    return kind in {"human", "ai", "tool", "system"} and "content" in value and (own or "role" not in value)


# -- messages


def _body(message: JSON) -> JSON:
    return fields.mapping(message, "data") or fields.mapping(message, "kwargs") or message


def _kind(message: JSON) -> str:
    """human, ai, system, tool, …, from the type, the role or the class name, chunks included."""
    body = _body(message)
    constructor = message.get("id")
    name = fields.text(message, "type")
    if name in {"", "constructor"}:
        name = fields.text(body, "type") or fields.text(body, "role")
    if not name and isinstance(constructor, list) and constructor and isinstance(constructor[-1], str):
        name = constructor[-1]
    return name.removesuffix("Chunk").removesuffix("Message").lower()


def _event(message: Any) -> Event | None:
    if isinstance(message, str):
        return Event(Role.USER, (TextPart(message),))
    if isinstance(message, list) and len(message) == 2 and all(isinstance(item, str) for item in message):
        message = {"type": message[0], "content": message[1]}
    if not isinstance(message, dict):
        return None
    kind = _kind(message)
    role = KINDS.get(kind)
    if role is None:
        return None
    body = _body(message)
    parts = chat.result_parts(body) if kind in chat.RESULT_ROLES else _parts(body)
    return Event(role, parts, source_id=fields.text(body, "id"))


def _parts(body: JSON) -> tuple[Part, ...]:
    extra = fields.mapping(body, "additional_kwargs")
    reasoning = fields.text(extra, "reasoning_content")
    head = fields.content_parts([{"type": "reasoning", "text": reasoning}]) if reasoning else ()
    calls = list(fields.objects(body.get("tool_calls"))) or list(fields.objects(extra.get("tool_calls")))
    invalid = fields.objects(body.get("invalid_tool_calls"))
    made = [chat.tool_call(item) for item in (*calls, *invalid)]
    return (*head, *fields.content_parts(body.get("content")), *made)


def _usage(body: JSON) -> dict[str, Any]:
    """The usage of an answer, as fields of ModelCall."""
    usage = fields.mapping(body, "usage_metadata")
    if usage:
        details = fields.mapping(usage, "input_token_details")
        return {
            "prompt_tokens": fields.tokens(usage, "input_tokens"),
            "cached_tokens": fields.tokens(details, "cache_read"),
            "cache_write_tokens": fields.tokens(details, "cache_creation"),
            "output_tokens": fields.tokens(usage, "output_tokens"),
        }
    metadata = fields.mapping(body, "response_metadata")
    return _provider_usage(fields.mapping(metadata, "token_usage") or fields.mapping(metadata, "usage"))


def _provider_usage(usage: JSON) -> dict[str, Any]:
    """Usage in the provider's own words: OpenAI's includes cached tokens, Anthropic's does not."""
    output = fields.first_tokens(usage, "completion_tokens", "output_tokens")
    prompt = fields.tokens(usage, "prompt_tokens")
    if prompt is None and (fresh := fields.tokens(usage, "input_tokens")) is not None:
        read = fields.tokens(usage, "cache_read_input_tokens")
        written = fields.tokens(usage, "cache_creation_input_tokens")
        cache = {"cached_tokens": read, "cache_write_tokens": written}
        return {"prompt_tokens": fresh + (read or 0) + (written or 0), "output_tokens": output, **cache}
    cached = fields.tokens(fields.mapping(usage, "prompt_tokens_details"), "cached_tokens")
    return {"prompt_tokens": prompt, "cached_tokens": cached, "output_tokens": output}


def _model(body: JSON) -> str:
    metadata = fields.mapping(body, "response_metadata")
    return fields.text(metadata, "model_name") or fields.text(metadata, "model")


def _read_messages(source: Source, listed: list[Any], facts: FactCounter) -> Session:
    builder = SessionBuilder("langchain", source)
    system: tuple[Part, ...] | None = None
    for message in fields.objects(listed):
        event = _event(message)
        if event is None:
            source.notes.skip(f"message of type {_kind(message)[:40] or 'none'}")
            continue
        facts.message()
        _count(event, facts)
        body = _body(message)
        if event.role is Role.SYSTEM and not builder.events and system is None:
            system = event.parts
        elif not builder.events and (evidence := _summary_evidence(body, event)) is not None:
            builder.compactions.append(_earlier_compaction(event, evidence))
        elif event.role is Role.MODEL:
            usage = _usage(body)
            if usage.get("prompt_tokens") is not None:
                facts.call(usage["prompt_tokens"])
            call = {**usage, "model": _model(body), "source_id": event.source_id}
            builder.answer(event.parts, call=call, source_id=event.source_id)
        else:
            builder.event(event.role, event.parts, source_id=event.source_id)
    return builder.session(system=system, agent="LangChain")


def _count(event: Event, facts: FactCounter) -> None:
    for part in event.parts:
        if isinstance(part, ToolCallPart):
            facts.tool_call(part.id)
        elif isinstance(part, ToolResultPart):
            facts.tool_result(part.call_id, len(part.content) if isinstance(part.content, str) else 0)


def _summary_evidence(body: JSON, event: Event) -> Evidence | None:
    if event.role is not Role.USER:
        return None
    if fields.text(fields.mapping(body, "additional_kwargs"), "lc_source") == "summarization":
        return Evidence.DECLARED
    first = event.parts[0] if event.parts else None
    matched = isinstance(first, TextPart) and first.text.startswith(SUMMARY_WORDS)
    return Evidence.MATCHED if matched else None


def _earlier_compaction(event: Event, evidence: Evidence) -> RecordedCompaction:
    note = "The history before the summary is not in the file."
    message = msgspec.structs.replace(event, meta=True)
    return RecordedCompaction(0, evidence, "summary", (Inserted(0),), (message,), note=note)


# -- runs


def _all_runs(source: Source, value: Any, listed: list[Any]) -> Iterator[tuple[JSON, int | None]]:
    if value is not None:
        roots = [value] if isinstance(value, dict) and _is_run(value) else list(fields.objects(listed))
        yield from ((run, None) for root in roots for run in _with_children(root, 0))
        return
    for line in source.lines():
        yield from ((run, line.number) for run in _with_children(line.obj, 0))


def _with_children(run: JSON, depth: int) -> Iterator[JSON]:
    yield run
    if depth < RUN_DEPTH:
        for child in fields.objects(run.get("child_runs")):
            child.setdefault("parent_run_id", run.get("id"))
            child.setdefault("trace_id", run.get("trace_id") or run.get("id"))
            yield from _with_children(child, depth + 1)


class _Runs:
    """The model and tool runs of a file; chains are kept only as far as a model run may need their messages."""

    def __init__(self, source: Source, runs: Iterable[tuple[JSON, int | None]]) -> None:
        self._source = source
        self._models: list[tuple[JSON, int | None]] = []
        self._tools: list[JSON] = []
        self._parents: dict[str, str] = {}
        self._chain_messages: dict[str, list[Any]] = {}
        self._known: dict[str, Event] = {}  # by first text: what prompts repeat as text only
        seen: set[str] = set()
        for run, line in runs:
            name = fields.text(run, "id")
            if name and name in seen:
                source.notes.folded += 1
                continue
            seen.add(name)
            self._sort(run, line)
        self._models.sort(key=lambda item: _order(item[0]))
        self._tools.sort(key=_order)

    def sessions(self, facts: FactCounter) -> list[Session]:
        for run in self._tools:
            output = fields.mapping(run, "outputs").get("output")
            facts.tool_call(fields.text(run, "id"))
            facts.tool_result(fields.text(run, "id"), len(output) if isinstance(output, str) else 0)
        groups: dict[str, list[Request]] = {}
        for run, line in self._models:
            if (request := self._request(run, line, groups)) is not None:
                if request.call.prompt_tokens is not None:
                    facts.call(request.call.prompt_tokens)
                groups.setdefault(_thread(run), []).append(request)
        return [session for key, requests in groups.items() for session in self._of_thread(key, requests)]

    def _sort(self, run: JSON, line: int | None) -> None:
        kind, name = fields.text(run, "run_type"), fields.text(run, "id")
        self._parents[name] = fields.text(run, "parent_run_id")
        if kind in MODEL_RUNS:
            self._models.append((run, line))
        elif kind == "tool":
            self._tools.append(run)
        else:
            self._source.notes.skip(f"{kind[:40] or 'other'} run")
            messages = fields.mapping(run, "inputs").get("messages")
            if isinstance(messages, list) and messages:
                self._chain_messages[name] = messages

    def _of_thread(self, key: str, requests: list[Request]) -> Iterator[Session]:
        for number, thread in enumerate(threads_of(requests)):
            if number == 0:
                last = thread.calls[-1].timestamp or 0.0
                asked = _asked(thread.events)
                for run in self._tools:
                    event = _tool_event(run)
                    results = [
                        part for part in event.parts if isinstance(part, ToolResultPart) and part.call_id in asked
                    ]
                    if results and (event.timestamp or 0.0) >= last:
                        thread.events.append(event)
            title = "LangSmith thread" if number == 0 else f"LangSmith thread · context {number + 1}"
            yield thread.session(
                "langchain", self._source.limits, agent=thread.agent or "LangChain", source_id=key, title=title
            )

    def _request(self, run: JSON, line: int | None, groups: dict[str, list[Request]]) -> Request | None:
        outputs = fields.mapping(run, "outputs")
        answer = _answer(outputs)
        if answer is None:
            self._source.notes.skip("model run without an answer")
            return None
        before = groups.get(_thread(run), [])
        system, messages = chat.split_system(self._messages(run, before))
        body, event = answer
        start = fields.timestamp(run, "start_time")
        usage = _usage(body)
        if usage.get("prompt_tokens") is None:
            usage = _provider_usage(fields.mapping(fields.mapping(outputs, "llm_output"), "token_usage"))
        parameters = fields.mapping(fields.mapping(run, "extra"), "invocation_params")
        model = _model(body) or fields.text(parameters, "model") or fields.text(parameters, "model_name")
        call = ModelCall(at=0, **usage, model=model, timestamp=start, line=line, source_id=fields.text(run, "id"))
        response = msgspec.structs.replace(event, timestamp=fields.timestamp(run, "end_time") or start, line=line)
        return Request(tuple(messages), call, response, system=system, tools=_tools(parameters))

    def _messages(self, run: JSON, before: list[Request]) -> list[Event]:
        inputs = fields.mapping(run, "inputs")
        listed = inputs.get("messages")
        if isinstance(listed, list) and listed:
            nested = listed[0] if isinstance(listed[0], list) and not _is_pair(listed[0]) else listed
            return [event for item in nested if (event := _event(item)) is not None]
        prompt = next((item for item in fields.items(inputs, "prompts") if isinstance(item, str)), "")
        return self._from_chain(run, prompt) or self._from_prompt(prompt, before)

    def _from_chain(self, run: JSON, prompt: str) -> list[Event]:
        """The messages of the nearest chain around a run whose first and last text stand in its prompt."""
        name = self._parents.get(fields.text(run, "id"), "")
        for _ in range(RUN_DEPTH):
            if not name:
                break
            events = [event for item in self._chain_messages.get(name, []) if (event := _event(item)) is not None]
            if events and all(_first_text(event) in prompt for event in (events[0], events[-1])):
                return [*_prompt_system(prompt, events), *events]
            name = self._parents.get(name, "")
        return []

    def _from_prompt(self, prompt: str, before: list[Request]) -> list[Event]:
        """The rendered prompt cut at its speakers; an answer or a result known from a run takes its text's place."""
        if not self._known:
            self._known = {text: event for event in map(_tool_event, self._tools) if (text := _first_text(event))}
        if before and before[-1].response is not None and (text := _first_text(before[-1].response)):
            self._known[text] = before[-1].response
        cuts = list(_TURN.finditer(prompt))
        ends = [*(cut.start() for cut in cuts[1:]), len(prompt)]
        texts = [(KINDS[cut[1].lower()], prompt[cut.end() : end]) for cut, end in zip(cuts, ends)]
        return [
            self._known.get(text) or Event(role, (TextPart(text),)) for role, text in texts or [(Role.USER, prompt)]
        ]


def _is_pair(value: list[Any]) -> bool:
    return len(value) == 2 and all(isinstance(item, str) for item in value)


def _order(run: JSON) -> tuple[float, str]:
    return fields.timestamp(run, "start_time") or 0.0, fields.text(run, "dotted_order")


def _thread(run: JSON) -> str:
    metadata = fields.mapping(fields.mapping(run, "extra"), "metadata")
    named = next((found for key in THREAD_KEYS if (found := fields.text(metadata, key))), "")
    return named or fields.text(run, "trace_id") or fields.text(run, "dotted_order").split(".")[0]


def _answer(outputs: JSON) -> tuple[JSON, Event] | None:
    """The first generation's message, or its text."""
    generations = outputs.get("generations")
    first = generations[0] if isinstance(generations, list) and generations else None
    first = first[0] if isinstance(first, list) and first else first
    if isinstance(first, dict):
        message = first.get("message")
        event = _event(message) if isinstance(message, dict) else None
        if event is not None and isinstance(message, dict):
            return _body(message), event
        return {}, Event(Role.MODEL, (TextPart(fields.text(first, "text")),))
    for item in (outputs.get("output"), *fields.items(outputs, "messages")[-1:], *fields.items(outputs, "choices")[:1]):
        item = fields.mapping(item, "message") or item
        if isinstance(item, dict) and (event := _event(item)) is not None:
            return _body(item) | {"usage_metadata": item.get("usage_metadata") or outputs.get("usage_metadata")}, event
    return None


def _tools(parameters: JSON) -> tuple[ToolDefinition, ...] | None:
    return chat.tool_definitions(parameters.get("tools", parameters.get("functions")))


def _tool_event(run: JSON) -> Event:
    output = fields.mapping(run, "outputs").get("output")
    found = _event(output) if isinstance(output, dict) else None
    call_id = fields.text(fields.mapping(run, "extra"), "tool_call_id")
    text = output if isinstance(output, str) else fields.plain_text(output) or fields.text(run, "error")
    parts = found.parts if found is not None else (ToolResultPart(fields.text(run, "name"), text, call_id),)
    return Event(Role.USER, parts, timestamp=fields.timestamp(run, "start_time"))


def _asked(events: list[Event]) -> set[str]:
    last = events[-1].parts if events else ()
    return {part.id for part in last if isinstance(part, ToolCallPart) and part.id}


def _first_text(event: Event) -> str:
    for part in event.parts:
        if isinstance(part, TextPart):
            return part.text
        if isinstance(part, ToolResultPart) and isinstance(part.content, str):
            return part.content
    return ""


def _prompt_system(prompt: str, events: list[Event]) -> list[Event]:
    """The system prompt that a chain adds to its messages, as the rendered prompt begins with it."""
    if events[0].role is Role.SYSTEM or not prompt.startswith("System: "):
        return []
    stop = prompt.find("\nHuman: " + _first_text(events[0]))
    return [Event(Role.SYSTEM, (TextPart(prompt[len("System: ") : stop]),))] if stop > 0 else []
