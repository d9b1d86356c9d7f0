"""`measure FILE...`: how well this engine predicts the calls of recordings, and how estimators do on the same calls."""

from __future__ import annotations

import argparse
import sys
from typing import Any

import msgspec

from guard_core.attribution import attribute
from guard_core.comparison import GIVENS, compare
from guard_core.errors import GuardError
from guard_core.ledger import Ledger
from guard_core.measurement import Errors, measure_session
from guard_core.recordings import read
from guard_core.sessions import Session
from guard_core.tokens.tokenizer import ENCODINGS, count_events

HELP = "predict every recorded call from the others and compare estimators on the same calls"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of this command."""
    parser.add_argument("files", nargs="+", metavar="FILE", help="recordings with token usage")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")


def run(args: argparse.Namespace) -> int:
    """Measure all sessions of all files; 1 when a file could not be read."""
    reports: list[dict[str, Any]] = []
    failed = 0
    for file in args.files:
        try:
            reports += [_report(str(file), session) for session in read(file).sessions]
        except (GuardError, OSError) as error:
            failed = 1
            print(f"{file}: {error}", file=sys.stderr)
    if args.json:
        print(msgspec.json.format(msgspec.json.encode(reports, order="deterministic")).decode())
    else:
        for report in reports:
            _print(report)
    return failed


def _report(file: str, session: Session) -> dict[str, Any]:
    ledger = Ledger.of(session)
    found = attribute(ledger)
    measured = measure_session(ledger)
    return {
        "file": file,
        "session": session.source_id or session.title,
        "calls": ledger.step_count,
        "reported_calls": int((ledger.steps["prompt_tokens"] > 0).sum()),
        "overhead": found.overhead,
        "tokens_per_byte": found.ratios,
        "leave_one_out": measured.overall,
        "leave_one_out_by_tokenizer": _by_tokenizer(session, ledger) if measured.overall else {},
        "by_kind": measured.by_kind,
        "by_method": measured.by_method,
        "stretches": measured.stretches,
        "estimators": compare(session, ledger) if measured.overall else {},
    }


def _by_tokenizer(session: Session, ledger: Ledger) -> dict[str, Errors | None]:
    """The same with each tokenizer's counts as weights instead of bytes."""
    counts = {name: count_events(session.events, name) for name in ENCODINGS}
    return {name: measure_session(ledger, weights).overall for name, weights in counts.items()}


def _print(report: dict[str, Any]) -> None:
    print(f"{report['file']}  {report['session']}")
    if report["leave_one_out"] is None:
        print("  nothing to measure: the provider reported fewer than two calls\n")
        return
    print(
        f"  {report['reported_calls']:,} of {report['calls']:,} calls reported, overhead {report['overhead']:,} tokens"
    )
    print(f"  {'':34}{'calls':>7}{'bias':>10}{'MAPE':>9}{'p95':>9}{'worst':>10}  at step")
    _row("every call from the others", report["leave_one_out"])
    for name, value in report["leave_one_out_by_tokenizer"].items():
        _row(f"  weighed by {name}", value)
    for name, value in report["by_kind"].items():
        _row(f"  after {name}", value)
    if report["stretches"]:
        _row("whole stretches from the others", report["stretches"])
    for given in GIVENS:
        print(f"  {given}:")
        for name, values in report["estimators"].items():
            if given in values:
                _row(f"  {name}", values[given])
    print()


def _row(label: str, value: Errors) -> None:
    numbers = f"{value.bias:>+10.2%}{value.mape:>9.2%}{value.p95:>9.2%}{value.worst:>+10.2%}"
    print(f"  {label:<34}{value.calls:>7,}{numbers}  {value.worst_step}")
