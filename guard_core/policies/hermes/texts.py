"""What Hermes 0.19.0 writes where the texts of a session are known: shortened messages, and texts around a summary.

Source: hermes-agent 0.19.0, `agent/context_compressor.py`, and scripted runs of it. Of its fixed texts the sizes are
here, not the words: a text of ours has as many characters, and as many that Python writes with a backslash, so that
every estimate that follows is the original's. Secrets are not redacted here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from guard_core.events import Event, MediaPart, Part, Role, TextPart, ToolCallPart, ToolResultPart, value_text
from guard_core.policies.hermes.lines import line, read_arguments

PRUNED_OVER = 200  # characters; a longer old result becomes a line (section 1.1 of the specification of policies)
REPEATED_FROM = 200  # characters of a result that is compared with newer ones (section 1.2)
REPEATED = "[Duplicate tool output — same content as a more recent call]"  # 0.19.0
LONG_ARGUMENTS, ARGUMENT_CHARS, ARGUMENT_CUT = 500, 200, "...[truncated]"  # characters of all, of one text (0.19.0)
NO_PICTURE = "[Attached image — stripped after compression]"  # 0.19.0
NO_CALL = "(tool call removed)"  # 0.19.0
TASK_HEADING = "## Historical Task Snapshot"  # 0.19.0
# Of the last request in a summary (0.19.0): characters, or bytes where no text is read.
MOST_QUOTED, CUT = 1_400, " ...[truncated]"
MOST_OF_ONE = 4_000  # characters of one message that a lean summary quotes (specification of new policies, section 1)
FOCUS_REQUESTS, FOCUS_CHARS, FOCUS_TOTAL = 3, 260, 700  # the newest requests in the summariser's prompt (0.19.0)
FALLBACK_CHARS, FALLBACK_CUT = 8_000, "\n...[fallback summary truncated]"  # of a summary without a model (0.19.0)
FALLBACK_ROOM = 42  # characters that are left for that note (0.19.0)
TURN_CHARS, ITEM_CHARS, ITEM_HEAD, ITEM_TAIL, BLOCKER_CHARS = 700, 600, 420, 160, 500  # of its items (0.19.0)
MOST_ITEMS, MOST_FILES, MOST_BLOCKERS, MOST_DONE, MOST_NAMES = 8, 12, 5, 12, 6  # (0.19.0)
PATH_ARGUMENTS = ("path", "workdir", "file_path", "output_path")
# Messages in the user's role that the agent wrote itself begin so (0.19.0).
OF_THE_AGENT = (
    "[System: Your previous response was truncated",
    "[System: The previous response was cut off",
    "[System: Your previous tool call",
    "[Your active task list was preserved across context compression]",
    "[IMPORTANT: Background process ",
)
_TASK_SECTION = re.compile(rf"(?ms)^{re.escape(TASK_HEADING)}\s*\n.*?(?=^## |\Z)")
_PATH = re.compile(r"(?:/|~/?|[A-Za-z]:\\)[^\s`'\")\]}<>]+")
_TROUBLE = re.compile(r"\b(error|failed|exception|traceback|timeout|timed out|fatal)\b", re.IGNORECASE)


class Wording(NamedTuple):
    """A fixed text of Hermes by its size: characters, and how many of them are line breaks, apostrophes, quotation
    marks and dashes outside ASCII. `ours` says in words of ours what it is for."""

    chars: int
    breaks: int = 0
    apostrophes: int = 0
    quotes: int = 0
    dashes: int = 0
    ours: str = ""

    def __str__(self) -> str:
        """A text of that size."""
        special = "\n" * self.breaks + "'" * self.apostrophes + '"' * self.quotes + "—" * self.dashes
        words = self.ours[: self.chars - len(special)]
        return special + words + "." * (self.chars - len(special) - len(words))


# Sizes of the texts of 0.19.0.
OPENING = Wording(1_632, 0, 25, 0, 7, "[Summary of earlier messages, for reference; the newest message is the task] ")
CLOSING = Wording(84, dashes=1, ours="[End of the summary] ")
PRIOR = Wording(55, dashes=1, ours="[Earlier message] ")
PRIOR_END = Wording(49, dashes=1, ours="[End of it, a summary follows] ")
ASKED = Wording(50, ours="Last request in the removed messages: ")
ASKED_END = Wording(70, ours="Newer messages behind this summary count. ")
EMPTY = Wording(81, ours="the summariser gave no text ")  # with 16 characters for the names of provider and model
CONTINUE = Wording(117, ours="[The summary above has all there is.] ")


def stand_in(size: int) -> str:
    """A summary of which only the size is known."""
    return "." * size


def written(text: str) -> int:
    """Characters of a text as Python writes it, without the quotation marks."""
    return len(repr(text)) - 2


def arguments_text(arguments: Any) -> str:
    """The arguments of a call as JSON text."""
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


def texts_of(message: Event) -> list[str]:
    """The texts of a message beside its tool results."""
    return [part.text for part in message.parts if isinstance(part, TextPart)]


def content_of(message: Event) -> str:
    """All text of a message."""
    results = [value_text(part.content) for part in message.parts if isinstance(part, ToolResultPart)]
    return "\n".join(text for text in (*texts_of(message), *results) if text)


def tool_calls(message: Event) -> list[ToolCallPart]:
    """The tool calls that a message asks for, in its order."""
    return [part for part in message.parts if isinstance(part, ToolCallPart)]


def is_request(message: Event) -> bool:
    """Is a message one that the person wrote: the user's, with words, not one of the agent's own."""
    if message.role is not Role.USER or any(isinstance(part, ToolResultPart) for part in message.parts):
        return False
    words = content_of(message).strip()
    return bool(words) and not words.startswith(OF_THE_AGENT)


# ---- old messages, shortened


def shortened(messages: Sequence[Event | None], boundary: int) -> dict[int, Event]:
    """The messages that are shortened before a compaction, by their place: a repeated result names the newest; before
    `boundary` long results become lines, and long texts in the arguments of calls are cut. None: a summary."""
    calls = {call.id: call for message in messages if message is not None for call in tool_calls(message)}
    seen: set[str] = set()
    changed: dict[int, Event] = {}
    for place in reversed(range(len(messages))):
        message = messages[place]
        if message is None:
            continue
        parts = [_shortened(part, calls, seen, is_old=place < boundary) for part in reversed(message.parts)][::-1]
        if any(new is not old for new, old in zip(parts, message.parts, strict=True)):
            changed[place] = msgspec.structs.replace(message, parts=tuple(parts))
    return changed


def _shortened(part: Part, calls: Mapping[str, ToolCallPart], seen: set[str], *, is_old: bool) -> Part:
    if isinstance(part, ToolCallPart):
        return _short_call(part) if is_old else part
    if not isinstance(part, ToolResultPart):
        return part
    text = value_text(part.content)
    if len(text) >= REPEATED_FROM:
        if text in seen:
            return msgspec.structs.replace(part, content=REPEATED)
        seen.add(text)
    if not is_old or len(text) <= PRUNED_OVER:
        return part
    call = calls.get(part.call_id)
    tool, arguments = (call.name, call.arguments) if call else ("unknown", "")
    return msgspec.structs.replace(part, content=line(tool, arguments, text))


def _short_call(call: ToolCallPart) -> ToolCallPart:
    if len(arguments_text(call.arguments)) <= LONG_ARGUMENTS:
        return call
    arguments = read_arguments(call.arguments)
    if isinstance(call.arguments, str) and arguments is call.arguments:
        return call
    short = _short_value(arguments)
    return call if short == arguments else msgspec.structs.replace(call, arguments=short)


def _short_value(value: Any) -> Any:
    if isinstance(value, str):
        return value[:ARGUMENT_CHARS] + ARGUMENT_CUT if len(value) > ARGUMENT_CHARS else value
    if isinstance(value, dict):
        return {name: _short_value(item) for name, item in value.items()}
    return [_short_value(item) for item in value] if isinstance(value, list | tuple) else value


# ---- the list that is left


def without_lost_calls(messages: Sequence[Event | None], merged: Container[int]) -> dict[int, Event]:
    """The messages that lose calls whose results are in none of them, by their place. `merged` are the places of those
    that a summary is part of."""
    answered = {
        part.call_id
        for message in messages
        if message is not None
        for part in message.parts
        if isinstance(part, ToolResultPart)
    }
    changed = {}
    for place, message in enumerate(messages):
        lost = [call for call in tool_calls(message) if call.id and call.id not in answered] if message else []
        if message is None or not lost:
            continue
        parts: list[Part] = [part for part in message.parts if part not in lost]
        is_empty = not content_of(message).strip() and place not in merged
        bare = is_empty and not any(isinstance(part, ToolCallPart) for part in parts)
        words = [TextPart(NO_CALL)] if bare else []
        kept = [part for part in parts if not (bare and isinstance(part, TextPart))]
        changed[place] = msgspec.structs.replace(message, parts=(*words, *kept))
    return changed


def without_old_pictures(messages: Sequence[Event | None]) -> dict[int, Event]:
    """The messages before the newest one of the user with a picture that lose theirs, by their place."""
    with_pictures = [
        place
        for place, message in enumerate(messages)
        if message is not None and any(isinstance(part, MediaPart) for part in message.parts)
    ]
    of_user = [place for place in with_pictures if _is_of_user(messages[place])]
    changed = {}
    for place in with_pictures:
        message = messages[place]
        if message is not None and of_user and place < of_user[-1]:
            parts = (TextPart(NO_PICTURE) if isinstance(part, MediaPart) else part for part in message.parts)
            changed[place] = msgspec.structs.replace(message, parts=tuple(parts))
    return changed


def _is_of_user(message: Event | None) -> bool:
    """Is a message the user's own; one with a tool result is not."""
    if message is None or message.role is not Role.USER:
        return False
    return not any(isinstance(part, ToolResultPart) for part in message.parts)


# ---- texts of summaries


def grounded(summary: str, requests: Iterable[Event]) -> str:
    """A summary with the last request among the removed messages in it, as the original writes it."""
    last = next((content_of(message).strip() for message in reversed(list(requests))), "")
    if not last:
        return summary
    quoted = re.sub(r"\s+", " ", last)
    if len(quoted) > MOST_QUOTED:
        quoted = quoted[: MOST_QUOTED - len(CUT)].rstrip() + CUT
    section = f"{TASK_HEADING}\n{ASKED}{quoted!r}\n{ASKED_END}\n\n"
    if _TASK_SECTION.search(summary):
        return _TASK_SECTION.sub(lambda _: section, summary, count=1).strip()
    return f"{section}{summary}".strip()


def with_requests(summary: str, requests: Sequence[Event], most: int) -> str:
    """A summary with the person's removed messages behind it, newest first, at most so many characters of them."""
    quoted: list[str] = []
    for message in reversed(requests):
        text = content_of(message).strip()[: min(MOST_OF_ONE, most)]
        quoted += [text] if text else []
        most -= len(text)
    return "\n\n".join((summary, *quoted))


def opened(summary: str) -> str:
    """A summary behind its opening words."""
    return f"{OPENING}\n{summary.strip()}"


def standalone(summary: str) -> str:
    """An opened summary as a message of its own."""
    return f"{summary}\n\n{CLOSING}"


def around(summary: str) -> tuple[str, str]:
    """What is before and behind the text of a message that an opened summary is merged into."""
    return f"{PRIOR}\n", f"\n\n{PRIOR_END}\n\n{summary}\n\n{CLOSING}"


def focus(messages: Sequence[Event]) -> str:
    """The newest requests as the summariser's prompt has them."""
    newest = [" ".join(content_of(message).split()) for message in messages[-FOCUS_REQUESTS:]]
    cut = [text if len(text) <= FOCUS_CHARS else text[: FOCUS_CHARS - 1].rstrip() + "…" for text in newest]
    text = "Recent user focus:\n" + "\n".join(f"- {item}" for item in cut)
    return text if len(text) <= FOCUS_TOTAL else text[: FOCUS_TOTAL - 1].rstrip() + "…"


# ---- the summary that is made without a model


class Traces(NamedTuple):
    """What the fallback takes from the removed messages."""

    asks: list[str]
    actions: list[str]
    results: list[str]
    files: list[str]
    blockers: list[str]
    turns: list[str]


def fallback(removed: Sequence[Event], *, continued: bool, reason: str) -> str:
    """The opened summary that takes the place of messages where no model gave one. `continued`: there was a summary
    before, `reason`: why there is none now."""
    traces = _traces(removed)
    asked = f"User asked: {traces.asks[-1]!r}" if traces.asks else str(Wording(36))
    done = [f"{number}. {item}" for number, item in enumerate((traces.actions + traces.results)[:MOST_DONE], start=1)]
    pieces = (
        TASK_HEADING + "\n" + asked,
        Wording(217, 3, ours="## Goal: continue. "),
        Wording(145 if continued else 0, 2 if continued else 0),
        Wording(322, 8),
        "\n".join(done) or Wording(38),
        Wording(108, 5),
        Wording(31),
        Wording(83, 2, quotes=1, dashes=1),
        TASK_HEADING,
        Wording(197, 5, quotes=1),
        _bullets(traces.blockers, MOST_BLOCKERS),
        Wording(135, 8),
        Wording(31),
        Wording(93, 2, quotes=1),
        TASK_HEADING,
        Wording(81, 4, quotes=1, dashes=1),
        _bullets(traces.files, MOST_FILES),
        "\n\n",
        Wording(28),
        "\n",
        Wording(121),
        "\n\n",
        Wording(25, ours="## Last messages"),
        "\n",
        _bullets(traces.turns, MOST_ITEMS),
        "\n\n",
        Wording(19, ours="## Removed"),
        "\n",
        Wording(88),
        str(len(removed)),
        Wording(22),
        f" Summary failure reason: {reason}." if reason else "",
    )
    text = opened("".join(map(str, pieces)))
    return text if len(text) <= FALLBACK_CHARS else text[: FALLBACK_CHARS - FALLBACK_ROOM].rstrip() + FALLBACK_CUT


def _traces(removed: Sequence[Event]) -> Traces:
    traces = Traces([], [], [], [], [], [])
    calls = {call.id: call for message in removed for call in tool_calls(message)}
    for call in (call for message in removed for call in tool_calls(message)):
        for path in _paths(read_arguments(call.arguments)):
            _add(traces.files, path)
    for message in removed:
        _note(traces, message, calls)
    return traces


def _note(traces: Traces, message: Event, calls: Mapping[str, ToolCallPart]) -> None:
    """Add what one message gives."""
    results = [part for part in message.parts if isinstance(part, ToolResultPart)]
    text = re.sub(r"\s+", " ", content_of(message)).strip()
    if len(text) > TURN_CHARS:
        text = text[: TURN_CHARS - len(CUT)].rstrip() + CUT
    for path in _PATH.findall(text):
        _add(traces.files, path.rstrip(".,:;"))
    names = ", ".join([call.name or "unknown" for call in tool_calls(message)][:MOST_NAMES])
    label = "TOOL" if results else {Role.MODEL: "ASSISTANT", Role.USER: "USER"}.get(message.role, "SYSTEM")
    if turn := "; ".join(item for item in (f"tool calls: {names}" if names else "", text) if item):
        traces.turns.append(f"{label}: {turn}")
        del traces.turns[:-MOST_ITEMS]
    if len(text) > ITEM_CHARS:
        text = text[:ITEM_HEAD].rstrip() + " ... " + text[-ITEM_TAIL:].lstrip()
    if results:
        _note_results(traces, [calls.get(part.call_id) for part in results], text)
    elif message.role is Role.MODEL and (names or text):
        traces.actions.append(f"Called tool(s): {names}" if names else text)
    elif message.role is Role.USER and text:
        traces.asks.append(text)


def _note_results(traces: Traces, calls: Sequence[ToolCallPart | None], text: str) -> None:
    """Add the lines of results, which a text of them is described by."""
    traces.results.extend(
        line(call.name, call.arguments, text) if call else line("unknown", "", text) for call in calls
    )
    if _TROUBLE.search(text):
        traces.blockers.append(text[:BLOCKER_CHARS])


def _paths(value: Any) -> Iterator[str]:
    """The paths in the arguments of a call, in the order in which they are noted."""
    if isinstance(value, dict):
        for name, item in value.items():
            if name in PATH_ARGUMENTS and isinstance(item, str):
                yield item
            yield from _paths(item)
    elif isinstance(value, list):
        for item in value:
            yield from _paths(item)
    elif isinstance(value, str):
        for path in _PATH.findall(value):
            yield path.rstrip(".,:;")


def _add(files: list[str], path: str) -> None:
    path = path.strip()
    if path and path not in files and len(files) < MOST_FILES:
        files.append(path)


def _bullets(items: Sequence[str], most: int) -> str:
    unique = list(dict.fromkeys(item.strip() for item in items if item.strip()))[:most]
    return "\n".join(f"- {item}" for item in unique) or str(Wording(5))
