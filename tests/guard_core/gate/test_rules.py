"""A gate finds the rules of the user that no request of a replay has verbatim any more."""

import json

import msgspec
import pytest

from guard_core.__main__ import main
from guard_core.checker import check
from guard_core.events import part_text
from guard_core.findings.presence import rules_of
from guard_core.gate import Under, assert_compaction
from guard_core.gate.judging import judge
from guard_core.ledger import Ledger
from guard_core.recordings.formats import native
from guard_core.requests import materialise
from guard_core.sessions import ModelCall
from tests.builders import bundled, model, session, user
from tests.guard_core.avoiding.test_avoiding import OTHER_RULE, RULE, earlier_rules, long_rules


def lacking(built, trace, ledger, rule):
    """The steps whose requests, built message by message, have not the words of a rule."""
    for step, call in enumerate(built.calls):
        sent = materialise(trace.view(step, call.at, ledger), built)
        if not any(rule in part_text(part) for event in sent for part in event.parts):
            yield step


@pytest.mark.parametrize(("built", "kind"), [(long_rules(), "rule_lost"), (earlier_rules(), "earlier_rule_lost")])
def test_rules_are_lost_from_the_step_on_since_which_no_request_has_them(built, kind):
    judged = judge(built, Under("claude-code", window=100_000))
    lost = [item for item in judged.findings if item.kind == kind]
    assert [item.numbers["rule"] for item in lost] == [RULE, OTHER_RULE]
    assert judged.counts["rule-lost"] == 2
    for item in lost:
        steps = list(lacking(built, judged.trace, Ledger.of(built), item.numbers["rule"]))
        assert steps == list(range(item.step, len(built.calls)))
        assert f"is in no request from step {item.step + 1} up to the end of" in item.sentence
        assert item.sentence.endswith("; only a summary can hold it.")


def test_a_rule_that_the_user_took_back_before_it_left_the_requests_is_not_lost():
    built = earlier_rules()
    lifted = user("Forget the rule about the file legacy.py.")
    events = (*built.events[:2], lifted, *built.events[2:])
    calls = [msgspec.structs.replace(call, at=call.at + 1, response=call.response + 1) for call in built.calls[1:]]
    cuts = [msgspec.structs.replace(item, at=item.at + 1) for item in built.compactions]
    built = msgspec.structs.replace(built, events=events, calls=(built.calls[0], *calls), compactions=tuple(cuts))
    judged = judge(built, Under("claude-code", window=100_000))
    rules = [item for item in judged.findings if item.kind == "earlier_rule_lost"]
    assert [item.numbers["rule"] for item in rules] == [OTHER_RULE]
    assert check(built, rules, judged.window, trace=judged.trace) == []


@pytest.mark.parametrize("built", [long_rules(), earlier_rules()])
def test_a_policy_that_keeps_the_users_messages_loses_no_rule(built):
    judged = judge(built, Under("codex", window=100_000))
    assert judged.trace.compactions
    assert judged.counts["rule-lost"] == 0


def test_a_rule_that_a_later_message_quotes_is_not_lost():
    built = long_rules()
    events = (*built.events[:-1], model(f"You said: {RULE} So I leave it alone."))
    calls = (*built.calls, msgspec.structs.replace(built.calls[-1], at=len(events), response=None))
    quoted = msgspec.structs.replace(built, events=events, calls=calls)
    lost = [item for item in judge(quoted, Under("claude-code", window=100_000)).findings if item.kind == "rule_lost"]
    assert [item.numbers["rule"] for item in lost] == [OTHER_RULE]


def test_the_messages_that_have_a_rule_are_in_the_order_of_the_log_whichever_states_it():
    """They are searched for as such: a rule that an earlier message states, too, was lost where that was still sent."""
    said = user(f"{RULE} Look at the files.")
    ((words,),) = (one.rules for one in rules_of(session(said, model("I look."), said), [2]))
    assert words.events == (0, 2)


@pytest.mark.parametrize(("policy", "steps"), [("crush", []), ("contextguard-sliding", [21, 21])])
def test_a_rule_is_not_lost_where_the_policy_sends_the_request_again(policy, steps):
    """Crush does for the rest of the turn, ContextGuard in the request that follows the compaction."""
    built = long_rules()
    judged = judge(built, Under(policy, window=100_000))
    lost = [item for item in judged.findings if item.kind == "rule_lost"]
    assert judged.trace.compactions[0].step < 21
    assert [item.step for item in lost] == steps
    assert check(built, lost, judged.window, trace=judged.trace) == []
    earlier = [msgspec.structs.replace(item, step=item.step - 1) for item in lost]
    assert len(check(built, earlier, judged.window, trace=judged.trace)) == len(lost)


def test_a_rule_is_not_lost_where_the_policy_sends_a_later_request_again_that_states_it():
    """ContextGuard quotes the request at which it compacts; the same words were said before."""
    said, calls = user(RULE), (ModelCall(1, 1, 2_200), ModelCall(3, 3, 5_000))
    built = session(said, model("That is done."), said, model("That is done."), calls=calls)
    judged = judge(built, Under("contextguard", window=2_000))
    assert [item.step for item in judged.trace.compactions] == [1]
    assert judged.counts["rule-lost"] == 0


def test_the_command_and_the_assertion_fail_on_it(tmp_path, capsys):
    path = tmp_path / "rules.json"
    path.write_bytes(native.write(long_rules()))
    arguments = ["gate", str(path), "--window", "100000", "--fail-on", "rule-lost", "--json", "--processes", "1"]
    assert main([*arguments, "--policy", "claude-code"]) == 1
    (result,) = json.loads(capsys.readouterr().out)["sessions"]
    assert [RULE in words for kind, words in result["sentences"] if kind == "rule-lost"] == [True, False]
    assert result["counts"]["rule-lost"] == 2
    assert main([*arguments, "--policy", "codex"]) == 0
    assert_compaction(bundled("healthy"), rules_lost=0)
    with pytest.raises(AssertionError, match="2 rules lost, at most 0 allowed"):
        assert_compaction(long_rules(), "claude-code", window=100_000, rules_lost=0)
