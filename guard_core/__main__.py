"""`python -m guard_core COMMAND`: every module in `guard_core/commands` is a command."""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import sys
from collections.abc import Sequence

from guard_core import commands


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; its exit code."""
    parser = argparse.ArgumentParser(prog="guard_core")
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for module in pkgutil.iter_modules(commands.__path__):
        command = importlib.import_module(f"guard_core.commands.{module.name}")
        subparser = subparsers.add_parser(module.name, help=command.HELP)
        command.add_arguments(subparser)
        subparser.set_defaults(run=command.run)
    args = parser.parse_args(arguments)
    return int(args.run(args))


if __name__ == "__main__":
    sys.exit(main())
