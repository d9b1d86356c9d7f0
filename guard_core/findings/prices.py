"""Compactions that never paid for themselves, at the list prices of the session's model."""

from __future__ import annotations

from guard_core.findings.claims import INFO, LIST_PRICES, LISTED, MODELLED_CACHE, SAME_TURNS, Finding
from guard_core.findings.facts import Case
from guard_core.findings.sliding import others
from guard_core.findings.words import at_step, counted, if_window, uncounted_words, window_assumptions


def never_paid(case: Case) -> list[Finding]:
    """Recorded compactions that cost more than they had saved when the next one came, though the window did not need
    them. A window that slides by design is not meant to pay; one that a refused request forced was needed, whatever the
    window is taken to be."""
    from guard_core.outcomes.bill import Prices, bill_of  # these rest on facts, too
    from guard_core.outcomes.outcome import is_unpaid
    from guard_core.outcomes.payback import paybacks
    from guard_core.outcomes.sent import SentRequests
    from guard_core.outcomes.words import dollars
    from guard_core.windows.prices import UNIT

    facts = case.facts
    if not case.is_recorded or not case.fired or facts.is_uncounted or not case.window_counts:
        return []
    if facts.falls or facts.is_miscounted:  # what a later call would have cost without it is not known
        return []
    prices = Prices.of(facts.session, facts.ledger, facts.answers)
    if not prices.has_prices:
        return []
    sent = SentRequests(case)
    priced = paybacks(sent, bill_of(sent, prices))
    lasting = {item.index for item in others(case) if not facts.is_forced(item)}
    # Without a call after its first one, as where the recording ends, a compaction could not save anything.
    unpaid = [
        item
        for item in priced
        if item.index in lasting and is_unpaid(item) and (item.stop < len(sent.tokens) or item.stop - item.step > 1)
    ]
    if not unpaid:
        return []
    worst = max(unpaid, key=lambda item: item.net)
    calls = worst.stop - worst.step - 1
    until = "up to the next one" if worst.stop < len(sent.tokens) else "until the recording ends"
    more = "" if len(unpaid) == 1 else f" Nor did {counted(len(unpaid) - 1, 'more compaction')}."
    change = f"{'saved' if worst.saved >= 0 else 'cost another'} {dollars(abs(worst.saved))}"
    later = f"{counted(calls, 'later call')} {until} {change}" if calls else "no other call came before the next one"
    sentence = (
        f"Compaction {worst.index + 1:,} ({at_step(worst.step)}) never paid for itself: it cost {dollars(worst.paid)} "
        f"at once, and {later} (list prices, cache modelled{uncounted_words(facts.uncounted)}), while without it "
        f"no request would have been over the window{if_window(case.window)}.{more}"
    )
    numbers = {
        "compaction": worst.index,
        "step": worst.step,
        "paid": worst.paid / UNIT / 1_000_000,
        "saved": worst.saved / UNIT / 1_000_000,
        "window": case.window.value,
        "calls": calls,
        "compactions": [item.index for item in unpaid],
        **facts.uncounted,
    }
    assumptions = (*window_assumptions(case.window), LIST_PRICES, MODELLED_CACHE, SAME_TURNS)
    steps = tuple(item.step for item in unpaid[:LISTED])
    return [Finding("never_paid", INFO, worst.step, sentence, numbers, assumptions, steps, len(unpaid))]
