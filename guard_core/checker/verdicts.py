"""A verdict is short, repeats a claim that is among the findings, or says how full the window was."""

from __future__ import annotations

from collections.abc import Sequence

from guard_core.checker.sentences import check_verdict_sentence, fullest
from guard_core.checker.story import ReplayStory, Story, Wrong, same
from guard_core.findings.claims import ERROR, WARNING, Finding, Verdict

MOST_WORDS = 25
# Warnings that a healthy session may have: they are about the file or the window, not about its compactions.
BESIDE_THE_POINT = ("no_usage", "correction_limited", "fallback_summary", "still_over", "stacked_continuations")


def check_verdict(story: Story, verdict: Verdict, findings: Sequence[Finding]) -> None:
    """Raise Wrong for a verdict that does not follow from the session and its findings."""
    if (words := len(verdict.sentence.split())) > MOST_WORDS:
        raise Wrong(f"it has {words} words")
    if not story.sent:
        same("kind", verdict.kind, "no_calls")
        same("requests that failed", verdict.numbers.get("requests", 0), len(story.session.refused))
        if verdict.numbers:
            check_verdict_sentence(story, verdict)
        return
    if "no overflow" in verdict.sentence:
        is_replay, steps = isinstance(story, ReplayStory), range(len(story.sent))
        if any(story.is_over(step, story.sent[step]) for step in steps if is_replay or story.counts[step] is None):
            raise Wrong("a request is over the window")
    refused = not isinstance(story, ReplayStory) and story.session.refused
    if refused and (verdict.kind == "healthy" or "no overflow" in verdict.sentence):
        raise Wrong("the file has a request that failed as too long")
    if verdict.kind == "healthy":
        _check_healthy(story, verdict, findings)
    else:
        _check_claim(verdict, findings)
    check_verdict_sentence(story, verdict)


def _check_claim(verdict: Verdict, findings: Sequence[Finding]) -> None:
    claims = [item for item in findings if item.kind == verdict.kind and item.numbers == verdict.numbers]
    if not claims:
        raise Wrong("it repeats none of the findings")
    gravest = ERROR if any(item.severity == ERROR for item in findings) else verdict.severity
    same("severity", verdict.severity, gravest)
    same("step", verdict.step, claims[0].step)


def _check_healthy(story: Story, verdict: Verdict, findings: Sequence[Finding]) -> None:
    serious = [
        item.kind for item in findings if item.severity in (ERROR, WARNING) and item.kind not in BESIDE_THE_POINT
    ]
    if serious:
        raise Wrong(f"there is a finding {serious[0]}")
    left = [item.numbers for item in findings if item.kind == "left_branches"]
    same("what is on branches that were left", verdict.numbers.get("left"), left[0] if left else None)
    if left and "branch" not in verdict.sentence:
        raise Wrong("it does not say that it speaks of one branch")
    step = int(verdict.numbers["peak_step"])
    peak = story.sent[fullest(story)]
    same("the peak", verdict.numbers.get("peak"), peak)
    is_unknown = story.has_other_window(step) and not story.windows[step]
    window = None if is_unknown else story.windows[step] or story.window
    same("the window at the peak", verdict.numbers.get("window"), window)
    same("the tokens at the peak's step", peak, story.sent[int(verdict.numbers["peak_step"])])
    same("compactions", verdict.numbers.get("compactions"), len(story.compactions))
    is_damaged = any(note.startswith("Damaged lines") for note in story.session.notes)
    if verdict.sentence.startswith("Healthy") and is_damaged and not isinstance(story, ReplayStory):
        raise Wrong("lines of the file could not be read, which may have held a compaction")
    if verdict.sentence.startswith("Healthy") and story.compactions:
        raise Wrong("there are compactions")
    edits = [item for item in story.session.compactions if item.kind == "edit" and item.evidence == "declared"]
    if verdict.sentence.startswith("Healthy") and edits and not isinstance(story, ReplayStory):
        raise Wrong("the file records an edit of the history")
    if isinstance(story, ReplayStory):
        is_recorded = story.column("prompt_tokens_source", step) == 1
    else:
        is_recorded = story.counts[step] is not None
    same("where the peak comes from", verdict.numbers.get("peak_source"), "recorded" if is_recorded else "modelled")
