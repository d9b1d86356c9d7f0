"""Outputs: what the recorded output tokens say of the answers in the log, and of reasoning that is not sent again.

An answer is counted twice: as output when it was written and, with reasoning that the file may not show, as a part of
the next prompt. Where the two agree in a session, the output is the price of the answer, and outputs say what the
content of answers costs: an answer without one is estimated by the ratios fitted to them. Some agents send reasoning
only until the user writes again: the first prompt of a turn then lacks all the reasoning of the turn before.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import numpy as np

from guard_core.costs import REASONING as REASONING_PART
from guard_core.estimation.intervals import Intervals
from guard_core.estimation.model_families import family_of
from guard_core.estimation.ratios import (
    MESSAGE,
    START,
    VISIBLE,
    Floats,
    Ratios,
    Start,
    estimates,
    fit,
    left_out,
)
from guard_core.ledger import Ints, Ledger, prefix_sums

# Agents that send the reasoning of the current user turn only. Source: 20 public recordings of Codex CLI. At 76 turns
# after an answer without a call the first prompt lacks 1.04 times the reasoning estimated for the turn before (median;
# quartiles 0.99 and 1.12), at 30 that begin next to a tool's result 1.02 times (0.60 and 1.12: sometimes it stays).
DROPS_REASONING = frozenset({"codex"})
# Agents that record the output of a whole answer, or else (older versions) one that is too small to be it. Source: 14
# public recordings of Claude Code 2.1.202 to 2.1.237, whose calls are forecast to 0.28 % instead of 0.51 % (mean of the
# sessions; one call ahead) where outputs are believed from the first answer on; 133 of 2.0.64 to 2.1.42 to the same. 16
# of OpenCode with GPT-5.2 and 5.3 are forecast to 0.61 % instead of 0.68 %, and 19 others to 0.56 % instead of 0.60 %.
WRITES_OUTPUTS = frozenset({"claude-code", "opencode"})
# Agents that send what their file has. Models of OpenAI take reasoning back only as they sealed it: where an answer has
# none sealed, later requests hold neither the summary that it shows nor what was counted as output. Source: 16 public
# recordings of OpenCode with GPT-5.2 and 5.4 that GitHub serves; at the median of each, prompts grow by 78 tokens less
# to 20 more than all that such an answer shows, and by 41 to 366 less than the output.
SENDS_ITS_FILE = frozenset({"opencode", "pi"})
# Tokens of output around a text or a call. Source: where nothing is hidden, the median output of ten of twelve public
# recordings of pi with GPT-5 and later has 11 or 12 more than the tokens of the answer.
FRAME = 12
BETTER = 0.9  # outputs are believed where they leave at most this share of the error that estimates leave
LEAST_MEASURED = 3  # answers that must have been measured before a session itself says whether outputs fit
LARGEST_ERROR = 2_000.0  # tokens by which one interval may speak for or against
DROP_BELIEF = 500.0  # tokens of earlier reasoning that must have been seen before the agent's habit counts for half
LEAST_DROP = 0.5  # where less of the earlier reasoning is missing, it is taken as sent
ANSWER_BELIEF = 3.0  # answers that must have been counted before their mean counts for half
TAIL = 10  # of so many answers in order, the longest counts as the one before it


class Habit(msgspec.Struct, frozen=True):
    """What is learnt once of all answers: `usual` tokens beyond the estimate of one without a recorded output, the
    `share` of the reasoning of earlier turns that prompts lack (0: it is sent again), and `ratios`, the output per unit
    of each of KINDS (per message: what comes with any answer), by which answers without a recorded output are
    estimated."""

    usual: float
    share: float
    ratios: tuple[float, ...]


@dataclass(frozen=True)
class OutputEvidence:
    """What outputs say: `tokens` per event in later prompts (-1: nothing), and what each step no longer sends. `habit`
    is None where outputs are not believed."""

    tokens: Ints
    dropped: Ints
    habit: Habit | None = None

    @classmethod
    def unknown(cls, ledger: Ledger) -> OutputEvidence:
        """Nothing is said."""
        return cls(np.full(ledger.event_count, -1, dtype=np.int64), np.zeros(ledger.step_count, dtype=np.int64))

    def over(self, estimate: Floats) -> Floats:
        """Estimates of events, and in place of answers what outputs say of them."""
        return np.where(self.tokens >= 0, self.tokens, estimate)

    def dropped_between(self, first: Ints, last: Ints) -> Ints:
        """Tokens that are not sent any more from a step after `first` to `last` on."""
        total = prefix_sums(self.dropped)
        return np.asarray(total[last + 1] - total[first + 1])


def drops_reasoning(ledger: Ledger) -> bool:
    """Is it usual for the agent or the model that the reasoning of earlier turns of the user is not counted."""
    family = family_of(ledger.main_model)
    return ledger.agent in DROPS_REASONING or (family is not None and family.drops_reasoning)


def written(ledger: Ledger) -> Ints:
    """Output tokens by answering event, -1 where none are recorded or requests leave the answer out; without what was
    reasoning where later requests hold none of it (`SENDS_ITS_FILE`)."""
    tokens = np.full(ledger.event_count, -1, dtype=np.int64)
    steps = ledger.steps
    known = (steps["output_tokens"] > 0) & (steps["response"] >= 0)
    tokens[steps["response"][known]] = steps["output_tokens"][known]
    tokens[left_out(ledger)] = -1
    if ledger.encoding and ledger.agent in SENDS_ITS_FILE:
        events, parts = ledger.events, ledger.by_event((ledger.parts["kind"] != REASONING_PART).astype(np.int64))
        plain, size = events["bytes"] - events["reasoning_bytes"], np.maximum(events["bytes"], 1)
        text = events["tokenizer_tokens"] * plain // size
        tokens = np.where(events["opaque_bytes"] > 0, tokens, np.minimum(tokens, text + FRAME * parts))
    return tokens


def without_answers(amounts: Ints, output: Ints) -> Ints:
    """The amounts of events with nothing left of answers but the message."""
    rest = amounts.copy()
    rest[output >= 0, :MESSAGE] = 0
    return rest


def believed(with_outputs: Floats, with_estimates: Floats) -> bool:
    """Do outputs explain prompts better: the errors, in tokens, of the same intervals either way."""
    return size_of(with_outputs) <= BETTER * size_of(with_estimates)


def believed_at_once(ledger: Ledger, amounts: Ints, ratios: Ratios) -> bool:
    """Are outputs believed before a session itself says whether they fit: by habit of the agent, where all together are
    no less than what the log shows of the answers."""
    output = written(ledger)
    known = output >= 0
    if ledger.agent not in WRITES_OUTPUTS or not known.any():
        return False
    return int(output[known].sum()) >= float(_priced(amounts, ratios, VISIBLE)[known].sum())


def size_of(error: Floats) -> float:
    """The sum of errors in tokens, of which no single one decides."""
    return float(np.cumsum(np.minimum(np.abs(error), LARGEST_ERROR))[-1]) if len(error) else 0.0


def answers(ledger: Ledger, amounts: Ints, ratios: Ratios, every: Intervals) -> OutputEvidence:
    """What outputs that are believed say, over `every` interval of the session.

    Answers without a recorded output cost their estimate and what the others usually cost beyond theirs.
    """
    output = written(ledger)
    known = output >= 0
    # The fit of outputs begins at the session's ratios of prompts, in which only the frame differs.
    by_output = fit(
        amounts[known], output[known], Start(np.append(ratios.kinds[:MESSAGE], START[MESSAGE]), at_level=True)
    )
    spoken = _Spoken.of(ledger, amounts, ratios, by_output)
    habit = Habit(_usual((output - spoken.whole)[known]), 1.0, tuple(by_output.tolist()))
    shortened = spoken.answers(ledger, habit)
    estimate = shortened.over(ratios.estimates(amounts, ledger.events["tool"]))
    # Where no reasoning of earlier turns was seen to be missing in prompts, the agent's habit decides.
    dropped = shortened.dropped_between(every.first, every.last)
    missing = np.clip(np.rint(every.totals(estimate)).astype(np.int64) - every.tokens, 0, dropped)
    belief = DROP_BELIEF if drops_reasoning(ledger) else 0.0
    share = (belief + int(missing.sum())) / (DROP_BELIEF + int(dropped.sum()))
    return spoken.answers(ledger, msgspec.structs.replace(habit, share=share if share >= LEAST_DROP else 0.0))


def answers_by(ledger: Ledger, amounts: Ints, ratios: Ratios, habit: Habit | None) -> OutputEvidence:
    """What outputs say by what was learnt before."""
    if habit is None:
        return OutputEvidence.unknown(ledger)
    return _Spoken.of(ledger, amounts, ratios, np.array(habit.ratios)).answers(ledger, habit)


@dataclass(frozen=True)
class _Spoken:
    """Answers by event: the recorded output, its estimate by all their content, and that of what the log shows."""

    output: Ints
    whole: Floats
    visible: Floats
    message: float  # tokens of any message besides its content

    @classmethod
    def of(cls, ledger: Ledger, amounts: Ints, ratios: Ratios, by_output: Floats) -> _Spoken:
        whole, visible = estimates(amounts, by_output), _priced(amounts, ratios, VISIBLE)
        return cls(written(ledger), whole, visible, float(ratios.kinds[MESSAGE]))

    def answers(self, ledger: Ledger, habit: Habit) -> OutputEvidence:
        responses, visible = ledger.steps["response"], self.visible
        is_answer = np.zeros(ledger.event_count, dtype=np.bool_)
        is_answer[responses[responses >= 0]] = True
        is_answer[left_out(ledger)] = False
        full = np.where(self.output >= 0, self.output, np.maximum(self.whole + habit.usual, visible))
        tokens = np.where(is_answer, np.rint(full + self.message), -1).astype(np.int64)
        if not habit.share:
            return OutputEvidence(tokens, np.zeros(ledger.step_count, dtype=np.int64), habit)
        unseen = np.rint(np.where(is_answer, np.maximum(full - visible, 0.0), 0.0)).astype(np.int64)
        before = _reasoning_before(ledger, unseen)
        dropped = np.rint(before * habit.share).astype(np.int64)
        # No later prompt holds the reasoning of the last answers of turns where reasoning is dropped.
        events = ledger.steps["response"][_turn_ends(ledger)]
        events = events[events >= 0]
        unsent = np.zeros_like(unseen)
        unsent[events] = unseen[events]
        return OutputEvidence(np.where(is_answer, tokens - unsent, -1), dropped, habit)


def _priced(amounts: Ints, ratios: Ratios, kinds: tuple[int, ...]) -> Floats:
    chosen = np.zeros_like(amounts)
    chosen[:, list(kinds)] = amounts[:, list(kinds)]
    return ratios.estimates(chosen, np.zeros(len(amounts), dtype=np.int64))


def _usual(more: Floats) -> float:
    """The mean of what answers cost beyond their estimates, believed as far as there are many."""
    if not len(more):
        return 0.0
    ordered = np.sort(more)
    ordered = np.minimum(ordered, ordered[len(more) - 1 - len(more) // TAIL])
    return float(np.cumsum(ordered)[-1]) / (len(more) + ANSWER_BELIEF)


def _turn_ends(ledger: Ledger) -> Ints:
    """The steps after which a new user turn begins with no compaction between."""
    turn, epoch = ledger.steps["turn"], ledger.steps["epoch"]
    return np.flatnonzero((turn[1:] > turn[:-1]) & (epoch[1:] == epoch[:-1]))


def _reasoning_before(ledger: Ledger, unseen: Ints) -> Ints:
    """At the first step of each turn: the reasoning of the turn before that was sent until then."""
    steps, before = ledger.steps, np.zeros(ledger.step_count, dtype=np.int64)
    ends = _turn_ends(ledger)
    if not len(ends):
        return before
    total = prefix_sums(np.where(steps["response"] >= 0, unseen[np.maximum(steps["response"], 0)], 0))
    begin = np.maximum(*(np.searchsorted(steps[name], steps[name][ends], side="left") for name in ("turn", "epoch")))
    before[ends + 1] = np.maximum(total[ends] - total[begin], 0)
    return before
