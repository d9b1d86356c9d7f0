"""One OpenCode session, message by message: steps, summaries, cleared results.

One assistant message may hold several steps: each `step-finish` part is a call, and its prompt tokens are
`tokens.input + cache.read + cache.write`. A step is one event with its text and calls, and one with all its results; an
interrupted step is a call without tokens. A tool that the user ran is in an assistant's message without any step:
no call was made. A user message with a `compaction` part and the assistant message behind it with `summary` exactly
true (user messages have an object there) declare a compaction: afterwards come a question, the summary, the tail from
`tail_start_id` on and OpenCode's request to continue, or the user's prompt again (after an overflow; by Kilo whenever
nothing of it was answered), which counts as kept. Before 1.0 there was no `compaction` part: the summary itself comes
first. Results with `state.time.compacted` were sent as a placeholder from then on, though the file keeps them whole:
the recorded view shows them rewritten, as an edit. What the plugin DCP replaces is a compaction of its own
(`plugin`). Messages whose text OpenCode wrote (`synthetic`) begin no turn.

Kilo Code, which is made of OpenCode, sends of a tail at first what belongs to the prompt that it works on, and all of
it from the next prompt on: an edit. Where it compacts a prompt before it sends it, an answer without content is before
the `compaction` part.
Source: https://github.com/sst/opencode, packages/opencode/src/session/message-v2.ts and compaction.ts; of Kilo the
program 7.7.9 (the queue of prompts, `scope`, and the loop of a session), and a run of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from msgspec.structs import replace

from guard_core.agent_versions import numbers
from guard_core.errors import DamagedRecording
from guard_core.events import Event, Part, ReasoningPart, Role, TextPart, ToolCallPart, ToolResultPart, value_text
from guard_core.recordings.formats.opencode import plugin
from guard_core.recordings.reading import fields, rewriting, wrong_kinds
from guard_core.recordings.reading.build import FactCounter, SessionBuilder
from guard_core.recordings.reading.fields import JSON
from guard_core.recordings.reading.identities import Identities
from guard_core.recordings.reading.refusals import names_length
from guard_core.recordings.reading.served_models import served_model
from guard_core.recordings.reading.source import ByteSource
from guard_core.recordings.reading.versions import single
from guard_core.sessions import Evidence, ModelCall, RecordedCompaction, Session
from guard_core.triggers import BY_PLUGIN, OVERFLOW, PREFLIGHT
from guard_core.views import CHANGED, JOINED, Inserted, Rewritten, Segment, Span, View
from guard_core.windows.subscriptions import SERVICE as SUBSCRIPTION

NAME = "opencode"
DETAILS_FROM = (7, 1)  # of Kilo: 7.0.33 adds nothing to a message, 7.7.2 does (run); versions between were not run
LABEL, KILO = "OpenCode", "Kilo Code"  # the agents that write such sessions
# How OpenCode words what it sends in place of a compacted past and of a cleared result (message-v2.ts).
QUESTION = "What did we do so far?"
CLEARED = "[Old tool result content cleared]"
PRUNED = "pruned"
# OpenCode sets the prices of a subscription to ChatGPT to zero, and of this model its limits to those of that service:
# 272,000 tokens of input (the program 1.15.13, its plugin for Codex).
SUBSCRIBED = "gpt-5.5"
_SEALS = ("signature", "reasoningEncryptedContent", "redactedData")
RAN = "The following tool was executed by the user"
ABORTED = "MessageAbortedError"
TOO_LONG = "ContextOverflowError"  # the name that newer versions give the error of a prompt that is too long
_NOT_SENT = frozenset({"step-start", "step-finish", "snapshot", "patch", "retry", "agent", "compaction"})
_READ_BEFORE = frozenset({"text/plain", "application/x-directory"})  # files whose text is a part of its own


def read_session(
    export: JSON, source: ByteSource, facts: FactCounter, notes: Iterable[str] = (), agent: str = LABEL
) -> Session:
    """One session of an export; its facts are added to `facts`."""
    reader = OpenCodeReader(source, facts, agent)
    facts.session()
    if _parent(fields.mapping(export, "info")):
        reader.compressions.forget()
    for message in wrong_kinds.objects(source, export.get("messages"), "message"):
        reader.message(fields.mapping(message, "info"), list(fields.objects(message.get("parts"))))
    return reader.session(fields.mapping(export, "info"), notes)


class _Place(NamedTuple):
    """How many events, and messages that compactions put in, are before a message."""

    events: int
    notices: int


class _Marker(NamedTuple):
    """A compaction that was asked for."""

    auto: bool
    overflow: bool
    tail: str
    preflight: bool  # did Kilo ask for it before it sent the prompt?
    place: _Place
    prompt: _Place  # the user's last one


class _WaitingTail(NamedTuple):
    """The beginning of the last compaction's tail, which Kilo sends from the next prompt on, and how many segments of
    that compaction are before it."""

    start: _Place
    stop: _Place
    behind: int


class _Pruned(NamedTuple):
    """A result that was cleared at a time (seconds)."""

    event: int
    call_id: str
    time: float


class OpenCodeReader:
    """One session, message by message."""

    def __init__(self, source: ByteSource, facts: FactCounter, agent: str = LABEL) -> None:
        self.source = source
        self.agent = agent
        self.notes = source.notes
        self.facts = facts
        self.log = SessionBuilder(NAME, source)
        self.seen = Identities(source, "message")
        self.starts: dict[str, _Place] = {}  # by the id of a message
        self.notices: list[tuple[int, Event]] = []  # what compactions put in, and the events before each
        self.pruned: list[_Pruned] = []
        self.compressions = plugin.Compressions()
        self.sub_agents: dict[str, str] = {}  # by the session that was started, the call of its tool
        self.marker: _Marker | None = None
        self.compacted = False  # did the message before hold a summary?
        self.unanswered = False  # was the message before an answer without content?
        self.prompt = _Place(0, 0)  # where the user's last message begins
        self.waiting: _WaitingTail | None = None
        self.asked: tuple[Part, ...] = ()  # what the user said last
        self.system: tuple[Part, ...] | None = None
        self.is_subscribed = False  # did a subscription to ChatGPT pay for the last counted call of OpenAI's

    def message(self, info: JSON, parts: list[JSON]) -> None:
        message_id, role = fields.text(info, "id"), fields.text(info, "role")
        if self.seen.is_repeat(message_id, parts):
            self.notes.folded += 1
            return
        parts = [part for part in parts if not _is_passing(part)]
        self.starts[message_id] = self._here
        self.compressions.message(len(self.log.events), role, parts)
        self.facts.message()
        compacted, self.compacted = self.compacted, False
        unanswered, self.unanswered = self.unanswered, role == "assistant" and not parts
        if role == "user":
            self._user(info, parts, after_summary=compacted, unanswered=unanswered)
        elif role == "assistant" and info.get("summary") is True:
            self._summary(info, parts)
        elif role == "assistant":
            self._assistant(info, parts)
        else:
            self.notes.skip(f"message of role {role or '(none)'}")

    @property
    def _here(self) -> _Place:
        return _Place(len(self.log.events), len(self.notices))

    # -- messages

    def _user(self, info: JSON, parts: list[JSON], *, after_summary: bool, unanswered: bool) -> None:
        asked = next((part for part in parts if part.get("type") == "compaction"), None)
        if asked is not None:
            self.facts.compaction()
            tail = fields.text(asked, "tail_start_id")
            preflight = self.agent == KILO and unanswered
            auto, overflow = asked.get("auto") is True, asked.get("overflow") is True
            self.marker = _Marker(auto, overflow, tail, preflight, self._here, self.prompt)
        shown = [part for part in parts if part.get("ignored") is not True]
        content = tuple(self._content(shown))
        spoken = [part for part in shown if fields.text(part, "type") in {"text", "file", "subtask"}]
        meta = all(part.get("synthetic") is True for part in spoken)
        if not content:
            return
        event = Event(Role.USER, content, fields.text(info, "id"), timestamp=_created(info), meta=meta)
        # Versions before parts were marked as synthetic repeated a prompt after an overflow only.
        repeated = self._repeated(event) if after_summary else None
        if repeated is not None and (meta or self.log.compactions[-1].trigger == OVERFLOW):
            last = self.log.compactions[-1]
            self.log.compactions[-1] = replace(last, base=(*last.base, repeated), kind="summary+tail")
            return
        if after_summary and meta:
            # What OpenCode says after a compaction, in the user's name: a part of the compaction, not of the log.
            last = self.log.compactions[-1]
            base = (*last.base, Inserted(len(last.messages)))
            self.notices.append((len(self.log.events), event))
            self.log.compactions[-1] = replace(last, base=base, messages=(*last.messages, event))
            return
        if not meta:
            self._sends_all(_created(info))
            self.prompt, self.asked = self._here, content
        self.log.event(event.role, content, source_id=event.source_id, timestamp=event.timestamp, meta=meta)

    def _repeated(self, message: Event) -> Segment | None:
        """The user's last prompt as a message sends it again: perhaps with a reminder behind it, or with the name of a
        file in place of the file; None for any other message."""
        place, same = self.prompt.events, message.parts[: len(self.asked)]
        if not self.asked or len(same) < len(self.asked):
            return None
        if any(new != old for new, old in zip(same, self.asked, strict=True) if isinstance(old, TextPart)):
            return None
        if message.parts == self.asked:
            return Span(place, place + 1)
        return Rewritten(place, message, JOINED if same == self.asked else CHANGED)

    def _sends_all(self, time: float | None) -> None:
        """From a prompt on the beginning of the last tail is sent, too."""
        waiting, self.waiting = self.waiting, None
        if waiting is None:
            return
        last, at = self.log.compactions[-1], len(self.log.events)
        begin, again = self._between(waiting.start, waiting.stop, len(last.messages))
        base = (*last.base[: waiting.behind], *begin, *last.base[waiting.behind :])
        whole = replace(last, base=base, messages=(*last.messages, *again))
        if last.at == at:
            self.log.compactions[-1] = whole
            return
        note = "What the last compaction kept of earlier turns is sent again from here on."
        self.log.compaction(_edit(at, [whole], {}, time, "prompt", note))

    def _assistant(self, info: JSON, parts: list[JSON]) -> None:
        if self.system is None and (texts := [text for text in fields.items(info, "system") if isinstance(text, str)]):
            self.system = tuple(TextPart(text) for text in texts)
        steps = list(_steps(parts))
        began = any(part.get("type") == "step-start" for part in parts)
        error = fields.mapping(info, "error")
        # Not the user's own stop, and not behind a step that was finished.
        if error and fields.text(error, "name") != ABORTED and not any(finish for _, finish in steps):
            self._failed(info, parts)
            return
        for number, (step, finish) in enumerate(steps):
            usage = fields.mapping(finish, "tokens")
            if not any(finished for _, finished in steps) and number == len(steps) - 1:
                usage = fields.mapping(info, "tokens")  # versions before steps had parts
            self._step(info, step, finish, usage, began=began or bool(finish))

    def _failed(self, info: JSON, parts: list[JSON]) -> None:
        """An answer that ended in an error: OpenCode does not send it again, so that it stays out of the log."""
        error = fields.mapping(info, "error")
        words = fields.text(fields.mapping(error, "data"), "message")
        if fields.text(error, "name") == TOO_LONG or names_length(words):
            self.log.refuse(words)
        content = tuple(self._content(parts))
        for tool in parts:
            if tool.get("type") == "tool" and (text := _result_text(tool)) is not None:
                self.facts.tool_result(fields.text(tool, "callID"), len(value_text(text)))
        if content:
            self.notes.skip("answer that failed")
            self.log.calls.append(replace(self._call(info, {}, {}), at=len(self.log.events)))

    def _step(self, info: JSON, parts: list[JSON], finish: JSON, usage: JSON, *, began: bool) -> None:
        call, at = self._call(info, finish, usage), len(self.log.events)
        source_id, created = fields.text(info, "id"), _created(info)
        tools = [part for part in parts if part.get("type") == "tool"]
        content = tuple(self._content(parts))
        if content:
            self.log.event(
                Role.MODEL, content, source_id=source_id, timestamp=created, author=fields.text(info, "agent")
            )
        if (content and began) or call.prompt_tokens:
            self.log.calls.append(replace(call, at=at, response=at if content else None))
        results = tuple(part for tool in tools for part in self._result(tool))
        if results:
            states = [fields.mapping(tool, "state") for tool in tools]
            times = [fields.timestamp(fields.mapping(state, "time"), "end") for state in states]
            ended = max((time for time in times if time is not None), default=None)
            self.log.event(Role.USER, results, source_id=source_id, timestamp=ended or created)
            if any(map(plugin.is_compression, tools)):
                self._compressed(tools, ended or created)

    def _compressed(self, tools: list[JSON], time: float | None) -> None:
        """The model had the plugin DCP replace messages by summaries, from the next request on."""
        at = len(self.log.events)
        if not self.compressions.apply(tools):
            self.log.compaction(_edit(at, self.log.compactions, {}, time, BY_PLUGIN, plugin.UNREAD))
            return
        self.facts.compaction()
        base, summaries = self.compressions.view(at)
        compaction = RecordedCompaction(
            at=at,
            evidence=Evidence.DECLARED,
            kind="summary+tail",
            base=base,
            messages=summaries,
            trigger=BY_PLUGIN,
            timestamp=time,
            note=plugin.NOTE,
        )
        self.log.compaction(compaction)

    def _summary(self, info: JSON, parts: list[JSON]) -> None:
        """The summariser's answer: it stays out of the log. With an error or without any part of text the compaction
        failed, and its question is sent with the messages that follow (1.18.33, run); without either the agent was
        ended meanwhile, and asks again once it is started (Kilo 7.7.9, run). A part whose text is empty was emptied."""
        marker, self.marker = self.marker, None
        if marker is None:
            self.facts.compaction()
        steps = list(_steps(parts))
        usages = [(finish, fields.mapping(finish, "tokens")) for _, finish in steps if finish]
        calls = [self._call(info, finish, usage) for finish, usage in usages or [({}, fields.mapping(info, "tokens"))]]
        texts = [fields.text(part, "text") for part in parts if part.get("type") == "text"]
        summary, at = "\n".join(filter(None, texts)), len(self.log.events)
        if not summary and (not texts or info.get("error")):
            self.notes.skip("compaction without a summary")
            self.log.side_calls += [replace(call, at=at) for call in calls]
            if not info.get("error") and not steps:
                self.marker = marker
            elif marker is not None:
                self.log.event(Role.USER, (TextPart(QUESTION),), timestamp=_created(info), meta=True)
            return
        self.compressions.forget()
        question = () if marker is None else (Event(Role.USER, (TextPart(QUESTION),), meta=True),)
        messages = (*question, Event(Role.MODEL, (TextPart(summary),), fields.text(info, "id")))
        asked = marker.place if marker else self._here
        start = self.starts.get(marker.tail, asked) if marker and marker.tail else asked
        # Kilo Code leaves out what its own compactions keep of earlier turns, until the next prompt.
        is_scoped = self.agent == KILO and marker is not None and marker.auto
        first = max(start, marker.prompt) if marker is not None and is_scoped else start
        self.waiting = _WaitingTail(start, first, len(messages)) if start < first else None
        tail, again = self._between(first, self._here, len(messages))
        self.notices += [(at, message) for message in messages]
        trigger = ""
        if marker is not None:
            automatic = PREFLIGHT if marker.preflight else "auto"
            trigger = OVERFLOW if marker.overflow else automatic if marker.auto else "manual"
        self.log.compaction(
            RecordedCompaction(
                at=at,
                evidence=Evidence.DECLARED,
                kind=("summary+tail" if tail else "summary") if summary else "empty",
                base=(*map(Inserted, range(len(messages))), *tail),
                messages=(*messages, *again),
                trigger=trigger,
                summariser=replace(calls[-1], at=at) if calls[-1].prompt_tokens else None,
                timestamp=_created(info),
                note="" if summary else "The summary is empty.",
            )
        )
        self.compacted = True

    def _between(self, first: _Place, stop: _Place, inserted: int) -> tuple[View, list[Event]]:
        """What is kept between two places, behind so many inserted messages: events, and what earlier compactions put
        in between, which is sent once more."""
        segments: list[Segment] = []
        start, again = first.events, self.notices[first.notices : stop.notices]
        for place, _ in again:
            segments += [Span(start, place)] if start < place else []
            segments.append(Inserted(inserted))
            start, inserted = place, inserted + 1
        segments += [Span(start, stop.events)] if start < stop.events else []
        return tuple(segments), [event for _, event in again]

    # -- parts

    def _content(self, parts: Iterable[JSON]) -> Iterator[Part]:
        """What the model reads or wrote in these parts; results come apart."""
        for part in parts:
            kind, text = fields.text(part, "type"), fields.text(part, "text")
            if kind == "text":
                yield from (TextPart(text),) if text else ()
            elif kind == "reasoning":
                yield ReasoningPart(text, opaque_bytes=_sealed(part.get("metadata")))
            elif kind == "subtask":
                yield TextPart(RAN)
            elif kind == "file" and fields.text(part, "mime") not in _READ_BEFORE:
                yield fields.media(fields.text(part, "mime"), fields.text(part, "url"))
            elif kind == "tool":
                call_id, name = fields.text(part, "callID"), fields.text(part, "tool")
                self.facts.tool_call(call_id)
                if started := fields.text(fields.mapping(fields.mapping(part, "state"), "metadata"), "sessionId"):
                    self.sub_agents[started] = call_id
                yield ToolCallPart(name, fields.mapping(part, "state").get("input"), call_id)
            elif kind not in _NOT_SENT and kind != "file":
                self.notes.skip(f"{kind or 'unnamed'} part")

    def _result(self, tool: JSON) -> Iterator[Part]:
        state, call_id = fields.mapping(tool, "state"), fields.text(tool, "callID")
        failed = fields.text(state, "status") == "error"
        content = _result_text(tool)
        if content is None:
            return  # pending or running when the file was written
        self.facts.tool_result(call_id, len(value_text(content)))
        yield ToolResultPart(fields.text(tool, "tool"), content, call_id, failed)
        for file in fields.objects(state.get("attachments")):
            yield fields.media(fields.text(file, "mime"), fields.text(file, "url"))
        cleared = fields.timestamp(fields.mapping(state, "time"), "compacted")
        if cleared is not None:
            self.pruned.append(_Pruned(len(self.log.events), call_id, cleared))

    def _call(self, info: JSON, finish: JSON, usage: JSON) -> ModelCall:
        cache = fields.mapping(usage, "cache")
        cached, written = fields.tokens(cache, "read"), fields.tokens(cache, "write")
        fresh = fields.signed_tokens(usage, "input")
        prompt = max(0, (fresh or 0) + (cached or 0) + (written or 0))
        model = self._served(info, finish, prompt)
        created, source_id = _created(info), fields.text(finish, "id") or fields.text(info, "id")
        if not prompt:
            return ModelCall(at=0, model=model, timestamp=created, source_id=source_id)
        self.facts.call(prompt)
        output, reasoning = fields.tokens(usage, "output"), fields.tokens(usage, "reasoning")
        # What the model thought is apart from its output in later versions (1.4.3, not in 1.2.16), as the total shows.
        if output is not None and reasoning and usage.get("total") == prompt + output + reasoning:
            output += reasoning
        return ModelCall(0, None, prompt, cached, written, output, model, created, None, source_id)

    def _served(self, info: JSON, finish: JSON, prompt: int) -> str:
        """The model's name, with the service before it that serves it. A call without a count is taken for one like the
        last: nothing says what it would have cost."""
        provider, model = fields.text(info, "providerID"), fields.text(info, "modelID")
        if prompt and provider == "openai":
            cost = finish.get("cost", info.get("cost"))
            self.is_subscribed = isinstance(cost, int | float) and not isinstance(cost, bool) and cost == 0
        has_own_window = provider == "openai" and self.is_subscribed and SUBSCRIBED in model
        return served_model(SUBSCRIPTION if has_own_window else provider, model)

    # -- the end

    def session(self, info: JSON, more: Iterable[str]) -> Session:
        if not self.starts and not info:
            raise DamagedRecording("the export holds no message that can be read")
        self.log.compactions = self._with_pruning()
        notes = [] if self.system else ["The system prompt is not in the file."]
        notes.append("The schemas of the tools are not in the file.")
        if self.agent == KILO and not () < numbers(fields.text(info, "version")) < DETAILS_FROM:
            notes.append("Kilo sends the time and the folder with every message of the user; they are not in the file.")
        notes += [plugin.NOT_IN_FILE] if self.compressions.is_used else []
        parent = _parent(info)
        notes += [f"This is a sub-agent's session of {parent}."] if parent else []
        taken_back = fields.text(fields.mapping(info, "revert"), "messageID")
        notes += [f"The user took back the messages from {taken_back} on."] if taken_back else []
        return self.log.session(
            system=self.system,
            source_id=fields.text(info, "id"),
            parent=parent,
            sub_agents=self.sub_agents,
            title=fields.text(info, "title"),
            agent=self.agent if self.agent != LABEL else fields.text(info, "agent") or LABEL,
            started_at=fields.timestamp(fields.mapping(info, "time"), "created"),
            notes=(*notes, *more),
            versions=single(fields.text(info, "version")),
        )

    def _with_pruning(self) -> list[RecordedCompaction]:
        """The compactions with one edit more for each time when results were cleared that were still sent: 1.18.33 also
        clears results behind which it has just compacted."""
        cleared: dict[int, list[_Pruned]] = {}
        events = self.log.outlines
        for item in self.pruned:
            later = range(item.event + 1, len(events))
            at = next((index for index in later if (events[index].timestamp or 0) >= item.time), len(events))
            cleared.setdefault(at, []).append(item)
        compactions: list[RecordedCompaction] = []
        rewritten: dict[int, Event] = {}
        summaries = iter(self.log.compactions)
        upcoming = next(summaries, None)
        for at in sorted({*cleared, *(item.at for item in self.log.compactions)}):
            for item in cleared.get(at, ()):
                event = rewritten.get(item.event, self.log.events[item.event])
                rewritten[item.event] = _without_content(event, item.call_id)
            while upcoming is not None and upcoming.at == at:
                compactions.append(replace(upcoming, base=rewriting.rewritten(upcoming.base, rewritten, PRUNED)))
                upcoming = next(summaries, None)
            if at in cleared and not (compactions and compactions[-1].at == at):
                edit = _edit(at, compactions, rewritten, min(item.time for item in cleared[at]))
                compactions += [edit] if edit.base != _sent_at(at, compactions) else []
        return compactions


def _steps(parts: list[JSON]) -> Iterator[tuple[list[JSON], JSON]]:
    """Parts of each step with the part that finished it (empty: it was interrupted, or the version had no steps)."""
    step: list[JSON] = []
    for part in parts:
        if part.get("type") == "step-finish":
            yield step, part
            step = []
        elif part.get("type") == "step-start":
            if step:
                yield step, {}
            step = []
        elif fields.text(part, "type") not in {"patch", "snapshot"}:
            step.append(part)
    if step:
        yield step, {}


def _result_text(tool: JSON) -> Any:
    """What the model gets of a tool: its output, its error, or what it had written when it was stopped."""
    state = fields.mapping(tool, "state")
    if fields.text(state, "status") != "error":
        return state.get("output")
    metadata = fields.mapping(state, "metadata")
    is_output = metadata.get("interrupted") is True and isinstance(metadata.get("output"), str)
    return metadata["output"] if is_output else state.get("error")


def _edit(
    at: int,
    before: list[RecordedCompaction],
    rewritten: dict[int, Event],
    time: float | None,
    trigger: str = "prune",
    note: str = "Old tool results were replaced by a placeholder.",
) -> RecordedCompaction:
    last = before[-1] if before else None
    return RecordedCompaction(
        at=at,
        evidence=Evidence.DECLARED,
        kind="edit",
        base=rewriting.rewritten(_sent_at(at, before), rewritten, PRUNED),
        messages=() if last is None else last.messages,
        trigger=trigger,
        timestamp=time,
        note=note,
    )


def _sent_at(at: int, before: list[RecordedCompaction]) -> View:
    """What is sent once `at` events are in the log, after some compactions."""
    return (*before[-1].base, Span(before[-1].at, at)) if before else (Span(0, at),)


def _without_content(event: Event, call_id: str) -> Event:
    """The event with the placeholder for one result; the files of that result are not sent either."""
    parts: list[Part] = []
    is_cleared = False
    for part in event.parts:
        if isinstance(part, ToolResultPart):
            is_cleared = part.call_id == call_id
            parts.append(replace(part, content=CLEARED) if is_cleared else part)
        elif not is_cleared:
            parts.append(part)
    return replace(event, parts=tuple(parts))


def _parent(info: JSON) -> str:
    """The session that started this one."""
    return fields.text(info, "parentID") or fields.text(info, "parent_id")


def _is_passing(part: JSON) -> bool:
    """Does a part only say what Kilo Code is doing: it goes when that is done, and is never sent (7.7.9, run)."""
    return fields.mapping(part, "metadata").get("kilocode.lifecycle") == "transient"


def _created(info: JSON) -> float | None:
    return fields.timestamp(fields.mapping(info, "time"), "created")


def _sealed(metadata: Any) -> int:
    """Bytes of signed or encrypted reasoning that a provider's metadata carry."""
    size = 0
    for provider in fields.objects(list(metadata.values()) if isinstance(metadata, dict) else None):
        size += sum(fields.opaque_size(text) for key in _SEALS if (text := fields.text(provider, key)))
    return size
