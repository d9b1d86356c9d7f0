"""The list of running agents."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from inspector.models import Project, Session, Stream
from inspector.storage import deleting
from tests.builders import model, session, user
from tests.inspector.streamed import lines_of, send

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("folders")]


def stream(client, name: str, prompt_tokens: int | None, **beside: Any) -> None:
    """An agent with a window of 100,000 tokens that has made one call."""
    lines = lines_of(session(user("Go"), model("Done."), title=name, window=100_000))
    for line in lines:
        if "calls" in line:
            line["calls"]["prompt_tokens"] = prompt_tokens
    assert send(client, name, 0, lines, beside=beside).status_code == 200


def titles(client) -> list[str]:
    return re.findall(r'<a href="/s/[^"]+">([^<]+)</a>', client.get("/running/").text)


def test_the_fullest_window_is_first_and_unknown_ones_are_last(client):
    for name, count in (("half", 50_000), ("unknown", None), ("over", 120_000), ("little", 1_000)):
        stream(client, name, count)
    assert titles(client) == ["over", "half", "little", "unknown"]
    page = client.get("/running/").text
    assert "120,000 of 100,000" in page
    assert "fill-over" in page


def test_a_near_miss_is_marked_before_the_session_is_assessed_again(client):
    stream(client, "nearly", 95_000)
    longer = lines_of(session(user("Go"), model("Done."), user("And?"), model("Yes."), title="nearly", window=100_000))
    more = [line for line in longer if line.get("index", 0) >= 2 or line.get("calls", {}).get("at", 0) > 2]
    for line in more:
        if "calls" in line:
            line["calls"]["prompt_tokens"] = 96_000
    assert send(client, "nearly", Stream.unscoped.get().received, more).status_code == 200
    page = client.get("/running/").text
    assert "near miss, step 2" in page
    assert "96,000 of 100,000 tokens" in page


def test_what_has_ended_is_quiet_or_was_deleted_is_not_listed(client):
    for name in ("ended", "quiet", "deleted", "running"):
        stream(client, name, 10, ended=name == "ended")
    Stream.unscoped.filter(name="quiet").update(heard=timezone.now() - timedelta(minutes=11))
    rows = Session.unscoped.filter(title="deleted")
    deleting.delete(Project.objects.get(), rows)
    assert titles(client) == ["running"]


def test_without_any_the_page_says_how_to_begin(client):
    assert "No agent is streaming" in client.get("/running/").text


def test_the_table_alone_is_asked_for_again(client):
    stream(client, "a", 10)
    part = client.get("/running/", headers={"HX-Request": "true", "HX-Target": "running"}).text
    assert "<html" not in part
    assert 'id="running"' in part


def test_titles_are_escaped(client):
    stream(client, "plain", 10)
    Session.unscoped.update(title="<script>x</script>")
    assert "<script>x" not in client.get("/running/").text
