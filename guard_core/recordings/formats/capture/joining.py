"""An agent's own recording with what only its captured requests hold: system prompt and tools as they were sent.

A captured call belongs to the call of the recording that has its answer: by the provider's id of it, else by the words
and calls of the answer and the prompt tokens that the provider counted for it. Where captured requests name their
session, and one of the recording has that name, the others are not looked at. What was added to messages on their way
to the provider stays out: the recording says what a message is, and it is the agent's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from guard_core.events import Event, Part, Role, TextPart, ToolCallPart, part_text
from guard_core.plural import counted
from guard_core.sessions import ModelCall, Session

Key = (
    str | tuple[tuple[str, ...], int]
)  # a provider's id of an answer; or what it says and calls, and its prompt tokens
CHANGED = "The system prompt or the tools changed while requests were captured. The last are shown."
_LACKED = ("system prompt", "schemas of the tools", "tools' schemas")  # what readers note that a file lacks


class JoinedSession(NamedTuple):
    """A session with what was sent with its requests; how many answers it has, and how many of them were captured."""

    session: Session
    answers: int
    paired: int


def joined(session: Session, captured: Sequence[Session]) -> JoinedSession:
    """A session of an agent's own recording with what belongs to it of captured conversations."""
    named = [one for one in captured if session.source_id and one.parent == session.source_id]
    places: dict[Key, Session] = {}
    for conversation in named or captured:
        keys = (key for call in _answered(conversation) for key in _keys(conversation, call))
        places |= dict.fromkeys(keys, conversation)
    answers = list(_answered(session))
    conversations = (next((places[key] for key in _keys(session, call) if key in places), None) for call in answers)
    paired = [conversation for conversation in conversations if conversation is not None]
    if not paired:
        return JoinedSession(session, len(answers), 0)
    messages = set(_texts((*session.events, *(one for each in session.compactions for one in each.own_messages))))
    sent = {id(each): (_beyond(each.system, messages), each.tools) for each in paired}
    system, tools = sent[id(paired[-1])]
    notes = [
        note
        for note in session.notes
        if not note.endswith("not in the file.") or not any(words in note for words in _LACKED)
    ]
    if any(each != (system, tools) for each in sent.values()):
        notes.append(CHANGED)
    said = {part for each in paired for part in _texts(each.events)}
    if count := len(said - messages):
        notes.append(f"In the captured requests, and in no message of the file: {counted(count, 'text')}.")
    whole = replace(session, system=system, tools=tools, notes=tuple(notes))
    return JoinedSession(whole, len(answers), len(paired))


def _answered(session: Session) -> Iterator[ModelCall]:
    return (call for call in session.calls if call.response is not None)


def _keys(session: Session, call: ModelCall) -> Iterator[Key]:
    """By what a call is known in another recording of it, the surest first."""
    if call.source_id:
        yield call.source_id
    answer = session.events[call.response or 0]
    said = "".join(part.text for part in answer.parts if isinstance(part, TextPart)).strip()
    # Without ids, which agents make up anew, and without reasoning, which they leave out.
    words = (said, *(part_text(part) for part in answer.parts if isinstance(part, ToolCallPart)))
    if any(words) and call.prompt_tokens:
        yield words, call.prompt_tokens


def _texts(events: Iterable[Event]) -> Iterator[str]:
    """The texts that were sent to the model."""
    parts = (part for event in events if event.role is not Role.MODEL for part in event.parts)
    return (part.text.strip() for part in parts if isinstance(part, TextPart))


def _beyond(system: tuple[Part, ...] | None, messages: set[str]) -> tuple[Part, ...] | None:
    """The parts of a captured system prompt that are no messages of the recording: some agents send both alike."""
    return tuple(part for part in system or () if part_text(part).strip() not in messages) or None
