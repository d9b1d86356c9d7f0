"""What left the requests: users' messages, stated rules, one half of a tool call."""

import cProfile
import json
from dataclasses import replace

import msgspec
import numpy as np
import pytest

from guard_core.events import Event, Role, TextPart
from guard_core.facts.instructions import rule_sentences
from guard_core.ledger import Ledger
from guard_core.outcomes.losses import Pairs, Verbatim, _Looks, losses_of, may_state_rules, stated_rules
from guard_core.outcomes.sent import SentRequests
from guard_core.policies import get_policy
from guard_core.recordings import read as read_recording
from guard_core.replay import replay
from guard_core.sessions import Evidence, ModelCall, RecordedCompaction
from guard_core.summaries.sizes import FixedSummaries
from guard_core.views import JOINED, Inserted, Rewritten, Span, Synthetic
from tests.builders import model, session, tool_call, tool_result, user
from tests.guard_core.outcomes.cast import facts_of
from tests.profiling import calls_of

PAIR = session(user("go"), tool_call("ls", "a"), tool_result("x", "ls", "a"), model("done"), user("more"), model("yes"))


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("Never push to main. Thanks!", 1),
        ("You must run the tests.\nAlways ask first.\nThe sky is blue.", 2),
        ("Please fix the bug in parser.py", 0),
        ("Use tabs instead of spaces", 1),
        ("mustard and ensured nevertheless", 0),
        ("do not " + "x" * 500, 0),
        ("", 0),
    ],
)
def test_a_sentence_that_is_worded_as_a_rule_is_one(text, rules):
    assert len(rule_sentences(user(text))) == rules


@pytest.mark.parametrize(
    ("view", "parted"),
    [
        ((Span(0, 6),), False),
        ((Span(0, 2), Span(3, 6)), True),
        ((Synthetic("summary", 9), Span(2, 6)), True),
        ((Synthetic("summary", 9), Span(3, 6)), False),
        ((Span(0, 1), Span(3, 6)), False),
        ((Span(0, 2),), True),
    ],
    ids=["whole", "no result", "no call", "both gone", "both gone between", "cut behind the call"],
)
def test_a_call_without_its_result_is_found_and_the_reverse(view, parted):
    assert Pairs(Ledger.of(PAIR)).are_parted(view, 6) == parted


def test_a_call_that_waits_for_its_result_is_not_parted():
    assert not Pairs(Ledger.of(PAIR)).are_parted((Span(0, 2),), 2)


def long_talk():
    events = []
    for k in range(30):
        events += [user(f"Turn {k}: you must keep rule {k}. " + "w" * 6_000), model("ok " * 400)]
    return session(*events, window=40_000)


def replayed(facts, **settings):
    policy = get_policy("contextguard", **settings)
    return SentRequests.replayed(
        facts, replay(facts.ledger, policy, window=40_000, usage=facts.usage, summarizer=FixedSummaries(900))
    )


def rules_of(facts):
    return stated_rules((index, facts.session.events[index]) for index in may_state_rules(facts.ledger).tolist())


def test_messages_that_a_policy_summarised_are_gone_and_so_are_their_rules():
    facts = facts_of(long_talk())
    sent, rules = replayed(facts), rules_of(facts)
    losses = losses_of(sent, rules)
    events = sum(len(range(span.start, span.stop)) for span in sent.view(29)[0] if isinstance(span, Span))
    in_view = [index for span in sent.view(29)[0] if isinstance(span, Span) for index in range(span.start, span.stop)]
    users = [index for index in in_view if index % 2 == 0]
    assert events
    assert (losses.requests, losses.rules) == (30, 30)
    assert losses.requests_dropped == losses.rules_gone == 30 - len(users) > 0
    assert losses.parted_steps == 0


@pytest.mark.parametrize(("turns", "gone"), [(1, 0), (2, 1)], ids=["of this turn", "of an earlier turn"])
def test_a_message_that_the_policy_sends_again_is_not_gone(turns, gone):
    asked = [user(f"Never push to branch {turn}.") for turn in range(turns)]
    facts = facts_of(session(*asked, *[model("ok " * 900) for _ in range(40)], window=40_000))
    trace = replay(facts.ledger, get_policy("crush"), window=40_000, usage=facts.usage)
    assert trace.compactions
    losses = losses_of(SentRequests.replayed(facts, trace), rules_of(facts))
    assert (losses.requests, losses.requests_dropped) == (turns, gone)
    assert (losses.rules, losses.rules_gone) == (turns, gone)


def test_what_nobody_compacts_loses_nothing():
    facts = facts_of(long_talk())
    losses = losses_of(SentRequests.recorded(facts), rules_of(facts))
    assert (losses.requests_dropped, losses.rules_gone, losses.parted_steps) == (0, 0, 0)


@pytest.mark.parametrize(
    ("message", "dropped"),
    [(user("Never push to main."), 1), (user("Never push to the main branch."), 2), (None, 1)],
    ids=["put in again", "other words", "joined"],
)
def test_a_message_that_a_recorded_compaction_keeps_under_another_name_is_not_dropped(message, dropped):
    """One that it inserts again word for word, or joins with its summary; the other request is in the summary alone."""
    events = (user("Never push to main."), model("ok"), user("Fix the parser."), model("done"), user("more"))
    summary = user("Summary: all is well.")
    inserted = (summary,) if message is None else (message, summary)
    again = (Inserted(0), Inserted(1))
    view = (Inserted(0), Rewritten(0, summary, JOINED)) if message is None else again
    cut = RecordedCompaction(4, Evidence.DECLARED, "summary", view, inserted)
    calls = tuple(ModelCall(at=at, prompt_tokens=100) for at in (1, 3, 5))
    facts = facts_of(session(*events, calls=calls, compactions=(cut,)))
    losses = losses_of(SentRequests.recorded(facts), rules_of(facts))
    assert (losses.requests, losses.requests_dropped) == (3, dropped)
    assert (losses.rules, losses.rules_gone) == (1, dropped - 1)


def test_rules_that_were_not_looked_for_are_not_counted():
    facts = facts_of(long_talk())
    assert losses_of(replayed(facts), None).rules == -1


def test_tool_results_are_not_asked_for_rules():
    facts = facts_of(
        session(user("Never lie."), tool_call("ls", "a"), tool_result("You must obey.", "ls", "a"), model("k"))
    )
    assert may_state_rules(facts.ledger).tolist() == [0]


def cleared_log(keep=2, steps=8, clear_at=6, placeholder="[cleared]"):
    """A log of chat requests whose client replaces all but the last `keep` results by a placeholder at a step."""
    records = []
    for step in range(steps):
        last = clear_at - keep if step >= clear_at else 0
        messages = [{"role": "user", "content": "Find the bug"}]
        for k in range(step):
            call = {"id": f"c{k}", "type": "function", "function": {"name": "read", "arguments": f'{{"path": "{k}"}}'}}
            result = placeholder if k < last else f"file {k} " + "word " * 2_000
            messages += [
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": f"c{k}", "content": result},
            ]
        call = {
            "id": f"c{step}",
            "type": "function",
            "function": {"name": "read", "arguments": f'{{"path": "{step}"}}'},
        }
        answer = {"role": "assistant", "content": None, "tool_calls": [call]}
        usage = {"prompt_tokens": 100 + 2_010 * (step - last) + 12 * last, "completion_tokens": 10}
        response = {"model": "gpt-4o", "choices": [{"message": answer}], "usage": usage}
        records.append({"request": {"model": "gpt-4o", "messages": messages}, "response": response})
    return "\n".join(map(json.dumps, records)).encode()


@pytest.mark.parametrize("placeholder", ["[cleared]", ""])
def test_a_call_whose_result_was_cleared_still_has_a_result(placeholder):
    (read,) = read_recording(cleared_log(placeholder=placeholder)).sessions
    assert [item.kind for item in read.compactions] == ["edit"]
    assert losses_of(SentRequests.recorded(facts_of(read)), None).parted_steps == 0


def test_a_result_that_was_taken_away_still_parts_its_call():
    (read,) = read_recording(cleared_log()).sessions
    (item,) = read.compactions
    without = msgspec.structs.replace(item, base=tuple(part for part in item.base if isinstance(part, Span)))
    read = msgspec.structs.replace(read, compactions=(without,))
    assert losses_of(SentRequests.recorded(facts_of(read)), None).parted_steps == 2


def test_a_result_that_comes_after_its_call_was_cut_parts_every_request_from_then_on():
    events = (user("go"), tool_call("ls", "a"), user("wait"), tool_result("x", "ls", "a"), user("more"), model("yes"))
    cut = RecordedCompaction(2, Evidence.INFERRED, "trim", ())
    calls = tuple(ModelCall(at=at, prompt_tokens=100) for at in (1, 3, 4, 5))
    facts = facts_of(session(*events, calls=calls, compactions=(cut,)))
    assert losses_of(SentRequests.recorded(facts), None).parted_steps == 2


def test_what_a_form_does_to_an_event_is_looked_up_where_it_is_known():
    ledger = Ledger.of(session(*(tool_result("wörter", id="1") for _ in range(40))))
    view = tuple(Span(event, event + 1, f'compressed:{{"size":{event + 1}}}') for event in range(40))
    assert all(ledger.changes_one(span.start, span.stop, span.form) for span in view)
    profile = cProfile.Profile()
    starts, stops = profile.runcall(Verbatim(ledger, np.arange(40)).ranges, view).T
    assert (starts == stops).all()  # no event is there as it was
    assert "alone" not in {getattr(entry.code, "co_name", "") for entry in profile.getstats()}


def test_rules_are_not_looked_for_in_one_range_after_the_other():
    turns = [(user(f"Never push {number}."), model("done")) for number in range(60)]
    facts = facts_of(session(*(event for turn in turns for event in turn)))
    trace = replay(facts.ledger, get_policy("none"), window=10**6, usage=facts.usage)
    head = trace.heads[0]._replace(view=tuple(Span(event, event + 1) for event in range(0, 100, 4)), kept_from=100)
    sent = SentRequests.replayed(facts, replace(trace, heads=(head,)))
    profile = cProfile.Profile()
    losses = profile.runcall(losses_of, sent, rules_of(facts))
    assert (losses.rules, losses.rules_gone) == (60, 25)
    entries = [entry for entry in profile.getstats() if getattr(entry.code, "co_name", "") == "<genexpr>"]
    assert sum(entry.callcount for entry in entries) < 60 * 25 // 4


def test_a_rule_in_a_message_of_the_system_that_a_recorded_compaction_writes_anew_is_not_gone():
    first, anew = (
        Event(Role.SYSTEM, (TextPart(f"Today is day {day}.\nNever push to main.\n{more}"),), meta=True)
        for day, more in ((1, "Always ask."), (2, ""))
    )
    events = (first, user("Fix it."), model("ok"), user("more"))
    cut = RecordedCompaction(3, Evidence.DECLARED, "opaque", (Inserted(0), Span(1, 2)), (anew,))
    calls = tuple(ModelCall(at=at, prompt_tokens=100) for at in (2, 4))
    facts = facts_of(session(*events, calls=calls, compactions=(cut,)))
    losses = losses_of(SentRequests.recorded(facts), rules_of(facts))
    assert (losses.rules, losses.rules_gone) == (2, 1)


def test_a_long_row_of_segments_that_the_last_view_had_elsewhere_is_not_looked_at_again():
    pairs = [(tool_call("ls", str(number)), tool_result("x", "ls", str(number))) for number in range(200)]
    ledger = Ledger.of(session(user("go"), *(event for pair in pairs for event in pair)))
    views = [
        (Synthetic("summary", number), *(Span(event, event + 2) for event in range(4 * number + 2, 380, 4)))
        for number in range(1, 5)
    ]
    views += [(Span(0, 1), *views[-1][3:], Span(383, 390)), (Synthetic("note", 9), *views[-1][4:])]
    looks = _Looks(ledger, Verbatim(ledger, np.arange(401)), Pairs(ledger))
    profile = cProfile.Profile()
    parted = [profile.runcall(looks.look, view, 401) and looks.are_parted(401) for view in views]
    alone = [_Looks(ledger, Verbatim(ledger, np.arange(401)), Pairs(ledger)) for _ in views]
    assert parted == [each.look(view, 401) and each.are_parted(401) for each, view in zip(alone, views, strict=True)]
    assert looks.gaps == set().union(*(each.gaps for each in alone))
    assert calls_of(profile, _Looks._gap) < len(views[0]) + 20
