"""What a compaction of gptme left: a file beside the conversation, which begins with the messages that are sent from
then on. Those of the conversation have the time, the role and the id of the call that they have there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from guard_core.events import Event
from guard_core.recordings.formats.gptme.messages import checked, event_of, is_prompt, is_shown_only
from guard_core.recordings.reading import fields
from guard_core.recordings.reading.build import SessionBuilder
from guard_core.recordings.reading.fields import JSON
from guard_core.recordings.reading.source import Line
from guard_core.views import Inserted, Rewritten, Segment, Span, View

SHORTENED = "shortened by gptme"
Key = tuple[str, str, str, int]  # role, time, id of the call, and how many such messages are before it


class Keys:
    """Tells messages of one file apart, so that the same ones are known in another file."""

    def __init__(self) -> None:
        self._seen = Counter[tuple[str, str, str]]()

    def of(self, message: JSON) -> Key:
        """The key of the next message of the file."""
        role, time, call = (fields.text(message, name) for name in ("role", "timestamp", "call_id"))
        self._seen[role, time, call] += 1
        return role, time, call, self._seen[role, time, call]


class LeftBehind:
    """The messages of a view up to the one that says that it was made, as a view of the log."""

    def __init__(self, builder: SessionBuilder, places: dict[Key, int]) -> None:
        self._builder, self._places = builder, places
        self.inserted: list[Event] = []
        self._segments: list[Segment] = []

    @property
    def view(self) -> View:
        return tuple(self._segments)

    def read(self, lines: Iterable[Line], until: Key) -> bool:
        """Take the messages of a view; False where it does not hold the message with the key `until`."""
        keys, is_head = Keys(), True
        for line in lines:
            role, _ = checked(line)
            key = keys.of(line.obj)
            if key == until:
                return True
            is_head = is_head and is_prompt(line.obj, role)
            if not is_head and not is_shown_only(line.obj):
                self._add(event_of(line), self._places.get(key))
        return False

    def _add(self, message: Event, place: int | None) -> None:
        last = self._segments[-1] if self._segments else None
        if place is None:
            self._segments.append(Inserted(len(self.inserted)))
            self.inserted.append(message)
        elif self._builder.events[place].parts != message.parts:
            self._segments.append(Rewritten(place, message, SHORTENED))
        elif isinstance(last, Span) and last.stop == place:
            self._segments[-1] = Span(last.start, place + 1)
        else:
            self._segments.append(Span(place, place + 1))
