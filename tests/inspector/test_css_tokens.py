"""The colours keep their contrast on every surface they are used on, and figures use the same ones."""

import re
from pathlib import Path

import pytest

from inspector.figures import theme

SHEET = (Path(__file__).parents[2] / "static/css/tokens.css").read_text()
COLOURS = re.findall(r"--([\w-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)", SHEET)
TOKENS = {name: (light, dark) for name, light, dark in COLOURS}
TEXT = ["text", "muted", "link", *(name for name in TOKENS if name.startswith("c-"))]
SURFACES = ["bg", "surface", "surface-2", "hover", "selected"]


def luminance(colour):
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("name", TEXT)
@pytest.mark.parametrize("theme_index", [0, 1], ids=["light", "dark"])
def test_text_is_readable_on_panels_and_page(name, theme_index):
    for surface in ["bg", "surface", "surface-2"]:
        assert contrast(TOKENS[name][theme_index], TOKENS[surface][theme_index]) >= 4.5, surface


@pytest.mark.parametrize("theme_index", [0, 1], ids=["light", "dark"])
def test_plain_text_is_readable_on_every_surface_and_fill(theme_index):
    fills = [name for name in TOKENS if name.startswith("f-")]
    for surface in SURFACES + fills:
        for name in ["text", "muted", "link"]:
            assert contrast(TOKENS[name][theme_index], TOKENS[surface][theme_index]) >= 4.5, (name, surface)


@pytest.mark.parametrize("theme_index", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("meaning", ["recorded", "heuristic", "calibrated", "compaction", "tool", "overflow"])
def test_a_badge_is_readable_on_its_own_fill(meaning, theme_index):
    assert contrast(TOKENS[f"c-{meaning}"][theme_index], TOKENS[f"f-{meaning}"][theme_index]) >= 4.5


@pytest.mark.parametrize("theme_index", [0, 1], ids=["light", "dark"])
def test_borders_of_controls_and_the_focus_ring_can_be_seen(theme_index):
    for name in ["line-strong", "focus", "accent"]:
        for surface in ["bg", "surface", "surface-2"]:
            assert contrast(TOKENS[name][theme_index], TOKENS[surface][theme_index]) >= 3


def test_figures_use_the_light_colours_of_the_sheet():
    for colour, custom_property in theme.PALETTE.items():
        assert TOKENS[custom_property.removeprefix("--")][0] == colour


@pytest.mark.parametrize("drawn", ["#000000", "#ffffff"])
def test_a_picture_of_black_and_one_of_white_lines_are_seen_on_their_ground(drawn):
    for index in (0, 1):
        assert max(contrast(drawn, TOKENS[name][index]) for name in ("check-1", "check-2")) >= 3
