"""Pages as the browser gives them to a screen reader: its accessibility tree, in which everything has its name."""

import pytest

from tests.browser.test_looks import PAGES, visit

LANDMARKS = {"banner", "complementary", "contentinfo", "main", "navigation", "region", "search"}
NAMED = {"application", "button", "figure", "link", "table", "toolbar", "combobox", "textbox", "searchbox", "slider"}
READ = [
    "home",
    "overview",
    "step",
    "context",
    "recorded-compaction",
    "compactions-together",
    "facts",
    "rule",
    "policies",
]


def heard(page) -> list[dict]:
    """The nodes of the tree that are read out, each with its role, name, properties and children."""
    protocol = page.context.new_cdp_session(page)
    nodes = protocol.send("Accessibility.getFullAXTree")["nodes"]
    protocol.detach()
    return [node for node in nodes if not node["ignored"]]


def role(node: dict) -> str:
    return node["role"]["value"]


def name(node: dict) -> str:
    return node.get("name", {}).get("value", "").strip()


def value(node: dict, key: str):
    return next((item["value"]["value"] for item in node.get("properties", ()) if item["name"] == key), None)


@pytest.mark.parametrize("page_name", READ)
def test_everything_on_a_page_has_a_name(page, sessions, page_name):
    assert page_name in PAGES
    visit(page, sessions, page_name)
    nodes = heard(page)
    assert [role(node) for node in nodes if role(node) in NAMED and not name(node)] == []
    focusable = [node for node in nodes if value(node, "focusable") and role(node) not in ("main", "RootWebArea")]
    assert len(focusable) > 10
    assert [node["backendDOMNodeId"] for node in focusable if role(node) != "generic" and not name(node)] == []
    marks = [(role(node), name(node)) for node in nodes if role(node) in LANDMARKS]
    assert len(set(marks)) == len(marks), "each landmark is of a kind or has a name of its own"
    assert [node["role"] for node in nodes if role(node) == "navigation" and not node["childIds"]] == []


@pytest.mark.parametrize("page_name", READ)
def test_headings_begin_with_that_of_the_page_and_skip_no_level(page, sessions, page_name):
    visit(page, sessions, page_name)
    levels = [value(node, "level") for node in heard(page) if role(node) == "heading"]
    own = levels.index(1)
    assert levels.count(1) == 1
    assert all(later - level <= 1 for level, later in zip(levels[own:], levels[own + 1 :], strict=False))


def test_a_link_that_leads_nowhere_is_a_link_that_cannot_be_used(page, sessions):
    page.goto(sessions("long-coding") + "steps?at=1")
    links = {name(node): value(node, "disabled") for node in heard(page) if role(node) == "link"}
    assert links["previous step (k)"] is True
    assert not links["next step (j)"]


def test_the_switch_of_the_theme_says_which_one_is_on(open_page):
    for theme, other in (("light", "dark"), ("dark", "light")):
        page = open_page(theme=theme)
        page.goto("/help/")
        switch = page.get_by_role("button", name="Dark theme", exact=True)
        assert switch.get_attribute("aria-pressed") == str(theme == "dark").lower()
        switch.click()
        assert switch.get_attribute("aria-pressed") == str(other == "dark").lower()
