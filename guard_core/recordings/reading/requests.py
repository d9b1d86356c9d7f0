"""A conversation rebuilt from logged requests, each of which repeats the history: traces, runs and evaluation logs.

Every request that begins with the history so far only adds to the log. A request that keeps some of the history and
changes or drops the rest is a compaction that happened between two calls. A request that shares nothing with any
history begins a thread of its own (a sub-agent), or is a side call (a title, a summary); so does one that begins as an
earlier conversation did and has nothing of what followed (another run, another branch). Where a conversation ended
there, and the request holds the answer that summarised it, under the same system prompt and tools or in the words by
which clients open a summary, it continues that conversation; so does one in these words right behind a conversation of
the same setup that had filled much of its window.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import msgspec

from guard_core import defaults
from guard_core.errors import LimitExceeded
from guard_core.events import (
    Event,
    MediaPart,
    OtherPart,
    Part,
    ReasoningPart,
    Role,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    part_text,
    value_text,
)
from guard_core.plural import counted
from guard_core.quoting import unescaped, width
from guard_core.recordings.reading.build import SessionBuilder
from guard_core.recordings.reading.limits import Limits
from guard_core.recordings.reading.refusals import stated_sizes
from guard_core.recordings.reading.summary_words import begins_with_summary, is_empty_summary
from guard_core.recordings.reading.system_summaries import is_text, summary_behind
from guard_core.sessions import (
    ANSWER_LIMIT,
    BEGINS_WITH_SUMMARY,
    MAY_BE_CONTINUED,
    MAY_BE_REPEATED,
    MAY_BE_SUMMARISED,
    MAY_BEGIN_WITH_SUMMARY,
    MAY_CONTINUE,
    MAY_FOLLOW,
    MAY_GO_ON,
    MAY_REPEAT,
    AgentSetting,
    Evidence,
    LeftBranches,
    ModelCall,
    RecordedCompaction,
    Refusal,
    Session,
    ToolDefinition,
)
from guard_core.views import CHANGED, Inserted, Rewritten, Segment, Span, View
from guard_core.windows.models import context_window

_HEADED = re.compile(r"\W*summary\b", re.IGNORECASE)
UNKNOWN = 1_000_000_000  # of `Request.lost`: none of the messages is known, the history continued
LOOK_AHEAD = 12  # requests in which the old history may come back, before a shorter one counts as a compaction
MOST_PLACES = 64  # of one message in the log that are tried where a request is compared with it
FEWEST_CALLS = 3  # ours: of a conversation that another may go on from, the call that summarised it included
LOOK_FAR_AHEAD = 200  # requests in which a conversation may go on that another one seems to follow
LATEST_THREADS = 12  # the threads that a new conversation is compared with
QUOTED_CHARS, QUOTED_MESSAGES = 30, 2  # what a summariser's request repeats of the messages that it summarises
SETUP_SHARE = 0.5  # of a system prompt that stays where a client writes the time or the folder into it
LEAST_PASSAGES = 3  # ours: pieces of QUOTED_CHARS letters that a first request repeats of an earlier conversation
REPEATED_FROM = 12_000  # letters of a first request that are looked for there
FULL_SHARE = 0.5  # ours: of its window that a conversation fills before an agent compacts it
SHORTER = 4  # ours: so many times shorter than a conversation is what begins anew from a summary of it
HANDED_OVER = 300  # ours: letters of a first message that says where the work is, more than people type
SAME_FORM = 12  # ours: letters with which tasks begin that are set in the same words
LETTERS_OF_TOKEN = 4  # of prompts without a count
LEAST_NAMES = 3  # paths and identifiers that a conversation's first request has from an earlier one
_NAME = re.compile(r"[\w./-]{6,}")  # with a sign within it
OPENING_CHARS = 200  # of a message, in which a summary is called one
ENDS_SUMMARISING = (
    "The last call asks for a summary, as those before earlier compactions did: it is counted apart, and no request "
    "shows what followed."
)
LARGEST_LIMIT = "the largest limit of an answer in its requests"
SHORTEST_SUMMARY = 40  # characters (`width`) of an answer that must reappear in a message for it to be its summary


class Declared(msgspec.Struct, frozen=True):
    """What the recording itself says about a compaction that the next request shows.

    `length` is the number of messages at its head that the compaction left or made, None where only a comparison with
    the log can show it: then `inserts` are the messages that it inserted, if their number is known, and further ones at
    the end are news. `edited` are the places of messages that are sent without their thinking, which no comparison
    shows.
    """

    kind: str = "summary"
    length: int | None = None
    summariser: ModelCall | None = None
    trigger: str = ""
    tokens_before: int | None = None
    tokens_after: int | None = None
    line: int | None = None
    timestamp: float | None = None
    note: str = ""
    edited: tuple[int, ...] = ()
    inserts: int | None = None


class Request(msgspec.Struct, frozen=True):
    """One logged request and its answer. `call.at` and `call.response` are filled in here.

    `lost` is the number of messages missing at the head of `messages` (dropped by the recorder), UNKNOWN for a request
    without any, whose call is placed behind the history so far. `system` and `tools` are None where not recorded.
    `declared` is the compaction recorded since the previous request, `summarised` one that the provider made of all
    these messages before it answered, with its summary. `refusal`: the words of the provider that it is too
    long, so that there is no call; "" for any other request. `answer_limit` is the most tokens that the request allows
    its answer, 0 where it does not say.
    """

    messages: tuple[Event, ...]
    call: ModelCall
    response: Event | None = None
    lost: int = 0
    system: tuple[Part, ...] | None = None
    tools: tuple[ToolDefinition, ...] | None = None
    declared: Declared | None = None
    agent: str = ""
    refusal: str = ""
    summarised: tuple[Event, Declared] | None = None
    answer_limit: int = 0


def message_key(event: Event) -> bytes:
    """What distinguishes two messages: role and content, without ids, metadata and reasoning, which agents drop."""
    content = [_part_key(part) for part in event.parts if not isinstance(part, ReasoningPart)]
    return blake2b(msgspec.json.encode([event.role.value, content], order="deterministic"), digest_size=16).digest()


def _part_key(part: Part) -> list[str]:
    match part:
        case TextPart(text):
            return ["text", text.strip()]
        case ToolCallPart(name=name, arguments=arguments, id=call_id):
            return ["call", call_id or name + value_text(arguments)]
        case ToolResultPart(content=content, call_id=call_id):
            return ["result", call_id, value_text(content).strip()]
        case MediaPart(mime=mime, size=size, uri=uri):
            return ["media", mime, str(size), uri]
        case OtherPart(kind=kind, value=value):
            return ["other", kind, value_text(value)]
        case _:
            return []


@dataclass
class _Item:
    """One message of the history as it is sent now. `index` is its place in the log, None for an inserted message."""

    key: bytes
    event: Event
    index: int | None


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
    _sent: list[_Item] = field(default_factory=list)
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

    def known_length(self, keys: list[bytes], lost: int = 0) -> int:
        """How many messages at the head of a request that extends the history are in it, the last answer included."""
        full, length = self.keys_of(keys, lost), self._confirmed
        while length < len(self._keys) and length < len(full) and full[length] == self._keys[length]:
            length += 1
        return length

    def repeated_answers(self, keys: list[bytes], lost: int = 0) -> int:
        """How many messages of the last answer, which no request has shown, a request that extends the history has."""
        return self.known_length(keys, lost) - self._confirmed

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
            self._failed_again(request)
            return
        if request.declared is not None and (self._keys or request.declared.length is not None):
            self._compact(request, keys, request.declared)
            return
        missing = min(max(0, request.lost - self.lost), len(self._keys))
        whole = self._keys[:missing] + keys
        dropped = self._drop_unconfirmed(whole)
        for event, key in list(zip(request.messages, keys))[len(self._keys) - missing :]:
            self._log(event, key)
        if dropped:
            self._answer_again()
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
        is_summary = begins_with_summary(other) or any(map(_speaks_of_summary, other))
        return not (is_summary or self.answers_last(others) or self.names_in(others))

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
        is_summary = begins_with_summary(new) or any(map(_speaks_of_summary, new)) or self.answers_last(others)
        if is_summary or any(key in known for key in keys[same:]):
            return None
        left, before = (
            " ".join(_text(event.parts) for event in events) for events in ([i.event for i in removed], kept)
        )
        names = {name for event in new for name in _names(event.parts)}
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
        return self.tools == request.tools and _is_same_prompt(self.system, request.system)

    def answers_last(self, request: Request) -> bool:
        """Does a request hold the answer to the last call of this thread, as a summary is held."""
        last = self.calls[-1] if self.calls else None
        if last is None or last.response is None or last.response >= len(self.events):
            return False
        return is_summary_in(self.events[last.response], request.messages)

    def names_in(self, request: Request) -> bool:
        """Does a request name several files or identifiers that this thread has, and no system prompt."""
        names = {name for event in request.messages for name in _names(event.parts)} - _names(request.system or ())
        known = "\n".join(_text(event.parts) for event in self.events) if len(names) >= LEAST_NAMES else ""
        return sum(name in known for name in names) >= LEAST_NAMES

    def passages_in(self, request: Request) -> bool:
        """Does a request repeat passages of several messages of this thread. What that began with, other conversations
        of the same task may begin with, too."""
        words = "".join(map(_words, request.messages))[:REPEATED_FROM]
        pieces = {words[at : at + QUOTED_CHARS] for at in range(0, len(words) - QUOTED_CHARS + 1, QUOTED_CHARS)}
        start = next((at for at, event in enumerate(self.events) if event.role is Role.MODEL), len(self.events))
        opening = "".join(map(_words, self.events[:start])) + _letters(_text(self.system or ()))
        pieces = {piece for piece in pieces if piece not in opening}
        later = map(_words, self.events[start:]) if pieces else ()
        repeated = [shared for text in later if (shared := {piece for piece in pieces if piece in text})]
        return len(repeated) >= QUOTED_MESSAGES and len(set().union(*repeated)) >= LEAST_PASSAGES

    def may_go_on_in(self, request: Request) -> bool:
        """May a request that repeats nothing of this thread continue it, by its shape alone: it has the same model and
        setup, is far shorter, and comes where much of the window was filled and the work was not done, or it says at
        length where that is. Another task in the same form begins as this one did."""
        last = self.calls[-1] if self.calls else None
        if last is None or last.model != request.call.model or not self.is_setup_of(request):
            return False
        letters, own = (sum(len(_text(event.parts)) for event in events) for events in (self.events, request.messages))
        was_refused = self.refused[-1:] == [len(self.events)]
        if SHORTER * own > letters or not (was_refused or _fills_window(last, letters)):
            return False
        task, words = _words(self.events[0]), "".join(map(_words, request.messages))
        if words[:SAME_FORM] == task[:SAME_FORM]:
            return words.startswith(task) and words != task
        is_over = last.response is not None and not _calls_tools(self.events[last.response])
        return was_refused or not is_over or len(words) >= HANDED_OVER

    def quotes(self, other: Thread) -> bool:
        """Do the messages of this thread repeat the last messages of another one, in whatever wrapping: as strings of
        JSON, too."""
        texts = [_text(event.parts) for event in self.events]
        texts += [unescaped(text) for text in texts if "\\" in text]
        words = " ".join(map(_letters, texts))
        quotes = [_words(event)[:QUOTED_CHARS] for event in other.events[-4 * QUOTED_MESSAGES :]]
        known = {quote for quote in quotes if len(quote) == QUOTED_CHARS and quote in words}
        return len(known) >= QUOTED_MESSAGES

    def _drop_unconfirmed(self, keys: list[bytes]) -> bool:
        """The answer as it arrived leaves the log where the next request repeats it otherwise, or not at all."""
        stop = self.known_length(keys)
        dropped = len(self._keys) - stop
        del self._sent[stop:], self._keys[stop:]
        self._shorten(len(self.events) - dropped)
        return dropped > 0

    def _failed_again(self, request: Request) -> None:
        if request.refusal:
            self._refuse(request)
            return
        self.failed_again += 1
        self.side_calls.append(msgspec.structs.replace(request.call, at=self.calls[-1].at))

    def _refuse(self, request: Request) -> None:
        at = len(self.events)
        self.refused.append(at)
        if any(sizes := stated_sizes(request.refusal)):
            self.refusals.append(Refusal(at, *sizes))

    def _answer_again(self) -> None:
        """The last call's answer is the model's first event since; without one it was not kept."""
        last = self.calls[-1]
        since = range(last.at, len(self.events))
        response = next((index for index in since if self.events[index].role is Role.MODEL), None)
        at = last.at if response is None else response
        self.calls[-1] = msgspec.structs.replace(last, at=at, response=response)

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
        self._sent.append(_Item(key, event, len(self.events)))
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
        self._sent, self._keys = [_Item(key, summary, None)], [key]

    def _compact(self, request: Request, keys: list[bytes], declared: Declared | None) -> None:
        summariser = declared.summariser if declared else None
        if summariser is None:
            summariser = self._take_summariser(request)
        elif self.calls and summariser.source_id and self.calls[-1].source_id == summariser.source_id:
            self.calls.pop()  # its request stays in the log: it may have been the first to show the last results
        items, tail = self._matched(request, keys)
        kind = declared.kind if declared else self._kind(items)
        edited = declared.edited if declared else ()
        base, messages = _view(items, {} if kind.startswith("summary") else self._results(), frozenset(edited))
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

    def _kind(self, items: list[_Item]) -> str:
        """What happened to the history: an edit changes results, or what the last request ended with, one for one."""
        inserted = [item for item in items if item.index is None]
        results = [item.key for item in inserted if any(isinstance(part, ToolResultPart) for part in item.event.parts)]
        if self._keeps_history(items, results):
            return "edit"
        if len(results) == len(inserted):
            return "trim"
        if len(inserted) == 1 and is_empty_summary(inserted[0].event):
            return "empty"
        last = max(index for index, item in enumerate(items) if item.index is None)
        return "summary" if last == len(items) - 1 else "summary+tail"

    def _keeps_history(self, items: list[_Item], results: list[bytes]) -> bool:
        """Are all messages of the last request there or changed, but for words at its very end, which agents replace at
        each call (the state of a page, a reminder)."""
        before, now = Counter(self._keys[: self._confirmed]), Counter(item.key for item in items)
        changed_results = Counter(results) - before
        changed_words = Counter(item.key for item in items if item.index is None) - before - changed_results
        start = self._start_of_words()
        missing = before - now
        ending = missing & Counter(self._keys[start : self._confirmed])
        if (missing - ending).total() > changed_results.total() or changed_words.total() > ending.total():
            return False
        return bool(before & now) or changed_words.total() == ending.total()

    def _start_of_words(self) -> int:
        """Where the words begin that the last request ended with, behind the newest answer and its results."""
        start = self._confirmed
        while start and not _is_answer_or_result(self._sent[start - 1].event):
            start -= 1
        return start

    def _results(self) -> dict[str, int]:
        """The events with the results of calls, by the ids of the calls."""
        return {name: index for index, event in enumerate(self.events) for name in _answered_calls(event)}

    def _matched(self, request: Request, keys: list[bytes]) -> tuple[list[_Item], list[tuple[Event, bytes]]]:
        """The request split into what it keeps or inserts, and the new events at its end."""
        places = self._aligned(keys)
        items = [_Item(key, event, at) for event, key, at in zip(request.messages, keys, places, strict=True)]
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
            for place in _few(self._places.get(keys[message], [])):  # the oldest first: no run has a message twice
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

    def _begins_turn(self, items: list[_Item]) -> bool:
        """Does a changed request end with what a user says after the turn before was over, behind a summary: the agent
        would not have called the model otherwise."""
        if not self.events or len(items) < 2 or items[-1].index is not None or items[-2].index is not None:
            return False
        last, event = self.events[-1], items[-1].event
        is_over = last.role is Role.MODEL and not any(isinstance(part, ToolCallPart) for part in last.parts)
        return is_over and event.starts_turn() and not begins_with_summary((event,)) and not _speaks_of_summary(event)

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


def is_summary_in(answer: Event, messages: tuple[Event, ...]) -> bool:
    """Does one of the messages contain the answer's text, so that the answer was the summary?"""
    summary = " ".join(part.text.strip() for part in answer.parts if isinstance(part, TextPart)).strip()
    if width(summary) < SHORTEST_SUMMARY or any(isinstance(part, ToolCallPart) for part in answer.parts):
        return False
    users = (event for event in messages if event.role is not Role.MODEL)
    return any(summary in part.text for event in users for part in event.parts if isinstance(part, TextPart))


def _few(places: list[int]) -> list[int]:
    """The places of a message that are tried: all, or the first and the newest of very many."""
    return places if len(places) <= MOST_PLACES else [places[0], *places[1 - MOST_PLACES :]]


def _is_answer_or_result(event: Event) -> bool:
    return event.role is Role.MODEL or any(isinstance(part, ToolResultPart) for part in event.parts)


def _is_same_prompt(one: tuple[Part, ...] | None, other: tuple[Part, ...] | None) -> bool:
    """Are two system prompts the same but for what follows in them from some place on (the time, a folder)."""
    texts = ["".join(part.text for part in parts or () if isinstance(part, TextPart)) for parts in (one, other)]
    differs = (place for place, (left, right) in enumerate(zip(*texts, strict=False)) if left != right)
    return next(differs, min(map(len, texts))) >= SETUP_SHARE * max(map(len, texts))


def _is_headed_summary(event: Event) -> bool:
    """Is "summary" the first word of a message: one to summarise something begins with another."""
    return _HEADED.match(_text(event.parts)) is not None


def _speaks_of_summary(event: Event) -> bool:
    return "summar" in _text(event.parts)[:OPENING_CHARS].casefold()


def _fills_window(call: ModelCall, letters: int) -> bool:
    """Was the prompt of a call a large share of its model's window, as an agent's that compacts soon."""
    window = context_window(call.model)
    tokens = call.prompt_tokens or letters // LETTERS_OF_TOKEN
    return tokens >= FULL_SHARE * (defaults.WINDOW if window is None else window.value)


def _calls_tools(event: Event) -> bool:
    """Does an answer call tools, so that the turn is not over."""
    return any(isinstance(part, ToolCallPart) for part in event.parts)


def _text(parts: tuple[Part, ...]) -> str:
    """The texts of a message, with the arguments and results of calls."""
    return "\n".join(part_text(part) for part in parts if not isinstance(part, ReasoningPart))


def _names(parts: tuple[Part, ...]) -> set[str]:
    """The paths and identifiers of a message: what has a dot, slash, dash or underscore within it."""
    names = (name.rstrip("./-") for name in _NAME.findall(_text(parts)))  # without the stop of a sentence
    return {name for name in names if re.search(r"\w[./_-]\w", name)}


def _words(event: Event) -> str:
    """The letters and digits of a message, which no wrapping of them changes."""
    return _letters(_text(event.parts))


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text))


def _answered_calls(event: Event) -> list[str]:
    """The ids of the calls whose results a message has; a result without an id is not known again when it changed."""
    return [part.call_id for part in event.parts if isinstance(part, ToolResultPart) and part.call_id]


def _view(
    items: list[_Item], results: dict[str, int], edited: frozenset[int] = frozenset()
) -> tuple[View, tuple[Event, ...]]:
    """What is sent of the log, and the messages that are new. Those with a result of `results` are its event, changed,
    as are the kept ones at the places `edited`; events stay in their order."""
    segments: list[Segment] = []
    inserted: list[Event] = []
    reached = -1
    for number, item in enumerate(items):
        previous = segments[-1] if segments else None
        place = max((results.get(name, -1) for name in _answered_calls(item.event)), default=-1)
        reached = max(reached, -1 if item.index is None else item.index)
        if item.index is None and place > reached:
            segments.append(Rewritten(place, item.event, CHANGED))
            reached = place
        elif item.index is None:
            segments.append(Inserted(len(inserted)))
            inserted.append(item.event)
        elif number in edited:
            segments.append(Rewritten(item.index, item.event, CHANGED))
        elif isinstance(previous, Span) and previous.stop == item.index:
            segments[-1] = Span(previous.start, item.index + 1)
        else:
            segments.append(Span(item.index, item.index + 1))
    return tuple(segments), tuple(inserted)


def threads_of(requests: list[Request], *, side_calls: bool = True) -> list[Thread]:
    """The contexts that the requests belong to, the one with the most calls first.

    With `side_calls`, threads of one call beside a longer one are folded into it (see `fold_side_calls`).
    """
    threads: list[Thread] = []
    latest: Thread | None = None  # of several calls that had the last request
    requests = _with_summaries_apart(requests)
    keys = _keys_of(requests)
    for index, request in enumerate(requests):
        thread = _thread_for(threads, requests, keys, index)
        if thread is None:
            before = _before(threads, requests, keys, index)
            behind = next((one for one in before if one is latest and one.may_go_on_in(request)), None)
            thread = next((one for one in before if _goes_on(one, threads, request)), None)
            if thread is None and begins_with_summary(request.messages):
                thread = behind
            if thread is not None:
                thread.compact(request, keys[index])
                latest = thread
                continue
            branches = any(one.has_summary(keys[index]) for one in threads)
            thread = Thread(follows=_follows(before, behind, request), branches=branches)
            threads.append(thread)
            thread.add(request, keys[index])
        elif thread.extends(keys[index], request.lost):
            thread.add(request, keys[index])
        elif (length := thread.rewound_length(request, keys[index])) is not None:
            thread.rewind(request, keys[index], length)
        else:
            thread.compact(request, keys[index])
        latest = thread if len(thread.calls) > 1 else latest
    for thread in threads:
        thread.end()
    threads.sort(key=lambda thread: -len(thread.calls))
    if side_calls and threads and len(threads[0].calls) > 1:
        return fold_side_calls(threads, threads[0])
    return threads


def _follows(before: list[Thread], behind: Thread | None, request: Request) -> str:
    """The note of a conversation that may continue an earlier one, which gets its own; "" where nothing says so.
    `behind`: the one that it may continue by its shape."""
    several = [thread for thread in before if len(thread.calls) >= FEWEST_CALLS]
    named = next((thread for thread in several if thread.names_in(request)), None)
    repeated = next((thread for thread in several if thread.passages_in(request)), None) if named is None else None
    spoken = several[0] if several and any(map(_is_headed_summary, request.messages[:1])) else None
    for thread, note, others in (
        (named, MAY_CONTINUE, MAY_BE_CONTINUED),
        (repeated, MAY_REPEAT, MAY_BE_REPEATED),
        (spoken, MAY_BEGIN_WITH_SUMMARY, MAY_BE_SUMMARISED),
        (behind, MAY_FOLLOW, MAY_GO_ON),
    ):
        if thread is not None:
            thread.followed = thread.followed or others
            return note
    return ""


def fold_side_calls(threads: list[Thread], main: Thread) -> list[Thread]:
    """The main thread, then the other contexts; threads of a single call become side calls of the main one, unless
    they begin with a summary."""
    sessions = [main]
    for thread in threads:
        if thread is main:
            continue
        if len(thread.calls) > 1 or thread.compactions or (thread.calls and begins_with_summary(thread.events)):
            sessions.append(thread)
            continue
        main.refused_beside += len(thread.refused)
        if thread.calls:
            beside = thread.side_calls if _name_summariser(main, thread) else [*thread.calls, *thread.side_calls]
            main.side_calls.extend(_placed(call, main) for call in beside)
            main.failed_again += thread.failed_again
    return sessions


def _with_summaries_apart(requests: list[Request]) -> list[Request]:
    """The requests, with a summary that a client wrote behind its system prompt as their first message: it takes the
    place of messages, and is compared and searched as one that stands among them is. Where none is missing, such words
    are a part of the prompt."""
    known: dict[tuple[Part, ...] | None, Request] = {}  # by system prompt without such summaries, the last request
    parted: dict[tuple[Part, ...] | None, tuple[tuple[Part, ...] | None, Event] | None] = {}
    apart = []
    for request in requests:
        system = request.system
        if request.declared is not None or request.lost or not is_text(system):
            apart.append(request)
            continue
        if system not in known and system not in parted:
            parted[system] = summary_behind(system, list(known)[-LATEST_THREADS:])
        if (parting := parted.get(system)) is None:
            known[system] = request
            apart.append(request)
        elif _has_all_of(request, known[parting[0]]):
            apart.append(request)
        else:
            messages = (parting[1], *request.messages)
            apart.append(msgspec.structs.replace(request, system=parting[0], messages=messages))
    return apart


def _has_all_of(request: Request, earlier: Request) -> bool:
    """Does a request begin with all messages of an earlier one."""
    pairs = zip(request.messages, earlier.messages, strict=False)
    is_as_long = 0 < len(earlier.messages) <= len(request.messages)
    return is_as_long and all(message_key(own) == message_key(other) for own, other in pairs)


def _keys_of(requests: list[Request]) -> list[list[bytes]]:
    known: dict[int, bytes] = {}  # by identity: recordings that keep each message once hand in the same object
    for request in requests:
        for event in request.messages:
            if id(event) not in known:
                known[id(event)] = message_key(event)
    return [[known[id(event)] for event in request.messages] for request in requests]


def _thread_for(threads: list[Thread], requests: list[Request], keys: list[list[bytes]], index: int) -> Thread | None:
    request, own = requests[index], keys[index]
    extended = [thread for thread in reversed(threads) if thread.extends(own, request.lost)]
    for thread in sorted(extended, key=lambda thread: -thread.repeated_answers(own, request.lost)):
        if thread.fails_again(request, own) or not _answer_comes_back(thread, requests, keys, index):
            return thread
    if request.declared is not None and threads:
        return max(threads, key=lambda thread: (thread.shares(own), len(thread.calls)))
    for thread in reversed(threads):
        if not thread.shares(own) or _comes_back(thread, requests, keys, index):
            continue
        if own in thread.begun or (_grows(keys, index) and thread.begins_again(request, own)):
            continue
        return thread
    return None


def _grows(keys: list[list[bytes]], index: int) -> bool:
    """Does a request soon after begin with this one."""
    own = keys[index]
    return any(own == later[: len(own)] != later for later in keys[index + 1 : index + 1 + LOOK_AHEAD])


def _before(threads: list[Thread], requests: list[Request], keys: list[list[bytes]], index: int) -> list[Thread]:
    """The conversations, the latest first, that ended where a request that repeats none of their messages begins one of
    the same setup that has later requests, or one that opens as a summary."""
    request, own = requests[index], keys[index]
    is_summary = begins_with_summary(request.messages)
    latest = [
        thread
        for thread in reversed(threads[-LATEST_THREADS:])
        if len(thread.calls) >= FEWEST_CALLS - 1
        and len(own) < len(thread.events)
        and not thread.shares(own)
        and (is_summary or thread.is_setup_of(request))
    ]
    if not latest or not (is_summary or _grows(keys, index)):
        return []
    following = range(index + 1, min(index + 1 + LOOK_FAR_AHEAD, len(requests)))
    return [
        thread for thread in latest if not any(thread.extends(keys[later], requests[later].lost) for later in following)
    ]


def _goes_on(thread: Thread, threads: list[Thread], request: Request) -> bool:
    """Does a request go on from a summary of a conversation: the answer to its last call, or to a call beside it; or
    one of the same setup that follows the refusal of its last request."""
    if len(thread.calls) >= FEWEST_CALLS and thread.answers_last(request):
        return True
    was_refused = thread.refused[-1:] == [len(thread.events)]
    is_summary = begins_with_summary(request.messages) or any(map(_speaks_of_summary, request.messages))
    if was_refused and is_summary and thread.is_setup_of(request):
        return True
    beside = [one for one in threads[-LATEST_THREADS:] if one is not thread and len(one.calls) == 1]
    return any(one.answers_last(request) and one.quotes(thread) for one in beside)


def _answer_comes_back(thread: Thread, requests: list[Request], keys: list[list[bytes]], index: int) -> bool:
    """A request that asks something else about the history (a title): the last answer is missing, but comes later."""
    if thread.repeats_answer(keys[index], requests[index].lost):
        return False
    following = range(index + 1, min(index + 1 + LOOK_AHEAD, len(requests)))
    return any(thread.repeats_answer(keys[later], requests[later].lost) for later in following)


def _comes_back(thread: Thread, requests: list[Request], keys: list[list[bytes]], index: int) -> bool:
    """Is the whole history sent again soon after: then the request between is not a compaction."""
    following = range(index + 1, min(index + 1 + LOOK_AHEAD, len(requests)))
    return any(thread.extends(keys[later], requests[later].lost) for later in following)


def _placed(call: ModelCall, main: Thread) -> ModelCall:
    """A side call at the place in the main log where its time falls."""
    before = [other.at for other in main.calls if (other.timestamp or 0) <= (call.timestamp or 0)]
    return msgspec.structs.replace(call, at=before[-1] if before else 0, response=None)


def _name_summariser(main: Thread, side: Thread) -> bool:
    """Name the call of a thread as the summariser of the compaction that has its answer; is there one?"""
    call = side.calls[0]
    if call.response is None:
        return False
    for index, compaction in enumerate(main.compactions):
        if compaction.summariser is None and is_summary_in(side.events[call.response], compaction.messages):
            summariser = msgspec.structs.replace(call, at=compaction.at, response=None)
            main.compactions[index] = msgspec.structs.replace(compaction, summariser=summariser)
            return True
    return False
