"""How each kind of claim about a replay is recomputed: from its trace, its views and plain prices."""

from __future__ import annotations

import math
from collections.abc import Callable

from guard_core.checker.calls import usage_in_characters
from guard_core.checker.losses import END_MARKS, is_withdrawn, rules_of
from guard_core.checker.shared import (
    at_consecutive_steps,
    came_too_late,
    comes_near,
    drops_at_every_call,
    fullest_without,
    history_is_back,
    in_quick_succession,
    largest_over,
    near_the_window,
    refused_before,
    sliding_moves,
    tight_calls,
)
from guard_core.checker.story import ReplayStory, Story, Wrong, agree, holds, number, same, step_of
from guard_core.checker.windows import could_wait
from guard_core.facts.instructions import outlasts_its_turn
from guard_core.findings.claims import Finding
from guard_core.policies import POLICIES
from guard_core.requests import materialise
from guard_core.tokens.calibration import CORRECTION_SOURCES
from guard_core.tokens.heuristic import event_costs
from guard_core.trace import FLOOR_OVER_THRESHOLD, FLOOR_OVER_WINDOW, STILL_OVER
from guard_core.views import Span, Synthetic, View

GAP = 0.05  # of the threshold
INLINE, INLINE_REAL = 0.25, 0.6  # of the estimate
_RESENT = "request sent again"
_AGAIN = ("continuation", _RESENT)
LARGEST_GAP = 0.5  # of a recorded prompt: nothing is said of a factor where more is not in the file
MOST_PER_HEURISTIC = 5  # provider tokens per heuristic token; a higher factor is of what the file lacks


def overflow(story: ReplayStory, finding: Finding) -> None:
    over = [step for step, tokens in enumerate(story.sent) if story.is_over(step, tokens)]
    if not over:
        raise Wrong("no request is larger than the window")
    agree(finding, calls=len(over), first=over[0], last=over[-1], answered=0)  # a modelled request has no answer
    largest_over(story, finding, over)


def refused_again(story: ReplayStory, finding: Finding) -> None:
    """Requests that fit the window and are as large as the smallest one that was refused."""
    if story.window > story.judgement.value:
        raise Wrong("a larger window was asked for, which another model has")
    sizes = []
    cuts = [(item.at, len(refused_before(story.session, at))) for at, item in enumerate(story.session.compactions)]
    for nth, place in enumerate(sorted(story.session.refused)):
        before = [step for step, call in enumerate(story.session.calls) if call.at < place]
        start = story.session.calls[before[-1]].at if before else 0
        if before and story.has_other_window(before[-1]):
            continue
        stated = [item.tokens for item in story.session.refusals if item.at == place and item.tokens]
        if stated:
            sizes.append((stated[-1], before[-1] if before else -1))
            continue
        if any(start < cut and refusals <= nth for cut, refusals in cuts):
            continue
        if before and story.session.calls[before[-1]].response == place - 1:
            continue
        recorded = Story(story.session, story.judgement)
        sent = recorded.sent[before[-1]] if before else story.attribution.overhead
        sizes.append((sent + int(story.attribution.tokens[start:place].sum()), before[-1] if before else -1))
    if not sizes or min(sizes)[0] <= story.judgement.at_least:
        raise Wrong("no request is known to have been refused that was larger than all that were answered")
    agree(finding, refused_tokens=min(sizes)[0], after=min(sizes)[1])
    again = [
        step
        for step, tokens in enumerate(story.sent)
        if tokens >= min(sizes)[0] and not story.is_over(step, tokens) and not story.has_other_window(step)
    ]
    if not again:
        raise Wrong("no request is as large")
    agree(finding, requests=len(again), first=again[0], last=again[-1], tokens=story.sent[step_of(story, finding)])
    same("the largest of them", max(story.sent[step] for step in again), story.sent[finding.step])


def late(story: ReplayStory, finding: Finding) -> None:
    came_too_late(story, finding, list(range(len(story.sent))))


def _without(story: ReplayStory, finding: Finding) -> list[int]:
    agree(finding, compactions=len(story.compactions))
    fullest_without(story, finding, story.whole)
    return story.whole


def needless(story: ReplayStory, finding: Finding) -> None:
    tokens = _without(story, finding)
    if comes_near(story, tokens) or tight_calls(story, finding, tokens):
        raise Wrong("without compaction a request would come near the window, or leave no room for an answer")
    if not all(story.windows):
        raise Wrong("the window of a call's model is not known")
    if sliding_moves(story):
        raise Wrong("a window slides by design")


def needed(story: ReplayStory, finding: Finding) -> None:
    tokens = _without(story, finding)
    if not tight_calls(story, finding, tokens) and not comes_near(story, tokens):
        raise Wrong("without compaction no request would come near the window, and each would leave room to answer")
    could_wait(story, finding, tokens, story.compactions[0].step)


def avoided_overflows(story: ReplayStory, finding: Finding) -> None:
    before, after = (
        sum(story.is_over(step, count) for step, count in enumerate(counts)) for counts in (story.whole, story.sent)
    )
    agree(finding, **{"without": before, "with": after, "window": story.window})
    same("count", finding.count, before - after)
    if after >= before:
        raise Wrong("no overflow is avoided")


def request_lost(story: ReplayStory, finding: Finding) -> None:
    lost = [
        index
        for index, item in enumerate(story.compactions)
        if item.step + 1 < len(story.sent)
        and 0 <= story.request_of(item.step) == story.request_of(item.step + 1)
        and not _sends(story, index, story.request_of(item.step))
    ]
    agree(finding, compactions=lost)
    first = lost[0] if lost else -1
    agree(finding, compaction=first, message=story.request_of(story.compaction(first).step))


def _sends(story: ReplayStory, index: int, message: int) -> bool:
    """Does the request after a compaction's hold a message, or repeat it in a continuation that is sent for the rest of
    the turn; where another compaction has changed that request, does it hold what the one before left."""
    record, step = story.record(index), story.compaction(index).step + 1
    if record.in_turn or any(isinstance(part, Synthetic) and part.kind == _RESENT for part in record.carried):
        return True
    is_left = record.kept_from > 0 or bool(record.carried)  # else each request is made of the whole log anew
    if is_left and any(item.step <= step for item in story.trace.compactions[index + 1 :]):
        return message >= record.kept_from or holds(record.carried, message)
    return holds(story.views[step][0], message)


def rule_lost(story: ReplayStory, finding: Finding) -> None:
    _loses(story, finding, "the end of its turn")


def earlier_rule_lost(story: ReplayStory, finding: Finding) -> None:
    _loses(story, finding, "the end of the recording")


def _loses(story: ReplayStory, finding: Finding, until: str) -> None:
    """Is a rule in no request from a step on, up to the end of its turn or of the recording."""
    quote, lost = str(number(finding, "rule")), rules_lost(story, number(finding, "message"))
    rules = [rule for rule, (kind, _) in lost.items() if kind == finding.kind and quote and rule.startswith(quote)]
    if not rules:
        raise Wrong(f"the message states no such rule, or a request has it up to {until}")
    same("step", finding.step, lost[rules[0]][1])
    same("count", finding.count, 1)
    agree(finding, is_whole=quote == rules[0])
    kind = POLICIES.get(story.trace.policy)
    rest = "only a summary can hold it" if kind is None or kind.summarises else "the policy makes no summary"
    if f"up to {until}" not in finding.sentence or rest not in finding.sentence:
        raise Wrong("the sentence says otherwise how long, or what else can hold the rule")
    if f'"{quote}{"" if quote == rules[0] else " …"}"' not in finding.sentence:
        raise Wrong("the sentence quotes other words than its data")


def rules_lost(story: ReplayStory, message: int) -> dict[str, tuple[str, int]]:
    """The rules of a message that the requests of a replay lack in the end and that the user had not taken back by
    then, each with the kind of claim that it makes and the step since which none has it."""
    steps = range(len(story.sent))
    turn = [step for step in steps if story.request_of(step) == message]
    later = [step for step in steps if story.session.calls[step].at > message]
    lost = {}
    for rule in rules_of(story, message) if turn else ():
        of_turn, of_all = (_silent(story, steps, message, rule) for steps in (turn, later))
        if of_turn:
            lost[rule] = "rule_lost", of_turn[0]
        elif of_all and outlasts_its_turn(rule):
            lost[rule] = "earlier_rule_lost", of_all[0]
    return {rule: loss for rule, loss in lost.items() if not is_withdrawn(story, message, rule, loss[1])}


def _silent(story: ReplayStory, steps: list[int], message: int, rule: str) -> list[int]:
    """The last of some steps, none of whose requests quotes a rule or is sent with its message repeated."""
    speaking = [
        place
        for place, step in enumerate(steps)
        if story.says(step, rule.strip(END_MARKS)) or _is_repeated(story, step, message)
    ]
    return steps[speaking[-1] + 1 :] if speaking else steps


def _is_repeated(story: ReplayStory, step: int, message: int) -> bool:
    """Does the policy send the message of the turn in which it compacted once more, in words that are not known."""
    earlier = [record for record in story.trace.compactions if record.step <= step]
    again = [part for part in story.views[step][0] if isinstance(part, Synthetic) and part.text is None]
    if any(part.kind in _AGAIN for part in again) and story.request_of(earlier[-1].step) == message:
        return True
    return story.request_of(step) == message and any(record.in_turn and step < record.turn_end for record in earlier)


def _every(story: ReplayStory, finding: Finding, test: Callable[[ReplayStory, int], bool]) -> None:
    real = [index for index in range(len(story.compactions)) if test(story, index)]
    agree(finding, compactions=real)
    if not real:
        raise Wrong("no compaction is so")


def fallback_summary(story: ReplayStory, finding: Finding) -> None:
    _every(story, finding, lambda story, index: any(one.fallback for one in story.record(index).passes))


def empty_summary(story: ReplayStory, finding: Finding) -> None:
    _every(story, finding, _got_nothing)


def _got_nothing(story: ReplayStory, index: int) -> bool:
    """Was a summariser given messages in the last pass, and gave no text."""
    return any(one.summariser_contents and not one.summary_bytes for one in story.record(index).passes[-1:])


def stacked_continuations(story: ReplayStory, finding: Finding) -> None:
    _every(story, finding, lambda story, index: _continuations(story.record(index).after) > 1)
    most = max(_continuations(story.record(index).after) for index in number(finding, "compactions"))
    agree(finding, continuations=most)


def _continuations(view: View) -> int:
    return sum(isinstance(part, Synthetic) and part.kind == "continuation" for part in view)


def tail_lost(story: ReplayStory, finding: Finding) -> None:
    """Messages that the compacting request sends and the next one, built over a log that only grew, does not."""
    losing = {index: lost for index in range(len(story.compactions)) if (lost := _lost(story, index))}
    agree(finding, compactions=list(losing))
    lost = losing[number(finding, "compactions")[0]]
    agree(finding, messages=len(lost), first=min(lost), last=max(lost))


def _lost(story: ReplayStory, index: int) -> set[int]:
    """The messages of the compacting request that the next one does not have; without a next one, none."""
    record = story.record(index)
    if record.step + 1 >= len(story.sent):
        return set()
    carried = _messages(record.carried) | set(range(record.kept_from, story.ledger.event_count))
    return _messages(record.after) - carried


def _messages(view: View) -> set[int]:
    return {event for part in view if isinstance(part, Span) for event in range(part.start, part.stop)}


def timing_gap(story: Story, finding: Finding) -> None:
    caught = [index for index, item in enumerate(story.compactions) if item.step >= 0 and _is_gap(story, item.step)]
    agree(finding, compactions=caught)
    step = step_of(story, finding)
    seen, now, line = (story.column(name, step) for name in ("real_loaded", "decision_tokens", "threshold"))
    agree(finding, seen=seen, now=now, threshold=line, window=story.window)
    last, heuristic = story.column("last_heuristic_loaded", step), story.column("heuristic_decided", step)
    factor = float(story.rule.columns["correction"][step])
    if last > 0 and not math.isnan(factor):
        same("the estimate", now, max(seen, int(heuristic * factor)))


def _is_gap(story: Story, step: int) -> bool:
    """Was the last provider's count below the threshold that the decision reached, by at least GAP of it."""
    seen, now, line = (story.column(name, step) for name in ("real_loaded", "decision_tokens", "threshold"))
    return 0 < seen < line <= now and now - seen >= GAP * line


def still_over(story: Story, finding: Finding) -> None:
    step, calls = step_of(story, finding), range(len(story.sent))
    over = [at for at in calls if story.column("held", at) == STILL_OVER and story.column("threshold", at) > 0]
    if not over or step != over[0]:
        raise Wrong(f"step {step} is not the first at which the last pass left too much")
    same("count", finding.count, len(over))
    agree(finding, heuristic=story.column("heuristic_sent", step), threshold=story.column("threshold", step))
    if "tokens" in finding.numbers:
        agree(finding, tokens=story.sent[step])
    size = float(story.sent[step]) if "tokens" in finding.numbers else float(story.column("heuristic_sent", step))
    if "correction" in story.rule.columns:  # the policy compares the estimate with its correction, or what was counted
        size = max(story.sent[step], size * max(1.0, float(story.rule.columns["correction"][step])))
    if size < story.column("threshold", step):
        raise Wrong("the request is below the threshold")


def no_fit(story: Story, finding: Finding) -> None:
    step, floor = step_of(story, finding), story.attribution.overhead
    limit = max(story.column("threshold", step) for step in range(len(story.sent)))
    agree(finding, floor=floor, threshold=limit, window=story.window)
    held = [
        at for at in range(len(story.sent)) if story.column("held", at) in (FLOOR_OVER_THRESHOLD, FLOOR_OVER_WINDOW)
    ]
    same("count", finding.count, max(1, len(held)))
    if step not in held and not 0 < limit <= floor:
        raise Wrong("what cannot be shrunk is below the threshold")


def correction_limited(story: Story, finding: Finding) -> None:
    step = step_of(story, finding)
    limited = {at: factors for at in range(len(story.sent)) if (factors := _limited(story, at))}
    kind = number(finding, "limit")
    alike = {at: factors for at, factors in limited.items() if (factors[0] > factors[1]) == (kind == "cap")}
    if step not in alike:
        raise Wrong("the factor was not limited")
    raw, applied = alike[step]
    agree(finding, raw=raw, applied=applied)
    same("count", finding.count, len(alike))
    if abs(raw - applied) < max(abs(needed - used) for needed, used in alike.values()):
        raise Wrong("at another step it was further from its limit")


def _limited(story: Story, step: int) -> tuple[float, float] | None:
    """The factor that a step's policy measured and the one it used, where a limit and nothing that the file lacks
    parts them."""
    real, last, origin = (story.column(name, step) for name in ("real_loaded", "last_heuristic_loaded", "real_as_of"))
    if CORRECTION_SOURCES[story.column("correction_source", step)] != "ratio" or real <= 0 or last <= 0:
        return None
    attribution, ledger = story.attribution, story.ledger
    missing = max(0, attribution.overhead - ledger.system_tokens - ledger.tools_tokens)
    first = min((item.step for item in story.compactions if item.step >= 0), default=len(story.sent))
    missing += attribution.prologue if origin < first else 0
    missing += max(0, int(attribution.residual[origin]))
    raw, applied = real / last, float(story.rule.columns["correction"][step])
    if missing > LARGEST_GAP * real or (story.session.usage_ratio is None and raw > MOST_PER_HEURISTIC):
        return None
    return (raw, applied) if raw < applied or min(raw, (real - missing) / last) > applied else None


def inline_data(story: ReplayStory, finding: Finding) -> None:
    step = step_of(story, finding, "step")
    early = {
        story.record(index).step: data for index in range(len(story.compactions)) if (data := _inline(story, index))
    }
    if step not in early:
        raise Wrong("no compaction there is explained by inline data")
    estimate, real, share = early[step]
    agree(finding, window=story.window, estimate=estimate, real=real, inline_share=share)
    same("count", finding.count, len(early))
    if real / estimate > min(other[1] / other[0] for other in early.values()):
        raise Wrong("another compaction was further from its request")


def _inline(story: ReplayStory, index: int) -> tuple[int, int, float] | None:
    """Estimate and request of a compaction, and the share of inline data, where these alone triggered it."""
    record = story.record(index)
    estimate, line = (story.column(name, record.step) for name in ("decision_tokens", "threshold"))
    messages = materialise(record.before, story.session)
    share = sum(event_costs(event)[1] for event in messages) / max(1, record.tokens_before)
    real = story.before(index)
    if share < INLINE or real > INLINE_REAL * estimate or estimate * (1 - share) >= line > estimate:
        return None
    return estimate, real, share


_CHECKS: tuple[Callable[[ReplayStory, Finding], None], ...] = (
    overflow,
    refused_again,
    usage_in_characters,
    late,
    needless,
    needed,
    avoided_overflows,
    request_lost,
    rule_lost,
    earlier_rule_lost,
    fallback_summary,
    empty_summary,
    stacked_continuations,
    tail_lost,
    timing_gap,
    still_over,
    no_fit,
    correction_limited,
    inline_data,
)
# Claims from a policy's arithmetic are also made of recordings whose own rule it is.
OF_A_RULE: dict[str, Callable[..., None]] = {
    check.__name__: check for check in (timing_gap, still_over, no_fit, correction_limited)
}
REPLAYED: dict[str, Callable[..., None]] = {
    **{check.__name__: check for check in _CHECKS},
    "near_miss": near_the_window,
    "summary_not_kept": history_is_back,
    "loop": at_consecutive_steps,
    "thrash": in_quick_succession,
    "sliding_window": drops_at_every_call,
}
