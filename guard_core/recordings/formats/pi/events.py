"""What `pi --mode json` prints: the header of the session (newer versions), then the agent's events as they happen.

`message_end` brings each message as session files hold it (the system prompt and the tools, too, in 0.87); its
beginning, its pieces and the events that close turns and runs only repeat it. A compaction is a `compaction_end`
(before: `auto_compaction_end`) with its summary; the entry it names as the first kept is not printed, so what was kept
is not known. Messages from before a resumed session are not printed either. oh-my-pi prints the same events, and some
of its own.
Source: the output of pi 0.27 to 0.87; https://github.com/badlogic/pi-mono, packages/coding-agent/docs/json.md.
"""

from __future__ import annotations

from msgspec.structs import replace

from guard_core.errors import DamagedRecording
from guard_core.recordings.base import Recording
from guard_core.recordings.formats.pi import oh_my_pi
from guard_core.recordings.formats.pi import session as pi
from guard_core.recordings.formats.pi.known_names import NAMES
from guard_core.recordings.reading import fields
from guard_core.recordings.reading.fields import JSON
from guard_core.recordings.reading.source import ByteSource, Line
from guard_core.sessions import Session

NAME = pi.FORMAT.name
_MESSAGES = frozenset({"message_start", "message_update", "message_end"})
_COMPACTED = frozenset({"compaction_end", "auto_compaction_end"})
_OTHERS = frozenset(
    {
        "agent_start",
        "agent_end",
        "turn_start",
        "turn_end",
        "tool_execution_start",
        "tool_execution_update",
        "tool_execution_end",
        "compaction_start",
        "auto_compaction_start",
        "auto_retry_start",
        "auto_retry_end",
        "agent_settled",
    }
)
_KINDS = _MESSAGES | _COMPACTED | _OTHERS


class PiEventFormat:
    """Reads what pi prints when it runs without a screen."""

    name = NAME
    label = pi.FORMAT.label
    place = ""
    known_names = NAMES

    def matches(self, source: ByteSource) -> bool:
        heads = [line.obj for line in source.head_lines()]
        events = sum(fields.text(obj, "type") in _KINDS for obj in heads)
        return events * 2 > len(heads) and any(map(_is_marked, heads))

    def read(self, source: ByteSource) -> Recording:
        reader = PiEventReader(source)
        for line in source.lines():
            with source.tolerate(line.number):
                reader.line(line)
        return reader.recording()


FORMAT = PiEventFormat()


def _is_marked(obj: JSON) -> bool:
    """A message of the agent; a run that failed has no more than its beginning."""
    if fields.text(obj, "type") in _MESSAGES:
        return bool(fields.text(fields.mapping(obj, "message"), "role"))
    return obj == {"type": "agent_start"}


class PiEventReader:
    """The events of one file, given to the reader of session files as the entries that they became."""

    def __init__(self, source: ByteSource) -> None:
        self.source = source
        self.entries = pi.PiSessionReader(source)
        self.sessions: list[Session] = []
        self.reason = ""  # of the compaction that began

    def line(self, line: Line) -> None:
        obj, kind = line.obj, fields.text(line.obj, "type")
        if oh_my_pi.printed_by_it(obj):
            self.entries.agent = oh_my_pi.NAME
        if kind == "session":
            known = fields.text(self.entries.header, "id")
            if self.entries.log.events and fields.text(obj, "id") != known:
                self._next()  # several runs were kept in one file
            self.entries.line(line, on_path=True)
        elif kind == "message_end":
            if not isinstance(obj.get("message"), dict):
                place = line.column("message")
                raise DamagedRecording('"message" of a message_end is missing or no object', column=place)
            self._entry(line, {"type": "message", "message": obj["message"]})
        elif kind in _COMPACTED:
            self._compacted(line, fields.mapping(obj, "result"))
        else:
            self.reason = fields.text(obj, "reason") if kind.endswith("compaction_start") else self.reason
            self.source.notes.skip(kind[:60] or "line without a type")

    def _entry(self, line: Line, entry: JSON) -> None:
        self.entries.line(line._replace(obj=entry), on_path=True)

    def _compacted(self, line: Line, result: JSON) -> None:
        if "summary" not in result:
            self.source.notes.skip("compaction that did not come about")
            return
        summary: JSON = {key: result[key] for key in ("summary", "tokensBefore") if key in result}
        self._entry(line, {"type": "compaction", "method": fields.text(line.obj, "action"), **summary})
        compactions = self.entries.log.compactions
        trigger = fields.text(line.obj, "reason") or self.reason
        note = f"{compactions[-1].note} What was kept besides the summary is not in the file.".strip()
        after = fields.tokens(result, "estimatedTokensAfter")
        compactions[-1] = replace(compactions[-1], trigger=trigger, tokens_after=after, note=note)

    def _next(self) -> None:
        if self.entries.log.events:
            self.sessions += self.entries.recording().sessions
        facts = self.entries.facts
        self.entries = pi.PiSessionReader(self.source, first=False)
        self.entries.facts = facts

    def recording(self) -> Recording:
        self._next()
        if not self.sessions:
            raise self.source.nothing_left("what pi printed holds no message")
        return Recording(NAME, tuple(self.sessions), self.entries.facts.facts(), self.source.notes)
