"""Results of long replays come back as they were, are bounded in size, and go with their session."""

from __future__ import annotations

import os
from pathlib import Path
from uuid import uuid4

import pytest
from django.utils import timezone

from guard_core.views import LONG
from inspector.data_folder import sweeping
from inspector.models import Session
from inspector.replays import analysis, stored
from inspector.replays.choice import Choice
from inspector.storage import deleting
from tests.inspector.pages.conftest import stored_sample

pytestmark = [pytest.mark.django_db, pytest.mark.once]  # results are files
CHOICE = Choice(window="20000")


@pytest.fixture(autouse=True)
def data_folder(tmp_path: Path, settings) -> Path:
    settings.DATA_DIR = tmp_path
    settings.INCOMING_DIR = tmp_path / "incoming"
    settings.INCOMING_DIR.mkdir()
    return tmp_path


@pytest.fixture
def coding() -> Session:
    return stored_sample("long-coding", title="long coding")


def replayed(row: Session, choice: Choice = CHOICE) -> tuple[analysis.Analysis, int]:
    """The analysis as a process of its own makes it, and how many steps were replayed for it."""
    analysis.forget()
    steps: list[int] = []
    return analysis.analyse_whole(row, choice, steps.append), len(steps)


def test_a_second_look_replays_nothing_and_says_the_same(coding):
    first, steps = replayed(coding)
    again, none = replayed(coding)
    assert steps > 0
    assert none == 0
    assert again.replayed.digest() == first.replayed.digest()
    assert again.replayed_findings == first.replayed_findings
    assert again.recorded_findings == first.recorded_findings
    assert again.data.replayed is not None


def test_a_replay_with_long_views_comes_back_as_it_was_and_is_not_stored_where_they_are_too_many(coding):
    choice = Choice(policy="agent-framework-tool-result")
    first, _ = replayed(coding, choice)
    again, none = replayed(coding, choice)
    assert none == 0
    assert max(len(record.after) for record in first.replayed.compactions) > LONG
    assert again.replayed.digest() == first.replayed.digest()
    assert again.replayed.compactions == first.replayed.compactions
    assert stored.is_storable(first.replayed)
    assert not stored.is_storable(first.replayed, most=1_000)


@pytest.mark.parametrize("damage", [b"", b"short", bytes(40), b"x" * 4_000])
def test_a_damaged_result_is_replayed_again_and_replaced(coding, damage):
    first, _ = replayed(coding)
    place = stored.place_of(coding, CHOICE)
    whole = place.read_bytes()
    place.write_bytes(damage)
    again, steps = replayed(coding)
    assert steps > 0
    assert again.replayed.digest() == first.replayed.digest()
    assert place.read_bytes() == whole


def test_other_settings_and_another_window_have_results_of_their_own(coding):
    replayed(coding)
    assert replayed(coding, Choice(window="30000"))[1] > 0
    place = stored.place_of(coding, Choice())
    coding.window_override = 90_000
    assert stored.place_of(coding, Choice()) != place


def test_a_result_that_cannot_be_written_costs_nothing_but_the_next_look(coding, data_folder):
    (data_folder / "replays").write_text("in the way")
    assert replayed(coding)[1] > 0
    assert replayed(coding)[1] > 0


def test_results_go_with_their_session(coding):
    replayed(coding)
    place = stored.place_of(coding, CHOICE)
    assert place.is_file()
    Session.unscoped.filter(pk=coding.pk).update(deleted=timezone.now())
    deleting.purge(timezone.now())
    assert not place.parent.exists()


def test_a_sweep_removes_results_of_sessions_that_are_gone_and_no_others(coding, data_folder):
    replayed(coding)
    stray = data_folder / "replays" / str(uuid4()) / "x.replay"
    stray.parent.mkdir()
    stray.write_bytes(b"x")
    sweeping.sweep_daily()
    assert not stray.parent.exists()
    assert stored.place_of(coding, CHOICE).is_file()


def test_the_results_that_were_not_used_for_longest_make_room(coding, data_folder):
    folder = data_folder / "replays" / str(coding.pk)
    folder.mkdir(parents=True)
    for age in (1, 2, 3):
        path = folder / f"{age}.replay"
        with path.open("wb") as file:
            file.truncate(stored.MOST_BYTES // 2 - 10)
        os.utime(path, (1_000_000 - age, 1_000_000 - age))
    sweeping.sweep_daily()
    assert sorted(path.name for path in folder.iterdir()) == ["1.replay", "2.replay"]
