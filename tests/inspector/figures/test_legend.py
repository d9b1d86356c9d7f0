"""The legend of a figure: its names, and the marks that static/js/legend.js has for them."""

import re

import numpy as np

from inspector.figures import theme
from inspector.figures.legend import legend_names
from inspector.figures.plain import plain_figure
from inspector.pages.compare.figure import SideLine, comparison_figure
from inspector.pages.overview import figure as overview
from inspector.pages.overview.figure import context_timeline
from tests.inspector.pages.overview.test_figure import dense, made, own, replace
from tests.services.databases import ROOT

SCRIPT = (ROOT / "static/js/legend.js").read_text()


def compared():
    tokens = np.arange(60, dtype=np.int64)
    sides = [SideLine(f"{letter}: <b>&", tokens, tokens[10:12]) for letter in "ABC"]
    return comparison_figure([*sides, SideLine("D: empty", tokens[:0], tokens[:0])], 7)


def test_a_legend_names_what_is_drawn_as_text_in_the_order_of_the_figure():
    assert legend_names(compared()) == [f"{letter}: {name}" for letter in "ABC" for name in ("<b>&", "compaction")]
    assert legend_names(plain_figure(compared())) == legend_names(compared())


def test_rows_that_have_a_title_of_their_own_have_no_entry():
    names = legend_names(context_timeline(made()))
    assert {"recorded prompt tokens", "compaction", "context window"} <= set(names)
    assert not any("messages" in name or "factor" in name for name in names)


def test_every_symbol_and_dash_of_a_figure_has_its_mark():
    figures = [compared(), *map(context_timeline, [made(), dense(), replace(made(), own=own())])]
    traces = [trace for figure in figures for trace in figure["data"] if trace.get("showlegend", True)]
    symbols = {trace["marker"]["symbol"] for trace in traces if trace.get("mode", "").startswith("markers")}
    symbols |= {*overview.RECORDED_MARK, *overview.REPLAYED_MARK, "x", "x-open", "x-thin", "circle-open", "line-ns"}
    for symbol in symbols:
        assert re.search(rf'^  "?{symbol.removesuffix("-open")}"?: "M', SCRIPT, re.MULTILINE), symbol
    dashes = {trace["line"]["dash"] for trace in traces if "line" in trace and "fill" not in trace}
    for dash in dashes - {"solid"}:
        assert re.search(rf"\b{dash}: \"", SCRIPT) or re.fullmatch(r"\d+px(,\d+px)*", dash), dash


def test_names_are_escaped_in_the_way_that_the_script_undoes():
    name = "<a> & %{y}"
    assert set(re.findall(r"&(\w+);", theme.label(name))) <= {"amp", "lt", "gt"}
    assert "&(amp|lt|gt);" in SCRIPT
