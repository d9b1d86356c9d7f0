"""Scripted conversations and recorded runs as typed values, and a run as a session of ours."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Literal

import msgspec
import numpy as np

from guard_core.conformance.vectors import Size, VectorError
from guard_core.estimation.usage import PROVIDER, CountedRun, RequestCount
from guard_core.events import Event, MediaPart, Role, TextPart, ToolCallPart, ToolResultPart, part_text
from guard_core.ledger import Ints
from guard_core.requests import materialise
from guard_core.sessions import ModelCall, Session
from guard_core.views import View

TIME = 1e9  # of the first message; a run took less time than any cool-down
IMAGE_BYTES = 70  # of a picture in a scripted conversation
Index = Annotated[int, msgspec.Meta(ge=0, le=1_000_000)]


class Repeated(msgspec.Struct, frozen=True):
    """A long text: `prefix`, then `unit` again and again, cut to `chars` characters."""

    prefix: str
    unit: str
    chars: Size


class ScriptedCall(msgspec.Struct, frozen=True):
    """A tool call of a scripted answer."""

    id: str
    name: str
    arguments: dict[str, Any]


class ScriptedMessage(msgspec.Struct, frozen=True):
    """A message of a scripted conversation."""

    role: Literal["system", "user", "assistant", "tool"]
    text: str | Repeated | None = ""
    calls: tuple[ScriptedCall, ...] = ()
    id: str = ""
    name: str = ""
    images: Annotated[int, msgspec.Meta(ge=0, le=1_000)] = 0

    def event(self) -> Event:
        """The message as an event."""
        text = written(self.text)
        if self.role == "tool":
            return Event(Role.USER, (ToolResultPart(self.name, text, self.id),))
        role = {"assistant": Role.MODEL, "system": Role.SYSTEM, "user": Role.USER}[self.role]
        words = (TextPart(text),) if text or role is not Role.MODEL or not self.calls else ()
        images = (MediaPart("image/png", IMAGE_BYTES),) * self.images
        calls = tuple(ToolCallPart(call.name, _arguments(call.arguments), call.id) for call in self.calls)
        return Event(role, (*words, *images, *calls))


def written(text: str | Repeated | None) -> str:
    """A text of the scripts."""
    if not isinstance(text, Repeated):
        return text or ""
    if not text.unit:
        return text.prefix[: text.chars]
    return (text.prefix + text.unit * (text.chars // len(text.unit) + 1))[: text.chars]


def _arguments(arguments: dict[str, Any]) -> dict[str, Any]:
    def value(item: Any) -> Any:
        if isinstance(item, dict) and set(item) == {"prefix", "unit", "chars"}:
            return written(msgspec.convert(item, Repeated))
        return item

    return {name: value(item) for name, item in arguments.items()}


class ScriptedConversation(msgspec.Struct, frozen=True, dict=True):
    """Messages that every run of a library is given, one after the other."""

    name: str
    messages: tuple[ScriptedMessage, ...]

    @cached_property
    def events(self) -> tuple[Event, ...]:
        """Its messages as events."""
        return tuple(message.event() for message in self.messages)


class ConversationScript(msgspec.Struct, frozen=True):
    """A file of scripted conversations."""

    format: Literal["policy-conversations/1"]
    conversations: tuple[ScriptedConversation, ...]


class LibraryStep(msgspec.Struct, frozen=True, array_like=True):
    """What a library did before a model call (or, at the point `after`, at the end of a turn)."""

    at: Index
    acted: int
    tokens: float | None
    threshold: float | None
    detail: dict[str, Any] = {}


class Script(msgspec.Struct, frozen=True):
    """The parameters of a run that are the script's own: what its summariser answers (`fixed`, `empty` or `fail`) and
    how long that is in characters; the model's context window, and over how many tokens its provider refuses."""

    summary: Literal["fixed", "empty", "fail"] = "fixed"
    summary_chars: Size = 600
    window: Annotated[int, msgspec.Meta(ge=1, le=10**12)] | None = None
    overflow_at: Annotated[int, msgspec.Meta(ge=0, le=10**12)] | None = None


class LibraryRun(msgspec.Struct, frozen=True):
    """What a library did with one conversation under one set of parameters."""

    parameters: str
    conversation: str
    steps: tuple[LibraryStep, ...]
    outside: tuple[Index, ...] | None = None
    end: Any = None

    def is_outside(self, index: int) -> bool:
        """Is a message not part of the library's list."""
        return self.outside is not None and index in self.outside


class VectorFile(msgspec.Struct, frozen=True):
    """A file of recorded runs of one strategy of a library."""

    format: Literal["policy-vector/1"]
    library: str
    version: str
    strategy: str
    parameters: tuple[dict[str, Any], ...]
    runs: tuple[LibraryRun, ...]


def indices(ranges: Iterable[Any]) -> list[int]:
    """Indices and inclusive ranges of them as a list."""
    numbers: list[int] = []
    for item in ranges:
        if isinstance(item, int):
            numbers.append(item)
        elif isinstance(item, list) and len(item) == 2 and all(isinstance(end, int) for end in item):
            if item[1] - item[0] > 1_000_000:
                raise VectorError(f"the range {item} is too long")
            numbers += range(item[0], item[1] + 1)
        else:
            raise VectorError(f"{ascii(item)[:60]} is neither an index nor a range of indices")
    return numbers


class Scripted(msgspec.Struct, frozen=True):
    """A run as a session: `numbers` are the indices of the messages that its events are; `rows` the step of the file
    that each of its calls is."""

    session: Session
    numbers: tuple[int, ...]
    rows: tuple[int, ...]


def without_calls(conversation: ScriptedConversation) -> ScriptedConversation:
    """A conversation whose answers have no tool calls."""
    messages = (msgspec.structs.replace(message, calls=()) for message in conversation.messages)
    return msgspec.structs.replace(conversation, messages=tuple(messages))


def session_of(conversation: ScriptedConversation, run: LibraryRun) -> Scripted:
    """The session of a run: its calls are made where the run has a step before a model call."""
    numbers = [index for index in range(len(conversation.messages)) if not run.is_outside(index)]
    before = np.cumsum([0, *(not run.is_outside(index) for index in range(len(conversation.messages)))])
    calls, rows = [], []
    for row, step in enumerate(run.steps):
        if step.at > len(conversation.messages):
            raise VectorError(f"a step is at message {step.at}, but {conversation.name} has {len(before) - 1}")
        if step.detail.get("point") != "after":
            _, output = step.detail.get("usage", (None, None))
            answers = [message.role == "assistant" for message in conversation.messages[step.at : step.at + 1]]
            response = int(before[step.at]) if any(answers) else None
            calls.append(ModelCall(at=int(before[step.at]), output_tokens=output, response=response))
            rows.append(row)
    system = [conversation.events[index].parts for index in range(len(before) - 1) if run.is_outside(index)]
    session = Session(
        tuple(msgspec.structs.replace(conversation.events[index], timestamp=TIME + index / 1_000) for index in numbers),
        tuple(calls),
        system=system[0] if system else None,
    )
    return Scripted(session, tuple(numbers), tuple(rows))


@dataclass(frozen=True)
class ScriptedUsage:
    """The provider of a run: the counts that the file has, whatever is sent; -1: it reported nothing. Requests of the
    `session` with more than `most` tokens are refused (-1: none are), by their characters / 4 or what `count` says."""

    tokens: Ints
    session: Session
    most: int = -1
    count: Callable[[View], int] | None = None

    @property
    def refuses(self) -> bool:
        """Does it refuse any request."""
        return self.most >= 0

    def refused(self, view: View) -> bool:
        """Is a request refused."""
        return (_characters(view, self.session) // 4 if self.count is None else self.count(view)) > self.most

    def one(self, step: int, view: View, heuristic: int, epoch: int = -1) -> RequestCount:
        count = int(self.tokens[step])
        return RequestCount(max(count, 0), count >= 0, PROVIDER)

    def run(self, start: int, stop: int, head: View, kept_from: int, heuristics: Ints, form: str = "") -> CountedRun:
        if self.refuses:  # no step is looked over, for any may be refused
            return CountedRun(np.full(stop - start, 2**40), np.zeros(stop - start, dtype=bool), self.tokens[start:stop])
        counts = self.tokens[start:stop]
        return CountedRun(np.maximum(counts, 0), counts >= 0, np.full(stop - start, PROVIDER))

    def overhead(self, heuristic: int) -> int:
        return 0

    def notes(self, *, compacted: bool) -> tuple[str, ...]:
        return ()


def usage_of(
    run: LibraryRun, scripted: Scripted, *, most: int = -1, count: Callable[[View], int] | None = None
) -> ScriptedUsage:
    """What the scripted provider reported at the calls of a run, and what it refused (`ScriptedUsage`)."""
    reported = [run.steps[row].detail.get("usage") for row in scripted.rows]
    tokens = np.array([item[0] if item else -1 for item in reported], dtype=np.int64)
    return ScriptedUsage(tokens, scripted.session, most, count)


def _characters(view: View, session: Session) -> int:
    """Characters of the texts and arguments of a request."""
    total = 0
    for event in materialise(view, session):
        for part in event.parts:
            text = arguments_json(part.arguments) if isinstance(part, ToolCallPart) else part_text(part)
            total += len(text)
    return total


def arguments_json(arguments: Any) -> str:
    """The arguments of a call as the files count them: JSON with sorted keys."""
    return json.dumps(arguments, sort_keys=True)
