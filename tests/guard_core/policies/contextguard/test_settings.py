"""Profiles are defaults by name; every constant can be set, and wrong ones are refused with what is allowed."""

import pytest

from guard_core.errors import SettingError, UnknownName
from guard_core.policies import get_policy
from guard_core.policies.contextguard import MENDS


def test_the_profiles_differ_where_the_commits_do():
    early, current = (get_policy("contextguard", profile=name).settings for name in ("early", "current"))
    assert (early.default_factor, current.default_factor) == (2.0, 2.5)
    assert (early.large_inclusive, current.large_inclusive) == (False, True)
    assert (early.max_passes, current.max_passes) == (1, 3)
    assert (early.marker_dash, current.marker_dash) == ("—", "-")
    assert (early.count_tools, early.count_inline, current.count_tools) == (False, False, True)


def test_fixed_is_current_with_every_mend():
    fixed = get_policy("contextguard", profile="fixed").settings
    assert all(getattr(fixed, name) for name in MENDS)
    assert fixed.default_factor == get_policy("contextguard").settings.default_factor


def test_a_mend_can_be_set_on_any_profile():
    settings = get_policy("contextguard", profile="early", mend_loop="yes").settings
    assert settings.mend_loop
    assert not settings.mend_retry


def test_settings_are_read_from_text():
    settings = get_policy("contextguard", cap="3", buffer="15%", count_tools="no", large_window="100_000").settings
    assert (settings.cap, settings.buffer, settings.count_tools, settings.large_window) == (3.0, "15%", False, 100_000)


@pytest.mark.parametrize("name", ["cap", "max_passes", "small_ratio", "count_tools", "fallback_excerpt"])
@pytest.mark.parametrize("value", ["", "x", "nan", "-1", "inf", "None"])
def test_a_wrong_value_is_refused_and_names_the_setting(name, value):
    with pytest.raises(SettingError, match=name):
        get_policy("contextguard", **{name: value})


def test_contradictions_are_refused():
    with pytest.raises(SettingError, match="above the cap"):
        get_policy("contextguard", floor=3, cap=2)
    with pytest.raises(SettingError, match="Passes \\(max_passes\\) is a whole number from 1"):
        get_policy("contextguard", max_passes=0)


def test_unknown_names_say_what_is_known():
    with pytest.raises(UnknownName, match="known are none, contextguard"):
        get_policy("nothing")
    with pytest.raises(UnknownName, match="ContextGuard has current, tail, early, fixed"):
        get_policy("contextguard", profile="newest")
    with pytest.raises(SettingError, match="it has buffer, default_factor"):
        get_policy("contextguard", bufer=1)
    with pytest.raises(SettingError, match="No compaction has no setting 'cap'; it has none"):
        get_policy("none", cap=1)
