"""What a compaction left of the conversation: what the rule of the agent says is kept, and what the file shows."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

import msgspec
import numpy as np

from guard_core.costs import HAS_RESULT, MODEL
from guard_core.counts import counted_compactions
from guard_core.events import part_text, utf8_bytes
from guard_core.ledger import Ints, Ledger
from guard_core.rules.base import Agent, Keeps, OwnRule, Shape, Stretch
from guard_core.sessions import RecordedCompaction, Session
from guard_core.views import JOINED, Rewritten, Span

BYTES_PER_TOKEN = 4  # of the estimate of what was kept and inserted
SEALED = "opaque"  # the kind of a compaction whose result is not in the file, or encrypted


class KeptVerdict(StrEnum):
    """What the file shows of what the rule says is kept."""

    AGREES = "as the rule says"
    DIFFERS = "differs from the rule"
    NOT_MODELLED = "not modelled"


class KeptMessages(msgspec.Struct, frozen=True):
    """What one compaction left. `place` is its index among all recorded ones, `step` the first call after it (from 0,
    -1: none came before the next compaction).

    Of the `messages` of the log that were sent before it, `kept` are in the next request as they were: `users` of them
    are no answers and no results, `tail` are at the end of the log without a gap; `rewritten` were shortened.
    `inserted` messages are new. `kept_tokens` and `inserted_tokens` are estimates, bytes / 4. `before` is the count
    that was compared, `after` the prompt tokens that the provider counted at `step`, `said_after` the agent's own
    figure; None: not in the file.
    `rule` says in words what the rule keeps.
    """

    place: int
    step: int
    messages: int
    kept: int
    users: int
    tail: int
    rewritten: int
    kept_tokens: int
    inserted: int
    inserted_tokens: int
    before: int | None
    after: int | None
    said_after: int | None
    rule: str
    verdict: KeptVerdict
    reason: str

    @property
    def gone(self) -> int:
        """Messages that were sent before and that the next request no longer holds: summarised or dropped."""
        return max(0, self.messages - self.kept - self.rewritten)


def kept_messages(
    session: Session,
    ledger: Ledger,
    agent: Agent | None,
    ruled: list[tuple[Stretch, OwnRule | None]],
    counts: dict[int, int | None],
) -> Iterator[KeptMessages]:
    """What each compaction of a session left. `counts`: what was compared, by place."""
    prompts = ledger.steps["prompt_tokens"]
    for item in counted_compactions(session).compactions:
        recorded = session.compactions[item.place]
        step = min(item.step if item.step >= 0 else len(prompts) - 1, len(prompts) - 1)
        stretch, rule = next((pair for pair in ruled if pair[0].start <= step < pair[0].stop), ruled[-1])
        keeps = (
            agent.keeps(stretch, rule) if agent is not None and agent.keeps is not None and rule is not None else None
        )
        after = max(0, int(prompts[item.step])) if item.step >= 0 else 0
        shown = _kept(ledger, item.place, item.step, recorded, keeps, counts.get(item.place), after or None)
        yield msgspec.structs.replace(shown, messages=_held(session, item.place))


def _kept(
    ledger: Ledger,
    place: int,
    step: int,
    recorded: RecordedCompaction,
    keeps: Keeps | None,
    before: int | None,
    after: int | None,
) -> KeptMessages:
    events = _events_of(recorded)
    flags = ledger.events["flags"][events]
    users = int((((flags & MODEL) == 0) & ((flags & HAS_RESULT) == 0)).sum())
    behind = np.flatnonzero(np.isin(np.arange(recorded.at), events, invert=True))
    tail = recorded.at - (int(behind[-1]) + 1 if len(behind) else 0)
    tokens = int(ledger.events["text_tokens"][events].sum())
    shown = KeptMessages(
        place=place,
        step=step,
        messages=recorded.at,
        kept=len(events),
        users=users,
        tail=tail,
        rewritten=_shortened(recorded),
        kept_tokens=tokens,
        inserted=len(recorded.messages),
        inserted_tokens=_inserted_tokens(recorded),
        before=before,
        after=after,
        said_after=recorded.tokens_after or None,
        rule="" if keeps is None else keeps.words,
        verdict=KeptVerdict.NOT_MODELLED,
        reason="",
    )
    verdict, reason = _judged(shown, keeps, recorded)
    return msgspec.structs.replace(shown, verdict=verdict, reason=reason)


def _held(session: Session, place: int) -> int:
    """How many messages of the log a compaction found in the request: what the one before left, and what came since."""
    recorded = session.compactions[place]
    if not place:
        return recorded.at
    previous = session.compactions[place - 1]
    left = len(_events_of(previous)) + _shortened(previous)
    return left + recorded.at - previous.at


def _events_of(recorded: RecordedCompaction) -> Ints:
    """The events before a compaction that the next request holds as they were."""
    spans = [np.arange(part.start, min(part.stop, recorded.at)) for part in recorded.base if isinstance(part, Span)]
    joined = [part.event for part in recorded.base if isinstance(part, Rewritten) and part.reason == JOINED]
    return np.unique(np.concatenate([np.array(joined, dtype=np.int64), *spans]))


def _shortened(recorded: RecordedCompaction) -> int:
    """The messages of the log that the next request holds otherwise than they were."""
    return sum(isinstance(part, Rewritten) and part.reason != JOINED for part in recorded.base)


def _inserted_tokens(recorded: RecordedCompaction) -> int:
    return (
        sum(utf8_bytes(part_text(part)) for message in recorded.messages for part in message.parts) // BYTES_PER_TOKEN
    )


def _judged(shown: KeptMessages, keeps: Keeps | None, recorded: RecordedCompaction) -> tuple[KeptVerdict, str]:
    if keeps is None:
        return KeptVerdict.NOT_MODELLED, "what this agent keeps is not known here"
    if keeps.is_derived:
        return KeptVerdict.NOT_MODELLED, "the file does not say what was kept; it is read by the rule"
    if recorded.kind == SEALED and not shown.kept:
        return KeptVerdict.NOT_MODELLED, "the file does not show what was kept"
    wrong = {
        Shape.NOTHING: shown.kept,
        Shape.USERS: shown.kept - shown.users,
        Shape.TAIL: shown.kept - min(shown.tail, shown.kept),
    }[keeps.shape]
    if wrong:
        what = {
            Shape.NOTHING: "kept, where the rule keeps none",
            Shape.USERS: "kept that are answers or results",
            Shape.TAIL: "kept that are not at the end",
        }[keeps.shape]
        return KeptVerdict.DIFFERS, f"{wrong:,} {'message' if wrong == 1 else 'messages'} {what}"
    if keeps.limit is not None and shown.kept_tokens > keeps.limit:
        return KeptVerdict.DIFFERS, f"about {shown.kept_tokens:,} tokens kept, the rule keeps at most {keeps.limit:,}"
    return KeptVerdict.AGREES, ""
