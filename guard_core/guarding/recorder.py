"""A running agent's session as a file of this project's own format, written line by line while the agent works.

recorder = Recorder("session.jsonl", agent="my agent", model="gpt-5")
recorder.record(guard)     # after each call: what is new is appended and flushed
recorder.close(guard)      # at the end: what waited for an answer, too
"""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any, Protocol, runtime_checkable
from uuid import uuid4

import msgspec

from guard_core.events import Event
from guard_core.recordings.formats.native import NAME, VERSION
from guard_core.recordings.reading import normalise
from guard_core.sessions import GUARDS_WINDOW, RECORDERS_WINDOW, Provenance, Session, Sourced
from guard_core.titles import first_words

log = logging.getLogger(__name__)


@runtime_checkable
class WritableFile(Protocol):
    """What is written like a file."""

    def write(self, data: bytes, /) -> object:
        """Take bytes."""

    def flush(self) -> object:
        """Let no bytes wait."""

    def close(self) -> object:
        """End."""


class Recordable(Protocol):
    """What has seen a conversation: a `Guard`, or a log that is recorded."""

    @property
    def recorded(self) -> Session:
        """The conversation so far, with its model calls and what a policy made of them."""

    @property
    def window(self) -> int:
        """The context window in tokens."""


class Recorder:
    """Appends to one file what a guard has seen. The file can be read, imported and watched at any moment.

    `path` may also be an object that is written to like a file, such as a `guard_core.streaming.Client`, which sends
    the lines to a running inspector. `window` is in tokens, if it is not the guard's. The default `title` is what the
    user wrote first. An existing file is not overwritten (FileExistsError). A write that fails raises OSError; the
    lines before it are complete. If a guard goes back to a point before what was written, the recording ends there,
    which is logged: what follows needs another one.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | WritableFile,
        *,
        agent: str = "",
        model: str = "",
        window: int = 0,
        title: str = "",
    ) -> None:
        self._about: dict[str, Any] = {"agent": agent, "model": model}
        self._title = title
        self._window = window
        self._written = dict.fromkeys(("events", "calls", "compactions"), 0)
        self.path = None if isinstance(path, WritableFile) else Path(path)
        self._file: WritableFile = path if isinstance(path, WritableFile) else Path(path).open("xb")  # noqa: SIM115 - see close
        self._begun = self._is_over = False
        self._last: Event | None = None  # that was written

    def record(self, guard: Recordable) -> None:
        """Append what is new. The last call is written once its answer is in the agent's history."""
        self._append(guard, last_call_too=False)

    def close(self, guard: Recordable) -> None:
        """Append the rest, and end the file."""
        self._append(guard, last_call_too=True)
        self._file.close()

    def _append(self, guard: Recordable, *, last_call_too: bool) -> None:
        session = guard.recorded
        if self._is_over or self._was_taken_back(session):
            return
        if not self._begun:
            self._begun = True
            self._write({"format": NAME, "version": VERSION, "session": self._header(guard, session)})
        done = self._written
        for index, event in enumerate(session.events[done["events"] :], done["events"]):
            self._write({"index": index, "events": event})
            self._last = event
        settled = [call for call in session.calls if call.response is not None]
        calls = session.calls if last_call_too else session.calls[: max(len(session.calls) - 1, len(settled))]
        for call in calls[done["calls"] :]:
            self._write({"calls": call})
        for compaction in session.compactions[done["compactions"] :]:
            self._write({"compactions": compaction})
        self._written = {
            "events": len(session.events),
            "calls": len(calls),
            "compactions": len(session.compactions),
        }
        self._file.flush()

    def _was_taken_back(self, session: Session) -> bool:
        """Is the last event that was written none of the conversation any more."""
        count = self._written["events"]
        self._is_over = count > 0 and (len(session.events) < count or session.events[count - 1] != self._last)
        if self._is_over:
            log.warning("a recording ends after %d events: the agent took some of them back", count)
        return self._is_over

    def _header(self, guard: Recordable, session: Session) -> Session:
        window = session.window or Sourced(guard.window, Provenance.USER, GUARDS_WINDOW)
        if self._window:
            window = Sourced(self._window, Provenance.USER, RECORDERS_WINDOW)
        bare = msgspec.structs.replace(session, events=(), calls=(), compactions=())
        title = self._title or first_words(session.events)
        return msgspec.structs.replace(
            bare, format=NAME, source_id=uuid4().hex, window=window, title=title, **self._about
        )

    def _write(self, value: dict[str, Any]) -> None:
        storable, _ = normalise.tree(msgspec.to_builtins(value, str_keys=True))
        self._file.write(msgspec.json.encode(storable) + b"\n")
