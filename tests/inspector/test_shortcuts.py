"""The list of keyboard shortcuts names every key that a page listens to, each once."""

from __future__ import annotations

import re
from pathlib import Path

from inspector.pages.shared.keys import SHORTCUTS
from inspector.pages.steps.step import KEYS, NAV, SEARCH_NAV

TEMPLATES = Path(__file__).parents[2] / "templates"
FIXED = {"Escape": "Esc", "ArrowDown": "↓", "ArrowUp": "↑", "ArrowLeft": "←", "ArrowRight": "→"}
ROWS = [row for column in SHORTCUTS for row in column]
NAMED = [key for row in ROWS for key, _ in row.keys]


def test_every_key_of_a_page_is_in_the_list():
    listed = {*NAMED, *(key for row in ROWS for key in row.fixed), "↑", "↓"}
    texts = [path.read_text() for path in TEMPLATES.rglob("*.html")]
    groups = [key for text in texts for key in re.findall(r'data-key="([^"{]+)', text)]
    keys = {key for group in (*groups, *KEYS.values()) for key in group.split()}
    keys |= {item[0] for row in (*NAV, SEARCH_NAV) for item in row}
    assert keys
    assert {FIXED.get(key, key) for key in keys} - listed == set()


def test_every_key_is_listed_once_and_says_what_it_does():
    assert len(NAMED) == len(set(NAMED))
    assert all(words for row in ROWS for _, words in row.keys)
    assert len({words for row in ROWS for _, words in row.keys}) == len(NAMED)
