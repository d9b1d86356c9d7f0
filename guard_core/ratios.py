"""Ratios: how many prompt tokens a session's provider counts per byte of each kind of content.

The requests of a session mix all kinds, so the ratios are found together: least squares over the measured intervals,
where outliers (content that is not in the recording) count less and kinds that hardly occur keep their starting ratio
at the session's own level.

Ratios decide tokens, and equal sessions must give equal tokens on every machine: the arithmetic here is whole numbers
and plain elementwise floats in a fixed order, never a linear algebra library, whose last bits differ by processor.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from guard_core.costs import HAS_MEDIA, MODEL
from guard_core.ledger import Ints, Ledger

Floats = NDArray[np.float64]

KINDS = ("user text", "model text", "reasoning", "tool calls", "tool results", "media", "opaque reasoning", "message")
TEXT_KINDS = 5  # the first five are measured in bytes of text (or in the tokenizer's tokens)
MODEL_TEXT = KINDS.index("model text")
MESSAGE = KINDS.index("message")

# Where nothing is measured: tokens per byte of the text kinds (3.3 to 4 bytes a token for prose and code; providers do
# not send old reasoning again, so it starts low), tokens per picture (Anthropic: width x height / 750, at most about
# 1,600), per opaque byte, per message (OpenAI documents 3 to 4 for the framing).
START = np.array([0.25, 0.25, 0.05, 0.3, 0.3, 1_200.0, 0.02, 4.0])
# How much content the starting ratio is worth against what is measured (bytes, pictures, messages).
BELIEF = np.array([500.0, 500.0, 500.0, 500.0, 500.0, 1.0, 1_000.0, 8.0])
HIGHEST = np.array([2.0, 2.0, 2.0, 2.0, 2.0, 20_000.0, 2.0, 40.0])
MOST_INTERVALS = 4_000  # ratios of longer sessions are fitted over so many intervals, evenly spaced
_ROUNDS = 8
_DIGITS = 6  # ratios are whole millionths, so that estimates are exact sums
_MICRO = 10**_DIGITS


def content(ledger: Ledger, weights: Ints | None = None) -> Ints:
    """How much of every kind each event holds: one row per event, one column per entry of KINDS."""
    return content_of(ledger.events, weights)


def content_of(events: dict[str, Ints], weights: Ints | None = None) -> Ints:
    """The same for cost columns. With `weights` (tokenizer counts per event) text is measured in those."""
    parts = (events["reasoning_bytes"], events["call_bytes"], events["result_bytes"])
    text = events["bytes"] - sum(parts)
    by_model = (events["flags"] & MODEL) > 0
    texts = np.stack([np.where(by_model, 0, text), np.where(by_model, text, 0), *parts])
    if weights is not None:
        texts = texts * weights // np.maximum(events["bytes"], 1)
    media = ((events["flags"] & HAS_MEDIA) > 0).astype(np.int64)
    return np.concatenate([texts, [media, events["opaque_bytes"], np.ones(len(text), dtype=np.int64)]]).T


def estimates(amounts: Ints, ratios: Floats) -> Floats:
    """Tokens of each row of amounts: an exact sum in millionths of a token."""
    micro = np.rint(ratios * _MICRO).astype(np.int64)
    return np.asarray((amounts * micro).sum(axis=1) / _MICRO)


def start_ratios(weights: Ints | None, ledger: Ledger) -> Floats:
    """The ratios before anything is measured; in tokenizer tokens they are the same per byte."""
    if weights is None:
        return START.copy()
    start = START.copy()
    start[:TEXT_KINDS] *= ledger.events["bytes"].sum() / max(1, int(weights.sum()))
    return start


def fit(amounts: Ints, tokens: Ints, start: Floats) -> Floats:
    """The ratios that explain `tokens` of every interval by the `amounts` of each kind in it."""
    if not len(tokens):
        return start
    if len(tokens) > MOST_INTERVALS:
        chosen = np.arange(MOST_INTERVALS) * len(tokens) // MOST_INTERVALS
        amounts, tokens = amounts[chosen], tokens[chosen]
    goal = tokens.astype(np.float64)
    level = _level(estimates(amounts, start), goal)
    prior = np.concatenate([start[:TEXT_KINDS] * level, start[TEXT_KINDS:]])
    belief = BELIEF.copy()
    belief[:TEXT_KINDS] *= START[:TEXT_KINDS] / np.maximum(start[:TEXT_KINDS], 1e-9)
    ratios = prior
    for _ in range(_ROUNDS):
        ratios = _bounded(amounts, goal, prior, belief, estimates(amounts, ratios))
    return np.round(ratios, _DIGITS)


def _level(estimate: Floats, goal: Floats) -> float:
    """How far the session's provider is from the starting ratios: the median over the intervals, by size."""
    ratio = goal / np.maximum(estimate, 1.0)
    order = np.argsort(ratio, kind="stable")
    half = np.cumsum(estimate[order])
    middle = order[int(np.searchsorted(half, half[-1] / 2))]
    return float(np.clip(ratio[middle], 0.25, 6.0))


def _bounded(amounts: Ints, goal: Floats, prior: Floats, belief: Floats, estimate: Floats) -> Floats:
    """One weighted least squares step; ratios below 0 or above HIGHEST are set to the bound and left out."""
    scale = np.maximum(estimate, 1.0) + 40.0
    error = np.abs(goal - estimate) / scale
    trust = np.minimum(1.0, 0.25 / np.maximum(error, 1e-9)) / scale
    wanted = belief * prior
    matrix, right = _normal(amounts, trust, goal)
    matrix += np.diag(belief**2 / (wanted + 40.0))
    right += belief * wanted / (wanted + 40.0)
    ratios, free = np.zeros(len(prior)), np.ones(len(prior), dtype=bool)
    for _ in range(len(prior)):
        kept, bound = np.flatnonzero(free), np.flatnonzero(~free)
        rest = right[kept] - (matrix[np.ix_(kept, bound)] * ratios[bound]).sum(axis=1)
        ratios[kept] = _solve(matrix[np.ix_(kept, kept)], rest)
        outside = free & ((ratios < 0.0) | (ratios > HIGHEST))
        if not outside.any():
            break
        ratios[outside] = np.clip(ratios[outside], 0.0, HIGHEST[outside])
        free &= ~outside
    return ratios


def _normal(amounts: Ints, trust: Floats, goal: Floats) -> tuple[Floats, Floats]:
    """The weighted normal equations, summed in the order of the intervals, so that they are the same anywhere."""
    kinds = amounts.shape[1]
    rows, columns = np.triu_indices(kinds)
    weighted = amounts * trust[:, None]
    products = np.concatenate([weighted[:, rows] * amounts[:, columns], weighted * goal[:, None]], axis=1)
    totals = np.cumsum(products, axis=0)[-1]
    matrix = np.zeros((kinds, kinds))
    matrix[rows, columns] = matrix[columns, rows] = totals[: len(rows)]
    return matrix, totals[len(rows) :].copy()


def _solve(matrix: Floats, right: Floats) -> Floats:
    """Elimination for a positive definite matrix."""
    matrix, right = matrix.copy(), right.copy()
    size = len(right)
    for pivot in range(size):
        for row in range(pivot + 1, size):
            factor = matrix[row, pivot] / matrix[pivot, pivot]
            matrix[row] -= factor * matrix[pivot]
            right[row] -= factor * right[pivot]
    found = np.zeros(size)
    for row in reversed(range(size)):
        known = sum(float(matrix[row, other] * found[other]) for other in range(row + 1, size))
        found[row] = (right[row] - known) / matrix[row, row]
    return found
