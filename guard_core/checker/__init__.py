"""The checker: recomputes what findings, a gate's notes on rules and verdicts claim, by plain replay.

It shares no code with what makes them but what tokens cost (ledger, attribution, usage) and the meaning of words:
what an instruction is (`facts.instructions`), when a summary says one in other words (`facts.texts`), when a sentence
permits something (`facts.lifting`) or takes a rule back (`facts.withdrawals`), which todos are open (`facts.todos`),
and which message only asks to continue (`facts.continuing`). A claim that is wrong because one of these is wrong is
confirmed, but where a simpler test of its own (`plain_words`: a rule that is plainly lifted, a sentence that a summary
plainly has, or has no word of, a todo that is closed, a message too long to say only "go on") contradicts it; they are
measured and tested by themselves. Quotations, and negations before them, it finds by itself.

Nothing here is fast. It walks a session step by step in plain lists, prices every request on its own, looks for words
in every message of a request, and compares each number of a claim with its own. What it cannot confirm is a
contradiction; so is a kind that it does not know, and a number in a sentence where the claim's data have another.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from guard_core.checker.askers import names_asker, says_whose
from guard_core.checker.own_rule import OWN_RULE
from guard_core.checker.recorded import RECORDED
from guard_core.checker.replayed import OF_A_RULE, REPLAYED
from guard_core.checker.sentences import check_sentence, check_window_words
from guard_core.checker.story import ReplayStory, Story, Wrong, number, same, step_of
from guard_core.checker.verdicts import check_verdict
from guard_core.findings.claims import Finding, Verdict
from guard_core.sessions import Session
from guard_core.trace import Trace
from guard_core.windows.window_evidence import WindowJudgement

__all__ = ["ClaimContradiction", "check"]

# For each number that says how many there are of what a claim speaks of, the kinds of claims that have it; the checks
# of the other kinds count for themselves.
_COUNTED_BY = {
    "compactions": "window_doubted late counted_over needed needless request_lost never_paid own_early sealed_summary "
    "fallback_summary empty_summary stacked_continuations tail_lost timing_gap asked_again",
    "requests": "refused refused_again",
    "calls": "window_contradicted overflow",
    "length": "loop thrash",
    "runs": "repeated_call",
    "approaches": "near_miss",
    "above": "cached_above",
    "edits": "results_cleared",
    "missing": "no_usage",
    "same": "usage_in_characters",
    "repeated": "usage_repeated",
    "checks": "own_missed",
}
_COUNTED = {kind: name for name, kinds in _COUNTED_BY.items() for kind in kinds.split()}
_ALONE = ("left_branches", "other_threshold", "setting_never_acts")  # at most one of each in a session


class ClaimContradiction(NamedTuple):
    """A claim that is not confirmed (kind, step from 0), and why."""

    kind: str
    step: int
    reason: str

    def __str__(self) -> str:
        return f"{self.kind} at step {self.step} (from 0): {self.reason}"


def check(
    session: Session,
    findings: Iterable[Finding],
    window: WindowJudgement,
    verdict: Verdict | None = None,
    *,
    trace: Trace | None = None,
) -> list[ClaimContradiction]:
    """All claims that do not hold: of the recording, or with `trace` of that replay of it. Empty where all do.

    `window` is the one the claims were made with; what a session proves about it is among the claims that are checked.
    """
    story = Story(session, window) if trace is None else ReplayStory(session, window, trace)
    checks = {**RECORDED, **OF_A_RULE, **OWN_RULE} if trace is None else REPLAYED
    contradictions = []
    claims = list(findings)
    for finding in claims:
        try:
            if finding.kind not in checks:
                raise Wrong("the checker knows no such kind of claim")
            step_of(story, finding)
            checks[finding.kind](story, finding)
            names_asker(story, finding)
            _check_count(finding)
            check_sentence(story, finding)
            check_window_words(story, finding)
        except Wrong as reason:
            contradictions.append(ClaimContradiction(finding.kind, finding.step, str(reason)))
    if verdict is not None:
        try:
            check_verdict(story, verdict, claims)
            says_whose(verdict)
            check_window_words(story, verdict)
        except Wrong as reason:
            contradictions.append(ClaimContradiction(f"verdict {verdict.kind}", verdict.step, str(reason)))
    return contradictions


def _check_count(finding: Finding) -> None:
    """Raise Wrong where a claim counts more or fewer than its own number says, which its check has confirmed."""
    if finding.kind in _ALONE:
        same("count", finding.count, 1)
    if finding.kind in _COUNTED:
        counted = number(finding, _COUNTED[finding.kind])
        same("count", finding.count, len(counted) if isinstance(counted, list) else counted)
