"""Mistral Vibe: the threshold of each version where none is configured."""

from __future__ import annotations

import pytest

from guard_core.errors import SettingError
from guard_core.policies.mistral_vibe.settings import default_threshold
from guard_core.rules.base import Moment, Stretch
from guard_core.rules.mistral_vibe import AGENT


@pytest.mark.parametrize(
    ("window", "threshold"),
    [
        (262_144, 202_144),
        (400_000, 256_000),
        (128_000, 68_000),
        (100_000, 50_000),  # the least
        (20_000, 10_000),
        (13_334, 10_000),
    ],
)
def test_the_default_of_3_0_3_leaves_60_000_tokens_of_the_window_within_bounds(window, threshold):
    assert default_threshold(window) == threshold


@pytest.mark.parametrize(
    ("version", "threshold", "counter"),
    [
        ("store 10", 202_144, "total_pending"),
        ("3.0.3", 202_144, "total_pending"),
        ("store 9", 200_000, "total"),
        ("3.0.2", 200_000, "total"),
        ("", 200_000, "total"),
    ],
)
def test_the_default_and_the_count_are_those_of_the_version(version, threshold, counter):
    rule = AGENT.ruled(Stretch(0, 1, version, "m", None), {})
    assert (rule.threshold, rule.counter) == (threshold, counter)


@pytest.mark.parametrize(
    ("version", "profile"),
    [
        ("store 10", "3.0.3"),
        ("3.0.3", "3.0.3"),
        ("store 9", "3.0"),
        ("3.0.2", "3.0"),
        ("2.26.1", "3.0"),
        ("2.25.8", "2.18"),
        ("1.3.5", "2.18"),
        ("", "3.0"),
    ],
)
def test_a_replay_plays_the_rule_of_the_version(version, profile):
    assert AGENT.ruled(Stretch(0, 1, version, "m", None), {}).profile == profile


def test_a_threshold_of_0_is_off_to_3_0_2_and_refused_from_3_0_3_on():
    rule = AGENT.ruled(Stretch(0, 1, "3.0.2", "m", None), {"auto_compact_threshold": "0"})
    assert (rule.threshold, rule.checks, rule.reason) == (None, Moment.NEVER, "automatic compaction is switched off")
    with pytest.raises(SettingError):
        AGENT.ruled(Stretch(0, 1, "3.0.3", "m", None), {"auto_compact_threshold": "0"})
