"""Codex CLI rollouts: what is sent is `response_item`; `event_msg` only repeats it for the screen.

Reasoning, text and calls of one response make one event; each result is one event. The prompt tokens of a call are
`last_token_usage.input_tokens` of a `token_count` whose running total changed (cached tokens included); from the
first `token_usage_record` on, these records count instead. A `token_count` with no input behind a compaction is Codex's
own estimate of the new context. `compacted` declares a compaction: its `replacement_history` is the exact new history;
older versions have only the summary, and keep the opening context and the last 20,000 tokens of user messages. An
encrypted summary is opaque. The summariser's answer, where it is in the file, stays out of the log. Old
rollouts have bare items and no tokens; the first ones (spring of 2025) are one object, `session` and `items`. Turns
that `thread_rolled_back` took back leave the log, and their calls count apart. A fork of older versions holds its
parent's history; one of newer versions names the file it continues (`history_base`), as does what follows a reverted
turn. The system prompt is in newer files (`base_instructions`); the tools are only where Codex sends both as items of
the input (`additional_tools` and a developer's message with the same prompt), as 0.171 does for some models.
Source: https://github.com/openai/codex, codex-rs/protocol/src/protocol.rs.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec

from guard_core.errors import DamagedRecording, LimitExceeded
from guard_core.events import (
    Event,
    OtherPart,
    Part,
    ReasoningPart,
    Role,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    part_text,
)
from guard_core.plural import counted
from guard_core.recordings.base import Recording
from guard_core.recordings.formats.codex import lines as codex_lines
from guard_core.recordings.formats.codex import look
from guard_core.recordings.formats.codex import words as codex_words
from guard_core.recordings.formats.codex.histories import left_without, old_base
from guard_core.recordings.formats.codex.known_names import NAMES
from guard_core.recordings.formats.codex.origin import CONTINUES, continued, origin_notes, parent_of
from guard_core.recordings.formats.codex.waiting import WaitingItems, estimates_items
from guard_core.recordings.formats.openai import items as responses_items
from guard_core.recordings.reading import chat, fields, summary_words
from guard_core.recordings.reading.build import FactCounter, SessionBuilder
from guard_core.recordings.reading.first_look import FirstLook
from guard_core.recordings.reading.placeholders import is_placeholder
from guard_core.recordings.reading.rebase import LogIndex
from guard_core.recordings.reading.source import ByteSource
from guard_core.recordings.reading.versions import single
from guard_core.sessions import AgentSetting, Evidence, ModelCall, RecordedCompaction, Session, ToolDefinition
from guard_core.triggers import POST_TURN

TOO_LONG = "context_window_exceeded"  # what Codex calls an error of a request that was too long
ONE_TURN = AgentSetting("process_per_turn", 1, "begun by `codex exec`, each turn of which is a process of its own")
_TURN_STARTS = frozenset({"task_started", "turn_started"})
_COMPLETE = frozenset({"task_complete", "turn_complete"})
_TURN_ENDS = _COMPLETE | {"turn_aborted"}


class CodexRolloutFormat:
    """Rollout files of the Codex CLI, with and without envelopes."""

    name = "codex"
    label = "Codex CLI"
    place = "~/.codex/sessions/…/rollout-*.jsonl"
    known_names = NAMES

    def matches(self, source: ByteSource) -> bool:
        return codex_lines.is_rollout(source)

    def read(self, source: ByteSource) -> Recording:
        reader, sessions = CodexRolloutReader(source), list[Session]()
        for number, obj in codex_lines.records(source):
            if reader.is_over(obj):
                sessions += reader.recording().sessions
                reader = reader.next()
            with source.tolerate(number):
                reader.record(obj, number)
        last = reader.recording()
        return Recording(last.format, (*sessions, *last.sessions), last.facts, last.notes)

    def first_look(self, source: ByteSource) -> FirstLook:
        return look.look(source)


class Where(NamedTuple):
    """The line (None: it has none of its own) and the time of a record."""

    line: int | None
    at: float | None


@dataclass
class _OpenResponse:
    """The response that is being collected: its event and parts, and how far its usage is known."""

    index: int
    parts: list[Part] = field(default_factory=list)
    claimed: str = ""  # "after": its usage came behind it; "before": before it
    results_since: bool = False
    for_compaction: bool = False
    call: int = 0  # index into the calls
    behind: int = 0  # parts before the first that came behind results
    late: Where | None = None  # where that first part is


class CodexRolloutReader:
    """One rollout, record by record."""

    def __init__(self, source: ByteSource, *, first: bool = True) -> None:
        self.source = source
        self.notes = source.notes
        self.facts = FactCounter("codex")
        self.log = SessionBuilder("codex", source, first=first)
        self.index = LogIndex(self.log)
        self.meta: dict[str, Any] = {}
        self.tools: dict[str, ToolDefinition] = {}  # by name; the last one of a name
        self.copied = False  # does the parent's own header follow that of a fork?
        self.parents = ""  # the id in that header
        self.model = ""
        self.output_limit = codex_words.OutputLimit()
        self.cut = 0  # results that were sent cut and are whole in the file
        self.title = ""
        self.awaits_estimate = False  # is the last compaction new, and its context not estimated yet?
        self.open: _OpenResponse | None = None
        self.pending: ModelCall | None = None  # usage that came before its response
        self.total: Any = None
        self.ended = -1  # events when the last turn ended
        self.waiting = WaitingItems()
        self.turns_marked = False  # has the file lines of turns
        self.turn_open = self.asked = False  # has a turn begun and not ended, and did a person say something in it
        self.turn_from = 0  # events when the last turn began
        self.is_answered = False  # was the last compaction made behind an answer of its turn that calls nothing
        self.unsure: int | None = None  # the compaction of which what follows in its turn says who asked for it
        self.usage_seen = False
        self.records = False
        self.marked = codex_lines.marks_requests(source)
        self.for_compaction = False  # does the line at hand say that it is a summariser's answer?

    def is_over(self, obj: dict[str, Any]) -> bool:
        """Is this the header of another session, behind the items of one: several files were put into one. A fork has
        its parent's header, too, before any item."""
        name = fields.text(fields.mapping(obj, "payload"), "id")
        is_header = fields.text(obj, "type") == "session_meta" and bool(self.log.events or self.log.calls)
        is_known = name in (fields.text(self.meta, "id"), self.parents)
        return is_header and not is_known and " " not in name and not is_placeholder(name)

    def next(self) -> CodexRolloutReader:
        """The reader of the session that follows in the same file; the facts are of both."""
        following = CodexRolloutReader(self.source, first=False)
        following.facts = self.facts
        following.facts.session()
        return following

    def record(self, obj: dict[str, Any], line: int | None) -> None:
        kind, payload = fields.text(obj, "type"), obj.get("payload")
        where = Where(line, fields.timestamp(obj, "timestamp"))
        if not isinstance(payload, dict):
            self._bare(obj, kind, where)
        elif kind == "response_item":
            self.for_compaction = fields.mapping(obj, "metadata").get("compaction_output") is True
            self._item(payload, where)
        elif kind == "event_msg":
            self._message(payload, where)
        elif kind == "token_usage_record":
            self.records = True
            self._usage(fields.mapping(payload, "usage"), where, fields.text(payload, "response_id"))
        elif kind == "compacted":
            self._compacted(payload, where)
        elif kind == "session_meta":
            self.copied = bool(self.meta)
            self.parents = fields.text(payload, "id") if self.copied else self.parents
            self.meta = self.meta or payload
        elif kind == "turn_context":
            self.model = fields.text(payload, "model") or self.model
            self.output_limit = codex_words.output_limit(payload)
            self._next_request()
        else:
            self.notes.skip(kind or "line without a type")

    def _bare(self, obj: dict[str, Any], kind: str, where: Where) -> None:
        if not kind and "id" in obj and not self.meta:
            self.meta = obj
        elif kind in codex_lines.BARE or responses_items.is_output(kind):
            self._item(obj, where)
        else:
            self.notes.skip(kind or fields.text(obj, "record_type") or "line without a type")
            self._next_request()

    # -- what is sent to the model

    def _item(self, item: dict[str, Any], where: Where) -> None:
        kind = fields.text(item, "type")
        self._triggered("auto")  # its turn continues
        sent = codex_words.as_sent(item, self.output_limit) if responses_items.is_output(kind) else item
        self.cut += sent is not item
        if self._estimates_items:
            self.waiting.add(sent, kind)
        if kind == "message":
            self._add_message(item, where)
        elif kind == "reasoning":
            self._answer((responses_items.reasoning_part(item),), item, where)
        elif kind in responses_items.CALLS:
            call = responses_items.call_part(item, kind)
            self.facts.tool_call(call.id)
            self._answer((call,), item, where)
        elif responses_items.is_output(kind):
            whole = responses_items.result_parts(item)
            self.facts.tool_result(fields.text(item, "call_id"), len(part_text(whole[0])))
            self._result(responses_items.result_parts(sent), item, where)
        elif kind == "agent_message":
            parts = responses_items.message_parts(item)
            self._user(parts, item, where, author=fields.text(item, "author"), meta=True)
        elif kind == responses_items.ADDED_TOOLS:
            self.tools |= {tool.name: tool for tool in chat.tool_definitions(item.get("tools")) or ()}
        elif kind == "tool_search_output":
            self._result(responses_items.hosted_parts(item, kind), item, where, meta=True)
        elif kind.endswith("_call"):
            self._answer(responses_items.hosted_parts(item, kind), item, where)
        else:
            self.notes.skip(f"response_item {kind}")

    def _add_message(self, item: dict[str, Any], where: Where) -> None:
        role, parts = fields.text(item, "role"), responses_items.message_parts(item)
        self.facts.message()
        if role == "assistant" and self._is_echo():
            self.log.event(Role.MODEL, parts, line=where.line, timestamp=where.at, source_id=fields.text(item, "id"))
        elif role == "assistant":
            self._answer(parts, item, where)
        elif role == "user":
            is_own = codex_words.is_own(item, parts)
            self.asked |= not is_own
            self._user(parts, item, where, meta=is_own)
        elif parts != self._system:
            self._settle()
            self.log.event(
                Role.SYSTEM, parts, line=where.line, timestamp=where.at, source_id=fields.text(item, "id"), meta=True
            )

    @property
    def _system(self) -> tuple[Part, ...] | None:
        """The system prompt; a developer's message with these words is the same prompt, which is sent once."""
        text = fields.text(fields.mapping(self.meta, "base_instructions"), "text")
        return (TextPart(text),) if text else None

    def _is_echo(self) -> bool:
        """Does an answer follow that Codex itself took over from a review, which ran elsewhere?"""
        last = self.log.events[-1] if self.log.events else None
        if last is None or self.open is not None or self.pending is not None:
            return False
        return last.meta and codex_words.opens_with(last.parts, codex_words.USER_ACTION)

    def _user(
        self, parts: tuple[Part, ...], item: dict[str, Any], where: Where, author: str = "", meta: bool = False
    ) -> None:
        if not meta:
            self._leave_uncounted_words()
        self._settle()
        source_id = fields.text(item, "id")
        self.log.event(
            Role.USER, parts, line=where.line, timestamp=where.at, source_id=source_id, author=author, meta=meta
        )

    def _result(self, parts: tuple[Part, ...], item: dict[str, Any], where: Where, meta: bool = False) -> None:
        """Something that answers a call: the response may still grow."""
        self.log.event(
            Role.USER, parts, line=where.line, timestamp=where.at, source_id=fields.text(item, "id"), meta=meta
        )
        if self.open is not None:
            self.open.results_since = True

    def _answer(self, parts: tuple[Part, ...], item: dict[str, Any], where: Where) -> None:
        """Parts of a response: of the one that is being collected, or of a new one."""
        response = self.open
        if response is None or self._is_over(response, fields.text(item, "type")):
            self._close()
            response = self._begin(item, where)
        if len(response.parts) + len(parts) > self.log.limits.parts:
            raise LimitExceeded(f"a response with more than {self.log.limits.parts} parts", line=where.line)
        if response.results_since and response.late is None:
            response.behind, response.late = len(response.parts), where
        response.parts += parts
        response.for_compaction |= self.for_compaction

    def _is_over(self, response: _OpenResponse, kind: str) -> bool:
        """Does an item of this kind begin the next response: also where the usage of the one before is not in the file.
        Only a text may be written behind the results of its own response."""
        if self.pending is not None or response.claimed == "after":
            return True
        if response.claimed or not response.results_since or self.marked:
            return False
        return not self.usage_seen or kind == "reasoning" or kind in responses_items.CALLS

    def _begin(self, item: dict[str, Any], where: Where) -> _OpenResponse:
        self.awaits_estimate = False
        index = self.log.event(Role.MODEL, (), line=where.line, timestamp=where.at, source_id=fields.text(item, "id"))
        response = self.open = _OpenResponse(index, call=len(self.log.calls))
        call = ModelCall(at=index, response=index, model=self.model, timestamp=where.at, line=where.line)
        if self._estimates_items:
            call = msgspec.structs.replace(call, pending_tokens=self.waiting.before.outputs)
        if self.pending is not None:
            call = msgspec.structs.replace(self.pending, at=index, response=index, timestamp=where.at)
            response.claimed, self.pending = "before", None
        self.log.calls.append(call)
        return response

    def _close(self) -> None:
        """The response is complete."""
        if self.open is not None:
            event = self.log.events[self.open.index]
            self.log.events[self.open.index] = msgspec.structs.replace(event, parts=tuple(self.open.parts))
            self.open = None

    def _next_request(self) -> None:
        """A line that older versions write between requests: a response whose results are there is complete."""
        if self.open is not None and self.open.results_since:
            self._close()

    def _leave_uncounted_words(self) -> None:
        """A person writes, or the file ends: where no line says that a turn is complete, uncounted words behind results
        are taken to have ended it."""
        if not (self.turns_marked or self.marked) and self.open is not None and not self.open.claimed:
            self._part_the_last_words()

    def _part_the_last_words(self) -> None:
        """A turn is complete once a response calls nothing: words behind the results of the last calls are one of their
        own, whose usage, or that of the calls, is not in the file."""
        response = self.open
        if response is None or response.late is None:
            return
        parts, where = response.parts[response.behind :], response.late
        if any(isinstance(part, ToolCallPart | OtherPart) for part in parts):
            return
        del response.parts[response.behind :]
        self._close()
        index = self.log.event(Role.MODEL, tuple(parts), line=where.line, timestamp=where.at)
        last = ModelCall(at=index, response=index, model=self.model, timestamp=where.at, line=where.line)
        if response.claimed == "after":  # behind the words, so that it is theirs
            calls = self.log.calls[response.call]
            last = msgspec.structs.replace(calls, at=index, response=index, timestamp=where.at, pending_tokens=None)
            uncounted = {"cached_tokens": None, "cache_write_tokens": None, "output_tokens": None, "source_id": ""}
            self.log.calls[response.call] = msgspec.structs.replace(calls, prompt_tokens=None, **uncounted)
        self.log.calls.append(last)

    def _settle(self) -> None:
        """Something from outside: the response before it is complete; usage without a response stays a call."""
        self._close()
        if self.pending is not None:
            self.log.calls.append(msgspec.structs.replace(self.pending, at=len(self.log.events)))
            self.pending = None

    # -- what it cost

    def _message(self, payload: dict[str, Any], where: Where) -> None:
        kind = fields.text(payload, "type")
        self._states_window(payload, len(self.log.events))
        if kind == "token_count":
            self._token_count(fields.mapping(payload, "info"), where)
        elif kind == "thread_rolled_back":
            self._rolled_back(fields.tokens(payload, "num_turns") or 0, where)
        elif kind == "thread_name_updated":
            self.title = fields.text(payload, "thread_name") or self.title
        else:
            error = payload if kind == "error" else fields.mapping(payload, "error")  # newer: of the turn that it ended
            if error.get("codex_error_info") == TOO_LONG:
                self.log.refuse(fields.text(error, "message"))
            self.turns_marked |= kind in _TURN_ENDS or kind in _TURN_STARTS
            if kind in _COMPLETE:
                self._part_the_last_words()
            if kind in _TURN_ENDS or kind in _TURN_STARTS:
                self._triggered(self._ended_by(kind))
                self.turn_open, self.asked, self.turn_from = kind in _TURN_STARTS, False, len(self.log.events)
            self.ended = len(self.log.events) if kind in _TURN_ENDS else self.ended
            self.notes.skip(f"event_msg {kind}")

    def _states_window(self, value: dict[str, Any], at: int) -> None:
        self.log.states_window(at, fields.window(value, "model_context_window"))

    def _token_count(self, info: dict[str, Any], where: Where) -> None:
        answered = len(self.log.events) if self.open is None else self.log.calls[self.open.call].at
        self._states_window(info, answered)
        last, total = fields.mapping(info, "last_token_usage"), info.get("total_token_usage")
        if not info:
            self.notes.skip("token_count without numbers")
        elif not fields.tokens(last, "input_tokens"):
            left = fields.tokens(last, "total_tokens")  # Codex's estimate of the context that a compaction left
            if self.awaits_estimate and left is not None:
                self.awaits_estimate = False
                self.log.compactions[-1] = msgspec.structs.replace(self.log.compactions[-1], tokens_after=left)
        elif total == self.total and total is not None:
            self.notes.folded += 1
        elif not self.records:
            self._usage(last, where, "")
        self.total = total if info else self.total

    def _usage(self, usage: dict[str, Any], where: Where, response_id: str) -> None:
        prompt = fields.tokens(usage, "input_tokens")
        if not prompt:
            self.notes.skip("usage without input tokens")
            return
        self.usage_seen = True
        self.facts.call(prompt)
        counts: dict[str, Any] = {
            "prompt_tokens": prompt,
            "cached_tokens": fields.tokens(usage, "cached_input_tokens"),
            "cache_write_tokens": fields.tokens(usage, "cache_write_input_tokens"),
            "output_tokens": fields.tokens(usage, "output_tokens"),
            "line": where.line,
            "source_id": response_id,
        }
        if self.open is not None and not self.open.claimed:
            self.open.claimed = "after"
            self.log.calls[self.open.call] = msgspec.structs.replace(self.log.calls[self.open.call], **counts)
            return
        pending = ModelCall(at=len(self.log.events), model=self.model, timestamp=where.at, **counts)
        self._settle()
        self.pending = pending

    # -- what was taken out of the context

    def _compacted(self, payload: dict[str, Any], where: Where) -> None:
        self.facts.compaction()
        summary = fields.text(payload, "message")
        history = payload.get("replacement_history")
        events = len(self.log.events)
        summariser = self._take_summariser(summary)
        waiting = self.waiting.before if len(self.log.events) < events else self.waiting.now
        note = ""
        if isinstance(history, list):
            said = (codex_words.replacing(item) for item in fields.objects(history))
            messages = tuple(event for event in said if event is not None and event.parts != self._system)
            base, inserted = self.index.rebase(messages)
        else:
            base, inserted = old_base(self.log, self.index, fields.text(self.meta, "cli_version"), summary)
            note = "The file has the summary only: the history behind it is put together from the user's messages."
        self.awaits_estimate = True
        self.waiting = WaitingItems()
        self.unsure = len(self.log.compactions) if self.turn_open and not self._is_within_a_turn() else None
        self.is_answered = len(self.log.events) > self.turn_from and self.log.events[-1].role is Role.MODEL
        kind = _kind(summary, inserted)
        self.log.compaction(
            RecordedCompaction(
                at=len(self.log.events),
                evidence=Evidence.DECLARED,
                kind=kind,
                base=base,
                messages=inserted,
                trigger="auto" if self._is_within_a_turn() else "",
                summariser=summariser,
                line=where.line,
                timestamp=where.at,
                pending_tokens=waiting.items if self._estimates_items else None,
                note="The summary is encrypted or not in the file." if kind == "opaque" else note,
            )
        )

    def _triggered(self, trigger: str) -> None:
        """What follows the last compaction says who asked for it: a turn that continues, or one that ends with it and
        had no other purpose (0.130.0 and 0.171.0, run with and without `/compact`)."""
        if self.unsure is not None and trigger:
            compaction = self.log.compactions[self.unsure]
            self.log.compactions[self.unsure] = msgspec.structs.replace(compaction, trigger=trigger)
        self.unsure = None

    def _ended_by(self, kind: str) -> str:
        """Who asked for a compaction of which a line of this kind says that its turn ended with it: the user of a turn
        that had no other purpose; Codex itself behind the answer of a turn that is complete (0.171.0, run)."""
        if self.asked and self.is_answered and kind in _COMPLETE:
            return POST_TURN
        return "" if self.asked or kind in _TURN_STARTS else "manual"

    @property
    def _estimates_items(self) -> bool:
        """Does this version estimate whole items, which are not in the log as they are in the file."""
        return estimates_items(fields.text(self.meta, "cli_version"))

    def _is_within_a_turn(self) -> bool:
        """Was the last thing sent to the model a tool's result, in a turn that continues: there Codex compacts by
        itself. Whether it was asked to between two turns, only the turns of newer versions say (`_triggered`)."""
        last = self.log.outlines[-1] if self.log.events else None
        has_result = last is not None and any(isinstance(part, ToolResultPart) for part in last.parts)
        return has_result and self.ended != len(self.log.events)

    def _take_summariser(self, summary: str) -> ModelCall | None:
        """The call that wrote the summary; what it added leaves the log. Usage without a response is that call's."""
        pending, response = self.pending, self.open
        self._close()
        self.pending = None
        length = len(self.log.events)
        if pending is not None:
            return msgspec.structs.replace(pending, at=length)
        if response is None or response.index != length - 1:
            return None
        text = "\n".join(part.text for part in response.parts if isinstance(part, TextPart)).strip()
        spoken = all(isinstance(part, TextPart | ReasoningPart) for part in response.parts)
        if not response.for_compaction and not (spoken and text and text in summary):
            return None
        call = self.log.calls.pop(response.call)
        self.log.events.pop()
        if self.log.events and codex_words.opens_with(self.log.events[-1].parts, codex_words.COMPACTION_PROMPT):
            self.log.events.pop()
        self.index.forget(len(self.log.events))
        return msgspec.structs.replace(call, at=len(self.log.events), response=None)

    def _rolled_back(self, turns: int, where: Where) -> None:
        """The user took back some turns: they are in no later request. More turns than began since the last compaction
        reach into what it left."""
        floor = self.log.compactions[-1].at if self.log.compactions else 0
        turns_so_far = self.index.turns()
        starts = turns_so_far[bisect_left(turns_so_far, floor) :]
        left = left_without(self.log, turns - len(starts)) if turns > len(starts) else None
        if not turns or not (starts or left):
            return
        self._settle()
        cut = floor if left else starts[-min(turns, len(starts))]
        least = cut if left else max(floor, turns_so_far[0])
        while cut > least and self.log.outlines[cut - 1].meta:  # written by Codex before the turn
            cut -= 1
        first = bisect_left(self.log.calls, cut, key=lambda call: call.at)
        removed = self.log.calls[first:]
        self.log.side_calls += [msgspec.structs.replace(call, at=cut, response=None) for call in removed]
        del self.log.calls[first:]
        del self.log.events[cut:]
        self.index.forget(cut)
        self.log.windows = [(min(at, cut), window) for at, window in self.log.windows]
        what = f"{counted(turns, 'turn')} with {counted(len(removed), 'call')}"
        if left is not None:
            base, messages = left
            note = f"The user took back {counted(turns, 'turn')}, also of those that the compaction before had left."
            edit = RecordedCompaction(cut, Evidence.DECLARED, "edit", base, messages, note=note)
            self.log.compaction(msgspec.structs.replace(edit, line=where.line, timestamp=where.at))
        self.log.notes.append(f"Rolled back and not in the log: {what}. Their tokens count apart.")

    # -- the end

    def recording(self) -> Recording:
        self._leave_uncounted_words()
        self._settle()
        if not self.meta and not self.log.events and not self.log.calls:
            raise DamagedRecording("the rollout holds no item that can be read")
        system = self._system
        notes = [] if self.tools else ["The schemas of the tools are not in the file."]
        notes += [] if system else ["The system prompt is not in the file."]
        notes += origin_notes(self.meta, self.copied)
        if self.cut:
            notes.append(f"Cut in the middle, as Codex sends them: {counted(self.cut, 'result')}, whole in the file.")
        session = self.log.session(
            system=system,
            tools=tuple(self.tools.values()) or None,
            source_id=fields.text(self.meta, "id"),
            parent=parent_of(self.meta),
            title=self.title,
            agent="Codex CLI",
            model=self.model,
            window=self.log.window("model_context_window in the file, the usable part of it"),
            started_at=fields.timestamp(self.meta, "timestamp"),
            notes=tuple(notes),
            versions=single(fields.text(self.meta, "cli_version")),
            settings=(ONE_TURN,) * (fields.text(self.meta, "source") == "exec")
            + (CONTINUES,) * bool(continued(self.meta)),
        )
        return Recording("codex", (session,), self.facts.facts(), self.notes)


FORMAT = CodexRolloutFormat()


def _kind(summary: str, inserted: Sequence[Event]) -> str:
    """What kind of compaction a summary and the inserted messages show: one that cannot be read may be in them."""
    if any(map(codex_words.is_sealed, inserted)):
        return "opaque"
    texts = [part_text(part) for event in inserted for part in event.parts if isinstance(part, TextPart)]
    summaries = [text for text in (summary, *texts) if text.lstrip().lower().startswith(summary_words.CODEX)]
    known = summary if summary.strip() or not summaries else summaries[-1]
    if not known.strip():
        return "opaque"
    return "empty" if codex_words.is_empty_summary(known) else "summary"
