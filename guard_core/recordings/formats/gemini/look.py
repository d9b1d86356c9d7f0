"""A first look at a Gemini CLI patch log: tokens by message id, replaced histories with a new snapshot, rewinds."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

import msgspec

from guard_core.recordings.reading import looks, summary_words
from guard_core.recordings.reading.first_look import FirstLook
from guard_core.recordings.reading.source import ByteSource

_MODEL = frozenset({"gemini", "model"})


class _Tokens(msgspec.Struct, gc=False):
    input: int | None = None


class _Record(msgspec.Struct, gc=False):
    """A message, a header that may hold messages, or a change of the history."""

    id: str = ""
    type: str = ""
    model: str | None = None
    tokens: _Tokens | None = None
    content: msgspec.Raw = msgspec.Raw()
    messages: list[_Record] | None = None
    session: str | None = msgspec.field(default=None, name="sessionId")
    set: _Record | None = msgspec.field(default=None, name="$set")
    rewind_to: str | None = msgspec.field(default=None, name="$rewindTo")

    @property
    def prompt_tokens(self) -> int:
        count = self.tokens.input if self.tokens is not None and self.type in _MODEL else None
        return looks.tokens_of(count) or 0


def look(source: ByteSource) -> FirstLook:
    """Calls and compactions from one quick pass, of the first chat in the file; rewound messages are taken back."""
    chat, session = _Chat(), ""
    for record in looks.lines_of(source, _Record):
        if record.session and session and record.session != session and not record.type and record.set is None:
            break
        session = session or record.session or ""
        if record.set is not None:
            chat.replaced(record.set.messages)
        elif record.rewind_to is not None:
            chat.rewound(record.rewind_to)
        else:
            for message in (record, *(record.messages or ())):
                chat.message(message)
    return chat.look()


class _Chat:
    """The calls by the place of their message. Of a message that is written again the first tokens count."""

    def __init__(self) -> None:
        self._messages: list[str] = []  # ids of the messages of the history, each in its place
        self._places: dict[str, int] = {}  # of these, by id
        self._calls: dict[int, int] = {}  # prompt tokens, by the place of the answer
        self._used: set[str] = set()
        self._compactions: list[int] = []  # the places before which they are
        self._based: frozenset[str] = frozenset()  # ids of the last history that replaced another
        self._snapshot = ""
        self._before: _Record | None = None
        self._model = ""

    def message(self, record: _Record) -> None:
        if record.type != "user" and record.type not in _MODEL:
            return
        place = self._places.get(record.id) if record.id else None
        if place is None:
            place = self._places[record.id] = len(self._messages)
            self._messages.append(record.id)
            before = (self._before,) if self._before is not None else ()
            self._snapshot = _snapshot((*before, record)) or self._snapshot
            self._before = record
        tokens = record.prompt_tokens
        if tokens > 0 and (not record.id or record.id not in self._used):
            self._used.add(record.id)
            self._calls[place] = tokens
            self._model = record.model or self._model

    def replaced(self, history: list[_Record] | None) -> None:
        """Another history takes the place of the one so far; with a new snapshot that was a compaction."""
        if history is None:
            return
        if not self._messages:
            for record in history:
                self.message(record)
            return
        snapshot = _snapshot(history)
        if snapshot and snapshot != self._snapshot:
            self._snapshot = snapshot
            self._compactions.append(len(self._messages))
        self._based = frozenset(record.id for record in history)

    def rewound(self, message_id: str) -> None:
        """The user took back a message and all behind it."""
        cut = self._places.get(message_id)
        if message_id in self._based and self._compactions:
            cut = self._compactions[-1]
        if cut is None:
            return
        while len(self._messages) > cut:
            self._places.pop(self._messages.pop(), None)
            self._calls.pop(len(self._messages), None)
        while self._compactions and self._compactions[-1] > cut:
            self._compactions.pop()

    def look(self) -> FirstLook:
        calls = looks.CallsInOrder()
        places = sorted(self._calls)
        for place in places:
            calls.call(self._calls[place], model=self._model)
        for at in self._compactions:
            calls.compacted(bisect_left(places, at))
        return calls.look()


def _snapshot(history: Sequence[_Record]) -> str:
    """What distinguishes the summary at the head of a history from others; "" where there is none."""
    for record, answer in zip(history[:2], (*history[1:3], None, None)):
        answers = (
            answer is not None
            and answer.type in _MODEL
            and summary_words.GEMINI_ANSWER.encode() in bytes(answer.content)
        )
        if record.type == "user" and (answers or summary_words.SNAPSHOT.encode() in bytes(record.content)):
            return record.id or str(bytes(record.content)[:2000])
    return ""
