"""What the steps of a recording work on: the request that began their turn, or the one that this asks to continue."""

from __future__ import annotations

from collections.abc import Mapping

from guard_core.events import Event, MediaPart, part_text
from guard_core.facts.continuing import asks_only_to_continue
from guard_core.findings.first_words import first_words
from guard_core.ledger import Ints, Ledger


def may_be_no_request(event: Event) -> bool:
    """May a message that began a turn be no request of its own: it only asks to continue, or it has no words for the
    model."""
    words = first_words(event)
    return not words or asks_only_to_continue(words)


def continued_tasks(ledger: Ledger, begun: Mapping[int, Event]) -> dict[int, int]:
    """The messages that only ask to continue, each with the last request before it. `begun` has the messages that
    `may_be_no_request`; what an agent does without its model is none."""
    continued: dict[int, int] = {}
    task = -1
    for start in ledger.turn_starts.tolist():
        event = begun.get(start)
        words = "" if event is None else first_words(event)
        has_pictures = event is not None and any(isinstance(part, MediaPart) for part in event.parts)
        if event is not None and asks_only_to_continue(words) and not has_pictures:
            continued |= {start: task} if task >= 0 else {}
        elif event is None or words or not any(part_text(part).strip() for part in event.parts):
            task = start
    return continued


def task_column(users: Ints, continued: Mapping[int, int]) -> Ints:
    """The message that every step works on: the one that began its turn, given in `users`, or the one that this says to
    go on with."""
    tasks = users.copy()
    for message, task in continued.items():
        tasks[users == message] = task
    return tasks
