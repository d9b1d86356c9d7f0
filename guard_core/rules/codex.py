"""Codex: at most 90 % of the raw window, of which recordings hold the usable 95 %; before 0.48 a limit for each model.

Measured by running 0.58.0 to 0.171.0. Up to 0.94.0 the tokens of the last answer alone are compared; from 0.95.0 on the
items since, too, up to 0.155.0 as the file has them, a quarter of the bytes of each; later versions look at the outputs
of tools alone, each with the id of its call: results of many sizes, with and without letters beyond ASCII, quotes, tabs
and backslashes, and ids of 10 to 47 characters. Unless the server says that it counts it, the encrypted reasoning
before the last message of the user is added (context_manager/history.rs, `get_non_last_reasoning_items_tokens`). That
was not measured by running, but twelve compactions of recordings of 0.140.0 to 0.142.5, which hold the tokens of that
reasoning and not its bytes, fit the rule with it, and some contradict any without. Where a file came without these
bytes (tools that archive recordings take them out), the count at a compaction is not known. With the scope
`body_after_prefix` the limit counts what was added to the first prompt (0.171.0, run with limits of 60,000 and 90,000,
with one above the window and with none, 26 compactions; pull request 22870 of openai/codex).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from guard_core.agent_versions import numbers
from guard_core.costs import REASONING
from guard_core.errors import SettingError
from guard_core.ledger import Ints, Ledger
from guard_core.policies.codex import default_limit, output_tokens
from guard_core.policies.pieces.estimates import rounded_up
from guard_core.recordings.formats.codex.origin import CONTINUES
from guard_core.recordings.formats.codex.rollout import ONE_TURN
from guard_core.recordings.formats.codex.waiting import ITEMS_COUNTED_BEFORE, ITEMS_COUNTED_FROM
from guard_core.rules.base import Agent, Hypothesis, Keeps, KeptShape, OwnRule, Stretch
from guard_core.rules.counters import GROWTH, LAST_TOTAL, TOTAL_PENDING, Checks, RuleCounter, first_prompts
from guard_core.rules.settings import RuleNumber, Typed, chosen, percentage, whole, window_setting
from guard_core.rules.thresholds import FRACTIONS, LARGEST_LIMIT, round_limits, share_of, windows_of
from guard_core.sessions import Provenance, Session, Sourced
from guard_core.windows.window_evidence import CODEX_USABLE

SCOPE = "model_auto_compact_token_limit_scope"
# What that setting may be, and whether it leaves out what a context began with; numbers as in a stored explanation.
SCOPES = {"total": False, "0": False, "body_after_prefix": True, "1": True}
# Versions before 0.48 had a limit for each model, which changed from release to release: none for GPT-5, and 220,000,
# 250,000, then 350,000 for gpt-5-codex, above its window (pull requests 4093, 4135, 4156 and 5292 of openai/codex).
# Files of 0.34 to 0.44 have the model's whole window, those from 0.53 on the usable part; none between was seen.
LIMITS_OF_MODELS_BEFORE = (0, 48)
PENDING_FROM = (0, 95)  # 0.94.0 counts the last answer alone, 0.95.0 what waits, too
CONFIGURED = "model_context_window"
TURN_END_SHARE = "model_post_turn_compact_threshold_percent"  # of the usable window (0.171.0, run)
TURN_ENDS_FROM = (0, 171)  # earlier versions were not run with it
REASONING_OVERHEAD = 650  # bytes of an encrypted reasoning item: history.rs, `estimate_reasoning_length`
_ENCRYPTS = re.compile(r"gpt|codex|\bo\d", re.IGNORECASE)  # OpenAI's models, whose reasoning is encrypted


def reasoning_tokens(ledger: Ledger) -> Ints:
    """The estimate of the encrypted reasoning in each event: ceil((decoded bytes − 650 of each item) / 4)."""
    items = ledger.by_event((ledger.parts["kind"] == REASONING).astype(np.int64))
    return rounded_up(np.maximum(ledger.events["opaque_bytes"] - REASONING_OVERHEAD * items, 0))


def stripped_reasoning(ledger: Ledger) -> Ints:
    """1 for each event with reasoning where a file of OpenAI's models holds none of what is encrypted."""
    is_complete = bool(ledger.events["opaque_bytes"].any()) or not any(map(_ENCRYPTS.search, ledger.models))
    return ledger.by_event((ledger.parts["kind"] == REASONING).astype(np.int64)) * (not is_complete)


COUNTER = RuleCounter(
    TOTAL_PENDING,
    "prompt and output tokens of the last answer, a quarter of the bytes of each tool output since with its call's id,"
    " and (bytes − 650) / 4 of encrypted reasoning before the last message of the user",
    output_tokens,
    before_user=True,
    earlier=reasoning_tokens,
    lacks=stripped_reasoning,
    lacks_words="the encrypted reasoning of earlier turns, which Codex counts",
)


ITEM_COUNTER = replace(
    COUNTER,
    words="prompt and output tokens of the last answer, bytes / 4 of each item since, as JSON, and (bytes − 650) / 4 of"
    " encrypted reasoning before the last message of the user",
    pending=None,
    is_recorded=True,
)


def _release(stretch: Stretch) -> tuple[int, ...]:
    """The numbers of the version; none of a build from source, which calls itself 0.0.0."""
    version = numbers(stretch.version)
    return version if any(version) else ()


def _has_own_limits(stretch: Stretch) -> bool:
    """Did this version have a limit for each model, and the whole window of it in its files."""
    return () < _release(stretch) < LIMITS_OF_MODELS_BEFORE


def counter(stretch: Stretch) -> RuleCounter:
    """What this version compares."""
    version = _release(stretch)
    if () < version < PENDING_FROM:
        return LAST_TOTAL
    own = ITEM_COUNTER if ITEMS_COUNTED_FROM <= version < ITEMS_COUNTED_BEFORE else COUNTER
    # A turn that is sent anew begins a file in 0.171.0, and the reasoning before it counts (run).
    continues = stretch.setting(CONTINUES.name) is not None and _ENCRYPTS.search(stretch.model) is not None
    return replace(own, lacks_beginning=True) if continues else own


def is_growth(typed: Typed) -> bool:
    """Does the limit count what was added alone. Raises SettingError."""
    value = typed.get(SCOPE, "total").strip().lower()
    if value not in SCOPES:
        raise SettingError(f"{SCOPE} is total or body_after_prefix, not {value[:20]!r}")
    return SCOPES[value]


def scoped(counter: RuleCounter, stretch: Stretch, typed: Typed) -> RuleCounter:
    """With that scope the first prompt since the last compaction does not count, as far as the limit then leaves it
    room in the usable window; a process that has not been answered since its start knows none (0.171.0, run)."""
    own = rule(stretch, typed)
    if not is_growth(typed) or own.threshold is None:
        return counter
    room = _usable(stretch, typed) - own.threshold

    def carried(session: Session, ledger: Ledger, checks: Checks) -> Ints:
        first = first_prompts(ledger, checks, of_turn=any(item.name == ONE_TURN.name for item in session.settings))
        return np.minimum(first, room)

    words = f"{counter.words}, less the first prompt since the last compaction, of which at most {room:,} are taken off"
    return replace(counter, name=GROWTH, words=words, carried=carried)


def _usable(stretch: Stretch, typed: Typed) -> int:
    """What Codex fills of a window, in tokens; 0 where that is not known."""
    window = raw_window(stretch, typed)
    return 0 if window is None else int(window.value * (1 if _has_own_limits(stretch) else CODEX_USABLE))


def rule(stretch: Stretch, typed: Typed) -> OwnRule:
    """The lower of 90 % of the raw window and the limit that was typed; before 0.48 that limit alone."""
    counted = counter(stretch).name
    window, limit = raw_window(stretch, typed), whole(typed, "model_auto_compact_token_limit")
    if _has_own_limits(stretch):
        return _early(counted, window, limit)
    most = default_limit(window.value) if window else 0
    setting = chosen("model_auto_compact_token_limit", limit, most, "tokens", "default: 90 % of the raw window")
    ninety = f"90 % of {window.value:,}" if window else ""
    settings, cap, bound = [window_setting(window), *((setting,) if window else ())], most, ninety
    if is_growth(typed):
        note = "typed in: body_after_prefix, by which only what was added to the first prompt counts"
        settings.append(RuleNumber(SCOPE, 1, "", Provenance.USER, note))
        cap, bound = _usable(stretch, typed), f"{CODEX_USABLE * 100:g} % of {window.value:,}" if window else ""
    if (share := percentage(typed, TURN_END_SHARE, is_fraction=False)) is not None:
        settings.append(RuleNumber(TURN_END_SHARE, share, "%", Provenance.USER, "typed in: of the usable window"))
    return OwnRule(
        policy="codex",
        profile="current" if counted == TOTAL_PENDING else "seed",
        settings=tuple(settings),
        counter=GROWTH if is_growth(typed) and window else counted,
        threshold=min(limit or most, cap) if window else None,
        formula=(f"min({limit:,}, {bound})" if limit else ninety) or "90 % of the raw window",
    )


def _early(counted: str, window: Sourced | None, limit: int | None) -> OwnRule:
    """The rule of a version whose limit the file does not have: the one that was typed, whatever the window."""
    name = "model_auto_compact_token_limit"
    typed = () if limit is None else (RuleNumber(name, limit, "tokens", Provenance.USER, "typed in"),)
    own = "before 0.48 each model had a limit of its own, none or one above the window for most"
    return OwnRule(
        policy="codex",
        profile="seed",
        settings=(window_setting(window), *typed),
        counter=counted,
        threshold=limit,
        formula=name if limit is None else f"{limit:,} ({name})",
        reason=f"{own}: set {name}" if limit is None else "",
    )


def raw_window(stretch: Stretch, typed: Typed) -> Sourced | None:
    """The model's window, of which the recording holds the usable part: that of the configuration, if one is set, and
    at most the model's own."""
    window, configured = stretch.window, whole(typed, CONFIGURED)
    if window is not None and window.source is Provenance.RECORDER:
        if _has_own_limits(stretch):
            return Sourced(window.value, Provenance.RECORDER, f"{CONFIGURED} in the file")
        raw = round(window.value / CODEX_USABLE)
        return Sourced(raw, Provenance.RECORDER, f"{window.value:,} in the file is the usable 95 % of it")
    return Sourced(configured, Provenance.USER, f"{CONFIGURED}, typed in") if configured else window


def variants(stretch: Stretch, typed: Typed) -> Iterable[Hypothesis]:
    """Limits that a person may have set, then other windows and other shares of them, which no setting gives."""
    default = rule(stretch, typed)
    for limit in round_limits((default.threshold or LARGEST_LIMIT) - 1):
        yield Hypothesis(f"model_auto_compact_token_limit {limit:,}", limit, 1)
    for window, other in windows_of(stretch._replace(window=raw_window(stretch, typed))):
        for share in FRACTIONS:
            changes = other + (share != 0.9)
            yield Hypothesis(*share_of(share, window), changes)


def turn_ends(stretch: Stretch, typed: Typed) -> Iterable[Hypothesis]:
    """Thresholds at the ends of turns, from which 0.171.0 compacts there, too: the share of the usable window that was
    typed, then those that a person may have set, multiples of ten and of five first; none of an earlier version."""
    usable, own = _usable(stretch, typed), percentage(typed, TURN_END_SHARE, is_fraction=False)
    if not usable or () < _release(stretch) < TURN_ENDS_FROM:
        return
    if own is not None:
        yield Hypothesis(f"{own:g} % of {usable:,}", int(own * usable / 100), 0)
    for share in range(1, 101):
        changes = 1 + bool(share % 10) + bool(share % 5)
        yield Hypothesis(f"{share} % of {usable:,}", share * usable // 100, changes)


# Source: compact.rs of Codex, COMPACT_USER_MESSAGE_MAX_TOKENS
KEEPS = Keeps("the users' messages, newest first up to 20,000 tokens, and the summary", KeptShape.USERS)

AGENT = Agent(
    format="codex",
    label="Codex",
    rule=rule,
    plays={"codex": {"model_auto_compact_token_limit": "limit"}},
    variants=variants,
    counter=counter,
    scoped=scoped,
    turn_ends=turn_ends,
    keeps=lambda _, __: KEEPS,
    names={
        "model_auto_compact_token_limit": "in tokens; above 90 % of the raw window it has no effect",
        SCOPE: "total, or body_after_prefix: what was added to the first prompt since the last compaction, up to 95 %"
        " of the window; measured in 0.171.0",
        TURN_END_SHARE: "per cent of the usable window, from which it also compacts at the end of a turn; measured in"
        " 0.171.0 with the scope total",
        CONFIGURED: "in tokens; where the file has a window, that follows from this setting and is the one that counts",
    },
    uses_stated_window=True,
    fitted=lambda _, limit: f"model_auto_compact_token_limit {limit:,}",
)
