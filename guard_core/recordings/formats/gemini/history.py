"""Histories that replace another one: the summary in them, and their messages as a view."""

from __future__ import annotations

from collections.abc import Iterable

from guard_core.events import Event, Role, TextPart, ToolResultPart
from guard_core.recordings.formats.gemini.messages import CONTEXT
from guard_core.recordings.reading import summary_words
from guard_core.views import Inserted, Rewritten, Segment, Span, View


def find_snapshot(history: tuple[Event, ...]) -> Event | None:
    """The message with the summary at the head of a history (its first two); None where there is none. A model may
    leave out the tag that it was asked for: then the answer that follows shows what it is."""
    for event, answer in zip(history[:2], (*history[1:3], None, None)):
        texts = own_texts(event) if event.role is Role.USER else []
        is_answered = answer is not None and own_texts(answer) == [summary_words.GEMINI_ANSWER]
        if any(summary_words.SNAPSHOT in text for text in texts) or (texts and is_answered):
            return event
    return None


def own_texts(event: Event) -> list[str]:
    """The texts of a message but for what opens the chat, with which masking puts the summary into one message."""
    texts = [part.text for part in event.parts if isinstance(part, TextPart)]
    return [text for text in texts if not text.startswith(CONTEXT)]


def kind_of(base: View) -> str:
    """What a compaction made that left this view: a summary alone, or one with the messages behind it."""
    return "summary+tail" if base and not isinstance(base[-1], Inserted) else "summary"


def with_changed_results(
    base: View, messages: tuple[Event, ...], log: Iterable[Event]
) -> tuple[View, tuple[Event, ...]]:
    """A history in which results that the log has in other words are its events, changed, and no new messages."""
    places = {
        part.call_id: place
        for place, event in enumerate(log)
        for part in event.parts
        if isinstance(part, ToolResultPart) and part.call_id
    }
    segments: list[Segment] = []
    inserted: list[Event] = []
    for segment in base:
        if not isinstance(segment, Inserted):
            segments.append(segment)
            continue
        message = messages[segment.index]
        of = {places.get(part.call_id) if isinstance(part, ToolResultPart) else None for part in message.parts}
        if len(of) == 1 and (place := of.pop()) is not None:
            segments.append(Rewritten(place, message, "masked by Gemini CLI"))
        else:
            segments.append(Inserted(len(inserted)))
            inserted.append(message)
    return tuple(segments), tuple(inserted)


def first_messages(view: View, count: int) -> View:
    """A view of the first `count` messages of a view; all of it where it has fewer."""
    segments: list[Segment] = []
    for segment in view:
        size = segment.stop - segment.start if isinstance(segment, Span) else 1
        if count >= size:
            segments.append(segment)
        elif count and isinstance(segment, Span):
            segments.append(Span(segment.start, segment.start + count))
        count = max(0, count - size)
    return tuple(segments)


def places_of(view: View) -> list[tuple[str, int]]:
    """Where each message of a view comes from, log or compaction, and its place there; rewritten ones are left out."""
    places: list[tuple[str, int]] = []
    for segment in view:
        if isinstance(segment, Span):
            places += [("event", index) for index in range(segment.start, segment.stop)]
        elif isinstance(segment, Inserted):
            places.append(("inserted", segment.index))
    return places
