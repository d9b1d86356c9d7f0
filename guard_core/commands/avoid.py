"""`avoid FILE`: for each finding, the nearest setting, window or policy that would have avoided it, by replay."""

from __future__ import annotations

import argparse
from typing import Any

from guard_core import cli
from guard_core.avoiding import avoid, base_of, nothing_words
from guard_core.cli import plain
from guard_core.estimation.forecast import forecast
from guard_core.findings import Facts, conclusions
from guard_core.outcomes.losses import stated_in
from guard_core.sessions import Session
from guard_core.summaries.sizes import get_summarizer

HELP = "say which setting, window or policy would have avoided what went wrong, by replay"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of this command."""
    parser.add_argument("file", metavar="FILE", help="a recording of an agent session")
    cli.add_session_arguments(parser)
    parser.add_argument("--json", action="store_true", help=f"print JSON; {cli.NUMBERING}")


def run(args: argparse.Namespace) -> int:
    """Print the answers; 2 and one sentence where the file cannot be read."""
    return cli.guarded(lambda: _run(args))


def _run(args: argparse.Namespace) -> int:
    report = _report(cli.load(args.file, args.session), args)
    if args.json:
        cli.print_json(report)
    else:
        print(_text(report))
    return 0


def _report(session: Session, args: argparse.Namespace) -> dict[str, Any]:
    facts = Facts.of(session, cli.window_of(session, args.window))
    findings, verdict = conclusions(facts)
    base = base_of(facts)
    simulated = facts.ledger.usage_ratio is not None
    answers = avoid(
        facts,
        findings,
        base,
        rules=stated_in(session.events, facts.ledger),
        summarizer=None if args.summary == "recorded" else get_summarizer(args.summary, facts.ledger),
        forecast={} if simulated else forecast(facts.ledger),
    )
    return {
        "numbering": cli.NUMBERING,
        "session": session.source_id,
        "verdict": verdict.sentence,
        "base": {"policy": base.kind.name if base.kind else None, "settings": base.values, "window": base.window},
        "findings": [{"kind": item.kind, "step": item.step, "sentence": item.sentence} for item in findings],
        "answers": answers,
        "nothing": "" if answers else nothing_words(findings),
    }


def _text(report: dict[str, Any]) -> str:
    lines = [plain(report["verdict"])]
    sentences = {(item["kind"], item["step"]): item["sentence"] for item in report["findings"]}
    for answer in report["answers"]:
        lines += ["", *(plain(sentences[key]) for key in zip(answer.kinds, answer.steps, strict=True))]
        lines += [
            f"  {plain(text)}" for text in (answer.sentence, *(item.sentence for item in answer.remedies)) if text
        ]
    if not report["answers"]:
        lines.append(report["nothing"])
    return "\n".join(lines)
