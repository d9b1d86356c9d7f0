"""Aider chat histories (`.aider.chat.history.md`): Markdown, one session per chat in the file.

Definition: `aider/io.py` of https://github.com/Aider-AI/aider (`append_chat_history`). A chat begins with `# aider
chat started at`. Lines with `#### ` are the user's (following ones belong together), lines with `> ` are the
console's, everything else is the model's answer. Aider ends its own lines with two spaces, which distinguishes them
from quotes and headings in an answer, and from the rest of a console's text of several lines; where a file has lost
those spaces, an answer that itself quotes or has such headings cannot be distinguished. Slash and shell commands are
kept as automatic messages: most are never sent (`/ask`, `/code` and `/architect` with text are). Tool calls, the system
prompt, the repository map and the files added to the chat are not in the file. `> Tokens: 4.2k sent, 1.1k received` is
rounded and folds several calls of one exchange, so calls carry no prompt tokens; the session has their sum, and a note
the largest figure. Where Aider says that the context window is exhausted, the request was refused.
Facts count the lines that begin as the user's do.
"""

from __future__ import annotations

import re
from typing import Any

from guard_core.errors import DamagedRecording
from guard_core.events import Role, TextPart
from guard_core.plural import counted
from guard_core.recordings.base import Recording
from guard_core.recordings.reading import normalise
from guard_core.recordings.reading.build import FactCounter, SessionBuilder
from guard_core.recordings.reading.file_bytes import BOM
from guard_core.recordings.reading.source import ByteSource
from guard_core.sessions import Session

START = "# aider chat started at "
_OWN = (">", "#### ")  # how Aider begins its own lines,
_END = "  "  # and how it ends them: a line break in Markdown
_TOKENS = re.compile(r"Tokens: ([\d.,]+)(k|M)? sent")
EXHAUSTED = "possibly exhausted context window"  # base_coder.py, `show_exhausted_error`: the prompt has no room left
_MODEL = re.compile(r"(?:Main model|Model|Models): (\S+)")
_SENT_COMMANDS = ("/ask ", "/code ", "/architect ")
_UNIT = {"k": 1_000, "M": 1_000_000}


class AiderFormat:
    name = "aider"
    label = "Aider"
    place = ".aider.chat.history.md"
    known_names = None

    def matches(self, source: ByteSource) -> bool:
        head = source.first_bytes.removeprefix(BOM).lstrip()
        return head.startswith((START.encode(), b"#### ", b"> ")) and START.encode() in source.head(65_536)

    def read(self, source: ByteSource) -> Recording:
        facts = FactCounter(self.name)
        sessions: list[Session] = []
        chat: _AiderChat | None = None
        text = source.text()
        source.notes.lines = text.count("\n") + (not text.endswith("\n"))
        lines = [line.removesuffix("\r") for line in text.split("\n")]
        ended = any(line.startswith(_OWN) and line.endswith(_END) for line in lines)
        for number, line in enumerate(lines, start=1):
            if line.startswith(START):
                _finish(chat, sessions)
                chat = _AiderChat(source, line.removeprefix(START).strip(), ended=ended)
                continue
            if line.startswith("#### "):
                facts.message()
            if chat is None and line.strip():
                chat = _AiderChat(source, "", ended=ended)
            if chat is not None:
                chat.take(line, number)
        _finish(chat, sessions)
        if not sessions:
            raise DamagedRecording("this Aider history has no user's line and no answer in it")
        return Recording(self.name, tuple(sessions), facts.facts(), source.notes)


FORMAT = AiderFormat()


def _finish(chat: _AiderChat | None, sessions: list[Session]) -> None:
    session = chat.session() if chat is not None else None
    if session is not None:
        sessions.append(session)


class _AiderChat:
    """One chat: lines gathered into messages."""

    def __init__(self, source: ByteSource, started: str, *, ended: bool) -> None:
        self._source = source
        self._builder = SessionBuilder("aider", source)
        self._started = started
        self._model = ""
        self._kind = ""  # of the message that is being gathered: user, answer
        self._lines: list[str] = []
        self._first = 0
        self._sent: list[int] = []
        self._ended = ended  # do Aider's own lines end with two spaces
        self._open = False  # does the console's text continue in the next line

    def take(self, line: str, number: int) -> None:
        own = not self._ended or line.endswith(_END)
        if self._open:
            self._open = not own
        elif line.startswith("#### ") and own:
            self._gather("user", line.removeprefix("#### "), number)
        elif line.startswith(">") and (own or self._kind != "answer"):
            self._console(line[1:].strip())
            self._open = not own
        elif line.strip() or self._kind == "answer":
            self._gather("answer", line, number)
        else:
            self._end_of("user")

    def session(self) -> Session | None:
        """None for a chat in which nothing was said."""
        self._close()
        if not self._builder.events:
            self._source.notes.skip("chat without messages")
            return None
        if self._sent:
            exchanges = f"{counted(len(self._sent), 'exchange')}, the largest about {max(self._sent):,} tokens sent"
            self._builder.notes.append(f"Aider reports tokens per exchange, rounded: {exchanges}.")
        about: dict[str, Any] = {"agent": "Aider", "model": self._model, "source_id": self._started}
        about["prompt_tokens_total"] = sum(self._sent) or None
        return self._builder.session(started_at=normalise.timestamp(self._started), title=self._started, **about)

    def _gather(self, kind: str, line: str, number: int) -> None:
        if kind != self._kind:
            self._close()
            self._kind, self._first = kind, number
        self._lines.append(line.rstrip())

    def _end_of(self, kind: str) -> None:
        if self._kind == kind:
            self._close()

    def _console(self, line: str) -> None:
        self._end_of("user")
        if match := _MODEL.search(line):
            self._model = match[1]
        if EXHAUSTED in line:
            self._close()
            self._builder.refuse()
        if match := _TOKENS.search(line):
            self._close()
            try:
                tokens = int(float(match[1].replace(",", "")) * _UNIT.get(match[2] or "", 1))
            except (ValueError, OverflowError):
                tokens = 0
            self._sent.append(tokens)

    def _close(self) -> None:
        text = "\n".join(self._lines).strip()
        if text and self._kind == "user":
            command = text.startswith(("/", "!")) and not text.startswith(_SENT_COMMANDS)
            author = "command" if command else ""
            self._builder.event(Role.USER, (TextPart(text),), line=self._first, meta=command, author=author)
        elif text:
            self._builder.answer((TextPart(text),), call={"line": self._first}, line=self._first)
        self._kind, self._lines = "", []
