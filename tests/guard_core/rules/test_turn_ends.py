"""A second threshold that an agent compares at the ends of turns alone: that of Codex 0.171.0, as it was run."""

from __future__ import annotations

import msgspec
import pytest

from guard_core.errors import SettingError
from guard_core.rules import Agreement, explain
from guard_core.sessions import Evidence, ModelCall, Provenance, RecordedCompaction, Session, Sourced
from guard_core.views import Inserted
from tests.builders import OPUS, model, user

SHARE = "model_post_turn_compact_threshold_percent"
OUTPUT = 10  # tokens of each answer
# Prompts of turns of one call in a window of 272,000, of which 258,400 can be used; 40 % of that is 103,360.
TURNS = (57_958, 102_749, 104_788, 53_409)
COMPACTED = 3  # turns before the compaction


def codex(trigger: str = "post_turn", turns: tuple[int, ...] = TURNS, version: str = "0.171.0") -> Session:
    events, calls, compactions = [], [], []
    for turn, prompt in enumerate(turns):
        if turn == COMPACTED:
            summary = user("So far.")
            compactions.append(
                RecordedCompaction(
                    len(events), Evidence.DECLARED, "summary", (Inserted(0),), (summary,), trigger=trigger
                )
            )
        events.append(user("Go on"))
        calls.append(ModelCall(len(events), len(events), prompt, None, None, OUTPUT, OPUS))
        events.append(model("Done."))
    return Session(
        tuple(events),
        tuple(calls),
        tuple(compactions),
        format="codex",
        versions=((0, version),),
        window=Sourced(258_400, Provenance.RECORDER),
    )


def test_without_its_setting_the_threshold_at_the_ends_of_turns_is_inferred_apart():
    explanation = explain(codex())
    (item,) = explanation.compactions
    assert (item.verdict, item.decision_tokens) == (Agreement.NOT_MODELLED, 104_798)
    assert item.reason == "it was made at the end of a turn, by a threshold of its own, which the file does not say"
    assert (explanation.rule.threshold, explanation.refuting, explanation.missed) == (244_800, None, ())
    own, at_ends = explanation.inference
    assert (own.counter, own.at_most) == ("total_pending", None)
    assert (at_ends.counter, at_ends.above, at_ends.at_most) == ("turn_end", 102_759, 104_798)
    assert [item.formula for item in at_ends.hypotheses] == ["40 % of 258,400"]


@pytest.mark.parametrize(
    ("share", "threshold", "verdict", "missed"),
    [
        ("40", 103_360, Agreement.AGREES, []),
        ("45", 116_280, Agreement.EARLY, []),
        ("38", 98_192, Agreement.LATE, [(2, 102_759, 98_192)]),
    ],
)
def test_with_its_setting_the_ends_of_turns_are_compared(share, threshold, verdict, missed):
    explanation = explain(codex(), typed={SHARE: share})
    (item,) = explanation.compactions
    assert (item.verdict, item.threshold) == (verdict, threshold)
    assert [(check.step, check.count, check.threshold) for check in explanation.missed] == missed
    assert explanation.rule.threshold == 244_800
    assert f"{share} % of 258,400, at the end of a turn" in item.reason or verdict is not Agreement.AGREES


def test_a_compaction_elsewhere_is_compared_with_the_threshold_of_the_rule():
    (item,) = explain(codex("auto"), typed={SHARE: "40"}).compactions
    assert item.threshold == 244_800
    assert item.verdict is not Agreement.AGREES


def test_where_the_rule_fires_as_well_no_setting_is_needed():
    (item,) = explain(codex(turns=(57_958, 102_749, 250_000, 53_409))).compactions
    assert (item.verdict, item.threshold) == (Agreement.AGREES, 244_800)


def test_the_share_is_of_the_usable_part_of_a_window_that_is_configured():
    """Run with a window of 150,000 and a limit of 120,000: 60 % of the usable 142,500 is 85,500."""
    built = msgspec.structs.replace(
        codex(turns=(60_000, 85_443, 86_400, 50_000)), window=Sourced(142_500, Provenance.RECORDER)
    )
    typed = {"model_auto_compact_token_limit": "120000", SHARE: "60"}
    (item,) = explain(built, typed=typed).compactions
    assert (item.verdict, item.threshold) == (Agreement.AGREES, 85_500)


def test_the_share_is_a_percentage():
    with pytest.raises(SettingError, match=f"{SHARE} is a percentage from 1 to 100, not '0'"):
        explain(codex(), typed={SHARE: "0"})


def test_earlier_versions_are_not_said_to_have_a_threshold_at_the_ends_of_turns():
    explanation = explain(codex(version="0.146.0"))
    (item,) = explanation.compactions
    assert (item.verdict, item.threshold) == (Agreement.OTHER_THRESHOLD, 244_800)
    assert [bound.counter for bound in explanation.inference if bound.at_most is not None] == ["total_pending"]
