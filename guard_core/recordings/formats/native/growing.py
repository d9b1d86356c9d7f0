"""An export that comes line by line: each line is checked against what the lines before it have, and no more is kept.

growth = LinesSoFar().take(entry_of({"format": NAME, "version": VERSION, "session": {…}}))
growth = growth.take(entry_of({"index": 0, "events": {…}}))
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from guard_core.bounds import Count
from guard_core.errors import DamagedRecording
from guard_core.events import Event
from guard_core.recordings.formats.native.format import (
    EVENT,
    KINDS,
    NAME,
    check,
    converted,
    header_of,
    header_over,
)
from guard_core.recordings.reading import normalise
from guard_core.recordings.reading.fields import JSON
from guard_core.recordings.reading.limits import Limits
from guard_core.sessions import Session

LIMITS = Limits()
LINE_LIMITS = Limits(digits=300, integers=10**300)  # of a line before `kept`: each integer is below the largest float
HEADER, EVENTS, CALLS, COMPACTIONS = "session", "events", "calls", "compactions"  # the others: `KINDS`


class NativeLine(NamedTuple):
    """What a line holds: its name among `KINDS`, HEADER or EVENTS, the value, and the number of an event."""

    name: str
    value: Any
    number: int | None = None


def entry_of(line: JSON) -> NativeLine:
    """What one line holds, whatever came before it; `schema.line_schema` says the same as JSON Schema. Raises
    DamagedRecording, whose `reason` says what is allowed."""
    if line.get("format") == NAME:
        return NativeLine(HEADER, header_of(line))
    if line.keys() == EVENT:
        event = converted(line["events"], Event)
        if len(event.parts) > LIMITS.parts:
            raise DamagedRecording(f"a message with {len(event.parts):,} parts (limit {LIMITS.parts:,})")
        return NativeLine(EVENTS, event, converted(line["index"], Count, "index"))
    name = next(iter(line), "")
    if len(line) != 1 or name not in KINDS:
        allowed = ", ".join(["events with their index", *KINDS])
        raise DamagedRecording(f"a line with the keys {ascii(sorted(line))[:80]}; allowed is one of: {allowed}")
    return NativeLine(name, converted(line[name], KINDS[name]))


def kept(line: JSON) -> tuple[JSON, NativeLine]:
    """A line as it is stored, integers beyond 64 bits as text, and what it holds. Raises as `entry_of`."""
    entry = entry_of(line)
    storable, changed = normalise.tree(line)
    return (storable, entry_of(storable)) if changed else (line, entry)


def session_of(entries: Iterable[NativeLine]) -> Session:
    """The session that checked lines make, the header first."""
    values: dict[str, list[Any]] = {name: [] for name in (HEADER, EVENTS, *KINDS)}
    for entry in entries:
        values[entry.name].append(entry.value)
    (header,) = values.pop(HEADER)
    lists = {name: tuple(some) for name, some in values.items()}
    return msgspec.structs.replace(header_over(header, len(lists[EVENTS])), **lists)


class LinesSoFar(msgspec.Struct, frozen=True):
    """What the next line is checked against: how many events there are, and the log length of the last call and of the
    last compaction. `prompt_tokens` are those that the provider reported last, None where it never did."""

    begun: bool = False
    events: int = 0
    call_at: int = 0
    compaction_at: int = 0
    prompt_tokens: int | None = None

    def take(self, entry: NativeLine) -> LinesSoFar:
        """The growth behind a line. Raises DamagedRecording where it does not fit those before it."""
        name, value, number = entry
        if (name == HEADER) == self.begun:
            which = "a second header" if self.begun else f"{name} before the header"
            raise DamagedRecording(f'{which}: the first line of a stream, and no other, has "format": "{NAME}"')
        if name == HEADER:
            return msgspec.structs.replace(self, begun=True)
        if name == EVENTS:
            if number != self.events:
                raise DamagedRecording(f"an event whose index is {number}; the next one is {self.events}")
            if self.events >= LIMITS.events:
                raise DamagedRecording(f"a session has at most {LIMITS.events:,} events")
            return msgspec.structs.replace(self, events=self.events + 1)
        last = {CALLS: self.call_at, COMPACTIONS: self.compaction_at}.get(name, 0)
        check(value, self.events, last)
        if name == CALLS:
            if value.response is not None and value.response < value.at:
                raise DamagedRecording(f"a call over {value.at} events that event {value.response} answers")
            tokens = self.prompt_tokens if value.prompt_tokens is None else value.prompt_tokens
            return msgspec.structs.replace(self, call_at=value.at, prompt_tokens=tokens)
        return msgspec.structs.replace(self, compaction_at=value.at) if name == COMPACTIONS else self
