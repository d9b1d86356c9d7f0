"""`compare FILE`: the recording and every policy at its defaults, side by side."""

from __future__ import annotations

import argparse
import os
from itertools import islice
from typing import Any

from guard_core import cli
from guard_core.estimation.forecast import Forecast, forecast
from guard_core.findings.facts import Facts
from guard_core.findings.sizes import NEAR_MISS_SHARE
from guard_core.findings.words import counted
from guard_core.outcomes.bill import Prices
from guard_core.outcomes.comparing import Compared, candidates, compared_apart
from guard_core.outcomes.cycles import Cycle, text_floor
from guard_core.outcomes.losses import stated_in
from guard_core.outcomes.values import MONEY, outcome_values
from guard_core.outcomes.words import (
    assumptions,
    closest_words,
    dollars,
    forecast_words,
    refused_words,
    rewrites_words,
    summariser_words,
)
from guard_core.plain_text import plain_lines
from guard_core.summaries.sizes import get_summarizer
from guard_core.version import __version__ as engine_version
from guard_core.windows.call_windows import WindowWarning, windows_words

STEPS_OF_ONE = 20_000  # steps of all replays; ours: a second of one process
MOST_PROCESSES = 4
HELP = "compare what every policy would have done with a session"
HEADER = (
    "policy",
    "compactions",
    "overflows",
    "near",
    "held",
    "peak",
    "least room",
    "stuck at",
    "prompt tokens",
    "from cache",
    "summariser",
    "cost",
    "never paid",
    "requests dropped",
    "rules gone",
    "parted",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of this command."""
    parser.add_argument("file", metavar="FILE", help="a recording of an agent session")
    parser.add_argument("--profiles", action="store_true", help="each profile of a policy gets a row")
    cli.add_session_arguments(parser)
    parser.add_argument("--json", action="store_true", help=f"print JSON; {cli.NUMBERING}; money in millionths of US$")


def run(args: argparse.Namespace) -> int:
    """Compare the policies; 2 and one sentence where that is not possible."""
    return cli.guarded(lambda: _run(args))


def _run(args: argparse.Namespace) -> int:
    session = cli.load(args.file, args.session)
    facts = Facts.of(session, cli.window_of(session, args.window), looks_up=False)
    rules = stated_in(session.events, facts.ledger)
    summarizer = get_summarizer(args.summary, facts.ledger)
    chosen = candidates(all_profiles=args.profiles, rule=facts.explanation.rule)
    is_long = facts.ledger.step_count * len(chosen) > STEPS_OF_ONE
    processes = min(os.cpu_count() or 1, MOST_PROCESSES) if is_long else 1
    compared = compared_apart(facts, chosen, processes, rules=rules, summarizer=summarizer)
    rows = list(islice(compared, 2))  # from then on, copies of this process make the others
    errors = forecast(facts.ledger)
    rows += compared
    if args.json:
        cli.print_json(report(facts, rows, errors))
    else:
        print(plain_lines(_text(facts, rows, errors)))
    return 0


def report(facts: Facts, rows: list[Compared], errors: Forecast) -> dict[str, Any]:
    """The rows as plain values."""
    prices, windows = Prices.of(facts.session, facts.ledger), facts.recording.call_windows
    return {
        "numbering": cli.NUMBERING,
        "money": MONEY,
        "engine_version": engine_version,
        "window": facts.window.value,
        "window_source": {"source": facts.window.source, "note": facts.window.note},
        "windows": windows,
        "counted_in": facts.counted_in or "tokens",
        "prices": [rates.note for rates in dict.fromkeys(prices.rates) if rates],
        "without_price": prices.unknown,
        "assumptions": [*filter(None, [windows_words(windows, WindowWarning.COMPARISON)]), *assumptions(facts, prices)],
        "forecast": errors,
        "text_floor": text_floor(facts, int(NEAR_MISS_SHARE * facts.window.value)),
        "rows": [_row(item) for item in rows],
    }


def _row(item: Compared) -> dict[str, Any]:
    title = item.candidate.title if item.candidate else "recording"
    if item.outcome is None:
        return {"title": title, "problem": item.problem}
    return {"title": title, **outcome_values(item.outcome)}


def _text(facts: Facts, rows: list[Compared], errors: Forecast) -> str:
    return "\n".join(
        [
            f"window {facts.window.value:,} tokens ({facts.window.words}), {counted(facts.ledger.step_count, 'call')}",
            *filter(None, [windows_words(facts.recording.call_windows, WindowWarning.COMPARISON)]),
            "",
            cli.table(HEADER, [_cells(item) for item in rows], left=1),
            "",
            *(line for item in rows for line in _remarks(item)),
            *assumptions(facts, Prices.of(facts.session, facts.ledger)),
            *filter(None, [forecast_words(errors)]),
            *_floor(text_floor(facts, int(NEAR_MISS_SHARE * facts.window.value))),
        ]
    )


def _remarks(item: Compared) -> list[str]:
    """What a cell of the table has no room for."""
    title = item.candidate.title if item.candidate else "recording"
    if item.outcome is None:
        return [f"{title}: {item.problem}"]
    said = (rewrites_words, closest_words, refused_words, summariser_words)
    words = [say(item.outcome) for say in said]
    lines = [f"{title}: {each}" for each in filter(None, words)]
    lines += [f"{title}: {reason} ({counted(count, 'step')})" for reason, count in item.outcome.held.items()]
    reported = item.outcome.reported
    if reported is not None:
        price = "" if reported.total is None else f"; {dollars(reported.total)} at list prices, without summaries"
        lines.append(f"{title}: the provider reported {reported.read:,} tokens read from the cache{price}")
    return lines


def _floor(cycles: tuple[Cycle, ...]) -> list[str]:
    """What clearing tool results alone would free, cycle by cycle."""
    if not cycles:
        return []
    freed = ", ".join(f"{100 * cycle.freed:.0f} %" for cycle in cycles[:8]) + (" …" if len(cycles) > 8 else "")
    end = f"; from step {cycles[-1].step + 1:,} on text alone fills it" if cycles[-1].is_stuck else ""
    share = f"{100 * NEAR_MISS_SHARE:.0f} %"
    return [f"Clearing tool results alone, at {share} of the window, would free by cycle: {freed}{end}."]


def _cells(item: Compared) -> tuple[Any, ...]:
    title, row = item.candidate.title if item.candidate else "recording", item.outcome
    if row is None:
        return (title, *("–" for _ in HEADER[1:]))
    costs, losses = row.costs, row.losses
    return (
        title,
        row.compactions,
        row.overflows,
        row.near_misses,
        sum(row.held.values()),
        row.peak,
        row.least_room,
        None if row.stuck < 0 else row.stuck + 1,
        costs.prompt,
        costs.read,
        costs.summariser_prompt + costs.summariser_output,
        "unknown" if costs.total is None else dollars(costs.total),
        row.unpaid if costs.total is not None else None,
        f"≥ {losses.requests_dropped:,}" if losses.is_least else losses.requests_dropped,
        None if losses.rules_gone < 0 else f"≥ {losses.rules_gone:,}" if losses.is_least else losses.rules_gone,
        losses.parted_steps,
    )
