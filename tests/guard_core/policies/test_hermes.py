"""Hermes fires where the original fires, and leaves the messages that the original leaves."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
import pytest

from guard_core.estimation.usage import CountedRun, RequestCount, usage_for
from guard_core.events import Event, MediaPart, Role, TextPart, ToolCallPart, ToolResultPart
from guard_core.ledger import Ledger
from guard_core.policies import get_policy, policy_kind
from guard_core.policies.base import Check, Point
from guard_core.policies.hermes import hermes_settings
from guard_core.policies.hermes.cut import tail_cut
from guard_core.policies.hermes.messages import HermesEstimates, list_messages
from guard_core.recordings import read
from guard_core.replay import observe_recorded, replay
from guard_core.sessions import Evidence, ModelCall, Provenance, RecordedCompaction, Session, Sourced
from guard_core.summaries.sizes import FixedSummaries, NoSummaries, RecordedSummaries, ScriptedSummaries
from guard_core.trace import RAISED
from guard_core.views import Inserted, Span, Synthetic, View
from tests.builders import model, session, tool_call, tool_result, user

SHARED = Path(__file__).parents[3] / "../shared"
RUN, VECTORS = SHARED / "rules/hermes/default-200k", SHARED / "vectors/policies"
# Scripted runs of 0.19.0: short identifiers, estimates rounded down, no limit to the prune floor.
AS_SCRIPTED = {"round_up": False, "prune_floor": 0, "call_frame": 82, "result_frame": 60}


def system(text):
    return Event(Role.SYSTEM, (TextPart(text),))


def pair(size, said=""):
    """A call, perhaps with words, and its result of some characters."""
    call = tool_call("t", f"c{id(object())}")
    words = (TextPart(said),) if said else ()
    return [msgspec.structs.replace(call, parts=(*words, *call.parts)), tool_result("y" * size, "t", call.parts[0].id)]


def compacted(events, window=200_000, *, summary=2_000, **settings):
    """The compaction of all these events, as after a refusal of the provider."""
    policy = get_policy("hermes", **settings)
    ledger = Ledger.of(session(*events, calls=(ModelCall(at=len(events)),)))
    summarizer = FixedSummaries(summary)
    check = Check(ledger, 0, len(events), window, summarizer, point=Point.ON_OVERFLOW)
    return policy.decide(check, policy.start()).compaction


def kept(view: View) -> list[int]:
    return [event for item in view if isinstance(item, Span) for event in range(item.start, item.stop)]


def roles(view: View) -> list[str]:
    return [item.kind for item in view if isinstance(item, Synthetic)]


# ---- the worked examples of the specification


def opening():
    return [system("s" * 8_000), user("u"), model("a")]


def test_a_finished_group_that_is_too_large_is_pulled_back_into_the_tail():  # H-1
    pairs = [pair(200_000 if number == 17 else 4_000, "w" * 400) for number in range(20)]
    record = compacted([*opening(), *(event for both in pairs for event in both), user("u")], profile="seed")
    assert record.cut == (39, 37, 37)
    assert kept(record.after) == [0, 1, 2, *range(37, 44)]
    assert roles(record.after) == ["summary, in the user's role"]
    given = record.passes[0].summariser_view
    assert given == (Span(3, 24, "pruned"), Span(24, 37))


def test_large_results_before_the_last_twenty_messages_are_pruned():  # H-2
    events = [*opening(), *(event for _ in range(12) for event in pair(20_000)), user("u")]
    record = compacted(events, profile="seed")
    assert record.passes[0].summariser_view == (Span(3, 8, "pruned"), Span(8, 15))
    assert kept(record.after) == [0, 1, 2, *range(15, 28)]


def test_a_short_chat_is_compacted_to_its_ends():  # H-3
    events = [user("u"), model("a")] * 5
    record = compacted(events, profile="seed", protect_first_n=2)
    assert kept(record.after) == [0, 1, 7, 8, 9]
    assert roles(record.after) == ["summary, in the user's role"]


def test_a_summary_that_fits_no_role_is_merged_into_the_tail():  # H-4
    record = compacted([*opening(), *([user("u"), model("a")] * 2), user("u")], profile="seed")
    assert kept(record.after) == [0, 1, 2, 5, 6, 7]
    assert roles(record.after) == ["summary, merged into the next message"]


@pytest.mark.parametrize(("pairs", "tail"), [(5, 5), (6, 14)])
def test_the_tail_grows_at_once_where_the_body_exceeds_the_soft_ceiling(pairs, tail):  # H-5
    events = [*opening(), *(event for _ in range(pairs) for event in pair(20_000)), model("a"), user("u"), model("a")]
    record = compacted(events, profile="seed")
    assert len(events) - record.cut[2] == tail


@pytest.mark.parametrize(("pairs", "tail"), [(5, 11), (6, 13)])
def test_the_raw_budget_keeps_the_tail_from_growing_at_once(pairs, tail):  # H-5, current: a cut at 5 behind 4 messages
    events = [*opening(), *(event for _ in range(pairs) for event in pair(20_000)), model("a"), user("u"), model("a")]
    ledger, settings = Ledger.of(session(*events)), get_policy("hermes").settings
    messages = list_messages(HermesEstimates(ledger, settings), (Span(0, len(events)),))
    cut = tail_cut(messages, 4, settings, 20_000)
    assert (cut.anchored, len(events) - cut.anchored) == (5, tail)


@pytest.mark.parametrize(("profile", "cut"), [("seed", 20), ("current", 16)])
def test_a_body_that_fits_keeps_eight_messages_and_their_group(profile, cut):  # H-6
    body = [event for _ in range(10) for event in pair(5_000)]
    events = [user("Start task"), model("On it"), *body, user("What is it?"), model("Let me check"), user("Thanks")]
    record = compacted(events, profile=profile, protect_first_n=2)
    assert len(events) == 25
    assert record.cut[2] == cut


@pytest.mark.parametrize(
    ("window", "threshold", "tail"),
    [
        (32_000, 27_200, 5_440),
        (64_000, 54_400, 10_880),
        (100_000, 75_000, 15_000),
        (128_000, 96_000, 19_200),
        (200_000, 150_000, 30_000),
        (400_000, 300_000, 60_000),
        (512_000, 256_000, 51_200),
        (1_000_000, 500_000, 100_000),
    ],
)
def test_threshold_and_tail_follow_from_the_window(window, threshold, tail):
    settings = get_policy("hermes").settings
    assert (settings.threshold(window), settings.tail_budget(window)) == (threshold, tail)


@pytest.mark.parametrize(
    ("window", "tail"), [(32_000, 6_400), (200_000, 10_000), (400_000, 10_000), (600_000, 15_000), (1_000_000, 25_000)]
)
def test_a_lean_tail_is_a_share_of_the_window_within_bounds(window, tail):
    settings = get_policy("hermes", profile="lean").settings
    assert settings.tail_budget(window) == tail
    assert settings.threshold(window) == get_policy("hermes").settings.threshold(window)


def test_a_lean_summary_quotes_the_requests_it_removes():
    events = [event for size in (100, 9_000, 3_000) for event in (user("u" * size), model("a" * 9_000))] * 3
    plain, lean = (compacted(events, 32_000, profile="current", lean_share=0.025, quoted_chars=n) for n in (0, 24_000))
    first, second = (
        next(item.bytes for item in record.after if isinstance(item, Synthetic)) for record in (plain, lean)
    )
    removed = [len(events[place].parts[0].text) for place in range(3, lean.cut[2]) if not place % 2]
    assert second - first == min(sum(min(size, 4_000) for size in removed), 24_000)


def test_reserved_output_is_taken_off_the_window():
    assert get_policy("hermes", reserved_output=65_536).settings.threshold(200_000) == 100_848


def test_the_seed_fires_at_half_of_the_window():
    assert get_policy("hermes", profile="seed").settings.threshold(200_000) == 100_000
    assert get_policy("hermes", profile="seed", threshold_floor=64_000).settings.threshold(100_000) == 64_000


ROLE_TABLE = [
    ("assistant", "assistant", "summary, in the user's role"),
    ("assistant", "user", "summary, merged into the next message"),
    ("tool", "user", "summary, in the model's role"),
    ("tool", "assistant", "summary, in the user's role"),
    ("user", "user", "summary, in the model's role"),
    ("user", "assistant", "summary, merged into the next message"),
    ("system", "user", "summary, in the model's role"),
    ("system", "assistant", "summary, in the user's role"),
]


@pytest.mark.parametrize(("before", "behind", "role"), ROLE_TABLE)
def test_the_summary_takes_the_role_that_alternates(before, behind, role):
    heads = {
        "assistant": [user("u"), model("a")],
        "tool": [user("u"), *pair(10)],
        "user": [user("u")],
        "system": [system("s")],
    }
    middle, tail = [user("m"), model("m")] * 3, [user("u"), model("a"), user("u"), model("a")]
    events = [*heads[before], *middle, *(tail[:3] if behind == "user" else tail[1:])]
    record = compacted(events, profile="seed", protect_first_n=len(heads[before]))
    assert roles(record.after) == [role]


def test_results_whose_call_is_summarised_go_too():
    calls = tuple(ToolCallPart("t", {}, f"c{number}") for number in range(4))
    results = [tool_result("y", "t", call.id) for call in calls]
    events = [user("u"), model("a"), user("u"), Event(Role.MODEL, calls), *results]
    record = compacted(events, profile="seed")
    assert kept(record.after) == [0, 1, 2]


def test_a_result_that_names_a_call_which_is_nowhere_goes_with_the_first_compaction():  # 0.19.0, run
    calls = tuple(ToolCallPart("t", {}, f"c{number}") for number in range(2))
    results = [tool_result("y", "t", named) for named in ("c0", "c1", "of another session")]
    record = compacted([*[user("m"), model("m")] * 20, user("u"), Event(Role.MODEL, calls), *results])
    assert kept(record.after)[-3:] == [41, 42, 43]


def test_nothing_is_compacted_where_hardly_any_message_is_between_head_and_tail():
    assert compacted([user("u" * 900_000), model("a")] * 3, profile="seed") is None
    assert compacted([user("u" * 900_000), model("a")] * 3) is None


# ---- when it fires


@dataclass
class Counts:
    """A provider that counts what it is told to, whatever is sent."""

    tokens: np.ndarray

    def one(self, step, view, heuristic, epoch=-1):
        return RequestCount(max(int(self.tokens[step]), 0), bool(self.tokens[step] > 0), 1)

    def run(self, start, stop, head, kept_from, heuristics, form=""):
        tokens = self.tokens[start:stop]
        return CountedRun(np.maximum(tokens, 0), tokens > 0, np.ones(stop - start, dtype=np.int64))

    def notes(self, *, compacted):
        return ()


def one_turn(calls, size=400, seconds=None):
    """A turn of calls with a result each, perhaps with times."""
    events = [user("Go"), *(event for _ in range(calls) for event in pair(size))]
    if seconds:
        events = [msgspec.structs.replace(item, timestamp=1e9 + place * seconds) for place, item in enumerate(events)]
    return session(*events)


def fired(log, counts, summarizer=None, **settings):
    trace = replay(
        Ledger.of(log),
        get_policy("hermes", **settings),
        window=200_000,
        usage=Counts(np.array(counts)),
        summarizer=summarizer or FixedSummaries(500),
    )
    return trace.columns["fired"].nonzero()[0].tolist(), trace


@pytest.mark.parametrize(("profile", "threshold"), [("seed", 100_000), ("current", 150_000)])
def test_it_fires_after_the_call_whose_count_reaches_the_threshold(profile, threshold):
    counts = [threshold - 1] * 10 + [threshold] + [9_000] * 9
    assert fired(one_turn(20), counts, profile=profile)[0] == [11]


def test_it_does_not_see_the_results_that_were_just_added():
    log = session(user("Go"), *(event for _ in range(6) for event in pair(8)), *pair(900_000), *pair(8))
    counts = [9_000] * 8
    assert fired(log, counts, profile="seed")[0] == []
    assert fired(log, counts, profile="current")[0] == [7]  # its estimate before every call does


def test_two_compactions_without_effect_block_further_ones():
    at, trace = fired(one_turn(20), [9_000] * 10 + [160_000] * 10)
    assert at == [11, 12]
    assert trace.columns["ineffective"][-1] == 2


def test_where_the_session_is_stored_each_compaction_forgets_that_those_before_it_had_no_effect():
    at, trace = fired(one_turn(20), [9_000] * 10 + [160_000] * 10, stored=True)
    assert at == list(range(11, 20))
    assert trace.columns["ineffective"].max() == 1


@pytest.mark.parametrize(("format_", "stored"), [("hermes", True), ("openai", None)])
def test_a_recording_of_hermes_is_a_stored_session(format_, stored):
    log = msgspec.structs.replace(one_turn(1), format=format_)
    assert policy_kind("hermes").recorded(log).get("stored") is stored


def recorded(at, *sizes):
    """A recorded compaction that put in messages of so many bytes."""
    messages = tuple(user("s" * size) for size in sizes)
    return RecordedCompaction(at, Evidence.DECLARED, "summary", tuple(map(Inserted, range(len(sizes)))), messages)


def test_a_summary_of_its_own_recording_is_as_long_as_what_was_put_in_without_earlier_summaries_that_stay():
    log = one_turn(20)
    log = msgspec.structs.replace(log, format="hermes", compactions=(recorded(23, 500), recorded(25, 700, 500)))
    ledger, counts = Ledger.of(log), Counts(np.array([9_000] * 10 + [160_000] * 10))
    summaries = RecordedSummaries.of(ledger)
    trace = replay(ledger, get_policy("hermes"), window=200_000, usage=counts, summarizer=summaries)
    written = [[item.bytes for item in record.after if isinstance(item, Synthetic)] for record in trace.compactions]
    assert written == [[500], [700, 500]]


def test_the_seed_compacts_in_vain_again_and_again():
    assert len(fired(one_turn(20), [160_000] * 20, profile="seed")[0]) > 10


def test_an_estimate_is_deferred_until_the_provider_has_counted():
    sizes = [400] * 6 + [40_000] * 4 + [400] * 10
    log = session(user("Go"), *(event for size in sizes for event in pair(size)))
    at, trace = fired(log, [9_000] * 20, threshold_cap=20_000)
    assert at[-1] < 12
    assert trace.columns["deferred"][at[-1] + 1 :].all()
    assert (trace.columns["request_estimate"][at[-1] + 1 :] >= 20_000).all()


def test_a_failed_summary_blocks_for_ten_minutes():
    log, counts = one_turn(40, seconds=30), [9_000] * 8 + [160_000] + [9_000] * 4 + [160_000] * 27
    at, trace = fired(log, counts, NoSummaries(), abort_on_failure=False)
    first, second = at[:2]
    times = Ledger.of(log).events["time_ms"][[log.calls[first].at - 1, log.calls[second].at - 1]]
    assert np.diff(times) >= 600_000
    assert trace.compactions[0].notes == ()


def test_without_times_there_is_no_cool_down_and_the_record_says_so():
    _, trace = fired(one_turn(20), [9_000] * 8 + [160_000] + [9_000] * 11, ScriptedSummaries((None,)))
    assert "no times" in trace.compactions[0].notes[0]


def test_in_the_cool_down_the_seed_asks_no_summariser_and_removes_all_the_same():
    log, counts = one_turn(30, seconds=1), [160_000] * 30
    _, trace = fired(log, counts, ScriptedSummaries((None, 700)), profile="seed")
    assert len(trace.compactions) > 3
    assert all(record.passes[0].failed for record in trace.compactions)


def test_an_aborted_compaction_changes_nothing():
    at, trace = fired(one_turn(12, seconds=1), [9_000] * 8 + [160_000] * 4, NoSummaries(), abort_on_failure=True)
    assert at == []
    assert trace.columns["held"].any()


def test_the_first_messages_stay_at_the_first_compaction_only():
    counts = [160_000 if step in (10, 30) else 9_000 for step in range(40)]
    at, trace = fired(one_turn(40, 4_000), counts, target_ratio=0.1)
    first, second = trace.compactions
    assert at == [11, 31]
    assert kept(first.after)[:3] == [0, 1, 2]
    assert kept(second.after)[:2] != [0, 1]
    assert 0 in kept(second.after)  # the only message of the user goes back


def test_a_refused_request_is_compacted_at_most_three_times_a_turn():
    _, trace = fired(one_turn(12, 4_000), [9_000] * 10 + [210_000] * 2, profile="seed")
    assert [record.point for record in trace.compactions if record.step == 10] == ["on an overflow"] * 3


# ---- recorded runs of the original


@pytest.fixture(scope="module")
def recorded_run():
    """A run of 0.19.0 with the counts that its provider gave, and the steps after which it compacted."""
    if not RUN.is_dir():
        pytest.skip("../shared/rules is absent")
    log = read((RUN / "state.db").read_bytes()).sessions[0]
    truth = json.loads((RUN / "truth.json").read_text())
    turn_calls = [call for call in truth["calls"] if call["kind"] == "turn call"]
    calls = tuple(
        msgspec.structs.replace(call, prompt_tokens=true["usage"]["prompt"])
        for call, true in zip(log.calls, turn_calls, strict=True)
    )
    steps = [sum(call["index"] <= item["after_call"] for call in turn_calls) for item in truth["compactions"]]
    return msgspec.structs.replace(log, calls=calls), steps


def test_over_a_recorded_run_its_rule_is_true_exactly_where_hermes_compacted(recorded_run):
    log, steps = recorded_run
    ledger = Ledger.of(log)
    trace = observe_recorded(ledger, get_policy("hermes"), window=200_000, usage=usage_for(ledger, None))
    assert trace.columns["fired"].nonzero()[0].tolist() == steps
    assert (trace.columns["threshold"] == 150_000).all()
    assert trace.columns["decision_tokens"][steps].tolist() == [150_000] * 7


def test_a_replay_of_a_recorded_run_leaves_what_hermes_left(recorded_run):
    log, steps = recorded_run
    at, trace = fired(log, [call.prompt_tokens for call in log.calls])
    assert at == steps
    # The program was started again before the third: its first messages stayed once more, which a replay cannot know.
    for number in (0, 1, 4, 5, 6):
        ours, theirs = trace.compactions[number].after, log.compactions[number].base
        assert kept(ours) == kept(theirs), number
        inserted = [isinstance(item, Inserted | Synthetic) for item in theirs]
        assert [isinstance(item, Inserted | Synthetic) for item in ours] == inserted, number


# ---- scripted runs of the original


def written(text):
    """A text of the scripts."""
    if not isinstance(text, dict):
        return text or ""
    repeated = text["prefix"] + text["unit"] * (text["chars"] // len(text["unit"]) + 1)
    return repeated[: text["chars"]]


def scripted_event(message, place):
    role, text = message["role"], written(message.get("text"))
    if role == "tool":
        parts = (ToolResultPart(message["name"], text, message["id"]),)
        return Event(Role.USER, parts, timestamp=1e9 + place)
    words = (TextPart(text),) if text or role == "user" else ()
    images = (MediaPart("image/png", 70),) * message.get("images", 0)
    calls = tuple(
        ToolCallPart(call["name"], {key: written_value(value) for key, value in call["arguments"].items()}, call["id"])
        for call in message.get("calls", ())
    )
    return Event(Role.MODEL if role == "assistant" else Role.USER, (*words, *images, *calls), timestamp=1e9 + place)


def written_value(value):
    return written(value) if isinstance(value, str | dict) else value


def scripted_session(conversation, run):
    outside = len(run.get("outside", ()))
    messages = conversation["messages"]
    events = tuple(scripted_event(message, place) for place, message in enumerate(messages[outside:]))
    calls = []
    for row in run["steps"]:
        usage = detail(row).get("usage")
        calls.append(ModelCall(at=row[0] - outside, prompt_tokens=usage[0] if usage else None))
    text = (TextPart(written(messages[0]["text"])),) if outside else None
    return Session(events, tuple(calls), system=text, window=Sourced(200_000, Provenance.USER)), outside


def detail(row):
    return row[4] if len(row) > 4 else {}


def numbers(ranges):
    return [n for item in ranges for n in (range(item[0], item[1] + 1) if isinstance(item, list) else [item])]


def scripted_views(run):
    """For every step the messages of the request, and those whose words a new message holds."""
    view, last, marks = [], len(run.get("outside", ())), set()
    for row in run["steps"]:
        view += range(last, row[0])
        last, more = row[0], detail(row)
        if "view" in more:
            view = numbers(item for item in more["view"] if not isinstance(item, dict))
            marks = {n for item in more["view"] if isinstance(item, dict) for n in numbers(item.get("marks", ()))}
        removed = set(numbers(more.get("gone", ())))
        view = [number for number in view if number not in removed]
        yield list(view), marks


def replayed(run, conversations, parameters):
    """A replay of a scripted run under its parameters, and the number of messages outside the list."""
    chosen = parameters[run["parameters"]]
    names = {
        "threshold_tokens": "threshold_cap",
        "summary_target_ratio": "target_ratio",
        "abort_on_summary_failure": "abort_on_failure",
        "protect_first_n": "protect_first_n",
        "protect_last_n": "protect_last_n",
    }
    settings = {ours: chosen[theirs] for theirs, ours in names.items() if theirs in chosen}
    summaries = {"fail": ScriptedSummaries((None,)), "empty": ScriptedSummaries((0,))}
    log, outside = scripted_session(conversations[run["conversation"]], run)
    counts = np.array([call.prompt_tokens or -1 for call in log.calls])
    trace = replay(
        Ledger.of(log),
        get_policy("hermes", **AS_SCRIPTED, **settings),
        window=chosen["window"],
        usage=Counts(counts),
        summarizer=summaries.get(chosen.get("summary"), FixedSummaries(chosen.get("summary_chars", 600))),
    )
    return log, trace, outside


@pytest.fixture(scope="module")
def scripted():
    if not VECTORS.is_dir():
        pytest.skip("../shared/vectors is absent")
    vectors = json.loads((VECTORS / "hermes-agent.context_compressor.json").read_text())
    conversations = json.loads((VECTORS / "conversations.json").read_text())["conversations"]
    return (
        vectors["runs"],
        {item["name"]: item for item in conversations},
        {item["name"]: item for item in vectors["parameters"]},
    )


PICTURES = "pictures before the newest are removed from the list, which makes later estimates smaller"
DESCRIBED = (
    "a pruned result is a line about its call, of another length than the fixed text: another message is in the tail"
)
REFUSED = "the scripted provider refuses nothing; here a request over the window is refused, and compacted again"
# (parameters, conversation): why a request differs. In all other runs every request has the same messages.
DIFFERENCES = {
    ("window64000_usage", "v07_giant_result"): REFUSED,
    ("threshold8000_usage", "v05_tools_long"): DESCRIBED,
    ("threshold8000_usage", "v06_four_hundred"): DESCRIBED,
    ("threshold8000_usage", "v12_images"): PICTURES,
    ("threshold4000_first1_last6_usage", "v06_four_hundred"): DESCRIBED,
    ("threshold4000_first1_last6_usage", "v12_images"): PICTURES,
    ("threshold4000_first1_last6_usage", "v13_odd_order"): DESCRIBED,
    ("threshold8000_ratio0.5_usage", "v05_tools_long"): DESCRIBED,
    ("threshold8000_ratio0.5_usage", "v06_four_hundred"): DESCRIBED,
    ("threshold8000_ratio0.5_usage", "v12_images"): PICTURES,
}
# Of these, the ones that compact at another step.
AT_OTHER_STEPS = {
    ("threshold8000_usage", "v06_four_hundred"),
    ("threshold8000_usage", "v12_images"),
    ("threshold8000_ratio0.5_usage", "v12_images"),
}


def test_scripted_runs_compact_at_the_same_steps_and_send_the_same_messages(scripted):
    runs, conversations, parameters = scripted
    at_other_steps, others = set(), set()
    for run in runs:
        key = (run["parameters"], run["conversation"])
        log, trace, outside = replayed(run, conversations, parameters)
        if trace.columns["fired"].tolist() != [int(bool(row[1])) for row in run["steps"]]:
            at_other_steps.add(key)
        for step, (theirs, marks) in enumerate(scripted_views(run)):
            ours = [event + outside for event in kept(trace.view(step, log.calls[step].at))]
            missing = set(ours) ^ set(theirs)
            merged = "merged" in "".join(roles(trace.view(step, log.calls[step].at)))
            if missing and not (merged and missing <= marks):
                others.add(key)
    assert others == set(DIFFERENCES)
    assert at_other_steps == AT_OTHER_STEPS


def test_the_estimate_of_a_request_is_that_of_the_scripted_runs(scripted):
    runs, conversations, parameters = scripted
    for run in runs:
        if run["parameters"] != "window200000" or run["conversation"] == "v10_unicode":
            continue  # of a system prompt outside ASCII the ledger has bytes, not characters
        _, trace, _ = replayed(run, conversations, parameters)
        compactions = [step for step, row in enumerate(run["steps"]) if row[1]] or [len(run["steps"])]
        theirs = [row[2] for row in run["steps"][: compactions[0]]]
        ours = trace.columns["request_estimate"][: compactions[0]].tolist()
        assert [mine for mine, their in zip(ours, theirs, strict=True) if their] == [n for n in theirs if n]


def test_a_head_that_covers_the_whole_list_raises_an_error():
    calls = Event(Role.MODEL, tuple(ToolCallPart("read", {}, f"c{number}") for number in range(6)))
    results = [tool_result("y" * 40_000, "read", f"c{number}") for number in range(6)]
    events = [user("u"), calls, *results]
    log = session(*events, calls=(ModelCall(at=1), ModelCall(at=8)))
    trace = replay(Ledger.of(log), get_policy("hermes"), window=64_000, summarizer=FixedSummaries(300))
    assert trace.columns["held"].tolist() == [0, RAISED]
    assert trace.state.ineffective == 0
    assert trace.view(1, 8) == (Span(0, 8),)


def test_a_share_of_the_tail_above_the_largest_one_is_taken_as_that():
    # 0.19.0: max(0.10, min(summary_target_ratio, 0.80))
    assert hermes_settings({"summary_target_ratio": 2}) == {"summary_target_ratio": 0.8}
    assert hermes_settings({"summary_target_ratio": 0.05}) == {"summary_target_ratio": 0.05}  # the policy raises that
