"""A first look at a Copilot CLI event log: usage of the main conversation by API call, compactions that took place."""

from __future__ import annotations

from typing import Any

import msgspec

from guard_core.recordings.reading import looks
from guard_core.recordings.reading.first_look import FirstLook
from guard_core.recordings.reading.source import ByteSource

_USAGES = frozenset({"session.usage_record", "assistant.usage"})


class _Usage(msgspec.Struct, gc=False):
    inputTokens: Any = None  # noqa: N815 - the file's own spelling
    apiCallId: Any = None  # noqa: N815
    parentToolCallId: Any = None  # noqa: N815


class _Data(_Usage, gc=False):
    usage: _Usage | None = None
    selectedModel: Any = None  # noqa: N815
    newModel: Any = None  # noqa: N815
    success: Any = None
    messagesRemovedDuringTruncation: Any = None  # noqa: N815


class _Event(msgspec.Struct, gc=False):
    data: _Data
    type: str = ""
    agentId: Any = None  # noqa: N815


def look(source: ByteSource) -> FirstLook:
    """Calls and compactions from one quick pass; the calls of sub-agents count as calls without tokens."""
    calls = looks.CallsInOrder()
    counted: set[str] = set()  # API calls whose usage was recorded
    for event in looks.lines_of(source, _Event):
        data, kind = event.data, event.type
        usage = data.usage or _Usage() if kind == "session.usage_record" else data
        of_agent = bool(event.agentId or usage.parentToolCallId)
        if kind in _USAGES:
            tokens, call_id = looks.tokens_of(usage.inputTokens), looks.text_of(usage.apiCallId)
            if tokens is not None and call_id not in counted:
                counted.update({call_id} - {""})
                calls.call(None if of_agent else tokens)
        elif not of_agent:
            _turn(calls, kind, data)
    return calls.look()


def _turn(calls: looks.CallsInOrder, kind: str, data: _Data) -> None:
    """What else changes the calls: a compaction, another model."""
    match kind:
        case "session.compaction_complete" if data.success is not False:
            calls.compacted()
        case "session.truncation" if data.messagesRemovedDuringTruncation:
            calls.compacted()
        case "session.start" | "session.resume":
            calls.model = looks.text_of(data.selectedModel) or calls.model
        case "session.model_change":
            calls.model = looks.text_of(data.newModel) or calls.model
