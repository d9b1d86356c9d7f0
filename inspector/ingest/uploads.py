"""Receiving a file: hashed while it is copied, kept as bytes under its hash; the same bytes are recognised later."""

from __future__ import annotations

import hashlib
import os
import re
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID, uuid4

from django.conf import settings
from django.core.files.uploadedfile import TemporaryUploadedFile, UploadedFile
from django.core.files.uploadhandler import TemporaryFileUploadHandler
from django.db import IntegrityError, transaction
from django.db.models import Exists, OuterRef, QuerySet, Sum

from guard_core.errors import LimitExceeded, RecordingError
from guard_core.recordings.reading.file_bytes import SQLITE_MAGIC
from guard_core.recordings.reading.sqlite_source import WAL_MODE
from inspector.data_folder.durable import sync_folder
from inspector.data_folder.uncertain import hold, named_of, uncertain
from inspector.models import Import, Project, Recording, Session, Stream
from inspector.models.recordings import stored_at

MAX_NAME_CHARS = 120
MAX_FOLDER_CHARS = 400  # of Import.folder
CHUNK = 1 << 20  # bytes
_UNSAFE = re.compile(r"[\x00-\x1f\x7f<>:\"/\\|?*\u200e\u200f\u202a-\u202e\u2066-\u2069]+")


class Received(NamedTuple):
    """A file in the incoming folder, under a name of our own."""

    path: Path
    sha256: str
    size: int  # bytes
    name: str  # safe to show
    wal: Received | None = None  # the write-ahead log of a SQLite database

    @property
    def place(self) -> str:
        """The name of the bytes, as Recording.path."""
        return Path(stored_at(self.sha256, self.wal.sha256 if self.wal else "")).name

    def drop(self) -> None:
        """Remove what was not taken over."""
        self.path.unlink(missing_ok=True)
        if self.wal is not None:
            self.wal.drop()


class HashedUploads(TemporaryFileUploadHandler):
    """Hashes each file of a form while it arrives, so that it need not be read again."""

    def new_file(self, *args: Any, **options: Any) -> None:
        super().new_file(*args, **options)
        self.digest = hashlib.sha256()

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:
        self.digest.update(raw_data)
        with self._removed_on_error():
            super().receive_data_chunk(raw_data, start)

    def file_complete(self, file_size: int) -> Any:
        with self._removed_on_error():
            file: Any = super().file_complete(file_size)  # an UploadedFile declares no hash of its own
        file.sha256 = self.digest.hexdigest()
        return file

    @contextmanager
    def _removed_on_error(self) -> Iterator[None]:
        """A file that the disk cannot hold goes at once: Django lets go of it only with the traceback."""
        try:
            yield
        except OSError:
            with suppress(OSError):  # what is still to be written does not fit either
                self.file.close()
            raise


def take(file: UploadedFile[Any], name: str) -> Received:
    """Take over a file of a form, by another name: nothing of it stays under its own. Raises as `receive`."""
    digest, size = getattr(file, "sha256", ""), file.size or 0
    if not digest or not isinstance(file, TemporaryUploadedFile) or size == 0:
        return receive(file.chunks(), name)
    _check_size(size)
    path = Path(settings.INCOMING_DIR) / uuid4().hex
    file.flush()
    os.fsync(file.fileno())
    os.replace(file.temporary_file_path(), path)
    return Received(path, digest, size, safe_name(name))


def receive(chunks: Iterable[bytes], name: str, folder: Path | None = None) -> Received:
    """Copy the bytes in, to the incoming folder or one in it. Raises RecordingError for nothing at all, LimitExceeded
    above MAX_UPLOAD_BYTES."""
    path = (folder or Path(settings.INCOMING_DIR)) / uuid4().hex
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
            file.flush()
            os.fsync(file.fileno())
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


def keep(project: Project, received: Received, *, to_unpack: bool = False) -> Recording:
    """The recording of a project with these bytes, its row locked until the end of the transaction; the file is in its
    place. One that is only kept until it is unpacked needs no room in the quota: what is in it does.

    A database without its log is part of one that has a log: then it is that recording.
    """
    wal = received.wal.sha256 if received.wal else ""
    hold(received.place)
    for _ in range(3):
        known = _known(project, received.sha256, wal)
        if known is not None:
            break
        (_check_waiting if to_unpack else check_quota)(project, received.size)
        try:
            with transaction.atomic():
                known = Recording.objects.of(project).create(
                    sha256=received.sha256, wal_sha256=wal, size=received.size, name=received.name
                )
        except IntegrityError:  # the same bytes are being stored by another request
            continue
        break
    if known is None:
        raise RecordingError("the same file is being stored and deleted at the moment; try again")
    _put(received, known)
    return known


def check_quota(project: Project, size: int) -> None:
    """Raises LimitExceeded where so many more bytes of recordings would not fit into the project's quota."""
    limit = _quota(project)
    if limit is None:
        return
    used = used_bytes(project)
    if used + size > limit:
        raise LimitExceeded(
            f"the project {project.name} holds {used:,} bytes of recordings, and {size:,} more would exceed its quota "
            f"of {limit:,}; delete sessions, or ask an owner for more"
        )


def _check_waiting(project: Project, size: int) -> None:
    """Raises LimitExceeded where an archive would wait behind others, and all together exceed the project's quota."""
    limit = _quota(project)
    waiting = 0 if limit is None else _bytes_of(_archives(project))
    if limit is not None and waiting and waiting + size > limit:
        raise LimitExceeded(
            f"ZIP archives with {waiting:,} bytes wait to be unpacked in the project {project.name}, and {size:,} more "
            f"would exceed its quota of {limit:,}; send this one when they are unpacked"
        )


def _quota(project: Project) -> int | None:
    """The quota of a project in bytes. Where there is one, no other upload is counted against it until the end of the
    transaction: two at once would both find room. What only names the project, as all its rows do, need not wait."""
    if project.quota_bytes is None:
        return None
    return Project.objects.select_for_update(no_key=True).values_list("quota_bytes", flat=True).get(pk=project.pk)


def used_bytes(project: Project) -> int:
    """What the recordings of a project take, in bytes, without archives that are still to be unpacked, and without the
    files of cancelled imports, which a job is about to remove."""
    leaving = cancelled().filter(project=project)
    unpacked = Recording.objects.of(project).exclude(pk__in=_archives(project).values("pk"))
    return _bytes_of(unpacked.exclude(pk__in=leaving.values("pk")))


def _archives(project: Project) -> QuerySet[Recording]:
    """The archives of a project that are still to be unpacked."""
    unpacking = Import.objects.of(project).filter(unpacks=True, state__in=Import.UNDER_WAY, recording__isnull=False)
    return Recording.objects.of(project).filter(pk__in=unpacking.values("recording"))


def _bytes_of(recordings: QuerySet[Recording]) -> int:
    return int(recordings.aggregate(sum=Sum("size"))["sum"] or 0)


def _known(project: Project, sha256: str, wal: str) -> Recording | None:
    """The stored recording with these bytes and this log; bytes without a log are those of any recording with one."""
    same = Recording.objects.of(project).select_for_update().filter(sha256=sha256).order_by("created")
    exact = same.filter(wal_sha256=wal).first()
    return exact if wal or exact else same.first()


def _put(received: Received, recording: Recording) -> None:
    """The bytes are on the disk; so are their names, after this."""
    folder = recording.path.parent
    folder.mkdir(mode=0o700, exist_ok=True)
    if received.wal is not None:
        os.replace(received.wal.path, recording.wal_path)
    os.replace(received.path, recording.path)
    sync_folder(folder)
    sync_folder(folder.parent)


def add_log(project: Project, received: Received) -> Recording | None:
    """The project's recording of this database with its log brought up to date, to be read again; None where there is
    none. The log that it had is replaced only by one that begins with it, so that no byte is lost."""
    if received.wal is None:
        return None
    same = Recording.objects.of(project).filter(sha256=received.sha256)
    places = [known.path.name for known in same]
    if not places:
        return None
    with uncertain(received.place, *places), transaction.atomic():
        hold(received.place)
        for known in same.select_for_update():
            busy = known.imports.filter(state__in=[Import.State.RECEIVED, Import.State.RUNNING]).exists()
            if known.wal_sha256 == received.wal.sha256 or busy or not known.sessions.filter(ordinal__gte=0).exists():
                continue
            if known.wal_sha256 and not _continues(received.wal.path, known.wal_path):
                continue
            known.wal_sha256 = received.wal.sha256
            known.save(update_fields=["wal_sha256"])
            _put(received, known)
            return known
    return None


def _continues(log: Path, earlier: Path) -> bool:
    """Does a log begin with an earlier one. False where that is in the data folder of another server."""
    try:
        return begins_with(log, earlier)
    except FileNotFoundError:
        return False


def lacks_log(recording: Recording) -> bool:
    """Is it a database that writes ahead, and came without the log."""
    if recording.wal_sha256:
        return False
    try:
        with recording.path.open("rb") as file:
            head = file.read(20)
    except FileNotFoundError:
        return False
    return head.startswith(SQLITE_MAGIC) and head[18:20] == WAL_MODE


def begins_with(longer: Path, shorter: Path) -> bool:
    """Does a file begin with all the bytes of another."""
    with longer.open("rb") as one, shorter.open("rb") as other:
        while chunk := other.read(CHUNK):
            if one.read(len(chunk)) != chunk:
                return False
    return True


def unused() -> QuerySet[Recording]:
    """The recordings that no session, no import under way and no acknowledged line of a stream needs."""
    of_it = {"recording": OuterRef("pk")}
    return Recording.unscoped.filter(
        ~Exists(Session.unscoped.filter(**of_it)),
        ~Exists(Session.unscoped.filter(recording__older=OuterRef("pk"))),
        ~Exists(Stream.unscoped.filter(**of_it, applied=0)),
        ~Exists(Import.unscoped.filter(**of_it, state__in=Import.UNDER_WAY)),
    )


def cancelled() -> QuerySet[Recording]:
    """The recordings of cancelled imports that nothing else needs."""
    ended = Import.unscoped.filter(state=Import.State.CANCELLED, recording__isnull=False)
    return unused().filter(pk__in=ended.values("recording"))


def drop_unused(*recordings: UUID) -> bool:
    """Forget recordings that are `unused`, and older files of them; their bytes too, unless another project has the
    same. Together, many take little longer than one. Was one of them forgotten."""
    with transaction.atomic():
        stored = Recording.unscoped.filter(pk__in=recordings)
        places = {known.path.name for known in stored}
        hold(*places)
        locked = {known.pk: known for known in stored.select_for_update().order_by("pk")}
        free = set(unused().filter(pk__in=locked).values_list("pk", flat=True))
        dropped = [known for pk, known in locked.items() if pk in free and known.path.name in places]
        if not dropped:
            return False
        older = list(Recording.unscoped.filter(newer__in=dropped).values_list("pk", flat=True))
        Recording.unscoped.filter(pk__in=[known.pk for known in dropped]).delete()
        if older:
            drop_unused(*older)
        named = named_of({known.path.name for known in dropped})
        for recording in dropped:
            if recording.path.name in named:
                continue
            recording.path.unlink(missing_ok=True)
            if recording.wal_sha256:
                recording.wal_path.unlink(missing_ok=True)
    return True


def safe_name(name: str) -> str:
    """A file name to show and to offer for download: no path, no control or direction characters, not too long."""
    last = name.replace("\\", "/").rsplit("/", 1)[-1]
    clean = _UNSAFE.sub("_", unicodedata.normalize("NFC", last.encode("utf-8", "replace").decode())).strip(" .")
    if len(clean) > MAX_NAME_CHARS:
        stem, dot, ending = clean.rpartition(".")
        clean = stem[: MAX_NAME_CHARS - 20] + "…" + dot + ending[:16] if dot else clean[:MAX_NAME_CHARS]
    return clean or "recording"


def safe_folder(path: str) -> str:
    """The folder of a file's path to show, each part as `safe_name` gives it; empty where the path has none."""
    return "/".join(safe_name(part) for part in path.split("/")[:-1] if part)[:MAX_FOLDER_CHARS]
