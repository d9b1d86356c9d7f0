"""What is in one project is not seen, counted, found, extended, known again or deleted from another."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from guard_core.recordings.formats import native
from guard_core.sessions import Session as CoreSession
from inspector.data_folder.sweeping import sweep_daily
from inspector.ingest.importing import run_import
from inspector.ingest.submitting import submit
from inspector.ingest.uploads import keep, receive
from inspector.jobs import estimating, indexing
from inspector.models import (
    GalleryRun,
    Import,
    ModelWindow,
    Payload,
    Project,
    Recording,
    RuleSetting,
    Session,
    SummaryText,
    Tag,
    TextCount,
    default_project,
)
from inspector.models.rules import stated_settings
from inspector.models.windows import stated_window
from inspector.pages.gallery import runs
from inspector.pages.gallery.table import PolicyChoice
from inspector.pages.library import tagging
from inspector.pages.shared import stated_windows as stating
from inspector.storage import deleting, search
from inspector.storage.query_words import parse
from tests.builders import model, session, user

SECRET = "zanzibar"
NOWHERE = "00000000-0000-4000-8000-000000000000"
Bring = Callable[..., Session]
pytestmark = pytest.mark.django_db


@pytest.fixture
def other() -> Project:
    return Project.objects.create(slug="other", name="Other")


@pytest.fixture
def import_into(db: None, folders: Path) -> Bring:
    """Imports a file into a project as the worker would; its first session."""

    def importer(project: Project, content: bytes, name: str = f"{SECRET}.jsonl") -> Session:
        job = submit(project, receive([content], name))
        run_import(str(job.pk))
        job.refresh_from_db()
        assert job.state == Import.State.DONE, job.message
        return Session.objects.of(project).filter(recording=job.recording_id).order_by("ordinal").first()

    return importer


def chat(turns: int, **options: Any) -> CoreSession:
    events = [event for n in range(turns) for event in (user(f"{SECRET} {n}?"), model(f"It is {n}, {SECRET}."))]
    return session(*events, **{"title": SECRET, "agent": SECRET, "model": f"{SECRET}-1", **options})


@pytest.fixture
def theirs(import_into, other) -> Session:
    """A session of another project with a tag, a failed import and a gallery run around it."""
    row = import_into(other, native.write(chat(3)))
    tagging.tag(other, Session.objects.row(row), [SECRET])
    moment = timezone.now()
    Import.objects.of(other).create(name=f"bad-{SECRET}.txt", state="failed", finished=moment, message=SECRET)
    Import.objects.of(other).create(name=f"waiting-{SECRET}.txt")
    GalleryRun.objects.of(other).create(choice="none", engine=runs.engine_key(), state="done", result=runs.packed([]))
    return row


def addresses(row: Session) -> list[str]:
    """Every page that takes the key of a session, a recording or an import."""
    session_pages = ("overview", "steps", "estimator", "figure", "search")
    job = Import.objects.of(row.project_id).get(recording=row.recording_id)
    return [
        *(reverse(f"session_{name}", args=[row.pk]) for name in session_pages),
        reverse("compaction", args=[row.pk, 1]),
        reverse("step_list", args=[row.pk]),
        reverse("recording_raw", args=[row.recording_id]),
        reverse("import_detail", args=[job.pk]),
        reverse("import_status", args=[job.pk]),
    ]


def actions(row: Session) -> list[str]:
    """Everything that changes a session or an import by its key."""
    job = Import.objects.of(row.project_id).get(recording=row.recording_id)
    return [
        *(reverse(f"session_{name}", args=[row.pk]) for name in ("rename", "delete", "window")),
        *(reverse(f"import_{name}", args=[job.pk]) for name in ("cancel", "again", "choose")),
    ]


def test_the_pages_of_another_project_are_not_there(theirs, client):
    for address in addresses(theirs):
        assert client.get(address).status_code == 404, address
    for address in actions(theirs):
        assert client.post(address, {"title": "mine", "window": "5k"}).status_code == 404, address
    theirs.refresh_from_db()
    assert (theirs.title, theirs.window_override, theirs.deleted) == (SECRET, None, None)


def test_pages_with_a_key_that_exists_answer_as_with_one_that_does_not(theirs, client):
    for address in addresses(theirs):
        nowhere = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", NOWHERE, address)
        assert visible(client.get(address)) == visible(client.get(nowhere))


@pytest.mark.parametrize(
    "address",
    [
        "/",
        f"/?q={SECRET}",
        f"/?tag={SECRET}",
        "/?sort=-size",
        "/?page=2",
        f"/search?q={SECRET}",
        "/gallery/",
        "/triggers/",
        "/triggers/?row=",
        "/sweeps/",
        "/sweeps/new",
    ],
)
def test_no_page_shows_or_counts_what_another_project_has(theirs, client, address):
    before = client.get(address)
    theirs.delete()
    Import.unscoped.all().delete()
    Tag.unscoped.all().delete()
    assert visible(before) == visible(client.get(address))


def visible(response: Any) -> str:
    """A page without the token of its forms, which is another one each time."""
    return re.sub(r"\b[A-Za-z0-9]{64}\b", "", response.content.decode(errors="replace"))


def test_the_list_of_one_project_is_its_own(theirs, import_into, client):
    import_into(default_project(), native.write(chat(2, title="mine", agent="a", model="gpt-4o")), "mine.jsonl")
    page = client.get("/").content.decode()
    assert "1 session" in page
    assert "mine" in page
    assert SECRET not in page


def test_a_choice_of_sessions_takes_in_none_of_another_project(theirs, client):
    for form in ({"id": [str(theirs.pk)]}, {"all": "1", "list": "?"}):
        client.post("/sessions/bulk", {"action": "delete", **form})
        client.post("/sessions/bulk", {"action": "tag", "tags": "mine", **form})
        client.post("/sessions/bulk", {"action": "untag", "tags": SECRET, **form})
    theirs.refresh_from_db()
    assert theirs.deleted is None
    assert [tag.name for tag in theirs.tags.all()] == [SECRET]


def test_an_undo_brings_back_nothing_of_another_project(theirs, other, client):
    key = deleting.delete(other, Session.objects.row(theirs))
    client.post("/sessions/restore", {"undo": key})
    assert Session.objects.of(other).get().deleted is not None
    assert "1 session" not in client.get(f"/?undo={key}").content.decode()
    assert deleting.restore(other, key) == 1


def test_the_search_finds_and_awaits_only_the_own_texts(theirs, other, client):
    assert search.everywhere(default_project(), parse(SECRET), None, 9, 3) == []
    assert len(search.everywhere(other, parse(SECRET), None, 9, 3)) == 1
    Session.objects.row(theirs).update(indexed=0)
    assert client.get(f"/search?q={SECRET}").context["waiting"] == 0


def test_summaries_of_another_project_are_not_found(theirs, other):
    SummaryText.objects.in_session(theirs).create(compaction=0, message=0, words=" only here ")
    assert len(search.everywhere(other, parse("only"), None, 9, 3)) == 1
    assert search.everywhere(default_project(), parse("only"), None, 9, 3) == []


def test_a_file_of_another_project_is_read_as_if_nobody_had_it(theirs, import_into, other):
    with theirs.recording.path.open("rb") as file:
        content = file.read()
    mine = import_into(default_project(), content)
    assert mine.pk != theirs.pk
    assert mine.recording_id != theirs.recording_id
    report = Import.objects.of(default_project()).get()
    assert (report.state, report.attempts, '"known"' in report.report) == ("done", 1, False)
    assert Session.objects.of(other).get() == theirs


def test_a_longer_file_extends_no_session_of_another_project(theirs, import_into, other):
    longer = import_into(default_project(), native.write(chat(5)))
    theirs.refresh_from_db()
    assert (theirs.events, longer.events) == (6, 10)
    assert theirs.recording_id != longer.recording_id
    assert not longer.recording.older.exists()


def test_a_rewritten_file_extends_no_session_of_another_project(import_into, other):
    named = {"source_id": "s-1", "title": ""}
    theirs = import_into(other, b"\n" + native.write(chat(3, **named)), "a.jsonl")
    mine = import_into(default_project(), native.write(chat(4, **named)), "a.jsonl")
    assert mine.pk != theirs.pk
    assert Session.objects.of(other).get().events == 6


def test_the_bytes_stay_as_long_as_one_project_has_them(theirs, import_into, other, folders):
    with theirs.recording.path.open("rb") as file:
        content = file.read()
    mine = import_into(default_project(), content)
    path = mine.recording.path
    for project, stays in ((other, True), (default_project(), False)):
        deleting.delete(project, Session.objects.of(project))
        deleting.purge(timezone.now() + timedelta(days=2))
        sweep_daily()
        assert path.is_file() is stays
        assert Payload.objects.exists() is stays
    assert not Recording.unscoped.exists()


def test_a_purge_leaves_the_texts_that_another_project_names(theirs, import_into, other, client):
    mine = import_into(default_project(), native.write(chat(5)))
    deleting.delete(other, Session.objects.row(theirs))
    deleting.purge(timezone.now() + timedelta(days=2))
    assert mine.log.count() == Payload.objects.count() == 10
    assert SECRET in client.get(reverse("session_steps", args=[mine.pk])).content.decode()


def test_a_text_is_counted_anew_where_another_project_has_counted_it(theirs, import_into, other):
    while estimating.pending().exists():
        estimating.TOKEN_COUNTS.run("test")
    counted = TextCount.objects.of(other).count()
    assert counted == 6
    import_into(default_project(), native.write(chat(5)))
    assert not TextCount.objects.of(default_project()).exists()
    while estimating.pending().exists():
        estimating.TOKEN_COUNTS.run("test")
    assert (TextCount.objects.of(other).count(), TextCount.objects.of(default_project()).count()) == (6, 10)


def test_counts_go_with_the_last_session_of_a_project_that_has_the_text(theirs, import_into, other):
    import_into(default_project(), native.write(chat(5)))
    while estimating.pending().exists():
        estimating.TOKEN_COUNTS.run("test")
    deleting.delete(other, Session.objects.row(theirs))
    deleting.purge(timezone.now() + timedelta(days=2))
    assert (TextCount.objects.of(other).count(), TextCount.objects.of(default_project()).count()) == (0, 10)


def test_a_window_is_stated_for_the_models_of_one_project(theirs, import_into):
    mine = import_into(default_project(), native.write(chat(5)))
    stating.set_for_model(mine, 64_000)
    theirs.refresh_from_db()
    assert theirs.model_window is None
    assert ModelWindow.unscoped.count() == 1
    asked = (mine.model, mine.format, "assumed")
    assert stated_window(theirs.project_id, *asked) is None
    assert stated_window(mine.project_id, *asked) == 64_000


def test_a_setting_is_stated_for_the_agents_of_one_project(other):
    RuleSetting.objects.of(other).create(agent="Claude Code", name="max_output_tokens", value="8192")
    assert stated_settings(other, "Claude Code") == {"max_output_tokens": "8192"}
    assert stated_settings(default_project(), "Claude Code") == {}


def test_a_run_of_the_gallery_is_played_anew_for_another_project(theirs, other):
    none = (PolicyChoice("none", ""),)
    known = runs.latest_run(other, none, GalleryRun.State.DONE)
    assert known is not None
    assert runs.latest_run(default_project(), none) is None
    assert runs.start_run(default_project(), none) != known


def test_old_runs_make_room_in_their_own_project_alone(theirs, other):
    mine = default_project()
    for number in range(runs.KEPT_RUNS + 5):
        GalleryRun.objects.of(mine).create(choice=f"c{number}", engine="1", state="done")
    run = runs.start_run(mine, (PolicyChoice("none", ""),))
    runs.run_gallery(str(run.pk))
    assert GalleryRun.objects.of(mine).count() == runs.KEPT_RUNS
    assert GalleryRun.objects.of(other).count() == 1


def test_a_sub_agent_is_not_looked_for_in_another_project(import_into, other, client):
    import_into(other, native.write(chat(2, source_id="child", parent="boss")), "child.jsonl")
    mine = import_into(default_project(), native.write(chat(3, source_id="boss", title="mine")), "boss.jsonl")
    page = client.get(mine.get_absolute_url())
    assert page.context["family"] == client.get(mine.get_absolute_url()).context["family"]
    assert str(Session.objects.of(other).get().pk) not in page.content.decode()


def test_a_worker_prepares_the_sessions_of_every_project(theirs):
    Session.objects.row(theirs).update(indexed=0)
    indexing.index_everything()
    theirs.refresh_from_db()
    assert theirs.indexed == theirs.events


def test_a_dropped_recording_leaves_the_bytes_to_a_row_of_another_project(import_into, other, recording):
    mine = import_into(default_project(), recording, "a.jsonl")
    theirs = keep(other, receive([recording], "b.jsonl"))
    theirs_path = theirs.path
    deleting.delete(default_project(), Session.objects.row(mine))
    deleting.purge(timezone.now() + timedelta(days=2))
    assert theirs_path.read_bytes() == recording


def test_the_project_of_a_request_is_no_choice_of_the_request(theirs, client: Client):
    for address in ("/?project=other", f"/?project={theirs.project_id}"):
        page = client.get(address, headers={"X-Project": "other", "Cookie": "project=other"})
        assert SECRET not in page.content.decode()
