"""The dialog of keyboard shortcuts names every key that a page listens to."""

from __future__ import annotations

import html
import re
from pathlib import Path

from inspector.pages.steps.views import KEYS, NAV

TEMPLATES = Path(__file__).parents[2] / "templates"
SHOWN = {"Escape": "Esc", "ArrowDown": "↓", "ArrowUp": "↑", "ArrowLeft": "←", "ArrowRight": "→"}


def test_every_key_of_a_page_is_in_the_dialog():
    dialog = html.unescape((TEMPLATES / "inspector/_keys.html").read_text())
    named = set(re.findall(r"<kbd>(.+?)</kbd>", dialog)) | set("234567")  # 1–8
    texts = [path.read_text() for path in TEMPLATES.rglob("*.html")]
    groups = [key for text in texts for key in re.findall(r'data-key="([^"{]+)"', text)]
    keys = {key for group in (*groups, *KEYS.values()) for key in group.split()} | {
        item[0] for row in NAV for item in row
    }
    assert keys
    assert {SHOWN.get(key, key) for key in keys} - named == set()
