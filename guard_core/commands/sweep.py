"""`sweep FILE...`: replay sessions under a grid of settings, and recommend one with its evidence."""

from __future__ import annotations

import argparse
from typing import Any

import msgspec

from guard_core import cli
from guard_core.errors import SettingError
from guard_core.ledger import Ledger
from guard_core.recordings import read
from guard_core.sessions import Session
from guard_core.summaries.sizes import get_summarizer
from guard_core.sweep import Cell, SweepResult, default_axes, failed, judged, parse_axis, session_cells
from guard_core.version import __version__ as engine_version

HELP = "replay sessions under a grid of settings and recommend one"
FAILURES = ("overflow", "loop")
_MOST = 60  # settings printed; --json has all


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of this command."""
    parser.add_argument("files", nargs="+", metavar="FILE", help="recordings of agent sessions")
    cli.add_policy_arguments(parser)
    cli.add_session_arguments(parser)
    parser.add_argument(
        "--axis",
        action="append",
        default=[],
        metavar="NAME=VALUES",
        help="FROM:TO:STEP or a list; a setting, window, profile or policy; may be given several times",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--fail-on", default="", help=f"exit with 1 where the recommended setting has {' or '.join(FAILURES)}"
    )


def run(args: argparse.Namespace) -> int:
    """Sweep; 1 where --fail-on says so, 2 for wrong arguments or files."""
    return cli.guarded(lambda: _run(args))


def _run(args: argparse.Namespace) -> int:
    wanted = _failures(args.fail_on)
    axes = _axes(args.axis, args.policy, args.profile or "")
    sessions = [session for file in args.files for session in _sessions(file, args.session)]
    result = judged(axes, [_cells(session, axes, args) for session in sessions], [Ledger.of(s) for s in sessions])
    if args.json:
        cli.print_json(report(result, args.policy, sessions))
    else:
        print(_text(result, len(sessions)))
    return 1 if failed(result, wanted) else 0


def _sessions(file: str, wanted: str | None) -> list[Session]:
    """The session asked for, or all sessions of a file that have a model call."""
    if wanted is not None:
        return [cli.load(file, wanted)]
    try:
        found = [session for session in read(file).sessions if session.calls]
    except OSError as error:
        raise SettingError(f"{file}: {error.strerror or 'cannot be read'}") from error
    return found or [cli.load(file)]


def _axes(texts: list[str], policy: str, profile: str) -> dict[str, tuple[Any, ...]]:
    axes: dict[str, tuple[Any, ...]] = {}
    for text in texts:
        name, values = parse_axis(text)
        if name in axes:
            raise SettingError(f"the axis {name} is given twice")
        axes[name] = values
    return axes or default_axes(policy, profile)


def _cells(session: Session, axes: dict[str, tuple[Any, ...]], args: argparse.Namespace) -> list[Cell]:
    ledger, usage = cli.provider(session)
    settings = cli.policy_settings(args, session)
    return session_cells(
        ledger,
        axes,
        window=cli.window_of(session, args.window).value,
        policy=args.policy,
        settings=settings,
        usage=usage,
        summarizer=get_summarizer(args.summary, ledger),
    )


def _failures(text: str) -> list[str]:
    wanted = [word.strip() for word in text.split(",") if word.strip()]
    unknown = [word for word in wanted if word not in FAILURES]
    if unknown:
        raise SettingError(f"--fail-on takes {', '.join(FAILURES)}, not {unknown[0][:40]!r}")
    return wanted


def report(result: SweepResult, policy: str, sessions: list[Session]) -> dict[str, Any]:
    """A sweep as plain values."""
    return {
        "policy": policy,
        "engine_version": engine_version,
        "axes": result.axes,
        "sessions": [session.source_id or session.title for session in sessions],
        "steps": result.steps,
        "recommended": result.cells[result.recommended].values,
        "evidence": result.evidence,
        "cells": [_cell(cell) for cell in result.cells],
    }


def _cell(cell: Cell) -> dict[str, Any]:
    return {
        "settings": cell.values,
        "window": cell.window,
        "compactions": cell.compactions,
        "overflow_steps": cell.overflow_steps,
        "longest_loop": cell.longest_loop,
        "peak": cell.peak,
        "tokens_sent": cell.tokens_sent,
        "by_session": [msgspec.structs.asdict(figures) for figures in cell.figures],
    }


def _text(result: SweepResult, sessions: int) -> str:
    names = tuple(result.axes)
    shown = list(enumerate(result.cells))
    if len(shown) > _MOST:
        ranked = sorted(shown, key=lambda item: (item[1].overflow_steps, item[1].compactions, item[1].tokens_sent))
        shown = sorted(ranked[:_MOST])
    rows = [
        (
            *(str(cell.values[name]) for name in names),
            cell.compactions,
            cell.overflow_steps,
            cell.longest_loop or None,
            cell.peak,
            cell.tokens_sent,
            "<- recommended" if index == result.recommended else "",
        )
        for index, cell in shown
    ]
    header = (*names, "compactions", "overflows", "loop", "peak", "tokens sent", "")
    count = f"{len(result.cells):,} settings, {sessions:,} sessions, {sum(result.steps):,} steps"
    if len(rows) < len(result.cells):
        count += f"; the best {len(rows)} are shown"
    return f"{cli.table(header, rows)}\n\n{count}\nrecommended: {result.evidence}"
