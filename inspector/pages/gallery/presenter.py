"""The stress gallery as a table: filters, order and cells in words; no ORM, no request."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from guard_core.simulator.flow import Simulation
from guard_core.simulator.scenario import Scenario
from guard_core.simulator.scenarios import SCENARIOS
from inspector.figures.sparkline import Trend, sparkline, words
from inspector.pages.gallery.table import Need, PolicyChoice, ResultRow
from inspector.pages.shared.numbers import counted, percent, short, tokens, turn_number

GROUPS = {
    "": "all",
    "document-001": "document 001",
    "later": "later tests",
    "case": "agents and gaps",
}
SHOW = {"": "all", "failure": "with a failure", "overflow": "overflow", "loop": "loop", "unmet": "failed requirements"}
PAGE = 40  # rows of one page: about 30 elements each

# key, heading, numeric, title
COLUMNS: tuple[tuple[str, str, bool, str], ...] = (
    ("name", "Scenario", False, ""),
    ("window", "Window", True, "context window in tokens"),
    ("turns", "Turns", True, "user turns"),
    (
        "ratio",
        "Ratio",
        True,
        "prompt tokens the provider counts, divided by the heuristic estimate; and whether it reports them",
    ),
    ("compactions", "Compactions", True, "summaries produced"),
    ("injections", "Re-inserted", True, "later steps that re-inject an earlier summary"),
    ("peak", "Peak", True, "largest request in prompt tokens, and its share of the window"),
    ("overflow", "Overflow", True, "steps whose request is larger than the window"),
    ("loops", "Loops", True, "three or more compactions at consecutive steps, none of which gets below the threshold"),
    ("needs", "Required", False, "what the scenario's test requires, and whether it is met here"),
)


@dataclass(frozen=True)
class Filter:
    """What the address says of the table."""

    group: str = ""
    window: str = ""
    show: str = ""
    q: str = ""
    sort: str = ""
    page: int = 1

    def query(self, chosen: Sequence[PolicyChoice], **changes: Any) -> str:
        """The address of the table with changes; defaults are left out, a change of filter goes to the first page."""
        changed = replace(self, **({"page": 1} | changes))
        pairs = [("policy", name) for name in dict.fromkeys(guard.policy for guard in chosen)]
        pairs += [("profile", name) for name in dict.fromkeys(guard.profile for guard in chosen if guard.profile)]
        more = ("group", "window", "show", "q", "sort")
        pairs += [(name, getattr(changed, name)) for name in more if getattr(changed, name)]
        return "?" + urlencode(pairs + ([("page", str(changed.page))] if changed.page > 1 else []))


def parse_filter(query: Mapping[str, str]) -> Filter:
    """The filter of a query string; what is not known is left out."""
    group, show, sort = (query.get(name, "") for name in ("group", "show", "sort"))
    page = query.get("page", "")
    return Filter(
        group=group if group in GROUPS else "",
        window=query.get("window", "") if query.get("window", "") in windows() else "",
        show=show if show in SHOW else "",
        q=" ".join(query.get("q", "").replace("\x00", "").split())[:60],
        sort=sort if sort.removeprefix("-") in _SORTS else "",
        page=int(page) if page.isascii() and page.isdigit() and 0 < len(page) < 5 and int(page) else 1,
    )


def windows() -> list[str]:
    """The windows that occur, as addresses carry them."""
    sizes = sorted({scenario.simulations[0].window for scenario in SCENARIOS.values()}, reverse=True)
    return [short(size) for size in sizes]


def group_of(scenario: Scenario) -> str:
    """Which of the gallery's parts a scenario belongs to."""
    if scenario.group == "Case":
        return "case"
    return "document-001" if scenario.since == "early" else "later"


def fits(row: ResultRow, chosen: Filter) -> bool:
    """Is a row among those that the filter shows."""
    scenario = SCENARIOS[row.scenario]
    kinds = {"failure": row.fails, "overflow": row.overflow_steps > 0, "loop": row.loops > 0, "unmet": row.unmet}
    return (
        (not chosen.group or group_of(scenario) == chosen.group)
        and (not chosen.window or short(scenario.simulations[0].window) == chosen.window)
        and (not chosen.q or chosen.q.lower() in f"{row.scenario} {scenario.note}".lower())
        and kinds.get(chosen.show, True)
    )


_SORTS: dict[str, Callable[[ResultRow], Any]] = {
    "name": lambda row: row.scenario.lower(),
    "window": lambda row: row.trend.window,
    "turns": lambda row: _turns(SCENARIOS[row.scenario]),
    "ratio": lambda row: SCENARIOS[row.scenario].simulations[-1].ratio,
    "compactions": lambda row: row.compactions,
    "injections": lambda row: row.injections,
    "peak": lambda row: row.peak / max(1, row.trend.window),
    "overflow": lambda row: row.overflow_steps,
    "loops": lambda row: (row.loop_steps, row.loops),
    "needs": lambda row: (row.unmet, len(row.needs)),
}


def ordered(rows: Sequence[ResultRow], sort: str) -> list[ResultRow]:
    """The rows in the order asked for; without one, as the gallery has them."""
    if not sort:
        return list(rows)
    return sorted(rows, key=_SORTS[sort.removeprefix("-")], reverse=sort.startswith("-"))


def headings(chosen: Filter, policies: Sequence[PolicyChoice]) -> list[dict[str, Any]]:
    """The headings: each a link that sorts, numbers largest first, and turns round at the second click."""
    heads = []
    for key, label, numeric, title in COLUMNS:
        first = f"-{key}" if numeric or key == "needs" else key
        turned = key if first.startswith("-") else f"-{key}"
        current = chosen.sort.removeprefix("-") == key
        aria = ("descending" if chosen.sort.startswith("-") else "ascending") if current else ""
        heads.append(
            {
                "label": label,
                "numeric": numeric,
                "title": title,
                "aria": aria,
                "url": chosen.query(policies, sort=turned if current and chosen.sort == first else first),
            }
        )
    return heads


def switches(chosen: Filter, policies: Sequence[PolicyChoice], rows: Sequence[ResultRow]) -> list[dict[str, Any]]:
    """The three filters as groups of links, with how many rows each would show."""

    def link(name: str, value: str, label: str) -> dict[str, Any]:
        change: dict[str, Any] = {name: value}
        changed = replace(chosen, **change)
        number = sum(fits(row, changed) for row in rows)
        current = getattr(chosen, name) == value
        return {"label": label, "count": number, "url": chosen.query(policies, **{name: value}), "current": current}

    sizes = {"": "all", **{size: size for size in windows()}}
    groups = (("group", "Group", GROUPS), ("window", "Window", sizes), ("show", "Result", SHOW))
    return [
        {"name": title, "links": [link(name, value, label) for value, label in values.items()]}
        for name, title, values in groups
    ]


def table_row(row: ResultRow, *, many: bool) -> dict[str, Any]:
    """One row as cells."""
    scenario = SCENARIOS[row.scenario]
    return {
        "name": row.scenario,
        "about": about(scenario),
        "guard": PolicyChoice(row.policy, row.profile).name if many else "",
        "guard_value": PolicyChoice(row.policy, row.profile).name,
        "window": short(row.trend.window),
        "turns": f"{_turns(scenario):,}",
        "ratio": " / ".join(f"{simulation.ratio:g}" for simulation in scenario.simulations),
        "usage": usage_words(scenario),
        "compactions": row.compactions,
        "injections": row.injections,
        "peak": tokens(row.peak),
        "share": percent(row.peak, row.trend.window),
        "near": row.peak > 0.9 * row.trend.window,
        "overflow": row.overflow_steps,
        "loops": row.loops,
        "loop_steps": f"{row.loop_steps:,} steps",
        "needs": [need_cell(need) for need in row.needs],
        "fails": row.fails,
        "trend": picture(row.trend, row),
        "query": urlencode({"scenario": row.scenario, "guard": PolicyChoice(row.policy, row.profile).name}),
    }


_NEEDS = {"overflow": "no overflow", "summary": "summary in ≥ {wanted} requests", "loop": "no loop"}
_FOUND = {"overflow": "{found} found", "summary": "in {found}", "loop": "{found} in a row"}


def need_cell(need: Need) -> dict[str, str]:
    """A requirement and whether it is met, in words and with a mark, never by a colour alone."""
    text = _NEEDS[need.kind].format(wanted=need.wanted)
    if need.met is None:
        return {"text": f"– {text} (not judged: newer than this profile)", "class": ""}
    measured = "" if need.met and need.kind != "summary" else f", {_FOUND[need.kind].format(found=need.found)}"
    return {"text": f"{'✓' if need.met else '✕ not met:'} {text}{measured}", "class": "" if need.met else "is-unmet"}


def picture(shown: Trend, row: ResultRow) -> dict[str, Any]:
    """The trend picture and its sentence."""
    return {**sparkline(shown).context, "words": words(shown, row.steps, row.peak, row.compaction_steps, shown.window)}


def about(scenario: Scenario) -> str:
    """What a scenario is, in a line."""
    simulation = scenario.simulations[-1]
    calls = sum(len(turn.tools) for part in scenario.simulations for turn in part.turns)
    chained = any(turn.sequential and turn.tools for turn in simulation.turns)
    facts = [f"{counted(calls, 'tool call')}{' one after the other' if chained else ''}" if calls else "no tools"]
    if any(turn.inline for turn in simulation.turns):
        facts.append("inline data")
    if simulation.tools:
        facts.append(f"{len(simulation.tools):,} tool definitions")
    return ", ".join([*facts, *([scenario.note] if scenario.note else [])])


def usage_words(scenario: Scenario) -> str:
    """Does the provider report its counts."""
    return " / ".join(_usage(simulation) for simulation in scenario.simulations)


def _usage(simulation: Simulation) -> str:
    """From which turn on the provider of one part of a scenario reports its counts."""
    if simulation.reported_from is None:
        return "not reported"
    return "reported" if simulation.reported_from == 0 else f"from turn {turn_number(simulation.reported_from):,}"


def _turns(scenario: Scenario) -> int:
    return sum(len(simulation.turns) for simulation in scenario.simulations)


def totals(rows: Sequence[ResultRow]) -> list[dict[str, Any]]:
    """The head's figures over all rows of a run, in words where there is nothing to count."""
    return [
        {"name": "Rows", "value": f"{len(rows):,}", "note": "one for each scenario and policy", "class": ""},
        _total("Overflow", sum(row.overflow_steps > 0 for row in rows), "with a request larger than the window"),
        _total("Loop", sum(row.loops > 0 for row in rows), "with compactions that lead to no progress"),
        _total("Failed requirements", sum(row.unmet for row in rows), "what the scenario's test requires"),
    ]


def _total(name: str, count: int, note: str) -> dict[str, Any]:
    return {"name": name, "value": f"{count:,}" if count else "none", "note": note, "class": "is-bad" if count else ""}


def sessions_query(guard: str) -> str:
    """The settings under which a session of the gallery is opened: those of its row."""
    policy, _, profile = guard.partition("/")
    return urlencode({name: value for name, value in (("policy", policy), ("profile", profile)) if value})
