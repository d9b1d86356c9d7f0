"""`policies [NAME]`: the policies by group, with their profiles and settings as they are published."""

from __future__ import annotations

import argparse
from typing import Any

from guard_core import cli
from guard_core.policies import GROUPS, policy_kind
from guard_core.policies.settings import PolicyKind

HELP = "list policies, their profiles and settings"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of this command."""
    parser.add_argument("name", nargs="?", metavar="NAME", help="name of one policy (default: all)")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Print the policies; 2 for an unknown name."""
    return cli.guarded(lambda: _run(args))


def _run(args: argparse.Namespace) -> int:
    wanted = policy_kind(args.name) if args.name else None
    groups = {group: [kind for kind in kinds if wanted in (None, kind)] for group, kinds in GROUPS.items()}
    if args.json:
        cli.print_json([_described(kind, group) for group, kinds in groups.items() for kind in kinds])
    elif wanted is not None:
        print(_text(wanted))
    else:
        print("\n\n".join(block for group, kinds in groups.items() for block in (f"== {group} ==", *map(_text, kinds))))
    return 0


def _described(kind: PolicyKind, group: str) -> dict[str, Any]:
    return {
        "name": kind.name,
        "title": kind.title,
        "group": group,
        "help": kind.help,
        "profiles": kind.profiles,
        "settings": kind.settings,
        "known_problems": kind.known_problems,
    }


def _text(kind: PolicyKind) -> str:
    lines = [f"{kind.name}: {kind.help}"]
    lines += [f"  profile {profile.name}: {profile.help}" for profile in kind.profiles]
    if kind.settings:
        rows = [(item.name, item.default, item.unit or item.kind, item.allowed, item.help) for item in kind.settings]
        table = cli.table(("setting", "default", "unit", "allowed", "meaning"), rows, left=5)
        lines += ["", *(f"  {line}" for line in table.splitlines())]
    if kind.known_problems:
        lines += ["", *(f"  known problem: {item.name}. {item.help} ({item.source})" for item in kind.known_problems)]
    return "\n".join(lines)
