"""A page as it looks: loaded once, then held against its window and axe in every theme and at every width.

Every rule of axe is asked where the page is narrowest and widest, once in each theme; of the wide page in the dark,
which no other look shows, only the contrasts. `make test` asks every rule where it is narrowest, in the dark: no other
rule knows a theme, few know a width, and `tests/inspector/test_css_tokens.py` holds every colour against its ground.
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
SHORT = ((360, "dark", RULES), (900, "dark", []), (1440, "dark", []))
# Contrasts that axe leaves open (a text of one letter, or with anything on or under it, as in a drawing) are worked out
# here: the colour of the text against the first opaque colour below it, at its left end, middle and right end.
# Axe runs once for both: it is most of what a look costs.
WRONG = """async ([rules, contrasts]) => {
  const whole = new CSSStyleSheet();  // axe measures what is out of sight, too, which is laid out once it comes there
  whole.replaceSync("* { content-visibility: visible !important }");
  document.adoptedStyleSheets = [...document.adoptedStyleSheets.filter((sheet) => !sheet.isWhole), whole];
  whole.isWhole = true;
  const resultTypes = contrasts ? ["violations", "incomplete"] : ["violations"];
  const { violations, incomplete } = await axe.run(document, { runOnly: rules, resultTypes });
  const complaints = violations.flatMap((rule) =>
    rule.nodes.map((node) => `${rule.id}: ${node.target} ${node.failureSummary}`));
  const undecided = contrasts ? incomplete.filter((rule) => rule.id === "color-contrast") : [];
  const open = undecided.flatMap((rule) => rule.nodes.map((node) => node.target.flat().at(-1)));
  if (!open.length) return complaints;
  const everything = new CSSStyleSheet();  // what lets clicks through is below a text, too
  everything.replaceSync("* { pointer-events: auto !important }");
  document.adoptedStyleSheets.push(everything);
  const place = [scrollX, scrollY];
  const parsed = (colour) => {
    const [r, g, b, a = 1] = (colour.match(/[\\d.]+/g) ?? [0, 0, 0, 0]).map(Number);
    return { rgb: colour.startsWith("color(") ? [r, g, b] : [r / 255, g / 255, b / 255], a };
  };
  const light = (rgb) => {
    const [r, g, b] = rgb.map((one) => (one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ratio = (one, other) => {
    const [low, high] = [light(one), light(other)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };
  const isDrawn = (box) => box instanceof SVGElement && !(box instanceof SVGSVGElement);
  const fill = (box) => {
    const style = getComputedStyle(box);
    const colour = parsed(isDrawn(box) ? style.fill : style.backgroundColor);
    return { ...colour, a: colour.a * (isDrawn(box) ? Number(style.fillOpacity) * Number(style.opacity) : 1) };
  };
  const covers = (box, x, y) => {  // a line that only passes by is no ground
    if (!(box instanceof SVGGeometryElement)) return true;
    return box.isPointInFill(new DOMPoint(x, y).matrixTransform(box.getScreenCTM().inverse()));
  };
  const below = (element, x, y) => {
    const seen = document.elementsFromPoint(x, y).filter((box) => covers(box, x, y));
    const boxes = seen.filter((box) => !element.contains(box) && !box.closest("text"));
    const own = isDrawn(element) ? [] : [element];
    return ([...own, ...boxes].map(fill).find(({ a }) => a > 0.95) ?? fill(document.body)).rgb;
  };
  for (const target of new Set(open)) {
    const element = document.querySelector(target);
    if (!element) continue;
    element.scrollIntoView({ block: "center", inline: "center" });
    const style = getComputedStyle(element);
    const text = parsed(isDrawn(element) ? style.fill : style.color).rgb;
    const range = document.createRange();
    range.selectNodeContents(element);
    const { left, right, top, bottom } = range.getBoundingClientRect();
    const middle = document.elementsFromPoint((left + right) / 2, (top + bottom) / 2);
    // The cells of a heat map are one picture: the test of its figure holds each text against its cell.
    if (middle.some((box) => box instanceof SVGImageElement)) continue;
    const points = [left + 1, (left + right) / 2, right - 1].map((x) => below(element, x, (top + bottom) / 2));
    const worst = Math.min(...points.map((ground) => ratio(text, ground)));
    if (worst < 4.5) complaints.push(`contrast ${worst.toFixed(2)}: ${target}`);
  }
  document.adoptedStyleSheets.pop();
  scrollTo(...place);
  return complaints;
}"""
STYLED = "[...document.querySelectorAll('link[rel=stylesheet]')].every((link) => link.sheet)"
FITS = "document.documentElement.scrollWidth <= innerWidth"  # nothing must be scrolled sideways to be seen


def complaints(page, rules: list[str] = RULES, *, contrasts: bool = False) -> list[str]:
    """What is not accessible on the page as it looks now; with `contrasts` also those that axe leaves open."""
    wait(page, STYLED)  # text is found on a page that has just come before its styles are there
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text())
    return page.evaluate(WRONG, [rules, contrasts])


def check_looks(page, name: str, **picture) -> None:
    """The page, as it is loaded, is accessible and fits in every theme and at every width, and every contrast on it is
    decided."""
    for width, theme, rules in SHORT if page.is_short else LOOKS:
        show(page, width, theme)
        shot(page, f"{name}-{width}-{theme}", **picture)
        wait(page, FITS)  # a chart follows a new width a moment later
        flaws = complaints(page, rules, contrasts=True) if rules else []
        assert not flaws, "\n".join([f"{name} at {width} pixels, {theme}:", *flaws])


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
