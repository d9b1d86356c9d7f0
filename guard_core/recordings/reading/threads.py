"""One conversation of logged requests: its log, its calls and compactions, and how the next request may begin."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import msgspec

from guard_core.errors import LimitExceeded
from guard_core.events import Event, Part, Role, ToolCallPart, ToolResultPart
from guard_core.plural import counted
from guard_core.recordings.reading.build import SessionBuilder
from guard_core.recordings.reading.limits import Limits
from guard_core.recordings.reading.overlap import LEAST_NAMES, is_same_prompt, is_summary_in, named, names_in, text_of
from guard_core.recordings.reading.refusals import stated_sizes
from guard_core.recordings.reading.requests import UNKNOWN, Declared, Request, message_key
from guard_core.recordings.reading.sent_messages import RequestMessage, has_result, known_by, view_of, words_typed
from guard_core.recordings.reading.summary_words import begins_with_summary, is_empty_summary
from guard_core.sessions import (
    ANSWER_LIMIT,
    BEGINS_WITH_SUMMARY,
    AgentSetting,
    Evidence,
    LeftBranches,
    ModelCall,
    RecordedCompaction,
    Refusal,
    Session,
    ToolDefinition,
)
from guard_core.views import Inserted

MOST_PLACES = 64  # of one message in the log that are tried where a request is compared with it
OPENING_CHARS = 200  # of a message, in which a summary is called one
ENDS_SUMMARISING = (
    "The last call asks for a summary, as those before earlier compactions did: it is counted apart, and no request "
    "shows what followed."
)
LARGEST_LIMIT = "the largest limit of an answer in its requests"


@dataclass
class Thread:
    """One context: its log, its calls and what the next request is expected to begin with."""

    agent: str = ""
    system: tuple[Part, ...] | None = None
    tools: tuple[ToolDefinition, ...] | None = None
    lost: int = 0
    follows: str = ""  # the note of one that begins where another one of the same setup ends and may continue it
    followed: str = ""  # the note of that other one
    branches: bool = False  # begins with a summary that another one continues from
    events: list[Event] = field(default_factory=list)
    calls: list[ModelCall] = field(default_factory=list)
    side_calls: list[ModelCall] = field(default_factory=list)
    compactions: list[RecordedCompaction] = field(default_factory=list)
    refused: list[int] = field(default_factory=list)  # the length of the log at each refused request
    refusals: list[Refusal] = field(default_factory=list)  # what the provider stated in some of them
    left: LeftBranches = LeftBranches()  # noqa: RUF009 - immutable
    refused_model: str = ""  # of the last of them
    answer_limit: int = 0  # the most tokens that one of its requests allowed its answer, 0: none says it
    refused_beside: int = 0  # refused requests of the contexts that are folded into this one
    ends_summarising: bool = False  # is the last call one for a summary that no request has
    failed_again: int = 0  # side calls that are the last request sent again behind its answer, without one
    _sent: list[RequestMessage] = field(default_factory=list)
    _keys: list[bytes] = field(default_factory=list)
    _confirmed: int = 0  # messages of `_sent` that a request has shown; the last answer follows them
    _event_keys: list[bytes] = field(default_factory=list)
    _places: dict[bytes, list[int]] = field(default_factory=dict)  # of the events, by key
    begun: list[list[bytes]] = field(default_factory=list)  # the first request, and the one after the latest summary
    _opened: list[int] = field(default_factory=list)  # how many of their messages precede the first answer
    _instructions: set[bytes] = field(default_factory=set)  # the messages that asked for summaries
    _summarised: int = 0  # how many of the latest of them reach to the last one that a compaction inserted

    def keys_of(self, keys: list[bytes], lost: int) -> list[bytes]:
        """The request's keys with the messages that the recorder lost put back from the history."""
        missing = max(0, lost - self.lost)
        return self._keys[:missing] + keys if missing else keys

    def extends(self, keys: list[bytes], lost: int = 0) -> bool:
        """Does a request begin with the whole history?"""
        full = self.keys_of(keys, lost)
        return bool(self._keys) and full[: self._confirmed] == self._keys[: self._confirmed]

    def add_beside(self, request: Request) -> None:
        """A request that asks something about the history which is not of the conversation: a side call."""
        if not request.refusal:
            self.side_calls.append(msgspec.structs.replace(request.call, at=len(self.events), response=None))

    def known_length(self, keys: list[bytes], lost: int = 0) -> int:
        """How many messages at the head of a request that extends the history are in it, the last answer included."""
        full, length = self.keys_of(keys, lost), self._confirmed
        while length < len(self._keys) and length < len(full) and full[length] == self._keys[length]:
            length += 1
        return length

    def repeated_answers(self, keys: list[bytes], lost: int = 0) -> int:
        """How many messages of the last answer, which no request has shown, a request that extends the history has."""
        return self.known_length(keys, lost) - self._confirmed

    def lacks_answer(self, keys: list[bytes], lost: int = 0) -> bool:
        """Is there a last answer, which a request that extends the history does not have."""
        return len(self._keys) > self._confirmed and not self.repeated_answers(keys, lost)

    def shares(self, keys: list[bytes]) -> int:
        """How many messages of a request are in this thread's history."""
        known = set(self._keys)
        return sum(key in known for key in keys)

    def add(self, request: Request, keys: list[bytes]) -> None:
        """A request that begins with the history: what is new goes to the log, then the answer."""
        if not self._keys:
            self.lost = request.lost if request.lost < UNKNOWN else 0
            self._begin(request, keys)
        if self.fails_again(request, keys):
            if request.refusal:
                self._refuse(request)
            else:
                self.failed_again += 1
                self.side_calls.append(msgspec.structs.replace(request.call, at=self.calls[-1].at))
            return
        if request.declared is not None and (self._keys or request.declared.length is not None):
            self._compact(request, keys, request.declared)
            return
        missing = min(max(0, request.lost - self.lost), len(self._keys))
        whole = self._keys[:missing] + keys
        dropped = self._drop_unconfirmed(whole)
        for event, key in list(zip(request.messages, keys))[len(self._keys) - missing :]:
            self._log(event, key)
        if dropped:  # the last call's answer is the model's first event since; without one it was not kept
            last = self.calls[-1]
            since = range(last.at, len(self.events))
            response = next((index for index in since if self.events[index].role is Role.MODEL), None)
            at = last.at if response is None else response
            self.calls[-1] = msgspec.structs.replace(last, at=at, response=response)
        self._called(request)

    def fails_again(self, request: Request, keys: list[bytes]) -> bool:
        """Is a request the last one again, which had an answer, and has none itself? It takes nothing from the log."""
        has_answer = request.response is not None or request.call.prompt_tokens is not None
        was_counted = bool(self.calls) and self.calls[-1].prompt_tokens is not None  # by a response of its own
        if has_answer or not was_counted or request.declared is not None or len(self._keys) == self._confirmed:
            return False
        return self.keys_of(keys, request.lost) == self._keys[: self._confirmed]

    def begins_again(self, request: Request, keys: list[bytes]) -> bool:
        """Does a request begin as this conversation, with other words of the user in place of its last ones, or as it
        continued from a summary, with other words or more, and has nothing of what followed?"""
        known, same = set(self._keys), 0
        for number, (begun, opened) in enumerate(zip(self.begun, self._opened, strict=True)):
            differs = (place for place, (left, right) in enumerate(zip(begun[:opened], keys)) if left != right)
            place = next(differs, opened if number else 0)
            if not number or place >= self._summarised:  # another summary in place of one is the next compaction
                same = max(same, place)
        other = request.messages[same:]
        if not same or any(map(_is_answer_or_result, other)) or any(key in known for key in keys[same:]):
            return False
        others = msgspec.structs.replace(request, messages=other)
        is_summary = begins_with_summary(other) or any(map(speaks_of_summary, other))
        return not (is_summary or self.answers_last(others) or names_in(self.events, others))

    def rewound_length(self, request: Request, keys: list[bytes]) -> int | None:
        """How many messages of the history a request keeps whose user went back and said something else there; None for
        any other request. What was taken away is the end, as it was logged since the last compaction, and what was said
        instead names nothing of it, as a summary would."""
        same = next((place for place, pair in enumerate(zip(self._keys, keys)) if pair[0] != pair[1]), len(keys))
        removed, new = self._sent[same:], request.messages[same:]
        was_refused = self.refused[-1:] == [len(self.events)]  # what a client then takes away makes room
        if request.declared is not None or request.lost > self.lost or was_refused or not new or not removed:
            return None
        first = removed[0].index
        kept = [item.event for item in self._sent[:same]]
        if first is None or [item.index for item in removed] != list(range(first, len(self.events))):
            return None
        if self.compactions and first < self.compactions[-1].at:
            return None
        if not any(event.role is Role.MODEL for event in kept) or any(map(_is_answer_or_result, new)):
            return None
        known, others = set(self._keys), msgspec.structs.replace(request, messages=new)
        is_summary = begins_with_summary(new) or any(map(speaks_of_summary, new)) or self.answers_last(others)
        if is_summary or any(key in known for key in keys[same:]):
            return None
        left, before = (
            " ".join(text_of(event.parts) for event in events) for events in ([i.event for i in removed], kept)
        )
        names = {name for event in new for name in named(event.parts)}
        return None if sum(name in left and name not in before for name in names) >= LEAST_NAMES else same

    def rewind(self, request: Request, keys: list[bytes], length: int) -> None:
        """The user went back: what followed the first so many messages is on a branch that was left."""
        start = self._sent[length].index
        assert start is not None, "what is rewound is at the end of the log"
        first = next(
            (place for place, call in enumerate(self.calls) if (call.response or call.at) >= start), len(self.calls)
        )
        calls, refused = self.calls[first:], [at for at in self.refused if at > start]
        self.side_calls += [msgspec.structs.replace(call, at=start, response=None) for call in calls]
        del self.calls[first:], self.refused[len(self.refused) - len(refused) :]
        self.left = LeftBranches(
            self.left.messages + len(self.events) - start,
            0,
            self.left.refused + len(refused),
            max(self.left.largest, *(call.prompt_tokens or 0 for call in calls), 0),
        )
        del self._sent[length:], self._keys[length:]
        self._shorten(start)
        for event, key in list(zip(request.messages, keys))[length:]:
            self._log(event, key)
        self._called(request)

    def has_summary(self, keys: list[bytes]) -> bool:
        """Is the first message of a request one with which this conversation continued from a summary of its own."""
        return keys[:1] != self.begun[0][:1] and keys[:1] == self.begun[-1][:1]

    def _begin(self, request: Request, keys: list[bytes]) -> None:
        answers = (place for place, event in enumerate(request.messages) if event.role is Role.MODEL)
        self.begun = [*self.begun[:1], keys]
        self._opened = [*self._opened[:1], next(answers, len(keys))]

    def compact(self, request: Request, keys: list[bytes]) -> None:
        """A request that keeps a part of the history only."""
        self._compact(request, keys, request.declared)

    def session(self, format_name: str, limits: Limits, **rest: Any) -> Session:
        """This thread as a session (`rest`: fields of Session). Raises LimitExceeded."""
        if len(self.events) > limits.events:
            raise LimitExceeded(f"a session with {len(self.events)} events (limit {limits.events})")
        self._time_events()
        builder = SessionBuilder(format_name, limits=limits)
        builder.events, builder.calls, builder.compactions = self.events, self.calls, self.compactions
        builder.side_calls, builder.refused = self.side_calls, self.refused
        builder.refusals = self.refusals
        if self.lost and self.lost < UNKNOWN:
            first = "The first message is" if self.lost == 1 else f"The first {self.lost:,} messages are"
            builder.notes.append(f"{first} not in the file: dropped by the recorder.")
        if self.refused_beside:
            subject = "1 request" if self.refused_beside == 1 else f"{self.refused_beside:,} requests"
            builder.notes.append(f"{subject} beside the conversation failed as too long.")
        builder.notes += filter(None, (self.follows, ENDS_SUMMARISING if self.ends_summarising else ""))
        if self.left.messages:
            rest.setdefault("left", self.left)
            builder.notes.append(
                f"The user went back in the conversation: what followed, {counted(self.left.messages, 'message')}, is "
                "not in the log; its calls count apart."
            )
        if self.branches:
            builder.notes.append(BEGINS_WITH_SUMMARY)
        if self.followed:
            builder.notes.append(self.followed)
        rest.setdefault("agent", self.agent)
        if self.answer_limit:
            limit = AgentSetting(ANSWER_LIMIT, self.answer_limit, LARGEST_LIMIT)
            rest["settings"] = (*rest.get("settings", ()), limit)
        if not self.calls and self.refused_model:
            rest.setdefault("model", self.refused_model)
        return builder.session(system=self.system, tools=self.tools, **rest)

    def repeats_answer(self, keys: list[bytes], lost: int = 0) -> bool:
        """Does a request begin with the whole history and the last answer as it arrived?"""
        return self.keys_of(keys, lost)[: len(self._keys)] == self._keys

    def is_setup_of(self, request: Request) -> bool:
        """Has a request the system prompt and the tools of this thread, as far as both are known."""
        return self.tools == request.tools and is_same_prompt(self.system, request.system)

    def is_of_another(self, request: Request) -> bool:
        """Is a request of another agent, by both: it has another system prompt and other tools. A log need not have
        the system prompt of each request."""
        if self.system is None or request.system is None:
            return False
        return self.tools != request.tools and not is_same_prompt(self.system, request.system)

    def answers_last(self, request: Request) -> bool:
        """Does a request hold the answer to the last call of this thread, as a summary is held."""
        last = self.calls[-1] if self.calls else None
        if last is None or last.response is None or last.response >= len(self.events):
            return False
        return is_summary_in(self.events[last.response], request.messages)

    def _drop_unconfirmed(self, keys: list[bytes]) -> bool:
        """The answer as it arrived leaves the log where the next request repeats it otherwise, or not at all."""
        stop = self.known_length(keys)
        dropped = len(self._keys) - stop
        del self._sent[stop:], self._keys[stop:]
        self._shorten(len(self.events) - dropped)
        return dropped > 0

    def _refuse(self, request: Request) -> None:
        at = len(self.events)
        self.refused.append(at)
        if any(sizes := stated_sizes(request.refusal)):
            self.refusals.append(Refusal(at, *sizes))

    def _time_events(self) -> None:
        """Messages without a time of their own have that of the call with which they were first sent, or that they
        answer."""
        first = 0
        for call in self.calls if any(call.timestamp is not None for call in self.calls) else ():
            last = call.at if call.response is None else call.response + 1
            for place in range(first, min(last, len(self.events))):
                if self.events[place].timestamp is None:
                    self.events[place] = msgspec.structs.replace(self.events[place], timestamp=call.timestamp)
            first = max(first, last)

    def _log(self, event: Event, key: bytes) -> None:
        self._sent.append(RequestMessage(key, event, len(self.events)))
        self._keys.append(key)
        self.events.append(event)
        self._event_keys.append(key)
        self._places.setdefault(key, []).append(len(self._event_keys) - 1)

    def _shorten(self, length: int) -> None:
        for key in reversed(self._event_keys[length:]):
            self._places[key].pop()
        del self.events[length:], self._event_keys[length:]

    def _called(self, request: Request) -> None:
        if request.system is not None and self.system is None:
            self.system = request.system
        if request.tools is not None and self.tools is None:
            self.tools = request.tools
        self.agent = self.agent or request.agent
        self.answer_limit = max(self.answer_limit, request.answer_limit)
        if request.summarised is not None:
            self._summarise(*request.summarised)
        self._confirmed = len(self._sent)
        at = len(self.events)
        if request.refusal:
            self._refuse(request)
            self.refused_model = request.call.model
            return
        response = None
        if request.response is not None:
            response = at
            self._log(request.response, message_key(request.response))
        self.calls.append(msgspec.structs.replace(request.call, at=at, response=response))

    def _summarise(self, summary: Event, declared: Declared) -> None:
        """All that was sent is replaced by its summary before the call is answered."""
        at, key = len(self.events), message_key(summary)
        summariser = declared.summariser
        self.compactions.append(
            RecordedCompaction(
                at=at,
                evidence=Evidence.DECLARED,
                kind=declared.kind,
                base=(Inserted(0),),
                messages=(summary,),
                trigger=declared.trigger,
                tokens_before=declared.tokens_before,
                summariser=None if summariser is None else msgspec.structs.replace(summariser, at=at, response=None),
                line=declared.line,
                note=declared.note,
            )
        )
        self._sent, self._keys = [RequestMessage(key, summary, None)], [key]

    def _compact(self, request: Request, keys: list[bytes], declared: Declared | None) -> None:
        summariser = declared.summariser if declared else None
        if summariser is None:
            summariser = self._take_summariser(request)
        elif self.calls and summariser.source_id and self.calls[-1].source_id == summariser.source_id:
            self.calls.pop()  # its request stays in the log: it may have been the first to show the last results
        items, tail = self._matched(request, keys)
        kind = declared.kind if declared else self._kind(items)
        edited = declared.edited if declared else ()
        changed: dict[str, list[int]] = {}  # the events that are known again when they changed, by what shows it
        if not kind.startswith("summary"):
            for index, event in enumerate(self.events):
                for name in known_by(event):
                    changed.setdefault(name, []).append(index)
        base, messages = view_of(items, changed, frozenset(edited))
        at = len(self.events)
        self.compactions.append(
            RecordedCompaction(
                at=at,
                evidence=Evidence.DECLARED if declared else Evidence.INFERRED,
                kind=kind,
                base=base,
                messages=messages,
                trigger=declared.trigger if declared else "overflow" if at in self.refused[-1:] else "",
                tokens_before=declared.tokens_before if declared else None,
                tokens_after=declared.tokens_after if declared else None,
                summariser=None if summariser is None else msgspec.structs.replace(summariser, at=at, response=None),
                line=declared.line if declared else request.call.line,
                timestamp=declared.timestamp if declared else request.call.timestamp,
                note=declared.note if declared else "",
            )
        )
        self._sent, self._keys = items, [item.key for item in items]
        if kind.startswith("summary"):
            self._begin(request, keys)
            self._summarised = max((place for place, item in enumerate(items, 1) if item.index is None), default=0)
        for event, key in tail:
            self._log(event, key)
        self._called(request)

    def _kind(self, items: list[RequestMessage]) -> str:
        """What happened to the history: an edit changes results, what an agent put around a user's words, or what the
        last request ended with, one for one."""
        inserted = [item for item in items if item.index is None]
        said = {name for item in self._sent[: self._confirmed] for name in words_typed(item.event)}
        changed = [
            item.key for item in inserted if has_result(item.event) or said.intersection(words_typed(item.event))
        ]
        if self._keeps_history(items, changed):
            return "edit"
        if len(changed) == len(inserted):
            return "trim"
        if len(inserted) == 1 and is_empty_summary(inserted[0].event):
            return "empty"
        last = max(index for index, item in enumerate(items) if item.index is None)
        return "summary" if last == len(items) - 1 else "summary+tail"

    def _keeps_history(self, items: list[RequestMessage], changed: list[bytes]) -> bool:
        """Are all messages of the last request there or `changed`, but for words at its very end, which agents replace
        at each call (the state of a page, a reminder)."""
        before, now = Counter(self._keys[: self._confirmed]), Counter(item.key for item in items)
        known_again = Counter(changed) - before
        changed_words = Counter(item.key for item in items if item.index is None) - before - known_again
        start = self._confirmed  # where those words begin, behind the newest answer and its results
        while start and not _is_answer_or_result(self._sent[start - 1].event):
            start -= 1
        missing = before - now
        ending = missing & Counter(self._keys[start : self._confirmed])
        if (missing - ending).total() > known_again.total() or changed_words.total() > ending.total():
            return False
        return bool(before & now) or changed_words.total() == ending.total()

    def _matched(self, request: Request, keys: list[bytes]) -> tuple[list[RequestMessage], list[tuple[Event, bytes]]]:
        """The request split into what it keeps or inserts, and the new events at its end."""
        places = self._aligned(keys)
        for written in request.declared.anew if request.declared is not None else ():
            places[written] = None
        items = [RequestMessage(key, event, at) for event, key, at in zip(request.messages, keys, places, strict=True)]
        if request.declared is not None and (length := request.declared.length) is not None:
            while length < len(items) and items[length].index is not None:
                length += 1  # what follows and is in the log was kept
            return items[:length], [(item.event, item.key) for item in items[length:]]
        cut = len(items)
        behind = next((place for place in range(len(items), 0, -1) if items[place - 1].index is not None), 0)
        if behind and items[behind - 1].index == len(self.events) - 1:
            cut = behind  # the last event was kept: what follows it is new
        inserts = request.declared.inserts if request.declared is not None else None
        more = sum(item.index is None for item in items[:cut]) - (cut if inserts is None else inserts)
        while cut and items[cut - 1].index is None and (more > 0 or self._is_new(items[cut - 1].event)):
            cut, more = cut - 1, more - 1
        if inserts is None and cut == len(items) and self._begins_turn(items):
            cut -= 1
        return items[:cut], [(item.event, item.key) for item in items[cut:]]

    def _aligned(self, keys: list[bytes]) -> list[int | None]:
        """The event that each message of a request is: as many as keep the order of the log, the newest where several
        ways are as long. A user may say the same words again and again, so that one message has several places."""
        nodes: list[tuple[int, int, int]] = []  # message, place, and the node of the message behind it (-1: none)
        best: list[int] = []  # the node at which the best run of each length begins
        bounds: list[int] = []  # its place, negative, so that they rise
        for message in range(len(keys) - 1, -1, -1):
            places = self._places.get(keys[message], [])
            if len(places) > MOST_PLACES:  # of very many the first and the newest are tried
                places = [places[0], *places[1 - MOST_PLACES :]]
            for place in places:  # the oldest first: no run has a message twice
                length = bisect_left(bounds, -place)
                nodes.append((message, place, best[length - 1] if length else -1))
                best[length : length + 1] = [len(nodes) - 1]
                bounds[length : length + 1] = [-place]
        aligned: list[int | None] = [None] * len(keys)
        node = best[-1] if best else -1
        while node >= 0:
            message, place, node = nodes[node]
            aligned[message] = place
        return aligned

    def _is_new(self, event: Event) -> bool:
        """Is a message at the end of a changed request news, not part of the change: the result of the last call."""
        last = self.events[-1].parts if self.events else ()
        asked = {part.id for part in last if isinstance(part, ToolCallPart)}
        return any(isinstance(part, ToolResultPart) and part.call_id in asked for part in event.parts)

    def _begins_turn(self, items: list[RequestMessage]) -> bool:
        """Does a changed request end with what a user says after the turn before was over, behind a summary: the agent
        would not have called the model otherwise."""
        if not self.events or len(items) < 2 or items[-1].index is not None or items[-2].index is not None:
            return False
        last, event = self.events[-1], items[-1].event
        is_over = last.role is Role.MODEL and not any(isinstance(part, ToolCallPart) for part in last.parts)
        return is_over and event.starts_turn() and not begins_with_summary((event,)) and not speaks_of_summary(event)

    def _take_summariser(self, request: Request) -> ModelCall | None:
        """The call whose answer the changed request contains: out of the main line, with what it added to the log."""
        last = self.calls[-1] if self.calls else None
        if last is None or last.response is None or last.response >= len(self.events):
            return None
        if not is_summary_in(self.events[last.response], request.messages):
            return None
        if last.at:
            self._instructions.add(self._event_keys[last.at - 1])
        return self._without_last_call()

    def end(self) -> None:
        """No request follows. Where the last call was asked in the very words that asked for summaries before, a
        compaction had begun: it is no step."""
        last = self.calls[-1] if self.calls else None
        if last is None or not last.at or self._event_keys[last.at - 1] not in self._instructions:
            return
        self.side_calls.append(self._without_last_call())
        self.ends_summarising = True

    def _without_last_call(self) -> ModelCall:
        """The last call, taken from the main line with what it added to the log."""
        last = self.calls.pop()
        self._shorten(self._length_before_summariser())
        return msgspec.structs.replace(last, at=len(self.events), response=None)

    def _length_before_summariser(self) -> int:
        """Log length without the summariser's answer and the instruction before it."""
        previous = self.calls[-1] if self.calls else None
        answered = -1 if previous is None or previous.response is None else previous.response
        instruction = len(self.events)
        last = len(self.events) - 1
        if last > 0 and self.events[last].role is Role.MODEL:
            instruction = last
            asked = self.events[last - 1]
            if asked.role is Role.USER and not any(isinstance(part, ToolResultPart) for part in asked.parts):
                instruction = last - 1
        return max(instruction, answered + 1)


def _is_answer_or_result(event: Event) -> bool:
    return event.role is Role.MODEL or has_result(event)


def speaks_of_summary(event: Event) -> bool:
    """Does a message speak of a summary in its first OPENING_CHARS characters."""
    return "summar" in text_of(event.parts)[:OPENING_CHARS].casefold()
