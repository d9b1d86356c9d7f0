"""A window that slides by design: old messages are dropped or masked every few calls, and no summary is made.

That is no loop and no thrashing, and whether the window needed it is not the question. A loop is a compaction that is
meant to be rare and frees too little; a sliding window has no room to free. Which of the two it is follows from what
was sent, and for a replay from what its policy publishes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from guard_core.defaults import LOOP_LENGTH
from guard_core.events import part_text
from guard_core.findings.claims import INFO, LISTED, Finding
from guard_core.findings.facts import Case, Fired
from guard_core.findings.words import at_step
from guard_core.sessions import Evidence
from guard_core.trace import CompactionRecord
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


def sliding_rows(case: Case) -> list[list[Fired]]:
    """The stretches in which a window slides: compactions at consecutive steps, or a few steps apart."""
    if case.is_recorded:
        rows = rows_of([item for item in case.fired if _is_mechanical(case, item)], APART)
        return [row for row in rows if len(_steps(row)) >= LOOP_LENGTH and _keeps_length(case, row)]
    if case.may_summarise:
        return []
    anew = all(item.record is not None and is_made_anew(item.record) for item in case.fired)
    rows = [row for row in rows_of(case.fired, APART) if anew or not any(_is_in_vain(case, item.step) for item in row)]
    return [row for row in rows if len(_steps(row)) >= LOOP_LENGTH and _keeps_length(case, row)]


def _steps(row: list[Fired]) -> list[int]:
    return list(dict.fromkeys(item.step for item in row))


def rows_of(fired: Sequence[Fired], apart: int) -> list[list[Fired]]:
    """Compactions grouped into rows whose neighbours are at most so many steps apart."""
    rows: list[list[Fired]] = []
    for item in fired:
        if rows and item.step - rows[-1][-1].step <= apart:
            rows[-1].append(item)
        else:
            rows.append([item])
    return rows


def others(case: Case) -> tuple[Fired, ...]:
    """The compactions that are not steps of a sliding window."""
    sliding = {item.index for row in sliding_rows(case) for item in row}
    return tuple(item for item in case.fired if item.index not in sliding)


def is_made_anew(record: CompactionRecord) -> bool:
    """Do later requests begin with the whole log again, so that each is cut on its own."""
    return not record.carried and not record.kept_from


def _keeps_length(case: Case, row: list[Fired]) -> bool:
    """Is the window full, not emptied, and do its notes, where it leaves any, differ in numbers alone."""
    notes = {_NUMBER.sub("0", note) for item in row if (note := _note(case, item))}
    if len(notes) > 1 or any(_has_words(case, item) and _is_emptied(case, item) for item in row):
        return False
    return _length(case, row[-1]) >= SAME_LENGTH * _length(case, row[0])


def _has_words(case: Case, item: Fired) -> bool:
    """May a recorded compaction have written something in place of what it took: a message, or into one."""
    if item.counted is None:
        return False
    return any(not isinstance(part, Span) for part in case.facts.ledger.bases[item.counted.place].view)


def _is_emptied(case: Case, item: Fired) -> bool:
    """Did a recorded compaction take more messages than it left."""
    before = case.facts.ledger.recorded_view(item.step - 1)[0] if item.step else ()
    return _length(case, item) < SAME_LENGTH * _messages(before)


def _is_mechanical(case: Case, item: Fired) -> bool:
    """Did a recorded compaction only drop or change messages of the log, without a refused request before it, and leave
    a note at most."""
    assert item.counted is not None
    base = case.facts.ledger.bases[item.counted.place]
    inserted = sum(isinstance(part, Inserted) for part in base.view)
    if base.trigger == OVERFLOW or not (base.kind in MECHANICAL or (inserted and _is_only_seen(case, item))):
        return False
    size = len(_note(case, item).encode("utf-8", "surrogatepass"))
    return not inserted or (inserted == 1 and 0 < size <= LONGEST_NOTE and _messages(base.view) > 0)


def _is_only_seen(case: Case, item: Fired) -> bool:
    """Do the requests alone show a compaction, so that nothing says that what it inserted is a summary."""
    assert item.counted is not None
    compaction = case.facts.session.compactions[item.counted.place]
    return compaction.evidence is Evidence.INFERRED and compaction.summariser is None


def _note(case: Case, item: Fired) -> str:
    """What a recorded compaction inserted."""
    if item.counted is None:
        return ""
    messages = case.facts.session.compactions[item.counted.place].messages
    return "\n".join(part_text(part) for message in messages for part in message.parts)


def _is_in_vain(case: Case, step: int) -> bool:
    """Did a replay's compaction leave a request at or over the threshold in tokens."""
    threshold = int(case.column("threshold")[step])
    return 0 <= threshold <= int(case.tokens[step])


def _length(case: Case, item: Fired) -> int:
    """Messages of the log in the request after a compaction."""
    at = int(case.facts.ledger.steps["at"][item.step])
    if item.record is not None:
        return _messages(item.record.after)
    assert item.counted is not None
    base = case.facts.ledger.bases[item.counted.place]
    return _messages(base.view) + at - base.at


def _messages(view: View) -> int:
    spans = sum(part.stop - part.start for part in view if isinstance(part, Span))
    return spans + sum(isinstance(part, Rewritten) for part in view)


def sliding_windows(case: Case) -> list[Finding]:
    """Calls at which older messages were dropped or masked, one after the other, by design."""
    findings = []
    for row in sliding_rows(case):
        changed = _steps(row)
        first, last = changed[0], changed[-1]
        calls = last - first + 1
        note = ", leaving a note" if any(_note(case, item) for item in row) else ""
        sentence = (
            f"A sliding window: from {at_step(first)} to {at_step(last)}, {len(changed):,} of {calls:,} calls dropped "
            f"or shortened older messages without a summary{note}. A prompt cache can give these calls only what comes "
            "before the change."
        )
        numbers = {"changed": len(changed), "calls": calls, "first": first, "last": last}
        steps = tuple(changed[:LISTED])
        findings.append(Finding("sliding_window", INFO, first, sentence, numbers, (), steps, len(row)))
    return findings
