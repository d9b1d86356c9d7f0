"""Which jobs have a worker that lives: by moments of the database's clock, which all workers share.

A clock may be set back: a moment that lies in the future was noted before that, and says nothing of now.
"""

from __future__ import annotations

from datetime import timedelta

from django.db.models import Q
from django.db.models.functions import Now

AHEAD = timedelta(seconds=5)  # by which the clock of another machine may differ


def silent(field: str, lease: timedelta) -> Q:
    """Rows whose moment in a field is older than a lease, or of a clock that has been set back since."""
    return Q(**{f"{field}__lt": Now() - lease}) | Q(**{f"{field}__gt": Now() + AHEAD})


def alive(lease: timedelta) -> Q:
    """Entries of the queue that wait, or that a worker has taken within a lease."""
    return Q(status="READY") | Q(~silent("started_at", lease), status="RUNNING")
