"""`triggers PATH...`: at which threshold each agent really compacts, from all sessions of files and folders."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from guard_core import cli
from guard_core.cli import plain
from guard_core.corpus import CheckPlace, SessionStretch, ThresholdChanges, TriggerRow, changes_of, rows_of
from guard_core.corpus.report import report
from guard_core.corpus.words import Namer, change_words, cluster_words, evidence_words, formula_words, tally_words
from guard_core.errors import GuardError, UnknownFormat
from guard_core.plural import counted, place_of
from guard_core.recordings import read
from guard_core.recordings.reading.folders import sessions_in
from guard_core.recordings.reading.placeholders import is_placeholder
from guard_core.rules import explain
from guard_core.rules.evidence import UNSAID, Cause, automatic
from guard_core.rules.explanation import UNNAMED
from guard_core.sessions import Session

HELP = "say at which threshold agents actually compact: one row per agent, version, model and window over all sessions"

NOT_READ = 5  # files that are named on standard error
CLUSTERS = 5  # thresholds of a row whose sessions contradict each other


class LocatedSession(NamedTuple):
    """A session with its place: the file, and its number there (from 1)."""

    file: str
    number: int
    session: Session

    @property
    def key(self) -> str:
        return f"{self.file}#{self.number}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of this command."""
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="recordings, or folders of them")
    parser.add_argument("--json", action="store_true", help=f"print JSON; {cli.NUMBERING}")


def run(args: argparse.Namespace) -> int:
    """Print the rows; 2 where no session could be read, or a file that was named."""
    unread: list[tuple[Path, str]] = []
    every = list(_sessions(args.paths, unread))
    sessions = _distinct(every)
    items = [item for named in sessions for item in _stretches(named)]
    _report_unread(unread, args.paths)
    if copies := len(every) - len(sessions):
        print(f"{counted(copies, 'session')} left out: of those with the same id, the longest counts", file=sys.stderr)
    if not items:
        print("no session with a model call in these files", file=sys.stderr)
        return 2
    rows, changes = rows_of(items), changes_of(items)
    if args.json:
        not_read = [{"file": str(path), "reason": reason} for path, reason in unread]
        cli.print_json({"numbering": cli.NUMBERING, **report(rows, changes, items), "not_read": not_read})
    else:
        print(_text(rows, changes, {named.key: len(named.session.calls) for named in sessions}))
    return 2 if any(path in args.paths for path, _ in unread) else 0


def _sessions(paths: Iterable[Path], unread: list[tuple[Path, str]]) -> Iterator[LocatedSession]:
    """The sessions of files and of all files in folders, those of one session together; what cannot be read goes to
    `unread` with the reason."""
    files = (file for path in paths for file in (sessions_in(path) if path.is_dir() else (path,)))
    for path in files:
        try:
            for number, session in enumerate(read(path).sessions, 1):
                yield LocatedSession(str(path), number, session)
        except UnknownFormat:
            unread.append((path, "no recording of a known format"))
        except GuardError as error:
            unread.append((path, str(error)))
        except OSError as error:
            unread.append((path, error.strerror or "cannot be read"))


def _distinct(sessions: Iterable[LocatedSession]) -> list[LocatedSession]:
    """Each session once: of those with the same id, as copies and exports of a growing session, the longest. What
    replaces an id that was taken out identifies nothing."""
    longest: dict[tuple[str, str], LocatedSession] = {}
    for item in sessions:
        own = item.session.source_id
        name = (item.session.format, item.key if not own or is_placeholder(own) else own)
        known = longest.get(name)
        if known is None or len(item.session.calls) > len(known.session.calls):
            longest[name] = item
    return list(longest.values())


def _stretches(named: LocatedSession) -> list[SessionStretch]:
    """The evidence of a session, by stretches of one model, version and window."""
    session = named.session
    title = plain(session.title or session.source_id)[:200]
    return [SessionStretch(named.key, title, session.started_at, item) for item in explain(session).evidence]


def _report_unread(unread: Sequence[tuple[Path, str]], paths: Sequence[Path]) -> None:
    """Name the files that were asked for, and some of those in folders."""
    named = [item for item in unread if item[0] in paths]
    others = [item for item in unread if item[0] not in paths]
    for path, reason in [*named, *others[:NOT_READ]]:
        print(plain(f"{path}: {reason} (left out)"), file=sys.stderr)
    if len(others) > NOT_READ:
        print(f"and {len(others) - NOT_READ:,} more files left out; --json lists all", file=sys.stderr)


# -- for people


def _text(rows: Sequence[TriggerRow], changes: ThresholdChanges, calls: Mapping[str, int]) -> str:
    """`calls`: how many each session has, by its key."""

    def name(place: CheckPlace) -> str:
        return f"{place.session}, {place_of(place.step, calls[place.session])}"

    header = ("agent", "version", "model", "window", "sessions", "automatic", "unknown", "manual", "none at", "one at")
    table = cli.table(header, [_cells(row) for row in rows], left=3).split("\n")
    lines = [table[0]]
    for line, row in zip(table[1:], rows, strict=True):
        lines += [line, *(f"    {words}" for words in _details(row, name))]
    if any(len(row.sessions) > 1 and row.key.agent.startswith(UNNAMED) for row in rows):
        lines += ["", "sessions whose files name no program are taken as those of one"]
    if changes.changes:
        lines += ["", "change points:"]
        lines += [
            f"  {plain(f'{change.key.agent} {change.key.model}'.strip())[:80]}: {plain(change_words(change, name))}"
            for change in changes.changes
        ]
    if changes.inconsistent:
        lines += ["", "sessions that no single threshold explains: " + ", ".join(map(plain, changes.inconsistent))]
    return "\n".join(lines)


def _cells(row: TriggerRow) -> tuple[object, ...]:
    """A row of the table; the bounds of the threshold are in tokens."""
    key, counts = row.key, row.compactions
    unknown, manual = sum(counts.get(cause, 0) for cause in UNSAID), counts.get(Cause.MANUAL, 0)
    names = (plain(text)[:40] for text in (key.agent, key.version, key.model))
    bounds = (place and place.tokens for place in (row.above, row.at_most))
    return *names, key.window, len(row.sessions), automatic(counts), unknown, manual, *bounds


def _details(row: TriggerRow, name: Namer) -> Iterator[str]:
    """Lines below a row: the formula, contradictions, rules, forced compactions."""
    if words := formula_words(row):
        yield f"inferred: {words}"
    if row.contradiction:
        yield plain(evidence_words(row, name))
        for cluster in row.clusters[:CLUSTERS]:
            yield f"  {plain(cluster_words(row, cluster))}"
        if (more := len(row.clusters) - CLUSTERS) > 0:
            yield f"  and {more:,} more thresholds"
    for tally in row.rules:
        yield f"rule: {plain(tally_words(tally))}"
        for item in tally.contradicts:
            verb = "compacted" if item.fired else "did not compact"
            yield f"  {plain(name(item.place))}: {verb} at {item.place.tokens:,}"
    if moves := row.compactions.get(Cause.SLIDING, 0):
        yield f"moves of a sliding window: {moves:,}"
    refused = sum(item.refused for item in row.forced)
    if refused:
        yield f"after a refused request: {refused:,}"
    if near := len(row.forced) - refused:
        yield f"at 90 % of the window or more: {near:,}"
