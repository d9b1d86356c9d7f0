"""Recordings and replays on one axis: where they part, one step of all, differences, downloads, the form."""

import csv
import json
import re
from datetime import UTC, datetime
from urllib.parse import urlencode

import msgspec
import pytest

from guard_core.events import Event, Role, TextPart
from guard_core.findings import Facts
from guard_core.policies import get_policy
from guard_core.replay import replay
from guard_core.sessions import Evidence, RecordedCompaction
from guard_core.views import Span
from inspector.models import Session
from inspector.pages.compare.views import OFFERED
from tests.builders import bundled, model, session, user
from tests.guard_core.checker.cases import exchange, growing, in_characters
from tests.guard_core.outcomes.cast import SONNET, counted
from tests.inspector.pages.conftest import stored


def address(*sides, **more):
    return "/compare/?" + urlencode([*(("side", side) for side in sides), *more.items()])


@pytest.mark.once  # computed from one session
def test_a_recording_and_its_replay_part_where_the_overview_says_so(client, coding):
    page = client.get(address(coding.pk, f"{coding.pk}?policy=none"))
    first = client.get(coding.get_absolute_url() + "?policy=none").context["decisions"]["first"]["step"]
    assert page.context["parts"][0]["step"] == first
    text = page.content.decode()
    assert f"A and B diverge at step {first}" in text
    assert "modelled" in text
    fill = page.context["rows"][-1]
    first, other = (float(item.partition("\u00a0")[0]) for item in (fill["first"], fill["others"][0]["value"]))
    assert float(fill["others"][0]["difference"].removesuffix(" points")) == pytest.approx(other - first, abs=0.11)


def test_its_figures_and_downloads_are_those_of_the_replay(client, coding):
    facts = Facts.of(bundled("long-coding"))
    trace = replay(facts.ledger, get_policy("none"), window=facts.window.value, usage=facts.usage)
    sizes = trace.columns["modelled_prompt_tokens"].tolist()
    sides = (coding.pk, f"{coding.pk}?policy=none")
    report = json.loads(client.get(address(*sides, format="json")).content)
    recorded, replayed = report["sides"]
    assert replayed["prompt_tokens"] == sizes
    assert replayed["figures"]["total prompt tokens"] == sum(sizes)
    assert recorded["settings"] is None
    assert len(recorded["compaction_steps"]) == 3
    rows = list(csv.reader(client.get(address(*sides, format="csv")).content.decode().splitlines()))
    assert [int(row[2]) for row in rows[1:]] == sizes
    assert rows[1][0] == "1"
    total = next(row for row in client.get(address(*sides)).context["rows"] if row["name"] == "total prompt tokens")
    difference = sum(sizes) - recorded["figures"]["total prompt tokens"]
    assert total["others"][0]["difference"].lstrip("+−±") == f"{abs(difference):,}"


def test_two_recordings_of_one_task_part_at_the_first_step_after_their_messages_differ(client, db):
    one = exchange(12, tokens=growing())
    events = list(one.events)
    events[5] = Event(Role.MODEL, (TextPart("something else was done here " * 40),))
    other = msgspec.structs.replace(one, events=tuple(events))
    rows = [stored(value, title=title) for value, title in ((one, "one"), (other, "other"))]
    step = next(number for number, call in enumerate(one.calls, 1) if call.at > 5)
    page = client.get(address(*(row.pk for row in rows)))
    assert page.context["parts"][0]["step"] == str(step)
    same = client.get(address(rows[0].pk, rows[0].pk))
    assert same.context["parts"][0]["step"] == ""
    assert "send the same requests" in same.content.decode()


def test_all_sides_are_stepped_through_together_and_a_shorter_one_has_ended(client, db, coding):
    short = stored(exchange(3, tokens=growing()), title="short")
    page = client.get(address(coding.pk, short.pk, at=10))
    here = page.context["here"]
    assert here["step"] == 10
    assert here["rows"][0]["url"].endswith("steps?at=10")
    assert here["rows"][1]["what"] == "has ended"
    assert "at=9" in here["earlier"]
    assert "at=11" in here["later"]
    assert client.get(address(coding.pk, short.pk, at=10**9)).context["here"]["later"] == ""


def test_compactions_are_counted_as_on_every_other_page_and_those_at_no_step_are_named(client, db, coding):
    events = tuple(item for n in range(6) for item in (user(f"{n} " + "x" * 4_000), model("y" * 400)))
    halfway, ending = (RecordedCompaction(at, Evidence.DECLARED, "summary", (Span(0, 1),)) for at in (6, len(events)))
    row = stored(session(*events, compactions=(halfway, ending)), title="ending")
    page = client.get(address(coding.pk, row.pk))
    counted_there = next(line for line in page.context["rows"] if line["name"] == "compactions")["others"][0]["value"]
    assert counted_there == "2"
    sentence = "1 of its 2 compactions is at no step: no call came after it before the next compaction, or the end."
    assert f"B: {sentence}" in page.content.decode()
    assert "A: 1 of" not in page.content.decode()
    report = json.loads(client.get(address(coding.pk, row.pk, format="json")).content)
    assert report["sides"][1]["figures"]["compactions"] == 2
    assert report["sides"][1]["compaction_steps"] == [3]


def test_sessions_without_a_model_call_are_not_said_to_have_ended_or_to_send_the_same(client, db, coding):
    rows = [stored(session(user(words)), title=words) for words in ("hello", "good morning")]
    text = client.get(address(*(row.pk for row in rows))).content.decode()
    assert "No side has a model call" in text
    for words in ("has ended", "send the same requests", "of 0", "No call of the recording was counted"):
        assert words not in text
    assert "has no model call" in client.get(address(coding.pk, rows[0].pk)).content.decode()


def test_without_sides_there_is_a_form_whose_choice_is_an_address(client, coding):
    text = client.get("/compare/").content.decode()
    assert str(coding.pk) in text
    answer = client.get("/compare/", {"s1": coding.pk, "p1": "", "s2": coding.pk, "p2": "codex", "s3": "", "p3": ""})
    assert answer.status_code == 302
    assert answer["Location"] == address(coding.pk, f"{coding.pk}?policy=codex")
    assert client.get(answer["Location"]).status_code == 200


def test_runs_of_one_task_are_told_apart_in_the_form_and_on_the_page(client, db):
    rows = [stored(exchange(count, tokens=growing()), title="one task") for count in (12, 3)]
    Session.objects.row(rows[1]).update(agent="Codex CLI", started_at=datetime(2026, 3, 4, 5, 6, tzinfo=UTC))
    about = ["12 calls", "Codex CLI", "3 calls, 04 Mar 2026 05:06 UTC"]
    for page in (client.get("/compare/"), client.get(address(*(row.pk for row in rows)))):
        assert all(words in page.text for words in about)
    assert "12 calls" not in client.get(address(rows[0].pk, f"{rows[0].pk}?policy=none")).text


@pytest.mark.once  # said before any row is asked for
@pytest.mark.parametrize(
    ("sides", "words"),
    [
        (["nonsense", "00000000-0000-4000-8000-000000000000"], "There is no such session."),
        (["SELF?policy=nonsense", "SELF"], "is not known"),
        (["SELF"] * 6, "At most 4 are compared"),
        (["SELF"], "Choose at least two."),
        (["SELF?" + "&".join(["a=b"] * 200), "SELF"], ""),
    ],
)
def test_what_is_wrong_with_an_address_is_said(client, coding, sides, words):
    sides = [side.replace("SELF", str(coding.pk)) for side in sides]
    answer = client.get(address(*sides))
    assert answer.status_code == 200
    assert words.lower() in answer.content.decode().replace("there", "There").lower()


def test_titles_are_text_in_the_page_and_in_the_chart(client, coding):
    Session.objects.row(coding).update(title="<b>bold</b>%{x}")
    text = client.get(address(coding.pk, f"{coding.pk}?policy=none")).content.decode()
    assert "<b>bold" not in text
    assert "&lt;b&gt;bold" in text


def test_a_side_of_several_windows_says_which_one_judges_what(client, db):
    row = stored(counted((*(50_000,) * 5, 300_000), names=(*(SONNET,) * 5, "gemini-2.5-pro")))
    sides = (row.pk, f"{row.pk}?policy=codex")
    page = client.get(address(*sides))
    sizes = "The calls have 2 windows, in tokens: 200,000 (5 calls), 1,048,576 (1 call)."
    own = "Overflows and near misses are counted by each call's own"
    assert page.context["windows"] == [
        f"A: {sizes} {own}.",
        f"B: {sizes} {own}; the policy compacts by 200,000 at every call.",
    ]
    fill = next(row for row in page.context["rows"] if row["name"] == "peak fill")
    assert fill["first"].startswith("28.6")  # 300,000 of 1,048,576, not of 200,000
    report = json.loads(client.get(address(*sides, format="json")).content)
    assert report["sides"][0]["windows"] == [{"tokens": 200_000, "calls": 5}, {"tokens": 1_048_576, "calls": 1}]


@pytest.mark.parametrize(
    ("built", "said", "words"),
    [
        (in_characters(), "characters", "The recorded counts seem to count characters, not tokens"),
        (exchange(5, tokens=lambda turn: None), "estimates", "No call of the recording was counted"),
    ],
)
def test_a_side_whose_counts_are_no_tokens_says_what_they_are(client, db, built, said, words):
    row, other = stored(built), stored(exchange(6, tokens=growing(), words="Mend the other one."))
    text = client.get(address(other.pk, row.pk)).content.decode()
    assert f"B: {words}" in text
    assert "A: " + words not in text
    head, *_ = csv.reader(client.get(address(other.pk, row.pk, format="csv")).content.decode().splitlines())
    assert head == ["step", "prompt tokens A", f"prompt tokens B ({said})"]
    report = json.loads(client.get(address(other.pk, row.pk, format="json")).content)
    assert [side["counted_in"] for side in report["sides"]] == ["tokens", said]


def test_the_form_offers_the_session_it_was_opened_for_however_old_that_is(client, db):
    first = stored(session(user("Go"), model("Done"), title="the first of all"), title="first")
    newer = stored(session(user("Go on"), model("Done"), title="newer"), title="newer")
    Session.unscoped.filter(pk=first.pk).update(created=datetime(2020, 1, 1, tzinfo=UTC))
    Session.objects.of(first.project_id).bulk_create(
        Session(recording=newer.recording, ordinal=9 + n, title="more", calls=1, events=0, window=1, turns=0)
        for n in range(OFFERED)
    )
    text = client.get("/compare/", {"session": str(first.pk)}).content.decode()
    assert len(re.findall(rf'value="{first.pk}"\s+selected', text)) == 2
    assert re.findall(r'value="([a-z-]+)"\s+selected>', text) == ["contextguard"]  # the other side is the recording
    again = client.get("/compare/", {"s3": str(first.pk), "p3": "none"}, follow=True).content.decode()
    assert len(re.findall(rf'value="{first.pk}"\s+selected', again)) == 2
    assert len(re.findall(r'value="none"\s+selected', again)) == 1


@pytest.mark.django_db
def test_the_form_shows_the_policy_of_a_replay_whose_address_does_not_name_it(client):
    row = stored(msgspec.structs.replace(counted((9_000, 20_000)), format="claude-code"))
    text = client.get(address(f"{row.pk}?max_output=8000")).text
    assert re.findall(r'value="([a-z-]+)"\s+selected>Claude Code', text) == ["claude-code"]
