"""`measure FILE...`: how well this engine forecasts recorded calls, and how estimators do on the same calls."""

from __future__ import annotations

import argparse
import sys
from typing import Any

import msgspec

from guard_core import cli
from guard_core.errors import GuardError
from guard_core.estimation.anchors import Anchors
from guard_core.estimation.attribution import Attribution, attribute
from guard_core.estimation.baseline_notes import baseline_notes
from guard_core.estimation.comparison import GIVENS, compare
from guard_core.estimation.forecast import forecast
from guard_core.estimation.measurement import Errors, interpolate
from guard_core.ledger import Ledger
from guard_core.recordings import read
from guard_core.sessions import Session
from guard_core.tokens.tokenizer import ENCODINGS, count_events

HELP = "forecast recorded calls from the past only and compare estimators on the same calls"


FORECAST_ROWS = {
    "1": "forecast 1 call ahead",
    "10": "forecast 10 calls ahead",
    "50": "forecast 50 calls ahead",
    "compaction": "first call after a compaction",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of this command."""
    parser.add_argument("files", nargs="+", metavar="FILE", help="recordings with token usage")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")


def run(args: argparse.Namespace) -> int:
    """Measure all sessions of all files; 2 and one sentence for each file that cannot be read or holds no session."""
    reports: list[dict[str, Any]] = []
    failed = 0
    for file in args.files:
        try:
            sessions = read(file).sessions
            if not sessions:
                raise GuardError("the file holds no session")
            reports += [_report(str(file), session) for session in sessions]
        except (GuardError, OSError) as error:
            failed = 2
            print(cli.plain(f"{file}: {error}"), file=sys.stderr)
    if args.json and (reports or not failed):
        print(msgspec.json.format(msgspec.json.encode(reports, order="deterministic")).decode())
    else:
        for report in reports:
            _print(report)
    return failed


def _report(file: str, session: Session) -> dict[str, Any]:
    ledger = Ledger.of(session)
    attribution, between = attribute(ledger), interpolate(ledger)
    measured = between.overall is not None
    return {
        "numbering": cli.NUMBERING,
        "file": file,
        "session": session.source_id or session.title,
        "calls": ledger.step_count,
        "reported_calls": int((ledger.steps["prompt_tokens"] > 0).sum()),
        "overhead": attribution.overhead,
        "tokens_per_byte": attribution.ratios,
        "forecast": forecast(ledger),
        "not_in_file": _not_in_file(ledger, attribution),
        "baselines": baseline_notes(ledger, attribution),
        "interpolation": between.overall,
        "interpolation_between": between.between,
        "interpolation_by_tokenizer": _by_tokenizer(session, ledger) if measured else {},
        "by_kind": between.by_kind,
        "by_method": between.by_method,
        "stretches": between.stretches,
        "estimators": compare(session, ledger) if measured else {},
    }


def _not_in_file(ledger: Ledger, attribution: Attribution) -> dict[str, Any]:
    """What the first prompt after a compaction holds beyond the file's messages, and where the figure is from."""
    known = Anchors.of(ledger, attribution).unrecorded
    return {
        "tokens": known.tokens,
        "share": known.share,
        "compactions": len(known.measured),
        "agent": ledger.agent,
        "source": known.source,
    }


def _by_tokenizer(session: Session, ledger: Ledger) -> dict[str, Errors | None]:
    """The interpolation with each tokenizer's counts as weights instead of lexical tokens."""
    counts = {name: count_events(session.events, name) for name in ENCODINGS}
    return {name: interpolate(ledger, weights, stretches=False).overall for name, weights in counts.items()}


def _print(report: dict[str, Any]) -> None:
    print(cli.plain(f"{report['file']}  {report['session']}"))
    if report["interpolation"] is None:
        print("  nothing to measure: the provider reported fewer than two calls\n")
        return
    print(
        f"  {report['reported_calls']:,} of {report['calls']:,} calls reported, overhead {report['overhead']:,} tokens"
    )
    missing = report["not_in_file"]
    if missing["tokens"]:
        print(f"  not in this file after a compaction: {missing['tokens']:,} tokens ({missing['source']})")
    for note in report["baselines"]:
        print(f"  note: {cli.plain(note)}")
    print(f"  {'':34}{'calls':>7}{'bias':>10}{'MAPE':>9}{'p95':>9}{'worst':>10}  at step (from 0)")
    for name, value in report["forecast"].items():
        _row(FORECAST_ROWS[name], value)
    _row("interpolation between known calls", report["interpolation"])
    for name, value in report["interpolation_by_tokenizer"].items():
        _row(f"  weighted by {name}", value)
    for name, value in report["by_kind"].items():
        _row(f"  after {name}", value)
    _row("whole stretches from the others", report["stretches"])
    for given in GIVENS:
        print(f"  {given}:")
        for name, values in report["estimators"].items():
            _row(f"  {name}", values.get(given))
    print()


def _row(label: str, value: Errors | None) -> None:
    if value is None:
        return
    numbers = f"{value.bias:>+10.2%}{value.mape:>9.2%}{value.p95:>9.2%}{value.worst:>+10.2%}"
    print(f"  {label:<34}{value.calls:>7,}{numbers}  {value.worst_step}")
