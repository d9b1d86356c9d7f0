"""Where the recorded runs of libraries are, and judging a policy by them."""

from __future__ import annotations

from pathlib import Path

import pytest

from guard_core.conformance import check_file
from guard_core.policies import POLICIES

RUNS = Path(__file__).parents[4] / "shared" / "vectors" / "policies"
OWN_RUNS = Path(__file__).parent / "runs"  # of strategies that the facts do not have


def check_equals_the_library(policy: str) -> None:
    """Every recorded run of the library that the policy names is met, figure by figure."""
    judged = POLICIES[policy].judged_by
    outcome = check_file(run_file(f"{judged.library}.{judged.strategy}.json"))
    assert outcome.problem == ""
    differences = [
        f"{verdict.profile}: {difference}" for verdict in outcome.verdicts for difference in verdict.differences
    ]
    assert differences == []
    assert all(verdict.figures for verdict in outcome.verdicts)


def run_file(name: str) -> Path:
    """A file of recorded runs; without the facts the test is skipped, unless the file is ours."""
    if (OWN_RUNS / name).is_file():
        return OWN_RUNS / name
    if not (RUNS / name).is_file():
        pytest.skip("../shared/vectors/policies is absent")
    return RUNS / name
