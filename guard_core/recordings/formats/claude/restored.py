"""Files that Claude Code attaches again after a compaction: those it used last, as far as they are small.

Older versions do not record what they attach. The transcript says which files were read, written or edited, and how
long they are, so that the size follows before the provider has counted it. Versions that write `attachment` lines
record the files themselves.
"""

from __future__ import annotations

from typing import Any

import msgspec

from guard_core.recordings.reading import fields

# Source: 70 compactions in 60 public recordings of Claude Code 2.0.76 to 2.1.42. What the first prompt after one holds
# beyond its summary correlates best with the sizes of the last five files (0.76; of four 0.62, of six 0.66), where one
# of more than 5,000 tokens counts as nothing: in its place only its name is sent. The divisor that makes tokens of
# characters is the one with which they correlate best (3.0 and 3.1; 2.6 and 3.4 do worse).
MOST_FILES = 5
LARGEST_CHARS = 15_500  # 5,000 tokens at 3.1 characters
LINE_CHARS = 7  # a line's number and the arrow behind it
# Notes for the agent, which every request has anyway.
_APART = ("CLAUDE.md", "CLAUDE.local.md")


class UsedFile(msgspec.Struct, frozen=True, gc=False):
    """A file that a tool read, wrote or edited, and its whole size in characters, line numbers left out."""

    path: str
    chars: int
    lines: int

    @property
    def sent_chars(self) -> int:
        """Characters of it in a request, with the number of each line; 0 where it is too large to be sent."""
        return self.chars + LINE_CHARS * self.lines if self.chars <= LARGEST_CHARS else 0


def used_file(result: Any) -> UsedFile | None:
    """The file that the structured result of a tool (`toolUseResult`) is about; None where it is about none.

    A part that was read stands for the whole file at the same number of characters per line.
    """
    if not isinstance(result, dict):
        return None
    file = fields.mapping(result, "file")
    if path := fields.text(file, "filePath"):
        content = fields.text(file, "content")
        read = fields.tokens(file, "numLines") or 1
        lines = max(read, fields.tokens(file, "totalLines") or 0)
        return UsedFile(path, len(content) * lines // read, lines)
    path = fields.text(result, "filePath")
    if not path or not {"originalFile", "content"} & result.keys():
        return None
    content = fields.text(result, "content") or fields.text(result, "originalFile")
    grown = len(fields.text(result, "newString")) - len(fields.text(result, "oldString"))
    return UsedFile(path, max(0, len(content) + grown), content.count("\n") + 1)


class UsedFiles:
    """The files that a session used, the last one last."""

    def __init__(self) -> None:
        self._files: dict[str, UsedFile] = {}

    def use(self, file: UsedFile) -> None:
        """A tool used a file."""
        if not file.path.endswith(_APART):
            self._files.pop(file.path, None)
            self._files[file.path] = file

    def restore(self) -> int:
        """Characters that a compaction here attaches again. The software forgets the other files."""
        last = [file for file in list(self._files.values())[-MOST_FILES:] if file.sent_chars]
        self._files = {file.path: file for file in last}
        return sum(file.sent_chars for file in last)
