"""Laws of every policy that is listed, with settings drawn from what it publishes."""

from __future__ import annotations

import operator
import os
import re

import msgspec
import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from guard_core.errors import SettingError
from guard_core.estimation.estimators import Heuristic
from guard_core.estimation.usage import usage_for
from guard_core.events import Role, ToolCallPart, ToolResultPart
from guard_core.ledger import Ledger
from guard_core.policies import POLICIES, policy_kind
from guard_core.policies.base import dump_state, load_state
from guard_core.policies.inspect_ai.edit import InspectEdit
from guard_core.policies.inspect_ai.settings import EditSettings
from guard_core.policies.pydantic_ai.clear_tool_results import ClearToolResults, PydanticAIClearSettings
from guard_core.policies.settings import BEGINS_WITH_ANSWER, CHOICE, COUNT, SHARE, SIZE, SWITCH, TEXT
from guard_core.replay import observe_recorded, replay
from guard_core.requests import materialise
from guard_core.summaries.sizes import FixedSummaries
from guard_core.views import Span, content_count
from tests.properties.strategies import sessions, summarizers, windows
from tests.properties.test_replay_laws import StepByStep

# Those that the laws draw from: all of them, or the one that POLICY names.
LISTED = [policy_kind(os.environ["POLICY"]).name] if "POLICY" in os.environ else sorted(POLICIES)


def values_of(setting):
    """Values that are allowed for a setting; small ones more often, for small sessions."""
    if setting.kind == SWITCH:
        return st.booleans()
    if setting.kind == SIZE:
        return st.sampled_from(["auto", "0", "300", "50%", "20k"])
    if setting.kind == CHOICE:
        return st.sampled_from(setting.choices)
    if setting.kind == TEXT:
        return st.just(setting.default)
    if setting.kind == COUNT:
        return st.sampled_from([1, 2, 5, 40, 300, 20_000]).filter(lambda value: setting.least <= value)
    most = setting.most or (1.0 if setting.kind == SHARE else 5.0)
    return st.sampled_from([share * most for share in (0.1, 0.5, 1.0)]).filter(lambda value: setting.least <= value)


@st.composite
def listed_policies(draw, names=LISTED):
    """Any policy of the list, or of some of it, under any profile, with some of its settings changed."""
    kind = draw(st.sampled_from(names).map(POLICIES.get))
    profile = draw(st.sampled_from(kind.profile_names)) if kind.profiles else None
    names = (
        draw(st.lists(st.sampled_from(kind.settings), max_size=4, unique_by=lambda item: item.name))
        if kind.settings
        else []
    )
    changes = {item.name: draw(values_of(item)) for item in names if item.name != "fallback_excerpt"}  # needs texts
    try:
        return kind.make(profile, **changes)
    except SettingError:  # the values contradict each other
        assume(False)


def run(session, policy, window, summarizer):
    ledger = Ledger.of(session)
    return ledger, replay(ledger, policy, window=window, usage=usage_for(ledger, None), summarizer=summarizer)


SIGNS = {">": operator.gt, ">=": operator.ge, "≥": operator.ge, "<": operator.lt, "<=": operator.le, "≤": operator.le}
# "1,200 tokens > limit 1,000", "3 < 5: it does not act"
COMPARISON = re.compile(r"(\d[\d,]*)(?: [a-z]+)* (>=|<=|[<>≥≤]) (?:[a-z]+ )*(-?\d[\d,]*)(?![\d,.]| %)")


def comparisons(words):
    """The comparisons of two whole numbers in a sentence, each with whether it is true."""
    for left, sign, right in COMPARISON.findall(words):
        yield f"{left} {sign} {right}", SIGNS[sign](*(int(number.replace(",", "")) for number in (left, right)))


NEEDING = [(kind.name, item.name) for kind in map(POLICIES.get, LISTED) for item in kind.settings if item.needs]


@given(sessions(), st.sampled_from(NEEDING or [("", "")]), st.data(), windows, summarizers)
def test_a_setting_has_no_effect_while_the_one_that_it_needs_is_off(session, names, data, window, summarizer):
    if not NEEDING:  # the one that POLICY names has no such setting
        return
    kind, setting = POLICIES[names[0]], POLICIES[names[0]].setting(names[1])
    needed = kind.setting(setting.needs)
    off = {needed.name: "" if needed.kind == TEXT else "0"}
    profile = data.draw(st.sampled_from(kind.profile_names or (None,)))
    value = "changed" if setting.verbatim else data.draw(values_of(setting))
    assert kind.waits_for(setting, kind.values(profile, **off)) == needed
    policies = [kind.make(profile, **off), kind.make(profile, **off, **{setting.name: value})]
    one, other = (run(session, policy, window, summarizer)[1] for policy in policies)
    for name in one.columns.keys() - {"head"}:
        assert np.array_equal(one.columns[name], other.columns[name], equal_nan=True), name
    assert one.compactions == other.compactions


@given(sessions(), listed_policies(), windows, summarizers)
def test_looking_ahead_gives_the_numbers_of_deciding_step_by_step(session, policy, window, summarizer):
    ledger, ahead = run(session, policy, window, summarizer)
    _, slow = run(session, StepByStep(policy), window, summarizer)
    for name in slow.columns.keys() - {"head"}:
        assert np.array_equal(ahead.columns[name], slow.columns[name], equal_nan=True), name
    assert (ahead.compactions, ahead.state) == (slow.compactions, slow.state)
    for step, call in enumerate(session.calls):
        assert ahead.view(step, call.at, ledger) == slow.view(step, call.at, ledger)


@given(sessions(), listed_policies(), windows, summarizers)
def test_the_view_of_every_step_is_the_one_that_was_priced(session, policy, window, summarizer):
    ledger, trace = run(session, policy, window, summarizer)
    costs = policy.estimator(ledger)
    for step, call in enumerate(session.calls):
        view = trace.view(step, call.at)
        assert costs.fixed + sum(map(costs.segment, view)) == trace.columns["heuristic_sent"][step]
        assert content_count(view) == trace.columns["contents_sent"][step]


@given(sessions(), listed_policies(), windows, summarizers)
def test_messages_cost_what_their_view_was_priced_at(session, policy, window, summarizer):
    _, trace = run(session, policy, window, summarizer)
    if not session.calls:
        return
    view = trace.view(len(session.calls) - 1, session.calls[-1].at)
    messages = materialise(view, session)
    again = Ledger.of(msgspec.structs.replace(session, events=messages, calls=(), compactions=()))
    # A cut may fall into a character of several bytes, which then goes as a whole: at most three bytes at each end.
    cuts = sum(segment.stop - segment.start for segment in view if isinstance(segment, Span) and segment.form)
    assert 0 <= trace.columns["heuristic_sent"][-1] - _heuristic(policy, again) <= 3 * cuts


def _heuristic(policy, ledger):
    costs = policy.estimator(ledger)
    assert isinstance(costs, Heuristic)
    return int(costs.log()[-1]) + costs.fixed


PAIRING = [name for name, kind in POLICIES.items() if kind.judged_by is not None and not kind.parts_pairs]
# These part pairs in logs that begin with a call.
FROM_A_CALL = ["pydantic-ai-sliding-window", "pydantic-ai-summarizing", "pydantic-ai-tiered"]


def ids(messages, kind, name):
    return {getattr(part, name) for event in messages for part in event.parts if isinstance(part, kind)}


@given(sessions(), listed_policies(PAIRING), windows, summarizers)
def test_a_library_that_does_not_say_so_never_parts_a_call_from_its_result(session, policy, window, summarizer):
    keeps_pairs(session, policy, window, summarizer)


@given(sessions(), listed_policies(FROM_A_CALL), windows, summarizers)
def test_a_log_that_begins_with_the_user_is_never_parted_by_pydantic_ai(session, policy, window, summarizer):
    assume(session.events and session.events[0].role is Role.USER)
    keeps_pairs(session, policy, window, summarizer)


def keeps_pairs(session, policy, window, summarizer):
    logs = [session.events[: call.at] for call in session.calls]
    whole = [ids(log, ToolCallPart, "id") == ids(log, ToolResultPart, "call_id") for log in logs]
    calls = tuple(call for call, is_whole in zip(session.calls, whole, strict=True) if is_whole)
    session = msgspec.structs.replace(session, calls=calls)
    ledger, trace = run(session, policy, window, summarizer)
    for step, call in enumerate(calls):
        messages = materialise(trace.view(step, call.at, ledger), session)
        assert ids(messages, ToolCallPart, "id") == ids(messages, ToolResultPart, "call_id")


# The answer with which they may begin a request is a block of the provider's own.
WITH_BLOCKS = ["anthropic-compaction", "inspect-auto", "inspect-native", "openai-agents", "openai-compaction"]
BEGINNING = [name for name, kind in POLICIES.items() if BEGINS_WITH_ANSWER not in kind.known_problems]


@given(sessions(), listed_policies(sorted({*BEGINNING} - {*WITH_BLOCKS})), windows, summarizers)
def test_only_policies_that_say_so_begin_a_request_with_an_answer(session, policy, window, summarizer):
    assume(session.events and _is_of_the_user(session.events[0]))
    ledger, trace = run(session, policy, window, summarizer)
    asked = [(step, at) for step, at in enumerate(call.at for call in session.calls) if at]
    for step, at in asked:
        if session.events[at - 1].role is Role.MODEL:  # another answer is asked for
            continue
        messages = materialise(trace.view(step, at, ledger), session)
        rest = [event for event in messages if event.role is not Role.SYSTEM]
        assert not rest or rest[0].role is not Role.MODEL


def _is_of_the_user(event):
    return event.role is Role.USER and not any(isinstance(part, ToolResultPart) for part in event.parts)


@given(sessions(), listed_policies(), windows, summarizers)
def test_a_state_survives_being_stored(session, policy, window, summarizer):
    _, trace = run(session, policy, window, summarizer)
    assert load_state(policy, dump_state(trace.state)) == trace.state


@given(sessions(), listed_policies(), windows, summarizers)
def test_reasons_and_decisions_compare_truly(session, policy, window, summarizer):
    _, trace = run(session, policy, window, summarizer)
    reasons = [record.reason for record in trace.compactions]
    assert all(words and "limit -" not in words for words in reasons)
    terms = [term.expression for step in range(len(session.calls)) for term in policy.explain(trace, step)]
    for words in (*reasons, *terms):
        for comparison, is_true in comparisons(words):
            assert is_true, (comparison, words)


def test_a_false_comparison_is_seen():
    words = "3 messages > limit 3, 1,200 tokens >= threshold 1,100, 5 < 4: it does not act"
    assert [is_true for _, is_true in comparisons(words)] == [False, True, False]


@given(sessions(), listed_policies(), windows)
def test_every_column_is_filled_at_every_step_also_over_recorded_requests(session, policy, window):
    ledger = Ledger.of(session)
    trace = observe_recorded(ledger, policy, window=window, usage=usage_for(ledger, None))
    assert {len(trace.columns[item.name]) for item in trace.all_columns} <= {len(session.calls)}
    for step in range(len(session.calls)):
        assert policy.explain(trace, step)


def test_what_is_published_is_what_the_policy_is_made_with():
    for kind, profile in ((each, name) for each in POLICIES.values() for name in each.profile_names or (None,)):
        settings = kind.make(profile).settings
        for item in kind.settings:
            assert getattr(settings, item.name) == item.default_in(profile or ""), (kind.name, item.name)
            assert all((item.help, item.source, item.label)), (kind.name, item.name)
        assert getattr(settings, "profile", profile) == profile or not kind.profile_names  # by which a replay is found


class WholeClear(ClearToolResults):
    """Pydantic AI's clearing, looking at the whole log at every step."""

    def _clearing(self, ledger):
        clearing = super()._clearing(ledger)
        return clearing._replace(untouched=np.zeros_like(clearing.untouched))


@given(
    sessions(),
    st.sampled_from([0, 1, 3]),
    st.booleans(),
    st.sampled_from([0, 20]),
    st.sampled_from(["", "search"]),
    windows,
)
def test_clearing_what_is_new_gives_the_requests_of_clearing_all(session, keep, inputs, least, exclude, window):
    settings = PydanticAIClearSettings(
        max_tokens=100, keep_pairs=keep, clear_tool_inputs=inputs, min_clear_tokens=least, exclude_tools=exclude
    )
    _, new = run(session, ClearToolResults(settings), window, FixedSummaries(300))
    _, whole = run(session, WholeClear(settings), window, FixedSummaries(300))
    assert new.compactions == whole.compactions
    assert new.heads == whole.heads


class WholeEdit(InspectEdit):
    """Inspect's edit, looking at the whole list at every step, and again at what it has left."""

    edits_once = False

    def remembered(self, request, state, view):
        return state


@given(
    sessions(),
    st.sampled_from([0, 1, 3]),
    st.booleans(),
    st.sampled_from([0, 1]),
    st.sampled_from([20, 200, 2_000]),
    windows,
)
def test_looking_at_what_is_new_gives_the_lists_of_looking_at_all(session, keep, inputs, thinking, threshold, window):
    settings = EditSettings(threshold, keep, inputs, thinking)
    summarizer = FixedSummaries(300)
    _, new = run(session, InspectEdit(settings), window, summarizer)
    _, whole = run(session, WholeEdit(settings), window, summarizer)
    assert new.compactions == whole.compactions
    assert new.heads == whole.heads
