"""`context FILE`: what fills the context at a step and over the session, by class, message and tool."""

from __future__ import annotations

import argparse

from guard_core import cli
from guard_core.cli import plain
from guard_core.context.changes import CacheBreak, RequestChanges
from guard_core.context.growth import LargestGrowth
from guard_core.context.report import ContextReport, context_report
from guard_core.defaults import CACHE_LEAST
from guard_core.errors import GuardError
from guard_core.findings import Facts
from guard_core.findings.words import counted
from guard_core.replay import replay
from guard_core.summaries.sizes import get_summarizer
from guard_core.windows.prices import UNIT

HELP = "say what fills the context at a step: by class, message and tool, and what changed since the call before"

SHOWN = 12  # rows of a table; --json has more
MILLION = 1_000_000  # tokens


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of this command."""
    parser.add_argument("file", metavar="FILE", help="a recording of an agent session")
    parser.add_argument("--at", type=int, default=None, metavar="N", help="the step, from 1; default: the last")
    parser.add_argument("--policy", default=None, help=f"replay it under this policy: {cli.POLICY_NAME}")
    parser.add_argument("--profile", default=None, help=cli.PROFILE_HELP)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help=cli.SET_HELP)
    cli.add_session_arguments(parser)
    parser.add_argument("--json", action="store_true", help=f"print JSON; {cli.NUMBERING}")


def run(args: argparse.Namespace) -> int:
    """Print the context of one session; 2 and one sentence where that is not possible."""
    return cli.guarded(lambda: _run(args))


def _run(args: argparse.Namespace) -> int:
    if args.policy is None and (args.profile or args.set):
        raise GuardError("--profile and --set are settings of a policy: name one with --policy")
    if args.policy is not None:
        cli.make_policy(args)  # what is wrong with the settings is said before a long file is read
    session = cli.load(args.file, args.session)
    facts = Facts.of(session, cli.window_of(session, args.window), looks_up=False)
    count = facts.ledger.step_count
    if not count:
        raise GuardError("the session has no model call, so nothing was sent")
    at = count if args.at is None else args.at
    if not 1 <= at <= count:
        raise GuardError(f"there is no step {at}: the session has steps 1 to {count}")
    trace = None
    if args.policy is not None:
        summarizer = get_summarizer(args.summary, facts.ledger)
        policy = cli.make_policy(args, facts)
        trace = replay(facts.ledger, policy, window=facts.window.value, usage=facts.usage, summarizer=summarizer)
    report = context_report(session, facts, at - 1, trace)
    if args.json:
        fields = {name: getattr(report, name) for name in report.__struct_fields__}
        fields["tools"] = [
            {"name": name, **{field: getattr(use, field) for field in use.__struct_fields__}}
            for name, use in report.tools
        ]
        cli.print_json({"numbering": cli.NUMBERING, "file": args.file, "policy": args.policy, **fields})
    else:
        print(_text(report))
    return 0


# -- for people


def _text(report: ContextReport) -> str:
    lines = [f"step {report.step + 1:,}: {report.count:,} prompt tokens ({report.source})", ""]
    rows = [
        (plain(name)[:60], tokens, f"{100 * tokens / max(1, report.count):.1f} %")
        for name, tokens in zip(report.classes, report.now, strict=True)
        if tokens
    ]
    lines += [cli.table(("class", "tokens", "share"), rows, left=1), ""]
    if report.changes is not None:
        lines += [*_changes(report.changes), ""]
    repeats = report.repeats
    lines.append(
        f"held twice: {counted(repeats.held_twice, 'result')} ({repeats.repeated_tokens:,} tokens); called again with "
        f"another result: {repeats.called_again:,}; "
        f"edited since: {counted(len(repeats.stale), 'read')} ({repeats.stale_tokens:,} tokens)"
    )
    lines += [_growth(report.growth) if report.growth else "no request grew", ""]
    lines += _tools(report)
    if report.unused is not None:
        names = ", ".join(plain(name) for name in report.unused) or "none"
        lines.append(f"defined and never called: {names}")
    return "\n".join(lines)


def _changes(changes: RequestChanges) -> list[str]:
    parts = [
        f"{item.kind} {item.messages:,} ({max(item.before, item.after):,} tokens)"
        for item in changes.sums
        if item.messages
    ]
    return [f"since step {changes.step:,}: {', '.join(parts)}", _cache(changes.cache)]


def _cache(cache: CacheBreak) -> str:
    source = "modelled" if cache.read is None else "recorded"
    given = f"cached beginning: {cache.given:,} of {cache.previous:,} tokens of the request before ({source})"
    if cache.lost < CACHE_LEAST and cache.message is None:
        return given
    where = "" if cache.message is None else f", first difference at message {cache.message + 1:,}"
    price = "" if cache.cost is None else f", {dollars(cache.cost)} more than reading them from the cache"
    why = f" ({cache.why})" if cache.why else ""
    return f"{given}{where}; {cache.lost:,} sent anew{price}{why}"


def dollars(cost: int) -> str:
    """A price in the unit of `windows.prices` in US dollars."""
    return f"${cost / UNIT / MILLION:,.4f}"


def _growth(growth: LargestGrowth) -> str:
    words = f"largest growth: {growth.tokens:,} tokens before step {growth.step + 1:,}"
    if growth.reserve is None:
        return f"{words}; {growth.why_unknown}"
    fits = "fits into" if growth.fits else "is larger than"
    sum_ = f"{growth.window:,} − {growth.threshold:,}"
    return f"{words}; it {fits} the reserve of {growth.reserve:,} ({sum_}){growth.condition}"


def _tools(report: ContextReport) -> list[str]:
    rows = [
        (plain(name)[:40], use.calls, use.tokens, use.token_steps, use.median, use.p95, use.maximum)
        for name, use in report.tools[:SHOWN]
    ]
    if not rows:
        return ["no tool was called"]
    header = ("tool", "calls", "tokens", "token-steps", "median", "p95", "largest")
    more = len(report.tools) - SHOWN
    return [cli.table(header, rows, left=1), *([f"{more:,} more tools: --json lists all"] if more > 0 else []), ""]
