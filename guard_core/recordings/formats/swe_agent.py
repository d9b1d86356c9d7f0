"""SWE-agent trajectories (`.traj`): one session per file, from `history`; tokens are recorded in total only.

Definition: https://swe-agent.com/latest/usage/trajectories/.
`history` is the conversation; `trajectory` repeats it as steps of action and observation and is read only where there
is no history. Observations are user messages in the older, text-only agents (marked as automatic, so that they start no
user turn) and tool messages where function calling was on (`tool_call_ids` is a list). `info.model_stats` has totals
(`tokens_sent`, `api_calls`), zero in replays, so calls carry no prompt tokens. A history
processor (`replay_config`, an object or JSON text) elides old observations in every request: newer versions keep each
step's request (`query`), and what it changed is an inferred edit of the history. Without them the edits of
`last_n_observations` follow from its settings; a note says so, and names processors whose edits do not follow. Its
rules are those of SWE-agent's `history_processors.py`: observations but the first and the newest, in steps of
`polling`, and by tags. Where an agent tried again, each of its `attempts` is a session, the chosen one first. Facts
count the messages of `history` (of the chosen attempt) and the longest observation of a step; SWE-agent's actions are
commands in the first place, so tool calls are not counted as facts.
"""

from __future__ import annotations

from bisect import bisect_left
from functools import cached_property
from typing import Any

import msgspec

from guard_core.errors import DamagedRecording
from guard_core.events import Event, Part, Role, TextPart, ToolResultPart
from guard_core.plural import counted
from guard_core.recordings.base import Recording
from guard_core.recordings.reading import chat, fields, wrong_kinds
from guard_core.recordings.reading.build import FactCounter, SessionBuilder
from guard_core.recordings.reading.fields import JSON
from guard_core.recordings.reading.known_names import CHAT_TOOLS, Names, words
from guard_core.recordings.reading.rebase import view_of
from guard_core.recordings.reading.source import ByteSource, SourceShape
from guard_core.sessions import AgentSetting, Evidence, RecordedCompaction, Session
from guard_core.views import CHANGED, Inserted, Rewritten

_KNOWN_NAMES = Names(
    usage=words("model_stats"),
    counts=words("tokens_sent tokens_received api_calls"),
    tools=CHAT_TOOLS | words("tool_call_ids"),
    passed_over=words("replay_config environment state"),
    totals=True,
)


CONFIG_NOTE = "history_processors in replay_config"
LAST_N = "last_n_observations"
EDITED = f"observations replaced by {LAST_N}, as the file's configuration says; the requests are not in the file"
# Processors that change no words: marks for the provider's cache, tags, none.
_WORDLESS = ("default", "cache_control", "tag_tool_call_observations")
_KEEP, _REMOVE = ("keep_output",), ("remove_output",)  # tags of observations that always, and that never, stay
MOST_EDITED = 500_000  # ours: replaced observations of all requests together; a run of 1,000 steps has fewer


class SweAgentFormat:
    name = "swe-agent"
    label = "SWE-agent"
    place = "trajectories/…/*.traj"
    known_names = _KNOWN_NAMES

    def matches(self, source: ByteSource) -> bool:
        value = source.json_head() if source.shape is SourceShape.JSON else None
        return isinstance(value, dict) and any(map(_is_trajectory, _attempts(value)))

    def read(self, source: ByteSource) -> Recording:
        attempts = _attempts(source.json())
        facts = FactCounter(self.name)
        facts.message(len(list(fields.objects(attempts[0].get("history")))))
        steps = fields.objects(attempts[0].get("trajectory"))
        longest = max((len(fields.text(step, "observation")) for step in steps), default=0)
        sessions = tuple(_session(source, attempt) for attempt in attempts)
        if not any(session.events for session in sessions):
            raise DamagedRecording("this SWE-agent trajectory has neither a history nor steps")
        counted = msgspec.structs.replace(facts.facts(), largest_tool_result_chars=longest)
        return Recording(self.name, sessions, counted, source.notes)


FORMAT = SweAgentFormat()


def _is_trajectory(value: JSON) -> bool:
    if not isinstance(value.get("trajectory"), list):
        return False
    first = next(fields.objects(value["trajectory"]), {})
    steps = "action" in first and "observation" in first and "source" not in first
    return isinstance(value.get("history"), list) or steps


def _attempts(value: JSON) -> list[JSON]:
    """The trajectory itself, which repeats the chosen attempt where there were several, and the other attempts."""
    attempts = list(fields.objects(value.get("attempts")))
    if not _is_trajectory(value):
        return attempts or [value]
    return [value, *(attempt for attempt in attempts if attempt.get("history") != value.get("history"))]


def _session(source: ByteSource, value: JSON) -> Session:
    steps = list(wrong_kinds.objects(source, value.get("trajectory"), "step"))
    history = list(wrong_kinds.objects(source, value.get("history"), "message"))
    builder = SessionBuilder("swe-agent", source)
    events = [event for message in history if (event := _event(source, message))] or _from_steps(steps)
    system, rest = chat.split_system(events)
    head, is_whole = len(events) - len(rest), len(events) == len(history)
    queries = _queries(steps, history) if is_whole else {}
    edits = _Edits(builder, history, head)
    masking = None if queries or not is_whole else _masking(_config(value), history, head)
    for place, event in enumerate(rest, start=head):
        if place in queries:
            edits.show(queries[place])
        elif masking is not None and event.role is Role.MODEL:
            edits.replace(masking.before(place), EDITED)
        if event.role is Role.MODEL:
            builder.answer(event.parts, call={}, author=event.author)
            continue
        # The first user message is the task, whatever it is marked as; later ones without a mark are observations, too.
        results = any(isinstance(part, ToolResultPart) for part in event.parts)
        builder.event(event.role, event.parts, author=event.author, meta=bool(builder.calls) and not results)
    builder.notes.extend(_notes(value, has_queries=bool(queries), is_masked=masking is not None))
    sent, calls = _totals(value)
    totals = {"prompt_tokens_total": sent, "total_calls": calls} if sent and calls >= len(builder.calls) else {}
    return builder.session(system=system, **totals, **_about(value))


def _queries(steps: list[JSON], history: list[JSON]) -> dict[int, list[JSON]]:
    """The request of each answer, by the answer's place in the history: a request has all messages before it."""
    queries: dict[int, list[JSON]] = {}
    for step in steps:
        query = list(fields.objects(step.get("query")))
        if 0 < len(query) < len(history) and fields.text(history[len(query)], "role") == "assistant":
            queries[len(query)] = query
    return queries


class _Edits:
    """What the requests changed in the history."""

    def __init__(self, builder: SessionBuilder, history: list[JSON], head: int) -> None:
        self._builder = builder
        self._history = [fields.plain_text(message.get("content")) for message in history]
        self._head = head
        self._changed: dict[int, str] = {}  # place in the history -> what was sent instead
        self._rewritten: dict[tuple[int, str], Rewritten] = {}

    def show(self, query: list[JSON]) -> None:
        """The request of the next call: an edit, where it changes other messages than the one before did."""
        sent = [fields.plain_text(message.get("content")) for message in query]
        changed = {
            place: text
            for place, (text, before) in enumerate(zip(sent, self._history, strict=False))
            if text != before and place >= self._head
        }
        self.replace({place: (text, query[place]) for place, text in changed.items()})

    def replace(self, messages: dict[int, tuple[str, JSON]], note: str = "") -> None:
        """The next request has other messages, by their place in the history, each with its text."""
        changed = {place: text for place, (text, _) in messages.items()}
        if changed == self._changed:
            return
        self._changed = changed
        at = len(self._builder.events)
        events = [self._of(place, text, message) for place, (text, message) in messages.items()]
        places = [None if place in changed else place - self._head for place in range(self._head, self._head + at)]
        base = tuple(events[part.index] if isinstance(part, Inserted) else part for part in view_of(places))
        self._builder.compaction(RecordedCompaction(at, Evidence.INFERRED, "edit", base=base, note=note))

    def _of(self, place: int, text: str, message: JSON) -> Rewritten:
        """A changed message, one value for all requests that have it."""
        if (place, text) not in self._rewritten:
            event = chat.chat_event(message, meta=True) or Event(Role.USER, ())
            self._rewritten[place, text] = Rewritten(place - self._head, event, CHANGED)
        return self._rewritten[place, text]


class _Masking:
    """What `last_n_observations` replaces of a history."""

    def __init__(
        self, history: list[JSON], head: int, kept: int, polling: int, tags: tuple[set[str], set[str]]
    ) -> None:
        self._history, self._head, self._kept, self._polling = history, head, kept, polling
        self._keep, self._remove = tags
        self._observations = [
            place
            for place, message in enumerate(history)
            if fields.text(message, "message_type") == "observation" and not message.get("is_demo")
        ]
        self._always = [place for place in self._observations if place >= head and self._tags(place) & self._remove]

    def before(self, place: int) -> dict[int, tuple[str, JSON]]:
        """The observations that the request with the messages before a place has in other words."""
        count = bisect_left(self._observations, place)
        stop = max(0, count // self._polling * self._polling - self._kept)
        old = [item for item in self._observations[1:stop] if item >= self._head and not self._tags(item) & self._keep]
        removed = self._always[: bisect_left(self._always, place)]
        return {item: self._omitted[item] for item in sorted({*old, *removed})}

    @property
    def size(self) -> int:
        """How many messages all requests together have in other words, at most."""
        return sum(
            bisect_left(self._observations, place)
            for place, message in enumerate(self._history)
            if fields.text(message, "role") == "assistant"
        )

    def _tags(self, place: int) -> set[str]:
        return _words(self._history[place], "tags")

    @cached_property
    def _omitted(self) -> dict[int, tuple[str, JSON]]:
        """Each observation as it is replaced: its text, and the message."""
        omitted = {}
        for place in self._observations:
            message = self._history[place]
            text = _omission(message.get("content"))
            omitted[place] = text, {**message, "content": text}
        return omitted


def _words(value: JSON, key: str) -> set[str]:
    return {item for item in fields.items(value, key) if isinstance(item, str)}


def _omission(content: Any) -> str:
    """What takes the place of an observation."""
    if isinstance(content, str):
        return f"Old environment output: ({len(content.splitlines())} lines omitted)"
    items = list(fields.objects(content))
    lines = sum(len(fields.text(item, "text").splitlines()) for item in items if fields.text(item, "type") == "text")
    images = sum(fields.text(item, "type") == "image_url" for item in items)
    text = f"Old environment output: ({lines} lines omitted)"
    return f"{text} ({images} images omitted)" if images else text


def _masking(config: JSON, history: list[JSON], head: int) -> _Masking | None:
    """What the configuration says of observations that are replaced; None where it does not say it, where several
    agents share the history, or where the requests would have too much of it."""
    masks = [item for item in _processors(config) if fields.text(item, "type") == LAST_N]
    agents = {fields.text(message, "agent") for message in history}
    if len(masks) != 1 or len(agents) > 1 or not (kept := fields.tokens(masks[0], "n")):
        return None
    keep, remove = (
        _words(masks[0], name) if name in masks[0] else set(usual)
        for name, usual in (("always_keep_output_for_tags", _KEEP), ("always_remove_output_for_tags", _REMOVE))
    )
    masking = _Masking(history, head, kept, fields.tokens(masks[0], "polling") or 1, (keep, remove))
    return masking if masking.size <= MOST_EDITED else None


def _event(source: ByteSource, message: JSON) -> Event | None:
    kind = fields.text(message, "message_type")
    event = chat.chat_event(message)
    wrong_kinds.check_words(source, message, "content", "a message")
    if event is None:
        source.notes.skip(f"message of role {fields.text(message, 'role')[:40] or 'none'}")
        return None
    observed = kind == "observation" or fields.text(message, "role") == "tool"
    return Event(event.role, event.parts, author=fields.text(message, "agent"), meta=observed)


def _from_steps(steps: list[JSON]) -> list[Event]:
    events: list[Event] = []
    for step in steps:
        if not events:
            events.extend(event for item in fields.objects(step.get("query")) if (event := chat.chat_event(item)))
        answer = fields.text(step, "response") or fields.text(step, "thought") + "\n" + fields.text(step, "action")
        events.append(Event(Role.MODEL, _text(answer)))
        events.append(Event(Role.USER, _text(fields.text(step, "observation")), meta=True))
    return events


def _text(text: str) -> tuple[Part, ...]:
    return (TextPart(text),) if text.strip() else ()


def _config(value: JSON) -> JSON:
    config = fields.decoded(value.get("replay_config"))
    return fields.mapping(config, "agent")


def _about(value: JSON) -> dict[str, Any]:
    model = fields.mapping(_config(value), "model")
    return {
        "settings": _settings(_config(value)),
        "agent": "SWE-agent",
        "model": fields.text(model, "name") or fields.text(model, "model_name"),
        "title": fields.text(_config(value), "name") or fields.text(value, "environment"),
    }


def _totals(value: JSON) -> tuple[int, int]:
    """The prompt tokens of all calls together, and how many there were; 0 where they are not recorded."""
    stats = fields.mapping(fields.mapping(value, "info"), "model_stats")
    return fields.tokens(stats, "tokens_sent") or 0, fields.tokens(stats, "api_calls") or 0


def _processors(config: JSON) -> list[JSON]:
    return [*fields.objects([config.get("history_processor")]), *fields.objects(config.get("history_processors"))]


def _settings(config: JSON) -> tuple[AgentSetting, ...]:
    """How many observations its history processors leave whole, 0 where all stay; nothing where the file names none."""
    if "history_processors" not in config and "history_processor" not in config:
        return ()
    for item in _processors(config):
        if fields.text(item, "type") == LAST_N and (kept := fields.tokens(item, "n")):
            polling = fields.tokens(item, "polling") or 1
            return AgentSetting("n", kept, CONFIG_NOTE), AgentSetting("polling", polling, CONFIG_NOTE)
    return (AgentSetting("n", 0, CONFIG_NOTE),)


def _notes(value: JSON, *, has_queries: bool, is_masked: bool) -> list[str]:
    notes = ["SWE-agent records no tokens per call."]
    sent, calls = _totals(value)
    if sent and calls:
        notes = [f"SWE-agent records no tokens per call: {sent:,} prompt tokens in {counted(calls, 'call')} together."]
    config = _config(value)
    names = [name for item in _processors(config) if (name := fields.text(item, "type"))]
    if is_masked:
        notes.append(f"What {LAST_N} replaced in the requests follows from its settings in the file.")
        names = [name for name in names if name not in (LAST_N, *_WORDLESS)]
    if names and not has_queries:
        notes.append(
            f"Requests were changed by history processors that leave no trace in the file: {', '.join(names)}."
        )
    return notes
