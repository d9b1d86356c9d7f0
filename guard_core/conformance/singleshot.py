"""Vectors of the format contextguard-singleshot/1: one compaction of a conversation, on fresh state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from guard_core.conformance.compare import ConformanceVerdict, FigureComparison
from guard_core.conformance.vectors import Constants, SingleshotFile, SingleshotRow, VectorError, convert, parse
from guard_core.costs import EVENT_COLUMNS, HAS_CALL, HAS_MEDIA, HAS_RESULT, HAS_TEXT, MODEL, USER
from guard_core.ledger import Ledger
from guard_core.policies import Policy, get_policy
from guard_core.replay import replay
from guard_core.step_columns import STEP_COLUMNS
from guard_core.summaries.sizes import FixedSummaries
from guard_core.summaries.wrapper import wrapped_bytes
from guard_core.trace import Pass

_KINDS = {"t": HAS_TEXT, "c": HAS_CALL, "r": HAS_RESULT, "i": HAS_MEDIA}
_ROLES = {"user": USER, "model": MODEL}
_POLICIES = {"threshold": "contextguard", "sliding_window": "contextguard-sliding"}


def check(data: bytes) -> Iterator[ConformanceVerdict]:
    """One verdict per profile of the file."""
    file = parse(data, SingleshotFile)
    ledgers = {name: _ledger(rows) for name, rows in file.conversations.items()}
    usual = _usual_summaries(file.rows)
    for profile in dict.fromkeys(row.profile for row in file.rows):
        if profile not in file.profiles:
            raise VectorError(f"a row names the profile {profile[:40]!r}, which the file does not have")
        comparison = FigureComparison()
        for number, row in enumerate(file.rows):
            if row.profile == profile:
                _check_row(comparison, file, f"row {number}", row, ledgers, usual)
        yield comparison.verdict(profile)


def _check_row(
    comparison: FigureComparison,
    file: SingleshotFile,
    where: str,
    row: SingleshotRow,
    ledgers: dict[str, Ledger],
    usual: dict[tuple[str, str], int],
) -> None:
    ledger = ledgers.get(str(row.conversation))
    if ledger is None or row.strategy not in _POLICIES:
        raise VectorError(f"{where} names a conversation or a strategy that does not exist")
    size = usual.get((row.table, row.strategy), row.summary_bytes)
    tail = "recent_ratio" in file.profiles[row.profile]
    if row.table == "investigation" and not tail:
        got = _investigation(row, ledger, _policy(file, row, tail=False), size)
    else:
        got = _figures(file, row, ledger, size, tail=tail)
    recorded = {name: getattr(row, name) for name in got if getattr(row, name) is not None}
    comparison.mapping(where, recorded, got)
    if row.param is not None and row.strategy == "threshold":
        comparison.equal(where, "param", row.param, row.window)


def _usual_summaries(rows: list[SingleshotRow]) -> dict[tuple[str, str], int]:
    """The length of the fixed summary of each table: what most of its rows say.

    One row that says otherwise is a difference; where several do, the rows themselves are taken at their word.
    """
    sizes: dict[tuple[str, str], Counter[int]] = {}
    for row in rows:
        if row.summary_bytes:
            sizes.setdefault((row.table, row.strategy), Counter())[row.summary_bytes] += 1
    usual = {}
    for table, counts in sizes.items():
        (size, often), *others = counts.most_common()
        if sum(count for _, count in others) <= 1 < often:
            usual[table] = size
    return usual


def _ledger(contents: list[tuple[str, str, int]]) -> Ledger:
    """A ledger of contents of which only role, kinds and heuristic are known, with one step over all of them."""
    events = {name: np.zeros(len(contents), dtype=np.int64) for name in EVENT_COLUMNS}
    for index, (role, kinds, tokens) in enumerate(contents):
        if role not in _ROLES or any(kind not in _KINDS for kind in kinds):
            raise VectorError(f"content {index} has the role {role[:20]!r} and kinds {kinds[:20]!r}")
        events["flags"][index] = _ROLES[role] | sum(_KINDS[kind] for kind in set(kinds))
        events["text_tokens"][index] = tokens
    steps = {name: np.full(1, -1, dtype=np.int64) for name in STEP_COLUMNS}
    steps["at"][0] = len(contents)
    return Ledger(events, steps, usage_ratio=1.0, usage_reported_from=1)


def _policy(file: SingleshotFile, row: SingleshotRow, *, tail: bool) -> Policy:
    constants = file.profiles[row.profile]
    sliding = row.strategy == "sliding_window"
    changes: dict[str, Any] = {"max_turns": row.param} if sliding else {}
    if not tail:
        profile = convert(constants, Constants, f"the profile {row.profile[:40]}")
        return get_policy(_POLICIES[row.strategy], **profile.settings(sliding=sliding, **changes))
    passes = row.max_attempts or constants.get("max_attempts")
    ratio = constants["recent_ratio"]
    return get_policy(_POLICIES[row.strategy], profile="tail", max_passes=passes, recent_ratio=ratio, **changes)


def _figures(file: SingleshotFile, row: SingleshotRow, ledger: Ledger, size: int, *, tail: bool) -> dict[str, Any]:
    policy = _policy(file, row, tail=tail)
    trace = replay(ledger, policy, window=row.window, summarizer=FixedSummaries(size), request="")
    passes = trace.compactions[0].passes if trace.compactions else ()
    fields = file.pass_fields.get(row.profile)
    if fields is None:
        raise VectorError(f"pass_fields has no profile {row.profile[:40]!r}")
    before, after = ledger.event_count, int(trace.columns["contents_sent"][0])
    tokens = int(trace.columns["heuristic_sent"][0])
    return {
        "contents_before": before,
        "contents_after": after,
        "tokens_before": int(trace.columns["heuristic_built"][0]),
        "tokens_after": tokens,
        "summary_bytes": int(trace.columns["summary_bytes"][0]),
        "summarized": bool(passes),
        "attempts": len(passes),
        "old_messages": before - (after - 1) if passes else 0,
        "recent_messages": after - 1 if passes else before,
        "fits": tokens < policy.settings.limits(row.window).threshold,
        "passes": _pass_rows(passes, fields, row, policy),
    }


def _pass_rows(passes: tuple[Pass, ...], fields: list[str], row: SingleshotRow, policy: Policy) -> list[list[int]]:
    rows = []
    sliding = row.strategy == "sliding_window"
    budget = (
        max(3, policy.settings.max_turns * 30 // 100) if sliding else int(row.window * policy.settings.recent_ratio)
    )
    for item in passes:
        known = {
            "budget_or_keep": budget,
            "split_index": item.summariser_contents,
            "old": item.summariser_contents,
            "recent": item.contents_in - item.summariser_contents,
            "in_contents": item.contents_in,
            "summ_contents": item.summariser_contents,
            "summ_tokens": item.summariser_tokens,
            "new_contents": item.contents_after,
            "new_tokens": item.tokens_after,
        }
        unknown = [name for name in fields if name not in known]
        if unknown:
            raise VectorError(f"the column {unknown[0][:40]!r} of a pass is not known here")
        rows.append([known[name] for name in fields])
        budget = max(3, budget // 2) if sliding else budget // 2
    return rows


def _investigation(row: SingleshotRow, ledger: Ledger, policy: Policy, size: int) -> dict[str, Any]:
    """The source's investigation loop: while raw tokens are over the threshold, the summary replaces everything."""
    before, threshold = int(ledger.prefix("text_tokens")[-1]), policy.settings.limits(row.window).threshold
    wrapped = wrapped_bytes(size, policy.settings.marker_dash) // 4
    contents, tokens, attempts = ledger.event_count, before, 0
    while tokens >= threshold and attempts < (row.max_attempts or 1):
        contents, tokens, attempts = 1, wrapped, attempts + 1
    return {
        "contents_before": ledger.event_count,
        "contents_after": contents,
        "tokens_before": before,
        "tokens_after": tokens,
        "summary_bytes": size if attempts else 0,
        "attempts": attempts,
        "fits": tokens < threshold,
        "passes": [],
    }
