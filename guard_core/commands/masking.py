"""`masking FILE`: the published costs of the Complexity Trap explained, and what masking saves predicted from turns."""

from __future__ import annotations

import argparse

import msgspec

from guard_core import cli
from guard_core.errors import GuardError
from guard_core.outcomes.masking import OBSERVATION_SHARE, PLACEHOLDER_TOKENS, prices_of, read_runs, savings

HELP = "predict from the turns of published runs what masking observations saves"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of this command."""
    parser.add_argument(
        "file",
        metavar="FILE",
        help="the table of instance costs published with arXiv 2508.21433 (experiment_instance_costs_sweagent.csv)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Print both tables; 2 and one sentence for a file that is none of them."""
    return cli.guarded(lambda: _run(args))


def _run(args: argparse.Namespace) -> int:
    try:
        runs = read_runs(args.file)
    except OSError as error:
        raise GuardError(f"{args.file}: {error.strerror or 'cannot be read'}") from error
    results = savings(runs)
    prices = [price for item in runs if (price := prices_of(item)) is not None]
    if args.json:
        rows = [{**msgspec.structs.asdict(item), "error": round(item.error, 4)} for item in results]
        cli.print_json({"savings": rows, "prices": prices})
        return 0
    saving_rows = [
        (
            item.experiment,
            item.instances,
            f"{item.turns:.1f} → {item.masked_turns:.1f}",
            f"{item.fixed:,.0f} + {item.growth:,.0f} a turn",
            f"{100 * item.predicted:.1f} %",
            f"{100 * item.published:.1f} %",
            f"{100 * item.error:+.1f}",
            f"{100 * item.cost:.1f} %",
        )
        for item in results
    ]
    price_rows = [
        (item.experiment, f"{item.prompt:.3f}", f"{item.completion:.3f}", f"{item.fit:.4f}") for item in prices
    ]
    head = ("without masking", "runs", "turns", "request", "predicted", "published", "error", "cost, published")
    print("prompt tokens that masking saves in all, predicted from the turns of the runs without it\n")
    print(cli.table(head, saving_rows, left=1))
    print(
        f"\nassumed: the same turns, observations are {100 * OBSERVATION_SHARE:.1f} % of what a turn adds, and "
        f"a masked one leaves {PLACEHOLDER_TOKENS} tokens; errors in percentage points\n"
    )
    print("US$ for a million tokens that explain the costs best (R²: 1 is exactly)\n")
    print(cli.table(("experiment", "prompt", "completion", "R²"), price_rows, left=1))
    return 0
