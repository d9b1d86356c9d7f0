"""How many examples a law is tried on: 300, or EXAMPLES, which `make soak` sets to thousands.

300 examples of all laws cost three minutes of a processor. `make test` tries those of DEAR, which cost more than the
others, on 30, and `make long` on 300.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

USUAL, FEW = 300, 30
EXAMPLES = int(os.environ.get("EXAMPLES", USUAL))
DEAR = (  # how the ids of laws begin
    "tests/guard_core/findings/test_arising.py",
    "tests/guard_core/findings/test_kinds.py",
    "tests/guard_core/findings/test_presence.py",
    "tests/guard_core/recordings/formats/test_capture.py",
    "tests/guard_core/recordings/formats/test_otlp.py",
    "tests/guard_core/test_view_sums.py",
    *(
        f"tests/properties/test_{name}"
        for name in (
            "attribution_laws.py",
            "bridge_laws.py",
            "claim_laws.py",
            "context_laws.py",
            "corpus_laws.py",
            "findings_laws.py",
            "growth_laws.py",
            "guarding_laws.py",
            "lane_laws.py",
            "outcome_laws.py",
            "policy_laws.py",
            "recording_readers.py::test_a_",
            "recording_readers.py::test_any_",
            "recording_readers.py::test_values_",
            "recording_readers.py::test_what_the_strict",
            "recording_round_trips.py",
            "replay_laws.py",
            "request_laws.py",
            "rule_laws.py",
            "sweep_laws.py",
        )
    ),
)

settings.register_profile(
    "laws",
    max_examples=EXAMPLES,
    deadline=None,  # no test may fail because a machine is slow
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("laws")


@pytest.hookimpl(trylast=True)  # of what the other plugins have left
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if "EXAMPLES" in os.environ or config.getoption("long"):
        return
    for law in {item.function for item in items if is_dear(item)}:
        settings(max_examples=FEW)(law)


def is_dear(item: pytest.Item) -> bool:
    """Does `make test` try a law on fewer examples than others."""
    return item.nodeid.startswith(DEAR) and getattr(item.function, "is_hypothesis_test", False)
