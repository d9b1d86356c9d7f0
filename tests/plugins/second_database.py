"""What runs once more on PostgreSQL (`--second-database`): every test that can reach the database of the suite, and of
the browser's tests one walk through the application.

The rest of the browser's tests look at pages, which are the same whatever database their rows come from. So are the
pages of ONE_SESSION, which change nothing: they are computed from what `inspector.storage` loads, whose tests run on
both, and `pages/test_hostile_requests.py` asks each of their addresses on both.
"""

from __future__ import annotations

from pathlib import Path

import pytest

BROWSER = "tests/browser/"
WALK = f"{BROWSER}test_first_light.py"
SERVERS = "tests/services/"
ONE_SESSION = tuple(
    f"tests/inspector/pages/{page}/"
    for page in (
        "avoid",
        "compaction",
        "comparison",
        "context",
        "estimator",
        "facts",
        "overview",
        "policies",
        "replay",
        "steps",
        "triggers",
    )
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--second-database", action="store_true", help="only tests that a second database may change")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A folder of which nothing is repeated is not even read."""
    if not config.getoption("second_database") or not collection_path.is_relative_to(config.rootpath):
        return None
    place = collection_path.relative_to(config.rootpath).as_posix()
    is_looked_at = place.startswith(BROWSER) and place != WALK and collection_path.name.startswith("test_")
    return True if is_looked_at or f"{place}/".startswith(ONE_SESSION) else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("second_database"):
        return
    others = [item for item in items if not is_repeated(item)]
    if others:
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if is_repeated(item)]


def is_repeated(item: pytest.Item) -> bool:
    """Can a second database make a difference to this test."""
    if item.get_closest_marker("once") or item.nodeid.startswith(ONE_SESSION):
        return False
    if item.nodeid.startswith((BROWSER, SERVERS)):
        return item.nodeid.startswith((WALK, SERVERS))
    fixtures = getattr(item, "fixturenames", ())
    return bool(item.get_closest_marker("django_db")) or not {"db", "transactional_db"}.isdisjoint(fixtures)
