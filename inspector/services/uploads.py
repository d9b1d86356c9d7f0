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

from guard_core.errors import LimitExceeded, RecordingError
from inspector.models import Recording

MAX_NAME_CHARS = 120
_UNSAFE = re.compile(r"[\x00-\x1f\x7f<>:\"/\\|?*\u200e\u200f\u202a-\u202e\u2066-\u2069]+")


class Received(NamedTuple):
    recording: Recording
    is_new: bool


def receive(chunks: Iterable[bytes], name: str) -> Received:
    """Store the bytes. Raises RecordingError for nothing at all, LimitExceeded above MAX_UPLOAD_BYTES."""
    temporary = Path(settings.INCOMING_DIR) / uuid4().hex
    digest = hashlib.sha256()
    size = 0
    try:
        with temporary.open("xb") as file:
            os.chmod(temporary, 0o600)
            for chunk in chunks:
                size += len(chunk)
                if size > settings.MAX_UPLOAD_BYTES:
                    raise LimitExceeded(
                        f"the file is larger than the limit of {settings.MAX_UPLOAD_BYTES:,} bytes (MAX_UPLOAD_BYTES)"
                    )
                digest.update(chunk)
                file.write(chunk)
            file.flush()
            os.fsync(file.fileno())
        if size == 0:
            raise RecordingError("the file is empty: there is no session in it")
        return _keep(temporary, digest.hexdigest(), size, name)
    finally:
        temporary.unlink(missing_ok=True)


def _keep(temporary: Path, sha256: str, size: int, name: str) -> Received:
    recording = Recording(sha256=sha256, size=size, name=safe_name(name))
    recording.path.parent.mkdir(mode=0o700, exist_ok=True)
    os.replace(temporary, recording.path)
    found, is_new = Recording.objects.get_or_create(
        sha256=sha256, defaults={"size": size, "name": recording.name, "id": recording.id}
    )
    return Received(found, is_new)


def safe_name(name: str) -> str:
    """A file name to show and to offer for download: no path, no control or direction characters, not too long."""
    last = name.replace("\\", "/").rsplit("/", 1)[-1]
    clean = _UNSAFE.sub("_", unicodedata.normalize("NFC", last.encode("utf-8", "replace").decode())).strip(" .")
    if len(clean) > MAX_NAME_CHARS:
        stem, dot, ending = clean.rpartition(".")
        clean = stem[: MAX_NAME_CHARS - 20] + "…" + dot + ending[:16] if dot else clean[:MAX_NAME_CHARS]
    return clean or "recording"
