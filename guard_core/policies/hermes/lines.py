"""The line that replaces an old tool result in Hermes 0.19.0: what was called, and how much it gave.

Source: hermes-agent 0.19.0, `agent/context_compressor.py`, and scripted runs of it. A tool without a line of its own is
described by its first two arguments.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

Arguments = dict[str, Any]
Line = Callable[[Arguments, str], str]
LONGEST_COMMAND, LONGEST_GOAL, LONGEST_CODE, LONGEST_QUESTION, LONGEST_VALUE = 80, 60, 60, 50, 40  # characters
DEEPEST_ARGUMENTS = 128  # ours, as of a recording: levels of lists and objects in arguments that are read from text
DESCRIBED_ARGUMENTS = 2  # of a tool without a line of its own


def line(tool: str, arguments: Any, result: str) -> str:
    """The line for one result. `arguments` are those of its call, as a value or as JSON."""
    value = read_arguments(arguments)
    given: Arguments = value if isinstance(value, dict) else {}
    try:
        text = _LINES[tool](given, result) if tool in _LINES else _any(given, result)
    except (TypeError, ValueError, AttributeError, KeyError):  # arguments of an unusual kind
        text = f" ({len(result):,} chars result)"
    return f"[{tool}]{text}"


def read_arguments(arguments: Any) -> Any:
    """The arguments of a call as a value; as they are where they are no JSON, or nested deeper than a recording may be:
    how deep JSON may be that Python reads depends on its version."""
    if not isinstance(arguments, str):
        return arguments
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments
    return arguments if _is_deeper(value, DEEPEST_ARGUMENTS) else value


def _is_deeper(value: Any, levels: int) -> bool:
    """Are there more levels of lists and objects within each other."""
    level = [value]
    for _ in range(levels + 1):
        outer = [item for item in level if isinstance(item, dict | list)]
        if not outer:
            return False
        level = [inner for item in outer for inner in (item.values() if isinstance(item, dict) else item)]
    return True


def _text(arguments: Arguments, name: str) -> str:
    value = arguments.get(name, "")
    return "" if value is None else value if isinstance(value, str) else str(value)


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 3] + "..."


def _size(result: str) -> str:
    return f"({len(result):,} chars)"


def _result_size(result: str) -> str:
    return f"({len(result):,} chars result)"


def _lines(result: str) -> int:
    return result.count("\n") + 1 if result.strip() else 0


def _number(pattern: str, result: str) -> str:
    match = re.search(pattern, result)
    return match.group(1) if match else "?"


def _any(given: Arguments, result: str) -> str:
    """The line of a tool without one of its own: the first arguments of its call, and the size of its result."""
    first = list(given.items())[:DESCRIBED_ARGUMENTS]
    return "".join(f" {name}={str(value)[:LONGEST_VALUE]}" for name, value in first) + f" {_result_size(result)}"


def _terminal(given: Arguments, result: str) -> str:
    command = _cut(_text(given, "command"), LONGEST_COMMAND)
    code = _number(r'"exit_code"\s*:\s*(-?\d+)', result)
    return f" ran `{command}` -> exit {code}, {_lines(result)} lines output"


def _write_file(given: Arguments, result: str) -> str:
    lines = _text(given, "content").count("\n") + 1 if given.get("content") else "?"
    return f" wrote to {given.get('path', '?')} ({lines} lines)"


def _search_files(given: Arguments, result: str) -> str:
    count, what = _number(r'"total_count"\s*:\s*(\d+)', result), given.get("target", "content")
    return f" {what} search for '{given.get('pattern', '?')}' in {given.get('path', '.')} -> {count} matches"


def _browser(given: Arguments, result: str) -> str:
    url, ref = given.get("url", ""), given.get("ref", "")
    return (f" {url}" if url else f" ref={ref}" if ref else "") + f" {_size(result)}"


def _web_extract(given: Arguments, result: str) -> str:
    urls = given.get("urls", [])
    several = isinstance(urls, list)
    first = urls[0] if several and urls else "?"
    if isinstance(first, dict):
        first = first.get("url") or first.get("href") or "?"
    elif not isinstance(first, str):
        first = "?"
    if several and len(urls) > 1:
        first = first + f" (+{len(urls) - 1} more)"  # an address that is not text fails here, as in the original
    return f" {first} {_size(result)}"


def _execute_code(given: Arguments, result: str) -> str:
    code = _text(given, "code")
    shown = code[:LONGEST_CODE].replace("\n", " ") + ("..." if len(code) > LONGEST_CODE else "")
    return f" `{shown}` ({_lines(result)} lines output)"


# What the line says behind the tool's name; functions where it takes more than one expression.
_LINES: dict[str, Line] = {
    "terminal": _terminal,
    "read_file": lambda given, result: (
        f" read {given.get('path', '?')} from line {given.get('offset', 1)} {_size(result)}"
    ),
    "write_file": _write_file,
    "search_files": _search_files,
    "patch": lambda given, result: (
        f" {given.get('mode', 'replace')} in {given.get('path', '?')} {_result_size(result)}"
    ),
    **dict.fromkeys(
        (f"browser_{action}" for action in ("navigate", "click", "snapshot", "type", "scroll", "vision")), _browser
    ),
    "web_search": lambda given, result: f" query='{given.get('query', '?')}' {_result_size(result)}",
    "web_extract": _web_extract,
    "delegate_task": lambda given, result: f" '{_cut(_text(given, 'goal'), LONGEST_GOAL)}' {_result_size(result)}",
    "execute_code": _execute_code,
    **dict.fromkeys(
        ("skill_view", "skills_list", "skill_manage"),
        lambda given, result: f" name={given.get('name', '?')} {_size(result)}",
    ),
    "vision_analyze": lambda given, result: f" '{_text(given, 'question')[:LONGEST_QUESTION]}' {_size(result)}",
    "memory": lambda given, result: f" {given.get('action', '?')} on {given.get('target', '?')}",
    "todo": lambda given, result: " updated task list",
    "clarify": lambda given, result: " asked user a question",
    "text_to_speech": lambda given, result: f" generated audio {_size(result)}",
    "cronjob": lambda given, result: f" {given.get('action', '?')}",
    "process": lambda given, result: f" {given.get('action', '?')} session={given.get('session_id', '?')}",
}
