"""The cast of sessions that tests share."""

from __future__ import annotations

import pytest

from guard_core.sessions import Session
from tests.builders import model, session, tool_call, tool_result, user


@pytest.fixture
def short_chat() -> Session:
    """Two questions, two answers, far below any threshold."""
    return session(
        user("Which branch is deployed to staging?"),
        model("Staging runs the branch release/2.4."),
        user("And production?"),
        model("Production runs release/2.3, deployed on Tuesday."),
    )


@pytest.fixture
def tool_heavy() -> Session:
    """Twenty turns of a question, a call, a large result and an answer."""
    events = []
    for turn in range(20):
        events += [
            user(f"Check deployment {turn}"),
            tool_call("describe", f"c{turn}", name=f"deployment-{turn}"),
            tool_result(f"line {turn}: replica ready, image pulled\n" * 500, "describe", f"c{turn}"),
            model(f"Deployment {turn} is healthy."),
        ]
    return session(*events)


@pytest.fixture
def single_giant_result() -> Session:
    """One tool result of 40,000 characters in a window of 8,000 tokens."""
    return session(
        user("Show me the access log"),
        tool_call("read_file", "c0", path="access.log"),
        tool_result("GET /health 200\n" * 2_500, id="c0"),
        model("Every line is a health check."),
        window=8_000,
    )


@pytest.fixture
def no_usage_reported() -> Session:
    """Ten turns whose provider reported nothing."""
    events = []
    for turn in range(10):
        events += [user(f"Question {turn}: " + "detail " * 50), model(f"Answer {turn}: " + "reason " * 80)]
    return session(*events, reported=False)


@pytest.fixture
def sequential_chain() -> Session:
    """One question answered by five tool calls, one after the other."""
    events = [user("Find the slow query")]
    for link in range(5):
        events += [
            tool_call("run_sql", f"c{link}", statement=f"explain select {link}"),
            tool_result({"rows": [{"cost": 100 * link, "node": "Seq Scan"}] * 40}, "run_sql", f"c{link}"),
        ]
    return session(*events, model("The third query scans the whole table."))
