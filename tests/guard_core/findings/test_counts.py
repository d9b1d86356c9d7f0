"""One count of compactions and one peak, for every page, the list and the command line."""

import dataclasses

import numpy as np
import pytest

from guard_core.checker import check
from guard_core.findings import Facts, counted_compactions, recorded_findings, recorded_verdict, requests_of
from guard_core.ledger import Ledger
from guard_core.sessions import Evidence, ModelCall, RecordedCompaction
from guard_core.trace import WHOLE_LOG, Head
from guard_core.views import Inserted, Span, Synthetic
from tests.builders import bundled, model, session, user
from tests.guard_core.findings.cases import chat, compaction, record, trace

EVENTS = [user("one"), model("two"), user("three"), model("four"), user("five"), model("six")]
CALLS = tuple(ModelCall(at, at, 100) for at in (1, 3, 5))


def cut(at: int, kind: str = "summary", **fields: object) -> RecordedCompaction:
    return RecordedCompaction(at, fields.pop("evidence", Evidence.DECLARED), kind, (Span(0, 1),), **fields)


def counts(*compactions: RecordedCompaction):
    return counted_compactions(session(*EVENTS, calls=CALLS, compactions=compactions))


@pytest.mark.parametrize("evidence", list(Evidence))
def test_a_compaction_counts_however_sure_it_is(evidence):
    assert counts(cut(3, evidence=evidence)).total == 1


def test_a_resume_that_rewrites_the_history_is_no_compaction():
    tally = counts(cut(2, "edit", trigger="resume", evidence=Evidence.INFERRED), cut(3))
    assert [(item.place, item.step) for item in tally.compactions] == [(1, 1)]


def test_an_edit_whose_tokens_the_recorder_gives_is_a_compaction():
    assert counts(cut(3, "edit", tokens_before=9_000)).total == 1


def test_compactions_are_counted_by_who_asked_for_them():
    tally = counts(cut(2, trigger="auto"), cut(3, trigger="manual"), cut(4, trigger="threshold"), cut(5))
    assert (tally.automatic, tally.manual, tally.unknown, tally.total) == (2, 1, 1, 4)


def test_a_compaction_after_the_last_call_is_at_the_end():
    tally = counts(cut(3), cut(6), cut(6))
    assert (tally.total, tally.at_the_end) == (3, 2)


def test_a_compaction_replaced_before_any_call_is_not_at_the_end():
    tally = counts(cut(3), cut(3))
    assert [(item.step, item.at_the_end) for item in tally.compactions] == [(-1, False), (1, False)]


def test_the_peak_is_the_largest_recorded_request_where_all_are_recorded():
    peak = requests_of(Ledger.of(session(*EVENTS, calls=tuple(ModelCall(at, at, 100 * at) for at in (1, 5, 3))))).peak
    assert (peak.tokens, peak.step, peak.source) == (500, 1, "recorded")


def test_the_peak_is_modelled_where_a_larger_request_has_no_count():
    built = bundled("small-window")
    peak = requests_of(Ledger.of(built)).peak
    assert peak.source == "modelled"
    assert built.calls[peak.step].prompt_tokens is None
    assert peak.tokens > max(call.prompt_tokens or 0 for call in built.calls)


def test_of_two_requests_as_large_the_peak_is_the_one_that_was_counted():
    built = session(*EVENTS, calls=(ModelCall(1, None, 100), ModelCall(3, None), ModelCall(3, 3, 150)))
    requests = requests_of(Ledger.of(built))
    assert requests.tokens.tolist() == [100, 150, 150]  # a failed request, and the same again
    assert (requests.peak.step, requests.peak.source) == (2, "recorded")
    assert recorded_verdict(facts := Facts.of(built), recorded_findings(facts)).numbers["peak_step"] == 2


def test_the_peak_of_a_session_without_counts_is_modelled():
    assert requests_of(Ledger.of(session(*EVENTS, calls=(ModelCall(1), ModelCall(3))))).peak.source == "modelled"


def test_a_session_without_calls_has_no_peak():
    assert requests_of(Ledger.of(session(user("hello")))).peak is None


def test_a_compaction_that_an_edit_followed_before_the_next_call_has_that_call():
    """As where a session is compacted, left, and resumed later."""
    edit = RecordedCompaction(3, Evidence.INFERRED, "edit", (Inserted(0),), (user("what was done"),), trigger="resume")
    built = chat(4_000, 4_100, 900, 1_000, compactions=(compaction(3), edit))
    facts = Facts.of(built)
    (counted,) = facts.counts.compactions
    assert (counted.step, counted.at_the_end) == (2, False)
    findings = recorded_findings(facts)
    assert {item.kind for item in findings} >= {"needless"}
    assert check(built, findings, facts.window, recorded_verdict(facts, findings)) == []


def test_a_request_that_an_edit_brings_back_before_the_next_call_is_not_lost():
    edit = RecordedCompaction(3, Evidence.INFERRED, "edit", (Span(0, 3),), trigger="resume")
    facts = Facts.of(chat(4_000, 4_100, 4_200, 4_300, compactions=(compaction(3), edit)))
    assert "request_lost" not in {item.kind for item in recorded_findings(facts)}


@pytest.mark.parametrize("is_kept", [True, False])
def test_a_compaction_replaces_what_the_one_before_left_only_if_the_call_between_was_sent_so(is_kept):
    facts = Facts.of(chat(*[5_000] * 8))
    left = (Synthetic("summary", 120),)
    first, second = record(3, carried=left, kept_from=4), record(5, carried=left, kept_from=6)
    made = trace(facts, first, second, heuristic_built=[900] * 8, heuristic_sent=[800] * 8)
    heads = (WHOLE_LOG, Head(left, 4) if is_kept else Head((Span(0, 2),), 4))
    columns = {**made.columns, "head": np.array([0, 0, 0, 1, 1, 1, 1, 1])}
    replaced = facts.replay(dataclasses.replace(made, columns=columns, heads=heads)).fired[1].replaced
    assert replaced == ((*left, Span(4, 6)) if is_kept else second.before)
