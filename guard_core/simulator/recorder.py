"""A recorder that plays an agent: it appends events and model calls and bills them as a provider would."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from guard_core.events import (
    Event,
    MediaPart,
    Part,
    ReasoningPart,
    Role,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    part_text,
    value_text,
)
from guard_core.sessions import Evidence, ModelCall, Provenance, RecordedCompaction, Session, Sourced, ToolDefinition
from guard_core.views import Inserted, Span, View

Tool = tuple[str, dict[str, Any], Any]  # name, arguments, result

# A crude substitute for a provider's tokenizer: words in pieces of seven letters, numbers in groups of three,
# punctuation in pairs. It gives 4.4 bytes a token for prose, 3.2 for code, 2.4 for logs and JSON.
_PIECES = re.compile(r"[A-Za-z]{1,7}|\d{1,3}|[^\w\s]{1,2}|_|\n[ \t]*|[^\x00-\x7f]")
FRAME_TOKENS = 6  # what the provider adds around one message
MEDIA_TOKENS = 1_400
_STARTED = 1_773_216_000.0  # 11 March 2026, the day all samples take place


def provider_tokens(text: str) -> int:
    """How many tokens the made-up provider counts for a text."""
    return len(_PIECES.findall(text))


def event_tokens(event: Event) -> int:
    """What an event costs in every later request; reasoning is not sent again."""
    return FRAME_TOKENS + sum(_part_tokens(part) for part in event.parts)


def _part_tokens(part: Part) -> int:
    match part:
        case ReasoningPart():
            return 0
        case MediaPart():
            return MEDIA_TOKENS
        case _:
            return provider_tokens(part_text(part))


class SimulationRecorder:
    """Builds one session, call by call. `tokens` says what an event costs; `hidden` what the file does not show."""

    def __init__(
        self,
        *,
        system: str | None = None,
        tools: tuple[ToolDefinition, ...] | None = None,
        hidden: int = 0,
        model: str,
        tokens: Callable[[Event], int] = event_tokens,
        overhead: int | None = None,
    ) -> None:
        self.events: list[Event] = []
        self.calls: list[ModelCall] = []
        self.compactions: list[RecordedCompaction] = []
        self.overhead = hidden + _fixed_tokens(system, tools) if overhead is None else overhead
        self.context = self.overhead  # tokens of the next request
        self.whole_log = self.overhead  # the same, as if nothing had ever been compacted
        self._cached = 0
        self._clock = _STARTED
        self._tokens = tokens
        self._fixed = (system, tools, model)

    def add(self, event: Event) -> None:
        """Append an event to the log."""
        tokens = self._tokens(event)
        self.events.append(event)
        self.context += tokens
        self.whole_log += tokens

    def user(self, text: str) -> None:
        """The user says something."""
        self._clock += 40 + len(text) / 10
        self.add(Event(role=Role.USER, parts=(TextPart(text),), timestamp=self._clock))

    def call(self, response: Event) -> None:
        """A model call that is answered."""
        reasoning = sum(provider_tokens(part.text) for part in response.parts if isinstance(part, ReasoningPart))
        self._call(response=len(self.events), prompt=self.context, output=self._tokens(response) + reasoning)
        self._cached = self.context
        self.add(response)

    def fail(self) -> None:
        """A model call that the provider refused: no answer, no usage."""
        self._call(response=None, prompt=None, output=None)

    def act(self, remark: str, *tools: Tool, reasoning: str = "") -> None:
        """A model call answered with tool calls, and the results in one event, as they come back."""
        ids = [f"call_{len(self.calls):04d}_{index}" for index in range(len(tools))]
        thought: tuple[Part, ...] = (ReasoningPart(reasoning),) if reasoning else ()
        words: tuple[Part, ...] = (TextPart(remark),) if remark else ()
        asked = tuple(ToolCallPart(name, arguments, id) for (name, arguments, _), id in zip(tools, ids, strict=True))
        self._clock += 4
        self.call(Event(role=Role.MODEL, parts=(*thought, *words, *asked), timestamp=self._clock))
        given = tuple(ToolResultPart(name, result, id) for (name, _, result), id in zip(tools, ids, strict=True))
        self._clock += 2
        self.add(Event(role=Role.USER, parts=given, timestamp=self._clock))

    def answer(self, text: str) -> None:
        """A model call answered in words."""
        self._clock += 9
        self.call(Event(role=Role.MODEL, parts=(TextPart(text),), timestamp=self._clock))

    def compact(self, *messages: str, keep: int = 0, kind: str = "summary", **fields: Any) -> None:
        """The agent's software replaces the history by messages and the last `keep` events."""
        inserted = tuple(Event(role=Role.USER, parts=(TextPart(text),), meta=True) for text in messages)
        before, at = fields.pop("before", self.context), len(self.events)
        tail: View = (Span(at - keep, at),) if keep else ()
        self.context = self.overhead + sum(map(self._tokens, (*inserted, *self.events[at - keep :][:keep])))
        self._cached = self.overhead
        self._clock += 15
        self.compactions.append(
            RecordedCompaction(
                at=at,
                evidence=Evidence.DECLARED,
                kind=kind,
                base=(*(Inserted(index) for index in range(len(inserted))), *tail),
                messages=inserted,
                trigger=fields.pop("trigger", "auto"),
                tokens_before=before,
                tokens_after=self.context,
                timestamp=self._clock,
                **fields,
            )
        )

    def session(self, *, title: str, window: int, note: str = "declared by the sample") -> Session:
        """What was recorded."""
        system, tools, model = self._fixed
        return Session(
            events=tuple(self.events),
            calls=tuple(self.calls),
            compactions=tuple(self.compactions),
            system=None if system is None else (TextPart(system),),
            tools=tools,
            format="sample",
            title=title,
            model=model,
            window=Sourced(window, Provenance.RECORDER, note),
            started_at=_STARTED,
        )

    def _call(self, *, response: int | None, prompt: int | None, output: int | None) -> None:
        cached = None if prompt is None else min(self._cached, prompt)
        self.calls.append(
            ModelCall(
                at=len(self.events),
                response=response,
                prompt_tokens=prompt,
                cached_tokens=cached,
                cache_write_tokens=None if prompt is None or cached is None else max(0, prompt - cached - 4),
                output_tokens=output,
                model=self._fixed[2],
                timestamp=self._clock,
            )
        )


def _fixed_tokens(system: str | None, tools: tuple[ToolDefinition, ...] | None) -> int:
    """The tokens of system prompt and tools, 40 for each tool besides its texts."""
    texts = [system or "", *(f"{tool.name} {tool.description} {value_text(tool.schema)}" for tool in tools or ())]
    return sum(provider_tokens(text) for text in texts) + 40 * len(tools or ())
