"""Where the focus is after a part of the page has been replaced: never on the page as a whole."""

from tests.browser.conftest import wait

FOCUSED = "document.activeElement.title || document.activeElement.textContent.trim()"


def enter(page, link, shown: str) -> None:
    """Press a link with the keyboard, and wait for what it shows."""
    link.focus()
    page.keyboard.press("Enter")
    page.wait_for_selector(shown, state="attached")


def focused(page, words: str) -> None:
    wait(page, f"words => ({FOCUSED}).startsWith(words)", words)


def test_a_link_of_a_step_keeps_it_on_the_next_step_too(page, sessions):
    page.goto(sessions("long-coding") + "steps?at=60")
    enter(page, page.get_by_role("link", name="next step").first, "#step[data-at='61']")
    focused(page, "next step")
    enter(page, page.get_by_role("link", name="removed"), "#step .switch [aria-current]:text('removed')")
    focused(page, "removed")


def test_a_link_that_leads_no_further_leaves_it_to_the_one_beside_it(page, sessions):
    page.goto(sessions("long-coding") + "steps?at=21")
    enter(page, page.get_by_role("link", name="first step").first, "#step[data-at='1']")
    focused(page, "next step")


def test_the_rest_of_a_cut_text_has_it(page, sessions):
    page.goto(sessions("small-window") + "steps?at=6")
    more = page.get_by_role("link", name="more characters").last
    more.focus()
    page.keyboard.press("Enter")
    wait(page, "document.activeElement.matches('#messages pre')")


def test_filters_and_heads_of_a_table_keep_it(page, sessions):
    page.goto(sessions("long-coding") + "c/2/")
    enter(page, page.locator("#rows .switch a").nth(1), "#rows .switch a:nth-child(2)[aria-current]")
    focused(page, page.locator("#rows .switch a").nth(1).inner_text())
    page.goto("/")
    enter(page, page.get_by_role("link", name="Started"), "th[aria-sort] a:text('Started')")
    focused(page, "Started")


def test_a_table_of_the_chart_keeps_it_on_the_link_to_its_later_steps(page, sessions):
    page.goto(sessions("long-coding") + "?table=1")
    enter(page, page.get_by_role("link", name="Later steps", exact=True), "#table :text('Earlier steps')")
    wait(page, "document.activeElement.closest('#table') !== null")
    enter(page, page.get_by_role("link", name="Close the table"), "#table:empty")
    focused(page, "View as table")


def test_the_end_of_a_zoom_leaves_it_in_the_strip(page, sessions):
    page.goto(sessions("long-coding") + "steps?at=21&zoom=11-82")
    enter(page, page.locator(".strip-zoom [data-key=S]"), ".strip-zoom [data-key=S][aria-disabled]")
    wait(page, "document.activeElement.closest('.strip-zoom') !== null")


def test_after_a_form_that_loads_a_page_it_is_at_what_became_of_it(page):
    page.goto("/watching/")
    page.get_by_label("Another folder or file").fill("/nowhere")
    page.keyboard.press("Enter")
    page.wait_for_selector("#path[aria-invalid=true]:focus")
    page.seen.console.clear()  # the browser notes the status itself
    page.goto("/webhooks/")
    assert page.evaluate("document.activeElement === document.body"), "a link begins at the top"
    page.get_by_label("Address that messages are posted to").fill("https://hooks.example/focus")
    page.get_by_role("button", name="Add").click()
    page.wait_for_selector("#secret:focus")
    page.get_by_role("button", name="Remove https://hooks.example/focus").click()
    page.wait_for_selector("h1:focus")
    page.reload()
    assert page.evaluate("document.activeElement === document.body")
