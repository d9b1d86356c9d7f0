"""`inspect FILE`: the facts of a recording, what its sessions are, and what was left out of it."""

from __future__ import annotations

import argparse
import sys
from typing import Any

import msgspec

from guard_core.agent_names import agent_name
from guard_core.cli import plain
from guard_core.counts import counted_compactions
from guard_core.errors import DamagedRecording, GuardError, place_words
from guard_core.plural import counted
from guard_core.recordings import Recording, read
from guard_core.sessions import Session
from guard_core.triggers import is_counted
from guard_core.windows.window_evidence import judge_session

HELP = "count calls, messages, tokens and compactions of a recording"
_LENIENT = ". Without --strict damaged places are left out and listed"
_SHOWN = 10  # problems and sessions listed as text; --json has all that are kept


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of this command."""
    parser.add_argument("file", metavar="FILE", help="a recording of an agent session")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--strict", action="store_true", help="stop at the first damaged place")


def run(args: argparse.Namespace) -> int:
    """Print the facts; 2 and one sentence on stderr when the file cannot be read."""
    try:
        recording = read(args.file, strict=args.strict)
    except DamagedRecording as error:
        print(plain(f"{args.file}: {error}{_LENIENT if args.strict else ''}"), file=sys.stderr)
        return 2
    except GuardError as error:
        print(plain(f"{args.file}: {error}"), file=sys.stderr)
        return 2
    except OSError as error:
        print(f"{plain(str(args.file))}: {error.strerror or 'cannot be read'}", file=sys.stderr)
        return 2
    print(msgspec.json.format(msgspec.json.encode(report(recording))).decode() if args.json else _text(recording))
    return 0


def report(recording: Recording) -> dict[str, Any]:
    """The facts by name, then sessions and notes, as plain values."""
    notes = recording.notes
    return {
        **msgspec.structs.asdict(recording.facts),
        "sessions": [_session(session) for session in recording.sessions],
        "lines": notes.lines,
        "problem_count": notes.problem_count,
        "problems": [msgspec.structs.asdict(problem) for problem in notes.problems],
        "skipped": notes.skipped,
        "folded": notes.folded,
        "mended": notes.mended,
    }


def _session(session: Session) -> dict[str, Any]:
    return {
        "id": session.source_id,
        "title": session.title,
        "agent": session.agent,
        "model": session.model,
        "events": len(session.events),
        "calls": len(session.calls),
        "side_calls": len(session.side_calls),
        "compactions": [
            {"at": item.at, "kind": item.kind, "evidence": item.evidence, "tokens_before": item.tokens_before}
            for item in session.compactions
            if is_counted(item)
        ],
        "rewrites": sum(not is_counted(item) for item in session.compactions),
        "window": msgspec.structs.asdict(judge_session(session)),
        "system_recorded": session.system is not None,
        "tools_recorded": session.tools is not None,
        "notes": list(session.notes),
    }


def _text(recording: Recording) -> str:
    lines = [f"{name}: {value}" for name, value in msgspec.structs.asdict(recording.facts).items()]
    for session in recording.sessions[:_SHOWN]:
        name = session.title or session.source_id or "session"
        compactions = counted_compactions(session).total
        sizes = (len(session.events), "event"), (len(session.calls), "call"), (compactions, "compaction")
        calls = ", ".join(counted(*size) for size in sizes)
        lines.append(f"session {plain(name)[:60]} ({plain(agent_name(session.agent, session.format))[:40]}): {calls}")
        window = judge_session(session)
        lines.append(f"  window {window.value:,} tokens ({plain(window.words)})")
    if len(recording.sessions) > _SHOWN:
        lines.append(f"and {len(recording.sessions) - _SHOWN} more sessions")
    notes = recording.notes
    lines += [f"left out: {count} × {plain(kind)}" for kind, count in notes.skipped.items()]
    for item in notes.problems[:_SHOWN]:
        lines.append(f"{place_words(item.line, item.column) or 'problem: '}{plain(item.message)}")
    if notes.problem_count > _SHOWN:
        lines.append(f"{notes.problem_count} problems in all")
    return "\n".join(lines)
