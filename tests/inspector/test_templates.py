"""Templates keep to the length of a line, so that a change of one attribute is a change of one line."""

from pathlib import Path

import pytest

TEMPLATES = Path(__file__).parents[2] / "templates"
LONGEST_LINE = 120  # characters, as in the code


@pytest.mark.parametrize("path", sorted(TEMPLATES.rglob("*.html")), ids=lambda path: str(path.relative_to(TEMPLATES)))
def test_no_line_of_a_template_is_longer_than_a_line_of_code(path):
    lines = path.read_text().splitlines()
    assert [number for number, line in enumerate(lines, start=1) if len(line) > LONGEST_LINE] == []
