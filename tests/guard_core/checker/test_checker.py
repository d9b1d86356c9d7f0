"""The checker confirms what findings claim and catches what they do not; it shares no code with them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

import guard_core.checker
import guard_core.findings
from guard_core.checker import check
from guard_core.checker.own_rule import OWN_RULE
from guard_core.checker.plain_words import is_closed, is_long, plainly_lacks, plainly_lifts, plainly_says
from guard_core.checker.recorded import RECORDED
from guard_core.checker.replayed import REPLAYED, rules_lost
from guard_core.checker.restating import is_said
from guard_core.checker.story import ReplayStory
from guard_core.events import Event, Role, TextPart, ToolCallPart
from guard_core.findings import Finding
from guard_core.sessions import ModelCall, Session
from tests.builders import tool_call, tool_result, user
from tests.guard_core.checker.cases import Claims, exchanged, lies, of_recording, recordings, replays, ruled

MORE = re.compile(r" ([\d,]+) more \w+")


@pytest.fixture(scope="module")
def recorded() -> dict[str, Claims]:
    return {name: of_recording(session) for name, session in recordings()} | dict(ruled())


@pytest.fixture(scope="module")
def replayed() -> dict[str, Claims]:
    return dict(replays())


def confirm(claims: Claims) -> list[str]:
    objections = check(claims.session, claims.findings, claims.window, claims.verdict, trace=claims.trace)
    return [str(item) for item in objections]


def test_it_confirms_every_claim_about_the_recordings(recorded):
    assert {name: wrong for name, claims in recorded.items() if (wrong := confirm(claims))} == {}


@pytest.mark.long
def test_it_confirms_every_claim_about_the_replays(replayed):
    """`tests/properties/test_claim_laws.py` tries the bundled samples and random replays."""
    assert {name: wrong for name, claims in replayed.items() if (wrong := confirm(claims))} == {}


def test_it_knows_every_kind_of_claim_that_the_findings_name():
    folder = Path(guard_core.findings.__file__).parent
    calls = [
        node
        for file in folder.glob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Finding"
    ]
    named = {call.args[0].value for call in calls if isinstance(call.args[0], ast.Constant)}
    assert named - {*RECORDED, *REPLAYED, *OWN_RULE} == set(), "guard_core/checker has no function of these names"


def test_every_kind_of_claim_about_a_recording_is_made_of_one_of_them(recorded):
    missing = {*RECORDED, *OWN_RULE} - {item.kind for claims in recorded.values() for item in claims.findings}
    assert missing == set(), "in no session of recordings() or ruled() in cases.py these findings occur"


def test_every_kind_of_claim_about_a_replay_is_made_of_one_of_them(replayed):
    missing = set(REPLAYED) - {item.kind for claims in replayed.values() for item in claims.findings}
    assert missing == set(), "in no session of replays() in cases.py these findings occur"


def first_of_each_kind(cases: dict[str, Claims]) -> Iterator[tuple[Claims, Finding]]:
    kinds = set()
    for claims in cases.values():
        for finding in claims.findings:
            if finding.kind not in kinds:
                kinds.add(finding.kind)
                yield claims, finding


@pytest.mark.long("more")
@pytest.mark.parametrize("side", ["recorded", "replayed"])
def test_a_false_number_in_a_claim_of_any_kind_is_caught(side, request):
    """`make test` tries a third of them, of every kind."""
    believed, one_in = [], 3 if request.config.getoption("short") else 1
    for claims, finding in first_of_each_kind(request.getfixturevalue(side)):
        for what, lie in list(lies(finding))[::one_in]:
            if not check(claims.session, [lie], claims.window, trace=claims.trace):
                believed.append(f"{finding.kind}: {what}")
    assert believed == []


@pytest.mark.parametrize("side", ["recorded", "replayed"])
def test_exchanging_any_two_numbers_of_a_sentence_is_caught(side, request):
    tried = list(exchanged(request.getfixturevalue(side).values()))
    assert len(tried) > 300
    assert [sentence for sentence, believed in tried if believed] == []


def test_a_wrong_number_of_further_ones_is_caught(recorded, replayed):
    """In the data and in the sentence alike."""
    tried, believed = set(), []
    for claims in (*recorded.values(), *replayed.values()):
        for finding in claims.findings:
            others = MORE.search(finding.sentence)
            if not others or "compactions" in finding.numbers:
                continue
            tried.add(finding.kind)
            for wrong in {1, finding.count} - {finding.count - 1}:
                sentence = f"{finding.sentence[: others.start(1)]}{wrong:,}{finding.sentence[others.end(1) :]}"
                lie = msgspec.structs.replace(finding, count=wrong + 1, sentence=sentence)
                if not check(claims.session, [lie], claims.window, trace=claims.trace):
                    believed.append(finding.kind)
    assert tried == {
        *(
            "grown",
            "inline_data",
            "part_lost",
            "rule_lost",
            "earlier_rule_lost",
            "todo_lost",
            "silent_truncation",
            "still_over",
        ),
        "summary_not_kept",
    }
    assert believed == []


NOTES = ("rule_lost", "earlier_rule_lost")


def test_a_gate_notes_each_rule_that_a_replay_loses_and_no_other(replayed):
    for claims in (claims for name, claims in replayed.items() if name.startswith("rules")):
        story = ReplayStory(claims.session, claims.window, claims.trace)
        begun = {story.request_of(step) for step in range(len(claims.session.calls))}
        lost = {(rule, *of) for message in begun for rule, of in rules_lost(story, message).items()}
        assert lost == {(item.numbers["rule"], item.kind, item.step) for item in claims.findings if item.kind in NOTES}


@pytest.mark.parametrize(
    ("said", "instead"),
    [
        ("never touch the file legacy.py", "never touch the file main.py"),
        ("the end of its turn", "the end of the recording"),
        ("only a summary can hold it", "the policy makes no summary that could hold it"),
    ],
)
def test_other_words_in_the_note_of_a_gate_are_caught(replayed, said, instead):
    claims = replayed["rules lost: claude-code"]
    note = next(item for item in claims.findings if item.kind in NOTES)
    assert said in note.sentence
    numbers = {**note.numbers, "rule": note.numbers["rule"].replace(said, instead)}
    lies = [
        msgspec.structs.replace(note, sentence=note.sentence.replace(said, instead), numbers=numbers),
        msgspec.structs.replace(note, kind=NOTES[1 - NOTES.index(note.kind)]),
        msgspec.structs.replace(note, numbers={**note.numbers, "is_whole": False}),
    ]
    for lie in lies:
        assert check(claims.session, [lie], claims.window, trace=claims.trace)


def test_what_is_said_of_a_session_without_an_answered_call_is_checked():
    claims = of_recording(Session((Event(Role.USER, (TextPart("hello"),)),), (), refused=(1,)))
    assert confirm(claims) == []
    for lie in ({"sentence": claims.verdict.sentence.replace("1 request", "2 requests")}, {"numbers": {"requests": 2}}):
        assert confirm(replace(claims, verdict=msgspec.structs.replace(claims.verdict, **lie)))


def test_a_repeated_call_is_confirmed_though_its_id_was_used_by_one_without_a_result():
    """Of calls with one id the newest is the one that is answered."""
    call, result = tool_call("read", "c"), tool_result("y" * 2_000, "read", "c")
    events = (user("Go"), tool_call("look", "c"), user("Stop, rather read"), *(call, result) * 8)
    claims = of_recording(Session(events, tuple(ModelCall(at=at, prompt_tokens=at * 500) for at in range(3, 19, 2))))
    repeated = next(item for item in claims.findings if item.kind == "repeated_call")
    assert repeated.numbers["rounds"] == 8
    assert confirm(claims) == []


def test_a_step_that_is_not_in_the_session_is_caught(recorded):
    claims = recorded["needless"]
    far = [msgspec.structs.replace(item, step=len(claims.session.calls)) for item in claims.findings]
    assert len(check(claims.session, far, claims.window)) == len(far)


def test_another_step_of_a_compaction_that_is_named_is_caught(recorded):
    """In the data and in the sentence alike."""
    for name, said in (("grown", "Compaction 1 (step 6)"), ("counted over", "compaction 1 (step 21)")):
        claims = recorded[name]
        claim = next(item for item in claims.findings if said in item.sentence)
        other = said.replace(f"step {claim.step + 1}", f"step {claim.step + 2}")
        lie = msgspec.structs.replace(claim, step=claim.step + 1, sentence=claim.sentence.replace(said, other))
        assert check(claims.session, [lie], claims.window), name


def test_a_claim_about_another_session_is_caught(recorded):
    """Every finding of one session, said of a healthy one."""
    healthy = recorded["healthy"]
    for claims, finding in first_of_each_kind(recorded):
        if finding.kind != "healthy":
            assert check(healthy.session, [finding], claims.window), finding.kind


@pytest.mark.parametrize("name", ["contradicted on average", "only totals"])
def test_a_false_number_about_the_totals_of_a_session_is_caught(name, recorded):
    claims = recorded[name]
    about = [item for item in claims.findings if item.kind in ("no_usage", "window_contradicted")]
    assert len(about) == (2 if name == "contradicted on average" else 1)
    false = [(item.kind, what, lie) for item in about for what, lie in lies(item)]
    assert [(kind, what) for kind, what, lie in false if not check(claims.session, [lie], claims.window)] == []


def test_an_average_above_the_window_is_claimed_only_of_a_session_with_a_total(recorded):
    finding = next(item for item in recorded["contradicted on average"].findings if item.kind == "window_contradicted")
    assert check(recorded["not counted"].session, [finding], recorded["not counted"].window)


def test_a_verdict_that_repeats_no_finding_is_caught(recorded):
    claims = recorded["needless"]
    other = msgspec.structs.replace(claims.verdict, kind="loop")
    assert check(claims.session, claims.findings, claims.window, other)


def test_a_verdict_that_calls_a_troubled_session_healthy_is_caught(recorded):
    healthy, troubled = recorded["healthy"], recorded["loop"]
    assert check(troubled.session, troubled.findings, troubled.window, healthy.verdict)


def test_a_verdict_of_more_than_25_words_is_caught(recorded):
    claims = recorded["healthy"]
    long = msgspec.structs.replace(claims.verdict, sentence=claims.verdict.sentence + " and so on" * 9)
    assert "words" in str(check(claims.session, claims.findings, claims.window, long)[0])


def test_a_claim_that_hides_an_assumed_window_is_caught(recorded):
    claims = recorded["assumed"]
    bold = [msgspec.structs.replace(item, assumptions=()) for item in claims.findings if "window" in item.numbers]
    assert bold
    assert len(check(claims.session, bold, claims.window)) == len(bold)


def test_it_imports_nothing_of_the_finder_but_the_values_of_claims():
    folder = Path(guard_core.checker.__file__).parent
    imported = {
        node.module
        for file in folder.glob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.ImportFrom)
    }
    assert {name for name in imported if name.startswith("guard_core.findings")} == {"guard_core.findings.claims"}
    shared = {name.rpartition(".")[2] for name in imported if name.startswith("guard_core.facts.")}
    said = Path(guard_core.checker.__file__).parents[2].joinpath("ARCHITECTURE.md").read_text()
    assert shared == set(re.findall(r"`facts\.(\w+)`", guard_core.checker.__doc__))
    assert {name for name in shared if f"`facts/{name}.py`" not in said} == set()


@pytest.mark.parametrize(
    ("said", "is_lifted"),
    [
        ("You may touch the file legacy.py again.", True),
        ("Touching is over: the ban is lifted, touch the file legacy.py.", True),
        ("You may touch the file legacy.py again this time.", False),
        ("Don't touch the file legacy.py again.", False),
        ("You can read the file legacy.py again.", False),
    ],
)
def test_its_own_test_of_a_lifted_rule_knows_only_plain_words(said, is_lifted):
    assert plainly_lifts(said, "You must never touch the file legacy.py.") == is_lifted


def test_a_lie_about_a_rule_that_was_lifted_a_todo_that_was_closed_and_a_message_that_asks_is_caught(recorded):
    def reasons(name: str, kind: str, index: int, event: Event) -> str:
        claims = recorded[name]
        (finding,) = [item for item in claims.findings if item.kind == kind]
        events = [*claims.session.events]
        events[index] = event
        built = msgspec.structs.replace(claims.session, events=tuple(events))
        return " ".join(item.reason for item in check(built, [finding], claims.window))

    lifted = Event(Role.USER, (TextPart("You may use four tabs and spaces again, however you like."),))
    assert reasons("rules of an earlier turn lost", "earlier_rule_lost", 2, lifted)
    todos = [{"content": "Write the rollback migration", "status": "completed"}, {"content": "Update the manual"}]
    closed = Event(Role.MODEL, (ToolCallPart("TodoWrite", {"todos": todos}, "t1"),))
    assert reasons("todos lost", "todo_lost", 3, closed)
    asked = Event(Role.USER, (TextPart("OK, continue with the manual of the importer instead, the parser is done."),))
    assert reasons("continued request lost", "request_lost", 6, asked)


RULE = "Never push the importer branch to the main repository."


@pytest.mark.parametrize(
    ("text", "says", "lacks"),
    [
        ("Goal: port it.\nRule: to the main repository never push the importer branch.", True, False),
        ("The user pushes the importer branch to the main repository.", False, False),
        ("The importer branch may be pushed: you may never mind, push to the main repository.", False, False),
        ("Should I never push the importer branch to the main repository?", False, False),
        ("No longer: never push the importer branch to the main repository.", False, False),
        ("Only tests were written so far.", False, True),
        ("The rule to never push the importer branch to the main repository was dropped.", False, False),
        ("Never push the importer branch 2 to the main repository.", False, False),
        ("Imported two files.", False, False),
    ],
)
def test_its_own_test_of_what_a_summary_says_contradicts_the_shared_measure(text, says, lacks):
    assert (plainly_says(text, RULE), plainly_lacks(text, RULE)) == (says, lacks)
    assert [is_said(text, RULE, close) for close in (False, True)] == [says, not lacks]


def test_its_own_test_of_a_closed_todo_reads_lists_and_boxes():
    def call(**arguments: object) -> Event:
        return Event(Role.MODEL, (ToolCallPart("any", arguments, "t1"),))

    opened, boxed = call(todos=[{"content": "Tidy up", "status": "pending"}]), call(list="- [x] Tidy up\n- [ ] Rest")
    assert not is_closed("Tidy up", [opened])
    assert is_closed("Tidy up", [opened, boxed])
    assert not is_closed("Tidy up", [boxed, opened])
    assert not is_closed("Rest", [boxed])


def test_its_own_test_of_a_message_that_says_to_go_on_counts_words():
    assert not is_long(Event(Role.USER, (TextPart("<feedback>OK, please go on where you left off.</feedback>"),)))
    assert is_long(Event(Role.USER, (TextPart("Go on, " + "and " * 12),)))
    permitted = "You can change every file below the folder of the importer from now on, as you like. Go on."
    assert not is_long(Event(Role.USER, (TextPart(permitted),)))
