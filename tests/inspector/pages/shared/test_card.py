"""The decision card in words."""

import re

import pytest

from guard_core.estimation.attribution import attribute
from guard_core.estimation.usage import usage_for
from guard_core.ledger import Ledger
from guard_core.policies import get_policy
from guard_core.replay import observe_recorded, replay
from guard_core.sessions import GUARDS_WINDOW, Provenance, Sourced
from guard_core.trace import Term
from inspector.pages.shared.card import card, inequality, settings_used, term_row, with_sources
from tests.builders import bundled


@pytest.fixture(scope="module")
def gap():
    """The timing gap: policy, shadow trace and replay."""
    value = bundled("timing-gap")
    ledger = Ledger.of(value)
    policy, usage = get_policy("contextguard"), usage_for(ledger, attribute(ledger))
    return (
        policy,
        observe_recorded(ledger, policy, window=200_000, usage=usage),
        replay(ledger, policy, window=200_000, usage=usage),
    )


def recorded(gap, step, **more):
    policy, observed, _ = gap
    return card(observed, step, policy.explain(observed, step), side="recorded", **more)


def test_equality_fires():
    assert inequality(180_000, 180_000, ()) == "180,000 ≥ 180,000"
    assert inequality(179_999, 180_000, ()) == "179,999 < 180,000"
    assert inequality(-1, 180_000, ()) == "nothing to compare"


@pytest.mark.parametrize(("name", "signs"), [("contextguard", "≥<"), ("letta-code", ">≤"), ("openhands", ">≤")])
def test_a_policy_compares_with_its_own_sign(name, signs):
    value = bundled("long-coding")
    ledger, policy = Ledger.of(value), get_policy(name)
    trace = replay(ledger, policy, window=150_000, usage=usage_for(ledger, attribute(ledger)))
    cards = (card(trace, step, policy.explain(trace, step), side="replayed") for step in range(len(trace)))
    shown = {sign for one in cards for sign in "≥<>≤" if f" {sign} " in one["inequality"]}
    assert shown <= set(signs)
    assert shown


def test_a_recorded_compaction_that_the_policy_agrees_with_says_so(gap):
    shown = recorded(gap, 48, compacted=True)
    assert "ContextGuard would compact here, too" in shown["verdict"]
    assert shown["badge"] == "would compact"


def test_a_recorded_compaction_below_the_threshold_is_named_with_the_room_left(gap):
    assert "ContextGuard would not: 125,240 tokens remain" in recorded(gap, 20, compacted=True)["verdict"]


def test_a_quiet_step_says_what_the_provider_reported_then(gap):
    notes = " ".join(recorded(gap, 30)["notes"])
    assert "The provider then reported" in notes
    assert "the decision tokens were" in notes


def test_the_agents_own_figure_is_named_where_it_differs(gap):
    assert "231,400" in " ".join(recorded(gap, 48, compacted=True, own=231_400)["notes"])
    assert "own figure" not in " ".join(recorded(gap, 48, compacted=True, own=180_020)["notes"])


def test_a_count_from_after_a_compaction_is_not_compared_with_an_estimate_from_before_it(gap):
    observed = gap[1]
    after = int(observed.columns["recorded_prompt_tokens"][48])
    notes = " ".join(recorded(gap, 48, compacted=True)["notes"])
    assert int(observed.columns["decision_tokens"][48]) > 3 * after
    assert "too high" not in notes
    assert f"The request that was sent had {after:,} prompt tokens." in notes


def test_a_replayed_request_is_not_compared_with_the_count_of_the_recorded_one(gap):
    policy, _, replayed = gap
    assert int(replayed.columns["heuristic_sent"][50]) != int(gap[1].columns["heuristic_sent"][50])
    shown = card(replayed, 50, policy.explain(replayed, 50), side="replayed")
    assert "The provider then reported" not in " ".join(shown["notes"])


def test_the_replay_says_that_it_compacts(gap):
    policy, _, replayed = gap
    shown = card(replayed, 48, policy.explain(replayed, 48), side="replayed")
    assert shown["verdict"] == "Compacts here: its count reached the threshold."


def test_every_number_has_a_source_and_the_step_it_was_measured_at(gap):
    policy, observed, _ = gap
    terms = with_sources(policy.explain(observed, 48), Sourced(200_000, Provenance.MODEL_TABLE), ())
    shown = card(observed, 48, terms, side="recorded")["terms"]
    assert [term["name"] for term in shown if not term["source"]] == []
    assert {term["as_of"] for term in shown} == {None, 48}
    assert next(term["source"] for term in shown if term["name"] == "context window") == "model table"


def sources(terms):
    return {term.name: str(term.source) for term in terms}


def test_only_what_a_person_set_is_said_to_be_the_users(gap):
    policy, observed, _ = gap
    given = Sourced(200_000, Provenance.USER, GUARDS_WINDOW)
    terms = with_sources(policy.explain(observed, 48), given, ())
    assert (sources(terms)["context window"], sources(terms)["buffer"]) == ("recorder", "assumed")
    terms = with_sources(policy.explain(observed, 48), Sourced(200_000, Provenance.USER, "set here"), {"buffer"})
    assert (sources(terms)["context window"], sources(terms)["buffer"]) == ("user", "user")
    assert "user" not in [item["source"] for item in settings_used(observed, given, ())["main"]]


def test_the_limit_of_a_sliding_window_is_assumed_until_it_is_set():
    policy, ledger = get_policy("contextguard-sliding"), Ledger.of(bundled("timing-gap"))
    observed = observe_recorded(ledger, policy, window=200_000, usage=usage_for(ledger, attribute(ledger)))
    for typed, source in (((), "assumed"), ({"max_turns"}, "user")):
        terms = with_sources(policy.explain(observed, 48), Sourced(200_000, Provenance.MODEL_TABLE), typed)
        assert sources(terms)["limit"] == source


def test_the_verdict_is_a_sentence_and_only_the_replay_acts(gap):
    policy, observed, replayed = gap
    for trace, side, words in ((observed, "recorded", "It would compact."), (replayed, "replayed", "It compacts.")):
        row = next(term for term in card(trace, 48, policy.explain(trace, 48), side=side)["terms"] if term["verdict"])
        assert (row["value"], row["expression"], row["sentence"]) == ("", "180,018 ≥ 180,000", words)
    quiet = next(term for term in recorded(gap, 30)["terms"] if term["verdict"])
    assert re.fullmatch(r"It would not compact: [\d,]+ tokens remain below the threshold\.", quiet["sentence"])


def shown_for(name, step, *, side="recorded", sample="timing-gap", window=200_000, compacted=False, **settings):
    """The card of a step under a policy: of the recording, or of the replay."""
    ledger, policy = Ledger.of(bundled(sample)), get_policy(name, **settings)
    usage = usage_for(ledger, attribute(ledger))
    trace = (observe_recorded if side == "recorded" else replay)(ledger, policy, window=window, usage=usage)
    return card(trace, step, policy.explain(trace, step), side=side, compacted=compacted)


def test_a_policy_that_counts_messages_is_shown_with_them():
    shown = shown_for("autogen-buffered", 30)
    assert re.fullmatch(r"\d+ > 10 messages", shown["inequality"])
    assert shown["verdict"] == (
        "AutoGen (buffered) would compact here: its count exceeded the limit. The recorded agent did not."
    )
    assert shown_for("autogen-buffered", 0)["verdict"].endswith("messages remain to its limit.")


def test_a_count_that_equals_a_threshold_which_it_must_exceed_is_not_said_to_exceed_it():
    count = int(re.match(r"[\d,]+", shown_for("autogen-buffered", 3)["inequality"])[0])
    equal, below = (shown_for("autogen-buffered", 3, buffer_size=count + more) for more in (0, 1))
    assert (equal["inequality"], below["inequality"]) == (
        f"{count} ≤ {count} messages",
        f"{count} ≤ {count + 1} messages",
    )
    assert equal["verdict"] == "AutoGen (buffered) would not compact: its count must exceed the limit."
    assert below["verdict"] == "AutoGen (buffered) would not compact: 1 message remains to its limit."


def test_what_a_recording_does_not_have_is_not_compared():
    shown = shown_for("adk-sliding-window", 30, compacted=True)
    assert (shown["inequality"], shown["badge"]) == ("nothing to compare", "would not compact")
    assert shown["verdict"].endswith("would not: it has no count to compare here.")
    assert any("which a recording does not have" in row["sentence"] for row in shown["terms"])


def test_a_policy_that_waits_for_a_first_count_is_not_said_to_lack_it_for_good():
    assert shown_for("claude-code", 0)["verdict"] == "Claude Code would not compact: it has no count to compare here."


def test_a_policy_that_never_compacts_is_no_subject_of_would():
    assert shown_for("none", 30)["verdict"] == "This policy never compacts."
    assert shown_for("none", 30, side="replayed")["verdict"] == "This policy never compacts."
    verdict = shown_for("none", 48, compacted=True)["verdict"]
    assert verdict == "The recorded agent compacted here. This policy never compacts."


def test_a_count_of_the_request_that_was_sent_is_not_said_to_be_of_another():
    shown = shown_for("anthropic-compaction", 48, compacted=True)
    assert "never sent" not in " ".join(shown["notes"])
    assert "exact" in " ".join(shown["notes"])


@pytest.mark.parametrize(("value", "unit"), [(1, "token"), (2, "tokens"), (0, "tokens")])
def test_one_is_not_a_plural(value, unit):
    assert term_row(Term("output", value, "tokens", Provenance.PROVIDER, 3), 3)["unit"] == unit
