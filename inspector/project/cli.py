"""The command line: `compaction-inspector [serve]`, and what `--help` lists beside it.

Only what runs the server loads Django.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

ENGINE = {  # commands of guard_core, with their HELP, which an agent that waits for its status line need not load
    "gate": "replay recordings under a policy and fail on what must not happen, in continuous integration",
    "report": "write a compaction report: one HTML file, JSON, Markdown, CSV or a badge",
    "verify": "check a report: its digest and sums, and with the recording every figure",
    "export": "write sessions in this program's own format, redacted if wanted",
}
STORED = {  # commands of inspector/management; an installed package has no manage.py
    "import": "read recordings, files or whole folders, into the data folder",
    "backup": "write everything stored to one file, while the server runs",
    "restore": "verify a backup, and restore it into the data folder",
    "move_to_postgres": "move everything stored from SQLite to an empty PostgreSQL database",
    "invite": "in team mode, print a link that works once: into a project, or to choose a new password",
}
COMMANDS = ("serve", "worker", "doctor", "watch", "statusline", "hooks", "keep", "capture")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the exit code. Refusals are one sentence on standard error and exit code 2."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given and given[0] in ENGINE:
        from guard_core.__main__ import main as engine  # with the command's own options, help and exit codes

        return engine(given)
    if given and given[0] in STORED:
        return _manage(given)
    if not given or given[0] not in (*COMMANDS, "-h", "--help", "--version"):
        given.insert(0, "serve")
    options = _parser().parse_args(given)
    if options.command in _CLIENTS:
        return _CLIENTS[options.command](options)
    os.umask(0o077)  # what is stored is for its owner alone
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "inspector.project.settings")
    if options.data_dir:
        os.environ["DATA_DIR"] = options.data_dir
    return _run(options)


def _manage(given: Sequence[str]) -> int:
    os.umask(0o077)  # as below
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "inspector.project.settings")
    from django.core.management import execute_from_command_line  # with the command's own options and help

    execute_from_command_line(["compaction-inspector", *given])  # refusals end the process with their exit code
    return 0


def _watch(options: argparse.Namespace) -> int:
    from inspector.watching.command import watch  # a client: neither Django nor a database is loaded

    if options.piped:
        from inspector.project.lifeline import end_with_parent  # only where a server has started it

        end_with_parent()
    try:
        return watch(options.paths, options.server, options.every, hours=options.hours, once=options.once, key=_key())
    except KeyboardInterrupt:
        return 0


def _statusline(options: argparse.Namespace) -> int:
    """An agent waits for this line: it has to come within a tenth of a second."""
    from inspector.beside.statusline import MOST_BYTES, status_line  # no more than this line needs

    print(status_line(sys.stdin.buffer.read(MOST_BYTES)))
    return 0


def _hooks(options: argparse.Namespace) -> int:
    import json  # as `keeping`, only for this command: an agent waits for its status line

    from inspector.beside.keeping import settings, this_command  # only for this command

    print(json.dumps(settings(this_command()), indent=2))
    return 0


def _keep(options: argparse.Namespace) -> int:
    """Exit code 1 at most: 2 would stop the agent's compaction."""
    from datetime import UTC, datetime  # as `keeping`, only for this command: an agent waits for it

    from inspector.beside.keeping import MOST_BYTES, folder_of_copies, keep  # only for this command

    folder = folder_of_copies()
    try:
        print(keep(sys.stdin.buffer.read(MOST_BYTES), folder, datetime.now(UTC)))
    except ValueError as error:
        print(error, file=sys.stderr)
    except OSError as error:
        print(f"No copy was kept: {error.strerror}: {error.filename or folder}", file=sys.stderr)
    else:
        return 0
    return 1


def _capture(options: argparse.Namespace) -> int:
    from inspector.capturing.command import capture, folder_of_captures  # the proxy's server, for no other command

    command = options.command_line[1:] if options.command_line[:1] == ["--"] else options.command_line
    if not command:
        print("Name an agent (claude, codex, gemini, opencode, pi, aider) or a command after --.", file=sys.stderr)
        return 2
    folder = folder_of_captures() if options.folder is None else options.folder
    try:
        return capture(command, folder, options.server, key=_key(), opens=options.open)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2


def _key() -> str:
    """The key of a server in team mode: as an option, other accounts of the machine would see it."""
    return os.environ.get("INSPECTOR_KEY", "").strip()


_CLIENTS = {"capture": _capture, "watch": _watch, "statusline": _statusline, "hooks": _hooks, "keep": _keep}


def _run(options: argparse.Namespace) -> int:
    # What follows needs the environment that the options have set, and is not loaded for --help and --version.
    from django.core.exceptions import ImproperlyConfigured
    from django.db import Error

    from inspector.data_folder.owner import CommandRefused
    from inspector.project import environment
    from inspector.project.serving import REFUSED, serve

    try:
        if options.command == "worker":
            from inspector.project import worker  # only where it is asked for

            return worker.main()
        if options.command == "doctor":
            from inspector.project.doctor import doctor  # only where it is asked for

            return doctor()
        port = environment.whole("PORT", 8000, 0, 65535) if options.port is None else options.port
        return serve(options.bind or environment.text("BIND", "127.0.0.1"), port)
    except (CommandRefused, ImproperlyConfigured) as error:
        print(error, file=sys.stderr)
    except Error as error:
        print(f"The database does not answer: {' '.join(str(error).split())}", file=sys.stderr)
    except OSError as error:
        print(f"The data folder cannot be used: {error.strerror}: {error.filename}", file=sys.stderr)
    return REFUSED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="compaction-inspector", description="Why was a session compacted?")
    parser.add_argument("--version", action="version", version=_version())
    commands = parser.add_subparsers(dest="command", required=True)
    serving = _command(commands, "serve", "serve the web application (the default command)")
    serving.add_argument("--port", type=_port, help="port to listen on (default: PORT, else 8000)")
    serving.add_argument("--bind", help="address to listen on (default: BIND, else 127.0.0.1)")
    working = _command(commands, "worker", "run another worker, for team mode with PostgreSQL (DATABASE_URL)")
    examining = _command(commands, "doctor", "explain what keeps this installation from working, or soon will")
    watching = _command(commands, "watch", "send sessions to a running server while their agents write them")
    watching.add_argument(
        "paths", nargs="*", help="files and folders (default: where known agents keep their sessions)"
    )
    watching.add_argument(
        "--server", default=_server(), help="address of the server (default: INSPECTOR_URL, else %(default)s)"
    )
    watching.add_argument("--every", type=_seconds, default=1.0, help="seconds between checks (default: %(default)s)")
    watching.add_argument(
        "--hours",
        type=_seconds,
        default=1.0,
        help="at first also send files that changed within this many hours (default: 1)",
    )
    watching.add_argument("--once", action="store_true", help="send what has changed, then stop")
    watching.add_argument("--piped", action="store_true", help=argparse.SUPPRESS)  # ends with the server
    _command(
        commands,
        "statusline",
        "print one line for Claude Code's status line, from the JSON that it writes to standard input",
    )
    _command(commands, "hooks", "print what Claude Code's settings.json needs for the status line and the hook")
    _command(
        commands,
        "keep",
        "copy the transcript that a hook's event on standard input names, before it is compacted (to COPIES_DIR)",
    )
    capturing = _command(commands, "capture", "run an agent and record what it actually sends to its model")
    capturing.add_argument(
        "--folder", type=Path, help="where to store the recording (default: CAPTURES_DIR, else a user folder)"
    )
    capturing.add_argument(
        "--server",
        default=_server(),
        help="server that shows the recording as it grows (default: INSPECTOR_URL, else %(default)s)",
    )
    capturing.add_argument("--open", action="store_true", help="open the session in a browser")
    capturing.add_argument(
        "command_line", nargs=argparse.REMAINDER, metavar="claude|codex|gemini|opencode|pi|aider|-- …"
    )
    for name, words in (ENGINE | STORED).items():
        commands.add_parser(name, help=words)
    for command in (serving, working, examining):
        command.add_argument("--data-dir", help="folder for all stored data (default: DATA_DIR, else a user folder)")
    return parser


def _command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], name: str, words: str
) -> argparse.ArgumentParser:
    """A command that `--help` lists with these words, and that begins its own help with them."""
    return commands.add_parser(name, help=words, description=f"{words[0].upper()}{words[1:]}.")


def _server() -> str:
    return os.environ.get("INSPECTOR_URL", "").strip() or "http://127.0.0.1:8000"


def _port(text: str) -> int:
    """The parser shows these words; where `int` fails, it would name this function."""
    if not (text.isascii() and text.isdigit() and int(text) <= 65535):
        raise argparse.ArgumentTypeError(f"{text!r} is not a port; use a number from 0 to 65535")
    return int(text)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1e6:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of 0 or more")
    return value


def _version() -> str:
    """The engine's version is that of the whole."""
    from guard_core import __version__  # not for every command

    return f"compaction-inspector {__version__}"


if __name__ == "__main__":
    sys.exit(main())
