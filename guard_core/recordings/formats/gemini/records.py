"""The records of a file of the Gemini CLI: headers, patches and messages, in one form for all ways to write them."""

from __future__ import annotations

from collections.abc import Iterator

from guard_core.recordings.formats.gemini.messages import name_of
from guard_core.recordings.reading import fields
from guard_core.recordings.reading.fields import JSON
from guard_core.recordings.reading.source import ByteSource, SourceShape

NOTICES = frozenset({"info", "error", "warning"})  # types of messages that are shown to the user, and not sent
SPEAKERS = frozenset({"user", "gemini", "model"})  # types of messages that are sent
AT_ONCE = 0.0015  # seconds between the calls of one answer: they get their times one after the other, in milliseconds
FURTHER = "#further-"  # in the ids of answers that their message does not name


def chat_records(source: ByteSource) -> Iterator[tuple[int | None, JSON]]:
    """Headers, patches and messages: the lines, or what the one object or array holds, in the same form."""
    if source.shape is SourceShape.LINES:
        for line in source.lines():
            yield from ((line.number, record) for record in _unfolded(line.obj))
        return
    value = source.json_head()
    if isinstance(value, dict) and "history" not in value:
        yield from ((None, record) for record in _unfolded(source.json()))
        return
    for content in fields.objects(source.elements(lambda value: fields.items(value, "history"))):
        yield None, {"type": content.get("role"), "content": content.get("parts")}


def _unfolded(record: JSON) -> Iterator[JSON]:
    """Of a header that holds its messages, as older versions write it: the header without them, and each; any other
    record as it is."""
    if "$set" in record or "sessionId" not in record:
        yield record
        return
    yield {**record, "messages": []} if "messages" in record else record
    for message in fields.objects(record.get("messages")):
        yield from _answers(message)


def _answers(record: JSON) -> Iterator[JSON]:
    """A message as the answers that it consists of: those after the first have calls alone, and no tokens."""
    groups: list[list[JSON]] = []
    last: float | None = None
    for call in fields.objects(record.get("toolCalls")):
        at = fields.timestamp(call, "timestamp")
        if not groups or (at is not None and last is not None and at - last > AT_ONCE):
            groups.append([])
        groups[-1].append(call)
        last = at
    if len(groups) < 2:
        yield record
        return
    yield {**record, "toolCalls": groups[0]}
    own: JSON = {key: record[key] for key in ("type", "model") if key in record}
    for number, calls in enumerate(groups[1:], 2):
        name = f"{name_of(record)}{FURTHER}{number}"
        yield {**own, "id": name, "timestamp": calls[0]["timestamp"], "toolCalls": calls}
