"""What a recorded compaction left: the view right after it, and what the messages that it inserted cost."""

from __future__ import annotations

from zlib import crc32

import msgspec

from guard_core.costs import EVENT_COLUMNS, event_columns
from guard_core.sessions import RecordedCompaction
from guard_core.triggers import RESUME
from guard_core.views import Span, View

EDIT = "edit"  # the kind of a compaction that only cleared or repeated old content
SEALED = "opaque"  # the kind of a compaction whose result is encrypted, or not in the file
EMPTY = "empty"  # the kind of one whose summary has no text, whatever is written around it


class CompactionBase(msgspec.Struct, frozen=True):
    """The view right after a recorded compaction, and the cost columns of the messages it inserted. `digests` are
    checksums of their parts, by which a repeated message is known."""

    at: int
    view: View
    costs: dict[str, tuple[int, ...]]
    kind: str = ""  # as RecordedCompaction has it, like the trigger
    trigger: str = ""
    tokens_before: int = -1  # the recorder's own figures, -1: none
    tokens_after: int = -1
    restored_tokens: int = -1  # lexical tokens of files attached again that are not in the recording, -1: not known
    digests: tuple[int, ...] = ()
    pending_tokens: int = -1  # as of a call, when it began

    @property
    def is_edit(self) -> bool:
        """Was old content only cleared or repeated (a pruned result, a resumed history): no compaction of its own.

        A recorder that gives the tokens before it meant it as a compaction.
        """
        return self.kind == EDIT and self.tokens_before <= 0

    @property
    def is_sealed(self) -> bool:
        """Is its summary encrypted, or not in the file: the costs of its messages lack it. A message that has readable
        words as well is an answer that was kept, with its signed reasoning."""
        sealed, readable = self.costs.get("opaque_bytes", ()), self.costs["bytes"]
        return self.kind == SEALED or any(map(lambda own, words: own and not words, sealed, readable))

    @property
    def is_empty(self) -> bool:
        """Has its summary no text: the recorder says so, or none of its messages has any."""
        sizes = self.costs["bytes"]
        return self.kind == EMPTY or (self.kind.startswith("summary") and bool(sizes) and not sum(sizes))

    @property
    def removes_nothing(self) -> bool:
        """Does the file not hold what it took away: its view still has the whole log before it."""
        covered = 0
        for start, stop in sorted((part.start, part.stop) for part in self.view if isinstance(part, Span)):
            if start > covered:
                break
            covered = max(covered, stop)
        return covered >= self.at

    @property
    def is_resume(self) -> bool:
        """Did a resumed session load its history again: nothing was compacted, though messages may be repeated."""
        return self.is_edit and self.trigger == RESUME


def base_of(compaction: RecordedCompaction) -> CompactionBase:
    """A recorded compaction with the costs of the messages it inserted."""
    rows = [event_columns(message) for message in compaction.messages]
    costs = {name: tuple(row[name] for row in rows) for name in EVENT_COLUMNS}
    own = (compaction.tokens_before, compaction.tokens_after, compaction.restored_tokens, compaction.pending_tokens)
    before, after, restored, pending = (-1 if number is None else number for number in own)
    digests = tuple(crc32(repr((item.role, item.parts)).encode()) for item in compaction.messages)
    kind, trigger = compaction.kind, compaction.trigger
    numbers = (before, after, restored, digests, pending)
    return CompactionBase(compaction.at, compaction.base, costs, kind, trigger, *numbers)
