"""Whatever is asked of the API, it answers as its document says: a declared status, and what the schema requires.

Values are drawn from the document: within the bounds of a parameter, at their edges, and outside of them.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as tried
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from guard_core.sessions import ModelCall
from inspector.accounts import keys
from inspector.models import Session, default_project
from tests.big_sessions import big_session
from tests.builders import model, session, user
from tests.inspector.pages.conftest import stored
from tests.inspector.people import browser
from tests.inspector.streamed import lines_of, send
from tests.plugins.examples import FEW

pytestmark = [pytest.mark.django_db, pytest.mark.once]
NOWHERE = "00000000-0000-4000-8000-000000000000"
WRONG = st.sampled_from(["", "null", "-1", "1e9", "\x00", "é", "true", "[]", "9" * 40])


@pytest.fixture
def row() -> Session:
    calls = (ModelCall(1, 1, prompt_tokens=9_000), ModelCall(3, 3, prompt_tokens=95_000))
    return stored(session(user("a"), model("b"), user("c"), model("d"), calls=calls, window=100_000))


@pytest.fixture
def document(client) -> dict[str, Any]:
    answer: dict[str, Any] = client.get("/api/v1/openapi.json").json()
    return answer


def test_the_document_refuses_a_comment_without_place_and_thread_and_a_blank_one(document):
    new = document["components"]["schemas"]["NewComment"]
    allowed = [(option["required"], option["properties"]) for option in new["anyOf"]]
    assert allowed == [([name], {name: {"type": "string"}}) for name in ("place", "thread")]  # null is not a string
    pattern = re.compile(new["properties"]["text"]["pattern"])
    assert [bool(pattern.search(text)) for text in ("a", " a\n", "", " \n", "\x00 ")] == [
        True,
        True,
        False,
        False,
        False,
    ]


def test_the_document_allows_the_lines_of_a_stream_and_nothing_else(client, document):
    path = document["paths"]["/api/v1/sessions/{name}/events"]
    body = path["post"]["requestBody"]["content"]["application/json"]["schema"]
    allowed = Draft202012Validator({**body, "components": document["components"]})
    lines = lines_of(big_session(20, 1))
    for some in (lines, [*lines, {}], [{"calls": {"at": -1}}], [{"index": 0, "events": {"role": "user"}}]):
        answer = send(client, "a", 0, some)
        assert allowed.is_valid({"first": 0, "lines": some}) == (answer.status_code == 200), some
        assert answer.status_code == 200 or answer.json()["index"] == len(some) - 1


def test_other_methods_of_every_address_are_refused_as_the_document_says(client, document, row):
    (name, refused) = next(iter(document["components"]["responses"].items()))
    problem = Draft202012Validator(document["components"]["schemas"]["Problem"])
    assert refused["content"]["application/json"]["schema"]["$ref"].endswith("/Problem")
    others = {"/v1/traces": ["POST"], "/v1/logs": ["POST"]}
    addresses = {path: sorted(map(str.upper, item)) for path, item in document["paths"].items()} | others
    for path, allowed in addresses.items():
        for method in {"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"} - {*allowed}:
            answer = client.generic(method, re.sub(r"\{\w+\}", str(row.pk), path))
            assert answer.status_code == 405, (method, path)
            assert answer.headers["Allow"] == ", ".join(allowed), (method, path)
            assert answer.headers["Content-Type"] == "application/json"
            problem.validate(answer.json())
    for item in document["paths"].values():
        for operation in item.values():
            assert operation["responses"]["405"]["$ref"] == f"#/components/responses/{name}"


@pytest.mark.usefixtures("team")
def test_the_document_has_what_team_mode_refuses_programs_with(team_handler, document, settings):
    paths = document["paths"]
    operations = [(name, method, each) for name, path in paths.items() for method, each in path.items()]
    declared = {(name, method): set(each["responses"]) for name, method, each in operations}
    assert all("401" in answers for answers in declared.values())
    changes = {(name, method) for name, method in declared if method != "get"}
    assert {place for place, answers in declared.items() if "429" in answers} == changes
    settings.RATE_INGEST = 0
    _, key = keys.make(default_project(), "agent", ["ingest"], "olga")
    for token, status in (("ci_unknown", 401), (key, 429)):
        header = {"HTTP_AUTHORIZATION": f"Bearer {token}"}
        answer = browser(team_handler).post(
            "/api/v1/sessions/a/events", "{}", content_type="application/json", **header
        )
        assert answer.status_code == status
        Draft202012Validator(document["components"]["schemas"]["Problem"]).validate(answer.json())


def values(schema: dict[str, Any], key: str) -> st.SearchStrategy[str]:
    """What may stand for a parameter, right or wrong."""
    if schema.get("format") == "uuid":
        return st.sampled_from([key, NOWHERE]) | WRONG.filter(bool)
    if "enum" in schema:
        return st.sampled_from([str(value) for value in schema["enum"]]) | WRONG
    options = [schema, *schema.get("anyOf", ())]
    numbers = [each for each in options if each.get("type") == "integer"]
    if numbers:
        low, high = numbers[0].get("minimum", 0), numbers[0].get("maximum", 10**9)
        edges = st.sampled_from([low, high, low - 1, high + 1])
        return (edges | st.integers(low, min(high, low + 10))).map(str) | WRONG
    return st.sampled_from(["true", "false", "a"]) | WRONG


def requests_of(document: dict[str, Any], key: str) -> st.SearchStrategy[tuple[str, dict[str, Any]]]:
    """An address that reads, and the responses that are declared for it."""

    def asked(path: str, operation: dict[str, Any]) -> st.SearchStrategy[tuple[str, dict[str, Any]]]:
        parameters = operation.get("parameters", ())
        of_path = {item["name"]: values(item["schema"], key) for item in parameters if item["in"] == "path"}
        of_query = {item["name"]: values(item["schema"], key) for item in parameters if item["in"] == "query"}
        return st.tuples(st.fixed_dictionaries(of_path), st.fixed_dictionaries({}, optional=of_query)).map(
            lambda drawn: (
                path.format(**{name: urlencode({"": value})[1:] for name, value in drawn[0].items()})
                + (f"?{urlencode(drawn[1])}" if drawn[1] else ""),
                operation["responses"],
            )
        )

    reading = [(path, item["get"]) for path, item in document["paths"].items() if "get" in item]
    return st.sampled_from(reading).flatmap(lambda item: asked(*item))


@pytest.mark.long("more")
def test_every_answer_has_a_declared_status_and_what_its_schema_requires(client, document, row, pytestconfig):
    """`make test` asks fewer questions."""
    few = {"max_examples": FEW} if pytestconfig.getoption("short") else {}

    @tried(suppress_health_check=[HealthCheck.too_slow], deadline=None, **few)
    @given(requests_of(document, str(row.pk)))
    def ask(drawn: tuple[str, dict[str, Any]]) -> None:
        address, declared = drawn
        answer = client.get(address)
        assert str(answer.status_code) in declared, (address, answer.status_code)
        assert answer.status_code < 500, address
        assert answer.headers["Content-Type"].startswith("application/json"), address
        content = declared[str(answer.status_code)].get("content", {}).get("application/json", {})
        name = content.get("schema", {}).get("$ref", "").rpartition("/")[2]
        required = document["components"]["schemas"].get(name, {}).get("required", ())
        assert set(required) <= answer.json().keys(), address

    ask()
