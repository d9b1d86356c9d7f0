"""What a compaction cost, what it saved since, and when it was earned back: figures and sentences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from guard_core.findings.words import compactions_words
from guard_core.outcomes.bill import OFF
from guard_core.outcomes.outcome import is_unpaid
from guard_core.outcomes.payback import Payback
from guard_core.outcomes.words import dollars, payback_words, usual_break_even
from guard_core.sessions import Provenance
from inspector.pages.compaction.presenter import PageCompaction
from inspector.pages.shared.numbers import DASH, compaction_number, counted, step_number, tokens
from inspector.replays.analysis import Analysis

MODELLED = Provenance.MODELLED.value
LONGEST_EVEN = 10_000  # calls; more than that is never


def price_of(analysis: Analysis, item: PageCompaction, step_url: Callable[[int], str]) -> dict[str, Any]:
    """The panel of the price. Where no call was made with a compaction it says so."""
    known = analysis.recorded_payback if item.recorded else analysis.replayed_payback
    price = next((one for one in known if one.index == item.index), None)
    if price is None:
        if item.recorded and _is_unknown(analysis, item):
            return {"sentences": ["What it removed is not in the file, so what it saved is unknown."], "figures": []}
        later = next((one for one in known if _has_price_of(analysis, one, item)), None)
        if later is None:
            return {"sentences": ["No call was made with it, so it saved nothing."], "figures": []}
        number = compaction_number(later.index)
        text = f"Compaction {number:,} followed before any call was made; its page has the price of both."
        return {"sentences": [text], "figures": []}
    replaced = _replaced(analysis, item.index) if item.recorded else []
    prices = analysis.prices
    figures = []
    if prices.has_prices:
        even = usual_break_even(price, prices)
        figures = [
            _figure(
                "cost at once" if price.paid >= 0 else "saved at once",
                dollars(abs(price.paid)),
                "the summary, and what the next call cost more, or less, than without the compaction",
            ),
            _figure("saved since", dollars(price.saved), f"{counted(price.stop - price.step - 1, 'later call')}"),
            _figure("earned back", *_earned(price.earned_back, price.step), bad=is_unpaid(price)),
            _figure("usual break-even", _even(even), "calls, if only the summary is kept"),
        ]
    return {
        "figures": figures,
        "sentences": [
            *([f"This is the price of {compactions_words(replaced)}, too: no call came between."] if replaced else []),
            *payback_words(price, prices),
            *_sealed_words(analysis, item),
            *_cache_words(analysis, item, price.step),
        ],
        "url": step_url(price.earned_back) if price.earned_back >= 0 and prices.has_prices else "",
    }


def _is_unknown(analysis: Analysis, item: PageCompaction) -> bool:
    """Is there a call after a recorded compaction, while what this saved is not known."""
    counted = analysis.facts.counts.compactions[item.index]
    return counted.step >= 0 and analysis.facts.is_price_unknown(counted)


def _has_price_of(analysis: Analysis, price: Payback, item: PageCompaction) -> bool:
    """Does the price include a compaction that another one followed before any call."""
    if item.recorded:
        return item.index in _replaced(analysis, price.index)
    return price.index > item.index and price.step == item.step


def _replaced(analysis: Analysis, index: int) -> list[int]:
    """The recorded compactions that one replaced before any call was made with them."""
    facts = analysis.facts
    return [place for place, _ in facts.replaced_by(facts.counts.compactions[index])]


def _sealed_words(analysis: Analysis, item: PageCompaction) -> list[str]:
    """What the price lacks where the summary's own tokens are not known."""
    is_sealed = item.recorded and analysis.ledger.bases[item.place].is_sealed
    written = analysis.head.compactions[item.place].summariser if item.recorded else None
    if not is_sealed or (written is not None and written.output_tokens is not None):
        return []
    return ["The summary is not readable: writing it cost more than this by its tokens, which are not known."]


def _figure(label: str, value: str, note: str, *, bad: bool = False) -> dict[str, Any]:
    return {"label": label, "value": value, "note": note, "source": MODELLED, "bad": bad}


def _earned(step: int, first: int) -> tuple[str, str]:
    """In words the step that earned the price back, below 0 where none did, and how long after the `first` call."""
    if step < 0:
        return "no", "up to the next compaction, or the end"
    return f"step {step_number(step):,}", "at once" if step == first else f"{counted(step - first, 'call')} later"


def _even(calls: float | None) -> str:
    """Calls up to the break-even; beyond `LONGEST_EVEN` no session is long enough."""
    if calls is None:
        return DASH
    return "never" if calls > LONGEST_EVEN else f"{calls:,.1f}"


def _cache_words(analysis: Analysis, item: PageCompaction, step: int) -> list[str]:
    """What the provider reported of the first call, beside what was modelled."""
    if analysis.prices.caching == OFF:
        return ["The recording's agent used no cache, so none is modelled."]
    read = int(analysis.ledger.steps["cached_tokens"][step])
    return (
        [f"The provider reported {tokens(read)} tokens read from the cache there."]
        if item.recorded and read >= 0
        else []
    )
