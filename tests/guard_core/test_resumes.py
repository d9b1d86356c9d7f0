"""A resumed session that loads its history again, and repeats some of it, was not compacted."""

from pathlib import Path

import numpy as np
import pytest

from guard_core.bridge import INSERTED, REPEATED, recorded_bridge
from guard_core.estimation.attribution import attribute
from guard_core.estimation.usage import usage_for
from guard_core.ledger import Ledger
from guard_core.policies import get_policy
from guard_core.recordings import read
from guard_core.replay import observe_recorded, replay
from guard_core.sessions import Evidence, ModelCall, RecordedCompaction, Session
from guard_core.triggers import RESUME
from guard_core.views import Inserted, Span
from tests.builders import model, session, tool_call, tool_result, user

SHARED = Path(__file__).parents[3] / "shared"
RECORDINGS = (
    "samples/gemini-cli/chats/session-2026-11-21T02-58-9436eadb.jsonl",
    "rules/gemini-cli/default/session-2026-11-22T07-20-d5c0e2a6.jsonl",
)
RESULT = "line of a file " * 40
LOG = (
    user("Please read the file"),
    tool_call("read_file", "1"),
    tool_result(RESULT, "read_file", "1"),
    model("It is read"),
    user("And now the next"),
    model("Here it is"),
    user("One more"),
    model("Done"),
)
BASE = (Span(0, 3), Inserted(0), Span(3, 4))
COUNTS = (1_000, 1_200, 1_600, 1_700)  # 1,400 without what the resumed history repeats


def resumed(*later: RecordedCompaction, base=BASE) -> Session:
    """Calls at 1, 3, 5 and 7 events; before the third the session is resumed and repeats the tool's result."""
    calls = tuple(ModelCall(at, at, tokens) for at, tokens in zip((1, 3, 5, 7), COUNTS, strict=True))
    again = RecordedCompaction(4, Evidence.INFERRED, "edit", base, (LOG[2],), trigger=RESUME)
    return session(*LOG, calls=calls, compactions=(again, *later))


def uncompacted(value: Session) -> tuple[Ledger, np.ndarray, np.ndarray]:
    """Its replay without compaction: the ledger, the counts and where they come from."""
    ledger = Ledger.of(value)
    trace = replay(ledger, get_policy("none"), window=100_000, usage=usage_for(ledger, attribute(ledger)))
    return ledger, trace.columns["modelled_prompt_tokens"], trace.columns["prompt_tokens_source"]


def test_a_replay_without_compaction_has_the_recorded_counts_after_a_resume():
    _, counts, sources = uncompacted(resumed())
    assert counts.tolist() == list(COUNTS)
    assert set(sources.tolist()) == {1}


def test_a_history_that_lost_a_message_is_not_the_whole_log():
    _, _, sources = uncompacted(resumed(base=(Span(0, 1), Span(3, 4))))
    assert sources.tolist() == [1, 1, 2, 2]


def test_reasoning_alone_may_be_missing_from_a_resumed_history():
    thought = model("", reasoning="let me think")
    value = resumed()
    events = (*LOG[:3], thought.__class__(thought.role, thought.parts[:1]), *LOG[4:])
    again = RecordedCompaction(4, Evidence.INFERRED, "edit", (Span(0, 3), Inserted(0)), (LOG[2],), trigger=RESUME)
    _, counts, _ = uncompacted(session(*events, calls=value.calls, compactions=(again,)))
    assert counts.tolist() == list(COUNTS)


def test_a_call_without_a_count_after_a_resume_is_modelled_from_the_resumed_history():
    value = resumed()
    calls = (*value.calls[:3], ModelCall(7, 7))
    _, counts, _ = uncompacted(session(*LOG, calls=calls, compactions=value.compactions))
    assert counts[3] > COUNTS[2]


def test_after_a_compaction_the_uncompacted_session_still_repeats_what_it_repeated():
    cut = RecordedCompaction(6, Evidence.INFERRED, "summary", (Inserted(0),), (user("what was done"),))
    _, counts, sources = uncompacted(resumed(cut))
    assert sources.tolist() == [1, 1, 1, 2]
    assert counts[3] > COUNTS[2]


@pytest.mark.parametrize("name", RECORDINGS)
def test_recorded_resumes_are_replayed_exactly_up_to_the_first_compaction(name):
    path = SHARED / name
    if not path.exists():
        pytest.skip("../shared has none of these recordings")
    value = read(path).sessions[0]
    ledger, counts, sources = uncompacted(value)
    first = next(place for place, item in enumerate(value.compactions) if item.kind != "edit")
    before = ledger.steps["epoch"] < first
    assert (ledger.steps["epoch"][before] >= 0).any()
    assert np.array_equal(counts[before], ledger.steps["prompt_tokens"][before])
    assert (sources[before] == 1).all()


def test_the_bridge_books_repeated_messages_apart_from_what_the_compaction_inserted():
    cut = RecordedCompaction(6, Evidence.INFERRED, "summary", (Inserted(0),), (user("what was done"),))
    ledger = Ledger.of(resumed(cut))
    attribution = attribute(ledger)
    observed = observe_recorded(ledger, get_policy("none"), window=100_000, usage=usage_for(ledger, attribution))
    parts = {part.name: part for part in recorded_bridge(ledger, attribution, observed, 1).parts}
    assert parts[REPEATED].before == parts[REPEATED].removed > 0 == parts[REPEATED].after
    assert parts[INSERTED].before == 0 < parts[INSERTED].inserted


def test_what_a_resumed_history_carries_of_an_earlier_summary_is_no_repetition():
    summary, note = user("what was done"), tool_result("another result of some length", "read_file", "1")
    cut = RecordedCompaction(6, Evidence.INFERRED, "summary", (Inserted(0),), (summary,))
    later = RecordedCompaction(
        6, Evidence.INFERRED, "edit", (Inserted(0), Inserted(1)), (summary, note), trigger=RESUME
    )
    assert Ledger.of(resumed(cut, later)).repeated == (frozenset({0}), frozenset(), frozenset({1}))


def test_what_a_resumed_history_repeats_is_told_from_a_summary_of_the_same_size():
    summary, note = user("what was done"), user("what was said")
    cut = RecordedCompaction(6, Evidence.INFERRED, "summary", (Inserted(0),), (summary,))
    later = RecordedCompaction(6, Evidence.INFERRED, "edit", (Inserted(0),), (note,), trigger=RESUME)
    assert Ledger.of(resumed(cut, later)).repeated[1:] == (frozenset(), frozenset({0}))
