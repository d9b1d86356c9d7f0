"""Where Hermes cuts: how much of the end is not pruned, and which messages begin the tail.

Sections 1.1 (seed) and 1.2 (current) of the specification of policies. Indices count messages from 0; a cut is the
first message of the tail.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from guard_core.policies.hermes.messages import ASSISTANT, TOOL, USER, HermesMessages
from guard_core.policies.hermes.settings import LEAST_TAIL, SOFT_CEILING, HermesSettings
from guard_core.policies.pieces.cuts import crossing


class TailCut(NamedTuple):
    """A cut as the walk from the end gave it, moved off a tool group, and moved to the anchors."""

    raw: int
    aligned: int
    anchored: int


def prune_boundary(messages: HermesMessages, settings: HermesSettings, budget: int) -> int:
    """Messages before it are pruned.

    The seed version compares indices where it means counts, so that its budget has no effect: exactly the last
    `protect_last_n` messages are not pruned.
    """
    count = len(messages)
    if settings.is_seed:
        return count - min(settings.protect_last_n, count - 1)
    least = min(settings.protect_last_n, count, settings.prune_floor or count)
    if budget <= 0:
        return max(0, count - settings.protect_last_n)
    return min(max(0, crossing(messages.tokens, budget, least=least)), count - least)


def head_end(messages: HermesMessages, settings: HermesSettings, compactions: int) -> int:
    """The messages at the beginning that stay; tool results at its end stay, too."""
    end = settings.protect_first_n
    if not settings.is_seed:
        is_system = len(messages) > 0 and messages.role[0] not in (USER, ASSISTANT, TOOL)
        end = int(is_system) + (0 if compactions else settings.protect_first_n)
    return past_results(messages, end)


def least_messages(messages: HermesMessages, settings: HermesSettings, compactions: int) -> int:
    """A list of at most so many messages is left as it is."""
    first = settings.protect_first_n
    if not settings.is_seed:
        is_system = len(messages) > 0 and messages.role[0] not in (USER, ASSISTANT, TOOL)
        first = int(is_system) + (0 if compactions else first)
    return first + LEAST_TAIL + 1


def past_results(messages: HermesMessages, index: int) -> int:
    """The first message from an index on that is not a tool result."""
    while index < len(messages) and messages.role[index] == TOOL:
        index += 1
    return index


def before_group(messages: HermesMessages, index: int) -> int:
    """The same index; where the messages before it are results of a call, or that call, the call's index.

    A cut just behind a complete group is moved before that group, too, as Hermes does.
    """
    if index <= 0 or index >= len(messages):
        return index
    place = index - 1
    while place >= 0 and messages.role[place] == TOOL:
        place -= 1
    is_call = place >= 0 and messages.role[place] == ASSISTANT and messages.has_calls[place]
    return place if is_call else index


def tail_cut(messages: HermesMessages, start: int, settings: HermesSettings, budget: int) -> TailCut:
    """Where the tail begins, given that the head ends at `start`."""
    least = _least_tail(len(messages) - start - 1, settings)
    ceiling = int(budget * SOFT_CEILING)
    raw = min(crossing(messages.tokens, ceiling, start=start, least=least) + 1, len(messages))
    fits = raw <= start and 0 < int(messages.tokens[start:].sum()) <= ceiling
    if fits and not settings.is_seed:
        raw = max(crossing(messages.tokens, budget, start=start, least=least), start)
    fallback = len(messages) - least
    raw = min(raw, fallback)
    if raw <= start:
        raw = max(fallback, start + 1)
    aligned = before_group(messages, raw)
    if settings.is_seed:
        return TailCut(raw, aligned, max(aligned, start + 1))
    anchored = _with_last_answer(messages, _with_last_request(messages, aligned, start), start)
    return TailCut(raw, aligned, past_results(messages, max(anchored, start + 1)))


def _least_tail(available: int, settings: HermesSettings) -> int:
    """Messages that stay at the end whatever their tokens: in the seed LEAST_TAIL, later also as many as the settings
    protect, as far as there are any."""
    if settings.is_seed:
        return min(LEAST_TAIL, available) if available > 0 else 0
    floor = max(LEAST_TAIL, min(settings.protect_last_n, settings.tail_floor))
    return min(floor, max(LEAST_TAIL, available - 2), available) if available > 1 else 0


def _with_last_request(messages: HermesMessages, cut: int, start: int) -> int:
    """The cut moved so that the user's last message is in the tail; where it is the first that may be summarised, the
    cut goes behind its answer instead."""
    requests = np.flatnonzero((messages.role[start:] == USER) & ~messages.is_summary[start:])
    if not len(requests) or requests[-1] + start >= cut:
        return cut
    last = int(requests[-1]) + start
    if last >= start + 1:
        return last
    end = last + 1
    if end < len(messages) and messages.role[end] == ASSISTANT:
        end = past_results(messages, end + 1)
    return max(end, start + 1)


def _with_last_answer(messages: HermesMessages, cut: int, start: int) -> int:
    """The cut moved so that the last answer with words is in the tail; the last of any kind where none has words."""
    is_answer = messages.role[start:] == ASSISTANT
    answers = np.flatnonzero(is_answer & messages.has_words[start:])
    if not len(answers):
        answers = np.flatnonzero(is_answer)
    if not len(answers) or answers[-1] + start >= cut:
        return cut
    return max(before_group(messages, int(answers[-1]) + start), start + 1)
