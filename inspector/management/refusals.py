"""Refusals of commands: one sentence and exit code 2, as of the server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.core.management.base import CommandError

from inspector.data_folder.owner import CommandRefused
from inspector.project.serving import REFUSED


@contextmanager
def refusals() -> Iterator[None]:
    """Ends the command where what is done in the block is refused."""
    try:
        yield
    except CommandRefused as error:
        raise CommandError(str(error), returncode=REFUSED) from error
