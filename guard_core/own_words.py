"""What a user typed of a message: without what an editor or an agent put around it in the same message; and of what was
typed the user's own words: without the documents in it."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

import msgspec

from guard_core.events import Part, TextPart

# Blocks in tags that are put before or behind a user's words: by Claude Code's extensions what is open, selected and
# wrong in the editor (`<ide_opened_file>` …), by Claude Code its reminders, by Cline and Roo Code the editor's state.
_TAG = r"(ide_\w{1,40}|system-reminder|environment_details)"
_BEFORE = re.compile(rf"\s*<{_TAG}>.*?</\1>", re.DOTALL)
_CLOSING = re.compile(rf"</{_TAG}>\s*")
# What one agent of a team of Claude Code (2.1) writes to another is all between two tags; an attribute, such as its
# summary, may hold a ">". What several wrote meanwhile comes in one message.
_FROM_AGENT = re.compile(
    r'\s*<teammate-message(?P<about>(?: [\w-]{1,40}="[^"]*")*)>(?P<words>.*?)</teammate-message>\s*', re.DOTALL
)
_FROM_LEAD = ' teammate_id="team-lead"'
# Tags that Cline and Roo Code put around what was typed (formatResponse, src/core/prompts/responses.ts).
_WRAPPED = re.compile(r"<(task|user_message|feedback)>\s*(.*?)\s*(?:</\1>|$)")
_ASSIGNS = '{"type":"task_assignment"'
# What Codex's extension writes before a user's words, under headings (open tabs, the selection, attached files), ends
# with this one: USER_MESSAGE_BEGIN in https://github.com/openai/codex, codex-rs/protocol/src/protocol.rs.
_HEADING, _REQUEST_HEADING = "# ", "\n## My request for Codex:"

# What pi makes of its command `/skill:name`: the skill's file, and behind it the words that followed the command
# (parseSkillBlock in https://github.com/badlogic/pi-mono, packages/coding-agent/src/core/agent-session.ts).
_SKILL = re.compile(r'<skill name="(?P<name>[^"]+)" location="[^"]+">\n.*?\n</skill>(?:\n\n(?P<words>.+))?', re.DOTALL)

# Between these lines, or text parts, Gemini CLI and Qwen Code put the files that a message names with @, behind its
# words (packages/core/src/utils/constants.ts in https://github.com/google-gemini/gemini-cli).
_FILES, _FILES_END = "--- Content from referenced files ---", "--- End of content ---"
_NAMED_FILES = re.compile(rf"^{_FILES}$.*?(?:^{_FILES_END}$|\Z)", re.DOTALL | re.MULTILINE)

# A document in a message is marked as one: tags on lines of their own around it, as providers advise for prompts
# (https://docs.claude.com/en/docs/build-with-claude/prompt-engineering/use-xml-tags) and Cline writes files that are
# named in a message, three quotation marks, or the marks of a block quote (CommonMark 0.31.2, 5.1).
_OPENING = re.compile(r"[ \t]*<([A-Za-z][\w.:-]{0,60})(?:\s[^<>]{0,300})?>\s*")
_ENDING = re.compile(r"</([A-Za-z][\w.:-]{0,60})>\s*$")
_BLOCK_QUOTE = re.compile(r" {0,3}>")
# The calls below an error, as V8 (https://v8.dev/docs/stack-trace-api) and the JVM print them.
_FRAME = re.compile(r"\s+at \S")
_LEAST_FRAMES = 2
_QUOTES = '"""'
# Tags with one of these words in their name have what is asked for, and no document. Ours.
_ASKING = frozenset(
    """
    answer ask command constraint convention critical directive feedback format goal guardrail guideline important
    instruction memory message note objective policy preference principle prompt query question reminder request
    requirement restriction role rule standard step style system task todo user
    """.split()  # noqa: SIM905
)


def typed_parts(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """The parts of a user's message as typed; all of them where nothing of their text was."""
    typed = tuple(_typed(parts))
    return typed if any(isinstance(part, TextPart) and part.text.strip() for part in typed) else parts


def _typed(parts: Iterable[Part]) -> Iterable[Part]:
    """The parts without what the agent put around their texts; a text of which nothing was typed is left out."""
    is_file = False
    for part in parts:
        line = part.text.strip() if isinstance(part, TextPart) else ""
        if is_file or line == _FILES:
            is_file = line != _FILES_END
        elif not isinstance(part, TextPart) or (text := typed_text(part.text)) == part.text:
            yield part
        elif text.strip():
            yield msgspec.structs.replace(part, text=text)


def typed_text(text: str) -> str:
    """A text without the blocks and files before and behind what was typed, and without the documents before it where
    other words follow; of a skill alone the command that it came from; empty where it has only blocks."""
    if _FILES in text:
        text = _NAMED_FILES.sub("", text).strip()
    if (skill := _SKILL.fullmatch(text.strip())) is not None:
        return skill["words"] or f"/skill:{skill['name']}"
    if text.lstrip().startswith(_HEADING) and _REQUEST_HEADING in text:
        return text.partition(_REQUEST_HEADING)[2].strip()
    start, stop = 0, len(text)
    while (block := _BEFORE.match(text, start)) is not None:
        start = block.end()
    while (begun := _last_block(text, start, stop)) >= 0:
        stop = begun
    typed = text if (start, stop) == (0, len(text)) else text[start:stop].strip()
    return _behind_documents(_from_team(typed) or typed)


def _from_team(text: str) -> str:
    """What the lead of a team wrote to an agent, what others did where no lead wrote; "" where a text is not that."""
    blocks, start = [], 0
    while (block := _FROM_AGENT.match(text, start)) is not None:
        blocks.append(block)
        start = block.end()
    if start < len(text) and (blocks := blocks[:1]):
        if (block := _FROM_AGENT.fullmatch(text)) is None:  # a message that has such a tag in it ends with the last one
            return ""
        blocks = [block]
    of_lead = [block for block in blocks if _FROM_LEAD in block["about"]]
    return "\n\n".join(filter(None, (_assigned_task(block["words"].strip()) for block in of_lead or blocks)))


def _assigned_task(words: str) -> str:
    """The task in what an agent of a team wrote, its subject before its description; all of it where it is no JSON."""
    if not words.startswith(_ASSIGNS):
        return words
    try:
        assigned = msgspec.json.decode(words, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return words
    task = [value for key in ("subject", "description") if isinstance(value := assigned.get(key), str) and value]
    return "\n".join(task) or words


def unwrapped(words: str) -> str | None:
    """What was typed of words on one line that begin with a tag which an agent put around it; None where none does."""
    wrapped = _WRAPPED.match(words)
    return None if wrapped is None else wrapped[2]


def own_parts(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """The parts of a user's message as typed, without the documents in their texts."""
    return tuple(
        msgspec.structs.replace(part, text=without_documents(part.text)) if isinstance(part, TextPart) else part
        for part in typed_parts(parts)
    )


def without_documents(text: str) -> str:
    """A text without the lines of the documents and the traces of errors in it; all of it if nothing else is left."""
    lines = _without_traces(text.split("\n"))
    documents = list(_documents(lines))
    quoted = {place for document in documents for place in document}
    own = "\n".join(line for place, line in enumerate(lines) if place not in quoted)
    return own if own.strip() else text


def _without_traces(lines: list[str]) -> list[str]:
    """Some lines without the calls that an error lists, and without the error's message above them. Of the line with
    the message its beginning remains, up to a colon: "It fails with this: TypeError: x is undefined"."""
    own: list[str] = []
    for is_frame, run in groupby(lines, key=lambda line: _FRAME.match(line) is not None):
        if not is_frame:
            own += run
            continue
        frames = list(run)
        if len(frames) < _LEAST_FRAMES:
            own += frames
        elif own:
            own[-1] = "".join(own[-1].partition(":")[:2]) if ":" in own[-1] else ""
    return own


def _behind_documents(text: str) -> str:
    """A text from its first line on that is of no document; all of it where there is none."""
    lines = text.split("\n")
    start = 0
    for document in _documents(lines):
        if any(map(str.strip, lines[start : document.start])):
            break
        start = document.stop
    rest = "\n".join(lines[start:]) if start else text
    return rest.lstrip() if start and rest.strip() else text


def _documents(lines: list[str]) -> Iterator[range]:
    """The lines of each document in a text, in their order, with its marks where they have lines of their own."""
    endings: dict[str, list[int]] = {}
    for place, line in enumerate(lines):
        ending = _ENDING.search(line)
        for name in (ending[1] if ending else "", _quotes_in(line)):
            endings.setdefault(name, []).append(place)
    place = 0
    while place < len(lines):
        line, opening = lines[place], _OPENING.fullmatch(lines[place])
        name = _quotes_in(line) if opening is None else "" if _asks(opening[1]) else opening[1]
        last = _next(endings.get(name, ()), place) if name else -1
        if _BLOCK_QUOTE.match(line):
            yield range(place, place + 1)
        elif last >= 0:
            # Words before or behind the marks of a quotation are the user's own.
            first_is_own, last_is_own = (name == _QUOTES and lines[one].strip() != _QUOTES for one in (place, last))
            yield range(place + first_is_own, last + 1 - last_is_own)
        place = max(last, place) + 1


def _next(places: Sequence[int], place: int) -> int:
    """The first of some places in order behind this one, -1: none."""
    later = bisect_right(places, place)
    return places[later] if later < len(places) else -1


def _quotes_in(line: str) -> str:
    """The marks that begin or end a quotation on a line; "" where there are none, or both."""
    return _QUOTES if line.count(_QUOTES) % 2 else ""


def _asks(name: str) -> bool:
    """Does the name of a tag say that what is asked for is in it."""
    return any(word.removesuffix("s") in _ASKING for word in re.split(r"[\W_]", name.casefold()))


def _last_block(text: str, start: int, stop: int) -> int:
    """Where the block begins that ends a part of a text, -1: it ends with none."""
    closing = _CLOSING.fullmatch(text, max(start, text.rfind("<", start, stop)), stop)
    return text.rfind(f"<{closing[1]}>", start, closing.start()) if closing else -1
