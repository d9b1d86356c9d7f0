"""Log lines that hostile text cannot break: one event, one line, control characters escaped, at most 2 kB."""

from __future__ import annotations

import logging

MAX_LINE_CHARS = 2_000
HEAD_CHARS = 300  # of a longer line its beginning and its end stay: the end of a traceback names the error


class OneLineFormatter(logging.Formatter):
    """One line for each record: line breaks and control characters are escaped."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        line = super().format(record)
        if not line.isprintable():
            line = "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in line)
        return (
            line if len(line) <= MAX_LINE_CHARS else line[:HEAD_CHARS] + " … " + line[HEAD_CHARS + 3 - MAX_LINE_CHARS :]
        )
