"""A session as long as one likes, for measuring and for pages of long sessions: cheap to build, because its texts are a
few objects used again and again.
"""

from __future__ import annotations

from guard_core.events import Event, Role, TextPart, ToolCallPart, ToolResultPart
from guard_core.sessions import Evidence, ModelCall, Provenance, RecordedCompaction, Session, Sourced
from guard_core.simulator import wording
from guard_core.simulator.recorder import event_tokens
from guard_core.simulator.samples import CODING, HEALTHY_REQUESTS, LONG_REQUESTS, work
from guard_core.simulator.wording import Dice
from guard_core.views import Inserted

TURN = 4  # steps in one turn of the user


def big_session(steps: int = 50_000, compactions: int = 250) -> Session:
    """A session of so many steps with so many recorded compactions (0: none), in a window of 200,000 tokens."""
    answers, calls_, results, asked = _texts()
    costs = {id(event): event_tokens(event) for event in (*answers, *calls_, *results, *asked)}
    events: list[Event] = []
    calls: list[ModelCall] = []
    recorded: list[RecordedCompaction] = []
    note = Event(role=Role.USER, parts=(TextPart(wording.summary(Dice(1), 6)),), meta=True)
    every = steps // (compactions + 1) + 1 if compactions else steps + 1
    context = overhead = 4_200
    for step in range(steps):
        if step % TURN == 0:
            events.append(asked[step // TURN % len(asked)])
            context += costs[id(events[-1])]
        if step and step % every == 0:
            after = overhead + event_tokens(note)
            recorded.append(_compaction(len(events), note, context, after))
            context = after
        last = step % TURN == TURN - 1
        pair = (answers[step % 11],) if last else (calls_[step % 13], results[step % 17])
        calls.append(
            ModelCall(len(events), len(events), context, cached_tokens=overhead, output_tokens=costs[id(pair[0])])
        )
        events += pair
        context += sum(costs[id(event)] for event in pair)
    return Session(
        events=tuple(events),
        calls=tuple(calls),
        compactions=tuple(recorded),
        format="sample",
        title=f"Big session: {steps:,} steps",
        model="claude-sonnet-4-5",
        window=Sourced(200_000, Provenance.RECORDER, "declared by the sample"),
    )


def _texts() -> tuple[list[Event], list[Event], list[Event], list[Event]]:
    dice = Dice(50_000)
    tools = [work(dice, CODING, 0.6) for _ in range(17)]
    answers = [Event(role=Role.MODEL, parts=(TextPart(wording.report(dice, 1)),)) for _ in range(11)]
    calls_ = [Event(role=Role.MODEL, parts=(ToolCallPart(name, args, "call"),)) for name, args, _ in tools[:13]]
    results = [Event(role=Role.USER, parts=(ToolResultPart(name, text, "call"),)) for name, _, text in tools]
    asked = [Event(role=Role.USER, parts=(TextPart(text),)) for text in (*HEALTHY_REQUESTS, *LONG_REQUESTS)]
    return answers, calls_, results, asked


def _compaction(at: int, note: Event, before: int, after: int) -> RecordedCompaction:
    return RecordedCompaction(
        at=at,
        evidence=Evidence.DECLARED,
        kind="summary",
        base=(Inserted(0),),
        messages=(note,),
        trigger="auto",
        tokens_before=before,
        tokens_after=after,
    )
