"""`gate PATH...`: replay recordings under a policy, and fail on what must not happen, in continuous integration."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import msgspec

from guard_core import cli
from guard_core.errors import GuardError
from guard_core.gate import KINDS, CaseResult, Under, check_kinds, html, junit, read_baseline, run_corpus, worse
from guard_core.gate.baseline import baseline_of
from guard_core.gate.corpus import failed_words
from guard_core.gate.output import Failures, failure_words

HELP = "replay recordings under a policy and fail on what must not happen, in continuous integration"
SHOWN = 50  # sessions that fail, printed


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of this command."""
    parser.add_argument("paths", nargs="+", metavar="PATH", help="recordings of agent sessions, or folders of them")
    cli.add_policy_arguments(parser)
    parser.add_argument(
        "--window", type=cli.window_size, default=None, help="context window in tokens, of all sessions"
    )
    parser.add_argument("--summary", default="recorded", help="fixed:BYTES, share:LEVEL, recorded or mechanical")
    parser.add_argument(
        "--fail-on",
        default="overflow,loop",
        metavar="KINDS",
        help=f"kinds of findings to fail on, separated by commas, of {','.join(KINDS)}",
    )
    parser.add_argument("--baseline", metavar="FILE", help="fail only on what occurs more often than in this file")
    parser.add_argument("--write-baseline", metavar="FILE", help="write what occurs now, for later runs")
    parser.add_argument("--junit", metavar="FILE", help="write JUnit XML")
    parser.add_argument("--html", metavar="FILE", help="write one HTML page")
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    parser.add_argument(
        "--processes", type=int, default=None, metavar="N", help="processes at once; default: one per processor"
    )


def run(args: argparse.Namespace) -> int:
    """0 where nothing fails, 1 where a session does, 2 for wrong arguments and for files that cannot be read."""
    return cli.guarded(lambda: _run(args))


def _run(args: argparse.Namespace) -> int:
    kinds = check_kinds(args.fail_on)
    settings = dict(map(cli.pair, args.set))
    if args.profile:
        settings["profile"] = args.profile
    under = Under(args.policy, settings, args.window, args.summary)
    baseline = None if args.baseline is None else read_baseline(Path(args.baseline))
    results = run_corpus(map(Path, args.paths), under, args.processes)
    failures: Failures = {result.name: worse(result, kinds, baseline) for result in results}
    suite = " ".join([args.policy, *(f"{name}={value}" for name, value in settings.items())])
    if args.junit is not None:
        _write(args.junit, junit(results, failures, suite))
    if args.html is not None:
        _write(args.html, html(results, failures, suite, kinds).encode())
    if args.write_baseline is not None:
        _write(args.write_baseline, msgspec.json.format(msgspec.json.encode(baseline_of(results))) + b"\n")
    if args.json:
        cli.print_json({"fail_on": kinds, "failures": failures, "sessions": results})
    else:
        print(_text(results, failures))
    if any(result.problem for result in results):
        return 2
    return 1 if any(failures.values()) else 0


def _write(path: str, body: bytes) -> None:
    try:
        Path(path).write_bytes(body)
    except OSError as error:
        raise GuardError(f"{path}: {error.strerror or 'cannot be written'}") from error


def _text(results: list[CaseResult], failures: Failures) -> str:
    lines = []
    failed = [result for result in results if failures[result.name]]
    for result in failed[:SHOWN]:
        lines.append(f"FAILED {cli.plain(result.name)}: {failure_words(failures[result.name])}")
        lines += [f"  {cli.plain(words)}" for kind, words in result.sentences if kind in failures[result.name]]
    if len(failed) > SHOWN:
        lines.append(f"and {len(failed) - SHOWN:,} more")
    for result in results:
        if result.problem:
            print(cli.plain(f"{result.name}: {result.problem}"), file=sys.stderr)
    return "\n".join([*lines, failed_words(len(failed), results)])
