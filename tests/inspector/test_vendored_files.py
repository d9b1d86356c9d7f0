"""Vendored files are the ones VERSIONS.md names, and fit the Python packages beside them."""

import hashlib
import re
from pathlib import Path

import django_htmx
import pytest

ROOT = Path(__file__).parents[2]
VENDOR = ROOT / "static/vendor"
COMPILED_EARLY = b"//# allFunctionsCalledOnLoad\n"  # the line before a script that VERSIONS.md explains
ROW = re.compile(r"\| `([^`]+)` \| ([\d.]+) \|.*\| `([0-9a-f]{64})` \|")


def rows():
    return ROW.findall((VENDOR / "VERSIONS.md").read_text())


@pytest.mark.parametrize(("name", "version", "digest"), rows())
def test_a_vendored_file_is_the_one_that_is_listed(name, version, digest):
    assert version in name
    content = (VENDOR / name).read_bytes()
    assert content.startswith(COMPILED_EARLY) == name.endswith(".js")
    assert hashlib.sha256(content.removeprefix(COMPILED_EARLY)).hexdigest() == digest


def test_every_vendored_script_and_sheet_is_listed():
    files = {path.name for path in VENDOR.iterdir() if path.suffix in {".js", ".css"}}
    assert files == {name for name, _, _ in rows()}


def test_the_bundle_is_the_version_that_the_python_package_makes_figures_for():
    from plotly.offline import get_plotlyjs_version

    assert {version for _, version, _ in rows()} == {get_plotlyjs_version()}


@pytest.mark.parametrize("name", sorted(path.name for path in VENDOR.glob("plotly-*.js")))
def test_the_sheet_holds_every_rule_that_the_bundle_would_insert(name):
    bundle = (VENDOR / name).read_text()
    start = bundle.index('"X,X div"')
    rules = bundle[start : bundle.index("};for(", start)]
    sheet = (VENDOR / "plotly-4.1.1.css").read_text()
    bodies = re.findall(r""":(?:"([^"]*)"|'([^']*)')(?=,|$)""", rules)
    assert len(bodies) == 66
    assert all((double or single) in sheet for double, single in bodies)


def test_the_documented_htmx_is_the_one_that_is_served():
    script = Path(django_htmx.__file__).parent / "static/django_htmx/htmx-2.min.js"
    version = re.search(r'version:"([\d.]+)"', script.read_text())
    assert version is not None
    assert f"htmx {version[1]}" in (VENDOR / "VERSIONS.md").read_text()
