"""Findings on pages: the same claims as the engine's, with the words of requests that were looked up at import."""

from urllib.parse import urlencode

import pytest

from guard_core.packing import encode
from guard_core.recordings.formats import native
from inspector.jobs import assessing
from inspector.models import Session
from tests.guard_core.findings.cases import compaction
from tests.guard_core.findings.test_requests import ASK, talk

LOST = "left the context at step 3; nothing has quoted it verbatim since."


@pytest.fixture
def lost(bring):
    """A recording whose compaction loses the user's request."""
    bring(native.write(talk(compaction(3))), "lost.json")
    return Session.unscoped.get()


def page(client, row):
    return client.get(row.get_absolute_url()).content.decode()


def test_a_lost_request_is_quoted_in_the_verdict_and_among_the_findings(client, lost):
    text = page(client, lost)
    assert f"1 compaction; your request &quot;Please rename the column …&quot; {LOST}" in text
    assert (
        f"Your request &quot;{ASK}&quot; left the context at step 3 (compaction 1); nothing has quoted it verbatim "
        "since." in text
    )


def test_a_rule_that_was_lost_while_its_task_stayed_is_said_and_leads_to_its_lane(client, bring):
    task, rule = "Please port the importer to the new reader.", "You must never touch the file legacy.py."
    bring(native.write(talk(compaction(3, summary=f"The task: {task}"), ask=f"{task} {rule}")), "rule.json")
    text = page(client, Session.unscoped.get())  # among the answers, and among the findings
    assert text.count(f"Your rule &quot;{rule}&quot; (message 1) left the context at step 3") == 2
    assert f"/facts?{urlencode({'q': rule})}" in text
    assert "No request of a user" not in text


def test_hostile_words_of_a_request_are_escaped(client, bring):
    bring(native.write(talk(compaction(3), ask="<script>alert('I rename it')</script>")), "hostile.json")
    text = page(client, Session.unscoped.get())
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert" in text


def test_a_session_of_an_older_version_is_looked_through_in_a_job(client, lost):
    Session.unscoped.update(requests=None, assessed_by="")
    assert LOST not in page(client, lost)  # nothing is claimed until then
    assessing.ASSESSMENTS.run("test")
    lost.refresh_from_db()
    assert bytes(lost.requests)
    assert LOST in page(client, lost)


def test_what_an_older_version_looked_up_and_stored_otherwise_keeps_no_page_from_opening(client, lost):
    """Its todos had no message of their own."""
    todo = {"text": "Update the manual", "events": (1,), "compactions": ()}
    words = {"message": 1, "quote": "", "is_whole": False, "events": (), "compactions": (), "todos": (todo,)}
    Session.unscoped.update(requests=encode((words,)), assessed_by="0.0.1/0")
    assert LOST not in page(client, lost)
    assessing.ASSESSMENTS.run("test")
    assert LOST in page(client, lost)


def test_a_session_that_has_grown_is_looked_through_again(client, bring):
    """First the summary still quotes the request; a second compaction, in the longer file, drops it."""
    quoting = compaction(3, summary=f"Task: {ASK}")
    bring(native.write(talk(quoting)), "grows.json")
    bring(native.write(talk(quoting, compaction(5, summary="almost done"))), "grows.json")
    text = page(client, Session.unscoped.order_by("-created").first())
    assert (
        "left the context at step 5 (compaction 2); nothing has quoted it verbatim since. Compaction 1 still quoted it."
        in text
    )
