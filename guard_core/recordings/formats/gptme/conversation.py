"""A conversation of gptme, message by message, with the views that it names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import count
from typing import Any

from guard_core.errors import RecordingError
from guard_core.events import Part, Role, TextPart, part_text
from guard_core.plural import counted
from guard_core.recordings.formats.gptme.messages import checked, event_of, is_made, is_prompt, is_shown_only
from guard_core.recordings.formats.gptme.views import Key, Keys, LeftBehind
from guard_core.recordings.reading import fields
from guard_core.recordings.reading.build import FactCounter, SessionBuilder
from guard_core.recordings.reading.bundle import Bundle
from guard_core.recordings.reading.fields import JSON
from guard_core.recordings.reading.source import ByteSource, Line
from guard_core.sessions import BEGINS_WITH_SUMMARY, AgentSetting, Evidence, ModelCall, RecordedCompaction, Session

NAME = "gptme"
COUNTS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_creation_tokens", "reasoning_tokens")
CHECKPOINT = "compaction_checkpoint_view"  # of the message that asks for a checkpoint
CUT_AT = "view_from_event"  # the setting with the event behind which a view was made that is not known
_VERSION = re.compile(r"You are gptme v(\d[\w.]{0,30})")  # at the beginning of the system prompt
_WINDOW = re.compile(r"<budget:token_budget>(\d{1,9})</budget:token_budget>")  # a part of the system prompt
_NAMED_VIEW = re.compile(r"^• View: ([\w-]{1,100})", re.MULTILINE)


class ConversationReader:
    """Reads one conversation. `source` is the file or the archive that it comes from, `views` the files of an archive
    with its views, by their names."""

    def __init__(
        self,
        source: ByteSource,
        facts: FactCounter,
        *,
        first: bool = False,
        bundle: Bundle | None = None,
        views: Mapping[str, str] | None = None,
    ) -> None:
        self._source, self._facts = source, facts
        self._builder = SessionBuilder(NAME, source, first=first)
        self._bundle, self._views = bundle, views or {}
        self._keys, self._places = Keys(), dict[Key, int]()
        self._system: list[Part] = []
        self._is_head = True  # only the system prompt so far
        self._asked: list[tuple[Line, int, Key]] = []  # a question for a checkpoint and what follows it
        self._view_from = 0  # the line of the first answer to a request from a view that is not known
        self._cut_at: int | None = None  # the messages before the first such view
        self._is_in_view = False
        self._is_continued = False
        self._dropped = 0  # messages that are sent a few times only

    def read(self, lines: ByteSource) -> None:
        """Take the messages; `lines` are those of the conversation."""
        places = count()
        for line in lines.lines():
            with lines.tolerate(line.number):
                self._line(line, next(places))
        self._give_up()

    def sessions(self, agent: str) -> list[Session]:
        """The session, none where the conversation holds no message."""
        if not self._builder.events and not self._system:
            return []
        self._note()
        texts = [part_text(part) for part in self._system]
        version = next(filter(None, map(_VERSION.match, texts[:1])), None)
        stated = next(filter(None, map(_WINDOW.fullmatch, texts)), None)
        self._builder.states_window(0, int(stated[1]) if stated else None)
        session = self._builder.session(
            system=tuple(self._system) or None,
            agent=agent,
            versions=((0, version[1].rstrip(".")),) if version else (),
            settings=() if self._cut_at is None else (AgentSetting(CUT_AT, self._cut_at),),
            window=self._builder.window("token_budget in the system prompt"),
        )
        return [session]

    def _line(self, line: Line, place: int) -> None:
        """`place`: the number of messages before it."""
        _, content = checked(line)
        key = self._keys.of(line.obj)
        metadata = fields.mapping(line.obj, "metadata")
        if is_shown_only(line.obj):
            self._source.notes.skip("message that is only displayed")
            named = _NAMED_VIEW.search(content)
            if named is not None:
                self._compact(line, named[1], key)
            return
        self._facts.message()
        if CHECKPOINT in metadata:
            self._give_up()
            self._asked = [(line, place, key)]
        elif self._asked and fields.text(line.obj, "role") != "user":
            self._asked.append((line, place, key))
        else:
            self._give_up()
            self._message(line, place, key)

    def _give_up(self) -> None:
        """No view followed a question for a checkpoint: it and its answers are messages like others."""
        asked, self._asked = self._asked, []
        for line, place, key in asked:
            self._message(line, place, key)

    def _message(self, line: Line, place: int, key: Key) -> None:
        role, content = checked(line)
        self._is_continued = self._is_continued or (is_made(line.obj) and not self._builder.calls)
        self._dropped += line.obj.get("ephemeral_ttl") is not None
        self._is_head = self._is_head and is_prompt(line.obj, role)
        if self._is_head:
            self._system.append(TextPart(content))
            return
        event = event_of(line)
        if event.role is Role.MODEL:
            self._answer(line, place, event.parts)
        else:
            self._facts.parts(event.parts)
            self._builder.event(event.role, event.parts, line=line.number, timestamp=event.timestamp, meta=event.meta)
        self._places[key] = len(self._builder.events) - 1

    def _answer(self, line: Line, place: int, parts: tuple[Part, ...]) -> None:
        self._facts.parts(parts)
        metadata, call = fields.mapping(line.obj, "metadata"), _call(line)
        prompt, time = call["prompt_tokens"], call["timestamp"]
        if is_made(line.obj) or (prompt is None and self._is_continued and not self._builder.calls):
            self._builder.event(Role.MODEL, parts, line=line.number, timestamp=time)  # what a compaction wrote
            return
        if prompt is not None:
            self._facts.call(prompt)
            sent = fields.tokens(metadata, "input_log_messages")
            if sent is not None and sent < place and not self._is_in_view:
                self._view_from = self._view_from or line.number
        self._builder.answer(parts, call=call, line=line.number, timestamp=time)

    def _compact(self, line: Line, name: str, key: Key) -> None:
        """The view of a name was made before this message, which is only displayed."""
        left = LeftBehind(self._builder, self._places)
        self._is_in_view = self._reads(left, name, key)
        if not self._is_in_view:
            self._cut_at = len(self._builder.events) if self._cut_at is None else self._cut_at
            self._give_up()
            return
        self._facts.compaction()
        summariser = self._summariser()
        self._builder.compaction(
            RecordedCompaction(
                at=len(self._builder.events),
                evidence=Evidence.DECLARED,
                kind="trim" if summariser is None else "summary+tail",
                base=left.view,
                messages=tuple(left.inserted),
                trigger="auto",
                summariser=summariser,
                line=line.number,
                timestamp=fields.timestamp(line.obj, "timestamp"),
            )
        )

    def _reads(self, left: LeftBehind, name: str, key: Key) -> bool:
        """Can what was left be read in the file of a view."""
        if self._bundle is None or name not in self._views:
            return False
        try:
            with self._bundle.open(self._views[name]) as part:
                return part is not None and left.read(part.lines(), key)
        except RecordingError as error:
            if self._source.strict:
                raise
            self._source.leave_out(str(error))
            return False

    def _summariser(self) -> ModelCall | None:
        """The call that wrote the checkpoint, which is taken out of the conversation with its question. Calls before it
        in which the model used tools are beside the conversation."""
        asked, self._asked = self._asked, []
        answers = [_call(line) for line, *_ in asked if fields.text(line.obj, "role") == "assistant"]
        for call in answers:
            if call["prompt_tokens"] is not None:
                self._facts.call(call["prompt_tokens"])
        calls = [ModelCall(at=len(self._builder.events), **call) for call in answers]
        self._builder.side_calls += calls[:-1]
        return calls[-1] if calls else None

    def _note(self) -> None:
        if self._view_from:
            self._builder.notes.append(
                f"From line {self._view_from:,} on, gptme sent fewer messages than are in this file: a compacted view, "
                "which it keeps in a file of its own (views/*.jsonl). What it holds is known where the conversation's "
                "folder, or a zip archive of it, is imported."
            )
        if self._is_continued:
            self._builder.notes.append(BEGINS_WITH_SUMMARY)
        if self._dropped:
            self._builder.notes.append(
                f"{counted(self._dropped, 'message')} that gptme drops from its requests after a few answers: read as "
                "if all later requests had held them."
            )


def _call(line: Line) -> dict[str, Any]:
    """What an answer says of its call, as fields of ModelCall."""
    metadata = fields.mapping(line.obj, "metadata")
    usage: JSON = metadata["usage"] if isinstance(metadata.get("usage"), dict) else metadata
    fresh, output, read, written, _ = (fields.tokens(usage, name) for name in COUNTS)
    return {
        "prompt_tokens": None if fresh is None else fresh + (read or 0) + (written or 0),
        "cached_tokens": read,
        "cache_write_tokens": written,
        "output_tokens": output,
        "model": fields.text(metadata, "model") or fields.text(metadata, "input_log_model"),
        "timestamp": fields.timestamp(line.obj, "timestamp"),
        "line": line.number,
    }
