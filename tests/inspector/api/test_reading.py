"""What programs read of sessions."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import msgspec
import pytest

from guard_core.__main__ import main
from guard_core.recordings.formats import native
from inspector.models import Session
from inspector.streams.messages import HIGHEST, NAME
from tests.big_sessions import big_session
from tests.builders import bundled
from tests.guard_core.checker.cases import exchange, growing, in_characters
from tests.inspector.rows import session_row

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("folders")]
PARTS = ("", "/steps", "/compactions", "/findings", "/rule")


@pytest.fixture
def row(bring) -> Session:
    bring(native.write(big_session(60, 3)))
    return Session.unscoped.get()


def test_a_session_is_read_with_its_steps_compactions_findings_and_rule(client, row):
    address = f"/api/v1/sessions/{row.pk}"
    assert client.get("/api/v1/sessions").json()["sessions"][0]["id"] == str(row.pk)
    one = client.get(address).json()
    assert (one["steps"], one["verdict"], one["compactions"]) == (row.calls, row.verdict, row.compactions)
    steps = client.get(f"{address}/steps?offset=2&limit=3").json()
    assert (steps["count"], [step["step"] for step in steps["steps"]]) == (row.calls, [2, 3, 4])
    assert len(client.get(f"{address}/compactions").json()["compactions"]) == row.compactions
    findings = client.get(f"{address}/findings").json()
    assert findings["verdict"]["sentence"] == row.verdict
    assert {finding["kind"] for finding in findings["findings"]} == set(row.kinds.split())
    assert client.get("/api/v1/triggers").status_code == 200


def test_sessions_are_listed_by_the_filters_of_the_list(client):
    old, loop = (session_row(title, model=f"model {title}") for title in ("old one", "loop two"))
    Session.unscoped.filter(pk=loop.pk).update(loops=1, severity=Session.Severity.ERROR, kinds=" loop ")
    Session.unscoped.filter(pk=old.pk).update(started_at=datetime(2020, 5, 6, 23, tzinfo=UTC), overflows=1, loops=1)

    def listed(asked: str) -> list[str]:
        answer = client.get(f"/api/v1/sessions?{asked}")
        assert answer.status_code == 200, answer.content
        assert answer.json()["count"] == len(answer.json()["sessions"])
        return [one["title"] for one in answer.json()["sessions"]]

    assert listed("") == listed("sort=-added") == ["loop two", "old one"]
    assert listed("sort=title") == ["loop two", "old one"]
    assert listed("sort=-title") == listed("sort=added") == ["old one", "loop two"]
    assert listed("severity=error") == listed("q=two") == listed("kind=loop") == ["loop two"]
    assert len(listed("severity=error&severity=fine")) == 2
    assert listed("until=2020-05-06") == listed("has=loop&has=overflow") == listed("model=model+old+one") == ["old one"]
    assert listed("min_peak=51") == listed("q=%00nothing") == []
    (one,) = client.get("/api/v1/sessions?has=overflow").json()["sessions"]
    assert (one["severity"], one["started"]) == ("fine", "2020-05-06T23:00:00Z")


@pytest.mark.parametrize(
    "asked", ["severity=bad", "has=", "kind=x", "sort=colour", "since=yesterday", "min_peak=-1", "min_size=nan"]
)
def test_a_filter_that_makes_no_sense_is_refused_by_its_name(client, asked):
    answer = client.get(f"/api/v1/sessions?{asked}")
    assert (answer.status_code, asked.partition("=")[0] in answer.json()["error"]) == (400, True)


def test_verdict_findings_and_rule_are_those_of_the_commands(client, bring, tmp_path, capsys):
    def printed(command: str) -> dict[str, Any]:
        assert main([command, str(file), "--json"]) == 0
        (one,) = json.loads(capsys.readouterr().out)["sessions"]
        return one

    file = tmp_path / "a.jsonl"
    for name in ("healthy", "unpersisted-loop"):
        file.write_bytes(native.write(bundled(name)))
        bring(file.read_bytes())
        address = f"/api/v1/sessions/{Session.unscoped.get(title=bundled(name).title).pk}"
        said, verdict = client.get(f"{address}/findings").json(), printed("verdict")
        assert said["verdict"] == verdict["verdict"]
        whole = {"numbers": {}, "assumptions": [], "steps": [], "count": 1}
        assert said["findings"] == [{**whole, **finding} for finding in verdict["findings"]]
        assert client.get(f"{address}/rule").json() == printed("explain")


@pytest.mark.parametrize(
    ("built", "said"),
    [
        (in_characters(), "characters"),
        (exchange(5, tokens=lambda turn: None), "estimates"),
        (exchange(5, tokens=growing()), "tokens"),
    ],
)
def test_a_session_says_what_its_counts_are(client, bring, built, said):
    bring(native.write(built))
    assert client.get(f"/api/v1/sessions/{Session.unscoped.get().pk}").json()["counted_in"] == said


def test_steps_that_name_no_model_have_that_of_their_session(client, bring):
    session = big_session(3, 0)
    calls = tuple(msgspec.structs.replace(call, model=name) for call, name in zip(session.calls, ("", "b", "")))
    bring(native.write(msgspec.structs.replace(session, model="a", calls=calls)))
    steps = client.get(f"/api/v1/sessions/{Session.unscoped.get().pk}/steps").json()["steps"]
    assert [step["model"] for step in steps] == ["a", "b", "a"]


def test_a_session_that_is_not_there_is_said_to_be_missing(client):
    for part in PARTS:
        answer = client.get(f"/api/v1/sessions/{uuid4()}{part}")
        assert (answer.status_code, answer.json()) == (404, {"error": "There is no such session."})


@pytest.mark.parametrize("part", PARTS)
def test_an_id_that_is_none_is_refused_as_json(client, part):
    answer = client.get(f"/api/v1/sessions/null,null{part}")
    assert (answer.status_code, answer.headers["Content-Type"].split(";")[0]) == (400, "application/json")
    assert "session_id" in answer.json()["error"]


@pytest.mark.once  # refused before any row is asked for
@pytest.mark.parametrize("query", ["offset=-1", "limit=0", "limit=x", "offset=9999999999999"])
def test_a_bad_number_is_refused_by_name(client, row, query):
    answer = client.get(f"/api/v1/sessions/{row.pk}/steps?{query}")
    assert answer.status_code == 400
    assert query.split("=")[0] in answer.json()["error"]


def test_the_document_declares_every_status_and_names_no_other_server(client):
    document = client.get("/api/v1/openapi.json").json()
    post = document["paths"]["/api/v1/sessions/{name}/events"]["post"]
    statuses = {"200", "400", "401", "403", "404", "405", "409", "410", "413", "415", "429", "503", "507"}
    assert set(post["responses"]) == statuses
    assert set(post["requestBody"]["content"]) == {"application/json", "application/x-ndjson"}
    assert set(post["responses"]["413"]["content"]) == {"text/plain"}
    name = next(item for item in post["parameters"] if item["name"] == "name")
    assert name["schema"]["pattern"] == f"^{NAME.pattern}$"
    first = post["requestBody"]["content"]["application/json"]["schema"]["properties"]["first"]
    assert (first["minimum"], first["maximum"]) == (0, HIGHEST)
    assert "http" not in json.dumps(document["paths"])
    assert len(document["paths"]) == 18
    assert client.get("/api/v1/docs").status_code == 404
