"""Summaries that clients write behind their system prompt, known by that prompt in earlier requests."""

from __future__ import annotations

import re
from collections.abc import Iterable

from guard_core.events import Event, Part, Role, TextPart
from guard_core.recordings.reading.summary_words import begins_with_summary, may_begin_with_summary

System = tuple[Part, ...] | None
# Ours: behind a prompt that is known, the word alone says it.
_HEADED = re.compile(r"\W*(?:\w+ )?summary\b", re.IGNORECASE)


def summary_behind(system: System, earlier: Iterable[System]) -> tuple[System, Event] | None:
    """The prompt that an earlier request had and the summary that follows it, as a message; None where there is
    none. Such a prompt may be missing: then the summary is all there is."""
    for known in earlier:
        rest = _behind(system or (), known or ())
        if not rest:
            continue
        message = Event(Role.SYSTEM, (TextPart(rest),))
        is_summary = begins_with_summary([message]) or may_begin_with_summary([message])
        if is_summary or (known and _HEADED.match(rest)):
            return known, message
    return None


def is_text(system: System) -> bool:
    """Has a system prompt texts alone."""
    return all(isinstance(part, TextPart) for part in system or ())


def _behind(system: tuple[Part, ...], known: tuple[Part, ...]) -> str:
    """The text that a prompt has behind another one; "" where it does not begin with that."""
    texts, begun = ([part.text for part in parts if isinstance(part, TextPart)] for parts in (system, known))
    if len(texts) < len(begun):
        return ""
    if not begun:
        return "\n".join(texts).strip()
    *same, last = begun
    if texts[: len(same)] != same or not texts[len(same)].startswith(last.rstrip()):
        return ""
    return "\n".join([texts[len(same)][len(last.rstrip()) :], *texts[len(begun) :]]).strip()
