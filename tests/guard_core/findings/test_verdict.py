"""The verdict leads with what matters most, in at most 25 words, and says what it rests on."""

import re

import msgspec
import pytest

from guard_core.checker import check
from guard_core.errors import GuardError
from guard_core.findings import Facts, conclusions, recorded_findings, recorded_verdict, replayed_verdict
from guard_core.recordings import read
from guard_core.sessions import (
    BEGINS_WITH_SUMMARY,
    DAMAGED,
    GUARDS_WINDOW,
    HEADED_SUMMARY,
    MAY_BE_CONTINUED,
    MAY_BE_REPEATED,
    MAY_BE_SUMMARISED,
    MAY_BEGIN_WITH_SUMMARY,
    MAY_CONTINUE,
    MAY_FOLLOW,
    MAY_GO_ON,
    MAY_REPEAT,
    NO_CONTENT,
    RECORDERS_WINDOW,
    UNRECORDED_COMPACTIONS,
    WROTE_SUMMARY,
    ModelCall,
    Provenance,
    Sourced,
)
from guard_core.windows.window_evidence import judge_session
from tests.builders import bundled, model, session, user
from tests.guard_core.findings.cases import chat, compaction, of_replay, replayed
from tests.guard_core.findings.test_requests import ASK, talk
from tests.guard_core.findings.test_without import CUTS, TWICE
from tests.guard_core.recordings.checks import SAMPLES as FILES


def verdict(built):
    return conclusions(Facts.of(built))[1]


def test_a_request_over_the_window_by_a_token_does_not_read_as_one_that_fills_it():
    built = chat(*[9_990] * 9, None, window=10_000)
    facts = Facts.of(built)
    tokens = int(facts.requests.tokens[-1])
    built = msgspec.structs.replace(built, window=Sourced(tokens - 1, Provenance.USER))
    assert f"Peak estimated at {100 * tokens / (tokens - 1):.2f} % of the window" in verdict(built).sentence


@pytest.mark.parametrize("note", [GUARDS_WINDOW, RECORDERS_WINDOW])
def test_a_window_that_the_recording_program_was_given_is_not_said_to_be_set_by_hand(note):
    built = chat(9_000, 12_000)
    built = msgspec.structs.replace(built, window=Sourced(10_000, Provenance.USER, note))
    words = "was answered, above the stated window of 10,000. Set the real window."
    assert verdict(built).sentence == f"A prompt of 12,000 tokens {words}"
    assert "above the stated 10,000" in judge_session(built).note


@pytest.mark.parametrize(
    ("note", "words"),
    [
        (MAY_CONTINUE, "No compaction in the file, perhaps continued from another conversation"),
        (MAY_BE_CONTINUED, "No compaction in the file, perhaps continued in another conversation"),
        (MAY_REPEAT, "No compaction in the file, perhaps continued from another conversation"),
        (MAY_BE_REPEATED, "No compaction in the file, perhaps continued in another conversation"),
        (MAY_BEGIN_WITH_SUMMARY, "No compaction in the file, perhaps continued from another conversation"),
        (MAY_BE_SUMMARISED, "No compaction in the file, perhaps continued in another conversation"),
        (MAY_FOLLOW, "No compaction in the file, perhaps continued from another conversation"),
        (MAY_GO_ON, "No compaction in the file, perhaps continued in another conversation"),
        (BEGINS_WITH_SUMMARY, "Begins with an earlier context's summary, no compaction since"),
        (HEADED_SUMMARY, "No compaction in the file, perhaps begun with a summary"),
        (UNRECORDED_COMPACTIONS, "No compaction in the file, which need not record one"),
        (NO_CONTENT, "No compaction can be seen, as no message content was found"),
        (WROTE_SUMMARY, "The call that wrote a compaction's summary"),
    ],
)
def test_a_conversation_that_is_perhaps_no_whole_one_is_not_called_healthy(note, words):
    built = chat(4_000, 5_000, notes=(note,))
    assert verdict(built).sentence == f"{words}; peak 50.0 % of the window at step 2."


@pytest.mark.parametrize(
    ("note", "head"),
    [
        (UNRECORDED_COMPACTIONS, "No compaction in the file, which need not record one"),
        (NO_CONTENT, "No compaction can be seen, as no message content was found"),
        (DAMAGED, "No compaction in what could be read of the file"),
    ],
)
def test_a_peak_near_0_of_an_assumed_window_is_said_in_as_few_words_as_there_are_left(note, head):
    built = session(user("Hi"), model("Yes"), calls=(ModelCall(1, 1),), notes=(note,))
    built = msgspec.structs.replace(built, window=None)
    facts = Facts.of(built)
    claims, says = conclusions(facts)
    assert check(built, claims, facts.window, says) == []
    lacking = f" without {facts.not_estimated}" if len(head.split()) < 11 else ""
    assert says.sentence == f"{head}; peak under 0.1 % (estimated{lacking}), if the window is {facts.window.value:,}."


@pytest.mark.parametrize(
    ("built", "kind", "sentence"),
    [
        (
            bundled("healthy"),
            "healthy",
            "Healthy: no compaction needed; peak 60.2 % of the window at step 75.",
        ),
        (
            bundled("unpersisted-loop"),
            "loop",
            "A loop: 15 compactions at consecutive steps 68 to 82: every call compacts again.",
        ),
        (
            chat(9_000, 12_000),
            "window_contradicted",
            "A prompt of 12,000 tokens was answered, above the window set by hand of 10,000. Set the real window.",
        ),
        (
            talk(compaction(3)),
            "request_lost",
            '1 compaction; your request "Please rename the column …" left the context at step 3; nothing has '
            "quoted it verbatim since.",
        ),
        (
            chat(*TWICE, compactions=CUTS[:1]),
            "request_lost",
            '1 compaction; your request "Please begin with the report …" left the context at step 5; nothing '
            "has quoted it verbatim since.",
        ),
        (session(user("hello")), "no_calls", "No model call in this session."),
    ],
)
def test_it_leads_with_what_matters_most(built, kind, sentence):
    conclusion = verdict(built)
    assert (conclusion.kind, conclusion.sentence) == (kind, sentence)


def verdict_of_two_cuts(summary="Task: Please begin with the report of the week", **fields):
    """Two compactions whose summaries quote the request, so that what they were good for leads."""
    cuts = (compaction(5, summary=summary), compaction(9, summary=summary))
    return verdict(chat(*TWICE, compactions=cuts, **fields))


def test_needless_compactions_are_said_with_the_peak_without_them():
    conclusion = verdict_of_two_cuts()
    assert conclusion.kind == "needless"
    assert conclusion.sentence.startswith("2 compactions, none needed: without them, the peak is ")
    assert conclusion.sentence.endswith("% of the window at step 11 (modelled).")


def test_needed_ones_are_said_with_the_calls_over_the_window():
    conclusion = verdict_of_two_cuts(window=4_800)
    assert conclusion.kind == "needed"
    assert conclusion.sentence.startswith("2 compactions, no overflow. Without any: peak 10")
    assert "calls over it" in conclusion.sentence


def test_a_compaction_that_came_too_late_names_the_step_that_was_over():
    conclusion = verdict(bundled("small-window"))
    assert conclusion.kind == "late"
    assert re.fullmatch(r"1 compaction; too late: step 6 was \d+ % over the window \(modelled\)\.", conclusion.sentence)


def test_an_estimate_over_the_window_of_answered_calls_is_not_called_an_overflow():
    conclusion = verdict(session(user("x" * 60_000), model("yes"), window=10_000, reported=False))
    assert conclusion.severity == "warning"
    assert "yet answered: larger window, or smaller requests." in conclusion.sentence


def test_an_assumed_window_is_in_the_sentence():
    assert verdict_of_two_cuts(source=Provenance.ASSUMED).sentence.endswith(", if the window is 128,000.")
    assert verdict(chat(1_000, 2_000, source=Provenance.ASSUMED)).sentence == (
        "Healthy: no compaction needed; peak 1.6 % of the window at step 2, if the window is 128,000."
    )


def test_a_peak_without_any_count_is_called_an_estimate():
    conclusion = verdict(session(user("hello " * 100), model("yes"), reported=False))
    assert "(estimated without system prompt and tools)" in conclusion.sentence
    assert {"modelled_tokens", "sizes_only"} <= set(conclusion.assumptions)


def test_compactions_after_the_last_call_are_at_the_end_of_the_recording():
    conclusion = verdict(chat(1_000, 1_100, compactions=(compaction(3),)))
    assert conclusion.sentence == "1 compaction at the end of the recording; peak 11.0 % of the window at step 2."


def test_a_compaction_whose_removed_messages_are_not_in_the_file_is_not_judged():
    conclusion = verdict(chat(1_000, 1_100, 1_200, compactions=(compaction(3, (0, 3)),)))
    assert "what it removed not in the file" in conclusion.sentence or conclusion.kind == "grown"


def test_a_replay_has_a_verdict_of_its_own():
    facts, replayed_trace = replayed(bundled("long-coding"))
    conclusion = replayed_verdict(facts, replayed_trace, tuple(of_replay(facts, replayed_trace).values()))
    assert conclusion.sentence.startswith("3 compactions")


def test_a_simulated_session_is_judged_by_its_replay():
    built = session(*[model("answer " * 900) for _ in range(30)], window=8_000, reported=False, usage_ratio=1.5)
    findings, conclusion = conclusions(Facts.of(built))
    assert any(finding.kind == "avoided_overflows" for finding in findings)
    assert "compaction" in conclusion.sentence


@pytest.mark.skipif(not FILES.exists(), reason="../shared/samples is absent")
def test_every_sample_has_a_verdict_of_at_most_25_words():
    files = [path for path in sorted(FILES.rglob("*")) if path.is_file() and path.stat().st_size < 2_000_000]
    for path in files:
        if path.name in ("README.md", "index.json"):
            continue
        try:
            sessions = read(path).sessions
        except GuardError:
            continue
        for built in sessions:
            conclusion = recorded_verdict(facts := Facts.of(built), recorded_findings(facts))
            assert len(conclusion.sentence.split()) <= 25, conclusion.sentence
            assert conclusion.numbers or conclusion.kind == "no_calls"


def test_the_quoted_request_is_as_the_user_wrote_it():
    assert f'"{ASK[:20]}' in verdict(talk(compaction(3))).sentence


def test_of_several_compactions_only_some_may_have_removed_what_the_file_lacks():
    """The first one left all that the file has, the second replaced all of it."""
    blind, seen = compaction(3, (0, 3)), compaction(5)
    calls = (1_000, 1_100, 1_150, 1_200, 1_250)
    facts = Facts.of(chat(*calls, compactions=(blind, seen)))
    healthy = recorded_verdict(facts, ())
    assert healthy.sentence.startswith("2 compactions, what some of them removed not in the file; ")
