"""What a compaction left of the conversation: what the rule of the agent says is kept, and what the file shows."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from enum import StrEnum

import msgspec
import numpy as np

from guard_core.compaction_bases import EDIT
from guard_core.costs import HAS_RESULT, MODEL, SAID
from guard_core.counts import counted_compactions
from guard_core.events import part_text, utf8_bytes
from guard_core.ledger import Ints, Ledger
from guard_core.rules.base import Agent, Keeps, KeptShape, OwnRule, Stretch
from guard_core.sessions import RecordedCompaction, Session
from guard_core.triggers import BY_EXTENSION, BY_PLUGIN
from guard_core.views import JOINED, Rewritten, Span

EXTENSION_CHOSE = "an extension of the agent made this compaction, and may keep what it likes"
BYTES_PER_TOKEN = 4  # of the estimate of what was kept and inserted


class KeptVerdict(StrEnum):
    """What the file shows of what the rule says is kept."""

    AGREES = "as the rule says"
    DIFFERS = "differs from the rule"
    NOT_MODELLED = "not modelled"


class KeptMessages(msgspec.Struct, frozen=True):
    """What one compaction left. `place` is its index among all recorded ones, `step` the first call after it (from 0,
    -1: none came before the next compaction).

    Of the `messages` of the log that were sent before it, `kept` are in the next request as they were: `users` of them
    are neither answers nor results, `tail` are at the end of the log without a gap; `rewritten` were shortened.
    `inserted` messages are new. `kept_tokens` and `inserted_tokens` are estimates, bytes / 4. `before` is the count
    that was compared, `after` the prompt tokens that the provider counted at `step`, `said_after` the agent's own
    figure; None: not in the file.
    `rule` says in words what the rule keeps. `is_sealed`: the summary is encrypted or not in the file, so that
    `inserted_tokens` lacks it.
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
    is_sealed: bool = False

    @property
    def removed(self) -> int:
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
    prompts, starts = ledger.steps["prompt_tokens"], [stretch.start for stretch, _ in ruled]
    for item in counted_compactions(session).compactions:
        step = item.step if item.step >= 0 else len(prompts) - 1
        stretch, rule = ruled[max(0, bisect_right(starts, step) - 1)]
        keeps = None
        if agent is not None and agent.keeps is not None and rule is not None:
            keeps = agent.keeps(stretch, rule)
        after = max(0, int(prompts[item.step])) if item.step >= 0 else 0
        yield _kept(session, ledger, item.place, item.step, keeps, counts.get(item.place), after or None)


def _kept(
    session: Session,
    ledger: Ledger,
    place: int,
    step: int,
    keeps: Keeps | None,
    before: int | None,
    after: int | None,
) -> KeptMessages:
    recorded = session.compactions[place]
    spans = _spans_of(recorded)
    inserted_tokens = (
        sum(utf8_bytes(part_text(part)) for message in recorded.messages for part in message.parts) // BYTES_PER_TOKEN
    )
    shown = KeptMessages(
        place=place,
        step=step,
        messages=_held(session, place),
        kept=_length(spans),
        users=_sum(ledger.prefix_by("users' events", _of_users), spans),
        tail=_tail(ledger, spans, recorded.at, _sent_before(session, place)),
        rewritten=_shortened(recorded),
        kept_tokens=_sum(ledger.prefix("text_tokens"), spans),
        inserted=len(recorded.messages),
        inserted_tokens=inserted_tokens,
        before=before,
        after=after,
        said_after=recorded.tokens_after or None,
        rule="" if keeps is None else keeps.words,
        verdict=KeptVerdict.NOT_MODELLED,
        reason="",
        is_sealed=ledger.bases[place].is_sealed,
    )
    is_own = recorded.trigger not in (BY_EXTENSION, BY_PLUGIN)
    verdict, reason = _judged(shown, keeps) if is_own else (KeptVerdict.NOT_MODELLED, EXTENSION_CHOSE)
    return msgspec.structs.replace(shown, verdict=verdict, reason=reason)


def _sent_before(session: Session, place: int) -> list[tuple[int, int]]:
    """The messages that were sent as they are in the log before a compaction: where the context was edited before,
    not those that were taken out or changed."""
    before = session.compactions[place - 1] if place else None
    if before is None or before.kind != EDIT:
        return [(0, session.compactions[place].at)]
    return [*_spans_of(before), (before.at, session.compactions[place].at)]


def _tail(ledger: Ledger, spans: list[tuple[int, int]], at: int, sent: list[tuple[int, int]]) -> int:
    """How many messages right before a compaction were kept, without a gap in what was sent before."""
    stop, tail = at, 0
    for start, end in reversed(spans):
        has_gap = any(begin < stop and end < behind for begin, behind in sent) and end < stop
        if has_gap and not (stop == at and _reaches(ledger, end, at)):
            break
        tail, stop = tail + end - start, start
    return tail


def _reaches(ledger: Ledger, stop: int, at: int) -> bool:
    """Are all messages from `stop` up to a compaction reminders: the agent wrote them into the message before."""
    return not (ledger.events["flags"][stop:at] & SAID).any()


def _held(session: Session, place: int) -> int:
    """How many messages of the log a compaction found in the request: what the one before left, and what came since."""
    recorded = session.compactions[place]
    if not place:
        return recorded.at
    previous = session.compactions[place - 1]
    left = _length(_spans_of(previous)) + _shortened(previous)
    return left + recorded.at - previous.at


def _spans_of(recorded: RecordedCompaction) -> list[tuple[int, int]]:
    """The events before a compaction that the next request holds as they were, as ranges in order, apart."""
    merged: list[tuple[int, int]] = []
    spans = [(part.start, min(part.stop, recorded.at)) for part in recorded.base if isinstance(part, Span)]
    joined = [part.event for part in recorded.base if isinstance(part, Rewritten) and part.reason == JOINED]
    spans += [(event, event + 1) for event in joined]
    for start, stop in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(stop, merged[-1][1])
        elif start < stop:
            merged.append((start, stop))
    return merged


def _length(spans: list[tuple[int, int]]) -> int:
    return sum(stop - start for start, stop in spans)


def _sum(prefix: Ints, spans: list[tuple[int, int]]) -> int:
    return int(sum(prefix[stop] - prefix[start] for start, stop in spans))


def _of_users(ledger: Ledger) -> Ints:
    """1 for each event that is not an answer of the model and holds no result."""
    flags = ledger.events["flags"]
    return np.asarray(((flags & MODEL) == 0) & ((flags & HAS_RESULT) == 0), dtype=np.int64)


def _shortened(recorded: RecordedCompaction) -> int:
    """The messages of the log that the next request holds otherwise than they were."""
    return sum(isinstance(part, Rewritten) and part.reason != JOINED for part in recorded.base)


def _judged(shown: KeptMessages, keeps: Keeps | None) -> tuple[KeptVerdict, str]:
    if keeps is None:
        return KeptVerdict.NOT_MODELLED, "what this agent keeps is not known here"
    if keeps.is_derived:
        return KeptVerdict.NOT_MODELLED, "the file does not say what was kept; it is read by the rule"
    if shown.is_sealed and not shown.kept:
        return KeptVerdict.NOT_MODELLED, "the file does not show what was kept"
    if keeps.shape is KeptShape.TAIL and shown.messages and not shown.kept:
        return KeptVerdict.NOT_MODELLED, "no message was kept; whether the newest would have fitted is not known"
    wrong = {
        KeptShape.NOTHING: shown.kept,
        KeptShape.USERS: shown.kept - shown.users,
        KeptShape.TAIL: shown.kept - min(shown.tail, shown.kept),
    }[keeps.shape]
    if wrong:
        what = {
            KeptShape.NOTHING: "kept, where the rule keeps none",
            KeptShape.USERS: f"kept that {'is an answer or a result' if wrong == 1 else 'are answers or results'}",
            KeptShape.TAIL: f"kept that {'is' if wrong == 1 else 'are'} not at the end",
        }[keeps.shape]
        return KeptVerdict.DIFFERS, f"{wrong:,} {'message' if wrong == 1 else 'messages'} {what}"
    if keeps.limit is not None and shown.kept_tokens > keeps.limit:
        return KeptVerdict.DIFFERS, f"about {shown.kept_tokens:,} tokens kept, the rule keeps at most {keeps.limit:,}"
    return KeptVerdict.AGREES, ""
