"""A webhook is added by its form, its secret is shown once, and it is removed."""

from tests.browser.looks import check_looks

URL = "https://hooks.example/a-rather-long-path/of-a-receiver/that-does-not-fit-on-a-phone"


def test_it_is_added_and_removed_and_fits(page):
    page.goto("/webhooks/")
    page.get_by_label("Address that messages are posted to").fill(URL)
    page.get_by_role("button", name="Add").click()
    assert page.get_by_label("shown only once").input_value().startswith("whsec_")
    check_looks(page, "webhooks")
    page.goto("/webhooks/")
    assert page.get_by_label("shown only once").count() == 0
    page.get_by_role("button", name=f"Remove {URL}").click()
    page.wait_for_url("**/webhooks/")
    assert page.get_by_text(URL).count() == 0
