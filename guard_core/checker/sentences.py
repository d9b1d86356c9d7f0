"""A sentence says each number in the role that its claim's data give it, and names the window it rests on."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from string import Formatter
from typing import Any

from guard_core.checker.phrases import ANYWHERE, FINDINGS, OF_ANY_VERDICT, VERDICTS
from guard_core.checker.story import ReplayStory, Story, Wrong
from guard_core.findings.claims import WINDOW_ASSUMED, WINDOW_DOUBTED, Finding, Verdict
from guard_core.windows.window_evidence import Status

NUMBER = re.compile(r"\d+(?:,\d+)*(?:\.\d+)?")
_QUOTE = re.compile(r'".*"', re.DOTALL)  # a quoted request may hold quotation marks of its own
_NEVER = re.compile("(?!)")
_NAMED = 5  # compactions that a sentence lists by number


def check_sentence(story: Story, finding: Finding) -> None:
    """Raise Wrong for a number in another role than the claim's data give it."""
    roles = {"step": finding.step, "count": finding.count, **finding.numbers}
    named = finding.numbers.get("compactions")
    first: Any = finding.numbers.get("compaction", named[0] if isinstance(named, list) and named else -1)
    if first >= 0:
        roles["compacted_at"] = story.compaction(first).step
    _check(story, finding, roles, FINDINGS.get(finding.kind, ()))


def check_verdict_sentence(story: Story, verdict: Verdict) -> None:
    """The same of a verdict, which also says how many compactions there are, and how large the largest request."""
    declared = [item for item in story.session.compactions if item.evidence == "declared"]
    roles = {
        "step": verdict.step,
        "all_compactions": len(story.compactions),
        "edits": 0 if isinstance(story, ReplayStory) else len(declared),
        **(_largest(story) if story.sent else {}),
        **{f"left_{name}": value for name, value in verdict.numbers.get("left", {}).items()},
        **verdict.numbers,
    }
    _check(story, verdict, roles, (*VERDICTS.get(verdict.kind, ()), *OF_ANY_VERDICT))


def _largest(story: Story) -> dict[str, int]:
    """The fullest request, by the names that the words of a verdict have for it."""
    step = fullest(story)
    return {"largest": story.sent[step], "largest_step": step, "largest_window": story.windows[step] or story.window}


def fullest(story: Story) -> int:
    """The step of the request that fills most of its window; of the largest one where that fills as much or its window
    is not known, a counted one where several are."""
    largest = max(story.sent)
    steps = [step for step, tokens in enumerate(story.sent) if tokens == largest]
    counted = [step for step in steps if not isinstance(story, ReplayStory) and story.counts[step] is not None]
    step = (counted or steps)[0]
    fills = list(map(story.filled, range(len(story.sent)), story.sent))
    return step if not story.windows[step] or fills[step] == max(fills) else fills.index(max(fills))


def _check(story: Story, claim: Finding | Verdict, roles: dict[str, Any], phrases: Iterable[str]) -> None:
    roles["assumed"] = roles.get("own_window", roles.get("window", story.window))
    sentence = _QUOTE.sub("", claim.sentence)
    spans = [match.span() for phrase in (*phrases, *ANYWHERE) for match in _spoken(phrase, roles).finditer(sentence)]
    for number in NUMBER.finditer(sentence):
        if not any(start <= number.start() and number.end() <= stop for start, stop in spans):
            raise Wrong(f"the sentence says {number[0]} where its numbers have another, or none")


def _spoken(phrase: str, roles: dict[str, Any]) -> re.Pattern[str]:
    """A phrase with the claim's numbers in it; where the claim lacks one of them, a pattern that nothing matches."""
    pattern = ""
    for words, role, form, _ in Formatter().parse(phrase):
        pattern += re.escape(words).replace(r"\(s\)", "s?")
        if role is None:
            continue
        values: list[Any] = [roles.get(name) for name in role.split("/")]
        if None in values or 0 in values[1:]:
            return _NEVER
        value = values[0] if len(values) == 1 else values[0] / values[1]
        texts = _FORMS[form](value) if form in _FORMS else [str(value) if isinstance(value, str) else f"{value:,}"]
        pattern += rf"(?<![\d,.])(?:{'|'.join(map(re.escape, texts))})(?!\d|[,.]\d)"
    return re.compile(pattern, re.IGNORECASE)


def _from_one(index: int) -> list[str]:
    return [f"{index + 1:,}"]


def _listed(indices: list[int]) -> list[str]:
    parts = [f"{index + 1:,}" for index in indices[:_NAMED]]
    parts += [f"{len(indices) - _NAMED:,} more"] if len(indices) > _NAMED else []
    return [" and ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:])))]


def _share(share: float) -> list[str]:
    """In per cent, rounded neither up to 100 nor down to 0: "under 0.1"."""
    texts = [f"{100 * share:,.{digits}f}" for digits in (0, 1)]
    if 0 < share < 0.0005:
        return ["under 0.1"]
    if 0.999 <= share < 1:
        return [f"{100 * share:.1f}"] if 100 * share < 99.95 else ["99.9"]
    return [f"{100 * share:.{digits}f}" for digits in (2, 4)] + ["over 100"] if 1 < share < 1.0005 else texts


def _dollars(amount: float) -> list[str]:
    if 0 < abs(amount) < 0.00005:
        return ["under $0.0001"]
    sign = "−" if amount < 0 else ""
    return [f"{sign}${abs(amount):,.{2 if abs(amount) >= 1 else 4}f}"]


_FORMS: dict[str, Callable[[Any], list[str]]] = {
    "place": _from_one,
    "first": lambda indices: _from_one(indices[0]),
    "list": _listed,
    "beginning": lambda indices: [text for stop in range(len(indices)) for text in _listed(indices[: stop + 1])],
    "others": lambda items: [f"{(items if isinstance(items, int) else len(items)) - 1:,}"],
    "share": _share,
    "whole": lambda excess: _share(1 + excess),
    "excess": lambda share: _share(share - 1),
    "dollars": _dollars,
    "loss": lambda amount: _dollars(-amount),
    "mean": lambda value: [f"{value:.1f}"],
    "factor": lambda value: [f"{value:,.2f}"],
}


def check_window_words(story: Story, claim: Finding | Verdict) -> None:
    """Raise Wrong where a claim rests on an assumed or doubted window and does not say so, or on a contradicted one."""
    if "window" not in claim.numbers or claim.kind.startswith("window_") or story.trace is not None:
        return
    step = claim.numbers.get("peak_step", claim.step)
    if story.has_other_window(step) and story.windows[step] == claim.numbers["window"]:
        return  # the window of another model, or one that the file states for this call
    code = {Status.ASSUMED: WINDOW_ASSUMED, Status.DOUBTED: WINDOW_DOUBTED}.get(story.judgement.status)
    if story.judgement.status is Status.CONTRADICTED:
        raise Wrong("it rests on a window that the recording contradicts")
    if code and code not in claim.assumptions:
        raise Wrong(f"it rests on a window of status {story.judgement.status} without saying so")
    if code and f"{claim.numbers['window']:,}" not in claim.sentence:
        raise Wrong("the sentence does not name the window that it assumes")
