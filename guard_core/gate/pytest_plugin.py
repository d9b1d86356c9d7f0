"""The pytest plugin `guard_core`: the fixture `assert_compaction`, for tests of one's own agent's recordings."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from guard_core.trace import Trace


@pytest.fixture(name="assert_compaction")
def assert_compaction_fixture() -> Callable[..., Trace]:
    """`guard_core.gate.assert_compaction`."""
    from guard_core.gate.testing import assert_compaction  # not before a test asks for it: it imports numpy

    return assert_compaction
