"""What a compaction left, beside what the rule of its agent keeps."""

import msgspec
import pytest

from guard_core.rules import KeptVerdict, explain
from guard_core.views import Inserted, Span
from tests.builders import transcript, user
from tests.guard_core.rules.measured import RUNS, run_of, sample

NONE_KEPT = "no message was kept; whether the newest would have fitted is not known"


def kept(session, **typed):
    return explain(session, typed=typed).kept[0]


def with_base(session, *base):
    return msgspec.structs.replace(
        session, compactions=(msgspec.structs.replace(session.compactions[0], base=(Inserted(0), *base)),)
    )


@pytest.mark.parametrize("version", ["2.1.14", "2.1.62", "2.1.152"])
def test_a_summary_alone_is_what_an_early_claude_code_keeps(version):
    check = kept(transcript(tokens_after=900, version=version))
    assert (check.verdict, check.messages, check.kept, check.removed) == (KeptVerdict.AGREES, 7, 0, 7)
    assert (check.before, check.after, check.said_after, check.inserted) == (155_010, 30_000, 900, 1)
    assert check.rule.startswith("the summary alone")


def test_a_tail_is_not():
    check = kept(with_base(transcript(), Span(5, 7)))
    assert (check.verdict, check.kept, check.tail) == (KeptVerdict.DIFFERS, 2, 2)
    assert check.reason == "2 messages kept, where the rule keeps none"


def test_a_version_that_is_not_known_has_no_verdict():
    check = kept(transcript(version=""))
    assert (check.verdict, check.rule) == (KeptVerdict.NOT_MODELLED, "")


@pytest.mark.parametrize(
    ("format_", "spans", "verdict", "reason"),
    [
        ("pi", (Span(5, 7),), KeptVerdict.AGREES, ""),
        ("pi", (Span(1, 2), Span(5, 7)), KeptVerdict.DIFFERS, "1 message kept that is not at the end"),
        ("pi", (), KeptVerdict.NOT_MODELLED, NONE_KEPT),
        ("opencode", (), KeptVerdict.NOT_MODELLED, NONE_KEPT),
        ("codex", (Span(0, 1),), KeptVerdict.AGREES, ""),
        ("codex", (Span(0, 3),), KeptVerdict.DIFFERS, "2 messages kept that are answers or results"),
        ("crush", (), KeptVerdict.AGREES, ""),
        ("homemade", (), KeptVerdict.NOT_MODELLED, "what this agent keeps is not known here"),
    ],
)
def test_each_agent_keeps_what_its_rule_says(format_, spans, verdict, reason):
    check = kept(with_base(transcript(format_), *spans))
    assert (check.verdict, check.reason) == (verdict, reason)


def test_what_an_extension_of_pi_keeps_is_not_judged_by_pis_rule():
    check = kept(with_base(transcript("pi", trigger="hook"), Span(1, 7)))
    assert (check.verdict, check.kept) == (KeptVerdict.NOT_MODELLED, 6)
    assert check.reason == "an extension of the agent made this compaction, and may keep what it likes"


def test_an_encrypted_result_shows_nothing():
    check = kept(transcript("codex", kind="opaque"))
    assert (check.verdict, check.reason) == (KeptVerdict.NOT_MODELLED, "the file does not show what was kept")
    assert check.is_sealed


def test_only_what_was_still_sent_counts_before_a_second_compaction():
    session = transcript()
    first = msgspec.structs.replace(session.compactions[0], at=4)
    check = explain(msgspec.structs.replace(session, compactions=(first, *session.compactions))).kept
    assert [item.messages for item in check] == [4, 3]


def test_what_was_inserted_is_estimated_by_its_bytes():
    session = transcript()
    large = msgspec.structs.replace(session.compactions[0], messages=(user("x" * 4_000),))
    assert kept(msgspec.structs.replace(session, compactions=(large,))).inserted_tokens == 1_000


@pytest.mark.parametrize("name", [name for name in RUNS if name.split("/")[0] in ("claude-code", "codex", "pi")])
def test_measured_runs_keep_what_the_rule_says(name, tmp_path):
    check = explain(run_of(name, tmp_path).session, window=run_of(name, tmp_path).window).kept
    assert {item.verdict for item in check} == {KeptVerdict.AGREES}


def test_the_sample_keeps_what_the_rule_says():
    check = explain(sample("claude-code/long-2-compactions.jsonl")).kept
    assert [(item.verdict, item.after) for item in check] == [
        (KeptVerdict.AGREES, 49_879),
        (KeptVerdict.AGREES, 57_761),
    ]
