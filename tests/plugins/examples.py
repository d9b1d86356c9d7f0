"""How many examples a law is tried on: EXAMPLES, or fifty. `make soak` sets thousands."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

USUAL = 50
EXAMPLES = int(os.environ.get("EXAMPLES", USUAL))

settings.register_profile(
    "laws",
    max_examples=EXAMPLES,
    deadline=None,  # no test may fail because a machine is slow
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("laws")
