"""What programs read of replays and sweeps."""

from __future__ import annotations

import json
from uuid import uuid4

import pytest

from guard_core.__main__ import main
from guard_core.recordings.formats import native
from inspector.models import Session, Sweep, SweepSlice, default_project
from inspector.pages.sweep.runs import cancel, run_slice
from inspector.replays.analysis import analyse
from inspector.replays.choice import parse_choice
from tests.big_sessions import big_session
from tests.builders import model, session, user
from tests.guard_core.outcomes.cast import SONNET, counted
from tests.inspector.pages.conftest import stored

pytestmark = pytest.mark.django_db
FORM = {"policy": "contextguard", "axis1": "buffer", "values1": "500, 3000, 6k", "axis2": "cap", "values2": "2:5:3"}
LONG = "?policy=contextguard&window=20000&buffer=3000"


@pytest.fixture
def row() -> Session:
    events = [item for n in range(30) for item in (user(f"{n} " + "x" * 4_000), model("y" * 400))]
    return stored(session(*events, title="first", model="gpt-4o", window=20_000))


def swept(client, row: Session, *, to_the_end: bool = True) -> Sweep:
    assert client.post("/sweeps/new", {**FORM, "session": str(row.pk)}).status_code == 302
    while to_the_end and (waiting := SweepSlice.unscoped.filter(state="received").first()) is not None:
        run_slice(str(waiting.pk))
    return Sweep.objects.of(default_project()).get()


def test_a_replay_of_calls_of_several_windows_says_which_one_it_knows(client):
    row = stored(counted((*(50_000,) * 5, 300_000), names=(*(SONNET,) * 5, "gemini-2.5-pro")))
    one = client.get(f"/api/v1/sessions/{row.pk}/replay?policy=codex").json()
    assert one["windows"] == [{"tokens": 200_000, "calls": 5}, {"tokens": 1_048_576, "calls": 1}]
    assert one["notes"][0].endswith("The replay is in a window of 200,000 at every call, and counts overflows by it.")


def test_a_replay_is_the_one_that_pages_show_and_its_rows_are_its_columns(client, row):
    address = f"/api/v1/sessions/{row.pk}/replay"
    one = client.get(address + LONG).json()
    trace = analyse(row, parse_choice({"policy": "contextguard", "window": "20000", "buffer": "3000"})[0]).replayed
    assert (one["policy"], one["window"], one["steps"]) == ("contextguard", 20_000, row.calls)
    assert one["digest"] == trace.digest()
    assert one["figures"]["compactions"] == len(trace.compactions) > 0
    steps = client.get(f"{address}/steps{LONG}&offset=2&limit=3").json()
    assert (steps["count"], [item["step"] for item in steps["rows"]]) == (row.calls, [2, 3, 4])
    assert set(steps["rows"][0]) == {"step", *(column["name"] for column in one["columns"])}
    whole = client.get(f"{address}/steps{LONG}&limit=1000").json()["rows"]
    assert [item["threshold"] for item in whole] == trace.columns["threshold"].tolist()
    assert [item["fired"] for item in whole] == [bool(value) for value in trace.columns["fired"]]
    assert {item["prompt_tokens_source"] for item in whole} <= {"none", "provider", "modelled", "assumed"}
    compactions = client.get(f"{address}/compactions{LONG}&offset=1&limit=2").json()
    assert compactions["count"] == len(trace.compactions)
    assert [item["step"] for item in compactions["rows"]] == [item.step for item in trace.compactions[1:3]]


def test_the_compactions_of_a_long_recording_are_read_without_their_views(client, bring):
    bring(native.write(big_session(60, 3)))
    row = Session.unscoped.get()
    query = "policy=agno-compress-tool-results&window=256"
    answer = client.get(f"/api/v1/sessions/{row.pk}/replay/compactions?{query}")
    assert answer.status_code == 200
    assert answer.json()["count"] == len(answer.json()["rows"]) > 0
    for record in answer.json()["rows"]:
        assert not {"before", "after", "carried", "in_turn"} & set(record)
        assert not [one for one in record["passes"] if "summariser_view" in one]


@pytest.mark.once  # computed from one session
def test_every_policy_is_a_row(client, row):
    answer = client.get(f"/api/v1/sessions/{row.pk}/replays?window=20000").json()
    assert answer["window"] == 20_000
    assert {"", "contextguard", "none"} <= {item["policy"] for item in answer["rows"]}
    assert len({item["policy"] for item in answer["rows"]}) > 20
    assert answer["windows"] == [{"tokens": 20_000, "calls": row.calls}]
    assert (answer["money"], answer["counted_in"]) == ("millionths of a US dollar", "tokens")


@pytest.mark.parametrize(("name", "is_priced"), [("gpt-4o", True), ("unheard-of", False)])
def test_money_is_that_of_the_command_and_none_where_a_price_is_not_known(client, tmp_path, capsys, name, is_priced):
    events = [item for n in range(9) for item in (user(f"{n} " + "x" * 4_000), model("y" * 400))]
    value, amounts = session(*events, model=name, window=20_000), ("costs", "reported", "paid", "saved", "unpaid")
    (tmp_path / "a.jsonl").write_bytes(native.write(value))
    assert main(["compare", str(tmp_path / "a.jsonl"), "--json"]) == 0
    printed = [[row[each] for each in amounts] for row in json.loads(capsys.readouterr().out)["rows"]]
    rows = client.get(f"/api/v1/sessions/{stored(value).pk}/replays").json()["rows"]
    assert [[row["outcome"][each] for each in amounts] for row in rows] == printed
    assert all(
        (costs["total"] is not None, paid is not None) == (is_priced, is_priced) for costs, _, paid, *_ in printed
    )


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("policy=nothing", "policy"),
        ("window=many", "window"),
        ("window=0", "window"),
        ("summary=enormous", "summary"),
        ("policy=contextguard&buffer=-1", "buffer"),
        ("policy=contextguard&colour=red", "'colour' is not a setting"),
        ("profile=unheard", "profile"),
    ],
)
def test_a_setting_that_is_not_taken_is_refused_by_name(client, row, query, words):
    for part in ("", "/steps", "/compactions"):
        answer = client.get(f"/api/v1/sessions/{row.pk}/replay{part}?{query}")
        assert answer.status_code == 400, answer.content
        assert words in answer.json()["error"]


def test_a_setting_without_effect_contradicts_the_policy(client, row):
    for query in ("policy=none&summary=mechanical", "policy=none&buffer=3000"):
        answer = client.get(f"/api/v1/sessions/{row.pk}/replay?{query}")
        assert answer.status_code == 409
        assert "has no effect under policy 'none'" in answer.json()["error"]


def test_a_sweep_is_read_with_what_follows_and_every_setting(client, row):
    sweep = swept(client, row)
    (listed,) = client.get("/api/v1/sweeps").json()["sweeps"]
    assert (listed["id"], listed["settings"], listed["under_way"]) == (str(sweep.pk), sweep.cells, False)
    one = client.get(f"/api/v1/sweeps/{sweep.pk}").json()
    file = client.get(f"/sweeps/{sweep.pk}/sweep.json").json()
    assert one["answer"]["money"] == "millionths of a US dollar"
    figures = [item for cell in file["cells"] for item in cell["figures"]]
    assert {(item["cost"], item["requests_dropped"], item["read_again"]) for item in figures} == {(None, None, None)}
    assert one["answer"] == {name: value for name, value in file.items() if name != "cells"}
    rows = client.get(f"/api/v1/sweeps/{sweep.pk}/rows?offset=1&limit=2").json()
    assert (rows["count"], rows["rows"]) == (len(file["cells"]), file["cells"][1:3])


def test_a_sweep_without_an_answer_has_no_rows(client, row):
    sweep = swept(client, row, to_the_end=False)
    assert client.get(f"/api/v1/sweeps/{sweep.pk}").json()["under_way"] is True
    assert client.get(f"/api/v1/sweeps/{sweep.pk}/rows").status_code == 404
    cancel(sweep)
    one = client.get(f"/api/v1/sweeps/{sweep.pk}").json()
    assert (one["under_way"], one["cancelled"], one["answer"]) == (False, True, None)


@pytest.mark.parametrize("path", ["sessions/{}/replay", "sessions/{}/replays", "sweeps/{}", "sweeps/{}/rows"])
def test_what_is_not_there_is_said_to_be_missing(client, path):
    answer = client.get(f"/api/v1/{path.format(uuid4())}")
    assert answer.status_code == 404
    assert answer.json()["error"] == f"There is no such {'sweep' if 'sweep' in path else 'session'}."
