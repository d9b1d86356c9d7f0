"""Paper: what is printed of four compactions in full is read on a dozen pages, and every page fits its sheet."""

from __future__ import annotations

import re

import pytest

from guard_core.report import ReportOptions, build, page
from tests.big_sessions import big_session
from tests.browser.conftest import wait
from tests.browser.looks import FITS

MOST_PAGES = 12  # A4
SHEET_WIDTH = 718  # pixels of A4 between the margins of a browser
COMPACTIONS = 4
SHEET = re.compile(rb"/Type\s*/Page\b(?!s)")


def test_a_report_of_four_compactions_prints_on_twelve_pages(chromium):
    session = big_session(600, COMPACTIONS)
    report = build(session, ReportOptions(level="text"))
    assert sum(item.bridge is not None for item in report.sides[0].compactions) == COMPACTIONS
    with chromium.new_context() as context:
        sheet = context.new_page()
        sheet.set_content(page(report))
        printed = sheet.pdf(format="A4")
    assert 1 <= len(SHEET.findall(printed)) <= MOST_PAGES


@pytest.mark.parametrize("path", ["c/2/", "context", "rule", "facts", "/policies/contextguard", "/"])
def test_a_page_fits_a_sheet(page, sessions, path):
    page.goto(path if path.startswith("/") else sessions("long-coding") + path)
    page.set_viewport_size({"width": SHEET_WIDTH, "height": 1000})
    page.emulate_media(media="print")
    wait(page, FITS)
    if path == "/":  # a list, without what is pressed
        assert page.locator("main :is(button, input, summary):visible").count() == 0
