"""What a summariser is: it gets a view and limits, and gives a summary or fails."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

from guard_core.sessions import Session
from guard_core.views import View


class Summary(NamedTuple):
    """A summary. `bytes` is its UTF-8 length, 0 an empty answer; `text` is None where only the size is modelled."""

    bytes: int
    text: str | None = None


class Todo(NamedTuple):
    """One item of the todo list that ContextGuard carries over a compaction."""

    content: str
    status: str = ""
    active_form: str = ""


@dataclass(frozen=True)
class SummaryRequest:
    """What a summariser is asked. `call` counts its calls in this run from 0; tokens are heuristic."""

    view: View
    tokens: int
    previous: Summary
    output_tokens: int
    words: int
    call: int = 0
    step: int = 0
    session: Session | None = None
    todos: tuple[Todo, ...] = ()


class Summarizer(Protocol):
    """Makes summaries. It keeps no state of its own, so that equal runs give equal traces."""

    @property
    def name(self) -> str: ...

    def summarise(self, request: SummaryRequest) -> Summary:
        """The summary; Summary(0) where the model gave no text. Raises SummaryFailed."""
        ...
