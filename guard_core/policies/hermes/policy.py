"""Hermes: what it sends at a step, and what a compaction leaves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from guard_core.errors import SummaryFailed
from guard_core.estimators import Heuristic
from guard_core.ledger import Ints, Ledger
from guard_core.policies.base import Check, Decision, Point, Quiet, Run
from guard_core.policies.hermes import cut as cuts
from guard_core.policies.hermes import triggers
from guard_core.policies.hermes.explaining import explain
from guard_core.policies.hermes.messages import (
    ASSISTANT,
    BY_ROLE,
    MERGED,
    SYSTEM_ROLE,
    TOOL,
    USER,
    Estimates,
    Messages,
    list_messages,
    take,
    without_orphans,
)
from guard_core.policies.hermes.settings import HermesMemory, HermesSettings
from guard_core.policies.pieces.counters import last_counts
from guard_core.summaries.base import Summary, SummaryRequest
from guard_core.trace import (
    NOTHING_TO_COMPACT,
    STILL_OVER,
    SUMMARISER_FAILED,
    Column,
    CompactionRecord,
    Head,
    Pass,
    Term,
    Trace,
    head_of,
)
from guard_core.views import Synthetic, View, content_count

PREFLIGHT_PASSES = 3  # section 1.1 of the specification of policies
PROGRESS = 0.95  # of the estimate before a pass: what counts as progress although no message went (0.19.0)
MOST_QUOTED, QUOTE_FRAME = 1_400, 153  # bytes of the user's last words in a summary, and around them (0.19.0)
FALLBACK_BYTES = 8_000  # most of the summary that is made without a model (section 1.2)
ROLE_NUMBERS = {USER: 1, ASSISTANT: 2}  # in the words of the column summary_role
MERGED_NUMBER = 3
NO_TIMES = "the recording has no times, so a failed summary has no cool-down"


class Compacted(NamedTuple):
    """What a pass gave: the view and state after it, and what was done; `record` is None where nothing was."""

    view: View
    state: HermesMemory
    record: Pass | None = None
    cut: tuple[int, int, int] | None = None
    held: int = 0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Hermes:
    """The policy; see the package."""

    settings: HermesSettings
    name: str = field(default="hermes", init=False)
    columns: tuple[Column, ...] = field(default=triggers.COLUMNS, init=False)
    points: tuple[Point, ...] = field(default=(Point.BEFORE_CALL, Point.ON_OVERFLOW), init=False)
    state_type: type = field(default=HermesMemory, init=False)

    def estimator(self, ledger: Ledger) -> Heuristic:
        return Heuristic.of(ledger)

    def start(self) -> HermesMemory:
        return HermesMemory()

    def observe(self, state: HermesMemory, prompt_tokens: int | None, step: int) -> HermesMemory:
        return triggers.after_count(state, prompt_tokens, step) if prompt_tokens and prompt_tokens > 0 else state

    # ---- the decision

    def decide(self, check: Check, state: HermesMemory) -> Decision:
        threshold = self.settings.threshold(check.window)
        if state.threshold != threshold:
            state = msgspec.structs.replace(state, threshold=threshold)
        costs, estimates = self.estimator(check.ledger), Estimates(check.ledger, self.settings)
        view = Head(state.head, state.kept_from).at(check.ledger, check.at)
        steps = self._steps(check, estimates, costs, view)
        known = triggers.one_known(state)
        judged = triggers.judge(self.settings, threshold, steps, known)
        heuristic = costs.request(view)
        evidence = {
            **{name: int(values[0]) for name, values in triggers.columns_of(steps, known, judged).items()},
            "contents_built": check.at,
            "contents_decided": content_count(view),
            "contents_sent": content_count(view),
            "heuristic_built": costs.built(check.at),
            "heuristic_decided": heuristic,
            "heuristic_sent": heuristic,
            "threshold": threshold,
            "watermark": state.watermark,
            "summary_bytes": state.summary_bytes,
            "summary_role": state.summary_role,
        }
        if judged.ratchets[0]:
            state = msgspec.structs.replace(state, fitted_estimate=max(int(known.baseline[0]), int(steps.estimates[0])))
        if check.point is not Point.ON_OVERFLOW and not judged.fires[0]:
            return Decision(view, state, evidence)
        return self._act(check, state, view, estimates, costs, evidence)

    def _steps(self, check: Check, estimates: Estimates, costs: Heuristic, view: View) -> triggers.Steps:
        rows, chars = np.array([check.step]), np.array([estimates.request_chars(view)])
        return triggers.steps_of(check.ledger, rows, chars, costs.fixed, np.array([content_count(view)]))

    def _act(
        self,
        check: Check,
        state: HermesMemory,
        view: View,
        estimates: Estimates,
        costs: Heuristic,
        evidence: dict[str, int],
    ) -> Decision:
        """The checks of one step, one after the other, each on what the one before it left."""
        before, first = view, state
        done: list[Compacted] = []
        trigger = 0

        def judged(state: HermesMemory, view: View) -> triggers.Judgement:
            steps = self._steps(check, estimates, costs, view)
            return triggers.judge(self.settings, state.threshold, steps, triggers.one_known(state))

        def compact(number: int, *, counts: bool) -> Compacted:
            nonlocal state, view, trigger
            if counts:
                turn = int(check.ledger.steps["turn"][check.step])
                attempts = state.attempts if state.turn == turn else 0
                state = msgspec.structs.replace(state, turn=turn, attempts=attempts + 1)
            pass_ = self._pass(check, state, view, estimates, costs)
            done.append(pass_)
            trigger = trigger or (number if pass_.record else 0)
            view, state = pass_.view, pass_.state
            return pass_

        if check.point is Point.ON_OVERFLOW:
            if judged(state, view).recovers[0]:
                compact(triggers.OVERFLOW, counts=True)
        else:
            if judged(state, view).after_results[0]:
                compact(triggers.AFTER_RESULTS, counts=False)
            if judged(state, view).before_turn[0]:
                self._before_turn(compact, lambda: (view, state), judged, estimates, costs)
            while judged(state, view).before_call[0]:
                compact(triggers.BEFORE_CALL, counts=True)
        made = [pass_ for pass_ in done if pass_.record is not None]
        held = done[-1].held if done else NOTHING_TO_COMPACT
        if not made:
            return Decision(view, state, {**evidence, "held": held})
        return self._decision(check, first, before, view, state, made, {**evidence, "trigger": trigger}, costs)

    def _before_turn(self, compact: Any, now: Any, judged: Any, estimates: Estimates, costs: Heuristic) -> None:
        """Up to three passes before a turn, as long as each makes progress and the estimate is over the threshold."""
        for _ in range(PREFLIGHT_PASSES):
            view, _ = now()
            count, tokens = content_count(view), _estimate(estimates, costs, view)
            pass_ = compact(triggers.BEFORE_TURN, counts=False)
            view, state = now()
            left = _estimate(estimates, costs, view)
            progress = content_count(view) < count or (not self.settings.is_seed and left < tokens * PROGRESS)
            blocked = not self.settings.is_seed and max(state.ineffective, state.fallbacks) >= triggers.MOST_STRIKES
            if pass_.record is None or not progress or blocked or left < state.threshold:
                return

    def _decision(
        self,
        check: Check,
        first: HermesMemory,
        before: View,
        view: View,
        state: HermesMemory,
        made: list[Compacted],
        evidence: dict[str, int],
        costs: Heuristic,
    ) -> Decision:
        sent = costs.request(view)
        threshold, decided = evidence["threshold"], evidence["decision_tokens"]
        over = check.usage is not None and check.usage.one(check.step, view, sent).tokens >= threshold
        refused = check.point is Point.ON_OVERFLOW
        record = CompactionRecord(
            step=check.step,
            reason="the provider refused the request" if refused else f"{decided:,} tokens >= threshold {threshold:,}",
            passes=tuple(pass_.record for pass_ in made if pass_.record is not None),
            before=before,
            after=view,
            tokens_before=evidence["heuristic_decided"],
            tokens_after=sent,
            previous_summary_bytes=first.summary_bytes,
            carried=state.head,
            kept_from=state.kept_from,
            point=check.point.value if refused else "",
            cut=made[-1].cut,
            notes=tuple(dict.fromkeys(note for pass_ in made for note in pass_.notes)),
        )
        entries = {
            **evidence,
            "contents_sent": content_count(view),
            "heuristic_sent": sent,
            "fired": 1,
            "held": STILL_OVER if over else 0,
            "watermark": state.watermark,
            "summary_bytes": state.summary_bytes,
            "summary_role": state.summary_role,
        }
        return Decision(view, state, entries, record)

    # ---- one pass

    def _pass(self, check: Check, state: HermesMemory, view: View, estimates: Estimates, costs: Heuristic) -> Compacted:
        """Prune, cut, summarise, put together."""
        settings, ledger = self.settings, check.ledger
        messages = list_messages(estimates, view)
        if len(messages) <= cuts.least_messages(messages, settings, state.compactions):
            return self._nothing(view, state)
        budget = settings.tail_budget(check.window)
        boundary = cuts.prune_boundary(messages, settings, budget)
        places = np.arange(len(messages))
        messages = replace(messages, tokens=np.where(places < boundary, messages.pruned, messages.tokens))
        start = cuts.head_end(messages, settings, state.compactions)
        if start >= len(messages):
            return self._nothing(view, state)
        cut = cuts.tail_cut(messages, start, settings, budget)
        if start >= cut.anchored:
            return self._nothing(view, state)
        newest = np.flatnonzero(messages.is_summary[: cut.anchored])
        since = start if settings.is_seed or not len(newest) else max(start, int(newest[-1]) + 1)
        given = take(ledger, view, messages, range(since, cut.anchored), boundary)
        summary, failed = self._summary(check, state, given, estimates, costs)
        cooling = bool(triggers.is_cooling(state.cooldown_until, _time(check)))
        if failed and not cooling:
            state = msgspec.structs.replace(state, cooldown_until=self._cooldown(check))
        if failed and settings.abort_on_failure and not settings.is_seed:
            return Compacted(view, state, held=SUMMARISER_FAILED)
        quoted = 0 if settings.is_seed else _quoted(ledger, messages, since, cut.anchored)
        text = self._text(check, summary, failed, given, cut.anchored - start, quoted, estimates)
        after, role = self._layout(ledger, view, messages, start, cut.anchored, boundary, text, estimates)
        record = Pass(
            contents_in=content_count(view),
            tokens_in=costs.contents(view),
            summariser_contents=content_count(given),
            summariser_tokens=costs.contents(given),
            summary_bytes=summary.bytes,
            contents_after=content_count(after),
            tokens_after=costs.request(after),
            failed=failed,
            fallback=failed,
            summariser_view=given,
        )
        state = self._after(check, state, after, text, summary, role, failed, messages, cut.anchored, estimates, costs)
        events = tuple(_event_at(messages, index, check.at) for index in cut)
        notes = (NO_TIMES,) if failed and _time(check) < 0 else ()
        return Compacted(after, state, record, (events[0], events[1], events[2]), notes=notes)

    def _nothing(self, view: View, state: HermesMemory) -> Compacted:
        if not self.settings.is_seed:
            state = msgspec.structs.replace(state, ineffective=state.ineffective + 1)
        return Compacted(view, state, held=NOTHING_TO_COMPACT)

    def _cooldown(self, check: Check) -> int:
        time = _time(check)
        return time + self.settings.cooldown_seconds * 1000 if time >= 0 else -1

    def _summary(
        self, check: Check, state: HermesMemory, given: View, estimates: Estimates, costs: Heuristic
    ) -> tuple[Summary, bool]:
        """The summary, and whether there is none: it failed, was empty, or the last one failed a moment ago."""
        if triggers.is_cooling(state.cooldown_until, _time(check)):
            return Summary(0), True
        budget = self.settings.summary_budget(check.window, -(-estimates.request_chars(given) // 4))
        request = SummaryRequest(
            view=given,
            tokens=costs.contents(given),
            previous=Summary(state.summary_bytes, state.summary_text),
            output_tokens=budget,
            words=budget * 3 // 4,
            call=state.calls,
            step=check.step,
            session=check.session,
            todos=check.todos,
        )
        try:
            summary = check.summarizer.summarise(request)
        except SummaryFailed:
            return Summary(0), True
        return summary, not summary.bytes

    def _text(
        self, check: Check, summary: Summary, failed: bool, given: View, removed: int, quoted: int, estimates: Estimates
    ) -> Summary:
        """What takes the place of the summarised messages: the summary in its frame, `quoted` bytes of which quote the
        user. A recorded summary of Hermes has its frame already."""
        if failed and self.settings.is_seed:
            marker = f"[{removed} earlier messages were removed; no summary of them could be made.]"  # ours
            return Summary(len(marker), marker)
        if failed:
            size = min(FALLBACK_BYTES, estimates.request_chars(given))
            return Summary(size + self.settings.summary_frame)
        recorded = check.summarizer.name == "recorded" and check.ledger.agent == "hermes"
        return Summary(summary.bytes + (0 if recorded else self.settings.summary_frame + quoted), summary.text)

    def _layout(
        self,
        ledger: Ledger,
        view: View,
        messages: Messages,
        start: int,
        end: int,
        boundary: int,
        text: Summary,
        estimates: Estimates,
    ) -> tuple[View, int]:
        """Head, summary and tail as a view, and the summary's role; MERGED_NUMBER where it is in the first of the tail.

        Where the user's words are in none of them, the last message of the user goes before the first answer that does
        not follow one (current).
        """
        chosen = without_orphans(estimates, messages, [*range(start), *range(end, len(messages))])
        head, tail = [index for index in chosen if index < start], [index for index in chosen if index >= end]
        role = summary_role(messages, start, end, forced=not self.settings.is_seed)
        number = MERGED_NUMBER if role is None else ROLE_NUMBERS[role]
        lost = None if self.settings.is_seed else _lost_request(messages, chosen)
        if lost is not None:
            place = _place_for_request(messages, head, tail, role)
            if place <= len(head):
                head.insert(place, lost)
            else:
                tail.insert(place - len(head) - (role is not None), lost)
        before = take(ledger, view, messages, head, boundary)
        behind = take(ledger, view, messages, tail, boundary)
        summary = Synthetic(MERGED if role is None else BY_ROLE[role], text.bytes, text.text)
        first = behind[0] if behind else None
        if role is None and isinstance(first, Synthetic):  # merged into an earlier summary
            summary, behind = Synthetic(first.kind, text.bytes + first.bytes), behind[1:]
        return (*before, summary, *behind), number

    def _after(  # noqa: PLR0913, PLR0917 - all that a pass may change of the memory
        self,
        check: Check,
        state: HermesMemory,
        after: View,
        text: Summary,
        summary: Summary,
        role: int,
        failed: bool,
        messages: Messages,
        end: int,
        estimates: Estimates,
        costs: Heuristic,
    ) -> HermesMemory:
        """The state after a pass. A failed summary leaves the former one as what the next one starts from."""
        head = head_of(after, check.at)
        if head.form:  # later events are sent as they are
            head = Head(after, check.at)
        current = not self.settings.is_seed
        return msgspec.structs.replace(
            state,
            head=head.view,
            kept_from=head.kept_from,
            summary_bytes=text.bytes,
            summary_text=state.summary_text if failed else summary.text,
            calls=state.calls + 1,
            compactions=state.compactions + 1,
            tokens=-1 if current else 0,
            as_of=-1,
            awaiting=current,
            verifying=current,
            fallbacks=state.fallbacks + 1 if failed else 0,
            compacted_estimate=_estimate(estimates, costs, after),
            cooldown_until=state.cooldown_until if failed else -1,
            watermark=_event_at(messages, end, check.at),
            summary_role=role,
        )

    # ---- many steps at once

    def scan(self, run: Run, start: int, stop: int, state: HermesMemory) -> Quiet | None:
        ledger, head = run.ledger, Head(state.head, state.kept_from)
        at = ledger.steps["at"][start:stop]
        if (at < head.kept_from).any() or (np.diff(at) < 0).any():
            return None
        threshold = self.settings.threshold(run.window)
        costs, estimates = self.estimator(ledger), Estimates(ledger, self.settings)
        columns = self._sent(costs, head, at)
        plain = estimates.chars[""]
        chars = estimates.request_chars(head.view) + plain[at] - plain[head.kept_from]
        steps = triggers.steps_of(ledger, np.arange(start, stop), chars, costs.fixed, columns["contents_sent"])
        counts = last_counts(run, start, stop, head, columns["heuristic_sent"], state.tokens, state.as_of)
        ahead = triggers.run_ahead(state, counts, start, steps, threshold)
        judged = triggers.judge(self.settings, threshold, steps, ahead.known)
        ends = judged.fires | judged.odd | (judged.recovers & (counts.counted.tokens > run.window))
        first = int(np.argmax(ends))
        ended = bool(ends[first])
        size = first if ended else stop - start
        constants = {
            "threshold": threshold,
            "watermark": state.watermark,
            "summary_bytes": state.summary_bytes,
            "summary_role": state.summary_role,
        }
        columns |= triggers.columns_of(steps, ahead.known, judged)
        columns |= {name: np.full(stop - start, value) for name, value in constants.items()}
        if size:
            state = msgspec.structs.replace(ahead.after(state, size), threshold=threshold)
        cut = {name: values[:size] for name, values in columns.items()}
        return Quiet(size, cut, counts.first(size), state, ended, head)

    def _sent(self, costs: Heuristic, head: Head, at: Ints) -> dict[str, NDArray[Any]]:
        """Contents and heuristics of requests that begin with a head."""
        sent = costs.fixed + costs.contents(head.view) + costs.prefix[at] - costs.prefix[head.kept_from]
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
        return triggers.recorded_decisions(run, trace, self.settings, self.settings.threshold(run.window))

    def explain(self, trace: Trace, step: int) -> tuple[Term, ...]:
        return explain(self.settings, trace, step)


def summary_role(messages: Messages, start: int, end: int, *, forced: bool) -> int | None:
    """The role of a summary between two messages; None where it is merged into the one behind it.

    `forced` (current): it speaks as the user behind the system message, or where no message of the user stays.
    """
    before = messages.role.item(start - 1) if start else USER
    behind = messages.role.item(end) if end < len(messages) else USER
    others = np.concatenate((messages.role[:start], messages.role[end:]))
    leads = forced and (before == SYSTEM_ROLE or not (others == USER).any())
    role = USER if before in (ASSISTANT, TOOL) or leads else ASSISTANT
    if role != behind:
        return role
    flipped = ASSISTANT if role == USER else USER
    if flipped != before and not leads:
        return flipped
    return None if end < len(messages) else role


def _place_for_request(messages: Messages, head: list[int], tail: list[int], role: int | None) -> int:
    """Where the user's last message goes back: before the first answer that does not follow a message of the user."""
    roles = messages.role[head].tolist() + ([] if role is None else [role]) + messages.role[tail].tolist()
    answers = (k for k, value in enumerate(roles) if value == ASSISTANT and (not k or roles[k - 1] != USER))
    return next(answers, len(roles))


def _lost_request(messages: Messages, chosen: list[int]) -> int | None:
    """The user's last message where none of them is among the chosen."""
    requests = (messages.role == USER) & ~messages.is_summary
    if requests[chosen].any() or not requests.any():
        return None
    return int(np.flatnonzero(requests)[-1])


def _quoted(ledger: Ledger, messages: Messages, start: int, stop: int) -> int:
    """Bytes of the user's last words among some messages as a summary quotes them, with what is around them."""
    requests = messages.event[start:stop][(messages.role[start:stop] == USER) & ~messages.is_summary[start:stop]]
    sizes = ledger.events["request_bytes"][requests]
    sizes = sizes[sizes > 0]
    return min(int(sizes[-1]), MOST_QUOTED) + QUOTE_FRAME if len(sizes) else 0


def _event_at(messages: Messages, index: int, at: int) -> int:
    """The event of the log that a message is, or the next one is where it is a summary."""
    events = messages.event[index:]
    events = events[events >= 0]
    return int(events[0]) if len(events) else at


def _estimate(estimates: Estimates, costs: Heuristic, view: View) -> int:
    return costs.fixed + -(-estimates.request_chars(view) // 4)


def _time(check: Check) -> int:
    """The time of the newest event in the log in milliseconds, -1: not recorded."""
    return int(check.ledger.events["time_ms"][check.at - 1]) if check.at else -1
