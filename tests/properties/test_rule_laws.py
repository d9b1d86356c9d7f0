"""Laws of the explanation by an agent's own rule, on random sessions: plain loops give the same bounds and verdicts."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from guard_core.counts import counted_compactions
from guard_core.events import Role, TextPart, part_text
from guard_core.rules import AGENTS, Agreement, Moment, explain
from guard_core.rules.words import headline
from guard_core.sessions import Evidence, ModelCall, RecordedCompaction, Session
from guard_core.tokens.lexical import lexical_tokens
from guard_core.views import Inserted
from tests.builders import model, tool_result, user

FORMATS = sorted({agent.format for agent in AGENTS if agent.format} | {"homemade"})
COUNT = st.one_of(st.none(), st.integers(0, 400_000))


@st.composite
def sessions(draw):
    """Turns of calls with results, compactions of every trigger between them, counts that may be missing."""
    events, calls, compactions = [], [], []
    for turn in range(draw(st.integers(1, 4))):
        events.append(user(f"turn {turn}"))
        for _ in range(draw(st.integers(0, 5))):
            for _ in range(draw(st.sampled_from([0, 0, 0, 1, 2]))):
                trigger = draw(st.sampled_from(["auto", "manual", "", "overflow"]))
                before = draw(st.one_of(st.none(), st.integers(0, 400_000)))
                base = (Inserted(0),)
                compactions.append(
                    RecordedCompaction(
                        len(events), Evidence.DECLARED, "summary", base, (user("sum"),), trigger, tokens_before=before
                    )
                )
            name = draw(st.sampled_from(["claude-opus-4-5", "gpt-5.1-codex", ""]))
            output = draw(COUNT)
            at = len(events)
            calls.append(ModelCall(at, at, draw(COUNT), output_tokens=output, model=name))
            events += [model("reading"), tool_result("é" * draw(st.integers(0, 50)))]
    version = draw(st.sampled_from(["", "2.1.14", "2.1.152", "2.1.330", "0.169.0", "not a version"]))
    refused = draw(st.lists(st.integers(0, len(events)), max_size=2))
    return Session(
        events=tuple(events),
        calls=tuple(calls),
        compactions=tuple(compactions),
        format=draw(st.sampled_from(FORMATS)),
        model="claude-opus-4-5",
        versions=((0, version), (len(events) // 2 + 1, "2.1.25")) if version else (),
        refused=tuple(refused),
    )


def prompt_checks(session):
    """Every check in plain loops: the call that comes next, the last prompt known, the compaction made there. Not those
    where the history may have been cut without a record."""
    counted = counted_compactions(session).compactions
    places = [(session.compactions[item.place].at, item.place) for item in counted]
    for step, call in enumerate([*session.calls, None]):
        low = session.calls[step - 1].at if step else -1
        here = [(at, place) for at, place in places if at > low and (call is None or at <= call.at)]
        known = session.calls[step - 1].prompt_tokens if step else None
        for number, (_, place) in enumerate(here):
            yield step, known if not number else None, place
        if not here and call is not None and not (known and is_cut(session, step)):
            yield step, known, -1


def is_forced(session, place):
    """Was a request refused before a compaction, with no answer and no other compaction in between."""
    at = session.compactions[place].at
    earlier = [item for item in counted_compactions(session).compactions if item.place < place]
    since = [0, *(session.compactions[item.place].at for item in earlier)]
    since += [call.response + 1 for call in session.calls if call.at < at]
    return any(max(since) <= refused <= at for refused in session.refused)


def is_cut(session, step):
    """May the history have been cut before a call, or before one of those without a count behind it, without a record:
    30 % of the prompt before is gone at the next count. Of the same model 2,000 tokens and a tenth must be missing,
    more than the reasoning of the turn before can have been."""
    before, later = session.calls[step - 1], [call for call in session.calls[step:] if call.prompt_tokens]
    if not later or any(before.at < item.at <= later[0].at for item in session.compactions):
        return False
    after = later[0]
    tokens = after.prompt_tokens or 0
    if not 0 < 10 * tokens < 7 * before.prompt_tokens:
        return False
    if before.model != after.model:
        return True
    missing = before.prompt_tokens + text_tokens(session.events[before.at : after.at]) - tokens
    is_gone = missing >= max(2_000, before.prompt_tokens // 10) and missing > most_reasoning(session, before, after)
    return is_gone and not is_repeated(session, step - 1)


def most_reasoning(session, before, after):
    """What the answers of a turn can have had of reasoning that a new turn does without: all of them, without a bound
    where one of them has no count in a session that has counts."""
    if turn_of(session, before) == turn_of(session, after):
        return 0
    turn = [call.output_tokens for call in session.calls if turn_of(session, call) == turn_of(session, before)]
    if None in turn and any(call.output_tokens is not None for call in session.calls):
        return float("inf")
    return sum(output or 0 for output in turn)


def turn_of(session, call):
    """How many words of a user came before a call."""
    return sum(isinstance(event.parts[0], TextPart) and event.role is Role.USER for event in session.events[: call.at])


def is_repeated(session, step):
    """Has a call the count of the counted call before it, though text was added and the two requests differ in size."""
    call = session.calls[step]
    earlier = [other for other in session.calls[:step] if other.prompt_tokens]
    if not earlier or earlier[-1].prompt_tokens != call.prompt_tokens:
        return False
    if text_tokens(session.events[earlier[-1].at : call.at]) <= 20:
        return False
    if not any(earlier[-1].at < item.at <= call.at for item in session.compactions):
        return True
    return abs(text_tokens(request_of(session, call)) - text_tokens(request_of(session, earlier[-1]))) > 20


def request_of(session, call):
    """The messages of a request: the last summary before it and what came since."""
    earlier = [item for item in session.compactions if item.at <= call.at]
    return (*earlier[-1].messages, *session.events[earlier[-1].at : call.at]) if earlier else session.events[: call.at]


def text_tokens(events):
    return sum(lexical_tokens(part_text(part)) for event in events for part in event.parts)


def is_of(interval, step, place, session, found):
    """Is a check of the model and the version of an interval: that of the call that comes next, or the last one. A
    compaction between calls of two is of the former where the user wrote behind it, else of neither."""
    at = min(step, len(session.calls) - 1)
    number = next(number for number, item in enumerate(found.stretches) if item.start <= at < item.stop)
    stretch = found.stretches[number]
    if place >= 0 and number and step == stretch.start:
        former = found.stretches[number - 1]
        if (former.version, former.model) != (stretch.version, stretch.model):
            events = session.events[session.compactions[place].at : session.calls[step].at]
            if not any(isinstance(item.parts[0], TextPart) and item.role is Role.USER for item in events):
                return False
            stretch = former
    return (stretch.version, stretch.model) == (interval.version, interval.model)


@given(sessions())
def test_bounds_by_prompt_are_those_of_plain_loops(session):
    explanation = explain(msgspec.structs.replace(session, format="homemade"))
    checks = list(prompt_checks(session))
    for interval in (item for item in explanation.inference if item.counter == "prompt" and not item.left_out):
        inside = [
            (count, place)
            for step, count, place in checks
            if count and is_of(interval, step, place, session, explanation)
        ]
        passed = [count for count, place in inside if place < 0]
        fired = [
            count
            for count, place in inside
            if place >= 0
            and session.compactions[place].trigger not in ("manual", "overflow")
            and not is_forced(session, place)
        ]
        assert interval.above == max(passed, default=None)
        assert interval.at_most == min(fired, default=None)


@given(sessions())
def test_every_compaction_has_a_verdict_and_a_reason_that_hold(session):
    explanation = explain(session)
    assert sorted(item.place for item in explanation.compactions) == [
        item.place for item in counted_compactions(session).compactions
    ]
    rules = {rule.threshold: rule for rule in explanation.rules}
    for item in explanation.compactions:
        rule = rules.get(item.threshold)
        assert item.reason
        if item.verdict is Agreement.EARLY:
            assert not rule.fires(item.decision_tokens)
        elif item.verdict is Agreement.LATE:
            assert rule.fires(item.decision_tokens)
            assert item.calls > 0
        elif item.verdict is Agreement.AGREES and rule.checks is not Moment.REFUSAL:
            was_refused = session.compactions[item.place].trigger == "overflow" or is_forced(session, item.place)
            assert was_refused or rule.fires(item.decision_tokens)
    assert explanation.agrees <= explanation.auto <= len(explanation.compactions)


@given(sessions())
def test_missed_checks_fire_and_hypotheses_lie_inside_their_interval(session):
    explanation = explain(session)
    for check in explanation.missed:
        assert check.count >= check.threshold
    for interval in explanation.inference:
        assert all(interval.contains(item.threshold) for item in interval.hypotheses)
        assert bool(interval.contradiction) == (
            interval.above is not None and interval.at_most is not None and interval.above >= interval.at_most
        )
        assert interval.sentence
    assert headline(explanation)
