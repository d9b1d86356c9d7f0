"""`verify REPORT [RECORDING]`: does a report say what its recording gives: digest, sums and every figure again."""

from __future__ import annotations

import argparse
from pathlib import Path

from guard_core import cli
from guard_core.errors import GuardError
from guard_core.report import verify_document
from guard_core.report.document import schema_of
from guard_core.report.tables import SCHEMA
from guard_core.version import __version__

HELP = "check a report: its digest and sums, and with the recording every figure"
SHOWN = 20  # differences


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of this command."""
    parser.add_argument("report", metavar="REPORT", help="a report in JSON")
    parser.add_argument("recording", metavar="RECORDING", nargs="?", help="the recording of which the report was made")


def run(args: argparse.Namespace) -> int:
    """0 where everything is equal, 1 with what differs, 2 where a file cannot be read."""
    return cli.guarded(lambda: _run(args))


def _run(args: argparse.Namespace) -> int:
    try:
        data = Path(args.report).read_bytes()
    except OSError as error:
        raise GuardError(f"{args.report}: {error.strerror or 'cannot be read'}") from error
    sessions = None if args.recording is None else cli.read_noting(args.recording).sessions
    checked = verify_document(data, sessions)
    differences = checked.differences
    if sessions is not None and not checked.is_of_this_engine:
        print(
            f"made by engine {cli.plain(checked.engine_version)}, this is engine {__version__}: figures and names are "
            "compared, sentences are not"
        )
    if not differences:
        parts = ["digest", *([] if schema_of(data) == SCHEMA else ["sums"])]
        parts += [] if sessions is None else ["every figure of the recording"]
        print(f"equal: {' and '.join((', '.join(parts[:-1]), parts[-1])) if parts[1:] else parts[0]}")
        return 0
    for difference in differences[:SHOWN]:
        print(cli.plain(str(difference)))
    if len(differences) > SHOWN:
        print(f"and {len(differences) - SHOWN:,} more")
    return 1
