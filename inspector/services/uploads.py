"""Receiving a file: hashed while it is copied, kept as bytes under its hash, known again when it comes twice."""

from __future__ import annotations

import hashlib
import os
import re
import unicodedata
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

from django.conf import settings
from django.db import IntegrityError, transaction

from guard_core.errors import LimitExceeded, RecordingError
from inspector.models import Import, Recording

MAX_NAME_CHARS = 120
_UNSAFE = re.compile(r"[\x00-\x1f\x7f<>:\"/\\|?*\u200e\u200f\u202a-\u202e\u2066-\u2069]+")


class Received(NamedTuple):
    """A file in the incoming folder, under a name of our own."""

    path: Path
    sha256: str
    size: int  # bytes
    name: str  # safe to show


def receive(chunks: Iterable[bytes], name: str) -> Received:
    """Copy the bytes in. Raises RecordingError for nothing at all, LimitExceeded above MAX_UPLOAD_BYTES."""
    path = Path(settings.INCOMING_DIR) / uuid4().hex
    digest = hashlib.sha256()
    size = 0
    try:
        with path.open("xb") as file:
            os.chmod(path, 0o600)
            for chunk in chunks:
                size += len(chunk)
                _check_size(size)
                digest.update(chunk)
                file.write(chunk)
        if size == 0:
            raise RecordingError("the file is empty: there is no session in it")
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return Received(path, digest.hexdigest(), size, safe_name(name))


def _check_size(size: int) -> None:
    limit = settings.MAX_UPLOAD_BYTES
    if size > limit:
        raise LimitExceeded(f"the file is larger than the limit of {limit:,} bytes (setting MAX_UPLOAD_BYTES)")


def keep(received: Received) -> Recording:
    """The recording with these bytes, its row locked until the end of the transaction; the file is in its place."""
    for _ in range(3):
        known = Recording.objects.select_for_update().filter(sha256=received.sha256).first()
        if known is not None:
            break
        try:
            with transaction.atomic():
                known = Recording.objects.create(sha256=received.sha256, size=received.size, name=received.name)
        except IntegrityError:  # the same bytes are being stored by another request
            continue
        break
    if known is None:
        raise RecordingError("the same file is being stored and taken away at this moment; try again")
    known.path.parent.mkdir(mode=0o700, exist_ok=True)
    os.replace(received.path, known.path)
    return known


def drop_unused(recording_id: object) -> bool:
    """Forget a recording that no session and no import under way needs, its bytes too."""
    with transaction.atomic():
        recording = Recording.objects.select_for_update().filter(pk=recording_id).first()
        if recording is None or recording.sessions.exists():
            return False
        if recording.imports.filter(state__in=[Import.State.RECEIVED, Import.State.RUNNING]).exists():
            return False
        recording.delete()
        recording.path.unlink(missing_ok=True)
    return True


def safe_name(name: str) -> str:
    """A file name to show and to offer for download: no path, no control or direction characters, not too long."""
    last = name.replace("\\", "/").rsplit("/", 1)[-1]
    clean = _UNSAFE.sub("_", unicodedata.normalize("NFC", last.encode("utf-8", "replace").decode())).strip(" .")
    if len(clean) > MAX_NAME_CHARS:
        stem, dot, ending = clean.rpartition(".")
        clean = stem[: MAX_NAME_CHARS - 20] + "…" + dot + ending[:16] if dot else clean[:MAX_NAME_CHARS]
    return clean or "recording"
