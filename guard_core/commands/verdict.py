"""`verdict FILE`: what matters most in each session of a recording, and every finding with its numbers."""

from __future__ import annotations

import argparse
from typing import Any

from guard_core import cli
from guard_core.cli import plain
from guard_core.counts import RECORDED, split_words
from guard_core.findings import Facts, Finding, Verdict, conclusions
from guard_core.findings.claims import SEVERITIES
from guard_core.findings.peak import peak_of
from guard_core.findings.words import counted
from guard_core.sessions import Session
from guard_core.windows.call_windows import WindowWarning, windows_words

HELP = "say what matters most in each session of a recording, with every finding and its numbers"

_WINDOW = ("value", "source", "status", "at_least", "note", "source_words")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of this command."""
    parser.add_argument("file", metavar="FILE", help="a recording of an agent session")
    parser.add_argument("--session", default=None, help="id or number (from 1) of one session; default: all")
    parser.add_argument("--window", type=cli.window_size, default=None, help="context window in tokens")
    parser.add_argument(
        "--json", action="store_true", help=f"print JSON, sessions in the order of the file; {cli.NUMBERING}"
    )


def run(args: argparse.Namespace) -> int:
    """Print a verdict per session; 2 and one sentence where the file cannot be read."""
    return cli.guarded(lambda: _run(args))


def _run(args: argparse.Namespace) -> int:
    recording = cli.read_noting(args.file)
    sessions = cli.chosen(recording.sessions, args.session)
    reports = [_report(session, args.window) for session in sessions]
    if args.json:
        problems = recording.notes.problem_count
        cli.print_json({"numbering": cli.NUMBERING, "file": args.file, "problem_count": problems, "sessions": reports})
    elif len(reports) == 1:
        print(_text(reports[0]))
    else:
        order = sorted(range(len(reports)), key=lambda place: SEVERITIES.index(reports[place]["verdict"]["severity"]))
        head = f"{len(reports):,} sessions, those with the gravest verdict first; the numbers are those of --session."
        print("\n\n".join([head, *(f"{place + 1:,}: {_text(reports[place])}" for place in order)]))
    return 0


def _report(session: Session, window: int | None) -> dict[str, Any]:
    facts = Facts.of(session, cli.window_of(session, window))
    findings, verdict = conclusions(facts)
    counts, is_peak_unknown = facts.counts, facts.is_peak_unknown or not facts.ledger.step_count
    peak = None if is_peak_unknown else peak_of(facts.recording)
    return {
        "session": session.source_id,
        "title": session.title,
        "agent": session.agent,
        "model": session.model,
        "calls": facts.ledger.step_count,
        "reported_calls": int(facts.requests.reported.sum()),
        "verdict": _claim(verdict),
        "findings": [_claim(finding) for finding in findings],
        "compactions": {
            "total": counts.total,
            "automatic": counts.automatic,
            "manual": counts.manual,
            "unknown_trigger": counts.unknown,
            "at_the_end": counts.at_the_end,
            "steps": [item.step for item in counts.compactions],
        },
        "peak": None if peak is None else {"tokens": peak.tokens, "step": peak.step, "source": peak.source},
        "window": {name: getattr(facts.window, name) for name in _WINDOW},
        "windows": facts.recording.call_windows,
    }


def _claim(claim: Finding | Verdict) -> dict[str, Any]:
    """A claim with all its fields, empty ones too."""
    return {name: getattr(claim, name) for name in claim.__struct_fields__}


def _text(report: dict[str, Any]) -> str:
    window, counts = report["window"], report["compactions"]
    name = plain(report["title"] or report["session"] or "session")[:60]
    split = split_words(*(counts[kind] for kind in ("automatic", "manual", "unknown_trigger", "at_the_end")))
    lines = [
        f"{name} ({counted(report['calls'], 'call')}, {report['reported_calls']:,} with the provider's count)",
        f"  {plain(report['verdict']['sentence'])}",
        f"  window: {window['value']:,} tokens, {window['source_words']}",
        *(f"  {words}" for words in [windows_words(report["windows"], WindowWarning.RECORDING)] if words),
        f"  compactions: {counts['total']:,}{' (' + ', '.join(split) + ')' if split else ''}",
    ]
    if report["peak"]:
        peak = report["peak"]
        in_characters = peak["source"] == RECORDED and any(
            item["kind"] == "usage_in_characters" for item in report["findings"]
        )
        source = f"{peak['source']}{', perhaps characters' if in_characters else ''}"
        lines.append(f"  peak: {peak['tokens']:,} tokens at step {peak['step'] + 1:,} ({source})")
    lines += [f"  {item['severity']}: {plain(item['sentence'])}" for item in report["findings"]]
    return "\n".join(lines)
