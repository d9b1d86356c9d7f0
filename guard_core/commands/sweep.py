"""`sweep PATH...`: replay sessions under a grid of settings, and recommend one with its evidence."""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from guard_core import cli
from guard_core.errors import GuardError, SettingError
from guard_core.findings.facts import Facts
from guard_core.outcomes.losses import stated_in
from guard_core.outcomes.words import dollars
from guard_core.plural import counted
from guard_core.recordings import read
from guard_core.recordings.reading.folders import sessions_in
from guard_core.sessions import Session
from guard_core.summaries.sizes import get_summarizer
from guard_core.sweep import (
    LOSSES,
    MEASURES,
    GridCell,
    Measure,
    Priced,
    SweepResult,
    conclusion_values,
    default_axes,
    failed,
    figure_values,
    fold_words,
    get_measure,
    grid,
    judged,
    money,
    parse_axis,
    session_cells,
)
from guard_core.version import __version__ as engine_version

HELP = "replay sessions under a grid of settings and recommend one"
FAILURES = ("overflow", "loop")
_MOST = 60  # settings printed; --json has all
_MOST_TRADE_OFFS = 12  # the same


class TitledSession(NamedTuple):
    """A session, what it is called, and the SHA-256 of the file that it came from."""

    session: Session
    title: str
    recording: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of this command."""
    parser.add_argument("files", nargs="+", metavar="PATH", help="recordings of agent sessions, or folders of them")
    cli.add_policy_arguments(parser)
    cli.add_session_arguments(parser)
    parser.add_argument(
        "--axis",
        action="append",
        default=[],
        metavar="NAME=VALUES",
        help="FROM:TO:STEP (100k:200k:10k) or a list; a setting, window, profile or policy; can be repeated",
    )
    parser.add_argument(
        "--figure",
        default="compactions",
        help=f"the figure to minimise among settings with equal overflows and loops, one of {', '.join(MEASURES)}; "
        "cost and requests replay every setting, which takes longer",
    )
    parser.add_argument("--json", action="store_true", help="print JSON; money in millionths of US$")
    parser.add_argument(
        "--fail-on", default="", help=f"exit with 1 if the recommended setting has {' or '.join(FAILURES)}"
    )


def run(args: argparse.Namespace) -> int:
    """Sweep; 1 where --fail-on says so, 2 for wrong arguments or files."""
    return cli.guarded(lambda: _run(args))


def _run(args: argparse.Namespace) -> int:
    wanted, by = cli.failing(args.fail_on, FAILURES), get_measure(args.figure)
    axes = _axes(args.axis, args.policy, args.profile or "")
    sessions = [named for path in args.files for named in _sessions(Path(path), args.session)]
    if not sessions:
        raise SettingError("no session with a model call in these files")
    windows = [] if "window" in axes else [cli.window_of(named.session, args.window) for named in sessions]
    result = judged(
        axes,
        [_cells(named.session, axes, args, by) for named in sessions],
        [len(named.session.calls) for named in sessions],
        by=by,
        recordings=[named.recording for named in sessions],
        titles=[named.title for named in sessions],
        assumed=[window.is_unsure for window in windows],
        disproved=[not window.judges_replays for window in windows],
    )
    if args.json:
        cli.print_json(report(result, args.policy, sessions))
    else:
        print(_text(result, len(sessions)))
    return 1 if failed(result, wanted) else 0


def _sessions(path: Path, wanted: str | None) -> Iterator[TitledSession]:
    """The session asked for, or all sessions of a file that have a model call; of a folder those of every file that can
    be read."""
    if path.is_dir():
        for file in sessions_in(path):
            try:
                yield from _sessions_of(file, wanted)
            except GuardError as error:
                print(cli.plain(f"{file}: {error} (left out)"), file=sys.stderr)
        return
    yield from _sessions_of(path, wanted)


def _sessions_of(file: Path, wanted: str | None) -> Iterator[TitledSession]:
    if wanted is not None:
        sessions = [cli.load(str(file), wanted)]
    else:
        try:
            sessions = [session for session in read(file).sessions if session.calls] or [cli.load(str(file))]
        except OSError as error:
            raise SettingError(f"{file}: {error.strerror or 'cannot be read'}") from error
    digest = _digest(file)
    for number, session in enumerate(sessions, 1):
        more = f" #{number}" if len(sessions) > 1 else ""
        yield TitledSession(session, cli.plain(session.title or f"{file.name}{more}")[:80], digest)


def _digest(file: Path) -> str:
    """A digest of the bytes of a recording; of a folder, of its path."""
    if file.is_dir():
        return hashlib.sha256(str(file).encode()).hexdigest()
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _axes(texts: list[str], policy: str, profile: str) -> dict[str, tuple[Any, ...]]:
    axes: dict[str, tuple[Any, ...]] = {}
    for text in texts:
        name, values = parse_axis(text)
        if name in axes:
            raise SettingError(f"the axis {name} is given twice")
        axes[name] = values
    return axes or default_axes(policy, profile)


def _cells(session: Session, axes: dict[str, tuple[Any, ...]], args: argparse.Namespace, by: Measure) -> list[GridCell]:
    window = cli.window_of(session, args.window)
    facts = Facts.of(session, window, looks_up=False)
    return session_cells(
        facts.ledger,
        grid(axes),
        window=window.value,
        policy=args.policy,
        settings=cli.policy_settings(args),
        usage=facts.usage,
        summarizer=get_summarizer(args.summary, facts.ledger),
        made_with=facts.made_with,
        priced=Priced.of(facts, stated_in(session.events, facts.ledger)) if by.priced else None,
        limits=facts.limits,
    )


def report(result: SweepResult, policy: str, sessions: list[TitledSession]) -> dict[str, Any]:
    """A sweep as plain values."""
    return {
        "policy": policy,
        "engine_version": engine_version,
        "axes": result.axes,
        "figure": result.by,
        "sessions": [named.session.source_id or named.session.title for named in sessions],
        **conclusion_values(result),
        "cells": [_cell(cell) for cell in result.cells],
    }


def _cell(cell: GridCell) -> dict[str, Any]:
    return {
        "settings": cell.values,
        "window": cell.window,
        "compactions": cell.compactions,
        "overflow_steps": cell.overflow_steps,
        "longest_loop": cell.longest_loop,
        "peak": cell.peak,
        "tokens_sent": cell.tokens_sent,
        "cost": money(cell.cost),
        **{name: getattr(cell, name) for name in LOSSES},
        "by_session": [figure_values(figures) for figures in cell.figures],
    }


def _priced_columns(cell: GridCell) -> tuple[object, ...]:
    """Cost and losses, which are computed only where the sweep is judged by one of them."""
    cost = "unknown" if cell.cost is None else dollars(cell.cost)
    return cost, *(getattr(cell, name) for name in LOSSES)


def _text(result: SweepResult, sessions: int) -> str:
    names = tuple(result.axes)
    shown = list(enumerate(result.cells))
    if len(shown) > _MOST:
        ranked = sorted(shown, key=lambda item: (item[1].overflow_steps, item[1].compactions, item[1].tokens_sent))
        shown = sorted(ranked[:_MOST])
    is_priced = MEASURES[result.by].priced
    rows = [
        (
            *(str(cell.values[name]) for name in names),
            cell.compactions,
            cell.overflow_steps,
            cell.longest_loop or None,
            cell.peak,
            cell.tokens_sent,
            *(_priced_columns(cell) if is_priced else ()),
            "<- recommended" if index == result.recommended else "",
        )
        for index, cell in shown
    ]
    more = ("cost", "requests dropped", "rules gone", "read again") if is_priced else ()
    header = (*names, "compactions", "overflows", "loop", "peak", "tokens sent", *more, "")
    count = ", ".join(
        (
            counted(len(result.cells), "setting"),
            counted(sessions, "session"),
            counted(sum(result.steps), "step"),
        )
    )
    if len(rows) < len(result.cells):
        count += f"; the best {len(rows)} are shown"
    return "\n".join([cli.table(header, rows), "", count, f"recommended: {result.evidence}", *_checks(result)])


def _checks(result: SweepResult) -> Iterator[str]:
    """The cross-over, and settings that trade overflows, price and loss."""
    for fold in result.folds:
        yield f"cross-over: {fold_words(result, fold)}"
    if not result.folds:
        yield "cross-over: not possible with one recording; how the setting does on others is not known"
    if len(result.trade_offs) > 1:
        shown = [
            ", ".join(f"{name}={value}" for name, value in result.cells[index].values.items())
            for index in result.trade_offs[:_MOST_TRADE_OFFS]
        ]
        left = len(result.trade_offs) - len(shown)
        more = f"; and {left:,} more, see --json" if left else ""
        yield f"trade-offs of overflows, price and loss: {'; '.join(shown)}{more}"
