"""Templates keep to the length of a line, so that a change of one attribute is a change of one line; and they have what
a screen reader says: names of tables, and errors tied to their fields."""

import re
from pathlib import Path

TEMPLATES = Path(__file__).parents[2] / "templates"
LONGEST_LINE = 120  # characters, as in the code
TABLE = re.compile(r"<table\b[^>]*>(?:\s*<caption)?")
ERROR = re.compile(r'<(?:span|p)\s[^>]*class="[^"]*field-error[^>]*>')
ID = re.compile(r'\bid="([^"]+)"')


def test_no_line_of_a_template_is_longer_than_a_line_of_code():
    paths = sorted(TEMPLATES.rglob("*.html"))
    assert paths
    assert [
        f"{path.relative_to(TEMPLATES)}:{number}"
        for path in paths
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if len(line) > LONGEST_LINE
    ] == []


def test_every_table_has_a_name():
    pages = {path.relative_to(TEMPLATES): path.read_text() for path in TEMPLATES.rglob("*.html")}
    tables = [(page, table) for page, html in pages.items() for table in TABLE.findall(html)]
    assert len(tables) > 50
    assert [page for page, table in tables if "aria-label" not in table and "<caption" not in table] == []


def test_an_error_of_a_field_is_tied_to_it():
    pages = {path.relative_to(TEMPLATES): path.read_text() for path in TEMPLATES.rglob("*.html")}
    spoken = [(page, part) for page, html in pages.items() for part in ERROR.findall(html)]
    errors = [(page, error) for page, error in spoken if 'role="alert"' in error]
    named = [(page, name[1]) for page, error in errors if (name := ID.search(error))]
    assert len(named) > 8
    assert [(page, name) for page, name in named if pages[page].count(name) < 2] == []  # beside the id, who has it
    assert {str(page) for page, error in errors if not ID.search(error)} <= {"inspector/gallery/_field.html"}
