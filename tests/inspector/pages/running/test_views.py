"""The list of running agents."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from inspector.ingest import importing, submitting, uploads
from inspector.models import Import, Project, Session, SpanBatch, Stream, default_project
from inspector.pages.running import presenter
from inspector.pages.shared import lately
from inspector.pages.shared.lately import QUIET, growing, is_growing
from inspector.storage import deleting
from tests.builders import model, session, user
from tests.inspector.api.test_traces import exported, post, work
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


def prompts(client) -> list[str]:
    return re.findall(r'muted num">([^<]+)<', client.get("/running/").text)


def test_the_fullest_window_is_first_and_unknown_ones_are_last(client):
    for name, count in (("half", 50_000), ("unknown", None), ("over", 120_000), ("little", 1_000)):
        stream(client, name, count)
    assert titles(client) == ["over", "half", "little", "unknown"]
    page = client.get("/running/").text
    assert "120,000 of 100,000" in page
    assert "fill-over" in page


def test_the_last_prompt_is_held_against_the_window_of_its_own_calls_model(client):
    own, other = "claude-opus-4-5-20251101", "gpt-4.1"  # 200,000 and 1,000,000 tokens in the model table
    for name, models, count in (("switched", (own, own, other), 300_000), ("own", (own,), 150_000)):
        events = [part for _ in models for part in (user("Go"), model("Done."))]
        lines = lines_of(session(*events, title=name, model=own))
        lines[0]["session"].pop("window")  # looked up, as that of an agent that does not name one
        for line, used in zip([line for line in lines if "calls" in line], models, strict=True):
            line["calls"] |= {"model": used, "prompt_tokens": count if used == models[-1] else 20_000}
        assert send(client, name, 0, lines).status_code == 200
    assert titles(client) == ["own", "switched"]
    assert prompts(client) == ["150,000 of 200,000", "300,000 of 1,000,000, the window of that call&#x27;s model"]
    Session.unscoped.filter(title="switched").update(threshold=190_000, threshold_source="rule")
    assert "reached" not in client.get("/running/").text  # the threshold may be that of the other model


def test_a_prompt_of_a_model_whose_window_is_not_known_has_no_share(client):
    own = "claude-opus-4-5-20251101"
    lines = lines_of(session(user("Go"), model("Done."), user("Go"), model("Done."), title="a", model=own))
    lines[0]["session"].pop("window")
    for line, used in zip([line for line in lines if "calls" in line], (own, "unheard-of"), strict=True):
        line["calls"] |= {"model": used, "prompt_tokens": 20_000 if used == own else 300_000}
    assert send(client, "a", 0, lines).status_code == 200
    stream(client, "empty", 10)
    assert titles(client) == ["empty", "a"]
    assert prompts(client)[1] == "300,000; the window of that call&#x27;s model is not known"


def test_a_window_that_nothing_says_is_called_assumed(client):
    lines = lines_of(session(user("Go"), model("Done."), title="a", model="unheard-of"))
    lines[0]["session"].pop("window")
    for line in lines:
        if "calls" in line:
            line["calls"] |= {"model": "unheard-of", "prompt_tokens": 90_000}
    assert send(client, "a", 0, lines).status_code == 200
    assert prompts(client) == ["90,000 of 128,000, assumed"]


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


def test_a_page_knows_whether_its_session_is_listed(client):
    for name in ("ended", "quiet", "running"):
        stream(client, name, 10, ended=name == "ended")
    Stream.unscoped.filter(name="quiet").update(heard=timezone.now() - timedelta(minutes=11))
    upload(2, "old.jsonl")
    for turns in (2, 3):
        upload(turns, "watched.jsonl")
    assert post(client, exported(1, "Hello", "Hi.")).status_code == 200
    work()
    rows = Session.unscoped.filter(deleted=None)
    listed = {one.session.pk for one in growing(default_project(), QUIET)}
    assert (len(rows), len(listed)) == (6, 3)
    assert {row.pk for row in rows if is_growing(row)} == listed
    pages = [row for row in rows if "data-growing" in client.get(row.get_absolute_url()).text]
    assert {row.pk for row in pages} == listed


def test_the_last_growth_is_said_by_how_long_it_is_ago_and_by_its_time(client):
    for name, seconds in (("now", -5), ("some", 42), ("long", 150)):
        stream(client, name, 10)
        Stream.unscoped.filter(name=name).update(heard=timezone.now() - timedelta(seconds=seconds))
    page = client.get("/running/").text
    found = dict(re.findall(r'<a href="/s/[^"]+">(\w+)</a>.*?data-label="Last growth">(.*?) <time', page, re.DOTALL))
    assert found["now"] == "0 s ago"
    assert re.fullmatch(r"4\d s ago|5\d s ago|1 min ago", found["some"])
    assert re.fullmatch(r"[23] min ago", found["long"])
    assert re.search(r"\d\d:\d\d:\d\d UTC</time>", page)


def upload(turns: int, name: str = "growing.jsonl") -> None:
    """A Claude Code file with so many answers, each with 1,000 tokens more in its prompt."""
    lines = []
    for number in range(2 * turns):
        role = ("user", "assistant")[number % 2]
        message: dict[str, Any] = {"role": role, "content": f"{name} {role} says {number}"}
        if role == "assistant":
            usage = {"input_tokens": 500 * (number + 1), "output_tokens": 5}
            message |= {"id": f"m{number}", "type": "message", "model": "claude-sonnet-4-5", "usage": usage}
        line = {"type": role, "uuid": f"u{number}", "parentUuid": f"u{number - 1}" if number else None}
        line |= {"sessionId": name, "timestamp": f"2026-01-01T00:00:{number:02}.000Z", "message": message}
        lines.append(json.dumps(line).encode() + b"\n")
    job = submitting.submit(default_project(), uploads.receive(lines, name), strict=False)
    importing.run_import(str(job.pk))
    assert Import.unscoped.get(pk=job.pk).state == Import.State.DONE


def test_a_watched_file_is_listed_once_it_has_grown_until_it_is_quiet(client):
    upload(2)
    assert titles(client) == []  # it may be an old one
    for turns in (3, 4):
        upload(turns)
    row = Session.unscoped.get()
    assert titles(client) == [row.title]
    assert prompts(client) == ["4,000 of 200,000"]
    Import.unscoped.update(heartbeat=timezone.now() - timedelta(minutes=11))
    assert titles(client) == []


def test_spans_are_listed_from_the_first_one_on_until_they_are_quiet(client, settings):
    settings.OUTLOOK_SECONDS = 0
    for number, said in ((1, ("Hello", "Hi.")), (2, ("Hello", "Hi.", "And now?", "Done."))):
        assert post(client, exported(number, *said)).status_code == 200
        work()
        assert len(titles(client)) == 1
        assert prompts(client) == [f"{100 * number} of 128,000"]
    long_ago = timezone.now() - timedelta(minutes=11)
    Import.unscoped.update(heartbeat=long_ago)
    SpanBatch.unscoped.update(created=long_ago)
    assert titles(client) == []


def test_more_sessions_are_no_more_queries_for_the_list_itself():
    project = default_project()
    counts = []
    for name in ("a.jsonl", "b.jsonl", "c.jsonl"):
        upload(2, name)
        upload(3, name)
        with CaptureQueriesContext(connection) as queries:
            assert len(growing(project, QUIET)) == len(counts) + 1
        counts.append(len(queries))
    assert len(set(counts)) == 1


def test_a_list_that_leaves_sessions_out_says_so(client, monkeypatch):
    monkeypatch.setattr(lately, "SHOWN", 2)
    stream(client, "a", 10)
    assert "are listed: those" not in client.get("/running/").text
    stream(client, "b", 10)
    stream(client, "c", 10)
    assert titles(client) == ["b", "c"]
    assert "At most 2 sessions are listed: those that grew last." in client.get("/running/").text


def test_without_any_the_page_says_how_to_begin(client):
    assert "No agent is running" in client.get("/running/").text


def test_the_table_alone_is_asked_for_again(client):
    stream(client, "a", 10)
    part = client.get("/running/", headers={"HX-Request": "true", "HX-Target": "running"}).text
    assert "<html" not in part
    assert 'id="running"' in part


def test_titles_are_escaped(client):
    stream(client, "plain", 10)
    Session.unscoped.update(title="<script>x</script>")
    assert "<script>x" not in client.get("/running/").text


def test_a_session_deleted_for_good_after_it_was_listed_does_not_stop_the_page(client):
    stream(client, "gone", 50_000)
    (one,) = growing(default_project(), QUIET)
    Session.unscoped.filter(pk=one.session.pk).delete()
    row = presenter.row(one, timezone.now())
    assert (row.title, row.prompt, row.alerts) == ("gone", "50,000", [])  # as the stream was read
