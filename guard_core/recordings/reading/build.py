"""What every recording format shares: collecting events and calls, counting facts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableSequence, Sequence
from itertools import islice
from typing import Any, cast

import msgspec

from guard_core.defaults import CACHE_SECONDS
from guard_core.errors import LimitExceeded
from guard_core.events import Event, Part, Role, ToolCallPart, ToolResultPart, value_text
from guard_core.recordings.base import RecordingFacts
from guard_core.recordings.reading import recorder_counts
from guard_core.recordings.reading.limits import Limits
from guard_core.recordings.reading.numbers_by_name import NumbersByName
from guard_core.recordings.reading.pairing import Pairing, pair
from guard_core.recordings.reading.refusals import stated_sizes
from guard_core.recordings.reading.shelf import ShelvedEvents
from guard_core.recordings.reading.source import ByteSource
from guard_core.recordings.reading.summary_words import begins_with_summary, may_begin_with_summary
from guard_core.sessions import (
    BEGINS_WITH_SUMMARY,
    HEADED_SUMMARY,
    GuardState,
    ModelCall,
    Provenance,
    RecordedCompaction,
    Refusal,
    Session,
    Sourced,
    SubAgent,
)

HOUR = 3_600  # seconds: the longer of the two lifetimes that Anthropic's cache has
MOST_OPENING = 8  # ours: messages in which a summary of an earlier context is looked for


class FactCounter:
    """Counts the facts of a whole file. Ids are counted once a session; an empty id counts every time."""

    def __init__(self, format_name: str) -> None:
        self.format = format_name
        self.messages = 0
        self.compactions = 0
        self._calls = self._prompt_tokens = self._most_tokens = 0
        self._tool_calls = NumbersByName()  # of the session; only whether a name is there counts
        self._tool_results = NumbersByName()
        self._counted = [0, 0]  # those of sessions before, and those without an id
        self._largest = 0

    def session(self) -> None:
        """Another session begins, in which the ids of tool calls may be the same: they are unique in a session."""
        self._counted[0] += len(self._tool_calls)
        self._counted[1] += len(self._tool_results)
        self._tool_calls.clear()
        self._tool_results.clear()

    def message(self, count: int = 1) -> None:
        self.messages += count

    def call(self, prompt_tokens: int) -> None:
        """A model call with recorded usage."""
        self._calls += 1
        self._prompt_tokens += prompt_tokens
        self._most_tokens = max(self._most_tokens, prompt_tokens)

    def compaction(self) -> None:
        self.compactions += 1

    def tool_call(self, call_id: str = "") -> None:
        if call_id:
            self._tool_calls.setdefault(call_id, 1)
        else:
            self._counted[0] += 1

    def tool_result(self, call_id: str = "", chars: int = 0) -> None:
        """`chars`: code points of the result's text."""
        self._largest = max(self._largest, chars)
        if call_id:
            self._tool_results.setdefault(call_id, 1)
        else:
            self._counted[1] += 1

    def parts(self, parts: Iterable[Part], *, without_id: str = "") -> None:
        """The calls and results among the parts of a message. `without_id`: the id of those that were written without
        one, where they are all the same; else each counts."""
        for part in parts:
            if isinstance(part, ToolCallPart):
                self.tool_call(part.id or without_id)
            elif isinstance(part, ToolResultPart):
                self.tool_result(part.call_id or without_id, len(value_text(part.content)))

    def facts(self) -> RecordingFacts:
        return RecordingFacts(
            format=self.format,
            model_calls=self._calls,
            messages=self.messages,
            tool_calls=len(self._tool_calls) + self._counted[0],
            tool_results=len(self._tool_results) + self._counted[1],
            prompt_tokens_sum=self._prompt_tokens,
            prompt_tokens_max=self._most_tokens,
            compactions=self.compactions,
            largest_tool_result_chars=self._largest,
        )


class SessionBuilder:
    """Collects one session in the order of the recording. Lists may also be set or changed before `session()`.

    `events` is a list, or behaves like one: of a large source the texts lie on its shelf. `first`: it is the first
    session of the source, whose events may be sent early.
    """

    def __init__(
        self, format_name: str, source: ByteSource | None = None, *, first: bool = False, limits: Limits | None = None
    ) -> None:
        self.format = format_name
        self.limits = limits or (source.limits if source else Limits())
        shelf = source.shelf if source else None
        self.events: MutableSequence[Event] = ShelvedEvents(shelf) if shelf else []
        self._early = source.early if source and first else None
        self.calls: MutableSequence[ModelCall] = []
        self.compactions: list[RecordedCompaction] = []
        self.guard_states: list[GuardState] = []
        self.side_calls: list[ModelCall] = []
        self.notes: list[str] = []
        self.refused: list[int] = []
        self.refusals: list[Refusal] = []
        self.windows: list[tuple[int, int]] = []  # context windows, each with the event from which it holds

    def event(
        self, role: Role, parts: Sequence[Part], *, line: int | None = None, place: int | None = None, **fields: Any
    ) -> int:
        """Append an event (fields of `Event`); its index. Raises LimitExceeded.

        `place`: where its texts lie on the source's shelf already; then `parts` are their outlines.
        """
        if len(parts) > self.limits.parts:
            raise LimitExceeded(f"a message with {len(parts)} parts (limit {self.limits.parts})", line=line)
        if len(self.events) >= self.limits.events:
            raise LimitExceeded(f"a session with more than {self.limits.events} events", line=line)
        event = Event(role=role, parts=tuple(parts), line=line, **fields)
        if not isinstance(self.events, ShelvedEvents):
            self.events.append(event)
            return len(self.events) - 1
        if place is not None:
            self.events.insert_outline(len(self.events), event, place)
        else:
            self.events.append(event)
        if self._early is not None:
            self._early.follow(self.events)
        return len(self.events) - 1

    def answer(self, parts: Sequence[Part], *, call: dict[str, Any], **fields: Any) -> int:
        """Append a model event and the call that it answers (`call`: fields of ModelCall); the event's index."""
        at = len(self.events)
        index = self.event(Role.MODEL, parts, **fields)
        self.calls.append(ModelCall(at=at, response=index, **call))
        return index

    def compaction(self, compaction: RecordedCompaction) -> None:
        """Append a recorded compaction. Raises LimitExceeded: each holds a view, so many views of many segments."""
        if len(self.compactions) >= self.limits.compactions:
            raise LimitExceeded(f"a session with more than {self.limits.compactions} compactions", line=compaction.line)
        self.compactions.append(compaction)

    def refuse(self, words: str = "") -> None:
        """The provider refused a request as too long, in these words, if the file has them."""
        self.refused.append(len(self.events))
        if self.compactions and self.compactions[-1].at == len(self.events):
            last = self.compactions[-1]
            self.compactions[-1] = msgspec.structs.replace(last, refused_behind=last.refused_behind + 1)
        if any(sizes := stated_sizes(words)):
            self.refusals.append(Refusal(len(self.events), *sizes))

    def states_window(self, at: int, tokens: int | None) -> None:
        """The file states a context window for the calls from event `at` on; None or 0: it states none there."""
        if tokens and (not self.windows or self.windows[-1][1] != tokens):
            self.windows.append((at, tokens))

    def window(self, note: str) -> Sourced | None:
        """The last window that the file states; `note` says in which words."""
        return Sourced(self.windows[-1][1], Provenance.RECORDER, note) if self.windows else None

    @property
    def outlines(self) -> Sequence[Event]:
        """The events, perhaps without their texts: for a look at kinds, places and times."""
        return self.events.outlines if isinstance(self.events, ShelvedEvents) else self.events

    def session(self, **fields: Any) -> Session:
        """The session (fields of `Session`), results named after their calls.

        `sub_agents`: by the id of a session that was started, the id of the tool call that did.
        """
        model = fields.pop("model", "") or next((call.model for call in reversed(self.calls) if call.model), "")
        notes = (*self.notes, *fields.pop("notes", ()))
        if BEGINS_WITH_SUMMARY not in notes and begins_with_summary(islice(self.events, MOST_OPENING)):
            notes = (*notes, BEGINS_WITH_SUMMARY)
        elif BEGINS_WITH_SUMMARY not in notes and may_begin_with_summary(islice(self.events, MOST_OPENING)):
            notes = (*notes, HEADED_SUMMARY)
        started = fields.pop("started_at", None)
        if started is None:
            started = next((event.timestamp for event in self.outlines if event.timestamp is not None), None)
        return Session(
            events=self._paired(),
            calls=tuple(self.calls),
            compactions=recorder_counts.checked(self.compactions, self.calls),
            guard_states=tuple(self.guard_states),
            side_calls=tuple(self.side_calls),
            notes=notes,
            format=self.format,
            model=model,
            started_at=started,
            refused=tuple(self.refused),
            refusals=tuple(item for item in self.refusals if item.at in self.refused),
            windows=((0, self.windows[0][1]), *self.windows[1:]) if len(self.windows) > 1 else (),
            sub_agents=self._sub_agents(fields.pop("sub_agents", {})),
            cache_seconds=_cache_seconds(self.calls),
            **fields,
        )

    def _sub_agents(self, calls: Mapping[str, str]) -> tuple[SubAgent, ...]:
        """Sub-agents with the events whose tool calls started them. `calls`: by their session."""
        if not calls:
            return ()
        wanted = set(calls.values())
        places: dict[str, int] = {}
        for index, event in enumerate(self.outlines):
            ids = (part.id for part in event.parts if isinstance(part, ToolCallPart))
            places.update((id_, index) for id_ in ids if id_ in wanted)
        return tuple(SubAgent(session, call, places.get(call)) for session, call in calls.items())

    def _paired(self) -> tuple[Event, ...]:
        """The events with results named after their calls; on a shelf, in the outlines alone, so that no text is
        read."""
        if not isinstance(self.events, ShelvedEvents):
            return pair(self.events)
        outlines = self.events.outlines
        outlines.replace_all(self._early.paired(outlines) if self._early else map(Pairing().paired, outlines))
        return cast("tuple[Event, ...]", self.events)  # for the readers of a session, a sequence like it


def _cache_seconds(calls: Sequence[ModelCall]) -> int:
    """How long the cache keeps most of what some calls wrote, 0 where they do not say."""
    hour = sum(call.cache_hour_tokens or 0 for call in calls)
    known = sum(call.cache_write_tokens or 0 for call in calls if call.cache_hour_tokens is not None)
    return 0 if not known else HOUR if 2 * hour > known else int(CACHE_SECONDS)
