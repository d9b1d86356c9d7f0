"""What the overview answers below its chart: the rule, the price of compacting, what was lost, what had avoided it."""

from __future__ import annotations

from typing import Any

from guard_core.avoiding import goal_of, nothing_words
from guard_core.facts.words import blind_words
from guard_core.findings import Finding
from guard_core.findings.verdict import NO_WHOLE
from guard_core.outcomes.payback import Payback
from guard_core.outcomes.words import balance_words, price_words
from inspector.pages.session.frame import Frame
from inspector.pages.shared.kinds import kind_name
from inspector.pages.shared.numbers import step_number
from inspector.pages.shared.remedies import remedy_rows
from inspector.replays.avoiding import answers_at_hand

SHOWN_PRICES = 3  # compactions whose price is on the overview
SHOWN_ANSWERS = 3  # findings whose remedies are on it
SHOWN_LOSSES = 3  # lost requests and rules on it
LOST = ("request_lost", "part_lost", "rule_lost", "earlier_rule_lost", "todo_lost")


def answers(page: Frame, own_rule: str) -> list[dict[str, Any]]:
    """The answers in their order, each with its first sentence, the others, and the page that says more."""
    findings = page.analysis.facts.conclusions
    lost = [item for item in findings if item.kind in LOST]
    rule = [_row("The agent’s rule", [{"words": own_rule}], page.links["rule"], "The rule, step by step")]
    return [
        *(rule if own_rule else []),
        _cost(page, lost),
        _lost(page, lost),
        _avoided(page, [item for item in findings if goal_of(item)]),
    ]


def _cost(page: Frame, lost: list[Finding]) -> dict[str, Any]:
    """What the compactions cost: first those that lost a request or a rule, else all together and the first ones."""
    analysis, name = page.analysis, "What it cost"
    side = "replayed" if analysis.simulated else "recorded"
    prices = analysis.replayed_payback if analysis.simulated else analysis.recorded_payback
    if not prices:
        text = "No call was made after a compaction." if page.compactions.total else _uncompacted(page)
        if _cleared(page):
            text = "No compaction is recorded; what clearing tool results cost is not computed."
        if not analysis.simulated and blind_words(analysis.facts):
            text = "Not known: the file does not show all that left the context."
        return _row(name, [{"words": text}], page.links["policies"], "Other policies")
    losing = {item.numbers["compaction"] for item in lost}
    shown = sorted(prices, key=lambda item: (item.index not in losing, item.index))[:SHOWN_PRICES]
    balance = [{"words": balance_words(prices, analysis.prices)}] if len(prices) > 1 else []
    first = [_price(page, item, side) for item in shown if item.index in losing]
    others = [_price(page, item, side) for item in shown if item.index not in losing]
    return _row(name, [*first, *balance, *others], page.links["policies"], "Other policies")


def _price(page: Frame, price: Payback, side: str) -> dict[str, str]:
    return {"words": price_words(price, page.analysis.prices), "url": page.compaction_url(price.index, side)}


def _lost(page: Frame, lost: list[Finding]) -> dict[str, Any]:
    side = "replayed" if page.analysis.simulated else "recorded"
    items = [
        {"words": item.sentence, "url": page.compaction_url(item.numbers["compaction"], side)}
        for item in lost[:SHOWN_LOSSES]
    ]
    if len(lost) > SHOWN_LOSSES:
        items.append({"words": f"{len(lost) - SHOWN_LOSSES:,} more: see the findings."})
    return _row("What was lost", items or [{"words": _nothing_lost(page)}], page.links["facts"], "Every instruction")


def _nothing_lost(page: Frame) -> str:
    unseen = "" if page.analysis.simulated else blind_words(page.analysis.facts)
    if unseen:
        return unseen
    if not page.compactions.total and not page.analysis.replayed.compactions:
        return _cleared(page) or _uncompacted(page)
    if page.analysis.facts.words is None:
        return "Not determined yet."
    return "No request of a user was lost before its turn had ended, and no rule of one or open todo for good."


def _cleared(page: Frame) -> str:
    """Which results of tools a recording without a compaction no longer sent; "" where it sent them all."""
    if page.analysis.simulated or page.compactions.total:
        return ""
    findings = page.analysis.facts.conclusions
    return next((item.sentence for item in findings if item.kind == "results_cleared"), "")


def _uncompacted(page: Frame) -> str:
    """That nothing was compacted, as far as the file is known to say so."""
    if not page.analysis.simulated and not NO_WHOLE.keys().isdisjoint(page.analysis.facts.session.notes):
        return "Nothing that the file shows: it records no compaction."
    return "Nothing: nothing was compacted."


def _avoided(page: Frame, findings: list[Finding]) -> dict[str, Any]:
    name, url = "What would have avoided it", page.paths["avoid"]
    if not findings:
        return _row(name, [{"words": nothing_words(page.analysis.facts.conclusions)}], "", "")
    answers, is_awaited = answers_at_hand(page.row)
    if answers is None:
        words = "Other settings are being replayed to find one." if is_awaited else "Not searched yet."
        return _row(name, [{"words": words}], url, "Search now")
    if not answers.answers:
        return _row(name, [{"words": "Set the window first: a prompt larger than it was answered."}], "", "")
    items: list[dict[str, str]] = []
    for place, answer in enumerate(answers.answers[:SHOWN_ANSWERS]):
        rows = remedy_rows(answer, page.analysis, page.paths["overview"])
        rows = rows if not place else rows[:1]  # of the gravest finding every way, of the others the nearest
        items += [
            {"words": item["short"], "rest": item["rest"], "url": item["url"], "link": "Replay it"} for item in rows
        ]
        about = f"{kind_name(answer.kinds[0]).capitalize()} (step {step_number(answer.steps[0]):,})"
        items += [] if rows else [{"words": f"{about}: {answer.sentence[:1].lower()}{answer.sentence[1:]}"}]
    return _row(name, items, url, "All answers, and what they are based on")


def _row(name: str, items: list[dict[str, str]], url: str, link: str) -> dict[str, Any]:
    return {"name": name, "first": items[0], "more": items[1:], "url": url, "link": link}
