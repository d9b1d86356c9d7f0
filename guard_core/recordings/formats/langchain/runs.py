"""LangSmith runs: the calls of a thread among all the runs around them.

Of runs only those of type llm (or chat_model) and tool are read: chains repeat the same messages over and over. A run
may come twice, posted when it began and patched when it ended (`{post, patch}` is what LangSmith's client sends):
both are one run. A run belongs to the thread named in its metadata (`thread_id`, `session_id`, `conversation_id`),
else to its trace. A request's messages are in `inputs.messages`; where a run has only rendered `prompts`, they are
taken from the chain around it when its text is found in the prompt, else from the prompts themselves. Child runs may
be nested. A failed run is a call without an answer. LangSmith's wrappers of the clients of OpenAI and Anthropic have
the request as inputs and the response as outputs, in the provider's words but for the usage.
Source: https://docs.langchain.com/langsmith/run-data-format.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from guard_core.events import Event, Role, TextPart, ToolCallPart, ToolResultPart
from guard_core.recordings.formats.anthropic_messages import has_own_block
from guard_core.recordings.formats.langchain.messages import (
    KINDS,
    body_of,
    event_of,
    is_message,
    model_of,
    provider_usage_of,
    usage_of,
)
from guard_core.recordings.formats.otlp import content
from guard_core.recordings.reading import chat, fields
from guard_core.recordings.reading.answer_limits import answer_limit
from guard_core.recordings.reading.build import FactCounter
from guard_core.recordings.reading.conversations import threads_of
from guard_core.recordings.reading.fields import JSON
from guard_core.recordings.reading.refusals import names_length
from guard_core.recordings.reading.requests import UNKNOWN, Request
from guard_core.recordings.reading.source import ByteSource
from guard_core.sessions import ModelCall, Session, ToolDefinition

MODEL_RUNS = frozenset({"llm", "chat_model"})
THREAD_KEYS = ("thread_id", "session_id", "conversation_id")
RUN_DEPTH = 64  # runs nested in runs
_DOTTED = re.compile(r"([0-9]{8}T[0-9]{12})Z([0-9a-fA-F-]{36})")
_TURN = re.compile(r"(?:^|\n)(System|Human|AI|Tool|Function): ")


def is_run(value: Any) -> bool:
    """Is it a LangSmith run, by its type and its place among others."""
    if not isinstance(value, dict) or not isinstance(value.get("run_type"), str):
        return False
    return "trace_id" in value or "dotted_order" in value or "child_runs" in value or "parent_run_id" in value


def runs_in(value: Any) -> list[JSON]:
    """The runs of one record: a run, or what the client sends in one batch, posts before patches."""
    if is_run(value):
        return [value]
    batch = [*fields.items(value, "post"), *fields.items(value, "patch")]
    return [run for run in fields.objects(batch) if is_run(run) or _is_patch(run)]


def _is_patch(value: JSON) -> bool:
    """What a run that was posted before ended with. LangSmith's client for JavaScript leaves its id to its order."""
    named = "id" in value or _DOTTED.search(fields.text(value, "dotted_order")) is not None
    return named and ("trace_id" in value or "dotted_order" in value)


def all_runs(source: ByteSource, records: Iterable[tuple[Any, int | None]]) -> Iterator[tuple[JSON, int | None]]:
    """Every run of the file, those inside others too; a record without one is passed over, and noted."""
    for record, line in records:
        roots = runs_in(record) or [item for item in [record] if isinstance(item, dict) and _is_patch(item)]
        if not roots:
            source.notes.skip("record without runs")
        yield from ((_completed(run), line) for root in roots for run in _with_children(root, 0))


def _completed(run: JSON) -> JSON:
    """The run with what only its `dotted_order` shows: time and id of each run from the outermost one to itself."""
    order = _DOTTED.findall(fields.text(run, "dotted_order"))
    if not order:
        return run
    time, name = order[-1]
    derived = {"id": name, "trace_id": order[0][1], "start_time": f"{time[:15]}.{time[15:]}Z"}
    derived |= {"parent_run_id": order[-2][1]} if len(order) > 1 else {}
    return run | {key: value for key, value in derived.items() if not fields.text(run, key)}


def _with_children(run: JSON, depth: int) -> Iterator[JSON]:
    yield run
    if depth < RUN_DEPTH:
        for child in fields.objects(run.get("child_runs")):
            child.setdefault("parent_run_id", run.get("id"))
            child.setdefault("trace_id", run.get("trace_id") or run.get("id"))
            yield from _with_children(child, depth + 1)


class LangChainRuns:
    """The model and tool runs of a file; chains are kept only as far as a model run may need their messages."""

    def __init__(self, source: ByteSource, runs: Iterable[tuple[JSON, int | None]]) -> None:
        self._source = source
        self._models: list[tuple[JSON, int | None]] = []
        self._tools: list[JSON] = []
        self._parents: dict[str, str] = {}
        self._chain_messages: dict[str, list[Any]] = {}
        self._known: dict[str, Event] = {}  # by first text: what prompts repeat as text only
        self._endings: dict[str, list[Any]] = {}  # messages of outermost runs, by thread
        self._runs: dict[str, JSON] = {}  # model and tool runs by id, to be completed by later records
        self._chains: set[str] = set()
        for run, line in runs:
            if not self._completes(run):
                self._sort(run, line)
        self._models.sort(key=lambda item: _order(item[0]))
        self._tools.sort(key=_order)

    def _completes(self, run: JSON) -> bool:
        """A later record of a known run: it adds what it holds."""
        name = fields.text(run, "id")
        if name and name in self._chains:
            self._source.notes.folded += 1
            return True
        if not name or (known := self._runs.get(name)) is None:
            return False
        self._source.notes.folded += 1
        for key, value in run.items():
            if isinstance(known.get(key), dict) and isinstance(value, dict):
                known[key] = known[key] | value
            elif value not in (None, "", [], {}):
                known[key] = value
        return True

    def sessions(self, facts: FactCounter) -> list[Session]:
        for run in self._tools:
            output = fields.mapping(run, "outputs").get("output")
            facts.tool_call(fields.text(run, "id"))
            facts.tool_result(fields.text(run, "id"), len(output) if isinstance(output, str) else 0)
        groups: dict[str, list[Request]] = {}
        for run, line in self._models:
            request = self._request(run, line, groups)
            if request.call.prompt_tokens is not None:
                facts.call(request.call.prompt_tokens)
            groups.setdefault(_thread(run), []).append(request)
        return [session for key, requests in groups.items() for session in self._of_thread(key, requests)]

    def ended_with(self) -> list[list[Any]]:
        """Where no model run is in the file: the messages with which the last outermost run of each thread ended."""
        return list(self._endings.values())

    def _sort(self, run: JSON, line: int | None) -> None:
        kind, name = fields.text(run, "run_type"), fields.text(run, "id")
        self._parents[name] = fields.text(run, "parent_run_id")
        if kind in MODEL_RUNS:
            self._models.append((run, line))
            self._runs[name] = run
        elif kind == "tool":
            self._tools.append(run)
            self._runs[name] = run
        else:
            self._chains.add(name)
            self._source.notes.skip(f"{kind[:40] or 'other'} run")
            if messages := fields.items(fields.mapping(run, "inputs"), "messages"):
                self._chain_messages[name] = messages
            if not self._parents[name] and (ending := fields.items(fields.mapping(run, "outputs"), "messages")):
                self._endings[_thread(run)] = ending

    def _of_thread(self, key: str, requests: list[Request]) -> Iterator[Session]:
        for number, thread in enumerate(threads_of(requests)):
            if number == 0:
                last = thread.calls[-1].timestamp or 0.0
                last_parts = thread.events[-1].parts if thread.events else ()
                asked = {part.id for part in last_parts if isinstance(part, ToolCallPart) and part.id}
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

    def _request(self, run: JSON, line: int | None, groups: dict[str, list[Request]]) -> Request:
        outputs = fields.mapping(run, "outputs")
        body, event = _answer(outputs) or ({}, None)
        if event is not None and run.get("error") and not event.parts:
            event = None
        before = groups.get(_thread(run), [])
        system, messages = chat.split_system(self._messages(run, before))
        system = system or content.system_prompt(fields.mapping(run, "inputs"))
        start = fields.timestamp(run, "start_time")
        usage = usage_of(body)
        if usage.get("prompt_tokens") is None:
            usage = provider_usage_of(fields.mapping(fields.mapping(outputs, "llm_output"), "token_usage"))
        parameters = parameters_of(run)
        model = model_of(body) or model_named(run, outputs)
        call = ModelCall(at=0, **usage, model=model, timestamp=start, line=line, source_id=fields.text(run, "id"))
        if event is not None:
            event = msgspec.structs.replace(event, timestamp=fields.timestamp(run, "end_time") or start, line=line)
        lost = 0 if messages else UNKNOWN
        error = fields.text(run, "error") if event is None and call.prompt_tokens is None else ""
        refusal = error if names_length(error) else ""
        about: JSON = {"tools": _tools(parameters), "refusal": refusal, "answer_limit": answer_limit(parameters)}
        return Request(tuple(messages), call, event, lost, system=system, **about)

    def _messages(self, run: JSON, before: list[Request]) -> list[Event]:
        inputs = fields.mapping(run, "inputs")
        listed = inputs.get("messages")
        if isinstance(listed, list) and listed:
            first = listed[0] if isinstance(listed[0], list) else []
            is_pair = len(first) == 2 and all(isinstance(item, str) for item in first)  # a role and its text
            nested = listed if is_pair or not isinstance(listed[0], list) else first
            return [event for item in nested if (event := _event(item)) is not None]
        if sent := content.sent_messages(inputs):
            return sent
        prompt = next((item for item in fields.items(inputs, "prompts") if isinstance(item, str)), "")
        return (self._from_chain(run, prompt) or self._from_prompt(prompt, before)) if prompt else []

    def _from_chain(self, run: JSON, prompt: str) -> list[Event]:
        """The messages of the nearest chain around a run whose first and last text are in its prompt."""
        name = self._parents.get(fields.text(run, "id"), "")
        for _ in range(RUN_DEPTH):
            if not name:
                break
            events = [event for item in self._chain_messages.get(name, []) if (event := event_of(item)) is not None]
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


def _order(run: JSON) -> tuple[float, str]:
    return fields.timestamp(run, "start_time") or 0.0, fields.text(run, "dotted_order")


def _thread(run: JSON) -> str:
    metadata = fields.mapping(fields.mapping(run, "extra"), "metadata")
    named = next((name for key in THREAD_KEYS if (name := fields.text(metadata, key))), "")
    return named or fields.text(run, "trace_id") or fields.text(run, "dotted_order").split(".")[0]


def _event(message: Any) -> Event | None:
    """The event of a message of a request: LangChain's, or one whose blocks are of the provider's own API."""
    if isinstance(message, dict) and not is_message(message) and has_own_block(message.get("content")):
        return content.any_event(message)
    return event_of(message)


def _answer(outputs: JSON) -> tuple[JSON, Event] | None:
    """The first generation's message, or its text."""
    generations = outputs.get("generations")
    first = generations[0] if isinstance(generations, list) and generations else None
    first = first[0] if isinstance(first, list) and first else first
    if isinstance(first, dict):
        message = first.get("message")
        event = event_of(message) if isinstance(message, dict) else None
        if event is not None and isinstance(message, dict):
            return body_of(message), event
        return {}, Event(Role.MODEL, (TextPart(fields.text(first, "text")),))
    for item in (outputs.get("output"), *fields.items(outputs, "messages")[-1:], *fields.items(outputs, "choices")[:1]):
        item = fields.mapping(item, "message") or item
        if isinstance(item, dict) and (event := event_of(item)) is not None:
            return body_of(item) | {
                "usage_metadata": item.get("usage_metadata") or outputs.get("usage_metadata")
            }, event
    event = content.answer_in(outputs)  # the provider's own response
    return None if event is None else (outputs, event)


def parameters_of(run: JSON) -> JSON:
    """What a model was asked with beside the messages: LangChain's own place for it, else the request that LangSmith's
    wrappers of the providers' clients have as inputs."""
    return fields.mapping(fields.mapping(run, "extra"), "invocation_params") or fields.mapping(run, "inputs")


def model_named(run: JSON, outputs: JSON) -> str:
    """The model that a provider's whole response, the request or the metadata of a run names; "" where none does."""
    parameters = parameters_of(run)
    asked = fields.text(parameters, "model") or fields.text(parameters, "model_name")
    metadata = fields.mapping(fields.mapping(run, "extra"), "metadata")
    return fields.text(outputs, "model") or asked or fields.text(metadata, "ls_model_name")


def _tools(parameters: JSON) -> tuple[ToolDefinition, ...] | None:
    return chat.tool_definitions(parameters.get("tools", parameters.get("functions")))


def _tool_event(run: JSON) -> Event:
    output = fields.mapping(run, "outputs").get("output")
    message = event_of(output) if isinstance(output, dict) else None
    call_id = fields.text(fields.mapping(run, "extra"), "tool_call_id")
    text = output if isinstance(output, str) else fields.plain_text(output) or fields.text(run, "error")
    parts = message.parts if message is not None else (ToolResultPart(fields.text(run, "name"), text, call_id),)
    return Event(Role.USER, parts, timestamp=fields.timestamp(run, "start_time"))


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
