"""Pages without JavaScript: every chart is a picture, and nothing waits for a script."""

import pytest

from tests.services.server import until


@pytest.mark.parametrize("path", ["", "?window=100000", "?zoom=11-40", "estimator", "compare"])
def test_every_chart_is_a_picture(open_page, sessions, path):
    page = open_page(java_script_enabled=False)
    address = sessions("timing-gap")
    key = address.split("/")[2]
    page.goto(f"/compare?side={key}&side={key}%3Fwindow%3D100000" if path == "compare" else address + path)
    figures = page.locator("figure")
    until(lambda: figures.count() or page.reload() is None)  # the estimator is measured by a job
    for number in range(figures.count()):
        drawings = figures.nth(number).locator("svg[role=img], svg[aria-labelledby], svg[aria-label]")
        assert drawings.first.is_visible()
    assert "Drawing" not in page.inner_text("main")
    assert not page.locator("[data-plot]").first.is_visible()
