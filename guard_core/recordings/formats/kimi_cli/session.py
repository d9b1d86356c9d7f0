"""A session of Kimi CLI, put together from its context files and its wire.

The contexts hold what was sent, so the log is theirs; the wire adds times, cached tokens, the window and who asked for
a compaction. Calls that are in no context file (some were put aside and are gone) are taken from the wire.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from typing import Any

from msgspec.structs import replace

from guard_core.events import Event, Role, TextPart, ToolResultPart
from guard_core.plural import counted
from guard_core.recordings.formats.kimi_cli.context import KimiCliContext
from guard_core.recordings.formats.kimi_cli.wire import Entry, Wire, WireCompaction, WireStep, key_of
from guard_core.recordings.reading import summary_words
from guard_core.recordings.reading.build import FactCounter, SessionBuilder
from guard_core.recordings.reading.lost_lines import skipped_in_turns
from guard_core.recordings.reading.rebase import LogIndex
from guard_core.recordings.reading.source import ByteSource
from guard_core.recordings.reading.versions import single
from guard_core.sessions import Evidence, ModelCall, RecordedCompaction, Session
from guard_core.views import Inserted, Segment, Span, View

NAME, LABEL = "kimi-cli", "Kimi CLI"
KEPT = 2  # messages of the user or the model that a compaction keeps: max_preserved_messages in soul/compaction.py


class SessionJoiner:
    """One session. `lined`: it comes from a single file, whose lines its events name."""

    def __init__(self, source: ByteSource, facts: FactCounter, *, lined: bool, first: bool) -> None:
        self.facts, self.lined = facts, lined
        self.log = SessionBuilder(NAME, source, first=first)
        self.index = LogIndex(self.log)
        self.unread = 0  # compactions whose summary is in no file
        self.times = _WireTimes()

    def join(self, wire: Wire | None, contexts: Sequence[KimiCliContext], **fields: Any) -> Session:
        """The session of a wire (None: there is none) and the context files in their order."""
        shown = _WireEntries(wire)
        self.times.learn(wire)
        before: KimiCliContext | None = None
        for context in contexts:
            missing, compaction = shown.until(context)
            self._entries(missing)
            self._context(context, before, compaction, shown)
            before = context
        if not contexts or shown.is_matched:
            self._entries(shown.rest())
        if wire is not None:
            self.log.side_calls += (call for _, call in wire.side_calls)
        return self._session(wire, contexts, **fields)

    # -- from contexts

    def _context(
        self,
        context: KimiCliContext,
        before: KimiCliContext | None,
        compaction: WireCompaction | None,
        shown: _WireEntries,
    ) -> None:
        start = self._begin(context, before, compaction)
        for event, call in context.messages[start:]:
            if call is None:
                self._append(self.times.of(event))
                continue
            step = shown.match(event)
            if step is not None:
                call, event = _completed(call, step.call), replace(event, timestamp=step.answer.timestamp)
            self._answer(event, call, step.window if step is not None else 0)

    def _begin(self, context: KimiCliContext, before: KimiCliContext | None, compaction: WireCompaction | None) -> int:
        """What a file held from its beginning, and how many of its messages that is."""
        common = _common(context, before) if before is not None else 0
        if context.is_compacted and common < context.base:
            self._compacted(context, compaction)
            return context.base
        if before is not None and common < len(before.keys):
            base, messages = self.index.rebase([event for event, _ in context.messages[:common] if event.parts])
            trigger, note = "clear", "The user cleared the context."
            if common:
                trigger, note = "rewind", "The conversation returned to an earlier point."
            self._record(kind="edit", base=base, messages=messages, trigger=trigger, note=note)
        return common

    def _compacted(self, context: KimiCliContext, compaction: WireCompaction | None) -> None:
        history = [event for event, _ in context.messages[: context.base]]
        base, messages = self.index.rebase([event for event in history if event.parts])
        self._count(messages)
        self._record(
            kind="summary+tail" if any(not isinstance(segment, Inserted) for segment in base) else "summary",
            base=base,
            messages=messages,
            trigger=compaction.trigger if compaction else "",
            tokens_after=context.estimate,
            timestamp=compaction.timestamp if compaction else None,
        )

    # -- from the wire

    def _entries(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            if isinstance(entry, Event):
                self._append(entry)
            elif isinstance(entry, WireStep):
                self._answer(entry.answer, entry.call, entry.window)
                for result in entry.results:
                    self._append(result)
            else:
                self._shown_compaction(entry)

    def _shown_compaction(self, compaction: WireCompaction) -> None:
        """A compaction whose summary no file has: what it kept follows from Kimi CLI's rule."""
        tail = self._tail()
        if tail is None and not compaction.is_cut:
            return  # there was nothing to summarise
        tail = _segments(range(len(self.log.events))) if tail is None else tail
        self.unread += 1
        summary = Event(Role.USER, (TextPart(summary_words.KIMI_CLI),), meta=True)
        messages, segments = [summary], list[Segment]([Inserted(0)])
        last = self.log.compactions[-1] if self.log.compactions else None
        for segment in tail:
            if isinstance(segment, Inserted) and last is not None:
                messages.append(last.messages[segment.index])
                segments.append(Inserted(len(messages) - 1))
            else:
                segments.append(segment)
        self._record(
            kind="opaque",
            base=tuple(segments),
            messages=tuple(messages),
            trigger=compaction.trigger,
            line=compaction.line if self.lined else None,
            timestamp=compaction.timestamp,
            note="The summary is not in the file; what was kept follows from Kimi CLI's rule.",
        )

    def _tail(self) -> View | None:
        """The newest messages of what is sent, from the second last of the user or the model on; None where there are
        no others."""
        last = self.log.compactions[-1] if self.log.compactions else None
        start = last.at if last else 0
        base = _places(last.base) if last else []
        places: list[int | Inserted] = [*base, *range(start, len(self.log.events))]
        seen = 0
        for number in range(len(places) - 1, -1, -1):
            place = places[number]
            parts = self.log.outlines[place].parts if isinstance(place, int) else ()
            seen += not any(isinstance(part, ToolResultPart) for part in parts)  # of the user or the model: no result
            if seen == KEPT:
                return _segments(places[number:]) if number else None
        return None

    # -- both

    def _append(self, event: Event) -> int:
        self._count((event,))
        own = event if self.lined else replace(event, line=None)
        return self.log.event(**{name: getattr(own, name) for name in own.__struct_fields__})

    def _answer(self, event: Event, call: ModelCall, window: int) -> None:
        at = len(self.log.events)
        self.log.states_window(at, window)
        if call.prompt_tokens:
            self.facts.call(call.prompt_tokens)
        response = self._append(event) if event.parts else None
        line = call.line if self.lined else None
        self.log.calls.append(replace(call, at=at, response=response, line=line))

    def _count(self, events: Iterable[Event]) -> None:
        for event in events:
            self.facts.message()
            self.facts.parts(event.parts)

    def _record(self, **fields: Any) -> None:
        if fields["kind"] != "edit":
            self.facts.compaction()
        self.log.compaction(RecordedCompaction(at=len(self.log.events), evidence=Evidence.DECLARED, **fields))

    def _session(self, wire: Wire | None, contexts: Sequence[KimiCliContext], **fields: Any) -> Session:
        system = next((context.system for context in reversed(contexts) if context.system), "")
        return self.log.session(
            system=(TextPart(system),) if system else None,
            agent=LABEL,
            window=self.log.window("max_context_tokens in the file"),
            versions=single(f"wire {wire.protocol}" if wire and wire.protocol else ""),
            sub_agents={agent: call for agent, call in wire.sub_agents.items() if call} if wire else {},
            notes=tuple(self._notes(wire, contexts, system)),
            **fields,
        )

    def _notes(self, wire: Wire | None, contexts: Sequence[KimiCliContext], system: str) -> list[str]:
        lacks = "The tools and the model's name are" if system else "The system prompt, the tools and the model are"
        notes = [f"{lacks} not in the file."]
        if self.unread:
            notes.append(
                f"{counted(self.unread, 'compaction')} without the summary, which only context files have: what is kept"
                " is inferred, and what the software added to the conversation by itself is missing."
            )
        if contexts and contexts[0].is_compacted and not (self.log.compactions and self.log.compactions[0].at):
            notes.append("What was said before the first summary is not in the file.")
        if wire is not None and wire.failed:
            notes.append(f"{counted(wire.failed, 'compaction')} failed.")
        if wire is not None:
            notes += skipped_in_turns(wire.numbered)
        return notes


class _WireEntries:
    """The entries of a wire, taken in their order while contexts are read."""

    def __init__(self, wire: Wire | None) -> None:
        self._entries = wire.entries if wire else []
        self._places: dict[object, deque[int]] = defaultdict(deque)
        for place, step in wire.steps if wire else ():
            self._places[step.key].append(place)
        self._done = 0  # entries that are taken
        self.is_matched = False

    def until(self, context: KimiCliContext) -> tuple[Sequence[Entry], WireCompaction | None]:
        """What the wire shows before the first call of a context and no context before it holds, up to its last call;
        then the compaction by which the context began."""
        first = next((event for event, call in context.messages if call is not None), None)
        place = self._find(first) if first is not None else None
        if place is None:
            stop = self._done if first is not None else len(self._entries)
        else:
            stop = place
        between = self._entries[self._done : stop]
        steps = [number for number, entry in enumerate(between) if isinstance(entry, WireStep)]
        missing = between[: steps[-1] + 1] if steps and place is not None else []
        compactions = [entry for entry in between[len(missing) :] if isinstance(entry, WireCompaction)]
        if context.is_compacted and compactions and first is None:
            compactions = compactions[:1]
        self._done += len(missing)
        if context.is_compacted and compactions:
            self._done = self._entries.index(compactions[-1], self._done) + 1
        return missing, compactions[-1] if compactions else None

    def match(self, answer: Event) -> WireStep | None:
        """The step that shows an answer, and all before it as taken."""
        place = self._find(answer)
        if place is None:
            return None
        self._done, self.is_matched = place + 1, True
        step = self._entries[place]
        return step if isinstance(step, WireStep) else None

    def _find(self, answer: Event) -> int | None:
        places = self._places.get(key_of(answer))
        while places and places[0] < self._done:
            places.popleft()
        return places[0] if places else None

    def rest(self) -> Sequence[Entry]:
        """What comes behind the last call that was matched: whole steps that no context has."""
        rest = self._entries[self._done :]
        steps = [number for number, entry in enumerate(rest) if isinstance(entry, WireStep)]
        return rest if steps or not self.is_matched else []


class _WireTimes:
    """When results came and the user spoke, as the wire shows it."""

    def __init__(self) -> None:
        self._results: dict[str, float | None] = {}
        self._words: dict[str, deque[float | None]] = defaultdict(deque)

    def learn(self, wire: Wire | None) -> None:
        for entry in wire.entries if wire else ():
            if isinstance(entry, Event):
                self._words[_words_of(entry)].append(entry.timestamp)
            elif isinstance(entry, WireStep):
                self._results.update((_call_id(event), event.timestamp) for event in entry.results)

    def of(self, event: Event) -> Event:
        """The event with its time, if that is known."""
        if call_id := _call_id(event):
            return replace(event, timestamp=self._results.get(call_id))
        words = self._words.get(_words_of(event))
        return replace(event, timestamp=words.popleft()) if words else event


def _common(context: KimiCliContext, before: KimiCliContext) -> int:
    """How many messages two files begin with alike."""
    pairs = zip(context.keys, before.keys, strict=False)
    return next(
        (number for number, (mine, other) in enumerate(pairs) if mine != other),
        min(len(context.keys), len(before.keys)),
    )


def _words_of(event: Event) -> str:
    return "\n".join(part.text for part in event.parts if isinstance(part, TextPart))


def _call_id(event: Event) -> str:
    return next((part.call_id for part in event.parts if isinstance(part, ToolResultPart)), "")


def _completed(call: ModelCall, shown: ModelCall) -> ModelCall:
    """The call of a context with what only the wire has."""
    if call.prompt_tokens is None:
        return replace(shown, line=call.line)
    same = shown.prompt_tokens == call.prompt_tokens
    return replace(
        call,
        cached_tokens=shown.cached_tokens if same else None,
        cache_write_tokens=shown.cache_write_tokens if same else None,
        output_tokens=call.output_tokens if call.output_tokens is not None else shown.output_tokens,
        timestamp=shown.timestamp,
        source_id=shown.source_id,
    )


def _places(view: View) -> list[int | Inserted]:
    """The messages of a view by their numbers in the log, and what was inserted."""
    places: list[int | Inserted] = []
    for segment in view:
        if isinstance(segment, Span):
            places += range(segment.start, segment.stop)
        elif isinstance(segment, Inserted):
            places.append(segment)
    return places


def _segments(places: Sequence[int | Inserted]) -> View:
    """The same as the fewest segments."""
    segments: list[Segment] = []
    for place in places:
        last = segments[-1] if segments else None
        if isinstance(place, Inserted):
            segments.append(place)
        elif isinstance(last, Span) and last.stop == place:
            segments[-1] = Span(last.start, place + 1)
        else:
            segments.append(Span(place, place + 1))
    return tuple(segments)
