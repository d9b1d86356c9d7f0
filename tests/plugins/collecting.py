"""What costs little or nothing while tests are collected, which every process of a parallel run does for itself.

The interpreter looks for no garbage in the meantime: modules, classes and tests live as long as the process. They are
left out of every later search, too, which would look at all of them again and find nothing.
"""

from __future__ import annotations

import gc

import pytest

gc.disable()


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()
