"""ContextGuard (adk-utils-go, plugin/contextguard) in an ADK session: it leaves no event, but state keys per agent.

Definition: the plugin's own keys. The summary and the watermark (how many contents the request had) are written
together by each compaction, before the call whose event carries them; the first version wrote no watermark and put its
summary in front of the whole history in every later request.
"""

from __future__ import annotations

from typing import Any

import msgspec

from guard_core.bounds import MAX_TOKENS
from guard_core.events import Event, Role, TextPart
from guard_core.recordings.reading.build import SessionBuilder
from guard_core.sessions import Evidence, GuardState, RecordedCompaction
from guard_core.views import Inserted, Span, View

# Each followed by the agent's name.
GUARD_KEYS = {
    "__context_guard_summary_": "summary",
    "__context_guard_summarized_at_": "summarized_at",
    "__context_guard_contents_at_compaction_": "contents_at_compaction",
    "__context_guard_real_tokens_": "real_tokens",
    "__context_guard_last_heuristic_": "last_heuristic",
}
# How ContextGuard wraps its summary when it puts it in front of a request.
_SUMMARY_HEAD = "[Previous conversation summary]"
_SUMMARY_FOOT = "[End of summary — conversation continues below]"
TRIGGER = "ContextGuard"
_NOTE = "from ContextGuard's state; the continuation message of the compacting call is not recorded"
_NOTE_WITHOUT_MARK = "from ContextGuard's state without a watermark; what the compacting call kept is not recorded"
_NOTE_AT_END = "from ContextGuard's state at the end of the session; its watermark gives the place"


def changes(delta: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """What a change of the state says about ContextGuard, by agent."""
    by_agent: dict[str, dict[str, Any]] = {}
    for key, value in delta.items():
        for prefix, name in GUARD_KEYS.items():
            if key.startswith(prefix):
                by_agent.setdefault(key[len(prefix) :], {})[name] = _value(name, value)
    return by_agent


class GuardStateReader:
    """Follows ContextGuard's state through one session."""

    def __init__(self, builder: SessionBuilder) -> None:
        self._builder = builder
        self._states: dict[str, GuardState] = {}

    def step(self, delta: dict[str, Any]) -> None:
        """The state that an event changed: a new summary is a compaction before the call that the event answers."""
        for agent, values in changes(delta).items():
            state = self._note(agent, values)
            if not values.get("summary"):
                continue
            calls = self._builder.calls
            answered = bool(calls) and calls[-1].response == len(self._builder.events) - 1
            at = calls[-1].at if answered else len(self._builder.events)
            if "contents_at_compaction" in values:
                watermark = min(max(state.contents_at_compaction or 0, 0), at)
                view: View = (Inserted(0), Span(watermark, at)) if watermark < at else (Inserted(0),)
                self._compaction(state, at, view, _NOTE)
            else:
                self._compaction(state, at, (Inserted(0), Span(0, at)), _NOTE_WITHOUT_MARK)

    def end(self, state: dict[str, Any]) -> None:
        """The state of a session whose events do not show its changes: the last compaction, by its watermark."""
        for agent, values in changes(state).items():
            noted = self._note(agent, values)
            if noted.summary and noted.contents_at_compaction:
                at = min(noted.contents_at_compaction, len(self._builder.events))
                self._compaction(noted, at, (Inserted(0),), _NOTE_AT_END)

    def _note(self, agent: str, values: dict[str, Any]) -> GuardState:
        size = len(self._builder.events)
        old = self._states.get(agent) or GuardState(at=0, agent=agent)
        new = msgspec.structs.replace(old, at=size, **values)
        self._states[agent] = new
        self._builder.guard_states.append(new)
        return new

    def _compaction(self, state: GuardState, at: int, base: View, note: str) -> None:
        earlier = self._builder.compactions
        at = max(at, earlier[-1].at if earlier else 0)
        text = f"{_SUMMARY_HEAD}\n{state.summary}\n{_SUMMARY_FOOT}"
        call = next((call for call in reversed(self._builder.calls) if call.at >= at), None)
        self._builder.compaction(
            RecordedCompaction(
                at=at,
                evidence=Evidence.DECLARED,
                kind="summary" if len(base) == 1 else "summary+tail",
                base=base,
                messages=(Event(role=Role.USER, parts=(TextPart(text),), meta=True),),
                trigger=TRIGGER,
                tokens_before=state.summarized_at or None,
                timestamp=call.timestamp if call else None,
                note=note,
            )
        )


def _value(name: str, value: Any) -> str | int | None:
    """As ContextGuard loads it: a summary that is not text is none, a number may have become a float."""
    if name == "summary":
        return value if isinstance(value, str) else ""
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > MAX_TOKENS:
        return 0
    return int(value)
