"""A log that grows while an agent runs, and the policy that decides before each of its model calls.

log = GuardedLog(get_policy("contextguard"), window=200_000)
log.extend(events)             # what is new since the last call
asked = log.ask()              # the decision: asked.decision.view is what to send
log.refused()                  # where the provider says that it is too large: another view, or None
log.answered(prompt_tokens=…)  # what the provider counted
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from guard_core.costs import EventCounter
from guard_core.errors import GuardError
from guard_core.estimation.usage import RequestCount, Usage
from guard_core.events import Event, Part
from guard_core.guarding.counts import LiveUsage
from guard_core.guarding.recording import RecordedLog
from guard_core.ledger import Ledger
from guard_core.policies.base import Policy, State, dump_state, load_state
from guard_core.replay import Job, RequestDecision, ask, make_job, retry
from guard_core.sessions import ModelCall, RecordedCompaction, Session, ToolDefinition
from guard_core.summaries.base import Summarizer, Todo
from guard_core.trace import Head
from guard_core.views import plain_values


class LogMark(NamedTuple):
    """A conversation between two calls: how many events it had, its calls, and what the policy knew."""

    events: int
    calls: tuple[ModelCall, ...]
    compactions: tuple[RecordedCompaction, ...]
    head: Head
    sent: tuple[int, ...]
    state: State
    threshold: int | None


class GuardedLog:
    """The events of one conversation, its model calls so far, and a policy with its state.

    `window` in tokens. `usage` replaces the provider where it is simulated; a live one is `LiveUsage`, which knows the
    counts that were reported. Not safe for use by two threads at once: one log is one conversation.
    """

    def __init__(
        self,
        policy: Policy,
        window: int,
        *,
        summarizer: Summarizer | None = None,
        usage: Usage | None = None,
        system: tuple[Part, ...] | None = None,
        tools: tuple[ToolDefinition, ...] | None = None,
    ) -> None:
        self.policy, self.window, self.summarizer = policy, window, summarizer
        self.state: State = policy.start()
        self.todos: tuple[Todo, ...] = ()
        self.request: str | None = None  # the user's words of this turn, where a framework gives them beside the log
        self._usage = usage
        self._log = RecordedLog(policy, window)
        self.describe(system, tools)
        self._counter = EventCounter()
        self._sent: tuple[int, ...] = ()  # the policy's estimate of each request that was answered
        self._job: Job | None = None
        self._asked: RequestDecision | None = None

    @property
    def session(self) -> Session:
        """The log as a session, without what the policy did to it."""
        return self._log.session

    @property
    def recorded(self) -> Session:
        """The same with what the policy did to it, as a recording has it."""
        return self._log.recorded

    @property
    def events(self) -> list[Event]:
        """The conversation so far."""
        return self._log.events

    @property
    def asked(self) -> RequestDecision | None:
        """The decision that waits for its answer."""
        return self._asked

    def extend(self, events: Iterable[Event]) -> None:
        """What was added to the conversation since the last call: first the answer of that call, if it had one."""
        known = len(self.events)
        self._log.extend(events)
        for event in self.events[known:]:
            self._counter.add(event)

    def describe(self, system: tuple[Part, ...] | None, tools: tuple[ToolDefinition, ...] | None) -> None:
        """The system prompt and the tools of the next request: their cost is part of it."""
        self._log.system, self._log.tools = system, tools

    def ask(self) -> RequestDecision:
        """The decision for a request over the log as it is now. Raises GuardError where one waits for its answer."""
        if self._asked is not None:
            raise GuardError("the last request has no answer yet: call answered() or withdraw() before the next one")
        self._log.begin()
        session, calls = self.session, self._log.calls
        ledger = Ledger.counted(session, self._counter)
        usage = self._usage or LiveUsage(tuple(calls), self._sent, self.policy)
        self._job = make_job(
            ledger, self.policy, self.window, usage, self.summarizer, session, self.request, self.todos
        )
        try:
            self._asked = ask(self._job, len(calls) - 1, self.state)
        except BaseException:
            self._log.withdraw()
            raise
        return self._asked

    def refused(self) -> RequestDecision | None:
        """The decision after the provider refused the request as too large; None where the policy has no other."""
        asked, job = self._waiting()
        if not asked.may_retry(self.policy):
            return None
        self._asked = retry(job, len(self._log.calls) - 1, asked)
        return None if self._asked.ended else self._asked

    def answered(
        self,
        prompt_tokens: int | None = None,
        *,
        cached_tokens: int | None = None,
        cache_write_tokens: int | None = None,
        output_tokens: int | None = None,
        model: str = "",
    ) -> None:
        """What the provider counted for the request that was sent, in tokens; None where it reported nothing.

        `prompt_tokens` includes the cached ones.
        """
        asked, _ = self._waiting()
        counts = (prompt_tokens, cached_tokens, cache_write_tokens, output_tokens)
        if not all(count is None or (type(count) is int and 0 <= count < 2**53) for count in counts):
            raise GuardError(f"token counts are whole numbers from 0 on, not {counts}")
        self._log.answered(
            asked,
            ModelCall(
                at=0,
                prompt_tokens=prompt_tokens,
                cached_tokens=cached_tokens,
                cache_write_tokens=cache_write_tokens,
                output_tokens=output_tokens,
                model=model,
            ),
        )
        heuristic = int(asked.decision.evidence["heuristic_sent"])
        self._sent = (*self._sent, heuristic)
        self.state = self.policy.observe(asked.decision.state, prompt_tokens, len(self._log.calls) - 1)
        self._asked = self._job = None

    def withdraw(self) -> None:
        """The request was not sent or not answered at all: the policy is as it was before it."""
        self._waiting()
        self._log.withdraw()
        self._asked = self._job = None

    def mark(self) -> LogMark:
        """Where the conversation is, between two calls, to go back to."""
        if self._asked is not None:
            raise GuardError("a request waits for its answer: its policy has no state between two calls")
        log = self._log
        return LogMark(
            len(log.events), tuple(log.calls), tuple(log.compactions), log.head, self._sent, self.state, log.threshold
        )

    def go_back(self, mark: LogMark) -> None:
        """What came after a mark did not happen: neither in the conversation nor for the policy."""
        if self._asked is not None:
            self.withdraw()
        log = self._log
        del log.events[mark.events :]
        log.calls, log.compactions, log.head = list(mark.calls), list(mark.compactions), mark.head
        log.threshold = mark.threshold
        self._sent, self.state = mark.sent, mark.state
        self._counter = EventCounter()
        for event in self.events:
            self._counter.add(event)

    def counted(self) -> RequestCount:
        """What the provider of a simulation counts for the request that waits."""
        asked, job = self._waiting()
        heuristic = int(asked.decision.evidence["heuristic_sent"])
        return job.run.usage.one(len(self._log.calls) - 1, asked.decision.view, heuristic)

    def dump(self) -> bytes:
        """Everything but the events as JSON, between two calls."""
        if self._asked is not None:
            raise GuardError("a request waits for its answer: its policy has no state between two calls")
        state = msgspec.Raw(dump_state(self.state))
        stored = _StoredLog(self.policy.name, tuple(self._log.calls), self._sent, self._log.head, state)
        return msgspec.json.encode(stored, enc_hook=plain_values)

    def restore(self, data: bytes) -> None:
        """Take over what `dump` gave; the events follow by `extend`. Raises GuardError for bytes of something else."""
        try:
            stored = msgspec.json.decode(data, type=_StoredLog)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise GuardError(f"this is not a stored guard: {error}") from error
        if stored.policy != self.policy.name:
            raise GuardError(f"this guard was stored by the policy {stored.policy}, not by {self.policy.name}")
        self.state = load_state(self.policy, bytes(stored.state))
        self._log.calls, self._sent, self._log.head = list(stored.calls), stored.sent, stored.head

    def _waiting(self) -> tuple[RequestDecision, Job]:
        if self._asked is None or self._job is None:
            raise GuardError("no request waits for an answer: call ask() first")
        return self._asked, self._job


class _StoredLog(msgspec.Struct, frozen=True):
    policy: str
    calls: tuple[ModelCall, ...]
    sent: tuple[int, ...]
    head: Head
    state: msgspec.Raw
