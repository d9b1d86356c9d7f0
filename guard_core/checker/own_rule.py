"""What is claimed by the rule of the agent itself: its sum worked out again, its counts added up call by call."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import takewhile
from math import ceil, floor
from typing import Any, NamedTuple

from guard_core.checker.sentences import NUMBER
from guard_core.checker.shared import refused_before
from guard_core.checker.story import Story, Wrong, agree, number, same, step_of
from guard_core.estimation.recorder_figures import MOST_UNSEEN
from guard_core.events import (
    Event,
    MediaPart,
    OtherPart,
    Part,
    ReasoningPart,
    Role,
    ToolCallPart,
    ToolResultPart,
    part_text,
    value_text,
)
from guard_core.findings.claims import Finding
from guard_core.sessions import RecordedCompaction
from guard_core.triggers import is_counted

_WORDS = re.compile(r"\((?:[a-z][^()]*)\)")  # "(max output)": what a number of a sum is called
_OPENAI = re.compile(r"gpt|codex|\bo\d", re.IGNORECASE)  # models whose reasoning is encrypted
_WROTE = {
    "anthropic-messages",
    "claude-code",
    "copilot-cli",
    "hermes",
    "inspect",
    "openai-responses",
    "pi",
    "qwen-code",
    "Roo Code",
}  # formats, or agents, with the count that was compared
_BY_ITSELF = ("auto", "automatic", "threshold")  # recorders' words for what neither a person nor a refusal asked for
# Agents that look before every call, with a count that is known at all of them.
_PLAIN = ("Claude Code", "Codex", "Crush", "Cline", "OpenCode", "Kilo Code", "Hermes")
# Agents that compare a count with an unrounded share: the smallest whole count that is not below it fires.
UNROUNDED = ("Cline SDK", "Gemini CLI", "Kimi CLI", "Kimi Code", "Qwen Code", "Roo Code")


class CheckBounds(NamedTuple):
    """A place at which an agent may compact: the call that comes next, the least and the most that it may have counted
    (None: not known), and the compaction made here, by index."""

    step: int
    least: int | None
    most: int | None
    compaction: int | None


def other_threshold(story: Story, finding: Finding) -> None:
    """All checks fit a threshold between two counts, which is not the rule's."""
    _threshold(story, finding)
    high, high_step = number(finding, "high"), step_of(story, finding, "high_step")
    checks = list(_checks(story, number(finding, "counter")))
    fired = [check for check in checks if check.compaction is not None and not _is_forced(story, check.compaction)]
    bounding = [check for check in fired if _is_at(story, check, high, high_step)]
    index = number(finding, "high_compaction")
    if index not in [check.compaction for check in bounding]:
        raise Wrong(f"compaction {index}, at step {high_step}, was forced or had no count of {high}")
    if finding.numbers["by_itself"] != (story.recorded(index).trigger.lower() in _BY_ITSELF):
        raise Wrong("the claim says otherwise whether the file has the trigger")
    low = finding.numbers.get("low")
    if low is not None:
        low_step = step_of(story, finding, "low_step")
        passed = [check for check in checks if check.compaction is None and not _halves(story, check.step)]
        if not any(_is_at(story, check, low, low_step) for check in passed):
            raise Wrong(f"no check of step {low_step} had a count of {low} and passed")
        if low >= high:
            raise Wrong("no threshold is between the two")
    limit, strict = number(finding, "threshold"), int(number(finding, "relation") == ">")
    if (low is None or limit > low - strict) and limit <= high - strict:
        raise Wrong("the rule's threshold fits, too")


def setting_never_acts(story: Story, finding: Finding) -> None:
    """The same, where a typed setting is part of the sum."""
    other_threshold(story, finding)
    value = number(finding, "value")
    if f"{value:,}" not in NUMBER.findall(number(finding, "formula")):
        raise Wrong(f"the sum has no {value}")


def own_early(story: Story, finding: Finding) -> None:
    """Compactions that nobody asked for, at counts below the threshold."""
    _threshold(story, finding)
    limit, indices = number(finding, "threshold"), number(finding, "compactions")
    checks = {check.compaction: check for check in _checks(story, number(finding, "counter"))}
    for index in indices:
        story.compaction(index)
        if index not in checks or checks[index].least is None or _fires(finding, checks[index].least or 0):
            raise Wrong(f"compaction {index} was not below the threshold")
        if story.compaction(index).is_manual or _is_forced(story, index):
            raise Wrong(f"a person, or the refusal of a request, asked for compaction {index}")
    checked = [place for place, check in checks.items() if place is not None and check.most is not None]
    own = [at for at in checked if story.recorded(at).trigger.lower() in _BY_ITSELF and not _is_forced(story, at)]
    below = [place for place in own if not _fires(finding, checks[place].most or 0)]
    if number(finding, "agent") in _PLAIN and _is_one_stretch(story) and not set(below) <= set(indices):
        raise Wrong(f"compactions {below} were below the threshold, not {indices} alone")
    first = checks[indices[0]]
    is_bound = any(setting.name == "is_of_sdk" for setting in story.session.settings)
    agree(finding, is_bound=is_bound)
    if is_bound != (": at most " in finding.sentence):
        raise Wrong("the count is a bound, or is not, and the sentence says otherwise")
    count = number(finding, "count")
    if not (first.least or 0) <= count <= (first.most or 0):
        raise Wrong(f"the count before compaction {indices[0]} is {first.least} to {first.most}, not {count}")
    agree(finding, tokens=limit - count)


def own_missed(story: Story, finding: Finding) -> None:
    """Checks at which the count reached the threshold, and nothing was compacted."""
    _threshold(story, finding)
    checks = [check for check in _checks(story, number(finding, "counter")) if check.compaction is None]
    count = number(finding, "count")
    if not any(_is_at(story, check, count, finding.step) for check in checks):
        raise Wrong(f"the count before step {finding.step} is not {count}")
    if not _fires(finding, count):
        raise Wrong("the rule does not fire there")
    # Where the provider counted less than the rule needs, the agent's count of the same request is in doubt.
    counted = {step: tokens for step, tokens in enumerate(story.counts) if tokens is not None}
    unbroken = [
        check for check in checks if not _falls(story, check.step) and _fires(finding, counted.get(check.step, count))
    ]
    surely = sum(_fires(finding, check.least or 0) for check in unbroken if check.least is not None)
    perhaps = sum(_fires(finding, check.most or 0) for check in checks if check.most is not None)
    claimed = number(finding, "checks")
    if claimed > perhaps or (number(finding, "agent") in _PLAIN and _is_one_stretch(story) and claimed < surely):
        raise Wrong(f"the rule fires at {surely} to {perhaps} such checks, not {claimed}")


def _is_one_stretch(story: Story) -> bool:
    """Is the rule the same for all calls: one model, version and window."""
    models, versions = {call.model for call in story.session.calls}, {name for _, name in story.session.versions}
    return len(models) == 1 and len(versions) <= 1 and not story.session.windows


def _falls(story: Story, step: int) -> bool:
    """Is the next counted request from a step on smaller than the one before: something was left out, here or at the
    calls without a count that follow."""
    before, after = _counted_around(story, step)
    return before >= 0 and after >= 0 and (story.counts[after] or 0) < (story.counts[before] or 0)


def _halves(story: Story, step: int) -> bool:
    """Is more than half of the request before gone from the next counted one, within a turn and without a record."""
    before, after = _counted_around(story, step)
    if before < 0 or after < 0 or 2 * (story.counts[after] or 0) >= (story.counts[before] or 0):
        return False
    first, last = story.session.calls[before], story.session.calls[after]
    same_turn = not any(event.starts_turn() for event in story.session.events[first.at : last.at])
    recorded = any(first.at < item.at <= last.at for item in story.session.compactions)
    return same_turn and not recorded and first.model == last.model


def _counted_around(story: Story, step: int) -> tuple[int, int]:
    """The last counted call before a step, and the first one from it on; -1 where there is none."""
    counted = [number for number, count in enumerate(story.counts) if count]
    before = [number for number in counted if number < step]
    return before[-1] if before else -1, next((number for number in counted if number >= step), -1)


def _is_forced(story: Story, index: int) -> bool:
    """Had the provider refused a request as too long before a compaction, since the last answer and the compaction
    before it."""
    place = story.compactions[index].place
    at, answered = story.session.compactions[place].at, [0]
    for call in story.session.calls:
        behind = call.at if call.response is None else call.response + 1
        answered += [behind] if call.at < at else []
    earlier = refused_before(story.session, story.compactions[index - 1].place) if index else []
    return any(max(answered) <= number for number in refused_before(story.session, place)[len(earlier) :])


def _threshold(story: Story, finding: Finding) -> None:
    """The claimed threshold is what its sum comes to, and the claimed window is part of that sum."""
    formula = number(finding, "formula")
    agent = str(finding.numbers["agent"]).split(" (")[0]
    is_unrounded = agent in UNROUNDED or (agent == "Claude Code" and not formula.startswith("min("))  # 1.0.70
    whole = ceil if is_unrounded else int
    same("threshold", number(finding, "threshold"), worked_out(formula, whole))
    window = finding.numbers.get("window")
    if window is not None and f"{window:,}" not in NUMBER.findall(formula):
        raise Wrong(f"the sum has no window of {window}")


def worked_out(formula: str, whole: Callable[[float], int] = int) -> int:
    """What a sum such as "min(272,000 − 20,000, 90 % of 272,000)" comes to; `whole` makes shares whole numbers."""
    text = _WORDS.sub("", formula).strip()
    if match := re.fullmatch(r"(min|max)\((.*)\)", text):
        return (min if match[1] == "min" else max)(*(worked_out(part, whole) for part in _split(match[2])))
    if match := re.fullmatch(r"([\d.]+) % of \(?(.*?)\)?", text):
        return whole(float(match[1]) / 100 * worked_out(match[2], whole))
    if match := re.fullmatch(r"([\d,]+) / ([\d,]+)", text):
        return whole(_plain_number(match[1]) / _plain_number(match[2]))
    first, *others = (part.strip() for part in text.split("−"))
    return _plain_number(first) - sum(map(_plain_number, others))


def _plain_number(text: str) -> int:
    if not NUMBER.fullmatch(text):
        raise Wrong(f"{text!r} is not a number of a sum")
    return int(float(text.replace(",", "")))


def _split(text: str) -> list[str]:
    """The two arguments, parted by the comma with a space behind it that is in no bracket."""
    depth = 0
    for place, sign in enumerate(text):
        depth += (sign == "(") - (sign == ")")
        if not depth and text.startswith(", ", place):
            return [text[:place], text[place + 2 :]]
    raise Wrong(f"{text!r} has one argument")


def _fires(finding: Finding, count: int) -> bool:
    limit = number(finding, "threshold")
    return bool(count > limit if number(finding, "relation") == ">" else count >= limit)


def _is_at(story: Story, check: CheckBounds, count: int, step: int) -> bool:
    here = min(check.step, len(story.session.calls) - 1) == step
    return here and check.least is not None and check.most is not None and check.least <= count <= check.most


def _checks(story: Story, counter: str) -> Iterator[CheckBounds]:
    """Every check in order: before each call, and at each compaction that counts."""
    calls, last = story.session.calls, -1
    places = {item.place: index for index, item in enumerate(story.compactions)}
    for step in range(len(calls) + 1):
        at = calls[step].at if step < len(calls) else len(story.session.events)
        before = calls[step - 1].at if step else -1
        compactions = [place for place in places if before < story.session.compactions[place].at <= at]
        for place in compactions:
            item = story.session.compactions[place]
            least, most = _count(story, counter, last, item.at, item.pending_tokens)
            if counter == "request":
                least = most = None
            if any(setting.name == "is_of_sdk" for setting in story.session.settings):
                most = _most_by_cline(story, most or 0, item)
            if item.tokens_before and _WROTE & {story.session.format, story.session.agent}:
                least, most = _of_written(story, last, item)
            yield CheckBounds(step, least, most, places[place])
            last = -1
        if not compactions and step < len(calls):
            waiting = calls[step].pending_tokens
            count = _count(story, counter, -1 if _clears(story, before, at) else last, at, waiting)
            if counter == "request":  # the provider counts what it is sent
                counted = None if _answered_compacted(story, step) else calls[step].prompt_tokens or None
                count = counted, counted
            yield CheckBounds(step, *count, None)
        if step < len(calls) and (calls[step].prompt_tokens or calls[step].response is not None):
            last = step if calls[step].prompt_tokens else -1


def _most_by_cline(story: Story, prompt: int, item: RecordedCompaction) -> int | None:
    """The most that the SDK of Cline may have estimated before a compaction: of the messages what the file says, and of
    system prompt and tools ten characters, of which three are a token, for each token of the first prompt."""
    first = next((call.prompt_tokens for call in story.session.calls if call.prompt_tokens), 0)
    return max(prompt, item.tokens_before + ceil(10 * first / 3)) if item.tokens_before and first else prompt or None


_THIRDS_FROM = (2, 1, 140)  # versions of Claude Code that estimate three characters a token for later models


def _of_written(story: Story, last: int, item: RecordedCompaction) -> tuple[int | None, int | None]:
    """What was counted at a compaction with a count in the file: that, but for later models of Claude Code, which
    writes it with four characters for a token."""
    if _is_impossible(story, last, item):
        return None, None
    written = item.tokens_before or 0
    model = story.session.calls[last].model or story.session.model
    by_thirds = any(not version or version >= _THIRDS_FROM for version in _versions(story))
    if story.session.agent_format != "claude-code" or not _is_later_model(model) or not by_thirds:
        return written, written
    if last < 0:
        return None, None
    call = story.session.calls[last]
    answer = [] if call.response is None else [story.session.events[call.response]]
    added = story.session.events[call.at if call.response is None else call.response + 1 : item.at]
    more = [
        _by_claude_code(version, model, answer, added) - _by_claude_code(version, "", answer, added)
        for version in _versions(story)
    ]
    return written + min(more), written + max(more)


def _is_impossible(story: Story, last: int, item: RecordedCompaction) -> bool:
    """Is a recorded count above all that the last request, its answer and what came since can have, a token a byte. A
    request before another compaction, an edit among them, says nothing of it."""
    if last < 0:
        return False
    call = story.session.calls[last]
    before = takewhile(lambda other: other is not item, story.session.compactions)
    if any(other.at > call.at for other in before):
        return False
    parts = [part for event in story.session.events[call.at : item.at] for part in event.parts]
    if any(isinstance(part, MediaPart) for part in parts):
        return False
    size = sum(len(part_text(part).encode()) + getattr(part, "opaque_bytes", 0) for part in parts)
    return (item.tokens_before or 0) > (call.prompt_tokens or 0) + (call.output_tokens or 0) + size + MOST_UNSEEN


def _answered_compacted(story: Story, step: int) -> bool:
    """Did OpenAI's server compact while it answered a call: the file has that before the next request."""
    start = story.session.calls[step].at
    stop = story.session.calls[step + 1].at if step + 1 < len(story.session.calls) else len(story.session.events)
    behind = (item for item in story.session.compactions if start < item.at <= stop and item.summariser is None)
    return story.session.agent_format == "openai-responses" and any(behind)


def _clears(story: Story, before: int, at: int) -> bool:
    """Did Claude Code clear old results between two calls: what it compared then is not known."""
    edits = (item.at for item in story.session.compactions if item.kind == "edit" and item.evidence == "declared")
    return story.session.agent_format == "claude-code" and any(before < place <= at for place in edits)


def _count(story: Story, counter: str, last: int, at: int, waiting: int | None = None) -> tuple[int | None, int | None]:
    """The least and the most that was counted at a place of the log: the last call's tokens, and what came since;
    `waiting` is what the reader made of the items since where their JSON counts, which the log does not have."""
    if last < 0:
        return None, None
    call = story.session.calls[last]
    if counter == "prompt":
        return call.prompt_tokens, call.prompt_tokens
    output = call.output_tokens if call.output_tokens is not None else call.output_tokens_at_start
    if output is None:
        return None, None
    total = (call.prompt_tokens or 0) + output
    if counter == "growth":
        least, most = _count(story, "total_pending", last, at, waiting)
        return (None if least is None else least - _first_prompt(story, last, at)), most
    if counter == "total":
        return total, total
    start = call.at if call.response is None else call.response + 1
    added = story.session.events[start:at]
    if story.session.agent_format == "codex":
        return _counted_by_codex(story, total, start, at, waiting)
    if story.session.agent_format == "claude-code":
        answer = [] if call.response is None else [story.session.events[call.response]]
        model = call.model or story.session.model
        estimates = {_by_claude_code(version, model, answer, added) for version in _versions(story)}
        return total + min(estimates), total + max(estimates)
    others = sum(len(part_text(part)) for event in added for part in event.parts if not _is_result(part))
    # No estimator counts more tokens than bytes.
    results = sum(len(part_text(part).encode("utf-8", "surrogatepass")) + 500 for part in _results(added))
    return total, total + results + others


def _first_prompt(story: Story, last: int, at: int) -> int:
    """The prompt tokens of the first counted call since the last compaction before a call, itself among them; where
    each turn is a process, since the turn began in which a place of the log is. 0: there is none."""
    calls = story.session.calls[: last + 1]
    begins = [item.at for item in story.session.compactions if is_counted(item) and item.at <= calls[last].at]
    if any(item.name == "process_per_turn" for item in story.session.settings):
        begins += [place for place, event in enumerate(story.session.events[:at]) if event.starts_turn()]
    since = [call for call in calls if call.at >= max([0, *begins])]
    return next((call.prompt_tokens for call in since if call.prompt_tokens), 0)


def _counted_by_codex(
    story: Story, total: int, start: int, at: int, waiting: int | None
) -> tuple[int | None, int | None]:
    """Before a turn it counts what came before the user's message; of the turns before the last message of the user,
    and since the last compaction, the encrypted reasoning, where the file has it. From 0.95 to 0.155 it counts the JSON
    of items, which is no less than a quarter of what is said in them, and no more than their escaped text in frames."""
    added = story.session.events[start:at]
    turn = next((place for place, event in enumerate(added) if event.starts_turn()), len(added))
    before = [item.at for item in story.session.compactions if is_counted(item) and item.at < at]
    counts: list[int] = []
    for stop in (start + turn, at):
        since = list(enumerate(story.session.events[:stop]))[max([0, *before]) :]
        last = max((place for place, event in since if event.starts_turn()), default=0)
        events = [event for place, event in since if place < last]
        is_compacted = any(is_counted(item) and item.at == at for item in story.session.compactions)
        if any(map(_thoughts, events)) and _is_stripped(story) and is_compacted:
            return None, None
        results = sum(_by_codex(part) for part in _results(added[: stop - start]))
        versions = _versions(story)
        if versions != {()} and all((0, 95) <= version < (0, 156) for version in versions):
            results = _items_by_codex(added, waiting or 0)
        counts.append(total + results + sum(map(_reasoning_by_codex, events)))
    return min(counts), max(counts)


_FRAME = 600  # bytes of JSON around what an item says: its type, ids, status, keys


def _items_by_codex(events: Iterable[Event], waiting: int) -> int:
    """What the reader made of these items, if that is possible."""
    parts = [part for event in events for part in event.parts]
    size = sum(len(part_text(part).encode("utf-8", "surrogatepass")) for part in parts)
    if not parts and waiting:
        raise Wrong(f"nothing waited to be sent that could have {waiting} tokens")
    if waiting and not any(isinstance(part, MediaPart) for part in parts):
        most = (6 * size + sum(part.opaque_bytes for part in parts if isinstance(part, ReasoningPart))) // 4
        if waiting > most + len(parts) * _FRAME:
            raise Wrong(f"items of {size} bytes cannot have {waiting} tokens")
    return waiting


def _is_stripped(story: Story) -> bool:
    """Does a file of OpenAI's models hold no encrypted reasoning at all?"""
    sealed = any(part.opaque_bytes for event in story.session.events for part in _thoughts(event))
    return not sealed and any(_OPENAI.search(call.model or story.session.model) for call in story.session.calls)


def _thoughts(event: Event) -> list[ReasoningPart]:
    return [part for part in event.parts if isinstance(part, ReasoningPart)]


def _reasoning_by_codex(event: Event) -> int:
    """Codex takes 650 bytes of each encrypted piece for its frame, and four of the others for a token."""
    thoughts = _thoughts(event)
    return ceil(max(0, sum(part.opaque_bytes for part in thoughts) - 650 * len(thoughts)) / 4)


def _is_result(part: Part) -> bool:
    return isinstance(part, ToolResultPart)


def _results(events: Iterable[Event]) -> list[Part]:
    return [part for event in events for part in event.parts if _is_result(part)]


def _versions(story: Story) -> set[tuple[int, ...]]:
    """The versions of the agent in a recording as numbers; () for none."""
    return {tuple(map(int, re.findall(r"\d+", name))) for _, name in story.session.versions} or {()}


def _by_claude_code(version: tuple[int, ...], model: str, answer: list[Event], added: Iterable[Event]) -> int:
    """What a version of Claude Code estimates: a quarter of the characters of each part outside answers, and, from
    2.1.74 on, of the later parts of answers; from 2.1.140 on a third for models after those of 4.6."""
    per_token = 3 if (not version or version >= _THIRDS_FROM) and _is_later_model(model) else 4
    is_later = not version or version >= (2, 1, 74)
    picture = 2_000 if not version or version >= (2, 1, 44) else 1_334
    tokens = 0
    for event in [*(answer if is_later else []), *added]:
        own = event.role is Role.MODEL
        parts = event.parts if not own else event.parts[1:] if is_later else ()
        tokens += sum(_part_by_claude_code(part, picture, per_token) for part in parts)
    return tokens


def _is_later_model(model: str) -> bool:
    """Is a model none of those that Claude Code lists up to Opus and Sonnet 4.6 and Haiku 4.5."""
    earlier = r"claude-(3-|(opus|sonnet)-4(-[0156]|-\d{8})?$|(opus|sonnet)-4(-[0156])?[-\[:]|haiku-4-5)"
    return bool(model) and not re.search(earlier, model.lower().replace(".", "-").replace("@", "-"))


def _part_by_claude_code(part: Part, picture: int, per_token: int) -> int:
    match part:
        case MediaPart():
            return picture
        case OtherPart():
            return 0
        case ToolCallPart():
            return _rounded(part.name + value_text(part.arguments), per_token)
    return _rounded(part_text(part), per_token)


def _rounded(text: str, per_token: int) -> int:
    """JavaScript's rounding of a text's UTF-16 units by so many."""
    return floor(len(text.encode("utf-16-le", "surrogatepass")) // 2 / per_token + 0.5)


def _by_codex(part: Part) -> int:
    """With the id of its call; where the recording has none, as many characters as OpenAI's ids have."""
    named = (part.call_id if isinstance(part, ToolResultPart) else "") or 29 * "x"
    return ceil((len(part_text(part).encode("utf-8", "surrogatepass")) + len(named)) / 4)


OWN_RULE: dict[str, Callable[..., Any]] = {
    check.__name__: check for check in (other_threshold, setting_never_acts, own_early, own_missed)
}
