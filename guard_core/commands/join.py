"""`join RECORDING CAPTURE -o FILE`: an agent's own recording with the requests that were captured beside it."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path

from guard_core import cli
from guard_core.errors import DamagedRecording, GuardError
from guard_core.recordings import Recording
from guard_core.recordings.formats import native
from guard_core.recordings.formats.capture import joining
from guard_core.recordings.formats.capture.format import FORMAT as CAPTURE
from guard_core.recordings.formats.claude.joining import captured_calls, joined
from guard_core.recordings.formats.claude.transcript import FORMAT as CLAUDE
from guard_core.recordings.reading.source import ByteSource
from guard_core.sessions import Session

HELP = "merge captured requests into an agent's own recording"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of this command."""
    parser.add_argument("recording", metavar="RECORDING", help="the agent's own recording, a file or a folder")
    parser.add_argument("capture", metavar="CAPTURE", nargs="+", help="files that `capture` recorded")
    parser.add_argument("-o", "--output", metavar="PATH", required=True, help="the file to write")


def run(args: argparse.Namespace) -> int:
    """Write the file and say how many answers have their request; 1 where none has, 2 where a file cannot be read."""
    return cli.guarded(lambda: _run(args))


def _run(args: argparse.Namespace) -> int:
    recording = cli.read_noting(args.recording)
    lines, answers, paired = (_transcript if recording.format == CLAUDE.name else _sessions)(recording, args)
    if not answers:
        raise DamagedRecording("no answer of a model is in the recording")
    words = f"{paired:,} of {answers:,} answers have their request now"
    if not paired:
        print(f"{words}: the files are of two sessions. Nothing was written.")
        return 1
    try:
        with Path(args.output).open("wb") as out:
            out.writelines(lines)
    except OSError as error:
        raise GuardError(f"{args.output}: {error.strerror or 'cannot be written'}") from error
    print(f"{words}.")
    return 0


def _transcript(_: Recording, args: argparse.Namespace) -> tuple[Iterable[bytes], int, int]:
    """A transcript of Claude Code with each request in a line of its own, the answers and how many have theirs."""
    calls = []
    for path in args.capture:
        with ByteSource.open(path) as source:
            calls += captured_calls(line.obj for line in source.lines())
    with Path(args.recording).open("rb") as transcript:
        return joined(transcript, calls)


def _sessions(recording: Recording, args: argparse.Namespace) -> tuple[Iterable[bytes], int, int]:
    """The sessions of any other agent that were captured, as an export; their answers and how many have a request."""
    captured = [session for path in args.capture for session in _captured(path)]
    results = [joining.joined(session, captured) for session in recording.sessions]
    matched = [result for result in results if result.paired] or results
    lines = native.write_all(result.session for result in matched)
    return lines, sum(result.answers for result in matched), sum(result.paired for result in matched)


def _captured(path: str) -> Sequence[Session]:
    """The sessions of a capture. Raises DamagedRecording where the file is none."""
    recording = cli.read_noting(path)
    if recording.format != CAPTURE.name:
        raise DamagedRecording(f"not a capture: {path} is of the format {recording.format}")
    return recording.sessions
