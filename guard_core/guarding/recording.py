"""What a guard sees, as a recording: the conversation, its model calls, and what the policy made of the requests.

log = RecordedLog(policy, window=200_000)
log.extend(events)                  # what is new since the last call
log.begin()                         # a request over the log as it is now
log.answered(asked, counts)         # how it was decided, and what the provider counted
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from guard_core.events import Event, Part, Role, TextPart
from guard_core.policies import POLICIES
from guard_core.policies.base import Policy
from guard_core.replay import RequestDecision
from guard_core.requests import synthetic_text
from guard_core.rules.guarded import GUARDED_WINDOW, THRESHOLD
from guard_core.sessions import AgentSetting, Evidence, ModelCall, RecordedCompaction, Session, Sourced, ToolDefinition
from guard_core.trace import WHOLE_LOG, Head, head_of
from guard_core.triggers import OVERFLOW
from guard_core.views import Inserted, Segment, Span, Synthetic


class RecordedLog:
    """The events of one conversation, its model calls and recorded compactions. `policy` is the guard's, `window` in
    tokens, or where it comes from, if the guard was given none."""

    def __init__(self, policy: Policy, window: int | Sourced) -> None:
        self._looked_up = window if isinstance(window, Sourced) else None
        self._window = window.value if isinstance(window, Sourced) else window
        kind = POLICIES.get(policy.name)
        self._summarises = kind is None or kind.summarises
        self._policy = policy.name if policy.moments else ""  # one that never looks guards nothing
        self.events: list[Event] = []
        self.calls: list[ModelCall] = []
        self.compactions: list[RecordedCompaction] = []
        self.system: tuple[Part, ...] | None = None
        self.tools: tuple[ToolDefinition, ...] | None = None
        self.head: Head = WHOLE_LOG  # of the last request that was answered
        self.threshold: int | None = None  # of the first request that was compared with one

    @property
    def window(self) -> int:
        """The context window in tokens."""
        return self._window

    @property
    def session(self) -> Session:
        """The conversation, without what the policy did to it."""
        return Session(events=tuple(self.events), calls=tuple(self.calls), system=self.system, tools=self.tools)

    @property
    def recorded(self) -> Session:
        """The same with what the policy did to it."""
        settings = {GUARDED_WINDOW: self._window, THRESHOLD: self.threshold}
        return msgspec.structs.replace(
            self.session,
            compactions=tuple(self.compactions),
            window=self._looked_up,
            guarded_by=self._policy,
            settings=tuple(AgentSetting(name, value) for name, value in settings.items() if value is not None),
        )

    def extend(self, events: Iterable[Event]) -> None:
        """What was added to the conversation since the last call: first the answer of that call, if it had one."""
        for event in events:
            last = self.calls[-1] if self.calls else None
            if last is not None and last.at == len(self.events) and event.role is Role.MODEL:
                self.calls[-1] = msgspec.structs.replace(last, response=last.at)
            self.events.append(event)

    def begin(self) -> None:
        """A request is made of the log as it is now."""
        self.calls.append(ModelCall(at=len(self.events)))

    def withdraw(self) -> None:
        """The last request was not sent, or not answered at all."""
        self.calls.pop()

    def answered(self, asked: RequestDecision, counts: ModelCall) -> None:
        """How the last request was decided, and what the provider counted: the figures of `counts`, wherever it is."""
        evidence = asked.decision.evidence
        compared, threshold = (int(evidence.get(name, -1)) for name in ("decision_tokens", "threshold"))
        if self.threshold is None and threshold >= 0:
            self.threshold = threshold
        self.calls[-1] = msgspec.structs.replace(
            counts, at=self.calls[-1].at, compared_tokens=compared if compared >= 0 else None
        )
        self._note(asked)

    def _note(self, asked: RequestDecision) -> None:
        """Note a request that is not the one before with more at its end."""
        at, compacted = self.calls[-1].at, bool(asked.all_compactions)
        head = head_of(asked.decision.view, at)
        if head == self.head:
            return
        base: list[Segment] = []
        messages: list[Event] = []
        for segment in asked.decision.view:
            if isinstance(segment, Synthetic):
                messages.append(Event(segment.role, (TextPart(synthetic_text(segment)),), meta=True))
                segment = Inserted(len(messages) - 1)
            base.append(segment)
        has_events = any(isinstance(segment, Span) for segment in base)
        summarised = "summary+tail" if has_events else "summary"
        kind = "edit" if not compacted else summarised if messages and self._summarises else "trim"
        self.compactions.append(
            RecordedCompaction(
                at=at,
                evidence=Evidence.DECLARED,
                kind=kind,
                base=tuple(base),
                messages=tuple(messages),
                trigger="" if not compacted else OVERFLOW if asked.attempt else "auto",
            )
        )
        self.head = head
