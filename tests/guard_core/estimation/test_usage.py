"""The recorded provider answers with its own figure, and with a modelled one for requests that were never sent."""

from pathlib import Path

import msgspec
import numpy as np
import pytest

from guard_core.costs import HAS_RESULT
from guard_core.estimation.attribution import attribute
from guard_core.estimation.usage import AttributedUsage, GrowingRequests, RatioUsage, normal, usage_for
from guard_core.events import Event, Role, TextPart
from guard_core.forms import CutToEnds
from guard_core.ledger import Ledger
from guard_core.policies import get_policy
from guard_core.recordings import read
from guard_core.replay import replay
from guard_core.sessions import Evidence, ModelCall, RecordedCompaction, Session
from guard_core.trace import PROMPT_SOURCES, Head
from guard_core.view_columns import ViewColumns
from guard_core.views import JOINED, Inserted, Rewritten, Span, Synthetic, View
from tests.builders import bundled, image, model, session, user

SAMPLE = Path(__file__).parents[4] / "shared/samples/claude-code/long-2-compactions.jsonl"

HEADS: list[tuple[View, int]] = [
    ((), 0),
    ((Synthetic("summary", 900),), 40),
    ((Span(0, 3), Synthetic("summary", 900), Synthetic("continuation", 180)), 60),
    ((Span(0, 10),), 10),
    ((), 12),
]


def attributed(session: Session) -> AttributedUsage:
    ledger = Ledger.of(session)
    return AttributedUsage(ledger, attribute(ledger))


@pytest.mark.parametrize(("head", "kept_from"), HEADS)
@pytest.mark.parametrize("name", ["healthy", "small-window", "unpersisted-loop", "long-coding"])
def test_a_run_equals_its_single_steps(name, head, kept_from):
    usage = attributed(bundled(name))
    at = usage.ledger.steps["at"]
    head, kept_from = (head, kept_from) if kept_from < usage.ledger.event_count else ((), 0)
    run = usage.run(0, len(at), head, kept_from, np.zeros(len(at), dtype=np.int64))
    for step in range(len(at)):
        one = usage.one(step, (*head, Span(kept_from, int(at[step]))), 0)
        assert (run.tokens[step], run.reported[step], run.source[step]) == one


FORM = 'replaced:{"text":"[cleared]"}'


@pytest.mark.parametrize("name", ["healthy", "small-window", "unpersisted-loop", "long-coding"])
def test_requests_that_differ_from_the_log_by_their_forms_are_counted_at_once(name):
    usage = attributed(bundled(name))
    at = usage.ledger.steps["at"]
    heads = [Head((), 0)]
    for event in np.flatnonzero(usage.ledger.events["flags"] & HAS_RESULT).tolist()[:3]:
        _, kept_from, _ = heads[-1]
        heads.append(Head((*heads[-1].view, Span(kept_from, event), Span(event, event + 1, FORM)), event + 1))
    places = np.searchsorted([head.kept_from for head in heads[1:]], at, side="right")
    staged = usage.staged(0, heads, places, at)
    assert len(set(places.tolist())) == 4
    for step, place in enumerate(places.tolist()):
        one = usage.one(step, heads[place].at(usage.ledger, int(at[step])), 0)
        assert (staged.tokens[step], staged.reported[step], staged.source[step]) == one


@pytest.mark.parametrize("view", [(Synthetic("summary", 9), Span(0, 4)), (Span(0, 2), Span(3, 4)), (Span(0, 3, FORM),)])
def test_requests_that_are_not_the_log_in_forms_are_not_counted_so(view):
    usage = attributed(bundled("healthy"))
    assert usage.staged(0, [Head(view, 4)], np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64)) is None


def test_a_run_over_the_recorded_view_is_the_recording():
    usage = attributed(bundled("long-coding"))
    steps = usage.ledger.steps
    for epoch, base in enumerate(usage.ledger.bases):
        rows = np.flatnonzero(steps["epoch"] == epoch)
        run = usage.run(rows[0], rows[-1] + 1, base.view, base.at, rows)
        assert np.array_equal(run.tokens, steps["prompt_tokens"][rows])


def test_the_request_really_sent_has_the_recorded_count(tool_heavy):
    usage = attributed(tool_heavy)
    view, epoch = usage.ledger.recorded_view(7)
    tokens, reported, source = usage.one(7, view, 0, epoch)
    assert tokens == tool_heavy.calls[7].prompt_tokens
    assert (reported, PROMPT_SOURCES[source]) == (True, "provider")


def test_another_request_is_modelled_from_what_it_keeps(tool_heavy):
    usage = attributed(tool_heavy)
    at = int(usage.ledger.steps["at"][30])
    tokens, _, source = usage.one(30, (Synthetic("summary", 600), Span(at - 4, at)), 0)
    price = usage.attribution.prices.view((Span(at - 4, at),), -1, at)
    assert tokens == pytest.approx(usage.attribution.overhead + price + 200, abs=60)
    assert PROMPT_SOURCES[source] == "modelled"


def begun_in_the_middle() -> Session:
    """A recording whose first request has far more than the file, until a compaction."""
    events = [part for _ in range(4) for part in (user("ask " * 300), model("tell " * 300))]
    cut = RecordedCompaction(6, Evidence.DECLARED, "summary", (Inserted(0),), (user("summary " * 400),))
    prompts = (127_000, 127_700, 128_400, 6_700)
    calls = tuple(ModelCall(2 * step + 1, 2 * step + 1, tokens) for step, tokens in enumerate(prompts))
    return session(*events, calls=calls, compactions=(cut,))


@pytest.mark.parametrize(
    ("view", "keeps"),
    [
        ((Span(0, 5),), True),
        ((Synthetic("note", 80), Span(0, 5)), True),
        ((Span(0, 1), Span(1, 2, "cut:80"), Span(2, 5)), True),  # changed, not left out
        ((Span(0, 1), Synthetic("summary", 900), Span(2, 5)), False),  # of a single message
        ((Synthetic("note", 80), Span(0, 1), Synthetic("summary", 900), Span(2, 5)), False),
        ((Span(0, 1), Synthetic("summary", 900), Span(4, 5)), False),
        ((Span(0, 1), Synthetic("summary", 900), Span(5, 5)), False),
        ((Span(0, 2), Span(4, 5)), False),
        ((Span(2, 5),), False),
    ],
)
def test_what_came_before_the_file_is_sent_until_a_message_is_left_out(view, keeps):
    usage = attributed(begun_in_the_middle())
    prologue, prices = usage.attribution.prologue, usage.attribution.prices
    assert prologue > 100_000
    (tokens, _, _) = usage.one(2, view, 0)
    assert (tokens > prologue) is keeps
    assert (prices.view(view, -1, 5) > prologue) is keeps
    columns = ViewColumns.of([view])
    assert usage.many(np.array([2]), columns, np.zeros(1, dtype=np.int64)).tokens.tolist() == [tokens]


def test_without_any_count_it_is_assumed_and_not_reported(no_usage_reported):
    tokens, reported, source = attributed(no_usage_reported).one(3, (Span(0, 7),), 0)
    assert tokens > 0
    assert (reported, PROMPT_SOURCES[source]) == (False, "assumed")


def test_a_simulated_session_keeps_its_ratio(short_chat):
    simulated = Ledger.of(type(short_chat)(events=short_chat.events, calls=short_chat.calls, usage_ratio=2.0))
    assert usage_for(simulated, None) == RatioUsage(2.0)
    assert isinstance(usage_for(Ledger.of(short_chat), None), AttributedUsage)


def test_neighbouring_spans_are_joined():
    assert normal((Span(0, 2), Span(2, 2), Span(2, 5))) == (Span(0, 5),)


def hidden_growth(agent: str = "", models: tuple[str, str] = ("one", "one"), fall: int = 0) -> Session:
    """30 calls; 40,000 tokens that no message explains from call 5 on, `fall` less from 10 on, compacted before 20."""
    events = [part for _ in range(30) for part in (user("question " * 90), model("answering " * 90))]
    prompts = [900 + 600 * step + 40_000 * (step > 4) - fall * (step > 9) for step in range(20)]
    prompts += [12_000 + 600 * step for step in range(10)]
    calls = tuple(
        ModelCall(2 * step + 1, 2 * step + 1, tokens, model=models[step > 14]) for step, tokens in enumerate(prompts)
    )
    note = user("summary of what was done " * 40)
    cut = RecordedCompaction(40, Evidence.DECLARED, "summary", (Inserted(0),), (note,))
    return session(*events, calls=calls, compactions=(cut,), format=agent)


def without_compaction(value: Session) -> np.ndarray:
    ledger = Ledger.of(value)
    usage = AttributedUsage(ledger, attribute(ledger))
    return replay(ledger, get_policy("none"), window=400_000, usage=usage).columns["modelled_prompt_tokens"]


def test_the_curve_does_not_jump_where_a_replay_leaves_the_recording():
    counts = without_compaction(hidden_growth())
    assert counts[19] == 900 + 600 * 19 + 40_000
    assert counts[20] - counts[19] == pytest.approx(600, abs=120)
    assert counts[-1] - counts[20] == pytest.approx(9 * 600, abs=120)


def test_a_silent_truncation_is_a_new_baseline_that_a_modelled_request_goes_on_from():
    counts = without_compaction(hidden_growth(fall=30_000))
    assert counts[20] - counts[19] == pytest.approx(600, abs=120)


@pytest.mark.skipif(not SAMPLE.exists(), reason="../shared/samples is absent")
def test_a_real_recording_is_left_without_a_jump():
    (real,) = read(SAMPLE).sessions
    counts, added = (
        without_compaction(real),
        np.diff(Ledger.of(real).prefix("lexical_tokens")[Ledger.of(real).steps["at"]]),
    )
    first = next(step for step, call in enumerate(real.calls) if call.at >= real.compactions[0].at)
    assert counts[first - 1] == real.calls[first - 1].prompt_tokens
    assert counts[first] - counts[first - 1] < 2 * added[first - 1] + 200


def test_a_replayed_compaction_adds_what_its_agent_does_not_record_and_says_so():
    counts = {}
    for agent in ("claude-code", "pi"):
        ledger = Ledger.of(hidden_growth(agent))
        ledger.steps["prompt_tokens"][20:] = -1  # nothing is measured in the session itself
        usage = AttributedUsage(ledger, attribute(ledger))
        trace = replay(ledger, get_policy("contextguard"), window=60_000, usage=usage)
        step = trace.compactions[0].step
        counts[agent] = trace.columns["modelled_prompt_tokens"][step]
        said = "each replayed compaction that the recording does not have holds 9,000 tokens"
        assert any(said in note for note in trace.notes) == (agent == "claude-code")
    # a message of Claude Code comes with more reminders and framing than one of pi
    assert counts["claude-code"] - counts["pi"] == pytest.approx(9_000, abs=50)


def compacted(messages: tuple[Event, ...], base: tuple[object, ...], counts: tuple[int, ...]) -> Session:
    """Ten exchanges, the history of which was compacted behind the eighth event to `base`, and four more."""
    events = [event for n in range(14) for event in (user(f"request {n} " * 40), model(f"answer {n} " * 40))]
    at = [2 * n + 1 for n in range(14)]
    calls = tuple(ModelCall(place, place, count) for place, count in zip(at, counts, strict=True))
    done = RecordedCompaction(9, Evidence.DECLARED, "summary", (*base,), messages, trigger="auto")
    return session(*events, calls=calls, compactions=(done,))


BEFORE, AFTER = tuple(5_000 + 400 * n for n in range(4)), tuple(9_000 + 450 * n for n in range(10))
SUMMARY = user("What was done until now. " * 9)  # 225 bytes
WRITTEN = Synthetic("summary", 225)
BOTH = Rewritten(8, user("request 0 " * 40 + "\n\n" + "request 4 " * 40), JOINED, joins=(0,))
SHORT = Rewritten(8, user("request 4 " * 10), "shortened")
RESTORED = Rewritten(8, user("request 4 " * 40 + "a file that was attached again " * 9), "attached")


@pytest.mark.parametrize(
    ("base", "head", "kept_from"),
    [
        ((Inserted(0), Span(6, 9)), (WRITTEN,), 6),
        ((Inserted(0),), (WRITTEN,), 9),
        ((Span(0, 1), Inserted(0), Span(6, 8), RESTORED), (Span(0, 1), Synthetic("summary", 225)), 6),
        ((BOTH, Inserted(0)), (Span(0, 1), Span(8, 9), WRITTEN), 9),
        ((SHORT, Inserted(0)), (Span(8, 9, CutToEnds(what="text", head=100).name), WRITTEN), 9),
        ((Inserted(0), Span(6, 9)), (Synthetic("summary", 200), Synthetic("acknowledgement", 25)), 6),
    ],
)
def test_a_replay_that_compacts_as_the_recording_did_has_its_counts(base, head, kept_from):
    usage = attributed(compacted((SUMMARY,), base, (*BEFORE, *AFTER)))
    at, steps = usage.ledger.steps["at"], np.arange(14)
    views = [(*head, Span(min(kept_from, int(stop)), int(stop))) for stop in at]
    ones = [usage.one(step, view, 0) for step, view in enumerate(views)]
    assert [one.tokens for one in ones[4:]] == list(AFTER)
    assert {PROMPT_SOURCES[one.source] for one in ones[4:]} == {"provider"}
    assert {PROMPT_SOURCES[one.source] for one in ones[:4]} == {"modelled"}
    first = int(np.searchsorted(at, kept_from))
    run = usage.run(first, 14, head, kept_from, at)
    assert list(map(tuple, zip(*run, strict=True))) == ones[first:]
    many = usage.many(steps, ViewColumns.of(views), at)
    assert many is not None
    assert list(map(tuple, zip(*many, strict=True))) == ones
    filled, last = (np.full(14 - first, number) for number in (len(head), kept_from))
    growing = usage.growing(GrowingRequests(steps[first:], (), head, filled, last, at[first:]), at)
    assert (growing is None) == any(getattr(item, "form", "") for item in head)
    assert growing is None or list(map(tuple, zip(*growing, strict=True))) == ones[first:]


@pytest.mark.parametrize(
    ("head", "kept_from"), [((Synthetic("summary", 226),), 6), ((WRITTEN,), 7), ((Span(0, 1), WRITTEN), 6)]
)
def test_a_replay_that_keeps_something_else_is_modelled(head, kept_from):
    usage = attributed(compacted((SUMMARY,), (Inserted(0), Span(6, 9)), (*BEFORE, *AFTER)))
    assert PROMPT_SOURCES[usage.one(6, (*head, Span(kept_from, 13)), 0).source] == "modelled"


def test_reminders_that_were_written_into_a_kept_message_are_kept_with_it():
    """Claude Code 2.1.300 to 2.1.332, run: what it says to the model behind a result waits where it compacts, and the
    next request has it inside the result."""
    value = compacted((SUMMARY,), (Inserted(0), Span(7, 8), RESTORED), (*BEFORE, *AFTER))
    reminder = Event(Role.SYSTEM, (TextPart("<reminder>14,983,000 tokens left</reminder>"),), meta=True)
    behind = [
        msgspec.structs.replace(call, at=call.at + 1, response=call.response + 1) if call.at > 8 else call
        for call in value.calls
    ]
    done = msgspec.structs.replace(value.compactions[0], at=10)
    events = (*value.events[:9], reminder, *value.events[9:])
    usage = attributed(msgspec.structs.replace(value, events=events, calls=tuple(behind), compactions=(done,)))
    assert usage.run(4, 14, (WRITTEN,), 7, np.zeros(10, dtype=np.int64)).tokens.tolist() == list(AFTER)
    without = usage.one(5, (WRITTEN, Span(7, 9), Span(10, 12)), 0)
    assert PROMPT_SOURCES[without.source] == "modelled"


@pytest.mark.parametrize(("head", "kept_from"), [((WRITTEN,), 6), ((WRITTEN, Span(6, 12)), 12)])
def test_an_edit_of_what_a_compaction_kept_leaves_a_replay_the_recorded_counts(head, kept_from):
    """Agents attach another reminder to a kept message, which the log has as it was before."""
    value = compacted((SUMMARY,), (Inserted(0), Span(6, 9)), (*BEFORE, *AFTER))
    edit = RecordedCompaction(
        18, Evidence.DECLARED, "edit", (Inserted(0), Span(6, 8), RESTORED, Span(9, 18)), (SUMMARY,)
    )
    usage = attributed(msgspec.structs.replace(value, compactions=(*value.compactions, edit)))
    at, steps = usage.ledger.steps["at"][6:], np.arange(6, 14)
    views = [(*head, Span(kept_from, int(stop))) for stop in at]
    ones = [usage.one(step, view, 0) for step, view in zip(steps.tolist(), views, strict=True)]
    assert [one.tokens for one in ones] == list(AFTER[2:])
    assert {PROMPT_SOURCES[one.source] for one in ones} == {"provider"}
    run = usage.run(6, 14, head, kept_from, at)
    assert list(map(tuple, zip(*run, strict=True))) == ones
    many = usage.many(steps, ViewColumns.of(views), at)
    assert many is not None
    assert list(map(tuple, zip(*many, strict=True))) == ones


def test_what_was_cleared_of_a_kept_message_is_not_taken_for_the_message():
    cleared = Rewritten(8, user("[cleared]"), "cleared")
    usage = attributed(compacted((SUMMARY,), (Inserted(0), Span(6, 8), cleared), (*BEFORE, *AFTER)))
    assert PROMPT_SOURCES[usage.one(6, (WRITTEN, Span(6, 13)), 0).source] == "modelled"


def test_after_the_next_recorded_compaction_a_replay_extends_what_the_one_before_left():
    value = compacted((SUMMARY,), (Inserted(0), Span(6, 9)), (*BEFORE, *AFTER[:7], 4_000, 4_450, 4_900))
    later = RecordedCompaction(23, Evidence.DECLARED, "summary", (Inserted(0),), (SUMMARY,), trigger="auto")
    usage = attributed(msgspec.structs.replace(value, compactions=(*value.compactions, later)))
    counts = usage.run(4, 14, (WRITTEN,), 6, np.zeros(10, dtype=np.int64))
    assert counts.tokens[:7].tolist() == list(AFTER[:7])
    grown = np.diff(counts.tokens)[6:]  # no jump where the recording compacted again
    assert grown.min() > 350
    assert grown.max() < 550


def test_of_recorded_compactions_that_left_as_many_bytes_the_last_one_before_a_step_counts():
    """Each keeps all from the sixth event on, and a summary of the same size."""
    base, counts = (Inserted(0), Span(6, 9)), (*BEFORE, *AFTER)
    value = compacted((SUMMARY,), base, counts)
    first = msgspec.structs.replace(value.compactions[0])
    later = msgspec.structs.replace(first, at=17, base=(Inserted(0), Span(6, 17)), messages=(user("x" * 225),))
    usage = attributed(msgspec.structs.replace(value, compactions=(first, later)))
    run = usage.run(3, 14, (WRITTEN,), 6, np.zeros(11, dtype=np.int64))
    ones = [usage.one(step, (WRITTEN, Span(6, int(usage.ledger.steps["at"][step]))), 0) for step in range(3, 14)]
    assert list(map(tuple, zip(*run, strict=True))) == ones
    assert run.tokens[1:].tolist() == list(AFTER)
    assert [PROMPT_SOURCES[source] for source in run.source] == ["modelled", *["provider"] * 10]


def test_silent_truncations_and_other_models_are_noted():
    ledger = Ledger.of(hidden_growth(models=("one", "two"), fall=30_000))
    notes = AttributedUsage(ledger, attribute(ledger)).notes(compacted=False)
    assert "fell from 46,300 to 16,900 tokens while the log grew (step 11)" in notes[0]
    assert "rose from 3,300 to 43,900 tokens at step 6" in notes[1]
    assert "from step 16 on" in notes[2]


def test_pictures_that_no_recorded_prompt_measures_are_noted():
    """The second is followed by no count; the first lies between two, so that its tokens are known."""
    events = [
        user("look " * 50),
        model("Yes."),
        image(900_000),
        model("A red chart."),
        user("and " * 50),
        model("Blue."),
    ]
    calls = [ModelCall(1, 1, 1_000), ModelCall(3, 3, 2_700), ModelCall(5, 5, 2_760)]
    assert attributed(session(*events, calls=tuple(calls))).notes(compacted=False) == ()
    more = session(*events, image(900_000), calls=(*calls, ModelCall(7, None, None)))
    (note,) = attributed(more).notes(compacted=False)
    assert note.startswith("no recorded prompt measures the pictures or encrypted reasoning in 1 message: 1,")
    unsent = session(*events, image(900_000), calls=tuple(calls))
    assert attributed(unsent).notes(compacted=False) == ()
