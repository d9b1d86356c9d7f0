"""What killed processes left in the data folder: files half received, bytes that no recording names, recordings that
nothing needs, folders of checks."""

from __future__ import annotations

import math
import shutil
import time
from contextlib import suppress
from pathlib import Path

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Exists, OuterRef

from inspector.models import Import, Recording, Session
from inspector.models.recordings import WAL
from inspector.services.importing import UNDER_WAY
from inspector.services.uploads import drop_unused

CHECKS = ".check-"  # how the folders begin in which a database is looked at
DAY = 86_400.0  # seconds; no upload takes so long


def sweep_alone() -> None:
    """Sweep a data folder that no other process uses: nothing in `incoming` is still coming in."""
    _sweep_incoming(-math.inf)
    for folder in Path(settings.DATA_DIR).glob(f"{CHECKS}*"):
        shutil.rmtree(folder)
    sweep_recordings()


def sweep_daily() -> None:
    """Sweep a data folder in use."""
    _sweep_incoming(DAY)
    sweep_recordings()


def _sweep_incoming(age: float) -> None:
    """Remove what has not changed for so many seconds."""
    for path in Path(settings.INCOMING_DIR).iterdir():
        with suppress(FileNotFoundError):  # taken over, or dropped, at this moment
            if time.time() - path.stat().st_mtime < age:
                continue
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()


def sweep_recordings() -> None:
    """Drop recordings that nothing needs, and bytes without a recording: of deletions and uploads that were killed."""
    needed = (
        Session.objects.filter(recording=OuterRef("pk")),
        Import.objects.filter(recording=OuterRef("pk"), state__in=UNDER_WAY),
    )
    for key in Recording.objects.exclude(*map(Exists, needed)).values_list("pk", flat=True):
        drop_unused(key)
    if nameless := _nameless(set(Path(settings.RECORDINGS_DIR).glob("??/*"))):
        _drop_nameless(nameless)


def _drop_nameless(paths: set[Path]) -> None:
    """Look again while no upload can be at the moment between its bytes and its row."""
    with transaction.atomic():
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute(f"LOCK TABLE {connection.ops.quote_name(Recording._meta.db_table)} IN SHARE MODE")
        for path in _nameless(paths):
            path.unlink(missing_ok=True)


def _nameless(paths: set[Path]) -> set[Path]:
    named = {recording.path for recording in Recording.objects.only("sha256", "wal_sha256").iterator()}
    return {path for path in paths if path.with_name(path.name.removesuffix(WAL)) not in named}
