"""What a user typed of a message: without what an editor or an agent put around it in the same message."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from guard_core.events import Part, TextPart

# Blocks in tags that are put before or behind a user's words: by Claude Code's extensions what is open, selected and
# wrong in the editor (`<ide_opened_file>` …), by Claude Code its reminders, by Cline and Roo Code the editor's state.
_TAG = r"(ide_\w{1,40}|system-reminder|environment_details)"
_BEFORE = re.compile(rf"\s*<{_TAG}>.*?</\1>", re.DOTALL)
_CLOSING = re.compile(rf"</{_TAG}>\s*")
# What Codex's extension writes before a user's words, under headings (open tabs, the selection, attached files), ends
# with this one: USER_MESSAGE_BEGIN in https://github.com/openai/codex, codex-rs/protocol/src/protocol.rs.
_HEADING, _REQUEST_HEADING = "# ", "\n## My request for Codex:"


def typed_parts(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """The parts of a user's message as typed; all of them where nothing of their text was."""
    typed = tuple(_typed(parts))
    return typed if any(isinstance(part, TextPart) and part.text.strip() for part in typed) else parts


def _typed(parts: Iterable[Part]) -> Iterable[Part]:
    for part in parts:
        if not isinstance(part, TextPart) or (text := typed_text(part.text)) == part.text:
            yield part
        elif text.strip():
            yield msgspec.structs.replace(part, text=text)


def typed_text(text: str) -> str:
    """A text without the blocks before and behind what was typed; empty where it has nothing else."""
    if text.lstrip().startswith(_HEADING) and _REQUEST_HEADING in text:
        return text.partition(_REQUEST_HEADING)[2].strip()
    start, stop = 0, len(text)
    while (block := _BEFORE.match(text, start)) is not None:
        start = block.end()
    while (begun := _last_block(text, start, stop)) >= 0:
        stop = begun
    return text if (start, stop) == (0, len(text)) else text[start:stop].strip()


def _last_block(text: str, start: int, stop: int) -> int:
    """Where the block begins that ends a part of a text, -1: it ends with none."""
    closing = _CLOSING.fullmatch(text, max(start, text.rfind("<", start, stop)), stop)
    return text.rfind(f"<{closing[1]}>", start, closing.start()) if closing else -1
