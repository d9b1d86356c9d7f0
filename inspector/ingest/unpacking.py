"""Takes a ZIP archive of a folder apart, in a job: an import for each recording in it, as if the folder were dropped.

All of it is unpacked and checked before anything is imported, into a folder of this attempt alone. Each import is put
into the queue in a transaction of its own, so that another worker continues after the last one when this one dies.
"""

from __future__ import annotations

import shutil
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings

from guard_core.errors import GuardError
from inspector.ingest.archives import UnpackedFile
from inspector.ingest.companions import ImportOutcome, add, arranged
from inspector.ingest.submitting import Inside, Member, report_of
from inspector.ingest.uploads import safe_folder, safe_name
from inspector.models import Import


@contextmanager
def own_folder(job: Import, lease: str) -> Iterator[Path]:
    """A folder for what is unpacked, gone afterwards; with it goes what a worker that died left of this import."""
    incoming = Path(settings.INCOMING_DIR)
    for left in incoming.glob(f"{_beginning(job)}*"):
        shutil.rmtree(left, ignore_errors=True)
    folder = incoming / f"{_beginning(job)}{lease}"
    folder.mkdir(mode=0o700)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _beginning(job: Import) -> str:
    return f"unpacked-{job.pk.hex}-"


def add_all(
    job: Import, lease: str, files: list[UnpackedFile], adding: Callable[[int, int], None]
) -> tuple[Member, ...]:
    """An import for each recording among the files of an archive; those that an earlier attempt has added stay as they
    are. `adding` hears how many bytes are added, and of how many. Raises Cancelled."""
    total = sum(file.received.size for file in files if file.received is not None)
    done = 0
    earlier: defaultdict[tuple[str, str], deque[Import]] = defaultdict(deque)
    for known in job.members.order_by("created"):
        earlier[known.folder, known.name].append(known)
    places = [(folder, name) for folder, _, name in (file.path.rpartition("/") for file in files)]
    members = []
    for unit in arranged(places):
        file, log = files[unit.file], None if unit.wal is None else files[unit.wal].received
        folder, name = safe_folder(file.path), safe_name(places[unit.file][1])
        aside = file.aside or unit.aside
        if file.received is None or aside:
            members.append(Member(name, folder, aside="" if file.refused else aside, refused=file.refused))
            continue
        adding(done, total)
        done += file.received.size
        if waiting := earlier[folder, name]:
            members.append(Member(name, folder, str(waiting.popleft().pk)))
            continue
        try:
            one = add(
                job.project,
                file.received._replace(wal=log, name=name),
                strict=job.strict,
                window=job.window,
                inside=Inside(job, lease, folder),
            )
        except GuardError as error:
            members.append(Member(name, folder, refused=str(error)))
        else:
            members.append(Member(name, folder, str(one.pk)))
    return tuple(members)


def outcomes_of(job: Import) -> list[ImportOutcome]:
    """What became of each file of an archive that has been taken apart; nothing for another import."""
    report = report_of(job)
    members = report.members if report else ()
    imports = Import.objects.of(job.project_id).select_related("recording")
    jobs = {str(one.pk): one for one in imports.filter(pk__in=[member.job for member in members if member.job])}
    return [
        ImportOutcome(member.name, member.folder, jobs.get(member.job), member.aside, member.refused)
        for member in members
        if not member.job or member.job in jobs
    ]
