"""Each number of the domain against the table it was taken from (specification of ContextGuard, sections 1 and 2)."""

import pytest

from guard_core import defaults

TABLE = {
    "LARGE_WINDOW": 200_000,
    "LARGE_BUFFER": 20_000,
    "SMALL_RATIO": 0.20,
    "EARLY_DEFAULT_FACTOR": 2.0,
    "DEFAULT_FACTOR": 2.5,
    "FACTOR_FLOOR": 1.0,
    "FACTOR_CAP": 5.0,
    "BYTES_PER_TOKEN": 4,
    "SUMMARISER_SHARE": 0.80,
    "OUTPUT_SHARE": 0.50,
    "WORDS_PER_TOKEN": 0.75,
    "FALLBACK_EXCERPT": 200,
    "MAX_TURNS": 20,
    "KEEP_PERCENT": 30,
    "MIN_KEEP": 3,
    "MAX_PASSES": 3,
    "EARLY_MAX_PASSES": 1,
    "WINDOW": 128_000,
    "RECENT_RATIO": 0.20,
}


@pytest.mark.parametrize(("name", "value"), TABLE.items())
def test_it_is_the_number_of_the_table(name, value):
    assert getattr(defaults, name) == value


def test_the_dashes_of_the_end_marker_differ_by_two_bytes():
    assert (len(defaults.EM_DASH.encode()), len(defaults.HYPHEN.encode())) == (3, 1)
