"""Runs of steps in which the oldest tool groups become messages, or go, decided at once.

Where the list has all tool groups that are whole in its open end, what a step makes of them follows from how many of
them there are: each request is a longer beginning of one sequence of segments, and the log from there on.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec
import numpy as np

from guard_core.estimation.usage import CountedRun, GrowingRequests, growing_counts
from guard_core.ledger import Ints
from guard_core.policies.agent_framework.counting import inserted_tokens, message_costs
from guard_core.policies.agent_framework.groups import IN_TOOL_GROUP, TOOL_GROUP, Insertion, runs_of, tokens_in
from guard_core.policies.agent_framework.strategies import tool_results_message
from guard_core.policies.pieces.lists import ListPolicy
from guard_core.policies.pieces.stages import ScanRequest, Stages, Walked
from guard_core.trace import NOTHING_TO_COMPACT, Head
from guard_core.view_sums import messages_in
from guard_core.views import Segment, Span, followed


class GroupRule(NamedTuple):
    """What is done to tool groups: the newest `keep` stay, the others become messages (`collapses`) or go. It acts over
    `limit`, of the list's tokens (`by_tokens`) or of its tool groups; a list that then has more than `most` tokens
    (-1: any number) is changed in another way, too."""

    keep: int
    collapses: bool
    limit: int
    by_tokens: bool = False
    most: int = -1


class OpenEnds(NamedTuple):
    """The open end of a list, with the tool groups that begin at `starts` (events). After the first 0, 1, ... of them
    went, `filled` of the `segments` come before the log, which is sent from `kept` on. `less` counts the messages that
    the list then has fewer, `tokens` the library's tokens, `estimates` those of the heuristic; `inserted` are
    the messages that took the place of a group."""

    starts: Ints
    segments: list[Segment]
    filled: list[int]
    kept: list[int]
    inserted: list[Insertion]
    less: Ints
    tokens: list[int]
    estimates: Ints


class Numbers(NamedTuple):
    """At each step of a run the library's `tokens` of the list, had no group gone, and its tool `groups`; how many
    groups are gone `before` it and `after` it, and why nothing is done at it (`held`)."""

    tokens: Ints
    groups: Ints
    before: Ints
    after: Ints
    held: Ints


def walked(policy: ListPolicy, rule: GroupRule, asked: ScanRequest) -> Walked | None:
    """What is done in a run of steps; None where it has to be looked at step by step."""
    ledger, at, state = asked.ledger, asked.at, asked.state
    last = state.head[-1] if state.head else None
    if rule.keep < 1 or (isinstance(last, Span) and last.stop == state.kept_from):
        return None
    if IN_TOOL_GROUP.view(ledger, state.head):
        return None
    ends = _ends(policy, rule, asked, int(at[-1]))
    if ends is None:
        return None
    costs = message_costs(policy.settings.id_prefix)
    prefix = costs.prefix(ledger)
    begun = costs.view(ledger, state.head) + tokens_in(ledger, state.inserted) - prefix.item(state.kept_from)
    numbers = _decided(rule, ends, begun + prefix[at], np.searchsorted(ends.starts, at))
    return _walked(policy, rule, asked, ends, numbers)


def _ends(policy: ListPolicy, rule: GroupRule, asked: ScanRequest, at: int) -> OpenEnds | None:
    """The open end of a list up to event `at`; None where groups are not runs of neighbours."""
    run, state = asked.run, asked.state
    ledger, runs, begin = run.ledger, runs_of(run.ledger), state.kept_from
    low = int(np.searchsorted(runs.starts, begin))
    if runs.starts.item(low) != begin or (runs.group[low:] != np.arange(low, len(runs.group))).any():
        return None
    rows = low + np.flatnonzero(runs.kinds[low:] == TOOL_GROUP)
    rows = rows[runs.starts[rows] < at]
    starts, stops = runs.starts[rows], runs.starts[rows + 1]
    most = max(len(rows) - rule.keep, 0)
    segments: list[Segment] = []
    filled, kept, inserted = [0], [begin], list[Insertion]()
    for first, end in zip(starts[:most].tolist(), stops[:most].tolist(), strict=True):
        if kept[-1] < first:
            segments.append(Span(kept[-1], first))
        if rule.collapses:
            message, quoted = tool_results_message(ledger, run.session, list(range(first, end)))
            id_chars = len("tool_summary_group_") + len(policy.settings.id_prefix) + len(str(first))
            segments.append(message)
            inserted.append(Insertion(inserted_tokens(message, id_chars, quoted), first))
        filled.append(len(segments))
        kept.append(end)
    costs = policy.estimator(ledger)
    messages = [segment for segment in segments if not isinstance(segment, Span)]
    estimates = _saved(costs.prefix, starts[:most], stops[:most], [costs.segment(message) for message in messages])
    own = _saved(
        message_costs(policy.settings.id_prefix).prefix(ledger),
        starts[:most],
        stops[:most],
        [new.tokens for new in inserted],
    )
    less = _saved(np.arange(ledger.event_count + 1), starts[:most], stops[:most], [1] * len(messages))
    return OpenEnds(starts, segments, filled, kept, inserted, less, own.tolist(), estimates)


def _saved(prefix: Ints, starts: Ints, stops: Ints, instead: list[int]) -> Ints:
    """What a list has less of something after the first 0, 1, ... groups went and others came `instead`."""
    less = prefix[stops] - prefix[starts]
    return np.append(0, np.cumsum(less - np.array(instead, dtype=np.int64) if instead else less))


def _decided(rule: GroupRule, ends: OpenEnds, tokens: Ints, groups: Ints) -> Numbers:
    """What is done at each step, up to one at which more than that is done."""
    before, after, held, dropped = [], [], [], 0
    for size, count in zip(tokens.tolist(), groups.tolist(), strict=True):
        now, reason = dropped, 0
        if (size - ends.tokens[dropped] if rule.by_tokens else count - dropped) > rule.limit:
            now = max(count - rule.keep, dropped)
            reason = NOTHING_TO_COMPACT if now == dropped else 0
            if 0 <= rule.most < size - ends.tokens[now]:
                break
        before.append(dropped)
        after.append(now)
        held.append(reason)
        dropped = now
    rows = [np.array(values, dtype=np.int64) for values in (before, after, held)]
    return Numbers(tokens[: len(held)], groups[: len(held)], *rows)


def _walked(policy: ListPolicy, rule: GroupRule, asked: ScanRequest, ends: OpenEnds, numbers: Numbers) -> Walked:
    """The stages of a run, of which each has more groups gone."""
    run, start, state = asked.run, asked.start, asked.state
    tokens, groups, before, after, held = numbers
    ledger, costs = run.ledger, policy.estimator(run.ledger)
    rows = np.flatnonzero(before != after)
    removed = np.append(0, after[rows])
    # How requests begin after the first 0, 1, ... groups went.
    view, heads = state.head, [Head(state.head, state.kept_from)]
    for first, stop, kept in zip(ends.filled, ends.filled[1:], ends.kept[1:], strict=False):
        view = followed(view, len(view), ends.segments[first:stop])
        heads.append(Head(view, kept))
    stages = Stages(
        [heads[count] for count in removed.tolist()],
        rows,
        messages_in(ledger, state.head) - state.kept_from - ends.less[removed],
        costs.contents(state.head) - costs.prefix.item(state.kept_from) - ends.estimates[removed],
        np.full(len(removed), state.summary_bytes),
    )
    listed = tokens - np.array(ends.tokens)[before]
    end = int(removed[-1])
    if rule.collapses:
        inserted = followed(state.inserted, len(state.inserted), ends.inserted[:end])
        state = msgspec.structs.replace(state, inserted=inserted, added=state.added + end)

    def counts(sent: Ints) -> CountedRun | None:
        steps, stop = np.arange(start, start + len(held)), asked.at[: len(held)]
        filled, starts = np.array(ends.filled)[after], np.array(ends.kept)[after]
        return growing_counts(
            run.usage, GrowingRequests(steps, asked.state.head, ends.segments, filled, starts, stop), sent
        )

    compared = listed if rule.by_tokens else groups - before
    return Walked(stages, held, compared, {"list_tokens": listed}, state, counts)
