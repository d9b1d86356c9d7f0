"""Templates keep to the length of a line, so that a change of one attribute is a change of one line."""

from pathlib import Path

TEMPLATES = Path(__file__).parents[2] / "templates"
LONGEST_LINE = 120  # characters, as in the code


def test_no_line_of_a_template_is_longer_than_a_line_of_code():
    paths = sorted(TEMPLATES.rglob("*.html"))
    assert paths
    assert [
        f"{path.relative_to(TEMPLATES)}:{number}"
        for path in paths
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if len(line) > LONGEST_LINE
    ] == []
