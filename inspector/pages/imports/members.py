"""What became of the files of a ZIP archive, counted and by reason."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any, NamedTuple

from django.db.models import QuerySet

from inspector.ingest.submitting import report_of
from inspector.models import Import

MAX_LISTED = 100  # files named on the page
NAMED = 4  # of the files that were skipped for one reason; static/js/upload.js names as many
NO_SESSION = "not a session in a supported format"
FAILED = (Import.State.FAILED, Import.State.CANCELLED)


class _MemberProgress(NamedTuple):
    """How far the import of a file is."""

    state: str
    left_aside: bool


def context_of(job: Import) -> dict[str, Any]:
    """The files of an archive as its page shows them: imported, under way, not imported, and skipped by reason. While
    they are read, the page asks every second: of 20,000 files only those that it names are read whole."""
    report = report_of(job)
    members = report.members if report else ()
    # How far the imports of the files are: most are those of the archive, the others were there before it.
    reached = _read(_mine(job).filter(archive=job))
    keys = [member.job for member in members if member.job and member.job not in reached]
    reached |= _read(_mine(job).filter(pk__in=keys))
    skipped: defaultdict[str, list[str]] = defaultdict(list)
    wrong = []
    for member in members:
        its = reached.get(member.job)
        if member.aside or (its is not None and its.left_aside):
            skipped[member.aside or NO_SESSION].append(member.name)
        elif member.refused or (its is not None and its.state in FAILED):
            wrong.append(member)
    listed = wrong[:MAX_LISTED]
    jobs = {str(one.pk): one for one in _mine(job).filter(pk__in=[member.job for member in listed if member.job])}
    counts = Counter(reached[member.job].state for member in members if member.job in reached)
    return {
        "imported": counts[Import.State.DONE],
        "waiting": sum(counts[state] for state in Import.UNDER_WAY),
        "skipped": [
            {"reason": reason, "count": len(names), "names": names[:NAMED], "more": len(names) > NAMED}
            for reason, names in skipped.items()
        ],
        "skipped_count": sum(map(len, skipped.values())),
        "wrong": [
            {"name": member.name, "folder": member.folder, "job": jobs.get(member.job), "reason": member.refused}
            for member in listed
        ],
        "wrong_count": len(wrong),
    }


def _read(imports: QuerySet[Import]) -> dict[str, _MemberProgress]:
    rows = imports.annotate(aside=Import.are_left_aside()).values_list("pk", "state", "aside")
    return {str(pk): _MemberProgress(state, aside) for pk, state, aside in rows}


def _mine(job: Import) -> QuerySet[Import]:
    return Import.objects.of(job.project_id)
