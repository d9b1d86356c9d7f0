"""Which errors are trouble of the machine, and what is said of them."""

from __future__ import annotations

import errno

import pytest
from django.db import DataError, OperationalError

from inspector.project.trouble import DISK_FULL, LOCKED, NO_DATABASE, UNWRITABLE, trouble_of


@pytest.mark.parametrize(
    ("error", "trouble"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), DISK_FULL),
        (OSError(errno.EDQUOT, "Disk quota exceeded"), DISK_FULL),
        (OSError(0, "No space left on device"), DISK_FULL),
        (OSError(errno.EROFS, "Read-only file system"), UNWRITABLE),
        (OperationalError("database or disk is full"), DISK_FULL),
        (OperationalError("database is locked"), LOCKED),
        (OperationalError("attempt to write a readonly database"), UNWRITABLE),
        (OperationalError("unable to open database file"), NO_DATABASE),
        (OperationalError("disk I/O error"), NO_DATABASE),
    ],
)
def test_trouble_is_known_by_its_code_or_words(error, trouble):
    assert trouble_of(error) == trouble


@pytest.mark.parametrize("error", [OSError(errno.ENOENT, "No such file"), DataError("too long"), ValueError("x"), None])
def test_anything_else_is_no_trouble_of_the_machine(error):
    assert trouble_of(error) is None


@pytest.mark.parametrize(("state", "trouble"), [("53100", DISK_FULL), ("55P03", LOCKED), (None, NO_DATABASE)])
def test_trouble_of_postgresql_is_known_by_its_state(state, trouble):
    class DriverError(Exception):
        sqlstate = state

    DriverError.__module__ = "psycopg.errors"
    error = OperationalError("words in whatever language the server speaks")
    error.__cause__ = DriverError()
    assert trouble_of(error) == trouble


@pytest.mark.parametrize("trouble", [DISK_FULL, LOCKED, UNWRITABLE, NO_DATABASE])
def test_every_trouble_says_what_to_do_and_what_became_of_the_request(trouble):
    assert trouble.status in (503, 507)
    assert "try again" in trouble.sentence.lower() or "check" in trouble.sentence
    assert trouble.sentence.endswith("Nothing was changed.")
    assert "mistake" not in trouble.words
