"""A sentence says nothing that its claim's data do not explain, and names the window it rests on."""

from __future__ import annotations

import re
from typing import Any

from guard_core.checker.story import Story, Wrong
from guard_core.findings.claims import WINDOW_ASSUMED, WINDOW_DOUBTED, Finding, Verdict
from guard_core.windows.window_evidence import Status

_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
_QUOTE = re.compile(r'".*"', re.DOTALL)  # a quoted request may hold quotation marks of its own
# Shares and means are said with one decimal, or none from 110 % on; factors and US dollars with two, less than a dollar
# with four.
_FORMS = ("{:,.0f}", "{:,.1f}", "{:,.2f}", "{:,.4f}")


def check_sentence(finding: Finding) -> None:
    """Raise Wrong for a number that is neither in the claim's data nor follows from two of them."""
    check_numbers(finding, explained_numbers(finding))


def check_numbers(claim: Finding | Verdict, explained: set[str]) -> None:
    """Raise Wrong for a number in the sentence, outside of quotations, that is not among those explained."""
    for number in _NUMBER.findall(_QUOTE.sub("", claim.sentence)):
        if number.rstrip(",") not in explained:
            raise Wrong(f"the sentence says {number}, which its numbers do not explain")


def explained_numbers(claim: Finding | Verdict) -> set[str]:
    """How the numbers of a claim may be written: as they are, counted from 1, one less ("3 more"), as shares."""
    values = [claim.step, *_flat(claim.numbers.values())]
    count = getattr(claim, "count", 1)
    whole = {value for value in values if isinstance(value, int)} | {count}
    texts = {f"{value + offset:,}" for value in whole for offset in (-1, 0, 1)}
    texts |= {f"{len(value):,}" for value in claim.numbers.values() if isinstance(value, list)}
    texts |= {f"{len(value) - 1:,}" for value in claim.numbers.values() if isinstance(value, list)}
    shares = [value for value in values if isinstance(value, float)]
    shares += [part / window for window in _windows(claim) for part in whole]
    shares += [part / window - 1 for window in _windows(claim) for part in whole]
    texts |= {form.format(abs(value) * scale) for value in shares for scale in (1, 100) for form in _FORMS}
    texts |= {f"{100 * value:.4f}" for value in shares if 1 < value < 1.0005}  # nor as if it fitted
    texts |= {"99.9" for value in shares if 0.999 <= value < 1}  # not rounded up to all of it
    texts |= {"0.1" for value in shares if 0 < abs(value) < 0.0005}  # nor down to nothing: "under 0.1 %"
    texts |= {"0.0001" for value in shares if 0 < abs(value) < 0.00005}  # of dollars
    difference = claim.numbers.get("without", 0) - claim.numbers.get("with", 0) if "with" in claim.numbers else 0
    return texts | {f"{difference:,}", "90", "90.0"}


def _windows(claim: Finding | Verdict) -> list[int]:
    window = claim.numbers.get("window", 0)
    return [window] if window else []


def _flat(values: Any) -> list[Any]:
    return [item for value in values for item in (value if isinstance(value, list | tuple) else [value])]


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
