"""The results of a gate as JUnit XML and as one HTML page, built from escaped text."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from xml.etree import ElementTree as ET  # written, never read

from guard_core.gate.corpus import CaseResult, failed_words
from guard_core.report.html import table, whole_page
from guard_core.report.markup import Content, tag, visible

Failures = Mapping[str, Mapping[str, tuple[int, int]]]  # by session: kind, how often, how often before
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(results: Sequence[CaseResult], failures: Failures, suite: str) -> bytes:
    """One test case for each session. It fails with what got worse, and is an error where it could not be replayed."""
    problems = sum(bool(result.problem) for result in results)
    counts = {"tests": len(results), "failures": sum(map(bool, failures.values())), "errors": problems}
    root = ET.Element("testsuite", {"name": _xml(suite), **{name: str(count) for name, count in counts.items()}})
    for result in results:
        case = ET.SubElement(root, "testcase", {"classname": _xml(suite), "name": _xml(result.name)})
        if result.problem:
            ET.SubElement(case, "error", {"message": _xml(result.problem)})
        elif worse := failures.get(result.name):
            failure = ET.SubElement(case, "failure", {"message": _xml(failure_words(worse))})
            failure.text = _xml("\n".join(words for kind, words in result.sentences if kind in worse))
    ET.indent(root)
    return bytes(ET.tostring(root, encoding="utf-8", xml_declaration=True)) + b"\n"


def failure_words(worse: Mapping[str, tuple[int, int]]) -> str:
    """What a session fails on, in words."""
    return ", ".join(
        f"{kind} × {now:,}{f' (before: {before:,})' if before else ''}" for kind, (now, before) in worse.items()
    )


def html(results: Sequence[CaseResult], failures: Failures, suite: str, kinds: Sequence[str]) -> str:
    """A page with a row for each session, those that fail first, and their findings."""
    ordered = sorted(results, key=lambda item: (not item.problem, not failures.get(item.name), item.name))
    failed = [item for item in ordered if failures.get(item.name)]
    words = f"On {', '.join(kinds)}: {failed_words(len(failed), results)}."
    heads = ("session", "result", "steps", "compactions", "peak", "window", *kinds)
    rows = [
        (
            result.name,
            result.problem or ("failed" if failures.get(result.name) else "passed"),
            *(f"{value:,}" for value in (result.steps, result.compactions, result.peak, result.window)),
            *(f"{result.counts.get(kind, 0):,}" for kind in kinds),
        )
        for result in ordered
    ]
    body: list[Content] = [tag("h1", f"Compaction gate: {suite}"), tag("p", words), table(heads, rows, heads[2:])]
    for result in failed:
        sentences = [words for kind, words in result.sentences if kind in failures[result.name]]
        body += [tag("h2", result.name), tag("p", failure_words(failures[result.name]))]
        body.append(tag("ul", [tag("li", sentence) for sentence in sentences], class_="findings"))
    return whole_page(f"Compaction gate: {suite}", body)


def _xml(text: str) -> str:
    """Text that XML can hold."""
    return _NOT_XML.sub("\ufffd", visible(text))
