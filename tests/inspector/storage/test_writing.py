"""Threads that write queue up, and none waits for ever."""

from contextlib import nullcontext
from threading import Event, Thread, Timer

import pytest
from django.db import OperationalError, connection

from inspector.models import Project
from inspector.project.trouble import LOCKED, trouble_of
from inspector.storage.writing import in_turn

pytestmark = pytest.mark.django_db(transaction=True)
PATIENCE = 30.0  # seconds


def in_a_thread(work) -> Thread:
    def run():
        try:
            work()
        finally:
            connection.close()

    thread = Thread(target=run)
    thread.start()
    return thread


@pytest.fixture
def writing():
    """Another thread in the middle of a transaction, which ends when the event is set."""
    began, may_end = Event(), Event()

    def write():
        with in_turn():
            Project.objects.filter(name="").update(name="")
            began.set()
            may_end.wait(PATIENCE)

    thread = in_a_thread(write)
    assert began.wait(PATIENCE)
    yield may_end
    may_end.set()
    thread.join(PATIENCE)


def waits() -> bool:
    """Does a second writer wait: SQLite has one."""
    return connection.vendor == "sqlite"


def test_a_second_thread_writes_when_the_first_has_ended(writing):
    written = Event()

    def write():
        with in_turn():
            written.set()

    second = in_a_thread(write)
    assert written.wait(0.2 if waits() else PATIENCE) is not waits()
    writing.set()
    second.join(PATIENCE)
    assert written.is_set()


def test_who_waits_too_long_is_told_that_the_database_is_busy(writing, settings):
    settings.LOCK_SECONDS = 1
    expected = pytest.raises(OperationalError) if waits() else nullcontext()
    with expected as error, in_turn():
        pass
    assert (trouble_of(error.value) if error else None) is (LOCKED if waits() else None)


def test_what_was_waited_for_the_turn_is_not_waited_for_the_lock_again(writing, settings):
    settings.LOCK_SECONDS, usual = 10, patience()
    Timer(1.0, writing.set).start()
    with in_turn():
        left = patience()
    assert left is None if not waits() else 0 < left <= 9
    assert patience() == usual


def patience():
    """Seconds that a statement waits for SQLite's write lock; PostgreSQL has many writers."""
    return getattr(connection, "patience", None)


def test_a_transaction_within_another_does_not_wait_for_itself():
    with in_turn(), in_turn():
        assert connection.in_atomic_block
