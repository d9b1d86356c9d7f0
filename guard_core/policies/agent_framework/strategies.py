"""The steps that strategies of Agent Framework are made of: groups left out, tool groups collapsed, groups summarised.

Source: agent-framework-core 1.23.0, `_compaction.py`, and scripted runs of it. A step that has nothing to do leaves the
list as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, NamedTuple

import msgspec

from guard_core.costs import RESULT, text_sizes
from guard_core.errors import SummaryFailed
from guard_core.events import Role, ToolCallPart, ToolResultPart, utf8_bytes, value_text
from guard_core.ledger import Ledger
from guard_core.policies.agent_framework.counting import (
    LINE_BREAK_TOKENS,
    LINE_COSTS,
    PROMPT_TOKENS,
    TranscriptSize,
    inserted_tokens,
    message_costs,
)
from guard_core.policies.agent_framework.groups import (
    NOT_SYSTEM_GROUPS,
    NOT_SYSTEM_MESSAGES,
    SYSTEM_GROUP,
    TOOL_GROUP,
    USER_GROUP,
    GroupedList,
    Included,
    Insertion,
    groups_of,
    is_each_a_run,
    tokens_in,
)
from guard_core.policies.pieces.lists import ListRequest
from guard_core.sessions import Session
from guard_core.summaries.base import Summary
from guard_core.trace import Pass
from guard_core.views import Synthetic, View

SUMMARY, TOOL_RESULTS = "summary", "tool results"  # kinds of inserted messages
BEFORE, AFTER = "[Tool results: ", "]"  # 1.23.0: what a collapsed tool group says
NO_RESULTS, CUT = "no results", "... [truncated]"
MOST_CHARS = 4_096  # of a collapsed tool group
NOTHING = Included((), (), 0)
SOME = 16  # segments of a view that are looked at first; ours


@dataclass(frozen=True)
class ListInWork:
    """A list on its way through some steps. `request` is what the policy was asked, `passes` the steps that changed
    something or asked the summariser, which `failed` or gave nothing."""

    request: ListRequest
    state: Any
    included: Included
    id_prefix: str
    passes: tuple[Pass, ...] = ()
    failed: bool = False

    @property
    def ledger(self) -> Ledger:
        return self.request.ledger

    @cached_property
    def groups(self) -> GroupedList:
        return groups_of(self.ledger, message_costs(self.id_prefix), self.included)

    @property
    def tokens(self) -> int:
        """Tokens of the list."""
        included = self.included
        return message_costs(self.id_prefix).view(self.ledger, included.view) + tokens_in(
            self.ledger, included.inserted
        )

    def tool_groups(self) -> tuple[Included, GroupedList]:
        """What comes before all tool groups, and the groups from there on."""
        before, rest = self.included.parted(self.ledger)
        return before, groups_of(self.ledger, message_costs(self.id_prefix), rest)

    def became(self, after: Included, given: Included | None = None, summary_bytes: int = 0) -> ListInWork:
        """The work with another list, of which `given` was summarised."""
        request = self.request.with_list(self.included.view)
        step = request.passed(given.view if given else (), after.view, summary_bytes=summary_bytes)
        return replace(self, included=after, passes=(*self.passes, step))

    def failed_call(self, given: Included, state: Any, *, empty: bool) -> ListInWork:
        """The same list after the summariser was asked in vain."""
        request = self.request.with_list(self.included.view)
        step = request.passed(given.view, self.included.view, failed=not empty, empty=empty)
        return replace(self, state=state, passes=(*self.passes, step), failed=True)

    @property
    def changed(self) -> bool:
        """Did a step change the list."""
        return any(not step.failed and not step.empty for step in self.passes)


def without_oldest(
    work: ListInWork, groups: GroupedList, amounts: list[int], most: int, protected: Container[int]
) -> ListInWork:
    """The oldest groups that are not protected go until the amounts of the others are at most `most`."""
    return _without(work, groups, _oldest(amounts, sum(amounts) - most, protected))


def shortened(work: ListInWork, most: int, *, system: bool, first_user: bool = False) -> ListInWork:
    """The oldest groups go until the list has at most `most` tokens; which ones are `protected` is asked for."""
    over = work.tokens - most

    def oldest_over(groups: GroupedList) -> list[int] | None:
        stay = protected(groups, system=system, first_user=first_user)
        oldest = sorted(_oldest(groups.tokens[: groups.least], over, stay))
        return oldest if sum(groups.tokens[group] for group in oldest) >= over else None

    done = _without_first(work, oldest_over)
    if done is None:
        stay = protected(work.groups, system=system, first_user=first_user)
        done = without_oldest(work, work.groups, work.groups.tokens, most, stay)
    return done


class _FirstGroups(NamedTuple):
    """The first groups of a list, of which some are `chosen`, and what comes behind them."""

    groups: GroupedList
    chosen: list[int]
    rest: Included

    def whole(self, after: Included) -> Included:
        """The list with another beginning."""
        return self.rest.behind(after)._replace(added=after.added)


def _beginning(work: ListInWork, choose: Callable[[GroupedList], list[int] | None]) -> _FirstGroups | None:
    """As much of the beginning of a long list as is needed to choose some of its groups; `choose` gives None where what
    it is given is too little. None where all of the list is to be looked at."""
    size = SOME
    while 2 * size <= len(work.included.view) and is_each_a_run(work.ledger):
        begin, rest = work.included.split(size)
        groups = groups_of(work.ledger, message_costs(work.id_prefix), begin)
        chosen = choose(groups)
        if chosen is not None:
            return _FirstGroups(groups, chosen, rest)
        size *= 2
    return None


def _without_first(work: ListInWork, choose: Callable[[GroupedList], list[int] | None]) -> ListInWork | None:
    """A long list without the groups of its beginning that `choose` gives; as `_beginning`."""
    begin = _beginning(work, choose)
    return None if begin is None else work.became(begin.whole(begin.groups.without(set(begin.chosen))))


def _oldest(amounts: list[int], over: int, protected: Container[int]) -> set[int]:
    """The first groups that are not protected, until their amounts together are not less than `over`."""
    oldest: set[int] = set()
    for group, amount in enumerate(amounts):
        if group in protected:
            continue
        oldest.add(group)
        over -= amount
        if over <= 0:
            break
    return oldest


def protected(groups: GroupedList, *, system: bool, first_user: bool = False) -> set[int]:
    """The groups that truncation leaves: the newest, and as asked those of the system and the user's first."""
    stays = set(groups.of_kind(SYSTEM_GROUP) if system else ())
    if first_user:
        stays.update(groups.of_kind(USER_GROUP)[:1])
    return stays | {groups.least}


def last_groups(work: ListInWork, keep: int, *, system: bool) -> ListInWork:
    """The last groups stay, and, as asked, those of the system."""
    count = NOT_SYSTEM_GROUPS.view(work.ledger, work.included.view) - keep  # of those that go
    if system and keep > 0 and is_each_a_run(work.ledger):
        if count <= 0:
            return work
        done = _without_first(work, lambda groups: groups.plain[:count] if len(groups.plain) > count else None)
        if done is not None:
            return done
    groups = work.groups
    excluded = set(groups.plain[:-keep])
    return _without(work, groups, excluded if system else excluded.union(groups.of_kind(SYSTEM_GROUP)))


def without_tool_groups(work: ListInWork, keep: int) -> ListInWork:
    """All tool groups but the last ones go."""
    before, groups = work.tool_groups()
    return _without(work, groups, set(_older_tool_groups(groups, keep)), before)


def collapsed_tool_groups(work: ListInWork, keep: int) -> ListInWork:
    """All tool groups but the last ones become a message each that says what the tools returned."""
    (before, groups), session = work.tool_groups(), work.request.check.session
    older = _older_tool_groups(groups, keep)
    if not older:
        return work
    new = {}
    for group in older:
        events = [event for events in groups.members(group) for event in events]
        message, quoted = tool_results_message(work.ledger, session, events)
        id_chars = len("tool_summary_group_") + len(work.id_prefix) + len(str(events[0]))
        new[group] = message, Insertion(inserted_tokens(message, id_chars, quoted), events[0])
    return work.became(groups.without(new.keys(), new).behind(before))


def _older_tool_groups(groups: GroupedList, keep: int) -> list[int]:
    tools = groups.of_kind(TOOL_GROUP)
    return tools[: max(len(tools) - keep, 0)]


def _without(work: ListInWork, groups: GroupedList, removed: set[int], before: Included = NOTHING) -> ListInWork:
    """The list without some groups, behind what comes `before` them."""
    return work.became(groups.without(removed).behind(before)) if removed else work


def tool_results_message(ledger: Ledger, session: Session | None, events: list[int]) -> tuple[Synthetic, int]:
    """What a collapsed tool group says, and its characters as a JSON string. Without the session these are sums over
    the results, and of a text that is cut a share of them."""
    if session is None:
        size, quoted = _collapsed_sizes(ledger, events)
        return Synthetic(TOOL_RESULTS, size, None, Role.MODEL, quotes_results=True), quoted
    parts = [part for event in events for part in session.events[event].parts]
    names = {part.id: part.name for part in parts if isinstance(part, ToolCallPart) and part.id}
    labels = []
    for part in parts:
        if isinstance(part, ToolResultPart):
            name = names.get(part.call_id, "") if part.call_id else part.name
            text = value_text(part.content)
            labels.append((f"{name}: {text}" if name else text).strip())
    label = "; ".join(labels) if labels else NO_RESULTS
    if len(label) > MOST_CHARS - len(BEFORE) - len(AFTER):
        label = label[: MOST_CHARS - len(BEFORE) - len(CUT) - len(AFTER)].rstrip() + CUT
    text = BEFORE + label + AFTER
    message = Synthetic(TOOL_RESULTS, utf8_bytes(text), text, Role.MODEL, quotes_results=True)
    return message, text_sizes(text)["json_chars"]


def _collapsed_sizes(ledger: Ledger, events: list[int]) -> tuple[int, int]:
    """UTF-8 bytes of what a collapsed tool group says, and its characters as a JSON string."""
    parts, starts = ledger.parts, ledger.part_starts
    kinds = parts["kind"]
    rows = [
        row
        for event in events
        for row in range(starts.item(event), starts.item(event + 1))
        if kinds.item(row) == RESULT
    ]
    columns = (parts[name] for name in ("name_chars", "chars", "bytes", "json_chars"))
    names, chars, size, quoted = (sum(map(column.item, rows)) for column in columns)
    names += len(": ") * len(rows)
    around = len(BEFORE) + len(AFTER) + (names + len("; ") * (len(rows) - 1) if rows else len(NO_RESULTS))
    kept = min(chars, MOST_CHARS - around)
    if kept <= 0:
        return min(around, MOST_CHARS), min(around, MOST_CHARS) + len('""')
    return around + size * kept // chars, around + (quoted - 2 * len(rows)) * kept // chars + len('""')


@dataclass(frozen=True)
class GroupSummaries:
    """How groups are summarised: beyond `target` and `threshold` messages that are not the system's the oldest groups
    are, at most `input_tokens` of them with the instructions (0: no limit)."""

    target: int
    threshold: int
    input_tokens: int
    budget: int


def summarised(work: ListInWork, rule: GroupSummaries) -> ListInWork:
    """The oldest groups replaced by a summary."""
    count = NOT_SYSTEM_MESSAGES.view(work.ledger, work.included.view)
    if count <= rule.target + rule.threshold:
        return work
    begin = _beginning(work, partial(_first_older, work.ledger, rule, count)) if rule.input_tokens else None
    if begin is None:
        older = _older(work.groups, rule.target)
        chosen = _fitting_groups(work.ledger, work.groups, older, rule) if rule.input_tokens else older
        begin = _FirstGroups(work.groups, chosen, NOTHING)
    groups, chosen, _ = begin
    if not chosen:
        return work
    given = groups.only(chosen)
    try:
        summary, state = work.request.summarise(work.state, given.view, rule.budget)
    except SummaryFailed:
        state = msgspec.structs.replace(work.state, calls=work.state.calls + 1)
        return work.failed_call(given, state, empty=False)
    message = summary_message(summary)
    if not message.bytes:
        return work.failed_call(given, state, empty=True)
    tokens = summary_tokens(message, work.request.check.at + work.included.added)
    new = {chosen[0]: (message, Insertion(tokens, groups.begin_of(chosen[0])))}
    after = begin.whole(groups.without(set(chosen), new))
    state = msgspec.structs.replace(state, summary_bytes=message.bytes)
    return replace(work, state=state).became(after, given, message.bytes)


def summary_message(summary: Summary) -> Synthetic:
    """A summary as a message of the assistant, without blanks around it."""
    if summary.text is None:
        return Synthetic(SUMMARY, summary.bytes, None, Role.MODEL)
    text = summary.text.strip()
    return Synthetic(SUMMARY, utf8_bytes(text), text, Role.MODEL)


def summary_tokens(message: Synthetic, number: int) -> int:
    """Tokens of a summary with a number in its id."""
    return inserted_tokens(message, len("summary_") + len(str(number)))


def _older(groups: GroupedList, target: int) -> list[int]:
    """The groups before the newest ones with as many messages as are to stay."""
    plain, kept = groups.plain, 0
    while plain:
        kept += groups.sizes[plain.pop()]
        if kept >= target:
            break
    return plain


def _first_older(ledger: Ledger, rule: GroupSummaries, count: int, groups: GroupedList) -> list[int] | None:
    """The groups of the beginning of a list of `count` messages that are summarised, where as many as are to stay come
    behind it and it holds more than the summariser can be given."""
    if count - sum(groups.sizes[group] for group in groups.plain) < rule.target:
        return None
    older = groups.plain[:-1]  # the last one may grow
    chosen = _fitting_groups(ledger, groups, older, rule)
    return chosen if chosen and chosen[-1] < older[-1] else None


def _fitting_groups(ledger: Ledger, groups: GroupedList, older: list[int], rule: GroupSummaries) -> list[int]:
    """The groups of some that the summariser can be given at once."""
    lines = (_lines(ledger, groups, group) for group in older)
    return [older[place] for place in fitting(lines, rule.input_tokens)]


def fitting(groups: Iterable[TranscriptSize], most: int) -> list[int]:
    """The places of the first of some groups that the summariser can be given at once; too large ones before them are
    skipped."""
    chosen: list[int] = []
    used, messages = PROMPT_TOKENS, 0
    for place, lines in enumerate(groups):
        tokens = lines.tokens(messages + 1) + (LINE_BREAK_TOKENS if chosen else 0)
        if used + tokens <= most:
            chosen.append(place)
            used += tokens
            messages += lines.messages
        elif chosen:
            break
    return chosen


def lines_of(ledger: Ledger, messages: View, bounds: Sequence[int]) -> Iterator[TranscriptSize]:
    """The lines of some inserted messages, and of groups of the log from each bound to the next."""
    yield from (TranscriptSize(LINE_COSTS.segment(ledger, message), 1) for message in messages)
    prefix = LINE_COSTS.prefix(ledger)
    yield from (
        TranscriptSize(prefix.item(stop) - prefix.item(start), stop - start) for start, stop in pairwise(bounds)
    )


def _lines(ledger: Ledger, groups: GroupedList, group: int) -> TranscriptSize:
    row, prefix = groups.begins[group], LINE_COSTS.prefix(ledger)
    first, stop = groups.first[row], groups.stop[row]
    if first < 0:
        return TranscriptSize(LINE_COSTS.inserted(groups.messages[stop]), 1)
    if groups.is_each_a_run:
        return TranscriptSize(prefix.item(stop) - prefix.item(first), stop - first)
    events = [*groups.members(group)]
    chars = sum(prefix.item(each.stop) - prefix.item(each.start) for each in events)
    return TranscriptSize(chars, sum(map(len, events)))
