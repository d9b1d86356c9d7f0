"""Laws of the context: whatever the session and the policy, classes add up to the count, and token-steps to requests
that are built one by one."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from guard_core.context.changes import ADDED, KEPT, REMOVED, REWRITTEN, changes_at
from guard_core.context.classes import OTHER_RESULTS, RESULTS
from guard_core.context.filling import ContextFilling
from guard_core.context.repeats import (
    LEAST_CHARS,
    SAME,
    SAME_CALL,
    SAME_CONTENT,
    held_results,
    needed_events,
    repeats_at,
)
from guard_core.context.tool_use import tool_uses
from guard_core.events import ToolCallPart, ToolResultPart
from guard_core.findings import Facts
from guard_core.outcomes.bill import Prices
from guard_core.outcomes.sent import SentRequests
from guard_core.replay import replay
from guard_core.sessions import Evidence, ModelCall, RecordedCompaction, Session
from guard_core.views import Inserted, Rewritten, Span, content_count
from tests.builders import tool_call, tool_result, user
from tests.properties.strategies import policies, sessions, summarizers, windows
from tests.properties.test_bridge_laws import compacted


def recorded(session: Session) -> ContextFilling:
    return ContextFilling.of(SentRequests.recorded(Facts.of(session)))


def replayed(session: Session, policy, window, summarizer) -> ContextFilling:  # type: ignore[no-untyped-def]
    facts = Facts.of(session)
    trace = replay(facts.ledger, policy, window=window or 1, usage=facts.usage, summarizer=summarizer, request="")
    return ContextFilling.of(SentRequests.replayed(facts, trace))


def plain_rows(filling: ContextFilling) -> np.ndarray:
    """The classes of every request, message by message, without any prefix sum."""
    rows = []
    for step in range(filling.ledger.step_count):
        view, epoch = filling.sent.view(step)
        row = [0] * len(filling.classes)
        row[: filling.costs.first_event_class] = filling.costs.fixed.tolist()
        repeated = filling.ledger.repeated[epoch] if epoch >= 0 else frozenset()
        for segment in view:
            if isinstance(segment, Span):
                for event in range(segment.start, segment.stop):
                    for place, tokens in enumerate(
                        filling.costs.costs(segment.form).rows(event, event + 1)[0].tolist()
                    ):
                        row[filling.costs.first_event_class + place] += tokens
            else:
                row = [a + int(b) for a, b in zip(row, filling.costs.segment(segment, epoch, repeated), strict=True)]
        held = [(part.start, part.stop) for part in view if isinstance(part, Span) and part.start < part.stop]
        others = sum(isinstance(part, Rewritten) for part in view)
        left_out = int(filling.ledger.steps["at"][step]) - sum(stop - start for start, stop in held)
        if any(start == 0 for start, _ in held) and left_out <= others:
            row[filling.costs.first_event_class - 1] += filling.costs.attribution.prologue
        row[-1] = int(filling.sent.tokens[step]) - sum(row)
        rows.append(row)
    return np.array(rows, dtype=np.int64).reshape(-1, len(filling.classes))


def check(filling: ContextFilling) -> None:
    steps = np.arange(filling.ledger.step_count, dtype=np.int64)
    areas = filling.areas(steps)
    assert (areas.sum(axis=1) == filling.sent.tokens).all()
    assert (areas[:, :-1] >= 0).all()
    assert (areas == plain_rows(filling)).all()
    assert (filling.areas(steps[::3]) == areas[::3]).all()
    results = [place for place, item in enumerate(filling.classes) if item.name in (RESULTS, OTHER_RESULTS)]
    uses = tool_uses(filling)
    framing = framing_steps(filling)
    assert sum(use.token_steps for use in uses) + framing == int(areas[:, results].sum())
    for place, item in enumerate(filling.classes):
        if item.name == RESULTS:
            assert next(use for use in uses if use.tool == item.tool).token_steps == int(areas[:, place].sum())
    check_items(filling, areas)


def framing_steps(filling: ContextFilling) -> int:
    """Token-steps of events that count as results but hold no part that is one; random sessions have none."""
    held = set(filling.costs.results.events.tolist())
    columns = filling.costs.costs().rows(0, filling.ledger.event_count)
    assert not any(columns[event, -1] for event in range(len(columns)) if event not in held)
    return 0


def check_items(filling: ContextFilling, areas: np.ndarray) -> None:
    for step in {0, len(areas) // 2, len(areas) - 1} & set(range(len(areas))):
        sums = np.zeros(len(filling.classes), dtype=np.int64)
        for item in filling.items(step, 3):
            sums[item.place] += item.tokens
        first = filling.costs.first_event_class
        assert (sums[first:-1] == areas[step, first:-1]).all()


@given(compacted())
def test_the_classes_of_a_recording_add_up_at_every_step(session):
    check(recorded(session))


@given(sessions(), policies(), windows, summarizers)
def test_the_classes_of_a_replay_add_up_at_every_step(session, policy, window, summarizer):
    check(replayed(session, policy, window, summarizer))


def check_changes(filling: ContextFilling) -> None:
    prices = Prices.of(filling.sent.facts.session, filling.ledger)
    for step in range(1, min(filling.ledger.step_count, 12)):
        changes = changes_at(filling, step, prices, 5)
        assert changes is not None
        sums = {item.kind: item for item in changes.sums}
        counts = [distinct(filling, place) for place in (step - 1, step)]
        assert sums[KEPT].messages + sums[REWRITTEN].messages + sums[REMOVED].messages == counts[0]
        assert sums[KEPT].messages + sums[REWRITTEN].messages + sums[ADDED].messages == counts[1]
        assert 0 <= changes.cache.given <= changes.cache.previous


def distinct(filling: ContextFilling, step: int) -> int:
    """The messages of a request, those of the log once."""
    view, _ = filling.sent.view(step)
    events = {place for part in view if isinstance(part, Span) for place in range(part.start, part.stop)}
    events |= {part.event for part in view if isinstance(part, Rewritten)}
    return len(events) + sum(content_count((part,)) for part in view if not isinstance(part, Span | Rewritten))


@given(compacted())
def test_the_changes_lead_from_one_recorded_request_to_the_next(session):
    check_changes(recorded(session))


@given(sessions(), policies(), windows, summarizers)
def test_the_changes_lead_from_one_replayed_request_to_the_next(session, policy, window, summarizer):
    check_changes(replayed(session, policy, window, summarizer))


# -- repeats


@st.composite
def reading(draw: st.DrawFn) -> Session:
    """A session that reads and edits few files, over and over, with a compaction somewhere."""
    events, calls = [user("go")], []
    for number in range(draw(st.integers(1, 12))):
        name = draw(st.sampled_from(["Read", "read_file", "Edit", "Bash"]))
        text = draw(st.sampled_from(["a" * 60, "b" * 60, "c" * 90, "ok"]))
        calls.append(ModelCall(len(events), len(events), 1_000 + 100 * number))
        events.append(tool_call(name, str(number), path=draw(st.sampled_from(["x", "y"]))))
        events.append(tool_result(text, name, str(number)))
    calls.append(ModelCall(len(events), None, 5_000))
    at = draw(st.integers(0, len(events)))
    start = draw(st.integers(0, at))
    base = RecordedCompaction(at, Evidence.DECLARED, "summary", (Inserted(0), Span(start, at)), (user("sum"),))
    return Session(events=tuple(events), calls=tuple(calls), compactions=(base,))


@given(reading())
def test_repeats_and_stale_reads_equal_a_plain_search_of_the_request(session):
    filling = recorded(session)
    for step in range(len(session.calls)):
        held = held_results(filling, step)
        events = {place: session.events[place] for place in needed_events(filling, held)}
        repeats = repeats_at(filling, held, events)
        view, _ = filling.sent.view(step)
        sent = [place for part in view if isinstance(part, Span) for place in range(part.start, part.stop)]
        answered = [place for place in sent if isinstance(session.events[place].parts[0], ToolResultPart)]
        assert [(item.event, item.first, item.kind) for item in repeats.repeats] == plain_repeats(session, answered)
        assert [(item.path, item.event, item.edit) for item in repeats.stale] == plain_stale(session, answered)


def call_of(session: Session, place: int) -> ToolCallPart:
    return session.events[place - 1].parts[0]  # type: ignore[return-value]


def text_of(session: Session, place: int) -> str:
    return str(session.events[place].parts[0].content)  # type: ignore[union-attr]


def plain_repeats(session: Session, answered: list[int]) -> list[tuple[int, int, str]]:
    rows = []
    for number, place in enumerate(answered):
        mine, text = call_of(session, place), text_of(session, place)
        same = [
            other
            for other in answered[:number]
            if (call_of(session, other).name, call_of(session, other).arguments) == (mine.name, mine.arguments)
        ]
        copies = [other for other in answered[:number] if text_of(session, other) == text and len(text) >= LEAST_CHARS]
        if same:
            rows.append((place, same[-1], SAME if text_of(session, same[-1]) == text else SAME_CALL))
        elif copies:
            rows.append((place, copies[0], SAME_CONTENT))
    return rows


def plain_stale(session: Session, answered: list[int]) -> list[tuple[str, int, int]]:
    rows = []
    for place in answered:
        path = call_of(session, place).arguments["path"]
        edits = [
            other
            for other in answered
            if other > place
            and call_of(session, other).name == "Edit"
            and call_of(session, other).arguments["path"] == path
        ]
        if call_of(session, place).name in ("Read", "read_file") and edits:
            rows.append((path, place, edits[-1]))
    return rows
