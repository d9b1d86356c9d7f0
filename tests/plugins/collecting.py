"""Garbage is looked for where there may be some: not among what lives as long as the process, and rarely.

While tests are collected, which every process of a parallel run does for itself, nothing is looked for. Modules,
classes and tests are left out of every later search, too, which would look at all of them again and find nothing.

Where several processes collect everything, each begins with other files, so that of a new checkout each compiles some
and finds those of the others compiled: 45 seconds of a processor for three of them, instead of 60. All have the tests
in the same order.
"""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

# New objects between two searches, and searches between two larger ones: tests make many values and few cycles, and a
# search of all takes a tenth of a second.
NEW, YOUNG, OLD = 20_000, 20, 20

TESTS = Path(__file__).resolve().parents[1]

gc.disable()


def pytest_configure(config: pytest.Config) -> None:
    worker = getattr(config, "workerinput", None)
    if worker is not None and config.args == config.getini("testpaths"):
        files = sorted(map(str, TESTS.rglob("test_*.py")))
        begin = len(files) * int(worker["workerid"].removeprefix("gw")) // worker["workercount"]
        config.args[:] = files[begin:] + files[:begin]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.path.parts)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    gc.freeze()
    gc.set_threshold(NEW, YOUNG, OLD)
    gc.enable()
