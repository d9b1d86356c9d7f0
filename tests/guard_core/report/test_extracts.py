"""One compaction or one decision alone: whose rule it is judged by, and the summary as it was written."""

from __future__ import annotations

import msgspec
import pytest

from guard_core.events import TextPart
from guard_core.report import ReportOptions
from guard_core.report.extracts import extract
from guard_core.report.table_pages import tables_markdown, tables_page, tables_sheet
from guard_core.report.tables import ReportPart
from tests.builders import bundled

SUMMARY = "Goal: <ship> | it\n\n1. read `a.py`\n    - indented\n2. |x|"
CONTEXTGUARD = "Judged by ContextGuard, profile current, whose state this recording holds."


@pytest.fixture(scope="module")
def guarded():
    """A recording that holds ContextGuard's state."""
    return bundled("timing-gap")


@pytest.mark.parametrize(
    ("sample", "options", "words"),
    [
        ("timing-gap", ReportOptions(), CONTEXTGUARD),
        ("timing-gap", ReportOptions(policy="codex"), "Judged by Codex, profile current, the policy of this replay."),
        ("small-window", ReportOptions(), "Judged by no rule: that of the agent is not known here."),
        (
            "small-window",
            ReportOptions(policy="contextguard"),
            "Judged by ContextGuard, profile current, the policy of this",
        ),
    ],
)
def test_a_decision_says_by_which_rule_it_is_judged(sample, options, words):
    report = extract(bundled(sample), options, ReportPart("decision", 5))
    assert words in report.sentences[2]
    for written in (tables_page(report), tables_markdown(report)):
        assert words in written


def test_a_recording_that_holds_contextguards_state_is_judged_by_its_arithmetic(guarded):
    (compaction,) = guarded.compactions
    step = next(step for step, call in enumerate(guarded.calls) if call.at >= compaction.at)
    before, at = (extract(guarded, ReportOptions(), ReportPart("decision", number)) for number in (step - 1, step))
    assert before.sentences[:2] == ("ContextGuard did not compact here.", "140,000 < 180,000")
    assert at.sentences[:2] == ("ContextGuard compacted here.", "180,018 ≥ 180,000")
    names = [row[0] for table in at.tables for row in table.rows]
    assert any("factor" in str(name) for name in names)


def test_a_recorded_agents_rule_is_named():
    recording = msgspec.structs.replace(bundled("small-window"), format="codex", agent="codex")
    assert "Judged by the rule of the agent that wrote this recording: Codex" in " ".join(
        extract(recording, ReportOptions(), ReportPart("decision", 5)).sentences
    )


def test_a_summary_keeps_its_lines():
    recording = bundled("small-window")
    (compaction,) = recording.compactions
    written = tuple(msgspec.structs.replace(item, parts=(TextPart(SUMMARY),)) for item in compaction.messages)
    changed = msgspec.structs.replace(compaction, messages=written)
    report = extract(
        msgspec.structs.replace(recording, compactions=(changed,)),
        ReportOptions(level="text"),
        ReportPart("compaction", 0),
    )
    page = tables_page(report)
    lines = "Goal: &lt;ship&gt; | it\n\n1. read `a.py`\n    - indented\n2. |x|"
    assert f'<td class="session-text">{lines}</td>' in page
    row = next(line for line in tables_markdown(report).splitlines() if "ship" in line)
    assert "it<br><br>1&#46; read" in row
    assert row.count("|") == 4  # of three cells: those of the summary are escaped
    assert "indented" in tables_sheet(report)
