"""With CI set no test may skip: a skip there is a failure, named at the end.

The sole allowed reason is the folder of foreign recordings beside the checkout, which is not part of the project.
"""

from __future__ import annotations

import os
from typing import Any

import pytest

ALLOWED = "../shared"


def is_forbidden(reason: str) -> bool:
    """May a test not skip for this reason."""
    return ALLOWED not in reason


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    report = yield
    return strict(report) if os.environ.get("CI") else report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Any:
    report = yield
    return strict(report) if os.environ.get("CI") else report


def strict(report: Any) -> Any:
    """The report, failed where it was skipped for a reason that is not allowed."""
    if report.outcome == "skipped" and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        if is_forbidden(reason):
            report.outcome = "failed"
            report.longrepr = f"skipped, which CI does not allow: {reason}"
    return report
