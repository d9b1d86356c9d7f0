"""Cline: a limit by window, on all tokens of the last request; of its SDK a share of what the model takes.

Source of the extension's rule: ContextManager of Cline, revision 01cfde0d, as specified; not measured by running.

The SDK (@cline/core of Cline CLI 3.0.65, run: createContextCompactionPrepareTurn) compacts where its estimate of the
request (characters of its JSON / 3, system prompt and tools included), scaled by up to four times where the provider
counted more of the last request of this run, reaches 90 % of the model's input limit: the larger of the estimate and
that last prompt. A run begins with each message of the user; before its first answer the estimate counts alone. The
file has no system prompt and no tools, so the estimate is not known. What is compared is the last prompt, which is the
least that counted: a check that passed although it reaches the threshold contradicts the rule, unless the scale may
have ended at four, or the messages are within the newest 20,000 tokens by its estimate, which are kept. At a compaction
below the threshold the estimate must have reached it: the file has that of the messages alone (`tokensBefore`), and
what system prompt and tools may add to it is at most what the first prompt held.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from guard_core.ledger import Ints, Ledger
from guard_core.policies.cline import limit_of
from guard_core.policies.cline_sdk import CHARS_PER_TOKEN, MOST_SCALE, OF_WINDOW, TRIGGER
from guard_core.rules import roo
from guard_core.rules.base import Agent, Hypothesis, OwnRule, Stretch
from guard_core.rules.counters import LAST_PROMPT, LAST_TOTAL, PROMPT, TOTAL, UNKNOWN, Checks, counts_at
from guard_core.rules.settings import AUTO, SWITCH_WORDS, WINDOW, RuleNumber, Typed, chosen, whole, window_setting
from guard_core.rules.thresholds import windows_of
from guard_core.sessions import Session
from guard_core.views import Span


def rule(stretch: Stretch, _: Typed) -> OwnRule:
    """The limit of the window, as the policy has it: by a table, else all but 40,000 tokens, or 80 % if that is
    more."""
    window = stretch.window
    formula, threshold = limit_of(window.value) if window else ("a limit by window", None)
    return OwnRule(
        policy="cline",
        settings=(window_setting(window),),
        counter=TOTAL,
        threshold=threshold,
        formula=formula,
    )


def variants(stretch: Stretch, _: Typed) -> Iterable[Hypothesis]:
    """Other windows."""
    for window, other in windows_of(stretch):
        yield Hypothesis(*limit_of(window), other)


LIMIT = "max_input_tokens"
INPUT_LIMIT = 128_000  # compaction-shared.d.ts: DEFAULT_MAX_INPUT_TOKENS


def sdk_threshold(window: int | None, limit: int | None = None) -> tuple[str, int]:
    """The threshold of the SDK, as an expression and in tokens, for a window and an input limit of the model."""
    if limit is not None:
        most = min(limit, window or limit)
        return f"90 % of {most:,}", math.ceil(TRIGGER * most)
    if window is None:
        return f"90 % of {INPUT_LIMIT:,} (where no limit is known)", math.ceil(TRIGGER * INPUT_LIMIT)
    return f"81 % of {window:,}", math.ceil(window * OF_WINDOW * TRIGGER)  # 90 % of 90 %


def sdk_rule(stretch: Stretch, typed: Typed) -> OwnRule:
    """90 % of the SDK's input limit, which is 90 % of the window unless it was typed."""
    window, limit = stretch.window, whole(typed, LIMIT)
    formula, threshold = sdk_threshold(window.value if window else None, limit)
    own: tuple[RuleNumber, ...] = ()
    if limit is not None or window is None:
        own = (chosen(LIMIT, limit, INPUT_LIMIT, "tokens", "default, where neither a limit nor a window is known"),)
    return OwnRule(
        policy="cline-sdk",
        settings=(window_setting(window), *own),
        counter=PROMPT,
        threshold=threshold,
        formula=formula,
    )


def sdk_variants(stretch: Stretch, _: Typed) -> Iterable[Hypothesis]:
    """No limit, the windows of models, and input limits of their size."""
    yield Hypothesis(*sdk_threshold(None), 1)
    for window, other in windows_of(stretch):
        yield Hypothesis(*sdk_threshold(window), other)
        yield Hypothesis(*sdk_threshold(window, window), other + 1)


# Ours: a token of a system prompt and of tools has fewer characters than this, for prose and JSON have 3 to 5.
MOST_CHARS = 10
RECENT = 20_000  # tokens by its estimate of the messages: they are kept, so that fewer are not compacted (3.0.65, run)


def sdk_counts(session: Session, ledger: Ledger, checks: Checks, _: Stretch) -> Ints:
    """The last prompt of the run at checks that passed: the least that was compared. Unknown before the first answer of
    a run, and where more tokens than its scale allows may lie in a character."""
    counts = counts_at(session, ledger, checks, LAST_PROMPT)
    is_known = (checks.place < 0) & (checks.between == 0) & _is_always_scaled(ledger)
    return np.where(is_known, counts, UNKNOWN)


def sdk_held(session: Session, ledger: Ledger, checks: Checks, _: Typed) -> Ints:
    """1 for each check at which all messages may have been kept: those since the last compaction, with what it left,
    or since a prompt that was smaller than the one before, for the file has the last compaction alone."""
    prompts, at = ledger.steps["prompt_tokens"], ledger.steps["at"]
    fell = at[np.flatnonzero((prompts[1:] > 0) & (prompts[1:] < prompts[:-1])) + 1]
    starts = {int(place): int(place) for place in fell}
    for item in session.compactions:
        starts[item.at] = next((part.start for part in item.base if isinstance(part, Span)), item.at)
    places = np.array(sorted(starts), dtype=np.int64)
    first = np.append(0, [starts[place] for place in places.tolist()]).astype(np.int64)
    chars = ledger.prefix_by("characters", lambda ledger: np.asarray(ledger.events["chars"], dtype=np.int64))
    begun = first[np.searchsorted(places, checks.stop, side="right")]
    sizes = chars[checks.stop] - chars[np.minimum(begun, checks.stop)]
    return np.asarray((checks.place < 0) & (sizes < CHARS_PER_TOKEN * RECENT), dtype=np.int64)


def _is_always_scaled(ledger: Ledger) -> bool:
    """Can no request have more than four times the tokens that are estimated of it. A token has at least a byte, so
    not where the texts have few bytes for their characters, and no picture."""
    size, chars = int(ledger.events["bytes"].sum()), int(ledger.events["chars"].sum())
    return size * CHARS_PER_TOKEN <= MOST_SCALE * chars and not ledger.events["media_bytes"].any()


def sdk_settled(session: Session, ledger: Ledger, checks: Checks, rule: OwnRule) -> Ints:
    """The count at compactions: the last prompt where that alone reaches the threshold, and the most that can have been
    compared where not even that does. Between the two it is not known."""
    counts = np.full(len(checks.step), UNKNOWN)
    prompts = counts_at(session, ledger, checks, LAST_PROMPT)
    first = next((call.prompt_tokens for call in session.calls if call.prompt_tokens), 0)
    for row in np.flatnonzero(checks.place >= 0).tolist():
        last = max(int(prompts[row]), 0) if not checks.between[row] else 0
        messages = session.compactions[int(checks.place[row])].tokens_before or 0
        if rule.fires(last):
            counts[row] = last
        elif messages and first:
            most = max(last, messages + math.ceil(MOST_CHARS * first / CHARS_PER_TOKEN))
            counts[row] = UNKNOWN if rule.fires(most) else most
    return counts


SDK_AGENT = Agent(
    format="cline",
    label="Cline SDK",
    rule=sdk_rule,
    plays={"cline-sdk": {}},
    variants=sdk_variants,
    counter=lambda _: LAST_PROMPT,
    names={LIMIT: "the model's limit of input tokens", AUTO: SWITCH_WORDS},
    aliases={"contextWindow": WINDOW, "maxInputTokens": LIMIT, "compaction.enabled": AUTO},
    uncounted=(
        "its estimate of the request, which counts where it is larger than the last prompt and before the first answer"
        " of a run, is not in the file"
    ),
    series=sdk_counts,
    settled=sdk_settled,
    held=sdk_held,
    held_reason=f"all messages are within the newest {RECENT:,} tokens, which are kept",
    wrote=lambda session: any(item.name == "is_of_sdk" for item in session.settings),
)
AGENT = Agent(
    format="cline",
    label="Cline",
    rule=rule,
    plays={"cline": {}},
    variants=variants,
    counter=lambda _: LAST_TOTAL,
    names={},
    aliases={"contextWindow": WINDOW},
    wrote=lambda session: not roo.wrote(session),
)
