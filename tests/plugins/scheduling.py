"""Which process of a parallel run gets which tests: a file stays together, so that what its tests share is set up once,
and the folders that wait longest for servers, a browser, requests or many examples begin.

xdist's own `loadgroup` cannot say it: it marks the ids of tests in a way that pytest 9.2 no longer reads.
"""

from __future__ import annotations

from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

ONE_BROWSER = "tests/browser/"  # its server and its browser are shared by the folder
FIRST = (ONE_BROWSER, "tests/services/", "tests/inspector/pages/", "tests/properties/")


class ByFile(LoadScopeScheduling):
    """A file is one unit of work, and so is the folder of the browser; they begin in the order of collection."""

    def _split_scope(self, nodeid: str) -> str:
        return ONE_BROWSER if nodeid.startswith(ONE_BROWSER) else nodeid.partition("::")[0]


def rank(nodeid: str) -> int:
    """The place of a test's folder among those that begin."""
    return next((place for place, folder in enumerate(FIRST) if nodeid.startswith(folder)), len(FIRST))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: rank(item.nodeid))


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByFile:
    config.option.loadscopereorder = False  # the number of tests in a file says little about its time
    return ByFile(config, log)
