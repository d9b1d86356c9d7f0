"""What programs read and write of comments."""

from __future__ import annotations

from uuid import uuid4

import pytest
from django.utils import timezone

from guard_core.recordings.formats import native
from inspector.accounts import keys
from inspector.models import AccountRole, AuditRecord, Comment, Project, Session, default_project
from tests.big_sessions import big_session
from tests.inspector.conftest import imported
from tests.inspector.people import browser, person

pytestmark = pytest.mark.django_db
STEP = {"place": "step", "number": 2, "text": "Why so early?"}


@pytest.fixture(scope="module")
def row(shared_rows) -> Session:
    with shared_rows():
        imported(native.write(big_session(60, 3)))
        return Session.unscoped.get()


def address(row: Session, comment: object = "") -> str:
    return f"/api/v1/sessions/{row.pk}/comments" + (f"/{comment}" if comment else "")


def say(client, row: Session, **fields: object):
    return client.post(address(row), {**STEP, **fields}, content_type="application/json")


def test_a_comment_is_written_read_and_deleted(client, row):
    answer = say(client, row)
    comment = answer.json()
    assert (answer.status_code, comment["place"], comment["number"], comment["author"]) == (201, "step", 2, "local")
    assert "Why so early?" in client.get(comment["url"], follow=True).text
    say(client, row, text="Because.", place=None, thread=comment["id"])
    listed = client.get(address(row)).json()["comments"]
    assert [(item["text"], item["thread"]) for item in listed] == [("Why so early?", None), ("Because.", comment["id"])]
    assert client.delete(address(row, listed[1]["id"])).status_code == 204
    assert client.delete(address(row, comment["id"])).status_code == 204
    assert client.get(address(row)).json() == {"comments": []}


@pytest.mark.parametrize("place", [{"place": "compaction", "number": 0}, {"place": "part", "number": 1, "part": 0}])
def test_every_place_of_a_recording_can_be_commented_on(client, row, place):
    assert say(client, row, **place).status_code == 201
    assert client.get(address(row)).json()["comments"][0].items() >= place.items()


def test_what_is_sent_again_is_stored_once(client, row):
    answers = [say(client, row, token="run 7, note 1") for _ in range(3)]
    assert [answer.status_code for answer in answers] == [201, 200, 200]
    assert len({answer.json()["id"] for answer in answers}) == Comment.unscoped.count() == 1
    assert say(client, row, token="run 7, note 2").status_code == 201
    other = say(client, row, token="run 7, note 1", text="Something else")
    assert (other.status_code, "each comment needs its own" in other.json()["error"]) == (409, True)
    assert say(client, row, token="run 7, note 1", number=3).status_code == 409
    Comment.unscoped.filter(pk=answers[0].json()["id"]).delete()
    assert Comment.unscoped.count() == 1


@pytest.mark.once  # refused before anything is stored
@pytest.mark.parametrize(
    ("fields", "status", "words"),
    [
        ({"text": " "}, 400, "A comment needs a text."),
        ({"text": "x" * 4_001}, 400, "text"),
        ({"place": None}, 400, "must name its place"),
        ({"place": "turn"}, 400, "place"),
        ({"number": -1}, 400, "number"),
        ({"number": 10**12}, 400, "number"),
        ({"number": 999}, 404, "There is no step 1,000"),
        ({"place": "compaction", "number": 99}, 404, "There is no compaction 100"),
        ({"thread": str(uuid4())}, 404, "no such thread"),
        ({"thread": "x"}, 400, "thread"),
        ({"token": "x" * 201}, 400, "token"),
        ({"author": "root"}, 400, "author"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_stored(client, row, fields, status, words):
    answer = say(client, row, **fields)
    assert (answer.status_code, words in answer.json()["error"]) == (status, True), answer.text
    assert not Comment.unscoped.exists()


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"null", b'{"text": "\xff"}', b'{"text": "\\ud800", "place": "step"}']
)
def test_no_body_is_an_internal_error(client, row, body):
    answer = client.post(address(row), body, content_type="application/json")
    assert answer.status_code in (201, 400), answer.text
    assert client.get(address(row)).status_code == 200


def test_a_comment_that_is_not_there_is_said_to_be_missing(client, row):
    assert client.delete(address(row, uuid4())).json() == {"error": "There is no such comment."}
    assert client.get(f"/api/v1/sessions/{uuid4()}/comments").status_code == 404
    Session.unscoped.update(project=Project.objects.create(slug="other", name="Other"))
    assert say(client, row).status_code == 404


@pytest.fixture
def program(row, team, team_handler):
    """Asks with a key of some scopes."""

    def asks(method: str, url: str, *scopes: str, name: str = "bot", body: object = None) -> object:
        text = keys.make(default_project(), name, scopes, "olga")[1]
        return browser(team_handler).generic(
            method, url, body or b"", "application/json", headers={"Authorization": f"Bearer {text}"}
        )

    return asks


def test_a_key_reads_or_writes_as_its_scopes_say(row, program):
    body = b'{"place": "step", "number": 0, "text": "Too late."}'
    assert [program("POST", address(row), scope, body=body).status_code for scope in ("read", "ingest")] == [403, 403]
    assert program("POST", address(row), "comment", body=body).json()["author"] == "key bot"
    assert [program("GET", address(row), scope).status_code for scope in ("read", "ingest", "comment")] == [
        200,
        403,
        403,
    ]
    assert program("POST", "/recordings/", "comment").status_code == 403
    assert program("POST", f"/api/v1/sessions/{row.pk}/events", "comment", body=b'{"first": 0}').status_code == 403


def test_a_key_deletes_what_it_wrote_and_nothing_else(row, program, team_handler):
    emil = browser(team_handler, person("emil", default_project(), AccountRole.EDITOR))
    mine = say(emil, row).json()
    assert mine["author"] == "emil"
    answer = program("DELETE", address(row, mine["id"]), "comment")
    assert (answer.status_code, "Only the author" in answer.json()["error"]) == (403, True)
    text = keys.make(default_project(), "bot", ["comment"], "olga")[1]
    headers = {"Authorization": f"Bearer {text}"}
    bot = browser(team_handler)
    its = bot.post(address(row), STEP, content_type="application/json", headers=headers).json()
    assert emil.delete(address(row, its["id"])).status_code == 403
    assert emil.post(f"/s/{row.pk}/comments/{its['id']}/edit", {"text": "mine"}).status_code == 403
    assert bot.delete(address(row, its["id"]), headers=headers).status_code == 204
    assert AuditRecord.objects.get(what="comment deleted").actor == "key bot"


def test_a_viewer_reads_and_an_owner_deletes(row, team, team_handler):
    vera, olga = (
        browser(team_handler, person(name, default_project(), role))
        for name, role in (("vera", AccountRole.VIEWER), ("olga", AccountRole.OWNER))
    )
    its = say(olga, row).json()
    assert vera.get(address(row)).json()["comments"][0]["id"] == its["id"]
    assert say(vera, row).status_code == 403
    assert vera.delete(address(row, its["id"])).status_code == 403
    assert olga.delete(address(row, its["id"])).status_code == 204


def test_a_thread_is_resolved_and_reopened_however_often_it_is_asked_for(client, row):
    its = say(client, row).json()
    resolved = [client.put(address(row, f"{its['id']}/resolved")) for _ in range(2)]
    assert [answer.status_code for answer in resolved] == [200, 200]
    first, second = (answer.json() for answer in resolved)
    assert first == second == client.get(address(row)).json()["comments"][0]
    assert (first["resolved"] is not None, first["resolved_by"]) == (True, "local")
    assert "local" in client.get(f"/s/{row.pk}/comments?show=resolved").text
    reopened = [client.delete(address(row, f"{its['id']}/resolved")).json() for _ in range(2)]
    assert [(item["resolved"], item["resolved_by"]) for item in reopened] == [(None, "")] * 2
    client.put(address(row, f"{its['id']}/resolved"))
    say(client, row, text="Not yet.", place=None, thread=its["id"])
    assert client.get(address(row)).json()["comments"][0]["resolved"] is None


def test_only_what_begins_a_thread_is_resolved(client, row):
    its = say(client, row).json()
    answer = say(client, row, text="Because.", place=None, thread=its["id"]).json()
    for key in (answer["id"], uuid4()):
        assert client.put(address(row, f"{key}/resolved")).json() == {"error": "There is no such thread."}
    Session.unscoped.update(project=Project.objects.create(slug="other", name="Other"))
    assert client.put(address(row, f"{its['id']}/resolved")).status_code == 404
    assert not Comment.unscoped.exclude(resolved=None).exists()


@pytest.mark.parametrize("is_resolved", [True, False])
def test_who_may_write_comments_resolves_and_reopens_threads(row, team, team_handler, program, is_resolved):
    members = {role: person(role, default_project(), role) for role in AccountRole}
    other = person("other", Project.objects.create(slug="other", name="Other"))
    its = say(browser(team_handler, members[AccountRole.OWNER]), row).json()
    method, url = ("PUT" if is_resolved else "DELETE"), address(row, f"{its['id']}/resolved")

    def asked(who: object) -> tuple[int, str]:
        before = None if is_resolved else timezone.now()
        Comment.unscoped.update(resolved=before, resolved_by="" if is_resolved else "x")
        answer = program(method, url, who) if isinstance(who, str) else browser(team_handler, who).generic(method, url)
        changed = (Comment.unscoped.get().resolved is not None) is is_resolved
        assert changed is (answer.status_code == 200)
        return answer.status_code, Comment.unscoped.get().resolved_by

    assert [asked(members[role]) for role in (AccountRole.OWNER, AccountRole.EDITOR)] == [
        (200, role if is_resolved else "") for role in (AccountRole.OWNER, AccountRole.EDITOR)
    ]
    assert [asked(who)[0] for who in (members[AccountRole.VIEWER], other, None)] == [403, 404, 401]
    assert asked("comment") == (200, "key bot" if is_resolved else "")
    assert [asked(scope)[0] for scope in ("read", "ingest")] == [403, 403]
