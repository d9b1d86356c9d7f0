"""`export FILE`: the sessions of a recording in the project's own format; read again they are the same sessions."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from guard_core import cli
from guard_core.errors import GuardError
from guard_core.recordings.formats import native
from guard_core.redaction import Redactor, own_patterns, redacted_session

HELP = "write sessions in this program's own format, redacted if wanted"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of this command."""
    parser.add_argument("file", metavar="FILE", help="a recording of an agent session")
    parser.add_argument("-o", "--output", metavar="PATH", required=True, help="the file to write")
    parser.add_argument("--session", default=None, help="id or number (from 1) of one session; default: all")
    cli.add_redaction_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Write the file and print a digest for each session; 2 and one sentence where that is not possible."""
    return cli.guarded(lambda: _run(args))


def _run(args: argparse.Namespace) -> int:
    own = own_patterns(args.hide)
    sessions = list(cli.chosen(cli.read_noting(args.file).sessions, args.session))
    if args.redact or own:
        redactor = Redactor(own)
        sessions = [redacted_session(session, redactor) for session in sessions]
        hidden = ", ".join(f"{count:,} × {kind}" for kind, count in redactor.hidden.items())
        print(f"redacted: {hidden or 'nothing was found'}", file=sys.stderr)
    try:
        with Path(args.output).open("wb") as file:
            file.writelines(native.write_all(sessions))
    except OSError as error:
        raise GuardError(f"{args.output}: {error.strerror or 'cannot be written'}") from error
    for session in sessions:
        print(native.digest(session), cli.plain(session.title or session.source_id)[:60])
    return 0
