"""`conformance PATH...`: judge this engine by vector files of the original's recorded behaviour."""

from __future__ import annotations

import argparse
from pathlib import Path

from guard_core.cli import cell_text
from guard_core.commands.inspect import plain
from guard_core.conformance import Outcome, check_paths

HELP = "compare this engine with recorded vectors, figure by figure"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of this command."""
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="vector files, or folders of them")
    parser.add_argument("--quiet", action="store_true", help="print differences only")


def run(args: argparse.Namespace) -> int:
    """0 where all is equal, 1 at any difference, 2 where a file cannot be judged and nothing else differs."""
    files = figures = differences = problems = 0
    for outcome in check_paths(args.paths):
        files += 1
        figures += sum(verdict.figures for verdict in outcome.verdicts)
        differences += sum(verdict.difference is not None for verdict in outcome.verdicts)
        problems += bool(outcome.problem)
        for line in _lines(outcome, quiet=args.quiet):
            print(line)
    verdict = "all equal" if not differences + problems else f"{differences} differences, {problems} files not judged"
    print(f"{cell_text(files)} files, {cell_text(figures)} figures: {verdict}")
    return 1 if differences else 2 if problems else 0


def _lines(outcome: Outcome, *, quiet: bool) -> list[str]:
    name = plain(str(outcome.path))
    if outcome.problem:
        return [f"{name}: {plain(outcome.problem)}"]
    return [
        f"{name} {plain(verdict.profile)}: {'equal' if verdict.difference is None else plain(str(verdict.difference))}"
        for verdict in outcome.verdicts
        if verdict.difference is not None or not quiet
    ]
