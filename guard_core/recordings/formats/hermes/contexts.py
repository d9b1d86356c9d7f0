"""Hermes' message rows as a session: the context that a compaction wrote anew is distinguished from new rows.

A compaction in place marks the rows of the context as compacted and writes the new context behind them at one go: the
head, the summary, the tail. Written again are rows of the log, often with shortened content. They keep their time where
the running program knew it; else all have the time of the summary, a microsecond apart. A compaction that ends the
session begins a child session with the new context. An export holds the last context and what came after it. A call
that has no result gets the words that Hermes sends in its place.
Definition: `archive_and_compact` of `hermes_state.py`, `context_compressor.py` of
https://github.com/NousResearch/hermes-agent.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from guard_core.events import Event, Part, Role, TextPart, ToolCallPart, ToolResultPart
from guard_core.recordings.formats.hermes.rows import (
    WINDOW_KEYS,
    about,
    flag,
    is_summary,
    only_call,
    row_event,
    totals,
    usage_note,
)
from guard_core.recordings.formats.hermes.unwritten import UNWRITTEN, WrittenSession, at_end, placed
from guard_core.recordings.reading import fields, wrong_kinds
from guard_core.recordings.reading.build import FactCounter, SessionBuilder
from guard_core.recordings.reading.fields import JSON
from guard_core.recordings.reading.source import ByteSource
from guard_core.sessions import Evidence, RecordedCompaction, Session
from guard_core.views import Inserted, Rewritten, Segment, Span

# Rows of one context that have no time of their own are a microsecond apart; a model's answer takes longer than this.
AT_ONCE = 0.01  # seconds
# Rows of a context that are written one by one follow each other faster, and answers of a model do not (0.17, run: 30
# milliseconds at most between the former).
ANSWER_TAKES = 0.1  # seconds, at least
REMOVED = TextPart("(tool call removed)")  # of an answer without words: `_sanitize_tool_pairs`, 0.18.2 and 0.19.0
# Sent as the result of a call that has none: `sanitize_api_messages`, 0.13.0 (run_agent.py) to 0.19.0.
UNAVAILABLE = "[Result unavailable — see context summary above]"
LOST = "The history before the compaction is not in the file."


class RowMark(NamedTuple):
    """What shows of a row, without its text, whether it repeats another."""

    key: int  # role and call ids, or role and text
    time: float | None
    is_summary: bool
    compacted: bool
    has_ids: bool  # of calls, so that no other row has its key

    def is_with(self, other: RowMark) -> bool:
        """Were both written at one go?"""
        return self.time is not None and other.time is not None and abs(self.time - other.time) < AT_ONCE

    def is_before(self, other: RowMark) -> bool:
        return self.time is not None and other.time is not None and self.time < other.time

    def is_answered_by(self, other: RowMark) -> bool:
        """Was the other written so much later that a model may have answered in between?"""
        return self.time is not None and other.time is not None and other.time - self.time > ANSWER_TAKES


def _mark(row: JSON, event: Event) -> RowMark:
    called = [part.id for part in event.parts if isinstance(part, ToolCallPart)]
    answered = [part.call_id for part in event.parts if isinstance(part, ToolResultPart)]
    summary = is_summary(event)  # perhaps merged into a row with calls, which was written before without it
    by_calls = any([*called, *answered]) and not summary
    words: object = (*called, *answered) if by_calls else fields.plain_text(row.get("content")).strip()
    key = hash((fields.text(row, "role"), words))
    return RowMark(key, event.timestamp, summary, flag(row, "compacted"), by_calls)


class HermesReader:
    """Takes the rows of one session (or of a chain of sessions) in the order in which they were written.

    Every row counts in the facts, those too that a compaction wrote again or the user took back; of the compactions
    those that the recording declares.
    """

    def __init__(self, source: ByteSource, facts: FactCounter) -> None:
        self.builder = SessionBuilder("hermes", source)
        self._source = source
        self._facts = facts
        facts.session()
        self._places: dict[int, list[int]] = {}  # key: places in the log
        self._seen: set[tuple[int, float | None]] = set()  # keys and times of rows of sessions before this one
        self._youngest: RowMark | None = None  # of these rows
        self._written: list[WrittenSession] = []
        self._unanswered: set[str] = set()  # ids of calls that messages follow, and no result
        self._answers: dict[float, tuple[int, tuple[Part, ...]]] = {}  # time: key and parts of an answer with calls

    def rows(
        self, rows: Iterable[JSON], *, declared: bool, child: bool = False, by_turn: bool = False, number: int = 0
    ) -> None:
        """Rows of one session, the one with this `number` in its chain.

        `declared`: has the recording a sign of its own for compactions (rows, a parent)? Else the rows are those of the
        last context alone. `child`: does the session continue another after a compaction? `by_turn`: were messages
        written at the end of each turn, so that a child may have some of a turn that no session before it has?
        """
        rows_read: list[JSON] = []
        marks: list[RowMark] = []
        called: dict[str, int] = {}  # id of a call: how many rows came up to it
        answered: set[str] = set()
        last = 0  # how many rows came up to the last that is no result
        for row in rows:
            event = row_event(row)
            if event is None:
                self._source.notes.skip(f"row of role {fields.text(row, 'role')[:40] or 'none'}")
                continue
            self._facts.message()
            self._facts.parts(event.parts)
            if row.get("active") is not None and not flag(row, "active") and not flag(row, "compacted"):
                self._source.notes.skip("row that was taken back")
            else:
                rows_read.append(row)
                marks.append(self._stripped(_mark(row, event), event))
                results = {part.call_id for part in event.parts if isinstance(part, ToolResultPart)}
                called |= {part.id: len(marks) for part in event.parts if isinstance(part, ToolCallPart)}
                answered |= results
                last = last if results else len(marks)
        self._unanswered = {name for name, number in called.items() if number < last} - answered
        done, start, compactions = 0, len(self.builder.events), len(self.builder.compactions)
        contexts = _RewrittenRanges(
            marks,
            self._places,
            self._seen,
            self._youngest,
            whole_head=child or not declared,
            repeats_only=child and not by_turn,
        )
        for context in contexts.ranges(child):
            self._log(rows_read[done : context.start], marks[done : context.start])
            self._compaction(rows_read[context.start : context.stop], marks[context.start : context.stop], declared)
            done = context.stop
        self._log(rows_read[done:], marks[done:])
        self._seen.update((mark.key, mark.time) for mark in marks)
        for mark in marks:
            if self._youngest is None or self._youngest.is_before(mark):
                self._youngest = mark
        if marks:
            shown = compactions if len(self.builder.compactions) > compactions else -1
            self._written.append(WrittenSession(number, start, len(self.builder.events), shown))

    def unwritten(self, chain: Sequence[JSON], *, by_turn: bool) -> None:
        """Take the compactions of sessions of the chain that have no messages.

        `by_turn`: were messages written at the end of each turn, so that the place of no compaction shows in them?
        """
        known = list(self.builder.compactions)
        if by_turn and self._written:
            known = list(placed(self.builder, chain, self._written))[::-1]
        known += at_end(self.builder, chain[self._written[-1].session : -1] if self._written else chain[:-1])
        more = len(known) - len(self.builder.compactions)
        self.builder.compactions.clear()
        for item in known:
            self.builder.compaction(item)
        for _ in range(more):
            self._facts.compaction()
        if more > 0:
            self.builder.notes.append(UNWRITTEN.format(more))

    def session(self, row: JSON, notes: Iterable[str] = (), version: str = "") -> Session:
        """The session when all rows are taken; `row` is the session's own, `version` the agent's where it is known."""
        self.builder.notes.append(usage_note(row))
        counts = totals(row)
        config = fields.decoded(row.get("model_config"))
        for key in WINDOW_KEYS if isinstance(config, dict) else ():
            wrong_kinds.check_window(self._source, config, key)
        if counts.get("total_calls", 0) < len(self.builder.calls):  # a branch, or calls from before they were counted
            counts = {}
        elif len(self.builder.calls) == 1 and (only := only_call(row)):
            self.builder.calls[0] = replace(self.builder.calls[0], **only)
            self._facts.call(counts["prompt_tokens_total"])
            counts = {}
        versions = ((0, version),) if version else ()
        return self.builder.session(**about(row), **counts, versions=versions, notes=tuple(notes))

    def _stripped(self, mark: RowMark, event: Event) -> RowMark:
        """An answer that a compaction wrote without the calls that have no result, under the key that it had before."""
        if mark.time is None or mark.is_summary or event.role is not Role.MODEL:
            return mark
        key, parts = self._answers.get(mark.time, (mark.key, event.parts))
        left = [part for part in event.parts if part != REMOVED]
        if len(left) < len(parts) and all(part in parts for part in left):
            return mark._replace(key=key)
        if any(isinstance(part, ToolCallPart) for part in event.parts):
            self._answers[mark.time] = mark.key, event.parts
        return mark

    def _log(self, rows: Sequence[JSON], marks: Sequence[RowMark]) -> None:
        for row, mark in zip(rows, marks, strict=True):
            self._append(row, mark)

    def _append(self, row: JSON, mark: RowMark) -> int:
        """Append a new row to the log; its place."""
        event = row_event(row, self._source)
        assert event is not None  # others were left out
        if event.role is Role.MODEL:
            call = {"timestamp": event.timestamp, "source_id": event.source_id}
            index = self.builder.answer(event.parts, call=call, source_id=event.source_id, timestamp=event.timestamp)
            for part in event.parts:
                if isinstance(part, ToolCallPart) and part.id in self._unanswered:
                    self.builder.event(Role.USER, (ToolResultPart(part.name, UNAVAILABLE, part.id),))
        else:
            index = self.builder.event(event.role, event.parts, source_id=event.source_id, timestamp=event.timestamp)
        self._places.setdefault(mark.key, []).append(index)
        return index

    def _compaction(self, rows: Sequence[JSON], marks: Sequence[RowMark], declared: bool) -> None:
        """A context that was written anew: rows of the log again, summaries, perhaps a message not written before."""
        before = len(self.builder.events)
        places = self._originals(marks)
        self._source.notes.folded += len(places)
        summaries: list[Event] = []
        segments: list[Segment] = []
        for number, (row, mark) in enumerate(zip(rows, marks, strict=True)):
            event = row_event(row)
            assert event is not None
            if mark.is_summary:
                segments.append(Inserted(len(summaries)))
                summaries.append(event)
            else:
                place = places[number] if number in places else self._append(row, mark)
                self._add(segments, place, event)
        if declared:
            self._facts.compaction()
        self.builder.compaction(
            RecordedCompaction(
                at=len(self.builder.events),
                evidence=Evidence.DECLARED if declared else Evidence.MATCHED,
                kind="trim" if not summaries else "summary" if marks[-1].is_summary else "summary+tail",
                base=tuple(segments),
                messages=tuple(summaries),
                timestamp=summaries[0].timestamp if summaries else None,
                note="" if before else LOST,
            )
        )

    def _originals(self, marks: Sequence[RowMark]) -> dict[int, int]:
        """Number in the context: place in the log, of the rows that are there. The head is the oldest, the tail the
        youngest of what they may repeat; a message may have been moved back in the tail, as the user's last one is."""
        cut = next((number for number, mark in enumerate(marks) if mark.is_summary), len(marks))
        originals: dict[int, int] = {}
        last = -1
        for number in range(cut):
            places = self._places.get(marks[number].key, [])
            if (at := bisect_right(places, last)) < len(places):
                originals[number] = last = places[at]
        bound, taken = len(self.builder.events), set(originals.values())
        for number in range(len(marks) - 1, cut, -1):
            places = [] if marks[number].is_summary else self._places.get(marks[number].key, [])
            if not places:
                continue
            if at := bisect_left(places, bound):
                place = places[at - 1]
            else:  # a message behind it was moved back
                place = next((one for one in reversed(places) if one not in taken), -1)
            if place > last and place not in taken:
                originals[number] = bound = place
                taken.add(place)
        return originals

    def _add(self, segments: list[Segment], place: int, event: Event) -> None:
        last = segments[-1] if segments else None
        if event.parts != self.builder.events[place].parts:
            segments.append(Rewritten(place, event, "shortened by the compaction"))
        elif isinstance(last, Span) and last.stop == place:
            segments[-1] = Span(last.start, place + 1)
        else:
            segments.append(Span(place, place + 1))


class _RewrittenRanges:
    """Finds the ranges of rows that a compaction wrote anew."""

    def __init__(
        self,
        marks: Sequence[RowMark],
        places: dict[int, list[int]],
        seen: set[tuple[int, float | None]],
        youngest: RowMark | None,
        *,
        whole_head: bool,
        repeats_only: bool,
    ) -> None:
        self._marks = marks
        self._places = places
        self._youngest = youngest  # of the rows of sessions before
        self._whole_head = whole_head  # does the first context begin with the first row?
        self._repeats_only = repeats_only  # is every row behind a summary one of before?
        self._first: dict[int, int] = {}
        self._timed: dict[tuple[int, float | None], int] = dict.fromkeys(seen, -1)
        for number, mark in enumerate(marks):
            self._first.setdefault(mark.key, number)
            self._timed.setdefault((mark.key, mark.time), number)

    def ranges(self, child: bool) -> Iterator[range]:
        """The contexts in their order. A summary shows each; without one a child's, or compacted rows, do."""
        done = 0
        marks = self._marks
        for number, mark in enumerate(marks):
            is_new = mark.is_summary and self._timed[mark.key, mark.time] == number  # else an older one, kept
            if is_new and number >= done:
                start = 0 if self._whole_head and not done else number
                while start > done and self._is_carried(start - 1, mark):
                    start -= 1
                done = self._stop(number, start, child)
                yield range(start, done)
        active = next((number for number, mark in enumerate(marks) if not mark.compacted), len(marks))
        if child and not done and marks:
            yield range(self._repeats(0))
        elif 0 < active < len(marks) and done <= active and self._repeats(active) > active:
            yield range(active, self._repeats(active))

    def _stop(self, summary: int, start: int, child: bool) -> int:
        """Where the tail behind a summary ends. A row that comes twice begins the next context; words that were said
        before are new ones where they come later than the rows that were written with the summary."""
        stop = summary + 1
        written = latest = self._written(summary, start)
        inside = {(mark.key, mark.time) for mark in self._marks[start:stop]}
        for mark in self._marks[stop:]:
            is_older = self._whole_head and mark.is_before(written)
            is_with = mark.is_with(written) and not self._repeats_only
            is_late = latest is not written and not mark.has_ids and latest.is_answered_by(mark)
            is_kept = is_with or is_older or self._is_carried(stop, written)
            is_repeat = child and self._is_repeat(stop) and not is_late
            if (mark.key, mark.time) in inside or not (is_kept or is_repeat):
                break
            if latest.is_before(mark) and not latest.is_answered_by(mark):
                latest = mark
            inside.add((mark.key, mark.time))
            stop += 1
        return stop

    def _written(self, summary: int, start: int) -> RowMark:
        """A row with the time at which a context was written: its summary, unless that was merged into an older row."""
        before = self._marks[start - 1] if start else self._youngest
        if before is None or not self._marks[summary].is_before(before):
            return self._marks[summary]
        behind = (mark for mark in self._marks[summary + 1 :] if before.is_before(mark))
        return next(behind, self._marks[summary])

    def _repeats(self, start: int) -> int:
        """Where the run of repeats that begins at `start` ends."""
        return next((n for n in range(start, len(self._marks)) if not self._is_repeat(n)), len(self._marks))

    def _is_repeat(self, number: int) -> bool:
        key = self._marks[number].key
        return key in self._places or self._first[key] < number

    def _is_carried(self, number: int, summary: RowMark) -> bool:
        """Does a row repeat another, with its time or written at one go with the summary?"""
        mark = self._marks[number]
        has_its_time = self._timed[mark.key, mark.time] < number
        return has_its_time or (self._is_repeat(number) and mark.is_with(summary))
