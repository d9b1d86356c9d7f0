"""What would have avoided findings, as rows: each sentence with the address that replays it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from guard_core.avoiding import Answer, goal_of
from guard_core.findings import Finding
from inspector.pages.shared.kinds import kind_name
from inspector.pages.shared.numbers import step_number
from inspector.replays.analysis import Analysis
from inspector.replays.avoiding import AvoidanceAnswers, choice_of


def answer_rows(
    answers: AvoidanceAnswers, findings: Sequence[Finding], analysis: Analysis, path: str
) -> list[dict[str, Any]]:
    """The answers with the findings that they are about; `path` is the overview's."""
    known = {(item.kind, item.step): item for item in findings}
    rows = []
    for answer in answers.answers:
        about = [known.get(key) for key in zip(answer.kinds, answer.steps, strict=True)]
        rows.append(
            {
                "findings": [
                    {"kind": kind_name(item.kind), "sentence": item.sentence, "anchor": anchor(item)}
                    for item in about
                    if item is not None
                ],
                "sentence": answer.sentence,
                "remedies": remedy_rows(answer, analysis, path),
            }
        )
    return rows


def remedy_rows(answer: Answer, analysis: Analysis, path: str) -> list[dict[str, str]]:
    """The remedies of an answer: each sentence, also in two (its short form and the rest), and the address that replays
    it ("" where no address says the same)."""
    rows = []
    for place, item in enumerate(answer.remedies):
        choice = choice_of(analysis.facts, answer, place, analysis.facts.window.value)
        short = item.short or item.sentence
        rest = item.sentence.removeprefix(short).lstrip()
        url = path + choice.query() if choice else ""
        rows.append({"sentence": item.sentence, "short": short, "rest": rest, "url": url})
    return rows


def anchor(finding: Finding) -> str:
    """The place of a finding on the page of answers; "" for one that no setting avoids."""
    return f"{finding.kind}-{step_number(finding.step)}" if goal_of(finding) else ""
