"""The assumptions of a comparison, in sentences: what is recorded, what is modelled, and how far off that is."""

from __future__ import annotations

from guard_core.defaults import CACHE_LEAST, CACHE_SECONDS
from guard_core.forecast import Forecast
from guard_core.outcomes.bill import OFF, REPORTED, Prices
from guard_core.outcomes.payback import Payback
from guard_core.prices import UNIT, break_even_calls

_DOLLAR = UNIT * 1_000_000


def dollars(amount: int) -> str:
    """An amount in the unit of guard_core.prices as US dollars: two decimals, below a dollar four."""
    value = amount / _DOLLAR
    text = f"{abs(value):,.2f}" if abs(value) >= 1 else f"{abs(value):.4f}"
    return f"{'−' if amount < 0 and float(text.replace(',', '')) else ''}${text}"


def assumptions(prices: Prices) -> tuple[str, ...]:
    """What every figure of a comparison rests on."""
    kept = (
        "Replays keep the recorded turns and answers; from the first request that differs on, prompt tokens are "
        "modelled."
    )
    return kept, _cache_words(prices), _price_words(prices)


def forecast_words(ahead: Forecast) -> str:
    """How far off modelled counts of this session are; "" where that was not measured."""
    names = {"1": "1 call ahead", "10": "10 calls", "50": "50 calls", "compaction": "after a compaction"}
    parts = [f"{names[name]} {100 * found.mape:.1f} %" for name, found in ahead.items() if found is not None]
    if not parts:
        return ""
    return f"Forecasts of this session's own counts, made from the past only, are off by: {', '.join(parts)}."


def payback_words(price: Payback, prices: Prices) -> tuple[str, ...]:
    """The price of a compaction in sentences, with what it rests on."""
    wrote = (
        f"Modelled: the first call after it sends {price.anew:,} tokens that are not in the cache; without the "
        f"compaction, {price.anew_without:,}."
    )
    if not prices.has_prices:
        return _price_words(prices), wrote
    later = price.stop - price.step - 1
    fewer = price.before - price.after
    until = f"{later:,} later {'call' if later == 1 else 'calls'} up to the next compaction, or the end"
    change = "saved" if price.saved >= 0 else "cost"
    return (
        f"The summary cost {dollars(price.summary)} (its tokens are estimated unless recorded). {wrote}",
        f"The {until}, each {abs(fewer):,} tokens {'smaller' if fewer >= 0 else 'larger'}, {change} "
        f"{dollars(abs(price.saved))}.",
        _earned_words(price),
    )


def _earned_words(price: Payback) -> str:
    needed = ""
    if price.needed_from >= 0:
        needed = f" Without it, requests would have been over the window from step {price.needed_from + 1:,} on."
    if price.earned_back < 0:
        return f"It never paid: in all it cost {dollars(price.net)} more than it saved.{needed}"
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
    known = (
        "" if prices.caching == REPORTED else " The file has no count of cached tokens: that there is one is assumed."
    )
    return (
        "A call reads from the cache what its request shares with the one before, if that was sent to the same model "
        f"at most {CACHE_SECONDS / 60:g} minutes earlier, by the times of the file, and is at least {CACHE_LEAST:,} "
        f"tokens long. The summariser reads what the call before it sent.{known}"
    )


def _price_words(prices: Prices) -> str:
    if prices.unknown:
        names = ", ".join(name or "no model named" for name in prices.unknown)
        return f"Price unknown: the price table has none for {names[:200]}."
    notes = dict.fromkeys(rates.note for rates in prices.rates if rates is not None)
    cliffs = sorted({size for rates in prices.rates if rates is not None for size in rates.cliffs})
    dearer = (
        f"; calls above {' and '.join(f'{size:,}' for size in cliffs)} prompt tokens cost more a token"
        if cliffs
        else ""
    )
    return f"List prices of {', '.join(notes)}{dearer}."
