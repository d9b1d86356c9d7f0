"""The steps that strategies of Agent Framework are made of: groups left out, tool groups collapsed, groups summarised.

Source: agent-framework-core 1.23.0, `_compaction.py`, and scripted runs of it. A step that has nothing to do leaves the
list as it is.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import msgspec

from guard_core.costs import RESULT, text_sizes
from guard_core.errors import SummaryFailed
from guard_core.events import Role, ToolCallPart, ToolResultPart, utf8_bytes, value_text
from guard_core.ledger import Ledger
from guard_core.policies.agent_framework.counting import (
    LINE_BREAK_TOKENS,
    LINE_COSTS,
    PROMPT_TOKENS,
    Lines,
    inserted_tokens,
    message_costs,
)
from guard_core.policies.agent_framework.groups import (
    SYSTEM_GROUP,
    TOOL_GROUP,
    USER_GROUP,
    Groups,
    Included,
    groups_of,
    tokens_in,
)
from guard_core.policies.pieces.lists import Request
from guard_core.sessions import Session
from guard_core.summaries.base import Summary
from guard_core.trace import Pass
from guard_core.views import Synthetic, View

SUMMARY, TOOL_RESULTS = "summary", "tool results"  # kinds of inserted messages
BEFORE, AFTER = "[Tool results: ", "]"  # 1.23.0: what a collapsed tool group says
NO_RESULTS, CUT = "no results", "... [truncated]"
MOST_CHARS = 4_096  # of a collapsed tool group
NOTHING = Included((), (), 0)


@dataclass(frozen=True)
class Work:
    """A list on its way through some steps. `request` is what the policy was asked, `passes` the steps that changed
    something or asked the summariser, which `failed` or gave nothing."""

    request: Request
    state: Any
    included: Included
    id_prefix: str
    passes: tuple[Pass, ...] = ()
    failed: bool = False

    @property
    def ledger(self) -> Ledger:
        return self.request.ledger

    @cached_property
    def groups(self) -> Groups:
        return groups_of(self.ledger, message_costs(self.id_prefix), self.included)

    @property
    def tokens(self) -> int:
        """Tokens of the list."""
        included = self.included
        return message_costs(self.id_prefix).view(self.ledger, included.view) + tokens_in(
            self.ledger, included.inserted
        )

    def tool_groups(self) -> tuple[Included, Groups]:
        """What comes before all tool groups, and the groups from there on."""
        before, rest = self.included.parted(self.ledger)
        return before, groups_of(self.ledger, message_costs(self.id_prefix), rest)

    def became(self, after: Included, given: Included | None = None, summary_bytes: int = 0) -> Work:
        """The work with another list, of which `given` was summarised."""
        request = self.request.with_list(self.included.view)
        step = request.passed(given.view if given else (), after.view, summary_bytes=summary_bytes)
        return replace(self, included=after, passes=(*self.passes, step))

    def failed_call(self, given: Included, state: Any, *, empty: bool) -> Work:
        """The same list after the summariser was asked in vain."""
        request = self.request.with_list(self.included.view)
        step = request.passed(given.view, self.included.view, failed=not empty, empty=empty)
        return replace(self, state=state, passes=(*self.passes, step), failed=True)

    @property
    def changed(self) -> bool:
        """Did a step change the list."""
        return any(not step.failed and not step.empty for step in self.passes)


def without_oldest(work: Work, groups: Groups, amounts: list[int], most: int, protected: Container[int]) -> Work:
    """The oldest groups that are not protected go until the amounts of the others are at most `most`."""
    excluded: set[int] = set()
    over = sum(amounts) - most
    for group, amount in enumerate(amounts):
        if group in protected:
            continue
        excluded.add(group)
        over -= amount
        if over <= 0:
            break
    return _without(work, groups, excluded)


def protected(groups: Groups, *, system: bool, first_user: bool = False) -> set[int]:
    """The groups that truncation leaves: the newest, and as asked those of the system and the user's first."""
    stays = set(groups.of_kind(SYSTEM_GROUP) if system else ())
    if first_user:
        stays.update(groups.of_kind(USER_GROUP)[:1])
    return stays | {groups.least}


def last_groups(work: Work, keep: int, *, system: bool) -> Work:
    """The last groups stay, and, as asked, those of the system."""
    groups = work.groups
    excluded = set(groups.plain[:-keep])
    return _without(work, groups, excluded if system else excluded.union(groups.of_kind(SYSTEM_GROUP)))


def without_tool_groups(work: Work, keep: int) -> Work:
    """All tool groups but the last ones go."""
    before, groups = work.tool_groups()
    return _without(work, groups, set(_older_tool_groups(groups, keep)), before)


def collapsed_tool_groups(work: Work, keep: int) -> Work:
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
        new[group] = message, inserted_tokens(message, id_chars, quoted)
    return work.became(groups.without(new.keys(), new).behind(before))


def _older_tool_groups(groups: Groups, keep: int) -> list[int]:
    tools = groups.of_kind(TOOL_GROUP)
    return tools[: max(len(tools) - keep, 0)]


def _without(work: Work, groups: Groups, gone: set[int], before: Included = NOTHING) -> Work:
    """The list without some groups, behind what comes `before` them."""
    return work.became(groups.without(gone).behind(before)) if gone else work


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
class Summarising:
    """How groups are summarised: beyond `target` and `threshold` messages that are not the system's the oldest groups
    are, at most `input_tokens` of them with the instructions (0: no limit)."""

    target: int
    threshold: int
    input_tokens: int
    budget: int


def summarised(work: Work, rule: Summarising) -> Work:
    """The oldest groups replaced by a summary."""
    groups = work.groups
    older = _older(groups, rule)
    lines = (_lines(work.ledger, groups, group) for group in older)
    chosen = [older[place] for place in fitting(lines, rule.input_tokens)] if rule.input_tokens else older
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
    after = groups.without(set(chosen), {chosen[0]: (message, tokens)})
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


def _older(groups: Groups, rule: Summarising) -> list[int]:
    """The groups before the newest ones with as many messages as are to stay."""
    plain = groups.plain
    if sum(groups.sizes[group] for group in plain) <= rule.target + rule.threshold:
        return []
    kept = 0
    while plain:
        kept += groups.sizes[plain.pop()]
        if kept >= rule.target:
            break
    return plain


def fitting(groups: Iterable[Lines], most: int) -> list[int]:
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


def lines_of(ledger: Ledger, messages: View, bounds: Sequence[int]) -> Iterator[Lines]:
    """The lines of some inserted messages, and of groups of the log from each bound to the next."""
    yield from (Lines(LINE_COSTS.segment(ledger, message), 1) for message in messages)
    prefix = LINE_COSTS.prefix(ledger)
    yield from (Lines(prefix.item(stop) - prefix.item(start), stop - start) for start, stop in pairwise(bounds))


def _lines(ledger: Ledger, groups: Groups, group: int) -> Lines:
    events = [*groups.members(group)]
    if not events:
        message = groups.messages[groups.stop[groups.begins[group]]]
        return Lines(LINE_COSTS.inserted(message), 1)
    prefix = LINE_COSTS.prefix(ledger)
    chars = sum(prefix.item(each.stop) - prefix.item(each.start) for each in events)
    return Lines(chars, sum(map(len, events)))
