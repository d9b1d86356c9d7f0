"""`replay FILE`: run a recorded session's log again under a policy, with every number of every step."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from typing import Any

from guard_core import cli
from guard_core.findings.facts import Facts
from guard_core.outcomes.outcome import sent_again
from guard_core.replay import replay
from guard_core.summaries.sizes import get_summarizer
from guard_core.trace import SWITCH, Column, Trace
from guard_core.windows.call_windows import CallWindow, WindowWarning, call_windows, windows_words
from guard_core.windows.window_evidence import WindowJudgement, other_windows

HELP = "replay a session under a policy"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of this command."""
    parser.add_argument("file", metavar="FILE", help="a recording of an agent session")
    cli.add_policy_arguments(parser)
    cli.add_session_arguments(parser)
    parser.add_argument("--json", action="store_true", help=f"print JSON with every step; {cli.NUMBERING}")


def run(args: argparse.Namespace) -> int:
    """Replay one session; 2 and one sentence where that is not possible."""
    return cli.guarded(lambda: _run(args))


def _run(args: argparse.Namespace) -> int:
    cli.make_policy(args)  # what is wrong with the settings is said before a long file is read
    session = cli.load(args.file, args.session)
    window = cli.window_of(session, args.window)
    facts = Facts.of(session, window, looks_up=False)
    policy = cli.make_policy(args, facts)
    summarizer = get_summarizer(args.summary, facts.ledger)
    trace = replay(facts.ledger, policy, window=window.value, usage=facts.usage, summarizer=summarizer)
    refused = len(facts.replay(trace).refused_again)
    windows = call_windows(other_windows(session), window.value)
    if args.json:
        cli.print_json({**report(trace, window, windows), "as_large_as_a_refused_request": refused})
    else:
        print(_text(trace, window, windows, refused))
    return 0


def report(trace: Trace, window: WindowJudgement, windows: Sequence[CallWindow]) -> dict[str, Any]:
    """A trace as plain values: settings, one object per step, one per compaction."""
    return {
        "numbering": cli.NUMBERING,
        "policy": trace.policy,
        "profile": trace.settings.get("profile"),
        "settings": trace.settings,
        "window": trace.window,
        "window_source": {"source": window.source, "status": window.status, "note": window.note},
        "windows": windows,
        "engine_version": trace.engine_version,
        "digest": trace.digest(),
        "notes": (*filter(None, [_disproved_words(window), windows_words(windows, WindowWarning.TRACE)]), *trace.notes),
        "steps": steps(trace),
        "compactions": trace.compactions,
    }


def steps(trace: Trace) -> list[dict[str, Any]]:
    """One object per step; null where there is no value."""
    columns = {column.name: _values(column, trace.columns[column.name].tolist()) for column in trace.all_columns}
    names = ("step", *columns)
    return [dict(zip(names, row, strict=True)) for row in zip(range(len(trace)), *columns.values(), strict=True)]


def _values(column: Column, values: list[Any]) -> list[Any]:
    if column.unit == SWITCH:
        return [bool(value) for value in values]
    if column.words:
        return [column.words[value] if column.words[value] not in ("", "none") else None for value in values]
    if column.real:
        return [None if math.isnan(value) else value for value in values]
    return values if column.none is None else [None if value == column.none else value for value in values]


_MOST = 60  # steps printed; --json has all


def _disproved_words(window: WindowJudgement) -> str:
    """That overflows are counted by a window that is not the real one; "" where nothing disproves it."""
    if not window.is_disproved:
        return ""
    return (
        f"Overflows are counted by {window.value:,} all the same: what such a window would mean, and not what happened."
    )


def _text(trace: Trace, window: WindowJudgement, windows: Sequence[CallWindow], refused: int) -> str:
    rows = steps(trace)
    interesting = [row for row in rows if row["fired"] or row["overflow"] or row["held"]]
    shown = rows if len(rows) <= _MOST else interesting[:_MOST]
    profile = trace.settings.get("profile") or "none"
    heads = {"step": "step from 0", **{item.name: item.label for item in trace.all_columns if item.label}}
    lines = [
        f"policy {trace.policy}, profile {profile}, summaries {trace.settings['summary']}",
        f"window {trace.window:,} tokens ({window.words})",
        *filter(None, [_disproved_words(window), windows_words(windows, WindowWarning.TRACE)]),
        *trace.notes,
        "",
        cli.table(tuple(heads.values()), [[row[name] for name in heads] for row in shown]),
    ]
    if len(shown) < len(rows):
        lines.append(f"{len(shown)} of {len(rows):,} steps shown: those that compact, overflow or are held")
    return "\n".join([*lines, "", _totals(trace, refused)])


def _totals(trace: Trace, refused: int) -> str:
    columns = trace.columns
    modelled = columns["modelled_prompt_tokens"]
    recorded = columns["recorded_prompt_tokens"]
    peak = int(modelled.max()) if len(trace) else 0
    again = sent_again(trace)
    overflows = int(columns["overflow"].sum()) - again
    more = f", {again:,} over the window, refused and sent again smaller" if again else ""
    more += f", {refused:,} more as large as a refused request" if refused else ""
    return "\n".join(
        [
            f"steps {len(trace):,}, compactions {len(trace.compactions):,}, overflows {overflows:,}{more}",
            f"prompt tokens: recorded {int(recorded[recorded > 0].sum()):,}, of this replay {int(modelled.sum()):,}, "
            f"largest {peak:,}",
            f"engine {trace.engine_version}, digest {trace.digest()}",
        ]
    )
