"""How often something may be done."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from inspector.accounts import limits
from inspector.accounts.limits import Limit
from inspector.models import Spent

pytestmark = pytest.mark.django_db
TWICE = Limit("a test", 2, timedelta(minutes=5))


def test_so_many_times_and_no_more_until_the_window_is_over():
    assert [limits.spend(TWICE, "a") for _ in range(2)] == [0, 0]
    assert 295 <= limits.spend(TWICE, "a") <= 300
    Spent.objects.update(ends=timezone.now())
    assert limits.spend(TWICE, "a") == 0


def test_each_is_counted_alone():
    limits.spend(TWICE, "a", "1")
    limits.spend(TWICE, "a", "1")
    assert limits.spend(TWICE, "a", "1") > 0
    assert limits.spend(TWICE, "a", "2") == 0
    assert limits.spend(Limit("another", 2, TWICE.window), "a", "1") == 0


def test_what_is_forgotten_begins_anew():
    limits.spend(TWICE, "a")
    limits.spend(TWICE, "a")
    limits.forget(TWICE, "a")
    assert limits.spend(TWICE, "a") == 0


def test_counts_that_are_over_are_removed():
    limits.spend(TWICE, "over")
    Spent.objects.update(ends=timezone.now())
    limits.spend(TWICE, "going on")
    limits.drop_ended()
    assert Spent.objects.count() == 1


def test_nothing_that_is_counted_names_anyone():
    limits.spend(TWICE, "alice", "10.0.0.1")
    assert "alice" not in Spent.objects.get().key


def test_a_clock_that_is_set_back_keeps_nobody_out():
    limits.spend(TWICE, "a")
    limits.spend(TWICE, "a")
    Spent.objects.update(ends=timezone.now() + timedelta(hours=1))  # by the clock as it was before
    assert [limits.spend(TWICE, "a") for _ in range(2)] == [0, 0]
    assert 295 <= limits.spend(TWICE, "a") <= 300
