"""A window that the recording leaves open is asked for where it matters, once for all sessions of a model."""

from __future__ import annotations

import re
from typing import Any

import pytest
from msgspec.structs import replace

from guard_core.recordings.formats import native
from guard_core.sessions import ModelCall
from inspector.jobs import assessing
from inspector.models import ModelWindow, Session
from tests.builders import model, session, user
from tests.inspector.pages.conftest import stored_sample

pytestmark = pytest.mark.django_db

OURS = "model-of-our-own"


@pytest.fixture
def recorded(bring):
    """Brings a session whose file says no window."""

    def bringer(title: str = "a session", prompt: int = 60_000, name: str = OURS, **fields: Any) -> Session:
        call = ModelCall(at=1, response=1, prompt_tokens=prompt, model=name)
        given = {"calls": (call,), **fields}
        value = session(user(title), model("here"), title=title, model=name, calls=given.pop("calls"))
        bring(native.write(replace(value, **{"window": None, **given})), f"{title}.json")
        return Session.unscoped.get(title=title)

    return bringer


def text_of(client, row: Session, query: str = "") -> str:
    return client.get(row.get_absolute_url() + query).content.decode()


def set_window(client, row: Session, **fields: str) -> Any:
    return client.post(row.get_absolute_url() + "window", fields, follow=True)


def test_an_unknown_window_is_asked_for_with_the_one_that_is_assumed(client, recorded):
    text = text_of(client, recorded())
    assert "Window unknown, 128,000 tokens assumed." in text
    assert f"Set it for all sessions of {OURS}" in text
    assert text.index('id="window-question"') < text.index('class="kpis"')


def test_a_window_that_is_known_is_not_asked_for(client, recorded):
    assert "window-question" not in text_of(client, recorded("known", name="gpt-4o"))
    assert "window-question" not in text_of(client, recorded("set"), "?window=64k")


def test_the_window_of_a_simulation_is_part_of_it_and_not_asked_for(client, store):
    assert "window-question" not in text_of(client, stored_sample("timing-gap"))


def test_an_answered_prompt_above_the_window_is_said_and_the_window_asked_for(client, recorded):
    text = text_of(client, recorded(prompt=151_000))
    assert "Window too small: a prompt of 151,000 tokens was answered, above the assumed 128,000." in text
    assert 'id="window-question"' in text


def test_no_share_is_taken_of_an_assumed_window_that_is_refuted(client, recorded):
    text = text_of(client, recorded(prompt=151_000))
    assert "above the assumed window of 128,000" in text
    assert "Recorded prompt tokens peak at 151,000 tokens at step 1." in text
    cells = re.search(r'row">peak fill</th><td[^>]*>([^<]+)</td><td[^>]*>[^<]+</td><td[^>]*>([^<]+)', text)
    assert cells.groups() == ("–", "–")


def test_a_window_is_set_for_all_sessions_of_a_model_those_to_come_as_well(client, recorded):
    first, second, other = recorded("one"), recorded("two"), recorded("three", name="another")
    text = set_window(client, first, window="200k", **{"for": "model"}).content.decode()
    later = recorded("four")
    assert f"Window 200,000 tokens, set for {OURS}: 2 sessions." in text
    rows = [Session.unscoped.get(pk=row.pk).effective_window for row in (first, second, later, other)]
    assert rows == [200_000, 200_000, 200_000, 128_000]
    assert "window-question" not in text_of(client, second)


def test_what_a_person_set_can_be_undone_to_what_it_was_before(client, recorded):
    row = recorded()
    set_window(client, row, window="200k", **{"for": "model"})
    again = set_window(client, row, window="1M", **{"for": "model"})
    assert b'<input type="hidden" name="window" value="200000">' in again.content
    set_window(client, row, window="200000", **{"for": "model"})
    row.refresh_from_db()
    assert row.effective_window == 200_000


def test_the_first_window_of_a_model_is_undone_by_forgetting_it(client, recorded):
    row = recorded()
    text = set_window(client, row, window="200k", **{"for": "model"}).content.decode()
    assert '<input type="hidden" name="window" value="">' in text
    text = set_window(client, row, window="", **{"for": "model"}).content.decode()
    row.refresh_from_db()
    assert (row.effective_window, ModelWindow.unscoped.count()) == (128_000, 0)
    assert "Window unknown, 128,000 tokens assumed." in text


def test_the_window_of_a_model_is_taken_back_where_the_window_is_shown(client, recorded):
    row = recorded()
    set_window(client, row, window="200k", **{"for": "model"})
    assert f"Use 128,000 for all sessions of {OURS} again" in text_of(client, row)
    set_window(client, row, reset="model", window="200,000")
    row.refresh_from_db()
    assert row.effective_window == 128_000


def test_a_sessions_own_window_wins_over_that_of_its_model(client, recorded):
    own = recorded("own", window=session(window=50_000).window)
    single, plain = recorded("single"), recorded("plain")
    set_window(client, single, window="64k", **{"for": "session"})
    set_window(client, plain, window="200k", **{"for": "model"})
    windows = {row.title: row.effective_window for row in Session.unscoped.all()}
    assert windows == {"own": 50_000, "single": 64_000, "plain": 200_000}
    assert "all sessions of" not in text_of(client, own)
    set_window(client, single, reset="session", window="64,000")
    assert Session.unscoped.get(title="single").effective_window == 200_000


def test_the_window_of_one_session_can_be_set_and_given_back(client, gap):
    text = set_window(client, gap, window="128k").content.decode()
    assert f"set for this session, instead of {gap.window:,} ({gap.window_source})" in text
    set_window(client, gap, window="")
    gap.refresh_from_db()
    assert gap.window_override is None


@pytest.mark.once  # refused before anything is stored
@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("many", "A window is a number of tokens such as 200000, 200k or 1M, not"),
        ("7", "A window has 256 to 100,000,000 tokens, not 7."),
        ('"><script>alert(1)</script>', "A window is a number of tokens"),
        ("\x00", "A window is a number of tokens"),
        ("\ud800", "A window is a number of tokens"),
        ("9" * 5_000, "A window is a number of tokens"),
    ],
)
def test_what_is_no_window_comes_back_with_a_sentence_beside_the_field(client, recorded, typed, said):
    row = recorded()
    body = f"window={'x' if typed == chr(0xD800) else ''}".encode() + typed.encode("utf-8", "surrogatepass")
    answer = client.post(
        row.get_absolute_url() + "window", body, content_type="application/x-www-form-urlencoded", follow=True
    )
    text = answer.content.decode()
    row.refresh_from_db()
    assert (answer.status_code, row.effective_window) == (200, 128_000)
    assert text.index('id="window-question"') < text.index(said) < text.index('class="kpis"')
    assert "<script>alert(1)" not in text


def test_an_address_that_claims_a_window_was_set_shows_nothing_where_none_is(client, recorded):
    assert "Undo" not in text_of(client, recorded(), "?window_before=5")


def test_the_name_of_a_model_is_text(client, recorded):
    text = text_of(client, recorded(name="<script>alert(1)</script>"))
    assert "<script>alert(1)" not in text


def test_the_list_follows_the_window_of_a_model(client, recorded):
    first, second = recorded("one"), recorded("two", prompt=70_000)
    set_window(client, first, window="75k", **{"for": "model"})
    while assessing.pending().exists():
        assessing.ASSESSMENTS.run("test")
    second.refresh_from_db()
    assert (second.near_misses, second.assessed_window) == (1, 75_000)
    assert [row["title"] for row in client.get("/?has=near-miss").context["rows"]] == ["two"]
    assert [row["fill"]["percent"] for row in client.get("/?sort=title").context["rows"]] == ["80", "93"]


def test_sessions_of_an_older_engine_are_looked_up_and_assessed_again(recorded):
    row = recorded(name="gemini-2.5-pro")
    Session.unscoped.update(window=128_000, window_source="assumed", assessed_by="0.0.1/0", near_misses=9)
    assessing.ASSESSMENTS.run("test")
    row.refresh_from_db()
    assert (row.window, row.window_source, row.near_misses) == (1_048_576, "model table", 0)
    assert not assessing.pending().exists()


def test_the_window_is_of_the_model_that_answered_most_calls(client, recorded):
    names = ("claude-opus-4-8", "claude-opus-4-8", "gpt-4o")
    calls = tuple(ModelCall(at=1, response=1, prompt_tokens=60_000, model=name) for name in names)
    row = recorded(calls=calls, name="gpt-4o")
    assert (row.model, row.window) == ("claude-opus-4-8", 1_000_000)
    assert "claude-opus-4-8 (2 calls), gpt-4o (1 call)" in text_of(client, row)
    Session.unscoped.update(model="gpt-4o", assessed_by="")
    assessing.ASSESSMENTS.run("test")
    assert Session.unscoped.get().model == "claude-opus-4-8"


def test_a_session_that_cannot_be_read_does_not_keep_others_waiting(recorded):
    bad, good = recorded("bad"), recorded("good")
    type(bad.data).unscoped.filter(session=bad).update(ledger=b"\x28\xb5\x2f\xfd\x20\x01\x09\x00\x00\x05")
    Session.unscoped.update(assessed_by="")
    while assessing.pending().exists():
        assessing.ASSESSMENTS.run("test")
    good.refresh_from_db()
    assert good.assessed_by == assessing.ENGINE
