"""What is compared: a recording, or a replay of it under settings, each named by one parameter of the address."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from urllib.parse import parse_qsl
from uuid import UUID

import numpy as np
from django.urls import reverse

from guard_core.findings import NEAR_MISS_SHARE, Case
from guard_core.ledger import Ints
from guard_core.windows.call_windows import WindowWarning, windows_words
from inspector.models import Event, Project, Session
from inspector.pages.shared.numbers import step_number
from inspector.pages.shared.parts import in_order
from inspector.replays.analysis import Analysis, ReplayUnderWay, analyse
from inspector.replays.choice import Choice, parse_choice
from inspector.replays.own_policy import own_policy
from inspector.replays.processes import AT_ONCE, ProcessState

MOST_SIDES = 4
LONGEST_SIDE = 600  # characters of one parameter that are read
EVENTS_AT_ONCE = 2_000  # compared in one query


@dataclass(frozen=True)
class AddressedSide:
    """One side as an address names it: a session, and settings where a replay is meant."""

    row: Session
    choice: Choice
    is_replay: bool

    @property
    def key(self) -> str:
        """The same as the address has it."""
        return f"{self.row.pk}{self.choice.query()}" + ("?" if self.is_replay and not self.choice.query() else "")


def wanted(project: Project, texts: Sequence[str]) -> tuple[list[AddressedSide], list[str]]:
    """The sides of an address, each `SESSION` (the recording) or `SESSION?policy=…` (a replay), and what is wrong."""
    sides: list[AddressedSide] = []
    errors: list[str] = []
    for number, text in enumerate(texts[:MOST_SIDES], 1):
        name, sign, query = text[:LONGEST_SIDE].partition("?")
        row = named_session(project, name)
        if row is None:
            errors.append(f"Side {number}: there is no such session.")
            continue
        given = dict(parse_qsl(query, max_num_fields=40)) if query.count("&") < 40 else {}
        choice, wrong = parse_choice(given, own_policy(row))
        errors += [f"Side {number}: {words}" for words in wrong.values()]
        sides.append(AddressedSide(row, choice, bool(sign)))
    if len(texts) > MOST_SIDES:
        errors.append(f"At most {MOST_SIDES} are compared; the others are left out.")
    return sides, errors


def named_session(project: Project, name: str) -> Session | None:
    """The session that a part of an address names."""
    try:
        key = UUID(name.strip())
    except ValueError:
        return None
    rows = Session.objects.of(project).select_related("recording")
    return rows.filter(pk=key, deleted=None).first()


@dataclass(frozen=True)
class ComparedSide:
    """One side, computed. `name` is what tables call it, `label` the chart."""

    wanted: AddressedSide
    analysis: Analysis
    letter: str

    @cached_property
    def is_replay(self) -> bool:
        """Its requests were never sent: a replay was asked for, or the session was only simulated."""
        return self.wanted.is_replay or self.analysis.simulated

    @cached_property
    def case(self) -> Case:
        facts = self.analysis.facts
        return facts.replay(self.analysis.replayed) if self.is_replay else facts.recording

    @property
    def name(self) -> str:
        """Its letter, its session, and whether it is the recording or under which settings it is replayed."""
        how = self.wanted.choice.words() if self.is_replay else "recording"
        return f"{self.letter}: {in_order(self.wanted.row.title)}, {how}"

    @property
    def label(self) -> str:
        """In few words, for the legend of a chart: beside it the sides are listed by name, with all settings."""
        return f"{self.letter}: {self.wanted.choice.kind.title if self.is_replay else 'recording'}"

    @property
    def steps(self) -> int:
        return len(self.case.tokens)

    @property
    def compactions(self) -> int:
        """How many compactions there were: of a recording as every other page counts them, those included that no call
        followed before the next one, or the end."""
        return self.analysis.facts.counts.total if self.case.is_recorded else len(self.case.fired)

    @property
    def unfollowed(self) -> str:
        """Says how many of its compactions are at no step of the chart, where there are any; else ""."""
        missing = self.compactions - len(self.case.fired)
        if not missing:
            return ""
        of_them = "its compaction" if self.compactions == 1 else f"{missing:,} of its {self.compactions:,} compactions"
        verb, after = ("is", "it") if missing == 1 else ("are", "them")
        return f"{of_them} {verb} at no step: no call came after {after} before the next compaction, or the end."

    @property
    def fired(self) -> Ints:
        """Steps whose request follows a compaction."""
        return np.array([item.step for item in self.case.fired], dtype=np.int64)

    def step_url(self, step: int) -> str:
        """The page of a step."""
        at = self.wanted.choice.query(at=step_number(step), side="replayed" if self.is_replay else "")
        return reverse("session_steps", args=[self.wanted.row.pk]) + at

    @property
    def url(self) -> str:
        """The overview under these settings."""
        return reverse("session_overview", args=[self.wanted.row.pk]) + self.wanted.choice.query()

    @property
    def windows(self) -> str:
        """Which window judges what where its calls have several, else ""."""
        return windows_words(
            self.case.call_windows, WindowWarning.REPLAY if self.is_replay else WindowWarning.RECORDING
        )

    @property
    def fill(self) -> float | None:
        """The share that the largest request fills of the window of its call; None where nothing can be said."""
        step = int(np.argmax(self.case.tokens)) if self.steps else -1
        return float(self.case.filled[step]) if step >= 0 and self.case.windows[step] else None

    def figures(self) -> dict[str, int]:
        """What is compared in numbers; tokens are prompt tokens, recorded or modelled."""
        case = self.case
        near = (case.tokens > NEAR_MISS_SHARE * case.windows) & (case.tokens <= case.windows)
        return {
            "model calls": self.steps,
            "context window": case.window.value,
            "compactions": self.compactions,
            "requests over the window, or refused as too long": case.overflows,
            "near misses": int((np.diff(np.concatenate([[0], near.astype(np.int8)])) == 1).sum()),
            "total prompt tokens": int(case.tokens.sum()),
            "largest request": int(case.tokens.max(initial=0)),
        }


def computed(sides: Sequence[AddressedSide]) -> list[ComparedSide]:
    """The sides with their analyses. Raises as `analyse`, for one that is not replayed yet as long as there is one; as
    many as run at a time are begun."""
    known, long = [], []
    for item, letter in zip(sides, "ABCD", strict=False):
        try:
            known.append(ComparedSide(item, analyse(item.row, item.choice), letter))
        except ReplayUnderWay as under_way:
            long.append(under_way)
            if len(long) == AT_ONCE:
                break
    if long:
        raise next((item for item in long if item.replay.state is not ProcessState.READY), long[0])
    return known


def parting(first: ComparedSide, other: ComparedSide) -> int | None:
    """The first step at which two sides send different requests; None where they never do.

    Of one session that is the first request of another size; of two sessions the first one after the logs differ.
    """
    if first.wanted.row.pk != other.wanted.row.pk:
        return _logs_part(first, other)
    if not first.is_replay and not other.is_replay:
        return None
    recorded = first if not first.is_replay else other if not other.is_replay else None
    if recorded is not None:
        replay = (other if recorded is first else first).analysis.data.replayed
        return None if replay is None else replay.divergence
    apart = np.flatnonzero(first.case.tokens != other.case.tokens)
    return int(apart[0]) if len(apart) else None


def _logs_part(first: ComparedSide, other: ComparedSide) -> int | None:
    """The first step, of both sessions, before which their messages differ, or one of them ends."""
    size = min(first.analysis.ledger.event_count, other.analysis.ledger.event_count)
    same = size
    for start in range(0, size, EVENTS_AT_ONCE):
        ours, theirs = (_payloads(side.wanted.row, start, min(size, start + EVENTS_AT_ONCE)) for side in (first, other))
        apart = [at for at, (one, two) in enumerate(zip_longest(ours, theirs)) if one != two]
        if apart:
            same = start + apart[0]
            break
    steps = [int(np.searchsorted(side.analysis.ledger.steps["at"], same, side="right")) for side in (first, other)]
    step = min(steps)
    return step if step < max(first.steps, other.steps) else None


def _payloads(row: Session, start: int, stop: int) -> list[bytes]:
    """The digests of the messages `start` to `stop`: alike where the messages are."""
    events = Event.objects.in_session(row).filter(seq__gte=start, seq__lt=stop).order_by("seq")
    return [bytes(key) for key in events.values_list("payload_id", flat=True)]
