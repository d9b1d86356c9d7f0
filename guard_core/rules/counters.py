"""What agents compare with their threshold: the provider's last counts, and an estimate of what was appended since.

A check is a place at which an agent may compact: before each call, and where the recording has a compaction. Between a
compaction and the next answer no count of the provider is known, so such a check proves nothing. No text is read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from guard_core.counts import CompactionCounts, counted_compactions
from guard_core.ledger import Ints, Ledger
from guard_core.sessions import ModelCall, Session

PROMPT, TOTAL, TOTAL_PENDING = "prompt", "total", "total_pending"
GROWTH = "growth"  # the last of them without what a context began with
TURN_END = "turn_end"  # what a second threshold is compared with, at the ends of turns alone
COMPARED = "compared"  # by a guard that recorded it
REQUEST = "request"  # of a provider, which counts the request itself before it answers
INVOCATIONS, EVENTS = "invocations", "events"  # of agents that count these instead of tokens
COUNTED = {  # what each is a count of, for people; another one by its own name
    PROMPT: "prompt tokens of the last answer",
    TOTAL: "prompt and output tokens of the last answer",
    TOTAL_PENDING: "prompt and output tokens of the last answer, and an estimate of what was added since",
    GROWTH: "prompt and output tokens of the last answer, and an estimate of what was added since, less the first"
    " prompt since the last compaction",
    TURN_END: "prompt and output tokens of the last answer at the end of a turn",
    REQUEST: "input tokens of the request",
    INVOCATIONS: "invocations since the last compaction",
    EVENTS: "events of the request",
    "estimate": "the agent's own estimate of the request",
    COMPARED: "what the guard compared, as it recorded it",
}
BRIEFLY = {  # the same in few words, behind a number
    PROMPT: "prompt of the last request",
    TOTAL: "last prompt and its answer",
    TOTAL_PENDING: "last prompt, its answer and what was added since",
    GROWTH: "what was added to the first request since the last compaction",
    REQUEST: "the request itself",
    "estimate": "its own estimate of the request",
    COMPARED: "as the guard compared it",
}
UNKNOWN = -1  # a count that is not known


def unit_of(counter: str) -> str:
    """What the counts of a counter, by its name, are numbers of."""
    return counter if counter in (INVOCATIONS, EVENTS) else "tokens"


class Checks(NamedTuple):
    """One entry per check, in the order of the session.

    `step` is the call that comes next (the number of calls: none). `last` is the call whose counts are the last ones
    that the agent knew (-1: none since the last compaction). Events from `start` up to `stop` were appended since.
    `place` is the recorded compaction that was made here, -1: none. `between` is 1 where a turn has ended, else 0.
    """

    step: Ints
    last: Ints
    start: Ints
    stop: Ints
    place: Ints
    between: Ints


def why_uncounted(checks: Checks, row: int, ledger: Ledger, counter: RuleCounter) -> str:
    """Why the count at a check is not known: no answer before it was counted that the agent would still go by, or a
    part of what it counted is not in the file."""
    if checks.last[row] >= 0 and _is_lacking(ledger, checks, counter)[row]:
        return f"the file does not hold {counter.lacks_words}"
    counted = ledger.steps["prompt_tokens"] > 0
    if not counted.any():
        return "the file has no tokens per call"
    if (checks.place[:row] >= 0).any():
        return "no count of the provider is known since the last compaction"
    if counted[: int(checks.step[row])].any():
        return "the provider's count of the last answer is not known"
    return "the file has no tokens of the calls before" if checks.step[row] > 0 else "no answer has been counted yet"


@dataclass(frozen=True)
class RuleCounter:
    """A count in tokens. `pending` estimates the tokens of each event that was appended (None: not counted);
    `before_user`: a check before a turn comes before the user's message enters the log. `with_answer`: what `pending`
    says of the last answer itself counts, too. `is_recorded`: the reader has computed what is pending, as
    `pending_tokens` of calls and compactions. `earlier` estimates the tokens of each event that count besides once the
    user has written again, since the last compaction; `lacks` says which events the file has without what is estimated,
    and `lacks_words` what that is: the count at a compaction is then not known, at other checks it is the least.
    `lacks_beginning`: it continues another file, and up to the first compaction some of that may be there.
    `carried` has the tokens that do not count at each check."""

    name: str
    words: str
    pending: Callable[[Ledger], Ints] | None = None
    before_user: bool = False
    with_answer: bool = False
    is_recorded: bool = False
    earlier: Callable[[Ledger], Ints] | None = None
    lacks: Callable[[Ledger], Ints] | None = None
    lacks_words: str = ""
    lacks_beginning: bool = False
    carried: Callable[[Session, Ledger, Checks], Ints] | None = None


LAST_PROMPT = RuleCounter(PROMPT, "prompt tokens of the last answer")
LAST_TOTAL = RuleCounter(TOTAL, "prompt and output tokens of the last answer")


def checks_of(session: Session, ledger: Ledger, counts: CompactionCounts | None = None) -> Checks:
    """Where an agent could have compacted: before each call, and at each counted compaction."""
    at = ledger.steps["at"]
    counted = (counts or counted_compactions(session, at)).compactions
    places = np.array([item.place for item in counted], dtype=np.int64)
    compacted = np.array([session.compactions[item.place].at for item in counted], dtype=np.int64)
    firsts = np.searchsorted(at, compacted, side="left")
    quiet = np.setdiff1d(np.arange(len(at)), firsts)
    step = np.concatenate([quiet, firsts])
    order = np.argsort(step, kind="stable")
    step = step[order]
    place = np.concatenate([np.full(len(quiet), -1), places])[order]
    epoch = np.concatenate([np.searchsorted(compacted, at[quiet], side="right"), np.arange(len(compacted))])[order]
    stop = np.concatenate([at[quiet], compacted])[order]
    last = _last_counted(ledger, step)
    known = last >= 0
    known &= np.where(known, np.searchsorted(compacted, np.append(at, 0)[last], side="right"), -1) == epoch
    last = np.where(known, last, -1)
    turns = np.append(ledger.steps["turn"], -2)
    between = (known & (turns[step] != turns[last])).astype(np.int64)
    response = np.append(ledger.steps["response"], 0)[last]
    start = np.where(response >= 0, response + 1, np.append(at, 0)[last])
    return Checks(step, last, np.minimum(start, stop), stop, place, between)


def _last_counted(ledger: Ledger, step: Ints) -> Ints:
    """For each check the last call with a provider's count before it, -1 where an answer without one came since."""
    prompt, response = ledger.steps["prompt_tokens"], ledger.steps["response"]
    numbers = np.arange(len(prompt))
    counted = np.maximum.accumulate(np.append(-1, np.where(prompt > 0, numbers, -1)))[step]
    answered = np.maximum.accumulate(np.append(-1, np.where((prompt > 0) | (response >= 0), numbers, -1)))[step]
    return np.asarray(np.where(counted == answered, counted, -1))


def counts_at(session: Session, ledger: Ledger, checks: Checks, counter: RuleCounter) -> Ints:
    """The count of each check in tokens, UNKNOWN where one of its numbers is not recorded."""
    last, known = checks.last, checks.last >= 0
    prompt = np.append(ledger.steps["prompt_tokens"], 0)[last]
    if counter.name == PROMPT:
        return np.asarray(np.where(known, prompt, UNKNOWN))
    output = np.append(outputs_of(session, ledger), UNKNOWN)[last]
    pending = pending_at(session, ledger, checks, counter)
    known = known & (output >= 0) & ~_is_lacking(ledger, checks, counter)
    carried = 0 if counter.carried is None else counter.carried(session, ledger, checks)
    return np.asarray(np.where(known, prompt + output + pending - carried, UNKNOWN))


def first_prompts(ledger: Ledger, checks: Checks, *, of_turn: bool) -> Ints:
    """The prompt tokens of the first counted call since the last compaction, or with `of_turn` since the last turn that
    began after it; 0 where no call was counted since."""
    counted = np.flatnonzero(ledger.steps["prompt_tokens"] > 0)
    epoch = np.searchsorted(checks.stop[checks.place >= 0], ledger.steps["at"][counted], side="right")
    turn = ledger.steps["turn"][counted] * of_turn
    begins = np.append(True, (np.diff(epoch) > 0) | (np.diff(turn) != 0))[: len(counted)]
    first = counted[np.maximum.accumulate(np.where(begins, np.arange(len(counted)), 0))]
    prompts = np.zeros(len(ledger.steps["at"]) + 1, dtype=np.int64)
    prompts[counted] = ledger.steps["prompt_tokens"][first]
    known = (checks.last >= 0) & ~((checks.between > 0) & of_turn)
    return np.asarray(np.where(known, prompts[checks.last], 0))


def unused_summaries(session: Session, ledger: Ledger, checks: Checks) -> Ints:
    """1 for each check at which a summary was asked for and not used: a call beside the conversation that was sent most
    of it."""
    asked = {call.at: call.prompt_tokens or 0 for call in session.side_calls}
    prompts = np.append(ledger.steps["prompt_tokens"], 0)[checks.last]
    sent = np.array([asked.get(stop, 0) for stop in checks.stop.tolist()], dtype=np.int64)
    return np.asarray((checks.place < 0) & (checks.last >= 0) & (sent > prompts // 2), dtype=np.int64)


def pending_at(session: Session, ledger: Ledger, checks: Checks, counter: RuleCounter) -> Ints:
    """The agent's estimate of what the provider's last counts leave out, in tokens: what was appended since, and of
    some agents what earlier turns left."""
    if counter.earlier is not None:
        return _appended_at(session, ledger, checks, counter) + _earlier_at(ledger, checks, counter, counter.earlier)
    return _appended_at(session, ledger, checks, counter)


def _earlier_at(ledger: Ledger, checks: Checks, counter: RuleCounter, column: Callable[[Ledger], Ints]) -> Ints:
    """Sums of a column of events over those from the last compaction to the last message of the user."""
    prefix = ledger.prefix_by(f"earlier {column.__name__}", column)
    compacted = np.where(checks.place >= 0, checks.stop, 0)
    start = np.append(0, np.maximum.accumulate(compacted)[:-1])
    turns = np.append(-1, ledger.turn_starts)
    stop = _stop(ledger, checks, counter)
    boundary = np.maximum(turns[np.searchsorted(ledger.turn_starts, stop, side="left")], start)
    return np.asarray(prefix[boundary] - prefix[start])


def _is_lacking(ledger: Ledger, checks: Checks, counter: RuleCounter) -> NDArray[np.bool_]:
    """The compactions before which the agent counted something that the file does not hold."""
    compacted = checks.place >= 0
    lacking = compacted & (np.cumsum(compacted) == 1) & counter.lacks_beginning
    if counter.lacks is not None:
        lacking |= compacted & (_earlier_at(ledger, checks, counter, counter.lacks) > 0)
    return np.asarray(lacking)


def _appended_at(session: Session, ledger: Ledger, checks: Checks, counter: RuleCounter) -> Ints:
    """The agent's estimate of what was appended since the last answer, in tokens."""
    if counter.is_recorded:
        calls = np.array([*(call.pending_tokens or 0 for call in session.calls), 0], dtype=np.int64)
        at_compactions = np.array([*(item.pending_tokens or 0 for item in session.compactions), 0], dtype=np.int64)
        return np.asarray(np.where(checks.place >= 0, at_compactions[checks.place], calls[checks.step]))
    if counter.pending is None:
        return np.zeros(len(checks.step), dtype=np.int64)
    prefix = ledger.prefix_by(f"pending {counter.words}", counter.pending)
    start, stop = checks.start, _stop(ledger, checks, counter)
    if counter.with_answer:
        response = np.append(ledger.steps["response"], -1)[checks.last]
        start = np.where((checks.last >= 0) & (response >= 0), response, start)
    return np.asarray(np.maximum(prefix[stop] - prefix[np.minimum(start, stop)], 0))


def _stop(ledger: Ledger, checks: Checks, counter: RuleCounter) -> Ints:
    """Up to which event the agent has its log at each check."""
    if not counter.before_user:
        return checks.stop
    user = np.append(ledger.steps["user_event"], -1)[checks.step]
    return np.asarray(np.where((checks.between > 0) & (user >= 0), np.minimum(checks.stop, user), checks.stop))


def outputs_of(session: Session, ledger: Ledger) -> Ints:
    """Output tokens of every call; only calls without a final count are read."""
    outputs = ledger.steps["output_tokens"].astype(np.int64)
    for step in np.flatnonzero(outputs < 0).tolist():
        outputs[step] = output_of(session.calls[step])
    return outputs


def output_of(call: ModelCall) -> int:
    """Output tokens of a call: the final count, else the one at the answer's start, else UNKNOWN."""
    value = call.output_tokens if call.output_tokens is not None else call.output_tokens_at_start
    return UNKNOWN if value is None else value
