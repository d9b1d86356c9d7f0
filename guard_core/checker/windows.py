"""How claims about a recording's window are recomputed: what exceeded it, and compactions that were needed or not."""

from __future__ import annotations

from guard_core.checker.shared import (
    answer_rooms,
    came_too_late,
    comes_near,
    fullest_without,
    is_forced,
    largest_over,
    near_the_window,
    refused_before,
    says_what_is_uncounted,
    sliding_moves,
    tight_calls,
)
from guard_core.checker.story import Story, Wrong, agree, number, same, step_of
from guard_core.events import MediaPart, ReasoningPart, part_text
from guard_core.findings.claims import TRIGGER_NOT_RECORDED, Finding
from guard_core.sessions import Session
from guard_core.windows.window_evidence import Status

# Recorders' words.
_AUTOMATIC = (
    *("auto", "automatic", "threshold", "overflow", "image_overflow", "contextguard"),
    *("memory_pressure", "model_switch", "preflight", "cut_off", "plugin"),
)
_AT_ANY_SIZE = ("cut_off", "image_overflow", "memory_pressure", "model_switch", "plugin")
_UNSEEN = 20_000  # tokens of attached files and reminders that a request may have besides the text in the file


def window_contradicted(story: Story, finding: Finding) -> None:
    if story.average is not None:
        if story.average <= story.window:
            raise Wrong(f"the average request of {story.average} tokens is not larger than {story.window}")
        agree(finding, window=story.window, tokens=story.average, calls=story.session.total_calls)
        return
    calls, windows = story.session.calls, story.session.windows
    is_own = [story.stated(call) == story.window if windows else call.model not in story.by_model for call in calls]
    own = [count or 0 for count, counts_here in zip(story.counts, is_own, strict=True) if counts_here]
    larger = [count for count in own if count > story.window]
    if not larger:
        raise Wrong(f"no answered request is larger than {story.window}")
    worst = max(larger)
    agree(finding, window=story.window, tokens=worst, calls=len(larger))
    same("the count at its step", worst, story.counts[step_of(story, finding, "step")])


def window_doubted(story: Story, finding: Finding) -> None:
    fired = [tokens for tokens in _triggers(story) if tokens > 0]
    if not fired or max(fired) >= story.window / 2:
        raise Wrong("not every automatic compaction fired below half of the window")
    agree(finding, window=story.window, low=min(fired), high=max(fired), compactions=len(fired))
    forced = all(_followed_refusal(story.session, place) for place in _of_this_window(story))
    if forced != ("after a refused request" in finding.sentence) or forced == ("set by hand" in finding.sentence):
        raise Wrong("each of them followed a refused request, or not, and the claim says otherwise")
    words = [story.session.compactions[place].trigger.lower() for place in _of_this_window(story)]
    _says_who_asked(finding, [word for word, tokens in zip(words, _triggers(story), strict=True) if tokens > 0])


def _says_who_asked(finding: Finding, words: list[str]) -> None:
    """Of how many of these compactions, by the recorder's words, the file does not say that they were automatic."""
    unsaid = sum(word not in _AUTOMATIC for word in words)
    same("unknown_trigger", finding.numbers.get("unknown_trigger", 0), unsaid)
    is_assumption_named = "taken as automatic" in finding.sentence and TRIGGER_NOT_RECORDED in finding.assumptions
    if is_assumption_named != bool(unsaid):
        raise Wrong(f"the file does not say of {unsaid} of them that they were automatic, and the claim says otherwise")
    if 0 < unsaid < len(words) and f"{unsaid:,} of them" not in finding.sentence:
        raise Wrong("the claim says of all of them what is so of some")


def _followed_refusal(session: Session, place: int) -> bool:
    """Did a request fail as too long between a recorded compaction and the last call before it."""
    item = session.compactions[place]
    since = max((call.at for call in session.calls if call.at < item.at), default=0)
    return item.trigger == "overflow" or any(since < at <= item.at for at in refused_before(session, place))


def _of_this_window(story: Story) -> list[int]:
    """The places of the compactions that nobody asked for, without those beside a call of a model that has another
    window."""
    of_this = []
    for place in (item.place for item in story.compactions if not item.is_manual):
        item = story.session.compactions[place]
        if item.trigger.lower() in _AT_ANY_SIZE:
            continue
        names = [call.model for call in story.session.calls if call.at < item.at][-1:]
        names += [call.model for call in story.session.calls if call.at >= item.at][:1]
        if not any(story.by_model.get(name) for name in names):
            of_this.append(place)
    return of_this


def _triggers(story: Story) -> list[int]:
    tokens = []
    for recorded in (story.session.compactions[place] for place in _of_this_window(story)):
        prompts = [call.prompt_tokens for call in story.session.calls if call.at < recorded.at and call.prompt_tokens]
        tokens.append(recorded.tokens_before or (prompts[-1] if prompts else 0))
    return tokens


def overflow(story: Story, finding: Finding) -> None:
    uncounted = [step for step, count in enumerate(story.counts) if count is None]
    over = [step for step in uncounted if story.is_over(step, story.sent[step])]
    if not over:
        raise Wrong("no request without a count is larger than the window")
    answered = sum(story.session.calls[step].response is not None for step in over)
    agree(finding, calls=len(over), first=over[0], last=over[-1], answered=answered)
    largest_over(story, finding, over)


def near_miss(story: Story, finding: Finding) -> None:
    near_the_window(story, finding)


def late(story: Story, finding: Finding) -> None:
    unanswered = [step for step, call in enumerate(story.session.calls) if call.response is None]
    came_too_late(story, finding, [step for step in unanswered if story.counts[step] is None])


def _exceeds_its_calls(story: Story, place: int) -> bool:
    """Is the recorder's figure more than any request can have had so soon after the counted one before it: a byte of
    what came since is at most a token, and attached files may have come along."""
    item = story.session.compactions[place]
    earlier = [call for call in story.session.calls if call.at < item.at and call.prompt_tokens]
    if not earlier or (place and earlier[-1].at < story.session.compactions[place - 1].at):
        return False
    parts = [part for event in story.session.events[earlier[-1].at : item.at] for part in event.parts]
    if any(isinstance(part, MediaPart) for part in parts):
        return False
    size = sum(len(part_text(part).encode("utf-8", "surrogatepass")) for part in parts)
    size += sum(part.opaque_bytes for part in parts if isinstance(part, ReasoningPart))
    room = (earlier[-1].prompt_tokens or 0) + (earlier[-1].output_tokens or 0) + size + _UNSEEN
    return (item.tokens_before or 0) > room


def counted_over(story: Story, finding: Finding) -> None:
    counts = {
        index: story.recorded(index).tokens_before or 0
        for index, item in enumerate(story.compactions)
        if item.step >= 0 and not _exceeds_its_calls(story, item.place)
    }
    over = [index for index, tokens in counts.items() if story.is_over(story.compaction(index).step, tokens)]
    if not over:
        raise Wrong("the agent never counted more than the window")
    window = story.windows[story.compaction(over[0]).step]
    agree(finding, compaction=over[0], tokens=counts[over[0]], window=window, compactions=over)


def refused(story: Story, finding: Finding) -> None:
    calls, places = story.session.calls, sorted(story.session.refused)
    if not places:
        raise Wrong("the file has no request that failed as too long")
    compacted = 0
    cuts = [
        (story.session.compactions[item.place].at, len(refused_before(story.session, item.place)))
        for item in story.compactions
    ]
    for nth, place in enumerate(places):
        later = [call.at for call in calls if call.at >= place]
        compacted += any(nth < before and (not later or cut <= later[0]) for cut, before in cuts)
    before = sum(call.at < places[0] for call in calls)
    agree(finding, requests=len(places), after=before - 1, compacted=compacted)
    limits, sizes = ({getattr(item, name) for item in story.session.refusals} for name in ("limit", "tokens"))
    if len(limits) == 1:
        agree(finding, limit=max(limits))
        same("stated", finding.numbers.get("stated", 0), max(sizes))
        if ("with room for an answer" in finding.sentence) != (0 < max(sizes) <= max(limits)):
            raise Wrong("only a request below the limit is refused for the room of its answer")
    elif {"limit", "stated"} & set(finding.numbers):
        raise Wrong("the provider stated no limit, or several")
    window = story.judgement.value
    same("window", finding.numbers.get("window", window), window)
    if "window" in finding.numbers and not number(finding, "limit") < window:
        raise Wrong("the limit is not below the window")
    if ("A compaction followed" in finding.sentence) != (compacted == len(places)):
        raise Wrong("a compaction followed each of them, or not, and the claim says otherwise")
    same("step", finding.step, max(0, before - 1))


def without_automatic(story: Story) -> list[int]:
    """Prompt tokens at every step had no automatic compaction been made: manual ones stay, and so do edits of a
    history that nothing automatic had compacted."""
    counted = {item.place: item for item in story.compactions}
    removed = {story.compaction(index).place for index in story.removed_automatic()}
    tokens = []
    for step, call in enumerate(story.session.calls):
        base, compacted, in_force = -1, False, set(story.places[: step + 1])
        for place in range(story.places[step] + 1):
            if place in removed or (place in counted and counted[place].is_manual):
                compacted = place in removed
            if not compacted and place in in_force:
                base = place
        tokens.append(story.price(step, *story.view_on(base, call.at)))
    return tokens


def _without(story: Story, finding: Finding) -> list[int]:
    removed = story.removed_automatic()
    same("compactions", number(finding, "compactions"), len(removed))
    if any(map(story.removes_nothing, removed)):
        raise Wrong("the file does not hold what a compaction took away, so nothing is known without it")
    words = (story.recorded(index).trigger.lower() for index in removed)
    _says_who_asked(finding, list(words))
    tokens = without_automatic(story)
    fullest_without(story, finding, tokens)
    says_what_is_uncounted(story, finding)
    peak = max(range(len(story.sent)), key=story.sent.__getitem__)
    if story.counts[peak] is None and max(tokens) < story.sent[peak]:
        raise Wrong("a request with them, itself only modelled, is larger than any without them")
    return tokens


def needless(story: Story, finding: Finding) -> None:
    tokens = _without(story, finding)
    if comes_near(story, tokens) or tight_calls(story, finding, tokens):
        raise Wrong("without them a request would have come near the window, or have left no room for an answer")
    if not all(story.windows):
        raise Wrong("the window of a call's model is not known")
    if story.judgement.status is Status.DOUBTED:
        raise Wrong("the window is doubted")
    if story.session.refused or any(is_forced(story, index) for index in story.removed_automatic()):
        raise Wrong("the file has a request that failed as too long")
    if any(story.recorded(index).trigger == "requested" for index in story.removed_automatic()):
        raise Wrong("a request that failed as too long may have asked for a compaction")
    if sliding_moves(story) & set(story.removed_automatic()):
        raise Wrong("a window slides by design")


def needed(story: Story, finding: Finding) -> None:
    tokens = _without(story, finding)
    if not tight_calls(story, finding, tokens) and not comes_near(story, tokens):
        raise Wrong("without them no request would have come near the window, and each would have left room to answer")
    first = min(item.step for item in story.compactions if item.step >= 0 and not item.is_manual)
    could_wait(story, finding, tokens, first)


def could_wait(story: Story, finding: Finding, tokens: list[int], first: int) -> None:
    """How much later the first compaction could have come: up to the first request over the window."""
    agree(finding, first=first)
    rooms = answer_rooms(story, finding)
    later = [step for step in range(first, len(tokens)) if story.is_over(step, tokens[step] + rooms[step])]
    index = next(index for index, item in enumerate(story.compactions) if item.step == first)
    refused = story.trace is None and (story.is_over(first, story.before(index)) or is_forced(story, index))
    if later and not refused:
        agree(finding, first_over=later[0], could_wait=later[0] - first)
    elif "could_wait" in finding.numbers:
        raise Wrong("it could not have come later, or no request after it would have been over the window")
