"""How many examples a law is tried on: 300, or EXAMPLES, which `make soak` sets to thousands.

300 examples of the laws of DEAR cost seconds of a processor: `make test` tries them on as many as it says there, and
`make long` on 300.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

USUAL = 300
EXAMPLES = int(os.environ.get("EXAMPLES", USUAL))
LAWS = "tests/properties/test_"
DEAR = {
    f"{LAWS}claim_laws.py::test_every_claim_about_a_random_replay_is_confirmed": 10,
    f"{LAWS}claim_laws.py::test_every_claim_about_an_altered_sample_is_confirmed": 10,
}

settings.register_profile(
    "laws",
    max_examples=EXAMPLES,
    deadline=None,  # no test may fail because a machine is slow
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("laws")


@pytest.hookimpl(trylast=True)  # once hypothesis has marked its tests
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if "EXAMPLES" in os.environ or config.getoption("long"):
        return
    for law in {item.function: item for item in items if is_dear(item)}.values():
        settings(max_examples=DEAR[law_of(law)])(law.function)


def law_of(item: pytest.Item) -> str:
    """The id of a test without its parameters."""
    return item.nodeid.partition("[")[0]


def is_dear(item: pytest.Item) -> bool:
    """Does `make test` try a law on fewer examples than others."""
    return law_of(item) in DEAR
