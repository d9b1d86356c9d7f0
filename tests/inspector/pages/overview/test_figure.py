"""The main chart, from hand-made columns."""

import json
from dataclasses import replace
from itertools import pairwise

import numpy as np
import plotly.graph_objects as go
import pytest

from inspector.figures import theme
from inspector.figures.plain import plain_figure
from inspector.figures.timeline import Own, Replayed, Timeline, Track
from inspector.pages.overview import figure as overview
from inspector.pages.overview.figure import rows_of, shows_estimates
from tests.inspector.test_css_tokens import TOKENS, contrast
from tests.services.databases import ROOT


def made(steps=40, *, replayed=True, window=200_000):
    grow = np.linspace(10_000, 195_000, steps)
    recorded = np.where(np.arange(steps) < steps // 2, grow * 2.1, grow * 0.8)
    nowhere = np.array([], dtype=np.int64)
    other = Replayed("<b>early</b>", recorded * 0.7, np.array([8]), nowhere, 8) if replayed else None
    at = np.arange(steps) * 2 + 1
    return Timeline(
        recorded=recorded,
        requests=recorded.copy(),
        heuristic=grow,
        calibrated=grow * 1.5,
        threshold=np.full(steps, window * 0.9),
        policy="ContextGuard",
        window=window,
        recorded_window=window,
        windows=np.full(steps, window),
        factor_raw=np.full(steps, 1.7),
        factor=np.full(steps, 1.7),
        factor_cap=5.0,
        compactions=np.array([steps // 2]),
        overflows=np.flatnonzero(recorded > window),
        replayed=other,
        tracks=(Track("recorded", at, at // 2),),
    )


def context_timeline(*given, **named) -> go.Figure:
    """The figure, its names and values checked by plotly, without the look that it gives figures in Python."""
    return checked(overview.context_timeline(*given, **named))


def checked(figure) -> go.Figure:
    return go.Figure(figure).update_layout(template=go.layout.Template())


def names(figure):
    return [trace.name for trace in figure.data]


def test_it_draws_the_five_recorded_lines_and_the_marks():
    drawn = names(context_timeline(made(replayed=False)))
    assert {"recorded prompt tokens", "heuristic estimate", "calibrated estimate"} <= set(drawn)
    assert {"ContextGuard threshold", "context window"} <= set(drawn)
    assert {"compaction", "overflow"} <= set(drawn)


def test_each_line_has_a_dash_of_its_own():
    lines = [trace for trace in context_timeline(made()).data if trace.mode == "lines" and trace.yaxis is None]
    assert len({trace.line.dash for trace in lines}) == len(lines) == 6


def test_the_recording_is_drawn_last_and_thicker_than_the_replay():
    lines = [trace for trace in context_timeline(made()).data if "lines" in trace.mode and trace.yaxis is None]
    assert lines[-1].name == "recorded prompt tokens"
    assert lines[-1].line.width >= 2 * max(line.line.width for line in lines[:-1])
    assert all(line.fill is None for line in lines)


def test_hovering_over_what_is_just_over_the_window_does_not_say_100_per_cent():
    data = made()
    over = np.full_like(data.recorded, data.window + 20)
    trace = next(
        trace for trace in context_timeline(replace(data, recorded=over)).data if trace.name == "recorded prompt tokens"
    )
    assert 100 < trace.customdata[0] < 100.1


def test_the_replay_is_dashed_named_modelled_and_starts_at_the_divergence():
    trace = next(trace for trace in context_timeline(made()).data if "modelled" in trace.name)
    assert trace.line.dash not in (None, "solid")
    assert trace.line.color not in (theme.RECORDED, theme.CALIBRATED)
    assert np.isnan(trace.y[:7]).all()
    assert not np.isnan(trace.y[7:]).any()


def test_hovering_says_what_share_of_its_own_models_window_a_request_has():
    data = made(4, replayed=False)
    data = replace(data, recorded=np.full(4, 12_000.0), windows=np.array([200_000, 200_000, 32_000, 0]))
    trace = next(trace for trace in context_timeline(data).data if trace.name == "recorded prompt tokens")
    assert list(trace.customdata) == [" (6\u00a0%)", " (6\u00a0%)", " (38\u00a0%)", ""]
    assert trace.hovertemplate.startswith("recorded prompt tokens: %{y:.3~s} tokens%{customdata} at step ")


def test_hovering_says_tokens_their_share_of_the_window_and_the_step():
    trace = next(trace for trace in context_timeline(made()).data if trace.name == "recorded prompt tokens")
    read = "recorded prompt tokens: %{y:.3~s} tokens (%{customdata:.4~f}\u00a0%) at step %{x:,d}<extra></extra>"
    assert trace.hovertemplate == read
    assert (trace.x[0], trace.customdata[0]) == (1, 10)


def test_what_has_no_value_is_neither_drawn_nor_in_the_legend():
    data = made(replayed=False)
    for column in (data.calibrated, data.threshold, data.factor, data.factor_raw):
        column[:] = np.nan
    figure = context_timeline(data)
    assert {"calibrated estimate", "ContextGuard threshold", "correction factor, raw"}.isdisjoint(names(figure))
    assert not any("correction" in (label.text or "") for label in figure.layout.annotations)
    assert figure.layout.height < context_timeline(made(replayed=False)).layout.height


def test_a_window_outside_the_axis_is_no_entry_of_the_legend():
    assert "context window" not in names(context_timeline(made(window=10_000_000, replayed=False)))


def test_a_count_between_two_calls_without_one_is_a_point():
    data = made(9, replayed=False)
    data.recorded[[0, 1, 2, 4, 5]] = np.nan
    trace = next(trace for trace in context_timeline(data).data if trace.name == "recorded prompt tokens")
    assert trace.mode == "lines+markers"


def test_what_was_not_counted_is_a_dashed_line_to_the_counts_beside_it():
    data = made(9, replayed=False)
    data = replace(data, compactions=np.array([4]))
    data.recorded[4:6] = np.nan
    shown = {trace.name: trace for trace in context_timeline(data).data}
    assert np.flatnonzero(~np.isnan(shown["estimated prompt tokens"].y)).tolist() == [3, 4, 5, 6]
    assert np.flatnonzero(np.isnan(shown["recorded prompt tokens"].y)).tolist() == [4, 5]
    assert shown["estimated prompt tokens"].line.dash != shown["recorded prompt tokens"].line.dash
    assert shown["compaction"].y[0] == pytest.approx(data.requests[4])


def dense(steps=5_000, every=20):
    """A session of many compactions, on both sides."""
    data, many = made(steps), np.arange(0, steps, every)
    return replace(data, compactions=many, replayed=replace(data.replayed, compactions=many + 3))


def test_of_many_compactions_the_edges_of_the_lines_are_drawn_until_a_zoom_shows_few():
    data = dense()
    whole, zoomed = context_timeline(data), context_timeline(data, 100, 200)
    assert {"heuristic estimate", "calibrated estimate"}.isdisjoint(names(whole))
    assert {"heuristic estimate", "calibrated estimate", "recorded prompt tokens"} <= set(names(zoomed))
    shown = {trace.name: trace for trace in whole.data}
    peaks, foot = shown["recorded prompt tokens, peaks"], shown["recorded prompt tokens, lowest"]
    assert (len(peaks.x) <= 122, len(foot.x) <= 122) == (True, True)
    assert {trace.fill for trace in (peaks, foot)} == {None}
    assert np.nanmax(peaks.y) == pytest.approx(np.nanmax(data.recorded))
    assert np.nanmin(foot.y) == pytest.approx(np.nanmin(data.recorded))
    edge = next(trace for trace in whole.data if "modelled" in trace.name)
    assert (edge.name.endswith("peaks"), len(edge.x) <= 122) == (True, True)
    assert np.nanmax(edge.y) == pytest.approx(np.nanmax(data.replayed.prompt_tokens))
    assert not shows_estimates(data, np.arange(len(data)))


def test_a_line_that_can_be_followed_stays_one_whatever_the_other_side_does():
    data = dense()
    few = replace(data, compactions=np.array([1_000, 3_000]))
    line = next(trace for trace in context_timeline(few).data if trace.name == "recorded prompt tokens")
    assert (line.fill, len(line.x) > 500) == (None, True)
    some = replace(
        data, compactions=np.arange(0, 5_000, 50), replayed=replace(data.replayed, compactions=np.array([9]))
    )
    lines = {trace.name: trace for trace in context_timeline(some).data}
    assert len(lines["recorded prompt tokens"].x) > 500
    assert all(step in lines["recorded prompt tokens"].x for step in (some.compactions + 1).tolist())
    assert len(next(trace for name, trace in lines.items() if "modelled" in name).x) > 500


def test_many_compactions_are_counted_above_all_lines_each_side_in_its_own_row_and_colour():
    figure = context_timeline(dense())
    rows = [trace for trace in figure.data if "(count)" in trace.name]
    assert [trace.name for trace in rows] == ["compactions (count)", "compactions, replayed (count)"]
    assert [sum(map(int, trace.text)) for trace in rows] == [250, 250]
    assert rows[0].customdata[0] == "1 to 500"
    assert len({(trace.y[0], trace.textfont.color, trace.marker.symbol) for trace in rows}) == 2
    highest = max(np.nanmax(trace.y) for trace in figure.data if trace not in rows and trace.yaxis is None)
    assert highest < 0.86 * figure.layout.yaxis.range[1]


def test_few_compactions_carry_the_numbers_of_their_pages():
    data = replace(made(), compactions=np.array([5, 9, 20]), numbers=np.array([1, 0, 3]))
    marks = {trace.name: trace for trace in context_timeline(data).data}
    assert marks["compaction"].text == ("1", "", "3")
    assert marks["compaction, replayed"].text == ("1",)
    later = {trace.name: trace for trace in context_timeline(data, 15, 40).data}
    assert later["compaction"].text == ("3",)


def test_compactions_of_a_replay_that_sends_what_was_recorded_are_marked_once():
    data = made()
    same = replace(data, replayed=replace(data.replayed, divergence=None, compactions=data.compactions))
    assert [name for name in names(context_timeline(same)) if name.startswith("compaction")] == ["compaction"]
    other = replace(same, replayed=replace(same.replayed, divergence=8))
    assert "compaction, replayed" in names(context_timeline(other))


def test_numbers_that_would_lie_on_one_another_are_read_when_pointed_at():
    data = replace(made(100), compactions=np.array([5, 9, 10]), numbers=np.array([11, 12, 13]))
    fired = replace(data.replayed, compactions=np.array([6, 20]))
    marks = {trace.name: trace for trace in context_timeline(replace(data, replayed=fired)).data}
    assert marks["compaction"].text == ("11", "12", "")
    assert marks["compaction"].hovertext == ("11", "12", "13")
    assert marks["compaction, replayed"].text == ("", "2")
    assert "no. %{hovertext}" in marks["compaction, replayed"].hovertemplate


def colours_of_texts(figure):
    colours = {trace.textfont.color for trace in figure.data if getattr(trace, "text", None)}
    colours |= {label.font.color for label in figure.layout.annotations}
    return (colours | {figure.layout.font.color}) - {None}


@pytest.mark.parametrize("dark", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("data", [made(), dense()], ids=["few", "many"])
def test_every_text_of_the_figure_is_readable_on_whatever_it_is_drawn_over(data, dark):
    grounds = [theme.SURFACE, theme.BAND]
    for text in colours_of_texts(context_timeline(data)):
        for ground in grounds:
            pair = [TOKENS[theme.PALETTE[colour].removeprefix("--")][dark] for colour in (text, ground)]
            assert contrast(*pair) >= 4.5, (text, ground)


def test_a_window_of_the_replay_alone_is_called_so_and_the_recording_read_against_its_own():
    figure = context_timeline(replace(made(), window=64_000))
    assert "context window of the replay" in names(figure)
    assert "replay window 64k" in [label.text for label in figure.layout.annotations]
    trace = next(trace for trace in figure.data if trace.name == "recorded prompt tokens")
    assert trace.customdata[0] == 10
    threshold = next(trace for trace in figure.data if trace.name == "ContextGuard threshold")
    assert (
        threshold.hovertemplate == "ContextGuard threshold: %{y:.3~s} tokens (%{customdata:.4~f}\u00a0%)<extra></extra>"
    )


def test_text_that_is_not_ours_loses_its_tags():
    assert "<b>" not in context_timeline(made()).to_json()
    assert theme.label("<a href='x'>%{y}") == "&lt;a href='x'&gt;%\u200b{y}"


def test_a_long_session_has_at_most_two_thousand_points_a_series():
    figure = context_timeline(made(50_000))
    assert max(len(trace.x) for trace in figure.data) <= 2000


def test_a_zoomed_range_is_drawn_alone_with_steps_counted_from_1():
    figure = context_timeline(made(50_000), 100, 200)
    assert (figure.data[0].x[0], figure.data[0].x[-1]) == (101, 200)
    assert figure.layout.xaxis.range == (100.5, 200.5)


def test_a_window_far_above_the_session_is_named_but_not_drawn_to_scale():
    figure = context_timeline(made(window=10_000_000, replayed=False))
    assert figure.layout.yaxis.range[1] < 1_000_000
    assert any("window 10M ↑" in (label.text or "") for label in figure.layout.annotations)


def test_a_session_without_steps_gives_an_empty_figure():
    assert context_timeline(made(0, replayed=False)).layout.height > overview.MAIN


def test_missing_counts_become_null():
    data = made(3, replayed=False)
    data.recorded[1] = np.nan
    json.loads(context_timeline(data).to_json(), parse_constant=pytest.fail)


def test_every_colour_of_the_figure_is_one_the_page_can_replace():
    text = context_timeline(made()).to_json().lower()
    colours = {text[i : i + 7] for i in range(len(text)) if text[i] == "#" and text[i + 1 : i + 7].isalnum()}
    assert colours <= set(theme.PALETTE)


def test_labels_at_the_edge_are_shares_of_the_main_row_highest_first():
    figure = context_timeline(made())
    labels = [label for label in figure.layout.annotations if label.name == "edge"]
    assert all(0 <= label.y <= 1 for label in labels)
    assert all(high.y >= low.y for high, low in pairwise(labels))


@pytest.mark.parametrize("data", [made(), made(replayed=False), replace(made(), factor=np.full(40, np.nan))])
def test_a_page_reserves_what_the_lowest_figure_takes(data):
    sheet = (ROOT / "static/css/overview.css").read_text()
    lowest = f".figure-h{rows_of(data)} {{ --low: {context_timeline(data).layout.height}px; }}"
    assert lowest in sheet


# -- the rule of the recording's own agent


def own(agent="Claude Code", inferred=(), steps=40):
    return Own(agent, np.linspace(10_000, 160_000, steps), np.full(steps, 155_000.0), inferred)


def test_the_own_rule_has_a_threshold_a_margin_and_the_count_that_is_compared():
    figure = context_timeline(replace(made(), own=own(), policy="Claude Code", shows_policy=False))
    shown = {trace.name: trace for trace in figure.data}
    assert {"Claude Code threshold", "count that Claude Code compares"} <= shown.keys()
    assert "heuristic estimate" not in shown
    assert shown["Claude Code threshold"].customdata[0] == 145_000


def test_a_chosen_policys_threshold_stands_beside_the_own_one():
    shown = names(context_timeline(replace(made(), own=own())))
    assert {"ContextGuard threshold", "Claude Code threshold", "heuristic estimate"} <= set(shown)


def test_the_threshold_of_the_same_agent_under_other_settings_has_a_name_of_its_own():
    shown = names(context_timeline(replace(made(), own=own(), policy="Claude Code")))
    assert shown.count("Claude Code threshold") == shown.count("threshold of the replay") == 1


def test_of_an_unknown_rule_the_bounds_are_drawn():
    bounds = (("threshold above (inferred)", 150_000), ("threshold at most (inferred)", 154_000))
    figure = context_timeline(replace(made(), own=own("", bounds), policy="", shows_policy=False))
    assert {name for name, _ in bounds} <= set(names(figure))
    assert not any("count that" in name or name == " threshold" for name in names(figure))


@pytest.mark.parametrize(
    "data", [made(0), made(1), made(), made(5_000), made(replayed=False), replace(made(), own=own())]
)
def test_a_page_gets_what_plotly_would_write(data):
    figure = overview.context_timeline(data)
    written = json.loads(checked(figure).to_json())
    del written["layout"]["template"]
    assert json.loads(json.dumps(plain_figure(figure), allow_nan=False)) == written


@pytest.mark.parametrize("steps", [1, 2, 5, 12])
def test_each_of_a_few_steps_has_one_tick_and_nothing_between_two_has_any(steps):
    axis = context_timeline(made(steps)).layout.xaxis
    assert (axis.tick0, axis.dtick, axis.nticks) == (1, 1, None)


def test_many_steps_have_a_few_ticks():
    data = made(40)
    assert (context_timeline(data).layout.xaxis.dtick, context_timeline(data).layout.xaxis.nticks) == (None, 12)
    assert context_timeline(data, 10, 20).layout.xaxis.dtick == 1
