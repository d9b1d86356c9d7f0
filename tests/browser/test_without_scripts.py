"""Pages without JavaScript: every chart is a picture, and nothing waits for a script."""

import pytest

from tests.waiting import until


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


@pytest.mark.parametrize("scripts", [True, False])
def test_every_page_is_reached_on_a_phone(open_page, scripts):
    page = open_page(360, 700, java_script_enabled=scripts)
    page.goto("/policies/")
    bar = page.locator(".topbar")
    for name in ("Running", "Shares", "Gallery"):
        assert not bar.get_by_role("link", name=name, exact=True).is_visible()
    for name in ("Running", "Shares", "Gallery"):
        bar.get_by_role("button", name="More").click()
        bar.get_by_role("link", name=name, exact=True).click()
        assert page.url.endswith(f"/{name.lower()}/")
