"""The bridge of a compaction books each token where it belongs."""

from msgspec.structs import replace

from guard_core.bridge import INSERTED, UNEXPLAINED, Bridge, BridgePart, class_tokens, recorded_bridge, replayed_bridge
from guard_core.estimation.attribution import attribute
from guard_core.estimation.cached_prefix import cached_prefix, smallest_cached_prefix
from guard_core.estimation.usage import usage_for
from guard_core.events import Event, Role, ToolCallPart, ToolResultPart
from guard_core.ledger import Ledger
from guard_core.policies import get_policy
from guard_core.replay import observe_recorded, replay
from guard_core.sessions import ModelCall, Session
from guard_core.summaries.sizes import FixedSummaries
from guard_core.views import Inserted, Span
from tests.builders import model, session, tool_call, tool_result, user
from tests.guard_core.findings.cases import chat, compaction


def bridge(value: Session, place: int = 0) -> Bridge:
    """The bridge of a recorded compaction."""
    ledger = Ledger.of(value)
    attribution = attribute(ledger)
    usage = usage_for(ledger, attribution)
    observed = observe_recorded(ledger, get_policy("none"), window=100_000, usage=usage)
    return recorded_bridge(ledger, attribution, observed, place)


def part(found: Bridge, name: str) -> BridgePart:
    return next(item for item in found.parts if item.name == name)


def test_the_framing_of_an_empty_tool_message_goes_with_the_tools():
    empty = Event(Role.USER, (ToolResultPart(call_id="1"),)), Event(Role.MODEL, (ToolCallPart(name=""),))
    events = (user("go"), tool_call("ls", "1"), empty[0], empty[1], tool_result("x" * 400), model("done"))
    calls = tuple(ModelCall(at, at, tokens) for at, tokens in ((1, 500), (2, 520), (3, 530), (4, 540), (5, 700)))
    ledger = Ledger.of(session(*events, calls=calls))
    classes = class_tokens(ledger, attribute(ledger))
    assert classes[2, 4] == classes[2].sum() > 0
    assert classes[3, 3] == classes[3].sum() > 0


def test_what_the_file_does_not_explain_is_not_said_to_be_inserted():
    value = chat(4_000, 4_100, 4_200, 9_000, 9_100, compactions=(compaction(4),))
    inserted = bridge(value)
    rest = part(inserted, UNEXPLAINED)
    assert (rest.removed, rest.inserted) == (0, 0)
    assert rest.unexplained == rest.after - rest.before > 4_000
    assert inserted.total("inserted") == part(inserted, INSERTED).inserted < 100
    columns = [inserted.total(name) for name in ("before", "grown", "inserted", "unexplained")]
    assert sum(columns) - inserted.total("removed") == inserted.total("after") == 9_000


def test_a_summary_that_replaces_one_of_the_same_size_is_removed_and_inserted():
    inserted = part(
        bridge(chat(4_000, 4_100, 900, 1_000, 900, compactions=(compaction(3), compaction(5))), 1), INSERTED
    )
    assert inserted.before == inserted.removed == inserted.inserted == inserted.after > 0


def cached(*tokens: int, keeps: bool = False) -> Ledger:
    """A session compacted at its third and fifth call, with what each call read from the cache."""
    built = chat(*range(4_000, 4_600, 100))
    calls = tuple(replace(call, cached_tokens=count) for call, count in zip(built.calls, tokens, strict=True))
    cuts = tuple(replace(compaction(at), base=(Span(0, 1), Inserted(0)) if keeps else (Inserted(0),)) for at in (3, 5))
    return Ledger.of(replace(built, calls=calls, compactions=cuts))


def test_what_grew_before_a_replayed_compaction_is_counted_where_the_request_was_sent():
    """At the third call 5,000 tokens came that the file does not hold: before the replay's compaction, not by it."""
    value = chat(4_000, 8_100, 13_200, 13_300)
    ledger = Ledger.of(value)
    attribution = attribute(ledger)
    usage = usage_for(ledger, attribution)
    trace = replay(ledger, get_policy("contextguard"), window=9_000, usage=usage, summarizer=FixedSummaries(120))
    (record,) = [item for item in trace.compactions if item.step == 2]
    found = replayed_bridge(ledger, attribution, usage, trace, trace.compactions.index(record))
    assert found.total("before") == 8_100
    assert found.uncompacted == 13_200
    assert part(found, UNEXPLAINED).grown > 4_500


def test_a_summary_that_a_replay_writes_anew_is_removed_and_inserted():
    value = session(*[model("answer " * 900) for _ in range(40)], window=20_000)
    ledger = Ledger.of(value)
    attribution = attribute(ledger)
    usage = usage_for(ledger, attribution)
    trace = replay(ledger, get_policy("openhands"), window=40_000, usage=usage, summarizer=FixedSummaries(120))
    assert len(trace.compactions) > 1
    summary = part(replayed_bridge(ledger, attribution, usage, trace, 1), INSERTED)
    assert summary.removed == summary.inserted == summary.before == summary.after > 0


def test_the_cache_reads_right_after_compactions_bound_the_fixed_part_from_below():
    ledger = cached(0, 3_900, 2_100, 4_000, 2_000, 4_100)
    assert [cached_prefix(ledger, place) for place in (0, 1)] == [2_100, 2_000]
    assert smallest_cached_prefix(ledger) == 2_000


def test_a_kept_beginning_or_no_cache_count_proves_nothing_of_the_fixed_part():
    assert smallest_cached_prefix(cached(0, 3_900, 2_100, 4_000, 2_000, 4_100, keeps=True)) == 0
    assert smallest_cached_prefix(Ledger.of(chat(4_000, 4_100, 900, compactions=(compaction(3),)))) == 0
