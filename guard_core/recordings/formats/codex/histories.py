"""What the history of Codex was where a rollout does not hold it: behind compactions of old versions, and behind turns
that the user took back from what a compaction had left."""

from __future__ import annotations

from guard_core.agent_versions import numbers
from guard_core.events import Event, Role, TextPart, part_text, utf8_bytes
from guard_core.recordings.formats.codex import words as codex_words
from guard_core.recordings.formats.codex.waiting import BYTES_PER_TOKEN
from guard_core.recordings.reading import summary_words
from guard_core.recordings.reading.build import SessionBuilder
from guard_core.recordings.reading.rebase import LogIndex, view_of
from guard_core.views import Inserted, Span, View

KEPT_USER_TOKENS = 20_000  # of user messages in a local compaction: COMPACT_USER_MESSAGE_MAX_TOKENS, codex-rs/core
SUMMARIES_DROPPED_FROM = (0, 60)  # 0.58.0 repeats earlier summaries in later requests, 0.60.1 does not


def old_base(log: SessionBuilder, index: LogIndex, version: str, summary: str) -> tuple[View, tuple[Event, ...]]:
    """Opening context, last user messages and summary, as versions without a replacement history built it. Before
    SUMMARIES_DROPPED_FROM the summaries of earlier compactions were messages of the user as well."""
    outlines, turns = log.outlines, index.turns()
    first = turns[0] if turns else len(outlines)
    opening: list[int | None] = [place for place in range(first) if outlines[place].meta]
    said: list[tuple[int, Event | None]] = [(place, None) for place in turns]
    if () < numbers(version) < SUMMARIES_DROPPED_FROM:
        said += [(item.at, item.messages[-1]) for item in log.compactions if item.messages and item.kind != "edit"]
    room, users, messages = KEPT_USER_TOKENS * BYTES_PER_TOKEN, list[int | None](), list[Event]()
    for place, older in sorted(said, key=lambda one: (one[0], one[1] is None), reverse=True):
        room -= sum(utf8_bytes(part_text(part)) for part in (older or log.events[place]).parts)
        if room < 0:
            break
        users.append(None if older else place)
        messages += [older] if older else []
    if summary:
        messages.insert(0, Event(role=Role.USER, parts=(TextPart(summary),), meta=True))
    return view_of([*opening, *reversed(users), *([None] if summary else [])]), tuple(reversed(messages))


def left_without(log: SessionBuilder, turns: int) -> tuple[View, tuple[Event, ...]] | None:
    """What the last compaction left, without the last `turns` turns in it and what Codex wrote before them; None where
    none begins in it. A summary is a turn, too: Codex counts the messages in the user's name (0.120.0 and 0.144.6,
    run)."""
    history: list[tuple[int | None, Event]] = []
    last = log.compactions[-1] if log.compactions else None
    for segment in last.base if last else ():
        if isinstance(segment, Inserted) and last:
            history.append((None, last.messages[segment.index]))
        elif isinstance(segment, Span):
            history += [(place, log.outlines[place]) for place in range(segment.start, segment.stop)]
    starts = [place for place, (_, message) in enumerate(history) if _is_counted(message)]
    if not starts:
        return None
    cut = starts[-min(turns, len(starts))]
    while cut > starts[0] and history[cut - 1][1].meta and cut - 1 not in starts:
        cut -= 1
    kept = history[:cut]
    return view_of([place for place, _ in kept]), tuple(message for place, message in kept if place is None)


def _is_counted(message: Event) -> bool:
    """Does Codex count a message as a turn."""
    return message.starts_turn() or codex_words.opens_with(message.parts, summary_words.CODEX)
