"""What would have avoided the findings of a recording, searched once and stored: here where it is quick, else in a
process of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple
from uuid import UUID

import msgspec

from guard_core.avoiding import Answer, avoid
from guard_core.estimation.forecast import Forecast
from guard_core.findings.facts import Facts
from guard_core.policies import policy_kind
from inspector.models import Session
from inspector.replays import stored
from inspector.replays.analysis import ReplayUnderWay, TooLong, budget, facts_of
from inspector.replays.choice import Choice, parse_choice, plain
from inspector.replays.comparing import rules_of
from inspector.replays.messages import AVOID, Task
from inspector.replays.own_policy import policy_of
from inspector.replays.processes import REPLAYS
from inspector.storage import explanations, storing
from inspector.storage.byte_cache import ByteCache
from inspector.storage.estimates import load_result

CACHE_BYTES = 1_000_000  # of answers in a process
BYTES_AN_ANSWER = 5_000  # about, with its sentences
USUAL_REPLAYS = 100  # of one search, for its progress
SEARCHED_CALLS = 2_000  # of a session whose settings are searched unasked, once it is measured: some seconds
QUICK_CALLS = 100  # a search of a longer session seldom ends in the time that a page has
DEFAULTS = Choice()


class AvoidanceAnswers(msgspec.Struct, frozen=True):
    """An answer for each goal of a recording's findings; none where nothing went wrong that a setting may avoid."""

    answers: tuple[Answer, ...]


def answers_of(row: Session) -> AvoidanceAnswers:
    """The answers of a session, where they are stored or quick.

    Raises ReplayUnderWay where they take long, and loading.Outdated where the session's columns must be made again.
    """
    key = _key(row, _forecast(row))
    if (under_way := REPLAYS.find(key)) is not None:
        raise ReplayUnderWay(under_way)
    try:
        return _cache.get(key, lambda: _stored_or_made(row, budget()))
    except TooLong:
        total = row.calls * USUAL_REPLAYS
        raise ReplayUnderWay(REPLAYS.start(key, Task(str(row.pk), DEFAULTS, AVOID), total)) from None


class AnswersAtHand(NamedTuple):
    """What a page that does not wait for a search can say: the answers, or None where they are neither stored nor
    quick. `is_awaited`: a search is under way, or made by the worker unasked, once it has measured the session."""

    answers: AvoidanceAnswers | None
    is_awaited: bool = False


def answers_at_hand(row: Session) -> AnswersAtHand:
    """The answers for a page that does not wait for them."""
    measured = load_result(row)
    key = _key(row, measured.forecast if measured else {})
    if REPLAYS.find(key) is not None:
        return AnswersAtHand(None, is_awaited=True)
    try:
        return AnswersAtHand(_cache.get(key, lambda: _at_hand(row)))
    except TooLong:
        return AnswersAtHand(None, is_awaited=row.calls <= SEARCHED_CALLS and measured is None)


def search_whole(row: Session, each: Callable[[int], object]) -> AvoidanceAnswers:
    """The answers however long they take, stored and kept for `answers_of`; `each` hears how many steps of all replays
    are done."""
    return _cache.get(_key(row, _forecast(row)), lambda: _stored_or_made(row, each))


def forget() -> None:
    """Drop the answers that this process holds."""
    _cache.clear()


def choice_of(facts: Facts, answer: Answer, place: int, window: int) -> Choice | None:
    """The settings of an answer's remedy as an address has them; None where no address says the same.

    `window` is the session's own, in tokens.
    """
    way = answer.remedies[place].way
    kind = policy_kind(way.policy)
    texts = {"policy": way.policy, "window": str(way.window) if way.window != window else ""}
    for name, value in way.settings.items():
        texts["profile" if name == "profile" else kind.setting(name).key] = plain(value)
    choice, errors = parse_choice(texts, policy_of(facts.explanation.rule))
    same = kind.make(**choice.engine_settings(facts)).settings == kind.make(**way.settings).settings
    return choice if same and not errors else None


def _never(done: int) -> None:
    """Where answers may only be loaded, the first step of working them out is one too many."""
    raise TooLong


def _key(row: Session, forecast: Forecast) -> tuple[object, ...]:
    basis = explanations.basis_of(row)
    return str(row.pk), row.revision, row.requests is None, row.effective_window, basis, bool(forecast), AVOID


def _forecast(row: Session) -> Forecast:
    measured = load_result(Session(pk=UUID(str(row.pk)), revision=row.revision))
    return measured.forecast if measured else {}


_cache: ByteCache[AvoidanceAnswers] = ByteCache(CACHE_BYTES, lambda value: BYTES_AN_ANSWER * (1 + len(value.answers)))


def _at_hand(row: Session) -> AvoidanceAnswers:
    """Raises TooLong where the answers are neither stored nor quick."""
    if row.calls <= QUICK_CALLS:
        return _stored_or_made(row, budget())
    if not stored.has_any(row):  # what is stored of a session has a name that takes several looks at the database
        raise TooLong
    return _stored_or_made(row, _never)


def _stored_or_made(row: Session, each: Callable[[int], object]) -> AvoidanceAnswers:
    storing.ensure_current(row)
    forecast = _forecast(row)
    place = stored.place_of(row, DEFAULTS, [AVOID, "measured" if forecast else ""])
    if (known := stored.load(place, AvoidanceAnswers)) is not None:
        return known
    facts = facts_of(row)
    rules = rules_of(row, facts, each)
    answers = AvoidanceAnswers(avoid(facts, facts.conclusions, rules=rules, forecast=forecast, each=each))
    stored.store(place, answers)
    return answers
