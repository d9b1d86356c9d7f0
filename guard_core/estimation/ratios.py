"""Ratios: how many prompt tokens a session's provider counts per lexical token of each kind of content, and each tool.

The requests of a session mix all kinds, so the ratios are found together: least squares over the measured intervals,
where outliers (content that is not in the recording) count less and kinds that hardly occur keep their starting ratio
at the session's own level. Results of one tool are of one sort (code, tables, logs), so each tool then has a factor.

Ratios decide tokens, and equal sessions must give equal tokens on every machine: the arithmetic here is whole numbers
and plain elementwise floats in a fixed order, never a linear algebra library, whose last bits differ by processor.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from guard_core.costs import HAS_MEDIA, MODEL
from guard_core.estimation.model_families import family_of
from guard_core.ledger import Ints, Ledger

Floats = NDArray[np.float64]
Factors = tuple[tuple[int, float], ...]  # of single tools, by tool key

KINDS = ("user text", "model text", "reasoning", "tool calls", "tool results", "media", "opaque reasoning", "message")
TEXT_KINDS = 5  # the first five are measured in lexical tokens (or in a tokenizer's)
MODEL_TEXT = KINDS.index("model text")
REASONING = KINDS.index("reasoning")
RESULTS = KINDS.index("tool results")
VISIBLE = tuple(kind for kind in range(TEXT_KINDS) if kind != REASONING)
OPAQUE = KINDS.index("opaque reasoning")
MESSAGE = KINDS.index("message")

# Where nothing is measured: tokens per lexical token of the text kinds, per picture (Anthropic: width x height / 750,
# at most about 1,600), per opaque byte, per message. Source: medians of the ratios fitted to 76 recordings, most of
# them public ones of Claude Code and Codex, rounded. Reasoning: of 0.7, 1.2 and 1.5, tried on 96 public recordings of
# Claude Code, 1.2 has the least errors one, ten and fifty calls ahead together.
START = np.array([1.0, 1.25, 1.2, 1.3, 1.2, 1_200.0, 0.14, 20.0])
# Agents whose models count text otherwise than that or than their family: the factor on the text kinds. Source: the
# median of the levels measured in ten recordings of Codex CLI, 0.79 to 0.84.
AGENT_LEVELS = {"codex": 0.82}
# Tokens of a message besides its content where that is not as usual: reminders that no file holds, framing of tools.
# Source: fitted over 2,919 intervals of 57 public recordings of Claude Code with one model (50; other models 33 to 67),
# and three of Codex CLI (0 to 11), rounded. OpenCode's are as usual: 1 to 44 in eight public recordings (median 15).
AGENT_MESSAGES = {"claude-code": 50.0, "codex": 10.0}
# Agents whose requests hold no reasoning though their files show it: the tokens per lexical token of what is shown.
# Source: fitted to four public recordings of Gemini CLI with Gemini 3 Flash, -0.03 to 0.19: it writes summaries of
# thoughts beside the content and sends the content. Three others, not among them, are forecast one call ahead to 0.42 %
# instead of 0.75 % by it (mean).
AGENT_REASONING = {"gemini-cli": 0.0}
# Agents that leave answers of reasoning alone out of later requests, such as those that reached the longest output
# while the model thought. Source: all five in 75 public recordings of Claude Code (they are in two, of one user), of
# 64,000 tokens each: the next prompts are 109 tokens smaller to 78 larger.
LEAVES_OUT_THOUGHTS = frozenset({"claude-code"})
# Encrypted reasoning is that which the event may show in words, as base64: four bytes for three. Source: 13 public
# recordings of Claude models whose reasoning is shown and signed: 0.55 to 0.75 bytes of words per signed byte where all
# of it is shown, and 0.3 where it is shown in part.
SIGNED, SHOWN = 4, 3
# How much content the starting ratio is worth against what is measured (lexical tokens, pictures, bytes, messages).
BELIEF = np.array([800.0, 800.0, 800.0, 800.0, 800.0, 3.0, 3_000.0, 24.0])
HIGHEST = np.array([8.0, 8.0, 8.0, 8.0, 8.0, 20_000.0, 2.0, 200.0])
LEVEL_BELIEF = 5_000.0  # tokens that must have been measured before the session's own level counts for half
# Intervals that must have been measured before it counts for half of that: a few may hold content that the file lacks.
# Source: of 0 and 10, tried on 58 public recordings and 14 samples; with 0, 24 of these recordings have a median
# error of 9.0 instead of 4.6 % fifty calls ahead, and the other 34 are as good.
LEVEL_INTERVALS = 10
MOST_INTERVALS = 4_000  # ratios of longer sessions are fitted over so many intervals, evenly spaced
TOOL_SHARE = 0.6  # an interval measures a tool where the tool's results are this much of it
TOOL_BELIEF = 4_000.0  # tokens of a tool that must have been measured before its own factor counts for half
TOOL_LOWEST, TOOL_HIGHEST = 0.5, 2.0
_OUTLIER = 0.25  # relative error from which an interval counts less
_FLOOR = 40.0  # tokens of error that any interval may have
_ROUNDS = 6
_DIGITS = 6  # ratios are whole millionths, so that estimates are exact sums
_MICRO = 10**_DIGITS


class Start(NamedTuple):
    """What is believed before anything is measured: the ratios, and the weight of that belief (1: as
    BELIEF and LEVEL_BELIEF say). `at_level`: are they those of this session, so that it has no level beside them."""

    ratios: Floats
    weight: float = 1.0
    at_level: bool = False


USUAL_START = Start(START)
# Where counts follow characters: one costs as much as another, and counts are exact but for rounding and framing, so
# that a few of them say more than what is usual. Source of the weight: of 1, 0.1, 0.03, 0.01, 0.003 and 0.001, tried on
# ten samples with such counts and on ten public recordings whose counts were replaced by such ones, of texts and of
# JSON. The samples alone would have less (medians one call ahead: 0.32, 0.30, 0.22, 0.18, 0.16 and 0.16 %); with less
# than 0.01 the mean error of the replaced counts of JSON rises (0.248 to 0.253 %). All these are in sample.
EVEN_START = Start(np.concatenate([np.ones(TEXT_KINDS), START[TEXT_KINDS:]]), weight=0.01)
# Where text is counted by the tokenizer of the session's model: a token costs one, and a message 6 more. Source: of 6
# and 9, tried on 73 public recordings of Codex CLI, OpenCode and pi with models of OpenAI, 6 has the lower median error
# one call ahead (0.13 instead of 0.15 %, in sample): a result has 9 tokens besides its text, an answer 2 besides its
# output. The weight is ours, so that content that no file holds does not change what a token costs.
EXACT_MESSAGE, EXACT_WEIGHT = 6.0, 20.0


@dataclass(frozen=True)
class Ratios:
    """Tokens per unit of each of KINDS, and factors of single tools on the ratio of tool results."""

    kinds: Floats
    tools: Factors = ()

    def estimates(self, amounts: Ints, tools: Ints) -> Floats:
        """Tokens of each row of amounts, which holds the result of the tool given: an exact sum in millionths."""
        total = _micro(amounts, self.kinds)
        for key, factor in self.tools:
            extra = round(float(self.kinds[RESULTS]) * (factor - 1.0) * _MICRO)
            total += np.where(tools == key, amounts[:, RESULTS] * extra, 0)
        return np.asarray(total / _MICRO)

    def scaled(self, factor: float) -> Ratios:
        """The same for texts measured in another unit."""
        kinds = self.kinds.copy()
        kinds[:TEXT_KINDS] *= factor
        return Ratios(np.round(kinds, _DIGITS), self.tools)


STARTING = Ratios(START)


def content(ledger: Ledger, weights: Ints | None = None) -> Ints:
    """How much of every kind each event holds: one row per event, one column per entry of KINDS; nothing where requests
    leave it out."""
    if weights is None:
        amounts = ledger.of_events("content", lambda: content_of(ledger.events))
    else:
        amounts = content_of(ledger.events, weights)
    omitted = left_out(ledger)
    if len(omitted):
        amounts = amounts.copy()
        amounts[omitted] = 0
    return amounts


def left_out(ledger: Ledger) -> Ints:
    """The answers of reasoning alone that the agent leaves out of requests; one of which another event of the model is
    the rest is none."""
    if ledger.agent not in LEAVES_OUT_THOUGHTS:
        return np.zeros(0, dtype=np.int64)
    events, responses = ledger.events, ledger.steps["response"]
    is_answer = np.zeros(ledger.event_count + 1, dtype=np.bool_)
    is_answer[responses[responses >= 0]] = True
    is_rest = np.append((events["flags"] & MODEL) > 0, False) & ~is_answer
    thoughts = events["reasoning_bytes"] + events["opaque_bytes"]
    is_thought = (events["bytes"] == events["reasoning_bytes"]) & (thoughts > 0) & ((events["flags"] & HAS_MEDIA) == 0)
    return np.flatnonzero(is_answer[:-1] & is_thought & ~is_rest[1:])


def content_of(events: dict[str, Ints], weights: Ints | None = None) -> Ints:
    """The same for cost columns. Text is measured in lexical tokens, or in `weights`, a tokenizer's count per event;
    encrypted reasoning in the bytes of what the event does not show of it in words."""
    weights = events["lexical_tokens"] if weights is None else weights
    parts = (events["reasoning_bytes"], events["call_bytes"], events["result_bytes"])
    text = events["bytes"] - sum(parts)
    by_model = (events["flags"] & MODEL) > 0
    texts = np.stack([np.where(by_model, 0, text), np.where(by_model, text, 0), *parts])
    texts = texts * weights // np.maximum(events["bytes"], 1)
    media = ((events["flags"] & HAS_MEDIA) > 0).astype(np.int64)
    hidden = np.maximum(events["opaque_bytes"] - events["reasoning_bytes"] * SIGNED // SHOWN, 0)
    return np.concatenate([texts, [media, hidden, np.ones(len(text), dtype=np.int64)]]).T


def _micro(amounts: Ints, ratios: Floats) -> Ints:
    return np.asarray(amounts @ np.rint(ratios * _MICRO).astype(np.int64))


def estimates(amounts: Ints, ratios: Floats) -> Floats:
    """Tokens of each row of amounts at one ratio per column: an exact sum in millionths of a token."""
    return np.asarray(_micro(amounts, ratios) / _MICRO)


def starting(agent: str, model: str = "") -> Start:
    """Where the fit begins for the recordings of an agent whose calls are mostly answered by this model."""
    ratios = START.copy()
    family = family_of(model)
    ratios[MESSAGE] = AGENT_MESSAGES.get(agent, ratios[MESSAGE])
    ratios[:TEXT_KINDS] *= AGENT_LEVELS.get(agent, family.level if family else 1.0)
    if family is not None:
        ratios[OPAQUE] = family.opaque
        ratios[REASONING] = ratios[REASONING] if family.shown is None else family.shown
    ratios[REASONING] = AGENT_REASONING.get(agent, ratios[REASONING])
    return Start(np.round(ratios, _DIGITS))


def starting_exact(agent: str, model: str) -> Start:
    """The same where text is counted by the tokenizer of the session's model."""
    ratios = starting(agent, model).ratios.copy()
    ratios[list(VISIBLE)], ratios[MESSAGE] = 1.0, EXACT_MESSAGE
    return Start(ratios, EXACT_WEIGHT)


def fit(amounts: Ints, tokens: Ints, start: Start = USUAL_START) -> Floats:
    """The ratios that explain `tokens` of every interval by the `amounts` of each kind in it, beginning at `start`."""
    if not len(tokens):
        return start.ratios.copy()
    if len(tokens) > MOST_INTERVALS:
        chosen = np.arange(MOST_INTERVALS) * len(tokens) // MOST_INTERVALS
        amounts, tokens = amounts[chosen], tokens[chosen]
    goal = tokens.astype(np.float64)
    prior = start.ratios.copy()
    if not start.at_level:
        prior[:TEXT_KINDS] *= _level(estimates(amounts, start.ratios), goal, start.weight * LEVEL_BELIEF)
    ratios, sums = prior, _NormalEquations(amounts, goal)
    for _ in range(_ROUNDS):
        ratios = _bounded(sums, prior, start.weight, estimates(amounts, ratios))
    return np.round(ratios, _DIGITS)


class _NormalEquations:
    """The weighted normal equations of some intervals, summed in their order, so that they are the same anywhere.

    There is a row for each interval: numpy adds rows that lie behind each other in memory one after the other, many
    columns at a time. The sums of one column, or of rows that lie otherwise, it adds in another order (`numpy.sum`).
    """

    def __init__(self, amounts: Ints, goal: Floats) -> None:
        self._kinds, self._goal = amounts.shape[1], goal
        used = np.flatnonzero(amounts.any(axis=0))  # what no interval holds adds nothing
        self._amounts = np.ascontiguousarray(amounts[:, used], dtype=np.float64)
        rows, columns = np.triu_indices(len(used))
        self._rows, self._columns, self._used = used[rows], used[columns], used
        self._weighted = np.concatenate([rows, np.arange(len(used))])
        goals = np.broadcast_to(goal[:, None], self._amounts.shape)
        self._factors = np.concatenate([self._amounts.take(columns, axis=1), goals], axis=1)

    def normal(self, estimate: Floats) -> tuple[Floats, Floats]:
        """The matrix and the right side, with each interval weighted by how far it is from its estimate."""
        trust = _trust(estimate, self._goal) / (np.maximum(estimate, 1.0) + _FLOOR)
        products = (self._amounts * trust[:, None]).take(self._weighted, axis=1)  # in rows, as an index would not be
        products *= self._factors
        totals = np.add.reduce(products, axis=0)
        matrix, right = np.zeros((self._kinds, self._kinds)), np.zeros(self._kinds)
        pairs = len(self._rows)
        matrix[self._rows, self._columns] = matrix[self._columns, self._rows] = totals[:pairs]
        right[self._used] = totals[pairs:]
        return matrix, right


def tool_factors(whole: Floats, tokens: Ints, by_tool: dict[int, Floats]) -> Factors:
    """Each tool's factor, from the intervals that are mostly its results (`by_tool`: its part of each)."""
    factors = []
    for key, part in by_tool.items():
        chosen = part > TOOL_SHARE * whole
        if not chosen.any():
            continue
        guess = part[chosen]
        real = np.maximum(tokens[chosen] - (whole[chosen] - guess), 0.0)
        trust = _trust(guess, real)
        measured, expected = float(np.cumsum(trust * real)[-1]), float(np.cumsum(trust * guess)[-1])
        factor = (measured + TOOL_BELIEF) / (expected + TOOL_BELIEF)
        factors.append((key, round(min(max(factor, TOOL_LOWEST), TOOL_HIGHEST), _DIGITS)))
    return tuple(factors)


def _trust(guess: Floats, real: Floats) -> Floats:
    """How much each interval counts: 1, or less for an outlier."""
    error = np.abs(real - guess) / (np.maximum(guess, 1.0) + _FLOOR)
    return np.asarray(np.minimum(1.0, _OUTLIER / np.maximum(error, 1e-9)))


def _level(estimate: Floats, goal: Floats, belief: float) -> float:
    """How far the session's provider is from the starting ratios: the median over the intervals, by size."""
    ratio = goal / np.maximum(estimate, 1.0)
    order = np.argsort(ratio, kind="stable")
    half = np.cumsum(estimate[order])
    middle = order[int(np.searchsorted(half, half[-1] / 2))]
    share = float(half[-1]) / (float(half[-1]) + belief) * len(goal) / (len(goal) + LEVEL_INTERVALS)
    return 1.0 + (float(np.clip(ratio[middle], 0.25, 6.0)) - 1.0) * share


def _bounded(sums: _NormalEquations, prior: Floats, weight: float, estimate: Floats) -> Floats:
    """One weighted least squares step; ratios below 0 or above HIGHEST are set to the bound and left out."""
    wanted = BELIEF * prior
    matrix, right = sums.normal(estimate)
    matrix += np.diag(weight * BELIEF**2 / (wanted + _FLOOR))
    right += weight * BELIEF * wanted / (wanted + _FLOOR)
    ratios, free = np.zeros(len(prior)), np.ones(len(prior), dtype=bool)
    for _ in range(len(prior)):
        inside, bound = np.flatnonzero(free), np.flatnonzero(~free)
        lines = matrix[inside]
        rest = right[inside] - (lines[:, bound] * ratios[bound]).sum(axis=1)
        ratios[inside] = _solve(lines[:, inside].tolist(), rest.tolist())
        outside = free & ((ratios < 0.0) | (ratios > HIGHEST))
        if not outside.any():
            break
        ratios[outside] = np.clip(ratios[outside], 0.0, HIGHEST[outside])
        free &= ~outside
    return ratios


def _solve(matrix: list[list[float]], right: list[float]) -> list[float]:
    """Elimination for a positive definite matrix, which is changed: the floats of Python are those of numpy, and so few
    are computed faster one by one.
    """
    size = len(right)
    for pivot, pivotal in enumerate(matrix):
        for row in range(pivot + 1, size):
            line = matrix[row]
            factor = line[pivot] / pivotal[pivot]
            for column in range(pivot + 1, size):
                line[column] -= factor * pivotal[column]
            right[row] -= factor * right[pivot]
    solution = [0.0] * size
    for row in reversed(range(size)):
        known = 0.0
        for other in range(row + 1, size):  # `sum` of Python 3.12 and later adds floats in another way
            known += matrix[row][other] * solution[other]
        solution[row] = (right[row] - known) / matrix[row][row]
    return solution
