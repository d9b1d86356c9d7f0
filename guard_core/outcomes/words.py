"""The assumptions of a comparison, in sentences: what is recorded, what is modelled, and how far off that is."""

from __future__ import annotations

from collections.abc import Sequence

from guard_core.defaults import CACHE_LEAST
from guard_core.estimation.forecast import Forecast
from guard_core.findings.facts import CHARACTERS, ESTIMATES, Facts
from guard_core.findings.words import counted, off_words
from guard_core.outcomes.bill import OFF, REPORTED, WRITTEN_KINDS, Prices
from guard_core.outcomes.outcome import PolicyOutcome
from guard_core.outcomes.payback import Payback
from guard_core.windows.prices import UNIT, break_even_calls

_DOLLAR = UNIT * 1_000_000
_LEAST_DOLLARS = 0.0001


def dollars(amount: int) -> str:
    """An amount in the unit of `windows.prices` as US dollars: two decimals, below a dollar four; "under $0.0001"."""
    value = amount / _DOLLAR
    if 0 < abs(value) < _LEAST_DOLLARS / 2:
        return f"under ${_LEAST_DOLLARS:.4f}"
    text = f"{abs(value):,.2f}" if abs(value) >= 1 else f"{abs(value):.4f}"
    return f"{'−' if amount < 0 and float(text.replace(',', '')) else ''}${text}"


def count_words(facts: Facts) -> str:
    """That figures of tokens are none, in a sentence; "" where a provider counted tokens."""
    if facts.counted_in == CHARACTERS:
        return "The recorded counts seem to count characters, not tokens, and so are all figures that rest on them."
    if facts.counted_in != ESTIMATES:
        return ""
    apart, total = "", facts.session.prompt_tokens_total
    if total and not facts.session.total_calls:  # else the estimates are made to sum to it
        apart = f" The {total:,} prompt tokens that the file states in total are not in them."
    return f"No call of the recording was counted: its tokens are estimates.{apart}"


def assumptions(facts: Facts, prices: Prices) -> tuple[str, ...]:
    """What every figure of a comparison rests on."""
    retention = (
        "Replays keep the recorded turns and answers; from the first request that differs on, prompt tokens are "
        "modelled."
    )
    held = (
        "A user's request counts as dropped, and a rule as gone, where that message itself is not sent; a summary or "
        "another message may still have its words (see the facts)."
    )
    overflows = _overflow_words(facts)
    return (
        *filter(None, [count_words(facts)]),
        retention,
        *_untold_words(facts),
        *_beginning_words(facts),
        *overflows,
        held,
        _cache_words(prices),
        _price_words(prices),
    )


def _untold_words(facts: Facts) -> tuple[str, ...]:
    """That policies get no count in replays where the recording lacks one; nothing where it has all or none."""
    missing = facts.uncounted
    if not missing or facts.is_uncounted:
        return ()
    which = f"{missing['uncounted']:,} of its {missing['all_calls']:,} calls"
    return (
        f"The file has no count of {which}. In replays policies get none for these calls either; one that compares "
        "nothing but counts may compact later than it would have.",
    )


def _beginning_words(facts: Facts) -> tuple[str, ...]:
    """That replays lack what a recording begins with, where that is a compaction's summary."""
    first = next(iter(facts.session.compactions), None)
    if first is None or first.at or not first.messages:
        return ()
    what = "summary" if first.kind in WRITTEN_KINDS else "compaction"
    return (
        f"The recording begins with a {what}: the messages that it replaced are not in the file. Replays begin "
        f"without these messages and without the {what}, so their requests are smaller than they would have been.",
    )


def _overflow_words(facts: Facts) -> tuple[str, ...]:
    """What counts as an overflow, where a reader of the table would ask."""
    if facts.ledger.usage_ratio is not None:
        return ()
    words, refused, answered = [], len(facts.session.refused), len(facts.recording.over)
    if facts.window.is_disproved:
        which = "recorded request" if facts.window.judges_replays else "request"
        words.append(
            f"No {which} counts as an overflow or a near miss for its size: {facts.window.note}. Policies still "
            f"use a window of {facts.window.value:,}."
        )
    if refused:
        least = facts.refused_request
        count = counted(refused, "request")
        words.append(
            f"The overflows of the recording include {count} that the provider refused. The file has no calls for "
            "them, so no replay has them either"
            + ("." if least is None else f"; in a replay, calls of {least.tokens:,} tokens or more count as overflows.")
        )
    if answered:
        words.append(
            f"The recording has {counted(answered, 'answered request')} larger than the window, by count or by "
            "estimate: an overflow here."
        )
    return tuple(words)


def refused_words(outcome: PolicyOutcome) -> str:
    """What a row does not count as overflows; "" where there is nothing."""
    if not outcome.refused:
        return ""
    steps = counted(outcome.refused, "step")
    return f"at {steps} its request was over the window, was refused and sent again smaller: no overflow here"


def summariser_words(outcome: PolicyOutcome) -> str:
    """That a summariser's request would have been too long; "" where none would."""
    if outcome.largest_summariser <= outcome.window:
        return ""
    return (
        f"its summariser would be given {outcome.largest_summariser:,} tokens, more than the window of "
        f"{outcome.window:,}, and is assumed to answer"
    )


def rewrites_words(outcome: PolicyOutcome) -> str:
    """Why requests of a replay are smaller than the recorded ones without a compaction; "" where they are not."""
    if not outcome.rewrites:
        return ""
    return f"rewrites each message when it is recorded, which counts as no compaction: {'; '.join(outcome.rewrites)}"


def closest_words(outcome: PolicyOutcome) -> str:
    """Why a policy let requests grow over the window, by its own count; "" where none did, or that does not say it."""
    place = outcome.closest
    if place is None or not outcome.overflows:
        return ""
    return (
        f"never reached its threshold by its own count; closest at step {place.step + 1:,}: {place.compared:,} of "
        f"{place.threshold:,} tokens"
    )


def forecast_words(forecast: Forecast) -> str:
    """How far off modelled counts of this session are; "" where that was not measured."""
    names = {"1": "1 call ahead", "10": "10 calls", "50": "50 calls", "compaction": "after a compaction"}
    parts = [f"{names[name]} {off_words(errors)}" for name, errors in forecast.items() if errors is not None]
    if not parts:
        return ""
    return f"Forecasts of this session's own counts, made from the past only, are off by: {', '.join(parts)}."


def payback_words(price: Payback, prices: Prices) -> tuple[str, ...]:
    """The price of a compaction in sentences, with what it rests on."""
    wrote = (
        f"Modelled: the first call after it sends {price.uncached:,} tokens that are not in the cache; without the "
        f"compaction, {price.uncached_without:,}."
    )
    if not prices.has_prices:
        return _price_words(prices), wrote
    later = price.stop - price.step - 1
    fewer = price.before - price.after
    until = f"{later:,} later {'call' if later == 1 else 'calls'} up to the next compaction, or the end"
    change = "saved" if price.saved >= 0 else "cost"
    summary = f"The summary cost {dollars(price.summary)} (its tokens are estimated unless recorded). "
    calls = (
        f"The {until}, each {abs(fewer):,} tokens {'smaller' if fewer >= 0 else 'larger'}, {change} "
        f"{dollars(abs(price.saved))}."
    )
    return (
        f"{summary if price.summary else ''}{wrote}",
        calls if later else "No other call came before the next compaction, or the end.",
        _earned_words(price),
    )


def price_words(price: Payback, prices: Prices) -> str:
    """The price of a compaction in one sentence."""
    name = f"Compaction {price.index + 1:,} (step {price.step + 1:,})"
    if not prices.has_prices:
        return (
            f"{name}: the first call after it sends {price.uncached:,} tokens that are not in the cache; without it, "
            f"{price.uncached_without:,} (modelled)."
        )
    first, later = "cost" if price.paid >= 0 else "saved", "saved" if price.saved >= 0 else "cost"
    verb = "" if first == later else f"{later} "
    if price.stop == price.step + 1:
        return (
            f"{name} {first} {dollars(abs(price.paid))} at once (modelled); no other call came before the next "
            "compaction, or the end."
        )
    return (
        f"{name} {first} {dollars(abs(price.paid))} at once and {verb}{dollars(abs(price.saved))} on later calls "
        f"(modelled)."
    )


def balance_words(all_prices: Sequence[Payback], prices: Prices) -> str:
    """What several compactions cost together."""
    count = f"{len(all_prices):,} compactions"
    if not prices.has_prices:
        return f"{count}; the price table has no price for the model."
    net = sum(item.net for item in all_prices)
    balance = f"{'cost' if net > 0 else 'saved'} {dollars(abs(net))} in all"
    return f"{count} {balance}, compared with the same calls without each of them (modelled, list prices)."


def _earned_words(price: Payback) -> str:
    needed = ""
    if price.needed_from >= 0:
        needed = f" Without it, requests would have been over the window from step {price.needed_from + 1:,} on."
    if price.earned_back < 0:
        return f"By then it had not paid: in all it cost {dollars(price.net)} more than it saved.{needed}"
    calls = price.earned_back - price.step
    after = "at once" if not calls else f"{calls:,} {'call' if calls == 1 else 'calls'} later"
    return (
        f"It was earned back at step {price.earned_back + 1:,}, {after}; in all it saved {dollars(-price.net)}.{needed}"
    )


def usual_break_even(price: Payback, prices: Prices) -> float | None:
    """After how many calls a compaction to this size pays by the usual formula; None without prices."""
    rates = prices.main
    if rates is None or price.before <= 0:
        return None
    plain, read, written, output = (steps[0].price for steps in rates[:4])
    if not plain or not read:
        return None
    return break_even_calls(price.after / price.before, read / plain, written / plain, output / plain)


def _cache_words(prices: Prices) -> str:
    if prices.caching == OFF:
        return "The recording's agent read nothing from a cache, so the replays read nothing from one either."
    known = "" if prices.caching == REPORTED else " The file has no counts of cached tokens: a cache is assumed."
    return (
        "A call reads from the cache what its request shares with the last one to the same model, if that was sent "
        f"at most {prices.seconds / 60:g} minutes earlier{_times(prices)}, and is at least {CACHE_LEAST:,} tokens long."
        f" The summariser reads what the call before it sent, as far as no other compaction came between.{known}"
    )


def _times(prices: Prices) -> str:
    """How the minutes since a request are known."""
    has_times = bool((prices.ledger.events["time_ms"] > 0).any())
    return ", by the times of the file" if has_times else " (the file has no times: nothing expires)"


def _price_words(prices: Prices) -> str:
    if prices.unknown:
        names = ", ".join(name or "calls that name no model" for name in prices.unknown)
        return f"Price unknown: the price table has none for {names[:200]}."
    notes = dict.fromkeys(rates.note for rates in prices.rates if rates is not None)
    cliffs = sorted({size for rates in prices.rates if rates is not None for size in rates.cliffs})
    dearer = (
        f"; calls above {' and '.join(f'{size:,}' for size in cliffs)} prompt tokens cost more a token"
        if cliffs
        else ""
    )
    return f"List prices of {', '.join(notes)}{dearer}."
