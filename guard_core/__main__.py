"""`python -m guard_core COMMAND`: every module in `guard_core/commands` is a command."""

from __future__ import annotations

import argparse
import atexit
import gc
import importlib
import os
import pkgutil
import sys
from collections.abc import Sequence

from guard_core import commands
from guard_core.errors import GuardError
from guard_core.plain_text import plain_lines


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; its exit code."""
    parser = argparse.ArgumentParser(prog="guard_core", description="Inspect the context compaction of agent sessions.")
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    given = list(sys.argv[1:] if arguments is None else arguments)
    names = [module.name for module in pkgutil.iter_modules(commands.__path__)]
    for name in given[:1] if given and given[0] in names else names:  # one command starts without the others
        command = importlib.import_module(f"guard_core.commands.{name}")
        subparser = subparsers.add_parser(name, help=command.HELP, description=command.HELP)
        command.add_arguments(subparser)
        subparser.set_defaults(run=command.run)
    args = parser.parse_args(given)
    try:
        return int(args.run(args))
    except GuardError as error:
        print(plain_lines(str(error)), file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader, such as head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


if __name__ == "__main__":
    atexit.register(gc.freeze)  # else the end searches all modules for garbage: a fifth of a short command
    sys.exit(main())
