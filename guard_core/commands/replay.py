"""`replay FILE`: run a recorded session's log again under a policy, with every number of every step."""

from __future__ import annotations

import argparse
import math
from typing import Any

from guard_core import cli
from guard_core.replay import replay
from guard_core.summaries.sizes import get_summarizer
from guard_core.trace import CORRECTION_SOURCES, HELD_REASONS, PROMPT_SOURCES, Trace
from guard_core.window_evidence import WindowJudgement

HELP = "run a session again under a policy"

_NONE_BELOW_ZERO = frozenset(
    {"recorded_prompt_tokens", "modelled_prompt_tokens", "calibrated", "decision_tokens", "threshold", "real_as_of"}
)
_NONE_AT_ZERO = frozenset({"real_loaded", "last_heuristic_loaded"})
_SWITCHES = frozenset({"fired", "overflow"})
_WORDS = {
    "correction_source": CORRECTION_SOURCES,
    "prompt_tokens_source": PROMPT_SOURCES,
    "held": HELD_REASONS,
}


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
    policy = cli.make_policy(args)
    session = cli.load(args.file, args.session)
    window = cli.window_of(session, args.window)
    ledger, usage = cli.provider(session)
    summarizer = get_summarizer(args.summary, ledger)
    trace = replay(ledger, policy, window=window.value, usage=usage, summarizer=summarizer)
    if args.json:
        cli.print_json(report(trace, window))
    else:
        print(_text(trace, window))
    return 0


def report(trace: Trace, window: WindowJudgement) -> dict[str, Any]:
    """A trace as plain values: settings, one object per step, one per compaction."""
    return {
        "numbering": cli.NUMBERING,
        "policy": trace.policy,
        "profile": trace.settings.get("profile"),
        "settings": trace.settings,
        "window": trace.window,
        "window_source": {"source": window.source, "status": window.status, "note": window.note},
        "engine_version": trace.engine_version,
        "digest": trace.digest(),
        "notes": trace.notes,
        "steps": steps(trace),
        "compactions": trace.compactions,
    }


def steps(trace: Trace) -> list[dict[str, Any]]:
    """One object per step; null where there is no value."""
    columns = {name: _values(name, column.tolist()) for name, column in trace.columns.items()}
    names = ("step", *columns)
    return [dict(zip(names, row, strict=True)) for row in zip(range(len(trace)), *columns.values(), strict=True)]


def _values(name: str, values: list[Any]) -> list[Any]:
    if name in _SWITCHES:
        return [bool(value) for value in values]
    if name in _WORDS:
        words = _WORDS[name]
        return [words[value] if words[value] not in ("", "none") else None for value in values]
    if name in _NONE_BELOW_ZERO:
        return [None if value < 0 else value for value in values]
    if name in _NONE_AT_ZERO:
        return [value or None for value in values]
    return [None if isinstance(value, float) and math.isnan(value) else value for value in values]


_SHOWN = {
    "step": "step from 0",
    "contents_sent": "messages",
    "heuristic_decided": "heuristic",
    "recorded_prompt_tokens": "recorded",
    "modelled_prompt_tokens": "modelled",
    "correction": "factor",
    "decision_tokens": "decided on",
    "threshold": "threshold",
    "fired": "compacts",
    "overflow": "overflow",
    "held": "remark",
}
_MOST = 60  # steps printed; --json has all


def _text(trace: Trace, window: WindowJudgement) -> str:
    rows = steps(trace)
    interesting = [row for row in rows if row["fired"] or row["overflow"] or row["held"]]
    shown = rows if len(rows) <= _MOST else interesting[:_MOST]
    profile = trace.settings.get("profile") or "none"
    lines = [
        f"policy {trace.policy}, profile {profile}, summaries {trace.settings['summary']}",
        f"window {trace.window:,} tokens ({window.words})",
        *trace.notes,
        "",
        cli.table(tuple(_SHOWN.values()), [[row[name] for name in _SHOWN] for row in shown]),
    ]
    if len(shown) < len(rows):
        lines.append(f"{len(shown)} of {len(rows):,} steps shown: those that compact, overflow or are held")
    return "\n".join([*lines, "", _totals(trace)])


def _totals(trace: Trace) -> str:
    columns = trace.columns
    modelled = columns["modelled_prompt_tokens"]
    recorded = columns["recorded_prompt_tokens"]
    peak = int(modelled.max()) if len(trace) else 0
    overflows = int(columns["overflow"].sum())
    return "\n".join(
        [
            f"steps {len(trace):,}, compactions {len(trace.compactions):,}, overflows {overflows:,}",
            f"prompt tokens: recorded {int(recorded[recorded > 0].sum()):,}, of this replay {int(modelled.sum()):,}, "
            f"largest {peak:,}",
            f"engine {trace.engine_version}, digest {trace.digest()}",
        ]
    )
