"""Codex: fires at 90 % of the window on the last count and what was added since, and keeps the user's own messages.

Source of the rules: specification of policies, section 4, and recorded runs of Codex 0.169.0 with known settings.
Tool outputs are capped when they enter the log. A compaction leaves the initial context, the newest user messages
within a budget, and a summary as the last message; every answer, call and output goes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from guard_core.costs import HAS_RESULT, MODEL, RESULT, STARTS_TURN, TEXT
from guard_core.errors import SummaryFailed
from guard_core.estimators import Heuristic
from guard_core.forms import get_form
from guard_core.ledger import Ints, Ledger
from guard_core.policies.base import Check, Decision, Point, Quiet, Run
from guard_core.policies.pieces.counters import last_counts, recorded_counts
from guard_core.policies.settings import COUNT, NUMBER, SHARE, SIZE, SWITCH, PolicyKind, Profile, Setting
from guard_core.sessions import Provenance, Session
from guard_core.summaries.base import Summary, SummaryRequest
from guard_core.trace import (
    HELD_REASONS,
    INDEX,
    NOTHING_TO_COMPACT,
    STILL_OVER,
    Column,
    CompactionRecord,
    Head,
    Pass,
    Term,
    Trace,
)
from guard_core.usage import normal
from guard_core.views import Span, Synthetic, View, content_count

BYTES_PER_TOKEN = 4  # section 4.1: ceil(bytes / 4)
PREFIX_BYTES = 320  # of the fixed text before a summary: recorded runs of 0.169.0
NO_SUMMARY_BYTES = len("(no summary available)")  # section 4.1
PROVIDER_COUNT, ESTIMATE = 1, 2
_SPEC = "specification of policies, section"


class CodexSettings(msgspec.Struct, frozen=True):
    """Sizes in tokens unless the name says bytes. `limit` is "auto", tokens or a share of the window."""

    profile: str
    limit: str
    usable_share: float
    count_pending: bool
    output_cap: int
    cap_factor: float
    user_budget: int
    summary_budget: int

    def threshold(self, window: int) -> int:
        """Tokens at which it fires: the limit set by hand, at most 90 % of the raw window."""
        raw = round(window / self.usable_share)
        most = raw * 9 // 10
        if self.limit == "auto":
            return most
        share = self.limit.endswith("%")
        return min(most, int(raw * float(self.limit[:-1]) / 100) if share else int(self.limit))

    @property
    def form(self) -> str:
        """The form in which every event enters the log; 0 tokens means that nothing is capped."""
        return f"capped:{int(self.output_cap * BYTES_PER_TOKEN * self.cap_factor)}" if self.output_cap else ""


class CodexMemory(msgspec.Struct, frozen=True):
    """What it remembers: how the history begins since the last compaction, and the provider's last count."""

    head: View = ()
    kept_from: int = 0
    summary_bytes: int = 0
    summary_text: str | None = None
    tokens: int = 0
    as_of: int = -1
    calls: int = 0


COLUMNS = (
    Column("last_prompt", "prompt tokens of the last call that the provider counted", none=0),
    Column("last_output", "output tokens of that call", none=0),
    Column("last_step", "the step of that call", "step", none=-1),
    Column("pending", "estimate of what was added to the log since that call was answered"),
    Column("counted_by", "what the decision was made on", INDEX, words=("none", "provider's count", "estimate")),
)


@dataclass(frozen=True)
class Codex:
    """The policy; see the module."""

    settings: CodexSettings
    name: str = field(default="codex", init=False)
    columns: tuple[Column, ...] = field(default=COLUMNS, init=False)
    points: tuple[Point, ...] = field(default=(Point.BEFORE_CALL,), init=False)
    state_type: type = field(default=CodexMemory, init=False)

    def estimator(self, ledger: Ledger) -> Heuristic:
        return Heuristic.of(ledger)

    def start(self) -> CodexMemory:
        return CodexMemory()

    def observe(self, state: CodexMemory, prompt_tokens: int | None, step: int) -> CodexMemory:
        if not prompt_tokens or prompt_tokens <= 0:
            return state
        return msgspec.structs.replace(state, tokens=prompt_tokens, as_of=step)

    # ---- the decision

    def decide(self, check: Check, state: CodexMemory) -> Decision:
        head = Head(state.head, state.kept_from, self.settings.form)
        view = head.at(check.ledger, check.at)
        costs = self.estimator(check.ledger)
        built, heuristic = costs.built(check.at), costs.request(view)
        numbers = self._numbers(
            check.ledger,
            np.array([check.step]),
            np.array([state.tokens]),
            np.array([state.as_of]),
            np.array([heuristic]),
        )
        threshold = self.settings.threshold(check.window)
        evidence = {
            **{name: int(values[0]) for name, values in numbers.items()},
            "contents_built": check.at,
            "contents_decided": content_count(view),
            "contents_sent": content_count(view),
            "heuristic_built": built,
            "heuristic_decided": heuristic,
            "heuristic_sent": heuristic,
            "threshold": threshold,
            "watermark": state.kept_from,
            "summary_bytes": state.summary_bytes,
        }
        decided = evidence["decision_tokens"]
        if decided < threshold:
            return Decision(view, state, evidence)
        history = _history_end(check)
        if not history:
            return Decision(view, state, {**evidence, "held": NOTHING_TO_COMPACT})
        return self._compact(check, state, head, view, history, evidence)

    def _numbers(self, ledger: Ledger, steps: Ints, tokens: Ints, as_of: Ints, heuristic: Ints) -> dict[str, Ints]:
        """The columns of the decision at some steps, from the last counts before each."""
        known = as_of >= 0
        output = np.where(known, _outputs(ledger)[as_of], 0)
        pending = np.where(known & self.settings.count_pending, self._pending(ledger, steps, as_of), 0)
        return {
            "last_prompt": np.where(known, tokens, 0),
            "last_output": output,
            "last_step": as_of,
            "pending": pending,
            "counted_by": np.where(known, PROVIDER_COUNT, ESTIMATE),
            "decision_tokens": np.where(known, tokens + output + pending, heuristic),
        }

    def _pending(self, ledger: Ledger, steps: Ints, as_of: Ints) -> Ints:
        """The estimate of the tool outputs that were added between the answer of a call and the check.

        A check before a turn comes before the user's message enters the log.
        """
        form = self.settings.form
        prefix = ledger.prefix_by(f"codex pending {form}", lambda ledger: _output_tokens(ledger, form))
        columns = ledger.steps
        begin = np.where(columns["response"][as_of] >= 0, columns["response"][as_of] + 1, columns["at"][as_of])
        same_turn = columns["turn"][steps] == columns["turn"][as_of]
        end = np.where(
            same_turn | (columns["user_event"][steps] < 0), columns["at"][steps], columns["user_event"][steps]
        )
        return np.asarray(np.maximum(prefix[end] - prefix[np.minimum(begin, end)], 0))

    # ---- the compaction

    def _compact(
        self, check: Check, state: CodexMemory, head: Head, view: View, history: int, evidence: dict[str, int]
    ) -> Decision:
        ledger, costs = check.ledger, self.estimator(check.ledger)
        old = head.at(ledger, history)
        given, dropped = self._fitting(check, old)
        summary, failed = self._summary(check, state, given, costs)
        # The recorded summaries of Codex hold the prefix already.
        prefix = 0 if check.summarizer.name == "recorded" and ledger.agent == "codex" else PREFIX_BYTES
        message = Synthetic("summary", prefix + (summary.bytes or NO_SUMMARY_BYTES), summary.text)
        mid_turn = history == check.at
        carried = self._new_history(ledger, history, message, mid_turn=mid_turn)
        memory = CodexMemory(carried, history, message.bytes, summary.text, calls=state.calls + 1)
        after = Head(carried, history, self.settings.form).at(ledger, check.at)
        sent = costs.request(after)
        over = check.usage is not None and check.usage.one(check.step, after, sent).tokens >= evidence["threshold"]
        decided, threshold = evidence["decision_tokens"], evidence["threshold"]
        record = CompactionRecord(
            step=check.step,
            reason=f"{decided:,} tokens >= threshold {threshold:,}",
            passes=(
                Pass(
                    contents_in=content_count(old),
                    tokens_in=costs.contents(old),
                    summariser_contents=content_count(given),
                    summariser_tokens=costs.contents(given),
                    summary_bytes=summary.bytes,
                    contents_after=content_count(after),
                    tokens_after=sent,
                    failed=failed,
                    empty=not summary.bytes and not failed,
                    dropped_before_summariser=dropped,
                    summariser_view=given,
                ),
            ),
            before=view,
            after=after,
            tokens_before=evidence["heuristic_decided"],
            tokens_after=sent,
            previous_summary_bytes=state.summary_bytes,
            carried=carried,
            kept_from=history,
            cut=(history, history, history),
            notes=() if mid_turn else ("before a turn: the initial context follows the summary",),
        )
        entries = {
            **evidence,
            "contents_sent": content_count(after),
            "heuristic_sent": sent,
            "fired": 1,
            "held": STILL_OVER if over else 0,
            "watermark": history,
            "summary_bytes": message.bytes,
        }
        return Decision(after, memory, entries, record)

    def _fitting(self, check: Check, view: View) -> tuple[View, int]:
        """What the summariser is sent: while the request overflows the window, the oldest item goes, with the results
        of a call that went; and how many went."""
        count = content_count(view)

        def fits(dropped: int) -> bool:
            assert check.usage is not None
            kept = _without_first(view, dropped)
            return check.usage.one(check.step, kept, self.estimator(check.ledger).request(kept)).tokens <= check.window

        if check.usage is None or count < 2 or fits(0):
            return view, 0
        low, high = 0, count - 1  # the fewest that must go lie above `low`; one item is always left
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if fits(middle) else (middle, high)
        rest = _without_first(view, high)
        flags = check.ledger.events["flags"]
        while high < count - 1 and isinstance(rest[0], Span) and flags[rest[0].start] & HAS_RESULT:
            high += 1
            rest = _without_first(view, high)
        return rest, high

    def _summary(self, check: Check, state: CodexMemory, view: View, costs: Heuristic) -> tuple[Summary, bool]:
        request = SummaryRequest(
            view=view,
            tokens=costs.contents(view),
            previous=Summary(0),  # an earlier summary is part of the history
            output_tokens=self.settings.summary_budget,
            words=self.settings.summary_budget * 3 // 4,
            call=state.calls,
            step=check.step,
            session=check.session,
            todos=check.todos,
        )
        try:
            return check.summarizer.summarise(request), False
        except SummaryFailed:
            return Summary(0), True

    def _new_history(self, ledger: Ledger, stop: int, summary: Synthetic, *, mid_turn: bool) -> View:
        """Initial context, user messages, summary: in the middle of a turn the context goes before the last user
        message, before a turn it follows the summary."""
        context = _initial_context(ledger, stop)
        users = self.user_messages(ledger, stop)
        if not mid_turn:
            return normal((*users, summary, *context))
        return normal((*users[:-1], *context, *users[-1:], summary))

    def user_messages(self, ledger: Ledger, stop: int) -> tuple[Span, ...]:
        """The newest user messages before an event within the budget, in the log's order; the one that does not fit
        is cut in its middle to what is left, and the walk ends."""
        starts = np.flatnonzero(ledger.events["flags"][:stop] & STARTS_TURN)
        sizes = ledger.prefix_by("codex user text", _user_bytes)
        left, kept = self.settings.user_budget, []
        for event in starts[::-1].tolist():
            tokens = -(-(sizes.item(event + 1) - sizes.item(event)) // BYTES_PER_TOKEN)
            if tokens > left:
                if left:
                    kept.append(Span(event, event + 1, f"cut:{left * BYTES_PER_TOKEN}"))
                break
            kept.append(Span(event, event + 1))
            left -= tokens
        return tuple(reversed(kept))

    # ---- many steps at once

    def scan(self, run: Run, start: int, stop: int, state: CodexMemory) -> Quiet | None:
        head = Head(state.head, state.kept_from, self.settings.form)
        at = run.ledger.steps["at"][start:stop]
        if (at < head.kept_from).any() or (np.diff(at) < 0).any():
            return None
        columns = self._sent(run.ledger, head, at)
        heuristics = columns["heuristic_sent"]
        counts = last_counts(run, start, stop, head, heuristics, state.tokens, state.as_of)
        numbers = self._numbers(run.ledger, np.arange(start, stop), counts.tokens[:-1], counts.as_of[:-1], heuristics)
        threshold = self.settings.threshold(run.window)
        fires = numbers["decision_tokens"] >= threshold
        first = int(np.argmax(fires))
        size = first if fires[first] else stop - start
        ended = bool(fires[first])
        constants = {"threshold": threshold, "watermark": state.kept_from, "summary_bytes": state.summary_bytes}
        columns |= numbers | {name: np.full(stop - start, value) for name, value in constants.items()}
        if size:
            state = msgspec.structs.replace(state, tokens=int(counts.tokens[size]), as_of=int(counts.as_of[size]))
        cut = {name: values[:size] for name, values in columns.items()}
        return Quiet(size, cut, counts.first(size), state, ended, head)

    def _sent(self, ledger: Ledger, head: Head, at: Ints) -> dict[str, NDArray[Any]]:
        """Contents and heuristics of requests that begin with a head."""
        costs = self.estimator(ledger)
        formed = costs.log(head.form)
        sent = costs.fixed + costs.contents(head.view) + formed[at] - formed[head.kept_from]
        contents = content_count(head.view) + at - head.kept_from
        return {
            "contents_built": at,
            "contents_decided": contents,
            "contents_sent": contents,
            "heuristic_built": costs.prefix[at] + costs.fixed,
            "heuristic_decided": sent,
            "heuristic_sent": sent,
        }

    def shadow(self, run: Run, trace: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        steps = run.ledger.steps
        tokens, as_of = recorded_counts(steps["prompt_tokens"])
        heuristics = trace["heuristic_decided"]
        numbers = self._numbers(run.ledger, np.arange(len(tokens)), tokens, as_of, heuristics)
        threshold = self.settings.threshold(run.window)
        fired = numbers["decision_tokens"] >= threshold
        return {**numbers, "threshold": np.full(len(tokens), threshold), "fired": fired.astype(np.int64)}

    def explain(self, trace: Trace, step: int) -> tuple[Term, ...]:
        at = {item.name: int(trace.columns[item.name][step]) for item in trace.all_columns if not item.real}
        decided, threshold = at["decision_tokens"], at["threshold"]
        if at["counted_by"] == PROVIDER_COUNT:
            last = at["last_step"]
            terms = [
                Term("last prompt tokens", at["last_prompt"], source=_source(trace, last), as_of=last),
                Term("output tokens of that call", at["last_output"], source=Provenance.PROVIDER, as_of=last),
                Term(
                    "added since",
                    at["pending"],
                    source=Provenance.RECOMPUTED,
                    as_of=step,
                    expression=_PENDING_WORDS[self.settings.count_pending],
                ),
                Term(
                    "decision tokens",
                    decided,
                    source=Provenance.RECOMPUTED,
                    as_of=step,
                    expression=f"{at['last_prompt']:,} + {at['last_output']:,} + {at['pending']:,}",
                ),
            ]
        else:
            text = "no call has a provider's count: UTF-8 bytes // 4 of the request"
            terms = [Term("decision tokens", decided, source=Provenance.ASSUMED, as_of=step, expression=text)]
        raw = round(trace.window / self.settings.usable_share)
        rule = (
            f"{raw:,} x 9 // 10" if self.settings.limit == "auto" else f"min({self.settings.limit}, {raw:,} x 9 // 10)"
        )
        sign = ">=" if decided >= threshold else "<"
        return (
            *terms,
            Term("context window", trace.window, as_of=step),
            Term("threshold", threshold, source=Provenance.RECOMPUTED, as_of=step, expression=rule),
            Term(
                "verdict",
                float(at["fired"]),
                "",
                Provenance.RECOMPUTED,
                step,
                f"{decided:,} {sign} {threshold:,}: {_verdict(at)}",
            ),
        )


_PENDING_WORDS = {
    True: "ceil(length of each tool output as a JSON string / 4)",
    False: "this version does not count it",
}
_SOURCES = (Provenance.ASSUMED, Provenance.PROVIDER, Provenance.MODELLED, Provenance.ASSUMED)  # by PROMPT_SOURCES


def _source(trace: Trace, step: int) -> Provenance:
    return _SOURCES[int(trace.columns["prompt_tokens_source"][step])]


def _verdict(at: Mapping[str, int]) -> str:
    held = HELD_REASONS[at["held"]]
    if at["fired"]:
        return f"it compacts, but {held}" if held else "it compacts"
    return f"it does not compact: {held}" if held else "it does not fire"


def _history_end(check: Check) -> int:
    """The events that a compaction replaces: all at a check between two calls of a turn; before a turn, those before
    the user's message."""
    steps = check.ledger.steps
    user, step = int(steps["user_event"][check.step]), check.step
    begins = step == 0 or int(steps["turn"][step]) != int(steps["turn"][step - 1])
    return user if begins and 0 <= user < check.at else check.at


def _initial_context(ledger: Ledger, stop: int) -> tuple[Span, ...]:
    """What stands in the log before the first message of the user: environment, instructions."""
    flags = ledger.events["flags"][:stop]
    turns = np.flatnonzero(flags & STARTS_TURN)
    first = int(turns[0]) if len(turns) else 0
    own = np.flatnonzero(flags[:first] & (MODEL | HAS_RESULT))
    first = int(own[0]) if len(own) else first
    return (Span(0, first),) if first else ()


def _outputs(ledger: Ledger) -> Ints:
    """Output tokens of every call: the provider's count, else the bytes of the answer // 4."""
    output, response = ledger.steps["output_tokens"], ledger.steps["response"]
    size = np.append(ledger.events["bytes"], 0)[response]
    return np.asarray(np.where(output >= 0, output, size // BYTES_PER_TOKEN))


def _output_tokens(ledger: Ledger, form: str) -> Ints:
    """The estimate of each event's tool outputs as they are recorded: ceil(characters of the JSON string / 4)."""
    parts = ledger.parts
    chars = parts["json_chars"]
    if form:
        new = get_form(form).sizes(parts["bytes"], parts["chars"])
        chars = np.where(new < parts["bytes"], chars * new // np.maximum(parts["bytes"], 1), chars)
    return ledger.by_event(np.where(parts["kind"] == RESULT, -(-chars // BYTES_PER_TOKEN), 0))


def _user_bytes(ledger: Ledger) -> Ints:
    """UTF-8 bytes of the texts of each event."""
    return ledger.by_event(np.where(ledger.parts["kind"] == TEXT, ledger.parts["bytes"], 0))


def _without_first(view: View, count: int) -> View:
    """The view without its first messages."""
    rest = list(view)
    while count and rest:
        segment = rest[0]
        size = segment.stop - segment.start if isinstance(segment, Span) else 1
        if size <= count:
            rest.pop(0)
            count -= size
        else:
            assert isinstance(segment, Span)
            rest[0] = Span(segment.start + count, segment.stop, segment.form)
            count = 0
    return tuple(rest)


def _of_session(session: Session) -> dict[str, Any]:
    """What a recording of Codex settles: its window is the usable part, 95 %, of the model's."""
    return (
        {"usable_share": 0.95}
        if session.format == "codex" and session.window is not None and session.window.source is Provenance.RECORDER
        else {}
    )


KIND = PolicyKind(
    "codex",
    "Codex",
    "Compacts at 90 % of the window, counting what was added since the last call; keeps user messages and a summary.",
    lambda **values: Codex(CodexSettings(**values)),
    (
        Setting(
            "limit",
            "Limit",
            SIZE,
            "auto",
            "auto (90 % of the window), tokens, or a share such as 80%",
            f"{_SPEC} 4.1",
            unit="tokens",
            main=True,
            sweep=("auto", "80%", "70%", "60%", "50%"),
        ),
        Setting(
            "user_budget",
            "User messages",
            COUNT,
            20_000,
            "budget for the newest user messages, which are kept",
            f"{_SPEC} 4.1",
            unit="tokens",
            main=True,
        ),
        Setting(
            "output_cap",
            "Output cap",
            COUNT,
            10_000,
            "maximum of each tool output when it is recorded (0: none)",
            f"{_SPEC} 4.1",
            unit="tokens",
            main=True,
        ),
        Setting(
            "cap_factor",
            "Cap factor",
            NUMBER,
            1.2,
            "multiplies the output cap",
            f"{_SPEC} 4.1",
            most=10,
            profiles={"seed": 1.0},
        ),
        Setting(
            "count_pending",
            "Count pending",
            SWITCH,
            True,
            "tool outputs since the last call are counted, too",
            f"{_SPEC} 4.1",
            profiles={"seed": False},
        ),
        Setting(
            "usable_share",
            "Usable share",
            SHARE,
            1.0,
            "the window given here as a share of the raw window (0.95 in Codex files)",
            "recorded runs of 0.169.0",
            least=0.01,
        ),
        Setting(
            "summary_budget",
            "Summary budget",
            COUNT,
            4_000,
            "the size that a share of the summary budget refers to (Codex has no limit)",
            "ours",
            unit="tokens",
            least=1,
        ),
    ),
    (
        Profile("current", "mid-2026: counts what was added since the last call, too"),
        Profile("seed", "November 2025: counts the last call alone"),
    ),
    of_session=_of_session,
)
