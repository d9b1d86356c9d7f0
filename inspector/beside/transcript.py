"""The newest counts of a Claude Code transcript, read from its end."""

from __future__ import annotations

import errno
import json
import os
import stat
from pathlib import Path
from typing import Any, BinaryIO

from guard_core.calls_left import ENOUGH

FIRST_BYTES, MOST_BYTES = 128_000, 2_000_000  # read from the end: first, and where that holds too few calls


def recent_counts(path: Path, most: int = ENOUGH + 1) -> list[int]:
    """Prompt and output tokens of the newest model calls, oldest first, at most `most`: those after the last
    compaction, without sub-agents. Empty where the file cannot be read or holds none."""
    size = FIRST_BYTES
    while True:
        try:
            lines, is_whole = _last_lines(path, size)
        except (OSError, ValueError):  # a path may hold characters that no file name has
            return []
        counts, is_all = _counts(lines)
        if is_all or is_whole or len(counts) >= most or size >= MOST_BYTES:
            return counts[-most:]
        size = min(size * 4, MOST_BYTES)


def opened(path: Path) -> BinaryIO:
    """A transcript, to be read. Raises OSError for what is no regular file: a pipe or a terminal gives its bytes when
    someone writes them, and an agent waits meanwhile."""
    # Without O_NONBLOCK, which Windows lacks, opening a named pipe waits for its writer.
    number = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0))
    if stat.S_ISREG(os.fstat(number).st_mode):
        return os.fdopen(number, "rb")
    os.close(number)
    raise OSError(errno.EINVAL, "Not a regular file", str(path))


def tokens_of(usage: object) -> int:
    """Prompt and output tokens of a usage as Anthropic writes it; 0 where it has none."""
    if not isinstance(usage, dict):
        return 0
    names = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")
    return sum(whole(usage.get(name)) for name in names)


def whole(value: Any) -> int:
    """A count of tokens; 0 for what is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 10**9 else 0


def _last_lines(path: Path, size: int) -> tuple[list[bytes], bool]:
    """The whole lines in the last `size` bytes, and whether these are all of the file."""
    with opened(path) as file:
        begin = max(0, file.seek(0, 2) - size)
        file.seek(begin)
        lines = file.read(size).split(b"\n")
    return (lines[1:] if begin else lines), begin == 0


def _counts(lines: list[bytes]) -> tuple[list[int], bool]:
    """The counts of the calls in these lines since the last compaction, and whether there was one."""
    calls: dict[str, int] = {}
    for line in reversed(lines):
        if b'"compact_boundary"' in line and _parsed(line).get("subtype") == "compact_boundary":
            return list(reversed(calls.values())), True
        if b'"usage"' not in line:
            continue
        record = _parsed(line)
        message = record.get("message")
        if record.get("type") != "assistant" or record.get("isSidechain") or not isinstance(message, dict):
            continue
        # An answer is written in several lines; the last one has its whole output.
        if tokens := tokens_of(message.get("usage")):
            calls.setdefault(str(message.get("id") or record.get("uuid")), tokens)
    return list(reversed(calls.values())), False


def _parsed(line: bytes) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
