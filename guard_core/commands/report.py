"""`report FILE`: a compaction report to keep or to send: HTML in one file, JSON, Markdown, CSV or a badge."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec

from guard_core import cli
from guard_core.errors import GuardError, SettingError
from guard_core.redaction import Redactor, learn_session, own_patterns, redacted_report
from guard_core.report import LEVELS, Report, ReportOptions, badge, build, encode, markdown, page, sealed, sheet
from guard_core.report.levels import NUMBERS

HELP = "write a compaction report: one HTML file, JSON, Markdown, CSV or a badge"
FORMATS: dict[str, Callable[[Report], str]] = {
    "html": page,
    "json": lambda report: encode(report).decode(),
    "md": markdown,
    "csv": sheet,
    "svg": badge,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of this command."""
    parser.add_argument("file", metavar="FILE", help="a recording of an agent session")
    parser.add_argument("-o", "--output", metavar="PATH", help="the file to write; default: standard output")
    parser.add_argument("--format", choices=FORMATS, help="default: by the extension of the output, else html")
    parser.add_argument(
        "--level",
        choices=LEVELS,
        default=NUMBERS,
        help="numbers: no words of the session (default); names: its title and tools, too; text: also what users asked "
        "and summaries",
    )
    cli.add_redaction_arguments(parser)
    parser.add_argument("--title", default="", help="title of the report")
    parser.add_argument("--policy", default="", help=f"add a replay under this policy: {cli.POLICY_NAME}")
    parser.add_argument("--profile", default=None, help=cli.PROFILE_HELP)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help=cli.SET_HELP)
    parser.add_argument(
        "--compaction",
        type=int,
        action="append",
        metavar="N",
        help="show this compaction (from 1) in full; can be repeated",
    )
    cli.add_session_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Write the report; 2 and one sentence where that is not possible."""
    return cli.guarded(lambda: _run(args))


def _run(args: argparse.Namespace) -> int:
    render = FORMATS[args.format or _format_of(args.output)]
    options, hidden = _options(args), own_patterns(args.hide)
    session = cli.load(args.file, args.session)
    report = sealed(msgspec.structs.replace(build(session, options), title=args.title))
    if args.redact or args.hide:
        redactor = Redactor(hidden)
        learn_session(redactor, session)
        report = redacted_report(report, redactor)
    text = render(report)
    if args.output is None:
        sys.stdout.write(text)
        return 0
    try:
        Path(args.output).write_text(text, "utf-8", newline="")
    except OSError as error:
        raise GuardError(f"{args.output}: {error.strerror or 'cannot be written'}") from error
    return 0


def _format_of(output: str | None) -> str:
    """The format that the name of the output ends in, HTML without one. Raises SettingError."""
    ending = "html" if output is None else Path(output).suffix.lstrip(".").lower() or "html"
    if ending not in FORMATS:
        raise SettingError(f"no report is written as .{ending[:20]}; use --format with one of {', '.join(FORMATS)}")
    return ending


def _options(args: argparse.Namespace) -> ReportOptions:
    settings = dict(map(cli.pair, args.set))
    if args.profile:
        settings["profile"] = args.profile
    if settings and not args.policy:
        raise SettingError("--set and --profile need --policy")
    chosen = args.compaction
    if chosen and min(chosen) < 1:
        raise SettingError("compactions count from 1")
    return ReportOptions(
        policy=args.policy,
        settings=settings,
        summary=args.summary,
        window=args.window,
        chosen=None if chosen is None else tuple(number - 1 for number in chosen),
        level=args.level,
    )
