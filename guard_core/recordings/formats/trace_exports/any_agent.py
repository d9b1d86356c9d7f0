"""any-agent and its TinyAgent: an `AgentTrace`, one object with the `spans` of a run and its `final_output`.

A `call_llm` span has the calls of tools or the words of an answer as `gen_ai.output`, and its usage; only the first of
an agent has the messages that were sent. The next requests are those messages, the answers since and the results of the
`execute_tool` spans, as the library's own `spans_to_messages` puts them together. A request with fewer tokens than one
before it was another one, which is not in the trace (the call that gives the final output its form): such calls are a
conversation of their own. An answer has no ids of its calls; those of LlamaIndex have arguments only on the spans of
the tools. Ids are numbers of 128 and 64 bits, times are nanoseconds.
Source: mozilla-ai-tinyagent 0.1.1, `tinyagent/tracing`, and github.com/mozilla-ai/any-agent, `docs/traces`.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

from msgspec.structs import replace

from guard_core.errors import LimitExceeded
from guard_core.recordings.formats.otlp import kinds
from guard_core.recordings.formats.otlp.spans import TraceSpan
from guard_core.recordings.formats.trace_exports import spans
from guard_core.recordings.reading import fields, normalise
from guard_core.recordings.reading.fields import JSON

_SENT, _OUTPUT = "gen_ai.input.messages", "gen_ai.output"
_TOOL, _ARGUMENTS, _CALL_ID = "gen_ai.tool.name", "gen_ai.tool.args", "gen_ai.tool.call.id"
_CALL, _RUN, _AGENT = "call_llm", "execute_tool", "invoke_agent"
_OPERATIONS = frozenset({_CALL, _RUN, _AGENT})
# Messages of all requests that are rebuilt here: those of 300 calls with a result each. Ours: each costs as much
# as one in a file, and a small file could ask for any number of them. The public traces have 5 calls at most.
MOST_TOGETHER = 100_000
_ByName = defaultdict[str, deque[JSON]]


def is_record(value: JSON) -> bool:
    """Is it a trace: spans with a context, one of them a call in the words of this library alone?"""
    listed = [span for span in fields.objects(value.get("spans")) if _operation(span) in _OPERATIONS]
    return any(_operation(span) == _CALL and fields.mapping(span, "context") for span in listed)


def spans_of(value: JSON, line: int | None) -> Iterator[TraceSpan]:
    """The spans of a trace, each call with the messages that were sent, as far as they are known."""
    listed = sorted(fields.objects(value.get("spans")), key=lambda span: _start(span) or 0.0)
    histories: dict[str, _AgentMessages] = {}  # by the span around the calls
    latest, together = _AgentMessages(), 0
    for place, span in enumerate(listed):
        operation = _operation(span)
        if operation == _CALL:
            latest = histories.setdefault(_parent(span), _AgentMessages())
            is_known = latest.may_be_sent(span)
            together += len(latest.messages)
            if together > MOST_TOGETHER:
                raise LimitExceeded(
                    f"requests of a trace with more than {MOST_TOGETHER:,} messages together", line=line
                )
            runs = _runs_after(listed, place)
            read = _span(span, latest.call(span, runs, is_known=is_known), line)
            yield read if is_known else replace(read, trace=f"{read.trace} other requests")
        elif operation == _RUN:
            histories.get(_parent(span), latest).run(span)
            about = fields.mapping(span, "attributes")
            output, call_id = _text(about.get(_OUTPUT)), fields.text(about, _CALL_ID)
            yield _span(span, spans.tool_run(fields.text(about, _TOOL), output, call_id), line)
        else:
            about = fields.mapping(span, "attributes")
            is_agent = operation == _AGENT
            name = fields.text(about, kinds.AGENT_KEYS[0])
            yield _span(span, spans.agent_run(name) if is_agent else spans.other(operation), line)


@dataclass
class _AgentMessages:
    """The messages of one agent, as its next request has them."""

    messages: list[JSON] = field(default_factory=list)
    prompt: int = 0  # tokens of its last request
    waiting: _ByName = field(default_factory=lambda: _by_name(()))  # calls of tools without a result so far

    def may_be_sent(self, span: JSON) -> bool:
        """May a call have sent these messages: it says what it sent, or has no fewer tokens than the one before."""
        about = fields.mapping(span, "attributes")
        prompt = fields.first_tokens(about, *kinds.PROMPT_KEYS)
        return bool(about.get(_SENT)) or prompt is None or prompt >= self.prompt

    def call(self, span: JSON, runs: _ByName, *, is_known: bool) -> JSON:
        """The attributes of a call of the model; `runs`: those of tools that follow it; `is_known`: it sent these
        messages."""
        about = fields.mapping(span, "attributes")
        counts = {
            "prompt_tokens": fields.first_tokens(about, *kinds.PROMPT_KEYS),
            "cached_tokens": fields.first_tokens(about, *kinds.CACHED_KEYS),
            "cache_write_tokens": fields.first_tokens(about, *kinds.WRITTEN_KEYS),
            "output_tokens": fields.first_tokens(about, *kinds.OUTPUT_KEYS),
        }
        answer = _answer(about.get(_OUTPUT), runs)
        sent = fields.decoded(about.get(_SENT))
        model = fields.text(about, kinds.MODEL_KEYS[1])
        if not is_known:
            return _counted(spans.model_call(None, answer, model=model, counts=counts), about)
        if isinstance(sent, list):
            self.messages = list(fields.objects(sent))
        request = {"messages": list(self.messages)}
        self.prompt = counts["prompt_tokens"] or self.prompt
        self.messages.append(answer)
        asked = fields.objects(answer.get("tool_calls"))
        self.waiting = _by_name((call["function"]["name"], call) for call in asked)
        return _counted(spans.model_call(request, answer, model=model, counts=counts), about)

    def run(self, span: JSON) -> None:
        """A result, which the next request has."""
        about = fields.mapping(span, "attributes")
        name = fields.text(about, _TOOL)
        if asked := self.waiting[name]:
            result = {"role": "tool", "name": name, "content": _text(about.get(_OUTPUT))}
            self.messages.append({**result, "tool_call_id": asked.popleft()["id"]})


def _by_name(items: Iterable[tuple[str, JSON]]) -> _ByName:
    """Calls or runs of tools by the tool's name, in their order."""
    named: _ByName = defaultdict(deque)
    for name, item in items:
        named[name].append(item)
    return named


def _answer(output: Any, runs: _ByName) -> JSON:
    """An answer as a message: the calls of tools in it, each with what the span of its run says, or its words."""
    value = fields.decoded(output)
    calls = [item for item in fields.objects(value) if "tool.name" in item] if isinstance(value, list) else []
    if not calls:
        return {"role": "assistant", "content": _text(output)}
    asked = []
    for call in calls:
        name = fields.text(call, "tool.name")
        run = runs[name].popleft() if runs[name] else {}
        arguments = fields.arguments(call.get("tool.args")) or run.get(_ARGUMENTS)
        about = {"name": name, "arguments": arguments}
        asked.append({"id": fields.text(run, _CALL_ID), "type": "function", "function": about})
    return {"role": "assistant", "content": None, "tool_calls": asked}


def _runs_after(listed: list[JSON], place: int) -> _ByName:
    """The attributes of the runs of tools behind a call of a model, up to the next one."""
    following = takewhile(lambda span: _operation(span) != _CALL, (listed[at] for at in range(place + 1, len(listed))))
    runs = (fields.mapping(span, "attributes") for span in following if _operation(span) == _RUN)
    return _by_name((fields.text(about, _TOOL), about) for about in runs)


def _counted(attributes: JSON, about: JSON) -> JSON:
    """With a count as it is written where it is none: it is then reported."""
    given = {key: about[key] for key in (kinds.PROMPT_KEYS[0], kinds.OUTPUT_KEYS[0]) if key in about}
    return {**given, **attributes}


def _span(span: JSON, attributes: JSON, line: int | None) -> TraceSpan:
    context, status = fields.mapping(span, "context"), fields.mapping(span, "status")
    return TraceSpan(
        trace=_name(context.get("trace_id")),
        id=_name(context.get("span_id")),
        parent=_parent(span),
        name=fields.text(span, "name"),
        start=_start(span),
        attributes=attributes,
        line=line,
        status=fields.text(status, "description"),
    )


def _operation(span: JSON) -> str:
    return fields.text(fields.mapping(span, "attributes"), spans.OPERATION)


def _parent(span: JSON) -> str:
    return _name(fields.mapping(span, "parent").get("span_id"))


def _name(value: Any) -> str:
    """An id in hexadecimal digits, whether it was small enough for a number or not."""
    return f"{value:x}" if isinstance(value, int) and not isinstance(value, bool) else str(value or "")


def _start(span: JSON) -> float | None:
    start = span.get("start_time")
    is_number = isinstance(start, int | float) and not isinstance(start, bool)
    return normalise.seconds(start / 1e9) if is_number else None  # type: ignore[operator]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
