"""The rule that no test may skip in CI."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tests.plugins.no_skips import strict


def report(reason: str, outcome: str = "skipped") -> SimpleNamespace:
    return SimpleNamespace(outcome=outcome, longrepr=("file.py", 1, reason))


def test_a_skip_is_a_failure():
    report_in_ci = strict(report("Skipped: no browser here"))
    assert report_in_ci.outcome == "failed"
    assert "no browser here" in report_in_ci.longrepr


def test_the_foreign_recordings_may_be_absent():
    assert strict(report("Skipped: ../shared/samples is absent")).outcome == "skipped"


@pytest.mark.parametrize("outcome", ["passed", "failed"])
def test_other_outcomes_stay(outcome):
    assert strict(report("", outcome)).outcome == outcome
