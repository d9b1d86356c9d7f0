"""Checks that a recording and a replay share: they need only the tokens sent and the steps of the compactions."""

from __future__ import annotations

import re
from itertools import islice, pairwise, takewhile

from guard_core.checker.story import ReplayStory, Story, Wrong, agree, number, same, step_of
from guard_core.events import Event, ReasoningPart, part_text
from guard_core.findings.claims import Finding
from guard_core.policies import POLICIES
from guard_core.sessions import ANSWER_LIMIT, Provenance, RecordedCompaction, Session
from guard_core.views import Rewritten, Span, View

NEAR_MISS = 0.9  # of the window
LOOP = 3  # compactions at consecutive steps
LATE = 3  # steps at most from a request over the window to the compaction that came too late for it
BACK_GROWTH, BACK_SHARE = 1.5, 0.5  # a history is back at 1.5 times what was added and half of what was removed
MOST_ABOVE = 4  # times the largest request; a larger figure of a recorder is not a request's
THRASH, THRASH_GAP = 3, 5  # so many compactions, at most so many steps between two of them
SLIDING_GAP = 10  # steps at most between two moves of a window
NOTE = 400  # UTF-8 bytes at most of a note in place of what was dropped
_DIGITS = re.compile(r"[0-9]+")


def near_the_window(story: Story, finding: Finding) -> None:
    """The fullest request between nine tenths of its window and the window, and how often one came there."""
    shares = [story.filled(step, tokens) for step, tokens in enumerate(story.sent)]
    near = [NEAR_MISS * window < tokens <= window for tokens, window in zip(story.sent, story.windows, strict=True)]
    approaches = sum(is_near and not before for before, is_near in pairwise([False, *near]))
    if not approaches:
        raise Wrong("no request is near the window")
    fullest = max(share for share, is_near in zip(shares, near, strict=True) if is_near)
    step = step_of(story, finding)
    agree(finding, window=story.windows[step], tokens=story.sent[step], share=fullest, approaches=approaches)
    same("the share at its step", fullest, shares[step])


def largest_over(story: Story, finding: Finding, over: list[int]) -> None:
    """The request that is furthest over its window, among those that are."""
    step = step_of(story, finding)
    if step not in over:
        raise Wrong(f"the request of step {step} is not one of them")
    worst = max(story.filled(place, story.sent[place]) for place in over)
    agree(finding, window=story.windows[step], tokens=story.sent[step], over_share=worst - 1)
    same("the share at its step", worst, story.filled(step, story.sent[step]))


def fullest_without(story: Story, finding: Finding, tokens: list[int]) -> None:
    """The request that would have filled its window most, had nothing been compacted."""
    step = step_of(story, finding, "peak_step")
    agree(finding, peak=tokens[step], window=story.windows[step])
    is_other = story.has_other_window(step)
    if finding.numbers.get("own_window", 0) != (story.window if is_other else 0):
        raise Wrong("the fullest request is held against another model's window, or not, and the claim says otherwise")
    larger = max(tokens) if max(tokens) > tokens[step] else 0
    if finding.numbers.get("larger", 0) != larger or (larger and "the largest request" in finding.sentence):
        raise Wrong("a request that fills less of a larger window is larger, and the claim does not say so")
    agree(finding, calls_over=sum(story.is_over(place, count) for place, count in enumerate(tokens)))
    fullest = max(story.filled(place, count) for place, count in enumerate(tokens))
    same("the share at the peak's step", story.filled(step, tokens[step]), fullest)


def comes_near(story: Story, tokens: list[int]) -> bool:
    """Would any of these requests fill nine tenths of its window."""
    pairs = zip(tokens, story.windows, strict=True)
    return any(window > 0 and count >= NEAR_MISS * window for count, window in pairs)


_ANSWERS = {"Claude Code": 32_000, "OpenCode": 32_000, "Kilo Code": 32_000}  # tokens that an answer has by default


def answer_rooms(story: Story, finding: Finding) -> list[int]:
    """What an answer may take of every step's window: the longest recorded one, or what the agent allows."""
    session = story.session
    longest = max((call.output_tokens or 0 for call in session.calls), default=0)
    is_input = session.agent_format == "gemini-cli"
    is_input |= session.agent_format == "codex" and story.judgement.source is Provenance.RECORDER
    names = [(call.model or session.model).lower() for call in session.calls]
    joint = [not is_input and "gemini" not in name and not name.startswith("openai-codex/") for name in names]
    claimed = finding.numbers.get("answer", longest if finding.kind == "needed" and any(joint) else 0)
    source = finding.numbers.get("answer_source", "longest")
    if source == "longest" and claimed != (longest if any(joint) else 0):
        raise Wrong(f"the longest answer has {longest} tokens")
    if source != "longest" and (claimed <= longest or (source == "default" and claimed not in _ANSWERS.values())):
        raise Wrong("an answer was longer, or that is no agent's default")
    if source == "requests" and claimed not in {item.value for item in session.settings if item.name == ANSWER_LIMIT}:
        raise Wrong("no request allows so much")
    pairs = zip(Story(session, story.judgement).windows, session.calls, strict=True)  # of the recording
    if source == "requests" and any(
        call.response is not None and (call.prompt_tokens or 0) + claimed > window > 0 for window, call in pairs
    ):
        raise Wrong("a request was answered that left less room")
    if (source == "default") != ("'s default" in finding.sentence and "rule_defaults" in finding.assumptions):
        raise Wrong("the claim does not say, or says, that it rests on a default")
    return [claimed * is_joint for is_joint in joint]


def tight_calls(story: Story, finding: Finding, tokens: list[int]) -> int:
    """How many requests fit their window, and leave no room for an answer."""
    rooms = answer_rooms(story, finding)
    pairs = enumerate(zip(tokens, rooms, strict=True))
    tight = sum(not story.is_over(step, count) and story.is_over(step, count + room) for step, (count, room) in pairs)
    same("tight", finding.numbers.get("tight", 0), tight)
    if bool(tight) != (" without room for an answer" in finding.sentence):
        raise Wrong("the claim says otherwise whether an answer has room")
    return tight


def came_too_late(story: Story, finding: Finding, possible: list[int]) -> None:
    """Compactions shortly after a request that was over the window; `possible` are the steps that could be."""
    over = [step for step in possible if story.is_over(step, story.sent[step])]
    real, previous = {}, -1
    for index, item in enumerate(story.compactions):
        if item.step < 0:
            continue
        recent = [step for step in over if max(previous + 1, item.step - LATE) <= step < item.step]
        if recent:
            real[index] = recent[0]
        previous = item.step
    if not real:
        raise Wrong("no compaction came shortly after a request over the window")
    first, step = next(iter(real.items()))
    agree(
        finding, compaction=first, compactions=list(real), step_over=step, step_compacted=story.compaction(first).step
    )
    agree(finding, tokens=story.sent[step], window=story.windows[step])


def history_is_back(story: Story, finding: Finding) -> None:
    """A request that is larger than what was added since a compaction explains."""
    index, again_step = number(finding, "compaction"), step_of(story, finding, "again_step")
    step = story.compaction(index).step
    if step not in _steps_that_last(story):
        raise Wrong("the policy makes each request anew, or drops messages at every call")
    if step >= again_step:
        raise Wrong("no request was sent between the two")
    before, after, added = story.before(index), story.sent[step], max(0, story.log_grew(step, again_step))
    following = [later for later, item in enumerate(story.compactions) if item.step == again_step]
    again = story.before(following[0]) if following else story.sent[again_step]
    agree(finding, before=before, after=after, added=added, again=again)
    if again <= after + BACK_GROWTH * added + BACK_SHARE * max(0, before - after):
        raise Wrong("what was added since explains the request")
    same("count", finding.count, sum(_comes_back(story, later) for later in range(len(story.compactions))))


def _comes_back(story: Story, index: int) -> bool:
    """Has any request on top of a compaction alone, or the one that the next would have been, the history back."""
    fired = [later for later, item in enumerate(story.compactions) if item.step >= 0]
    if index not in fired or index in sliding_moves(story):
        return False
    following = next((later for later in fired if later > index), None)
    step, stop = story.compaction(index).step, len(story.sent)
    if isinstance(story, ReplayStory):
        stop = stop if following is None else story.compaction(following).step
    else:
        stop = next((at for at in range(step, stop) if story.places[at] != story.places[step]), stop)
    again = {at: story.sent[at] for at in range(step + 1, stop) if story.trace or story.counts[at] is not None}
    before, after = story.before(index), story.sent[step]
    if following is not None:
        again |= {stop: story.before(following)} if story.compaction(following).step == stop else {}
    figures = [before] if following is None else [before, story.before(following)]
    if before <= after or (story.trace is None and max(figures) > MOST_ABOVE * max(story.sent)):
        return False
    if following is not None and story.compaction(following).step == step:
        return False  # no request was sent between the two
    return any(
        count > after + BACK_GROWTH * max(0, story.log_grew(step, at)) + BACK_SHARE * (before - after)
        for at, count in again.items()
    )


def sliding_stretches(story: Story) -> list[list[tuple[int, int]]]:
    """The compactions, each with its step, by stretch, that dropped or changed messages every few calls without a
    summary."""
    fired = [(item.step, index) for index, item in enumerate(story.compactions) if item.step >= 0]
    is_anew = False
    if isinstance(story, ReplayStory):
        if story.trace.policy not in POLICIES or POLICIES[story.trace.policy].summarises:
            return []
        is_anew = not any(story.record(index).carried or story.record(index).kept_from for _, index in fired)
    else:
        fired = [(step, index) for step, index in fired if _only_drops(story, step, index)]
        fired = [(step, index) for step, index in fired if not _removed_most(story, step, index)]
    stretches: list[list[tuple[int, int]]] = []
    for step, index in fired:
        if stretches and step - stretches[-1][-1][0] <= SLIDING_GAP:
            stretches[-1].append((step, index))
        else:
            stretches.append([(step, index)])
    return [
        stretch
        for stretch in stretches
        if len({step for step, _ in stretch}) >= LOOP
        and 2 * _from_the_log(story, *stretch[-1]) >= _from_the_log(story, *stretch[0])
        and all(is_anew or _only_drops(story, *item) for item in stretch)
        and len({_DIGITS.sub("0", note) for _, index in stretch if (note := _note(story, index))}) <= 1
    ]


def _removed_most(story: Story, step: int, index: int) -> bool:
    """Has the request after a recorded compaction that wrote something less than half as many messages of the log as
    the one before."""
    if isinstance(story, ReplayStory) or all(isinstance(part, Span) for part in story.recorded(index).base):
        return False
    before = story.views[step - 1][0] if step else ()
    return 2 * _from_the_log(story, step, index) < _logged(before)


def _only_drops(story: Story, step: int, index: int) -> bool:
    """Did a compaction put nothing into the request, and leave it, as far as is known, below the limit."""
    if isinstance(story, ReplayStory):
        return not 0 <= int(story.trace.columns["threshold"][step]) <= story.sent[step]
    item = story.recorded(index)
    inserted = [part for part in item.base if not isinstance(part, Span | Rewritten)]
    if item.trigger == "overflow" or (inserted and len(inserted) == len(item.base)):
        return False
    if not inserted:
        return item.kind in ("trim", "edit")
    is_summary = item.kind not in ("trim", "edit") and (item.evidence != "inferred" or item.summariser is not None)
    size = len(_note(story, index).encode("utf-8", "surrogatepass"))
    return len(inserted) == 1 and not is_summary and 0 < size <= NOTE


def _note(story: Story, index: int) -> str:
    """The texts that a recorded compaction inserted."""
    if isinstance(story, ReplayStory):
        return ""
    return "\n".join(part_text(part) for message in story.recorded(index).messages for part in message.parts)


def _from_the_log(story: Story, step: int, index: int) -> int:
    """How many messages of the log the request after a compaction has, as they were or changed."""
    at = story.session.calls[step].at
    if isinstance(story, ReplayStory):
        view = story.record(index).after
    else:
        view, _ = story.view_on(story.compaction(index).place, at)
    return _logged(view)


def _logged(view: View) -> int:
    """How many messages of the log a view has."""
    return sum(part.stop - part.start if isinstance(part, Span) else isinstance(part, Rewritten) for part in view)


def drops_at_every_call(story: Story, finding: Finding) -> None:
    """One of the stretches in which a window slides."""
    first, last = step_of(story, finding, "first"), step_of(story, finding, "last")
    stretches = [row for row in sliding_stretches(story) if row[0][0] == first and row[-1][0] == last]
    if not stretches:
        raise Wrong("no window slides there")
    same("step", finding.step, first)
    agree(finding, changed=len({step for step, _ in stretches[0]}), calls=last - first + 1)
    has_note = any(_note(story, index) for _, index in stretches[0])
    if has_note != ("leaving a note" in finding.sentence):
        raise Wrong("a note is left there, or not, and the claim says otherwise")
    same("count", finding.count, len(stretches[0]))


def sliding_moves(story: Story) -> set[int]:
    """The compactions that are moves of a sliding window."""
    return {index for stretch in sliding_stretches(story) for _, index in stretch}


def _steps_that_last(story: Story, *, automatic: bool = False) -> list[int]:
    """The steps of compactions that are not moves of a sliding window; with `automatic` those that no person asked
    for."""
    moves = sliding_moves(story)
    left_out = {index for index, item in enumerate(story.compactions) if automatic and item.is_manual}
    return [
        item.step
        for index, item in enumerate(story.compactions)
        if item.step >= 0 and index not in moves and index not in left_out
    ]


def at_consecutive_steps(story: Story, finding: Finding) -> None:
    """A compaction at every step of a stretch that cannot be longer."""
    first, last = step_of(story, finding, "first"), step_of(story, finding, "last")
    steps = _steps_that_last(story, automatic=True)
    agree(finding, length=last - first + 1, all=sum(first <= step <= last for step in steps))
    if last - first + 1 < LOOP:
        raise Wrong("it is too short for a loop")
    missing = [step for step in range(first, last + 1) if step not in steps]
    if missing:
        raise Wrong(f"there is no compaction at step {missing[0]}")
    if first - 1 in steps or last + 1 in steps:
        raise Wrong("it is longer")
    index = next(index for index, item in enumerate(story.compactions) if item.step == first)
    following = next(index for index, item in enumerate(story.compactions) if item.step == first + 1)
    agree(finding, before=story.before(index), after=story.sent[first], again=story.before(following))


def in_quick_succession(story: Story, finding: Finding) -> None:
    """Compactions with few steps between them, in a stretch that cannot be longer."""
    first, last = step_of(story, finding, "first"), step_of(story, finding, "last")
    every = _steps_that_last(story, automatic=True)
    steps = sorted(set(every))
    agree(finding, all=sum(first <= step <= last for step in every))
    inside = [step for step in steps if first <= step <= last]
    gaps = [after - before for before, after in pairwise(inside)]
    same("length", number(finding, "length"), len(inside))
    if len(inside) < THRASH or max(gaps) > THRASH_GAP or inside[0] != first or inside[-1] != last:
        raise Wrong("these compactions are not in quick succession")
    if any(0 < first - step <= THRASH_GAP or 0 < step - last <= THRASH_GAP for step in steps):
        raise Wrong("the stretch is longer")
    agree(finding, mean_gap=sum(gaps) / len(gaps))


def says_what_is_uncounted(story: Story, finding: Finding) -> None:
    """A claim of a recording that rests on modelled requests says how many of its calls the provider did not count."""
    missing = sum(count is None for count in story.counts) if story.session.usage_ratio is None else 0
    if not missing:
        if "uncounted" in finding.numbers or "not counted" in finding.sentence:
            raise Wrong("every call is counted")
        return
    agree(finding, uncounted=missing, all_calls=len(story.counts))
    if f"{missing:,} of {len(story.counts):,} " not in finding.sentence:
        raise Wrong("it does not say how many calls are not counted")


def is_forced(story: Story, index: int) -> bool:
    """Did a request fail as too long after the last call before a recorded compaction."""
    if story.trace is not None or story.compaction(index).step < 0:
        return False
    item, step = story.recorded(index), story.compaction(index).step
    since = story.session.calls[step - 1].at if step else 0
    place = story.compaction(index).place
    return item.trigger == "overflow" or any(since < at <= item.at for at in refused_before(story.session, place))


def refused_before(session: Session, place: int) -> list[int]:
    """How long the log was at each request that failed as too long before a recorded compaction."""
    at = session.compactions[place].at
    here = takewhile(lambda item: item.at == at, islice(session.compactions, place, None))
    behind = sum(item.refused_behind for item in here)
    known = sorted(number for number in session.refused if number <= at)
    return known[: len(known) - behind]


def cannot_be_read(item: RecordedCompaction) -> bool:
    """Is a summary encrypted, or not in the file."""
    return item.kind == "opaque" or any(map(_is_encrypted, item.messages))


def _is_encrypted(message: Event) -> bool:
    """Is all that a message says encrypted."""
    sealed = any(isinstance(part, ReasoningPart) and part.opaque_bytes for part in message.parts)
    return sealed and not any(part_text(part) for part in message.parts)
