"""What scripts hear of an import, and where it is looked at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.http import HttpRequest
from django.urls import reverse

from inspector.ingest.companions import ImportOutcome
from inspector.ingest.submitting import only_session_of
from inspector.ingest.unpacking import outcomes_of
from inspector.models import Import


def address_of(job: Import) -> str:
    """The one session of an import that has ended well; else the page of the import."""
    session = only_session_of(job)
    return session.get_absolute_url() if session else job.get_absolute_url()


def answer_of(job: Import) -> dict[str, Any]:
    """How far it is, and what is wrong with its file; of an archive that has been taken apart, its files as well."""
    failed = job.state == Import.State.FAILED
    answer = {
        "name": job.name,
        "state": job.state,
        "url": address_of(job),
        "report": f"{job.get_absolute_url()}?report",
        "raw": reverse("recording_raw", args=[job.recording_id]) if job.recording_id else "",
        "error": job.message if failed else "",
        "line": job.line if failed else None,
        "column": job.column if failed else None,
        "mendable": job.mendable,
        "aside": job.left_aside,
    }
    return answer | ({"members": answer_of_all(outcomes_of(job))} if job.unpacks and job.ended else {})


def answer_of_all(outcomes: Sequence[ImportOutcome]) -> dict[str, Any]:
    """The imports of several files, and the files that are not imported, with the reason; those of a folder are not
    mistakes."""
    aside = [
        {"name": outcome.name, "folder": outcome.folder, "reason": outcome.aside or outcome.refused}
        for outcome in outcomes
        if outcome.job is None
    ]
    return {"imports": [answer_of(outcome.job) for outcome in outcomes if outcome.job is not None], "aside": aside}


def wants_json(request: HttpRequest) -> bool:
    """Does a script ask, not a browser for a page."""
    return "application/json" in request.headers.get("Accept", "")
