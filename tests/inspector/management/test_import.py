"""`manage.py import`: files and folders, one line each, an exit code that a script can use."""

from __future__ import annotations

import shutil
from io import StringIO
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command, load_command_class
from django.core.management.base import OutputWrapper

from inspector.ingest.companions import bring
from inspector.ingest.importing import run_import
from inspector.ingest.uploads import receive
from inspector.jobs import indexing
from inspector.models import Import, Project, Recording, Session, default_project
from tests.recordings.seeds import SEEDS

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def inbox(folders, tmp_path, recording) -> Path:
    """A folder as agents leave it: a session, a damaged one, a note, a folder in it."""
    folder = tmp_path / "inbox"
    (folder / "deeper").mkdir(parents=True)
    (folder / "good.jsonl").write_bytes(recording)
    lines = recording.splitlines(keepends=True)
    (folder / "broken.jsonl").write_bytes(b"".join([*lines[:2], b'{"not": "closed"\n', *lines[3:]]))
    (folder / "note.txt").write_text("remember the milk")
    (folder / "deeper" / "same.jsonl").write_bytes(recording)
    return folder


def run(*arguments: object) -> tuple[str, int]:
    out = StringIO()
    try:
        call_command("import", *map(str, arguments), stdout=out)
    except CommandError as error:
        return out.getvalue(), error.returncode
    return out.getvalue(), 0


def test_one_bad_file_does_not_stop_the_others(inbox):
    text, code = run(inbox)
    assert code == 1
    assert "1 imported, 1 known, 1 refused, 1 skipped" in text
    assert Session.unscoped.count() == 1


def test_a_refused_file_is_named_with_its_line(inbox):
    text, _ = run(inbox / "broken.jsonl")
    line = next(line for line in text.splitlines() if "refused" in line)
    assert "broken.jsonl" in line
    assert "line 3" in line
    assert line.endswith("With --lenient, damaged lines are skipped")


def test_what_was_imported_is_searchable_at_once(inbox):
    _, code = run(inbox / "good.jsonl")
    assert code == 0
    assert not indexing.pending().exists()


def test_a_damaged_file_is_read_leniently_when_asked(inbox):
    text, code = run("--lenient", inbox / "broken.jsonl")
    assert (code, Import.unscoped.get().state) == (0, "done"), text


def test_a_place_without_files_is_told_apart(folders, tmp_path):
    (tmp_path / "empty").mkdir()
    assert run(tmp_path / "empty")[1] == 2
    assert run(tmp_path / "absent.jsonl")[1] == 1


def stored(folder: Path) -> Path:
    """A storage folder of OpenCode with one session; the part of it that is a text."""
    storage = folder / "opencode" / "storage"
    for name in ("session/p/ses_1", "message/ses_1/msg_1", "part/msg_1/prt_1"):
        (storage / name).parent.mkdir(parents=True)
    (storage / "session/p/ses_1.json").write_text('{"id":"ses_1","title":"kept in pieces","time":{"created":1}}')
    (storage / "message/ses_1/msg_1.json").write_text('{"id":"msg_1","sessionID":"ses_1","role":"user","time":{}}')
    text = storage / "part/msg_1/prt_1.json"
    text.write_text('{"id":"prt_1","messageID":"msg_1","type":"text","text":"hello"}')
    return text


def test_sessions_of_opencodes_storage_folder_are_put_together(folders, tmp_path):
    stored(tmp_path)
    text, code = run(tmp_path)
    assert (code, "1 imported" in text) == (0, True), text
    assert Session.unscoped.get().title == "kept in pieces"


def test_a_damaged_piece_of_a_session_can_be_left_out(folders, tmp_path):
    whole = stored(tmp_path)
    (whole.parent / "prt_2.json").write_text("{")
    text, code = run(tmp_path)
    assert (code, "the file msg_1/prt_2.json holds no JSON value" in text) == (1, True), text
    text, code = run("--lenient", tmp_path)
    assert (code, "left out" in text) == (0, True), text
    assert Session.unscoped.get().events == 1


def test_a_session_in_several_files_of_a_folder_is_one_recording(folders, tmp_path):
    session = tmp_path / "sessions" / "sid"
    session.mkdir(parents=True)
    (session / "context.jsonl").write_bytes(SEEDS["kimi-cli"])
    (session / "wire.jsonl").write_bytes(SEEDS["kimi-cli wire"])
    (session / "state.json").write_text("{}")
    text, code = run(tmp_path)
    assert (code, "1 imported, 1 skipped" in text) == (0, True), text
    assert Session.unscoped.get().format == "kimi-cli"
    assert "is here already" in run(tmp_path)[0]


def test_sessions_that_were_here_already_are_told(folders, tmp_path):
    parts = stored(tmp_path).parents[1]
    run(tmp_path)
    (parts / "msg_2").mkdir()
    (parts / "msg_2/prt_2.json").write_text('{"id":"prt_2","messageID":"msg_2","type":"text","text":"and more"}')
    message = '{"id":"msg_2","sessionID":"ses_1","role":"user","time":{}}'
    (parts.parent / "message/ses_1/msg_2.json").write_text(message)
    text, code = run(tmp_path)
    assert (code, "1 session: 1 of them was imported before and has new messages" in text) == (0, True), text


def test_files_go_into_the_project_that_is_named(inbox):
    other = Project.objects.create(slug="other", name="Other")
    run(inbox / "good.jsonl")
    text, code = run(inbox / "good.jsonl", "--project", "other")
    assert (code, "1 imported" in text) == (0, True)
    assert Session.objects.of(other).count() == Session.objects.of(default_project()).count() == 1


def test_a_project_that_is_not_there_is_named(inbox):
    with pytest.raises(CommandError, match="There is no project 'none'") as refused:
        call_command("import", str(inbox / "good.jsonl"), "--project", "none", stdout=StringIO())
    assert refused.value.returncode == 2
    assert not Import.unscoped.exists()


def test_a_zip_archive_is_read_as_the_folder_in_it(inbox, tmp_path):
    packed = shutil.make_archive(str(tmp_path / "logs"), "zip", tmp_path, "inbox")
    text, code = run(packed)
    assert (code, f"imported  {packed}/inbox/deeper/same.jsonl  " in text) == (1, True), text
    assert f"skipped  {packed}/inbox/note.txt  not a supported format" in text
    assert "1 imported, 1 known, 1 refused, 1 skipped" in text
    assert list(Path(settings.INCOMING_DIR).iterdir()) == []


def test_a_damaged_zip_archive_is_refused_with_the_reason(inbox, tmp_path):
    packed = Path(shutil.make_archive(str(tmp_path / "logs"), "zip", tmp_path, "inbox"))
    packed.write_bytes(packed.read_bytes()[:-40])
    text, code = run(packed)
    assert (code, "damaged or cut off" in text, Recording.unscoped.count()) == (1, True, 0), text


def test_what_a_server_s_worker_has_read_of_an_archive_is_said_as_if_read_here(inbox, tmp_path):
    packed = Path(shutil.make_archive(str(tmp_path / "logs"), "zip", tmp_path, "inbox"))
    job = bring(default_project(), receive([packed.read_bytes()], "logs.zip"))
    run_import(str(job.pk))
    for member in job.members.all():
        run_import(str(member.pk))
    job.refresh_from_db()
    out = StringIO()
    command = load_command_class("inspector", "import")
    command.stdout = OutputWrapper(out)
    said = command.outcomes_in(packed, job)
    assert sorted(said) == ["imported", "known", "refused", "skipped"], out.getvalue()
