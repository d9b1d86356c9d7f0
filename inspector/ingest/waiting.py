"""The answer to a request waits a moment for its import, so that most people never see a progress page."""

from __future__ import annotations

import time
from collections.abc import Callable

from django.conf import settings

from inspector.models import Import

SMALL = 8 * 2**20  # bytes; such a file is read before the answer is due, so the answer can be the session itself
MOST_AWAITED = 50  # imports; as many as static/js/upload.js sends in a request, an archive may hold thousands
LOOK_EVERY = 0.015  # seconds
Wait = Callable[[list[Import]], list[Import]]


def settled(jobs: list[Import]) -> list[Import]:
    """The imports after a short wait for the first small ones: as long as one ends every few seconds.

    They are read in their order. The first that does not end in time is the sign of a worker that is busy or gone.
    """
    for job in jobs[:MOST_AWAITED]:
        end = time.monotonic() + settings.ANSWER_WAIT_SECONDS
        while not job.ended and job.total <= SMALL:
            if time.monotonic() >= end:
                return jobs
            time.sleep(LOOK_EVERY)
            job.refresh_from_db()
    return jobs
