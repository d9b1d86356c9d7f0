"""What killed processes left in the data folder: files half received, bytes without a row, recordings that nothing
needs, folders of checks."""

from __future__ import annotations

import math
import shutil
import time
from contextlib import suppress
from pathlib import Path

from django.conf import settings

from inspector.accounts import ending
from inspector.data_folder.durable import CHECKS
from inspector.data_folder.restoring import STAGING
from inspector.data_folder.uncertain import NOTE, settle
from inspector.ingest import live, spans
from inspector.ingest.uploads import drop_unused, unused
from inspector.replays import stored
from inspector.sharing.publishing import drop_ended
from inspector.storage import retention

DAY = 86_400.0  # seconds; no upload takes longer


def sweep_alone() -> None:
    """Sweep a data folder that no other process uses: nothing in `incoming` is still coming in."""
    _sweep_incoming(-math.inf)
    for prefix in (CHECKS, STAGING):
        for folder in Path(settings.DATA_DIR).glob(f"{prefix}*"):
            shutil.rmtree(folder)
    _drop_unneeded()
    stored.sweep()


def sweep_daily() -> None:
    """Sweep a data folder in use."""
    _sweep_incoming(DAY)
    drop_ended()
    ending.drop_ended()
    retention.apply_all()
    spans.forget_silent()
    live.forget_purged()
    _drop_unneeded()
    stored.sweep()


def _sweep_incoming(age: float) -> None:
    """Remove what has not changed for this many seconds."""
    for path in Path(settings.INCOMING_DIR).iterdir():
        with suppress(FileNotFoundError):  # taken over, or dropped, at this moment
            if time.time() - path.stat().st_mtime < age:
                continue
            if path.name.startswith(NOTE):
                settle(path)
            elif path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()


def _drop_unneeded() -> None:
    """Drop recordings that nothing needs, whose deletion was killed half way."""
    for key in unused().values_list("pk", flat=True):
        drop_unused(key)
