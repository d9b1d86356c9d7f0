"""A file that has grown since it was imported (its agent was still running) extends its session.

grown = find_grown(recording)                                 # before the storing transaction: it reads the file
row = store(grown, recording, ordinal, session, ledger, ...)  # in it, in the place of convert.store_session
close(grown, recording)                                       # in it, after the last session
"""

from __future__ import annotations

import hashlib
from typing import Any

from django.db import transaction

from guard_core.attribution import Attribution
from guard_core.ledger import Ledger
from guard_core.sessions import Session as CoreSession
from guard_core.sessions import Sourced
from inspector import convert
from inspector.models import Import, Recording, Session
from inspector.services import search
from inspector.services.uploads import drop_unused

CHUNK = 1 << 20  # bytes
SMALLEST = 200  # bytes; shorter beginnings are too common to mean anything


def find_grown(recording: Recording) -> Recording | None:
    """The stored recording whose sessions this one goes on with: itself when it is read again, else the longest one
    that is its beginning, byte for byte, and still has sessions."""
    if recording.sessions.filter(ordinal__gte=0).exists():
        return recording
    shorter = Recording.objects.filter(size__gte=SMALLEST, size__lt=recording.size, sessions__deleted=None)
    sizes = sorted(shorter.exclude(sessions=None).values_list("size", flat=True).distinct())
    digests = _digests(recording, sizes)
    return Recording.objects.filter(sha256__in=digests, sessions__deleted=None).order_by("-size").first()


def find_old(grown: Recording | None, ordinal: int, format_name: str) -> Session | None:
    """The session that stood at this place of the shorter file."""
    return grown.sessions.filter(ordinal=ordinal, format=format_name[:40]).first() if grown else None


def store(
    grown: Recording | None,
    recording: Recording,
    ordinal: int,
    value: CoreSession,
    ledger: Ledger,
    attribution: Attribution | None,
    *,
    window: Sourced,
    counts: dict[str, Any],
) -> Session:
    """Extend the session that stood at this place of the shorter file; store a new one where there was none."""
    old = find_old(grown, ordinal, value.format)
    kept = convert.common_events(old, value.events) if old else 0
    if old is None or not kept:
        if old is not None and old.recording_id == recording.pk:  # read again, and read otherwise
            search.forget(old)
            old.delete()
        return convert.store_session(recording, ordinal, value, ledger, attribution, window=window, counts=counts)
    search.forget(old, kept)
    return convert.extend_session(old, recording, value, ledger, attribution, window=window, counts=counts, kept=kept)


def close(grown: Recording | None, recording: Recording, count: int) -> None:
    """Sessions that are no longer in the file go; a shorter file is contained in the longer one, so its imports point
    there now, and its bytes go after the commit."""
    if grown is None:
        return
    for old in grown.sessions.filter(ordinal__gte=count) if grown.pk == recording.pk else ():
        search.forget(old)
        old.delete()
    if grown.pk != recording.pk and not grown.sessions.exists():
        Import.objects.filter(recording=grown).update(recording=recording)
        transaction.on_commit(lambda: drop_unused(grown.pk) and None)


def _digests(recording: Recording, sizes: list[int]) -> list[str]:
    """The SHA-256 of the file's beginnings of these sizes, in one pass."""
    digest = hashlib.sha256()
    found: list[str] = []
    done = 0
    with recording.path.open("rb") as file:
        for size in sizes:
            while done < size and (chunk := file.read(min(CHUNK, size - done))):
                digest.update(chunk)
                done += len(chunk)
            found.append(digest.copy().hexdigest())
    return found
