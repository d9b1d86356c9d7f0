"""Conversations exported from Claude.ai and its apps: `conversations.json`, one of its conversations, or the archive.

`chat_messages` has the messages of all branches in the order in which they were written, each with its parent
(`parent_message_uuid`; older exports have none, and no branches). The displayed branch ends at
`current_leaf_message_uuid`, which an export does not have: there it is the one with the newest message. A message of
the assistant holds all its steps: what follows results of tools is the next call of the model. Text of attached files
is in the message (`extracted_content`), files are there by their names. There are no counts of tokens, and the model is
named only in conversations as the web page gets them.
Source: conversations of exports that their owners published, from 2024 to 2026; the keys of both forms are in
https://github.com/brandtcormorant/claude-json-schema.
"""

from __future__ import annotations

from collections.abc import Iterator

from guard_core.events import MediaPart, OtherPart, Part, ReasoningPart, Role, TextPart, ToolCallPart, ToolResultPart
from guard_core.plural import counted
from guard_core.recordings.base import Recording
from guard_core.recordings.reading import chat_exports, fields, wrong_kinds
from guard_core.recordings.reading.build import FactCounter, SessionBuilder
from guard_core.recordings.reading.fields import JSON
from guard_core.recordings.reading.known_names import Names, words
from guard_core.recordings.reading.source import ByteSource
from guard_core.sessions import UNRECORDED_COMPACTIONS, LeftBranches, Session

NAME = "claude-ai"
_SENDERS = {"human": Role.USER, "assistant": Role.MODEL}
_DISPLAYED = frozenset({"token_budget", "flag"})  # blocks of no words: what remains of a budget, a warning of the page


class ClaudeAiFormat:
    name = NAME
    label = "Claude.ai"
    place = "conversations.json of an export"
    known_names = Names(
        tools=words("content tool_use tool_result token_budget"),
        passed_over=words(
            "input display_content structured_content meta settings account attachments files files_v2 citations"
            " approval_options project"
        ),
    )

    def matches(self, source: ByteSource) -> bool:
        return chat_exports.is_export(source, _is_conversation)

    def read(self, source: ByteSource) -> Recording:
        facts, sessions = FactCounter(NAME), list[Session]()
        for conversation in chat_exports.conversations(source, _is_conversation):
            with source.apart(sessions), source.tolerate():
                if session := _ClaudeAiReader(source, facts).session(conversation):
                    sessions.append(session)
        if not sessions:
            raise source.nothing_left("no conversation with messages")
        return Recording(NAME, tuple(sessions), facts.facts(), source.notes)


FORMAT = ClaudeAiFormat()


def _is_conversation(value: JSON) -> bool:
    """A conversation, which may be empty: then the keys around it are known."""
    messages = value.get("chat_messages")
    if not isinstance(messages, list):
        return False
    heads = list(fields.objects(messages[:20]))
    return all(fields.text(head, "sender") in _SENDERS for head in heads) if heads else "uuid" in value


class _ClaudeAiReader:
    """One conversation, its displayed branch."""

    def __init__(self, source: ByteSource, facts: FactCounter) -> None:
        self._source = source
        self._facts = facts
        self._log = SessionBuilder(NAME, source)
        self._model = ""
        facts.session()

    def session(self, conversation: JSON) -> Session | None:
        """The session; None where the conversation has no message with words."""
        listed = list(wrong_kinds.objects(self._source, conversation.get("chat_messages"), "message"))
        self._model = fields.text(conversation, "model")
        path = _displayed(listed, fields.text(conversation, "current_leaf_message_uuid"))
        for message in path:
            self._message(message)
        if not self._log.events:
            self._source.notes.skip("conversation without messages")
            return None
        notes = [UNRECORDED_COMPACTIONS, "The file has no counts of tokens, no system prompt and no schemas of tools."]
        left = len(listed) - len(path)
        if left:
            notes.append(f"{counted(left, 'message')} on branches that are not displayed: not in the log.")
        return self._log.session(
            source_id=fields.text(conversation, "uuid"),
            title=fields.text(conversation, "name"),
            agent="Claude.ai",
            started_at=fields.timestamp(conversation, "created_at"),
            left=LeftBranches(messages=left) if left else None,
            notes=notes,
        )

    def _message(self, message: JSON) -> None:
        sender = fields.text(message, "sender")
        role = _SENDERS.get(sender)
        if role is None:
            self._source.notes.skip(f"message of the sender {sender[:40] or 'none'}")
            return
        self._facts.message()
        wrong_kinds.check_words(self._source, message, "content", "a message")
        for block in fields.objects(message.get("content")):
            wrong_kinds.check_words(self._source, block, "text", "a block")
        when, name = fields.timestamp(message, "created_at"), fields.text(message, "uuid")
        for said, results in _steps(message):
            for speaker, parts in ((role, said), (Role.USER, results)):
                if not parts:
                    continue
                self._facts.parts(parts)
                if speaker is Role.MODEL:
                    call = {"model": self._model, "timestamp": when, "source_id": name}
                    self._log.answer(parts, call=call, timestamp=when, source_id=name)
                else:
                    self._log.event(speaker, parts, timestamp=when, source_id=name)


def _displayed(messages: list[JSON], leaf: str) -> list[JSON]:
    """The messages of the branch that is displayed, in their order."""
    if not any(fields.text(message, "parent_message_uuid") for message in messages):
        return messages
    named = {fields.text(message, "uuid"): message for message in messages}
    parents = {name: fields.text(message, "parent_message_uuid") for name, message in named.items()}
    if leaf not in named:
        moments = {name: fields.timestamp(message, "created_at") for name, message in named.items()}
        leaf = chat_exports.newest_leaf(parents, moments)
    return [named[name] for name in chat_exports.current_path(parents, leaf)]


def _steps(message: JSON) -> Iterator[tuple[list[Part], list[Part]]]:
    """What each step of a message says and calls, and what its tools gave back."""
    said: list[Part] = []
    results: list[Part] = []
    for block in fields.objects(message.get("content")):
        kind = fields.text(block, "type")
        if kind == "tool_result":
            results += _result(block)
            continue
        if results and kind not in _DISPLAYED:
            yield said, results
            said, results = [], []
        said += _said(block, kind)
    if not said and not results and (text := fields.text(message, "text")):
        said = [TextPart(text)]
    yield [*said, *_attached(message)], results


def _said(block: JSON, kind: str) -> list[Part]:
    if kind in _DISPLAYED:
        return []
    if kind == "thinking":
        signature = fields.text(block, "signature")
        return [ReasoningPart(fields.text(block, "thinking"), fields.opaque_size(signature) if signature else 0)]
    if kind == "tool_use":
        return [ToolCallPart(fields.text(block, "name"), block.get("input"), fields.text(block, "id"))]
    if kind in {"text", "voice_note"}:
        text = fields.text(block, "text")
        return [TextPart(text)] if text else []
    return [OtherPart(kind or "unknown", block)]


def _result(block: JSON) -> list[Part]:
    """What a tool gave back: text, or the blocks of other kinds as they are."""
    content = block.get("content")
    blocks = list(fields.objects(content))
    is_text = bool(blocks) and all(fields.text(item, "type") == "text" for item in blocks)
    value = fields.plain_text(blocks) if is_text else content
    failed = block.get("is_error") is True
    return [ToolResultPart(fields.text(block, "name"), value, fields.text(block, "tool_use_id"), failed)]


def _attached(message: JSON) -> list[Part]:
    """The text of attached files, and the names of those that the model was given themselves."""
    parts: list[Part] = []
    for item in fields.objects(message.get("attachments")):
        if text := fields.text(item, "extracted_content"):
            parts.append(TextPart(text))
    for item in fields.objects(message.get("files")):
        if name := fields.text(item, "file_name") or fields.text(item, "file_uuid"):
            parts.append(MediaPart(fields.text(item, "file_kind"), uri=name[:2000]))
    return parts
