"""Which process of a parallel run gets which tests: those that share one server or one browser stay together.

xdist's own `loadgroup` cannot say it: it marks the ids of tests in a way that pytest 9.2 no longer reads.
"""

from __future__ import annotations

from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

TOGETHER = ("tests/browser/", "tests/services/")


class ByFolder(LoadScopeScheduling):
    """A folder of TOGETHER is one unit of work, any other test is one by itself; the largest units begin."""

    def _split_scope(self, nodeid: str) -> str:
        return next((folder for folder in TOGETHER if nodeid.startswith(folder)), nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByFolder:
    return ByFolder(config, log)
