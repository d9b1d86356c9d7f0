"""Whose a request or a rule is that left the context: the person's, or a task that an agent gave."""

import pytest
from msgspec.structs import replace

from guard_core.avoiding.goals import goal_of, words
from guard_core.checker import check
from guard_core.facts.askers import is_of_agent
from guard_core.findings import Facts, recorded_findings, recorded_verdict
from guard_core.gate import Under
from guard_core.gate.judging import judge
from guard_core.sessions import ModelCall
from tests.builders import model, session, user
from tests.guard_core.avoiding.test_avoiding import long_rules
from tests.guard_core.findings.cases import compaction
from tests.guard_core.findings.test_requests import ASK, FIX, ON_LEGACY, PORT, talk

LEAD = '<teammate-message teammate_id="team-lead">\n{}\n</teammate-message>'
OTHER = '<teammate-message teammate_id="tester">\nDone.\n</teammate-message>'
TESTS = "Please also write tests for the exporter."


def started(built):
    """The same as the session of a sub-agent."""
    return replace(built, format="claude-code", parent="main", source_id="agent-1")


def claims(built, kind):
    """The finding of a kind and the verdict, which the checker confirms, with the facts."""
    facts = Facts.of(built)
    findings = recorded_findings(facts)
    verdict = recorded_verdict(facts, findings)
    assert check(built, findings, facts.window, verdict) == []
    return facts, next(item for item in findings if item.kind == kind), verdict


def earlier():
    """A rule of a turn that is over, which no request has since a compaction of a later turn."""
    first, second = f"{PORT} Never again touch legacy.py in any task.", "Now describe what the importer does."
    events = [user(first), model("done"), user(second), *(model("working on it") for _ in range(4))]
    calls = tuple(ModelCall(at, at, 1_000 + 100 * at) for at in (1, 3, 4, 5, 6))
    return session(*events, calls=calls, compactions=(compaction(5, (2, 5), summary="The importer is ported."),))


CASES = [
    (talk(compaction(3)), "request_lost", "The task ", "the task "),
    (
        talk(compaction(3, summary=f'"{FIX}" Half is done.'), ask=f"{FIX} {TESTS}"),
        "part_lost",
        "Of the task (message 1), ",
        "of the task, ",
    ),
    (
        talk(compaction(3, summary=f'"{PORT}" Half is done.'), ask=f"{PORT} {ON_LEGACY}"),
        "rule_lost",
        "The task's rule ",
        "the task's rule ",
    ),
    (earlier(), "earlier_rule_lost", "The task's rule ", "the earlier task's rule "),
]


@pytest.mark.parametrize(("built", "kind", "head", "verdict_head"), CASES, ids=[case[1] for case in CASES])
def test_what_an_agent_asked_of_a_sub_agent_is_the_task(built, kind, head, verdict_head):
    _, own, own_verdict = claims(built, kind)
    facts, finding, verdict = claims(started(built), kind)
    assert finding.sentence.startswith(head)
    assert finding.sentence.removeprefix(head) == own.sentence[own.sentence.index(finding.sentence[len(head) :][:5]) :]
    assert (finding.numbers["of_agent"], own.numbers["of_agent"]) == (True, False)
    assert f"; {verdict_head}" in verdict.sentence
    assert "; your" in own_verdict.sentence or "; of your" in own_verdict.sentence
    assert len(verdict.sentence.split()) <= 25
    for lie in (own.sentence, own_verdict.sentence):
        claim = replace(finding, sentence=lie) if lie == own.sentence else finding
        said = verdict if lie == own.sentence else replace(verdict, sentence=lie)
        assert check(started(built), [claim], facts.window, said)
    owned = replace(own, numbers={**own.numbers, "of_agent": True})
    assert check(built, [owned], facts.window)


@pytest.mark.parametrize(
    ("text", "of_agent"),
    [(LEAD.format(ASK), True), (f"{OTHER}\n\n{LEAD.format(ASK)}", True), (f"{ASK}\n{LEAD.format('Hi')}", False)],
)
def test_what_the_lead_of_a_team_asks_for_is_the_task(text, of_agent):
    built = talk(compaction(3), ask=text)
    _, finding, verdict = claims(built, "request_lost")
    assert is_of_agent(built, built.events[0]) is finding.numbers["of_agent"] is of_agent
    assert finding.sentence.startswith("The task " if of_agent else "Your request ")
    assert (" the task " in verdict.sentence) is of_agent


def test_a_branch_or_another_record_of_a_persons_session_is_no_sub_agents():
    built = replace(talk(compaction(3)), parent="main", format="capture")
    assert claims(built, "request_lost")[1].sentence.startswith("Your request ")


def test_a_gate_and_a_replay_speak_of_the_task_too():
    built = started(long_rules())
    judged = judge(built, Under("claude-code", window=100_000))
    sentences = [item.sentence for item in judged.findings if item.kind == "request_lost"]
    assert [" is sent without the request (message " in sentence for sentence in sentences] == [True]
    heads = {item.kind: item.sentence.partition(' "')[0] for item in judged.findings}
    assert heads["rule_lost"] == "The task's rule"
    assert check(built, judged.findings, judged.window, trace=judged.trace) == []
    lies = {"rule_lost": ("The task's rule", "Your rule"), "request_lost": ("the request", "the user's request")}
    for item in judged.findings:
        lie = replace(item, sentence=item.sentence.replace(*lies.get(item.kind, ("", ""))))
        assert bool(check(built, [lie], judged.window, trace=judged.trace)) is (item.kind in lies)


def test_goals_speak_of_the_task_too():
    finding = claims(started(talk(compaction(3))), "request_lost")[1]
    goal = goal_of(finding)
    assert goal is not None
    assert words(goal, 1_000).startswith('the task "')
    assert words(replace(goal, quote=""), 1_000).startswith("the request (message 1) ")
    rule = claims(started(CASES[2][0]), "rule_lost")[1]
    assert words(goal_of(rule), 1_000).startswith("the task's rule ")
