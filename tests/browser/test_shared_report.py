"""A report behind a password, in a browser: what a form sends with it, no test client says."""

from __future__ import annotations

PASSWORD = "a word for readers"


def test_a_report_with_a_password_is_opened_by_it(open_page, sessions):
    page = open_page()
    page.goto(f"{sessions('timing-gap')}share")
    page.get_by_label("Password, if readers need one").fill(PASSWORD)
    page.get_by_role("button", name="Create the report").click()
    page.get_by_role("button", name="Publish").click()
    link = page.get_by_label("Anyone who has it and knows the password").input_value()
    reader = open_page()
    reader.goto(link)
    reader.get_by_label("Password").fill(PASSWORD)
    reader.get_by_role("button", name="Open the report").click()
    reader.get_by_text("Compaction report").first.wait_for()
    assert reader.url == link
