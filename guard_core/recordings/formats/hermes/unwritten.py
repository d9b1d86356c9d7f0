"""Compactions within a turn, of which Hermes wrote a row of `sessions` and no message.

Versions to 0.16 write messages at the end of a turn, and end a session at each compaction, so that of the sessions of a
turn only the last has messages (`conversation_compression.py` of 0.13.0 and 0.16.0; 0.17.0 writes them first). Their
rows say how many there were and how many calls each made: the last answers of a turn are those of its last session, the
answers before them those of the session before. Each later compaction keeps less, so what the last one kept was kept by
those before it, too. Where answers are lost, compactions among them are placed behind them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from guard_core.events import Event, Role, TextPart
from guard_core.recordings.formats.hermes.rows import totals
from guard_core.recordings.reading import fields, summary_words
from guard_core.recordings.reading.build import SessionBuilder
from guard_core.recordings.reading.fields import JSON
from guard_core.sessions import Evidence, RecordedCompaction
from guard_core.views import Inserted, Rewritten, Segment, Span

NOTE = "The summary is not in the file; what was kept follows from the next one that is."
UNWRITTEN = "Of {} compactions within turns no message was written: places by the calls that their sessions count."
AT_END = "Neither the summary nor what was kept is in the file."
SUMMARY = Event(Role.USER, (TextPart(summary_words.HERMES[0]),), meta=True)  # its first words


class WrittenSession(NamedTuple):
    """A session of a chain that has messages, by its number there: events from `start` up to `stop` of the log.

    `compaction` is the place of the first compaction that its messages show, -1 where they show none.
    """

    session: int
    start: int
    stop: int
    compaction: int


def at_end(log: SessionBuilder, ended: Sequence[JSON]) -> Iterator[RecordedCompaction]:
    """The compactions that ended the last sessions of a chain, behind which nothing was written."""
    item = RecordedCompaction(len(log.events), Evidence.DECLARED, "opaque", (Inserted(0),), (SUMMARY,), note=AT_END)
    return (_ended(row, item) for row in ended)


def placed(
    log: SessionBuilder, chain: Sequence[JSON], written: Sequence[WrittenSession]
) -> Iterator[RecordedCompaction]:
    """The compactions that ended the sessions of a chain, but for those behind its last message; the last one first.

    Those that the log has so far are among them.
    """
    calls = _calls(chain[written[-1].session])  # of the session, as far as it has written them
    for number in reversed(range(len(written))):
        own, before = written[number], written[number - 1].session if number else -1
        answers = [call.at for call in log.calls if own.start <= call.at < own.stop]
        after = calls
        for session in range(own.session - 1, max(before, 0) - 1, -1):
            known = log.compactions[own.compaction]
            item = _moved(known, _place(known, answers, after, own.start))
            if session < own.session - 1:
                item = replace(item, kind="opaque", messages=(SUMMARY,) * len(item.messages), note=NOTE)
            yield _ended(chain[session], item)
            after += _calls(chain[session]) if session > before else 0
        calls = max(1, _calls(chain[before]) - max(0, len(answers) - after))


def _calls(row: JSON) -> int:
    """Calls of a session; of one that does not say it, one."""
    calls = fields.tokens(row, "api_call_count")
    return 1 if calls is None else calls


def _place(known: RecordedCompaction, answers: Sequence[int], after: int, start: int) -> int:
    """Where a compaction was made with `after` answers behind it, not before what is kept behind the summary."""
    behind = known.base[max((n for n, part in enumerate(known.base) if isinstance(part, Inserted)), default=-1) + 1 :]
    first = min((_start(part, known.at) for part in behind), default=known.at)
    place = answers[-after] if 0 < after <= len(answers) else start
    return max(first, start, place)


def _start(segment: Segment, end: int) -> int:
    if isinstance(segment, Span):
        return segment.start
    return segment.event if isinstance(segment, Rewritten) else end


def _moved(known: RecordedCompaction, at: int) -> RecordedCompaction:
    """A compaction at another place, where what it keeps ends."""
    base: list[Segment] = []
    for segment in known.base:
        if isinstance(segment, Span):
            segment = Span(segment.start, min(segment.stop, at), segment.form)
        if isinstance(segment, Inserted) or _start(segment, at) < at:
            base.append(segment)
    last = base[-1] if base else None
    if isinstance(last, Span) and last.stop == known.at and at > known.at:
        base[-1] = Span(last.start, at)
    elif at > known.at:
        base.append(Span(known.at, at))
    return replace(known, at=at, base=tuple(base))


def _ended(row: JSON, item: RecordedCompaction) -> RecordedCompaction:
    """A compaction that ended a session: what its one call was sent is the count that was compared."""
    counts = totals(row)
    before = counts["prompt_tokens_total"] if counts.get("total_calls") == 1 else None
    return replace(item, tokens_before=before, timestamp=fields.timestamp(row, "ended_at") or item.timestamp)
