"""The comparison of policies in words and cells: columns as data, each with its order and its download."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec
from django.urls import reverse

from guard_core.counts import RECORDED
from guard_core.findings.sizes import NEAR_MISS_SHARE
from guard_core.outcomes.cycles import Cycle
from guard_core.outcomes.losses import Losses
from guard_core.outcomes.outcome import PolicyOutcome
from guard_core.outcomes.values import MONEY, outcome_values
from guard_core.outcomes.words import closest_words, dollars, rewrites_words, summariser_words
from guard_core.windows.prices import UNIT
from inspector.figures.sparkline import sparkline, words
from inspector.pages.session.frame import Frame
from inspector.pages.shared.numbers import DASH, NARROW, counted, percent, short, signed, step_number, tokens
from inspector.replays.choice import Choice
from inspector.replays.comparing import PolicyComparison, PolicyRow

LONG_NOTE = 24  # characters; longer remarks go over several lines
SHOWN_CYCLES = 12  # of clearing tool results, in a sentence
Value = int | float | str | None


class ComparisonCell(NamedTuple):
    """What a cell shows: a figure, a smaller remark, and whether it is bad."""

    text: str
    note: str = ""
    bad: bool = False


@dataclass(frozen=True)
class PolicyColumn:
    """A column: its key in addresses, its head, what it means, the value that it is ordered by, its cell, and what a
    download has, where that is not the value."""

    key: str
    head: str
    help: str
    value: Callable[[PolicyOutcome], Value]
    cell: Callable[[PolicyOutcome], ComparisonCell]
    downloaded: Callable[[PolicyOutcome], Value] | None = None


def _compactions(row: PolicyOutcome) -> ComparisonCell:
    calls = row.costs.summariser_calls
    return ComparisonCell(
        tokens(row.compactions), counted(calls, "summary", "summaries") if calls != row.compactions else ""
    )


def _overflows(row: PolicyOutcome) -> ComparisonCell:
    return ComparisonCell(
        tokens(row.overflows), f"{row.refused:,} made smaller" if row.refused else "", row.overflows > 0
    )


def _held(row: PolicyOutcome) -> ComparisonCell:
    return ComparisonCell(
        tokens(sum(row.held.values())), "; ".join(f"{why} ({count:,})" for why, count in row.held.items())
    )


def _peak(row: PolicyOutcome) -> ComparisonCell:
    where = f"step {step_number(row.peak_step):,}" if row.peak_step >= 0 else ""
    return ComparisonCell(percent(row.peak, row.peak_window) if row.peak_window else tokens(row.peak), where)


def _room(row: PolicyOutcome) -> ComparisonCell:
    if row.least_room is None:
        return ComparisonCell(DASH)
    # A cycle that had room left is stuck as its request became no smaller. Of one that is not listed the room is only
    # known where every cycle had some.
    is_room = row.least_room > 0 or (0 <= row.stuck < len(row.cycles) and row.cycles[row.stuck].room > 0)
    stuck = f"{'freed nothing' if is_room else 'made no room'} at cycle {row.stuck + 1:,}" if row.stuck >= 0 else ""
    return ComparisonCell(short(row.least_room) if row.least_room > 0 else "none", stuck, row.stuck >= 0)


def _cached(row: PolicyOutcome) -> ComparisonCell:
    reported = row.reported
    note = "" if reported is None else f"reported {percent(reported.read, reported.prompt, 1)}"
    return ComparisonCell(percent(row.costs.read, row.costs.prompt, 1), note)


def _summariser(row: PolicyOutcome) -> ComparisonCell:
    costs = row.costs
    if not costs.summariser_calls:
        return ComparisonCell(DASH)
    return ComparisonCell(short(costs.summariser_prompt), f"+ {short(costs.summariser_output)} written")


def _cost(row: PolicyOutcome) -> ComparisonCell:
    if row.costs.total is None:
        return ComparisonCell("unknown")
    reported = row.reported
    note = "" if reported is None or reported.total is None else f"reported {dollars(reported.total)}"
    return ComparisonCell(dollars(row.costs.total), note)


def _unpaid(row: PolicyOutcome) -> ComparisonCell:
    if row.costs.total is None:
        return ComparisonCell(DASH)
    note = f"net {dollars(row.saved - row.paid)} saved" if row.cycle_count else ""
    return ComparisonCell(tokens(row.unpaid), note, row.unpaid > 0)


def _requests(row: PolicyOutcome) -> ComparisonCell:
    losses = row.losses
    return ComparisonCell(f"{_least(losses)}{tokens(losses.requests_dropped)}", f"of {losses.requests:,}")


def _least(losses: Losses) -> str:
    """Before a number that may be larger: the file does not hold all that was removed."""
    return f"≥{NARROW}" if losses.is_least else ""


def _rules(row: PolicyOutcome) -> ComparisonCell:
    losses = row.losses
    if losses.rules <= 0:
        return ComparisonCell(DASH, "none stated" if losses.rules == 0 else "")
    return ComparisonCell(f"{_least(losses)}{tokens(losses.rules_gone)}", f"of {losses.rules:,}")


# A cell that is one expression is beside its column; what takes statements is a function above, named as the column.
COLUMNS = (
    PolicyColumn("compactions", "Compactions", "summaries or cuts made", lambda row: row.compactions, _compactions),
    PolicyColumn("overflows", "Overflows", "requests larger than the window", lambda row: row.overflows, _overflows),
    PolicyColumn(
        "near",
        "Near misses",
        f"times the request rose above {NEAR_MISS_SHARE:.0%} of the window",
        lambda row: row.near_misses,
        lambda row: ComparisonCell(tokens(row.near_misses)),
    ),
    PolicyColumn(
        "peak",
        "Peak",
        "the fullest request, as a share of its model's window",
        lambda row: row.peak / max(1, row.peak_window),
        _peak,
        lambda row: row.peak,
    ),
    PolicyColumn(
        "cost", "Cost", "of all calls, the summariser's included, at list prices", lambda row: row.costs.total, _cost
    ),
    PolicyColumn(
        "requests",
        "Requests gone",
        "messages of users that some later request did not have as they were",
        lambda row: row.losses.requests_dropped,
        _requests,
    ),
    PolicyColumn(
        "rules",
        "Rules gone",
        "sentences of users and the system with a word such as must or never, that are not in the last "
        "request as they were",
        lambda row: row.losses.rules_gone,
        _rules,
    ),
    PolicyColumn(
        "room",
        "Least room",
        "tokens between the request after a compaction and the threshold (of the recording: that of its agent's rule, "
        "or the window where none is known)",
        lambda row: row.least_room,
        _room,
    ),
    PolicyColumn(
        "prompt",
        "Prompt tokens",
        "of all calls",
        lambda row: row.costs.prompt,
        lambda row: ComparisonCell(short(row.costs.prompt), "recorded" if row.side == RECORDED else "modelled"),
    ),
    PolicyColumn(
        "cached", "From cache", "share of them that the provider's cache gave", lambda row: row.costs.read, _cached
    ),
    PolicyColumn(
        "uncached",
        "Not cached",
        "prompt tokens that the provider's cache did not hold",
        lambda row: row.costs.uncached,
        lambda row: ComparisonCell(short(row.costs.uncached)),
    ),
    PolicyColumn(
        "summariser",
        "Summariser",
        "tokens that the summariser read and wrote, estimated from sizes",
        lambda row: row.costs.summariser_prompt + row.costs.summariser_output,
        _summariser,
    ),
    PolicyColumn(
        "unpaid",
        "Never paid",
        "compactions that cost more than they saved, although no request would have been over the window without them",
        lambda row: row.unpaid if row.costs.total is not None else None,
        _unpaid,
    ),
    PolicyColumn(
        "parted",
        "Parted calls",
        "requests that have a tool call without its result, or a result without its call",
        lambda row: row.losses.parted_steps,
        lambda row: ComparisonCell(tokens(row.losses.parted_steps), "", row.losses.parted_steps > 0),
    ),
    PolicyColumn(
        "held",
        "Held",
        "steps at which it was due to compact but did not, or did so without effect",
        lambda row: sum(row.held.values()),
        _held,
    ),
)
VIEWS = {  # name in addresses: label, and the columns that a table shows at a time, as many as a desk has room for
    "": ("Outcome", ("compactions", "overflows", "near", "peak", "cost", "requests", "rules", "room")),
    "tokens": ("Tokens and cost", ("compactions", "cost", "prompt", "cached", "uncached", "summariser", "unpaid")),
    "odd": ("Irregularities", ("compactions", "overflows", "parted", "held")),
}
BY_KEY = {column.key: column for column in COLUMNS}


class Order(NamedTuple):
    """How the policies are ordered: by a column, or as they are listed (None)."""

    column: PolicyColumn | None = None
    descending: bool = False

    @classmethod
    def of(cls, text: str) -> Order:
        """The order that an address names; as listed for one that it does not know."""
        return cls(BY_KEY.get(text.removeprefix("-")), text.startswith("-"))


def view_of(name: str, order: Order) -> str:
    """The view that an address names; where it names none, the one that has the column of the order."""
    if name in VIEWS and (name or order.column is None):
        return name
    keys = (view for view, (_, keys) in VIEWS.items() if order.column is not None and order.column.key in keys)
    return next(keys, "")


def columns(view: str) -> list[PolicyColumn]:
    """The columns of one of VIEWS, in its order."""
    return [BY_KEY[key] for key in VIEWS[view][1]]


def headings(view: str, order: Order, address: Callable[[str], str]) -> list[dict[str, Any]]:
    """The heads of the columns as links: the smallest first, then the largest."""
    cells = []
    for column in columns(view):
        is_current = column is order.column
        turned = is_current and not order.descending
        state = ("descending" if order.descending else "ascending") if is_current else ""
        url = address(("-" if turned else "") + column.key)
        cells.append({"head": column.head, "help": column.help, "order": state, "url": url})
    return cells


def ordered(compared: PolicyComparison, order: Order) -> list[PolicyRow]:
    """The policies in the order that was asked for; those without a value last."""
    policies = [row for row in compared.rows if row.policy]
    if order.column is not None:
        policies.sort(key=lambda row: _rank(row, order))
    return policies


def rows(compared: PolicyComparison, policies: Sequence[PolicyRow], view: str, page: Frame) -> list[dict[str, Any]]:
    """The recording on top, then these policies, with the columns of a view."""
    recording = [row for row in compared.rows if not row.policy]
    return [_row(row, view, page) for row in (*recording, *policies)]


def _rank(row: PolicyRow, order: Order) -> tuple[bool, float]:
    """A key to sort by, with rows without a value last in both directions."""
    assert order.column is not None
    value = None if row.outcome is None else order.column.value(row.outcome)
    if not isinstance(value, int | float):
        return True, 0.0
    return False, -value if order.descending else value


def _row(row: PolicyRow, view: str, page: Frame) -> dict[str, Any]:
    choice = Choice(policy=row.policy, profile=row.profile, window=page.choice.window)
    context: dict[str, Any] = {
        "title": row.title,
        "url": page.paths["overview"] + choice.query(),  # of a policy its replay beside the recording
        "problem": row.problem,
        "is_recording": not row.policy,
        "about": row.policy and reverse("policy", args=[row.policy]),
    }
    if row.outcome is None:
        return context
    is_same = row.policy and row.outcome.divergence < 0
    notes = ["sends what was recorded" if is_same else rewrites_words(row.outcome), closest_words(row.outcome)]
    notes.append(summariser_words(row.outcome))
    cells = [
        {**cell._asdict(), "head": column.head, "wide": len(cell.note) > LONG_NOTE}
        for column in columns(view)
        for cell in (column.cell(row.outcome),)
    ]
    picture = None
    if row.trend is not None:
        steps = [cycle.step for cycle in row.outcome.cycles]
        picture = {
            **sparkline(row.trend).context,
            "words": words(row.trend, row.outcome.steps, row.outcome.peak, steps, row.outcome.peak_window),
        }
    return {**context, "cells": cells, "note": "; ".join(filter(None, notes)), "picture": picture}


def headline(compared: PolicyComparison) -> str:
    """What the comparison says first: who stays within the window, and who of those is the cheapest."""
    policies = [row for row in compared.rows if row.policy and row.outcome]
    # Where an answered prompt disproves the window none counts as an overflow, and some may be larger all the same.
    several = len(compared.windows) > 1
    fitting = [
        row
        for row in policies
        if row.outcome and not row.outcome.overflows and (several or row.outcome.peak <= compared.window)
    ]
    recording = next((row.outcome for row in compared.rows if not row.policy), None)
    if not policies or not any(row.outcome and row.outcome.steps for row in policies):
        return "This recording has no model call to compare."
    window = f"the window of {compared.window:,} tokens"
    if several:
        window = f"the window of its call ({len(compared.windows):,} windows)"
    if not fitting:
        return f"None of {counted(len(policies), 'replay')} keeps every request within {window}."
    best = min(fitting, key=lambda row: _price(row.outcome))
    assert best.outcome is not None
    cost = best.outcome.costs
    is_priced = cost.total is not None
    by = dollars(cost.total) if cost.total is not None else f"{short(cost.prompt)} prompt tokens"
    text = (
        f"{len(fitting):,} of {counted(len(policies), 'replay')} keep every request within {window}; of these "
        f"{best.title} {'costs' if is_priced else 'sends'} least, {by} (modelled)"
    )
    if recording is None:
        return f"{text}."
    own = recording.costs
    theirs = dollars(own.total) if own.total is not None else f"{short(own.prompt)}"
    return f"{text}. The recording: {theirs}, with its cache modelled alike."


def _price(row: PolicyOutcome | None) -> tuple[bool, int]:
    """A key to sort by: the cost; where it is unknown, after all others, the prompt tokens."""
    assert row is not None
    total = row.costs.total
    return total is None, row.costs.prompt if total is None else total


def floor(compared: PolicyComparison, page: Frame) -> dict[str, Any] | None:
    """What clearing tool results alone would free, cycle by cycle."""
    if not compared.floor:
        return None
    last = compared.floor[-1]
    return {
        "limit": tokens(last.limit),
        "share": f"{NEAR_MISS_SHARE:.0%}",
        "cycles": [_cycle(number, cycle, page) for number, cycle in enumerate(compared.floor[:SHOWN_CYCLES], 1)],
        "more": max(0, len(compared.floor) - SHOWN_CYCLES),
        "stuck": {"step": f"{step_number(last.step):,}", "url": page.step_url(last.step)} if last.is_stuck else None,
    }


def _cycle(number: int, cycle: Cycle, page: Frame) -> dict[str, Any]:
    return {
        "number": number,
        "step": f"{step_number(cycle.step):,}",
        "url": page.step_url(cycle.step),
        "before": tokens(cycle.before),
        "after": tokens(cycle.after),
        "freed": percent(max(0, cycle.before - cycle.after), cycle.before),
        "room": signed(cycle.room) if cycle.room <= 0 else tokens(cycle.room),
    }


def sheet(compared: PolicyComparison) -> list[list[Value]]:
    """The table for a spreadsheet: plain values, money in US dollars."""
    lines: list[list[Value]] = [["policy", "profile", *(column.key for column in COLUMNS), "remark"]]
    doubt = f"figures of tokens are {compared.counted_in}" if compared.counted_in else ""
    for row in compared.rows:
        values = [None] * len(COLUMNS) if row.outcome is None else [_plain(column, row.outcome) for column in COLUMNS]
        lines.append([row.policy or "recording", row.profile, *values, row.problem or doubt])
    return lines


def _plain(column: PolicyColumn, row: PolicyOutcome) -> Value:
    """The value of a column in the sheet, where costs are in US dollars."""
    value = (column.downloaded or column.value)(row)
    return value / UNIT / 1_000_000 if column.key == "cost" and isinstance(value, int) else value


def plain(compared: PolicyComparison) -> dict[str, Any]:
    """The comparison as plain values; steps count from 0, money is in the unit that `money` names, null where a price
    is not known."""
    rows = []
    for row in compared.rows:
        names = {"policy": row.policy, "profile": row.profile, "title": row.title}
        outcome = None if row.outcome is None else outcome_values(row.outcome)
        rows.append({**names, "outcome": outcome, "problem": row.problem})
    values: dict[str, Any] = msgspec.to_builtins(msgspec.structs.replace(compared, rows=()))
    counted_in = compared.counted_in or "tokens"
    return {**values, "money": MONEY, "counted_in": counted_in, "rows": msgspec.to_builtins(rows)}
