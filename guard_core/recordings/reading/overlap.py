"""What messages have in common with an earlier conversation: names, passages, quotations, an answer as a summary."""

from __future__ import annotations

import re
from collections.abc import Sequence

from guard_core.events import Event, Part, ReasoningPart, Role, TextPart, ToolCallPart, part_text
from guard_core.quoting import unescaped, width
from guard_core.recordings.reading.requests import Request

QUOTED_CHARS, QUOTED_MESSAGES = 30, 2  # what a summariser's request repeats of the messages that it summarises
SETUP_SHARE = 0.5  # of a system prompt that stays where a client writes the time or the folder into it
LEAST_PASSAGES = 3  # ours: pieces of QUOTED_CHARS letters that a first request repeats of an earlier conversation
REPEATED_FROM = 12_000  # letters of a first request that are looked for there
LEAST_NAMES = 3  # paths and identifiers that a conversation's first request has from an earlier one
_NAME = re.compile(r"[\w./-]{6,}")  # with a sign within it
SHORTEST_SUMMARY = 40  # characters (`width`) of an answer that must reappear in a message for it to be its summary


def names_in(events: Sequence[Event], request: Request) -> bool:
    """Does a request name several files or identifiers of earlier messages that its system prompt does not."""
    names = {name for event in request.messages for name in named(event.parts)} - named(request.system or ())
    known = "\n".join(text_of(event.parts) for event in events) if len(names) >= LEAST_NAMES else ""
    return sum(name in known for name in names) >= LEAST_NAMES


def passages_in(events: Sequence[Event], system: tuple[Part, ...] | None, request: Request) -> bool:
    """Does a request repeat passages of several messages of an earlier conversation. What that began with, its system
    prompt included, other conversations of the same task may begin with, too."""
    words = "".join(map(words_of, request.messages))[:REPEATED_FROM]
    pieces = {words[at : at + QUOTED_CHARS] for at in range(0, len(words) - QUOTED_CHARS + 1, QUOTED_CHARS)}
    start = next((at for at, event in enumerate(events) if event.role is Role.MODEL), len(events))
    opening = "".join(map(words_of, events[:start])) + letters_of(text_of(system or ()))
    pieces = {piece for piece in pieces if piece not in opening}
    later = map(words_of, events[start:]) if pieces else ()
    repeated = [shared for text in later if (shared := {piece for piece in pieces if piece in text})]
    return len(repeated) >= QUOTED_MESSAGES and len(set().union(*repeated)) >= LEAST_PASSAGES


def quotes(events: Sequence[Event], others: Sequence[Event]) -> bool:
    """Do messages repeat the last ones of another conversation, in whatever wrapping: as strings of JSON, too."""
    texts = [text_of(event.parts) for event in events]
    texts += [unescaped(text) for text in texts if "\\" in text]
    words = " ".join(map(letters_of, texts))
    pieces = [words_of(event)[:QUOTED_CHARS] for event in others[-4 * QUOTED_MESSAGES :]]
    known = {piece for piece in pieces if len(piece) == QUOTED_CHARS and piece in words}
    return len(known) >= QUOTED_MESSAGES


def is_summary_in(answer: Event, messages: tuple[Event, ...]) -> bool:
    """Does one of the messages contain the answer's text, so that the answer was the summary?"""
    summary = " ".join(part.text.strip() for part in answer.parts if isinstance(part, TextPart)).strip()
    if width(summary) < SHORTEST_SUMMARY or any(isinstance(part, ToolCallPart) for part in answer.parts):
        return False
    users = (event for event in messages if event.role is not Role.MODEL)
    return any(summary in part.text for event in users for part in event.parts if isinstance(part, TextPart))


def is_same_prompt(one: tuple[Part, ...] | None, other: tuple[Part, ...] | None) -> bool:
    """Are two system prompts the same but for what follows in them from some place on (the time, a folder)."""
    texts = ["".join(part.text for part in parts or () if isinstance(part, TextPart)) for parts in (one, other)]
    differs = (place for place, (left, right) in enumerate(zip(*texts, strict=False)) if left != right)
    return next(differs, min(map(len, texts))) >= SETUP_SHARE * max(map(len, texts))


def text_of(parts: tuple[Part, ...]) -> str:
    """The texts of a message, with the arguments and results of calls."""
    return "\n".join(part_text(part) for part in parts if not isinstance(part, ReasoningPart))


def named(parts: tuple[Part, ...]) -> set[str]:
    """The paths and identifiers of a message: what has a dot, slash, dash or underscore within it."""
    names = (name.rstrip("./-") for name in _NAME.findall(text_of(parts)))  # without the stop of a sentence
    return {name for name in names if re.search(r"\w[./_-]\w", name)}


def words_of(event: Event) -> str:
    """The letters and digits of a message, which no wrapping of them changes."""
    return letters_of(text_of(event.parts))


def letters_of(text: str) -> str:
    """The letters and digits of a text."""
    return "".join(filter(str.isalnum, text))
