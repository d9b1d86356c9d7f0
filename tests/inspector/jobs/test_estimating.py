"""Tokenizer counts: of each text once, stored with the session, broken off and taken up again without harm."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest
from django_tasks_db.models import DBTaskResult

from guard_core.estimation.comparison import compare
from guard_core.estimation.forecast import forecast
from guard_core.estimation.measurement import interpolate
from guard_core.tokens import tokenizer
from inspector.jobs import estimating, kinds, queue
from inspector.jobs.queue import NO_ROW
from inspector.models import Estimate, Payload, Session, TextCount, default_project
from inspector.storage import deleting, estimates, loading
from inspector.storage.appending import append
from tests.builders import model, session, user
from tests.inspector.pages.conftest import stored, stored_sample
from tests.inspector.storage.test_chunks import beginning, whole

pytestmark = pytest.mark.django_db


@pytest.fixture
def coding() -> Session:
    """144 steps, three compactions."""
    return stored_sample("long-coding", title="long coding")


@pytest.fixture
def small() -> Session:
    """10 steps, one compaction."""
    return stored_sample("small-window")


def finish() -> None:
    while estimating.pending().exists():
        DBTaskResult.objects.all().delete()
        estimating.TOKEN_COUNTS.run("test")


def test_an_import_asks_for_the_counts_of_its_session(bring, recording):
    bring(recording)
    kinds.import_recording(NO_ROW)
    assert DBTaskResult.objects.get(queue_name="count_tokens").priority < 0
    assert estimates.load_counts(Session.unscoped.get()) is None


def test_the_counts_are_those_of_the_tokenizer(bring, recording, agent_session):
    bring(recording)
    finish()
    row = Session.unscoped.get()
    counts = estimates.load_counts(row)
    for column, encoding in estimating.ENCODINGS.items():
        assert counts[column].tolist() == tokenizer.count_events(loading.load_events(row, 0, 99), encoding).tolist()


def test_a_text_of_two_sessions_is_counted_once():
    stored(session(user("the same words"), model("an answer")), title="one")
    finish()
    TextCount.unscoped.update(o200k=1_000)  # which no tokenizer would count
    second = stored(session(user("the same words"), model("another answer")), title="two")
    finish()
    same, other = estimates.load_counts(second)["o200k"].tolist()
    assert (same, other < 10) == (1_000, True)


@pytest.mark.once
def test_the_errors_are_those_that_the_engine_measures(coding):
    finish()
    estimated, ledger = estimates.load_result(coding), loading.load_ledger(coding)
    assert estimated.forecast == forecast(ledger)
    assert estimated.interpolated == interpolate(ledger).overall
    assert estimated.estimators == compare(loading.load_session(coding), ledger)
    assert estimated.weighed["o200k_base"].calls == estimated.interpolated.calls
    assert estimated.points.recorded == [int(ledger.steps["prompt_tokens"][step]) for step in estimated.points.steps]


def test_a_slice_that_is_broken_off_leaves_whole_steps_behind():
    count = estimating.STEP_EVENTS + 40
    row = stored(session(*(user(f"question {number}") for number in range(count))))
    estimating.TOKEN_COUNTS.run("test", seconds=0)
    assert estimates.progress(row) == estimating.STEP_EVENTS
    finish()
    assert len(estimates.load_counts(row)["cl100k"]) == count


@pytest.mark.once
@pytest.mark.long
def test_a_long_session_is_counted_with_one_tokenizer_after_the_other():
    """In `make test`: `test_a_short_session_counts_what_a_long_one_has_left_for_later`."""
    texts = ("words that are shared", "an answer", "einige andere Wörter")
    short = stored(session(*map(user, texts[1:])), title="short")
    finish()
    row = stored(session(*(user(texts[number % 3]) for number in range(estimates.LONG_EVENTS + 1))), title="long")
    half = estimating.count_some(row, row.events - 1)
    assert half == row.events
    estimating.count_some(row, 0)
    begun = TextCount.objects.of(row.project_id).get(cl100k=estimating.NOT_COUNTED)
    assert begun.o200k == tokenizer.count([texts[0]])[0]
    assert tokenizer.load.cache_info().currsize == 1
    estimating.count_some(row, half)
    assert tokenizer.load.cache_info().currsize == 1
    assert not TextCount.objects.of(row.project_id).filter(cl100k=estimating.NOT_COUNTED).exists()
    finish()
    for column, encoding in estimating.ENCODINGS.items():
        assert estimates.load_counts(row)[column][:3].tolist() == tokenizer.count(texts, encoding)
        assert estimates.load_counts(short)[column].tolist() == tokenizer.count(texts[1:], encoding)
    assert estimates.progress(row) == row.events


def test_a_short_session_counts_what_a_long_one_has_left_for_later(small):
    estimating.count_some(small, 0)
    TextCount.unscoped.update(cl100k=estimating.NOT_COUNTED)
    finish()
    assert (estimates.load_counts(small)["cl100k"] >= 0).all()


def test_measuring_makes_way_for_a_job_that_waits(small):
    queue.enqueue("index_texts", "another", priority=-50)
    looking = replace(estimating.TOKEN_COUNTS, work_on=partial(estimating.take_step, look_every=0))
    looking.run("test", seconds=30)
    assert estimates.load_counts(small) is not None
    assert estimates.load_result(small) is None
    finish()
    assert estimates.load_result(small).interpolated is not None


def test_a_session_that_has_grown_is_counted_again(small):
    finish()
    Session.unscoped.update(revision=small.revision + 1)
    small.refresh_from_db()
    assert estimates.load_counts(small) is None
    finish()
    assert estimates.load_result(small).interpolated is not None


def test_a_session_that_grows_while_it_is_measured_is_begun_again_without_an_error(caplog):
    row = stored(beginning(whole, 40))
    for _ in range(2):
        assert estimating.take_step(row)
    append(Session.unscoped.get(), whole.events[40:60])
    assert estimating.take_step(row)
    assert not caplog.records
    finish()
    grown = Session.unscoped.get()
    assert len(estimates.load_counts(grown)["o200k"]) == grown.events == 60
    assert estimates.load_result(grown).error == ""


def test_a_count_that_was_swept_away_is_made_again(small):
    estimating.count_some(small, 0)
    Estimate.objects.in_session(small).create(revision=small.revision, counted=small.events)
    TextCount.unscoped.all().delete()
    finish()
    assert estimates.load_counts(small)["o200k"].sum() > 0


def test_a_session_without_usage_has_counts_and_no_errors():
    row = stored(session(user("a question"), model("an answer"), reported=False))
    finish()
    assert estimates.load_counts(row)["o200k"].tolist() == [2, 2]
    assert estimates.load_result(row) == estimates.EstimationResult()


def test_one_session_that_cannot_be_read_keeps_no_other_waiting():
    row = stored(session(user("a question")), title="one")
    Payload.objects.update(body=b"no text of ours")
    finish()
    assert "internal error" in estimates.load_result(row).error


def test_counts_go_with_the_texts(small):
    finish()
    deleting.delete(default_project(), Session.unscoped.all())
    deleting.purge(Session.unscoped.get().deleted)
    assert not TextCount.unscoped.exists()
    assert not Estimate.unscoped.exists()


def test_a_measurement_that_made_way_repeats_no_finished_part(small):
    parts, done = estimating.MeasuredParts(), []
    for _ in range(2):
        parts.of(small)("forecast", lambda: done.append("forecast"))
    assert done == ["forecast"]
    small.revision += 1
    parts.of(small)("forecast", lambda: done.append("again"))
    assert done == ["forecast", "again"]
