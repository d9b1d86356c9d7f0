"""A Claude Code transcript with the requests that the capture proxy saw, as newer versions write both into one file.

A transcript lacks the system prompt, the tools and what is attached again; a capture has them, and not what the agent
noted (compactions, versions, sub-agents). A call of the capture belongs to the line of the transcript whose answer has
its id, so nothing is guessed: its request is written before that line, in the lines that versions from 2.1.300 on write
themselves (`requests`, `prompt`). Marks for the cache, which move from request to request, are not part of a message.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Any, NamedTuple

import msgspec

from guard_core.errors import DamagedRecording
from guard_core.recordings.formats.capture.lines import NAME, Expander
from guard_core.recordings.reading import fields, streams
from guard_core.recordings.reading.fields import JSON

MOST_BASES = 16  # requests on which a later one may be built: an agent has several conversations at once
_PARAMS = ("model", "max_tokens", "thinking", "context_management", "output_config")


class Call(NamedTuple):
    """One captured call: the id of its answer, its request, and when it was sent in seconds since the epoch."""

    answer: str
    request: JSON
    timestamp: float | None


class JoinedLines(NamedTuple):
    """The lines of the joined file, and how many of the transcript's answers have their request now."""

    lines: list[bytes]
    answers: int
    paired: int


def captured_calls(lines: Iterable[JSON]) -> list[Call]:
    """The calls of Anthropic's API in a capture that were answered. Raises DamagedRecording where it is none."""
    expander, calls = Expander(), []
    for number, line in enumerate(lines):
        if not number and line.get("format") != NAME:
            raise DamagedRecording("not a capture: its first line names another format, or none")
        if "request" not in line:
            continue
        try:
            request = expander.expand(line)
        except ValueError as error:
            raise DamagedRecording(f"line {number + 1} of the capture: {error}") from error
        response = line.get("response")
        if isinstance(response, str):
            response = streams.joined(streams.pieces_of(response))
        answer = fields.text(response, "id") if isinstance(response, dict) else ""
        if line.get("api") == "anthropic" and answer:
            calls.append(Call(answer, request, fields.timestamp(line, "timestamp")))
    return calls


def joined(transcript: Iterable[bytes], calls: Iterable[Call]) -> JoinedLines:
    """The transcript with the requests of its answers."""
    requests, known = {call.answer: call for call in calls}, _Written()
    lines: list[bytes] = []
    seen: dict[str, str] = {}  # answers of the transcript, with the id of their request or ""
    for raw in transcript:
        line = _parsed(raw)
        message = line.get("message") if line else None
        answer = fields.text(message, "id") if isinstance(message, dict) else ""
        if not line or line.get("type") != "assistant" or not answer or line.get("requestRef"):
            lines.append(raw)
            continue
        if answer not in seen:
            call = requests.get(answer)
            seen[answer] = "" if call is None else f"captured-{answer}"
            if call is not None:
                session = fields.text(line, "sessionId")
                lines.extend(map(_encoded, known.write(call, seen[answer], session, line.get("timestamp"))))
        lines.append(_encoded({**line, "requestRef": seen[answer]}) if seen[answer] else raw)
    return JoinedLines(lines, len(seen), sum(map(bool, seen.values())))


class _Written:
    """What the joined file holds of requests so far."""

    def __init__(self) -> None:
        self._bases: dict[str, list[str]] = {}  # by request, the hashes of its messages; the latest ones
        self._blobs: set[str] = set()
        self._shape = ""

    def write(self, call: Call, name: str, session: str, time: Any) -> Iterator[JSON]:
        """The lines of a request."""
        shape = {key: call.request[key] for key in ("system", "tools") if key in call.request}
        about = {"sessionId": session, "timestamp": time}
        shape_hash = _hash(_unmarked(shape))
        if shape_hash != self._shape:
            self._shape = shape_hash
            yield {"type": "api-request-shape", **about, "shapeHash": shape_hash, "shape": _unmarked(shape)}
        messages = [_unmarked(item) for item in fields.items(call.request, "messages")]
        hashes = [_hash(item) for item in messages]
        base, keep = self._base(hashes)
        for key, message in zip(hashes, messages, strict=True):
            if key not in self._blobs:
                self._blobs.add(key)
                yield {"type": "api-request-blob", "sessionId": session, "hash": key, "message": message}
        params = {key: call.request[key] for key in _PARAMS if key in call.request}
        line = {"type": "api-request", **about, "id": name, "shapeHash": shape_hash, "params": params, "keep": keep}
        yield {**line, **({"base": base} if keep else {}), "tail": hashes[keep:]}
        self._bases[name] = hashes
        while len(self._bases) > MOST_BASES:
            self._bases.pop(next(iter(self._bases)))

    def _base(self, hashes: list[str]) -> tuple[str, int]:
        """The earlier request that shares most of its beginning with this one, and how much."""
        best = "", 0
        for name, earlier in reversed(self._bases.items()):
            pairs = enumerate(zip(earlier, hashes))
            shared = next((at for at, (one, other) in pairs if one != other), min(len(earlier), len(hashes)))
            best = (name, shared) if shared > best[1] else best
        return best


def _unmarked(value: Any) -> Any:
    """A value without the marks that say how far the provider may cache."""
    if isinstance(value, dict):
        return {key: _unmarked(item) for key, item in value.items() if key != "cache_control"}
    return [_unmarked(item) for item in value] if isinstance(value, list) else value


def _hash(value: Any) -> str:
    return sha256(msgspec.json.encode(value, order="deterministic")).hexdigest()


def _parsed(raw: bytes) -> JSON | None:
    """The object on a line; None for a line without one, which is taken over as it is."""
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _encoded(line: JSON) -> bytes:
    return json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass") + b"\n"
