"""`join TRANSCRIPT CAPTURE -o FILE`: a Claude Code transcript with the requests that were captured beside it."""

from __future__ import annotations

import argparse
from pathlib import Path

from guard_core import cli
from guard_core.errors import DamagedRecording, GuardError
from guard_core.recordings.formats.claude.joining import captured_calls, joined
from guard_core.recordings.reading.source import ByteSource

HELP = "write a Claude Code transcript together with the requests that were captured"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of this command."""
    parser.add_argument("transcript", metavar="TRANSCRIPT", help="a session file of Claude Code")
    parser.add_argument("capture", metavar="CAPTURE", nargs="+", help="what `capture` recorded, one file or several")
    parser.add_argument("-o", "--output", metavar="PATH", required=True, help="the file to write")


def run(args: argparse.Namespace) -> int:
    """Write the file and say how many answers have their request; 1 where none has, 2 where a file cannot be read."""
    return cli.guarded(lambda: _run(args))


def _run(args: argparse.Namespace) -> int:
    calls = []
    for path in args.capture:
        with ByteSource.open(path) as source:
            calls += captured_calls(line.obj for line in source.lines())
    try:
        with Path(args.transcript).open("rb") as transcript:
            result = joined(transcript, calls)
    except OSError as error:
        raise GuardError(f"{args.transcript}: {error.strerror or 'cannot be read'}") from error
    if not result.answers:
        raise DamagedRecording("no answer with an id is in the transcript: is it a session file of Claude Code?")
    words = f"{result.paired:,} of {result.answers:,} answers have their request now"
    if not result.paired:
        print(f"{words}: the files are of two sessions. Nothing was written.")
        return 1
    try:
        with Path(args.output).open("wb") as out:
            out.writelines(result.lines)
    except OSError as error:
        raise GuardError(f"{args.output}: {error.strerror or 'cannot be written'}") from error
    print(f"{words}.")
    return 0
