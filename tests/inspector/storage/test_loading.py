"""Reading what is stored, beside others who write."""

from __future__ import annotations

import threading

import pytest
from django.db import connection

from inspector.models import Session
from inspector.storage import loading
from tests.builders import model, session, user
from tests.inspector.pages.conftest import stored


@pytest.mark.django_db(transaction=True)
def test_a_long_session_is_read_while_the_reader_and_others_write():
    spoken = [(user if number % 2 == 0 else model)(f"message {number}") for number in range(2 * loading.FEW + 3)]
    row = stored(session(*spoken))
    events = loading.stored_events(row)
    read = [next(events)]
    other = threading.Thread(target=_write_elsewhere)
    other.start()
    other.join()
    Session.unscoped.update(title="written by the reader")
    read += events
    assert [event.parts for event in read] == [event.parts for event in spoken]


def _write_elsewhere() -> None:
    Session.unscoped.update(title="written by another connection")
    connection.close()
