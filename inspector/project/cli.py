"""The command line: `compaction-inspector [serve]`, `compaction-inspector worker`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

COMMANDS = ("serve", "worker")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the exit code. Refusals are one sentence on standard error and exit code 2."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if not given or given[0] not in (*COMMANDS, "-h", "--help", "--version"):
        given.insert(0, "serve")
    options = _parser().parse_args(given)
    os.umask(0o077)  # what is stored is for its owner alone
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "inspector.project.settings")
    if options.data_dir:
        os.environ["DATA_DIR"] = options.data_dir
    return _run(options)


def _run(options: argparse.Namespace) -> int:
    # What follows needs the environment that the options have set, and is not loaded for --help and --version.
    from django.core.exceptions import ImproperlyConfigured
    from django.db import Error

    from inspector.data_folder.owner import Refused
    from inspector.project import environment
    from inspector.project.serving import REFUSED, serve

    try:
        if options.command == "worker":
            from inspector.project import worker

            return worker.main()
        port = environment.whole("PORT", 8000, 0, 65535) if options.port is None else options.port
        return serve(options.bind or environment.text("BIND", "127.0.0.1"), port)
    except (Refused, ImproperlyConfigured) as error:
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
    serving = commands.add_parser("serve", help="the web application (the default)")
    serving.add_argument("--port", type=_port, help="where to listen (default: PORT, else 8000)")
    serving.add_argument("--bind", help="address to listen on (default: 127.0.0.1)")
    working = commands.add_parser("worker", help="one more worker, for a team's PostgreSQL (DATABASE_URL)")
    for command in (serving, working):
        command.add_argument("--data-dir", help="where everything stored lives (default: DATA_DIR, else a user folder)")
    return parser


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) <= 65535):
        raise argparse.ArgumentTypeError(f"{text!r} is not a port; use a number from 0 to 65535")
    return int(text)


def _version() -> str:
    from guard_core import __version__  # not for every command

    return f"compaction-inspector {__version__}"


if __name__ == "__main__":
    sys.exit(main())
