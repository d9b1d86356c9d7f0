"""Log lines that hostile text cannot break: one event, one line, control characters escaped, at most 2 kB.

The address of a share or an invitation is masked: whoever has it can read the report, or join.
"""

from __future__ import annotations

import json
import logging
import re
from datetime import UTC, datetime

MAX_LINE_CHARS = 2_000
_TOKEN = re.compile(r"/(r|join)/[\w-]{16,}")
HEAD_CHARS = 300  # of a longer line its beginning and its end stay: the end of a traceback names the error


class OneLineFormatter(logging.Formatter):
    """One line for each record: line breaks and control characters are escaped."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        line = _masked(super().format(record))
        if not line.isprintable():
            line = "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in line)
        return _cut(line)


class WithoutTraceback(logging.Filter):
    """Warnings without a traceback: for what is caused outside of this program, which is not an error of it."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.exc_info = record.exc_text = None
        record.levelno, record.levelname = logging.WARNING, logging.getLevelName(logging.WARNING)
        return True


class JsonFormatter(logging.Formatter):
    """One JSON object for each record: time (UTC), level, logger, message, and the error where there is one."""

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        values = {"time": moment, "level": record.levelname, "logger": record.name}
        values["message"] = _cut(_masked(record.getMessage()))
        if isinstance(status := getattr(record, "status_code", None), int):
            values["status"] = str(status)
        if record.exc_info:
            values["error"] = _cut(_masked(self.formatException(record.exc_info)))
        return json.dumps(values)  # escapes control characters, and everything that is not ASCII


def _masked(text: str) -> str:
    return _TOKEN.sub(r"/\1/…", text)


def _cut(text: str) -> str:
    """The beginning and the end of a text that is longer than MAX_LINE_CHARS."""
    if len(text) <= MAX_LINE_CHARS:
        return text
    return text[:HEAD_CHARS] + " … " + text[HEAD_CHARS + 3 - MAX_LINE_CHARS :]
