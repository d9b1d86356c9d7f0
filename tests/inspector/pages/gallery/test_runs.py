"""Runs of the gallery: one job for a choice, cancelled at once, never left running."""

from datetime import timedelta

import pytest
from django.utils import timezone
from django_tasks_db.models import DBTaskResult

from guard_core.simulator.scenarios import SCENARIOS
from inspector.jobs import recovery
from inspector.jobs.leased import MAX_ATTEMPTS
from inspector.models import GalleryRun, default_project
from inspector.pages.gallery import runs as gallery
from inspector.pages.gallery.runs import GALLERY_RUNS, cancel_run, rows_of, run_gallery, start_run
from inspector.pages.gallery.table import PolicyChoice

pytestmark = pytest.mark.django_db
CURRENT = (PolicyChoice("contextguard", "current"),)


NAMES = ("Stress_8k_ToolBurst", "Stress_8k_HeavyToolDefinitions", "Brutal_8k_SystemPromptLargerThanWindow")
FEW = [SCENARIOS[name] for name in NAMES]  # instead of all


def played(chosen=CURRENT):
    run = start_run(default_project(), chosen)
    run_gallery(str(run.pk), FEW, note_every=0.0)
    run.refresh_from_db()
    return run


def test_a_run_stores_a_row_for_every_scenario_and_guard():
    run = played((*CURRENT, PolicyChoice("none", "")))
    assert (run.state, run.done, run.percent) == ("done", len(SCENARIOS), 100)
    assert [row.scenario for row in rows_of(run)[::2]] == list(NAMES)
    assert [(row.policy, row.loops) for row in rows_of(run)][2:4] == [("contextguard", 1), ("none", 0)]


def test_the_same_choice_is_not_played_twice():
    run = played()
    assert start_run(default_project(), CURRENT) == run
    assert start_run(default_project(), (PolicyChoice("none", ""),)) != run


def test_a_run_under_way_is_joined():
    assert start_run(default_project(), CURRENT) == start_run(default_project(), CURRENT)
    assert DBTaskResult.objects.count() == 1


def test_a_result_of_another_engine_is_made_again():
    run = played()
    GalleryRun.unscoped.update(engine="another")
    assert start_run(default_project(), CURRENT) != run


def test_a_waiting_run_is_cancelled_at_once_and_never_played():
    run = start_run(default_project(), CURRENT)
    cancel_run(run)
    run_gallery(str(run.pk))
    run.refresh_from_db()
    assert (run.state, run.result) == ("cancelled", None)


def test_a_running_run_notices_at_its_next_scenario():
    run, seen = start_run(default_project(), CURRENT), []

    def cancelled_meanwhile():
        for scenario in FEW:
            seen.append(scenario.name)
            cancel_run(run)
            yield scenario

    run_gallery(str(run.pk), cancelled_meanwhile(), note_every=0.0)
    run.refresh_from_db()
    assert (len(seen), run.state, run.result) == (1, "cancelled", None)


def test_a_run_of_a_dead_worker_is_queued_again_and_then_given_up():
    run = start_run(default_project(), CURRENT)
    late = timezone.now() - timedelta(seconds=16)
    rows = GalleryRun.unscoped.filter(pk=run.pk)
    rows.update(state="running", lease="dead", heartbeat=late, attempts=1)
    assert GALLERY_RUNS.recover() == 1
    assert rows.get().state == "received"
    rows.update(state="running", lease="dead", heartbeat=late, attempts=MAX_ATTEMPTS)
    GALLERY_RUNS.recover()
    assert rows.get().state == "failed"
    assert "died 3 times" in rows.get().message


def test_a_living_worker_keeps_its_run():
    run = start_run(default_project(), CURRENT)
    GalleryRun.unscoped.filter(pk=run.pk).update(state="running", lease="alive", heartbeat=timezone.now())
    assert GALLERY_RUNS.recover() == 0


def ending_with(error: type[BaseException]):
    """A scenario, and an end instead of the next."""
    yield FEW[0]
    raise error


def test_a_worker_that_is_asked_to_end_hands_its_run_back():
    class Stop(BaseException):
        pass

    run = start_run(default_project(), CURRENT)
    with pytest.raises(Stop):
        run_gallery(str(run.pk), ending_with(Stop))
    recovery.hand_back(str(run.pk))
    run.refresh_from_db()
    assert (run.state, run.lease, run.attempts) == ("received", "", 0)
    assert DBTaskResult.objects.count() == 2


def test_a_scenario_that_cannot_be_played_is_told_in_words():
    run = start_run(default_project(), CURRENT)
    with pytest.raises(ZeroDivisionError):
        run_gallery(str(run.pk), ending_with(ZeroDivisionError))
    run.refresh_from_db()
    assert run.state == "failed"
    assert "internal error" in run.message


def test_a_scenario_opens_as_the_same_recording_every_time(folders):
    first = gallery.open_scenario(default_project(), SCENARIOS["Stress_8k_ToolBurst"])
    second = gallery.open_scenario(default_project(), SCENARIOS["Stress_8k_ToolBurst"])
    assert first.recording == second.recording
