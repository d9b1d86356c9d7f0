"""What an OpenHands recording says of tokens: running totals, and usage by the id of a response.

A difference of running totals is one call's own count (cached tokens included) when `per_turn_token` confirms it; one
that is not confirmed folds several calls and is left out. Definition: `openhands/sdk/llm/utils/metrics.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from guard_core.recordings.formats.openai.completions import usage_of
from guard_core.recordings.reading import fields
from guard_core.recordings.reading.fields import JSON
from guard_core.sessions import ModelCall

_TOTALS = ("prompt_tokens", "completion_tokens", "cache_read_tokens", "cache_write_tokens")


class OpenHandsUsage:
    """The usage of one conversation, handed out to its calls."""

    def __init__(self) -> None:
        self.agent = RunningTotals()
        self.condenser = RunningTotals()
        self._by_response: dict[str, JSON] = {}
        self._of_summaries: dict[str, JSON] = {}  # by response, too
        self._models: dict[str, str] = {}  # by response
        self._windows: dict[str, int] = {}
        self._largest: list[tuple[int, int]] = []  # context windows of the totals, each with the event from which it is
        self._unnamed = 0  # the largest window of a response without an id

    def note(self, metrics: JSON, at: int = 0) -> None:
        """What metrics hold besides their totals: usage by response, context windows. `at`: the events before."""
        for usage in fields.objects(metrics.get("token_usages")):
            response, window = fields.text(usage, "response_id"), fields.window(usage, "context_window") or 0
            if not response:
                self._unnamed = max(self._unnamed, window)
                continue
            self._models[response] = fields.text(usage, "model")
            self._windows[response] = window
            if fields.tokens(usage, "prompt_tokens"):
                self._by_response[response] = _counted(usage)
        totals = fields.mapping(metrics, "accumulated_token_usage")
        if largest := fields.window(totals, "context_window"):
            self._largest.append((at, largest))

    def note_summaries(self, metrics: JSON) -> None:
        """What the metrics of the condenser's model hold: its usage by response."""
        for usage in fields.objects(metrics.get("token_usages")):
            if (response := fields.text(usage, "response_id")) and fields.tokens(usage, "prompt_tokens"):
                self._of_summaries[response] = _counted(usage)

    def of_summary(self, response: str) -> JSON:
        """The usage of the response that wrote a summary, by its id; empty where it is not known."""
        return self._of_summaries.get(response, {})

    def named(self, calls: Sequence[ModelCall]) -> list[ModelCall]:
        """The calls, those without a response named after the one that is listed between their neighbours'. Early
        versions of the SDK write the id with tool calls alone."""
        listed, named = list(self._by_response), list(calls)
        places = {response: place for place, response in enumerate(listed)}
        for index, call in enumerate(calls):
            if call.source_id or call.prompt_tokens is not None:
                continue
            before = places.get(named[index - 1].source_id, -1) if index else -1
            after = places.get(calls[index + 1].source_id, -1) if index + 1 < len(calls) else len(listed)
            if after == before + 2 and (before >= 0 or not index):
                named[index] = replace(call, source_id=listed[before + 1])
        return named

    def completed(self, call: ModelCall) -> ModelCall:
        """The call with the model of its response, and its usage where it has none yet."""
        call = replace(call, model=self._models.get(call.source_id) or call.model)
        if call.prompt_tokens is not None or call.source_id not in self._by_response:
            return call
        return replace(call, **self._by_response[call.source_id])

    def windows(self, calls: Iterable[ModelCall]) -> Iterator[tuple[int, int]]:
        """The context windows in tokens that the file states, each with the event from which it holds: those of the
        responses, else the largest so far, which the totals have."""
        stated = [(call.at, window) for call in calls if (window := self._windows.get(call.source_id))]
        yield from stated or self._largest or ([(0, self._unnamed)] if self._unnamed else [])


class RunningTotals:
    """Running totals, of which the last difference waits for the call that it belongs to."""

    def __init__(self) -> None:
        self._last: JSON = {}
        self._next: dict[str, Any] = {}

    def update(self, usage: JSON) -> dict[str, Any]:
        """Take new totals; what was confirmed before and belongs to no answer (fields of ModelCall, or nothing)."""
        if not usage:
            return {}
        now = {name: fields.tokens(usage, name) or 0 for name in _TOTALS}
        grown = {name: now[name] - self._last.get(name, 0) for name in _TOTALS}
        self._last = now
        if grown["prompt_tokens"] <= 0:
            return {}
        one = fields.tokens(usage, "per_turn_token")
        confirmed = one is None or one == grown["prompt_tokens"] + grown["completion_tokens"]
        before, self._next = self._next, _counts(grown) if confirmed else {}
        return before

    def call(self, own: JSON | None = None) -> dict[str, Any]:
        """The usage of the call that is answered now: its own where it is recorded, else the last difference."""
        counts, self._next = self._next, {}
        return usage_of(own or {}) or counts


def _counted(usage: JSON) -> dict[str, Any]:
    """The usage of one response."""
    return _counts({name: fields.tokens(usage, name) or 0 for name in _TOTALS})


def _counts(totals: dict[str, int]) -> dict[str, Any]:
    return {
        "prompt_tokens": totals["prompt_tokens"],
        "output_tokens": max(0, totals["completion_tokens"]),
        "cached_tokens": max(0, totals["cache_read_tokens"]),
        "cache_write_tokens": max(0, totals["cache_write_tokens"]),
    }
