"""The facts of the estimator page say what their numbers rest on."""

import pytest

from guard_core.estimation.attribution import attribute
from guard_core.ledger import Ledger
from guard_core.sessions import ModelCall
from inspector.pages.estimator.presenter import facts, histogram
from inspector.storage.estimates import Points
from tests.builders import model, session, user


@pytest.mark.parametrize(("first", "source"), [(127_000, "assumed"), (30_000, "modelled")])
def test_an_overhead_that_is_only_usual_for_the_agent_is_called_assumed(first, source):
    events = [part for _ in range(4) for part in (user("question " * 150), model("answer " * 150))]
    calls = tuple(ModelCall(2 * step + 1, 2 * step + 1, first + 700 * step) for step in range(4))
    ledger = Ledger.of(session(*events, calls=calls, format="claude-code"))
    overhead = facts(ledger, attribute(ledger))[0]
    assert overhead["source"] == source
    assert ("usual for this agent" in " ".join(map(str, overhead.values()))) == (source == "assumed")


def test_the_histogram_counts_each_call_once_in_its_range_without_gaps():
    shown = histogram(Points([0, 1, 2, 3], [100, 250, 260, 900], [100, 100, 100, 100]))
    assert [(bar["name"], bar["count"]) for bar in shown["bars"]] == [
        ("1 to 1.1", "1"),
        ("1.1 to 1.25", "0"),
        ("1.25 to 1.5", "0"),
        ("1.5 to 2", "0"),
        ("2 to 3", "2"),
        ("3 to 5", "0"),
        ("5 to 10", "1"),
    ]
    assert shown["sentence"].startswith("Recorded for one estimated token: 2.55 at the median of 4 calls")
