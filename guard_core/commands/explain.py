"""`explain FILE`: the rule of the agent itself, what the recording proves of it, and each compaction beside both."""

from __future__ import annotations

import argparse
from typing import NamedTuple, Self

from guard_core import cli
from guard_core.cli import plain
from guard_core.estimation.attribution import attribute
from guard_core.findings import Facts
from guard_core.findings.gaps import ResultClearing, clearing_words, clearings
from guard_core.findings.words import steps_words
from guard_core.ledger import Ledger
from guard_core.rules import Explanation, Interval, Moment, OwnRule, explain, report
from guard_core.rules.counters import COUNTED
from guard_core.rules.words import headline, reason_words
from guard_core.sessions import Provenance, Session, Sourced
from guard_core.windows.window_evidence import judge_session

HELP = "say by which rule the agent that wrote a recording compacted, and what the recording proves about its threshold"

SHOWN = 40  # compactions in the table
NAMED = 3  # hypotheses in a line


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of this command."""
    parser.add_argument("file", metavar="FILE", help="a recording of an agent session")
    parser.add_argument("--session", default=None, help="id or number (from 1) of one session; default: all")
    parser.add_argument("--window", type=cli.window_size, default=None, help="window of the main model in tokens")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a setting of the agent's rule, by its name here or in the agent's configuration",
    )
    parser.add_argument("--json", action="store_true", help=f"print JSON; {cli.NUMBERING}")


def run(args: argparse.Namespace) -> int:
    """Print an explanation per session; 2 and one sentence where the file cannot be read."""
    return cli.guarded(lambda: _run(args))


def _run(args: argparse.Namespace) -> int:
    sessions = cli.chosen(cli.read_noting(args.file).sessions, args.session)
    typed = dict(map(cli.pair, args.set))
    window = None if args.window is None else Sourced(args.window, Provenance.USER, "given by --window")
    shown = [_ExplainedSession.of(item, window, typed) for item in sessions]
    if args.json:
        reports = [
            {**report(item.session, item.explanation), "cleared": [one._asdict() for one in item.clearings]}
            for item in shown
        ]
        cli.print_json({"numbering": cli.NUMBERING, "file": args.file, "sessions": reports})
    else:
        print("\n\n".join(map(_text, shown)))
    return 0


class _ExplainedSession(NamedTuple):
    """A session with its explanation, and what its requests alone show to be cleared."""

    session: Session
    explanation: Explanation
    clearings: tuple[ResultClearing, ...]

    @classmethod
    def of(cls, session: Session, window: Sourced | None, typed: dict[str, str]) -> Self:
        ledger = Ledger.of(session)
        facts = Facts(session, ledger, attribute(ledger), judge_session(session), ())
        return cls(session, explain(session, ledger, window=window, typed=typed), clearings(facts))


# -- for people


def _text(shown: _ExplainedSession) -> str:
    session, explanation = shown.session, shown.explanation
    name = plain(session.title or session.source_id or "session")[:60]
    lines = [f"{name}: {plain(headline(explanation))}"]
    if explanation.rule is not None:
        lines += _settings(explanation.rule, explanation.compared)
    several = len({(item.version, item.model) for item in explanation.inference}) > 1
    lines += [_inference_words(interval, named=several) for interval in explanation.inference]
    if explanation.missed:
        missed, unit = explanation.missed, "tokens" if explanation.rule is None else explanation.rule.unit
        checks = "1 check" if len(missed) == 1 else f"{len(missed):,} checks"
        first = f"step {missed[0].step + 1:,} at {missed[0].count:,} {unit} (threshold {missed[0].threshold:,})"
        lines.append(f"  at {checks} the rule fires and the agent did not compact, first before {first}")
    lines += [f"  at step {one.step + 1:,} {clearing_words(one)}" for one in shown.clearings[:SHOWN]]
    if (more := len(shown.clearings) - SHOWN) > 0:
        lines.append(f"  and at {more:,} more steps: --json lists all")
    if explanation.compactions:
        lines.append(_table(explanation))
    return "\n".join(lines)


def _settings(rule: OwnRule, compared: str) -> list[str]:
    words = [] if rule.checks is Moment.NEVER else [f"  checks {rule.checks}: {compared}"]
    for item in rule.settings:
        if item.value is None:
            words.append(f"  {item.name} not known{f': {plain(item.note)}' if item.note else ''}")
            continue
        value = f"{item.value:,g} {item.unit}"
        if not item.unit:
            value = "on" if item.value else "off"
        elif float(item.value).is_integer():
            value = f"{int(item.value):,} {item.unit}"
        note = f": {plain(item.note)}" if item.note else ""
        words.append(f"  {item.name} {value} ({item.source}{note})")
    return words


def _inference_words(interval: Interval, *, named: bool) -> str:
    of_model = " ".join(filter(None, (" of", plain(interval.model), plain(interval.version)))) if named else ""
    place = f"{steps_words(interval.start, interval.stop - 1)}{of_model}"
    words = f"  by {COUNTED.get(interval.counter, interval.counter)}, {place}: {interval.sentence}"
    if interval.contradiction or None in (interval.above, interval.at_most):
        return words
    listed = interval.hypotheses[:NAMED]
    if not listed:
        return f"{words} (no known formula explains it)"
    more = len(interval.hypotheses) + interval.more - len(listed)
    names = ", ".join(item.formula for item in listed)
    return f"{words} ({names}{f' and {more:,} more' if more else ''})"


def _table(explanation: Explanation) -> str:
    shown = explanation.compactions[:SHOWN]
    places = ["after the last step" if explanation.is_behind(item.step) else item.step + 1 for item in shown]
    rows = [
        (place, item.trigger, item.decision_tokens, item.threshold, str(item.verdict))
        for place, item in zip(places, shown, strict=True)
    ]
    lines = cli.table(("before step", "trigger", "count", "threshold", "verdict"), rows).split("\n")
    reasons = ["reason", *(plain(reason_words(item)) for item in shown)]
    lines = [f"{line}  {reason}" for line, reason in zip(lines, reasons, strict=True)]
    if (more := len(explanation.compactions) - SHOWN) > 0:
        lines.append(f"{more:,} more compactions: --json lists all")
    return "\n".join(lines)
