"""Vercel's AI SDK: the messages of a chat, as its hooks and stores keep them (`UIMessage`), or as a model is given them
(`ModelMessage`); those of version 4, with `toolInvocations`, too.

A message of the assistant in a chat holds all its steps, each a call of the model that begins with `step-start`; a part
of the type `tool-NAME` is a call and, once it has an output, its result. A file has no tokens by call: what an
application puts into `metadata` are sums of its steps, in words of its own. System prompt and tools are not in it,
unless messages of the role system are.
Source: https://ai-sdk.dev/docs/reference/ai-sdk-core/ui-message and, below the same address, `model-message`; of calls
that the user denied, `packages/ai/src/ui/convert-to-model-messages.ts` of github vercel/ai.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from guard_core.errors import DamagedRecording
from guard_core.events import OtherPart, Part, ReasoningPart, Role, TextPart
from guard_core.plural import counted
from guard_core.recordings.base import Recording
from guard_core.recordings.reading import ai_sdk, chat, fields, wrong_kinds
from guard_core.recordings.reading.build import FactCounter, SessionBuilder
from guard_core.recordings.reading.fields import JSON
from guard_core.recordings.reading.known_names import Names, words
from guard_core.recordings.reading.source import ByteSource, SourceShape

NAME = "ai-sdk"
_COUNTS = re.compile(r"token|usage", re.IGNORECASE)
_HEADS = 200  # messages looked at for what only this SDK writes
_TOOL, _ANY_TOOL, _OLD_TOOL = "tool-", "dynamic-tool", "tool-invocation"
_OWN_PARTS = frozenset({"step-start", "source-url", "source-document", _ANY_TOOL, _OLD_TOOL})
_TEXTS = frozenset({"text", "reasoning"})
_STATES = frozenset({"input-streaming", "input-available", "output-available", "output-error", "output-denied"})
_STATES |= {"approval-requested", "approval-responded"}
_FAILED = frozenset({"output-error", "output-denied"})
_DENIED = "Tool execution denied."  # what the model is given where no reason is
_ROLES = frozenset({"user", "assistant", "system", "tool", "data"})


class AiSdkFormat:
    name = NAME
    label = "AI SDK"
    place = "messages of a chat (UIMessage) or a model"
    known_names = Names(
        tools=words("parts content toolInvocations toolInvocation messages"),
        tool_endings=("",),  # of any kind: `tool-NAME` ends with the name of the tool
        passed_over=words("output result input value metadata callProviderMetadata providerMetadata"),
    )

    def matches(self, source: ByteSource) -> bool:
        heads = [message for _, message in _messages(source, heads=True)]
        known = sum(map(_is_message, heads))
        return known * 2 > len(heads) and any(map(_is_own, heads))

    def read(self, source: ByteSource) -> Recording:
        reader = _AiSdkReader(source)
        for line, message in _messages(source):
            with source.tolerate(line):
                reader.message(message, line)
        return reader.recording()


FORMAT = AiSdkFormat()


def _messages(source: ByteSource, *, heads: bool = False) -> Iterator[tuple[int | None, JSON]]:
    """The messages of the file, or the first ones."""
    if source.shape is SourceShape.LINES:
        yield from ((line.number, line.obj) for line in (source.head_lines() if heads else source.lines()))
        return
    if source.shape is not SourceShape.JSON:
        return
    if heads:
        yield from ((None, item) for item in fields.objects(_listed(source.json_head())[:_HEADS]))
    else:
        yield from ((None, item) for item in wrong_kinds.objects(source, source.elements(_listed), "message"))


def _listed(value: Any) -> list[Any]:
    listed = value.get("messages") if isinstance(value, dict) else value
    return listed if isinstance(listed, list) else []


def _is_message(value: JSON) -> bool:
    """Is it a message of any version of the SDK; messages with an `info` are OpenCode's."""
    has_content = isinstance(value.get("parts"), list) or isinstance(value.get("content"), str | list)
    return fields.text(value, "role") in _ROLES and has_content and "info" not in value


def _is_own(message: JSON) -> bool:
    """Does a message have what only this SDK writes: a block, a state of a part, or parts of texts by their type?"""
    if ai_sdk.has_own_block(message.get("content")) or isinstance(message.get("toolInvocations"), list):
        return True
    parts = list(fields.objects(message.get("parts")))
    if any(fields.text(part, "type") in _OWN_PARTS or fields.text(part, "state") in _STATES for part in parts):
        return True
    return bool(parts) and all(
        fields.text(part, "type") in _TEXTS and isinstance(part.get("text"), str) for part in parts
    )


class _AiSdkReader:
    def __init__(self, source: ByteSource) -> None:
        self._source = source
        self._facts = FactCounter(NAME)
        self._log = SessionBuilder(NAME, source)
        self._system: tuple[Part, ...] = ()
        self._sums = 0  # messages whose metadata count tokens
        self._facts.session()

    def message(self, message: JSON, line: int | None) -> None:
        role = chat.ROLES.get(fields.text(message, "role"))
        if role is None:
            self._source.notes.skip(f"message of the role {fields.text(message, 'role')[:40] or 'none'}")
            return
        self._facts.message()
        about = message.get("metadata")  # what an application noted of it, perhaps counts of tokens
        noted = about.items() if isinstance(about, dict) else ()
        self._sums += any(_COUNTS.search(key) and isinstance(value, dict | int) for key, value in noted)
        when = fields.timestamp(message, "createdAt")
        if not isinstance(message.get("parts"), list) and not isinstance(message.get("toolInvocations"), list):
            event = ai_sdk.message_event(message, line)
            wrong_kinds.check_words(self._source, message, "content", "a message", line)
            # As a model is given it: the results in one of the assistant are what a provider ran itself.
            self._add(role, list(event.parts) if event is not None else [], line, when)
            return
        steps = list(_steps(message))
        for said, results in steps:
            self._add(role, said, line, when)
            self._add(Role.USER, results, line, when)

    def _add(self, role: Role, parts: list[Part], line: int | None, when: float | None) -> None:
        if not parts:
            return
        self._facts.parts(parts)
        if role is Role.SYSTEM and not self._log.events:
            self._system = (*self._system, *parts)
        elif role is Role.MODEL:
            self._log.answer(parts, call={"line": line, "timestamp": when}, line=line, timestamp=when)
        else:
            self._log.event(role, parts, line=line, timestamp=when)

    def recording(self) -> Recording:
        if not self._log.events and not self._system:
            raise DamagedRecording("no message can be read")
        if not self._system:
            self._log.notes.append("The system prompt is not in the file.")
        if self._sums:
            self._log.notes.append(
                f"The application counted tokens of {counted(self._sums, 'message')} in their metadata. Those are sums "
                "of whole answers in its own words, not of single calls, and are not used."
            )
        self._log.notes.append("The schemas of the tools are not in the file.")
        session = self._log.session(system=self._system or None)
        return Recording(NAME, (session,), self._facts.facts(), self._source.notes)


def _steps(message: JSON) -> Iterator[tuple[list[Part], list[Part]]]:
    """What each step of a message says and calls, and what its tools gave back."""
    said: list[Part] = []
    results: list[Part] = []
    listed = list(fields.objects(message.get("parts")))
    if not listed:
        text = fields.text(message, "content")
        old = [{"type": _OLD_TOOL, "toolInvocation": item} for item in fields.objects(message.get("toolInvocations"))]
        listed = [*old, *([{"type": "text", "text": text}] if text else [])]
    for part in listed:
        call, result = _tool(part)
        begins = fields.text(part, "type") == "step-start" or (bool(results) and not call)
        if begins and (said or results):
            yield said, results
            said, results = [], []
        said += call or _said(part)
        results += result
    if said or results:
        yield said, results


def _tool(part: JSON) -> tuple[list[Part], list[Part]]:
    """The call that a part is, and its result once there is one; nothing for any other part."""
    kind = fields.text(part, "type")
    if kind == _OLD_TOOL:
        item = fields.mapping(part, "toolInvocation")
        done = fields.text(item, "state") == "result"
        return [ai_sdk.call_part(item)], [*ai_sdk.result_parts(item, item.get("result"))] if done else []
    if kind != _ANY_TOOL and not (kind.startswith(_TOOL) and "toolCallId" in part):
        return [], []
    name = fields.text(part, "toolName") if kind == _ANY_TOOL else kind.removeprefix(_TOOL)
    state = fields.text(part, "state")
    failed = state in _FAILED
    output = part.get("output")
    if state == "output-error":
        output = part.get("errorText")
    if state == "output-denied":
        output = fields.text(fields.mapping(part, "approval"), "reason") or _DENIED
    done = failed or state == "output-available"
    return [ai_sdk.call_part(part, name)], [*ai_sdk.result_parts(part, output, name, failed=failed)] if done else []


def _said(part: JSON) -> list[Part]:
    """What another part says: text, reasoning, a file; what only a page shows is none."""
    kind = fields.text(part, "type")
    if kind == "reasoning":
        return [ReasoningPart(fields.text(part, "text") or fields.text(part, "reasoning"))]
    if kind == "text":
        return [TextPart(fields.text(part, "text"))]
    if kind in {"file", "image"}:
        return [*ai_sdk.parts(part)]
    shown = kind in {"step-start", "source", "source-url", "source-document"} or kind.startswith("data-")
    return [] if shown else [OtherPart(kind or "unknown", part)]
