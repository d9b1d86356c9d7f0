"""Which recorded compactions are moves of a window that slides by design: old messages are dropped or masked every few
calls, and no summary is made.

That is no loop and no thrashing, no threshold was reached, and whether the window needed it is not the question. A loop
is a compaction that is meant to be rare and frees too little; a sliding window has no room to free. Which of the two it
is follows from what was sent.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol, TypeVar

from guard_core.counts import CountedCompaction
from guard_core.defaults import LOOP_LENGTH
from guard_core.events import part_text
from guard_core.ledger import Ledger
from guard_core.sessions import Evidence, Session
from guard_core.triggers import OVERFLOW
from guard_core.views import Inserted, Rewritten, Span, View

MECHANICAL = ("trim", "edit")  # kinds of recorded compactions that replace nothing by a summary
# Ours: where the last request of a stretch has less of the messages than the first one after its compaction, each
# compaction took more than what was added, and the window was not full but emptied. So it was where something was
# written in place of more messages than stayed: that is a summary, be it ever so short.
SAME_LENGTH = 0.5
APART = 10  # ours, in steps: a window that is cut by messages or results moves at least so often
# Ours, in UTF-8 bytes: a note in place of what was dropped ("Skipped 12 messages") is shorter, and the same each time
# but for its numbers, which no summary is.
LONGEST_NOTE = 400
_NUMBER = re.compile(r"[0-9]+")


class Stepped(Protocol):
    """What was made before the call of a step."""

    @property
    def step(self) -> int: ...


Item = TypeVar("Item", bound=Stepped)


def rows_of(items: Sequence[Item], apart: int) -> list[list[Item]]:
    """Compactions grouped into rows whose neighbours are at most so many steps apart."""
    rows: list[list[Item]] = []
    for item in items:
        if rows and item.step - rows[-1][-1].step <= apart:
            rows[-1].append(item)
        else:
            rows.append([item])
    return rows


def steps_of(row: Sequence[Stepped]) -> list[int]:
    """The steps of some compactions, each once."""
    return list(dict.fromkeys(item.step for item in row))


def recorded_rows(
    session: Session, ledger: Ledger, compactions: Sequence[CountedCompaction]
) -> list[list[CountedCompaction]]:
    """The stretches in which a recorded window slides: compactions at consecutive steps, or a few steps apart, of those
    that a call followed."""
    moves = [item for item in compactions if _is_mechanical(session, ledger, item) and not _is_emptied(ledger, item)]
    rows = rows_of(moves, APART)
    return [row for row in rows if len(steps_of(row)) >= LOOP_LENGTH and _keeps_length(session, ledger, row)]


def note_of(session: Session, item: CountedCompaction) -> str:
    """What a recorded compaction inserted."""
    messages = session.compactions[item.place].messages
    return "\n".join(part_text(part) for message in messages for part in message.parts)


def messages_in(view: View) -> int:
    """How many messages of the log a view has, as they were or written anew."""
    spans = sum(part.stop - part.start for part in view if isinstance(part, Span))
    return spans + sum(isinstance(part, Rewritten) for part in view)


def _keeps_length(session: Session, ledger: Ledger, row: Sequence[CountedCompaction]) -> bool:
    """Is the window full, not emptied, and do its notes, where it leaves any, differ in numbers alone."""
    notes = {_NUMBER.sub("0", note) for item in row if (note := note_of(session, item))}
    return len(notes) <= 1 and _length(ledger, row[-1]) >= SAME_LENGTH * _length(ledger, row[0])


def _has_words(ledger: Ledger, item: CountedCompaction) -> bool:
    """May a compaction have written something in place of what it took: a message, or into one."""
    return any(not isinstance(part, Span) for part in ledger.bases[item.place].view)


def _is_emptied(ledger: Ledger, item: CountedCompaction) -> bool:
    """Did a compaction that wrote something take more messages than it left: that is a summary."""
    if not _has_words(ledger, item):
        return False
    before = ledger.recorded_view(item.step - 1)[0] if item.step else ()
    return _length(ledger, item) < SAME_LENGTH * messages_in(before)


def _is_mechanical(session: Session, ledger: Ledger, item: CountedCompaction) -> bool:
    """Did a compaction only drop or change messages of the log, without a refused request before it, and leave a note
    at most."""
    base = ledger.bases[item.place]
    inserted = sum(isinstance(part, Inserted) for part in base.view)
    if base.trigger == OVERFLOW or not (base.kind in MECHANICAL or (inserted and _is_only_seen(session, item))):
        return False
    size = len(note_of(session, item).encode("utf-8", "surrogatepass"))
    return not inserted or (inserted == 1 and 0 < size <= LONGEST_NOTE and messages_in(base.view) > 0)


def _is_only_seen(session: Session, item: CountedCompaction) -> bool:
    """Do the requests alone show a compaction, so that nothing says that what it inserted is a summary."""
    compaction = session.compactions[item.place]
    return compaction.evidence is Evidence.INFERRED and compaction.summariser is None


def _length(ledger: Ledger, item: CountedCompaction) -> int:
    """Messages of the log in the request after a compaction."""
    base = ledger.bases[item.place]
    return messages_in(base.view) + int(ledger.steps["at"][item.step]) - base.at
