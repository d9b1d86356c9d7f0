"""What findings look at: a recording with everything computed of it once, and either side of it as one case."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import msgspec
import numpy as np
from numpy.typing import NDArray

from guard_core import defaults
from guard_core.columns import narrowed
from guard_core.compaction_bases import CompactionBase
from guard_core.costs import SYSTEM
from guard_core.counts import CompactionCounts, CountedCompaction, RequestTokens, counted_compactions, requests_of
from guard_core.estimation.agents_view import ComparedCounts, ExceededWindow
from guard_core.estimation.attribution import Attribution, attribute
from guard_core.estimation.baselines import (
    ShrunkRequest,
    grown_by_bytes,
    repeated_counts,
    returned_at,
    silent_truncations,
)
from guard_core.estimation.usage import PROVIDER, Usage, usage_for
from guard_core.estimation.view_counts import tokens_of_views
from guard_core.findings.answer_room import AnswerRoom, answer_room
from guard_core.findings.presence import RequestWords, request_words
from guard_core.findings.tasks import task_column
from guard_core.ledger import Ints, Ledger
from guard_core.policies import DEFAULT_POLICY, POLICIES, PolicyKind, get_policy
from guard_core.replay import observe_recorded, replay
from guard_core.rules import Explanation, OwnChecks, explain
from guard_core.rules.played import played, played_profile
from guard_core.sessions import Provenance, Session
from guard_core.summaries.sizes import FixedSummaries
from guard_core.trace import CompactionRecord, Trace
from guard_core.triggers import is_forced
from guard_core.views import Span, View, followed
from guard_core.windows.call_windows import CallWindow, call_windows
from guard_core.windows.models import ModelAnswers, answers_of, main_model
from guard_core.windows.request_limits import NO_LIMIT, RequestLimits
from guard_core.windows.window_evidence import (
    Status,
    WindowJudgement,
    is_set_by_hand,
    judge_session,
    other_windows,
    undoubted,
)

OFTEN, OFTEN_SHARE = 3, 0.05  # ours: odd counts that are not accidental, at least so many and such a share of all
CHARACTERS, ESTIMATES = "characters", "estimates"  # what figures of tokens may be instead
MOSTLY = 0.8  # ours: the share from which on all counts are taken to be of one kind


class Fired(msgspec.Struct, frozen=True):
    """A compaction after which a call came. `index` counts from 0; `before` and `after` are prompt tokens: of the
    request as it would have been at `step`, and of the one that was sent there. `added`, of both, came between a
    recorded compaction and that call (modelled). `replaced` is what a replay would have sent instead."""

    index: int
    step: int
    before: int
    after: int
    added: int = 0
    counted: CountedCompaction | None = None  # of a recording
    record: CompactionRecord | None = None  # of a replay
    replaced: View = ()

    @property
    def compacted(self) -> int:
        """Prompt tokens of what there was to compact: the request before it, without what came later."""
        return self.before - self.added


class RefusedRequest(NamedTuple):
    """A request that a provider refused as too long: its prompt tokens, as the provider stated them, else modelled, and
    the last step before it, -1 where there is none."""

    tokens: int
    after: int


@dataclass(frozen=True)
class Facts:
    """A recording and its columns. `session` may be the head of a stored one, without events; `words` says where the
    words of its users' requests are (None: not looked up yet). `settings` of the own rule were
    typed by a person; `explained` is what that rule says of it, where that was computed before. `judged` is the window
    against the recording alone."""

    session: Session
    ledger: Ledger
    attribution: Attribution
    judged: WindowJudgement
    words: tuple[RequestWords, ...] | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    explained: Explanation | None = None

    @classmethod
    def of(cls, session: Session, window: WindowJudgement | None = None, *, looks_up: bool = True) -> Facts:
        """The facts of a session whose texts are in memory. `looks_up`: also where the words of its users' requests
        are, which takes longer than all else and which findings alone ask for."""
        ledger = Ledger.of(session)
        words = request_words(session, ledger, lambda: session.events) if looks_up else None
        return cls(session, ledger, attribute(ledger), window or judge_session(session), words)

    @cached_property
    def window(self) -> WindowJudgement:
        """The window against the recording and the rule of its agent: that compactions came below half of it casts no
        doubt on it where the rule, with the settings that the file or a person gives, has every one of them so."""
        if self.judged.status is not Status.DOUBTED or not self.explanation.is_whole:
            return self.judged
        return undoubted(self.judged, main_model(self.session, self.answers))

    @cached_property
    def usage(self) -> Usage:
        """The model of the provider."""
        window = self.window
        is_exceeded = window.at_least > window.value and not is_set_by_hand(window.sourced)
        exceeded = ExceededWindow(window.value, window.at_least) if is_exceeded else None
        return usage_for(self.ledger, self.attribution, exceeded, self._compared)

    def _compared(self) -> ComparedCounts | None:
        """What the agent compared, as the counts of the policy that plays its rule; None where no policy does."""
        rule = self.explanation.rule
        if rule is None or rule.threshold is None or rule.policy not in POLICIES:
            return None
        kind, checks = POLICIES[rule.policy], OwnChecks(self.session, self.ledger, self.explanation)
        counter = getattr(kind.make(**self.made_with(kind)), "counts_by", None)
        return ComparedCounts(rule.policy, played_profile(kind, rule), checks.compared, counter)

    @cached_property
    def tasks(self) -> Ints:
        """The message that every step works on: the one that began its turn, or of one that only asks to continue,
        where requests were looked up, the one that it continues."""
        continuing = {message: words.message for words in self.words or () for message in words.continued_by}
        return task_column(self.ledger.steps["user_event"], continuing)

    @cached_property
    def counts(self) -> CompactionCounts:
        return counted_compactions(self.session, self.ledger.steps["at"])

    @cached_property
    def requests(self) -> RequestTokens:
        """The requests that were really sent."""
        return requests_of(self.ledger, self.attribution)

    @cached_property
    def other_windows(self) -> Ints:
        """The window of every step's model where it is another than the session's, else 0."""
        return np.array(other_windows(self.session, self.answers), dtype=np.int64)

    @cached_property
    def answers(self) -> dict[str, ModelAnswers]:
        """What the calls of each model say."""
        return answers_of(self.session)

    @cached_property
    def answer_room(self) -> AnswerRoom | None:
        """How much of a window an answer needs."""
        judged, windows = self.window.sourced, self.recording.windows
        return answer_room(self.session, self.answers, self.explanation, self.settings, judged, windows)

    @cached_property
    def growth(self) -> Ints:
        """Prompt tokens of all events before every step's call."""
        return self.grown_at(self.ledger.steps["at"])

    def grown_at(self, ats: Ints) -> Ints:
        """Prompt tokens of all events before each of these places in the log."""
        if self.ledger.usage_ratio is None:
            return self.attribution.prefix_at(ats)
        costs = self.ledger.prefix_of(("text_tokens", "inline_tokens", "metadata_tokens"))
        sums: Ints = (costs[ats] * self.ledger.usage_ratio).astype(np.int64)
        return sums

    @cached_property
    def whole_log(self) -> Trace:
        """The replay that never compacts."""
        trace = replay(self.ledger, get_policy("none"), window=self.window.value, usage=self.usage)
        return replace(trace, columns=narrowed(trace.columns))

    @cached_property
    def simulation(self) -> Trace:
        """A session that was only simulated, as the simulator plays it: under ContextGuard, with its summaries."""
        return replay(
            self.ledger,
            get_policy(DEFAULT_POLICY),
            window=self.window.value,
            usage=self.usage,
            summarizer=FixedSummaries(defaults.SUMMARY_BYTES),
            request="",
        )

    @cached_property
    def explanation(self) -> Explanation:
        """The recording beside the rule of the agent that wrote it."""
        if self.explained is not None:
            return self.explained
        window = self.judged.sourced if self.judged.source is Provenance.USER else None
        return explain(self.session, self.ledger, window=window, typed=self.settings)

    def made_with(self, kind: PolicyKind, given: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """What a policy is made with so that its replay plays this recording: what the recording settles, for the
        policy of its own agent the profile and the settings of the agent's rule, and over them the settings that are
        `given`, the profile among them."""
        rule, changes = self.explanation.rule, dict(given or {})
        profile = str(changes.pop("profile", "") or played_profile(kind, rule))
        named = {"profile": profile} if profile else {}
        return {**named, **kind.recorded(self.session), **played(kind, rule, profile), **changes}

    @cached_property
    def own_rule(self) -> Trace | None:
        """ContextGuard's arithmetic over the recording, where that was the recording's own rule."""
        if not self.is_contextguards:
            return None
        return observe_recorded(self.ledger, get_policy(DEFAULT_POLICY), window=self.window.value, usage=self.usage)

    @cached_property
    def recording(self) -> Case:
        """The recorded side as a case."""
        fired = []
        for index, item in enumerate(self.counts.compactions):
            if item.step < 0:
                continue
            base: CompactionBase = self.ledger.bases[item.place]
            sums = self.grown_at(np.array([base.at, self.ledger.steps["at"][item.step]]))
            added = max(0, int(sums[1] - sums[0]))  # a count that the recorder made before the compaction lacks it
            before = base.tokens_before + added if base.tokens_before > 0 else self.grown_to(item.step)
            fired.append(Fired(index, item.step, before, int(self.requests.tokens[item.step]), added, counted=item))
        return Case(self, self.window, self.requests.tokens, tuple(fired), None)

    def replaced_by(self, item: CountedCompaction) -> list[tuple[int, CountedCompaction]]:
        """The compactions, by index, whose result this one replaced before any call was made with it."""
        before = int(self.ledger.steps["epoch"][item.step - 1]) if item.step > 0 else -1
        start, stop = bisect_right(self._places, before), bisect_left(self._places, item.place)
        return [*zip(range(start, stop), self.counts.compactions[start:stop], strict=True)]

    @cached_property
    def _places(self) -> list[int]:
        """Which of the recorded compactions each counted one is; they rise."""
        return [item.place for item in self.counts.compactions]

    @property
    def is_contextguards(self) -> bool:
        """Is ContextGuard the rule of the recording itself: it was simulated under it, or holds its state."""
        return self.ledger.usage_ratio is not None or bool(self.session.guard_states)

    @property
    def is_uncounted(self) -> bool:
        """Is every figure an estimate: no count by a provider, and no simulated one."""
        return self.ledger.usage_ratio is None and not self.requests.reported.any()

    @property
    def counted_in(self) -> str:
        """What the figures of tokens really are, where they are not: "characters" or "estimates"; else ""."""
        if len(self.in_characters[0]):
            return CHARACTERS
        return ESTIMATES if self.is_uncounted else ""

    @property
    def uncounted(self) -> dict[str, int]:
        """How many calls of a recording its provider did not count, and of how many; empty where it counted each."""
        missing = int(np.count_nonzero(~self.requests.reported)) if self.ledger.usage_ratio is None else 0
        return {"uncounted": missing, "all_calls": self.ledger.step_count} if missing else {}

    @property
    def has_system_prompt(self) -> bool:
        """Does the file hold it, beside the messages or as one of them."""
        return self.ledger.system_recorded or bool((self.ledger.events["flags"] & SYSTEM).any())

    @property
    def not_estimated(self) -> str:
        """What the requests of a recording without any count had besides what is estimated, "" for nothing known."""
        fixed = self.ledger.system_tokens + self.ledger.tools_tokens
        if not self.is_uncounted or self.attribution.overhead > fixed:
            return ""
        has = {"system prompt": self.has_system_prompt, "tools": self.ledger.tools_recorded}
        return " and ".join(name for name, is_there in has.items() if not is_there)

    @property
    def is_peak_unknown(self) -> bool:
        """Is only a sum recorded, of calls whose number is not: how large the largest request was is then not known."""
        session = self.session
        return self.is_uncounted and bool(session.prompt_tokens_total) and session.mean_prompt_tokens is None

    @cached_property
    def falls(self) -> tuple[ShrunkRequest, ...]:
        """Where the recorded prompt falls though the log grew and no compaction is recorded."""
        return silent_truncations(self.ledger) if self.ledger.usage_ratio is None else ()

    @cached_property
    def lasting_falls(self) -> tuple[ShrunkRequest, ...]:
        """Those after which the count does not return by itself: what it fell by may be gone."""
        return tuple(fall for fall in self.falls if returned_at(self.ledger, fall) < 0)

    @cached_property
    def repeated(self) -> Ints:
        """The steps whose count repeats the one before it, where so many do that it is not an accident."""
        repeated = repeated_counts(self.ledger)
        return repeated if self._is_often(len(repeated)) else repeated[:0]

    @cached_property
    def in_characters(self) -> tuple[Ints, int]:
        """The steps whose count grew by a token for each byte, of how many, where most do: what was counted is
        characters; else none."""
        if self.ledger.usage_ratio is not None:
            return np.zeros(0, dtype=np.int64), 0
        same, compared = grown_by_bytes(self.ledger)
        return (same if len(same) >= max(OFTEN, MOSTLY * compared) else same[:0]), compared

    @property
    def is_miscounted(self) -> bool:
        """Are so many recorded counts not those of their requests that nothing can be concluded from their sizes."""
        if len(self.in_characters[0]):
            return True
        return bool(len(self.repeated)) or self._is_often(len(self.falls)) or self._is_often(len(self.above_prompt))

    @cached_property
    def above_prompt(self) -> Ints:
        """The steps with more tokens read from the cache than the whole prompt has."""
        steps = self.ledger.steps
        prompts = steps["prompt_tokens"]
        return np.flatnonzero((prompts > 0) & (steps["cached_tokens"] > prompts))

    def _is_often(self, times: int) -> bool:
        counted = int(np.count_nonzero(self.ledger.steps["prompt_tokens"] > 0))
        return self.ledger.usage_ratio is None and times >= OFTEN and times >= OFTEN_SHARE * counted

    @cached_property
    def refused_request(self) -> RefusedRequest | None:
        """The smallest request that the provider refused as too long; None where none is known, or an answered one was
        as large."""
        steps, sizes = self.ledger.steps, []
        bases = [base.at for base in self.ledger.bases]
        stated = {item.at: item.tokens for item in self.session.refusals if item.tokens}
        for at, compactions in self.session.refused_places:
            before = int(np.searchsorted(steps["at"], at)) - 1
            start = int(steps["at"][before]) if before >= 0 else 0
            if before >= 0 and self.other_windows[before]:
                continue  # the model is another
            if at in stated:
                sizes.append(RefusedRequest(stated[at], before))
                continue
            if any(start < base for base in bases[:compactions]):
                continue  # what was sent there is not known
            if before >= 0 and steps["response"][before] == at - 1:
                continue  # the request that had just been answered, sent again, or with its answer at the end
            grown = self.attribution.prefix_at(np.array([start, at]))
            sent = int(self.requests.tokens[before]) if before >= 0 else self.attribution.overhead
            sizes.append(RefusedRequest(sent + int(grown[1] - grown[0]), before))
        least = min(sizes, default=None)
        return least if least is not None and least.tokens > self.window.at_least else None

    def is_forced(self, item: Fired) -> bool:
        """Did the provider refuse a request as too long right before a recorded compaction?"""
        if item.counted is None:
            return False
        before = int(self.ledger.steps["at"][item.step - 1]) if item.step else 0
        return is_forced(self.session, item.counted.place, before)

    @property
    def fixed_not_in_file(self) -> int:
        """Prompt tokens of every request that the file does not hold: system prompt and tools."""
        return max(0, self.attribution.overhead - self.ledger.system_tokens - self.ledger.tools_tokens)

    @cached_property
    def not_in_file(self) -> Ints:
        """The same at every step, with what came before the file until a compaction cuts it off."""
        begun = np.where(self.ledger.steps["epoch"] < 0, self.attribution.prologue, 0)
        missing: Ints = self.fixed_not_in_file + begun
        return missing

    @cached_property
    def stretches(self) -> Ints:
        """For every step, the step at which the next base, or the end, comes."""
        epochs = self.ledger.steps["epoch"]
        edges = np.flatnonzero(np.diff(epochs)) + 1
        stops = np.append(edges, len(epochs))
        ends: Ints = stops[np.searchsorted(edges, np.arange(len(epochs)), side="right")]
        return ends

    def replay(self, trace: Trace) -> Case:
        """The side of a replay as a case. Another window than the recording's was asked for. One that is in use is not
        made again: findings, prices and pages ask for the same one."""
        case = self._replays.get(id(trace))
        if case is None or case.trace is not trace:
            case = self._replays[id(trace)] = self._case_of(trace)
        return case

    @cached_property
    def _replays(self) -> WeakValueDictionary[int, Case]:
        return WeakValueDictionary()

    def over(self, trace: Trace) -> Ints:
        """Steps of a replay whose request is larger than its window; its compactions are not looked at."""
        return Case(self, self._judged(trace.window), _requests(trace), (), trace).over

    def _case_of(self, trace: Trace) -> Case:
        tokens = _requests(trace)
        views, before = self._before(trace)
        fired = tuple(
            Fired(index, record.step, count, tokens.item(record.step), record=record, replaced=view)
            for index, (record, view, count) in enumerate(zip(trace.compactions, views, before, strict=True))
        )
        return Case(self, self._judged(trace.window), tokens, fired, trace)

    def limits(self, window: int) -> RequestLimits:
        """How large the requests of a replay in a window of so many tokens may be without an overflow: what `Case.over`
        and `Case.refused_again` find is larger."""
        case = Case(self, self._judged(window), np.zeros(self.ledger.step_count, dtype=np.int64), (), None)
        refused = self.refused_request if case.window.value <= self.window.value else None
        own = case.window.value if case.window.judges_replays and case.in_tokens and case.window.value else NO_LIMIT
        others = None
        if self.other_windows.any():
            said = np.where(case.windows > 0, case.windows, NO_LIMIT)
            others = np.where(self.other_windows != 0, said, 0)
        return RequestLimits(own if refused is None else min(own, refused.tokens - 1), others)

    def _judged(self, window: int) -> WindowJudgement:
        """A window in tokens that a replay is asked for; the recording's own where it is the same."""
        if window == self.window.value:
            return self.window
        return WindowJudgement(window, Provenance.USER, Status.KNOWN, self.window.at_least, "asked for")

    def removes_nothing(self, item: CountedCompaction) -> bool:
        """Does the file lack what a compaction removed, so that its view still has the whole log before it?"""
        return self.ledger.bases[item.place].removes_nothing

    @cached_property
    def unseen(self) -> list[int]:
        """The compactions, counted from 0, before a call, of which the file does not have what they removed."""
        return [one.index for one in self.recording.fired if one.counted and self.removes_nothing(one.counted)]

    def is_before_unknown(self, item: CountedCompaction) -> bool:
        """Is the request that a compaction replaced neither in the file nor counted by the agent?"""
        return self.removes_nothing(item) and self.ledger.bases[item.place].tokens_before <= 0

    def is_price_unknown(self, item: CountedCompaction) -> bool:
        """Is it not known what a compaction saved: what it replaced is neither in the file nor counted, or the file
        begins behind it, so that what the cache held is not known."""
        return self.is_before_unknown(item) or (item.step == 0 and self.removes_nothing(item))

    def is_sealed(self, item: CountedCompaction) -> bool:
        """Is a compaction's summary encrypted, or not in the file?"""
        return self.ledger.bases[item.place].is_sealed

    def _before(self, trace: Trace) -> tuple[list[View], list[int]]:
        """The request that each compaction of a replay replaced, and its prompt tokens.

        A sliding window compacts the whole log anew; where the call before was sent with the last summary, so would
        this one have been.
        """
        steps = np.array([record.step for record in trace.compactions], dtype=np.int64)
        fired, sent, built = (trace.columns[name][steps - 1] for name in ("fired", "heuristic_sent", "heuristic_built"))
        at = self.ledger.steps["at"]
        text = self.ledger.prefix_of(("text_tokens", "inline_tokens"))
        heuristics = sent + text[at[steps]] - text[at[steps - 1]]
        views, carries = [], ((fired == 0) & (sent < built)).tolist()
        for index, (record, carried) in enumerate(zip(trace.compactions, carries, strict=True)):
            if index and carried and _is_built_on(trace, record.step - 1, trace.compactions[index - 1]):
                views.append(_carried(trace.compactions[index - 1], at.item(record.step)))
            else:
                views.append(record.before)
                heuristics[index] = record.tokens_before
        return views, tokens_of_views(self.usage, steps, views, at[steps], heuristics)

    def without(self, item: Fired) -> int:
        """Prompt tokens of the request at a compaction's step had it not been made. Of a recording that is the
        provider's count of the request before and what came since, where there is one: the recorder's own figure
        (`Fired.before`) may be of another counter, or lack what waited to be sent."""
        is_counted = item.counted is not None and item.step > 0 and bool(self.requests.reported[item.step - 1])
        return self.grown_to(item.step) if is_counted else item.before

    def grown_to(self, step: int) -> int:
        """The request at a step, had nothing been compacted there: the one before and what came since."""
        if step == 0:
            return self.attribution.overhead + int(self.growth[0])
        return int(self.requests.tokens[step - 1] + self.growth[step] - self.growth[step - 1])


def _requests(trace: Trace) -> Ints:
    """Prompt tokens of the request that a replay sends at every step."""
    tokens: Ints = np.maximum(trace.columns["modelled_prompt_tokens"], 0).astype(np.int64)
    return tokens


def _is_built_on(trace: Trace, step: int, record: CompactionRecord) -> bool:
    """Was a step's request what a compaction before it left, and what came since."""
    head = trace.heads[int(trace.columns["head"][step])]
    return head.kept_from == record.kept_from and head.view == record.carried


def _carried(record: CompactionRecord, at: int) -> View:
    """What a policy sends after a compaction, once `at` events are in the log."""
    tail = (Span(record.kept_from, at),) if record.kept_from < at else ()
    return followed(record.carried, len(record.carried), tail)


@dataclass(frozen=True)
class Case:
    """One side of a session: the recording itself, or a replay of it. `tokens` are prompt tokens of the request sent at
    every step, `fired` the compactions that a call followed."""

    facts: Facts
    window: WindowJudgement
    tokens: Ints
    fired: tuple[Fired, ...]
    trace: Trace | None

    @property
    def is_recorded(self) -> bool:
        return self.trace is None

    @property
    def may_summarise(self) -> bool:
        """Can a compaction have made a summary: not in a replay of a policy that publishes that it makes none."""
        kind = None if self.trace is None else POLICIES.get(self.trace.policy)
        return kind is None or kind.summarises

    @property
    def window_counts(self) -> bool:
        """Are requests held against the window: not if a larger prompt was answered, or characters were counted."""
        is_judge = not self.window.is_disproved if self.is_recorded else self.window.judges_replays
        return self.in_tokens and is_judge and self.window.value > 0

    @property
    def in_tokens(self) -> bool:
        """Were tokens counted, as far as it can be seen."""
        return not len(self.facts.in_characters[0])

    @cached_property
    def windows(self) -> Ints:
        """The window of every step's model in tokens, 0 where nothing can be said against it."""
        own = self.window.value if self.window_counts else 0
        others = self.facts.other_windows if self.in_tokens else np.zeros_like(self.tokens)
        windows: Ints = np.where(others != 0, np.maximum(others, 0), own)
        return windows

    @property
    def call_windows(self) -> tuple[CallWindow, ...]:
        """The windows of its calls, the session's first."""
        return call_windows(self.facts.other_windows, self.window.value)

    def window_at(self, step: int) -> int:
        """The window of a step's model in tokens, contradicted or not."""
        return int(self.windows[step]) or self.window.value

    def rests_on_window(self, step: int) -> bool:
        """Is the session's window the one of this step, so that what is said of it rests on its assumptions."""
        return not self.facts.other_windows[step]

    @cached_property
    def refused_again(self) -> Ints:
        """Steps of a replay that the window seems to hold, with a request as large as one that the provider refused.
        None where a larger window than the session's was asked for: that is of another model."""
        refused = self.facts.refused_request
        if self.is_recorded or refused is None or self.window.value > self.facts.window.value:
            return np.zeros(0, dtype=np.int64)
        fits: NDArray[np.bool_] = (self.windows == 0) | (self.tokens <= self.windows)
        return np.flatnonzero(fits & (self.tokens >= refused.tokens) & (self.facts.other_windows == 0))

    @property
    def overflows(self) -> int:
        """Requests that are over the window, or were refused as too long; of a replay, that are as large as one that
        was."""
        return len(self.over) + len(self.facts.session.refused if self.is_recorded else self.refused_again)

    @cached_property
    def filled(self) -> NDArray[np.float64]:
        """The share of its window that every request fills, 0 where nothing can be said."""
        return np.asarray(self.tokens / np.where(self.windows > 0, self.windows, np.inf))

    @cached_property
    def modelled(self) -> NDArray[np.bool_]:
        """At which steps the tokens are modelled."""
        if self.trace is None:
            return ~self.facts.requests.reported
        return np.asarray(self.trace.columns["prompt_tokens_source"] != PROVIDER)

    @cached_property
    def over(self) -> Ints:
        """Steps whose request was larger than the window. A recorded one that was answered and counted was not."""
        over: NDArray[np.bool_] = (self.windows > 0) & (self.tokens > self.windows)
        if self.is_recorded:
            over &= ~self.facts.requests.reported
        return np.flatnonzero(over)

    def column(self, name: str) -> Ints:
        """A column of the replay's trace."""
        assert self.trace is not None
        column: Ints = self.trace.columns[name]
        return column
