"""Which steps of a long session the areas list."""

from types import SimpleNamespace

import numpy as np
import pytest

from guard_core.context.classes import RESULTS, ContextClass
from guard_core.context.report import class_label, shown_steps


@pytest.mark.parametrize("every", [10, 250, 10**9], ids=["many", "some", "no"])
def test_few_steps_keep_the_ends_the_extremes_and_the_call_before_each_listed_compaction(every):
    steps = np.arange(10_000)
    compacted = steps % every == every - 1
    tokens = 1_000 + 7 * (steps % every) % 9_973
    shown = shown_steps(SimpleNamespace(sent=SimpleNamespace(tokens=tokens, compacted=compacted)), 400)
    assert len(shown) <= 400
    assert (np.diff(shown) > 0).all()
    assert {0, 9_999, int(np.argmax(tokens)), int(np.argmin(tokens))} <= set(shown.tolist())
    listed = set(shown.tolist())
    if 0 < compacted.sum() <= 100:
        assert set(np.flatnonzero(compacted).tolist()) <= listed
        assert {step - 1 for step in np.flatnonzero(compacted).tolist()} <= listed


def test_results_of_a_tool_that_the_file_does_not_name_are_called_so():
    assert class_label(ContextClass(RESULTS, 7), {7: "bash"}) == "bash results"
    assert class_label(ContextClass(RESULTS, 0), {7: "bash"}) == "results of a tool without a name"
