"""The law for sentences: whatever is claimed of any session is confirmed by the checker."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from guard_core.checker import check
from guard_core.events import Event, MediaPart, ReasoningPart, Role, TextPart, ToolCallPart, ToolResultPart, part_text
from guard_core.findings import Facts, recorded_findings, recorded_verdict, replayed_findings, replayed_verdict
from guard_core.gate.rules import lost_rules
from guard_core.policies import get_policy
from guard_core.recordings import read
from guard_core.replay import replay
from guard_core.sessions import Evidence, ModelCall, Provenance, RecordedCompaction, Session, Sourced
from guard_core.simulator.samples import SAMPLES
from guard_core.summaries.sizes import FixedSummaries
from guard_core.views import Inserted, Span
from tests.builders import bundled
from tests.guard_core.checker.cases import Claims, exchanged
from tests.properties.altered import altered

RECORDINGS = Path(__file__).parents[3] / "shared/samples"
REQUESTS = (
    "please rename the parser module and keep its tests green",
    "now list every place that reads the old name",
    "yes",
    "never touch the migrations folder, whatever happens",
    "list the callers of the parser, but never edit one",
)
_SAMPLE = {name: bundled(name) for name in ("healthy", "small-window", "timing-gap")}
WORK = st.sampled_from([0, 40, 900, 6_000, 30_000])
WINDOWS = st.sampled_from([2_000, 9_000, 40_000, 200_000])


@st.composite
def events(draw: st.DrawFn) -> list[Event]:
    """Turns of requests, work and answers."""
    log: list[Event] = []
    for turn in range(draw(st.integers(1, 4))):
        log.append(Event(Role.USER, (TextPart(draw(st.sampled_from(REQUESTS))),)))
        for link in range(draw(st.integers(0, 6))):
            size, id_ = draw(WORK), f"c{turn}-{link}"
            log += draw(
                st.sampled_from(
                    [
                        [
                            Event(Role.MODEL, (ToolCallPart("look", {"at": "it"}, id_),)),
                            Event(Role.USER, (ToolResultPart("look", "line " * (size // 5), id_),)),
                        ],
                        [Event(Role.MODEL, (ReasoningPart("hm " * (size // 3)), TextPart("I looked.")))],
                        [Event(Role.USER, (MediaPart("image/png", size * 9),))],
                        [Event(Role.USER, (TextPart(f"{REQUESTS[0]} {'again ' * (size // 6)}"),), meta=True)],
                    ]
                )
            )
        log.append(Event(Role.MODEL, (TextPart("That is done."),)))
    return log


@st.composite
def compactions(draw: st.DrawFn, size: int) -> tuple[RecordedCompaction, ...]:
    """Up to four compactions of any kind, in order."""
    places = sorted(draw(st.lists(st.integers(1, size), max_size=4)))
    return tuple(_compaction(draw, at) for at in places)


def _compaction(draw: st.DrawFn, at: int) -> RecordedCompaction:
    kind = draw(st.sampled_from(["summary", "summary+tail", "trim", "edit", "opaque", "fallback"]))
    text = draw(st.sampled_from(["", "All is well.", f"The user said: {REQUESTS[0]}", "x " * 3_000]))
    parts = (ReasoningPart(opaque_bytes=900),) if kind == "opaque" else (TextPart(text),)
    tail = Span(draw(st.integers(0, at)), at)
    base = (Inserted(0), tail) if draw(st.booleans()) else (Inserted(0),)
    return RecordedCompaction(
        at=at,
        evidence=Evidence.DECLARED,
        kind=kind,
        base=base,
        messages=(Event(Role.USER, parts, meta=True),),
        trigger=draw(st.sampled_from(["auto", "manual", "", "resume" if kind == "edit" else "auto"])),
        tokens_before=draw(st.sampled_from([None, None, 8_000, 150_000])),
    )


@st.composite
def stories(draw: st.DrawFn) -> Session:
    """A session whose counts follow its content, lie, or are missing."""
    log = draw(events())
    compacted = draw(compactions(len(log)))
    per_event = draw(st.sampled_from([5, 700, 9_000]))
    window = draw(st.one_of(st.none(), WINDOWS.map(lambda size: Sourced(size, Provenance.RECORDER))))
    known = ["nameless", "claude-sonnet-4-5", "gpt-5.2"]  # the latter two have prices, and windows of their own
    model = draw(st.sampled_from(known if window else known[:1]))
    models = draw(st.sampled_from([(model,), (model,), (model, "claude-haiku-4-5")] if window else [(model,)]))
    cached = draw(st.sampled_from([None, 0, 4_000]))
    of_characters = draw(st.sampled_from([False, False, False, True]))
    refused = tuple(sorted(draw(st.lists(st.integers(0, len(log)), max_size=2))))
    larger = draw(st.sampled_from([0, 0, 400_000])) if window else 0  # the window up to some message
    windows = ((0, larger), (draw(st.integers(0, len(log))), window.value)) if window and larger else ()
    calls = []
    for at in sorted(draw(st.sets(st.integers(1, len(log)), min_size=1))):
        since = max([0, *(item.at for item in compacted if item.at <= at)])
        size = sum(len(part_text(part)) for event in log[since:at] for part in event.parts)
        count = 1_500 + (size if of_characters else per_event * (at - since))
        reported = draw(st.sampled_from([count, count, count, None, count * 3]))
        name = draw(st.sampled_from(models))
        calls.append(ModelCall(at, draw(st.sampled_from([None, at - 1])), reported, cached, model=name))
    format_ = draw(
        st.sampled_from(
            ["", "claude-code", "adk", "codex", "crush", "pi", "opencode", "gemini-cli", "qwen-code", "hermes"]
        )
    )
    version = draw(st.sampled_from(["", "2.1.14", "2.1.62", "2.1.330"]))
    total = draw(st.none() | st.integers(1, 10**7))
    totals = {"prompt_tokens_total": total, "total_calls": None if total is None else len(calls)}
    return Session(
        tuple(log),
        tuple(calls),
        compacted,
        window=window,
        windows=windows,
        refused=refused,
        format=format_,
        versions=((0, version),) if version else (),
        **totals,
    )


def claims(session: Session, policies: tuple[tuple[str, int], ...] = ()) -> Iterator[Claims]:
    """What is said of a recording, and of replays of it, by a gate, too."""
    facts = Facts.of(session)
    findings = recorded_findings(facts)
    yield Claims(session, facts.window, findings, recorded_verdict(facts, findings))
    for name, window in policies if session.calls else ():
        trace = replay(
            facts.ledger,
            get_policy(name),
            window=window,
            usage=facts.usage,
            session=session,
            summarizer=FixedSummaries(400),
        )
        findings = replayed_findings(facts, trace)
        verdict = replayed_verdict(facts, trace, findings)
        yield Claims(session, facts.window, (*findings, *lost_rules(facts, trace)), verdict, trace)


def contradictions(session: Session, policies: tuple[tuple[str, int], ...] = ()) -> list[str]:
    """What the checker says against these claims."""
    return [
        str(item)
        for side in claims(session, policies)
        for item in check(session, side.findings, side.window, side.verdict, trace=side.trace)
    ]


@given(stories())
def test_every_claim_about_a_random_recording_is_confirmed(session):
    assert contradictions(session) == []


# A compaction that inline data triggered, in a session whose provider refused a request: not needless, nor healthy.
@example(
    Session(
        (Event(Role.USER, (TextPart(REQUESTS[0]),)), Event(Role.USER, (MediaPart("image/png", 8_100),))),
        (ModelCall(2, None, 1_510, model="nameless"),),
        refused=(0,),
    ),
    "contextguard",
    2_000,
)
@given(stories(), st.sampled_from(["contextguard", "contextguard-sliding", "none"]), WINDOWS)
def test_every_claim_about_a_random_replay_is_confirmed(session, policy, window):
    assert contradictions(session, ((policy, window),)) == []


@example("small-window", 5871)  # the same, with cleared results
@example("timing-gap", 8669014)  # the largest request is of another model, whose window is not known
@example("timing-gap", 74758510)
@example("small-window", 1468)  # the same, with a compaction
@example("small-window", 907)  # a request that was counted far smaller than what is in the log
@example("timing-gap", 2116161)  # a compaction that no call followed, before one that was caught only by the estimate
@pytest.mark.long
@given(st.sampled_from(["healthy", "small-window", "timing-gap"]), st.integers(0, 2**32))
def test_every_claim_about_an_altered_sample_is_confirmed(name, seed):
    """Random recordings and replays are tried at once."""
    assert contradictions(altered(_SAMPLE[name], seed)) == []


@pytest.mark.parametrize("name", SAMPLES)
def test_every_claim_about_a_bundled_sample_is_confirmed(name):
    session = bundled(name)
    assert contradictions(session, (("contextguard", 200_000), ("contextguard-sliding", 30_000))) == []


@pytest.mark.long
@pytest.mark.skipif(not RECORDINGS.exists(), reason="../shared/samples is absent")
def test_every_claim_about_a_real_recording_is_confirmed():
    """The bundled samples and random recordings are tried at once."""
    names = [item["file"] for item in json.loads((RECORDINGS / "index.json").read_text())["files"]]
    wrong = {}
    for name in names:
        for session in read(RECORDINGS / name).sessions:
            if objections := contradictions(session, (("contextguard", 8_000), ("contextguard", 128_000))):
                wrong[f"{name} {session.source_id}"] = objections
    assert wrong == {}


@pytest.mark.parametrize("name", SAMPLES)
def test_no_sentence_about_a_bundled_sample_is_believed_with_two_of_its_numbers_exchanged(name):
    sides = claims(bundled(name), (("contextguard", 30_000),))
    assert [sentence for sentence, believed in exchanged(sides) if believed] == []


@pytest.mark.long
@pytest.mark.skipif(not RECORDINGS.exists(), reason="../shared/samples is absent")
def test_no_sentence_about_a_real_recording_is_believed_with_two_of_its_numbers_exchanged():
    """No sentence is true both ways round, so that all are caught. Those of the bundled samples are tried at once."""
    names = [item["file"] for item in json.loads((RECORDINGS / "index.json").read_text())["files"]]
    sides = [side for name in names for session in read(RECORDINGS / name).sessions for side in claims(session)]
    tried = list(exchanged(sides))
    assert len(tried) > 150
    assert [sentence for sentence, believed in tried if believed] == []
