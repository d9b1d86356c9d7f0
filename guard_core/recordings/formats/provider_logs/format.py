"""Calls of models as their provider logs them: model invocation logs of Amazon Bedrock (in S3 or CloudWatch), requests
and responses of the Gemini API and Vertex AI (logged to BigQuery, of a batch, or written by a client), and the results
of Anthropic's batches, which hold what came back.

Each body is read as in logs of its API; Bedrock's are Converse's, or those of the model's maker (Anthropic, OpenAI).
Where a body is kept elsewhere (Bedrock's of more than 100 KB, in S3), the call has the counts of its record and no
messages. Calls that share no history are sessions of their own.
What a client or a recorder of HTTP wrote of the Converse API is read, too: requests with responses, a request, its
messages alone (Strands).
Sources: https://docs.aws.amazon.com/bedrock/latest/userguide/model-invocation-logging.html,
https://cloud.google.com/vertex-ai/generative-ai/docs/multimodal/request-response-logging,
https://ai.google.dev/gemini-api/docs/batch-api, https://docs.anthropic.com/en/api/retrieving-message-batch-results.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any, NamedTuple
from urllib.parse import unquote

import msgspec

from guard_core.recordings.base import Recording
from guard_core.recordings.formats.capture.bodies import FAILED, KNOWN_NAMES, CapturedCalls
from guard_core.recordings.formats.capture.gemini import GeminiReader
from guard_core.recordings.formats.provider_logs.converse import ConverseReader
from guard_core.recordings.reading import bedrock, fields, log_records
from guard_core.recordings.reading.fields import JSON
from guard_core.recordings.reading.known_names import Names, united, words
from guard_core.recordings.reading.source import ByteSource, SourceShape

_HEADS = 50
_BEDROCK = "ModelInvocationLog"
_INPUT, _OUTPUT = "inputBodyJson", "outputBodyJson"
_WRAPS = ("message", "@message", "textPayload")  # where CloudWatch has the text of a record
_LISTS = ("events", "logEvents", "data", "rows", "items")
_BATCH_RESULTS = frozenset({"succeeded", "errored", "canceled", "expired"})


class _Logged(NamedTuple):
    """One call: the API whose words it is in, its bodies, and what its record says of it."""

    api: str
    request: JSON
    response: Any
    timestamp: Any = None
    model: str = ""
    failed: bool = False


class ProviderLogFormat:
    name = "provider-log"
    label = "Provider logs"
    place = "logs of Amazon Bedrock, Vertex AI or Gemini; results of Anthropic's batches"
    known_names = united(
        KNOWN_NAMES,
        Names(
            usage=words("usage cacheDetails"),
            counts=words(
                "inputTokens outputTokens totalTokens cacheReadInputTokens cacheWriteInputTokens"
                " cacheReadInputTokenCount cacheWriteInputTokenCount"
            ),
            beside=words("inputTokenCount outputTokenCount cacheReadInputTokenCount cacheWriteInputTokenCount"),
            holders=words("input output @message"),
            tools=words("toolUse toolResult toolSpec toolConfig tools content"),
        ),
    )

    def matches(self, source: ByteSource) -> bool:
        heads = [record for _, record in _records(source, heads=True)]
        return bool(heads) and sum(_logged(head) is not None for head in heads) * 2 > len(heads)

    def read(self, source: ByteSource) -> Recording:
        calls = CapturedCalls(source)
        for line, record in _records(source):
            with source.tolerate(line):
                logged = _logged(record)
                if logged is None or not logged.api:
                    source.notes.skip("record of no call that can be read")
                    continue
                places = fields.mapping(record, "input").keys() & {_INPUT, "inputBodyS3Path"}
                if record.get("schemaType") == _BEDROCK and not places:
                    source.notes.problem("a record with neither the body of its request nor the place of it", line)
                about = {"timestamp": logged.timestamp, "status": 400 if logged.failed else 200}
                path = f"/models/{logged.model}:" if logged.model else ""
                calls.add(line, logged.api, logged.request, logged.response, path=path, **about)
        return _named(calls.recording(self.name), self.name)


FORMAT = ProviderLogFormat()


def _named(recording: Recording, name: str) -> Recording:
    """The recording whose sessions have this format where they are in the words of an API without one of its own."""
    apis = {ConverseReader.name, GeminiReader.name}
    sessions = (
        msgspec.structs.replace(session, format=name) if session.format in apis else session
        for session in recording.sessions
    )
    return replace(recording, sessions=tuple(sessions))


def _records(source: ByteSource, *, heads: bool = False) -> Iterator[tuple[int | None, JSON]]:
    """The records of the file, or the first ones, each out of what a log service puts around it."""
    if source.shape is SourceShape.LINES:
        lines = source.head_lines() if heads else source.lines()
        yield from ((line.number, _opened(line.obj)) for line in lines)
        return
    if source.shape is not SourceShape.JSON:
        return
    head = source.json_head()
    if isinstance(head, list) and _is_converse({"messages": head}):
        yield None, {"messages": head if heads else source.json()}
        return
    items = fields.objects(_listed(head) if heads else source.elements(_listed))
    yield from ((None, _opened(item)) for item in islice(items, _HEADS if heads else None))


def _listed(value: Any) -> list[Any]:
    """The records of an array, or of the one in an object that is no record."""
    if isinstance(value, dict) and _logged(value) is None:
        value = next((value[key] for key in _LISTS if isinstance(value.get(key), list)), value)
    return value if isinstance(value, list) else [value]


def _opened(record: JSON) -> JSON:
    inside = (fields.decoded(record.get(key)) for key in _WRAPS)
    return next((inner for inner in inside if isinstance(inner, dict) and inner.get("schemaType") == _BEDROCK), record)


def _logged(record: JSON) -> _Logged | None:
    """The call of a record; None where it is none of these. Without an API where it cannot be read."""
    if record.get("schemaType") == _BEDROCK:
        return _of_bedrock(record)
    if "full_request" in record or "request_payload" in record:
        return _of_vertex(record)
    result = record.get("result")
    if "custom_id" in record and fields.text(result, "type") in _BATCH_RESULTS:
        message = fields.mapping(result, "message")
        return _Logged("anthropic" if message else "", {}, message)
    request = fields.decoded(record.get("request", record.get("body")))
    response = fields.decoded(record.get("response"))
    if _is_converse(record) or _is_converse(request):
        sent = request if _is_converse(request) else record
        model = fields.text(sent, "modelId") or fields.text(record, "modelId") or _model_in(fields.text(record, "path"))
        when, status = log_records.time_of(record, {}), record.get("status")
        failed = isinstance(status, int) and status >= FAILED
        return _Logged("converse", {"model": model, **sent}, response, when, model, failed)
    if not _is_google(request, response):
        return None
    model = fields.text(request, "model") or fields.text(record, "model")
    return _Logged("gemini", request, response, log_records.time_of(record, {}), model)


def _model_in(path: str) -> str:
    """The model in the path of a request of Bedrock, as a recorder of HTTP has it (nock); "" where there is none."""
    _, _, rest = path.partition("/model/")
    return unquote(rest.partition("/")[0])


def _is_converse(request: Any) -> bool:
    """Is it a request of the Converse API, by the blocks of its messages?"""
    messages = list(fields.objects(request.get("messages"))) if isinstance(request, dict) else []
    heads = [message for message in messages[:_HEADS] if isinstance(message.get("content"), list)]
    is_whole = bool(heads) and len(heads) == len(messages[:_HEADS])
    return is_whole and all(fields.text(head, "role") and bedrock.blocks(head["content"]) for head in heads)


def _is_google(request: Any, response: Any) -> bool:
    """Is it a request of the Gemini API, by its contents of parts, with a response, an error or nothing?"""
    contents = list(fields.objects(request.get("contents"))) if isinstance(request, dict) else []
    pieces = response if isinstance(response, list) else [response]
    answers = [piece for piece in fields.objects(pieces) if {"candidates", "usageMetadata", "error"} & piece.keys()]
    return bool(contents) and all("parts" in item for item in contents) and (bool(answers) or not response)


def _of_vertex(record: JSON) -> _Logged:
    """A row of Vertex AI's log: bodies as objects or as text, in the fields of newer rows or of older ones."""
    request, response = (_first_body(record, key) for key in ("request", "response"))
    when = fields.timestamp({"time": fields.text(record, "logging_time").replace(" UTC", "Z")}, "time")
    model = fields.text(record, "model")
    if not isinstance(request, dict):
        return _Logged("", {}, None)
    if "contents" in request:
        return _Logged("gemini", request, response, when, model)
    if isinstance(request.get("messages"), list):
        own = "anthropic_version" in request or "claude" in model
        return _Logged("anthropic" if own else "chat", request, response, when, model)
    return _Logged("", {}, None)


def _first_body(record: JSON, name: str) -> Any:
    """A body that is not empty: `full_…` of newer rows, else the first of the list `…_payload` of older ones."""
    payload = record.get(f"{name}_payload")
    first = payload[0] if isinstance(payload, list) and payload else payload
    bodies = (fields.decoded(value) for value in (record.get(f"full_{name}"), first))
    return next((body for body in bodies if isinstance(body, dict | list) and body), {})


def _of_bedrock(record: JSON) -> _Logged:
    sent, answered = fields.mapping(record, "input"), fields.mapping(record, "output")
    request, response = (fields.decoded(part.get(key)) for part, key in ((sent, _INPUT), (answered, _OUTPUT)))
    request = request if isinstance(request, dict) else {}
    api = _bedrock_api(fields.text(record, "operation"), fields.text(record, "modelId"), request, response)
    model, when = fields.text(record, "modelId"), fields.timestamp(record, "timestamp")
    if api == "converse" and fields.tokens(fields.mapping(response, "usage"), "inputTokens") is None:
        response = {**(response if isinstance(response, dict) else {}), "usage": _counts(sent, answered)}
    error = fields.text(record, "errorCode")
    if error:
        response = {"type": error, "message": fields.text(record, "errorMessage"), "body": response}
    return _Logged(api, {"model": model, **request}, response, when, model, failed=bool(error))


def _bedrock_api(operation: str, model: str, request: JSON, response: Any) -> str:
    """The API of a record's bodies: Converse's, also in the requests of Amazon's own models, or that of the maker."""
    if operation.startswith("Converse") or not request:
        return "converse"
    if "anthropic_version" in request or "anthropic" in model:
        return "anthropic" if isinstance(request.get("messages"), list) else ""
    if isinstance(response, dict) and "choices" in response:
        return "chat"
    return "converse" if isinstance(request.get("messages"), list) else ""


def _counts(given: JSON, answer: JSON) -> JSON:
    """The counts of a record itself."""
    return {
        "inputTokens": given.get("inputTokenCount"),
        "cacheReadInputTokens": given.get("cacheReadInputTokenCount"),
        "cacheWriteInputTokens": given.get("cacheWriteInputTokenCount"),
        "outputTokens": answer.get("outputTokenCount"),
    }
