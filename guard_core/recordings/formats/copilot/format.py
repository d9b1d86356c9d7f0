"""GitHub Copilot CLI event logs (`events.jsonl`): one session per file.

Definition: the session events of https://github.com/github/copilot-sdk (`{type, data, id, parentId, timestamp}`).
`system.message` is the real system prompt. A user message's `transformedContent` (with date and reminders) is what is
sent, its `content` what was typed: the user's words and what surrounds them are events joined in one message. A
`system.notification` is sent in the user's name. An `assistant.message` is one model call: `toolRequests` are its
calls, reasoning may be readable or opaque. `tool.execution_complete` gives the result text that the model saw
(`result.content`, or the error's message), written when the tool ended: 1.0.102 sends results in the order of their
calls, versions to 1.0.92 in the order of the file (run). A `session.error` may hold the words in which the provider
refused a request. Prompt tokens per call are in `session.usage_record` (1.0.102 writes it) or
in `assistant.usage` where a client did write it; both include cached tokens. Where neither is, notes state the totals
in `session.shutdown`, which are the session's where they have as many calls. Events of sub-agents (`agentId`, in older
versions `parentToolCallId`) are sessions of their own, their calls side calls of the main one.
`session.compaction_complete` is a declared compaction: what the user typed and the summary take the place of all that
was there when it began. What Copilot compared is `currentTokens` of its start (the provider's last count and an
estimate of what was added); `preCompactionTokens` of 1.0.102 is another, local estimate. `session.truncation` is a
declared trim of the oldest messages.
The window is the recorder's `tokenLimit`. Facts count events of the three kinds of messages, and the calls of
sub-agents, too.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from itertools import accumulate
from typing import Any

import msgspec

from guard_core.bounds import MAX_TOKENS
from guard_core.plural import counted
from guard_core.recordings.base import Recording
from guard_core.recordings.formats.copilot import look as copilot_look
from guard_core.recordings.formats.copilot.context import MODEL_LIMIT, CopilotContext, result_text, tool_calls
from guard_core.recordings.formats.copilot.known_names import NAMES
from guard_core.recordings.reading import fields
from guard_core.recordings.reading.build import FactCounter
from guard_core.recordings.reading.fields import JSON
from guard_core.recordings.reading.first_look import FirstLook
from guard_core.recordings.reading.lost_lines import lost_words
from guard_core.recordings.reading.refusals import names_length
from guard_core.recordings.reading.source import ByteSource, Line
from guard_core.recordings.reading.states import content_key
from guard_core.recordings.reading.versions import single

OWN_TYPES = frozenset({"session.start", "user.message", "assistant.message", "assistant.turn_start", "system.message"})
# Kinds that are messages; `model.message` of newer versions repeats the answer of a summariser.
_MESSAGES = frozenset({"user.message", "assistant.message", "system.message"})


class CopilotFormat:
    name = "copilot-cli"
    label = "Copilot CLI"
    place = "~/.copilot/session-state/…/events.jsonl"
    known_names = NAMES

    def matches(self, source: ByteSource) -> bool:
        lines = source.head_lines()
        own = sum(
            1 for line in lines if fields.text(line.obj, "type") in OWN_TYPES and isinstance(line.obj.get("data"), dict)
        )
        return own > 0 and all("type" in line.obj and "data" in line.obj for line in lines[:3])

    def read(self, source: ByteSource) -> Recording:
        reader = CopilotReader(source)
        for line in source.lines():
            reader.take(line)
        return reader.recording()

    def first_look(self, source: ByteSource) -> FirstLook:
        return copilot_look.look(source)


FORMAT = CopilotFormat()


class CopilotReader:
    """Takes the events in the order of the file, each into its context."""

    def __init__(self, source: ByteSource) -> None:
        self._source = source
        self._facts = FactCounter(FORMAT.name)
        self._main = CopilotContext(FORMAT.name, source, FORMAT.label)
        self._agents: dict[str, CopilotContext] = {}
        self._names: dict[str, str] = {}  # of sub-agents, by their id and by the call that started them
        self._started: dict[str, str] = {}  # by a sub-agent's id, the tool call that started it
        self._counted: set[str] = set()  # API calls whose usage was recorded
        self._totals: list[tuple[str, int, int]] = []  # of a run: model, calls and their prompt tokens together
        self._ids: set[str] = set()  # of events, by which the next one names the one before it
        self._known: set[bytes] = set()  # events with an id, to leave out what repeats one exactly
        self._parents: list[tuple[str, int]] = []  # those names, with their lines
        self._handlers: dict[str, Callable[[JSON, Line], None]] = {
            "session.start": self._start,
            "session.resume": self._resume,
            "session.model_change": self._model_change,
            "system.message": lambda data, line: self._context(data, line).system_message(data, line),
            "user.message": lambda data, line: self._context(data, line).user(data, line),
            "assistant.message": self._assistant,
            "assistant.turn_start": lambda data, line: self._context(data, line).turn_start(),
            "assistant.usage": self._assistant_usage,
            "session.usage_record": self._usage_record,
            "tool.execution_complete": self._result,
            "session.compaction_start": lambda data, line: self._context(data, line).compaction_start(data, line),
            "session.compaction_complete": self._compaction,
            "session.truncation": self._truncation,
            "session.usage_info": lambda data, line: self._context(data, line).window(data, MODEL_LIMIT),
            "session.shutdown": self._shutdown,
            "subagent.started": self._subagent,
            "system.notification": lambda data, line: self._context(data, line).notification(data, line),
            "session.error": self._error,
        }

    def take(self, line: Line) -> None:
        kind = fields.text(line.obj, "type")
        if name := fields.text(line.obj, "id"):
            self._ids.add(name)
            key = content_key(line.obj)
            if key in self._known:
                self._source.notes.folded += 1
                return
            self._known.add(key)
        if parent := fields.text(line.obj, "parentId"):
            self._parents.append((parent, line.number))
        if kind in _MESSAGES:
            self._facts.message()
        handler = self._handlers.get(kind)
        if handler is None:
            self._source.notes.skip(kind[:80] or "event without a type")
            return
        handler(fields.mapping(line.obj, "data"), line)

    def recording(self) -> Recording:
        for agent in self._agents.values():
            agent.about["parent"] = self._main.about.get("source_id", "")
        self._main.about["sub_agents"] = {key: self._started.get(key, key) for key in self._agents}
        agents = [agent.session() for agent in self._agents.values()]
        builder = self._main.builder
        lines = list(accumulate((event.line or 0 for event in builder.outlines), max))
        beside = sorted((call for agent in agents for call in agent.calls), key=lambda call: call.line or 0)
        for call in beside:
            at = bisect_left(lines, call.line or 0)
            builder.side_calls.append(msgspec.structs.replace(call, at=at, response=None))
        if not any(call.prompt_tokens for call in builder.calls):
            self._state_totals()
        builder.notes += lost_words([line for parent, line in self._parents if parent not in self._ids])
        sessions = (self._main.session(), *(agent for agent in agents if agent.events))
        return Recording(FORMAT.name, sessions, self._facts.facts(), self._source.notes)

    def _state_totals(self) -> None:
        """The totals of each run as notes; those of a single model's calls are the session's where they are its calls,
        one for one."""
        main = self._main
        main.builder.notes += [
            f"{sent:,} prompt tokens in {counted(count, 'call')} of {model[:80]} together."
            for model, count, sent in self._totals
        ]
        models, calls = {model for model, _, _ in self._totals}, sum(count for _, count, _ in self._totals)
        total = sum(sent for _, _, sent in self._totals)
        is_whole = calls == len(main.builder.calls) and not self._agents and total <= MAX_TOKENS
        if len(models) == 1 and is_whole:
            main.about.update(prompt_tokens_total=total, total_calls=calls)
            main.about["model"] = main.about.get("model") or models.pop()[:80]

    def _context(self, data: JSON, line: Line) -> CopilotContext:
        """The main conversation, or that of the sub-agent an event belongs to."""
        key = fields.text(line.obj, "agentId") or fields.text(data, "parentToolCallId")
        if not key:
            return self._main
        if key not in self._agents:
            agent = CopilotContext(FORMAT.name, self._source, f"{FORMAT.label} sub-agent")
            agent.about.update(source_id=key, title=f"Sub-agent {self._names.get(key, key)[:40]}")
            self._agents[key] = agent
        return self._agents[key]

    def _error(self, data: JSON, line: Line) -> None:
        """Why a run ended; a request that the provider refused as too long is one of the session."""
        message = fields.text(data, "message")
        if not names_length(message):
            self._source.notes.skip("session.error")
            return
        self._context(data, line).refuse(message)

    def _start(self, data: JSON, line: Line) -> None:
        about = self._main.about
        if version := fields.text(data, "copilotVersion"):
            about["versions"] = single(version)
        about.setdefault("source_id", fields.text(data, "sessionId"))
        about.setdefault("started_at", fields.timestamp(data, "startTime"))
        about["model"] = fields.text(data, "selectedModel") or about.get("model", "")

    def _resume(self, data: JSON, line: Line) -> None:
        """A resumed session states its settings anew, as at its start."""
        self._start(data, line)
        self._main.resumed()

    def _model_change(self, data: JSON, line: Line) -> None:
        """The conversation has the model that was named last."""
        about = self._context(data, line).about
        about["model"] = fields.text(data, "newModel") or about.get("model", "")

    def _subagent(self, data: JSON, line: Line) -> None:
        """Later events name a sub-agent by its id or by the call that started it."""
        name = fields.text(data, "agentDisplayName") or fields.text(data, "agentName")
        agent, call = fields.text(line.obj, "agentId"), fields.text(data, "toolCallId")
        self._names |= {key: name or key for key in (agent, call)}
        self._started[agent] = call

    def _assistant(self, data: JSON, line: Line) -> None:
        """The facts count the calls of tools in all conversations together."""
        for part in tool_calls(data):
            self._facts.tool_call(part.id)
        self._context(data, line).assistant(data, line)

    def _usage_record(self, data: JSON, line: Line) -> None:
        """Versions that write this record send results in the order of their calls, and state the prompt's limit."""
        usage = fields.mapping(data, "usage")
        self._context(usage, line).orders_results = True
        self._assistant_usage(usage, line)
        self._context(usage, line).window(usage, "maxPromptTokens")

    def _assistant_usage(self, data: JSON, line: Line) -> None:
        prompt, call_id = fields.tokens(data, "inputTokens"), fields.text(data, "apiCallId")
        if prompt is None or call_id in self._counted:
            return
        self._counted.update({call_id} - {""})
        self._facts.call(prompt)
        usage: dict[str, Any] = {
            "prompt_tokens": prompt,
            "cached_tokens": fields.tokens(data, "cacheReadTokens"),
            "cache_write_tokens": fields.tokens(data, "cacheWriteTokens"),
        }
        output = fields.tokens(data, "outputTokens")
        if output is not None:
            usage["output_tokens"] = output
        self._context(data, line).usage(usage, line)

    def _result(self, data: JSON, line: Line) -> None:
        """The facts count the results in all conversations together."""
        self._facts.tool_result(fields.text(data, "toolCallId"), len(result_text(data)))
        self._context(data, line).result(data, line)

    def _compaction(self, data: JSON, line: Line) -> None:
        if data.get("success") is False:
            self._source.notes.skip("failed compaction")
            self._context(data, line).no_compaction()
            return
        context = self._context(data, line)
        if context is self._main:
            self._facts.compaction()
        context.compaction(data, line)

    def _truncation(self, data: JSON, line: Line) -> None:
        context = self._context(data, line)
        context.window(data, MODEL_LIMIT)
        if not fields.tokens(data, "messagesRemovedDuringTruncation"):
            self._source.notes.skip("truncation without effect")
            return
        if context is self._main:
            self._facts.compaction()
        context.truncation(data, line)

    def _shutdown(self, data: JSON, line: Line) -> None:
        """Totals of one run; with an `accountingSnapshot` (1.0.102) those of all runs of a resumed session."""
        snapshot = fields.mapping(data, "accountingSnapshot")
        if snapshot:
            self._totals.clear()
        for model, metrics in fields.mapping(snapshot or data, "modelMetrics").items():
            count = fields.tokens(fields.mapping(metrics, "requests"), "count")
            sent = fields.tokens(fields.mapping(metrics, "usage"), "inputTokens")
            if count and sent is not None:
                self._totals.append((model, count, sent))
