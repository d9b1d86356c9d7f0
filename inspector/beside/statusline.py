"""One line for Claude Code's status line: the fill of the context, the threshold of its version, the calls left.

Claude Code gives its state as JSON on standard input: `context_window` with `context_window_size` and `current_usage`
(the last call, as its provider counts it) or only `used_percentage`, `version`, `model` and `transcript_path` (its
documentation, "Customize your status line"). The threshold is the rule that was measured for the version, with the
variables that Claude Code itself was started with.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from guard_core.calls_left import calls_left
from guard_core.claude_code_limits import DEFAULT_WINDOW, MAX_OUTPUT, limit_of, takes_window
from guard_core.defaults import MAX_WINDOW, MIN_WINDOW
from guard_core.shares import per_cent
from inspector.beside.transcript import recent_counts, tokens_of, whole

MOST_BYTES = 1_000_000  # of the status that is read
MOST_PERCENT = 1_000  # ours: of the window; a share above it is none
NOT_A_STATUS = "Compaction Inspector: no status from Claude Code on standard input"


def status_line(data: bytes, environ: Mapping[str, str] = os.environ) -> str:
    """The line for a status; a plain sentence where it is none. Never raises, whatever it is given."""
    try:
        status = json.loads(data[:MOST_BYTES])
    except (ValueError, RecursionError):
        return NOT_A_STATUS
    if not isinstance(status, dict):
        return NOT_A_STATUS
    context = _object(status.get("context_window"))
    stated = whole(context.get("context_window_size"))
    is_stated = MIN_WINDOW <= stated <= MAX_WINDOW
    window = stated if is_stated else DEFAULT_WINDOW
    counts = recent_counts(Path(path)) if isinstance(path := status.get("transcript_path"), str) and path else []
    used = tokens_of(context.get("current_usage")) or (counts[-1] if counts else 0)
    about = "" if used else "about "
    if not used:
        used = round(_percentage(context.get("used_percentage")) / 100 * window)
    if not used:
        return f"no call counted yet in a window of {window:,} tokens" if is_stated else "no call counted yet"
    limit, words = _threshold(_text(status, "version"), _text(_object(status.get("model")), "id"), window, environ)
    filled = f"{about}{used:,} of {window:,} tokens ({per_cent(used / window)} %)"
    parts = [filled if is_stated else f"{filled}, if that is the window", words]
    if not about:  # of a rounded share it is not known whether the next call compacts
        parts.append(_left(limit - used, counts))
    if used > window:
        parts = [f"{about}{used:,} tokens, above the {'stated' if is_stated else 'usual'} window of {window:,}"]
    return " · ".join(part for part in parts if part)


def _threshold(version: str, model: str, window: int, environ: Mapping[str, str]) -> tuple[int, str]:
    """The tokens at which a session is compacted or its requests are refused, and which of these in words."""
    if _is_on(environ.get("DISABLE_COMPACT")) or _is_on(environ.get("DISABLE_AUTO_COMPACT")):
        return window, "automatic compaction is off"
    set_window = _number(environ.get("CLAUDE_CODE_AUTO_COMPACT_WINDOW"))
    limit = limit_of(
        version,
        window,
        max_output=_number(environ.get("CLAUDE_CODE_MAX_OUTPUT_TOKENS")) or MAX_OUTPUT,
        set_window=set_window if takes_window(version) else None,
        percent=_number(environ.get("CLAUDE_AUTOCOMPACT_PCT_OVERRIDE")),
        model=model,
    )
    if limit is None:
        return window, "no threshold: compacts when the provider refuses a request"
    return limit[1], f"compacts at {limit[1]:,} = {limit[0]}"


def _left(room: int, counts: list[int]) -> str:
    """How many calls are left, with the range of the number if the calls to come grow as the last ones."""
    if room <= 0:
        return "compacts before the next call"
    left = calls_left(room, counts)
    return left.words if left else ""


def _percentage(value: Any) -> float:
    """A share of the window in per cent; 0 for what is none."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and 0 < value <= MOST_PERCENT else 0.0


def _number(text: str | None) -> int | None:
    """A positive whole number of a variable; None where it is not set to one."""
    text = (text or "").strip()
    return int(text) or None if text.isascii() and text.isdigit() and len(text) < 10 else None


def _is_on(text: str | None) -> bool:
    return (text or "").strip().lower() in ("1", "true", "yes", "on")


def _text(value: dict[str, Any], key: str) -> str:
    text = value.get(key)
    return text if isinstance(text, str) else ""


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
