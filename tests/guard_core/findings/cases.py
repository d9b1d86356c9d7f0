"""Small recordings and replays for tests of findings."""

from __future__ import annotations

import msgspec
import numpy as np

from guard_core.findings import Facts, Finding, recorded_findings, replayed_findings
from guard_core.policies import get_policy
from guard_core.policies.contextguard.guard import COLUMNS
from guard_core.replay import replay
from guard_core.sessions import Evidence, ModelCall, Provenance, RecordedCompaction, Session, Sourced
from guard_core.trace import COMMON_COLUMNS, CompactionRecord, Pass, Trace
from guard_core.views import Inserted, Span, Synthetic
from guard_core.windows.window_evidence import judge_session
from tests.builders import model, session, user

WORDS = "tell " * 40
PASS = Pass(10, 900, 10, 900, 120, 2, 90)


def chat(*prompts: int | None, window: int = 10_000, source: Provenance = Provenance.USER, **fields: object) -> Session:
    """A chat in one turn, one call per count: the user's message, then call k over k + 1 events."""
    events = (user("Please begin with the report of the week"), *(model(WORDS) for _ in prompts))
    calls = tuple(ModelCall(step + 1, step + 1, tokens) for step, tokens in enumerate(prompts))
    stated = None if source is Provenance.ASSUMED else Sourced(window, source)
    return msgspec.structs.replace(session(*events, calls=calls, **fields), window=stated)


def compaction(
    at: int, *kept: tuple[int, int], summary: str = "what was done so far", kind: str = "summary", **fields: object
) -> RecordedCompaction:
    """A recorded compaction before event `at` that leaves a summary and some spans of the log."""
    spans = tuple(Span(*span) for span in kept)
    message = user(summary, meta=True)
    fields = {"trigger": "auto", **fields}
    return RecordedCompaction(at, Evidence.DECLARED, kind, (Inserted(0), *spans), (message,), **fields)


def findings(built: Session, **window: object) -> dict[str, Finding]:
    """The findings of a recording by kind."""
    return {finding.kind: finding for finding in recorded_findings(Facts.of(built, **window))}


def replayed(built: Session, policy: str = "contextguard", **settings: object) -> tuple[Facts, Trace]:
    """A session's facts and its replay under a policy."""
    facts = Facts.of(built)
    window = judge_session(built).value
    return facts, replay(facts.ledger, get_policy(policy, **settings), window=window, usage=facts.usage)


def of_replay(facts: Facts, trace: Trace) -> dict[str, Finding]:
    """The findings of a replay by kind."""
    return {finding.kind: finding for finding in replayed_findings(facts, trace)}


def trace(facts: Facts, *compactions: CompactionRecord, **columns: object) -> Trace:
    """A trace in which nothing happened but what is given."""
    size, window = facts.ledger.step_count, facts.window.value
    values = {item.name: np.full(size, np.nan if item.real else 0) for item in (*COMMON_COLUMNS, *COLUMNS)}
    values["threshold"] = np.full(size, window * 4 // 5)
    values["modelled_prompt_tokens"] = facts.ledger.steps["prompt_tokens"]
    values |= {name: np.array(value) for name, value in columns.items()}
    return Trace("test", {}, "0", window, values, compactions)


def record(step: int, **fields: object) -> CompactionRecord:
    """A replayed compaction that leaves a summary of 120 bytes."""
    given = {"before": (Span(0, step + 1),), "after": (Synthetic("summary", 120),), "passes": (PASS,)}
    return CompactionRecord(step=step, reason="test", tokens_before=900, tokens_after=90, **(given | fields))
