"""How claims about a recording's calls are recomputed: counts, repetitions, cleared results."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from itertools import pairwise

from guard_core.checker.shared import (
    sliding_moves,
)
from guard_core.checker.story import Story, Wrong, agree, holds, number, own_texts, same, step_of
from guard_core.estimation.baselines import count_changes
from guard_core.events import Event, MediaPart, ReasoningPart, ToolCallPart, ToolResultPart, part_text
from guard_core.findings.claims import INFO, Finding
from guard_core.requests import materialise
from guard_core.sessions import RecordedCompaction
from guard_core.tokens.lexical import lexical_tokens
from guard_core.views import Rewritten

_LEAST_CLEARED = 1_024  # tokens; less does not count as clearing
_LONGEST_CYCLE = 6  # calls that are made in turn
_FEWEST_IN_A_ROW, _SMALLEST_RESULT = 5, 20  # calls with one result that are no accident, and its bytes
_LARGE_RESULT = 1_000  # bytes; two results of this size are not equal by accident


def silent_truncation(story: Story, finding: Finding) -> None:
    step = step_of(story, finding, "step")
    after = story.counts[step]
    earlier = [place for place in range(step) if story.counts[place] is not None]
    before = story.counts[earlier[-1]] if earlier else None
    if before is None or after is None:
        raise Wrong("the provider did not count both requests")
    added = sum(lexical_tokens(part_text(part)) for event in _since(story, earlier[-1], step) for part in event.parts)
    agree(finding, before=before, after=after, added=added)
    if after >= before:
        raise Wrong("the count did not fall")
    if story.session.calls[step].at <= story.session.calls[earlier[-1]].at:
        raise Wrong("the log did not grow")
    if story.places[step] != story.places[earlier[-1]]:
        raise Wrong("a recorded compaction explains it")
    is_damaged = any(note.startswith("Damaged lines") for note in story.session.notes)
    if ("Damaged parts" in finding.sentence) != is_damaged:
        raise Wrong("parts of the file could not be read, or all could, and the sentence says otherwise")
    same("count", finding.count, sum(1 for _ in _falls(story)))
    if before + added - after < max(_falls(story)):
        raise Wrong("another fall is deeper")
    back = _returns(story, step, before, before + added - after)
    if (finding.numbers.get("back"), finding.numbers.get("back_step")) != back:
        raise Wrong(f"the count returned to {back[0]} at step {back[1]}")


def _returns(story: Story, step: int, before: int, missing: int) -> tuple[int | None, int | None]:
    """The first count that jumps back to the one before a fall, or to less than a fall below it, and its step: without
    the texts that came before it, half of what was missing or more came with it. Growth by texts ends the search."""
    alike = [
        later
        for later in range(step, len(story.counts))
        if story.counts[later] is not None and story.places[later] == story.places[step]
    ]
    for earlier, later in pairwise(alike):
        count = story.counts[later] or 0
        if story.session.calls[later].model != story.session.calls[step].model:
            continue
        jump = count - (story.counts[earlier] or 0) - _text_tokens(_since(story, earlier, later))
        if 2 * jump >= missing and before - count < _least_fall(before):
            return count, later
        if count >= before:
            break
    return None, None


def _least_fall(before: int) -> int:
    return max(2_000, before // 10)


def _falls(story: Story) -> Iterator[int]:
    """By how many tokens each counted request is smaller than the one before it and what was added since, where neither
    a compaction, another model or way of counting, nor reasoning that a new turn leaves out explains it."""
    calls, counts = story.session.calls, story.counts
    counted = [step for step, count in enumerate(counts) if count is not None]
    recounted, repeated = {jump.step for jump in count_changes(story.ledger)}, set(_repeated(story))
    turns = [story.request_of(step) for step in range(len(calls))]
    any_output, fallen = any(call.output_tokens is not None for call in calls), (0, 0)
    for first, last in pairwise(counted):
        before, after = counts[first] or 0, counts[last] or 0
        is_continued = story.places[first] == story.places[last] and calls[first].model == calls[last].model
        if not is_continued or after >= before or calls[last].at <= calls[first].at:
            continue
        missing = before + _text_tokens(_since(story, first, last)) - after
        outputs = [call.output_tokens for call, turn in zip(calls, turns, strict=True) if turn == turns[first]]
        written = sum(call.output_tokens or 0 for call in calls[turns.index(turns[first]) : last])
        if not any_output:
            written = sum(map(_reasoning_bytes, story.session.events[max(turns[first], 0) : calls[last].at])) // 3
        if turns[first] != turns[last] and ((any_output and None in outputs) or missing <= written):
            continue
        if missing < _least_fall(before) or first in repeated or last in recounted:
            continue
        if not _had_risen(story, [step for step in counted if step < last], last, missing, fallen):
            fallen = (last, before)
            yield missing


def _had_risen(story: Story, earlier: list[int], step: int, missing: int, fallen: tuple[int, int]) -> bool:
    """Is hardly anything missing against one of the four counts before the last one, and was the last fall (its step
    and the count before it) made up for by then: what is gone had come with few calls."""
    calls, after = story.session.calls, story.counts[step] or 0
    for later, place in pairwise(reversed(earlier[-5:])):
        since = _since(story, place, step)
        regained = max((story.counts[one] or 0 for one in range(fallen[0], place + 1)), default=0)
        if regained < fallen[1] - _least_fall(fallen[1]) or calls[place].at > calls[later].at:
            return False
        if (story.places[place], calls[place].model) != (story.places[step], calls[step].model):
            return False
        if any(isinstance(part, MediaPart) for event in since for part in event.parts):
            return False
        lacking = (story.counts[place] or 0) + _text_tokens(since) - after
        if lacking < _least_fall(story.counts[place] or 0) and 2 * lacking <= missing:
            return True
    return False


def _reasoning_bytes(event: Event) -> int:
    """Bytes of the words or of what is encrypted, whichever are more: a file may have both of one thought."""
    parts = [part for part in event.parts if isinstance(part, ReasoningPart)]
    words = sum(len(part.text.encode("utf-8", "surrogatepass")) for part in parts)
    return max(words, sum(part.opaque_bytes for part in parts))


def usage_in_characters(story: Story, finding: Finding) -> None:
    same, compared = story.in_characters
    agree(finding, same=len(same), compared=compared, least_bytes=400)
    if not same or finding.step != same[0]:
        raise Wrong("it is not the first count that grew by a token for each byte")


def usage_repeated(story: Story, finding: Finding) -> None:
    counted = [step for step, count in enumerate(story.counts) if count is not None]
    repeated = _repeated(story)
    agree(finding, repeated=len(repeated), counted=len(counted))
    if not repeated or finding.step != repeated[0]:
        raise Wrong("it is not the first count that repeats the one before")


def _repeated(story: Story) -> list[int]:
    """The steps whose count is that of the counted call before, though the requests differ."""
    counted = [step for step, count in enumerate(story.counts) if count is not None]
    return [
        after
        for before, after in pairwise(counted)
        if story.counts[before] == story.counts[after]
        and _text_tokens(_since(story, before, after)) > 20
        and (
            story.places[before] == story.places[after]
            or abs(_sent_text(story, after) - _sent_text(story, before)) > 20
        )
    ]


def results_cleared(story: Story, finding: Finding) -> None:
    """Which results are shorter in a request: each is that of the call whose id it has, by the texts of both."""
    edited: dict[int, float] = {}
    recorded: set[int] = set()
    left: dict[int, int] = {}
    saved = cuts = 0
    for step, place in enumerate(story.places):
        is_first = place >= 0 and (step == 0 or place != story.places[step - 1])
        for part in _edited(story.session.compactions[place]) if is_first else ():
            whole = story.session.events[part.event]
            if not _answered(part.message) <= _answered(whole):
                raise Wrong(f"message {part.event} has the result of another call than the one sent at step {step}")
            removed = left.get(part.event, _result_bytes(whole)) - _result_bytes(part.message)
            if removed > 0:
                left[part.event] = _result_bytes(part.message)
                cuts += 1
                saved += removed
                tokens = int(story.attribution.tokens[part.event]) * removed / _text_bytes(whole)
                edited[step] = edited.get(step, 0) + tokens
                recorded |= {step} if story.session.compactions[place].evidence != "inferred" else set()
    tokens = sum(map(round, edited.values()))
    if tokens < _LEAST_CLEARED and not recorded:
        raise Wrong("no result is shorter in a later request, or hardly so")
    agree(finding, messages=len(left), cuts=cuts, bytes=saved, tokens=tokens, edits=len(edited))
    agree(finding, recorded=len(recorded))
    same("the first step", finding.step, min(edited))
    same("its steps", list(finding.steps), sorted(edited)[: len(finding.steps)])


def asked_again(story: Story, finding: Finding) -> None:
    """Results of earlier calls that were obtained again and that no message of the request before them still had."""
    moves = sliding_moves(story)
    lasting = [index for index in range(len(story.compactions)) if story.first_call_after(index) >= 0]
    lasting = [index for index in lasting if index not in moves and story.compaction(index).step >= 0]
    ats = [story.recorded(index).at for index in lasting]
    places = [item.at for item in story.session.compactions]
    seen: dict[tuple[object, ...], list[tuple[int, int, int]]] = {}
    for _, event, key, size in _answered_calls(story):
        if size < _LARGE_RESULT:
            continue
        since = sum(at <= event for at in ats)
        share = int(story.attribution.tokens[event]) * size // max(1, _text_bytes(story.session.events[event]))
        seen.setdefault(key, []).append((since, event, share))
    repeated: dict[int, list[int]] = {}
    for results in seen.values():
        if len({since for since, _, _ in results}) < len(results):  # it was asked for again and again
            continue
        for later, (since, event, share) in enumerate(results[1:], start=1):
            place = sum(at <= event for at in places) - 1
            if not any(_still_has(story, place, old) for _, old, _ in results[:later]):
                repeated.setdefault(lasting[since - 1], []).append(share)
    real = {index: shares for index, shares in repeated.items() if len(shares) >= 3 and sum(shares) >= 2_000}
    index = number(finding, "compaction")
    if index not in real or sum(real[index]) < max(map(sum, real.values())):
        raise Wrong("fewer results came again after it, or after another compaction more")
    agree(finding, results=len(real[index]), tokens=sum(real[index]), compactions=sorted(real))
    same("step", finding.step, story.compaction(index).step)


def repeated_call(story: Story, finding: Finding) -> None:
    """Results one behind the other, or some in turn, that are the same as before, and so are their calls."""
    answered = list(_answered_calls(story))
    keys, sizes = [key for _, _, key, _ in answered], [size for _, _, _, size in answered]
    long: list[tuple[int, int, int, int]] = []  # how often, the first call, the last one, how many in turn
    for cycle in range(1, _LONGEST_CYCLE + 1):
        place = 0
        while place + cycle < len(keys):
            end = place + cycle
            while end < len(keys) and keys[end] == keys[end - cycle]:
                end += 1
            rounds, turn = (end - place) // cycle, keys[place : place + cycle]
            is_shorter = any(turn == turn[:size] * (cycle // size) for size in range(1, cycle) if cycle % size == 0)
            if rounds >= _FEWEST_IN_A_ROW and not is_shorter and max(sizes[place : place + cycle]) >= _SMALLEST_RESULT:
                long.append((rounds, answered[place][0], answered[place + rounds * cycle - 1][0], cycle))
            place = max(place + 1, end - cycle + 1)
    if not long:
        raise Wrong("no calls were made so often in a row, or in turn, with the same results")
    steps = {called: max(0, sum(call.at <= called for call in story.session.calls) - 1) for called, *_ in answered}
    rounds, first, last, cycle = max(long, key=lambda run: (run[0], -steps[run[1]]))
    agree(finding, rounds=rounds, cycle=cycle, first=steps[first], last=steps[last], runs=len(long))
    if (finding.severity == INFO) != (rounds < 2 * _FEWEST_IN_A_ROW):
        raise Wrong("the claim is graver or milder than its count")
    same("step", finding.step, steps[first])


def _answered_calls(story: Story) -> Iterator[tuple[int, int, tuple[str, ...], int]]:
    """The results whose call is known: the messages of both, the tool with both texts, and the result's bytes. Of the
    messages with calls of one id the newest is answered, of those with calls of one name and without an id the oldest.
    """
    asked: dict[str, OrderedDict[int, list[str]]] = {}
    for event, message in enumerate(story.session.events):
        for part in message.parts:
            text = part_text(part)
            if isinstance(part, ToolCallPart):
                key = part.id or f"by name: {part.name}"
                asked.setdefault(key, OrderedDict()).setdefault(event, []).append(text)
            elif isinstance(part, ToolResultPart):
                by_id = asked.get(part.call_id)
                waiting = by_id or asked.get(f"by name: {part.name}")
                if not waiting:
                    continue
                called = next(reversed(waiting) if by_id else iter(waiting))
                words = waiting[called].pop(0)
                if not waiting[called]:
                    del waiting[called]
                yield called, event, (part.name, text, words), len(text.encode("utf-8", "surrogatepass"))


def _still_has(story: Story, place: int, event: int) -> bool:
    """Has a recorded compaction left a result in the context, as it was in the log or written anew."""
    item = story.session.compactions[place]
    if item.kind == "edit" and (item.tokens_before or 0) <= 0:  # cleared or repeated: not judged
        return True
    if holds(item.base, event) or any(isinstance(part, Rewritten) and part.event == event for part in item.base):
        return True
    ids = _answered(story.session.events[event])
    return any(_answered(message) & ids for message in own_texts(item))


def _text_bytes(event: Event) -> int:
    return sum(len(part_text(part).encode("utf-8", "surrogatepass")) for part in event.parts)


def _edited(item: RecordedCompaction) -> list[Rewritten]:
    """The messages that an edit changed: one that the file records, or that only the requests show."""
    is_counted = item.kind != "edit" or (item.tokens_before or 0) > 0
    if is_counted or (item.evidence == "inferred" and (item.trigger or item.note)):
        return []
    return [part for part in item.base if isinstance(part, Rewritten)]


def _answered(event: Event) -> set[str]:
    return {part.call_id for part in event.parts if isinstance(part, ToolResultPart) and part.call_id}


def _result_bytes(event: Event) -> int:
    """UTF-8 bytes of a message's tool results."""
    results = (part_text(part) for part in event.parts if isinstance(part, ToolResultPart))
    return sum(len(text.encode("utf-8", "surrogatepass")) for text in results)


def cached_above(story: Story, finding: Finding) -> None:
    """More cached tokens than prompt tokens, which no request can have."""
    calls = list(enumerate(story.session.calls))
    above = [step for step, call in calls if call.prompt_tokens and (call.cached_tokens or 0) > call.prompt_tokens]
    if not above or finding.step != above[0]:
        raise Wrong("it is not the first call with more cached tokens than prompt tokens")
    call = story.session.calls[above[0]]
    counted = sum(count is not None for count in story.counts)
    agree(finding, above=len(above), counted=counted, prompt=call.prompt_tokens, cached=call.cached_tokens)


def _since(story: Story, first: int, last: int) -> tuple[Event, ...]:
    """The messages that the log grew by between the calls of two steps."""
    return story.session.events[story.session.calls[first].at : story.session.calls[last].at]


def _sent_text(story: Story, step: int) -> int:
    view, place = story.view_on(story.places[step], story.session.calls[step].at)
    return _text_tokens(materialise(view, story.session, place))


def _text_tokens(events: Iterable[Event]) -> int:
    return sum(lexical_tokens(part_text(part)) for event in events for part in event.parts)


def no_usage(story: Story, finding: Finding) -> None:
    calls = story.session.calls
    missing = [step for step, call in enumerate(calls) if story.counts[step] is None and call.response is not None]
    answered = [call for step, call in enumerate(calls) if story.counts[step] or call.response is not None]
    agree(finding, missing=len(missing), calls=len(answered))
    if ("Every figure is an estimate" in finding.sentence) != (len(missing) == len(answered)):
        raise Wrong("only where no call is counted is every figure an estimate")
    unread = any("look like counts of tokens" in note for note in story.session.notes)
    if ("that can be read" in finding.sentence) != (unread and len(missing) == len(answered)):
        raise Wrong("only where the file's counts were left out are there some that cannot be read")
    if finding.step not in missing:
        raise Wrong(f"the call of step {finding.step} is counted")
    total, over = story.session.prompt_tokens_total, story.session.total_calls
    if story.average is not None:
        agree(finding, total=total, total_calls=over, average=story.average)
    elif total and not over and len(missing) == len(answered) and story.session.usage_ratio is None:
        agree(finding, total=total, each=int(total / len(answered) + 0.5))
    elif "total" in finding.numbers or "average" in finding.numbers:
        raise Wrong("the session has no total, or counts of single calls")


def left_branches(story: Story, finding: Finding) -> None:
    left, peak = story.session.left, max(story.sent)
    if left is None or not (left.compactions or left.refused or left.largest > peak):
        raise Wrong("no branch that was left has more than this one")
    agree(finding, messages=left.messages, compactions=left.compactions, refused=left.refused)
    if left.largest > peak:
        agree(finding, largest=left.largest, peak=peak)
    elif "largest" in finding.numbers:
        raise Wrong("no prompt on a branch that was left is larger")
