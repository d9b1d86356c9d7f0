"""One record of a log of model requests, whatever client or proxy wrote it: its request, its response, its time.

SDK users write `{request, response}`; proxies and exports call the two otherwise, wrap them in what was on the wire
(`body`, HAR's `postData.text` and `content.text`), or keep them as text. A streamed response is put together again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from guard_core.events import value_text
from guard_core.recordings.reading import fields, streams, wrong_kinds
from guard_core.recordings.reading.fields import JSON
from guard_core.recordings.reading.refusals import names_length
from guard_core.recordings.reading.source import ByteSource, SourceShape

_REQUESTS = ("request", "request_body", "requestBody", "body", "kwargs", "params", "input", "payload")
_RESPONSES: tuple[str, ...] = ("response", "response_body", "responseBody", "response_obj", "completion", "output")
_RESPONSES += ("result", "message", "chunks", "response_chunks", "stream", "events")
_WORDS = ("response", "completion", "output")  # where the answer may be plain text
_OWN = ("choices", "role", "usage", "output")  # what only the response itself has
_BODIES = ("body", "body_raw", "postData", "content", "json", "text", "chunks", "events", "sse_lines")  # on the wire
_LISTS = ("log", "entries", "logs", "requests", "records", "calls", "data", "items")
_TIMES = ("timestamp", "startTime", "start_time", "startedDateTime", "time", "created_at", "ts")
_IDS = ("request_id", "requestId", "custom_id", "correlation_id", "call_id", "litellm_call_id", "id")
_SENT: dict[str, Any] = {"messages": list, "input": list | str}  # Chat Completions and Messages; Responses
_ERRORS = ("error", "exception", "error_message")
_BYTES = re.compile(r"(?:[0-9a-f]{2}){32,}|(?:[0-9A-F]{2}){32,}")  # in hexadecimal: no words of a model
_WRAPS = 3  # objects around a body


def entries(source: ByteSource) -> Iterator[tuple[int | None, JSON]]:
    """Every record with its line: the lines, the items of an array, those of an object around them, or the object."""
    if source.shape is SourceShape.LINES:
        yield from ((line.number, line.obj) for line in source.lines())
        return
    yield from ((None, item) for item in wrong_kinds.objects(source, source.elements(listed), "item"))


def listed(value: Any) -> list[Any]:
    """The records in a value: of the array in an object around them, or the value itself."""
    inside = unwrapped(value)
    return inside if isinstance(inside, list) else [inside]


def unwrapped(value: Any) -> Any:
    """The array of records inside an object around it (a HAR file, a page of an API); any other value as it is."""
    inside = value
    for _ in range(_WRAPS):
        if not isinstance(inside, dict) or "messages" in inside or "choices" in inside:
            break
        inner = next((inside[key] for key in _LISTS if isinstance(inside.get(key), dict | list)), None)
        if inner is None:
            break
        inside = inner
    return inside if isinstance(inside, list) else value


def request_of(record: JSON) -> JSON:
    """The request with the messages; the record itself where none is inside."""
    if isinstance(record.get("messages"), list):
        return record
    if (inner := request_within(record, "messages")) is not None:
        return inner
    prompt = record.get("prompt", record.get("input"))
    if not isinstance(prompt, list) or not prompt:
        return record
    is_chat = all(isinstance(item, dict) and "role" in item for item in prompt)
    return {**record, "messages": prompt} if is_chat else record


def request_within(record: JSON, key: str) -> JSON | None:
    """The request inside a record, by the field that holds what was sent."""
    return next((body for name in _REQUESTS if (body := _body(record.get(name), key, 0)) is not None), None)


def _body(value: Any, key: str, depth: int) -> JSON | None:
    """The object with a field in a request, under whatever it was wrapped in."""
    value = fields.decoded(value)
    if not isinstance(value, dict):
        return None
    for name in _BODIES if depth < _WRAPS else ():
        if (body := _body(value.get(name), key, depth + 1)) is not None:
            return body
    return value if isinstance(value.get(key), _SENT[key]) else None


def response_of(record: JSON) -> JSON:
    """The response of a record, a streamed one joined; empty where there is none."""
    for key in _RESPONSES:
        if response := _response(record.get(key), 0):
            return response
    for key in _WORDS:
        words = fields.text(record, key)
        if words and words[0] not in "{[" and not _BYTES.fullmatch(words):
            return {"role": "assistant", "content": words}
    return {}


def _response(value: Any, depth: int) -> JSON:
    """The response in a value: an object, what is wrapped around it, or the pieces of a stream."""
    response = fields.decoded(value)
    if isinstance(response, str):
        return streams.joined(streams.pieces_of(response))
    if isinstance(response, list):
        if response and all(isinstance(line, str) for line in response):
            return streams.joined(streams.pieces_of("\n".join(response)))
        choices = [item for item in fields.objects(response) if "message" in item and not streams.is_piece(item)]
        return {"choices": choices} if choices else streams.joined(response)
    if not isinstance(response, dict):
        return {}
    if streams.is_piece(response):
        return streams.joined([response])
    inside = _BODIES if depth < _WRAPS and not any(key in response for key in _OWN) else ()
    return next((inner for key in inside if (inner := _response(response.get(key), depth + 1))), response)


def is_damaged(record: JSON) -> bool:
    """Is a response written as text that is neither JSON nor a stream?"""
    return not response_of(record) and any(fields.text(record, key).strip() for key in _RESPONSES)


def time_of(record: JSON, answer: JSON) -> float | None:
    """When the request was sent, as the record or its request gives it; else when the answer was made."""
    places = (record, fields.mapping(record, "request"), fields.mapping(record, "metadata"))
    times = (fields.timestamp(place, key) for place in places for key in _TIMES)
    return next((time for time in times if time is not None), fields.timestamp(answer, "created"))


def refusal_of(record: JSON, response: JSON) -> str:
    """The words in which the provider answered, by an error in the record or in its response, that the request is too
    long; "" where it did not."""
    errors = (place.get(key) for place in (record, response) for key in _ERRORS)
    return next((words for error in errors if error and names_length(words := value_text(error))), "")


def id_of(record: JSON) -> str:
    """What ties a request and its response, where they are records of their own."""
    return next((name for key in _IDS if (name := fields.text(record, key))), "")
