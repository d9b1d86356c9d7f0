"""The conversations of guarded ADK agents as recordings, written while the agents run.

Whatever fails here is logged and changes nothing for the agent. A recording is ended by a thread of its own: one that
is sent waits for the last acknowledgement, and neither the agent nor another recording waits with it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from google.adk.models.llm_response import LlmResponse

from guard_core.events import Event, Part, Role
from guard_core.guarding.recorder import Recorder, WritableFile
from guard_core.guarding.recording import RecordedLog
from guard_core.policies.base import Policy
from guard_core.replay import RequestDecision
from guard_core.sessions import ModelCall, Sourced, ToolDefinition

logger = logging.getLogger(__name__)

MOST_OPEN = 100  # conversations: each has a file, or a thread that sends
RecordTo = Callable[[], str | Path | WritableFile]
Conversation = tuple[str, str]  # the id of the session, the name of the agent


@dataclass
class _RecordedConversation:
    """One conversation: `given` are the events of its last request, `asked` is how that was decided, None once it was
    answered."""

    log: RecordedLog
    recorder: Recorder
    given: Sequence[Event] = ()
    asked: RequestDecision | None = None
    answers: int = 0  # since the last request

    def continues(self, events: Sequence[Event]) -> bool:
        """Are these events the last request's with more at their end, the model's answer first."""
        known = len(self.given)
        answers = events[known : known + self.answers]
        same = len(answers) == self.answers and all(event.role is Role.MODEL for event in answers)
        return same and list(events[:known]) == list(self.given)


class Recordings:
    """What is recorded of a plugin's agents. `record_to` gives, for each conversation, a path or what is written like a
    file (see `Recorder`)."""

    def __init__(self, record_to: RecordTo) -> None:
        self._record_to = record_to
        self._open: dict[Conversation, _RecordedConversation] = {}  # the one that was asked last at the end
        self._ending: list[threading.Thread] = []

    def asked(
        self,
        conversation: Conversation,
        policy: Policy,
        window: int | Sourced,
        model: str,
        events: Sequence[Event],
        system: tuple[Part, ...] | None,
        tools: tuple[ToolDefinition, ...] | None,
        asked: RequestDecision,
    ) -> None:
        """A request is sent: over these events, as the policy decided. `window` in tokens, or where it was looked
        up."""
        with _only_logged(conversation):
            recording = self._open.pop(conversation, None)
            if recording is None or not recording.continues(events):
                self._end(conversation, recording)
                recorder = Recorder(self._record_to(), agent=conversation[1], model=model)
                recording = _RecordedConversation(RecordedLog(policy, window), recorder)
            self._open[conversation] = recording
            if len(self._open) > MOST_OPEN:
                idle = next(iter(self._open))
                self._end(idle, self._open.pop(idle))
            log = recording.log
            if recording.asked is not None:
                log.withdraw()
            log.extend(events[len(log.events) :])
            log.system, log.tools = system, tools
            log.begin()
            recording.given, recording.asked, recording.answers = events, asked, 0

    def answered(self, conversation: Conversation, event: Event | None, response: LlmResponse) -> None:
        """The model answered with an event, None where it failed."""
        with _only_logged(conversation):
            recording = self._open.get(conversation)
            if recording is None or recording.asked is None:
                return
            log = recording.log
            log.answered(recording.asked, _counts(response))
            if event is not None:
                log.extend([event])
                recording.answers = 1
            recording.asked = None
            recording.recorder.record(log)

    def close(self) -> None:
        """End all recordings, and wait until they are."""
        while self._open:
            self._end(*self._open.popitem())
        for thread in self._ending:
            thread.join()

    def _end(self, conversation: Conversation, recording: _RecordedConversation | None) -> None:
        if recording is not None:
            self._ending = [thread for thread in self._ending if thread.is_alive()]
            self._ending.append(threading.Thread(target=_ended, args=(conversation, recording), daemon=True))
            self._ending[-1].start()


def _ended(conversation: Conversation, recording: _RecordedConversation) -> None:
    """In a thread, as what is recorded to may be slow to close. A request without an answer is left out."""
    with _only_logged(conversation):
        if recording.asked is not None:
            recording.log.withdraw()
        recording.recorder.close(recording.log)


@contextmanager
def _only_logged(conversation: Conversation) -> Iterator[None]:
    try:
        yield
    except Exception:
        logger.warning("a call of agent %s was not recorded", conversation[1])
        logger.debug("why a call was not recorded", exc_info=True)


def _counts(response: LlmResponse) -> ModelCall:
    """What the provider counted, in tokens: thoughts are part of the output."""
    usage = response.usage_metadata
    if usage is None:
        return ModelCall(at=0, model=response.model_version or "")
    outputs = [count for count in (usage.candidates_token_count, usage.thoughts_token_count) if count is not None]
    return ModelCall(
        at=0,
        prompt_tokens=usage.prompt_token_count,
        cached_tokens=usage.cached_content_token_count,
        output_tokens=sum(outputs) if outputs else None,
        model=response.model_version or "",
    )
