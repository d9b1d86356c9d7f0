"""What a sweep over several sessions recommends, trades off, and finds on the half it was not chosen on."""

import json

import pytest

from guard_core.__main__ import main
from guard_core.errors import SettingError, UnknownName
from guard_core.findings.facts import Facts
from guard_core.outcomes.bill import Prices
from guard_core.outcomes.losses import stated_in
from guard_core.outcomes.outcome import replayed_outcome
from guard_core.policies import get_policy
from guard_core.recordings.formats import native
from guard_core.replay import replay
from guard_core.summaries.sizes import FixedSummaries
from guard_core.sweep import (
    Figures,
    GridCell,
    Priced,
    fold_words,
    get_measure,
    grid,
    halves,
    judged,
    parse_axis,
    policy_at,
    session_cells,
    trade_offs,
)
from tests.builders import model, session, user


def figures(overflows=0, compactions=1, sent=100, peak=50, **more):
    first = 3 if overflows else -1
    return Figures(compactions, compactions, overflows, first, 1, 0, peak, sent, **more)


def cell(buffer, *items, window=100):
    return GridCell({"buffer": buffer}, (window,) * len(items), items)


def column(*items):
    """The cells of one session for buffers 0, 1, 2 …"""
    return [cell(number, item) for number, item in enumerate(items)]


def sweep_of(*columns, **more):
    return judged({"buffer": tuple(range(len(columns[0])))}, columns, [10] * len(columns), **more)


def test_overflows_come_before_the_figure_that_is_made_small():
    result = sweep_of(
        column(figures(overflows=1, sent=5), figures(sent=90), figures(sent=80)), by=get_measure("tokens")
    )
    assert result.recommended == 2
    assert "80 prompt tokens, largest request 50" in result.evidence
    assert "of the settings that overflow, buffer=0 has fewest: 1 overflow, the first at step 4" in result.evidence
    assert "next worse" not in result.evidence  # that is buffer=1, which does not overflow


def test_a_setting_without_a_price_comes_after_those_with_one():
    result = sweep_of(column(figures(cost=None), figures(cost=9)), by=get_measure("cost"))
    assert result.recommended == 1


def test_a_chosen_figure_that_is_not_known_is_said_to_decide_nothing():
    some = sweep_of(column(figures(cost=3)), column(figures(cost=None)), by=get_measure("cost"))
    assert (
        "; the chosen figure, cost of all calls, is not known of 1 of 2 sessions and decides nothing" in some.evidence
    )
    one = sweep_of(column(figures(cost=None)), by=get_measure("cost"))
    assert "; the chosen figure, cost of all calls, is not known and decides nothing" in one.evidence
    for known in (sweep_of(column(figures(cost=3)), by=get_measure("cost")), sweep_of(column(figures(cost=None)))):
        assert "decides nothing" not in known.evidence


def test_where_nothing_overflows_the_next_worse_has_its_figures():
    result = sweep_of(column(figures(compactions=2), figures(compactions=1), figures(compactions=3)))
    assert result.evidence.endswith(
        "no setting of the grid overflows; the next worse, buffer=0, has 0 overflows, 2 compactions, 100 prompt tokens"
    )


def test_a_recommendation_that_rests_on_assumed_windows_says_so():
    one, two = column(figures()), column(figures())
    assert sweep_of(one, assumed=[True]).evidence.endswith(f", if the window is {one[0].window:,}")
    assert sweep_of(one, two, assumed=[False, True]).evidence.endswith(
        ", if the windows of 1 of 2 sessions are what is assumed"
    )
    assert "if" not in sweep_of(one, two, assumed=[False, False]).evidence


def test_where_an_answered_prompt_disproves_the_window_no_size_is_an_overflow_and_that_is_said():
    one, two = column(figures()), column(figures())
    assert sweep_of(one, disproved=[True]).evidence.endswith(
        f"; no size counts as an overflow, as a prompt larger than the window of {one[0].window:,} was answered"
    )
    assert sweep_of(one, two, disproved=[True, False]).evidence.endswith(
        "; in 1 of 2 sessions no size counts as an overflow, as a prompt larger than the window was answered"
    )
    assert "answered" not in sweep_of(one, two, disproved=[False, False]).evidence


def test_settings_that_come_to_the_same_are_named_and_the_first_is_taken():
    result = sweep_of(column(figures(), figures(), figures(compactions=2)))
    assert (result.recommended, result.equal) == (0, (1,))


def test_the_session_that_overflows_is_named():
    result = sweep_of(
        column(figures(), figures()), column(figures(), figures(overflows=2, peak=130)), titles=["one", "two"]
    )
    assert "2 overflows, the first at step 4 of session 2 (two) (largest request 130 of 100 tokens)" in result.evidence


def test_the_largest_request_is_that_of_the_fullest_window():
    cells = [
        [GridCell({"buffer": 0}, (1_000,), (figures(peak=400),))],
        [GridCell({"buffer": 0}, (100,), (figures(peak=90),))],
    ]
    assert "largest request 90 of 100 tokens" in judged({"buffer": (0,)}, cells, [1, 1]).evidence


def test_trade_offs_are_the_cells_that_no_other_beats():
    cells = [
        cell(0, figures(1, 0, 50)),
        cell(1, figures(0, 2, 80)),
        cell(2, figures(0, 1, 90)),
        cell(3, figures(0, 2, 95)),
    ]
    assert sorted(trade_offs(cells)) == [0, 1, 2]


def test_known_costs_and_losses_replace_tokens_and_compactions_in_trade_offs():
    cells = [cell(0, figures(sent=1, cost=7, requests_dropped=3)), cell(1, figures(sent=9, cost=6, requests_dropped=2))]
    assert trade_offs(cells) == (1,)


def test_a_cost_of_nothing_is_a_cost():
    assert trade_offs(
        [cell(0, figures(sent=9, cost=0, requests_dropped=0)), cell(1, figures(sent=1, cost=1, requests_dropped=0))]
    ) == (0,)


def test_halves_depend_on_hashes_alone_and_never_part_a_recording():
    keys = ["d", "a", "c", "b", "a"]
    first, second = halves(keys)
    assert {keys[at] for at in first} == {"a", "c"}
    assert {keys[at] for at in second} == {"b", "d"}
    again = halves(keys[::-1])
    assert {keys[::-1][at] for at in again[0]} == {"a", "c"}


def test_a_cross_over_judges_each_half_by_what_the_other_chose():
    careful = column(figures(overflows=5), figures(compactions=4))
    careless = column(figures(compactions=1), figures(compactions=3))
    result = sweep_of(careful, careless, recordings=["a", "b"])
    there, back = result.folds
    assert (there.learnt, there.judged, there.chosen, there.best) == ((0,), (1,), 1, 0)
    assert (back.learnt, back.judged, back.chosen, back.best) == ((1,), (0,), 0, 1)
    assert fold_words(result, back) == (
        "chosen on 1 session, buffer=0 gives 5 overflows, 1 compaction, 100 prompt tokens in 10 steps of the other "
        "1 session; the best there, buffer=1, gives 0 overflows, 4 compactions, 100 prompt tokens"
    )


def test_a_cross_over_says_that_it_took_the_first_of_equal_settings():
    same = figures(compactions=2)
    there, _ = sweep_of(column(same, same), column(same, same), recordings=["a", "b"]).folds
    assert (there.chosen, there.equal) == (0, 2)
    assert "chosen on 1 session (the first of 2 equally good settings there), buffer=0" in fold_words(
        sweep_of(column(same, same), column(same, same), recordings=["a", "b"]), there
    )


def test_one_recording_has_no_cross_over():
    assert sweep_of(column(figures()), column(figures()), recordings=["a", "a"]).folds == ()


def test_cost_and_losses_are_those_of_the_comparison(tool_heavy):
    facts = Facts.of(tool_heavy)
    cells = session_cells(
        facts.ledger,
        grid({"buffer": (1_000, "30%")}),
        window=30_000,
        usage=facts.usage,
        summarizer=FixedSummaries(500),
        priced=Priced.of(facts, stated_in(tool_heavy.events, facts.ledger)),
    )
    assert any(item.compactions for item in cells)
    for item in cells:
        policy = policy_at(item.values, "contextguard", {})
        trace = replay(facts.ledger, policy, window=30_000, usage=facts.usage, summarizer=FixedSummaries(500))
        rules = stated_in(tool_heavy.events, facts.ledger)
        row = replayed_outcome(facts, trace, Prices.of(facts.session, facts.ledger), rules)
        assert (item.cost, item.requests_dropped) == (row.costs.total, row.losses.requests_dropped)
        assert item.rules_gone == row.losses.rules_gone


def test_settings_that_are_typed_or_swept_come_before_those_of_the_recording():
    def made_with(kind, given):
        return {"cap": "7", "floor": "0.5", **given}

    settings = policy_at({"buffer": "7%"}, "contextguard", {"cap": "3"}, made_with).settings
    assert (settings.cap, settings.floor, settings.buffer) == (3, 0.5, "7%")
    assert get_policy("contextguard", cap="3") == policy_at({}, "contextguard", {"cap": "3"})


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("buffer=100k:120k:10k", (100_000, 110_000, 120_000)),
        ("buffer=5%:10%:2.5%", ("5%", "7.5%", "10%")),
        ("window=0.1M:0.2M:50k", (100_000, 150_000, 200_000)),
        ("cap=0.1:0.3:0.1", (0.1, 0.2, 0.3)),
    ],
)
def test_ranges_take_sizes_and_shares(text, values):
    assert parse_axis(text)[1] == values


@pytest.mark.parametrize("text", ["buffer=1,,2", "buffer=5,5", "buffer=5%:10%:1", "buffer=1e3:2e3:1e2"])
def test_a_list_with_gaps_or_repetitions_and_a_mixed_range_are_refused(text):
    with pytest.raises(SettingError):
        parse_axis(text)


def test_an_unknown_figure_is_refused_with_those_that_are_known():
    with pytest.raises(UnknownName, match="known are compactions, overflows"):
        get_measure("beauty")


def test_the_command_sweeps_folders_and_prints_both_directions(tmp_path, capsys):
    for number in range(4):
        turns = [item for _ in range(6) for item in (user("x" * 4_000), model("y" * 400))]
        log = session(*turns, title=f"log {number}", source_id=f"log-{number}", model="gpt-4o")
        (tmp_path / f"{number}.jsonl").write_bytes(native.write(log))
    (tmp_path / "notes.txt").write_text("not a recording")
    arguments = ["sweep", str(tmp_path), "--window", "9k", "--axis", "buffer=1k:3k:1k", "--summary", "fixed:100"]
    assert main([*arguments, "--figure", "cost"]) == 0
    printed = capsys.readouterr()
    assert printed.out.count("cross-over: chosen on 2 sessions") == 2
    assert "notes.txt" in printed.err
    assert main([*arguments, "--json"]) == 0
    body = json.loads(capsys.readouterr().out)
    assert len(body["cells"]) == 3
    assert [sorted(item["chosen_on"] + item["judged_on"]) for item in body["cross_over"]] == [[0, 1, 2, 3]] * 2
    assert body["cells"][0]["cost"] is None


def test_the_command_says_that_one_recording_cannot_be_checked(tmp_path, capsys):
    path = tmp_path / "log.jsonl"
    path.write_bytes(native.write(session(user("x" * 400), model("y"), title="log")))
    assert main(["sweep", str(path), "--axis", "buffer=10%,20%", "--summary", "fixed:100"]) == 0
    assert "cross-over: not possible with one recording" in capsys.readouterr().out
