"""A title for a session that was given none: what its user wrote first."""

from __future__ import annotations

import re
from collections.abc import Iterable

from guard_core.events import Event, Role, TextPart
from guard_core.own_words import typed_parts, unwrapped

TITLE_CHARS = 80  # ours: code points of the user's words that are a title
LEAST_KEPT = 50  # ours: code points that a title has at least before it is cut at a word
LOOKED_AT = 10_000  # code points of a message in which its first words are looked for
# A command without arguments, such as `/model`, says nothing of the session; a path has a second slash.
_COMMAND = re.compile(r"/[\w:.-]+")
# What agents put before the user's words, as Claude Code (`<system-reminder>`) and Codex (`<environment_context>`).
_WRAPPED = re.compile(r"\s*<([a-zA-Z][\w-]{0,60})(?:\s[^>]{0,200})?>.*?</\1>", re.DOTALL)


def first_words(events: Iterable[Event]) -> str:
    """The beginning of what the user wrote first, without what the agent put before it between tags; a command that
    stands alone only where there is nothing else. Empty where the user wrote nothing."""
    users = (event for event in events if event.role is Role.USER and not event.meta)
    parts = (part for event in users for part in typed_parts(event.parts))
    texts = (part.text[:LOOKED_AT] for part in parts if isinstance(part, TextPart))
    command = ""
    for title in map(_title, texts):
        if title and not _COMMAND.fullmatch(title):
            return title
        command = command or title
    return command


def _title(text: str) -> str:
    words = unwrapped(" ".join(text.split()))
    while words is None and (wrapped := _WRAPPED.match(text)) is not None:
        text = text[wrapped.end() :]
    words = " ".join(text.split()) if words is None else words
    if len(words) <= TITLE_CHARS:
        return words
    # The word that does not end here goes; a very long one is cut, as a language without blanks is.
    beginning = words[:TITLE_CHARS]
    whole = beginning.rpartition(" ")[0]
    return f"{whole if len(whole) >= LEAST_KEPT else beginning[:-1].rstrip()}…"
