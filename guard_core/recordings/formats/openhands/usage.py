"""What an OpenHands recording says of tokens: running totals, and usage by the id of a response.

A difference of running totals is one call's own count (cached tokens included) when `per_turn_token` confirms it; one
that is not confirmed folds several calls and is left out. Definition: `openhands/sdk/llm/utils/metrics.py`.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from guard_core.recordings.reading import fields
from guard_core.recordings.reading.fields import JSON
from guard_core.sessions import ModelCall, Provenance, Sourced

_TOTALS = ("prompt_tokens", "completion_tokens", "cache_read_tokens", "cache_write_tokens")


class RecordedUsage:
    """The usage of one conversation, handed out to its calls."""

    def __init__(self) -> None:
        self.agent = RunningTotals()
        self.condenser = RunningTotals()
        self._by_response: dict[str, JSON] = {}
        self._window = 0

    def note(self, metrics: JSON) -> None:
        """What metrics hold besides their totals: usage by response, the context window."""
        for usage in (*fields.objects(metrics.get("token_usages")), fields.mapping(metrics, "accumulated_token_usage")):
            self._window = max(self._window, fields.window(usage, "context_window") or 0)
            response = fields.text(usage, "response_id")
            if response and fields.tokens(usage, "prompt_tokens"):
                self._by_response[response] = _counts({name: fields.tokens(usage, name) or 0 for name in _TOTALS})

    def completed(self, call: ModelCall) -> ModelCall:
        """The call with the usage of its response, where it has none yet."""
        if call.prompt_tokens is not None or call.source_id not in self._by_response:
            return call
        return replace(call, **self._by_response[call.source_id])

    @property
    def window(self) -> Sourced | None:
        return Sourced(self._window, Provenance.RECORDER, "context_window in the file") if self._window else None


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
        if fields.tokens(own, "prompt_tokens") is None:
            return counts
        details = fields.mapping(own, "prompt_tokens_details")
        return {
            "prompt_tokens": fields.tokens(own, "prompt_tokens"),
            "cached_tokens": fields.tokens(details, "cached_tokens"),
            "output_tokens": fields.tokens(own, "completion_tokens"),
        }


def _counts(totals: dict[str, int]) -> dict[str, Any]:
    return {
        "prompt_tokens": totals["prompt_tokens"],
        "output_tokens": max(0, totals["completion_tokens"]),
        "cached_tokens": max(0, totals["cache_read_tokens"]),
        "cache_write_tokens": max(0, totals["cache_write_tokens"]),
    }
