"""`facts FILE`: which instructions and details each request still holds, and which compaction lost them."""

from __future__ import annotations

import argparse
from typing import Any

from guard_core import cli
from guard_core.cli import plain
from guard_core.errors import GuardError
from guard_core.facts.lanes import Lane, Search, Snippet, SnippetState, places_of, worst_first
from guard_core.facts.proposals import TYPED, details, events_to_read, instructions
from guard_core.facts.words import METHOD, blind_words, outcome_words, read_again_words, summary_words
from guard_core.findings import Facts
from guard_core.findings.words import counted
from guard_core.outcomes.sent import SentRequests
from guard_core.quoting import normalised
from guard_core.replay import replay
from guard_core.sessions import Session
from guard_core.summaries.sizes import get_summarizer

HELP = "say which instructions, paths and numbers each request still holds, and which compaction lost them"
QUOTED = 100  # characters of a snippet that are printed
SHOWN = 20  # lines of instructions and of details printed per session; --json has all
_NUMBERS = {state: state.name.lower() for state in SnippetState}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of this command."""
    parser.add_argument("file", metavar="FILE", help="a recording of an agent session")
    cli.add_session_arguments(parser)
    parser.add_argument(
        "--find", metavar="TEXT", help="follow this text instead of the instructions, paths and numbers that are found"
    )
    parser.add_argument(
        "--policy", default=None, help=f"follow it through a replay under this policy: {cli.POLICY_NAME}"
    )
    parser.add_argument("--profile", default=None, help=cli.PROFILE_HELP)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help=cli.SET_HELP)
    parser.add_argument("--json", action="store_true", help=f"print JSON; {cli.NUMBERING}")


def run(args: argparse.Namespace) -> int:
    """Print the lanes of each session; 2 and one sentence where the file cannot be read."""
    return cli.guarded(lambda: _run(args))


def _run(args: argparse.Namespace) -> int:
    recording = cli.read_noting(args.file)
    if args.find is not None and not normalised(args.find):
        raise GuardError("--find needs a text of at least one character")
    sessions = cli.chosen(recording.sessions, args.session)
    followed = [
        (Facts.of(session, cli.window_of(session, args.window), looks_up=False), session) for session in sessions
    ]
    traced = [_lanes(session, facts, args) for facts, session in followed]
    reports = [_report(*pair, lanes, args) for pair, lanes in zip(followed, traced, strict=True)]
    if args.json:
        problems = recording.notes.problem_count
        cli.print_json({"numbering": cli.NUMBERING, "file": args.file, "problem_count": problems, "sessions": reports})
    else:
        texts = [_text(report, lanes) for report, lanes in zip(reports, traced, strict=True)]
        print("\n\n".join([*texts, *(f"{term}: {words}" for term, words in METHOD)]))
    return 0


def _lanes(session: Session, facts: Facts, args: argparse.Namespace) -> tuple[Lane, ...]:
    if args.find is not None:
        snippets: tuple[Snippet, ...] = (Snippet(TYPED, args.find),)
    else:
        events = [(index, session.events[index]) for index in events_to_read(facts.ledger).tolist()]
        snippets = (*instructions(session, events), *details(events))
    places = places_of(snippets, enumerate(session.events))
    return Search(_sent(facts, args), snippets, places, session.events.__getitem__).lanes()


def _report(facts: Facts, session: Session, lanes: tuple[Lane, ...], args: argparse.Namespace) -> dict[str, Any]:
    notes = (
        summary_words(lanes, has_system_prompt=facts.has_system_prompt) if args.find is None else "",
        "" if args.policy else blind_words(facts),
    )
    return {
        "session": session.source_id,
        "title": session.title,
        "calls": len(session.calls),
        "policy": args.policy,
        "sentence": " ".join(filter(None, notes)),
        "lanes": [_lane(lane) for lane in lanes],
    }


def _sent(facts: Facts, args: argparse.Namespace) -> SentRequests:
    if args.policy is None:
        return SentRequests.recorded(facts)
    policy = cli.make_policy(args, facts)
    summarizer = get_summarizer(args.summary, facts.ledger)
    trace = replay(facts.ledger, policy, window=facts.window.value, usage=facts.usage, summarizer=summarizer)
    return SentRequests.replayed(facts, trace)


def _lane(lane: Lane) -> dict[str, Any]:
    snippet = lane.snippet
    return {
        "kind": snippet.kind,
        "text": snippet.text,
        "message": snippet.event,
        "messages": lane.messages,
        "state": _NUMBERS[lane.last_state],
        "last_step": lane.last_step,
        "last_step_verbatim": lane.last_verbatim,
        "lost": None if lane.lost is None else {"step": lane.lost.step, "compaction": lane.lost.compaction},
        "unseen": {"step": lane.unseen_from, "compaction": lane.unseen_by} if lane.is_unseen else None,
        "withdrawn": None
        if lane.withdrawn_at < 0
        else {"step": lane.withdrawn_at, "message": lane.snippet.withdrawn_by},
        "changes": [
            {
                "step": item.step,
                "before": _NUMBERS[item.before],
                "after": _NUMBERS[item.after],
                "compaction": item.compaction,
                "message": item.event,
            }
            for item in lane.changes
        ],
        "runs": [{"first": start, "last": stop - 1, "state": _NUMBERS[state]} for start, stop, state in lane.runs()],
        "read_again": {"messages": list(lane.read_again), "tokens": lane.read_again_tokens},
        "sentence": outcome_words(lane),
    }


def _text(report: dict[str, Any], lanes: tuple[Lane, ...]) -> str:
    name = plain(report["title"] or report["session"] or "session")[:60]
    side = f", replayed under {report['policy']}" if report["policy"] else ""
    lines = [f"{name} ({counted(report['calls'], 'call')}{side})"]
    lines += [f"  {report['sentence']}"] if report["sentence"] else []
    lines += [_line(lane) for lane in worst_first(lanes)[:SHOWN]]
    if len(lanes) > SHOWN:
        lines.append(f"  and {len(lanes) - SHOWN:,} more, which --json lists")
    return "\n".join(lines)


def _line(lane: Lane) -> str:
    """What a snippet says and where it is from, then what became of it."""
    text = lane.snippet.text
    quote = plain(" ".join(text.split())[:QUOTED]) + (" …" if len(text) > QUOTED else "")
    where = f" (message {lane.snippet.event + 1:,})" if lane.snippet.event >= 0 else ""
    outcome = "; ".join(filter(None, (outcome_words(lane), read_again_words(lane))))
    return f'  {lane.snippet.kind}: "{quote}"{where}: {outcome}.'
