"""Files that Claude Code attaches again after a compaction: those it changed last, then those it read last.

Older versions do not record what they attach. The transcript says which files were read, written or edited, and what is
in them, so that the size follows before the provider has counted it. Versions that write `attachment` lines record the
files themselves. The plan that was approved or written is attached, too.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from guard_core.recordings.reading import fields
from guard_core.tokens.lexical import lexical_tokens

# Source of the rule: 33 compactions of 2.0.76 to 2.1.42 in public recordings whose fixed part is known. What the first
# prompt after one holds beyond its summary is explained best (half of them to 2.6 % of the prompt) by five files in the
# order of their times of change, which is that of edits and, of files that were only read, not in the recording: the
# order of reads stands in. In the order of use the same is 6 %, with four files 2.8 %, with six 6 %. A file of more
# than 5,000 tokens takes its place and is sent by its name alone: 1.3 tokens per lexical token (of 1.2 to 1.5), and
# they are sent as the text of a tool's result in JSON, numbered, at the session's own ratio: fitted factor 1.04.
MOST_FILES = 5
LARGEST = 3_850  # lexical tokens
SURELY_LARGER = 40_000  # characters; blanks alone, the cheapest, would be more tokens than that
LINE = 3.3  # lexical tokens of a line's number and the arrow behind it
# Notes for the agent, which every request has anyway.
_APART = ("CLAUDE.md", "CLAUDE.local.md")
_PLANS = "/.claude/plans/"


class UsedFile(msgspec.Struct, frozen=True, gc=False):
    """A file that a tool read or changed, or a plan (without a path): lexical tokens of its text, and of the same in
    a request after a compaction."""

    path: str
    tokens: int
    sent: int
    changed: bool = False

    @property
    def is_sent(self) -> bool:
        """Is its text sent, and not its name alone."""
        return self.tokens <= LARGEST


def used_file(line: dict[str, Any]) -> UsedFile | None:
    """The file or plan that a user line is about by its structured result of a tool (`toolUseResult`) or the plan that
    it begins with; None where it is about none.

    A part that was read counts as the whole file.
    """
    if plan := fields.text(line, "planContent"):
        return _plan(plan)
    result = line.get("toolUseResult")
    if not isinstance(result, dict):
        return None
    file = fields.mapping(result, "file")
    if path := fields.text(file, "filePath"):
        read = fields.tokens(file, "numLines") or 1
        lines = max(read, fields.tokens(file, "totalLines") or 0)
        return _file(path, _Size.of(fields.text(file, "content")).times(lines, read), lines)
    if plan := fields.text(result, "plan"):
        return _plan(plan)
    path = fields.text(result, "filePath")
    if not path or not {"originalFile", "content"} & result.keys():
        return None
    content = fields.text(result, "content") or fields.text(result, "originalFile")
    if _PLANS in path:
        return _plan(content)
    new, old = (_Size.of(fields.text(result, name)) for name in ("newString", "oldString"))
    return _file(path, _Size.of(content).plus(new, old), content.count("\n") + 1, changed=True)


class _Size(NamedTuple):
    """Lexical tokens of a text, and of the same as JSON."""

    tokens: int
    json: int

    @classmethod
    def of(cls, text: str) -> _Size:
        if len(text) > SURELY_LARGER:
            return cls(len(text), len(text))
        data = text.encode("utf-8", "replace")
        return cls(lexical_tokens(text, data), lexical_tokens(text, msgspec.json.encode(data.decode())[1:-1]))

    def times(self, whole: int, part: int) -> _Size:
        return _Size(self.tokens * whole // part, self.json * whole // part)

    def plus(self, new: _Size, old: _Size) -> _Size:
        return _Size(max(0, self.tokens + new.tokens - old.tokens), max(0, self.json + new.json - old.json))


def _file(path: str, size: _Size, lines: int, *, changed: bool = False) -> UsedFile:
    return UsedFile(path, size.tokens, size.json + int(lines * LINE), changed)


def _plan(text: str) -> UsedFile:
    tokens = lexical_tokens(text)
    return UsedFile("", tokens, tokens)


class UsedFiles:
    """The files that a session used, in the order in which a compaction takes them, and its plan."""

    def __init__(self) -> None:
        self._read: dict[str, UsedFile] = {}  # the last one last
        self._changed: dict[str, UsedFile] = {}
        self._plan = 0

    def use(self, file: UsedFile) -> None:
        """A tool used a file."""
        if not file.path:
            self._plan = file.sent
        elif file.path.endswith(_APART) or _PLANS in file.path:
            return
        elif file.path in self._changed and not file.changed:
            self._changed[file.path] = file
        else:
            files = self._changed if file.changed else self._read
            for known in (self._read, self._changed):
                known.pop(file.path, None)
            files[file.path] = file

    def restore(self) -> int:
        """Lexical tokens that a compaction here attaches again. The software forgets the other files."""
        last = [*self._read.items(), *self._changed.items()][-MOST_FILES:]
        attached = {path: file for path, file in last if file.is_sent}
        self._read, self._changed = (
            {path: file for path, file in known.items() if path in attached} for known in (self._read, self._changed)
        )
        return self._plan + sum(file.sent for file in attached.values())
