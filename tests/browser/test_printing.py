"""A report on paper: what is printed of four compactions in full is read on a dozen pages."""

from __future__ import annotations

import re

from guard_core.report import Options, build, page
from tests.big_sessions import big_session

MOST_PAGES = 12  # A4
COMPACTIONS = 4
SHEET = re.compile(rb"/Type\s*/Page\b(?!s)")


def test_a_report_of_four_compactions_prints_on_twelve_pages(chromium):
    session = big_session(600, COMPACTIONS)
    report = build(session, Options(level="text"))
    assert sum(item.bridge is not None for item in report.sides[0].compactions) == COMPACTIONS
    with chromium.new_context() as context:
        sheet = context.new_page()
        sheet.set_content(page(report))
        printed = sheet.pdf(format="A4")
    assert 1 <= len(SHEET.findall(printed)) <= MOST_PAGES
