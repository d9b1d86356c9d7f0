"""A file with several sessions: all are there, and the unwanted go."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

from guard_core.recordings.formats import native
from inspector.ingest.reading.reader import MAX_SESSIONS
from inspector.models import Import, Session
from inspector.pages.imports import views as imports
from tests.builders import model, session, user

pytestmark = pytest.mark.django_db
TITLES = ("Alpha", "Beta", "Gamma")


@pytest.fixture
def several(bring) -> Import:
    """The import of a file with three sessions."""
    return bring(
        b"".join(native.write_all([session(user(f"find {title}"), model("here"), title=title) for title in TITLES]))
    )


def listed() -> list[str]:
    return list(Session.unscoped.filter(deleted=None).order_by("ordinal").values_list("title", flat=True))


def key(title: str) -> str:
    return str(Session.unscoped.get(title=title).pk)


def test_all_sessions_of_a_file_are_there_and_ticked(client, several):
    text = client.get(several.get_absolute_url()).content.decode()
    assert "3 sessions in this file" in text
    assert text.count('name="id"') == text.count(' checked aria-label="Keep') == 3
    assert listed() == list(TITLES)


def test_those_without_a_tick_go_off_the_list_and_come_back(client, several):
    form = {"listed": ",".join(map(key, TITLES)), "id": [key("Alpha"), key("Gamma")]}
    answer = client.post(f"{several.get_absolute_url()}choose", form)
    assert listed() == ["Alpha", "Gamma"]
    page = client.get(answer["Location"])
    assert "1 session deleted" in page.content.decode()
    client.post("/sessions/restore", {"undo": answer["Location"].partition("undo=")[2]})
    assert listed() == list(TITLES)


def test_the_script_names_those_to_leave_out(client, several):
    client.post(f"{several.get_absolute_url()}choose", {"out": f"{key('Alpha')},{key('Beta')}", "listed": ""})
    assert listed() == ["Gamma"]


def test_keeping_all_changes_nothing(client, several):
    client.post(f"{several.get_absolute_url()}choose", {"listed": "", "out": ""})
    assert listed() == list(TITLES)


@pytest.mark.parametrize("out", ["not-a-key", "00000000-0000-0000-0000-000000000000", ",,,"])
def test_what_is_not_of_the_file_is_passed_over(client, several, out, bring, recording):
    other = bring(recording)
    foreign = ",".join(imports.report_of(other).sessions)
    client.post(f"{several.get_absolute_url()}choose", {"out": f"{out},{foreign}"})
    assert len(listed()) == 4


def test_a_file_with_one_session_asks_nothing(client, bring, recording):
    text = client.get(f"{bring(recording).get_absolute_url()}?report").content.decode()
    assert "data-choose" not in text


@pytest.mark.once  # how it is shown
def test_a_long_list_is_a_short_page(client, bring):
    titles = [f"Number {number:03}" for number in range(imports.MAX_LISTED + 2)]
    values = [session(user(f"find {title}"), model("here"), title=title) for title in titles]
    text = client.get(bring(b"".join(native.write_all(values))).get_absolute_url()).content.decode()
    assert f"The first {imports.MAX_LISTED}; the others are kept." in text
    assert text.count('name="id"') == imports.MAX_LISTED
    assert text.count(titles[-1]) == 1  # in the data of the script
    assert MAX_SESSIONS * 300 < 1_000_000  # bytes of that data for the longest file


def test_the_peak_of_the_list_is_the_peak_of_the_import_page(client, bring):
    silent = replace(session(user("find it"), model("here"), model("and more")), title="Silent")
    uncounted = replace(silent, calls=tuple(replace(call, prompt_tokens=None) for call in silent.calls))
    job = bring(b"".join(native.write_all([uncounted, session(user("find"), model("here"), title="Counted")])))
    text = client.get(job.get_absolute_url()).content.decode()
    for row in Session.unscoped.all():
        assert f'<td class="num">{row.peak_tokens:,}' in text
    assert len(re.findall(r'data-source="modelled"[^>]*>estimated', text)) == 1
