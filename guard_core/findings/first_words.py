"""What a user wrote, without what an agent put around it."""

from __future__ import annotations

import re

from guard_core.events import Event, part_text
from guard_core.own_words import typed_parts, unwrapped

# How Claude Code writes commands down: `/name` with arguments, which becomes a prompt, and what is done without the
# model (`/model`, `!ls`), which has none or is a shell's.
MARKUP = ("<command-", "<bash-input>")
_COMMAND, _ARGUMENTS = (re.compile(f"<command-{part}>(.*?)</command-{part}>") for part in ("name", "args"))
_QUOTES = re.compile(r'^(?:\\?")+|(?:\\?")+$')


def first_words(event: Event) -> str:
    """A user's words, folded and without quotation marks or an agent's tags around them: the first part that has text
    that was typed. Of a command of Claude Code what was typed; "" where that is no request to the model."""
    words = next(
        (words for part in typed_parts(event.parts) if (words := unquoted(" ".join(part_text(part).split())))), ""
    )
    if (wrapped := unwrapped(words)) is not None:
        return wrapped
    if not words.startswith(MARKUP):
        return words
    name, arguments = (
        " ".join(match[1].split()) if (match := kind.search(words)) else "" for kind in (_COMMAND, _ARGUMENTS)
    )
    return f"{name} {arguments}" if name and arguments else ""


def unquoted(words: str) -> str:
    """Words without the quotation marks around them, escaped or not."""
    return _QUOTES.sub("", words)
