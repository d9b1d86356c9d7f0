"""A ZIP archive that is no recording: the folder in it is imported, and whatever is wrong with it leaves nothing."""

from __future__ import annotations

import io
import json
import stat
import struct
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from django.conf import settings
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.db.models import QuerySet
from django.db.models.signals import post_init
from django.test import RequestFactory
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from guard_core.errors import LimitExceeded, RecordingError
from guard_core.recordings.formats.opencode.storage import Storage
from inspector.ingest import archives
from inspector.ingest.companions import bring
from inspector.ingest.importing import ImportPace, ImportWatch, run_import
from inspector.ingest.submitting import (
    IMPORTS,
    LEASE,
    NOTHING_STORED,
    REMOVE_CANCELLED,
    cancel_import,
    remove_cancelled,
    resume_removing,
)
from inspector.ingest.unpacking import outcomes_of
from inspector.ingest.uploads import receive, used_bytes
from inspector.ingest.waiting import Wait
from inspector.jobs import queue
from inspector.models import Import, Recording, Session, default_project
from inspector.pages.upload.views import upload
from tests.guard_core.recordings.reading.test_zip_entries import archive
from tests.inspector.conftest import PageClient
from tests.inspector.ingest.test_companions import JSON, Agent
from tests.recordings.seeds import SEEDS


@pytest.fixture
def client(working_client):
    return working_client


def send(client, content: bytes, name: str = "projects.zip", **more: object):
    return client.post("/recordings/", {"file": [SimpleUploadedFile(name, content)], **more}, headers=JSON)


def left() -> list[str]:
    """What is in the incoming folder."""
    return sorted(path.name for path in Path(settings.INCOMING_DIR).iterdir())


def members() -> QuerySet[Import]:
    """The imports that archives brought."""
    return Import.unscoped.filter(unpacks=False)


def unpacked(content: bytes) -> list[archives.UnpackedFile]:
    received = receive([content], "logs.zip")
    try:
        with TemporaryDirectory(dir=settings.INCOMING_DIR) as folder:
            return archives.unpacked(received.path, received.name, Path(folder), lambda done, total: None)
    finally:
        received.drop()


def check_refused(content: bytes, words: str) -> None:
    with pytest.raises(RecordingError, match=words):
        unpacked(content)


@pytest.mark.django_db
def test_a_folder_of_sessions_is_imported_as_if_it_had_been_dropped(client, folders, recording):
    content = archive(
        {
            "projects/": b"",
            "projects/one/run.jsonl": recording,
            "projects/one/tool-results/a.txt": b"total 3",
            "projects/notes.md": b"buy milk",
            "projects/empty.json": b"",
            "__MACOSX/projects/one/._run.jsonl": b"\0\5\x16\7",
        }
    )
    answer = send(client, content)
    assert answer.status_code == 201
    document = answer.json()
    assert [(item["name"], item["state"], item["aside"]) for item in document["imports"]] == [
        ("notes.md", "failed", True),
        ("run.jsonl", "done", False),
    ]
    assert [item["name"] for item in document["aside"]] == ["_run.jsonl", "a.txt"]
    assert set(members().values_list("folder", flat=True)) == {"projects", "projects/one"}
    assert (Recording.unscoped.get().path.read_bytes(), left()) == (recording, [])


@pytest.mark.django_db
def test_an_archive_without_one_folder_around_all_gives_its_own_name(client, folders, recording):
    send(client, archive({"run.jsonl": recording}), "logs.zip")
    assert members().get().folder == "logs"


@pytest.mark.django_db
def test_a_session_that_is_known_from_its_folder_is_not_imported_twice(client, folders, recording):
    send(client, archive({"a/run.jsonl": recording}))
    first = members().get()
    assert send(client, archive({"a/run.jsonl": recording})).json()["imports"][0]["state"] == "done"
    assert (members().get(), Session.unscoped.count()) == (first, 1)


@pytest.mark.django_db
def test_a_database_comes_with_the_log_beside_it(client, folders, tmp_path):
    agent = Agent(tmp_path / "state.db")
    agent.say("assistant", "release/2.4")
    database, log = agent.files
    agent.connection.close()
    document = send(client, archive({"a/state.db": database, "a/state.db-wal": log})).json()
    assert [item["state"] for item in document["imports"]] == ["done"]
    assert (Recording.unscoped.get().wal_path.read_bytes(), left()) == (log, [])


@pytest.mark.django_db
def test_a_session_in_several_files_is_one_recording_beside_others(client, folders, recording):
    files = {"home/sid/base_state.json": b"{}", "home/run.jsonl": recording}
    files |= {f"home/sid/events/event-0000{n}-aaaaaaaa.json": b"{}" for n in range(2)}
    names = [item["name"] for item in send(client, archive(files)).json()["imports"]]
    assert (names, left()) == (["run.jsonl", "sid.zip"], [])


def stored(**damaged: bytes) -> dict[str, bytes]:
    """A storage folder of OpenCode with a session in pieces, and a piece of none."""
    message = {"sessionID": "ses_1", "time": {"created": 1}}
    part = {"id": "prt_1", "messageID": "msg_1", "sessionID": "ses_1", "type": "text", "text": "Which branch?"}
    values = {
        "session/p/ses_1.json": {"id": "ses_1", "title": "kept in pieces", "version": "1.0.0", "time": {"created": 1}},
        "message/ses_1/msg_1.json": message | {"id": "msg_1", "role": "user"},
        "message/ses_1/msg_2.json": message | {"id": "msg_2", "role": "assistant", "modelID": "m", "providerID": "p"},
        "part/msg_1/prt_1.json": part,
        "part/msg_2/prt_2.json": part | {"id": "prt_2", "messageID": "msg_2", "text": "release/2.4"},
        "part/msg_9/prt_9.json": part | {"id": "prt_9", "messageID": "msg_9"},
        "project/p.json": {"id": "p"},
    }
    pieces = {place: json.dumps(value).encode() for place, value in values.items()} | damaged
    return {f"opencode/storage/{place}": content for place, content in pieces.items()}


@pytest.mark.django_db
def test_sessions_in_opencodes_storage_folder_are_read_as_in_a_folder(client, folders, recording, tmp_path):
    pieces = stored()
    document = send(client, archive({**pieces, "opencode/run.jsonl": recording})).json()
    assert [(item["name"], item["state"]) for item in document["imports"]] == [
        ("run.jsonl", "done"),
        ("ses_1.json", "done"),
    ]
    assert document["aside"] == [
        {"name": "prt_9.json", "folder": "opencode/storage/part/msg_9", "reason": archives.LOOSE}
    ]
    for place, content in pieces.items():
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_bytes(content)
    storage = Storage.of(tmp_path / "opencode/storage")
    made = Recording.unscoped.get(name="ses_1.json").path.read_bytes()
    assert (made, left()) == (storage.export(storage.sessions[0]), [])
    assert Session.unscoped.get(title="kept in pieces").events == 2


@pytest.mark.django_db
def test_a_damaged_piece_of_opencodes_storage_is_named_and_left_out_leniently(client, folders):
    content = archive(stored(**{"part/msg_2/prt_2.json": b"{"}))
    reasons = [item["reason"] for item in send(client, content).json()["aside"]]
    assert "the file msg_2/prt_2.json holds no JSON value" in reasons
    document = send(client, content, mode="lenient").json()
    assert [item["state"] for item in document["imports"]] == ["done"]
    assert "left out of the session: the file msg_2/prt_2.json holds no JSON value" in [
        item["reason"] for item in document["aside"]
    ]


@pytest.mark.django_db
def test_an_archive_of_one_session_stays_a_recording(client, folders):
    content = archive({"sid/context.jsonl": SEEDS["kimi-cli"], "sid/wire.jsonl": SEEDS["kimi-cli wire"]})
    send(client, content, "kimi.zip")
    job = Import.unscoped.get()
    assert (job.folder, job.recording.format) == ("", "kimi-cli")
    assert job.recording.path.read_bytes() == content


@pytest.mark.django_db
def test_what_lies_beside_a_session_that_a_format_knows_is_imported_too(client, folders, recording):
    files = {"home/sid/context.jsonl": SEEDS["kimi-cli"], "home/sid/wire.jsonl": SEEDS["kimi-cli wire"]}
    names = [item["name"] for item in send(client, archive({**files, "home/run.jsonl": recording})).json()["imports"]]
    assert (names, left()) == (["run.jsonl", "sid.zip"], [])
    formats = members().order_by("recording__format").values_list("recording__format", flat=True)
    assert list(formats) == ["compaction-inspector", "kimi-cli"]


@pytest.mark.django_db
def test_an_archive_in_a_dropped_folder_is_not_unpacked(client, folders, recording):
    content = archive({"a/run.jsonl": recording})
    document = send(client, content, "backup.zip", path=["home/backup.zip"]).json()
    assert [(item["name"], item["aside"]) for item in document["imports"]] == [("backup.zip", True)]
    nested = send(client, archive({"a/backup.zip": content, "a/run.jsonl": recording})).json()
    assert [item["name"] for item in nested["imports"]] == ["run.jsonl"]
    assert nested["aside"] == [{"name": "backup.zip", "folder": "a", "reason": archives.NESTED}]


@pytest.mark.django_db
def test_a_damaged_session_does_not_stop_the_others(client, folders, recording):
    lines = recording.splitlines(keepends=True)
    damaged = b"".join([*lines[:2], b'{"not": "closed"\n', *lines[3:]])
    answer = send(client, archive({"a/bad.jsonl": damaged, "a/run.jsonl": recording}))
    assert answer.status_code == 422
    assert [(item["state"], item["line"]) for item in answer.json()["imports"]] == [("failed", 3), ("done", None)]


@pytest.mark.django_db
def test_files_above_the_quota_are_named_and_leave_nothing(client, folders, recording):
    project = default_project()
    project.quota_bytes = len(recording)
    project.save()
    content = archive({"a/one.jsonl": recording, "a/two.jsonl": recording + b" \n"})
    document = send(client, content).json()
    assert [item["name"] for item in document["imports"]] == ["one.jsonl"]
    assert ("quota" in document["aside"][0]["reason"], left()) == (True, [])
    project.quota_bytes = None
    project.save()


@pytest.mark.django_db
def test_what_is_wrong_with_an_archive_is_answered_and_nothing_is_stored(client, folders, recording):
    answer = send(client, archive({"a/run.jsonl": recording, "../run.jsonl": recording}))
    assert answer.status_code == 422
    (failed,) = answer.json()["imports"]
    assert (failed["name"], failed["state"]) == ("projects.zip", "failed")
    assert "outside its folder" in failed["error"]
    assert (members().count(), Recording.unscoped.count(), left()) == (0, 0, [])


@pytest.mark.parametrize("name", ["../a.jsonl", "a/../../a.jsonl", "/etc/a.jsonl", "C:/a.jsonl", "..\\a.jsonl"])
def test_a_name_outside_the_folder_is_refused(folders, name):
    check_refused(archive({"good.jsonl": b"{}", name: b"{}"}), "outside its folder")


def test_a_bomb_is_stopped_by_what_it_unpacks_to(folders, settings):
    settings.MAX_UPLOAD_BYTES = 2_000_000
    bomb = archive({f"{number}.json": b"\0" * 900_000 for number in range(3)})
    lying = bomb.replace(struct.pack("<I", 900_000), struct.pack("<I", 9))  # what it declares does not count
    check_refused(archive({"one.json": b"\0" * 9_000_000}), "MAX_UPLOAD_BYTES")
    check_refused(bomb, "MAX_UPLOAD_BYTES")
    check_refused(lying, "MAX_UPLOAD_BYTES")


def test_a_log_that_repeats_itself_is_no_bomb(folders):
    (file,) = unpacked(archive({"a.jsonl": b"[1]\n" * 2_000_000}))
    assert file.received.size == 8_000_000


def test_entries_that_share_their_bytes_are_refused(folders):
    content = bytearray(archive({f"{number}.json": b"[1]" * 99 for number in range(2)}))
    second = content.rindex(b"PK\1\2")
    content[second + 42 : second + 46] = bytes(4)  # where the first is
    check_refused(bytes(content), "overlaps")


def test_too_many_entries_are_refused(folders):
    check_refused(archive({f"{number}": b"" for number in range(archives.MOST_FILES + 1)}, zipfile.ZIP_STORED), "limit")


def test_an_encrypted_entry_is_refused(folders):
    content = bytearray(archive({"a.jsonl": b"{}"}))
    content[content.index(b"PK\1\2") + 8] |= 1
    check_refused(bytes(content), "encrypted")


@pytest.mark.parametrize("place", [60, -30])
def test_a_damaged_archive_is_refused(folders, place):
    content = archive({"a.jsonl": bytes(range(256)) * 9, "b.jsonl": b"{}"}, zipfile.ZIP_STORED)
    check_refused(content[:place], "damaged|cut off|no file")
    spoiled = bytearray(content)
    spoiled[60] ^= 255
    check_refused(bytes(spoiled), "checksum")


def test_two_entries_of_one_name_are_refused(folders):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as target, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        target.writestr("a.jsonl", "{}")
        target.writestr("a.jsonl", "[]")
    check_refused(out.getvalue(), "two entries")


def test_an_archive_of_nothing_but_folders_is_refused(folders):
    check_refused(archive({"a/": b"", "a/empty.json": b""}), "no file")


def test_a_very_long_path_is_refused(folders):
    check_refused(archive({"a/" * 600 + "b": b"{}"}), "characters")


def test_a_link_is_not_followed(folders):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as target:
        link = zipfile.ZipInfo("a/link.jsonl")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        target.writestr(link, "/etc/passwd")
    assert unpacked(out.getvalue()) == [archives.UnpackedFile("a/link.jsonl", None, archives.LINK)]


@pytest.mark.django_db
def test_names_are_only_shown_and_without_control_characters(folders, recording):
    content = archive({"a\x1b[31m/r\u202eun\n.jsonl": recording, "a\x1b[31m/b": b"?"})
    job = bring(default_project(), receive([content], "logs.zip"))
    run_import(str(job.pk))
    outcomes = outcomes_of(Import.unscoped.get(pk=job.pk))
    assert [(outcome.folder, outcome.name) for outcome in outcomes] == [("a_[31m", "b"), ("a_[31m", "r_un_.jsonl")]
    assert left() == []


class Killed(BaseException):
    """What a process dies of."""


def unpack_until(job: Import, added: int, act: Callable[[Import], object]) -> None:
    """Work on an archive; when so many imports are added, something happens."""

    class Looked(ImportWatch):
        def note(self, **values: object) -> None:
            if members().filter(archive=job).count() == added:
                act(job)
            super().note(**values)

    run_import(str(job.pk), ImportPace(report_every=0), Looked)


def die(job: Import) -> None:
    raise Killed


@pytest.fixture
def three(recording) -> bytes:
    """An archive of two sessions and another file."""
    return archive({"a/notes.md": b"buy milk", "a/one.jsonl": recording, "a/two.jsonl": recording + b" \n"})


@pytest.mark.django_db
def test_an_archive_is_one_import_until_a_worker_has_unpacked_it(handler, folders, settings, three):
    settings.ANSWER_WAIT_SECONDS = 0
    client = PageClient(handler)
    (waiting,) = send(client, three).json()["imports"]
    assert (waiting["name"], waiting["state"], members().count()) == ("projects.zip", "received", 0)
    page = waiting["report"].partition("?")[0]
    assert "unpacking" in client.get(page).content.decode()
    run_import(str(Import.unscoped.get().pk))
    status = client.get(f"{page}status", headers=JSON).json()
    assert [item["state"] for item in status["members"]["imports"]] == ["received"] * 3
    assert (status["state"], status["raw"], left()) == ("done", "", [])
    assert "3 files still to be read" in client.get(page).content.decode()
    for job in members():
        run_import(str(job.pk))
    text = client.get(page).content.decode()
    assert "2 files imported" in text
    assert "1 other file skipped" in text


@pytest.mark.django_db
def test_the_page_of_an_archive_reads_none_of_its_imports_whole_but_those_it_names(handler, folders, recording):
    files = {f"a/{number}.jsonl": recording + b" " * number + b"\n" for number in range(20)}
    job = bring(default_project(), receive([archive({**files, "a/notes.md": b"milk"})], "logs.zip"))
    run_import(str(job.pk))
    names = ["0.jsonl", "1.jsonl", "notes.md"]
    for member in members().filter(name__in=names):
        run_import(str(member.pk))
    members().filter(name="2.jsonl").update(state="failed", phase="parsed", message="Broken.")
    loaded: list[str] = []

    def note(instance: Import, **_: object) -> None:
        loaded.append(instance.name)

    post_init.connect(note, sender=Import)
    try:
        page = PageClient(handler).get(f"{job.get_absolute_url()}status").content.decode()
    finally:
        post_init.disconnect(note, sender=Import)
    assert loaded == ["logs.zip", "2.jsonl"]
    assert "2 files imported" in page
    assert "17 files still to be read" in page
    assert "1 not imported" in page
    assert "1 other file skipped" in page


@pytest.mark.django_db
def test_the_report_of_an_archive_has_its_own_size_however_long_its_files_took(folders, three):
    job = bring(default_project(), receive([three], "logs.zip"))
    run_import(str(job.pk), ImportPace(report_every=0))
    assert Import.unscoped.get(pk=job.pk).total == len(three)


@pytest.mark.django_db
def test_an_answer_waits_again_for_the_files_of_an_archive_alone(folders, three, recording):
    waits = []

    def answer(content: bytes, wait: Wait) -> None:
        request = RequestFactory().post("/recordings/", {"file": [SimpleUploadedFile("a.zip", content)]}, headers=JSON)
        request.project = default_project()
        upload(request, wait)
        request.close()

    def busy(jobs: list[Import]) -> list[Import]:
        waits.append([job.name for job in jobs])
        return jobs

    def working(jobs: list[Import]) -> list[Import]:
        for job in busy(jobs):
            run_import(str(job.pk))
            job.refresh_from_db()
        return jobs

    answer(recording + b"\n", busy)
    answer(three, working)
    assert waits == [["a.zip"], ["a.zip"], ["notes.md", "one.jsonl", "two.jsonl"]]


@pytest.mark.django_db
def test_another_worker_goes_on_behind_one_that_was_killed(folders, three):
    job = bring(default_project(), receive([three], "logs.zip"))
    with pytest.raises(Killed):
        unpack_until(job, 2, die)
    for one in members():
        run_import(str(one.pk))
    folder = Path(settings.INCOMING_DIR, f"unpacked-{job.pk.hex}-lease")  # what a killed process leaves
    folder.mkdir()
    folder.joinpath("file").write_bytes(b"half")
    Import.unscoped.filter(pk=job.pk).update(heartbeat=timezone.now() - 2 * LEASE)
    assert IMPORTS.recover() == 1
    run_import(str(job.pk))
    assert list(members().order_by("created").values_list("name", "state")) == [
        ("notes.md", "failed"),
        ("one.jsonl", "done"),
        ("two.jsonl", "received"),
    ]
    assert [outcome.name for outcome in outcomes_of(Import.unscoped.get(pk=job.pk))] == [
        "notes.md",
        "one.jsonl",
        "two.jsonl",
    ]
    assert left() == []


@pytest.mark.django_db
def test_what_waits_of_a_cancelled_archive_is_cancelled_too(folders, three):
    job = bring(default_project(), receive([three], "logs.zip"))
    unpack_until(job, 2, cancel_import)
    assert list(Import.unscoped.values_list("state", "message").distinct()) == [("cancelled", NOTHING_STORED)]
    remove_cancelled(str(job.pk))
    assert (members().count(), Recording.unscoped.count(), left()) == (2, 0, [])


def waiting_archive(recording: bytes, files: int) -> Import:
    """An archive whose files are all added, and wait."""
    content = {f"a/{number}.jsonl": recording + b"\n" * (files + number) for number in range(files)}
    job = bring(default_project(), receive([archive(content)], "logs.zip"))
    run_import(str(job.pk))
    return job


@pytest.mark.django_db
def test_a_cancel_ends_all_that_waits_of_an_archive_in_one_statement(folders, recording):
    def asked(files: int) -> int:
        job = waiting_archive(recording, files)
        with CaptureQueriesContext(connection) as queries:
            cancel_import(job)
        assert set(job.members.values_list("state", flat=True)) == {"cancelled"}
        return len(queries)

    assert asked(3) == asked(6)
    remove_cancelled("")


@pytest.mark.django_db
def test_the_files_of_a_cancelled_archive_are_removed_in_slices(folders, recording):
    job = waiting_archive(recording, 4)
    run_import(str(job.members.first().pk))  # it is imported, and stays
    cancel_import(job)
    for rest in (2, 1, 0):
        assert [queue.about(entry) for entry in queue.entries(REMOVE_CANCELLED)] == [str(job.pk)]
        queue.entries(REMOVE_CANCELLED).delete()
        remove_cancelled(str(job.pk), seconds=0, together=1)
        assert Recording.unscoped.count() == 1 + rest
    assert not queue.entries(REMOVE_CANCELLED).exists()


@pytest.mark.django_db
def test_many_files_are_removed_in_a_few_statements_and_need_no_room_before(folders, recording):
    def asked(files: int) -> int:
        job = waiting_archive(recording, files)
        before = used_bytes(default_project())
        cancel_import(job)
        assert before > used_bytes(default_project()) == 0
        with CaptureQueriesContext(connection) as queries:
            remove_cancelled(str(job.pk))
        assert (Recording.unscoped.count(), left()) == (0, [])
        return len(queries)

    assert asked(3) == asked(9)


@pytest.mark.django_db
def test_a_file_that_cannot_be_removed_keeps_no_other_one(folders, recording, caplog):
    job = waiting_archive(recording, 3)
    path = Recording.unscoped.order_by("pk")[0].path
    path.unlink()
    path.mkdir()  # which the system does not remove as a file
    cancel_import(job)
    queue.entries(REMOVE_CANCELLED).delete()
    remove_cancelled(str(job.pk))
    assert [known.path for known in Recording.unscoped.all()] == [path]
    assert "cannot be removed" in caplog.text
    assert not queue.entries(REMOVE_CANCELLED).exists()  # it would fail again at once
    path.rmdir()
    resume_removing()
    remove_cancelled(str(job.pk))
    assert not Recording.unscoped.exists()


@pytest.mark.django_db
def test_files_none_of_which_can_be_removed_are_not_tried_again_at_once(folders, recording):
    job = waiting_archive(recording, 3)
    for known in Recording.unscoped.all():
        known.path.unlink()
        known.path.mkdir()
    cancel_import(job)
    queue.entries(REMOVE_CANCELLED).delete()
    remove_cancelled(str(job.pk), seconds=0, together=1)
    assert not queue.entries(REMOVE_CANCELLED).exists()
    resume_removing()
    assert queue.entries(REMOVE_CANCELLED).exists()


@pytest.mark.django_db
def test_a_removal_whose_worker_died_is_taken_up(folders, recording):
    job = waiting_archive(recording, 2)
    cancel_import(job)
    queue.entries(REMOVE_CANCELLED).delete()
    resume_removing()
    resume_removing()
    assert queue.entries(REMOVE_CANCELLED).count() == 1
    remove_cancelled(str(job.pk))
    queue.entries(REMOVE_CANCELLED).delete()
    resume_removing()
    assert not queue.entries(REMOVE_CANCELLED).exists()


@pytest.mark.django_db
def test_the_remaining_files_of_an_archive_that_is_unpacked_can_be_cancelled(handler, folders, three):
    job = bring(default_project(), receive([three], "logs.zip"))
    run_import(str(job.pk))
    run_import(str(members().get(name="one.jsonl").pk))
    waiting = PageClient(handler)
    assert "Cancel the remaining files" in waiting.get(job.get_absolute_url()).content.decode()
    waiting.post(f"{job.get_absolute_url()}cancel")
    page = waiting.get(job.get_absolute_url()).content.decode()
    assert ("1 file imported" in page, "2 not imported" in page, "Cancel the" in page) == (True, True, False)
    remove_cancelled(str(job.pk))
    assert Recording.unscoped.get().name == "one.jsonl"


@pytest.mark.django_db
def test_an_archive_needs_no_room_beside_what_is_in_it(client, folders, recording):
    send(client, recording, "one.jsonl")
    project = default_project()
    project.quota_bytes = len(recording)
    project.save()
    content = archive({"a/one.jsonl": recording}, zipfile.ZIP_STORED)
    assert len(content) > len(recording)
    assert [item["state"] for item in send(client, content).json()["imports"]] == ["done"]
    job = bring(project, receive([content], "logs.zip"))
    assert used_bytes(project) == len(recording)
    cancel_import(job)
    project.quota_bytes = None
    project.save()


@pytest.mark.django_db
def test_archives_wait_together_for_no_more_than_the_quota(folders, recording):
    project = default_project()
    content = [archive({"a/one.jsonl": recording + b" " * number + b"\n"}, zipfile.ZIP_STORED) for number in range(3)]
    project.quota_bytes = 2 * len(content[2])
    project.save()
    first, _ = (bring(project, receive([one], "logs.zip")) for one in content[:2])
    with pytest.raises(LimitExceeded, match=r"wait to be unpacked in the project .* send this one when they are"):
        bring(project, receive([content[2]], "logs.zip"))
    assert bring(project, receive([content[0]], "again.zip")) == first
    assert left() == []
    cancel_import(first)
    assert bring(project, receive([content[2]], "logs.zip")).state == "received"
    project.quota_bytes = None
    project.save()
