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
from guard_core.rules import AGENTS
from inspector.pages.help.views import PAGES as MAIN_PAGES
from inspector.pages.help.views import SESSION_PAGES
from inspector.pages.shared.kinds import KINDS

ROOT = Path(__file__).parent.parent
ENGINE = (ROOT / "guard_core" / "README.md").read_text()
PAGES = (ROOT / "inspector" / "README.md").read_text()
SETTINGS = (ROOT / "inspector" / "project" / "settings.py").read_text()


def test_every_policy_has_a_paragraph():
    missing = [name for name in POLICIES if f"**`{name}`**" not in ENGINE]
    assert missing == [], "guard_core/README.md has no paragraph that begins with these names in bold code"


def test_every_setting_and_profile_of_a_policy_is_named():
    names = {item.name for kind in POLICIES.values() for item in kind.settings}
    names |= {name for kind in POLICIES.values() for name in kind.profile_names}
    missing = sorted(name for name in names if f"`{name}`" not in ENGINE)
    assert missing == [], "guard_core/README.md does not name these in code, in the paragraph of their policy"


def test_every_rule_of_an_agent_has_an_item():
    missing = [agent.label for agent in AGENTS if f"**{agent.label.split(' (')[0]}**" not in ENGINE]
    assert missing == [], "guard_core/README.md has no item for these, under The agent's own rule"


def test_every_format_has_a_row():
    missing = [item.label for item in FORMATS if f"| {item.label} |" not in ENGINE]
    assert missing == [], "the table of formats in guard_core/README.md has no row that begins with these"


CLAIMED = {*RECORDED, *REPLAYED, *OWN_RULE}


def test_every_kind_of_finding_is_explained():
    missing = sorted(kind for kind in CLAIMED if f"`{kind}`" not in ENGINE)
    assert missing == [], "the table of findings in guard_core/README.md does not name these"


def test_every_kind_of_finding_has_a_name_on_pages():
    assert CLAIMED - set(KINDS) == set(), "KINDS of inspector/pages/shared/kinds.py has no name for these"
    assert set(KINDS) - CLAIMED == set(), "no finding is of these kinds of inspector/pages/shared/kinds.py"


def pages(patterns, prefix=""):
    for item in patterns:
        if isinstance(item, URLResolver):
            yield from pages(item.url_patterns, prefix + str(item.pattern))
        elif isinstance(item, URLPattern) and item.name:
            yield item.name


def test_every_main_page_exists_and_is_described():
    main = {name for _, name in (*MAIN_PAGES, *SESSION_PAGES)} | {"upload", "import_detail", "compaction"}
    assert main - set(pages(get_resolver().url_patterns)) == set()
    missing = {name for name in main if f"`{name}`" not in PAGES}
    assert missing == set(), "the table of pages in inspector/README.md has no row for these"


@pytest.mark.parametrize(
    "name", sorted(set(re.findall(r'env\.\w+\(\s*"([A-Z_]+)"', SETTINGS)) - {"XDG_DATA_HOME", "HASHED_STATIC"})
)
def test_every_environment_variable_is_in_the_readme(name):
    assert f"`{name}`" in (ROOT / "README.md").read_text()
