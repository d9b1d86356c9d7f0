"""Every policy on one session: the recording on top, then a replay of each listed policy at its defaults."""

from __future__ import annotations

import gc
import multiprocessing
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeVar

from guard_core.errors import GuardError
from guard_core.findings.facts import Facts
from guard_core.memory import held_data, limited_growth, without_collections
from guard_core.orphans import die_with_parent
from guard_core.outcomes.bill import Prices
from guard_core.outcomes.losses import StatedRule
from guard_core.outcomes.outcome import PolicyOutcome, outcome_of
from guard_core.outcomes.sent import SentRequests
from guard_core.policies import POLICIES, PolicyKind
from guard_core.replay import replay
from guard_core.rules import OwnRule
from guard_core.rules.played import played_profile
from guard_core.summaries.base import Summarizer
from guard_core.trace import Trace

NO_MEMORY = "its replay of a session of this length needs more memory than there is"
T = TypeVar("T")
MOST_MEMORY = 2_000_000_000  # bytes, as for the process of a long replay
MOST_DERIVED = 24_000_000  # bytes, ours: with more, what policies derived from the log is dropped after a row


class Candidate(NamedTuple):
    """A policy in one of its profiles ("" for a policy without profiles)."""

    kind: PolicyKind
    profile: str

    @property
    def title(self) -> str:
        """What pages and tables call it."""
        is_default = self.profile == self.kind.default_profile
        return self.kind.title if is_default else f"{self.kind.title}, {self.profile}"


@dataclass(frozen=True)
class Compared:
    """One row, with the requests that it is made from, where it was made here. `problem` is why a policy cannot be
    replayed here; it has no outcome then."""

    candidate: Candidate | None
    outcome: PolicyOutcome | None
    sent: SentRequests | None = None
    problem: str = ""

    @property
    def trace(self) -> Trace | None:
        """The replay; None for the recording."""
        return None if self.sent is None else self.sent.trace


def candidates(*, all_profiles: bool = False, rule: OwnRule | None = None) -> tuple[Candidate, ...]:
    """The policies that are compared, in the order in which they are listed: each in all of its profiles, or in one.
    That is the one of a recording's own `rule` for the policy of that rule, and the default for all others."""
    return tuple(
        Candidate(kind, profile)
        for kind in POLICIES.values()
        for profile in ((kind.profile_names or ("",)) if all_profiles else (played_profile(kind, rule),))
    )


def compared(
    facts: Facts,
    chosen: Sequence[Candidate],
    *,
    window: int | None = None,
    rules: Sequence[StatedRule] | None = None,
    summarizer: Summarizer | None = None,
    each: Callable[[int], object] = lambda done: None,
) -> Iterator[Compared]:
    """The rows one after the other: the recording, where there is one, then each policy.

    Replays are in the session's window, or in `window` tokens, with the settings that the recording gives to its own
    agent's policy. `each` hears how many steps of all are done, and what it raises ends the work. A policy whose replay
    finds no memory has that as its problem, and the next ones are replayed.
    """
    prices = Prices.of(facts.session, facts.ledger)
    yield from _recording(facts, prices, rules)
    for place, item in enumerate(chosen):
        done = place * facts.ledger.step_count
        each(done)
        hears = partial(_later, each, done)
        yield _row(facts, item, prices, window=window, rules=rules, summarizer=summarizer, each=hears)


def compared_apart(facts: Facts, chosen: Sequence[Candidate], processes: int, **options: Any) -> Iterator[Compared]:
    """The same rows in the same order, without their replays; the arguments are those of `made_apart`."""
    simulated = facts.ledger.usage_ratio is not None
    of_rows: tuple[Candidate | None, ...] = tuple(chosen) if simulated else (None, *chosen)
    rows = made_apart(facts, chosen, processes, lambda row: (row.outcome, row.problem), **options)
    yield from (Compared(item, row, problem=words) for item, (row, words) in zip(of_rows, rows, strict=True))


def made_apart(
    facts: Facts,
    chosen: Sequence[Candidate],
    processes: int,
    convert: Callable[[Compared], T],
    *,
    each: Callable[[int], object] = lambda done: None,
    copied: Callable[[], object] = lambda: None,
    most_derived: int = MOST_DERIVED,
    **options: Any,
) -> Iterator[T]:
    """What `convert` makes of each row, in the same order, by copies of this process where there can be some (on Linux,
    and where no other thread runs): values that can be pickled. All together may grow by MOST_MEMORY. `copied` is
    called once there are copies, so that threads may run from then on; `each` and `options` are as for `compared`.
    What policies derived from the log is dropped once it has more bytes than `most_derived`."""
    copies = processes if sys.platform == "linux" and threading.active_count() == 1 else 1
    prices = Prices.of(facts.session, facts.ledger)
    with limited_growth(MOST_MEMORY // copies):
        yield from map(convert, _recording(facts, prices, options.get("rules")))
        work: Work = partial(_rows_of, facts, chosen, prices, options, convert, held_data() + most_derived)
        if copies == 1:
            copied()
            yield from _heard(map(work, range(len(chosen))), facts.ledger.step_count, each)
            return
        with multiprocessing.get_context("fork").Pool(copies, _inherit, (work,)) as pool:
            copied()
            yield from _heard(pool.imap(_inherited_work, range(len(chosen))), facts.ledger.step_count, each)


def _heard(rows: Iterator[T], steps: int, each: Callable[[int], object]) -> Iterator[T]:
    """The rows; `each` hears of every one how many steps are done."""
    for place, row in enumerate(rows):
        each((place + 1) * steps)
        yield row


Work = Callable[[int], Any]
_inherited: list[Work] = []  # in a copy: what it was made for


def _inherit(work: Work) -> None:
    die_with_parent()  # who cancels a comparison kills the parent
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # whose pipes are closed just before its copies are killed
    gc.freeze()  # what it was copied with stays until it ends: no collection need look at it
    _inherited.append(work)


def _inherited_work(place: int) -> Any:
    """What a pool can name in a copy; the work itself, with its ledger, is inherited, not sent."""
    return _inherited[-1](place)


def _rows_of(
    facts: Facts,
    chosen: Sequence[Candidate],
    prices: Prices,
    options: Mapping[str, Any],
    convert: Callable[[Compared], T],
    most: int,
    place: int,
) -> T:
    """One row. The ledger forgets what was derived once this process holds more than `most` bytes. Searches for garbage
    begin again when its replay is gone: one before that would look at all of its views."""
    with without_collections():
        row = convert(_row(facts, chosen[place], prices, **options))
    if threading.active_count() == 1:
        if held_data() > most:
            facts.ledger.forget()
        else:
            facts.ledger.forget_forms()
    return row


def _later(each: Callable[[int], object], done: int, step: int) -> None:
    """For `partial`, which keeps the `done` of one row, as a function within the loop would not."""
    each(done + step)


def _recording(facts: Facts, prices: Prices, rules: Sequence[StatedRule] | None) -> Iterator[Compared]:
    """The row of the recording, where there is one."""
    if facts.ledger.usage_ratio is None:
        sent = SentRequests.recorded(facts)
        yield Compared(None, outcome_of(sent, prices, rules), sent)


def _row(
    facts: Facts,
    item: Candidate,
    prices: Prices,
    *,
    window: int | None = None,
    rules: Sequence[StatedRule] | None = None,
    summarizer: Summarizer | None = None,
    each: Callable[[int], object] = lambda done: None,
) -> Compared:
    """The row of one policy; the arguments are those of `compared`."""
    try:
        policy = item.kind.make(**facts.made_with(item.kind, {"profile": item.profile}))
        with without_collections():
            trace = replay(
                facts.ledger,
                policy,
                window=facts.window.value if window is None else window,
                usage=facts.usage,
                summarizer=summarizer,
                request=None if facts.ledger.usage_ratio is None else "",
                each=each,
            )
            sent = SentRequests.replayed(facts, trace)
            return Compared(item, outcome_of(sent, prices, rules), sent)
    except GuardError as error:
        return Compared(item, None, problem=str(error))
    except MemoryError:
        return Compared(item, None, problem=NO_MEMORY)
