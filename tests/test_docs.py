"""The documentation names everything there is."""

import re
from pathlib import Path

import pytest
from django.urls import URLPattern, URLResolver, get_resolver

from guard_core.checker.own_rule import OWN_RULE
from guard_core.checker.recorded import RECORDED
from guard_core.checker.replayed import REPLAYED
from guard_core.policies import POLICIES
from guard_core.recordings import FORMATS

ROOT = Path(__file__).parent.parent
ENGINE = (ROOT / "guard_core" / "README.md").read_text()
PAGES = (ROOT / "inspector" / "README.md").read_text()
SETTINGS = (ROOT / "inspector" / "project" / "settings.py").read_text()


def test_every_policy_has_a_paragraph():
    assert [name for name in POLICIES if f"**`{name}`**" not in ENGINE] == []


def test_every_setting_and_profile_of_a_policy_is_named():
    names = {item.name for kind in POLICIES.values() for item in kind.settings}
    names |= {name for kind in POLICIES.values() for name in kind.profile_names}
    assert sorted(name for name in names if f"`{name}`" not in ENGINE) == []


def test_every_format_has_a_row():
    assert [item.label for item in FORMATS if f"| {item.label} |" not in ENGINE] == []


def test_every_kind_of_finding_is_explained():
    assert sorted(kind for kind in {*RECORDED, *REPLAYED, *OWN_RULE} if f"`{kind}`" not in ENGINE) == []


def pages(patterns, prefix=""):
    for item in patterns:
        if isinstance(item, URLResolver):
            yield from pages(item.url_patterns, prefix + str(item.pattern))
        elif isinstance(item, URLPattern) and item.name:
            yield item.name


@pytest.mark.parametrize("name", ["home", "upload", "import_detail", "session_overview", "session_steps", "compaction"])
def test_every_main_page_exists_and_is_described(name):
    assert name in set(pages(get_resolver().url_patterns))
    assert f"`{name}`" in PAGES


@pytest.mark.parametrize(
    "name", sorted(set(re.findall(r'env\.\w+\(\s*"([A-Z_]+)"', SETTINGS)) - {"XDG_DATA_HOME", "HASHED_STATIC"})
)
def test_every_environment_variable_is_in_the_readme(name):
    assert f"`{name}`" in (ROOT / "README.md").read_text()
