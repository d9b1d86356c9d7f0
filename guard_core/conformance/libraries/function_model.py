"""The counts of pydantic-ai's FunctionModel, which answers in recorded runs of its harness: words, not tokens.

Source: pydantic-ai 2.62.0, `models/function.py`. It reports 50 and the words of a request without the answers as its
input, and those of all answers up to now as its output.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from guard_core.estimation.usage import PROVIDER, CountedRun, RequestCount
from guard_core.events import Event, MediaPart, ToolCallPart, part_text
from guard_core.ledger import Ints
from guard_core.requests import materialise
from guard_core.sessions import Session
from guard_core.summaries.base import Summary, SummaryRequest
from guard_core.views import Synthetic, View

OVERHEAD = 50
FRAME_WORDS = 26  # that `models/__init__.py` writes around a summary
BETWEEN_WORDS = re.compile(r'[\s",.:]+')
COUNTED_TEXTS = 1_000  # whose words are known; a request has most messages of the one before it
SUMMARY_WORDS = "summary of the work so far. "


def scripted_summary(number: int, chars: int) -> str:
    """A summary of the scripts, which count them from 1."""
    return f"[S{number}] {SUMMARY_WORDS * (chars // len(SUMMARY_WORDS) + 1)}"[:chars]


def words(event: Event) -> int:
    """The words of a message; of a picture its bytes, of a call one more."""
    total = 0
    for part in event.parts:
        if isinstance(part, MediaPart):
            total += part.size
        elif isinstance(part, ToolCallPart):
            total += 1 + _count(json.dumps(part.arguments, ensure_ascii=False, separators=(",", ":")))
        else:
            total += _count(part_text(part))
    return total


@lru_cache(COUNTED_TEXTS)
def _count(text: str) -> int:
    return len(BETWEEN_WORDS.split(text.strip())) if text else 0


@dataclass(frozen=True)
class WordUsage:
    """The counts of every request, by what is sent: the words of `answers` at each call are output, not input."""

    session: Session
    answers: Ints

    @property
    def refuses(self) -> bool:
        """It refuses no request."""
        return False

    @cached_property
    def prefix(self) -> Ints:
        """Words of the log up to each event."""
        return np.cumsum([0, *map(words, self.session.events)], dtype=np.int64)

    def one(self, step: int, view: View, heuristic: int, epoch: int = -1) -> RequestCount:
        return RequestCount(OVERHEAD + self._view(view) - int(self.answers[step]), True, PROVIDER)

    def run(self, start: int, stop: int, head: View, kept_from: int, heuristics: Ints, form: str = "") -> CountedRun:
        at = np.array([call.at for call in self.session.calls[start:stop]], dtype=np.int64)
        counts = OVERHEAD + self._view(head) + self.prefix[at] - self.prefix[kept_from] - self.answers[start:stop]
        return CountedRun(counts, np.ones(stop - start, dtype=bool), np.full(stop - start, PROVIDER))

    def _view(self, view: View) -> int:
        total = 0
        for segment in view:
            if isinstance(segment, Synthetic):
                total += FRAME_WORDS + sum(map(bool, BETWEEN_WORDS.split(segment.text or "")))
            else:
                total += sum(map(words, materialise((segment,), self.session)))
        return total

    def overhead(self, heuristic: int) -> int:
        return 0

    def notes(self, *, compacted: bool) -> tuple[str, ...]:
        return ()


@dataclass(frozen=True)
class WrittenSummaries:
    """The scripted summaries: with their texts, or their sizes alone where `has_texts` is false; without the blanks at
    their ends where it `strips` them."""

    chars: int
    strips: bool = False
    has_texts: bool = True

    @property
    def name(self) -> str:
        return f"written:{self.chars}"

    def summarise(self, request: SummaryRequest) -> Summary:
        text = scripted_summary(request.call + 1, self.chars)
        text = text.strip() if self.strips else text
        return Summary(len(text), text if self.has_texts else None)
