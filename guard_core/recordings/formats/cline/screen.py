"""The screen's file of Cline and Roo Code (`ui_messages.json`): requests with their tokens, and what was said.

A call is an `api_req_started` with JSON text: prompt tokens are `tokensIn + cacheReads + cacheWrites`; newer versions
of Roo, known by their `apiProtocol`, count cached ones in `tokensIn`. Newer versions of Cline name the model beside the
text (`modelInfo`, ClineMessage in src/shared/ExtensionMessage.ts). Compactions are Roo's `condense_context` and
`sliding_window_truncation` with the tokens before and after, and, when Cline cuts the history, a new
`conversationHistoryDeletedRange`: the messages of the API's history that are in no later request.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from guard_core.events import Event, Part, ReasoningPart, Role, TextPart
from guard_core.recordings.base import Recording
from guard_core.recordings.formats.anthropic_messages import block_parts
from guard_core.recordings.reading import fields, wrong_kinds
from guard_core.recordings.reading.build import FactCounter, SessionBuilder
from guard_core.recordings.reading.fields import JSON
from guard_core.recordings.reading.rebase import view_of
from guard_core.recordings.reading.source import ByteSource
from guard_core.sessions import Evidence, ModelCall, RecordedCompaction
from guard_core.views import Inserted, View

_SPOKEN = frozenset(
    {
        "text",
        "reasoning",
        "tool",
        "completion_result",
        "plan_mode_respond",
        "act_mode_respond",
        "use_mcp_server",
        "browser_action_launch",
        "browser_action",
    }
)
_ASKED = frozenset({"command", "followup", "new_task", "use_subagents"})  # the model's words where they are asked
_HEARD = frozenset({"user_feedback", "user_feedback_diff", "command_output", "api_req_result", "mcp_server_response"})
_ROO_KINDS = frozenset({"condense_context", "condense_context_error", "sliding_window_truncation"})
_UNKNOWN_CUT = "Which messages left the requests is not in this file."

FORKS_NOTE = "Roo Code and its forks write this file; it does not say which of them did."


class ScreenReader:
    """The messages of the screen: calls with tokens, what was said, how the history was shortened."""

    name = "cline"

    def __init__(self, source: ByteSource) -> None:
        self.source = source
        self.facts = FactCounter(self.name)
        self.log = SessionBuilder(self.name, source)
        self.call: ModelCall | None = None
        self.cached_inside = False
        self.places: list[int | None] = []  # of each event: the message of the API's history that it is a part of
        self.deleted: tuple[int, int] | None = None

    def recording(self, messages: list[Any]) -> Recording:
        about = [self._about(message) for message in fields.objects(messages)]
        self.cached_inside = any("apiProtocol" in item for item in about) and not any(map(_is_more_cached, about))
        for message, request in zip(fields.objects(messages), about, strict=True):
            if message.get("partial") is True:
                self.source.notes.skip("partial message")
            else:
                self._message(message, request)
        self._close(None)
        notes = ["This is the file of the screen: what was sent to the model is not in it word for word."]
        is_roos = any("apiProtocol" in item for item in about) or any(
            fields.text(message, "say") in _ROO_KINDS for message in fields.objects(messages)
        )
        if is_roos:
            notes.append(FORKS_NOTE)
        session = self.log.session(agent="Roo Code" if is_roos else "Cline", notes=tuple(notes))
        return Recording(self.name, (session,), self.facts.facts(), self.source.notes)

    def _about(self, message: JSON) -> JSON:
        """What the message of a request says about it."""
        text = fields.text(message, "text")
        if fields.text(message, "say") != "api_req_started" or not text:
            return {}
        request: Any = {}
        with self.source.tolerate():
            request = self.source.parse(text.encode("utf-8", "replace"), what="the text of an api_req_started")
        if not isinstance(request, dict):
            return {}
        return request

    def _message(self, message: JSON, request: JSON) -> None:
        kind = fields.text(message, "say") or fields.text(message, "ask")
        at, text = fields.timestamp(message, "ts"), fields.text(message, "text")
        wrong_kinds.check_words(self.source, message, "text", f"a {kind[:40]} message")
        self._shortened(message, at)
        if kind == "api_req_started":
            self._started(request, fields.text(fields.mapping(message, "modelInfo"), "modelId"), at)
        elif kind == "condense_context":
            self._condensed(fields.mapping(message, "contextCondense"), at)
        elif kind == "sliding_window_truncation":
            self._truncated(fields.mapping(message, "contextTruncation"), at)
        elif kind in _SPOKEN or (fields.text(message, "type") == "ask" and kind in _ASKED):
            first = kind == "text" and not self.log.events
            self._add_message(message, Role.USER if first else Role.MODEL, text, at, reasoning=kind == "reasoning")
        elif kind in _HEARD or (kind == "task" and not self.log.events):
            self._add_message(message, Role.USER, text, at, meta=kind not in {"user_feedback", "task"})
        else:
            self.source.notes.skip(f"{kind or 'unnamed'} message")

    def _started(self, about: JSON, model: str, at: float | None) -> None:
        self._close(None)
        cached, written = fields.tokens(about, "cacheReads"), fields.tokens(about, "cacheWrites")
        prompt = (fields.tokens(about, "tokensIn") or 0) + (0 if self.cached_inside else (cached or 0) + (written or 0))
        if prompt:
            self.facts.call(prompt)
        output = fields.tokens(about, "tokensOut")
        counts = (prompt or None, cached, written, output)
        self.call = ModelCall(len(self.log.events), None, *counts, model=model, timestamp=at)

    def _add_message(
        self, message: JSON, role: Role, text: str, at: float | None, *, reasoning: bool = False, meta: bool = False
    ) -> None:
        if not text:
            return
        self.facts.message()
        part: Part = ReasoningPart(text) if reasoning else TextPart(text)
        last = len(self.log.events) - 1
        if role is Role.MODEL and self.call is None and last >= 0 and self.log.events[last].role is Role.MODEL:
            self.log.events[last] = replace(self.log.events[last], parts=(*self.log.events[last].parts, part))
            return
        index = self.log.event(role, (part,), timestamp=at, meta=meta)
        before = fields.tokens(message, "conversationHistoryIndex")  # the last message when this one began
        self.places.append(None if before is None else before + 1)
        if role is Role.MODEL:
            self._close(index)

    def _close(self, response: int | None) -> None:
        """The call that was started is answered by this event, or by none."""
        if self.call is not None:
            at = len(self.log.events) if response is None else response
            self.log.calls.append(replace(self.call, at=at, response=response))
        self.call = None

    def _shortened(self, message: JSON, at: float | None) -> None:
        """Cline's own cut: a range of the API's history that is in no later request."""
        ends = fields.items(message, "conversationHistoryDeletedRange")
        if len(ends) != 2 or not all(type(end) is int for end in ends) or (ends[0], ends[1]) == self.deleted:
            return
        self.deleted = first, last = ends[0], ends[1]
        remaining: list[int | None] = [
            index for index, place in enumerate(self.places) if place is None or not first <= place <= last
        ]
        self._compaction("trim", view_of(remaining), at)

    def _condensed(self, about: JSON, at: float | None) -> None:
        """A summary replaced all messages; one without a text left nothing that the file has."""
        self._close(None)
        summary = fields.text(about, "summary")
        message = Event(Role.USER, block_parts(summary), timestamp=at, meta=True)
        base: View = (Inserted(0),) if summary else ()
        self._compaction("summary", base, at, about, (message,) if summary else ())

    def _truncated(self, about: JSON, at: float | None) -> None:
        """Messages were cut, and the file does not say which: the requests here have all of them."""
        self._close(None)
        whole: list[int | None] = list(range(len(self.log.events)))
        self._compaction("trim", view_of(whole), at, about, note=_UNKNOWN_CUT)

    def _compaction(
        self,
        kind: str,
        base: View,
        at: float | None,
        about: JSON | None = None,
        messages: tuple[Event, ...] = (),
        note: str = "",
    ) -> None:
        self.facts.compaction()
        self.log.compaction(
            RecordedCompaction(
                at=len(self.log.events),
                evidence=Evidence.DECLARED,
                kind=kind,
                base=base,
                messages=messages,
                tokens_before=fields.tokens(about, "prevContextTokens"),
                tokens_after=fields.tokens(about, "newContextTokens"),
                timestamp=at,
                note=note,
            )
        )


def _is_more_cached(about: JSON) -> bool:
    """More cached tokens than tokens: so the cached ones are beside those, not among them."""
    cached = (fields.tokens(about, "cacheReads") or 0) + (fields.tokens(about, "cacheWrites") or 0)
    return cached > (fields.tokens(about, "tokensIn") or 0)
