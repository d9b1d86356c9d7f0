"""The triggers page: rows over all sessions of a project, filters, links and files."""

from __future__ import annotations

import csv
import json
import re

import msgspec
import pytest

from guard_core.corpus import ThresholdChanges, changes_of
from guard_core.rules import explain
from inspector.models import Project, RuleExplanation, RuleSetting, Tag, default_project
from inspector.storage import explanations
from inspector.storage.assessment import assess
from tests.builders import transcript
from tests.guard_core.rules.test_openhands import recording
from tests.inspector.pages.conftest import stored

DAY = 86_400.0
LATER = {"version": "2.1.21", "prompts": (20_000, 158_000, 167_000, 9)}


def keep(title, day=1.0, **made):
    """A stored session with its explanation."""
    value = msgspec.structs.replace(transcript(**made), title=title, source_id=title, started_at=day * DAY)
    row = stored(value, title=title)
    explanations.store(row, value, explain(value))
    return row


@pytest.fixture
def two(db):
    """Two sessions of one version, each with a compaction at 155,010."""
    return keep("first"), keep("second", day=2)


def page(client, query=""):
    response = client.get(f"/triggers/{query}")
    assert response.status_code == 200
    return response.content.decode()


def words(html):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", html))


def test_without_sessions_it_says_what_to_do(client, db):
    assert "No sessions yet" in page(client)


def test_a_row_has_the_joined_interval_with_links_to_both_steps(client, two):
    html = page(client)
    assert "above 151,010" in words(html).replace("  ", " ")
    assert "155,000 = 200,000 − 32,000 (max output) − 13,000" in html
    assert "explains 2 of 2" in words(html)
    bounds = re.findall(r'href="/s/([^/]+)/steps\?at=(\d)" title="\w+, step', html)
    keys = {str(row.pk) for row in two}
    assert [step for key, step in bounds if key in keys] == ["3", "4"]


def test_only_sessions_with_model_calls_or_compactions_are_counted(client, two):
    silent = msgspec.structs.replace(transcript(), calls=(), compactions=(), source_id="asked nothing", started_at=DAY)
    explanations.store(stored(silent), silent, explain(silent))
    assert "Sessions 2 with model calls or compactions" in words(page(client))


def test_every_dot_opens_its_step_and_says_what_it_is(client, two):
    html = page(client)
    for row in two:
        assert f'<a href="/s/{row.pk}/steps?at=4" tabindex="-1">' in html
    assert "155,010 tokens, automatic, 1970-01-02 00:00:00 UTC: first, step 4" in html
    assert 'aria-label="2 compactions at 155,010 to 155,010 tokens, from 1970-01-02 to 1970-01-03."' in html


def test_an_agent_without_a_known_rule_has_no_rule_of_its_own(client, db):
    keep("copied", format_="atif", prompts=(20_000, 99_900, 100_100, 9))
    text = words(page(client))
    assert " a limit of 100,000 " in text
    assert "100,000 = a limit" not in text
    assert "own rule" not in text


def test_the_rule_is_named_apart_where_another_formula_explains_the_compactions(client, db):
    keep("half", prompts=(20_000, 82_900, 83_010, 9))
    text = words(page(client))
    assert "84,000 = min(200,000 − 32,000 (max output) − 13,000, 50 % of (200,000 − 32,000)) explains 1 of 1" in text
    assert "own rule: 155,000 = 200,000 − 32,000 (max output) − 13,000, agrees with 0 of 1" in text


def test_compactions_without_a_count_neither_agree_with_the_own_rule_nor_contradict_it(client, db):
    keep("uncounted", prompts=(None, None, None, 9))
    assert "− 13,000, no compaction can be compared" in words(page(client))
    keep("half", prompts=(20_000, 82_900, 83_010, 9), trigger="")
    assert "agrees with 0 of 1, 1 cannot be compared" in words(page(client))


def test_a_change_of_the_threshold_is_shown_with_its_day_and_the_rules_part_in_it(client, two):
    keep("third", day=3, **LATER)
    text = words(page(client))
    assert "A threshold changed at 1 point in time." in text
    assert "1970-01-04 Claude Code 2.1.14 → 2.1.21" in text
    assert "155,000, then 167,000 as the rule says" in text


def test_bounds_of_an_agent_that_counts_events_have_their_relation_and_their_unit_everywhere(client, db):
    """OpenHands compacts above a number of events; 24 is then a bound that its threshold may equal."""
    for day, max_size in ((1, 24), (3, 100)):
        value = msgspec.structs.replace(recording(300, max_size=max_size), title=f"of {max_size}", started_at=day * DAY)
        row = stored(value, title=value.title)
        (interval,) = explain(value).inference
        assert interval.words == f"at least {interval.above} and below {interval.at_most} events"
        explanations.store(row, value, explain(value))
        overview = words(client.get(f"/s/{row.pk}/").content.decode())
        assert f"threshold &lt; {interval.at_most} events" in overview
        assert "threshold at least (inferred)" not in overview  # nor is it drawn among tokens
    text = words(page(client))
    assert re.search(r"none at \d+ , a compaction at 2\d events", text)
    assert re.search(r"at least 2\d and below 2\d events 1 session at least \d+ and below 10\d events ↑ higher", text)


def test_a_row_alone_lists_its_compactions(client, two):
    href = re.search(r'<th scope="row"[^>]*><a href="([^"]*row=[0-9a-f]{12})"', page(client))[1]
    keep("third", day=3, **LATER)
    html = client.get(href).content.decode()
    assert "Compactions of this row" in html
    assert "third" not in html


@pytest.mark.parametrize(
    ("query", "sessions"),
    [
        ("?agent=Claude+Code", 2),
        ("?agent=Codex", 0),
        ("?model=claude-opus-4-5-20251101", 2),
        ("?model=other", 0),
        ("?tag=kept", 1),
        ("?since=1970-01-03", 1),
        ("?until=1970-01-02", 1),
        ("?since=never&row=", 2),
    ],
)
def test_filters_leave_the_sessions_that_fit(client, two, query, sessions):
    Tag.objects.of(default_project()).create(name="kept").sessions.add(two[0])
    text = words(page(client, query))
    assert ("No session matches these filters" in text) == (sessions == 0)
    assert f"Sessions {sessions} " in text


def test_a_typed_setting_that_a_session_does_not_obey_is_named_with_the_check(client, two):
    RuleSetting.objects.of(default_project()).create(agent="Claude Code", name="autocompact_pct", value="50")
    for row in two:
        assess(row)
    text = words(page(client))
    assert "autocompact pct 50 %" in text
    assert "none at 151,010 in first" in text
    assert "Against a stated setting 2" in text


def test_a_compaction_after_a_refused_request_is_listed_as_forced(client, db):
    keep("refused", version="2.1.330", prompts=(20_000, 150_000, 199_500, 9), tokens_before=200_600)
    text = words(page(client))
    assert "After a refused request 1" in text
    assert "200,600 in refused, step 4" in text


def test_sessions_that_were_not_looked_at_yet_are_counted_and_asked_for_again(client, two):
    RuleExplanation.objects.in_session(two[0]).update(evidence=None)
    html = page(client)
    assert "1 session still being checked" in words(html)
    assert 'hx-trigger="load delay:3s"' in html


def test_what_another_version_stored_is_pending_and_no_error(client, two):
    RuleExplanation.objects.in_session(two[0]).update(evidence=b"\x93\x01\x02\x03")
    assert "1 session still being checked" in words(page(client))


def test_deleted_sessions_and_those_of_other_projects_are_not_there(client, two):
    other = Project.objects.create(slug="other", name="Other")
    type(two[0]).unscoped.filter(pk=two[0].pk).update(project=other)
    assert str(two[0].pk) not in page(client)
    type(two[0]).unscoped.filter(pk=two[1].pk).update(deleted="2026-01-01T00:00Z")
    assert "No sessions yet" in page(client)


def test_hostile_names_are_text_and_a_spreadsheet_does_not_compute_them(client, db):
    keep('=1+1"><script>alert(1)</script>')
    assert "<script>alert" not in page(client)
    rows = list(csv.reader(client.get("/triggers/compactions.csv").content.decode().splitlines()))
    assert rows[1][1].startswith("'=1+1")


def test_the_files_have_what_the_page_has(client, two):
    header, row = csv.reader(client.get("/triggers/rows.csv").content.decode().splitlines())
    values = dict(zip(header, row, strict=True))
    assert (values["agent"], values["sessions"], values["automatic"]) == ("Claude Code", "2", "2")
    assert (values["above"], values["at_most"], values["inferred_threshold"]) == ("151010", "155010", "155000")
    document = json.loads(client.get("/triggers/triggers.json?until=1970-01-02").content)
    assert [item["title"] for item in document["compactions"]] == ["first"]
    assert document["rows"][0]["compactions"]["automatic"] == 1


def test_a_part_is_answered_without_the_page_around_it(two, part_of):
    html = part_of("/triggers/", "triggers").content.decode()
    assert 'id="triggers"' in html[:80]
    assert "<html" not in html


def test_no_change_is_no_table(client, two):
    assert "Change points</h2>" not in page(client)
    assert changes_of([]) == ThresholdChanges([], 0, [])


def test_rows_of_a_large_archive_come_some_at_a_time(client, db):
    for number in range(40):
        keep(f"session {number}", day=number, version=f"2.1.{number}")
    seen = []
    query = ""
    while query is not None:
        html = page(client, query)
        assert html.count("<") - html.count("</") <= 2_000
        seen += re.findall(r'<tr id="row-(\w+)"', html)
        later = re.search(r'href="(\?[^"#]*)#rows-title">Later rows', html)
        query = later[1].replace("&amp;", "&") if later else None
    assert len(seen) == len(set(seen)) == 40
    assert re.findall(r'<tr id="row-(\w+)"', page(client, "?from=999")) == seen[30:]
    assert "more: the JSON file has all" in page(client)


def test_a_compaction_that_no_call_followed_is_after_the_last_step(client, db):
    built = transcript(version="2.1.21")
    calls = tuple(call for call in built.calls if call.at < built.compactions[0].at)
    value = msgspec.structs.replace(built, calls=calls, title="ended", source_id="ended")
    explanations.store(stored(value, title="ended"), value, explain(value))
    html = page(client, "?agent=Claude+Code")
    href = re.search(r'<th scope="row"[^>]*><a href="([^"]*row=[0-9a-f]{12})"', html)[1]
    for text in (html, client.get(href).content.decode()):
        assert "after the last step" in text
        assert f"step {len(calls) + 1}" not in text


@pytest.mark.parametrize("name", ["since", "until"])
def test_a_date_that_cannot_be_read_is_named_beside_its_field(client, two, name):
    reason = "“never” is not a date such as 2026-03-31 (from 1900 on), so it is not applied."
    html = page(client, f"?{name}=never")
    assert f'id="unread-{name}">{reason}</span>' in html
    assert html.count("is not applied") == 1
    assert "is not applied" not in page(client, f"?{name}=2026-03-31")
    headers = {"HX-Request": "true", "HX-Target": "triggers"}
    part = client.get(f"/triggers/?{name}=never", headers=headers).content.decode()
    assert f'id="unread-{name}" hx-swap-oob="true">{reason}</span>' in part


def test_sessions_of_programs_that_their_files_do_not_name_are_said_to_be_taken_as_of_one(client, db):
    keep("first", format_="homemade")
    assert "unknown program (homemade)" in page(client)
    assert "taken as those of one" not in page(client)
    keep("second", format_="homemade")
    assert "Sessions whose files name no program are taken as those of one." in page(client)
