"""A page as it looks: loaded once, then held against its window and axe in every theme and at every width.

Every rule of axe is asked where the page is narrowest and widest, once in each theme; of the wide page in the dark,
which no other look shows, only the contrasts.
"""

from __future__ import annotations

from pathlib import Path

from tests.browser.conftest import shot, wait

AXE = Path(__file__).parent / "vendor/axe-4.14.1.min.js"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
CONTRAST = ["color-contrast"]
LOOKS = (  # pixels, colour scheme, rules
    (360, "dark", RULES),
    (360, "light", []),
    (900, "dark", []),
    (1440, "light", RULES),
    (1440, "dark", CONTRAST),
)
WRONG = """async (rules) => {
  const { violations } = await axe.run(document, { runOnly: rules, resultTypes: ["violations"] });
  return violations.flatMap((rule) => rule.nodes.map((node) => `${rule.id}: ${node.target} ${node.failureSummary}`));
}"""
# Contrasts that axe cannot work out, but for the drawing of a chart, which is presentational.
UNDECIDED = """async () => {
  const options = { runOnly: ["color-contrast"], resultTypes: ["incomplete"] };
  const { incomplete } = await axe.run({ exclude: ["[data-plot] svg"] }, options);
  return incomplete.flatMap((rule) => rule.nodes.map((node) => `undecided: ${node.target}`));
}"""
FITS = "document.documentElement.scrollWidth <= innerWidth"  # nothing must be scrolled sideways to be seen


def complaints(page, rules: list[str] = RULES, *, contrasts: bool = False) -> list[str]:
    """What is not accessible on the page as it looks now; with `contrasts` also those that axe cannot work out."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text())
    return (page.evaluate(WRONG, rules) if rules else []) + (page.evaluate(UNDECIDED) if contrasts else [])


def check_looks(page, name: str, contrasts: tuple[int, ...] = (), **picture) -> None:
    """The page, as it is loaded, is accessible and fits in every theme and at every width.

    `contrasts`: the widths at which nothing may lie on a text so that its contrast cannot be worked out; what lies on
    what depends on no theme.
    """
    undecided = set(contrasts)
    for width, theme, rules in LOOKS:
        show(page, width, theme)
        shot(page, f"{name}-{width}-{theme}", **picture)
        wait(page, FITS)  # a chart follows a new width a moment later
        found = complaints(page, rules, contrasts=width in undecided)
        undecided.discard(width)
        assert not found, "\n".join([f"{name} at {width} pixels, {theme}:", *found])


def show(page, width: int, theme: str, height: int = 900) -> None:
    """Give the window this width and theme, and wait until the charts have followed."""
    page.set_viewport_size({"width": width, "height": height})
    if page.evaluate(f"matchMedia('(prefers-color-scheme: {theme})').matches"):
        return
    charts = page.locator("[data-figure]")
    charts.evaluate_all("all => all.forEach(one => delete one.dataset.drawn)")
    page.emulate_media(color_scheme=theme)
    for number in range(charts.count()):
        charts.nth(number).and_(page.locator("[data-drawn]")).wait_for()
