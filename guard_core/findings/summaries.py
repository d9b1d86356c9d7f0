"""Summaries that are mechanical, empty or not readable."""

from __future__ import annotations

from collections.abc import Callable

from guard_core.findings.claims import ERROR, INFO, LISTED, WARNING, Finding
from guard_core.findings.facts import Case, Fired
from guard_core.findings.words import compactions_words


def bad_summaries(case: Case) -> list[Finding]:
    """One finding for each sort of them."""
    return [
        *_of(
            case, "fallback_summary", WARNING, _is_fallback, "the summariser failed; a mechanical summary replaced it"
        ),
        *_of(case, "empty_summary", ERROR, _is_empty, "the summary is empty"),
        *_of(case, "sealed_summary", INFO, _is_sealed, "the summary is encrypted or not in the file"),
    ]


def _of(case: Case, kind: str, severity: str, test: Callable[[Case, Fired], bool], words: str) -> list[Finding]:
    items = [item for item in case.fired if test(case, item)]
    if not items:
        return []
    indices, steps = [item.index for item in items], tuple(item.step for item in items[:LISTED])
    sentence = f"{compactions_words(indices).capitalize()}: {words}."
    return [Finding(kind, severity, items[0].step, sentence, {"compactions": indices}, (), steps, len(items))]


def _is_fallback(case: Case, item: Fired) -> bool:
    """Of a replay each pass says so, of a recording the kind of its compaction."""
    if item.record is not None:
        return any(one.fallback for one in item.record.passes)
    return item.counted is not None and case.facts.ledger.bases[item.counted.place].kind == "fallback"


def _is_empty(case: Case, item: Fired) -> bool:
    if item.record is not None:
        last = item.record.passes[-1] if item.record.passes else None
        return last is not None and last.summariser_contents > 0 and not last.summary_bytes
    if item.counted is None or case.facts.is_sealed(item.counted):
        return False
    return case.facts.ledger.bases[item.counted.place].is_empty


def _is_sealed(case: Case, item: Fired) -> bool:
    """Only a recording has such summaries: those of a replay are written here."""
    return item.counted is not None and case.facts.is_sealed(item.counted)
