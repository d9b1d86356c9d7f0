"""`verify REPORT [RECORDING]`: does a report say what its recording gives: digest, sums and every figure again."""

from __future__ import annotations

import argparse
from pathlib import Path

from guard_core import cli
from guard_core.errors import GuardError
from guard_core.report import decode, tables, verify, verify_tables
from guard_core.report.document import schema_of

HELP = "check a report: its digest and sums, and with the recording every figure"
SHOWN = 20  # differences


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of this command."""
    parser.add_argument("report", metavar="REPORT", help="a report as JSON")
    parser.add_argument("recording", metavar="RECORDING", nargs="?", help="the recording that it was made of")


def run(args: argparse.Namespace) -> int:
    """0 where everything is equal, 1 with what differs, 2 where a file cannot be read."""
    return cli.guarded(lambda: _run(args))


def _run(args: argparse.Namespace) -> int:
    try:
        data = Path(args.report).read_bytes()
    except OSError as error:
        raise GuardError(f"{args.report}: {error.strerror or 'cannot be read'}") from error
    is_tables = schema_of(data) == tables.SCHEMA
    report = tables.decode_tables(data) if is_tables else decode(data)
    sessions = None if args.recording is None else cli.read_noting(args.recording).sessions
    if isinstance(report, tables.TableReport):
        differences = verify_tables(report, sessions)
    else:
        differences = verify(report, sessions)
    if not differences:
        against = "digest" if is_tables else "digest and sums" if sessions is None else "digest, sums"
        print(f"equal: {against}{'' if sessions is None else ' and every figure of the recording'}")
        return 0
    for difference in differences[:SHOWN]:
        print(cli.plain(str(difference)))
    if len(differences) > SHOWN:
        print(f"and {len(differences) - SHOWN:,} more")
    return 1
