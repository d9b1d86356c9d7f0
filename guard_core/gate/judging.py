"""What goes wrong in a replay, counted by kind: what a gate may fail on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from guard_core.errors import SettingError
from guard_core.findings import Facts, replayed_findings
from guard_core.findings.claims import Finding
from guard_core.gate.rules import lost_rules
from guard_core.policies import DEFAULT_POLICY, policy_kind
from guard_core.replay import replay
from guard_core.sessions import Provenance, Session, Sourced
from guard_core.summaries.sizes import get_summarizer
from guard_core.trace import Trace
from guard_core.windows.window_evidence import WindowJudgement, judge_session

# What a gate can fail on, each with the kinds of findings that it counts.
KINDS: dict[str, tuple[str, ...]] = {
    "overflow": ("overflow", "refused_again"),
    "near-miss": ("near_miss",),
    "loop": ("loop",),
    "thrash": ("thrash",),
    "late": ("late",),
    "never-fits": ("no_fit", "still_over"),
    "not-kept": ("summary_not_kept",),
    "request-lost": ("request_lost",),
    "rule-lost": ("rule_lost", "earlier_rule_lost"),
}


class Under(msgspec.Struct, frozen=True):
    """What sessions are replayed under. `window` in tokens replaces each session's own."""

    policy: str = DEFAULT_POLICY
    settings: Mapping[str, Any] = {}
    window: int | None = None
    summary: str = "recorded"

    def check(self) -> None:
        """Raises GuardError where the policy has no such setting."""
        self.make(None)

    def make(self, facts: Facts | None) -> Any:
        """The policy for a session, with what its recording gives."""
        kind = policy_kind(self.policy)
        given = {kind.setting(name).name: value for name, value in self.settings.items() if name != "profile"}
        if self.settings.get("profile") is not None:  # a name that may be typed as a number, such as 0.35
            given["profile"] = str(self.settings["profile"])
        return kind.make(**(given if facts is None else facts.made_with(kind, given)))


class JudgedReplay(NamedTuple):
    """The replay of a session, its findings, how often each of KINDS occurs, and the window."""

    trace: Trace
    findings: tuple[Finding, ...]
    counts: dict[str, int]
    window: WindowJudgement


def check_kinds(text: str) -> tuple[str, ...]:
    """Kinds as typed, with commas. Raises SettingError."""
    kinds = tuple(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown or not kinds:
        raise SettingError(f"a gate fails on {', '.join(KINDS)}, not on {unknown[0][:40] if unknown else 'nothing'!r}")
    return kinds


def judge(session: Session, under: Under) -> JudgedReplay:
    """Replay a session. Raises GuardError for settings that contradict each other."""
    window = None if under.window is None else Sourced(under.window, Provenance.USER, "given to the gate")
    facts = Facts.of(session, judge_session(session, window))
    policy = under.make(facts)
    summarizer = get_summarizer(under.summary, facts.ledger)
    trace = replay(facts.ledger, policy, window=facts.window.value, usage=facts.usage, summarizer=summarizer)
    findings = (*replayed_findings(facts, trace), *lost_rules(facts, trace))
    return JudgedReplay(trace, findings, counts_of(findings), facts.window)


def counts_of(findings: Iterable[Finding]) -> dict[str, int]:
    """How often each of KINDS occurs, 0 for those that do not."""
    findings = tuple(findings)
    return {name: sum(item.count for item in findings if item.kind in kinds) for name, kinds in KINDS.items()}
