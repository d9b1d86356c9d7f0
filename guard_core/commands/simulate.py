"""`simulate [NAME | --all]`: run scenarios of the stress gallery under policies and profiles."""

from __future__ import annotations

import argparse
from pathlib import Path

import msgspec

from guard_core import cli
from guard_core.errors import SettingError
from guard_core.ledger import Ledger
from guard_core.policies import DEFAULT_POLICY, get_policy
from guard_core.policies.base import Policy
from guard_core.recordings.formats.native import write
from guard_core.simulator.flow import play
from guard_core.simulator.running import ScenarioResult, run_scenario
from guard_core.simulator.scenario import Scenario
from guard_core.simulator.scenarios import SCENARIOS, get_scenario
from guard_core.summaries.sizes import get_summarizer

HELP = "run scenarios of the stress gallery"
FAILURES = ("overflow", "loop", "asserts")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of this command."""
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="scenarios; if none is given, the names of all are listed"
    )
    parser.add_argument("--all", action="store_true", help="run all scenarios")
    parser.add_argument("--policy", action="append", default=None, help=f"{cli.POLICY_NAME}; can be repeated")
    parser.add_argument("--profile", action="append", default=None, help=f"{cli.PROFILE_HELP}; can be repeated")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help=cli.SET_HELP)
    parser.add_argument("--summary", default=None, help="fixed:BYTES, share:LEVEL or mechanical; default: 120 bytes")
    parser.add_argument(
        "--fail-on", default="", help=f"exit with 1 on any of these, separated by commas: {', '.join(FAILURES)}"
    )
    parser.add_argument(
        "--export", type=Path, default=None, metavar="FOLDER", help="also write the sessions into this folder"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Run scenarios; 1 where one fails in a way that --fail-on names, 2 for wrong arguments."""
    return cli.guarded(lambda: _run(args))


def _run(args: argparse.Namespace) -> int:
    if not args.names and not args.all:
        print("\n".join(SCENARIOS))
        return 0
    wanted = cli.failing(args.fail_on, FAILURES)
    scenarios = list(SCENARIOS.values()) if args.all else [get_scenario(name) for name in args.names]
    policies = _policies(args)
    empty = Ledger(events={}, steps={})
    summarizer = None if args.summary is None else get_summarizer(args.summary, empty)
    rows = [
        (label, run_scenario(scenario, policy, summarizer=summarizer))
        for scenario in scenarios
        for label, policy in policies
    ]
    if args.export is not None:
        _export(scenarios, args.export)
    if args.json:
        cli.print_json(
            [
                {"policy": label[0], "profile": label[1] or None, **msgspec.structs.asdict(result)}
                for label, result in rows
            ]
        )
    else:
        print(_text(rows))
    return 1 if any(_fails(result, wanted) for _, result in rows) else 0


def _export(scenarios: list[Scenario], folder: Path) -> None:
    """Write every simulation as a session that can be opened like a recording."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for scenario in scenarios:
            for number, simulation in enumerate(scenario.simulations, 1):
                name = scenario.name if len(scenario.simulations) == 1 else f"{scenario.name}_{number}"
                (folder / f"{name}.jsonl").write_bytes(write(play(simulation, title=name).session))
    except OSError as error:
        raise SettingError(f"{folder}: {error.strerror or 'cannot be written'}") from error


def _policies(args: argparse.Namespace) -> list[tuple[tuple[str, str], Policy]]:
    settings = dict(cli.pair(text) for text in args.set)
    policies = []
    for name in args.policy or [DEFAULT_POLICY]:
        for profile in args.profile or [None]:
            chosen = {"profile": profile} if profile else {}
            policy = get_policy(name, **chosen, **settings)
            policies.append(((name, getattr(policy.settings, "profile", "")), policy))
    return policies


def _fails(result: ScenarioResult, wanted: list[str]) -> bool:
    """Has a scenario one of the failures that `--fail-on` names."""
    return (
        ("overflow" in wanted and result.overflow_steps > 0)
        or ("loop" in wanted and result.loop_steps > 0)
        or ("asserts" in wanted and result.met is False)
    )


_HEADER = (
    "scenario",
    "policy",
    "profile",
    "window",
    "steps",
    "compactions",
    "injections",
    "peak",
    "overflows",
    "loop",
    "asserts",
)


def _text(rows: list[tuple[tuple[str, str], ScenarioResult]]) -> str:
    met = {True: "met", False: "not met", None: ""}
    cells = [
        (
            result.name,
            *label,
            result.window,
            result.steps,
            result.compactions,
            result.injections,
            result.peak,
            result.overflow_steps,
            result.longest_loop or None,
            met[result.met],
        )
        for label, result in rows
    ]
    overflows = sum(result.overflow_steps > 0 for _, result in rows)
    loops = sum(result.loop_steps > 0 for _, result in rows)
    totals = f"{len(rows)} runs: {overflows} with overflows, {loops} with loops"
    return f"{cli.table(_HEADER, cells, left=3)}\n\n{totals}"
