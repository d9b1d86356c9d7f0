"""What the commands share: choosing a session, reading settings, printing tables and JSON."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from guard_core.errors import GuardError, SettingError
from guard_core.findings.facts import Facts
from guard_core.plain_text import plain as plain
from guard_core.plain_text import plain_lines
from guard_core.plural import counted
from guard_core.policies import DEFAULT_POLICY, get_policy, policy_kind
from guard_core.policies.base import Policy
from guard_core.recordings import Recording, read
from guard_core.sessions import Provenance, Session, Sourced
from guard_core.views import plain_values
from guard_core.windows.window import parse_window
from guard_core.windows.window_evidence import WindowJudgement, judge_session

# What every command says of its numbers: fields are indices, as in the engine; sentences are for people.
SHOWN_PROBLEMS = 3  # of a damaged recording, on standard error
NUMBERING = "steps, messages and compactions count from 0 in fields, from 1 in sentences"
POLICY_NAME = "a name that the command `policies` lists"
PROFILE_HELP = "version of the policy, one that `policies NAME` lists"
SET_HELP = "change one setting of the policy, one that `policies NAME` lists"


def add_policy_arguments(parser: argparse.ArgumentParser) -> None:
    """Policy, profile, window, settings and the size of summaries."""
    parser.add_argument("--policy", default=DEFAULT_POLICY, help=f"{POLICY_NAME} (default: %(default)s)")
    parser.add_argument("--profile", default=None, help=PROFILE_HELP)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help=SET_HELP)


def add_session_arguments(parser: argparse.ArgumentParser) -> None:
    """Which session of a file, its window and how long summaries are."""
    parser.add_argument(
        "--window", type=window_size, default=None, help="context window in tokens, such as 200000 or 200k"
    )
    parser.add_argument(
        "--session",
        default=None,
        help="id or number (from 1) of a session in the file; default: the one with most calls",
    )
    parser.add_argument(
        "--summary",
        default="recorded",
        help="size of summaries in a replay: recorded, fixed:BYTES, share:low, share:nominal, share:high or mechanical",
    )


def add_redaction_arguments(parser: argparse.ArgumentParser) -> None:
    """What is hidden in a file that is written."""
    parser.add_argument("--redact", action="store_true", help="hide keys, passwords, e-mail addresses, account names …")
    parser.add_argument(
        "--hide",
        action="append",
        default=[],
        metavar="TEXT",
        help="hide this text, too; * is any run of letters and digits",
    )


def window_size(text: str) -> int:
    """A window as typed: a number of tokens, with k or M if wanted."""
    try:
        return parse_window(text)
    except SettingError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def make_policy(args: argparse.Namespace, facts: Facts | None = None) -> Policy:
    """The policy that the arguments name. What a recording gives is used unless something else is typed."""
    given = policy_settings(args)
    return get_policy(args.policy, **(given if facts is None else facts.made_with(policy_kind(args.policy), given)))


def policy_settings(args: argparse.Namespace) -> dict[str, Any]:
    """The settings of the policy that the arguments name, as they are typed."""
    kind = policy_kind(args.policy)
    given = {kind.setting(name).name: value for name, value in (pair(text) for text in args.set)}
    return {**({"profile": args.profile} if args.profile else {}), **given}


def pair(text: str) -> tuple[str, str]:
    """KEY=VALUE as two texts. What follows a colon in a key is the name of a model, kept as it is."""
    name, sign, value = text.partition("=")
    if not sign or not name.strip():
        raise SettingError(f"a setting is written KEY=VALUE, not {text[:40]!r}")
    key, colon, model = name.strip().partition(":")
    return f"{key.replace('-', '_')}{colon}{model}", value


def choose(sessions: Sequence[Session], wanted: str | None) -> Session:
    """The session with most model calls, or the one asked for by id or number. Raises GuardError."""
    if not sessions:
        raise GuardError("the file holds no session")
    if wanted is None:
        return max(sessions, key=lambda session: len(session.calls))
    for session in sessions:
        if session.source_id == wanted:
            return session
    if wanted.isascii() and wanted.isdigit() and 1 <= int(wanted) <= len(sessions):
        return sessions[int(wanted) - 1]
    raise GuardError(f"the file has {len(sessions)} sessions and none is called {wanted[:40]!r}")


def read_noting(path: str) -> Recording:
    """Read a recording; what could not be read of it is said on standard error. Raises GuardError, also for a
    file that cannot be opened."""
    try:
        recording = read(path)
    except OSError as error:
        raise GuardError(error.strerror or "cannot be read") from error
    for problem in recording.notes.problems[:SHOWN_PROBLEMS]:
        line = "" if problem.line is None else f"line {problem.line}: "
        print(plain(f"{path}: {line}{problem.message}"), file=sys.stderr)
    if (more := recording.notes.problem_count - SHOWN_PROBLEMS) > 0:
        print(plain(f"{path}: {counted(more, 'more problem')}; `inspect` lists them"), file=sys.stderr)
    return recording


def chosen(sessions: Sequence[Session], wanted: str | None) -> Sequence[Session]:
    """The session asked for by id or number (from 1); all of them where none is. Raises GuardError."""
    return sessions if wanted is None and sessions else [choose(sessions, wanted)]


def load(path: str, wanted: str | None = None) -> Session:
    """One session of a file. Raises as `read_noting`."""
    return choose(read_noting(path).sessions, wanted)


def window_of(session: Session, asked: int | None) -> WindowJudgement:
    """The window to replay with, where it comes from, and what the recording says of it."""
    return judge_session(session, Sourced(asked, Provenance.USER, "given by --window") if asked is not None else None)


def failing(text: str, known: Sequence[str]) -> list[str]:
    """What `--fail-on` names, separated by commas. Raises SettingError for what is not known."""
    wanted = [word.strip() for word in text.split(",") if word.strip()]
    if unknown := [word for word in wanted if word not in known]:
        raise SettingError(f"--fail-on takes {', '.join(known)}, not {unknown[0][:40]!r}")
    return wanted


def guarded(work: Callable[[], int]) -> int:
    """Run a command; an expected error is one sentence on stderr and exit code 2."""
    try:
        return work()
    except GuardError as error:
        print(plain_lines(str(error)), file=sys.stderr)
        return 2


def print_json(value: Any) -> None:
    """A value as indented JSON."""
    print(msgspec.json.format(msgspec.json.encode(value, enc_hook=plain_values)).decode())


def table(header: Sequence[str], rows: Sequence[Sequence[Any]], left: int = 0) -> str:
    """Columns of text, numbers to the right; the first `left` columns to the left."""
    cells = [[cell_text(cell) for cell in row] for row in (header, *rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    lines = [
        "  ".join(
            text.ljust(width) if column < left else text.rjust(width)
            for column, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]
    return "\n".join(lines)


def cell_text(value: Any) -> str:
    """A value in a table: thousands separated, three decimals, nothing for None, yes or no."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else ""
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.3f}" if isinstance(value, float) else str(value)
