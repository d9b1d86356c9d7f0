"""Conversations exported from ChatGPT: `conversations.json`, one of its conversations, or the archive with it.

A conversation is a tree, `mapping`, of messages that were edited and answers that were asked for again; `current_node`
is the end of the branch that is displayed, and only this branch is read. A message has one kind of content, so an
answer with its reasoning and a call is several messages of the assistant: they are one call of the model until a tool
or the user speaks, or one of them ends the turn. One to a `recipient` other than all calls that tool, whose results are
messages of a tool with its name. Reasoning is there as its summaries, and `reasoning_recap` is only displayed. The
user's instructions and the memory are messages, too; system prompts mostly are empty. There are no counts of tokens.
Source: conversations of exports that their owners published, from 2023 to 2026; the kinds of content with their counts
are listed at https://github.com/mitkury/chatgpt-export-parser (docs/chatgpt-data-export-format.md).
"""

from __future__ import annotations

from typing import Any

from guard_core.events import MediaPart, OtherPart, Part, ReasoningPart, Role, TextPart, ToolCallPart, ToolResultPart
from guard_core.plural import counted
from guard_core.recordings.base import Recording
from guard_core.recordings.reading import chat_exports, fields, wrong_kinds
from guard_core.recordings.reading.build import FactCounter, SessionBuilder
from guard_core.recordings.reading.fields import JSON
from guard_core.recordings.reading.known_names import Names, words
from guard_core.recordings.reading.source import ByteSource
from guard_core.sessions import UNRECORDED_COMPACTIONS, LeftBranches, Session

NAME = "chatgpt"
_TO_ALL = frozenset({"", "all"})  # recipients of what is said to the user
# Where the kinds of content have their text; those with `parts` have it there.
_TEXTS = {
    "code": "text",
    "execution_output": "text",
    "system_error": "text",
    "tether_quote": "text",
    "sonic_webpage": "text",
    "tether_browsing_display": "result",
    "model_editable_context": "model_set_context",
}
_CONTEXTS = frozenset({"user_editable_context", "model_editable_context"})  # instructions of the user, and the memory
_MEDIA = {"image": "image", "audio": "audio", "video": "video"}  # how kinds of parts that point to a file are named
# By plan and mode from 16,000 tokens to 400,000, while the API gives the same models up to a million (chatai.guide,
# limits/chatgpt-context-window, after OpenAI's help pages).
_WINDOW = (
    "ChatGPT's window depends on the plan and is mostly smaller than the model's in the API: set it where you know it."
)
_NO_LEAF = "The file does not say which branch is displayed: the one with the newest message is read."


class ChatGptFormat:
    name = NAME
    label = "ChatGPT"
    place = "conversations.json of an export"
    known_names = Names(passed_over=words("metadata moderation_results voice context_scopes"))

    def matches(self, source: ByteSource) -> bool:
        return chat_exports.is_export(source, _is_conversation)

    def read(self, source: ByteSource) -> Recording:
        facts, sessions = FactCounter(NAME), list[Session]()
        for conversation in chat_exports.conversations(source, _is_conversation):
            with source.apart(sessions), source.tolerate():
                reader = _ChatGptReader(source, facts)
                reader.read(conversation)
                if session := reader.session(conversation):
                    sessions.append(session)
        if not sessions:
            raise source.nothing_left("no conversation with messages")
        return Recording(NAME, tuple(sessions), facts.facts(), source.notes)


FORMAT = ChatGptFormat()


def _is_conversation(value: JSON) -> bool:
    nodes = list(fields.mapping(value, "mapping").values())[:20]
    return bool(nodes) and all(
        isinstance(node, dict) and "message" in node and "parent" in node and "children" in node for node in nodes
    )


class _ChatGptReader:
    """One conversation, its displayed branch."""

    def __init__(self, source: ByteSource, facts: FactCounter) -> None:
        self._source = source
        self._facts = facts
        self._log = SessionBuilder(NAME, source)
        self._system: tuple[Part, ...] = ()
        self._answer: list[Part] = []  # of the call of the model that is being read
        self._call: JSON = {}
        self._called: tuple[str, str] = ("", "")  # the tool that was called last, and the id of the call
        self._left = 0
        self._is_summarised = False
        facts.session()

    def read(self, conversation: JSON) -> None:
        nodes: dict[str, JSON] = {
            name: node for name, node in fields.mapping(conversation, "mapping").items() if isinstance(node, dict)
        }
        parents = {name: fields.text(node, "parent") for name, node in nodes.items()}
        leaf = fields.text(conversation, "current_node")
        if leaf not in nodes:
            self._log.notes.append(_NO_LEAF)
            moments = {name: fields.timestamp(node.get("message"), "create_time") for name, node in nodes.items()}
            leaf = chat_exports.newest_leaf(parents, moments)
        path = chat_exports.current_path(parents, leaf)
        for name in path:
            self._message(fields.mapping(nodes[name], "message"))
        self._end_answer()
        others = (fields.mapping(nodes[name], "message") for name in nodes.keys() - set(path))
        self._left = sum(_role(message) in {"user", "assistant", "tool"} for message in others)

    def _message(self, message: JSON) -> None:
        role, content = _role(message), fields.mapping(message, "content")
        if fields.text(content, "content_type") == "reasoning_recap":
            self._source.notes.skip("reasoning_recap, which is displayed in the place of reasoning")
            return
        for item in fields.items(content, "parts"):
            wrong_kinds.check_words(self._source, {"part": item}, "part", "a message")
        parts = _parts(content)
        if role == "assistant" and fields.text(content, "content_type") not in _CONTEXTS:
            self._facts.message()
            self._said(message, parts)
        elif role == "tool":
            self._facts.message()
            self._end_answer()
            self._result(message, content, parts)
        elif role in {"user", "assistant", "system"}:
            self._facts.message(role != "system")
            self._end_answer()
            self._given(message, role, parts)
        elif message:
            self._source.notes.skip(f"message of the role {role[:40] or 'none'}")

    def _said(self, message: JSON, parts: list[Part]) -> None:
        """A part of an answer: words, reasoning, or the call of a tool."""
        recipient, name = fields.text(message, "recipient"), fields.text(message, "id")
        if recipient not in _TO_ALL:
            text = "".join(part.text for part in parts if isinstance(part, TextPart))
            parts = [ToolCallPart(recipient, fields.arguments(text), name)]
            self._called = recipient, name
        self._is_summarised = self._is_summarised or any(isinstance(part, ReasoningPart) for part in parts)
        self._answer += parts
        model = fields.text(fields.mapping(message, "metadata"), "model_slug")
        self._call = {
            "model": model or self._call.get("model", ""),
            "timestamp": self._call.get("timestamp") or fields.timestamp(message, "create_time"),
            "source_id": self._call.get("source_id") or name,
        }
        if message.get("end_turn") is True:
            self._end_answer()

    def _end_answer(self) -> None:
        """What the assistant said so far is the answer of one call of the model."""
        if self._answer:
            when, name = self._call["timestamp"], self._call["source_id"]
            self._facts.parts(self._answer)
            self._log.answer(self._answer, call=self._call, timestamp=when, source_id=name)
        self._answer, self._call = [], {}

    def _result(self, message: JSON, content: JSON, parts: list[Part]) -> None:
        """What a tool gave back; a result of no call is what ChatGPT itself put there, as a file of the user."""
        tool = fields.text(fields.mapping(message, "author"), "name")
        recipient, call = self._called
        if not tool or (recipient != tool and not recipient.startswith(f"{tool}.")):
            call = ""
        texts = [part.text for part in parts if isinstance(part, TextPart)]
        value = "\n".join(texts) if texts or fields.text(content, "content_type") in {*_TEXTS, "text"} else None
        failed = fields.text(content, "content_type") == "system_error"
        others = [part for part in parts if not isinstance(part, TextPart)]
        self._add(Role.USER, [ToolResultPart(tool, value, call, failed), *others], message)

    def _given(self, message: JSON, role: str, parts: list[Part]) -> None:
        """What the user wrote, and what ChatGPT adds to every request."""
        is_context = fields.text(fields.mapping(message, "content"), "content_type") in _CONTEXTS
        if not parts:
            return
        if role == "system" and not self._log.events:
            self._system = (*self._system, *parts)
        elif role == "system":
            self._add(Role.SYSTEM, parts, message, meta=True)
        else:
            self._add(Role.USER, parts, message, meta=is_context)

    def _add(self, role: Role, parts: list[Part], message: JSON, *, meta: bool = False) -> None:
        self._facts.parts(parts)
        when, name = fields.timestamp(message, "create_time"), fields.text(message, "id")
        self._log.event(role, parts, source_id=name, timestamp=when, meta=meta)

    def session(self, conversation: JSON) -> Session | None:
        """The session; None where the branch has no message that is sent."""
        if not self._log.events:
            self._source.notes.skip("conversation without messages")
            return None
        notes = [UNRECORDED_COMPACTIONS, _WINDOW, "The file has no counts of tokens, and no schemas of tools."]
        if not self._system:
            notes.append("The system prompt is not in the file.")
        if self._is_summarised:
            notes.append("Reasoning is in the file as its summaries, which are not what the model wrote.")
        if self._left:
            notes.append(f"{counted(self._left, 'message')} on branches that are not displayed: not in the log.")
        name = fields.text(conversation, "conversation_id") or fields.text(conversation, "id")
        return self._log.session(
            system=self._system or None,
            source_id=name,
            title=fields.text(conversation, "title"),
            agent="ChatGPT",
            started_at=fields.timestamp(conversation, "create_time"),
            left=LeftBranches(messages=self._left) if self._left else None,
            notes=notes,
        )


def _role(message: JSON) -> str:
    return fields.text(fields.mapping(message, "author"), "role")


def _parts(content: JSON) -> list[Part]:
    """What a message's content says, by its kind."""
    kind = fields.text(content, "content_type")
    if kind == "thoughts":
        thoughts = fields.objects(content.get("thoughts"))
        texts = ([fields.text(item, "summary"), fields.text(item, "content")] for item in thoughts)
        return [ReasoningPart("\n".join(filter(None, pair))) for pair in texts if any(pair)]
    if kind == "user_editable_context":
        own = (fields.text(content, key) for key in ("user_profile", "user_instructions"))
        return [TextPart(text) for text in own if text]
    if isinstance(content.get("parts"), list):
        return [part for item in content["parts"] if (part := _part(item)) is not None]
    if text := fields.text(content, _TEXTS.get(kind, "text")):
        return [TextPart(text)]
    return [OtherPart(kind, content)] if kind and kind not in _TEXTS and kind != "text" else []


def _part(item: Any) -> Part | None:
    """One of several parts: text, or a file that the export has beside the conversation, if at all."""
    if isinstance(item, str):
        return TextPart(item) if item else None
    if not isinstance(item, dict):
        return None
    if text := fields.text(item, "text"):
        return TextPart(text)
    kind = fields.text(item, "content_type")
    pointer = fields.text(item, "asset_pointer")
    mime = next((mime for word, mime in _MEDIA.items() if word in kind), "")
    return MediaPart(mime, uri=pointer[:2000]) if pointer else OtherPart(kind or "unknown", item)
