"""Cline and Roo Code: `api_conversation_history.json`, `ui_messages.json`, and session files of the Cline SDK.

The first is an array of Anthropic messages with `ts`, `modelInfo` and `metrics.tokens`: prompt tokens are `prompt` plus
`cached`, for Cline's providers report them apart. The OpenAI-compatible one does not, unless a `cached` of it is larger
than its `prompt`, which also decides where no provider is named. SDK sessions have `metrics.inputTokens`, which
includes cached tokens. Results often are not blocks but text that begins "[read_file for 'x'] Result:", the result
in the text behind it; such a text is the result of the call before it, and begins no turn. Roo keeps what it condensed:
the message with `isSummary` declares a compaction, messages with its id as `condenseParent` are in no later request; a
truncation marker hides those with its `truncationParent`. The SDK keeps the whole conversation and beside it, in a file
of its own, what the last compaction left of the first `source_message_count` messages: a ZIP archive of the session's
folder gives both. In such a file alone a message whose `metadata.kind` names a compaction replaces all before it. Of a
user's text in `<user_input>` the SDK sends the inner one (3.0.65, run).
Text that only looks like a marker of a compaction is none. The screen's file is read by `cline_screen`.
Source: https://github.com/cline/cline and https://github.com/RooCodeInc/Roo-Code, src/core.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

from msgspec.structs import replace

from guard_core.errors import DamagedRecording, RecordingError
from guard_core.events import Event, Part, ReasoningPart, Role, TextPart, ToolResultPart
from guard_core.recordings.base import Recording
from guard_core.recordings.formats.anthropic_messages import message_event
from guard_core.recordings.formats.cline.known_names import NAMES
from guard_core.recordings.formats.cline.screen import FORKS_NOTE, ScreenReader
from guard_core.recordings.formats.openai.completions import is_message
from guard_core.recordings.reading import fields, wrong_kinds
from guard_core.recordings.reading.build import FactCounter, SessionBuilder
from guard_core.recordings.reading.bundle import Bundle
from guard_core.recordings.reading.fields import JSON
from guard_core.recordings.reading.identities import Identities
from guard_core.recordings.reading.rebase import LogIndex, view_of
from guard_core.recordings.reading.source import ByteSource, SourceShape
from guard_core.sessions import UNRECORDED_COMPACTIONS, AgentSetting, Evidence, RecordedCompaction, Session
from guard_core.views import Inserted, View

NAME = "cline"
RESULT_TEXT = re.compile(r"\[(\w+)(?: for [^\n]*)?\] Result:")
# How Cline and Roo open what they write in the user's name.
OWN_OPENINGS = ("<environment_details>", "[ERROR]", "[TASK RESUMPTION]", "[NOTE]")
_MARKS = frozenset({"modelInfo", "metrics", "isSummary", "condenseId", "condenseParent", "truncationParent"})
_OTHERS_COUNTS = "_tokens"  # how counts in others' `metrics` end: Cline's are `tokens`, those of its SDK `inputTokens`
_ROO_MARKS = frozenset({"isSummary", "condenseId", "condenseParent", "truncationParent", "isTruncationMarker"})
_PARENT_KEYS = ("condenseParent", "truncationParent")  # of a message: which compactions hide it
_SDK_FILES = ({"sessionId", "version"}, {"conversation_id", "source_message_count"})
# Providers of Cline whose input tokens include the cached ones: `src/core/api/providers/openai.ts`.
_CACHED_INSIDE = frozenset({"openai"})
_SDK_COMPACTIONS = frozenset({"compaction_summary", "compaction"})  # by the model, or by rule
_MESSAGES, _COMPACTION = ".messages.json", ".compaction.json"  # how the SDK's files of one session end
_USER_INPUT = re.compile(r"\s*<user_input\b[^>]*>(.*)</user_input>\s*", re.DOTALL)
OF_SDK = AgentSetting("is_of_sdk", 1, "a session file of the Cline SDK")
_BESIDE_NOTE = "Compactions are in a file beside this one (….compaction.json): a ZIP archive of the folder gives both."
_LACKING_NOTE = "The archive has no file of its last compaction (….compaction.json): it had none, or it is missing."
_LAST_NOTE = "The SDK keeps what its last compaction left: of earlier ones only the summary is in the file, if at all."
_SDK_NOTE = "Requests held long results shortened and outdated contents of files not at all; here they are whole."


class ClineFormat:
    """Task files of Cline and Roo Code."""

    name = NAME
    label = "Cline, Roo Code"
    place = "api_conversation_history.json"
    known_names = NAMES

    def matches(self, source: ByteSource) -> bool:
        if source.shape is SourceShape.ZIP:
            with Bundle(source, noting=False) as bundle:
                return any(map(partial(_holds_sdk, bundle), _sdk_sessions(bundle)))
        if source.shape is not SourceShape.JSON:
            return False
        value = source.json_head()
        return _is_screen(value) or _is_history(value) or _is_sdk_session(value)

    def read(self, source: ByteSource) -> Recording:
        if source.shape is SourceShape.ZIP:
            return _read_archive(source)
        value = source.json()
        if _is_screen(value):
            return ScreenReader(source).recording(value)
        wrapper = value if isinstance(value, dict) else {}
        return _ClineHistory(source, wrapper).recording(fields.items(wrapper, "messages") if wrapper else value)


def _sdk_sessions(bundle: Bundle) -> list[str]:
    """What may be sessions of the SDK in an archive: what their files' names begin with."""
    return [name.removesuffix(_MESSAGES) for name in bundle.names() if name.endswith(_MESSAGES)]


def _holds_sdk(bundle: Bundle, stem: str) -> bool:
    """Has an archive a session of the SDK."""
    if stem + _COMPACTION in bundle.names():
        return True
    try:
        with bundle.open(stem + _MESSAGES) as whole:
            return whole is not None and whole.shape is SourceShape.JSON and _is_sdk_session(whole.json_head())
    except RecordingError:
        return False


@contextmanager
def _left_of(bundle: Bundle, stem: str) -> Iterator[Any]:
    """What the file of a session's last compaction says, where the archive has it."""
    if stem + _COMPACTION not in bundle.names():
        yield None
        return
    with bundle.open(stem + _COMPACTION) as left:
        yield left.json() if left is not None else None


def _read_archive(source: ByteSource) -> Recording:
    facts, sessions = FactCounter(NAME), list[Session]()
    with Bundle(source) as bundle:
        for stem in _sdk_sessions(bundle):
            with (
                source.apart(sessions),
                source.tolerate(),
                bundle.open(stem + _MESSAGES) as whole,
                _left_of(bundle, stem) as left,
            ):
                value = whole.json() if whole is not None else None
                if isinstance(value, dict) and _is_sdk_session(value):
                    history = _ClineHistory(source, value, left, _LACKING_NOTE)
                    history.facts = facts
                    facts.session()
                    sessions.append(history.session(fields.items(value, "messages")))
    if not sessions:
        raise source.nothing_left("the archive holds no session of the Cline SDK that can be read")
    return Recording(NAME, tuple(sessions), facts.facts(), source.notes)


def _heads(value: Any) -> list[JSON]:
    return [item for item in value[:50] if isinstance(item, dict)] if isinstance(value, list) else []


def _is_screen(value: Any) -> bool:
    heads = _heads(value)
    return bool(heads) and all("ts" in item and fields.text(item, "type") in {"say", "ask"} for item in heads)


def _is_history(value: Any) -> bool:
    heads = [item for item in _heads(value) if not _is_reasoning(item)]
    if not heads or not all(map(is_message, heads)):
        return False
    if any(fields.text(item, "role") == "tool" or "tool_calls" in item for item in heads):
        return False  # of a chat of OpenAI's, in which others have metrics, too
    return any(map(_is_marked, heads)) or all("ts" in item for item in heads) or _has_own_words(heads)


def _is_marked(message: JSON) -> bool:
    """Has a message what Cline or Roo Code adds; metrics that name their counts otherwise are another program's."""
    others = any(key.endswith(_OTHERS_COUNTS) for key in fields.mapping(message, "metrics"))
    return bool((_MARKS - {"metrics"} if others else _MARKS) & message.keys())


def _is_reasoning(item: JSON) -> bool:
    """An item of its own that Roo keeps before the answer that it led to."""
    return fields.text(item, "type") == "reasoning" and "content" not in item


def _has_own_words(heads: list[JSON]) -> bool:
    """The oldest versions wrote nothing beside role and content: a task and what Cline says about the editor."""
    blocks = [block for item in heads if item["role"] == "user" for block in fields.objects(item.get("content"))]
    texts = [fields.text(block, "text").lstrip() for block in blocks]
    return bool(texts) and texts[0].startswith("<task>") and any(text.startswith(OWN_OPENINGS[0]) for text in texts)


def _is_sdk_session(value: Any) -> bool:
    heads = _heads(fields.items(value, "messages"))
    if not isinstance(value, dict) or not heads or not all(map(is_message, heads)):
        return False
    return any(map(_is_marked, heads)) or any(keys <= value.keys() for keys in _SDK_FILES)


class _Mark(NamedTuple):
    """A message that Roo put in place of those that name it as their parent."""

    at: int  # events before it
    parent: str
    kind: str
    event: Event


class _ClineHistory:
    """One conversation as it is sent to the API; `left` is the SDK's file of what its last compaction left."""

    def __init__(self, source: ByteSource, wrapper: JSON, left: Any = None, beside: str = _BESIDE_NOTE) -> None:
        self.source = source
        self.beside = beside  # what to say of compactions where that file is not known
        self.wrapper = wrapper
        self.left = left if isinstance(left, dict) else {}
        self.facts = FactCounter(NAME)
        self.log = SessionBuilder(NAME, source)
        self.messages: list[JSON] = []  # the message of each event
        self.marks: list[_Mark] = []
        self.seen = Identities(source, "message")
        self.reasoning: list[Part] = []  # that led to the next answer
        self.cached_apart: set[str] = set()  # providers whose counts prove it; "" where none is named

    def recording(self, messages: list[Any]) -> Recording:
        return Recording(NAME, (self.session(messages),), self.facts.facts(), self.source.notes)

    def session(self, messages: list[Any]) -> Session:
        """Read all messages of a file; called once."""
        sent = 0  # messages so far, but for those that are only displayed
        chats = [message for message in messages if is_message(message)]
        self.cached_apart = {_provider(message) for message in chats if _is_cached_apart(message)}
        for message in messages:
            if is_message(message):
                self._message(message)
                sent += fields.mapping(message, "metadata").get("displayOnly") is not True
                if sent == fields.tokens(self.left, "source_message_count"):
                    self._left()
            elif isinstance(message, dict) and _is_reasoning(message):
                readable = fields.text(message, "text") or fields.plain_text(message.get("summary"))
                blob = fields.text(message, "encrypted_content")
                self.reasoning.append(ReasoningPart(readable, opaque_bytes=fields.opaque_size(blob) if blob else 0))
            else:
                self.source.notes.skip("item that is not a message")
        for _ in self.reasoning:
            self.source.notes.skip("reasoning without an answer")
        self._compactions()
        if not self.facts.messages:
            raise DamagedRecording("no message can be read")
        system = fields.text(self.wrapper, "system_prompt") or fields.text(self.wrapper, "systemPrompt")
        notes = [] if system else ["The system prompt is not in the file."]
        is_whole = "sessionId" in self.wrapper
        if self.wrapper:
            notes.append(_SDK_NOTE)
            notes += [_LAST_NOTE] if self.left else [UNRECORDED_COMPACTIONS, self.beside] if is_whole else []
        items = fields.objects(messages)  # some of them as only Roo Code, or a fork of it, writes them
        is_roos = any(not _ROO_MARKS.isdisjoint(item) or _is_reasoning(item) for item in items)
        version = fields.text(fields.mapping(self.wrapper, "origin"), "version")
        if is_roos:
            notes.append(FORKS_NOTE)
        return self.log.session(
            system=(TextPart(system),) if system else None,
            source_id=fields.text(self.wrapper, "sessionId") or fields.text(self.wrapper, "conversation_id"),
            agent="Roo Code" if is_roos else "Cline",
            versions=((0, version),) if version else (),
            settings=(OF_SDK,) if self.wrapper else (),
            notes=(*notes, "The schemas of the tools are not in the file."),
        )

    def _left(self) -> None:
        """The compaction whose messages the SDK keeps beside the conversation."""
        events = [event for item in fields.objects(self.left.get("messages")) if (event := self._event(item))]
        about = [fields.mapping(item, "metadata") for item in fields.objects(self.left.get("messages"))]
        own = next((item for item in about if fields.text(item, "kind") in _SDK_COMPACTIONS), {})
        base, messages = LogIndex(self.log).rebase(events)
        self.left = {**self.left, "source_message_count": None}
        self.facts.compaction()
        self.log.compaction(
            RecordedCompaction(
                at=len(self.log.events),
                evidence=Evidence.DECLARED,
                kind="summary+tail" if any(not isinstance(part, Inserted) for part in base) else "summary",
                base=base,
                messages=tuple(replace(event, meta=True) for event in messages),
                trigger=fields.text(own, "reason"),
                tokens_before=fields.tokens(own, "tokensBefore"),
                timestamp=fields.timestamp(own, "generatedAt"),
            )
        )

    def _event(self, message: JSON) -> Event | None:
        """A message as it is sent; None of an unknown role."""
        event = message_event(message, timestamp=fields.timestamp(message, "ts"))
        if event is None or not self.wrapper or event.role is not Role.USER:
            return event
        return replace(event, parts=tuple(map(_unwrapped, event.parts)))

    def _message(self, message: JSON) -> None:
        if self.seen.is_repeat(fields.text(message, "id"), message.get("content")):
            self.source.notes.folded += 1
            return
        at = fields.timestamp(message, "ts")
        event = self._event(message)
        if event is None:
            self.source.notes.skip("message of an unknown role")
            return
        wrong_kinds.check_words(self.source, message, "content", "a message")
        self.facts.message()
        self.facts.parts(event.parts)
        if message.get("isSummary") is True:
            self.marks.append(_Mark(len(self.log.events), fields.text(message, "condenseId"), "summary", event))
        elif fields.text(fields.mapping(message, "metadata"), "kind") in _SDK_COMPACTIONS:
            self._sdk_compaction(event, fields.mapping(message, "metadata"))
        elif message.get("isTruncationMarker") is True:
            self.marks.append(_Mark(-1, fields.text(message, "truncationId"), "trim", event))
        elif event.role is Role.MODEL:
            beside = fields.text(message, "reasoning_content")  # where it is not in the content, too
            inside = any(isinstance(part, ReasoningPart) for part in event.parts)
            thoughts = (ReasoningPart(beside),) if beside and not inside else ()
            parts = (*self.reasoning, *thoughts, *event.parts)
            self.reasoning = []
            self.log.answer(parts, call=self._call(message, at), source_id=event.source_id, timestamp=at)
            self.messages.append(message)
        else:
            parts = self._heard(event.parts)
            meta = event.role is Role.SYSTEM or _is_own(parts)
            self.log.event(event.role, parts, source_id=event.source_id, timestamp=at, meta=meta)
            self.messages.append(message)

    def _heard(self, parts: tuple[Part, ...]) -> tuple[Part, ...]:
        """Results written as text, made into results: a heading alone has its result in the text behind it."""
        merged: list[Part] = []
        heading = False
        for part in parts:
            last = merged[-1] if merged else None
            match = RESULT_TEXT.match(part.text.lstrip()) if isinstance(part, TextPart) else None
            if isinstance(part, TextPart) and match:
                merged.append(ToolResultPart(match[1], part.text))
            elif heading and isinstance(last, ToolResultPart) and isinstance(part, TextPart) and not _is_own((part,)):
                merged[-1] = replace(last, content=f"{last.content}\n{part.text}")
            else:
                merged.append(part)
            heading = match is not None and isinstance(part, TextPart) and part.text.rstrip().endswith("Result:")
        return tuple(merged)

    def _call(self, message: JSON, at: float | None) -> JSON:
        metrics, model = fields.mapping(message, "metrics"), fields.mapping(message, "modelInfo")
        provider = _provider(message)
        apart = provider in self.cached_apart or bool(provider and provider not in _CACHED_INSIDE)
        counts = _counts(metrics, apart)
        if counts:
            self.facts.call(counts["prompt_tokens"])
        return {"model": fields.text(model, "id") or fields.text(model, "modelId"), "timestamp": at, **counts}

    def _sdk_compaction(self, event: Event, about: JSON) -> None:
        self.facts.compaction()
        self.log.compaction(
            RecordedCompaction(
                at=len(self.log.events),
                evidence=Evidence.DECLARED,
                kind="summary",
                base=(Inserted(0),),
                messages=(replace(event, meta=True),),
                trigger=fields.text(about, "reason"),
                tokens_before=fields.tokens(about, "tokensBefore"),
                timestamp=fields.timestamp(about, "generatedAt") or event.timestamp,
                note="Messages behind it may be older than it: then their calls were made with all that it replaces.",
            )
        )

    def _compactions(self) -> None:
        """Every mark as a compaction: what its request still held are the messages that no mark so far hides.

        A truncation marker is among the messages where they were cut, and so is placed by its time.
        """
        times = [event.timestamp or 0 for event in self.log.outlines]
        placed = [
            mark if mark.at >= 0 else mark._replace(at=sum(time <= (mark.event.timestamp or 0) for time in times))
            for mark in self.marks
        ]
        hiding: set[str] = set()
        inserted: tuple[Event, ...] = ()
        for mark in sorted(placed, key=lambda mark: mark.at):
            self.facts.compaction()
            hiding |= {mark.parent} - {""}
            message = replace(mark.event, meta=mark.event.role is Role.USER)
            inserted = (message,) if mark.kind == "summary" else (*inserted, message)
            visible: list[int | None] = [
                index
                for index in range(mark.at)
                if hiding.isdisjoint(fields.text(self.messages[index], key) for key in _PARENT_KEYS)
            ]
            base: View = (*view_of(visible), *(Inserted(index) for index in range(len(inserted))))
            self.log.compaction(
                RecordedCompaction(
                    mark.at, Evidence.DECLARED, mark.kind, base, inserted, timestamp=mark.event.timestamp
                )
            )


def _unwrapped(part: Part) -> Part:
    """A user's text without the tags in which the SDK keeps it."""
    match = _USER_INPUT.fullmatch(part.text) if isinstance(part, TextPart) else None
    return replace(part, text=match[1]) if match and isinstance(part, TextPart) else part


def _is_own(parts: tuple[Part, ...]) -> bool:
    texts = [part.text.lstrip() for part in parts if isinstance(part, TextPart)]
    return bool(texts) and all(text.startswith(OWN_OPENINGS) for text in texts)


def _provider(message: JSON) -> str:
    model = fields.mapping(message, "modelInfo")
    return fields.text(model, "providerId") or fields.text(model, "provider")


def _is_cached_apart(message: JSON) -> bool:
    """Has an answer more cached tokens than prompt tokens: its provider counts them apart."""
    tokens = fields.mapping(fields.mapping(message, "metrics"), "tokens")
    return (fields.tokens(tokens, "cached") or 0) > (fields.tokens(tokens, "prompt") or 0)


def _counts(metrics: JSON, cached_apart: bool) -> JSON:
    """Token counts in either spelling as fields of ModelCall; empty where there are none."""
    tokens = fields.mapping(metrics, "tokens")
    if tokens:
        cached = fields.tokens(tokens, "cached")
        prompt = (fields.tokens(tokens, "prompt") or 0) + ((cached or 0) if cached_apart else 0)
        counts: JSON = {"cached_tokens": cached, "output_tokens": fields.tokens(tokens, "completion")}
    else:
        prompt = fields.tokens(metrics, "inputTokens") or 0
        counts = {
            "cached_tokens": fields.tokens(metrics, "cacheReadTokens"),
            "cache_write_tokens": fields.tokens(metrics, "cacheWriteTokens"),
            "output_tokens": fields.tokens(metrics, "outputTokens"),
        }
    return {"prompt_tokens": prompt, **counts} if prompt else {}


FORMAT = ClineFormat()
