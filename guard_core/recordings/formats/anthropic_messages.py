"""Anthropic messages: a bare array, a request body (`messages`, `system`, `tools`), or logs of requests and responses.

A message is text or blocks (text, thinking, tool_use, tool_result, image, document). Signed and redacted thinking is
known by its size only. Prompt tokens are `input_tokens + cache_read_input_tokens + cache_creation_input_tokens`. Logs
are rebuilt as those of chat requests: a request that does not extend the history is an inferred compaction. A bare
array has no tokens, unless its messages carry `usage` themselves; system prompt and tools are beside the array.
A `compaction` block declares a compaction by the provider: what precedes it was not given to the model any more, from
the answer on that begins with it; `usage.iterations` has what the summary cost. Tool results that the provider cleared
in a request (`applied_edits` of its response) are the oldest but those of `exclude_tools`, thinking that it cleared is
that of the oldest turns that have some; the request is read without either. A request that only counts tokens is not a
call. Sources: https://docs.anthropic.com/en/api/messages and, below
https://docs.anthropic.com/en/docs/build-with-claude/, `compaction` and `context-editing`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from itertools import islice
from typing import Any, NamedTuple

from msgspec.structs import replace

from guard_core.events import Event, OtherPart, Part, ReasoningPart, Role, TextPart, ToolCallPart, ToolResultPart
from guard_core.plural import counted
from guard_core.recordings.base import Recording
from guard_core.recordings.formats.openai.completions import ChatReader, is_message
from guard_core.recordings.reading import chat, fields, log_look, log_records, looks
from guard_core.recordings.reading.cached_tokens import INSIDE, CachedTokens
from guard_core.recordings.reading.fields import JSON
from guard_core.recordings.reading.first_look import FirstLook
from guard_core.recordings.reading.known_names import (
    ANTHROPIC_COUNTS,
    ANTHROPIC_ENDINGS,
    ANTHROPIC_KINDS,
    ANTHROPIC_TOOLS,
    ANTHROPIC_USAGE,
    CHAT_COUNTS,
    CHAT_USAGE,
    RESPONSES,
    Names,
    words,
)
from guard_core.recordings.reading.requests import Declared, Request, message_key
from guard_core.recordings.reading.source import ByteSource, SourceShape
from guard_core.sessions import AgentSetting, ModelCall

NAME = "anthropic-messages"
_OWN_BLOCKS = frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking", "document", "server_tool_use"})
_SEALED = frozenset({"encrypted_content", "encrypted_index", "encrypted_stdout"})
CLEARED = "[tool result cleared]"  # ours: the provider's wording is not published
# Settings of the provider's compaction and clearing by the names of its rule, and their documented defaults in tokens
# and tool uses: https://docs.anthropic.com/en/docs/build-with-claude/, `compaction` and `context-editing`.
COMPACT, CLEAR, CLEAR_USES = "compact_trigger", "clear_trigger", "clear_trigger_uses"
KEEP, AT_LEAST, EXCLUDED = "clear_keep", "clear_at_least", "clear_excluded"
COMPACT_TRIGGER, CLEAR_TRIGGER, CLEAR_KEEP = 150_000, 100_000, 3
_HEADS = 200  # messages looked at for a block that only Anthropic has


_KNOWN_NAMES = Names(
    usage=ANTHROPIC_USAGE | CHAT_USAGE,
    counts=ANTHROPIC_COUNTS | CHAT_COUNTS,
    beside=words(
        "prompt_tokens input_tokens promptTokens cleared_input_tokens cleared_tool_uses cleared_thinking_turns"
    ),
    holders=RESPONSES,
    tools=ANTHROPIC_TOOLS | words("tool_choice"),
    kinds=ANTHROPIC_KINDS,
    tool_endings=ANTHROPIC_ENDINGS,
    passed_over=words("context_management"),
)


class AnthropicFormat:
    """Anthropic messages and logs of their requests."""

    name = NAME
    label = "Anthropic messages"
    place = "messages, or request and response logs"
    known_names = _KNOWN_NAMES

    def matches(self, source: ByteSource) -> bool:
        if source.shape is SourceShape.LINES:
            records = [line.obj for line in source.head_lines()]
        elif source.shape is SourceShape.JSON:
            value = log_records.unwrapped(source.json_head())
            records = [item for item in value[:_HEADS] if isinstance(item, dict)] if isinstance(value, list) else []
            records = [value] if isinstance(value, dict) and not is_message(value) else records
        else:
            return False
        chats = [record for record in records if is_message(record) or _messages(record)]
        return len(chats) * 2 > len(records) and any(map(_is_anthropic, chats))

    def read(self, source: ByteSource) -> Recording:
        return AnthropicReader(source).read()

    def first_look(self, source: ByteSource) -> FirstLook | None:
        return log_look.look(source, usage_of, looks.CallsOfAnthropic()) if source.shape is SourceShape.LINES else None


def _messages(record: JSON) -> list[JSON]:
    return [item for item in fields.items(log_records.request_of(record), "messages")[:_HEADS] if is_message(item)]


def _is_anthropic(record: JSON) -> bool:
    """Does a message, a request body or a response have something that only Anthropic's API writes?"""
    if is_message(record):
        return has_own_block(record.get("content"))
    body, response = log_records.request_of(record), log_records.response_of(record)
    if "system" in body and not isinstance(body["system"], dict):
        return True
    answered = fields.text(response, "type") == "message" and isinstance(response.get("content"), list)
    return answered or any(has_own_block(message.get("content")) for message in _messages(record))


def has_own_block(content: Any) -> bool:
    """Is there a block in a message's content that only Anthropic's API has?"""
    return any(
        fields.text(block, "type") in _OWN_BLOCKS or (fields.text(block, "type") == "image" and "source" in block)
        for block in fields.objects(content)
    )


class AnthropicReader(ChatReader):
    """Chat recordings in Anthropic's spelling."""

    name = NAME

    def make_event(self, message: JSON, line: int | None) -> Event | None:
        return message_event(message, line)

    def usage(self, usage: JSON) -> JSON:
        return usage_of(usage)

    def __init__(self, source: ByteSource) -> None:
        super().__init__(source)
        self._inside = 0  # calls whose `input_tokens` hold the cached ones
        self._summarisers: dict[str, ModelCall] = {}  # by the summary that they made
        self._compacted: set[str] = set()  # summaries whose compaction is known
        self._summaries: dict[str, Event] = {}  # with which an answer begins, by the id of its response
        self._settings: dict[str, AgentSetting] = {}  # of the provider's compaction and clearing, the last by name
        self._clearings: dict[str, _Clearing] = {}  # by the response that states it
        self._spared: set[str] = set()  # tools whose results are never cleared
        self._replaced: dict[tuple[int, tuple[bool, ...]], Event] = {}  # messages without those results
        self._edited: dict[
            bytes, tuple[int, int]
        ] = {}  # what the last request lacked: `_Clearing.size`, by first message

    def answer(self, response: JSON) -> JSON | None:
        if not isinstance(response.get("content"), list):
            return None
        clearing = _clearing(fields.objects(fields.mapping(response, "context_management").get("applied_edits")))
        if any(clearing.size):
            self._clearings[fields.text(response, "id")] = clearing
        content, summary = [], None
        for block in fields.objects(response["content"]):
            if fields.text(block, "type") == "compaction":
                # The call that made it is one iteration of the call that it belongs to.
                listed = fields.objects(fields.mapping(response, "usage").get("iterations"))
                spent = next((item for item in listed if fields.text(item, "type") == "compaction"), {})
                call = ModelCall(at=0, model=fields.text(response, "model"), **usage_of(spent))
                self._summarisers[_summary_key(block)] = call
                summary = _summary_event(block, None)
            else:
                content.append(block)
        if summary is not None and content:
            self._summaries[fields.text(response, "id")] = summary
        return {**response, "role": "assistant", "content": content} if content or not self._summarisers else None

    def note_settings(self, body: JSON) -> None:
        for edit in fields.objects(fields.mapping(body, "context_management").get("edits")):
            self._settings |= {item.name: item for item in _settings_of(edit)}
            self._spared.update(name for name in fields.items(edit, "exclude_tools") if isinstance(name, str))

    def window(self, request: Request) -> Request:
        return self._summarised(self._without_cleared(self._behind_compaction(request)))

    def _summarised(self, request: Request) -> Request:
        """The request with the summary that the provider made of it before it answered: the answer begins with it, and
        its prompt is the summary."""
        summary = self._summaries.get(request.call.source_id) if request.call.source_id else None
        if summary is None or summary.source_id in self._compacted:
            return request
        self._compacted.add(summary.source_id)
        summariser = self._summarisers[summary.source_id]
        trigger = "auto" if COMPACT in self._settings else ""
        before = summariser.prompt_tokens
        line = request.call.line
        declared = Declared("summary", 1, summariser, trigger=trigger, tokens_before=before, line=line)
        return replace(request, summarised=(replace(summary, line=line), declared))

    def _without_cleared(self, request: Request) -> Request:
        """The request without the results and the thinking that the provider cleared in it: the oldest, as it
        documents. The client sends them again each time, and each response states all that its request lacked."""
        clearing = self._clearings.get(request.call.source_id) if request.call.source_id else None
        size = clearing.size if clearing else (0, 0)
        key = message_key(request.messages[0]) if request.messages else b""
        before = self._edited.get(key, (0, 0))
        if size == before and not any(size):
            return request
        self._edited[key] = size
        whole = self._with_placeholders(request.messages, size[0])
        messages = self._without_thinking(whole, size[1])
        if size == before or request.declared is not None:
            return replace(request, messages=messages)
        note = clearing.note if clearing else "The provider cleared nothing of this request any more."
        edited = tuple(place for place, event in enumerate(messages) if event is not whole[place])
        declared = Declared("edit", note=note, line=request.call.line, edited=edited)
        return replace(request, messages=messages, declared=declared)

    def _with_placeholders(self, messages: tuple[Event, ...], count: int) -> tuple[Event, ...]:
        parts = [part for event in messages for part in event.parts]
        names = {part.id: part.name for part in parts if isinstance(part, ToolCallPart)}
        results = (part.call_id for part in parts if isinstance(part, ToolResultPart))
        cleared = set(islice((name for name in results if names.get(name) not in self._spared), count))
        edited = []
        for event in messages:
            which = tuple(isinstance(part, ToolResultPart) and part.call_id in cleared for part in event.parts)
            if any(which):
                event = self._edited_once(event, which, lambda part: replace(part, content=CLEARED))
            edited.append(event)
        return tuple(edited)

    def _without_thinking(self, messages: tuple[Event, ...], turns: int) -> tuple[Event, ...]:
        """The messages without the thinking of the oldest turns that have some; a turn begins with words of the
        user."""
        turn, thinking = 0, []
        for event in messages:
            turn += event.starts_turn()
            thinks = [_is_thinking(part) for part in event.parts]
            thinking.append(turn if any(thinks) and not all(thinks) else -1)  # a message of thinking alone stays
        cleared = set(islice(dict.fromkeys(number for number in thinking if number >= 0), turns))
        return tuple(
            self._edited_once(event, tuple(map(_is_thinking, event.parts)), lambda part: None)
            if number in cleared
            else event
            for event, number in zip(messages, thinking, strict=True)
        )

    def _edited_once(self, event: Event, which: tuple[bool, ...], edit: Callable[[Any], Part | None]) -> Event:
        """A message with some of its parts edited, or left out; the same object for the same message."""
        key = (id(event), which)
        if key not in self._replaced:
            parts = (edit(part) if chosen else part for part, chosen in zip(event.parts, which, strict=True))
            self._replaced[key] = replace(event, parts=tuple(part for part in parts if part is not None))
        return self._replaced[key]

    def _behind_compaction(self, request: Request) -> Request:
        for at in range(len(request.messages) - 1, -1, -1):
            if (compaction := self.compaction_in(request.messages[at])) is not None:
                break
        else:
            return request
        summary, rest = compaction
        messages = (summary, *([rest] if rest.parts else []), *request.messages[at + 1 :])
        declared = None
        if summary.source_id not in self._compacted:
            self._compacted.add(summary.source_id)
            declared = Declared("summary", 1, self._summarisers.get(summary.source_id), line=request.call.line)
        return replace(request, messages=messages, declared=declared)

    def compaction_in(self, event: Event) -> tuple[Event, Event] | None:
        for at, part in enumerate(event.parts):
            if isinstance(part, OtherPart) and part.kind == "compaction":
                return _summary_event(part.value, event.line), replace(event, parts=event.parts[at + 1 :])
        return None

    def settings(self) -> tuple[AgentSetting, ...]:
        return tuple(self._settings.values())

    def mend_counts(self, requests: list[Request]) -> None:
        cached = CachedTokens()
        for place, request in enumerate(requests):
            chain = message_key(request.messages[0]).hex() if request.messages else ""
            cached.hear(chain, str(place), request.call)
        if not cached.judge():
            return
        for place, request in enumerate(requests):
            call = cached.counted(request.call)
            self._inside += call is not request.call
            requests[place] = replace(request, call=call)

    def remarks(self) -> list[str]:
        remarks = [INSIDE.format(counted(self._inside, "call"))] if self._inside else []
        if not self._clearings:
            return remarks
        most = max(self._clearings.values(), key=lambda clearing: clearing.results)
        if most.results:
            remarks.append(
                f"The provider itself cleared tool results that the log shows, up to {most.results:,} of one request "
                f"({most.tokens:,} tokens by its count): the oldest ones, which are left out of the requests here."
            )
        most = max(self._clearings.values(), key=lambda clearing: clearing.turns)
        if most.turns:
            remarks.append(
                f"The provider itself cleared thinking that the log shows, of up to {_turns(most.turns)} in one "
                f"request ({most.thinking:,} tokens by its count): the oldest ones, left out of the requests here."
            )
        return remarks

    def system_of(self, body: JSON) -> tuple[Part, ...] | None:
        return block_parts(body.get("system")) or None


def _settings_of(edit: JSON) -> Iterator[AgentSetting]:
    """The settings of one edit that a request asks for, with the documented defaults of what it leaves out."""
    kind, trigger = fields.text(edit, "type"), fields.mapping(edit, "trigger")
    value = fields.tokens(trigger, "value")
    if kind.startswith("compact_"):
        yield _setting(COMPACT, value, COMPACT_TRIGGER)
    elif kind.startswith("clear_tool_uses_"):
        by_uses = fields.text(trigger, "type") == "tool_uses" and value is not None
        yield _setting(CLEAR_USES, value, 0) if by_uses else _setting(CLEAR, value, CLEAR_TRIGGER)
        yield _setting(KEEP, fields.tokens(fields.mapping(edit, "keep"), "value"), CLEAR_KEEP)
        if (least := fields.tokens(fields.mapping(edit, "clear_at_least"), "value")) is not None:
            yield _setting(AT_LEAST, least, 0)
        if spared := fields.items(edit, "exclude_tools"):
            yield _setting(EXCLUDED, len(spared), 0)


def _setting(name: str, value: int | None, default: int) -> AgentSetting:
    where = "context_management of the requests"
    if value is None:
        return AgentSetting(name, default, f"default of {where}, which leave it out")
    return AgentSetting(name, value, where)


class _Clearing(NamedTuple):
    """What the provider cleared in one request: tool results, the thinking of turns, and the tokens that it counts for
    either."""

    results: int
    tokens: int
    turns: int
    thinking: int

    @property
    def size(self) -> tuple[int, int]:
        """How many results, and the thinking of how many turns."""
        return self.results, self.turns

    @property
    def note(self) -> str:
        """The clearing in sentences."""
        those = "tool result" if self.results == 1 else f"{self.results:,} tool results"
        results = f"The provider cleared the oldest {those} of this request: {self.tokens:,} tokens by its count."
        thinking = f"The provider cleared the thinking of the oldest {_turns(self.turns)} in this request: "
        thinking += f"{self.thinking:,} tokens by its count."
        return " ".join(([results] if self.results else []) + ([thinking] if self.turns else []))


def _clearing(edits: Iterable[JSON]) -> _Clearing:
    """The edits of a response added up."""
    sums = [0, 0, 0, 0]
    for edit in edits:
        for place, name in ((0, "cleared_tool_uses"), (2, "cleared_thinking_turns")):
            if count := fields.tokens(edit, name):
                sums[place] += count
                sums[place + 1] += fields.tokens(edit, "cleared_input_tokens") or 0
    return _Clearing(*sums)


def _turns(count: int) -> str:
    return "turn with thinking" if count == 1 else f"{count:,} turns with thinking"


def _is_thinking(part: Part) -> bool:
    return isinstance(part, ReasoningPart)


def _summary_event(block: JSON, line: int | None) -> Event:
    """A summary with its words; a sealed one with its size."""
    words, sealed = fields.text(block, "content"), fields.text(block, "encrypted_content")
    part = TextPart(words) if words else ReasoningPart(opaque_bytes=fields.opaque_size(sealed))
    return Event(Role.USER, (part,), _summary_key(block), line, meta=True)


def _summary_key(block: JSON) -> str:
    """What distinguishes a summary: it has no id."""
    words = fields.text(block, "content") + fields.text(block, "encrypted_content")
    return blake2b(words.encode("utf-8", "replace"), digest_size=8).hexdigest()


def message_event(message: JSON, line: int | None = None, **rest: Any) -> Event | None:
    """The event of one message (`rest`: fields of Event); None for a role that no chat has."""
    role = chat.ROLES.get(fields.text(message, "role").lower())
    if role is None:
        return None
    return Event(role, block_parts(message.get("content")), fields.text(message, "id"), line, **rest)


def usage_of(usage: JSON) -> JSON:
    """Counts of a usage object as fields of ModelCall; empty where it says nothing."""
    fresh = fields.tokens(usage, "input_tokens")
    if fresh is None:
        return {}
    cached = fields.tokens(usage, "cache_read_input_tokens")
    written = fields.tokens(usage, "cache_creation_input_tokens")
    hour = fields.tokens(fields.mapping(usage, "cache_creation"), fields.HOUR_TOKENS)
    return {
        "prompt_tokens": fresh + (cached or 0) + (written or 0),
        "cached_tokens": cached,
        "cache_write_tokens": written,
        "output_tokens": fields.tokens(usage, "output_tokens"),
        **({} if hour is None else {"cache_hour_tokens": hour}),
    }


def block_parts(content: Any) -> tuple[Part, ...]:
    """The parts of a message's content: text or blocks."""
    if isinstance(content, str):
        return (TextPart(content),) if content else ()
    return tuple(part for block in fields.objects(content) for part in _block(block))


def _block(block: JSON) -> tuple[Part, ...]:
    kind = fields.text(block, "type")
    if kind == "tool_use":
        return (ToolCallPart(fields.text(block, "name"), block.get("input"), fields.text(block, "id")),)
    if kind == "tool_result":
        return _result(block)
    if kind == "redacted_thinking":
        return (ReasoningPart(opaque_bytes=fields.opaque_size(fields.text(block, "data"))),)
    if kind == "file" and isinstance(block.get("content"), str):
        return (TextPart(block["content"]),)  # Cline sends the file's text
    if kind == "document" and (text := _document_text(fields.mapping(block, "source"))):
        return (TextPart(text),)
    if kind in {"text", "thinking", "image", "document", "reasoning"}:
        return fields.content_parts([block])
    return (OtherPart(kind or "unknown", _without_sealed(block)),)


def _document_text(source: JSON) -> str:
    """A document that is given as words, which the model reads as such."""
    kind = fields.text(source, "type")
    if kind == "text":
        return fields.text(source, "data")
    return fields.plain_text(source.get("content")) if kind == "content" else ""


def _without_sealed(value: Any) -> Any:
    """A block of the provider's own tools without what is encrypted in it (pages that a search found)."""
    if isinstance(value, dict):
        readable = {key: item for key, item in value.items() if key not in _SEALED or value.get("type") == "compaction"}
        return {key: _without_sealed(item) for key, item in readable.items()}
    return [_without_sealed(item) for item in value] if isinstance(value, list) else value


def _result(block: JSON) -> tuple[Part, ...]:
    """A tool result: its text, or the JSON that was sent; pictures in it are parts of their own."""
    content = block.get("content")
    call_id, name, failed = fields.text(block, "tool_use_id"), fields.text(block, "name"), block.get("is_error") is True
    if isinstance(content, list) and any(not fields.text(item, "type") for item in content):
        return (ToolResultPart(name, content, call_id, failed),)
    inner = block_parts(content)
    text = "\n".join(part.text for part in inner if isinstance(part, TextPart))
    media = (part for part in inner if not isinstance(part, TextPart))
    return (ToolResultPart(name, text, call_id, failed), *media)


FORMAT = AnthropicFormat()
