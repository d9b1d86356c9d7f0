"""A first look at a Qwen Code chat: tokens of each answer, compactions; what was rewound is not taken back."""

from __future__ import annotations

import msgspec

from guard_core.recordings.reading import fields, looks
from guard_core.recordings.reading.first_look import FirstLook
from guard_core.recordings.reading.source import ByteSource


class _Usage(msgspec.Struct, gc=False):
    prompt: int | None = msgspec.field(default=None, name="promptTokenCount")


class _Line(msgspec.Struct, gc=False):
    """One line, as far as it shows a call or a compaction."""

    type: str = ""
    subtype: str | None = None
    model: str | None = None
    usage: _Usage | None = msgspec.field(default=None, name="usageMetadata")
    window: int | None = msgspec.field(default=None, name="contextWindowSize")
    side: bool | None = msgspec.field(default=None, name="isSidechain")
    session: str | None = msgspec.field(default=None, name="sessionId")
    uuid: str | None = None
    parent: str | None = msgspec.field(default=None, name="parentUuid")


def look(source: ByteSource) -> FirstLook:
    """Calls and compactions from one quick pass, of the first chat in the file. In a sub-agent's own file every line is
    of a side chain."""
    main, side = looks.CallsInOrder(), looks.CallsInOrder()
    window, session = 0, ""
    for line in looks.lines_of(source, _Line):
        if line.uuid and not line.parent and line.session and session not in ("", line.session):
            break
        session = session or line.session or ""
        calls = side if line.side else main
        if line.subtype == "chat_compression":
            calls.compacted()
        elif line.type == "assistant" and line.usage is not None:
            calls.call(looks.tokens_of(line.usage.prompt), model=line.model or "")
            window = fields.window({"window": line.window}, "window") or window
    return msgspec.structs.replace((main if len(main) else side).look(), window=window)
