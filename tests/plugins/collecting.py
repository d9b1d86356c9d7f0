"""Garbage is looked for where there may be some: not among what lives as long as the process, and rarely.

While tests are collected, which every process of a parallel run does for itself, nothing is looked for. Modules,
classes and tests are left out of every later search, too, which would look at all of them again and find nothing.
"""

from __future__ import annotations

import gc

import pytest

# New objects between two searches, and searches between two larger ones: tests make many values and few cycles, and a
# search of all takes a tenth of a second.
NEW, YOUNG, OLD = 20_000, 20, 20

gc.disable()


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    gc.freeze()
    gc.set_threshold(NEW, YOUNG, OLD)
    gc.enable()
