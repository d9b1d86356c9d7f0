"""How each kind of claim about a recording is recomputed. A check raises Wrong, or returns in silence."""

from __future__ import annotations

from collections.abc import Callable

from guard_core.checker.calls import (
    asked_again,
    cached_above,
    left_branches,
    no_usage,
    repeated_call,
    results_cleared,
    silent_truncation,
    usage_in_characters,
    usage_repeated,
)
from guard_core.checker.losses import earlier_rule_lost, part_lost, request_lost, rule_lost, todo_lost
from guard_core.checker.prices import never_paid
from guard_core.checker.shared import (
    at_consecutive_steps,
    cannot_be_read,
    drops_at_every_call,
    history_is_back,
    in_quick_succession,
    is_forced,
)
from guard_core.checker.story import Story, Wrong, agree, number, same
from guard_core.checker.windows import (
    counted_over,
    late,
    near_miss,
    needed,
    needless,
    overflow,
    refused,
    window_contradicted,
    window_doubted,
)
from guard_core.events import part_text
from guard_core.findings.claims import Finding


def grown(story: Story, finding: Finding) -> None:
    index = number(finding, "compaction")
    larger = {
        other: story.sent[item.step] - story.before(other)
        for other, item in enumerate(story.compactions)
        if item.step >= 0 and _outgrows_the_model(story, other)
    }
    if index not in larger:
        raise Wrong("the request after it is smaller, or not larger by more than what is modelled of it may err")
    if larger[index] < max(larger.values()):
        raise Wrong("a request after another compaction is larger by more")
    before, after = story.before(index), story.sent[story.compaction(index).step]
    agree(finding, before=before, after=after)
    same("count", finding.count, len(larger))
    if ("was followed by a larger request" in finding.sentence) != (after > before):
        raise Wrong("the request after it is larger, or not, and the claim says otherwise")


def _outgrows_the_model(story: Story, index: int) -> bool:
    """Is the counted request after a compaction no smaller than the one before it, the larger of half and a thousand
    tokens allowed for what is modelled of that."""
    step, before = story.compaction(index).step, story.before(index)
    if story.sent[step] < before or before <= 0:
        return False
    if story.session.usage_ratio is not None:
        return True
    if is_forced(story, index):
        return False
    earlier = [item.step for item in story.compactions[:index] if 0 <= item.step < step]
    counted = [story.counts[at] for at in range(max(earlier, default=0), step)]
    last = next(filter(None, reversed(counted)), None)
    known = story.recorded(index).tokens_before or last
    if story.counts[step] is None or known is None or story.sent[step] < (last or 0):
        return False
    return before == known or story.sent[step] - before >= max(1_000, 0.5 * (before - known))


def summary_not_kept(story: Story, finding: Finding) -> None:
    history_is_back(story, finding)
    index, again_step = number(finding, "compaction"), number(finding, "again_step")
    step = story.compaction(index).step
    following = any(item.step == again_step for item in story.compactions)
    between = set(story.places[step : again_step + (not following)])
    if len(between) > 1:
        raise Wrong("the history was rewritten between them, which explains the request")


def loop(story: Story, finding: Finding) -> None:
    at_consecutive_steps(story, finding)


def sliding_window(story: Story, finding: Finding) -> None:
    drops_at_every_call(story, finding)


def thrash(story: Story, finding: Finding) -> None:
    in_quick_succession(story, finding)


def sealed_summary(story: Story, finding: Finding) -> None:
    _every(story, finding, _is_sealed, "sealed")


def fallback_summary(story: Story, finding: Finding) -> None:
    _every(story, finding, lambda story, index: story.recorded(index).kind == "fallback", "mechanical")


def empty_summary(story: Story, finding: Finding) -> None:
    def is_empty(story: Story, index: int) -> bool:
        item = story.recorded(index)
        messages = item.messages
        readable = bool(messages) and item.kind.startswith("summary") and not _is_sealed(story, index)
        silent = readable and not any(part_text(part) for message in messages for part in message.parts)
        return silent or item.kind == "empty"

    _every(story, finding, is_empty, "empty")


def _every(story: Story, finding: Finding, test: Callable[[Story, int], bool], word: str) -> None:
    real = [index for index, item in enumerate(story.compactions) if item.step >= 0 and test(story, index)]
    agree(finding, compactions=real)
    if not real:
        raise Wrong(f"no summary is {word}")


def _is_sealed(story: Story, index: int) -> bool:
    return cannot_be_read(story.recorded(index))


RECORDED: dict[str, Callable[..., None]] = {
    check.__name__: check
    for check in (
        window_contradicted,
        window_doubted,
        overflow,
        near_miss,
        late,
        counted_over,
        refused,
        needless,
        needed,
        request_lost,
        part_lost,
        rule_lost,
        earlier_rule_lost,
        todo_lost,
        grown,
        summary_not_kept,
        loop,
        sliding_window,
        thrash,
        sealed_summary,
        fallback_summary,
        empty_summary,
        silent_truncation,
        usage_in_characters,
        usage_repeated,
        cached_above,
        results_cleared,
        asked_again,
        repeated_call,
        left_branches,
        no_usage,
        never_paid,
    )
}
