"""The overview's figures: one peak, what the file lacks with its tokens, and no figure that follows from the gap."""

from dataclasses import replace
from urllib.parse import urlencode

import msgspec
import numpy as np

from guard_core.findings import Facts, recorded_findings
from guard_core.policies import get_policy
from guard_core.replay import observe_recorded
from guard_core.sessions import ModelCall, Provenance, Sourced
from inspector.figures.timeline import timeline
from inspector.pages.overview import presenter
from inspector.pages.shared.kinds import KINDS
from inspector.replays.choice import Choice
from tests.builders import bundled, model, session, user
from tests.guard_core.findings.cases import chat, compaction
from tests.inspector.pages.overview.test_figure import made


def figures(built):
    """The four figures by name."""
    facts = Facts.of(built)
    shadow = observe_recorded(facts.ledger, get_policy("contextguard"), window=facts.window.value, usage=facts.usage)
    return {kpi["name"]: kpi for kpi in presenter.kpis(facts, shadow, "declared")}


def test_the_peak_is_modelled_and_says_so_where_the_largest_request_has_no_count():
    facts = Facts.of(bundled("small-window"))
    peak = figures(bundled("small-window"))["peak fill"]
    assert peak["source"] == "modelled"
    assert peak["value"] == f"{100 * facts.requests.peak.tokens / 8_000:.1f}\u00a0%"


def test_the_peak_is_not_known_where_only_a_sum_is_recorded():
    built = msgspec.structs.replace(session(user("Rename"), model("Done"), reported=False), prompt_tokens_total=7_100)
    peak = figures(built)["peak fill"]
    assert (peak["value"], peak["note"]) == ("–", "only a sum of the prompt tokens is recorded")


def test_a_contradicted_window_is_no_whole_to_take_a_share_of():
    peak = figures(chat(9_000, 12_000))["peak"]
    assert peak["value"] == "12,000"
    assert "above the window set by hand of 10,000" in peak["note"]
    stated = msgspec.structs.replace(chat(9_000, 12_000), window=Sourced(10_000, Provenance.RECORDER))
    assert "above the stated window of 10,000" in figures(stated)["peak"]["note"]


def test_nothing_of_a_replay_is_marked_over_a_window_that_the_recording_contradicts():
    built = chat(9_000, 12_000, 9_500, 13_000)
    facts = Facts.of(msgspec.structs.replace(built, window=Sourced(10_000, Provenance.RECORDER)))
    shadow = observe_recorded(facts.ledger, get_policy("none"), window=facts.window.value, usage=facts.usage)
    data = timeline(facts.recording, shadow, facts.whole_log)
    rows = presenter.comparison(data, facts.recording, facts.replay(facts.whole_log), {})["rows"]
    shown = {row["name"]: row["replayed"] for row in rows}
    assert len(data.replayed.overflows) == 0
    assert (shown["overflows"], shown["near misses"]) == ("0", "0")


def compared(built):
    """A recording beside its replay without compactions."""
    facts = Facts.of(built)
    shadow = observe_recorded(facts.ledger, get_policy("none"), window=facts.window.value, usage=facts.usage)
    data = timeline(facts.recording, shadow, facts.whole_log)
    return presenter.comparison(data, facts.recording, facts.replay(facts.whole_log), {})


def test_what_only_the_recording_counts_is_said_to_be_not_replayed():
    same = "The replay sends exactly what was recorded: under these settings the policy never does anything else."
    assert compared(chat(1_000, 1_100))["honesty"] == same
    ended = chat(1_000, 1_100, 1_200, compactions=(compaction(4), compaction(4)))
    assert (
        compared(ended)["honesty"]
        == f"{same} 2 compactions at the end of the recording are not replayed: no call follows them."
    )
    refused = msgspec.structs.replace(chat(1_000, 1_100), refused=(2,))
    assert (
        compared(refused)["honesty"]
        == f"{same} 1 request that the provider refused was never answered, and is not replayed."
    )


def test_the_peak_fill_of_the_comparison_is_that_of_the_figures():
    models = (*["claude-opus-4-5-20251101"] * 4, "mistralai/voxtral-small-24b-2507")
    built = chat(20_000, 30_000, 40_000, 50_000, 12_000, window=200_000)
    calls = [msgspec.structs.replace(call, model=name) for call, name in zip(built.calls, models, strict=True)]
    built = msgspec.structs.replace(built, calls=tuple(calls))
    share = figures(built)["peak fill"]["value"]
    assert share == "36.6\u00a0%"
    row = next(row for row in compared(built)["rows"] if row["name"] == "peak fill")
    assert (row["recorded"], row["replayed"], row["difference"]) == (share, share, "±0")


def test_the_bias_leaves_out_what_is_not_in_the_file():
    built = session(*[model("answer " * 300) for _ in range(20)], overhead=90_000)
    assert abs(float(figures(built)["estimator bias"]["value"].split("\u00a0")[0].replace("−", "-"))) < 40
    assert "without what is not in the file" in figures(built)["estimator bias"]["note"]


def test_compactions_are_counted_once_with_those_at_the_end():
    shown = figures(chat(1_000, 1_100, 1_200, compactions=(compaction(3), compaction(4))))["compactions"]
    assert (shown["value"], shown["note"]) == ("2", "at step 3; 2 automatic, 1 of them at the end of the recording")


def test_tokens_saved_are_not_summed_where_the_file_lacks_what_was_removed():
    shown = figures(chat(1_000, 1_100, 1_200, compactions=(compaction(3, (0, 3)),)))["tokens saved by compaction"]
    assert shown["note"] == "what was removed is not in the file"


def test_what_the_file_lacks_is_named_with_its_tokens_and_their_source():
    gaps = presenter.missing(Facts.of(session(*[model("answer " * 30) for _ in range(9)], overhead=7_000)))
    (fixed,) = [gap for gap in gaps if "system prompt" in gap]
    assert "tool definitions" in fixed
    assert "tokens of every request (recorded counts less the messages)" in fixed


def test_a_sealed_summary_and_removed_messages_are_among_the_gaps():
    cuts = (compaction(3, (0, 3)), compaction(5, kind="opaque", summary=""))
    gaps = presenter.missing(Facts.of(chat(*[1_000] * 6, compactions=cuts)))
    assert "the messages that compaction 1 removed" in gaps
    assert "the summary of compaction 2: encrypted, or left out" in gaps


def test_missing_counts_are_named():
    events = (user("one"), model("two"), model("three"))
    some = session(*events, calls=(ModelCall(1, 1, 100), ModelCall(2, 2)))
    assert "the provider's count of 1 call" in presenter.missing(Facts.of(some))
    assert "the provider's token counts" in presenter.missing(Facts.of(session(*events, reported=False)))


def test_totals_are_named_where_no_call_has_a_count():
    totals = {"prompt_tokens_total": 90_001, "total_calls": 2}
    gaps = presenter.missing(Facts.of(session(user("one"), model("two"), model("three"), reported=False, **totals)))
    assert (
        "the provider's token counts per call: only totals are recorded, 90,001 prompt tokens over 2 calls, 45,001 on "
        "average"
    ) in gaps
    (fixed,) = [gap for gap in gaps if "system prompt" in gap]
    assert "tokens of every request (recorded total less the estimated messages)" in fixed


PATHS = {"steps": "/steps", "context": "/context", "facts": "/facts"}


def test_a_finding_leads_to_its_step_and_to_the_context_there_or_the_facts():
    findings = recorded_findings(Facts.of(bundled("timing-gap")))
    rows = presenter.finding_rows(findings, findings, PATHS, Choice())["rows"]
    lost = next(row for row in rows if row["kind"] == KINDS["request_lost"] and row["side"] == "recorded")
    other = next(row for row in rows if row["kind"] != KINDS["request_lost"] and row["side"] == "replayed")
    assert lost["url"] == "/steps?at=49"
    assert other["more_url"] == f"/context?at={other['step']}&side=replayed"


def test_a_lost_request_leads_to_the_lane_of_its_own_words():
    (lost,) = [
        item
        for item in recorded_findings(Facts.of(chat(5_000, 6_000, 3_000, compactions=(compaction(2),))))
        if item.kind == "request_lost"
    ]
    (row,) = presenter.finding_rows([lost], (), PATHS, Choice())["rows"]
    assert row["more_url"] == "/facts?" + urlencode({"q": lost.numbers["quote"]})


def test_a_finding_has_the_name_that_the_list_gives_it():
    findings = recorded_findings(Facts.of(bundled("small-window")))
    rows = presenter.finding_rows(findings, (), PATHS, Choice())["rows"]
    assert rows
    assert {row["kind"] for row in rows} <= set(KINDS.values())


def test_findings_of_both_sides_come_gravest_first():
    facts = Facts.of(bundled("small-window"))
    findings = recorded_findings(facts)
    rows = presenter.finding_rows(findings[2:], findings[:2], PATHS, Choice())["rows"]
    assert [row["severity"] for row in rows] == sorted(
        (row["severity"] for row in rows), key=["error", "warning", "info"].index
    )


def test_the_caption_says_what_a_dense_chart_leaves_out():
    facts, data = Facts.of(chat(1_000, 1_100)), made(5_000)
    dense = replace(data, compactions=np.arange(0, 5_000, 20))
    assert presenter.caption(dense, facts, "a").endswith(
        "lines are peaks, and above them compactions are counted; zoom in."
    )
    assert "zoom in" not in presenter.caption(data, facts, "a")


def test_what_the_cache_held_right_after_a_compaction_is_named_beside_the_fixed_part():
    built = chat(5_000, 5_100, 5_200, 3_000, 3_100, compactions=(compaction(4),))
    calls = [
        msgspec.structs.replace(call, cached_tokens=1_234 if step == 3 else 0) for step, call in enumerate(built.calls)
    ]
    (fixed,) = [
        gap
        for gap in presenter.missing(Facts.of(msgspec.structs.replace(built, calls=tuple(calls))))
        if "system prompt" in gap
    ]
    assert "1,234 were read from the cache right after a compaction" in fixed
