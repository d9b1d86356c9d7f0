"""How many cases: a hundred per law while working, enough for 5,000 in all where CI is set."""

import os

from hypothesis import HealthCheck, settings

_COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large]}
settings.register_profile("working", max_examples=100, **_COMMON)
settings.register_profile("ci", max_examples=600, **_COMMON)
settings.load_profile("ci" if os.environ.get("CI") else "working")
