"""A first look at a journal of Mistral Vibe: the usage of completions, and compactions by their purpose."""

from __future__ import annotations

import msgspec

from guard_core.recordings.reading import looks
from guard_core.recordings.reading.first_look import FirstLook
from guard_core.recordings.reading.source import ByteSource


class _Usage(msgspec.Struct, gc=False):
    input_tokens: int = 0


class _Request(msgspec.Struct, gc=False):
    purpose: str = ""


class _Body(msgspec.Struct, gc=False):
    usage: _Usage | None = None


class _Result(msgspec.Struct, gc=False):
    action_id: str = ""
    result: _Body | None = None


class _Payload(msgspec.Struct, gc=False):
    action_id: str = ""
    request: _Request | None = None
    result: _Result | None = None


class _Line(msgspec.Struct, gc=False):
    type: str = ""
    payload: _Payload | None = None


def look(source: ByteSource) -> FirstLook:
    """Prompt tokens by call, and compactions; a request and its result are lines of their own."""
    calls, purposes = looks.CallsInOrder(), dict[str, str]()
    for line in looks.lines_of(source, _Line):
        payload = line.payload
        if payload is None:
            continue
        if payload.request is not None and payload.request.purpose:
            purposes[payload.action_id] = payload.request.purpose
        usage = payload.result.result.usage if payload.result and payload.result.result else None
        if usage is None or line.type != "action_result" or payload.result is None:
            continue
        if purposes.get(payload.result.action_id) == "compaction":
            calls.compacted()
        elif purposes.get(payload.result.action_id, "agent") == "agent":
            calls.call(usage.input_tokens)
    return calls.look()
