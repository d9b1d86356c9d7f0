"""A window that slides by design: old messages are dropped or masked at call after call, and no summary is made.

That is not a loop. A loop is a compaction that is meant to be rare and frees too little; a sliding window has no
room to free. Which of the two it is follows from what was sent, and for a replay from what its policy publishes.
"""

from __future__ import annotations

from collections.abc import Sequence

from guard_core.defaults import LOOP_LENGTH
from guard_core.findings.claims import INFO, LISTED, Finding
from guard_core.findings.facts import Case, Fired
from guard_core.findings.words import at_step
from guard_core.trace import CompactionRecord
from guard_core.triggers import OVERFLOW
from guard_core.views import Inserted, Rewritten, Span, View

MECHANICAL = ("trim", "edit")  # kinds of recorded compactions that replace nothing by a summary
# Ours: where the last request of a stretch has less of the messages than the first one after its compaction, each
# compaction took more than what was added, and the window was not full but emptied.
SAME_LENGTH = 0.5
APART = 5  # steps; as for compactions in quick succession


def sliding_rows(case: Case) -> list[list[Fired]]:
    """The stretches in which a window slides: compactions at consecutive steps, or a few steps apart where a policy
    makes every request anew from the whole log, and so acts at every call that is over its limit."""
    if not case.is_recorded and case.may_summarise:
        return []
    anew = all(item.record is not None and is_made_anew(item.record) for item in case.fired)
    rows = rows_of(case.fired, APART if anew else 1)
    return [row for row in rows if len(_steps(row)) >= LOOP_LENGTH and _slides(case, row, anew)]


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


def _slides(case: Case, row: list[Fired], anew: bool) -> bool:
    if case.is_recorded:
        if not all(_is_mechanical(case, item) for item in row):
            return False
    elif not anew and any(_is_in_vain(case, item.step) for item in row):
        return False
    return _length(case, row[-1]) >= SAME_LENGTH * _length(case, row[0])


def _is_mechanical(case: Case, item: Fired) -> bool:
    """Did a recorded compaction only drop or change messages of the log, without a refused request before it."""
    assert item.counted is not None
    base = case.facts.ledger.bases[item.counted.place]
    inserts = any(isinstance(part, Inserted) for part in base.view)
    return base.kind in MECHANICAL and not inserts and base.trigger != OVERFLOW


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
        sentence = (
            f"A sliding window: from {at_step(first)} to {at_step(last)}, {len(changed):,} of {calls:,} calls dropped "
            "or shortened older messages without a summary. A prompt cache can give these calls only what comes before "
            "the change."
        )
        numbers = {"changed": len(changed), "calls": calls, "first": first, "last": last}
        steps = tuple(changed[:LISTED])
        findings.append(Finding("sliding_window", INFO, first, sentence, numbers, (), steps, len(row)))
    return findings
