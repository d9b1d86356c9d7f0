"""Grows a session from the chosen lines of a Claude Code transcript: events, calls and compactions."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise
from typing import Any

import msgspec

from guard_core.events import Event, Part, Role, ToolResultPart, part_text
from guard_core.plural import counted
from guard_core.recordings.formats.claude.lines import (
    NAME,
    SYNTHETIC,
    Boundary,
    ClaudeLines,
    ClaudeMessage,
    fuller,
    is_empty_summary,
    is_summary,
)
from guard_core.recordings.formats.claude.requests import ClaudeRequests, SentMessage
from guard_core.recordings.formats.claude.restored import UsedFiles
from guard_core.recordings.formats.claude.sent import SentLog
from guard_core.recordings.formats.claude.tree import LineGroups, Node
from guard_core.recordings.reading import fields
from guard_core.recordings.reading.build import SessionBuilder
from guard_core.recordings.reading.cached_tokens import INSIDE
from guard_core.recordings.reading.numbers_by_name import NumbersByName
from guard_core.recordings.reading.packed_list import PackedList
from guard_core.recordings.reading.rebase import view_of
from guard_core.recordings.reading.shelf import outline
from guard_core.recordings.reading.source import ByteSource
from guard_core.sessions import Evidence, ModelCall, RecordedCompaction, Session
from guard_core.views import Rewritten, Segment, Span, View

# What Claude Code puts in place of a tool result that a micro-compaction cleared.
CLEARED = "[Old tool result content cleared]"
BLOCKED = "requests that Claude Code did not send, because they were too long by its own count: {}"
# A request that is this much smaller than the one before was compacted, whatever the file says: the smallest saving
# for which Claude Code clears old results, and a share below what it clears.
FALL_TOKENS, FALL_SHARE = 20_000, 0.5


@dataclass(slots=True)
class Compacting:
    """A compaction whose lines are still coming: its boundary, its summary, and what was attached around that."""

    boundary: Boundary | None
    summary: ClaudeMessage | None = None
    before: list[ClaudeMessage] = field(default_factory=list)  # attachments between the boundary and the summary
    behind: list[ClaudeMessage] = field(default_factory=list)  # attachments right behind the summary
    typed: list[ClaudeMessage] = field(default_factory=list)  # words and commands of the user among them: events
    in_segment: bool = False  # are lines coming that were kept
    kept_behind: bool = False  # did any come

    def keeps(self, uuid: str) -> bool:
        """Is a line behind the boundary one that it kept."""
        if self.boundary is None or not uuid:
            return False
        head, tail = self.boundary.segment
        self.in_segment = self.in_segment or uuid == head
        kept = self.in_segment or uuid in self.boundary.preserved
        self.in_segment = self.in_segment and uuid != tail
        return kept

    def attach(self, message: ClaudeMessage) -> None:
        """What Claude Code puts before the model again belongs to the compaction: without it, it was not sent."""
        around = self.behind if self.summary else self.before
        (around if message.meta and message.attached else self.typed).append(message)


class Log:
    """Grows a session line by line; a compaction is finished when another message than its own has come."""

    def __init__(
        self, lines: ClaudeLines, source: ByteSource, *, first: bool = False, requests: ClaudeRequests | None = None
    ) -> None:
        self.builder = SessionBuilder(NAME, source, first=first)
        self.lines = lines
        self.notes = source.notes
        self.shelf = source.shelf
        if self.shelf is not None:
            self.builder.calls = PackedList(ModelCall)
        self.index = NumbersByName()  # event of each uuid
        self.results = NumbersByName()  # event of each tool result
        self.pending: Compacting | None = None
        self.inserted: dict[
            str, ClaudeMessage
        ] = {}  # by uuid, those of the last compaction: the next one may keep them
        self.answered = NumbersByName()  # the last line of each API message that was taken up
        self.files = UsedFiles()
        self.late = False  # did a line come whose message had been taken up without it?
        self.folded = self.unsent = self.blocked = 0
        self.inside = 0  # calls whose `input_tokens` hold the cached ones
        self.sent = SentLog(self, requests) if requests is not None else None

    def take(self, path: Sequence[Node], following: Sequence[Node] = ()) -> None:
        """Take up the next lines of the path. `ahead`: those that come after them, as far as they are known; the lines
        of one API message are taken up together."""
        groups = LineGroups(len(path) + len(following))
        for node in chain(path, following):
            message = self.lines.messages.get(node.line)
            if message is not None and message.role is Role.MODEL and message.key not in self.answered:
                groups.add(message.key, node.line)
        for node in path:
            forked = self.pending if self.pending is not None and self.pending.keeps(node.uuid) else None
            if node.line in self.lines.boundaries:
                self.boundary(self.lines.boundaries[node.line])
            elif (message := self.lines.messages.get(node.line)) is None:
                continue
            elif forked is not None and not message.attached:
                self._carried_over(forked, message, groups)
            elif message.role is not Role.MODEL:
                self.user(message)
            elif message.key not in self.answered:
                group = groups.of(message.key)
                self.answered[message.key] = max(group)
                self.answer([each for line in group if (each := self.lines.messages.get(line)) is not None])
            else:
                self.late = self.late or node.line > self.answered[message.key]

    def _carried_over(self, pending: Compacting, message: ClaudeMessage, groups: LineGroups) -> None:
        """A message that a compaction kept, and that comes behind it because the file begins there: a forked session.
        The session that was forked has it in its log, and its calls; here it is what the compaction left."""
        if message.role is Role.MODEL:
            if message.key in self.answered:
                return
            group = groups.of(message.key)
            self.answered[message.key] = max(group)
            lines = [each for line in group if (each := self.lines.messages.get(line)) is not None]
            if len(lines) > 1:
                parts, place = self._joined(lines)
                message = msgspec.structs.replace(message, parts=parts, place=place)
        pending.behind.append(message)
        pending.kept_behind = True

    def user(self, message: ClaudeMessage) -> None:
        open_boundary = self.pending is not None and self.pending.summary is None
        if is_summary(message) or (message.worded and open_boundary):
            if self.pending is None or self.pending.summary is not None:  # of a version that writes no boundary
                self.close()
                self._settle(message.node.line)
                self.pending = Compacting(None)
            self.pending.summary = message
            return
        if self.pending is not None and (message.attached or (self.pending.summary and message.of_command)):
            self.pending.attach(message)
            return
        self.close()
        if message.file is not None:
            self.files.use(message.file)
        self.heard(message)

    def heard(self, message: ClaudeMessage) -> None:
        """A message that the next request holds: an event, once that request says how it was sent."""
        if self.sent is None or not self.sent.waits(message):
            self.event(message, message.parts, message.place)

    def answer(self, group: list[ClaudeMessage]) -> None:
        """The lines of one API message: one event, one call."""
        self.close()
        first, last = group[0], group[-1]
        if first.model == SYNTHETIC and first.unsent:
            self.unsent += 1
            if first.too_long and self.sent is not None and self.sent.was_not_sent(first.node.line):
                self.blocked += 1
            elif first.too_long:
                self.builder.refuse(" ".join(map(part_text, first.parts)))
            return
        if self.sent is not None:
            self.sent.ask(first.request)
        parts, place = (first.parts, first.place) if len(group) == 1 else self._joined(group)
        self.folded += len(group) - 1
        usage: ModelCall | None = None
        is_inside = False
        for message in group:
            call = self.lines.usage_of(message)
            usage = fuller(usage, call) if call is not None else usage
            is_inside = is_inside or call is not message.usage
        at = len(self.builder.events)
        response = self.event(first, parts, place)
        if self.sent is not None:
            self.sent.answered(response)
        if first.model == SYNTHETIC:  # words that Claude Code put into the model's mouth: sent, but no call
            return
        self.inside += is_inside
        call = usage or ModelCall(at=0, model=last.model, line=first.node.line, source_id=first.message_id)
        call = msgspec.structs.replace(call, at=at, response=response, line=first.node.line)
        self.builder.calls.append(call if call.prompt_tokens else msgspec.structs.replace(call, prompt_tokens=None))
        for message in group:
            self.index[message.node.uuid] = response

    def session(self, **values: Any) -> Session:
        """The session (fields of `Session`)."""
        self.notes.folded += self.folded
        for _ in range(self.unsent):
            self.notes.skip("error shown by Claude Code (not sent to the model)")
        if self.blocked:
            self.builder.notes.append(BLOCKED.format(self.blocked))
        if self.inside:
            self.builder.notes.append(INSIDE.format(counted(self.inside, "call")))
        self.builder.notes.extend(self._falls())
        return self.builder.session(**values)

    def _falls(self) -> list[str]:
        """A note where requests shrank though no compaction is recorded there: `-p` wrote none before 1.0.128."""
        compacted = [compaction.at for compaction in self.builder.compactions]
        calls = ((call, call.prompt_tokens) for call in self.builder.calls if call.prompt_tokens)
        falls = [
            (before, tokens, call.line)
            for (last, before), (call, tokens) in pairwise(calls)
            if before - tokens >= FALL_TOKENS
            and tokens < before * FALL_SHARE
            and bisect_right(compacted, last.at) == bisect_right(compacted, call.at)
        ]
        if not falls:
            return []
        before, tokens, line = falls[0]
        return [
            f"requests that shrank with no compaction in the file: {len(falls)}, "
            f"the first from {before} to {tokens} tokens at line {line}"
        ]

    def parts_of(self, message: ClaudeMessage | SentMessage) -> tuple[Part, ...]:
        """The parts of a message with their texts."""
        return message.parts if self.shelf is None or message.place is None else self.shelf.get(message.place)

    def _joined(self, group: list[ClaudeMessage]) -> tuple[tuple[Part, ...], int | None]:
        """The parts of several lines of one message, and their place where the texts are on a shelf."""
        if self.shelf is None:
            return _joined(map(self.parts_of, group)), None
        name = " ".join(str(message.node.line) for message in group)
        place = self.lines.joined.get(name)
        if place is not None:
            return tuple(map(outline, self.shelf.get(place))), place
        parts = _joined(map(self.parts_of, group))
        place = self.lines.joined[name] = self.shelf.put(parts)
        return tuple(map(outline, parts)), place

    def boundary(self, boundary: Boundary) -> None:
        self.close()
        line, trigger = boundary.node.line, fields.text(boundary.details, "trigger")
        # The request before an automatic compaction has an answer, unless the provider refused it (2.1.330 and 2.1.332,
        # run with and without a threshold).
        is_refused = self.sent is not None and trigger == "auto" and self.sent.has_unanswered(line)
        self._settle(line)
        if is_refused:
            self.builder.refuse()
        if boundary.cleared:
            self._micro_compaction(boundary)
        else:
            self.pending = Compacting(boundary)

    def finish(self) -> None:
        """No line will follow."""
        self.close()
        self._settle(None)

    def _settle(self, line: int | None) -> None:
        """What waits for its request becomes events: a line that ends the conversation so far was read."""
        if self.sent is not None:
            self.sent.settle(line)

    def close(self) -> None:
        """The lines of a compaction have ended, with or without a summary."""
        pending, self.pending = self.pending, None
        if pending is not None:
            self._compaction(pending)

    def event(self, message: ClaudeMessage, parts: tuple[Part, ...], place: int | None) -> int:
        index = self.builder.event(
            message.role,
            parts,
            place=place,
            line=message.node.line,
            source_id=message.message_id or message.node.uuid,
            timestamp=message.timestamp,
            meta=message.meta,
        )
        self.index[message.node.uuid] = index
        for part in parts:
            if isinstance(part, ToolResultPart):
                self.results[part.call_id] = index
        return index

    def _compaction(self, pending: Compacting) -> None:
        boundary, summary = pending.boundary, pending.summary
        details = boundary.details if boundary else {}
        preserved = set(boundary.preserved) if boundary else set()
        inserted = (message for uuid, message in self.inserted.items() if uuid in preserved)  # and so carried over
        carried: list[ClaudeMessage | int] = [*inserted, *self._preserved(boundary)]
        summaries: list[ClaudeMessage | int] = [summary] if summary else []
        middle = [*carried, *summaries] if boundary and boundary.summary_last else [*summaries, *carried]
        sent = [*pending.before, *middle, *pending.behind]
        messages = [item for item in sent if isinstance(item, ClaudeMessage)]
        restored = self.files.restore()
        recorded = any(message.attached for message in (*pending.before, *pending.behind))
        place = boundary.node if boundary else summary.node if summary else None
        stated = boundary is not None or (summary is not None and summary.summary)
        kind = "opaque" if summary is None else "summary+tail" if carried or pending.kept_behind else "summary"
        if summary is not None and is_empty_summary(self.parts_of(summary)):
            kind = "empty"
        note = "" if self.builder.events else "the history before this compaction is not in the file"
        self.builder.compaction(
            RecordedCompaction(
                at=len(self.builder.events),
                evidence=Evidence.DECLARED if stated else Evidence.MATCHED,
                kind=kind,
                base=view_of([item if isinstance(item, int) else None for item in sent]),
                messages=tuple(_inserted_event(message, self.parts_of(message)) for message in messages),
                trigger=fields.text(details, "trigger"),
                tokens_before=fields.tokens(details, "preTokens"),
                tokens_after=fields.tokens(details, "postTokens"),
                line=place.line if place else None,
                timestamp=boundary.timestamp if boundary else summary.timestamp if summary else None,
                note="the summary is not in the file" if summary is None else note,
                restored_tokens=None if recorded else restored,
            )
        )
        self.inserted = {message.node.uuid: message for message in messages}
        for message in pending.typed:
            self.heard(message)

    def _preserved(self, boundary: Boundary | None) -> list[int]:
        """The events that a compaction kept, in order."""
        if boundary is None:
            return []
        places = {place for uuid in boundary.preserved if (place := self.index.get(uuid)) is not None}
        head, tail = (self.index.get(uuid) for uuid in boundary.segment)
        if head is not None:  # its last line may be one that is not sent, such as a hook's output
            last = len(self.builder.events) - 1
            places.update(range(head, (last if tail is None else tail) + 1))
        return sorted(places)

    def _micro_compaction(self, boundary: Boundary) -> None:
        """Old tool results cleared in place: the view so far with those results rewritten.

        It follows a rule of its own (how much it would save, or the age of the cache) and is not a compaction at the
        threshold, so the tokens before it are a note alone: an edit that has them would count as a compaction.
        """
        cleared = {item for item in fields.items(boundary.details, "compactedToolIds") if isinstance(item, str)}
        last = self.builder.compactions[-1] if self.builder.compactions else None
        size = len(self.builder.events)
        before: View = (*last.base, Span(last.at, size)) if last else (Span(0, size),)
        tokens, saved = fields.tokens(boundary.details, "preTokens"), fields.tokens(boundary.details, "tokensSaved")
        began = f" at {tokens:,} tokens" if tokens else ""
        self.builder.compaction(
            RecordedCompaction(
                at=size,
                evidence=Evidence.DECLARED,
                kind="edit",
                base=self._without_results(before, cleared),
                messages=last.messages if last else (),
                trigger=fields.text(boundary.details, "trigger"),
                tokens_after=None if tokens is None or saved is None else max(tokens - saved, 0),
                line=boundary.node.line,
                timestamp=boundary.timestamp,
                note=f"{len(cleared)} tool results cleared{began}",
            )
        )

    def _without_results(self, view: View, cleared: set[str]) -> View:
        """The view with the content of some tool results replaced by the placeholder."""
        places = sorted({place for call_id in cleared if (place := self.results.get(call_id)) is not None})
        segments: list[Segment] = []
        for segment in view:
            if not isinstance(segment, Span):
                segments.append(segment)
                continue
            start = segment.start
            for index in places[bisect_left(places, start) : bisect_left(places, segment.stop)]:
                segments.append(Span(start, index))
                segments.append(Rewritten(index, _cleared(self.builder.events[index], cleared), "cleared"))
                start = index + 1
            segments.append(Span(start, segment.stop))
        return tuple(item for item in segments if not isinstance(item, Span) or item.start < item.stop)


def _joined(group: Iterable[tuple[Part, ...]]) -> tuple[Part, ...]:
    """The parts of several lines of one message; a copied line adds nothing."""
    parts = {msgspec.msgpack.encode(part): part for each in group for part in each}
    return tuple(parts.values())


def _cleared(event: Event, cleared: set[str]) -> Event:
    parts = tuple(
        msgspec.structs.replace(part, content=CLEARED)
        if isinstance(part, ToolResultPart) and part.call_id in cleared
        else part
        for part in event.parts
    )
    return msgspec.structs.replace(event, parts=parts)


def _inserted_event(message: ClaudeMessage, parts: tuple[Part, ...]) -> Event:
    return Event(
        role=message.role,
        parts=parts,
        source_id=message.node.uuid,
        line=message.node.line,
        timestamp=message.timestamp,
        meta=True,
    )
