"""OTLP over HTTP: what an OpenTelemetry exporter sends, acknowledged after the commit.

https://opentelemetry.io/docs/specs/otlp/#otlphttp: protobuf or JSON, perhaps compressed; after 503 an exporter tries
again. Every exporter has gzip, that of Python deflate as well.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.db import Error
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from guard_core.errors import DamagedRecording
from guard_core.recordings.formats.otlp.protobuf import logs_request_of, request_of
from guard_core.recordings.reading.gzip_members import gunzip
from guard_core.recordings.reading.limits import Limits
from guard_core.recordings.reading.strict_json import JsonProblem, decode
from inspector.api.auth import RequestNotAllowed, project_of_caller
from inspector.ingest import spans
from inspector.project.trouble import trouble_of

JSON, PROTOBUF = "application/json", "application/x-protobuf"
# Content codings, whose names are in any case, and of which one has two: RFC 9110, section 8.4.1.
CODINGS = ("gzip", "x-gzip", "deflate")
LIMITS = Limits()


class _SpansRefused(Exception):
    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


@csrf_exempt
@require_POST
def traces(request: HttpRequest) -> HttpResponse:
    """Spans of a running program. Forms of other pages are refused by their origin and their content type."""
    return _stored(request, request_of)


@csrf_exempt
@require_POST
def logs(request: HttpRequest) -> HttpResponse:
    """Log records of a running program, of which the events of its spans are kept."""
    return _stored(request, logs_request_of)


def _stored(request: HttpRequest, of_protobuf: Callable[[bytes], dict[str, Any]]) -> HttpResponse:
    try:
        spans.store(project_of_caller(request), _body(request, of_protobuf))
    except RequestNotAllowed as error:
        return _answer(request, 403, str(error))
    except _SpansRefused as error:
        return _answer(request, error.status, str(error))
    except (Error, OSError) as error:
        trouble = trouble_of(error)
        if trouble is None:
            raise
        return _answer(request, 503, trouble.words)
    return JsonResponse({}) if request.content_type == JSON else HttpResponse(content_type=PROTOBUF)


def _body(request: HttpRequest, of_protobuf: Callable[[bytes], dict[str, Any]]) -> dict[str, Any]:
    if request.content_type not in (JSON, PROTOBUF):
        raise _SpansRefused(415, f"The content type is {PROTOBUF} or {JSON}.")
    data = _inflated(request.body, request.headers.get("Content-Encoding", ""))
    try:
        value = of_protobuf(data) if request.content_type == PROTOBUF else decode(data, LIMITS).value
    except DamagedRecording as error:
        raise _SpansRefused(400, f"This is not an OTLP request: {error.reason}.") from error
    except JsonProblem as problem:
        raise _SpansRefused(400, f"The body cannot be read as JSON: {problem.reason}.") from problem
    if not isinstance(value, dict):
        raise _SpansRefused(400, 'An OTLP request is an object with "resourceSpans" or "resourceLogs".')
    return value


def _inflated(data: bytes, encoding: str) -> bytes:
    coding = encoding.strip().lower()
    if coding in ("", "identity"):
        return data
    if coding not in CODINGS:
        raise _SpansRefused(415, "The content encoding is gzip or deflate, or none.")
    most = settings.MAX_BATCH_BYTES
    try:
        plain, is_all, is_whole = (_undeflated if coding == "deflate" else gunzip)(data, most)
    except zlib.error as error:
        raise _SpansRefused(400, f"The body is not a {coding} stream.") from error
    if not is_all:
        raise _SpansRefused(413, f"The body has more than {most:,} bytes when decompressed (setting MAX_BATCH_BYTES).")
    if not is_whole:
        raise _SpansRefused(400, f"The {coding} stream of the body is incomplete, or more follows it.")
    return plain


def _undeflated(data: bytes, most: int) -> tuple[bytes, bool, bool]:
    """As `gunzip` does it. Raises zlib.error."""
    unpacking = zlib.decompressobj()
    plain = unpacking.decompress(data, most + 1)
    return plain, len(plain) <= most, unpacking.eof and not unpacking.unused_data


def _answer(request: HttpRequest, status: int, sentence: str) -> HttpResponse:
    """As JSON, or as the Status message of protobuf, whose field 2 is the message."""
    if request.content_type != PROTOBUF:
        response: HttpResponse = JsonResponse({"error": sentence, "message": sentence}, status=status)
    else:
        text = sentence.encode()[:16_000]
        size = bytes([len(text)]) if len(text) < 128 else bytes([len(text) & 0x7F | 0x80, len(text) >> 7])
        response = HttpResponse(b"\x12" + size + text, content_type=PROTOBUF, status=status)
    if status == 503:
        response["Retry-After"] = "5"
    return response
