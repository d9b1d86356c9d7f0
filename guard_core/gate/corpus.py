"""Replays the sessions of files and folders, several processes at a time; results come in the order of the files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import msgspec

from guard_core.errors import GuardError, SettingError, UnknownFormat
from guard_core.findings.words import counted
from guard_core.gate.judging import KINDS, Under, judge
from guard_core.recordings import read
from guard_core.recordings.reading.folders import sessions_in

MOST_SENTENCES = 20  # of one session


class CaseResult(msgspec.Struct, frozen=True):
    """One session under a policy: `name` is its file, and its number where the file has several. `problem` is why there
    is no result. `sentences` are the findings, by kind of failure."""

    name: str
    title: str
    steps: int = 0
    compactions: int = 0
    peak: int = 0
    window: int = 0
    counts: dict[str, int] = {}
    sentences: tuple[tuple[str, str], ...] = ()
    digest: str = ""
    problem: str = ""


def run_corpus(paths: Iterable[Path], under: Under, processes: int | None = None) -> list[CaseResult]:
    """The results of all sessions with a model call. In a folder, files of no known format are passed over; whatever
    else cannot be read is a result with a problem. Raises GuardError for wrong settings and without any session."""
    under.check()
    files: list[tuple[Path, str, bool]] = []  # each with the name of its results, and whether it was itself named
    for path in paths:
        if path.is_dir():
            files += [(file, file.relative_to(path).as_posix(), False) for file in sessions_in(path)]
        else:
            files.append((path, path.name, True))
    count = min(processes or os.cpu_count() or 1, len(files))
    work = partial(_results, under)
    if count > 1:
        with ProcessPoolExecutor(count, mp_context=get_context("spawn")) as pool:
            results = [result for some in pool.map(work, files) for result in some]
    else:
        results = [result for file in files for result in work(file)]
    if not results:
        raise SettingError("no session with a model call in these files")
    return results


def _results(under: Under, item: tuple[Path, str, bool]) -> list[CaseResult]:
    file, name, is_named = item
    try:
        sessions = [session for session in read(file).sessions if session.calls]
    except UnknownFormat as error:
        return [CaseResult(name, "", problem=str(error))] if is_named else []
    except (GuardError, OSError) as error:
        return [CaseResult(name, "", problem=getattr(error, "strerror", None) or str(error))]
    if is_named and not sessions:
        return [CaseResult(name, "", problem="no session with a model call")]
    results = []
    for number, session in enumerate(sessions, 1):
        own = f"{name}#{number}" if len(sessions) > 1 else name
        try:
            judged = judge(session, under)
        except GuardError as error:
            results.append(CaseResult(own, session.title[:200], problem=str(error)))
            continue
        trace = judged.trace
        sentences = tuple(
            (kind, finding.sentence)
            for finding in judged.findings
            for kind, kinds in KINDS.items()
            if finding.kind in kinds
        )
        results.append(
            CaseResult(
                name=own,
                title=session.title[:200],
                steps=len(trace),
                compactions=len(trace.compactions),
                peak=int(trace.columns["modelled_prompt_tokens"].max(initial=0)),
                window=trace.window,
                counts=judged.counts,
                sentences=sentences[:MOST_SENTENCES],
                digest=trace.digest(),
            )
        )
    return results


def failed_words(failed: int, results: Sequence[CaseResult]) -> str:
    """How many of the sessions failed, and how much was replayed, as a clause."""
    steps = counted(sum(result.steps for result in results), "step")
    return f"{failed:,} of {counted(len(results), 'session')} failed, {steps} replayed"
