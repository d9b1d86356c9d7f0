"""A window that slides by design (`guard_core.sliding`), of a recording or of a replay.

Which recorded compactions are its moves follows from what was sent, and which of a replay from what its policy
publishes.
"""

from __future__ import annotations

from guard_core.defaults import LOOP_LENGTH
from guard_core.findings.claims import INFO, LISTED, Finding
from guard_core.findings.facts import Case, Fired
from guard_core.findings.words import at_step
from guard_core.sliding import APART, SAME_LENGTH, messages_in, note_of, recorded_rows, rows_of, steps_of
from guard_core.trace import CompactionRecord


def sliding_rows(case: Case) -> list[list[Fired]]:
    """The stretches in which a window slides: compactions at consecutive steps, or a few steps apart."""
    if case.is_recorded:
        fired = {item.counted.place: item for item in case.fired if item.counted}
        counted = [item.counted for item in fired.values() if item.counted]
        rows = recorded_rows(case.facts.session, case.facts.ledger, counted)
        return [[fired[item.place] for item in row] for row in rows]
    if case.may_summarise:
        return []
    anew = all(item.record is not None and is_made_anew(item.record) for item in case.fired)
    replayed = rows_of(case.fired, APART)
    possible = [row for row in replayed if anew or not any(_is_in_vain(case, item.step) for item in row)]
    return [row for row in possible if len(steps_of(row)) >= LOOP_LENGTH and _keeps_length(row)]


def others(case: Case) -> tuple[Fired, ...]:
    """The compactions that are not steps of a sliding window."""
    sliding = {item.index for row in sliding_rows(case) for item in row}
    return tuple(item for item in case.fired if item.index not in sliding)


def is_made_anew(record: CompactionRecord) -> bool:
    """Do later requests begin with the whole log again, so that each is cut on its own."""
    return not record.carried and not record.kept_from


def _keeps_length(row: list[Fired]) -> bool:
    """Is the window of a replay full, not emptied."""
    first, last = (messages_in(item.record.after) if item.record else 0 for item in (row[0], row[-1]))
    return last >= SAME_LENGTH * first


def _is_in_vain(case: Case, step: int) -> bool:
    """Did a replay's compaction leave a request at or over the threshold in tokens."""
    threshold = int(case.column("threshold")[step])
    return 0 <= threshold <= int(case.tokens[step])


def sliding_windows(case: Case) -> list[Finding]:
    """Calls at which older messages were dropped or masked, one after the other, by design."""
    findings = []
    for row in sliding_rows(case):
        changed = steps_of(row)
        first, last = changed[0], changed[-1]
        calls = last - first + 1
        leaves_note = any(note_of(case.facts.session, item.counted) for item in row if item.counted)
        note = ", leaving a note" if leaves_note else ""
        sentence = (
            f"A sliding window: from {at_step(first)} to {at_step(last)}, {len(changed):,} of {calls:,} calls dropped "
            f"or shortened older messages without a summary{note}. A prompt cache can give these calls only what comes "
            "before the change."
        )
        numbers = {"changed": len(changed), "calls": calls, "first": first, "last": last}
        steps = tuple(changed[:LISTED])
        findings.append(Finding("sliding_window", INFO, first, sentence, numbers, (), steps, len(row)))
    return findings
