"""A comparison of all policies is computed once, comes back as it was, and is handed over where it takes long."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from guard_core.policies import POLICIES
from inspector.models import Session
from inspector.replays import comparing
from inspector.replays.choice import Choice
from inspector.replays.messages import POLICIES as ALL_POLICIES
from inspector.replays.messages import PROFILES
from inspector.replays.stored import FOLDER
from tests.guard_core.outcomes.cast import counted
from tests.inspector.pages.conftest import stored as session_of

pytestmark = [pytest.mark.django_db, pytest.mark.once]  # results are files
DEFAULTS = Choice()
SIZES = tuple(20_000 + 6_000 * k for k in range(40))


@pytest.fixture(autouse=True)
def data_folder(tmp_path: Path, settings) -> Path:
    settings.DATA_DIR = tmp_path
    return tmp_path


@pytest.fixture
def growing() -> Session:
    return session_of(counted(SIZES))


def compared(
    row: Session, choice: Choice = DEFAULTS, work: str = ALL_POLICIES
) -> tuple[comparing.PolicyComparison, int]:
    """The comparison as a process of its own makes it, and how many steps were replayed for it."""
    comparing.forget()
    steps: list[int] = []
    return comparing.compare_whole(row, choice, work, steps.append), len(steps)


def test_a_second_look_replays_nothing_and_says_the_same(growing):
    first, steps = compared(growing)
    again, none = compared(growing)
    assert steps > 0 == none
    assert again == first
    assert [row.policy for row in first.rows] == ["", *POLICIES]


def test_copies_of_the_process_make_the_same_rows(growing, data_folder):
    alone, _ = compared(growing)
    comparing.forget()
    shutil.rmtree(data_folder / FOLDER)
    copied, steps = [], []
    shared = comparing.compare_whole(
        growing, DEFAULTS, ALL_POLICIES, steps.append, processes=2, copied=lambda: copied.append(True)
    )
    assert shared == alone
    assert copied == [True]
    assert max(steps) == comparing.all_steps(growing, ALL_POLICIES)


def test_another_window_and_all_profiles_are_results_of_their_own(growing):
    compared(growing)
    narrow, steps = compared(growing, Choice(window="60000"))
    assert steps > 0
    assert {row.outcome.window for row in narrow.rows if row.policy and row.outcome} == {60_000}
    every, steps = compared(growing, work=PROFILES)
    assert steps > 0
    assert len(every.rows) > len(POLICIES)


def test_settings_of_one_policy_change_nothing(growing):
    compared(growing)
    assert compared(growing, Choice(policy="none"))[1] == 0


def test_rules_that_users_stated_are_looked_up_in_their_texts(growing):
    rows, _ = compared(growing)
    rules = {row.outcome.losses.rules for row in rows.rows if row.outcome}
    assert rules == {1}  # "Never push to main."
