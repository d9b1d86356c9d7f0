"""What became of the files of a ZIP archive, counted and by reason."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from inspector.ingest.unpacking import outcomes_of
from inspector.models import Import

MAX_LISTED = 100  # files named on the page
NAMED = 4  # of the files that were skipped for one reason; static/js/upload.js names as many
NO_SESSION = "not a session in a supported format"


def context_of(job: Import) -> dict[str, Any]:
    """The files of an archive as its page shows them: imported, under way, not imported, and skipped by reason."""
    outcomes = outcomes_of(job)
    jobs = [outcome.job for outcome in outcomes if outcome.job is not None]
    skipped: defaultdict[str, list[str]] = defaultdict(list)
    for outcome in outcomes:
        if outcome.job is None and outcome.aside:
            skipped[outcome.aside].append(outcome.name)
        elif outcome.job is not None and outcome.job.left_aside:
            skipped[NO_SESSION].append(outcome.name)
    wrong = [
        {"name": outcome.name, "folder": outcome.folder, "job": outcome.job, "reason": outcome.refused}
        for outcome in outcomes
        if outcome.refused or (outcome.job is not None and _is_wrong(outcome.job))
    ]
    return {
        "imported": sum(one.state == Import.State.DONE for one in jobs),
        "waiting": sum(not one.ended for one in jobs),
        "skipped": [
            {"reason": reason, "count": len(names), "names": names[:NAMED], "more": len(names) > NAMED}
            for reason, names in skipped.items()
        ],
        "skipped_count": sum(map(len, skipped.values())),
        "wrong": wrong[:MAX_LISTED],
        "wrong_count": len(wrong),
    }


def _is_wrong(job: Import) -> bool:
    return job.state in (Import.State.FAILED, Import.State.CANCELLED) and not job.left_aside
