"""What would have avoided a finding: every sentence is true by a replay of its own, and no nearer value would do."""

import json
import math
import re
from dataclasses import replace

import msgspec
import numpy as np
import pytest

from guard_core import defaults
from guard_core.__main__ import main
from guard_core.avoiding import avoid, base_of, nothing_words
from guard_core.avoiding.cost import cost_of, loses_more, recorded_case
from guard_core.avoiding.goals import is_met
from guard_core.avoiding.ways import POLICY, SETTING, TIERS, WINDOW, StartingSettings, ways
from guard_core.findings import Facts, conclusions
from guard_core.outcomes.losses import stated_in
from guard_core.outcomes.outcome import rewrites
from guard_core.outcomes.sent import SentRequests
from guard_core.policies import POLICIES, get_policy
from guard_core.recordings.formats import native
from guard_core.replay import replay
from guard_core.requests import materialise
from guard_core.sessions import ModelCall, Provenance, Sourced
from guard_core.summaries.sizes import FixedSummaries
from guard_core.trace import Head
from guard_core.views import Inserted, Span
from guard_core.windows.window_evidence import Status, WindowJudgement
from tests.builders import bundled, model, session, tool_call, tool_result, user
from tests.guard_core.checker.cases import compaction, exchange, growing, recordings
from tests.guard_core.findings.cases import record, trace


def judge(window):
    """A window in tokens, as a file states it."""
    return WindowJudgement(window, Provenance.RECORDER, Status.KNOWN, 0, "stated")


QUESTION = "please keep the public interface of the parser as it is today"


def replayed(facts, way):
    """A replay of a way, made here with nothing that the search has."""
    simulated = facts.ledger.usage_ratio is not None
    return replay(
        facts.ledger,
        get_policy(way.policy, **way.settings),
        window=way.window,
        usage=facts.usage,
        summarizer=FixedSummaries(defaults.SUMMARY_BYTES) if simulated else None,
        request="" if simulated else None,
    )


def check_outcome(trace, outcome):
    sizes = trace.columns["modelled_prompt_tokens"]
    assert outcome.compactions == len(trace.compactions)
    assert outcome.overflows == 0
    assert sizes.max() <= trace.window
    assert not trace.columns["overflow"].any()
    assert outcome.tokens_sent == int(sizes.sum())
    assert outcome.peak == int(sizes.max())


def check_goal(goal, facts, trace):
    if goal.kind == "has_room":
        assert trace.columns["modelled_prompt_tokens"].max() <= 0.9 * trace.window
    if goal.kind == "quiet":
        assert not trace.compactions
    if goal.kind == "lasts":
        steps = [record.step for record in trace.compactions]
        assert not any(third - first <= 2 for first, third in zip(steps, steps[2:], strict=False))
    if goal.kind == "keeps":
        for step, event in enumerate(facts.ledger.steps["user_event"].tolist()):
            if event == goal.message:
                check_held(facts, trace, step, goal.message)
    if goal.kind in ("keeps_rules", "keeps_earlier_rules"):
        check_said(facts, trace, goal)


def check_cost(remedy, facts, trace):
    """How many requests it drops is counted message by message, in every request behind them."""
    users = sorted({int(event) for event in facts.ledger.steps["user_event"] if event >= 0})
    ats = facts.ledger.steps["at"].tolist()
    dropped = [
        message
        for message in users
        if not all(is_sent(facts, trace, step, message) for step, at in enumerate(ats) if at > message)
    ]
    assert remedy.cost.dropped == len(dropped)
    assert remedy.cost.tokens_sent == remedy.outcome.tokens_sent
    if trace.compactions:
        assert f"It drops {len(dropped):,} of {remedy.cost.requests:,} user request" in remedy.sentence
        assert f"sends {remedy.cost.tokens_sent:,} tokens in all" in remedy.sentence


def is_sent(facts, trace, step, message):
    view = trace.view(step, int(facts.ledger.steps["at"][step]), facts.ledger)
    held = any(isinstance(part, Span) and part.start <= message < part.stop for part in view)
    return held or repeats(facts, trace, step, message)


def check_said(facts, trace, goal):
    """Every request of the message's turn, or every later one, is built, and searched for the rule."""
    steps = facts.ledger.steps
    for step, (user_event, at) in enumerate(zip(steps["user_event"].tolist(), steps["at"].tolist(), strict=True)):
        if user_event == goal.message or (goal.kind == "keeps_earlier_rules" and at > goal.message):
            sent = materialise(trace.view(step, at, facts.ledger), facts.session)
            texts = [getattr(part, "text", "") for event in sent for part in event.parts]
            assert any(goal.quote in text for text in texts) or repeats(facts, trace, step, goal.message)


def repeats(facts, trace, step, message):
    """Does the policy send a message of the user again in the request of a step: up to the end of its turn, or in a
    message of its own that the last compaction left."""
    users, at = facts.ledger.steps["user_event"], int(facts.ledger.steps["at"][step])
    before = [record for record in trace.compactions if record.step <= step and users[record.step] == message]
    if any(record.in_turn and step < record.turn_end for record in before):
        return True
    again = any(getattr(part, "kind", "") == "request sent again" for part in trace.view(step, at, facts.ledger))
    return again and bool(before) and before[-1] is [record for record in trace.compactions if record.step <= step][-1]


def check_held(facts, trace, step, message):
    view = trace.view(step, int(facts.ledger.steps["at"][step]), facts.ledger)
    held = [part for part in view if isinstance(part, Span) and part.start <= message < part.stop]
    is_repeated = repeats(facts, trace, step, message)
    assert held or is_repeated
    if held and not is_repeated:
        words = facts.session.events[message].parts[0].text
        assert any(
            words in getattr(part, "text", "") for sent in materialise(view, facts.session) for part in sent.parts
        )


def long_request():
    """One request, work until the window is nearly full, and a recorded compaction that dropped the request."""
    return exchange(
        40,
        tokens=lambda turn: 20_000 + 4_000 * turn if turn < 20 else 15_000 + 4_000 * (turn - 20),
        compactions=(compaction(20, tokens_before=100_000),),
        words=QUESTION,
        size=16_000,
    )


RULE, OTHER_RULE = "You must never touch the file legacy.py.", "Always run the linter before a commit."


def long_rules():
    """The same with two rules behind the request, which the summary leaves out."""
    kept = compaction(20, f"The task: {QUESTION}.", tokens_before=100_000)
    words = f"{QUESTION}. {RULE} {OTHER_RULE}"
    built = long_request()
    return exchange(
        40, tokens=lambda turn: built.calls[turn].prompt_tokens, compactions=(kept,), words=words, size=16_000
    )


def earlier_rules():
    """The same with a turn before it that states them."""
    built = long_request()
    events = (user(f"{RULE} {OTHER_RULE}"), model("Understood."), *built.events)
    moved = [msgspec.structs.replace(call, at=call.at + 2, response=call.response + 2) for call in built.calls]
    cuts = [msgspec.structs.replace(item, at=item.at + 2) for item in built.compactions]
    first = ModelCall(1, 1, 19_000)
    return msgspec.structs.replace(built, events=events, calls=(first, *moved), compactions=tuple(cuts))


def cases():
    yield "a lost request", long_request()
    yield "lost rules", long_rules()
    yield "lost rules of an earlier turn", earlier_rules()
    for name, built in recordings():
        if name in ("loop", "thrash", "needless", "late", "near", "not counted", "rules of an earlier turn lost"):
            yield name, built
    yield "a simulated loop", bundled("unpersisted-loop")
    yield "a small window", bundled("small-window")


def check_wording(sentence):
    """The result and the change come first, then what the replay came to, then what that rests on: each short."""
    result, figures, basis = re.fullmatch(
        r"(.+?)\. ((?:No overflow|[\d,]+ overflow).+?)\. ((?:It drops .+? )?Replayed over the same messages.+)",
        sentence,
    ).groups()
    assert re.search(r"\b(with|without|under) ", result)
    parts = (result, figures, *basis.split(". "))
    assert [part for part in parts if len(part.split()) > 30] == []


@pytest.mark.parametrize(("name", "built"), list(cases()), ids=lambda value: value if isinstance(value, str) else "")
def test_every_remedy_reaches_its_goal_in_a_replay_of_its_own(name, built):
    facts = Facts.of(built)
    findings, _ = conclusions(facts)
    for answer in avoid(facts, findings, rules=stated_in(built.events, facts.ledger)):
        assert answer.remedies or answer.sentence
        assert len(answer.kinds) == len(answer.steps) >= 1
        for remedy in answer.remedies:
            assert remedy.sentence.startswith(remedy.short)
            assert remedy.way.new == "" or remedy.loses_more or remedy.short != remedy.sentence
            trace = replayed(facts, remedy.way)
            check_outcome(trace, remedy.outcome)
            check_goal(answer.goal, facts, trace)
            check_cost(remedy, facts, trace)
            assert f"{len(trace.compactions):,} compaction" in remedy.sentence or not trace.compactions
            assert f"{remedy.outcome.peak:,} tokens" in remedy.sentence
            is_rewritten = bool(rewrites(SentRequests(facts.replay(trace))))
            assert ("the policy rewrites each message when it is recorded" in remedy.sentence) == is_rewritten
            check_wording(remedy.sentence)
        assert [remedy.way.tier for remedy in answer.remedies] == [
            tier for tier in TIERS if tier in {remedy.way.tier for remedy in answer.remedies}
        ]


def test_a_lost_request_is_kept_by_the_smallest_window_that_holds_it_all():
    facts = Facts.of(long_request())
    findings, _ = conclusions(facts)
    (answer,) = [item for item in avoid(facts, findings) if item.goal.kind == "keeps"]
    assert answer.goal.message == 0
    (window,) = [item for item in answer.remedies if item.way.tier == WINDOW]
    whole = replay(facts.ledger, get_policy("none"), window=10**7, usage=facts.usage)
    peak = int(whole.columns["modelled_prompt_tokens"].max())
    assert window.way.new == min(size for size in (128_000, 200_000, 256_000) if size >= peak)
    assert f" with a window of {window.way.new:,} tokens instead of 100,000" in window.sentence.partition(". ")[0]
    assert window.sentence.startswith(
        f'Your request "{" ".join(QUESTION.split()[:7])} …" is in every request of its turn'
    )


def test_a_setting_that_was_not_set_had_no_value():
    """Claude Code compacts on its own from 2.1.153 on only if a window is set."""
    events, calls = [user("please fix the parser")], []
    for turn in range(24):
        calls.append(ModelCall(len(events), len(events), 10_000 + 8_000 * turn))
        events += [tool_call("read_file", f"c{turn}"), tool_result("line " * 6_000, "read_file", f"c{turn}")]
    facts = Facts.of(session(*events, calls=tuple(calls), format="claude-code", versions=((0, "2.1.330"),)))
    findings, _ = conclusions(facts)
    (answer,) = avoid(facts, findings)
    (setting,) = [item for item in answer.remedies if item.way.tier == SETTING]
    assert "with auto-compact window 100,000 tokens instead of none." in setting.sentence
    assert "It drops 1 of 1 user request" in setting.sentence
    assert "What its summaries would say is not known" in setting.sentence, "they may say what is dropped"


@pytest.mark.parametrize(
    ("built", "kind", "where"),
    [
        (long_rules(), "rule_lost", "every request of its turn"),
        (earlier_rules(), "earlier_rule_lost", "every later request"),
    ],
)
def test_lost_rules_are_kept_where_a_message_that_has_them_stays_verbatim(built, kind, where):
    facts = Facts.of(built)
    (answer,) = [item for item in avoid(facts, conclusions(facts)[0]) if item.kinds == (kind,)]
    assert (answer.goal.message, answer.goal.quote, answer.goal.rules) == (0, RULE, 2)
    compacting = [item for item in answer.remedies if item.outcome.compactions]
    assert compacting
    for remedy in answer.remedies:
        assert remedy.sentence.startswith(f'Your rule "You must never touch …" and 1 more are in {where} ')
        is_said = "What its summaries would say is not known: only verbatim messages count." in remedy.sentence
        assert is_said == bool(remedy.outcome.compactions and POLICIES[remedy.way.policy].summarises)


@pytest.mark.parametrize("later", [False, True])
def test_another_message_that_quotes_the_rule_keeps_it_too(later):
    """The searched words are those of the finding: an answer of the model that says the rule stays where its own
    message does not."""
    built = earlier_rules() if later else long_rules()
    events = [*built.events]
    events[3] = model(f"{RULE} So I leave it alone. {OTHER_RULE} I shall.")
    plain, quoted = Facts.of(built), Facts.of(msgspec.structs.replace(built, events=tuple(events)))
    kind = "keeps_earlier_rules" if later else "keeps_rules"
    for facts in (plain, quoted):
        (answer,) = [item for item in avoid(facts, conclusions(facts)[0]) if item.goal.kind == kind]
        assert is_met(answer.goal, facts.replay(cut_away(facts, 2))) == (facts is quoted)


def test_a_policy_that_sends_the_request_again_keeps_that_request_but_no_rule_of_an_earlier_turn():
    facts = Facts.of(earlier_rules())
    (crush,) = [way for way in ways(base_of(facts), POLICY) if way.policy == "crush"]
    trace = replayed(facts, crush)
    assert trace.compactions
    met = {item.goal.kind: is_met(item.goal, facts.replay(trace)) for item in avoid(facts, conclusions(facts)[0])}
    assert met["keeps"]
    assert not met["keeps_earlier_rules"]


def cut_away(facts, kept_from):
    """A replay that sends so many of the first messages no more from its tenth call on, and is far from the window."""
    sizes, heads = np.full(facts.ledger.step_count, 1_000), np.arange(facts.ledger.step_count) >= 10
    cut = trace(facts, record(10, kept_from=kept_from), modelled_prompt_tokens=sizes, head=heads.astype(np.int64))
    return replace(cut, policy="codex", heads=(Head((), 0), Head((), kept_from)))


def test_settings_are_tried_from_the_nearest_to_the_farthest_and_within_their_bounds():
    facts = Facts.of(bundled("timing-gap"))
    base = base_of(facts)
    tried = [way for way in ways(base, SETTING) if isinstance(way.old, int | float) and way.old and way.new]
    by_name = {}
    for way in tried:
        if not isinstance(way.new, str | bool):
            by_name.setdefault(way.name, []).append(abs(math.log(way.new / way.old)))
    assert by_name
    assert all(distances == sorted(distances) for distances in by_name.values())
    for way in ways(base, SETTING):
        assert getattr(get_policy(way.policy, **way.settings).settings, way.name) == way.new != way.old


def test_an_agent_whose_rule_already_avoids_it_gets_no_remedy_but_the_reason():
    built = exchange(
        12,
        tokens=growing(20_000),
        compactions=(compaction(6, tokens_before=26_000),),
        window=Sourced(200_000, Provenance.RECORDER),
        format="pi",
        agent="pi",
    )
    facts = Facts.of(built)
    findings, _ = conclusions(facts)
    for answer in avoid(facts, findings):
        assert answer.unchanged is not None
        assert not answer.remedies
        assert "so no change of settings can be credited" in answer.sentence


def test_requests_that_were_sent_so_are_not_called_modelled():
    """A larger window changes nothing of a recording without compactions: each count is the provider's."""
    facts = Facts.of(exchange(12, tokens=growing(500)), judge(8_000))
    (answer,) = [item for item in avoid(facts, conclusions(facts)[0]) if item.remedies]
    sentence = answer.remedies[0].sentence
    trace = replayed(facts, answer.remedies[0].way)
    assert (trace.columns["modelled_prompt_tokens"] == trace.columns["recorded_prompt_tokens"]).all()
    assert " with a window of " in sentence.partition(". ")[0]
    assert "and without any compaction" not in sentence
    assert "modelled" not in sentence
    assert "forecast" not in sentence


def reading(turns, *, tokens, size):
    """A session that reads a file with each call, so many bytes a time."""
    events, calls = [user("read it all")], []
    for turn in range(turns):
        calls.append(ModelCall(len(events), len(events), tokens(turn)))
        events += [tool_call("read", f"c{turn}"), tool_result("words and more " * (size // 15), "read", f"c{turn}")]
    return session(*events, calls=tuple(calls))


def test_the_policy_that_is_named_loses_least_and_has_the_fewest_compactions_of_those_that_it_is_said_to_be_among():
    facts = Facts.of(reading(12, tokens=lambda turn: 5_000 + 16_000 * turn, size=60_000), judge(190_000))
    (answer,) = avoid(facts, conclusions(facts)[0])
    (remedy,) = [item for item in answer.remedies if item.way.tier == POLICY]
    recorded, reaching, sent = cost_of(recorded_case(facts), None), {}, {}
    for way in ways(base_of(facts), POLICY):
        case = facts.replay(replayed(facts, way))
        if is_met(answer.goal, case):
            more = loses_more(cost_of(case, None), recorded)
            reaching[way.label] = len(case.fired), more, bool(rewrites(SentRequests(case)))
            sent[way.label] = int(case.tokens.sum())
    gentle = {label: fired for label, (fired, more, rewritten) in reaching.items() if not more and not rewritten}
    assert 1 < len(gentle) < len(reaching) == remedy.rivals
    assert any(more for _, more, _ in reaching.values())
    fewest = min(gentle.values())
    equal = [label for label, fired in gentle.items() if fired == fewest]
    which = f"{len(equal)} have {fewest} compaction, and of these it sends the fewest tokens"
    which = which if len(equal) > 1 else "it is the one with the fewest compactions"
    traits = "lose no more than the recording and send messages as they were recorded"
    assert f" {len(reaching)} policies avoid this; {len(gentle)} of them {traits}. Of these, {which}." in (
        remedy.sentence
    )
    assert remedy.way.label in equal
    assert sent[remedy.way.label] == min(sent[label] for label in equal)
    assert not remedy.loses_more


def test_of_a_recording_that_lost_what_the_file_does_not_hold_others_perhaps_lose_no_more():
    """One that drops the request perhaps loses no more than a compaction of which is not known what it removed."""
    built = reading(12, tokens=lambda turn: 5_000 + 16_000 * turn, size=60_000)
    at = built.calls[1].at
    cut = compaction(at - 1, base=(Inserted(0), Span(0, at)), trigger="manual")
    facts = Facts.of(msgspec.structs.replace(built, compactions=(cut,)), judge(190_000))
    (answer,) = avoid(facts, conclusions(facts)[0])
    (remedy,) = [item for item in answer.remedies if item.way.tier == POLICY]
    assert "It drops 1 of 1 user request (recorded: at least 0)" in remedy.sentence
    traits = "perhaps lose no more than the recording and send messages as they were recorded"
    assert re.search(rf"\d+ policies avoid this; \d+ of them {traits}\.", remedy.sentence)


def test_an_offer_that_loses_more_than_the_recording_says_so():
    facts = Facts.of(bundled("small-window"))
    answers = avoid(facts, conclusions(facts)[0], rules=stated_in(facts.session.events, facts.ledger))
    (remedy,) = [item for item in answers[0].remedies if item.way.tier == POLICY]
    assert remedy.loses_more
    assert remedy.short == remedy.sentence, "what is lost is not left to a second look"
    figures = f"sends {remedy.outcome.tokens_sent:,} tokens in all (recorded: {answers[0].recorded.tokens_sent:,})"
    assert f"{figures}. The model has far less to read than it had." in remedy.sentence


def test_a_setting_that_loses_no_more_is_offered_before_a_nearer_one_that_does():
    """Of the windows that Claude Code can be set to, 100,000 is tried first; its requests have less than half of what
    the recording sent."""
    cut = compaction(62, tokens_before=189_000)
    grown = exchange(
        66,
        tokens=lambda turn: 3_000 + 3_000 * turn if turn < 62 else 20_000 + 3_000 * (turn - 62),
        compactions=(cut,),
        window=Sourced(200_000, Provenance.RECORDER),
        size=12_000,
    )
    facts, base = Facts.of(grown), StartingSettings(POLICIES["claude-code"], {}, 200_000, "Claude Code")
    (answer,) = [item for item in avoid(facts, conclusions(facts)[0], base) if item.goal.kind == "has_room"]
    (remedy,) = [item for item in answer.remedies if item.way.tier == SETTING]
    reaching = {}
    for way in ways(base, SETTING):
        if way.name == "auto_compact_window":
            case = facts.replay(replayed(facts, way))
            reaching[way.new] = is_met(answer.goal, case) and loses_more(cost_of(case, None), answer.recorded)
    assert list(reaching.items())[:2] == [(100_000, True), (150_000, False)]
    assert (remedy.way.name, remedy.way.new, remedy.loses_more) == ("auto_compact_window", 150_000, False)


def test_no_larger_window_is_named_where_no_compaction_in_the_present_one_avoids_the_finding():
    calls = tuple(ModelCall(at, at, 1_000 * at) for at in range(1, 40, 2))
    events = [user("go on") if index % 2 == 0 else model("words and more " * 20) for index in range(40)]
    again = tuple(compaction(at) for at in (21, 23, 25, 27))
    facts = Facts.of(session(*events, calls=calls, compactions=again), judge(190_000))
    answers = avoid(facts, conclusions(facts)[0])
    assert answers
    assert not [item for answer in answers for item in answer.remedies if item.way.tier == WINDOW]


def test_nothing_is_promised_where_an_answered_prompt_contradicts_the_window():
    facts = Facts.of(exchange(8, tokens=growing(99_000)))
    assert avoid(facts, conclusions(facts)[0]) == ()


def test_a_result_that_fits_no_window_has_no_remedy_in_settings():
    events = (user("look"), tool_call("read", "a"), tool_result("x" * 30_000_000, "read", "a"), model("done"))
    calls = (ModelCall(1, 1, 600), ModelCall(3, 3, None))
    built = msgspec.structs.replace(session(*events, window=20_000), calls=calls)
    facts = Facts.of(built)
    for answer in avoid(facts, conclusions(facts)[0]):
        assert answer.remedies or answer.sentence.startswith("None of ")


def test_requests_that_were_refused_and_never_answered_are_not_called_nothing():
    events = (user("go"), model("on it"), tool_result("x" * 4_000, id="1"))
    built = session(*events, calls=(ModelCall(1, 1, 20_000, model="claude-sonnet-4-5"),))
    facts = Facts.of(msgspec.structs.replace(built, refused=(3,)))
    findings, _ = conclusions(facts)
    assert avoid(facts, findings) == ()
    assert "Requests that the provider refused are no calls, and are not replayed." in nothing_words(findings)


def test_the_work_can_be_broken_off():
    class Enough(Exception):
        pass

    def stop(done):
        raise Enough

    facts = Facts.of(long_request())
    with pytest.raises(Enough):
        avoid(facts, conclusions(facts)[0], each=stop)


def test_the_command_prints_findings_with_what_would_have_avoided_them(tmp_path, capsys):
    path = tmp_path / "lost.json"
    path.write_bytes(native.write(long_request()))
    assert main(["avoid", str(path)]) == 0
    text = capsys.readouterr().out
    assert "left the context at step 21" in text
    assert " with a window of " in text
    assert main(["avoid", str(path), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    (lost,) = [item for item in report["answers"] if item["kinds"] == ["request_lost"]]
    assert lost["goal"]["message"] == 0
    assert {remedy["way"]["tier"] for remedy in lost["remedies"]} <= set(TIERS)
    assert main(["avoid", str(tmp_path / "nothing.json")]) == 2
    assert capsys.readouterr().err.strip()


def test_of_the_policy_that_compacts_nothing_it_is_said_that_all_requests_fit():
    """That nothing is compacted without any compaction says nothing."""
    cuts = tuple(compaction(turn, trigger="") for turn in range(8, 12))
    facts = Facts.of(exchange(14, tokens=lambda turn: 9_000 if turn >= 8 else 10_000 + 1_000 * turn, compactions=cuts))
    remedies = [item for answer in avoid(facts, conclusions(facts)[0]) for item in answer.remedies]
    sentences = [item.sentence for item in remedies if item.way.policy == "none" and item.way.tier != WINDOW]
    assert any(sentence.startswith("No request is over the window of 100,000 without any") for sentence in sentences)
    assert not any(sentence.startswith("Nothing is compacted") for sentence in sentences)
