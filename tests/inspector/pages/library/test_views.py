"""The front page: three ways to begin, and the list of sessions."""

from __future__ import annotations

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from guard_core.findings import Facts, conclusions
from guard_core.recordings import FORMATS
from guard_core.simulator.samples import SAMPLES
from inspector.models import Import, Session, default_project
from inspector.pages.shared.kinds import KINDS
from inspector.pages.shared.listing import PAGE_SIZE, Listing
from tests.inspector.rows import recording_row, session_row

pytestmark = pytest.mark.django_db


def titles(client, query: str = "") -> list[str]:
    return [row["title"] for row in client.get(f"/{query}").context["rows"]]


def test_an_empty_front_page_offers_every_sample_in_one_click(client):
    page = client.get("/").content.decode()
    assert all(f'action="/samples/{name}/"' in page for name in SAMPLES)
    assert 'enctype="multipart/form-data"' in page


def test_an_empty_front_page_names_every_format_that_is_read(client):
    page = client.get("/").content.decode()
    missing = [item.label for item in FORMATS if item.label not in page and item.name != "adk"]
    assert missing == []


def test_titles_from_a_recording_are_shown_as_text(client):
    session_row("<script>alert(1)</script>", agent="<img src=x>", model="{{ model }}")
    page = client.get("/").content.decode()
    assert "<script>alert" not in page
    assert "<img src=x>" not in page


def test_the_list_is_found_by_title_model_agent_and_format(client):
    session_row("Refactor the parser", model="gpt-5", agent="builder", format="codex")
    session_row("Other")
    for word in ("parser", "GPT-5", "build", "codex", "parser gpt"):
        assert titles(client, f"?q={word}") == ["Refactor the parser"]


@pytest.mark.parametrize(
    ("name", "column"),
    [("compaction", "compactions"), ("overflow", "overflows"), ("near-miss", "near_misses"), ("loop", "loops"),
     ("fallback", "fallbacks")],
)  # fmt: skip
def test_sessions_with_a_finding_are_told_apart(client, name, column):
    session_row("with", **{column: 1})
    session_row("without")
    assert titles(client, f"?has={name}") == ["with"]


def test_two_findings_asked_for_are_both_needed(client):
    session_row("both", overflows=1, loops=1)
    session_row("one", overflows=1)
    assert titles(client, "?has=overflow&has=loop") == ["both"]


def test_a_session_without_recorded_usage_says_so(client):
    session_row("silent", reported_calls=0, prompt_tokens_max=0)
    session_row("counted")
    assert titles(client, "?has=no-usage") == ["silent"]
    assert "not known" in client.get("/").content.decode()


def test_peak_fill_follows_the_window_that_a_person_set(client):
    session_row("reset", window_override=110_000)
    session_row("plain")
    assert titles(client, "?min_peak=90&max_peak=95") == ["reset"]
    assert titles(client, "?sort=-peak") == ["reset", "plain"]


def test_peak_fill_is_the_share_of_the_window_of_the_model_that_the_largest_request_went_to(client):
    session_row("small model", prompt_tokens_max=12_238, window=1_000_000, peak_window=32_768)
    session_row("its model is not known", prompt_tokens_max=150_000, peak_window=0)
    session_row("plain")
    page = client.get("/").content.decode()
    assert "12,238 of 32,768 tokens, recorded" in page
    assert "150,000 tokens, not held against the session&#x27;s window of 200,000 tokens, recorded" in page
    assert titles(client, "?sort=-peak") == ["plain", "small model", "its model is not known"]
    assert titles(client, "?min_peak=37&max_peak=38") == ["small model"]


@pytest.mark.parametrize("overflows", [0, 1])
def test_a_peak_that_is_not_held_against_the_window_is_no_share_of_it(client, overflows):
    session_row("of another model", window=128_000, prompt_tokens_max=310_000, overflows=overflows)
    page = client.get("/").content.decode()
    assert (
        "310,000 tokens, not held against the session&#x27;s window of 128,000 tokens, recorded" in page
    ) != overflows
    assert ("310,000 of 128,000 tokens, recorded" in page) == overflows
    assert (">242" in page) == overflows


def test_sizes_and_days_bound_the_list(client):
    session_row("small", size=1_000)
    session_row("large", size=5_000_000)
    assert titles(client, "?min_size=2") == ["large"]
    assert titles(client, "?since=2026-03-01&until=2026-03-01&max_size=1") == ["small"]
    assert titles(client, "?until=2026-02-28") == []


@pytest.mark.parametrize(
    "key",
    [
        "title",
        "verdict",
        "agent",
        "model",
        "date",
        "size",
        "calls",
        "turns",
        "peak",
        "compactions",
        "added",
        "threshold",
    ],
)
def test_every_column_sorts_both_ways(client, key):
    for title, number in (("A", 1), ("B", 9)):
        names = ("calls", "turns", "compactions", "prompt_tokens_max", "size", "threshold")
        counts = dict.fromkeys(names, number)
        severity = Session.Severity.ERROR if number == 1 else Session.Severity.FINE
        session_row(
            title, severity=severity, agent=title, model=title, started_at=f"2026-0{number}-01T00:00:00Z", **counts
        )
    assert titles(client, f"?sort={key}") == ["A", "B"]
    assert titles(client, f"?sort=-{key}") == ["B", "A"]


def test_the_list_begins_with_the_worst_and_of_those_with_the_newest(client):
    shared = recording_row()
    for number, name in enumerate(("FINE", "ERROR", "UNJUDGED", "WARNING", "ERROR")):
        session_row(f"{name} {number}", severity=Session.Severity[name], recording=shared, ordinal=number)
    assert titles(client) == ["ERROR 4", "ERROR 1", "WARNING 3", "FINE 0", "UNJUDGED 2"]
    assert client.get("/").context["totals"][-1] == "2 with errors"


def test_a_row_says_the_verdict_with_its_severity(client):
    session_row("bad", severity=Session.Severity.ERROR, verdict="A loop: <b>3</b> compactions.")
    text = client.get("/").content.decode()
    assert "A loop: &lt;b&gt;3&lt;/b&gt; compactions." in text
    assert 'role="img" aria-label="Error"' in text


def test_a_verdict_of_another_window_or_engine_is_not_shown(client):
    session_row("window", verdict="Old words.", window_override=50_000, assessed_window=200_000)
    session_row("engine", verdict="Old words.", assessed_by="0.0.1/0")
    text = client.get("/").content.decode()
    assert "Old words" not in text
    assert text.count("Being checked") == 4  # words and title of two rows


def test_sessions_are_found_by_severity_and_by_the_kind_of_a_finding(client):
    session_row("bad", severity=Session.Severity.ERROR, kinds=" loop overflow ")
    session_row("doubtful", severity=Session.Severity.WARNING, kinds=" needless ")
    session_row("good", kinds=" needed ")
    assert titles(client, "?severity=error") == ["bad"]
    assert titles(client, "?severity=warning&severity=error") == ["bad", "doubtful"]
    assert titles(client, "?kind=needless") == ["doubtful"]
    assert titles(client, "?kind=need") == []
    assert titles(client, "?severity=fine&kind=needed") == ["good"]


def test_a_peak_that_was_not_counted_says_so(client):
    session_row("modelled", peak_source="modelled", reported_calls=4)
    assert "100,000 of 200,000 tokens, modelled" in client.get("/").content.decode()
    Session.unscoped.update(reported_calls=0)
    assert "100,000 of 200,000 tokens, estimated" in client.get("/").content.decode()


@pytest.mark.parametrize(
    "query",
    ["severity=worst", "kind=%25", "kind=%00",
     "q=%00", "q=%ED%A0%80", "page=0", "page=99999999999999999999", "page=x", "sort=password", "has=no", "undo=x",
     "since=0000-00-00", "until=9999-12-31", "since=9999-12-31T00", "min_size=1e9", "min_size=-1", "min_peak=٣",
     "max_size=999999999999", "undo=1", "undo=99999999999999999", "rename=%22%3E", "tag=%25", "q=%25_%27%22%5C"],
)  # fmt: skip
def test_an_address_that_makes_no_sense_is_still_a_page(client, query):
    session_row()
    assert client.get(f"/?{query}").status_code == 200


@pytest.mark.parametrize(
    ("query", "name", "reason"),
    [
        ("since=abc", "since", "“abc” is not a date such as 2026-03-31 (from 1900 on), so it is not applied."),
        ("until=1899-12-31", "until", "“1899-12-31” is not a date such as 2026-03-31 (from 1900 on), so it is not"),
        ("min_size=-1", "min_size", "“-1” is not a number of 0 or more, so it is not applied."),
        ("max_peak=%3Cb%3E", "max_peak", "“&lt;b&gt;” is not a number of 0 or more, so it is not applied."),
    ],
)
def test_a_value_that_is_not_applied_is_named_beside_its_field(client, query, name, reason):
    session_row()
    html = client.get(f"/?{query}").content.decode()
    assert f'id="unread-{name}">{reason}' in html
    assert html.count("is not applied") == 1
    assert '<details class="filters-more" open>' in html
    part = client.get(f"/?{query}", headers={"HX-Request": "true", "HX-Target": "sessions"}).content.decode()
    assert f'id="unread-{name}" hx-swap-oob="true">{reason}' in part


def test_sums_are_of_all_that_was_found_and_not_of_the_page(client):
    shared = recording_row()
    for number in range(PAGE_SIZE + 10):
        session_row(f"n{number}", recording=shared, ordinal=number, compactions=2)
    page = client.get("/?page=2")
    assert len(page.context["rows"]) == 10
    assert page.context["totals"][:2] == [f"{PAGE_SIZE + 10} sessions", f"{10 * PAGE_SIZE + 100} model calls"]


def test_htmx_gets_the_list_alone(client):
    session_row()
    part = client.get("/?q=a", headers={"HX-Request": "true", "HX-Target": "sessions"}).content.decode()
    assert part.strip().startswith('<div id="sessions"')
    assert "<html" not in part


def test_a_page_of_a_thousand_sessions_asks_as_few_questions_as_one_of_ten(client):
    def asked() -> int:
        with CaptureQueriesContext(
            connection,
        ) as captured:
            client.get("/?sort=-peak&q=s")
        return len(captured)

    shared = recording_row()
    make = [Session(recording=shared, ordinal=n, title=f"s{n}", format="pi", window=1) for n in range(1_000)]
    Session.objects.of(default_project()).bulk_create(make[:10])
    few = asked()
    Session.objects.of(default_project()).bulk_create(make[10:], batch_size=500)
    assert asked() == few


def test_the_list_in_its_first_order_comes_from_an_index(client):
    shared = recording_row()
    Session.objects.of(default_project()).bulk_create(
        (Session(recording=shared, ordinal=n, title=f"s{n}", format="pi", window=1) for n in range(2_000)),
        batch_size=500,
    )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    plan = Listing().sessions(default_project())[:50].explain()
    assert "session_worst" in plan


@pytest.mark.once  # of the engine
def test_every_kind_of_finding_in_the_samples_has_a_name_in_the_menu():
    kinds = {finding.kind for sample in SAMPLES.values() for finding in conclusions(Facts.of(sample.build()))[0]}
    assert kinds
    assert kinds <= set(KINDS)


def test_a_row_says_where_its_agent_compacts(client):
    session_row("by rule", threshold=155_000, threshold_source="rule")
    session_row("by its recording", threshold=154_000, threshold_source="inferred")
    text = client.get("/").content.decode()
    assert 'title="155,000 tokens by the agent&#x27;s own rule at the last call">at 155k' in text
    assert "≤ 154k inferred" in text


def test_a_full_page_of_many_agents_and_models_stays_under_2_000_elements(client):
    """Each agent, model and format is one more option of a filter, and a failed import a row above the list."""
    for number in range(60):
        few = f"{number % 25}"
        session_row(f"session {number}", agent=few, model=few, format=few, threshold=155_000, threshold_source="rule")
    for number in range(9):
        now = timezone.now()
        Import.objects.of(default_project()).create(name=f"{number}.jsonl", state="failed", finished=now)
    text = client.get("/").content.decode()
    assert text.count('aria-label="Choose session') == PAGE_SIZE < 60
    assert len(re.findall(r"<[a-z]", text)) < 2_000


def test_a_file_that_failed_before_more_of_it_was_imported_is_not_reported(client):
    def brought(name: str, state: str, total: int, **values: object) -> None:
        finished = timezone.now()
        Import.objects.of(default_project()).create(name=name, state=state, total=total, finished=finished, **values)

    for name, strict, folder, later in (
        ("grown", False, "", 200),
        ("shorter", False, "", 50),
        ("chosen", True, "", 200),
        ("elsewhere", False, "x", 200),
    ):
        brought(name, "failed", 100, strict=strict, phase="parsed")
        brought(name, "done", later, strict=strict, folder=folder)
    brought("after", "done", 100)
    brought("after", "failed", 200, phase="parsed")
    assert {job.name for job in client.get("/").context["imports"]} == {"shorter", "chosen", "elsewhere", "after"}
    assert client.get("/").context["imports_failed"] == 4
