"""First looks at logs of model requests, one record a line: of the responses everything, of the requests nothing.

The requests are what makes such a log long, for each repeats the history. Which conversation a request belongs to, and
whether it wrote a summary, shows in its messages only: here every call counts.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from typing import Any, NamedTuple

import msgspec

from guard_core.events import value_text
from guard_core.recordings.formats.openai import items as responses_items
from guard_core.recordings.reading import fields, log_records, looks, streams
from guard_core.recordings.reading.fields import JSON
from guard_core.recordings.reading.first_look import FirstLook
from guard_core.recordings.reading.source import ByteSource
from guard_core.sessions import ModelCall

_LATER = ("message_delta", "message_stop", "content_block_")  # pieces of a stream behind the one that has its tokens

Usage = Callable[[JSON], JSON]  # the counts of a usage object as fields of ModelCall


class _Request(msgspec.Struct, gc=False):
    """What was sent, as far as it says when and to whom; it may be wrapped in what was on the wire."""

    messages: list[msgspec.Raw] | str | None = None
    body: _Sent = None
    model: Any = None
    timestamp: Any = None
    startTime: Any = None  # noqa: N815 - as proxies spell it
    start_time: Any = None
    startedDateTime: Any = None  # noqa: N815
    time: Any = None
    created_at: Any = None
    ts: Any = None


_Sent = _Request | list[msgspec.Raw] | str | int | float | bool | None


class _Record(_Request, gc=False):
    """One record under the names that `log_records` knows, with all that is not a request."""

    request: _Sent = None
    request_body: _Sent = None
    requestBody: _Sent = None  # noqa: N815
    metadata: Any = None
    response: Any = None
    response_body: Any = None
    responseBody: Any = None  # noqa: N815
    response_obj: Any = None
    completion: Any = None
    output: Any = None
    result: Any = None
    message: Any = None
    chunks: Any = None
    response_chunks: Any = None
    stream: Any = None
    events: Any = None
    chunk: Any = None
    data: Any = None
    event: Any = None
    choices: Any = None
    error: Any = None
    usage: Any = None
    metrics: Any = None
    token_usage: Any = None
    prompt_tokens: Any = None
    input_tokens: Any = None
    promptTokens: Any = None  # noqa: N815
    prompt_eval_count: Any = None
    id: Any = None
    object: Any = None
    type: Any = None
    created: Any = None


class _Call(NamedTuple):
    """What one record says of its call. `compacts`: its answer begins with the summary of what was sent."""

    at: float | None
    counts: ModelCall
    key: str
    compacts: bool
    chain: str = ""


def look(source: ByteSource, usage: Usage, looked: looks.CallsInOrder | None = None) -> FirstLook:
    """Chat requests in the order in which they were sent, where all have a time. `looked` gathers them."""
    calls = [call for record in looks.lines_of(source, _Record) if (call := _call(record, usage)) is not None]
    if all(call.at is not None for call in calls):
        calls.sort(key=lambda call: call.at or 0.0)
    looked = looks.CallsInOrder() if looked is None else looked
    for call in calls:
        if call.compacts:
            looked.compacted()
        looked.counted(call.counts, call.key, call.chain)
    return looked.look()


def look_at_responses(source: ByteSource) -> FirstLook:
    """Requests of the Responses API, or responses alone, in the order of the file."""
    calls = looks.CallsInOrder()
    for record in looks.lines_of(source, _Record):
        record_fields = _record_fields(record)
        logged = any(value is not None for value in (record.response, record.error, record.response_body))
        response = log_records.response_of(record_fields) if logged else record_fields
        tokens = fields.tokens(fields.mapping(response, "usage"), "input_tokens")
        model = fields.text(response, "model") or (looks.text_of(_body(record).model) if logged else "")
        if fields.text(response, "object") == "response.compaction":
            calls.compacted()
            continue
        kinds = (fields.text(item, "type") for item in fields.objects(response.get("output")))
        compacts = any(map(responses_items.is_compaction, kinds))
        if compacts and not logged:  # a response alone: what it brought precedes it
            calls.compacted()
        calls.call(tokens, model=model)
        if compacts and logged:
            calls.compacted()
    return calls.look()


def _call(record: _Record, usage: Usage) -> _Call | None:
    """The call that a record is about; None where it has no tokens. A conversation is known by its first message."""
    record_fields = _record_fields(record)
    holders = (record_fields, *(fields.mapping(record_fields, key) for key in ("chunk", "data", "event")))
    if (piece := next((value for value in holders if streams.is_piece(value)), None)) is not None:
        return _call_of_piece(piece, usage)
    response = record_fields if "choices" in record_fields else log_records.response_of(record_fields)
    if set(response) <= {"input_tokens", "context_management"} and response:
        return None  # it only counts a request's tokens
    beside = (fields.mapping(record_fields, key) for key in ("usage", "metrics", "token_usage"))
    places = (fields.mapping(response, "usage"), *beside, response, record_fields)  # the most trusted first
    counts = next((counted for place in places if (counted := usage(place))), {})
    if not counts.get("prompt_tokens"):
        return None
    at = log_records.time_of(record_fields, response)
    compacts = any(fields.text(block, "type") == "compaction" for block in fields.objects(response.get("content")))
    body = _body(record)
    name, model = fields.text(response, "id"), fields.text(response, "model") or looks.text_of(body.model)
    # Ids alone do not show that a response is logged again: some servers give every response the same.
    last = _bytes(body.messages[-1]).decode("utf-8", "replace") if body.messages else ""
    repeats = value_text((name, response.get("usage"), at, len(body.messages), last)) if name and body.messages else ""
    # By a digest: each request of a conversation has its first message again, which may be large.
    chain = blake2b(_bytes(body.messages[0]), digest_size=16).hexdigest() if body.messages else ""
    return _Call(at, ModelCall(0, model=model, **counts), repeats, compacts, chain)


def _bytes(message: msgspec.Raw | str) -> bytes:
    """A message as it is in the file."""
    return message.encode("utf-8", "surrogatepass") if isinstance(message, str) else bytes(message)


def _call_of_piece(piece: JSON, usage: Usage) -> _Call | None:
    """The call of a streamed response. Pieces of OpenAI's may each have the tokens so far, under one id."""
    if fields.text(piece, "type").startswith(_LATER):
        return None
    response = fields.mapping(piece, "message") or piece
    counts = usage(fields.mapping(response, "usage"))
    call = ModelCall(0, model=fields.text(response, "model"), **counts)
    return _Call(None, call, fields.text(response, "id"), False) if call.prompt_tokens else None


def _record_fields(record: _Record) -> JSON:
    """What a record says besides its messages, under its own names."""
    record_fields = {name: value for name in _NAMES if (value := getattr(record, name)) is not None}
    if isinstance(record.request, _Request):
        record_fields["request"] = {name: getattr(record.request, name) for name in _TIMES}
    return record_fields


_SENT = ("request", "request_body", "requestBody")
_TIMES = tuple(name for name in _Request.__struct_fields__ if name not in ("messages", "body"))
_NAMES = tuple(name for name in _Record.__struct_fields__ if name not in ("messages", "body", *_SENT))


def _body(record: _Record) -> _Request:
    """The request with the messages; the record itself where none is inside."""
    if record.messages is None:
        for sent in (*(getattr(record, name) for name in _SENT), record.body):
            request = _opened(sent)
            request = _opened(request.body) or request if request is not None else None
            if request is not None and request.messages is not None:
                return request
    return record


def _opened(sent: _Sent) -> _Request | None:
    """A request, read where it is kept as text."""
    if isinstance(sent, _Request):
        return sent
    try:
        return msgspec.json.decode(sent.encode(), type=_Request) if isinstance(sent, str) else None
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
