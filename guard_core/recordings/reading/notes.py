"""What a reader reports besides the sessions: what was left out, mended or folded, and where."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec


class FileProblem(msgspec.Struct, frozen=True):
    """Something in the file that was left out or mended: where, and why in words."""

    message: str
    line: int | None = None
    column: int | None = None


@dataclass
class ImportNotes:
    """What a reader reports besides the sessions; filled while reading, shown as the import report.

    `problems` lists the first PROBLEM_LIMIT damaged places (lenient mode continues after them, strict mode never gets
    here); `problem_count` counts all. `skipped` counts lines or records left out on purpose, by kind.
    `folded` counts repeats that were merged (several lines of one response, resumed copies). `mended` counts characters
    and numbers that no store takes, replaced by what every store takes (they are among the problems, too).
    """

    lines: int = 0
    problems: list[FileProblem] = field(default_factory=list)
    problem_count: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    folded: int = 0
    mended: int = 0

    def skip(self, kind: str) -> None:
        """One more line or record left out on purpose."""
        if kind not in self.skipped and len(self.skipped) >= KIND_LIMIT:
            kind = "other kinds"
        self.skipped[kind] = self.skipped.get(kind, 0) + 1

    def mend(self, count: int) -> None:
        """More characters replaced, whose places are not listed."""
        self.mended += count
        self.problem_count += count

    def problem(self, message: str, line: int | None = None, column: int | None = None) -> None:
        self.problem_count += 1
        if len(self.problems) < PROBLEM_LIMIT:
            self.problems.append(FileProblem(message, line, column))


KIND_LIMIT = 200  # a hostile file can make up a kind for every line
PROBLEM_LIMIT = 100  # the list a person reads; all are counted
