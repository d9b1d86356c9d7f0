"""The check before a call: what was counted, where the numbers come from, and what the rule says of it."""

import msgspec
import pytest

from guard_core.ledger import Ledger
from guard_core.rules import OwnChecks, explain
from guard_core.rules.agreement import Agreement
from guard_core.rules.claude_code import FAILING
from guard_core.rules.words import decision_words, inequality
from guard_core.sessions import Provenance, Session, Sourced
from tests.builders import model, transcript, user


def checks(session, **typed):
    ledger = Ledger.of(session)
    return OwnChecks(session, ledger, explain(session, ledger, typed=typed))


def test_a_compaction_is_said_with_its_numbers_and_where_they_come_from():
    decision = checks(transcript()).at(3)
    assert inequality(decision) == "155,010 ≥ 155,000 = 200,000 − 32,000 (max output) − 13,000"
    assert decision_words(decision) == "Claude Code compacted here: the count reached the threshold."
    assert [(term.value, term.source, term.as_of) for term in decision.terms[:3]] == [
        (154_000, "provider", 2),
        (10, "provider", 2),
        (1_000, "recomputed", None),
    ]
    assert (decision.terms[3].value, decision.terms[3].expression) == (155_010, "154,000 + 10 + 1,000")


def test_a_quiet_check_says_how_much_room_is_left():
    decision = checks(transcript()).at(2)
    assert inequality(decision) == "151,010 < 155,000 = 200,000 − 32,000 (max output) − 13,000"
    assert decision_words(decision) == "No compaction: 3,990 tokens remain to the threshold."


def test_what_the_agent_wrote_down_is_the_count():
    decision = checks(transcript(tokens_before=155_200)).at(3)
    assert (decision.count, decision.recorded, decision.computed) == (155_200, 155_200, 155_010)
    assert decision.terms[3].source == "recorder"


def test_a_check_at_which_only_the_rule_fires_says_so():
    decision = checks(transcript(), max_output_tokens="32000", autocompact_pct="50").at(2)
    assert decision.fires
    assert decision_words(decision) == (
        f"The rule fires here, 67,010 tokens above its threshold, and Claude Code did not compact ({FAILING})."
    )


def test_a_person_who_asked_is_the_reason():
    decision = checks(transcript(trigger="manual")).at(3)
    assert decision_words(decision) == "Claude Code compacted here: a person asked for it."


@pytest.mark.parametrize(
    ("step", "reason"),
    [(0, "no answer has been counted yet"), (2, "no count of the provider is known since the last compaction")],
)
def test_without_a_count_nothing_is_compared(step, reason):
    session = transcript(place=1)
    calls = list(session.calls)
    calls[1] = msgspec.structs.replace(calls[1], prompt_tokens=None)
    decision = checks(msgspec.structs.replace(session, calls=tuple(calls))).at(step)
    assert (decision.count, decision.reason) == (None, reason)
    assert decision_words(decision) == f"No compaction: {reason}."


def test_calls_without_counts_before_the_first_that_has_one_are_the_reason():
    session = transcript()
    first = msgspec.structs.replace(session.calls[0], prompt_tokens=None)
    quiet = checks(msgspec.structs.replace(session, calls=(first, *session.calls[1:]), compactions=()))
    assert quiet.at(1).reason == "the file has no tokens of the calls before"


def test_a_file_without_counts_says_so():
    session = transcript()
    calls = tuple(msgspec.structs.replace(call, prompt_tokens=None) for call in session.calls)
    quiet = checks(msgspec.structs.replace(session, calls=calls, compactions=()))
    assert quiet.at(1).reason == "the file has no tokens per call"
    assert set(quiet.counts.tolist()) == {-1}


def test_within_a_turn_pi_does_not_look():
    decision = checks(transcript("pi")).at(2)
    assert decision_words(decision) == "No compaction: within a turn, where it does not check."


def test_a_version_without_a_threshold_says_why():
    decision = checks(transcript(version="2.1.330", trigger="manual")).at(2)
    assert inequality(decision) == "151,010 ≤ 200,000 (window); no threshold"
    assert decision_words(decision) == "No compaction: a threshold exists only where a window is set."


def test_that_a_threshold_is_not_known_is_no_reason_of_the_agent():
    unknown, why = "the context window is not known: set it", "; the threshold is not known, because the context window"
    for step, did in ((2, "No compaction"), (3, "Claude Code compacted here")):
        decision = checks(transcript()).at(step)
        rule = msgspec.structs.replace(decision.rule, threshold=None, reason=unknown)
        item = decision.compaction and msgspec.structs.replace(
            decision.compaction, verdict=Agreement.NOT_MODELLED, reason=unknown
        )
        decision = msgspec.structs.replace(decision, rule=rule, compaction=item)
        assert decision_words(decision) == f"{did}{why} is not known: set it."


@pytest.mark.parametrize(
    ("more", "words"), [(0, "the count must exceed the threshold"), (1, "1 token remains to the threshold")]
)
def test_a_count_that_equals_a_threshold_which_it_must_exceed_is_not_short_of_it(more, words):
    decision = checks(transcript()).at(2)
    rule = msgspec.structs.replace(decision.rule, threshold=decision.count + more, relation=">")
    assert decision_words(msgspec.structs.replace(decision, rule=rule)) == f"No compaction: {words}."


def test_of_an_unknown_rule_the_prompt_and_the_interval_are_said():
    quiet = checks(transcript("homemade"))
    decision = quiet.at(3)
    assert (quiet.agent, inequality(decision)) == ("", "154,000 prompt tokens")
    assert decision_words(decision) == (
        "The agent compacted here; by its recording, the threshold is above 150,000 and at most 154,000."
    )


def test_the_columns_are_those_of_the_single_checks():
    session = transcript()
    own = checks(session)
    for step in range(len(session.calls)):
        assert own.counts[step] == (own.at(step).count or -1)
        assert own.thresholds[step] == 155_000


def test_a_session_without_calls_has_no_check():
    assert not len(checks(Session(events=(user("Hello"), model("Hi")), format="claude-code")).counts)


class Counted(tuple):
    """Calls that count how often all of them are gone through."""

    passes = 0

    def __iter__(self):
        type(self).passes += 1
        return super().__iter__()


def test_one_check_more_looks_at_its_own_call_alone():
    session = transcript()
    own = checks(msgspec.structs.replace(session, calls=Counted(session.calls)))
    own.at(3)
    before = Counted.passes
    own.at(2)
    assert Counted.passes == before


def test_a_setting_that_is_called_threshold_is_told_apart_from_the_threshold():
    window = Sourced(200_000, Provenance.USER, "typed in")
    built = transcript("hermes", prompts=(20_000, 149_000, 151_000, 9))
    explanation = explain(built, window=window)
    decision = OwnChecks(built, Ledger.of(built), explanation).at(1)
    named = [term.name for term in decision.terms]
    assert len(set(named)) == len(named)
    assert {"threshold setting", "threshold"} <= set(named)
