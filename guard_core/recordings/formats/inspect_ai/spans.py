"""Which agent of an Inspect sample each event belongs to, by the spans around it, and which requests belong together.

A span of type `agent` is one run of one agent: its requests are a context of their own, whatever their messages share
with those of another. A run that begins with the whole of a finished conversation continues it (an agent that is run
turn by turn). Logs before 0.3.92 have no spans: then the requests alone show it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from guard_core.recordings.reading import fields
from guard_core.recordings.reading.fields import JSON
from guard_core.recordings.reading.requests import Request, message_key


class Spans:
    """The spans of one transcript, as far as it was read."""

    def __init__(self) -> None:
        self._parents: dict[str, str] = {}
        self._agents: dict[str, str] = {}  # names of agents by span
        self._ended: set[str] = set()

    def see(self, item: JSON) -> None:
        """An event of the transcript: a span that begins or ends."""
        kind, span = fields.text(item, "event"), fields.text(item, "id")
        if kind == "span_begin" and span not in self._parents:
            self._parents[span] = fields.text(item, "parent_id")
            if fields.text(item, "type") == "agent":
                self._agents[span] = fields.text(item, "name")
        elif kind == "span_end":
            self._ended.add(span)

    def agent_of(self, item: JSON) -> str:
        """The span of the innermost agent that an event belongs to; "" outside of all."""
        span = fields.text(item, "span_id")
        passed: set[str] = set()
        while span and span not in self._agents and span not in passed:
            passed.add(span)
            span = self._parents.get(span, "")
        return span if span in self._agents else ""

    def name_of(self, agent: str) -> str:
        return self._agents.get(agent, "")

    def is_open(self, agent: str) -> bool:
        """Is an agent still at work, so that no other agent continues its conversation?"""
        return bool(agent) and agent not in self._ended


@dataclass
class _Conversation:
    """Requests that one agent sent, or several one after the other over the same history."""

    agent: str
    requests: list[Request] = field(default_factory=list)

    def is_continued_by(self, request: Request) -> bool:
        """Does a request begin with all that the last one sent, and its answer?"""
        last = self.requests[-1]
        sent = [*last.messages, *([last.response] if last.response else [])]
        if len(request.messages) < len(sent):
            return False
        return all(message_key(old) == message_key(new) for old, new in zip(sent, request.messages, strict=False))


class SampleContexts:
    """The requests of a sample by the context that they belong to."""

    def __init__(self, spans: Spans) -> None:
        self._spans = spans
        self._all: list[_Conversation] = []
        self._by_agent: dict[str, _Conversation] = {}

    def add(self, request: Request, agent: str) -> None:
        """The next request, sent by the agent of this span."""
        conversation = self._by_agent.get(agent) or self._finished_before(request) or _Conversation(agent)
        if not conversation.requests:
            self._all.append(conversation)
        self._by_agent[agent] = conversation
        conversation.agent = agent
        conversation.requests.append(request)

    def _finished_before(self, request: Request) -> _Conversation | None:
        """The last conversation of an agent that has finished which the request continues: its successor took it
        over."""
        finished = (item for item in reversed(self._all) if not self._spans.is_open(item.agent))
        return next((item for item in finished if item.is_continued_by(request)), None)

    def __iter__(self) -> Iterator[list[Request]]:
        return (item.requests for item in self._all)
