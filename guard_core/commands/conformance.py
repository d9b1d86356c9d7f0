"""`conformance PATH...`: judge this engine by vector files of the original's recorded behaviour."""

from __future__ import annotations

import argparse
from pathlib import Path

from guard_core.cli import cell_text, plain
from guard_core.conformance import LISTED, ConformanceVerdict, FileOutcome, check_paths

HELP = "compare this engine with recorded vectors, figure by figure"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of this command."""
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="vector files, or folders of them")
    parser.add_argument("--quiet", action="store_true", help="print only differences")


def run(args: argparse.Namespace) -> int:
    """0 where all is equal, 1 at any difference, 2 where a file cannot be judged and nothing else differs."""
    files = figures = differences = problems = 0
    for outcome in check_paths(args.paths):
        files += 1
        figures += sum(verdict.figures for verdict in outcome.verdicts)
        differences += sum(verdict.different for verdict in outcome.verdicts)
        problems += bool(outcome.problem) or any(verdict.problem for verdict in outcome.verdicts)
        for line in _lines(outcome, quiet=args.quiet):
            print(line)
    verdict = "all equal" if not differences + problems else f"{differences} differences, {problems} files not judged"
    print(f"{cell_text(files)} files, {cell_text(figures)} figures: {verdict}")
    return 1 if differences else 2 if problems else 0


def _lines(outcome: FileOutcome, *, quiet: bool) -> list[str]:
    name = plain(str(outcome.path))
    if outcome.problem:
        return [f"{name}: {plain(outcome.problem)}"]
    lines = []
    room = LISTED
    for verdict in outcome.verdicts:
        lines += _verdict(f"{name} {plain(verdict.profile)}", verdict, room, quiet=quiet)
        room -= min(room, len(verdict.differences))
    return lines


def _verdict(name: str, verdict: ConformanceVerdict, room: int, *, quiet: bool) -> list[str]:
    """The differences of one profile, as many as there is room for, and the number of the others."""
    if verdict.problem:
        return [f"{name}: not judged: {plain(verdict.problem)}"]
    if not verdict.different:
        return [] if quiet else [f"{name}: equal"]
    shown = [f"{name}: {plain(str(difference))}" for difference in verdict.differences[:room]]
    more = verdict.different - len(shown)
    return [*shown, f"{name}: {more} more differences"] if more else shown
