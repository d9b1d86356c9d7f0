"""Which traces are one conversation, where the spans do not name it: a call without a span around it is a whole trace.

A trace continues an earlier one if its first request repeats all that was sent there and adds to it, repeats a
request that was not answered, or contains the last answer (the history was compacted in between). Traces that only
begin alike are runs of their own. Traces without the messages that were sent cannot be distinguished: those of one
service are shown together.
"""

from __future__ import annotations

from collections.abc import Iterable

from guard_core.events import Event, TextPart, ToolCallPart
from guard_core.quoting import width
from guard_core.recordings.reading.overlap import SHORTEST_SUMMARY, is_summary_in
from guard_core.recordings.reading.requests import Request, message_key


def joined(groups: Iterable[tuple[str, list[Request]]]) -> list[list[str]]:
    """The names of groups of requests (at least one each, in the order of their times) that are one conversation."""
    chains: list[list[str]] = []
    ends: list[_ConversationEnd] = []
    for name, requests in groups:
        keys = [message_key(event) for event in requests[0].messages]
        at = next((at for at in reversed(range(len(ends))) if ends[at].is_continued_by(requests[0], keys)), None)
        if at is None:
            chains.append([name])
            ends.append(_ConversationEnd(requests[-1]))
        else:
            chains[at].append(name)
            ends[at] = _ConversationEnd(requests[-1])
    return chains


class _ConversationEnd:
    """Where a conversation ends: its last request and the answer to it."""

    def __init__(self, request: Request) -> None:
        self._sent = [message_key(event) for event in request.messages]
        self._answer = request.response
        self._key = None if request.response is None else message_key(request.response)

    def is_continued_by(self, request: Request, keys: list[bytes]) -> bool:
        """Does a request continue this conversation? `keys`: those of its messages."""
        if not keys or not self._sent:
            return False
        sent = self._sent[request.lost :] if request.lost < len(self._sent) else []
        if sent and keys[: len(sent)] == sent:
            return len(keys) > len(sent) or self._answer is None
        if self._answer is None:
            return False
        known = {*self._sent, self._key}
        repeats_answer = self._key in keys and (_is_telling(self._answer) or sum(key in known for key in keys) > 1)
        return repeats_answer or is_summary_in(self._answer, request.messages)


def _is_telling(answer: Event) -> bool:
    """Is an answer one that hardly comes twice: a call with its id, or more than a word of assent?"""
    calls = any(isinstance(part, ToolCallPart) and part.id for part in answer.parts)
    return calls or sum(width(part.text) for part in answer.parts if isinstance(part, TextPart)) >= SHORTEST_SUMMARY
