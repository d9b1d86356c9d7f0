"""Comments belong to a place of a session and to who wrote them, and leave it in no share and no export."""

from __future__ import annotations

import html
import re

import msgspec
import pytest
from django.urls import reverse

from guard_core.recordings.formats import native
from guard_core.sessions import Evidence, RecordedCompaction
from guard_core.views import Span
from inspector.models import AccountRole, Comment, Import, Project, Session, default_project
from inspector.pages.comments import writing
from inspector.pages.shared.comments import LONGEST_TEXT, NAME_COOKIE, CommentPlace
from inspector.sharing.making import NAMES
from tests.builders import bundled
from tests.guard_core.outcomes.cast import counted
from tests.inspector.conftest import imported
from tests.inspector.pages.conftest import stored
from tests.inspector.pages.share.tools import drafted, published, session_with_secrets
from tests.inspector.people import browser, person

pytestmark = pytest.mark.django_db
SECRET = "zanzibar"
PLACES = [{"step": 3}, {"compaction": 1}, {"message": 2, "part": 1}]


@pytest.fixture(scope="module")
def row(shared_rows) -> Session:
    with shared_rows():
        return only_session(imported(session_with_secrets()))


def only_session(job: Import) -> Session:
    """What came of an import."""
    return Session.unscoped.get(recording=job.recording)


def page(row: Session, name: str = "session_comments", *keys: object) -> str:
    return reverse(name, args=[row.pk, *keys])


def say(client, row: Session, text: str = "Why so early?", **fields: object):
    """Post a comment; the answer."""
    return client.post(page(row), {"text": text, **(fields or {"step": 3})})


@pytest.mark.parametrize("place", PLACES, ids=["step", "compaction", "part"])
def test_a_comment_is_shown_at_its_place_and_in_the_list(client, row, place):
    answer = say(client, row, "Why so early?\nSee step 2 & step 99999.", **place)
    comment = Comment.unscoped.get()
    assert answer.status_code == 302
    where, _, anchor = answer["Location"].partition("#")
    assert anchor == f"comment-{comment.pk}"
    for url in (where, page(row)):
        text = client.get(url).text
        assert f'id="{anchor}"' in text
        assert f'Why so early?<br>See <a href="{page(row, "session_steps")}?at=2">step 2</a> &amp; step 99999.' in text
    assert client.get(page(row, "comment", comment.pk))["Location"] == answer["Location"]


def test_steps_with_comments_are_marked_in_the_list_and_on_the_strip(client, row):
    before = client.get(page(row, "session_steps") + "?at=1").text
    assert "strip-comments" not in before
    for place in ({"step": 3}, {"step": 3}, {"message": 1, "part": 1}):
        say(client, row, **place)
    text = client.get(page(row, "session_steps") + "?at=1").text
    marked = re.findall(r'data-step="(\d+)"(?:(?!</a>).)*?title="(\d) comments?"', text)
    assert marked == [("1", "1"), ("3", "2")]
    assert "2 steps with comments" in text
    assert re.search(r'href="[^"]*/comments"[^>]*>Comments ?<span class="badge">3<', text)


def test_a_comment_on_a_compaction_that_no_request_followed_is_at_no_step(client, folders):
    session = bundled("healthy")
    last = RecordedCompaction(len(session.events), Evidence.DECLARED, "trim", (Span(0, 1),), trigger="auto")
    row = only_session(
        imported(native.write(msgspec.structs.replace(session, compactions=(*session.compactions, last))))
    )
    say(client, row, compaction=len(session.compactions) + 1)
    text = client.get(page(row, "session_steps") + "?at=1").text
    assert "strip-comments" not in text
    assert re.search(r'href="[^"]*/comments"[^>]*>Comments ?<span class="badge">1<', text)


def test_a_text_is_text(client, row):
    say(client, row, '<script>alert(1)</script>\n<a href="javascript:x">\u202estep 1\x00')
    text = re.sub("<textarea.*?</textarea>", "", client.get(page(row)).text, flags=re.DOTALL)
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "javascript:x&quot;" in text
    assert "\u202e" not in text


def test_a_reply_belongs_to_its_thread_and_opens_it_again(client, row):
    say(client, row)
    first = Comment.unscoped.get()
    client.post(page(row, "comment_resolve", first.pk), {"resolved": "1"})
    assert "resolved" in client.get(page(row) + "?show=resolved").text
    assert "Why so early?" not in client.get(page(row) + "?show=open").text
    say(client, row, "The window is small.", thread=first.pk)
    text = client.get(page(row) + "?show=open").text
    assert text.index("Why so early?") < text.index("The window is small.")
    first.refresh_from_db()
    assert first.resolved is None
    assert [reply.number for reply in first.replies.all()] == [first.number] == [2]


def test_a_form_that_is_sent_twice_stores_one_comment(client, row):
    form = re.search(r'name="token" value="([^"]+)"', client.get(page(row, "session_steps") + "?at=3").text)
    places = {say(client, row, step=3, token=form[1])["Location"] for _ in range(2)}
    assert (len(places), Comment.unscoped.count()) == (1, 1)
    say(client, row, "And another", step=3, token=form[1])  # one went back, and typed on
    first = Comment.unscoped.first()
    answers = {say(client, row, "Because.", thread=first.pk, token=form[1])["Location"] for _ in range(2)}
    assert (len(answers), Comment.unscoped.count(), first.replies.count()) == (1, 3, 1)
    say(client, row, step=3)
    say(client, row, step=3)  # by a program, which has no token
    assert Comment.unscoped.count() == 5


def test_a_comment_is_edited_and_deleted(client, row):
    say(client, row)
    comment = Comment.unscoped.get()
    client.post(page(row, "comment_edit", comment.pk), {"text": "Why so late?"})
    assert "Why so late?" in client.get(page(row)).text
    assert "edited" in client.get(page(row)).text
    client.post(page(row, "comment_delete", comment.pk))
    assert not Comment.unscoped.exists()
    assert client.get(page(row, "comment", comment.pk)).status_code == 404


def test_a_deleted_comment_leaves_its_answers_and_goes_with_the_last(client, row):
    say(client, row)
    first = Comment.unscoped.get()
    say(client, row, "Because.", thread=first.pk)
    client.post(page(row, "comment_delete", first.pk))
    text = client.get(page(row)).text
    assert "Why so early?" not in text
    assert "This comment was deleted." in text
    assert "Because." in text
    client.post(page(row, "comment_delete", first.replies.get().pk))
    assert not Comment.unscoped.exists()


@pytest.mark.once  # refused before anything is stored
@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"text": "  \n"}, "A comment needs a text."),
        ({"text": "x" * (LONGEST_TEXT + 1)}, "at most 4,000 characters; this one has 4,001"),
        ({"step": "99999"}, "There is no step 99,999"),
        ({"step": "0"}, "name one"),
        ({"step": "x"}, "name one"),
        ({"compaction": "9", "step": ""}, "There is no compaction 9: the session has 1."),
        ({"message": "999999999"}, "There is no message 999,999,999"),
        ({"message": "1", "part": "77"}, "Message 1 has no part 77."),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_stored(client, row, fields, words):
    answer = client.post(page(row), {"step": "3", "text": "Typed text", **fields})
    assert answer.status_code == 422
    assert words in answer.text
    assert not Comment.unscoped.exists()


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("?step=99999", "There is no step 99,999: the session has "),
        ("?compaction=9", "There is no compaction 9: the session has 1."),
        ("?message=999999999&part=1", "There is no message 999,999,999"),
    ],
)
def test_an_address_of_a_place_that_is_not_there_offers_no_form(client, row, query, words):
    answer = client.get(page(row) + query)
    assert answer.status_code == 404
    assert words in answer.text
    assert f'href="{page(row)}">Back<' in answer.text
    assert "New comment" not in answer.text


def test_what_was_typed_is_not_lost_by_a_mistake(client, row):
    assert "Typed text" in client.post(page(row), {"message": "1", "part": "77", "text": "Typed text"}).text


def test_threads_and_sessions_have_limits(client, row):
    say(client, row)
    first = Comment.unscoped.get()
    same = {"session": row, "place": "step", "number": 2, "author": "local", "text": "x"}
    Comment.unscoped.bulk_create([Comment(**same, thread=first) for _ in range(writing.MOST_REPLIES)])
    answer = say(client, row, "One more", thread=first.pk)
    assert (answer.status_code, "at most 50 replies" in answer.text) == (422, True)
    left = writing.MOST_COMMENTS - Comment.unscoped.count()
    Comment.unscoped.bulk_create([Comment(**same) for _ in range(left)])
    assert (writing.MOST_COMMENTS, Comment.unscoped.count()) == (1_000, 1_000)
    with pytest.raises(writing.CommentRefused, match="at most 1,000 comments"):
        writing.add(row, CommentPlace("step", 2), "One more", writing.CommentWriter("local"))


def test_the_settings_of_a_replay_are_kept(client, row):
    answer = client.post(page(row), {"text": "x", "step": 3, "settings": "?policy=codex&evil=1&side=replayed"})
    assert answer["Location"].startswith(page(row, "session_steps") + "?policy=codex&at=3&side=replayed#")


def test_settings_of_the_policy_of_the_own_agent_are_kept_without_its_name(client):
    row = stored(msgspec.structs.replace(counted((9_000, 20_000)), format="claude-code"))
    answer = client.post(page(row), {"text": "x", "step": 2, "settings": "?max_output=8000&side=replayed"})
    assert answer["Location"].startswith(page(row, "session_steps") + "?max_output=8000&at=2&side=replayed#")


def test_in_local_mode_a_name_is_typed_once(client, row):
    assert 'value="local"' in client.get(page(row, "session_steps") + "?at=3").text
    say(client, row, step=3, name="  Ada\tL. ")
    assert Comment.unscoped.get().author == "Ada L."
    assert 'value="Ada L."' in client.get(page(row, "session_steps") + "?at=3").text
    client.post(page(row), {"text": "x", "step": 3, "name": "\u202e"})
    assert {row.author for row in Comment.unscoped.all()} == {"Ada L.", "local"}


@pytest.fixture
def people(team, team_handler):
    names = {
        "olga": AccountRole.OWNER,
        "emil": AccountRole.EDITOR,
        "eva": AccountRole.EDITOR,
        "vera": AccountRole.VIEWER,
    }
    return {name: browser(team_handler, person(name, default_project(), role)) for name, role in names.items()}


def test_a_name_in_any_script_is_remembered(client, row):
    answer = say(client, row, step=3, name="名前 Ωmega; x=1")
    assert answer.cookies[NAME_COOKIE].output().isascii()  # a server sends nothing else
    assert Comment.unscoped.get().author == "名前 Ωmega; x=1"
    assert "名前 Ωmega; x=1" in client.get(page(row)).text


def test_only_its_author_changes_a_comment_and_an_owner_may_delete_it(row, people):
    say(people["emil"], row)
    comment = Comment.unscoped.get()
    assert comment.author == "emil"
    for name in ("eva", "olga", "vera"):
        assert people[name].post(page(row, "comment_edit", comment.pk), {"text": "mine"}).status_code == 403
    for name in ("eva", "vera"):
        assert people[name].post(page(row, "comment_delete", comment.pk)).status_code == 403
    comment.refresh_from_db()
    assert comment.text == "Why so early?"
    assert people["eva"].post(page(row, "comment_resolve", comment.pk), {"resolved": "1"}).status_code == 302
    assert "by eva" in people["vera"].get(page(row)).text
    assert people["olga"].post(page(row, "comment_delete", comment.pk)).status_code == 302
    assert not Comment.unscoped.exists()


def test_a_viewer_reads_and_sees_no_form(row, people):
    say(people["emil"], row)
    for url in (page(row), page(row, "session_steps") + "?at=3"):
        text = people["vera"].get(url).text
        assert "Why so early?" in text
        assert 'name="text"' not in text
        assert "/resolve" not in text
    assert say(people["vera"], row).status_code == 403


def test_another_project_sees_and_changes_nothing(row, client):
    say(client, row, SECRET)
    comment = Comment.unscoped.get()
    Session.unscoped.update(project=Project.objects.create(slug="other", name="Other"))
    assert client.get(page(row)).status_code == 404
    assert client.get(page(row, "comment", comment.pk)).status_code == 404
    for name in ("edit", "delete", "resolve"):
        assert client.post(page(row, f"comment_{name}", comment.pk), {"text": "mine"}).status_code == 404
    assert say(client, row).status_code == 404
    comment.refresh_from_db()
    assert (comment.text, Comment.unscoped.count()) == (SECRET, 1)


def test_comments_leave_in_no_share_and_no_export(client, row):
    say(client, row, SECRET)
    share = drafted(client, row)
    link = published(client, share)
    for name in ("", *NAMES):
        assert SECRET not in client.get(link + name).text
    for query in ("", "?redact=1"):
        assert SECRET.encode() not in client.get(reverse("session_export", args=[row.pk]) + query).getvalue()
    form = client.get(reverse("session_share", args=[row.pk])).text
    assert "are in no report and no export" in form
    assert SECRET not in form


def test_an_author_may_take_open_comments_into_the_remarks(client, row):
    say(client, row, SECRET)
    say(client, row, "Settled", step=2)
    client.post(page(row, "comment_resolve", Comment.unscoped.get(number=1).pk), {"resolved": "1"})
    text = client.get(reverse("session_share", args=[row.pk]) + "?remarks=comments").text
    assert f"step 3: {SECRET}" in text
    assert "Settled" not in text
    link = published(client, drafted(client, row, remarks=f"step 3: {SECRET}"))
    assert SECRET in client.get(link).text


@pytest.mark.parametrize("here", ["?show=open", "?show=&step=3"])
def test_whoever_resolves_edits_or_deletes_in_the_list_stays_there(client, row, here):
    say(client, row)
    comment, list_url = Comment.unscoped.get(), page(row)
    text = html.unescape(client.get(list_url + here).text)
    assert f'value="{here}"' in text
    for name, fields in (("edit", {"text": "Why?"}), ("resolve", {"resolved": "0"}), ("delete", {})):
        answer = client.post(page(row, f"comment_{name}", comment.pk), {"here": here, **fields})
        assert answer["Location"].partition("#")[0].replace("show=&", "") == list_url + here.replace("show=&", "")


def test_what_is_wrong_with_a_comment_of_the_list_is_said_there_beside_what_is_saved(client, row):
    say(client, row)
    answer = client.post(page(row, "comment_edit", Comment.unscoped.get().pk), {"text": " ", "here": "?show="})
    assert answer.status_code == 422
    assert "A comment needs a text." in answer.text
    assert ">Why so early?</textarea>" in answer.text
    assert "<h1>Comments</h1>" in answer.text


@pytest.mark.parametrize("here", ["https://elsewhere.example/", "//elsewhere.example", "?show=https://x", "?step=x"])
def test_a_form_leads_nowhere_else(client, row, here):
    say(client, row)
    answer = client.post(page(row, "comment_resolve", Comment.unscoped.get().pk), {"resolved": "1", "here": here})
    assert answer["Location"].startswith(f"/s/{row.pk}/")
    assert "elsewhere" not in answer["Location"]
    assert "https" not in answer["Location"]
